-- Which of those that an entry waits for stand until a person acts: failed, or parked (contract §6). Each is looked at once
-- in a call, however many wait for it.

local stands = {}
local function failed_deps(ws, text)
  local found = {}
  for dep in (text or ''):gmatch('%S+') do
    if stands[dep] == nil then
      local status = fields_of(ws, dep, 'status')[1]
      stands[dep] = status == 'error' or status == 'parked'
    end
    if stands[dep] then
      found[#found + 1] = dep
    end
  end
  return table.concat(found, ' ')
end

-- `fields` as HGETALL gives them.
local function failed_deps_of(ws, fields)
  return failed_deps(ws, member(fields, 'deps'))
end
