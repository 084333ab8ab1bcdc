/* What an agent or a ledger answers. The first line of an input names what was asked for:
 *   page TEXT NOT_BEFORE BASELINE UNTIL    message STATUS ID    reply    version    newest
 *   row STATUS
 * and what follows it is the body. */
#include "tests/fuzz/fuzz.h"
#include "worker/ledger_answer.h"
#include "worker/opencode_answer.h"
#include "worker/opencode_ids.h"

#define WORDS_MAX 5

/* Words of a line, apart by blanks; what is missing is empty. */
static void split(char *line, char *words[WORDS_MAX])
{
    static char nothing[] = "";
    char *rest = line;

    for (size_t i = 0; i < WORDS_MAX; i++) {
        char *word = strsep(&rest, " ");

        words[i] = word ? word : nothing;
    }
}

static void read_page(char *words[WORDS_MAX], struct span body)
{
    struct opencode_search search = {.text = span_of(words[1]),
                                     .not_before_ms = strtoll(words[2], NULL, 10),
                                     .baseline = span_of(words[3]),
                                     .until = span_of(words[4])};
    const struct opencode_page page = opencode_read_page(body, &search);

    MUST_HOLD(page.count <= body.len);
    /* What holds nothing proves neither that it is there nor that it is not. */
    MUST_HOLD(page.count > 0 || (!page.is_found && !page.is_past_start));
    MUST_HOLD(search.until.len > 0 || !search.has_passed_one);
}

static void read_others(char *words[WORDS_MAX], struct span body)
{
    char id[OPENCODE_BASELINE_MAX + 1];

    if (strcmp(words[0], "message") == 0) {
        const enum opencode_message message = opencode_read_message(atoi(words[1]), body, words[2]);

        MUST_HOLD(message <= OPENCODE_MESSAGE_UNKNOWN);
        MUST_HOLD(body.len > 0 || message == OPENCODE_MESSAGE_UNKNOWN);
    } else if (strcmp(words[0], "version") == 0) {
        (void)opencode_takes_ids(opencode_read_version(body).text);
    } else if (strcmp(words[0], "newest") == 0) {
        MUST_HOLD(opencode_read_newest(body, id) == 0 || id[0] == '\0');
    } else if (strcmp(words[0], "reply") == 0) {
        (void)opencode_is_reply(body);
    } else if (strcmp(words[0], "row") == 0) {
        MUST_HOLD(ledger_answer_read(atoi(words[1]), body) < LEDGER_ROW_COUNT);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const uint8_t *end = len > 0 ? memchr(bytes, '\n', len) : NULL;
    const size_t line_len = end ? (size_t)(end - bytes) : len;
    const struct span body = {(const char *)bytes + line_len + (end ? 1 : 0),
                              len - line_len - (end ? 1 : 0)};
    char *line = fuzz_string(bytes, line_len);
    char *words[WORDS_MAX];

    split(line, words);
    if (strcmp(words[0], "page") == 0) {
        read_page(words, body);
    } else {
        read_others(words, body);
    }
    free(line);
    return 0;
}
