/* Names in the store: percent-encoding, partitions, and what a workspace or session may be called.
 * Pure. Contract §2, §7. */
#ifndef COMMON_CORE_KEYS_H
#define COMMON_CORE_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PARTITION_COUNT   64
#define WORKSPACE_MAX     64 /* bytes as the client writes it */
#define SESSION_MAX       128
#define CMID_MAX          256
/* Encoded: every byte may become three. */
#define WORKSPACE_ENC_MAX (WORKSPACE_MAX * 3)
#define SESSION_ENC_MAX   (SESSION_MAX * 3)
#define CMID_ENC_MAX      (CMID_MAX * 3)

/* FNV-1a-64 (offset 0xcbf29ce484222325, prime 0x100000001b3) of the raw bytes. */
uint64_t fnv1a64(const void *bytes, size_t len);
/* The partition of a workspace (its raw name, not encoded). */
uint32_t partition_of(const char *workspace, size_t len);

/* Percent-encodes all but A-Z a-z 0-9 . _ ~ - with upper-case hex. Returns the length written (a
 * NUL follows), or -ENOBUFS if `cap` is too small. */
int64_t percent_encode(const char *raw, size_t len, char *out, size_t cap);
/* Strict inverse; returns the length, -EINVAL for a broken escape or a byte that should have been
 * escaped, -ENOBUFS. */
int64_t percent_decode(const char *enc, size_t len, char *out, size_t cap);

/* 1 to 64 and 1 to 128 of [A-Za-z0-9._:~%-] (contract §7). */
bool workspace_name_is_valid(const char *name, size_t len);
bool session_name_is_valid(const char *name, size_t len);

#endif
