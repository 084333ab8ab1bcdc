#!lua flags=no-writes
-- A page of a partition's events behind an ID, and how far the stream reaches. KEYS[1] the stream. Read in one script, so
-- that nothing is trimmed between the question and the page.
-- include: base
local after, count = ARGV[3], tonumber(ARGV[4])
local first, last, is_whole, page = '0-0', '0-0', 1, {}

if call('EXISTS', KEYS[1]) == 1 then
  local info, facts = call('XINFO', 'STREAM', KEYS[1]), {}
  for i = 1, #info, 2 do
    facts[info[i]] = info[i + 1]
  end
  first = facts['first-entry'] and facts['first-entry'][1] or facts['last-generated-id']
  last = facts['last-generated-id']
  is_whole = facts['entries-added'] == facts['length'] and 1 or 0
  if count > 0 then
    page = call('XRANGE', KEYS[1], '(' .. after, '+', 'COUNT', count)
  end
end
return {now, first, last, is_whole, page}
