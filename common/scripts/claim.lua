#!lua flags=allow-oom
-- Locks due sessions of a partition and takes their first entry that may go. KEYS[1] the partition's due index.
-- A few sessions of each due workspace in turn; the workspace then stands behind the others.
-- include: core
-- include: lock
local token, ttl, max, per_ws = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])

local quota = {}
local quotas = 0
for i = 7, #ARGV, 2 do
  quota[ARGV[i]] = tonumber(ARGV[i + 1])
  quotas = quotas + 1
end

local function claim(ws, ses)
  if holder(ws, ses) then
    repair_lock(ws, ses, ttl)
    return nil
  end
  recover_staged(ws, ses)
  local id, due = pick(ws, ses)
  if not id then
    index(ws, ses, due)
    call('ZREM', 'outboxlive' .. tag, ws .. ':' .. ses)
    return nil
  end
  lock(ws, ses, token, ttl)
  return take(ws, ses, id, token)
end

local claims = {}

local function try_claim(ws, ses)
  local ok, got = pcall(claim, ws, ses)
  if ok then
    claims[#claims + 1] = got
    return
  end
  set_aside(ws, ses, token, got)
end

local function claim_from(ws, want)
  if is_paused(ws) then
    reindex(ws)
    return
  end
  local sessions = call('ZRANGEBYSCORE', key('outboxws', ws), '-inf', now, 'LIMIT', 0, want)
  held_counts = {} -- all that are taken count at once
  for i = 1, #sessions do
    try_claim(ws, sessions[i])
  end
  settle_counts(ws)
  reindex(ws, true)
end

local more = 0
local wss = call('ZRANGEBYSCORE', KEYS[1], '-inf', fine, 'LIMIT', 0, 16 + quotas)
for i = 1, #wss do
  local ws = wss[i]
  local want = math.min(per_ws, quota[ws] or per_ws, max - #claims)
  if want > 0 then
    local ok, err = pcall(claim_from, ws, want)
    if not ok then
      redis.log(redis.LOG_WARNING, 'outbox: workspace ' .. ws .. ' set aside: ' .. why(err))
      call('ZADD', KEYS[1], now + SET_ASIDE, ws)
    end
  elseif not quota[ws] or quota[ws] > 0 then
    more = 1
  end
end
local first = call('ZRANGEBYSCORE', KEYS[1], '-inf', fine, 'LIMIT', 0, 1 + quotas)
for i = 1, #first do
  if (quota[first[i]] or 1) > 0 then
    more = 1
  end
end
local later = call('ZRANGEBYSCORE', KEYS[1], string.format('(%.3f', fine), '(+inf', 'WITHSCORES', 'LIMIT', 0, 1)
return {now, more, later[2] and delay_until(number(later[2])) or -1, claims}
