/* Which workspaces a token may touch: a list of patterns, `team-*,home`. In a pattern * stands for
 * any number of characters and ? for one; all others stand for themselves, upper and lower case
 * apart. A name is compared as it stands in the path: `%2F` in one is three characters, as
 * everywhere else. Pure. */
#ifndef COMMON_ACCESS_WORKSPACE_PATTERN_H
#define COMMON_ACCESS_WORKSPACE_PATTERN_H

#include <stdbool.h>

#include "common/core/span.h"

#define WORKSPACE_PATTERN_MAX  128
/* In the place of a list: no workspace at all (a token that reads metrics only). No workspace can
 * be called so. */
#define WORKSPACE_PATTERN_NONE "@none"

/* 1 to WORKSPACE_PATTERN_MAX of the characters of a workspace's name, * and ?. */
bool workspace_pattern_is_valid(struct span pattern);
/* Takes time in proportion to the product of the lengths at most, whatever the pattern. */
bool workspace_pattern_matches(struct span pattern, struct span name);
/* `patterns`: separated by commas; WORKSPACE_PATTERN_NONE matches nothing. */
bool workspace_patterns_match(struct span patterns, struct span name);
/* What the names of all workspaces that match have in common at their beginning; may be empty.
 * Within `patterns`. */
struct span workspace_patterns_prefix(struct span patterns);
/* NULL, or why the list is refused (static). */
const char *workspace_patterns_refusal(struct span patterns);

#endif
