/* Reads claims, as claim.lua, finish.lua and settle.lua give them. */
#include "common/store/store_claim_reply.h"

#include <errno.h>
#include <stdlib.h>

static int mode_of(struct span name, enum claim_mode *ret)
{
    static const struct {
        const char *name;
        enum claim_mode mode;
    } rows[] = {{"send", CLAIM_SEND}, {"verify", CLAIM_VERIFY}, {"poll", CLAIM_POLL}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (span_equal(name, span_of(rows[i].name))) {
            *ret = rows[i].mode;
            return 0;
        }
    }
    return -EBADMSG;
}

struct span read_name(struct span encoded, char *room, size_t cap)
{
    int64_t len = percent_decode(encoded.ptr, encoded.len, room, cap);

    return len < 0 ? (struct span){"", 0} : (struct span){room, (size_t)len};
}

/* The member `target` of a flat hash. */
static struct span target_of(const struct redisReply *conf)
{
    for (size_t i = 0; reply_is_array(conf, i + 2); i += 2) {
        if (span_equal(reply_span(conf->element[i]), span_of("target"))) {
            return reply_span(conf->element[i + 1]);
        }
    }
    return (struct span){"", 0};
}

int claim_reply_read(const struct redisReply *reply, int64_t now_ms, struct claim_room *room)
{
    struct claim *claim = &room->claim;

    if (!reply_is_array(reply, 7)) {
        return -EBADMSG;
    }
    *claim = (struct claim){.now_ms = now_ms};
    claim->workspace =
        read_name(reply_span(reply->element[0]), room->workspace, sizeof(room->workspace));
    struct span session =
        read_name(reply_span(reply->element[1]), room->session, sizeof(room->session));
    struct span token = reply_span(reply->element[4]);

    if (claim->workspace.len == 0 || session.len == 0 || token.len == 0 ||
        token.len >= sizeof(claim->token.text) ||
        mode_of(reply_span(reply->element[3]), &claim->mode) < 0) {
        return -EBADMSG;
    }
    memcpy(claim->token.text, token.ptr, token.len);
    claim->token.text[token.len] = '\0';
    claim->target_conf = target_of(reply->element[6]);
    int err =
        reply_entry(reply->element[5], reply_span(reply->element[2]), &room->text, &claim->entry);

    /* The key decides which session this is; the field is only a copy. */
    claim->entry.session = session;
    return err;
}
