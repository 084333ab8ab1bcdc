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
  if is_locked(ws, ses) then
    local deadline = call('ZSCORE', 'outboxlive' .. tag, ws .. ':' .. ses)
    index(ws, ses, deadline and number(deadline) or now + math.max(call('PTTL', key('outboxlock', ws, ses)), 1000))
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
local more = 0
local wss = call('ZRANGEBYSCORE', KEYS[1], '-inf', fine, 'LIMIT', 0, 16 + quotas)
for i = 1, #wss do
  local ws = wss[i]
  local want = math.min(per_ws, quota[ws] or per_ws, max - #claims)
  if want > 0 then
    local sessions = call('ZRANGEBYSCORE', key('outboxws', ws), '-inf', now, 'LIMIT', 0, want)
    for j = 1, #sessions do
      claims[#claims + 1] = claim(ws, sessions[j])
    end
    reindex(ws, true)
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
