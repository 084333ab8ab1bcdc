#!lua flags=allow-oom
-- A look-up proved that the target has not got it: the send starts under the same claim. KEYS[1] the session's queue.
-- include: core
-- include: lock
local ws, ses, id, token, ttl, sends = ARGV[3], ARGV[4], ARGV[5], ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8])

if call('GET', key('outboxlock', ws, ses)) ~= token then
  return {now, 0, 0}
end
local staging = key('outboxd', ws, ses)
local is_staged = call('LPOS', staging, id)
local e = load(ws, id)
if call('EXISTS', staging) == 0 or (is_staged and (not e or e.status == 'parked')) then
  -- It ended or was parked during the look-up. The caller drops the claim: its lock must not outlive it.
  call('LREM', staging, 0, id)
  if e and e.status == 'parked' then
    parked_in_doubt(ws, id, e) -- parked behind an earlier run of this very call
  end
  unlock(ws, ses)
  return {now, 0, 0}
end
if not is_staged or not e then
  return {now, 0, 0}
end
if e.status == 'delivering' and e.sends == sends + 1 then
  lock(ws, ses, token, ttl)
  reindex(ws)
  return {now, 1, e.sends}
end
if e.sends ~= sends or (e.status ~= 'pending' and e.status ~= 'verifying') then
  return {now, 0, 0}
end
call('HSET', key('outboxe', ws, id), 'status', 'delivering', 'sends', sends + 1, 'lastAttemptAt', now,
     'firstClaimAt', e.first_claim or now)
recount(ws, id, e, e.status, 'delivering')
lock(ws, ses, token, ttl)
reindex(ws)
event(ws, id, e, 'delivering', 'attempt', sends + 1)
return {now, 1, sends + 1}
