/* What people ask about entries: list, get. Contract §7. */
#include "api/api.h"
#include "api/entry_json.h"
#include "api/json_out.h"
#include "api/request.h"
#include "api/server.h"
#include "common/base/settings.h"
#include "common/shm/metrics.h"
#include "common/store/store.h"

#define JSON_TYPE "application/json"
#define LIST_PAGE 500

static bool refuse_bad_id(struct request *request)
{
    if (request->params.id.len > 0 && request->params.id.len <= 64) {
        return false;
    }
    request_problem(request, PROBLEM_ENTRY_NOT_FOUND, (struct span){0});
    return true;
}

/* What is known of an entry beside itself: `in_flight` is what its session is sending or verifying
 * now, or empty. */
static struct entry_context context_of(const struct api *api, const struct entry *entry,
                                       struct span id, struct span in_flight, int64_t since_ms,
                                       int64_t now_ms)
{
    const bool is_in_flight = span_equal(id, in_flight);

    return (struct entry_context){
        .now_ms = now_ms,
        .stuck_after_ms = api->settings->stuck_after,
        .is_in_flight = is_in_flight,
        .in_flight_since_ms = since_ms,
        .is_blocked = in_flight.len > 0 && !is_in_flight &&
                      (entry->status == STATUS_PENDING || entry->status == STATUS_VERIFYING),
    };
}

/* ---- list ---- */

static void on_list(enum store_result result, const struct list_answer *answer, void *arg)
{
    struct request *request = arg;
    struct api *api = api_of(request);

    if (result != STORE_OK) {
        request_store_failed(request, result);
        return;
    }
    for (size_t i = 0; i < answer->count; i++) {
        const struct entry *entry = &answer->entries[i];
        const struct entry_context context = context_of(api, entry, entry->id, answer->in_flight,
                                                        answer->in_flight_since_ms, answer->now_ms);

        entry_json_write(entry, entry->id, &context, &request->out);
        json_comma(&request->out);
    }
    if (answer->has_more && answer->walked > 0 && !request->out.failed) {
        request->offset += answer->walked;
        store_list(api->store, request->params.workspace, request->params.session, request->offset,
                   LIST_PAGE, on_list, request);
        return;
    }
    json_close(&request->out, ']');
    json_close(&request->out, '}');
    request_answer_out(request, 200, JSON_TYPE);
}

void handle_list(struct api *api, struct request *request)
{
    json_open(&request->out, '{');
    json_open_member(&request->out, "entries", '[');
    store_list(api->store, request->params.workspace, request->params.session, 0, LIST_PAGE,
               on_list, request);
}

/* ---- get ---- */

static void on_get(enum store_result result, const struct get_answer *answer, void *arg)
{
    struct request *request = arg;
    struct api *api = api_of(request);

    if (result != STORE_OK) {
        request_store_failed(request, result);
        return;
    }
    if (answer->entry) {
        const struct entry_context context =
            context_of(api, answer->entry, request->params.id, answer->in_flight,
                       answer->in_flight_since_ms, answer->now_ms);

        entry_json_write(answer->entry, request->params.id, &context, &request->out);
        request_answer_out(request, 200, JSON_TYPE);
    } else if (answer->tombstone) {
        entry_json_write_tombstone(answer->tombstone, request->params.id, &request->out);
        request_answer_out(request, 200, JSON_TYPE);
    } else {
        request_problem(request, PROBLEM_ENTRY_NOT_FOUND, (struct span){0});
    }
}

void handle_get(struct api *api, struct request *request)
{
    if (!refuse_bad_id(request)) {
        store_get(api->store, request->params.workspace, request->params.id, on_get, request);
    }
}
