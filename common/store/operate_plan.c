/* Reads rows, asks the resolver, writes the plan. */
#include "common/store/operate_plan.h"

#include <errno.h>
#include <jansson.h>
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/json_exact.h"
#include "common/core/payload_merge.h"
#include "common/store/store_internal.h"

#define BODY_MAX (128U << 20)
#define PLAN_MAX (256U << 20)

struct row {
    struct span id, stamp;
    struct entry entry;
    struct entry_text text;
    const struct kind *kind; /* NULL: not declared (any more) */
    uint32_t *deps;
};

struct planning {
    const struct operate_request *request;
    struct row *rows;
    struct resolver_entry *entries;
    uint32_t count;
    struct resolver_plan plan;
    int64_t now_ms;
    struct buf body; /* of the entry that the patch goes to, or that is created */
};

/* ---- rows ---- */

static uint32_t index_of(const struct planning *planning, struct span id)
{
    for (uint32_t i = 0; i < planning->count; i++) {
        if (span_equal(planning->rows[i].id, id)) {
            return i;
        }
    }
    return RESOLVER_NONE;
}

static int read_rows(struct planning *planning, const struct redisReply *rows)
{
    planning->rows = calloc(rows->elements + 1, sizeof(planning->rows[0]));
    planning->entries = calloc(rows->elements + 1, sizeof(planning->entries[0]));
    if (!planning->rows || !planning->entries) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < rows->elements; i++) {
        const struct redisReply *reply = rows->element[i];
        struct row *row = &planning->rows[planning->count];

        if (!reply_is_array(reply, 3)) {
            return -EBADMSG;
        }
        row->id = reply_span(reply->element[0]);
        row->stamp = reply_span(reply->element[1]);
        if (reply_entry(reply->element[2], row->id, &row->text, &row->entry) < 0) {
            return -EBADMSG;
        }
        row->kind = settings_kind(planning->request->settings, row->entry.body.kind.ptr,
                                  row->entry.body.kind.len);
        planning->count++;
    }
    return planning->count > 0 ? 0 : -EBADMSG;
}

/* Errors whose last attempt the target may have carried out: all but definite refusals. */
static bool may_be_stored(const struct entry *entry)
{
    static const char *const unknown[] = {"outcome_unknown", "unverifiable", "retries_exhausted",
                                          "attempts_exhausted"};

    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        if (span_equal(entry->error_code, span_of(unknown[i]))) {
            return entry->sends > 0;
        }
    }
    return false;
}

/* Of a kind that is not declared (any more): as it was at acceptance. */
static bool is_idempotent(const struct row *row)
{
    const struct span flags = row->entry.flags;

    return row->kind ? row->kind->is_idempotent
                     : flags.len > 0 && memchr(flags.ptr, ENTRY_FLAG_IDEMPOTENT, flags.len);
}

/* The stamp's first field (lib/related.lua). */
static bool is_staged(struct span stamp)
{
    return stamp.len > 0 && stamp.ptr[0] == '1';
}

static int read_deps(struct planning *planning, struct row *row, struct resolver_entry *ret)
{
    struct span rest = row->entry.deps;

    row->deps = calloc(planning->count, sizeof(row->deps[0]));
    if (!row->deps) {
        return -ENOMEM;
    }
    while (rest.len > 0) {
        const char *blank = memchr(rest.ptr, ' ', rest.len);
        const struct span id = {rest.ptr, blank ? (size_t)(blank - rest.ptr) : rest.len};
        const uint32_t dep = index_of(planning, id);

        if (dep != RESOLVER_NONE && ret->dep_count < planning->count) {
            row->deps[ret->dep_count++] = dep; /* one that is gone is left out */
        }
        rest.ptr += id.len + (blank ? 1 : 0);
        rest.len -= id.len + (blank ? 1 : 0);
    }
    ret->deps = row->deps;
    return 0;
}

