/* A segment in a temporary state directory, for the tests of common/shm: three workers, eight locks
 * each. */
#ifndef TESTS_UNIT_SHM_FIXTURE_H
#define TESTS_UNIT_SHM_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/shm/metrics.h"
#include "common/shm/shm.h"
#include "common/shm/shm_private.h"
#include "common/shm/wake.h"

#define FIXTURE_WORKERS    3U
#define FIXTURE_LOCKS      8U
#define FIXTURE_GENERATION UINT64_C(0xf39a00000000beef) /* 16 digits: the longest name */
#define WORKER(n)          (SHM_SLOT_WORKER_FIRST + (n))
#define API(n)             (SHM_SLOT_API_FIRST + (n))

struct fixture {
    char state_dir[32];
    struct shm *supervisor;
};

static const struct shm_sizes fixture_sizes = {
    .worker_slots = FIXTURE_WORKERS,
    .locks_per_worker = FIXTURE_LOCKS,
};

static inline void fixture_setup(struct fixture *f)
{
    memset(f, 0, sizeof(*f));
    (void)snprintf(f->state_dir, sizeof(f->state_dir), "%s", "/tmp/outboxd-shm-XXXXXX");
    assert_non_null(mkdtemp(f->state_dir));
    assert_int_equal(shm_create(&f->supervisor, f->state_dir, FIXTURE_GENERATION, &fixture_sizes),
                     0);
}

static inline void fixture_teardown(struct fixture *f)
{
    char locks[64];

    shm_destroy(&f->supervisor);
    (void)snprintf(locks, sizeof(locks), "%s/locks/%llx.0", f->state_dir,
                   (unsigned long long)FIXTURE_GENERATION);
    (void)unlink(locks);
    (void)snprintf(locks, sizeof(locks), "%s/locks", f->state_dir);
    (void)rmdir(locks);
    assert_int_equal(rmdir(f->state_dir), 0);
}

/* As a child would: a mapping of its own. */
static inline struct shm *fixture_attach(const struct fixture *f, uint32_t slot)
{
    struct shm *shm = NULL;

    assert_int_equal(shm_attach(&shm, shm_fd(f->supervisor), slot), 0);
    return shm;
}

#endif
