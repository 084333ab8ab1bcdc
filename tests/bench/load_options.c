/* The load generator's command line. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "tests/bench/load.h"

static const struct option long_options[] = {
    {"port", required_argument, NULL, 'p'},       {"connections", required_argument, NULL, 'c'},
    {"batch", required_argument, NULL, 'b'},      {"sessions", required_argument, NULL, 'm'},
    {"workspaces", required_argument, NULL, 'w'}, {"seconds", required_argument, NULL, 't'},
    {"count", required_argument, NULL, 'n'},      {"rate", required_argument, NULL, 'r'},
    {"body-bytes", required_argument, NULL, 's'}, {"path", required_argument, NULL, 'P'},
    {"body", required_argument, NULL, 'B'},       {"retry-ms", required_argument, NULL, 'y'},
    {"log", required_argument, NULL, 'l'},        {NULL, 0, NULL, 0},
};

static int usage(void)
{
    fprintf(stderr, "usage: bench-load --port N [--connections N] [--sessions N] [--workspaces N]\n"
                    "    [--seconds S | --count N] [--rate R] [--body-bytes N] [--path TEMPLATE]\n"
                    "    [--body TEMPLATE] [--retry-ms N] [--log FILE] [--batch N]\n"
                    "templates: {id} {workspace} {session} {seq} {pad}\n");
    return -EINVAL;
}

static unsigned number(const char *text)
{
    return (unsigned)strtoul(text, NULL, 10);
}

int load_options_parse(int argc, char **argv, struct load_options *ret)
{
    struct load_options o = {
        .connections = 64,
        .sessions = 1000,
        .workspaces = 1,
        .body_bytes = 1024,
        .retry_ms = 5,
        .seconds = 5,
    };
    int option;

    snprintf(o.tag, sizeof(o.tag), "%08x", (unsigned)(uv_hrtime() / 1000));
    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        switch (option) {
        case 'p':
            o.port = number(optarg);
            break;
        case 'c':
            o.connections = number(optarg);
            break;
        case 'b':
            o.batch = number(optarg);
            break;
        case 'm':
            o.sessions = number(optarg);
            break;
        case 'w':
            o.workspaces = number(optarg);
            break;
        case 't':
            o.seconds = strtod(optarg, NULL);
            break;
        case 'n':
            o.count = strtoull(optarg, NULL, 10);
            break;
        case 'r':
            o.rate = strtod(optarg, NULL);
            break;
        case 's':
            o.body_bytes = number(optarg);
            break;
        case 'P':
            o.path = optarg;
            break;
        case 'B':
            o.body = optarg;
            break;
        case 'y':
            o.retry_ms = number(optarg);
            break;
        case 'l':
            o.log_path = optarg;
            break;
        default:
            return usage();
        }
    }
    if (o.port == 0 || o.connections == 0 || o.sessions == 0 || o.workspaces == 0) {
        return usage();
    }
    if (!o.path) {
        o.path =
            o.batch > 0 ? "/v1/batch" : "/v1/workspaces/{workspace}/sessions/{session}/entries";
    }
    if (!o.body) {
        o.body = o.batch > 0 ? "{\"workspaceID\":\"{workspace}\",\"sessionID\":\"{session}\","
                               "\"clientMessageID\":\"{id}\",\"text\":\"{pad}\"}"
                             : "{\"clientMessageID\":\"{id}\",\"text\":\"{pad}\"}";
    }
    *ret = o;
    return 0;
}
