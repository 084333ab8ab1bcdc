#!lua flags=allow-oom
-- Deletes what a workspace's sessions held when the operation began. KEYS[1] the workspace's sessions. The workspace is
-- paused: nothing more is claimed. Deliveries in flight lose entry and lock; what comes of them then changes nothing.
-- Does not count how much was done but how many keys are gone.
-- include: walk

local function session_keys(ses)
  return call('EXISTS', key('outboxq', ws, ses), key('outboxd', ws, ses), key('outboxlock', ws, ses))
end

-- Nothing that stays waits for what is gone.
local function fail_waiting(id)
  local waiting = call('SMEMBERS', key('outboxdep', ws, id))
  for i = 1, #waiting do
    local e = load(ws, waiting[i])
    if e and e.accepted > at then
      fail_chain(ws, waiting[i], nil)
    end
  end
end

local before = call('EXISTS', KEYS[1], key('outboxwsstat', ws))
local held = {}
local answer = walk_sessions(function(ses, id, e)
  held[ses] = held[ses] or session_keys(ses)
  if e and e.accepted > at then
    return 0
  end
  fail_waiting(id)
  local gone = call('DEL', key('outboxe', ws, id), key('outboxdep', ws, id))
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
  return gone, true
end, function(ses, _, is_complete)
  held[ses] = held[ses] or session_keys(ses)
  if is_complete then
    -- The lock is that of an entry that is gone: nothing was claimed since.
    call('DEL', key('outboxd', ws, ses), key('outboxlock', ws, ses))
    call('ZREM', 'outboxlive' .. tag, ws .. ':' .. ses)
    local _, due = pick(ws, ses)
    index(ws, ses, due)
  end
  held[ses] = held[ses] - session_keys(ses)
end)
reindex(ws)
for _, gone in pairs(held) do
  answer[4] = answer[4] + gone
end
answer[4] = answer[4] + before - call('EXISTS', KEYS[1], key('outboxwsstat', ws))
return answer
