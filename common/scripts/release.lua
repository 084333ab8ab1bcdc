#!lua flags=allow-oom
-- Gives a claim back unsent. KEYS[1] the session's queue. `sends` of the claim; '' gives back whatever the token staged.
-- A claim that has gone on since (another entry, another send) is not given back: it may be on its way.
-- include: core
-- include: lock
-- include: waiting
local ws, ses, id, token, sends, delay = ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], tonumber(ARGV[8])

if id ~= '' and call('EXISTS', key('outboxe', ws, id)) == 0 then
  late_answer(ws, id, '') -- an echo was faster, and its dependents wait for an answer that will not come
end
if call('GET', key('outboxlock', ws, ses)) ~= token then
  return 0
end
local ids = call('LRANGE', key('outboxd', ws, ses), 0, -1)
for i = 1, #ids do
  local e = load(ws, ids[i])
  if id ~= '' and (ids[i] ~= id or (e and tonumber(sends) ~= e.sends)) then
    return 0
  end
end
for i = 1, #ids do
  local e = load(ws, ids[i])
  if e then
    local fields = {'HSET', key('outboxe', ws, ids[i]), 'nextAttemptAt', delay > 0 and now + delay or 0}
    if e.status == 'delivering' and not e.prior then
      fields[5], fields[6], fields[7], fields[8] = 'status', 'pending', 'sends', e.sends - 1
      recount(ws, ids[i], e, 'delivering', 'pending')
    end
    if e.status ~= 'parked' then
      call(unpack(fields))
    elseif not e.prior and call('HGET', key('outboxe', ws, ids[i]), 'priorStatus') == 'delivering' then
      call('HSET', key('outboxe', ws, ids[i]), 'priorStatus', 'pending', 'sends', e.sends - 1)
    end
  end
end
call('DEL', key('outboxd', ws, ses))
unlock(ws, ses)
return 1
