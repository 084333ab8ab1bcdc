#!lua flags=no-writes
-- A partition's entries by status, the oldest open one, the locks. KEYS[1] the partition's counts.
-- include: core
local oldest = call('ZRANGE', 'outboxopen' .. tag, 0, 0, 'WITHSCORES')
return {now, oldest[2] and number(oldest[2]) or 0, call('ZCARD', 'outboxlive' .. tag), call('HGETALL', KEYS[1])}
