-- How an entry leaves the store: queue and staging first, then its tombstone, then the entry itself. What waited for one
-- that was confirmed may go.
-- include: waiting

local function end_entry(ws, ses, id, e, how, ttl, more, await)
  call('LREM', key('outboxq', ws, ses), 1, id)
  call('LREM', key('outboxd', ws, ses), 0, id)
  if e.prior then
    call('SREM', key('outboxowned', ws, ses), id)
  end
  local tombstone = {how = how, digest = e.digest, session = e.session, kind = e.kind, clientMessageID = e.cmid,
                     acceptedAt = e.accepted, endedAt = now, retry = e.retry}
  for name, value in pairs(more or {}) do
    tombstone[name] = value
  end
  call('SET', key('outboxdone', ws, id), cjson.encode(tombstone), 'PX', ttl)
  local ended = key('outboxended', ws)
  if e.cmid ~= '' and how ~= 'replaced' then
    local marker = ses .. ':' .. encode(e.cmid)
    call('PEXPIRE', key('outboxdedupe', ws, marker), ttl)
    call('ZADD', ended, now + ttl, 't:' .. id, now + ttl, 'd:' .. marker)
  else
    call('ZADD', ended, now + ttl, 't:' .. id)
  end
  if call('PTTL', ended) < ttl then
    -- All that it names is gone by then: a workspace that falls silent leaves nothing. A minute more than that, so that
    -- one in a minute pays for it and not every entry.
    call('PEXPIRE', ended, ttl + 60000)
  end
  local old = call('ZRANGEBYSCORE', ended, '-inf', now, 'LIMIT', 0, 8)
  if old[1] then
    call('ZREM', ended, unpack(old))
  end
  for dep in e.deps:gmatch('%S+') do -- an echo confirms also what still waits
    call('SREM', key('outboxdep', ws, dep), id)
  end
  call('DEL', key('outboxe', ws, id))
  recount(ws, id, e, e.status, nil)
  if how == 'sent' then
    release_dependents(ws, id, tombstone.result, await)
  end
end
