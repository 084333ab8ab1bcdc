/* Patterns without brackets or escapes: names hold neither * nor ?, so nothing needs escaping. */
#include "common/access/workspace_pattern.h"

#include "common/core/keys.h"

bool workspace_pattern_is_valid(struct span pattern)
{
    if (pattern.len == 0 || pattern.len > WORKSPACE_PATTERN_MAX) {
        return false;
    }
    for (size_t i = 0; i < pattern.len; i++) {
        const char c = pattern.ptr[i];

        if (c != '*' && c != '?' && !workspace_name_is_valid(&c, 1)) {
            return false;
        }
    }
    return true;
}

/* After a mismatch only the last * is tried with one character more: earlier ones can't help. */
bool workspace_pattern_matches(struct span pattern, struct span name)
{
    size_t p = 0, n = 0, star = pattern.len, star_n = 0;

    while (n < name.len) {
        if (p < pattern.len && pattern.ptr[p] == '*') {
            star = p++;
            star_n = n;
        } else if (p < pattern.len && (pattern.ptr[p] == '?' || pattern.ptr[p] == name.ptr[n])) {
            p++;
            n++;
        } else if (star < pattern.len) {
            p = star + 1;
            n = ++star_n;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.ptr[p] == '*') {
        p++;
    }
    return p == pattern.len;
}

/* Takes the next pattern, up to a comma or the end, off the front. */
static struct span take(struct span *rest)
{
    const char *comma = memchr(rest->ptr, ',', rest->len);
    const size_t len = comma ? (size_t)(comma - rest->ptr) : rest->len;
    const struct span pattern = {rest->ptr, len};

    rest->ptr += len + (comma ? 1 : 0);
    rest->len -= len + (comma ? 1 : 0);
    return pattern;
}

static bool is_none(struct span patterns)
{
    return span_equal(patterns, span_of(WORKSPACE_PATTERN_NONE));
}

bool workspace_patterns_match(struct span patterns, struct span name)
{
    if (is_none(patterns)) {
        return false;
    }
    while (patterns.len > 0) {
        if (workspace_pattern_matches(take(&patterns), name)) {
            return true;
        }
    }
    return false;
}

struct span workspace_patterns_prefix(struct span patterns)
{
    struct span prefix = {patterns.ptr, 0};
    bool is_first = true;

    while (patterns.len > 0) {
        const struct span pattern = take(&patterns);
        size_t len = 0;

        while (len < pattern.len && pattern.ptr[len] != '*' && pattern.ptr[len] != '?' &&
               (is_first || (len < prefix.len && prefix.ptr[len] == pattern.ptr[len]))) {
            len++;
        }
        prefix.len = len;
        is_first = false;
    }
    return prefix;
}

const char *workspace_patterns_refusal(struct span patterns)
{
    if (patterns.len == 0) {
        return "names no workspaces (home, team-*, * for all, " WORKSPACE_PATTERN_NONE " for none)";
    }
    if (is_none(patterns)) {
        return NULL;
    }
    if (patterns.ptr[patterns.len - 1] == ',') {
        return "ends with a comma";
    }
    while (patterns.len > 0) {
        if (!workspace_pattern_is_valid(take(&patterns))) {
            return "has a pattern that is not 1 to 128 of A-Z a-z 0-9 . _ : ~ % - * ?";
        }
    }
    return NULL;
}
