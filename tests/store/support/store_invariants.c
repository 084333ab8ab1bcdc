/* What holds after every transition, whatever happened before (contract §2, §3): walks every key of
 * a small store. The check is itself a script, so that it sees one moment. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/store/support/sync_store.h"

static const char *const invariants =
    "#!lua flags=no-writes,allow-cross-slot-keys\n"
    "local call = redis.call\n"
    "local keys = call('KEYS', '*')\n"
    "local queued, seen, open = {}, {}, {}\n"
    "local counts = {}\n"
    "local function bad(...) return table.concat({...}, ' ') end\n"
    "for _, k in ipairs(keys) do\n"
    "  local p, ws, id = k:match('^outboxe:{(%d+)}:([^:]+):([^:]+)$')\n"
    "  if p then\n"
    "    local status = call('HGET', k, 'status')\n"
    "    counts[p] = counts[p] or {}\n"
    "    counts[p][status] = (counts[p][status] or 0) + 1\n"
    "    seen[p .. ws .. ':' .. id] = status\n"
    "    local is_open = status == 'pending' or status == 'delivering' or status == 'verifying'\n"
    "    local in_open = call('ZSCORE', 'outboxopen:{' .. p .. '}', ws .. ':' .. id)\n"
    "    if is_open ~= (in_open and true or false) then return bad('outboxopen and status "
    "differ:', k, status) end\n"
    "    if call('EXISTS', 'outboxdone:{' .. p .. '}:' .. ws .. ':' .. id) == 1 then return "
    "bad('open and ended:', k) end\n"
    "  end\n"
    "end\n"
    "for _, k in ipairs(keys) do\n"
    "  local p, ws, ses = k:match('^outboxq:{(%d+)}:([^:]+):([^:]+)$')\n"
    "  if p then\n"
    "    if not call('ZSCORE', 'outboxws:{' .. p .. '}:' .. ws, ses) then return bad('queue "
    "without index:', k) end\n"
    "    for _, id in ipairs(call('LRANGE', k, 0, -1)) do\n"
    "      if not seen[p .. ws .. ':' .. id] then return bad('queued without entry:', k, id) end\n"
    "      if queued[p .. ws .. ':' .. id] then return bad('queued twice:', k, id) end\n"
    "      queued[p .. ws .. ':' .. id] = true\n"
    "    end\n"
    "  end\n"
    "  p, ws, ses = k:match('^outboxd:{(%d+)}:([^:]+):([^:]+)$')\n"
    "  if p then\n"
    "    local ids = call('LRANGE', k, 0, -1)\n"
    "    if #ids > 1 then return bad('more than one staged:', k) end\n"
    "    if call('EXISTS', 'outboxlock:{' .. p .. '}:' .. ws .. ':' .. ses) == 0 and\n"
    "       not call('ZSCORE', 'outboxlive:{' .. p .. '}', ws .. ':' .. ses) then return "
    "bad('staged, not locked:', k) end\n"
    "    if not call('LPOS', 'outboxq:{' .. p .. '}:' .. ws .. ':' .. ses, ids[1]) then return "
    "bad('staged, not queued:', k) end\n"
    "  end\n"
    "  p, ws, ses = k:match('^outboxlock:{(%d+)}:([^:]+):([^:]+)$')\n"
    "  if p then\n"
    "    local live = call('ZSCORE', 'outboxlive:{' .. p .. '}', ws .. ':' .. ses)\n"
    "    if not live then return bad('lock without outboxlive:', k) end\n"
    "    local score = call('ZSCORE', 'outboxws:{' .. p .. '}:' .. ws, ses)\n"
    "    if score ~= live then return bad('a locked session is not scored by its deadline:', k, "
    "tostring(score), live) end\n"
    "  end\n"
    "  p, ws = k:match('^outboxws:{(%d+)}:([^:]+)$')\n"
    "  if p then\n"
    "    local due = call('ZSCORE', 'outboxdue:{' .. p .. '}', ws)\n"
    "    if not due then return bad('sessions without outboxdue:', k) end\n"
    "    local first = tonumber(call('ZRANGE', k, 0, 0, 'WITHSCORES')[2])\n"
    "    local now = call('TIME')\n"
    "    now = now[1] * 1000 + now[2] / 1000\n"
    "    if first ~= tonumber(due) and not (first <= now and tonumber(due) <= now + 1) then\n"
    "      return bad('workspace score:', k, tostring(first), due) end\n"
    "    for _, s in ipairs(call('ZRANGE', k, 0, -1)) do\n"
    "      if call('EXISTS', 'outboxq:{' .. p .. '}:' .. ws .. ':' .. s) == 0 and\n"
    "         call('EXISTS', 'outboxlock:{' .. p .. '}:' .. ws .. ':' .. s) == 0 then return "
    "bad('index without queue:', k, s) end\n"
    "    end\n"
    "  end\n"
    "  p, ws = k:match('^outboxdedupe:{(%d+)}:([^:]+):')\n"
    "  if p then\n"
    "    local id = call('GET', k)\n"
    "    local is_open = seen[p .. ws .. ':' .. id]\n"
    "    local ttl = call('PTTL', k)\n"
    "    if is_open and ttl ~= -1 then return bad('marker of an open entry expires:', k) end\n"
    "    if not is_open and ttl == -1 then return bad('marker of an ended entry stays for ever:', "
    "k) end\n"
    "  end\n"
    "end\n"
    "for k in pairs(seen) do\n"
    "  if not queued[k] then return bad('entry in no queue:', k) end\n"
    "end\n"
    "for _, k in ipairs(keys) do\n"
    "  local p = k:match('^outboxstat:{(%d+)}$')\n"
    "  if p then\n"
    "    local flat = call('HGETALL', k)\n"
    "    for i = 1, #flat, 2 do\n"
    "      local real = counts[p] and counts[p][flat[i]] or 0\n"
    "      if tonumber(flat[i + 1]) ~= real then return bad('count of', flat[i], 'is', flat[i + "
    "1], 'but there are', tostring(real)) end\n"
    "    end\n"
    "  end\n"
    "end\n"
    "return ''\n";

/* What is `delivering` is staged, or waits for its target (`prior`): else nobody would ask what
 * became of it. */
