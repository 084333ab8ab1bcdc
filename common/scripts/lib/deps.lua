-- What entries wait for (contract §6). `deps` of an entry's hash names entries that are there, apart by blanks; `fills` keeps
-- results (a line of JSON each) for the null members of its payload; outboxdep is the way back.
-- include: trace

local function write_deps(ekey, list)
  if list[1] then
    call('HSET', ekey, 'deps', table.concat(list, ' '))
  else
    call('HDEL', ekey, 'deps')
  end
end

local function give_result(ekey, line)
  if line and line ~= '' then
    local fills = call('HGET', ekey, 'fills')
    call('HSET', ekey, 'fills', fills and fills .. '\n' .. line or line)
  end
end

local function fail_with_chain(ws, id, e)
  call('HSET', key('outboxe', ws, id), 'status', 'error', 'nextAttemptAt', 0, 'lastError',
       cjson.encode({code = 'dependency_discarded', message = 'what it waited for was discarded'}))
  recount(ws, id, e, e.status, 'error')
  event(ws, id, e, 'error', 'code', 'dependency_discarded')
end

-- What waits for something that can't happen any more fails, and so does what waits for that. Sessions become due, so that a
-- claim finds out what may go now; `walked` is the one whose walk found it.
local function fail_chain(ws, id, walked)
  local e = load(ws, id)
  if not e or not (is_open[e.status] or e.status == 'parked') then
    return
  end
  fail_with_chain(ws, id, e)
  local ses = encode(e.session)
  if ses ~= walked and call('EXISTS', key('outboxlock', ws, ses)) == 0 and call('ZSCORE', key('outboxws', ws), ses) then
    call('ZADD', key('outboxws', ws), now, ses)
  end
  local waiting = call('SMEMBERS', key('outboxdep', ws, id))
  for i = 1, #waiting do
    fail_chain(ws, waiting[i], walked)
  end
end

-- A claim checks again what an entry waits for: 'free', 'waits' or 'failed'.
local function check_deps(ws, ses, id, text)
  local left, is_changed = {}, false
  for dep in text:gmatch('%S+') do
    local what, which = trace(ws, dep)
    if what == 'gone' then
      fail_chain(ws, id, ses)
      return 'failed'
    end
    is_changed = is_changed or which ~= dep
    if what == 'there' then
      left[#left + 1] = which
      call('SADD', key('outboxdep', ws, which), id)
    else
      give_result(key('outboxe', ws, id), which)
    end
  end
  if is_changed then
    write_deps(key('outboxe', ws, id), left)
  end
  return left[1] and 'waits' or 'free'
end

-- `awaits` of an entry: answers that may still fill its payload, each with the time until which it is waited for
-- ("id@ms id@ms"). Without `id` the latest of those times, 0 if there is none.
local function await_without(ekey, id)
  local left, latest = {}, 0
  for who, till in (call('HGET', ekey, 'awaits') or ''):gmatch('([^%s@]+)@(%d+)') do
    if who ~= id then
      left[#left + 1] = who .. '@' .. till
      latest = math.max(latest, whole(till))
    end
  end
  return table.concat(left, ' '), latest
end
