#!lua flags=no-writes
-- Whether a token still holds its session. KEYS[1] the session's lock.
return redis.call('GET', KEYS[1]) == ARGV[3] and 1 or 0
