#!lua flags=allow-oom
-- What a sweep found out about an `error` entry, if it still is as it was when it was looked up. KEYS[1] the entry.
-- `to`: ended, pending, verifying, or error (it stays, with another count of attempts).
-- include: core
-- include: ending
local ws, id, attempts, sends, code = ARGV[3], ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]
local to, counted, via, keep = ARGV[8], ARGV[9], ARGV[10], tonumber(ARGV[11])

local function code_of(text)
  local ok, err = pcall(cjson.decode, text or '')
  return ok and type(err) == 'table' and err.code or ''
end

local e = load(ws, id)
if not e or e.status ~= 'error' or e.sends ~= sends then
  return 0
end
local v = call('HMGET', KEYS[1], 'attempts', 'lastError')
if whole(v[1]) ~= attempts or code_of(v[2]) ~= code then
  return 0
end
local ses = encode(e.session)
if to == 'ended' then
  end_entry(ws, ses, id, e, 'sent', keep, {via = via})
  event(ws, id, e, 'sent', 'via', via)
  rearm(ws, ses)
elseif to == 'error' then
  call('HSET', KEYS[1], 'attempts', counted)
else
  call('HSET', KEYS[1], 'status', to, 'attempts', counted, 'verifyAttempts', 0, 'transientFails', 0, 'nextAttemptAt', 0)
  call('HDEL', KEYS[1], 'sweep')
  recount(ws, id, e, 'error', to)
  event(ws, id, e, 'rearmed', 'reason', 'sweep')
  rearm(ws, ses)
end
return 1
