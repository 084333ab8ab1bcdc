-- For the accept scripts, in place: writes the entry, and prepares its event. Reads its members, and what accept_waits found.
local session = decode(ses)
local fields = {'HSET', key('outboxe', ws, id), 'body', body, 'digest', digest, 'status', 'pending', 'session', session,
                'kind', kind, 'acceptedAt', now}
local event = {'XADD', 'outboxev' .. tag, 'MAXLEN', '~', ARGV[2], '*', 'type', 'accepted', 'workspaceID', decode(ws),
               'sessionID', session, 'entryID', id, 'kind', kind}
local f, v = 14, 16
if cmid ~= '' then
  fields[f + 1], fields[f + 2] = 'clientMessageID', cmid
  event[v + 1], event[v + 2] = 'clientMessageID', cmid
  f, v = f + 2, v + 2
end
if user ~= '' then
  fields[f + 1], fields[f + 2] = 'userID', user
  event[v + 1], event[v + 2] = 'userID', user
  f = f + 2
end
if flags ~= '' then
  fields[f + 1], fields[f + 2] = 'flags', flags
end
if waits[1] or results[1] or gone then
  for name, value in pairs({deps = table.concat(waits, ' '), fills = table.concat(results, '\n')}) do
    if value ~= '' then
      fields[#fields + 1], fields[#fields + 2] = name, value
    end
  end
  for i = 1, #waits do
    call('SADD', key('outboxdep', ws, waits[i]), id)
  end
end
if gone then
  fields[8] = 'error'
  fields[#fields + 1], fields[#fields + 2] = 'lastError',
    cjson.encode({code = 'dependency_discarded', message = gone .. ' is not known, or was discarded'})
end
call(unpack(fields))
