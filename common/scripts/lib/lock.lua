-- Locks, staging, and taking a session's next entry.
-- include: parked

local SET_ASIDE = 60000 -- what is broken is looked at again after that

local function why(err)
  return type(err) == 'table' and tostring(err.err) or tostring(err)
end

local function lock(ws, ses, token, ttl)
  call('SET', key('outboxlock', ws, ses), token, 'PX', ttl)
  call('ZADD', 'outboxlive' .. tag, now + ttl, ws .. ':' .. ses)
  index(ws, ses, now + ttl)
end

-- A locked session that stands as due: its score, its place in outboxlive or its lock's end was lost.
local function repair_lock(ws, ses, ttl)
  local lock_key = key('outboxlock', ws, ses)
  local deadline = call('ZSCORE', 'outboxlive' .. tag, ws .. ':' .. ses)
  deadline = deadline and number(deadline)
  if not (deadline and deadline > now and deadline < math.huge) then
    if call('PTTL', lock_key) < 0 then
      call('PEXPIRE', lock_key, ttl)
    end
    deadline = now + math.max(call('PTTL', lock_key), 1)
    call('ZADD', 'outboxlive' .. tag, deadline, ws .. ':' .. ses)
  end
  index(ws, ses, deadline)
end

-- `not_before`: the session rests until then, whatever it holds.
local function unlock(ws, ses, not_before)
  local _, due = pick(ws, ses)
  if due and not_before and due < not_before then
    due = not_before
  end
  index(ws, ses, due)
  reindex(ws)
  call('DEL', key('outboxlock', ws, ses))
  call('ZREM', 'outboxlive' .. tag, ws .. ':' .. ses)
  return due
end

local function delay_until(due)
  if not due or due == math.huge then
    return -1
  end
  return math.max(due - now, 0)
end

-- A session that can't be worked with: whatever it holds, the others go on. `token` is who tried.
local function set_aside(ws, ses, token, err)
  redis.log(redis.LOG_WARNING, 'outbox: session ' .. ws .. ':' .. ses .. ' set aside: ' .. why(err))
  if not holder(ws, ses) or holder(ws, ses) == token then
    call('DEL', key('outboxlock', ws, ses))
    call('ZREM', 'outboxlive' .. tag, ws .. ':' .. ses)
  end
  index(ws, ses, now + SET_ASIDE)
end

-- A claim as the worker reads it. `fields`: all that the entry holds, if it was just read.
local function claim_reply(ws, ses, id, mode, token, fields)
  return {ws, ses, id, mode, token, fields or call('HGETALL', key('outboxe', ws, id)), conf(ws)}
end

-- What somebody was sending when he died: its outcome is unknown (contract §8).
local function outcome_unknown(ws, id, e)
  local idempotent = has(e.flags, 'i')
  local to = idempotent and 'pending' or 'verifying'
  call('HSET', key('outboxe', ws, id), 'status', to, 'verifyAttempts', 0, 'nextAttemptAt', 0, 'lastEndAt', now)
  recount(ws, id, e, e.status, to)
  event(ws, id, e, idempotent and 'retrying' or 'verifying', 'reason', 'recovered')
  e.status = to
end

