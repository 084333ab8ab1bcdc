#!lua flags=allow-oom
-- Sweeps by hand of a workspace's failed entries. KEYS[1] the workspace's sessions. The argument says which step:
--   unverifiable   re-arms them to verifying, with a fresh window
--   parked-errors  has the workers look at those that their ledgers may settle, now
--   still-failed   counts those of them that are still failed
-- include: walk

local function code_of(ekey)
  local ok, err = pcall(cjson.decode, call('HGET', ekey, 'lastError') or '')
  return ok and type(err) == 'table' and err.code
end

local steps = {}

steps['unverifiable'] = function(_, id, e)
  local ekey = key('outboxe', ws, id)
  if e.status ~= 'error' then
    return did_before(id) and 1 or 0
  elseif code_of(ekey) ~= 'unverifiable' then
    return 0
  end
  call('HSET', ekey, 'status', 'verifying', 'verifyAttempts', 0, 'nextAttemptAt', 0, 'operation', ARGV[4])
  call('HDEL', ekey, 'lastError', 'sweep')
  recount(ws, id, e, 'error', 'verifying')
  event(ws, id, e, 'rearmed', 'reason', 'sweep')
  return 1
end

steps['parked-errors'] = function(_, id, e)
  local ekey = key('outboxe', ws, id)
  if e.status ~= 'error' or call('HGET', ekey, 'sweep') ~= 'ledger' then
    return 0
  end
  call('HSET', ekey, 'operation', ARGV[4])
  call('ZADD', 'outboxerr' .. tag, at, ws .. ':' .. id)
  return 1
end

steps['still-failed'] = function(_, id, e)
  return e.status == 'error' and did_before(id) and 1 or 0
end

local step = steps[argument]
return walk_sessions(function(ses, id, e)
  return e and step(ses, id, e) or 0
end, argument == 'unverifiable' and due_again or function() end)
