#!lua flags=allow-oom
-- Re-arms what park has parked, due now: back to pending, or to verifying where an outcome is unknown (contract §3).
-- KEYS[1] the workspace's sessions. What is still in flight goes back to exactly what it was: its outcome then counts.
-- What waits for the answer of a request whose entry was echoed goes on waiting for it (lib/waiting.lua).
-- include: walk
-- include: parked

local function status_again(ses, id, e)
  if not call('LPOS', key('outboxd', ws, ses), id) then
    parked_in_doubt(ws, id, e)
  end
  local prior = call('HGET', key('outboxe', ws, id), 'priorStatus')
  if is_open[prior] then
    return prior
  end
  return e.sends > 0 and not has(e.flags, 'i') and 'verifying' or 'pending'
end

return walk_sessions(function(ses, id, e)
  if not e then
    return 0
  elseif e.status ~= 'parked' then
    return did_before(id) and is_open[e.status] and 1 or 0
  end
  local ekey = key('outboxe', ws, id)
  local to = status_again(ses, id, e)
  local _, till = await_without(ekey, '')
  till = string.format('%.0f', till)
  call('HSET', ekey, 'status', to, 'nextAttemptAt', till, 'operation', ARGV[4])
  if to == 'verifying' then
    call('HSET', ekey, 'verifyAttempts', 0)
  end
  call('HDEL', ekey, 'priorStatus', 'parkedReason')
  recount(ws, id, e, 'parked', to)
  event(ws, id, e, 'rearmed', 'reason', 'unpark')
  return 1
end, due_again)
