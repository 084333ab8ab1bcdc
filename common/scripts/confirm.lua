#!lua flags=allow-oom
-- An echo: somebody saw that the target has the entry (contract §6). KEYS[1] the workspace's settings. By entry ID, or by
-- session and clientMessageID. Also while its request is in flight: that is given up, the lane goes on.
-- Answers {now, 1 if it is confirmed (now, or before), 1 if this call did it, session}.
-- include: core
-- include: ending
local ws, id, ses, cmid = ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local result, keep, wait_for_answer = ARGV[7], tonumber(ARGV[8]), tonumber(ARGV[9])

if id == '' then
  id = call('GET', key('outboxdedupe', ws, ses, cmid)) or ''
end
local what, which = trace(ws, id)
if what ~= 'there' then
  return {now, what == 'sent' and 1 or 0, 0, ''}
end
local e = load(ws, which)
local session = encode(e.session)
local is_staged = call('LPOS', key('outboxd', ws, session), which)
local await = is_staged and result == '' and wait_for_answer or nil
end_entry(ws, session, which, e, 'sent', keep, {via = 'echo', result = result ~= '' and result or nil}, await)
event(ws, which, e, 'sent', 'via', 'echo')
if is_staged then
  call('DEL', key('outboxlock', ws, session))
  call('ZREM', 'outboxlive' .. tag, ws .. ':' .. session)
end
rearm(ws, session)
return {now, 1, 1, session}
