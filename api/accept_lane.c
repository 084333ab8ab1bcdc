/* Fills the template of the kind. */
#include "api/accept_lane.h"

#include <stdio.h>
#include <string.h>

#include "common/core/payload_value.h"
#include "common/core/template.h"

#define GLOBAL_LANE "global"

struct lane_values {
    struct span workspace;
    const struct accept_form *form;
    char room[PAYLOAD_VALUE_ROOM];
};

static int lane_value(void *arg, struct span place, struct span *ret)
{
    static const char payload[] = "payload.";
    struct lane_values *values = arg;
    const struct entry_body *body = &values->form->body;

    if (span_equal(place, span_of("workspace"))) {
        *ret = values->workspace;
    } else if (span_equal(place, span_of("clientMessageID"))) {
        *ret = body->client_message_id;
    } else if (span_equal(place, span_of("userID"))) {
        *ret = body->user_id;
    } else if (place.len > sizeof(payload) - 1 &&
               memcmp(place.ptr, payload, sizeof(payload) - 1) == 0) {
        const struct span path = {place.ptr + sizeof(payload) - 1,
                                  place.len - (sizeof(payload) - 1)};

        return payload_value_text(payload_value(accept_form_payload(values->form), path),
                                  values->room, ret);
    } else {
        return -1;
    }
    return 0;
}

bool accept_lane_find(const struct kind *kind, struct span workspace, struct accept_form *form,
                      char room[SESSION_MAX], struct span *ret)
{
    struct lane_values values = {.workspace = workspace, .form = form};
    struct span place = {"", 0};
    struct buf lane;

    if (!kind || !kind->lane) {
        *ret = span_of(GLOBAL_LANE);
        return true;
    }
    buf_init(&lane, SESSION_MAX);
    const bool is_filled = template_lane(kind->lane, lane_value, &values, &lane, &place) == 0;

    if (is_filled) {
        memcpy(room, lane.bytes, lane.len);
        *ret = (struct span){room, lane.len};
    } else {
        snprintf(form->json.detail, sizeof(form->json.detail), "no value for {%.*s}",
                 (int)place.len, place.ptr);
    }
    buf_done(&lane);
    return is_filled;
}