static int describe(struct planning *planning, uint32_t i)
{
    struct row *row = &planning->rows[i];
    const struct entry *entry = &row->entry;
    const struct kind *kind = row->kind;

    planning->entries[i] = (struct resolver_entry){
        .status = entry->status,
        .is_in_flight = is_staged(row->stamp),
        .is_idempotent = is_idempotent(row),
        .can_follow_edit = kind && kind->follow_up_edit,
        .can_follow_remove = kind && kind->follow_up_remove,
        .may_be_stored = may_be_stored(entry),
        .failed_with_chain =
            span_equal(entry->error_code, span_of(error_code_name(CODE_DEPENDENCY_DISCARDED))),
        .sends = entry->sends,
        .rank = entry->rank_ms > 0 ? entry->rank_ms : entry->accepted_at_ms,
        .part = span_equal(entry->part, span_of("edit"))     ? RESOLVER_PART_EDIT
                : span_equal(entry->part, span_of("remove")) ? RESOLVER_PART_REMOVE
                                                             : RESOLVER_PART_NONE,
        .root = entry->root.len > 0 ? index_of(planning, entry->root) : RESOLVER_NONE,
    };
    return read_deps(planning, row, &planning->entries[i]);
}

/* ---- bodies ---- */

int entry_payload(const struct entry *entry, struct buf *out, struct span *ret)
{
    return payload_filled(entry->body.payload, entry->fills, out, ret);
}

