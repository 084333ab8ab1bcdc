#!lua flags=allow-oom
-- A person's retry of a failed entry. KEYS[1] the entry. A repeated call is known by its new_id, even when the entry
-- has failed again or ended since. An idempotent kind's key is spent: its entry is replaced by a new
-- one at the end of the lane (contract §6); any other keeps ID and place.
-- include: core
-- include: ending
local ws, id, new_id, keep = ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])

local e = load(ws, id)
if not e then
  local ok, t = pcall(cjson.decode, call('GET', key('outboxdone', ws, id)) or '')
  if ok and type(t) == 'table' and t.replacedBy == new_id then
    return {'done', 'replaced', new_id, now, call('HGETALL', key('outboxe', ws, new_id))}
  elseif ok and type(t) == 'table' and t.retry == new_id then
    return {'done', 'retried', id, now, {}}
  end
  return {'not_found', '', id, now, {}}
end
if e.retry == new_id then
  return {'done', 'retried', id, now, call('HGETALL', KEYS[1])}
end
local ses = encode(e.session)
if call('LPOS', key('outboxd', ws, ses), id) then
  return {'busy', '', id, now, {}}
end
if is_known[e.status] and e.status ~= 'error' then
  return {'not_failed', '', id, now, {}}
end

-- Rows of a ledger up to here are spent (contract §4): those of the counted attempts, and the next one unless the error
-- says that no request for it can have been started.
local function spent_attempts()
  local v = call('HMGET', KEYS[1], 'attemptBase', 'attempts', 'lastError')
  local ok, err = pcall(cjson.decode, v[3] or '')
  local code = ok and type(err) == 'table' and err.code
  local is_next_unused = e.sends == 0 or code == 'attempts_exhausted' or code == 'unreachable'
  return whole(v[1]) + whole(v[2]) + (is_next_unused and 0 or 1)
end

if not has(e.flags, 'i') then
  call('HSET', KEYS[1], 'status', 'pending', 'attempts', 0, 'verifyAttempts', 0, 'transientFails', 0, 'nextAttemptAt', 0,
       'retry', new_id, 'attemptBase', string.format('%.0f', spent_attempts()))
  call('HDEL', KEYS[1], 'lastError', 'conflictCurrent', 'firstClaimAt', 'sweep')
  recount(ws, id, e, e.status, 'pending')
  event(ws, id, e, 'rearmed', 'reason', 'retry')
  rearm(ws, ses)
  return {'done', 'retried', id, now, call('HGETALL', KEYS[1])}
end

local old = call('HMGET', KEYS[1], 'body', 'userID', 'clientMessageID')
local fresh = {session = e.session, cmid = e.cmid, user = e.user, kind = e.kind, accepted = now}
local fields = {'HSET', key('outboxe', ws, new_id), 'body', old[1] or '', 'digest', e.digest, 'status', 'pending',
                'session', e.session, 'kind', e.kind, 'flags', e.flags, 'acceptedAt', now}
if old[2] then
  fields[#fields + 1] = 'userID'
  fields[#fields + 1] = old[2]
end
if e.cmid ~= '' then
  fields[#fields + 1] = 'clientMessageID'
  fields[#fields + 1] = e.cmid
end
call(unpack(fields))
call('RPUSH', key('outboxq', ws, ses), new_id)
if e.cmid ~= '' then
  call('SET', key('outboxdedupe', ws, ses, encode(e.cmid)), new_id)
end
recount(ws, new_id, fresh, nil, 'pending')
end_entry(ws, ses, id, e, 'replaced', keep, {replacedBy = new_id})
event(ws, new_id, fresh, 'rearmed', 'reason', 'retry', 'replaces', id)
rearm(ws, ses)
return {'done', 'replaced', new_id, now, call('HGETALL', key('outboxe', ws, new_id))}
