-- For the accept scripts, in place. Reads ws and ARGV[named_from] to ARGV[named_to].
-- What it waits for, resolved through what ended (contract §6): names of entries that are there, results of those that were
-- confirmed, and the first that can't be.
local waits, results, gone = {}, {}, nil
if named_from <= named_to then
  local named = {}
  for i = named_from, named_to do
    local what, which = trace(ws, ARGV[i])
    if what == 'there' and not named[which] then
      named[which] = true
      waits[#waits + 1] = which
    elseif what == 'sent' and which ~= '' then
      results[#results + 1] = which
    elseif what == 'gone' then
      gone = gone or ARGV[i]
    end
  end
end