static json_t *load_json(struct span text)
{
    return json_loadb(text.ptr, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
}

static int patched_payload(struct span payload, struct span patch, struct buf *out)
{
    json_t *target = json_exact_load(payload);
    json_t *change = json_exact_load(patch);
    json_t *result = change ? payload_patched(target, change) : NULL;
    const int err = result ? json_exact_dump(result, out) : -EINVAL;

    json_decref(result);
    json_decref(change);
    json_decref(target);
    return err;
}

/* The body of `from`, patched if `patch` is not NULL, as `kind`, and known to its client as `name`.
 */
static int make_body(struct planning *planning, uint32_t from, const struct entry_patch *patch,
                     struct span kind, struct span name)
{
    const struct entry *entry = &planning->rows[from].entry;
    struct entry_body body = entry->body;
    struct buf filled, patched;
    json_t *text = NULL;
    int err;

    if (!entry->is_readable) {
        return -EINVAL;
    }
    buf_init(&filled, BODY_MAX);
    buf_init(&patched, BODY_MAX);
    err = entry_payload(entry, &filled, &body.payload);
    if (err == 0 && patch && patch->payload.len > 0) {
        err = body.has_text ? -EINVAL : patched_payload(body.payload, patch->payload, &patched);
        body.payload = (struct span){patched.bytes, patched.len};
    }
    if (err == 0 && patch && patch->text.len > 0) {
        text = load_json(patch->text);
        err = text && body.has_text ? 0 : -EINVAL;
        body.text = (struct span){json_string_value(text), json_string_length(text)};
    }
    if (err == 0 && patch && patch->model.len > 0) {
        body.model = patch->model;
        if (span_equal(patch->model, span_of("null"))) {
            body.model = (struct span){0};
        }
    }
    body.kind = kind;
    body.depends_on_count = 0; /* `deps` of the hash says what it waits for */
    body.client_message_id = name;
    err = err == 0 ? entry_body_encode(&body, &planning->body) : err;
    json_decref(text);
    buf_done(&filled);
    buf_done(&patched);
    return err;
}

/* ---- writing the plan ---- */

static int write_to_buf(void *out, const char *bytes, size_t len)
{
    return buf_append(out, bytes, len);
}

static void put(msgpack_packer *packer, struct span text)
{
    (void)msgpack_pack_str(packer, text.len); /* a buffer that failed is seen at the end */
    if (text.len > 0) {
        (void)msgpack_pack_str_body(packer, text.ptr, text.len);
    }
}

static void put_member(msgpack_packer *packer, const char *name, struct span value)
{
    put(packer, span_of(name));
    put(packer, value);
}

static struct span id_of(const struct planning *planning, uint32_t i)
{
    return i < planning->count ? planning->rows[i].id : planning->request->new_id;
}

static void put_deps(msgpack_packer *packer, const struct planning *planning, const uint32_t *deps,
                     size_t count)
{
    put(packer, span_of("deps"));
    (void)msgpack_pack_array(packer, count);
    for (size_t i = 0; i < count; i++) {
        put(packer, id_of(planning, deps[i]));
    }
}

static const char *fate_name(enum resolver_fate fate)
{
    static const char *const names[] = {
        [RESOLVER_STAYS] = "stays",
        [RESOLVER_REARMED] = "rearmed",
        [RESOLVER_FAILS] = "fails",
        [RESOLVER_ENDS_REMOVED] = "removed",
        [RESOLVER_ENDS_DISCARDED] = "discarded",
        [RESOLVER_ENDS_REPLACED] = "replaced",
    };

    return names[fate];
}

/* A follow-up of what is replaced follows the replacement. */
static bool changes_root(const struct planning *planning, uint32_t i)
{
    const uint32_t root = planning->entries[i].root;

    return planning->plan.creates == RESOLVER_CREATES_REPLACEMENT && root != RESOLVER_NONE &&
           planning->plan.changes[root].fate == RESOLVER_ENDS_REPLACED;
}

static bool is_changed(const struct planning *planning, uint32_t i)
{
    const struct resolver_change *change = &planning->plan.changes[i];

    return change->fate != RESOLVER_STAYS || change->has_deps ||
           change->fills_from != RESOLVER_NONE || planning->plan.patched == i ||
           changes_root(planning, i);
}

static int put_change(msgpack_packer *packer, const struct planning *planning, uint32_t i)
{
    const struct resolver_change *change = &planning->plan.changes[i];
    const bool has_fill = change->fills_from != RESOLVER_NONE;
    const bool has_body = planning->plan.patched == i;
    struct buf filled, fill;
    struct span payload;
    int err = 0;

    buf_init(&filled, BODY_MAX);
    buf_init(&fill, BODY_MAX);
    if (has_fill) {
        err = entry_payload(&planning->rows[change->fills_from].entry, &filled, &payload);
        err = err == 0 ? payload_result(payload, &fill) : err;
        err = err == -EINVAL ? 0 : err; /* it knows nothing */
    }
    (void)msgpack_pack_map(packer, 3U + change->has_deps + has_body + changes_root(planning, i));
    put_member(packer, "id", id_of(planning, i));
    put_member(packer, "fate", span_of(fate_name(change->fate)));
    put_member(packer, "fill", (struct span){fill.bytes, fill.len});
    if (change->has_deps) {
        put_deps(packer, planning, change->deps, change->dep_count);
    }
    if (has_body) {
        put_member(packer, "body", (struct span){planning->body.bytes, planning->body.len});
    }
    if (changes_root(planning, i)) {
        put_member(packer, "root", planning->request->new_id);
    }
    buf_done(&filled);
    buf_done(&fill);
    return err;
}

static void put_changes(msgpack_packer *packer, const struct planning *planning, int *ret_err)
{
    size_t count = 0;

    for (uint32_t i = 0; i < planning->count; i++) {
        count += is_changed(planning, i);
    }
    put(packer, span_of("changes"));
    (void)msgpack_pack_array(packer, count);
    for (uint32_t i = 0; i < planning->count && *ret_err == 0; i++) {
        if (is_changed(planning, i)) {
            *ret_err = put_change(packer, planning, i);
        }
    }
}

static void put_expectations(msgpack_packer *packer, const struct planning *planning)
{
    put(packer, span_of("expect"));
    (void)msgpack_pack_array(packer, planning->count);
    for (uint32_t i = 0; i < planning->count; i++) {
        (void)msgpack_pack_array(packer, 2);
        put(packer, planning->rows[i].id);
        put(packer, planning->rows[i].stamp);
    }
}

/* ---- what is created ---- */

static struct span created_kind(const struct planning *planning)
{
    const struct resolver_plan *plan = &planning->plan;
    const uint32_t from = plan->created_from < planning->count ? plan->created_from : 0;
    const uint32_t root = plan->created_root < planning->count ? plan->created_root : from;
    const struct kind *kind = planning->rows[root].kind; /* declared, if it has follow-ups */

    switch (plan->creates) {
    case RESOLVER_CREATES_FOLLOW_EDIT:
        return span_of(kind->follow_up_edit);
    case RESOLVER_CREATES_FOLLOW_REMOVE:
        return span_of(kind->follow_up_remove);
    case RESOLVER_CREATES_REPLACEMENT:
    case RESOLVER_CREATES_NOTHING:
        break;
    }
    return planning->rows[from].entry.body.kind;
}

/* What the replacement of an entry that met a conflict is sent with: the revision's `version`
 * member, else the revision itself (contract §6). */
static void put_if_match(msgpack_packer *packer, struct span current)
{
    json_t *root = json_exact_load(current);
    const json_t *version = json_object_get(root, "version");
    const json_t *value = version ? version : root;
    struct buf text;
    struct span revision = {"", 0};

    buf_init(&text, BODY_MAX);
    if (value && json_exact_dump(value, &text) == 0) {
        revision = text.bytes[0] == '"' ? span_of(json_string_value(value))
                                        : (struct span){text.bytes, text.len};
    }
    put_member(packer, "ifMatch", revision);
    buf_done(&text);
    json_decref(root);
}

static void put_created(msgpack_packer *packer, const struct planning *planning, struct span kind)
{
    const struct resolver_plan *plan = &planning->plan;
    const bool is_replacement = plan->creates == RESOLVER_CREATES_REPLACEMENT;
    const struct entry *from = &planning->rows[plan->created_from].entry;
    const struct kind *declared = settings_kind(planning->request->settings, kind.ptr, kind.len);
    char flags[4];
    const size_t flag_count = entry_flags_of(declared, flags);
    const struct span none = {"", 0};
    struct span part = none, root = none;

    if (plan->creates == RESOLVER_CREATES_FOLLOW_EDIT) {
        part = span_of("edit");
    } else if (plan->creates == RESOLVER_CREATES_FOLLOW_REMOVE) {
        part = span_of("remove");
    } else if (is_replacement) {
        part = from->part;
        root = from->root;
    }
    if (!is_replacement && plan->created_root != RESOLVER_NONE) {
        root = id_of(planning, plan->created_root);
    }
    put(packer, span_of("create"));
    (void)msgpack_pack_map(packer, 16);
    put_member(packer, "id", planning->request->new_id);
    put_member(packer, "kind", kind);
    put_member(packer, "session", from->session);
    put_member(packer, "body", (struct span){planning->body.bytes, planning->body.len});
    put_member(packer, "digest", is_replacement ? from->digest : none);
    put_member(packer, "flags", (struct span){flags, flag_count});
    put_member(packer, "cmid", is_replacement ? from->body.client_message_id : none);
    put_member(packer, "user", from->body.user_id);
    put_member(packer, "root", root);
    put_member(packer, "part", part);
    put_member(packer, "fills", none);
    put_member(packer, "replaces", is_replacement ? id_of(planning, 0) : none);
    put_member(packer, "reason",
               span_of(planning->request->operation == RESOLVER_EDIT ? "edit" : "retry"));
    put(packer, span_of("rank"));
    /* 0: nothing waits for it, and it goes to the end. Its time would put it before what was
     * accepted in the same millisecond. */
    (void)msgpack_pack_int64(packer, plan->is_created_awaited ? plan->created_rank : 0);
    put_deps(packer, planning, plan->created_deps, plan->created_dep_count);
    put_if_match(packer, is_replacement ? from->conflict_current : none);
}

static int write_plan(const struct planning *planning, struct span kind, struct buf *out)
{
    const struct resolver_plan *plan = &planning->plan;
    const bool creates = plan->creates != RESOLVER_CREATES_NOTHING;
    msgpack_packer packer;
    int err = 0;

    msgpack_packer_init(&packer, out, write_to_buf);
    (void)msgpack_pack_map(&packer, 5U + creates);
    put_member(&packer, "operation", planning->request->new_id);
    put_member(&packer, "subject", id_of(planning, plan->subject));
    put_member(&packer, "reason",
               span_of(planning->request->operation == RESOLVER_EDIT ? "edit" : "retry"));
    put_expectations(&packer, planning);
    put_changes(&packer, planning, &err);
    if (creates) {
        put_created(&packer, planning, kind);
    }
    return err == 0 && out->failed ? -ENOMEM : err;
}

/* ---- */

/* The clientMessageID of what gets a body. A replacement has that of the entry it replaces, whose
 * content may come from a follow-up; follow-ups have none. */
static struct span client_name(const struct planning *planning)
{
    const struct resolver_plan *plan = &planning->plan;
    uint32_t whose = plan->patched;

    if (plan->creates == RESOLVER_CREATES_REPLACEMENT) {
        whose = plan->created_from;
    } else if (plan->creates != RESOLVER_CREATES_NOTHING) {
        return (struct span){0};
    }
    return planning->rows[whose].entry.body.client_message_id;
}

static int make_bodies(struct planning *planning, struct span kind)
{
    const struct resolver_plan *plan = &planning->plan;
    const bool creates = plan->creates != RESOLVER_CREATES_NOTHING;

    if (plan->patched != RESOLVER_NONE) {
        return make_body(planning, plan->patch_from, &planning->request->patch,
                         creates ? kind : planning->rows[plan->patched].entry.body.kind,
                         client_name(planning));
    }
    return creates ? make_body(planning, plan->created_from, NULL, kind, client_name(planning)) : 0;
}

/* An earlier run of this very operation, known by the ID that it was to create. */
static bool was_done(const struct planning *planning, enum resolver_what *ret_what)
{
    const struct span new_id = planning->request->new_id;
    const struct row *target = &planning->rows[0];

    *ret_what = span_equal(target->id, new_id) ? RESOLVER_REPLACED : RESOLVER_RETRIED;
    return span_equal(target->id, new_id) || (planning->request->operation == RESOLVER_RETRY &&
                                              span_equal(target->entry.retry, new_id));
}

int operate_plan_make(const struct operate_request *request, const struct redisReply *rows,
                      int64_t now_ms, struct operate_plan *ret)
{
    struct planning planning = {.request = request, .now_ms = now_ms};
    int err = read_rows(&planning, rows);

    *ret = (struct operate_plan){0};
    buf_init(&ret->bytes, PLAN_MAX);
    buf_init(&planning.body, BODY_MAX);
    for (uint32_t i = 0; i < planning.count && err == 0; i++) {
        err = describe(&planning, i);
    }
    if (err == 0 && was_done(&planning, &ret->what)) {
        ret->was_done = true;
        ret->subject = planning.rows[0].id;
    } else if (err == 0) {
        err = resolver_plan(planning.entries, planning.count, request->operation, 0, now_ms,
                            &planning.plan);
        ret->result = planning.plan.result;
        ret->what = planning.plan.what;
        ret->subject = id_of(&planning, planning.plan.subject);
    }
    if (err == 0 && ret->result == RESOLVER_DONE && !ret->was_done) {
        const struct span kind = created_kind(&planning);

        err = make_bodies(&planning, kind);
        err = err == 0 ? write_plan(&planning, kind, &ret->bytes) : err;
    }
    for (uint32_t i = 0; i < planning.count; i++) {
        free(planning.rows[i].deps);
    }
    resolver_plan_done(&planning.plan);
    buf_done(&planning.body);
    free(planning.rows);
    free(planning.entries);
    return err;
}

void operate_plan_done(struct operate_plan *plan)
{
    buf_done(&plan->bytes);
}
