-- What became of an ID that names no stored entry: 'sent' and its result, 'there' and the entry that stands in for it, or
-- 'gone'. An ID that names one is 'there' itself.
local function trace(ws, id)
  for _ = 1, 64 do -- replacements of replacements
    if call('EXISTS', key('outboxe', ws, id)) == 1 then
      return 'there', id
    end
    local ok, t = pcall(cjson.decode, redis.pcall('GET', key('outboxdone', ws, id)) or '') -- no text: no tombstone
    if not ok or type(t) ~= 'table' then
      return 'gone', id
    end
    if t.how == 'sent' then
      return 'sent', type(t.result) == 'string' and t.result or ''
    end
    if type(t.replacedBy) ~= 'string' then
      return 'gone', id
    end
    id = t.replacedBy
  end
  return 'gone', id
end
