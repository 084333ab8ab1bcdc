#!lua flags=allow-oom
-- Any outcome but confirmed: writes what the lifecycle decided, if the claim is still ours. KEYS[1] the session's queue.
-- include: core
-- include: lock
-- include: waiting
local ws, ses, id, token, ttl = ARGV[3], ARGV[4], ARGV[5], ARGV[6], tonumber(ARGV[7])
local sends, from, to = tonumber(ARGV[8]), ARGV[9], ARGV[10]
local attempts, verify_attempts, transient_fails = ARGV[11], ARGV[12], ARGV[13]
local delay, code, message, current, what, want = tonumber(ARGV[14]), ARGV[15], ARGV[16], ARGV[17], ARGV[18], ARGV[19] == '1'
local sweep, is_unsent = ARGV[20], ARGV[21] == '1'

local ekey = key('outboxe', ws, id)
local e = load(ws, id)
local applied = 0
local ours = call('GET', key('outboxlock', ws, ses)) == token and call('LREM', key('outboxd', ws, ses), 0, id) > 0
if ours and e and e.sends == sends and (e.status == from or e.status == 'parked') then
  local fields = {'HSET', ekey, 'attempts', attempts, 'verifyAttempts', verify_attempts, 'transientFails', transient_fails}
  local function add(name, value)
    fields[#fields + 1] = name
    fields[#fields + 1] = value
  end
  if code ~= '' then
    add('lastError', cjson.encode({code = code, message = message}))
  end
  if current ~= '' then
    add('conflictCurrent', current)
  end
  if from == 'delivering' then
    add('lastEndAt', now)
  end
  local next_at = delay >= 0 and now + delay or 0
  if e.status == 'parked' then
    -- Recorded, but it stays parked; unpark re-arms it to what the outcome made of it. Failed with the outcome unknown
    -- is not failed: that is asked again.
    local is_unknown = code == 'outcome_unknown' or code == 'unverifiable'
    add('priorStatus', to == 'error' and (is_unknown and 'verifying' or 'pending') or to)
  else
    add('status', to)
    add('nextAttemptAt', next_at)
    recount(ws, id, e, e.status, to)
  end
  if is_unsent and not e.prior then
    add('sends', e.sends - 1) -- no request was started: nothing of it need be looked up
  end
  if to == 'error' and sweep ~= '' and e.status ~= 'parked' then
    add('sweep', sweep)
    call('ZADD', 'outboxerr' .. tag, now, ws .. ':' .. id)
  end
  if to == 'delivering' then
    add('prior', '1')
    call('SADD', key('outboxowned', ws, ses), id)
  elseif e.prior then
    call('HDEL', ekey, 'prior')
    call('SREM', key('outboxowned', ws, ses), id)
  end
  call(unpack(fields))
  if what ~= '' and e.status ~= 'parked' then
    event(ws, id, e, what, 'code', code, 'nextAttemptAt', next_at > 0 and to ~= 'error' and next_at or '')
  end
  applied = 1
elseif ours and e then
  -- An earlier run of this very call took the same entry again: put it back in place, the answer is the same.
  call('RPUSH', key('outboxd', ws, ses), id)
end
if not e then
  late_answer(ws, id, '')
end
-- What is taken under this very token names the same send again once that was taken back: a late repeat of this call could
-- take it back, too. So the token ends here.
local claim, next_delay = next_or_unlock(ws, ses, token, ttl, want and not is_unsent)
return {now, applied, next_delay, claim}
