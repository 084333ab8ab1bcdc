#!lua flags=allow-oom
-- Takes a session back from a process that died: only if its lock still holds that token, or is gone.
-- KEYS[1] the session's queue. Other sessions are untouched.
-- include: core
-- include: lock
local ws, ses, token = ARGV[3], ARGV[4], ARGV[5]

local owner = holder(ws, ses)
if owner and owner ~= token then
  return 0
end
local was_locked = owner or call('ZSCORE', 'outboxlive' .. tag, ws .. ':' .. ses)
local staged = recover_staged(ws, ses)
unlock(ws, ses)
return (was_locked or staged > 0) and 1 or 0
