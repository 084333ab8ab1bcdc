#!lua flags=no-writes
-- One entry, what its session is sending or verifying and which of those that it waits for have failed; or its tombstone.
-- KEYS[1] the entry.
-- include: core
-- include: in_flight
-- include: failed_deps
local ws, id, ttl = ARGV[3], ARGV[4], tonumber(ARGV[5])
local fields = all_of(ws, id)
if fields[1] then
  local ses = encode(member(fields, 'session') or '')
  return {now, in_flight(ws, ses), in_flight_since(ws, ses, ttl), fields, '', failed_deps_of(ws, fields)}
end
local tombstone = redis.pcall('GET', key('outboxdone', ws, id))
tombstone = type(tombstone) == 'string' and tombstone
return {now, '', 0, {}, tombstone or '', ''}
