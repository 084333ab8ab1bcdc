-- What happens to those that wait for an entry when it is confirmed.
-- include: core

local function has_null(ekey)
  local ok, body = pcall(cmsgpack.unpack, call('HGET', ekey, 'body') or '')
  return ok and type(body) == 'table' and type(body.payload) == 'string' and body.payload:find('null', 1, true) ~= nil
end

-- `await`: the entry's request is still in flight, and its answer may tell what members that are null shall be: who has such
-- waits that long for it (contract §6, Echo). nil: nobody does.
local function release_dependents(ws, id, result, await)
  local back = key('outboxdep', ws, id)
  local waiting = call('SMEMBERS', back)
  local free = {} -- sessions: a look at one would take from entries that are still to come what this loop goes by
  for i = 1, #waiting do
    local ekey = key('outboxe', ws, waiting[i])
    local v = call('HMGET', ekey, 'deps', 'session')
    if v[1] then
      local left = {}
      for dep in v[1]:gmatch('%S+') do
        if dep ~= id then
          left[#left + 1] = dep
        end
      end
      write_deps(ekey, left)
      give_result(ekey, result)
      if await and has_null(ekey) then
        local others, latest = await_without(ekey, id)
        local till = string.format('%.0f', now + await)
        call('HSET', ekey, 'nextAttemptAt', string.format('%.0f', math.max(latest, now + await)), 'awaits',
             others == '' and id .. '@' .. till or others .. ' ' .. id .. '@' .. till)
        call('SADD', key('outboxawait', ws, id), waiting[i])
        call('PEXPIRE', key('outboxawait', ws, id), await)
      end
      if not left[1] then
        free[encode(v[2] or '')] = true
      end
    end
  end
  for ses in pairs(free) do
    rearm(ws, ses)
  end
  if waiting[1] then
    call('DEL', back)
  end
end

-- The answer (or what else became of the request) of an entry that an echo had confirmed before.
local function late_answer(ws, id, result)
  local waiting = call('SMEMBERS', key('outboxawait', ws, id))
  for i = 1, #waiting do
    local ekey = key('outboxe', ws, waiting[i])
    local e = load(ws, waiting[i])
    if e and e.sends == 0 then
      give_result(ekey, result)
      local others, latest = await_without(ekey, id)
      if others ~= '' then
        call('HSET', ekey, 'awaits', others)
      else
        call('HDEL', ekey, 'awaits')
      end
      if e.status == 'pending' then
        call('HSET', ekey, 'nextAttemptAt', string.format('%.0f', latest))
        rearm(ws, encode(e.session))
      end
    end
  end
  if waiting[1] then
    call('DEL', key('outboxawait', ws, id))
  end
end
