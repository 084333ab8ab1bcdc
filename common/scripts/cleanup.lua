#!lua flags=allow-oom
-- Deletes what a workspace's sessions held when the operation began. KEYS[1] the workspace's sessions. Claims are held back
-- meanwhile. Deliveries in flight lose entry and lock; what comes of them then changes nothing. An entry that was accepted
-- since (another cleanup has ended, and this one or its repeat has not) stays, and so does its lock.
-- Does not count how much was done but how many keys are gone.
-- include: walk
-- include: cleaning

if call('HEXISTS', key('outboxconf', ws), 'cleanup') == 1 then
  hold_back(key('outboxconf', ws))
end

local function session_keys(ses)
  return call('EXISTS', key('outboxq', ws, ses), key('outboxd', ws, ses), key('outboxlock', ws, ses),
              key('outboxowned', ws, ses))
end

local function is_meant(e)
  return not e or e.accepted <= at
end

-- Nothing that stays waits for what is gone. What is to go itself is not told so; should nobody ever go on, the claim that
-- is due then finds out.
local function fail_waiting(id)
  local waiting = call('SMEMBERS', key('outboxdep', ws, id))
  for i = 1, #waiting do
    local e = load(ws, waiting[i])
    if e and not is_meant(e) then
      fail_chain(ws, waiting[i], nil)
    elseif e and not is_locked(ws, encode(e.session)) then
      index(ws, encode(e.session), now)
    end
  end
end

-- Deletes an entry and all that is its own.
local function drop(ses, id, e)
  local ekey = key('outboxe', ws, id)
  local deps = e and e.deps or ''
  fail_waiting(id)
  local gone = call('DEL', ekey, key('outboxdep', ws, id), key('outboxawait', ws, id))
  for dep in deps:gmatch('%S+') do
    local back = key('outboxdep', ws, dep)
    if call('SREM', back, id) == 1 then
      gone = gone + 1 - call('EXISTS', back)
    end
  end
  if e and e.cmid ~= '' then
    local marker = key('outboxdedupe', ws, ses, encode(e.cmid))
    if call('GET', marker) == id then
      gone = gone + call('DEL', marker)
    end
  end
  if e then
    recount(ws, id, e, e.status, nil)
  end
  call('ZREM', 'outboxerr' .. tag, ws .. ':' .. id)
  call('LREM', key('outboxq', ws, ses), 1, id)
  call('LREM', key('outboxd', ws, ses), 0, id)
  call('SREM', key('outboxowned', ws, ses), id)
  return gone
end

-- What stands in staging only, too. True: nothing that stays is in flight there.
local staged_gone = 0
local function empty_staging(ses)
  local ids = call('LRANGE', key('outboxd', ws, ses), 0, -1)
  local is_empty = true
  for i = 1, #ids do
    local e = load(ws, ids[i])
    if is_meant(e) then
      staged_gone = staged_gone + drop(ses, ids[i], e)
    else
      is_empty = false
    end
  end
  return is_empty
end

local before = call('EXISTS', KEYS[1], key('outboxwsstat', ws))
local held = {}
local answer = walk_sessions(function(ses, id, e)
  held[ses] = held[ses] or session_keys(ses)
  if not is_meant(e) then
    return 0
  end
  return drop(ses, id, e), true
end, function(ses, _, is_complete)
  held[ses] = held[ses] or session_keys(ses)
  if is_complete and empty_staging(ses) then
    -- The lock is that of an entry that is gone.
    call('DEL', key('outboxlock', ws, ses))
    call('ZREM', 'outboxlive' .. tag, ws .. ':' .. ses)
    local _, due = pick(ws, ses)
    index(ws, ses, due)
  elseif not is_locked(ws, ses) then
    -- What held the others back may be gone, and nobody may ever go on: what is left is delivered then.
    local _, due = pick(ws, ses)
    index(ws, ses, due)
  end
  held[ses] = held[ses] - session_keys(ses)
end)
reindex(ws)
for _, gone in pairs(held) do
  answer[4] = answer[4] + gone
end
answer[4] = answer[4] + staged_gone + before - call('EXISTS', KEYS[1], key('outboxwsstat', ws))
return answer
