/* Scripts of the test's own: each sees one moment. */
#include "tests/store/crash/look.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLAGS "#!lua flags=allow-cross-slot-keys\n"

/* Hashes and sets in the order in which they were filled, and no key deleted but by who reads it:
 * time goes back, too. */
const char *const look_server_arguments[] = {"--hash-max-listpack-value",
                                             "8192",
                                             "--set-max-listpack-value",
                                             "8192",
                                             "--activerehashing",
                                             "no",
                                             NULL};

static const char *const take_look = FLAGS
    "local call = redis.call\n"
    "local events, entries, ended, parts = {}, {}, {}, {}\n"
    "local keys = call('KEYS', '*')\n"
    "table.sort(keys)\n"
    "for _, k in ipairs(keys) do\n"
    "  local what, id = k:match('^(outbox%l+):.*:([^:]+)$')\n"
    "  if k:find('^outboxev:') then\n"
    "    for _, e in ipairs(call('XRANGE', k, '-', '+')) do\n"
    "      local f = {}\n"
    "      for i = 1, #e[2], 2 do f[e[2][i]] = e[2][i + 1] end\n"
    "      events[#events + 1] = {f.type, f.entryID, f.sessionID, f.kind,\n"
    "        f.clientMessageID or '', f.code or '', f.replaces or '', f.reason or ''}\n"
    "    end\n"
    "    call('XTRIM', k, 'MAXLEN', 0)\n"
    "  else\n"
    "    parts[#parts + 1] = k .. call('PEXPIRETIME', k) .. call('DUMP', k)\n"
    "  end\n"
    "  if what == 'outboxe' then\n"
    "    entries[#entries + 1] = {id, call('HGET', k, 'status') or ''}\n"
    "  elseif what == 'outboxdone' then\n"
    "    local t = cjson.decode(call('GET', k))\n"
    "    ended[#ended + 1] = {id, t.how, t.replacedBy or '', t.result and '1' or '', t.via or ''}\n"
    "  end\n"
    "end\n"
    "return {events, entries, ended, redis.sha1hex(table.concat(parts))}\n";

static const char *const copy_all = FLAGS "redis.call('SELECT', ARGV[2])\n"
                                          "redis.call('FLUSHDB')\n"
                                          "redis.call('SELECT', ARGV[1])\n"
                                          "for _, k in ipairs(redis.call('KEYS', '*')) do\n"
                                          "  redis.call('COPY', k, k, 'DB', ARGV[2])\n"
                                          "end\n"
                                          "return 'OK'\n";

static const char *const find_leftovers =
    FLAGS "local lasts = {outboxev = true, outboxstat = true, outboxmeta = true}\n"
          "for _, k in ipairs(redis.call('KEYS', '*')) do\n"
          "  if not lasts[k:match('^outbox%l+')] and redis.call('PTTL', k) < 0 then\n"
          "    return k\n"
          "  end\n"
          "end\n"
          "return ''\n";

/* The reply of a command that has to go well. */
static redisReply *ask(struct sync_store *s, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    redisReply *reply = redisvCommand(s->raw, format, args);

    va_end(args);
    if (!reply || reply->type == REDIS_REPLY_ERROR) {
        fprintf(stderr, "look: %s: %s\n", format, reply ? reply->str : "the server is gone");
        abort();
    }
    return reply;
}

void look_init(struct sync_store *s)
{
    freeReplyObject(ask(s, "DEBUG SET-ACTIVE-EXPIRE 0"));
}

uint64_t look(struct sync_store *s, const struct settings *settings, struct journal *journal)
{
    redisReply *reply = ask(s, "EVAL %s 0", take_look);
    char head[17] = "";

    journal_read(journal, settings, reply->element[0], reply->element[1], reply->element[2]);
    snprintf(head, sizeof(head), "%.16s", reply->element[3]->str);
    freeReplyObject(reply);
    return strtoull(head, NULL, 16);
}

void look_keep(struct sync_store *s, enum look_place place)
{
    freeReplyObject(ask(s, "EVAL %s 0 0 %d", copy_all, (int)place));
}

void look_go_back(struct sync_store *s, enum look_place place)
{
    freeReplyObject(ask(s, "EVAL %s 0 %d 0", copy_all, (int)place));
}

const char *look_leftovers(struct sync_store *s)
{
    return sync_script(s, find_leftovers);
}
