#!lua flags=allow-oom
-- Gives a claim back unsent. KEYS[1] the session's queue. `sends` of the claim; '' gives back whatever the token staged.
-- A claim that has gone on since (another entry, another send) is not given back: it may be on its way.
-- `hold`: the whole session rests for the delay, and its entries keep their times, so that none overtakes another. `reason`: the
-- event that says why; '' for none.
-- include: core
-- include: lock
-- include: waiting
local ws, ses, id, token, sends, delay = ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], tonumber(ARGV[8])
local hold, reason = ARGV[9] == '1', ARGV[10]

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
    local fields = {'HSET', key('outboxe', ws, ids[i])}
    if not hold then
      fields[3], fields[4] = 'nextAttemptAt', delay > 0 and now + delay or 0
    end
    if e.status == 'delivering' and not e.prior then
      local n = #fields
      fields[n + 1], fields[n + 2], fields[n + 3], fields[n + 4] = 'status', 'pending', 'sends', e.sends - 1
      recount(ws, ids[i], e, 'delivering', 'pending')
      if reason ~= '' then
        event(ws, ids[i], e, 'retrying', 'reason', reason, 'nextAttemptAt', now + delay)
      end
    end
    if e.status ~= 'parked' then
      if fields[3] then
        call(unpack(fields))
      end
    elseif not e.prior and fields_of(ws, ids[i], 'priorStatus')[1] == 'delivering' then
      call('HSET', key('outboxe', ws, ids[i]), 'priorStatus', 'pending', 'sends', e.sends - 1)
    end
  end
end
call('DEL', key('outboxd', ws, ses))
unlock(ws, ses, hold and now + delay)
return 1
