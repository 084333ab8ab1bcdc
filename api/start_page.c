/* What a browser sees at `/`. */
#include "api/api.h"
#include "api/request.h"

void handle_start_page(struct api *api, struct request *request)
{
    static const char page[] =
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>outboxd</title>"
        "<h1>outboxd</h1><p>A durable outbox. <a href=\"/readyz\">readiness</a> · "
        "<a href=\"/metrics\">metrics</a></p></html>\n";

    (void)api;
    request_answer(request, 200, "text/html; charset=utf-8", span_of(page));
    request_answer_header(request, "Content-Security-Policy",
                          "default-src 'none'; base-uri 'none'; form-action 'none'; "
                          "frame-ancestors 'none'");
    request_answer_header(request, "X-Frame-Options", "DENY"); /* browsers before frame-ancestors */
    request_answer_header(request, "Referrer-Policy", "no-referrer");
}
