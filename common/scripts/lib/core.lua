-- What transitions share: indexes, counts, events.
-- include: base

local function number(text)
  if text == 'inf' then
    return math.huge
  end
  return tonumber(text)
end

local function score(x)
  if x == math.huge then
    return '+inf'
  end
  return x
end

-- A count or a time as the store holds it; what is none (garbage, nan, inf) is 0.
local function whole(text)
  local x = tonumber(text or '0')
  return x and x >= 0 and x < 1e15 and math.floor(x) or 0
end

local function has(flags, flag)
  return flags and flags:find(flag, 1, true) ~= nil
end

local function small_fields(status, session, cmid, user, kind, flags, sends, accepted, digest, prior, first_claim, again, deps)
  return {status = status or 'broken', session = session or '', cmid = cmid or '', user = user or '', kind = kind or '',
          flags = flags or '', sends = whole(sends), accepted = whole(accepted), digest = digest or '', prior = prior,
          first_claim = first_claim, retry = again or nil, deps = deps or ''}
end

-- All that an entry holds, as HGETALL gives it. What stands in its place with another type is an entry that can't be read.
local function all_of(ws, id)
  local fields = redis.pcall('HGETALL', key('outboxe', ws, id))
  return fields.err and {'unreadable', '1'} or fields
end

-- The small fields that transitions need. nil: there is no such entry. One whose status was lost is still there: people
-- can send it again or remove it.
local function load(ws, id)
  local v = fields_of(ws, id, 'status', 'session', 'clientMessageID', 'userID', 'kind', 'flags', 'sends', 'acceptedAt',
                      'digest', 'prior', 'firstClaimAt', 'retry', 'deps')
  if not v[1] and call('EXISTS', key('outboxe', ws, id)) == 0 then
    return nil
  end
  local e = small_fields(unpack(v))
  e.is_foreign = v.err ~= nil
  return e
end

-- Contract §7: one event in the partition's stream; its ID is the store's time. Empty members are left out.
local function event(ws, id, e, what, ...)
  local args = {'XADD', 'outboxev' .. tag, 'MAXLEN', '~', ARGV[2], '*', 'type', what, 'workspaceID', decode(ws),
                'sessionID', e.session, 'entryID', id, 'kind', e.kind}
  local n = 16
  local more = {'clientMessageID', e.cmid, 'userID', e.user, ...}
  for i = 1, #more, 2 do
    if more[i + 1] ~= '' then
      args[n + 1], args[n + 2] = more[i], more[i + 1]
      n = n + 2
    end
  end
  call(unpack(args))
end

local is_open = {pending = true, delivering = true, verifying = true}
local is_known = {pending = true, delivering = true, verifying = true, error = true, parked = true}

-- Changes of a workspace's gauges that wait for settle_counts; nil: none waits, each is written at once. For scripts that
-- end one entry and take the next, or take many: most of their changes cancel out or add up.
local held_counts

-- A counter that can't be counted with stops no delivery.
local function count(ws, status, by)
  if held_counts then
    held_counts[status] = (held_counts[status] or 0) + by
  elseif by ~= 0 then
    redis.pcall('HINCRBY', 'outboxstat' .. tag, status, by)
    redis.pcall('HINCRBY', key('outboxwsstat', ws), status, by)
  end
end

local function settle_counts(ws)
  local changes = held_counts or {}
  held_counts = nil
  for status, by in pairs(changes) do
    count(ws, status, by)
  end
end

-- Keeps the gauges in step with a change of status; nil stands for "not in the store".
local function recount(ws, id, e, from, to)
  if from == to then
    return
  end
  if is_known[from] then
    count(ws, from, -1)
  end
  if to then
    count(ws, to, 1)
  end
  if from == 'error' then
    call('ZREM', 'outboxerr' .. tag, ws .. ':' .. id)
  end
  if is_open[to] and not is_open[from] then
    call('ZADD', 'outboxopen' .. tag, e.accepted, ws .. ':' .. id)
  elseif from and not is_open[to] and (is_open[from] or not is_known[from]) then
    call('ZREM', 'outboxopen' .. tag, ws .. ':' .. id)
  end
end

-- A workspace's settings as the store gives them. No script that asks writes them: they are read once.
local confs = {}
local function conf(ws)
  confs[ws] = confs[ws] or call('HGETALL', key('outboxconf', ws))
  return confs[ws]
end

-- A field of what HGETALL gave.
local function member(fields, name)
  for i = 1, #fields, 2 do
    if fields[i] == name then
      return fields[i + 1]
    end
  end
end

local function setting(ws, name)
  return member(conf(ws), name)
end

-- Where an entry stands in the order of its workspace: its acceptance, unless it stands in for an older one.
local function rank_of(ws, id)
  local v = fields_of(ws, id, 'rank', 'acceptedAt')
  return whole(v[1] or v[2])
end

-- Until when nothing of a workspace is claimed: 0, or a cleanup's last word (lib/cleaning.lua), or until somebody resumes it.
local function paused_until(ws)
  if setting(ws, 'paused') == '1' then
    return math.huge
  end
  return whole(setting(ws, 'cleanup'))
