#!lua
-- One message in, once. KEYS[1] the session's queue. The way of most messages (a new one into a session that waits for nobody)
-- is written out, without the functions that other scripts share: this script runs once for each message.
-- include: base
-- include: trace
local ws, ses, id, cmid, digest, kind, flags = ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9]
local user, body, cap = ARGV[10], ARGV[11], tonumber(ARGV[12]) -- from [13] on: what it waits for, encoded
local queue = KEYS[1]
local ekey = key('outboxe', ws, id)
local marker, first

if cmid ~= '' then
  marker = key('outboxdedupe', ws, ses, encode(cmid))
  first = call('GET', marker)
end
if first or cmid == '' then
  -- Digest, how it stands or how it ended, acceptance of an entry that is open or remembered; nil: unknown.
  local function known(entry_id)
    local e = fields_of(ws, entry_id, 'digest', 'status', 'acceptedAt')
    if e[1] or e[2] then
      return e[1] or '', e[2] or '', tonumber(e[3] or '0') or 0
    end
    local ok, t = pcall(cjson.decode, call('GET', key('outboxdone', ws, entry_id)) or '')
    if ok and type(t) == 'table' then
      return tostring(t.digest), tostring(t.how), tonumber(t.acceptedAt) or 0
    end
  end
  -- An earlier run of this very call: the answer is the same, whatever became of the entry since.
  local own, status, accepted = known(id)
  if own then
    return {'accepted', id, status, accepted, now}
  end
  if first then
    local theirs
    theirs, status, accepted = known(first)
    if theirs then
      return {theirs == digest and 'duplicate' or 'reuse', first, status, accepted, now}
    end
  end
end
if call('LLEN', queue) >= cap then
  return {'full', id, '', 0, now}
end

-- What it waits for, resolved through what ended (contract §6): names of entries that are there, results of those that were
-- confirmed, and the first that can't be.
local waits, results, gone = {}, {}, nil
if ARGV[13] then
  local named = {}
  for i = 13, #ARGV do
    local what, which = trace(ws, ARGV[i])
    if what == 'there' and not named[which] then
      named[which] = true
      waits[#waits + 1] = which
    elseif what == 'sent' and which ~= '' then
      results[#results + 1] = which
    elseif what == 'gone' then
      gone = gone or ARGV[i]
    end
  end
end

local session = decode(ses)
local fields = {'HSET', ekey, 'body', body, 'digest', digest, 'status', 'pending', 'session', session, 'kind', kind,
                'acceptedAt', now}
local event = {'XADD', 'outboxev' .. tag, 'MAXLEN', '~', ARGV[2], '*', 'type', 'accepted', 'workspaceID', decode(ws),
               'sessionID', session, 'entryID', id, 'kind', kind}
local f, v = 14, 16
if cmid ~= '' then
  fields[f + 1], fields[f + 2] = 'clientMessageID', cmid
  event[v + 1], event[v + 2] = 'clientMessageID', cmid
  f, v = f + 2, v + 2
end
if user ~= '' then
  fields[f + 1], fields[f + 2] = 'userID', user
  event[v + 1], event[v + 2] = 'userID', user
  f = f + 2
end
if flags ~= '' then
  fields[f + 1], fields[f + 2] = 'flags', flags
end
if waits[1] or results[1] or gone then
  for name, value in pairs({deps = table.concat(waits, ' '), fills = table.concat(results, '\n')}) do
    if value ~= '' then
      fields[#fields + 1], fields[#fields + 2] = name, value
    end
  end
  for i = 1, #waits do
    call('SADD', key('outboxdep', ws, waits[i]), id)
  end
end
if gone then
  fields[8] = 'error'
  fields[#fields + 1], fields[#fields + 2] = 'lastError',
    cjson.encode({code = 'dependency_discarded', message = gone .. ' is not known, or was discarded'})
end
call(unpack(fields))
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
  -- The session begins and is due: so is its workspace, unless it is paused, or a cleanup holds it back.
  call('ZADD', sessions, now, ses)
  local due = call('ZSCORE', 'outboxdue' .. tag, ws)
  if not due then
    call('ZADD', 'outboxnames' .. tag, 0, ws)
  end
  if not due or due == 'inf' or tonumber(due) > now then
    local settings = call('HMGET', key('outboxconf', ws), 'paused', 'cleanup')
    local at = math.max(tonumber(settings[2] or '0') or 0, now)
    if settings[1] == '1' then
      at = '+inf'
    end
    if not due or due == 'inf' or at == '+inf' or tonumber(due) > at then
      call('ZADD', 'outboxdue' .. tag, at, ws)
    end
  end
elseif (not stands or stands == 'inf' or tonumber(stands) > now) and call('EXISTS', key('outboxlock', ws, ses)) == 0 then
  -- It waits. (Acceptance never lowers a locked session's score: that is its lock's deadline.)
  -- include: core
  rearm(ws, ses)
end
call(unpack(event))
if gone then
  event[8], event[#event + 1], event[#event + 2] = 'error', 'code', 'dependency_discarded'
  call(unpack(event))
end
return {'accepted', id, gone and 'error' or 'pending', now, now}
