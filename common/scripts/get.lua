#!lua flags=no-writes
-- One entry, what its session is sending or verifying and which of those that it waits for have failed; or its tombstone.
-- KEYS[1] the entry.
-- include: core
-- include: in_flight
-- include: failed_deps
local ws, id, ttl = ARGV[3], ARGV[4], tonumber(ARGV[5])
local fields = call('HGETALL', KEYS[1])
if fields[1] then
  local ses = encode(call('HGET', KEYS[1], 'session') or '')
  return {now, in_flight(ws, ses), in_flight_since(ws, ses, ttl), fields, '', failed_deps_of(ws, fields)}
end
return {now, '', 0, {}, call('GET', key('outboxdone', ws, id)) or '', ''}
