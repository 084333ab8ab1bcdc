#!lua flags=allow-oom
-- Confirmed: the entry ends, whoever's claim confirmed it; only the own lock is released. KEYS[1] the session's queue.
-- include: core
-- include: lock
-- include: ending
local ws, ses, id, token, ttl, keep = ARGV[3], ARGV[4], ARGV[5], ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8])
local via, result, want = ARGV[9], ARGV[10], ARGV[11] == '1'

local function finish()
  local e = load(ws, id)
  local applied = 0
  if e then
    end_entry(ws, ses, id, e, 'sent', keep, {via = via, result = result ~= '' and result or nil})
    event(ws, id, e, 'sent', 'via', via)
    applied = 1
  else
    late_answer(ws, id, result)
  end
  local claim, delay = next_or_unlock(ws, ses, token, ttl, want)
  if applied == 1 and not claim and delay < 0 and not is_locked(ws, ses) then
    rearm(ws, ses)
  end
  return {now, applied, delay, claim}
end

-- One delivery less for the entry that ends, one more for the session's next: neither is written. What has changed
-- before something failed is counted all the same.
held_counts = {}
local ok, answer = pcall(finish)
settle_counts(ws)
if not ok then
  error(answer)
end
return answer
