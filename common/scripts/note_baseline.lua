#!lua flags=allow-oom
-- Before the first request to an agent that takes no message ID: the newest message that is there. KEYS[1] the session's
-- queue. The entry becomes strict: a later one with the same text could be taken for it. So could this one for another
-- that overtook it while it waited: as long as the outcome of that one is unknown this one stands behind it.
-- include: core
local ws, ses, id, token, newest = ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]

local ekey = key('outboxe', ws, id)
if call('GET', key('outboxlock', ws, ses)) ~= token or call('EXISTS', ekey) == 0 then
  return 0
end
local ids = call('LRANGE', KEYS[1], 0, -1)
for i = 1, #ids do
  local v = call('HMGET', key('outboxe', ws, ids[i]), 'status', 'baseline', 'sends')
  if ids[i] ~= id and v[2] and whole(v[3]) > 0 and (is_open[v[1]] or v[1] == 'parked') then
    call('LREM', KEYS[1], 1, id)
    call('LINSERT', KEYS[1], 'AFTER', ids[i], id)
    return 0
  end
end
call('HSETNX', ekey, 'baseline', newest)
local flags = call('HGET', ekey, 'flags') or ''
if not has(flags, 's') then
  call('HSET', ekey, 'flags', flags .. 's')
end
return 1
