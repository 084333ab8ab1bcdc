#!lua flags=allow-oom
-- Whether anything of a workspace is claimed. KEYS[1] its settings. `how`: pause, resume, or cleanup, which holds back what
-- there is of it. Answers the store's clock: what is accepted later is not meant.
-- include: core
-- include: cleaning
local ws, how = ARGV[3], ARGV[4]

if how == 'pause' then
  call('HSET', KEYS[1], 'paused', '1')
elseif how == 'resume' then
  call('HDEL', KEYS[1], 'paused')
elseif call('EXISTS', KEYS[1], key('outboxws', ws), key('outboxended', ws)) > 0 then
  hold_back(KEYS[1])
end
reindex(ws)
return now
