-- An entry and all that an operation on it may change: what it was when it was read, so that nobody else has changed it
-- when the plan made from it is carried out.
-- include: core

local function stamp(ws, id)
  local v = fields_of(ws, id, 'status', 'sends', 'deps', 'edits', 'fills', 'root', 'session')
  if not v[1] and not v[7] then
    return ''
  end
  return table.concat({call('LPOS', key('outboxd', ws, encode(v[7] or '')), id) and 1 or 0, v[1] or '', v[2] or '0',
                       v[3] or '', v[4] or '0', #(v[5] or ''), v[6] or '', call('SCARD', key('outboxdep', ws, id))}, '|')
end