static const char *const nobody_forgotten =
    "#!lua flags=no-writes,allow-cross-slot-keys\n"
    "local call = redis.call\n"
    "local function encode(raw)\n"
    "  return (raw:gsub('[^A-Za-z0-9._~-]', function(c) return string.format('%%%02X', c:byte()) "
    "end))\n"
    "end\n"
    "for _, k in ipairs(call('KEYS', 'outboxe:*')) do\n"
    "  local p, ws, id = k:match('^outboxe:{(%d+)}:([^:]+):([^:]+)$')\n"
    "  local v = call('HMGET', k, 'status', 'prior', 'session')\n"
    "  if v[1] == 'delivering' and not v[2] and v[3] and\n"
    "     not call('LPOS', 'outboxd:{' .. p .. '}:' .. ws .. ':' .. encode(v[3]), id) then\n"
    "    return 'delivering, but neither staged nor prior: ' .. k\n"
    "  end\n"
    "end\n"
    "return ''\n";

static bool holds(struct sync_store *s, const char *script, char *why, size_t why_size)
{
    redisReply *reply = redisCommand(s->raw, "EVAL %s 0", script);
    bool is_fine = reply && reply->type == REDIS_REPLY_STRING && reply->len == 0;

    snprintf(why, why_size, "%s", reply && reply->str ? reply->str : "no answer");
    freeReplyObject(reply);
    return is_fine;
}

bool sync_invariants_hold(struct sync_store *s, char *why, size_t why_size)
{
    return holds(s, invariants, why, why_size) && holds(s, nobody_forgotten, why, why_size);
}
