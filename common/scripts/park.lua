#!lua flags=allow-oom
-- Parks what was accepted before the operation began. KEYS[1] the workspace's sessions. The argument is the reason. What
-- is in flight stays staged and locked: a confirmation completes it, any other outcome leaves it parked.
-- include: walk

return walk_sessions(function(_, id, e)
  if not e or e.accepted > at then
    return 0
  elseif e.status == 'parked' then
    return did_before(id) and 1 or 0
  elseif not is_open[e.status] then
    return 0
  end
  local fields = {'HSET', key('outboxe', ws, id), 'status', 'parked', 'priorStatus', e.status, 'operation', ARGV[4]}
  if argument ~= '' then
    fields[9], fields[10] = 'parkedReason', argument
  end
  call(unpack(fields))
  recount(ws, id, e, e.status, 'parked')
  event(ws, id, e, 'parked', 'reason', argument)
  return 1
end, function(ses, changed)
  if changed > 0 then
    rearm(ws, ses) -- whether or not anybody goes on: what it waited for may be parked now
  end
end)
