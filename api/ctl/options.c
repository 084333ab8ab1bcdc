/* The command line, by getopt_long: options may stand before or behind the command. What the
 * environment says counts where the command line says nothing. */
#include "api/ctl/options.h"

#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "build_config.h"
#include "common/core/units.h"

#define DEFAULT_SERVER    "http://127.0.0.1:7780"
#define DEFAULT_STATE_DIR "/var/lib/outboxd"
#define INTERVAL_MIN_MS   50
#define INTERVAL_MAX_MS   3600000

static const char *const help =
    "outboxctl: looks into a running outboxd and operates it.\n"
    "\n"
    "Usage: outboxctl [OPTIONS] COMMAND ...\n"
    "\n"
    "  list WORKSPACE SESSION       the open entries of a session, in order\n"
    "  show WORKSPACE ID            one entry, or how it ended\n"
    "  retry WORKSPACE ID           sends a failed entry again; prints the ID that it has now\n"
    "  edit WORKSPACE ID            changes an entry: --text, --payload (a merge), --model\n"
    "  remove WORKSPACE ID          removes an entry that is not being sent, or has the target\n"
    "                               remove what was sent\n"
    "  confirm WORKSPACE ID         the target has this entry: it is not sent any more;\n"
    "                               or confirm WORKSPACE SESSION CLIENT-MESSAGE-ID\n"
    "  send WORKSPACE SESSION TEXT  accepts a message (or --kind and --payload instead of TEXT)\n"
    "  events [WORKSPACE [SESSION]] events as they happen, until you stop it; connects again by\n"
    "                               itself and goes on where it was\n"
    "  park WORKSPACE [REASON]      parks what waits; what is accepted later is not parked\n"
    "  unpark WORKSPACE             what was parked goes on\n"
    "  pause, resume WORKSPACE      nothing more is sent; sending goes on\n"
    "  sweep WORKSPACE WHAT         looks again at failed entries: unverifiable, parked-errors\n"
    "  cleanup WORKSPACE            deletes everything of a workspace\n"
    "  workspaces [WORKSPACE]       workspaces and their entries by status, or one\n"
    "  target WORKSPACE [URL]       shows its own target, or sets it\n"
    "  top                          live view of processes, rates and deliveries in flight\n"
    "\n"
    "  -s, --server URL      http://..., https://... or unix:PATH\n"
    "                        (default: $OUTBOXCTL_SERVER, else " DEFAULT_SERVER ")\n"
    "  -j, --json            the server's JSON as it came; top --once: the frame as JSON\n"
    "      --id ID           send: clientMessageID; repeat a send with the same one safely\n"
    "      --kind KIND       send: the entry's kind\n"
    "      --payload JSON    send: the entry's payload; edit: what to merge into it (-: standard\n"
    "                        input)\n"
    "      --depends-on IDS  send: entries that must be sent before, apart by commas\n"
    "      --text TEXT       edit: the new text\n"
    "      --text-file F     edit: the new text is in this file (-: standard input)\n"
    "      --model JSON      edit: the new model (-: standard input)\n"
    "      --result JSON     confirm: what the target answered (-: standard input)\n"
    "      --last ID         events: begin behind this one (\"id\" of --json)\n"
    "      --executor NAME   target: http, opencode or ledger\n"
    "      --username NAME   target: for basic authentication\n"
    "      --password-file F target: the password is in this file (-: standard input)\n"
    "      --secrets-file F  target: secrets (whsec_...) to sign with, one a line\n"
    "      --delete          target: takes it away\n"
    "      --after WORKSPACE workspaces: those behind this one\n"
    "      --once            top: one frame (rates since the start), then end\n"
    "      --interval S      top: seconds between frames, or a duration like 500ms (default 1)\n"
    "      --state-dir DIR   top: outboxd's state directory\n"
    "                        (default: $STATE_DIRECTORY, else " DEFAULT_STATE_DIR ")\n"
    "  -h, --help            this text\n"
    "  -V, --version         the version\n"
    "\n"
    "A bearer token is read from the file that OUTBOXCTL_TOKEN_FILE names. NO_COLOR is obeyed.\n"
    "\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 busy or in conflict.\n"
    "\n"
    "Examples:\n"
    "  outboxctl send home anna 'hello' --id m1\n"
    "  outboxctl send home anna --kind note --payload '{\"text\":\"hello\"}'\n"
    "  outboxctl list home anna\n"
    "  outboxctl --json list home anna | jq -r '.entries[] | select(.status==\"error\").id' |\n"
    "    xargs -n1 outboxctl retry home\n"
    "  outboxctl --server unix:/run/outboxd/api.sock show home ob_...\n"
    "  outboxctl top --state-dir ./state\n";

