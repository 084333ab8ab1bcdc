#!lua flags=no-writes
-- An entry, all that waits for it directly or not, and what these wait for. KEYS[1] the entry. An ID that was replaced means
-- its replacement. Answers {now, 'found' | 'ended' and how | 'not_found' | 'too_many', the ID, rows {id, stamp, fields}}.
-- include: core
-- include: deps
-- include: related
local ws, limit = ARGV[3], tonumber(ARGV[5])

local what, id = trace(ws, ARGV[4])
if what ~= 'there' then
  local ok, t = pcall(cjson.decode, call('GET', key('outboxdone', ws, ARGV[4])) or '')
  if ok and type(t) == 'table' then
    return {now, 'ended', type(t.how) == 'string' and t.how or '', {}, type(t.retry) == 'string' and t.retry or ''}
  end
  return {now, 'not_found', '', {}, ''}
end

local rows, seen = {}, {}
local function add(other)
  if not seen[other] then
    local fields = all_of(ws, other)
    if fields[1] then
      seen[other] = true
      rows[#rows + 1] = {other, stamp(ws, other), fields}
    end
  end
end

add(id)
local root = fields_of(ws, id, 'root')[1] or id
local v = fields_of(ws, root, 'followed', 'session')
if v[1] then
  local lane = call('LRANGE', key('outboxq', ws, encode(v[2] or '')), 0, -1)
  for i = 1, #lane do
    if fields_of(ws, lane[i], 'root')[1] == root then
      add(lane[i])
    end
  end
end
local at = 1
while at <= #rows and #rows <= limit do -- all that waits
  local waiting = call('SMEMBERS', key('outboxdep', ws, rows[at][1]))
  table.sort(waiting)
  for i = 1, #waiting do
    add(waiting[i])
  end
  at = at + 1
end
local chain = #rows
for i = 1, chain do -- what that waits for, and what it follows
  local v = fields_of(ws, rows[i][1], 'deps', 'root')
  for dep in (v[1] or ''):gmatch('%S+') do
    add(dep)
  end
  if v[2] then
    add(v[2])
  end
end
if #rows > limit then
  return {now, 'too_many', id, {}, ''}
end
return {now, 'found', id, rows, ''}
