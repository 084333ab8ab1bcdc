/* Percent-encoding, partitions and name rules of the store's keys.
 * Decoding is strict: exactly the texts that percent_encode writes are accepted, so that no two
 * texts name one key. */
#include "common/core/keys.h"

#include <errno.h>

uint64_t fnv1a64(const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    uint64_t hash = 0xcbf29ce484222325u;

    for (size_t i = 0; i < len; i++) {
        hash ^= p[i];
        hash *= 0x100000001b3u;
    }
    return hash;
}

uint32_t partition_of(const char *workspace, size_t len)
{
    return (uint32_t)(fnv1a64(workspace, len) % PARTITION_COUNT);
}

static bool is_alphanumeric(unsigned char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool stands_for_itself(unsigned char c)
{
    return is_alphanumeric(c) || c == '.' || c == '_' || c == '~' || c == '-';
}

int64_t percent_encode(const char *raw, size_t len, char *out, size_t cap)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)raw[i];
        size_t need = stands_for_itself(c) ? 1 : 3;

        if (n + need >= cap) { /* the NUL at the end has its place too */
            return -ENOBUFS;
        }
        if (need == 1) {
            out[n++] = (char)c;
        } else {
            out[n++] = '%';
            out[n++] = digits[c >> 4];
            out[n++] = digits[c & 15];
        }
    }
    if (n >= cap) {
        return -ENOBUFS;
    }
    out[n] = '\0';
    return (int64_t)n;
}

static int upper_hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return -1;
}

/* The byte that an escape at `enc` stands for, or -1 if it is none that percent_encode writes. */
static int escaped_byte(const char *enc, size_t left)
{
    if (left < 3) {
        return -1;
    }
    int high = upper_hex_value(enc[1]);
    int low = upper_hex_value(enc[2]);

    if (high < 0 || low < 0) {
        return -1;
    }
    int byte = high * 16 + low;
    return stands_for_itself((unsigned char)byte) ? -1 : byte;
}

int64_t percent_decode(const char *enc, size_t len, char *out, size_t cap)
{
    size_t n = 0;

    for (size_t i = 0; i < len; n++) {
        unsigned char c = (unsigned char)enc[i];

        if (n >= cap) {
            return -ENOBUFS;
        }
        if (stands_for_itself(c)) {
            out[n] = (char)c;
            i++;
            continue;
        }
        int byte = c == '%' ? escaped_byte(enc + i, len - i) : -1;
        if (byte < 0) {
            return -EINVAL;
        }
        out[n] = (char)byte;
        i += 3;
    }
    if (n >= cap) {
        return -ENOBUFS;
    }
    out[n] = '\0';
    return (int64_t)n;
}

static bool name_is_valid(const char *name, size_t len, size_t max)
{
    if (len < 1 || len > max) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)name[i];

        if (!stands_for_itself(c) && c != ':' && c != '%') {
            return false;
        }
    }
    return true;
}

bool workspace_name_is_valid(const char *name, size_t len)
{
    return name_is_valid(name, len, WORKSPACE_MAX);
}

bool session_name_is_valid(const char *name, size_t len)
{
    return name_is_valid(name, len, SESSION_MAX);
}
