#!lua
-- Some messages of one partition in, in order, each once: what accept.lua does with one of them, and what they share (markers,
-- counts, indexes) written once for all. KEYS[1] the first one's queue; ARGV[3] session_cap, ARGV[4] all bodies in one (the
-- server reads a long argument at once, but 16 KB of short ones between two fsyncs), then of each message: ws, ses, id, cmid,
-- digest, kind, flags, user, its body's length, the number of those that it waits for, and those. What keys hold is encoded.
-- Returns of each: 1 (accepted under its ID, pending), or {what, ID, status, acceptedAt}; `now` stands before them.
-- 'failed': what the store holds where it would go can't be worked with; nothing behind it in its session is accepted either.
-- include: base
-- include: trace
local cap, bodies = tonumber(ARGV[3]), ARGV[4]
local places, markers, marker_of, body_of = {}, {}, {}, {}
local at, body_at = 5, 1
while ARGV[at] do
  places[#places + 1], body_of[at] = at, body_at
  body_at = body_at + tonumber(ARGV[at + 8])
  if ARGV[at + 3] ~= '' then
    local marker = key('outboxdedupe', ARGV[at], ARGV[at + 1], ARGV[at + 3])
    markers[#markers + 1], marker_of[at] = marker, marker
  end
  at = at + 10 + tonumber(ARGV[at + 9])
end
local firsts, marks = {}, {'MSET'}
if markers[1] then
  local found = call('MGET', unpack(markers))
  for i = 1, #markers do
    firsts[markers[i]] = found[i]
  end
end

local lanes, lane_of, homes, home_of = {}, {}, {}, {}
local events, open, errors = {}, {'ZADD', 'outboxopen' .. tag}, 0

local function lane_at(ws, ses)
  local queue = key('outboxq', ws, ses)
  local lane = lane_of[queue]
  if not lane then
    lane = {ws = ws, ses = ses, length = call('LLEN', queue), push = {'RPUSH', queue}}
    lanes[#lanes + 1], lane_of[queue] = lane, lane
    if not home_of[ws] then
      home_of[ws] = {ws = ws, lanes = {}, names = {}, pending = 0, error = 0}
      homes[#homes + 1] = home_of[ws]
    end
  end
  return lane
end

local function accept(from)
  local ws, ses, id, cmid, digest, kind, flags, user, size = unpack(ARGV, from, from + 8)
  cmid = decode(cmid)
  local body = bodies:sub(body_of[from], body_of[from] + tonumber(size) - 1)
  local marker = marker_of[from]
  local first = marker and firsts[marker]
  local lane = lane_at(ws, ses)
  -- include: accept_known
  if lane.length >= cap then
    return {'full', id, '', 0, now}
  end
  local named_from, named_to = from + 10, from + 9 + tonumber(ARGV[from + 9])
  -- include: accept_waits
  -- include: accept_write
  local home = home_of[ws]
  local push = lane.push
  if not push[3] then
    lane.may_begin = not waits[1] and not gone
    home.lanes[#home.lanes + 1], home.names[#home.names + 1] = lane, ses
  end
  lane.length, push[#push + 1] = lane.length + 1, id
  if marker then
    firsts[marker], marks[#marks + 1], marks[#marks + 2] = id, marker, id
  end
  events[#events + 1] = event
  if gone then
    local failed = {unpack(event)}
    failed[8], failed[#failed + 1], failed[#failed + 2] = 'error', 'code', 'dependency_discarded'
    events[#events + 1], errors, home.error = failed, errors + 1, home.error + 1
    return {'accepted', id, 'error', now, now}
  end
  home.pending = home.pending + 1
  open[#open + 1], open[#open + 2] = now, ws .. ':' .. id
  return 1
end

local answers, is_broken = {now}, {}
for i = 1, #places do
  local from = places[i]
  local name = ARGV[from] .. ':' .. ARGV[from + 1]
  local ok, answer
  if not is_broken[name] then
    ok, answer = pcall(accept, from)
    is_broken[name] = not ok
  end
  answers[i + 1] = ok and answer or {'failed', ARGV[from + 2], '', 0, now}
end

for i = 1, #lanes do
  if lanes[i].push[3] then
    call(unpack(lanes[i].push))
  end
end
if marks[2] then
  call(unpack(marks))
end
-- A counter that can't be counted with stops nothing.
local function count(hash, status, by)
  if by > 0 then
    redis.pcall('HINCRBY', hash, status, by)
  end
end
count('outboxstat' .. tag, 'pending', (#open - 2) / 2)
count('outboxstat' .. tag, 'error', errors)
if open[3] then
  call(unpack(open))
end

for i = 1, #homes do
  local ws, sessions = homes[i].ws, key('outboxws', homes[i].ws)
  count(key('outboxwsstat', ws), 'pending', homes[i].pending)
  count(key('outboxwsstat', ws), 'error', homes[i].error)
  local stand = homes[i].names[1] and call('ZMSCORE', sessions, unpack(homes[i].names)) or {}
  local begin = {'ZADD', sessions}
  for n = 1, #stand do
    if not stand[n] and homes[i].lanes[n].may_begin then
      begin[#begin + 1], begin[#begin + 2] = now, homes[i].names[n]
    end
  end
  if begin[3] then
    call(unpack(begin))
    -- include: accept_due
  end
  for n = 1, #stand do
    local ses, stands = homes[i].names[n], stand[n]
    if stands or not homes[i].lanes[n].may_begin then
      -- include: accept_rearm
    end
  end
end
for i = 1, #events do
  call(unpack(events[i]))
end
return answers
