#!lua flags=no-writes
-- A session's entries in FIFO order, a page: {ID, fields, those that it waits for and that have failed}. KEYS[1] the session's queue.
-- include: core
-- include: in_flight
-- include: failed_deps
local ws, ses, offset, limit, ttl = ARGV[3], ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local ids = call('LRANGE', KEYS[1], offset, offset + limit - 1)
local entries = {}
for i = 1, #ids do
  local fields = all_of(ws, ids[i])
  if fields[1] then
    entries[#entries + 1] = {ids[i], fields, failed_deps_of(ws, fields)}
  end
end
return {now, call('LLEN', KEYS[1]) > offset + #ids and 1 or 0, in_flight(ws, ses), in_flight_since(ws, ses, ttl), #ids,
        entries}
