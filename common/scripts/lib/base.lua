-- What every script begins with: names of keys, the store's clock. Arguments of every script:
-- ARGV[1] partition, ARGV[2] events kept per partition; names of workspaces and sessions come percent-encoded.
local call = redis.call
local tag = ':{' .. ARGV[1] .. '}'
local clock = call('TIME')
local fine = clock[1] * 1000 + clock[2] / 1000
local now = math.floor(fine)

local function key(what, a, b, c)
  if c then
    return what .. tag .. ':' .. a .. ':' .. b .. ':' .. c
  elseif b then
    return what .. tag .. ':' .. a .. ':' .. b
  end
  return what .. tag .. ':' .. a
end

-- Fields of an entry, none where a key of another type stands in its place: that holds up nobody (contract §2).
local function fields_of(ws, id, ...)
  return redis.pcall('HMGET', key('outboxe', ws, id), ...)
end

local function encode(raw)
  if not raw:find('[^A-Za-z0-9._~-]') then
    return raw
  end
  return (raw:gsub('[^A-Za-z0-9._~-]', function(c) return string.format('%%%02X', c:byte()) end))
end

local function decode(enc)
  if not enc:find('%', 1, true) then
    return enc
  end
  return (enc:gsub('%%(%x%x)', function(hex) return string.char(tonumber(hex, 16)) end))
end
