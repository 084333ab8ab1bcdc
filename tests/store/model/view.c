#include "tests/store/model/view.h"

#include <stdlib.h>
#include <string.h>

/* ARGV: `all` if it shall look at every key, partition and name of each workspace. Answers what is
 * wrong, entries, IDs of `sent` events (which are taken out of the streams: each is read once),
 * markers and what they name. */
static const char *const take =
    "#!lua flags=allow-cross-slot-keys\n"
    "local call = redis.call\n"
    "local rows, sent, markers, why = {}, {}, {}, ''\n"
    "local function bad(...) if why == '' then why = table.concat({...}, ' ') end end\n"
    "local function names(text, id)\n"
    "  return (' ' .. (text or '') .. ' '):find(' ' .. id .. ' ', 1, true)\n"
    "end\n"
    "local streams = {}\n"
    "for a = 2, #ARGV, 2 do\n"
    "  local ws, tag = ARGV[a + 1], ':{' .. ARGV[a] .. '}'\n"
    "  local function key(what, rest) return what .. tag .. ':' .. ws .. ':' .. rest end\n"
    "  streams['outboxev' .. tag] = true\n"
    "  local counts, is_open = {}, {pending = true, delivering = true, verifying = true}\n"
    "  for _, ses in ipairs(call('ZRANGE', 'outboxws' .. tag .. ':' .. ws, 0, -1)) do\n"
    "    for _, id in ipairs(call('LRANGE', key('outboxq', ses), 0, -1)) do\n"
    "      local v = call('HMGET', key('outboxe', id), 'status', 'sends', 'acceptedAt', 'deps',\n"
    "                     'lastError', 'ifMatch', 'body', 'fills')\n"
    "      local ok, err = pcall(cjson.decode, v[5] or '')\n"
    "      rows[#rows + 1] = table.concat({id, v[1] or '', v[2] or '0', v[3] or '0',\n"
    "        ok and err.code or '', v[6] or '', redis.sha1hex((v[7] or '') .. '\\n' .. (v[8] or "
    "'')),\n"
    "        call('LPOS', key('outboxd', ses), id) and 1 or 0}, '\\t')\n"
    "      counts[v[1]] = (counts[v[1]] or 0) + 1\n"
    "      local stands = call('ZSCORE', 'outboxopen' .. tag, ws .. ':' .. id)\n"
    "      if (stands and true or nil) ~= is_open[v[1]] then bad('outboxopen and', v[1], id) end\n"
    "      for dep in (v[4] or ''):gmatch('%S+') do\n"
    "        if call('EXISTS', key('outboxe', dep)) == 0 then bad(id, 'waits for', dep, 'that is "
    "gone') end\n"
    "        if call('SISMEMBER', key('outboxdep', dep), id) == 0 then bad(id, 'waits for', dep, "
    "'that does not know') end\n"
    "      end\n"
    "      for _, other in ipairs(call('SMEMBERS', key('outboxdep', id))) do\n"
    "        if not names(call('HGET', key('outboxe', other), 'deps'), id) then bad(other, 'does "
    "not wait for', id) end\n"
    "      end\n"
    "    end\n"
    "  end\n"
    "  local stat = call('HGETALL', 'outboxwsstat' .. tag .. ':' .. ws)\n"
    "  for i = 1, #stat, 2 do\n"
    "    if tonumber(stat[i + 1]) ~= (counts[stat[i]] or 0) then bad(stat[i + 1], stat[i], ws) "
    "end\n"
    "    counts[stat[i]] = nil\n"
    "  end\n"
    "  if next(counts) then bad('not counted:', next(counts), ws) end\n"
    "end\n"
    "for k in pairs(streams) do\n"
    "  for _, e in ipairs(call('XRANGE', k, '-', '+')) do\n"
    "    local f = {}\n"
    "    for i = 1, #e[2], 2 do f[e[2][i]] = e[2][i + 1] end\n"
    "    if f.type == 'sent' then sent[#sent + 1] = f.entryID end\n"
    "  end\n"
    "  call('XTRIM', k, 'MAXLEN', 0)\n"
    "end\n"
    "if ARGV[1] == 'all' then\n"
    "  for _, k in ipairs(call('KEYS', 'outboxdep:*')) do\n"
    "    if call('EXISTS', (k:gsub('^outboxdep', 'outboxe'))) == 0 then bad('left behind:', k) "
    "end\n"
    "  end\n"
    "  for _, k in ipairs(call('KEYS', 'outboxdedupe:*')) do\n"
    "    markers[#markers + 1] = k:match(':m(%d+)$') .. ' ' .. call('GET', k)\n"
    "  end\n"
    "end\n"
    "return {why, rows, sent, markers}\n";

