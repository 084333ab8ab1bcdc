-- For the accept scripts, in place: answers what was accepted before. Reads ws, id, cmid, digest, and first, the ID under its
-- clientMessageID's marker (or none).
if first or cmid == '' then
  -- Digest, how it stands or how it ended, acceptance of an entry that is open or remembered; nil: unknown.
  local function known(entry_id)
    local e = fields_of(ws, entry_id, 'digest', 'status', 'acceptedAt')
    if e[1] or e[2] then
      return e[1] or '', e[2] or '', tonumber(e[3] or '0') or 0
    end
    local ok, t = pcall(cjson.decode, call('GET', key('outboxdone', ws, entry_id)) or '')
    if ok and type(t) == 'table' then
      return tostring(t.digest), tostring(t.how), tonumber(t.acceptedAt) or 0
    end
  end
  -- An earlier run of this very call: the answer is the same, whatever became of the entry since.
  local own, status, accepted = known(id)
  if own then
    return {'accepted', id, status, accepted, now}
  end
  if first then
    local theirs
    theirs, status, accepted = known(first)
    if theirs then
      return {theirs == digest and 'duplicate' or 'reuse', first, status, accepted, now}
    end
  end
end
