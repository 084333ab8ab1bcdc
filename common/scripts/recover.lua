#!lua flags=allow-oom
-- Takes sessions back from processes that died: each only if its lock still holds that token, or is gone. KEYS[1] the
-- partition's index of locks. ARGV[3] a line for each: workspace, session, token, encoded, with a blank behind each.
-- Answers a 1 for each where something was taken back, a 0 for the others. Other sessions are untouched.
-- include: core
-- include: lock

local function recover(ws, ses, token)
  local owner = holder(ws, ses)
  if owner and owner ~= token then
    return '0'
  end
  local was_locked = owner or call('ZSCORE', 'outboxlive' .. tag, ws .. ':' .. ses)
  local staged = recover_staged(ws, ses)
  unlock(ws, ses)
  return (was_locked or staged > 0) and '1' or '0'
end

local flags = {}
for ws, ses, encoded in ARGV[3]:gmatch('(%S+) (%S+) (%S*) ') do
  local token = decode(encoded)
  local ok, got = pcall(recover, ws, ses, token)
  if not ok then
    pcall(set_aside, ws, ses, token, got)
  end
  flags[#flags + 1] = ok and got or '0'
end
return table.concat(flags)
