-- A cleanup holds the workspace's claims back, from each of its steps on for so long: one that was cut (its process died)
-- stops nothing for ever. What it had not deleted by then goes on.
local HELD_BACK = 60000

local function hold_back(settings)
  call('HSET', settings, 'cleanup', now + HELD_BACK)
end
