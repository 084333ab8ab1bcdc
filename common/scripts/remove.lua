#!lua flags=allow-oom
-- A person's removal. KEYS[1] the entry. Busy means that this very entry is being sent or verified now.
-- include: core
-- include: ending
local ws, id, keep = ARGV[3], ARGV[4], tonumber(ARGV[5])

local e = load(ws, id)
if not e then
  local ok, t = pcall(cjson.decode, call('GET', key('outboxdone', ws, id)) or '')
  if ok and type(t) == 'table' and (t.how == 'removed' or t.how == 'discarded') then
    return {'done', t.how, id, now, {}}
  end
  return {'not_found', '', id, now, {}}
end
local ses = encode(e.session)
if e.status == 'delivering' or call('LPOS', key('outboxd', ws, ses), id) then
  return {'busy', '', id, now, {}}
end
local how = (e.status == 'error' or not is_known[e.status]) and 'discarded' or 'removed'
end_entry(ws, ses, id, e, how, keep)
event(ws, id, e, 'removed', 'how', how)
rearm(ws, ses)
return {'done', how, id, now, {}}
