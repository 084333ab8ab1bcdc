#!lua flags=no-writes
-- Workspaces of a partition by name, a page. KEYS[1] the names. With `one`, that one only, whatever is stored of it;
-- with `prefix`, those only whose names begin so.
-- The oldest open entry of each is told where a bounded look finds it: among the oldest of the partition, or in a
-- workspace with few sessions.
-- include: core
local after, limit, one, prefix = ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6]
local OLDEST, SESSIONS, LOOKS = 200, 64, 500

local oldest = {}
local open = call('ZRANGE', 'outboxopen' .. tag, 0, OLDEST - 1, 'WITHSCORES')
for i = 1, #open, 2 do
  local ws = open[i]:match('^[^:]*')
  oldest[ws] = oldest[ws] or number(open[i + 1])
end

local looks = LOOKS
local function oldest_of(ws)
  local sessions = key('outboxws', ws)
  if oldest[ws] or #open < 2 * OLDEST or call('ZCARD', sessions) > SESSIONS then
    return oldest[ws]
  end
  local first
  for _, ses in ipairs(call('ZRANGE', sessions, 0, -1)) do
    for _, id in ipairs(call('LRANGE', key('outboxq', ws, ses), 0, 24)) do
      looks = looks - 1
      if looks < 0 then
        return nil
      end
      local v = fields_of(ws, id, 'status', 'acceptedAt')
      if is_open[v[1]] then
        first = math.min(first or math.huge, whole(v[2]))
        break
      end
    end
  end
  return first
end

local function describe(ws)
  local sessions = call('ZCARD', key('outboxws', ws))
  local settings = call('HMGET', key('outboxconf', ws), 'paused', 'target')
  if one ~= '' and sessions == 0 and not (settings[1] or settings[2]) and
     call('EXISTS', key('outboxconf', ws), key('outboxended', ws)) == 0 then
    return nil
  end
  return {ws, settings[1] == '1' and 1 or 0, sessions, oldest_of(ws) or 0, settings[2] or '',
          call('HGETALL', key('outboxwsstat', ws))}
end

local rows = {}
local names = {one}
if one == '' then
  -- No name holds a byte as high as the one behind the prefix.
  local first = after < prefix and '[' .. prefix or after == '' and '-' or '(' .. after
  local last = prefix == '' and '+' or '(' .. prefix .. '\127'
  names = call('ZRANGEBYLEX', KEYS[1], first, last, 'LIMIT', 0, limit)
end
for i = 1, #names do
  local ok, row = pcall(describe, names[i])
  rows[#rows + 1] = ok and row or not ok and {names[i], 0, 0, 0, '', {}} or nil -- what is broken hides no other
end
return {now, rows}
