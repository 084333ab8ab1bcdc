#!lua
-- A workspace's own target, as JSON; '' takes it away. KEYS[1] the workspace's settings. Answers whether it had one.
-- include: core
local ws, target = ARGV[3], ARGV[4]

local had = call('HEXISTS', KEYS[1], 'target')
if target ~= '' then
  call('HSET', KEYS[1], 'target', target)
else
  call('HDEL', KEYS[1], 'target')
end
reindex(ws)
return had
