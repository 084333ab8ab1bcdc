-- For the accept scripts, in place: a session of ws has begun and is due. So is the workspace, unless it is paused, or a cleanup
-- holds it back.
local due = call('ZSCORE', 'outboxdue' .. tag, ws)
if not due then
  call('ZADD', 'outboxnames' .. tag, 0, ws)
end
if not due or due == 'inf' or tonumber(due) > now then
  local settings = call('HMGET', key('outboxconf', ws), 'paused', 'cleanup')
  local at = math.max(tonumber(settings[2] or '0') or 0, now)
  if settings[1] == '1' then
    at = '+inf'
  end
  if not due or due == 'inf' or at == '+inf' or tonumber(due) > at then
    call('ZADD', 'outboxdue' .. tag, at, ws)
  end
end
