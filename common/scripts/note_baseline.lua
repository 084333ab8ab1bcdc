#!lua flags=allow-oom
-- Before the first request to an agent that takes no message ID: the newest message that is there. KEYS[1] the session's
-- queue. The entry becomes strict: a later one with the same text could be taken for it.
-- include: core
local ws, ses, id, token, newest = ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]

local ekey = key('outboxe', ws, id)
if call('GET', key('outboxlock', ws, ses)) ~= token or call('EXISTS', ekey) == 0 then
  return 0
end
call('HSETNX', ekey, 'baseline', newest)
local flags = call('HGET', ekey, 'flags') or ''
if not has(flags, 's') then
  call('HSET', ekey, 'flags', flags .. 's')
end
return 1
