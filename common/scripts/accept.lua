#!lua
-- One message in, once. KEYS[1] the session's queue. The way of most messages (a new one into a session that waits for nobody)
-- is written out, without the functions that other scripts share: this script runs once for each message.
-- include: base
-- include: trace
local ws, ses, id, cmid, digest, kind, flags = ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9]
local user, body, cap = ARGV[10], ARGV[11], tonumber(ARGV[12]) -- from [13] on: what it waits for, encoded
local queue = KEYS[1]
local marker, first

if cmid ~= '' then
  marker = key('outboxdedupe', ws, ses, encode(cmid))
  first = call('GET', marker)
end
-- include: accept_known
if call('LLEN', queue) >= cap then
  return {'full', id, '', 0, now}
end

local named_from, named_to = 13, #ARGV
-- include: accept_waits
-- include: accept_write
call('RPUSH', queue, id)
if marker then
  call('SET', marker, id)
end
-- A counter that can't be counted with stops nothing.
redis.pcall('HINCRBY', 'outboxstat' .. tag, gone and 'error' or 'pending', 1)
redis.pcall('HINCRBY', key('outboxwsstat', ws), gone and 'error' or 'pending', 1)
if not gone then
  call('ZADD', 'outboxopen' .. tag, now, ws .. ':' .. id)
end

local sessions = key('outboxws', ws)
local stands = call('ZSCORE', sessions, ses)
if not stands and not waits[1] and not gone then
  call('ZADD', sessions, now, ses)
  -- include: accept_due
else
  -- include: accept_rearm
end
call(unpack(event))
if gone then
  event[8], event[#event + 1], event[#event + 2] = 'error', 'code', 'dependency_discarded'
  call(unpack(event))
end
return {'accepted', id, gone and 'error' or 'pending', now, now}