end

local function is_paused(ws)
  return paused_until(ws) > now
end

-- A workspace without sessions: nothing of it is left but its settings, if it has any. A cleanup that has not ended is
-- looked at once more when its time is up: what it noted goes then.
local function reindex_empty(ws)
  local due = 'outboxdue' .. tag
  settle_counts(ws) -- before its own counts go
  call('DEL', key('outboxwsstat', ws))
  local cleanup = setting(ws, 'cleanup')
  local left = #conf(ws) / 2
  if cleanup and whole(cleanup) > now then
    call('ZADD', due, whole(cleanup), ws)
  else
    call('ZREM', due, ws)
    if cleanup then
      call('HDEL', key('outboxconf', ws), 'cleanup')
      left = left - 1
    end
  end
  if left > 0 then
    call('ZADD', 'outboxnames' .. tag, 0, ws)
  else
    call('ZREM', 'outboxnames' .. tag, ws)
  end
end

-- The workspace's score follows its earliest session. What is overdue keeps its place in the row.
local function reindex(ws, go_behind)
  local due = 'outboxdue' .. tag
  local first = call('ZRANGE', key('outboxws', ws), 0, 0, 'WITHSCORES')
  if not first[1] then
    reindex_empty(ws)
    return
  end
  local at = math.max(number(first[2]), paused_until(ws))
  if at <= now and go_behind then
    call('ZADD', due, fine, ws)
    return
  end
  local stands = call('ZSCORE', due, ws)
  stands = stands and number(stands)
  if not stands then
    call('ZADD', 'outboxnames' .. tag, 0, ws)
  end
  if stands ~= at and not (stands and stands <= now and at <= now) then
    call('ZADD', due, score(at <= now and now or at), ws)
  end
end

-- A session's score: when it next has work; nil: it holds no entries.
local function index(ws, ses, at)
  if at then
    call('ZADD', key('outboxws', ws), score(at), ses)
  else
    call('ZREM', key('outboxws', ws), ses)
  end
end

-- include: deps

-- Of a session's entries whose previous attempt the target still owns (prior-pending) the one that is looked at next, and
-- when. A parked one keeps its place in the set and holds nobody up.
local function first_owned(ws, ses)
  local ids = call('SMEMBERS', key('outboxowned', ws, ses))
  local first, due
  for i = 1, #ids do
    local v = fields_of(ws, ids[i], 'status', 'nextAttemptAt')
    if v[1] == 'delivering' and (not due or whole(v[2]) < due) then
      first, due = ids[i], whole(v[2])
    end
  end
  return first, due
end

-- The walk of pick. IDs that stand for nothing (their entry is gone) are added to `ghosts`.
local function walk(ws, ses, ghosts)
  local queue = key('outboxq', ws, ses)
  local due = nil
  local from, size = 0, 1 -- mostly the first one may go: nobody reads on then
  while true do
    local ids = call('LRANGE', queue, from, from + size - 1)
    for i = 1, #ids do
      local v = fields_of(ws, ids[i], 'status', 'nextAttemptAt', 'flags', 'deps')
      local status = v[1]
      local deps = v[4] and is_open[status] and check_deps(ws, ses, ids[i], v[4]) or 'free'
      if deps == 'failed' then
        status = 'error'
      end
      if status or call('EXISTS', key('outboxe', ws, ids[i])) == 1 then
        due = due or math.huge
      else
        ghosts[#ghosts + 1] = ids[i]
      end
      if is_open[status] or status == 'parked' then
        local at = math.huge
        if status ~= 'parked' and deps == 'free' then
          at = whole(v[2])
        end
        if at <= now then
          return ids[i], now
        end
        if at < due then
          due = at
        end
        if status == 'delivering' or has(v[3], 's') then
          return nil, due
        end
      end
    end
    if #ids < size then
      return nil, due
    end
    from, size = from + size, 16
  end
end

-- The first entry of a session that may go now, and when the session next has work (contract §3, Claim).
-- Returns id or nil, due or nil (the session holds no entries).
local function pick(ws, ses)
  local owned, at = first_owned(ws, ses)
  if owned then
    -- The session waits for it, also what stands before it and was passed over when it was sent.
    return at <= now and owned or nil, math.max(at, now)
  end
  local ghosts = {}
  local id, due = walk(ws, ses, ghosts)
  for i = 1, #ghosts do
    call('LREM', key('outboxq', ws, ses), 0, ghosts[i])
  end
  return id, due
end

local function is_locked(ws, ses)
  return call('EXISTS', key('outboxlock', ws, ses)) == 1
end

-- Who holds the lock; false: nobody, or what stands there is no lock.
local function holder(ws, ses)
  local token = redis.pcall('GET', key('outboxlock', ws, ses))
  return type(token) == 'string' and token
end

-- After a change that may let an unlocked session go: a locked one's score is its lock's deadline and stays.
local function rearm(ws, ses)
  if not is_locked(ws, ses) then
    local _, due = pick(ws, ses)
    index(ws, ses, due)
    reindex(ws)
  end
end
