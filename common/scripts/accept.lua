#!lua
-- One message in, once. KEYS[1] the session's queue.
-- include: core
local ws, ses, id, cmid, digest, kind, flags = ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9]
local user, body, cap = ARGV[10], ARGV[11], tonumber(ARGV[12])
local queue = KEYS[1]
local marker = key('outboxdedupe', ws, ses, encode(cmid))

-- Digest, how it stands or how it ended, acceptance of an entry that is open or remembered; nil: unknown.
local function known(entry_id)
  local e = call('HMGET', key('outboxe', ws, entry_id), 'digest', 'status', 'acceptedAt')
  if e[1] or e[2] then
    return e[1] or '', e[2] or '', tonumber(e[3] or '0') or 0
  end
  local ok, t = pcall(cjson.decode, call('GET', key('outboxdone', ws, entry_id)) or '')
  if ok and type(t) == 'table' then
    return tostring(t.digest), tostring(t.how), tonumber(t.acceptedAt) or 0
  end
end

local first = cmid ~= '' and call('GET', marker)
if first or cmid == '' then
  -- An earlier run of this very call: the answer is the same, whatever became of the entry since.
  local own, status, accepted = known(id)
  if own then
    return {'accepted', id, status, accepted, now}
  end
end
if first then
  local theirs, status, accepted = known(first)
  if theirs then
    return {theirs == digest and 'duplicate' or 'reuse', first, status, accepted, now}
  end
end
if call('LLEN', queue) >= cap then
  return {'full', id, '', 0, now}
end

local e = {session = decode(ses), cmid = cmid, user = user, kind = kind, accepted = now}
local fields = {'HSET', key('outboxe', ws, id), 'body', body, 'digest', digest, 'status', 'pending', 'session', e.session,
                'kind', kind, 'acceptedAt', now}
local function add(name, value)
  if value ~= '' then
    fields[#fields + 1] = name
    fields[#fields + 1] = value
  end
end
add('clientMessageID', cmid)
add('userID', user)
add('flags', flags)
call(unpack(fields))
call('RPUSH', queue, id)
if cmid ~= '' then
  call('SET', marker, id)
end
recount(ws, id, e, nil, 'pending')

-- Acceptance never lowers a locked session's score: that is its lock's deadline.
local stands = call('ZSCORE', key('outboxws', ws), ses)
if not stands then
  index(ws, ses, now)
  reindex(ws)
elseif number(stands) > now then
  rearm(ws, ses)
end
event(ws, id, e, 'accepted')
return {'accepted', id, 'pending', now, now}
