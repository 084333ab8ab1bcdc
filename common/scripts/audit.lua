#!lua flags=allow-oom
-- Looks at some open entries of a partition, the next ones each time: whether a claim will find them. What scripts write is
-- whole, but a store may have been restored from pieces. KEYS[1] the partition's index of open entries.
-- Costs the same however many there are. Answers {now, where to go on (0: all were seen), what was mended}.
-- include: core
-- include: lock
local from, limit, ttl = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local mended = 0
local seen = {}

-- A claim finds a session by its score: an unlocked one's is when it next has work, a locked one's is its lock's deadline.
-- What a claim set aside stands for that long.
local function audit_session(ws, ses)
  local stands = call('ZSCORE', key('outboxws', ws), ses)
  local at = stands and number(stands)
  local is_right
  if holder(ws, ses) then
    local live = call('ZSCORE', 'outboxlive' .. tag, ws .. ':' .. ses)
    is_right = at and live and at == number(live) and at < math.huge
    if not is_right then
      repair_lock(ws, ses, ttl)
    end
  else
    recover_staged(ws, ses)
    local _, needed = pick(ws, ses)
    is_right = at and needed and at <= math.max(needed, now) + SET_ASIDE
    if not is_right then
      index(ws, ses, needed)
    end
  end
  local before = call('ZSCORE', 'outboxdue' .. tag, ws)
  if not is_right or not before or number(before) > now + SET_ASIDE then
    reindex(ws)
  end
  if not is_right or before ~= call('ZSCORE', 'outboxdue' .. tag, ws) then
    mended = mended + 1
  end
end

local function audit(ws, id)
  local e = load(ws, id)
  if e and e.status == 'broken' then
    event(ws, id, e, 'error', 'code', 'unreadable') -- once: it leaves the index
  end
  if not e or not is_open[e.status] then
    mended = mended + call('ZREM', KEYS[1], ws .. ':' .. id) -- the look at its session may have done so
    return
  end
  local ses = encode(e.session)
  local is_placed = call('LPOS', key('outboxq', ws, ses), id) or call('LPOS', key('outboxd', ws, ses), id)
  if not is_placed and call('EXISTS', key('outboxdone', ws, id)) == 1 then
    -- It has ended: the tombstone is written when it has left queue and staging.
    call('DEL', key('outboxe', ws, id))
    recount(ws, id, e, e.status, nil)
    mended = mended + 1
    return
  end
  if queue_again(ws, ses, id) then
    mended = mended + 1
  end
  if e.status == 'delivering' and e.prior then
    mended = mended + call('SADD', key('outboxowned', ws, ses), id)
  end
  if not seen[ws .. ':' .. ses] then
    seen[ws .. ':' .. ses] = true
    audit_session(ws, ses)
  end
end

-- From the newest to the oldest: what ends meanwhile moves those that were not seen yet nearer, and none is passed over.
from = from > 0 and from or call('ZCARD', KEYS[1])
local first = math.max(from - limit, 0)
local members = from > 0 and call('ZRANGE', KEYS[1], first, from - 1) or {}
for i = 1, #members do
  local ws, id = members[i]:match('^([^:]*):([^:]*)$')
  if ws and not pcall(audit, ws, id) then
    -- What is broken stops nobody else; claims set it aside and say so.
    redis.log(redis.LOG_VERBOSE, 'outbox: not audited: ' .. members[i])
  end
end
return {now, first, mended}
