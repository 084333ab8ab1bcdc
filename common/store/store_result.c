/* Names of results, and which result an error reply stands for. Pure. Contract §2: recognised by
 * the code word anywhere in the head of the reply, for scripts and proxies wrap them. */
#include <string.h>

#include "common/store/store_conn.h"

#define HEAD_BYTES 256 /* beyond it stands what a client sent, and nobody's code word */

static const struct {
    const char *name, *help;
} results[STORE_RESULT_COUNT] = {
#define STORE_RESULT(id, name_, help_) [STORE_##id] = {.name = name_, .help = help_},
#include "common/store/store_result.def"
};

static const struct {
    const char *word;
    enum store_result result;
} code_words[] = {
    {"LOADING", STORE_LOADING},
    {"READONLY", STORE_READONLY},
    {"MASTERDOWN", STORE_READONLY},
    {"NOREPLICAS", STORE_READONLY},
    {"OOM", STORE_OOM},
    {"MISCONF", STORE_MISCONF},
    {"BUSY", STORE_BUSY},
    {"NOAUTH", STORE_NOAUTH},
    {"WRONGPASS", STORE_NOAUTH},
    {"NOPERM", STORE_NOAUTH},
    /* "ERR Protocol error: unauthenticated bulk length": who has not said a password may not even
       send a long script. */
    {"unauthenticated", STORE_NOAUTH},
};

const char *store_result_name(enum store_result result)
{
    return (unsigned)result < STORE_RESULT_COUNT ? results[result].name : "invalid";
}

const char *store_result_help(enum store_result result)
{
    return (unsigned)result < STORE_RESULT_COUNT ? results[result].help : "invalid";
}

static bool is_word_char(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

enum store_result store_result_from_error(const char *text, size_t len)
{
    size_t end = len < HEAD_BYTES ? len : HEAD_BYTES;

    for (size_t at = 0; at < end;) {
        size_t start = at;

        while (at < len && is_word_char(text[at])) {
            at++; /* to the word's end, even beyond the head: BUSY is no word in BUSYKEY */
        }
        for (size_t i = 0; i < sizeof(code_words) / sizeof(code_words[0]); i++) {
            size_t word_len = strlen(code_words[i].word);

            if (at <= end && at - start == word_len &&
                memcmp(text + start, code_words[i].word, word_len) == 0) {
                return code_words[i].result;
            }
        }
        at += at == start;
    }
    return STORE_ERROR;
}
