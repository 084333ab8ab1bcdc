#!lua flags=allow-oom
-- Before a request to an agent that takes no message ID: the newest message that is there. KEYS[1] the session's queue.
-- The entry becomes strict: a later one with the same text could be taken for it. So could this one for another that
-- overtook it while it waited: as long as the outcome of that one is unknown this one stands behind it.
-- Failed ones are passed over and may be looked for again: nothing behind that message is theirs (`until`). One that is
-- sent again after that begins anew, behind what others have said meanwhile.
-- include: core
local ws, ses, id, token, newest = ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]

local ekey = key('outboxe', ws, id)
if call('GET', key('outboxlock', ws, ses)) ~= token or call('EXISTS', ekey) == 0 then
  return 0
end
local ids = call('LRANGE', KEYS[1], 0, -1)
local failed = {}
for i = 1, #ids do
  local v = fields_of(ws, ids[i], 'status', 'baseline', 'sends')
  if ids[i] ~= id and v[2] and whole(v[3]) > 0 then
    if is_open[v[1]] or v[1] == 'parked' then
      call('LREM', KEYS[1], 1, id)
      call('LINSERT', KEYS[1], 'AFTER', ids[i], id)
      return 0
    end
    failed[#failed + 1] = ids[i]
  end
end
for i = 1, #failed do
  call('HSETNX', key('outboxe', ws, failed[i]), 'until', newest)
end
if call('HEXISTS', ekey, 'until') == 1 then
  call('HSET', ekey, 'baseline', newest)
  call('HDEL', ekey, 'until')
else
  call('HSETNX', ekey, 'baseline', newest)
end
local flags = call('HGET', ekey, 'flags') or ''
if not has(flags, 's') then
  call('HSET', ekey, 'flags', flags .. 's')
end
return 1
