#!lua flags=no-writes
-- One entry and what its session is sending or verifying, or its tombstone. KEYS[1] the entry.
-- include: core
-- include: in_flight
local ws, id, ttl = ARGV[3], ARGV[4], tonumber(ARGV[5])
local fields = call('HGETALL', KEYS[1])
if fields[1] then
  local ses = encode(call('HGET', KEYS[1], 'session') or '')
  return {now, in_flight(ws, ses), in_flight_since(ws, ses, ttl), fields, ''}
end
return {now, '', 0, {}, call('GET', key('outboxdone', ws, id)) or ''}
