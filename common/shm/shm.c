/* The segment's life: made by the supervisor, attached by children, mapped read-only by outboxctl.
 * Sizes and offsets are checked here once and kept in private memory; nothing else in this folder
 * trusts a byte of the segment. */
#include "common/shm/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/core/keys.h"
#include "common/shm/metrics.h"
#include "common/shm/shm_fault.h"
#include "common/shm/shm_private.h"

#define SEGMENT_MODE     0640
#define SEGMENT_SIZE_MAX (UINT64_C(4) << 30)

/* Both ends agree on every cell: the metrics table, the sizes of the parts, and a version for what
 * neither shows. */
static uint64_t layout_fingerprint(void)
{
    const uint64_t parts[] = {
        SHM_LAYOUT_VERSION,
        metrics_fingerprint(),
        sizeof(struct shm_header),
        sizeof(struct shm_process_cells),
        sizeof(struct shm_lock_cells),
        sizeof(struct shm_ring),
        sizeof(struct shm_target_cell),
        sizeof(struct metrics_block),
        SHM_RINGS_PER_WORKER,
        SHM_SLOT_WORKER_FIRST,
        SHM_LOCK_WORKSPACE_WORDS,
        SHM_TARGETS,
    };

    return fnv1a64(parts, sizeof(parts));
}

int shm_compute_parts(const struct shm_sizes *sizes, struct shm_parts *ret)
{
    if (sizes->worker_slots < 1 || sizes->worker_slots > SHM_WORKER_SLOTS_MAX ||
        sizes->locks_per_worker > SHM_LOCKS_MAX) {
        return -EINVAL;
    }
    const uint64_t slots = SHM_SLOT_WORKER_FIRST + (uint64_t)sizes->worker_slots;
    const uint64_t locks = (uint64_t)sizes->worker_slots * sizes->locks_per_worker;
    const uint64_t rings = (uint64_t)sizes->worker_slots * SHM_RINGS_PER_WORKER;

    /* Every part is a multiple of a cache line long, so the next one starts on a line. */
    ret->processes = sizeof(struct shm_header);
    ret->metrics = ret->processes + slots * sizeof(struct shm_process_cells);
    ret->locks = ret->metrics + slots * sizeof(struct metrics_block);
    ret->rings = ret->locks + locks * sizeof(struct shm_lock_cells);
    ret->targets = ret->rings + rings * sizeof(struct shm_ring);
    ret->total_bytes = ret->targets + SHM_TARGETS * sizeof(struct shm_target_cell);
    return 0;
}

/* What an attaching process keeps of its own; frees nothing on failure (the caller destroys `shm`).
 */
static int take_slot(struct shm *shm, uint32_t my_slot)
{
    shm->my_slot = my_slot;
    if (my_slot == SHM_NO_SLOT) {
        return 0;
    }
    shm->metrics.block = shm_metrics_at(shm, my_slot);
    metrics_reset_gauges(&shm->metrics);
    if (!shm_is_worker_slot(shm, my_slot)) {
        return 0;
    }
    shm->free_locks = calloc(shm->locks_per_worker + 1UL, sizeof(*shm->free_locks));
    shm->lock_in_use = calloc(shm->locks_per_worker + 1UL, sizeof(*shm->lock_in_use));
    if (!shm->free_locks || !shm->lock_in_use) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < shm->locks_per_worker; i++) {
        shm->free_locks[i] = shm->locks_per_worker - 1 - i; /* index 0 is taken first */
    }
    shm->free_lock_count = shm->locks_per_worker;
    lock_table_reset(shm, my_slot);
    return 0;
}

static struct shm *shm_alloc(void)
{
    struct shm *shm = calloc(1, sizeof(*shm));

    if (shm) {
        shm->fd = shm->guard_fd = -1;
        shm->my_slot = SHM_NO_SLOT;
    }
    return shm;
}

static int map_bytes(struct shm *shm, int fd, uint64_t size_bytes, int protection)
{
    void *base = mmap(NULL, size_bytes, protection, MAP_SHARED, fd, 0);

    if (base == MAP_FAILED) {
        return -errno;
    }
    shm->base = base;
    shm->size_bytes = size_bytes;
    if (shm->fd < 0 && protection & PROT_WRITE) {
        shm->guard_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0); /* without one: only memory of our own */
    }
    shm_fault_guard(base, size_bytes, shm->fd >= 0 ? shm->fd : shm->guard_fd, protection);
    return 0;
}

static void write_header(struct shm *shm)
{
    struct shm_header *header = (struct shm_header *)(void *)shm->base;

    header->fingerprint = layout_fingerprint();
    header->size_bytes = shm->size_bytes;
    header->generation = shm->generation;
    header->created_boot_ms = shm->created_boot_ms;
    header->worker_slots = shm->worker_slots;
    header->locks_per_worker = shm->locks_per_worker;
    /* Last: who sees the magic sees all of the header (and zeroes behind it). */
    atomic_store_explicit(&header->magic, SHM_MAGIC, memory_order_release);
}

void shm_mend(struct shm *shm)
{
    /* Written anew without looking: what stands there may change between a look and a write. */
    write_header(shm);
}

/* Space really reserved: a full /dev/shm is told now, not by SIGBUS at the first write. */
static int reserve(int fd, uint64_t size_bytes)
{
    int err;

    /* Mode again: the umask may have taken the group's right to read. */
    if (fchmod(fd, SEGMENT_MODE) < 0) {
        return -errno;
    }
    do {
        err = posix_fallocate(fd, 0, (off_t)size_bytes);
    } while (err == EINTR);
    return -err;
}

