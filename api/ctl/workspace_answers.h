/* Workspaces as rows of a table. */
#ifndef API_CTL_WORKSPACE_ANSWERS_H
#define API_CTL_WORKSPACE_ANSWERS_H

#include <jansson.h>

struct table;

/* NULL if out of memory. */
struct table *workspace_table(void);
void workspace_table_add(struct table *table, const json_t *workspace);

#endif
