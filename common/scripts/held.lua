#!lua flags=no-writes
-- Locked sessions of a partition whose token starts with a prefix, and those whose lock is past its deadline or gone.
-- KEYS[1] the partition's index of locks. Costs what is locked, not what exists.
-- include: core
local prefix = ARGV[3]
local live = call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
local found = {}
local function staged_first(ws, ses)
  local id = redis.pcall('LINDEX', key('outboxd', ws, ses), 0) -- no list, no ID: one broken session hides no other
  return type(id) == 'string' and id or ''
end
for i = 1, #live, 2 do
  local ws, ses = live[i]:match('^([^:]*):([^:]*)$')
  if ws then
    local token = holder(ws, ses)
    if not token or number(live[i + 1]) <= now or token:sub(1, #prefix) == prefix then
      found[#found + 1] = {ws, ses, token or '', number(live[i + 1]), staged_first(ws, ses)}
    end
  end
end
return {now, found}
