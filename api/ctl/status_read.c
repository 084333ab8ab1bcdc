/* Two questions, one state. */
#include "api/ctl/status_read.h"

#include <errno.h>

#include "api/ctl/asking.h"
#include "api/ctl/status_answers.h"

static int get(struct asking *asking, const char *path, struct http_answer *ret)
{
    struct call call;

    call_init(&call);
    (void)buf_append_str(&call.path, path);
    const int err = asking_try(asking, &call, ret);

    call_done(&call);
    return err;
}

int status_read(struct asking *asking, json_t **ret_state, struct http_answer *ret_answer)
{
    struct http_answer ready, metrics = {0};

    if (get(asking, "/readyz", &ready) < 0) {
        return -EIO;
    }
    json_t *root = answer_parse(&ready);

    if (!json_is_array(json_object_get(root, "processes"))) {
        json_decref(root);
        *ret_answer = ready;
        return -EPROTO;
    }
    /* Figures are missing where they can't be had; that it is ready or not stands anyhow. */
    const bool has_metrics = get(asking, "/metrics", &metrics) == 0 && metrics.status == 200;

    *ret_state = status_make(root, has_metrics ? (struct span){metrics.body.bytes, metrics.body.len}
                                               : (struct span){0});
    http_answer_done(&metrics);
    http_answer_done(&ready);
    json_decref(root);
    return 0;
}
