-- What a session is sending or verifying now, and since when.

local function in_flight(ws, ses)
  local id = redis.pcall('LINDEX', key('outboxd', ws, ses), 0)
  return type(id) == 'string' and id or ''
end

-- The lock's age says it: it lives `ttl` from its claim on. 0: nobody holds one.
local function in_flight_since(ws, ses, ttl)
  local deadline = call('ZSCORE', 'outboxlive' .. tag, ws .. ':' .. ses)
  return deadline and number(deadline) - ttl or 0
end
