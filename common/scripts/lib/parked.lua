-- Parked entries that are in flight. priorStatus is what an entry was when it was parked; whoever ends its delivery
-- writes what became of it there, so that unpark re-arms it to that (contract §3).

-- The delivery of a parked entry ended, and nobody knows how.
local function parked_in_doubt(ws, id, e)
  local ekey = key('outboxe', ws, id)
  if not e.prior and call('HGET', ekey, 'priorStatus') == 'delivering' then
    call('HSET', ekey, 'priorStatus', has(e.flags, 'i') and 'pending' or 'verifying', 'verifyAttempts', 0, 'lastEndAt', now)
  end
end
