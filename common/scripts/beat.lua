#!lua flags=allow-oom
-- Raises a generation's counter, kept for a while. KEYS[1] the counter. A full store must not make a living generation
-- look dead: its entries would be taken over while it delivers them.
local counter = redis.call('INCR', KEYS[1])
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return counter
