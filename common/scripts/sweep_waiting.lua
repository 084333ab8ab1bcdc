#!lua flags=no-writes
-- How many entries of a workspace the workers have yet to look at since a sweep by hand put them at that time.
-- KEYS[1] the partition's failed entries. Costs what was put there at that very millisecond.
local prefix, waiting = ARGV[3] .. ':', 0
local members = redis.call('ZRANGEBYSCORE', KEYS[1], ARGV[4], ARGV[4])
for i = 1, #members do
  if members[i]:sub(1, #prefix) == prefix then
    waiting = waiting + 1
  end
end
return waiting
