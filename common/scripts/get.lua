#!lua flags=no-writes
-- One entry, or its tombstone. KEYS[1] the entry.
-- include: core
local ws, id = ARGV[3], ARGV[4]
local fields = call('HGETALL', KEYS[1])
if fields[1] then
  local ses = encode(call('HGET', KEYS[1], 'session') or '')
  return {now, call('LPOS', key('outboxd', ws, ses), id) and 1 or 0, fields, ''}
end
return {now, 0, {}, call('GET', key('outboxdone', ws, id)) or ''}