void options_complain(const char *format, ...)
{
    va_list args;

    fputs("outboxctl: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputs(" (see outboxctl --help)\n", stderr);
}

/* "0.5", "2" (seconds), or with a unit. */
static bool read_interval(const char *text, long *ret_ms)
{
    int64_t ms = 0;
    char *end = NULL;
    const double seconds = strtod(text, &end);

    if (end != text && *end == '\0' && isfinite(seconds) && seconds >= 0 &&
        seconds <= (double)INTERVAL_MAX_MS) {
        ms = (int64_t)(seconds * 1000);
    } else if (units_parse_duration(text, &ms) < 0) {
        return false;
    }
    if (ms < INTERVAL_MIN_MS || ms > INTERVAL_MAX_MS) {
        return false;
    }
    *ret_ms = (long)ms;
    return true;
}

static const char *from_environment(const char *name, const char *otherwise)
{
    const char *value = getenv(name);

    return value && value[0] ? value : otherwise;
}

enum {
    OPTION_ID = 256,
    OPTION_KIND,
    OPTION_PAYLOAD,
    OPTION_DEPENDS_ON,
    OPTION_TEXT,
    OPTION_TEXT_FILE,
    OPTION_MODEL,
    OPTION_RESULT,
    OPTION_LAST,
    OPTION_ONCE,
    OPTION_INTERVAL,
    OPTION_STATE,
    OPTION_EXECUTOR,
    OPTION_USERNAME,
    OPTION_PASSWORD_FILE,
    OPTION_SECRETS_FILE,
    OPTION_DELETE,
    OPTION_AFTER,
};

static const struct option long_options[] = {
    {"server", required_argument, NULL, 's'},
    {"json", no_argument, NULL, 'j'},
    {"id", required_argument, NULL, OPTION_ID},
    {"kind", required_argument, NULL, OPTION_KIND},
    {"payload", required_argument, NULL, OPTION_PAYLOAD},
    {"depends-on", required_argument, NULL, OPTION_DEPENDS_ON},
    {"text", required_argument, NULL, OPTION_TEXT},
    {"text-file", required_argument, NULL, OPTION_TEXT_FILE},
    {"model", required_argument, NULL, OPTION_MODEL},
    {"result", required_argument, NULL, OPTION_RESULT},
    {"last", required_argument, NULL, OPTION_LAST},
    {"once", no_argument, NULL, OPTION_ONCE},
    {"interval", required_argument, NULL, OPTION_INTERVAL},
    {"state-dir", required_argument, NULL, OPTION_STATE},
    {"executor", required_argument, NULL, OPTION_EXECUTOR},
    {"username", required_argument, NULL, OPTION_USERNAME},
    {"password-file", required_argument, NULL, OPTION_PASSWORD_FILE},
    {"secrets-file", required_argument, NULL, OPTION_SECRETS_FILE},
    {"delete", no_argument, NULL, OPTION_DELETE},
    {"after", required_argument, NULL, OPTION_AFTER},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

static enum options_result read_one(int option, struct options *options)
{
    switch (option) {
    case 's':
        options->server = optarg;
        return OPTIONS_RUN;
    case 'j':
        options->is_json = true;
        return OPTIONS_RUN;
    case OPTION_ID:
        options->client_message_id = optarg;
        return OPTIONS_RUN;
    case OPTION_KIND:
        options->kind = optarg;
        return OPTIONS_RUN;
    case OPTION_PAYLOAD:
        options->payload = optarg;
        return OPTIONS_RUN;
    case OPTION_DEPENDS_ON:
        options->depends_on = optarg;
        return OPTIONS_RUN;
    case OPTION_TEXT:
        options->text = optarg;
        return OPTIONS_RUN;
    case OPTION_TEXT_FILE:
        options->text_file = optarg;
        return OPTIONS_RUN;
    case OPTION_MODEL:
        options->model = optarg;
        return OPTIONS_RUN;
    case OPTION_RESULT:
        options->result = optarg;
        return OPTIONS_RUN;
    case OPTION_LAST:
        options->last_event_id = optarg;
        return OPTIONS_RUN;
    case OPTION_EXECUTOR:
        options->executor = optarg;
        return OPTIONS_RUN;
    case OPTION_USERNAME:
        options->username = optarg;
        return OPTIONS_RUN;
    case OPTION_PASSWORD_FILE:
        options->password_file = optarg;
        return OPTIONS_RUN;
    case OPTION_SECRETS_FILE:
        options->secrets_file = optarg;
        return OPTIONS_RUN;
    case OPTION_DELETE:
        options->is_delete = true;
        return OPTIONS_RUN;
    case OPTION_AFTER:
        options->after = optarg;
        return OPTIONS_RUN;
    case OPTION_ONCE:
        options->is_once = true;
        return OPTIONS_RUN;
    case OPTION_STATE:
        options->state_dir = optarg;
        return OPTIONS_RUN;
    case OPTION_INTERVAL:
        if (!read_interval(optarg, &options->interval_ms)) {
            options_complain("--interval must be 0.05 to 3600 seconds, not \"%s\"", optarg);
            return OPTIONS_USAGE;
        }
        return OPTIONS_RUN;
    case 'h':
        fputs(help, stdout);
        return OPTIONS_DONE;
    case 'V':
        puts("outboxctl " OUTBOXD_VERSION);
        return OPTIONS_DONE;
    default: /* getopt_long has said what */
        fputs("See outboxctl --help.\n", stderr);
        return OPTIONS_USAGE;
    }
}

enum options_result options_read(int argc, char **argv, struct options *ret)
{
    static char state_dir[4096];
    const char *const systemd = from_environment("STATE_DIRECTORY", DEFAULT_STATE_DIR);

    /* systemd writes several directories as a list. */
    snprintf(state_dir, sizeof(state_dir), "%.*s", (int)strcspn(systemd, ":"), systemd);
    *ret = (struct options){
        .server = from_environment("OUTBOXCTL_SERVER", DEFAULT_SERVER),
        .state_dir = state_dir,
        .interval_ms = 1000,
    };
    for (int option; (option = getopt_long(argc, argv, "s:jhV", long_options, NULL)) != -1;) {
        const enum options_result result = read_one(option, ret);

        if (result != OPTIONS_RUN) {
            return result;
        }
    }
    ret->arguments = argv + optind;
    ret->argument_count = argc - optind;
    if (ret->argument_count == 0) {
        options_complain("no command");
        return OPTIONS_USAGE;
    }
    return OPTIONS_RUN;
}
