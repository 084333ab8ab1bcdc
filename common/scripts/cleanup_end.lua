#!lua flags=allow-oom
-- Deletes what is left of a workspace behind its sessions: tombstones and markers of what ended, some at a time, then its
-- settings. KEYS[1] the list of what ended. Sessions that began since the cleanup go on, as those of a new workspace.
-- Answers how many keys are gone, and whether there is more.
-- include: core
-- include: cleaning
local ws, limit = ARGV[3], tonumber(ARGV[4])
local gone = call('EXISTS', KEYS[1])

if call('HEXISTS', key('outboxconf', ws), 'cleanup') == 1 then
  hold_back(key('outboxconf', ws))
end

local function marker_gone(name)
  local marker = key('outboxdedupe', ws, name)
  local id = call('GET', marker)
  if id and call('EXISTS', key('outboxe', ws, id)) == 0 then
    return call('DEL', marker)
  end
  return 0
end

local ended = call('ZRANGE', KEYS[1], 0, limit - 1)
for i = 1, #ended do
  local what, name = ended[i]:sub(1, 2), ended[i]:sub(3)
  if what == 't:' then
    gone = gone + call('DEL', key('outboxdone', ws, name), key('outboxdep', ws, name), key('outboxawait', ws, name))
  elseif what == 'd:' then
    gone = gone + marker_gone(name)
  end
end
if ended[1] then
  call('ZREM', KEYS[1], unpack(ended))
end
gone = gone - call('EXISTS', KEYS[1])
if call('EXISTS', KEYS[1]) == 1 then
  return {gone, 1}
end

-- Settings that hold nothing but what the cleanup itself noted do not count.
local is_ours = call('HLEN', key('outboxconf', ws)) == call('HEXISTS', key('outboxconf', ws), 'cleanup')
local keys = call('DEL', key('outboxconf', ws))
gone = gone + (is_ours and 0 or keys)
local stat = call('EXISTS', key('outboxwsstat', ws))
reindex(ws)
return {gone + stat - call('EXISTS', key('outboxwsstat', ws)), 0}
