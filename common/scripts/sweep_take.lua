#!lua flags=allow-oom
-- `error` entries of a partition that a sweep may settle, those whose time has come. KEYS[1] the partition's index of them.
-- Their time moves on in the same call: nobody else looks at them meanwhile, and no later pass that overlaps this one.
-- include: core
local max, hold = tonumber(ARGV[3]), tonumber(ARGV[4])

local found = {}
local due = call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, max)
for i = 1, #due do
  local ws, id = due[i]:match('^([^:]*):(.*)$')
  local fields = ws and redis.pcall('HGETALL', key('outboxe', ws, id)) or {}
  if member(fields, 'status') == 'error' then
    call('ZADD', KEYS[1], now + hold, due[i])
    found[#found + 1] = {ws, encode(member(fields, 'session') or ''), id, 'verify', 'sweep', fields, conf(ws)}
  else
    call('ZREM', KEYS[1], due[i]) -- no such entry, or one that a sweep has nothing to do with
  end
end
return {now, #due, found}