int shm_create(struct shm **ret, const char *state_dir, uint64_t generation,
               const struct shm_sizes *sizes)
{
    struct shm_parts parts;
    int err = shm_compute_parts(sizes, &parts);
    if (err < 0) {
        return err;
    }
    struct shm *shm = shm_alloc();
    if (!shm) {
        return -ENOMEM;
    }
    char name[SHM_NAME_MAX];
    shm_format_name(state_dir, generation, name);
    shm->fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, SEGMENT_MODE); /* CLOEXEC by POSIX */
    if (shm->fd < 0) {
        err = -errno;
        goto fail;
    }
    memcpy(shm->name, name, sizeof(name)); /* only now is it ours to unlink */
    shm->parts = parts;
    shm->generation = generation;
    shm->worker_slots = sizes->worker_slots;
    shm->locks_per_worker = sizes->locks_per_worker;
    err = reserve(shm->fd, parts.total_bytes);
    if (err < 0) {
        goto fail;
    }
    err = map_bytes(shm, shm->fd, parts.total_bytes, PROT_READ | PROT_WRITE);
    if (err < 0) {
        goto fail;
    }
    err = take_slot(shm, SHM_SLOT_SUPERVISOR);
    if (err < 0) {
        goto fail;
    }
    shm->created_boot_ms = (uint64_t)clock_boot_ms();
    write_header(shm);
    *ret = shm;
    return 0;

fail:
    shm_destroy(&shm);
    return err;
}

/* Reads each field of the header once and keeps what held. */
static int check_header(struct shm *shm, uint64_t *ret_created_boot_ms)
{
    assert(shm->base); /* map_bytes succeeded */
    const struct shm_header *header = (const struct shm_header *)(const void *)shm->base;

    if (atomic_load_explicit(&header->magic, memory_order_acquire) != SHM_MAGIC) {
        return -EPROTO;
    }
    const volatile struct shm_header *once =
        header; /* one load per field: somebody may be writing there */
    const struct shm_sizes sizes = {
        .worker_slots = once->worker_slots,
        .locks_per_worker = once->locks_per_worker,
    };
    struct shm_parts parts;
    if (once->fingerprint != layout_fingerprint() || shm_compute_parts(&sizes, &parts) < 0 ||
        parts.total_bytes != shm->size_bytes || once->size_bytes != shm->size_bytes) {
        return -EPROTO;
    }
    shm->parts = parts;
    shm->worker_slots = sizes.worker_slots;
    shm->locks_per_worker = sizes.locks_per_worker;
    shm->generation = once->generation;
    if (ret_created_boot_ms) {
        *ret_created_boot_ms = once->created_boot_ms;
    }
    return 0;
}

int shm_map(struct shm **ret, int fd, uint32_t my_slot, uint64_t *ret_created_boot_ms)
{
    struct stat st;
    if (fstat(fd, &st) < 0) {
        return -errno;
    }
    if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(struct shm_header) ||
        (uint64_t)st.st_size > SEGMENT_SIZE_MAX) {
        return -EPROTO;
    }
    struct shm *shm = shm_alloc();
    if (!shm) {
        return -ENOMEM;
    }
    const int protection = my_slot == SHM_NO_SLOT ? PROT_READ : PROT_READ | PROT_WRITE;
    int err = map_bytes(shm, fd, (uint64_t)st.st_size, protection);
    if (err < 0) {
        goto fail;
    }
    err = check_header(shm, ret_created_boot_ms);
    if (err < 0) {
        goto fail;
    }
    if (my_slot != SHM_NO_SLOT && my_slot >= shm_slot_count(shm)) {
        err = -EINVAL;
        goto fail;
    }
    err = take_slot(shm, my_slot);
    if (err < 0) {
        goto fail;
    }
    *ret = shm;
    return 0;

fail:
    shm_destroy(&shm);
    return err;
}

int shm_attach(struct shm **ret, int fd, uint32_t my_slot)
{
    if (my_slot == SHM_NO_SLOT) {
        return -EINVAL;
    }
    return shm_map(ret, fd, my_slot, NULL);
}

int shm_adopt(struct shm **ret, int fd, const char *state_dir)
{
    uint64_t created_boot_ms = 0;
    struct shm *shm = NULL;
    const int err = shm_map(&shm, fd, SHM_SLOT_SUPERVISOR, &created_boot_ms);

    if (err < 0) {
        return err;
    }
    assert(shm); /* shm_map succeeded */
    shm->fd = fd;
    shm->created_boot_ms = created_boot_ms;
    shm_format_name(state_dir, shm->generation, shm->name);
    *ret = shm;
    return 0;
}

void shm_destroy(struct shm **shm_pointer)
{
    struct shm *shm = *shm_pointer;

    if (!shm) {
        return;
    }
    *shm_pointer = NULL;
    if (shm->base) {
        shm_fault_unguard(shm->base);
        (void)munmap(shm->base, shm->size_bytes); /* can't fail for a mapping of our own */
    }
    if (shm->name[0]) {
        (void)shm_unlink(shm->name); /* gone already: just as well */
    }
    if (shm->fd >= 0) {
        close(shm->fd);
    }
    if (shm->guard_fd >= 0) {
        close(shm->guard_fd);
    }
    free(shm->free_locks);
    free(shm->lock_in_use);
    free(shm);
}

int shm_fd(const struct shm *shm)
{
    return shm->fd;
}

uint64_t shm_generation(const struct shm *shm)
{
    return shm->generation;
}

uint32_t shm_my_slot(const struct shm *shm)
{
    return shm->my_slot;
}

uint32_t shm_worker_slots(const struct shm *shm)
{
    return shm->worker_slots;
}

uint32_t shm_slot_count(const struct shm *shm)
{
    return SHM_SLOT_WORKER_FIRST + shm->worker_slots;
}

struct metrics *metrics_of(struct shm *shm)
{
    return shm->metrics.block ? &shm->metrics : NULL;
}
