/* The bearer token that OUTBOXCTL_TOKEN_FILE names. */
#ifndef API_CTL_TOKEN_FILE_H
#define API_CTL_TOKEN_FILE_H

/* The file's one line without white space around it; the caller frees. NULL, or why not: the end of
 * a sentence ("… can be read by others: chmod o-rwx it"). */
const char *token_file_read(const char *path, char **ret);

#endif
