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

-- The small fields that transitions need. nil: there is no such entry. One whose status was lost is still there: people
-- can send it again or remove it.
local function load(ws, id)
  local v = call('HMGET', key('outboxe', ws, id), 'status', 'session', 'clientMessageID', 'userID', 'kind', 'flags',
                 'sends', 'acceptedAt', 'digest', 'prior', 'firstClaimAt', 'retry')
  if not v[1] and call('EXISTS', key('outboxe', ws, id)) == 0 then
    return nil
  end
  return {status = v[1] or 'broken', session = v[2] or '', cmid = v[3] or '', user = v[4] or '', kind = v[5] or '', flags = v[6] or '',
          sends = whole(v[7]), accepted = whole(v[8]), digest = v[9] or '', prior = v[10],
          first_claim = v[11], retry = v[12] or nil}
end

-- Contract §7: one event in the partition's stream; its ID is the store's time. Empty members are left out.
local function event(ws, id, e, what, ...)
  local args = {'XADD', 'outboxev' .. tag, 'MAXLEN', '~', ARGV[2], '*', 'type', what, 'workspaceID', decode(ws),
                'sessionID', e.session, 'entryID', id, 'kind', e.kind}
  local n = #args
  local function add(name, value)
    if value and value ~= '' then
      args[n + 1], args[n + 2] = name, value
      n = n + 2
    end
  end
  add('clientMessageID', e.cmid)
  add('userID', e.user)
  for i = 1, select('#', ...), 2 do
    add(select(i, ...), (select(i + 1, ...)))
  end
  call(unpack(args))
end

local is_open = {pending = true, delivering = true, verifying = true}
local is_known = {pending = true, delivering = true, verifying = true, error = true, parked = true}

-- Keeps the gauges in step with a change of status; nil stands for "not in the store". A counter that can't be counted
-- with stops no delivery.
local function recount(ws, id, e, from, to)
  if from == to then
    return
  end
  local all, own = 'outboxstat' .. tag, key('outboxwsstat', ws)
  if is_known[from] then
    redis.pcall('HINCRBY', all, from, -1)
    redis.pcall('HINCRBY', own, from, -1)
  end
  if to then
    redis.pcall('HINCRBY', all, to, 1)
    redis.pcall('HINCRBY', own, to, 1)
  end
  if is_open[to] and not is_open[from] then
    call('ZADD', 'outboxopen' .. tag, e.accepted, ws .. ':' .. id)
  elseif from and not is_open[to] and (is_open[from] or not is_known[from]) then
    call('ZREM', 'outboxopen' .. tag, ws .. ':' .. id)
  end
end

local function is_paused(ws)
  return call('HGET', key('outboxconf', ws), 'paused') == '1'
end

-- The workspace's score follows its earliest session. What is overdue keeps its place in the row.
local function reindex(ws, go_behind)
  local due = 'outboxdue' .. tag
  local first = call('ZRANGE', key('outboxws', ws), 0, 0, 'WITHSCORES')
  if not first[1] then
    call('ZREM', due, ws)
    call('DEL', key('outboxwsstat', ws))
    return
  end
  local at = number(first[2])
  if is_paused(ws) then
    at = math.huge
  end
  if at <= now and go_behind then
    call('ZADD', due, fine, ws)
    return
  end
  local stands = call('ZSCORE', due, ws)
  stands = stands and number(stands)
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

-- The walk of pick. IDs that stand for nothing (their entry is gone) are added to `ghosts`.
local function walk(ws, ses, ghosts)
  local queue = key('outboxq', ws, ses)
  local due = nil
  local from = 0
  while true do
    local ids = call('LRANGE', queue, from, from + 15)
    for i = 1, #ids do
      local v = call('HMGET', key('outboxe', ws, ids[i]), 'status', 'nextAttemptAt', 'flags')
      local status = v[1]
      if status or call('EXISTS', key('outboxe', ws, ids[i])) == 1 then
        due = due or math.huge
      else
        ghosts[#ghosts + 1] = ids[i]
      end
      if is_open[status] or status == 'parked' then
        local at = math.huge
        if status ~= 'parked' then
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
    if #ids < 16 then
      return nil, due
    end
    from = from + 16
  end
end

-- The first entry of a session that may go now, and when the session next has work (contract §3, Claim).
-- Returns id or nil, due or nil (the session holds no entries).
local function pick(ws, ses)
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