static const char *text_of(const redisReply *reply)
{
    return reply->str ? reply->str : "";
}

enum column { ID, STATUS, SENDS, ACCEPTED, CODE, IF_MATCH, CONTENT, STAGED, COLUMNS };

static void copy(char *to, size_t cap, const char *from)
{
    snprintf(to, cap, "%s", from ? from : "");
}

static void read_row(struct world *world, char *row)
{
    const char *v[COLUMNS] = {0};

    for (int i = 0; i < COLUMNS && row; i++) {
        v[i] = strsep(&row, "\t");
    }
    const int number = v[STAGED] ? world_number(world, v[ID]) : MODEL_NONE;

    if (number < 0) {
        world_fail(world, "%s is in the store", v[ID]);
        return;
    }
    struct seen *seen = &world->entries[number].seen;

    *seen = (struct seen){
        .is_there = true,
        .is_staged = v[STAGED][0] == '1',
        .sends = (unsigned)strtoul(v[SENDS], NULL, 10),
        .accepted_ms = strtoll(v[ACCEPTED], NULL, 10),
    };
    copy(seen->status, sizeof(seen->status), v[STATUS]);
    copy(seen->code, sizeof(seen->code), v[CODE]);
    copy(seen->if_match, sizeof(seen->if_match), v[IF_MATCH]);
    copy(seen->content, sizeof(seen->content), v[CONTENT]);
}

/* `<number of the accepted entry> <ID that it names>` */
static void check_marker(struct world *world, const char *marker)
{
    char *named, room[16];
    const int original = (int)strtol(marker, &named, 10);

    if (strcmp(named + 1, world_id(world_resolve(world, original), room)) != 0) {
        world_fail(world, "the marker of e%d names%s, not %s", original, named, room);
    }
}

static void read_view(struct world *world, const redisReply *reply)
{
    const redisReply *rows = reply->element[1], *sent = reply->element[2],
                     *markers = reply->element[3];

    if (text_of(reply->element[0])[0] != '\0') {
        world_fail(world, "%s", text_of(reply->element[0]));
    }
    for (int i = 0; i < world->count; i++) {
        world->entries[i].seen.is_there = world->entries[i].seen.is_staged = false;
    }
    for (size_t i = 0; i < rows->elements; i++) {
        read_row(world, rows->element[i]->str);
    }
    for (size_t i = 0; i < sent->elements; i++) {
        const int number = world_number(world, text_of(sent->element[i]));

        if (number >= 0) {
            world->entries[number].sent_events++;
        }
    }
    for (size_t i = 0; i < markers->elements; i++) {
        check_marker(world, text_of(markers->element[i]));
    }
}

void view_take(struct world *world, bool is_whole)
{
    const char *argv[4 + 2 * MODEL_WORKSPACES] = {"EVAL", take, "0", is_whole ? "all" : ""};
    char partitions[MODEL_WORKSPACES][8];

    for (int i = 0; i < MODEL_WORKSPACES; i++) {
        snprintf(partitions[i], sizeof(partitions[i]), "%u",
                 partition_of(world->workspaces[i], strlen(world->workspaces[i])));
        argv[4 + 2 * i] = partitions[i];
        argv[5 + 2 * i] = world->workspaces[i];
    }
    redisReply *reply = redisCommandArgv(world->s->raw, 4 + 2 * MODEL_WORKSPACES, argv, NULL);

    if (!reply || reply->type != REDIS_REPLY_ARRAY || reply->elements != 4) {
        world_fail(world, "no view: %s", reply ? text_of(reply) : "the server is gone");
    } else {
        read_view(world, reply);
    }
    freeReplyObject(reply);
}
