#!lua flags=no-writes
-- Some of a workspace's sessions: a cursor over this one key, so that scores may change between two calls and none is
-- missed (one may come twice). KEYS[1] the workspace's sessions.
-- include: base
local got = call('ZSCAN', KEYS[1], ARGV[3], 'COUNT', ARGV[4])
local names = {}
for i = 1, #got[2], 2 do
  names[#names + 1] = got[2][i]
end
return {now, got[1], names}