-- Stages an entry. A re-send of a kind that can be looked up is looked up first (contract §3, Verify).
local function take(ws, ses, id, token)
  -- Read once and whole, for the answer: to ask for a dozen fields by name first costs four times as much.
  local fields = call('HGETALL', key('outboxe', ws, id))
  local v, place = {}, {}
  for i = 1, #fields, 2 do
    v[fields[i]], place[fields[i]] = fields[i + 1], i
  end
  local e = small_fields(v.status, v.session, v.clientMessageID, v.userID, v.kind, v.flags, v.sends, v.acceptedAt, v.digest,
                         v.prior, v.firstClaimAt, v.retry)
  call('RPUSH', key('outboxd', ws, ses), id)
  if e.status == 'delivering' and not e.prior then
    outcome_unknown(ws, id, e) -- its place in staging was lost
  end
  if e.status == 'verifying' or (e.status == 'pending' and e.sends > 0 and has(e.flags, 'v')) then
    return claim_reply(ws, ses, id, 'verify', token)
  end
  if e.status == 'delivering' then
    return claim_reply(ws, ses, id, 'poll', token)
  end
  local at = string.format('%.0f', now)
  local args = {'HSET', key('outboxe', ws, id), 'status', 'delivering', 'sends', string.format('%.0f', e.sends + 1),
                'lastAttemptAt', at}
  if not e.first_claim then
    args[9], args[10] = 'firstClaimAt', at
  end
  call(unpack(args))
  for i = 3, #args, 2 do -- the answer is as if it were read now
    local p = place[args[i]] or #fields + 1
    fields[p], fields[p + 1] = args[i], args[i + 1]
  end
  recount(ws, id, e, e.status, 'delivering')
  event(ws, id, e, 'delivering', 'attempt', e.sends + 1)
  return claim_reply(ws, ses, id, 'send', token, fields)
end

-- What an earlier run of this very call took: the answer is the same again.
local function taken_before(ws, ses, id, e, token)
  local mode = 'verify'
  if e.status == 'delivering' then
    mode = e.prior and 'poll' or 'send'
  end
  return claim_reply(ws, ses, id, mode, token)
end

-- Under our own lock: the session's next entry, or the lock is released.
-- Returns the claim or false, and the session's next due time as a delay.
local function next_or_unlock(ws, ses, token, ttl, want)
  if call('GET', key('outboxlock', ws, ses)) ~= token then
    return false, -1
  end
  local staged = call('LINDEX', key('outboxd', ws, ses), 0)
  while staged do
    local e = load(ws, staged)
    if e and is_open[e.status] then
      lock(ws, ses, token, ttl) -- the caller counts from before this call, not from before the first one
      reindex(ws)
      return taken_before(ws, ses, staged, e, token), -1
    end
    call('LPOP', key('outboxd', ws, ses)) -- gone, or parked since: not to be sent
    if e and e.status == 'parked' then
      parked_in_doubt(ws, staged, e)
    end
    staged = call('LINDEX', key('outboxd', ws, ses), 0)
  end
  if want and not is_paused(ws) then
    local id = pick(ws, ses)
    if id then
      lock(ws, ses, token, ttl)
      local claim = take(ws, ses, id, token)
      reindex(ws)
      return claim, -1
    end
  end
  return false, delay_until(unlock(ws, ses))
end

-- An entry that is in no queue has lost its place there: it goes before the first one that stands behind it.
local function queue_again(ws, ses, id)
  local queue = key('outboxq', ws, ses)
  if call('LPOS', queue, id) then
    return false
  end
  local ids = call('LRANGE', queue, 0, -1)
  local rank = rank_of(ws, id)
  for i = 1, #ids do
    local other = rank_of(ws, ids[i])
    if other > rank or (other == rank and ids[i] > id) then
      call('LINSERT', queue, 'BEFORE', ids[i], id)
      return true
    end
  end
  call('RPUSH', queue, id)
  return true
end

-- What a process that died had staged.
local function recover_staged(ws, ses)
  local staging = key('outboxd', ws, ses)
  local ids = call('LRANGE', staging, 0, -1)
  for i = 1, #ids do
    local id = ids[i]
    local e = load(ws, id)
    if e then
      queue_again(ws, ses, id)
    end
    if e and e.status == 'delivering' and not e.prior then
      outcome_unknown(ws, id, e)
    elseif e and e.status == 'parked' then
      parked_in_doubt(ws, id, e) -- it stays parked (contract §3, §8)
    elseif e then
      call('HSET', key('outboxe', ws, id), 'nextAttemptAt', 0)
    end
  end
  if ids[1] then
    call('DEL', staging)
  end
  return #ids
end
