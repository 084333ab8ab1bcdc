#!lua flags=allow-oom
-- Carries a resolver's plan out, if nothing that it was made from has changed. KEYS[1] the entry that the operation is about.
-- ARGV[4] how long an ended one is remembered, [5] the plan (msgpack), see store_operate.c.
-- Answers {'done' | 'changed', now, fields of the entry that the answer names}.
-- include: core
-- include: deps
-- include: ending
-- include: related
local ws, keep, plan = ARGV[3], tonumber(ARGV[4]), cmsgpack.unpack(ARGV[5])
local made = plan.create
local touched = {}

local function answer()
  return {'done', now, all_of(ws, plan.subject)}
end

if made and (call('EXISTS', key('outboxe', ws, made.id)) == 1 or call('EXISTS', key('outboxdone', ws, made.id)) == 1) then
  return answer() -- an earlier run of this very call
end
for i = 1, #plan.expect do
  if stamp(ws, plan.expect[i][1]) ~= plan.expect[i][2] then
    return {'changed', now, {}}
  end
end

local function touch(session)
  touched[encode(session)] = true
end

local function has_member(list, item)
  for i = 1, #list do
    if list[i] == item then
      return true
    end
  end
  return false
end

-- Both ways.
local function set_deps(id, list)
  local ekey = key('outboxe', ws, id)
  for dep in (call('HGET', ekey, 'deps') or ''):gmatch('%S+') do
    if not has_member(list, dep) then
      call('SREM', key('outboxdep', ws, dep), id)
    end
  end
  for i = 1, #list do
    call('SADD', key('outboxdep', ws, list[i]), id)
  end
  write_deps(ekey, list)
end

-- Before the first one of its rank or a higher one, behind all that it waits for.
local function enter_queue(ses, id, rank, list)
  local queue = key('outboxq', ws, ses)
  local ids = call('LRANGE', queue, 0, -1)
  local before
  for i = #ids, 1, -1 do
    if rank_of(ws, ids[i]) < rank or has_member(list, ids[i]) then
      break
    end
    before = ids[i]
  end
  if before then
    call('LINSERT', queue, 'BEFORE', before, id)
  else
    call('RPUSH', queue, id)
  end
end

local function create()
  local e = {session = made.session, cmid = made.cmid, user = made.user, kind = made.kind, accepted = now}
  local ses = encode(made.session)
  local fields = {'HSET', key('outboxe', ws, made.id), 'body', made.body, 'digest', made.digest, 'status', 'pending',
                  'session', made.session, 'kind', made.kind, 'acceptedAt', now, 'flags', made.flags}
  for _, name in ipairs({'cmid', 'user', 'root', 'part', 'ifMatch', 'fills'}) do
    if made[name] ~= '' then
      fields[#fields + 1] = ({cmid = 'clientMessageID', user = 'userID'})[name] or name
      fields[#fields + 1] = made[name]
    end
  end
  -- Also where it was accepted in this very millisecond: behind what waits for it, neither would ever go.
  local is_ranked = made.rank > 0
  local rank = math.min(made.rank, now)
  if is_ranked then
    fields[#fields + 1], fields[#fields + 2] = 'rank', string.format('%.0f', rank)
  end
  call(unpack(fields))
  -- A root knows that it is followed: related.lua then looks for all that does, also where a follow-up between was echoed.
  if made.replaces ~= '' and call('HGET', key('outboxe', ws, made.replaces), 'followed') then
    call('HSET', key('outboxe', ws, made.id), 'followed', 1)
  end
  if made.root ~= '' and call('EXISTS', key('outboxe', ws, made.root)) == 1 then
    call('HSET', key('outboxe', ws, made.root), 'followed', 1)
  end
  if is_ranked then
    enter_queue(ses, made.id, rank, made.deps)
  else
    call('RPUSH', key('outboxq', ws, ses), made.id)
  end
  recount(ws, made.id, e, nil, 'pending')
  set_deps(made.id, made.deps)
  touch(made.session)
  if made.replaces ~= '' then
    event(ws, made.id, e, 'rearmed', 'reason', made.reason, 'replaces', made.replaces)
  else
    event(ws, made.id, e, 'accepted', 'follows', made.root)
  end
end

-- As a person's retry does it: from the start, in its place. Rows of a ledger that are spent stay so.
local function rearm_entry(id, e)
  local ekey = key('outboxe', ws, id)
  local v = call('HMGET', ekey, 'attemptBase', 'attempts', 'lastError')
  local ok, err = pcall(cjson.decode, v[3] or '')
  local code = ok and type(err) == 'table' and err.code
  local is_next_unused = e.sends == 0 or code == 'attempts_exhausted' or code == 'unreachable'
  call('HSET', ekey, 'status', 'pending', 'attempts', 0, 'verifyAttempts', 0, 'transientFails', 0, 'nextAttemptAt', 0,
       'retry', plan.operation, 'attemptBase', string.format('%.0f', whole(v[1]) + whole(v[2]) + (is_next_unused and 0 or 1)))
  call('HDEL', ekey, 'lastError', 'conflictCurrent', 'firstClaimAt', 'sweep')
  recount(ws, id, e, e.status, 'pending')
  event(ws, id, e, 'rearmed', 'reason', plan.reason)
end

local function finish_entry(id, e, how)
  local ses = encode(e.session)
  if how == 'replaced' then
    end_entry(ws, ses, id, e, how, keep, {replacedBy = made.id})
    if id == made.replaces and e.cmid ~= '' then
      call('SET', key('outboxdedupe', ws, ses, encode(e.cmid)), made.id)
    end
  else
    end_entry(ws, ses, id, e, how, keep)
    event(ws, id, e, 'removed', 'how', how)
  end
  call('DEL', key('outboxdep', ws, id))
end

if made then
  create()
end
for i = 1, #plan.changes do
  local change = plan.changes[i]
  local e = load(ws, change.id)
  local ekey = key('outboxe', ws, change.id)
  if e and e.is_foreign then
    -- Nothing can be written there, and nothing is known of it: it stays, or it goes.
    if change.fate ~= 'stays' and change.fate ~= 'rearmed' and change.fate ~= 'fails' then
      call('DEL', ekey)
      finish_entry(change.id, e, change.fate)
    end
  elseif e then
    touch(e.session)
    if change.deps then
      set_deps(change.id, change.deps)
    end
    if change.root then
      call('HSET', ekey, 'root', change.root)
    end
    give_result(ekey, change.fill)
    if change.body then
      call('HSET', ekey, 'body', change.body)
      call('HDEL', ekey, 'fills')
      call('HINCRBY', ekey, 'edits', 1)
      event(ws, change.id, e, 'edited')
    end
    if change.fate == 'rearmed' then
      rearm_entry(change.id, e)
    elseif change.fate == 'fails' then
      fail_with_chain(ws, change.id, e)
    elseif change.fate ~= 'stays' then
      set_deps(change.id, {})
      finish_entry(change.id, e, change.fate)
    end
  end
end
for ses in pairs(touched) do
  rearm(ws, ses)
end
return answer()
