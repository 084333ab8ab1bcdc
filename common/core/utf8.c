/* A strict UTF-8 reader (RFC 3629). One table-free function: length from the lead byte, then the
 * value's range. */
#include "common/core/utf8.h"

size_t utf8_next(const char *bytes, size_t len, uint32_t *ret)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800,
                                        0x10000}; /* by length: below is overlong */

    if (len == 0) {
        return 0;
    }
    unsigned char lead = (unsigned char)bytes[0];
    if (lead < 0x80) {
        *ret = lead;
        return 1;
    }
    size_t n = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc0 || lead >= 0xf8 || len < n) {
        return 0;
    }
    uint32_t code = lead & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        unsigned char c = (unsigned char)bytes[i];

        if ((c & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (c & 0x3fu);
    }
    if (code < smallest[n] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
        return 0;
    }
    *ret = code;
    return n;
}

bool utf8_is_valid(const char *bytes, size_t len)
{
    uint32_t code;

    while (len > 0) {
        size_t n = utf8_next(bytes, len, &code);

        if (n == 0) {
            return false;
        }
        bytes += n;
        len -= n;
    }
    return true;
}
