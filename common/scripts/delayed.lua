#!lua flags=no-writes
-- Entries that became delayed since the last look: accepted after `from` and up to `stuck` ago, and still waiting.
-- KEYS[1] the open entries by acceptance.
-- include: base
local stuck, from, max = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local to = now - stuck
if from < 0 or from > to then
  from = to -- the first look: what crossed earlier was announced to others
end
local function text(ms)
  return string.format('%.0f', ms)
end

local open = call('ZRANGEBYSCORE', KEYS[1], '(' .. text(from), text(to), 'WITHSCORES', 'LIMIT', 0, max)
local size = #open
if size == 2 * max then
  -- The rest in another call: this one ends before its last moment, which may go on behind the limit.
  to = tonumber(open[size])
  if tonumber(open[2]) < to then
    while tonumber(open[size]) == to do
      size = size - 2
    end
    to = to - 1
  end
end
local rows = {}
for i = 1, size, 2 do
  local ws, id = open[i]:match('^([^:]*):(.*)$')
  if ws then
    local v = fields_of(ws, id, 'status', 'session', 'clientMessageID', 'userID', 'kind')
    if v[1] == 'pending' or v[1] == 'verifying' then
      rows[#rows + 1] = {text(tonumber(open[i + 1]) + stuck), decode(ws), decode(id), v[2] or '', v[3] or '', v[4] or '',
                         v[5] or ''}
    end
  end
end
local behind = call('ZRANGEBYSCORE', KEYS[1], '(' .. text(to), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
return {now, text(to), behind[2] and text(tonumber(behind[2])) or '-1', rows}
