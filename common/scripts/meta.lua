#!lua flags=allow-oom
-- Layout version and partition count: written on first start, read ever after. KEYS[1] outboxmeta. Also in a full store:
-- one that can't be started on can't drain.
redis.call('HSETNX', KEYS[1], 'layout', ARGV[1])
redis.call('HSETNX', KEYS[1], 'partitions', ARGV[2])
return redis.call('HMGET', KEYS[1], 'layout', 'partitions')
