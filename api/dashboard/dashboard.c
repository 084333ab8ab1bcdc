/* The pages themselves tell nothing: what they show they ask for with the caller's token. They are
 * the same for everybody, so anybody may have them. */
#include "api/api.h"
#include "api/dashboard/files.h"
#include "api/request.h"

/* Scripts and styles from here alone, no inline ones, nothing embedded, no form that goes anywhere:
 * what a message's text might smuggle into a page can't run, nor send anything away. */
#define POLICY                                                                                     \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "                    \
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "            \
    "require-trusted-types-for 'script'; trusted-types 'none'"

static const struct dashboard_file *find(struct span name)
{
    for (unsigned i = 0; i < dashboard_file_count; i++) {
        if (span_equal(span_of(dashboard_files[i].name), name)) {
            return &dashboard_files[i];
        }
    }
    return NULL;
}

static void answer(struct request *request, struct span name)
{
    const struct dashboard_file *file = find(name);

    if (!file) {
        request_problem(request, PROBLEM_NOT_FOUND, (struct span){0});
        return;
    }
    request_answer(request, 200, file->content_type,
                   (struct span){(const char *)file->bytes, file->len});
    request_answer_header(request, "Content-Security-Policy", POLICY);
    request_answer_header(request, "X-Frame-Options", "DENY"); /* browsers before frame-ancestors */
    request_answer_header(request, "Referrer-Policy", "no-referrer");
    request_answer_header(request, "Cross-Origin-Opener-Policy", "same-origin");
    request_answer_header(request, "Permissions-Policy",
                          "camera=(), microphone=(), geolocation=(), payment=(), usb=()");
}

void handle_dashboard(struct api *api, struct request *request)
{
    (void)api;
    answer(request, span_of("index.html"));
}

void handle_dashboard_file(struct api *api, struct request *request)
{
    (void)api;
    answer(request, request->params.id);
}
