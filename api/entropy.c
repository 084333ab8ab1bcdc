/* Pages of random bytes. */
#include "api/entropy.h"

#include <sodium.h>

#include "common/base/clock.h"

#define ID_BYTES 10

struct entry_id entropy_entry_id(struct entropy *entropy)
{
    if (entropy->left < ID_BYTES) {
        randombytes_buf(entropy->page, sizeof(entropy->page));
        entropy->left = sizeof(entropy->page);
    }
    entropy->left -= ID_BYTES;
    return entry_id_make(clock_wall_ms(), entropy->page + entropy->left);
}
