/* The segment's life and its process table: who may map what, and what is refused. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "common/base/clock.h"
#include "common/base/inherit.h"
#include "tests/unit/shm_fixture.h"

static void a_segment_is_made_once_with_its_space_and_mode(void **state)
{
    struct fixture f;
    struct shm *second = NULL;
    struct stat st;

    (void)state;
    fixture_setup(&f);
    assert_int_equal(shm_create(&second, f.state_dir, FIXTURE_GENERATION, &fixture_sizes), -EEXIST);
    assert_null(second);
    assert_int_equal(fstat(shm_fd(f.supervisor), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal((uint64_t)st.st_size, f.supervisor->parts.total_bytes);
    assert_true((uint64_t)st.st_blocks * 512 >=
                f.supervisor->parts.total_bytes); /* reserved, not promised */
    assert_true(fcntl(shm_fd(f.supervisor), F_GETFD) & FD_CLOEXEC);
    assert_int_equal(shm_generation(f.supervisor), FIXTURE_GENERATION);
    assert_int_equal(shm_slot_count(f.supervisor), 4 + FIXTURE_WORKERS);
    fixture_teardown(&f);
}

static void the_failed_second_creator_leaves_the_first_ones_name(void **state)
{
    struct fixture f;
    struct shm *second = NULL;
    char name[SHM_NAME_MAX];

    (void)state;
    fixture_setup(&f);
    assert_int_equal(shm_create(&second, f.state_dir, FIXTURE_GENERATION, &fixture_sizes), -EEXIST);
    shm_format_name(f.state_dir, FIXTURE_GENERATION, name);
    const int fd = shm_open(name, O_RDONLY, 0);
    assert_true(fd >= 0);
    close(fd);
    fixture_teardown(&f);
    assert_int_equal(shm_open(name, O_RDONLY, 0), -1); /* the creator unlinked it */
    assert_int_equal(errno, ENOENT);
}

static void impossible_sizes_are_refused(void **state)
{
    const struct shm_sizes bad[] = {
        {.worker_slots = 0, .locks_per_worker = 1},
        {.worker_slots = SHM_WORKER_SLOTS_MAX + 1, .locks_per_worker = 1},
        {.worker_slots = 1, .locks_per_worker = SHM_LOCKS_MAX + 1},
        {.worker_slots = UINT32_MAX, .locks_per_worker = UINT32_MAX},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct shm *shm = NULL;
        assert_int_equal(shm_create(&shm, "/tmp", 1, &bad[i]), -EINVAL);
        assert_null(shm);
    }
}

static void the_parts_do_not_overlap_at_the_smallest_and_largest_sizes(void **state)
{
    const struct shm_sizes sizes[] = {
        {.worker_slots = 1, .locks_per_worker = 0},
        {.worker_slots = SHM_WORKER_SLOTS_MAX, .locks_per_worker = SHM_LOCKS_MAX},
    };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct shm_parts p;
        const uint64_t slots = 4 + sizes[i].worker_slots;
        assert_int_equal(shm_compute_parts(&sizes[i], &p), 0);
        assert_true(p.processes >= sizeof(struct shm_header));
        assert_true(p.metrics >= p.processes + slots * sizeof(struct shm_process_cells));
        assert_true(p.locks >= p.metrics + slots * sizeof(struct metrics_block));
        assert_true(p.rings >=
                    p.locks + (uint64_t)sizes[i].worker_slots * sizes[i].locks_per_worker * 256);
        assert_true(p.total_bytes >=
                    p.rings + (uint64_t)sizes[i].worker_slots * 7 * sizeof(struct shm_ring));
        assert_int_equal(p.metrics % 64 + p.locks % 64 + p.rings % 64 + p.total_bytes % 64, 0);
    }
}

static void a_child_attaches_in_its_slot_and_not_outside(void **state)
{
    struct fixture f;
    struct shm *shm = NULL;

    (void)state;
    fixture_setup(&f);
    shm = fixture_attach(&f, WORKER(2));
    assert_int_equal(shm_my_slot(shm), WORKER(2));
    assert_int_equal(shm_generation(shm), FIXTURE_GENERATION);
    assert_int_equal(shm_fd(shm), -1);
    shm_destroy(&shm);
    assert_null(shm);
    assert_int_equal(shm_attach(&shm, shm_fd(f.supervisor), WORKER(FIXTURE_WORKERS)), -EINVAL);
    assert_int_equal(shm_attach(&shm, shm_fd(f.supervisor), UINT32_MAX), -EINVAL);
    assert_int_equal(shm_attach(&shm, -1, 1), -EBADF);
    assert_null(shm);
    fixture_teardown(&f);
}

/* Writes `value` over the header's field, expects attach to refuse, and puts the field back. */
static void assert_refused_with(struct fixture *f, size_t offset, size_t size, uint64_t value)
{
    unsigned char *at = f->supervisor->base + offset;
    unsigned char before[8];
    struct shm *shm = NULL;

    memcpy(before, at, size);
    memcpy(at, &value, size);
    assert_int_equal(shm_attach(&shm, shm_fd(f->supervisor), 1), -EPROTO);
    assert_null(shm);
    memcpy(at, before, size);
    assert_int_equal(shm_attach(&shm, shm_fd(f->supervisor), 1), 0);
    shm_destroy(&shm);
}

static void a_header_that_does_not_fit_the_file_is_refused(void **state)
{
    struct fixture f;

    (void)state;
    fixture_setup(&f);
    assert_refused_with(&f, offsetof(struct shm_header, magic), 8, 0);
    assert_refused_with(&f, offsetof(struct shm_header, fingerprint), 8, 1);
    assert_refused_with(&f, offsetof(struct shm_header, size_bytes), 8, UINT64_MAX);
    assert_refused_with(&f, offsetof(struct shm_header, worker_slots), 4, FIXTURE_WORKERS + 1);
    assert_refused_with(&f, offsetof(struct shm_header, worker_slots), 4, UINT32_MAX);
    assert_refused_with(&f, offsetof(struct shm_header, worker_slots), 4, 0);
    assert_refused_with(&f, offsetof(struct shm_header, locks_per_worker), 4, FIXTURE_LOCKS - 1);
    assert_refused_with(&f, offsetof(struct shm_header, locks_per_worker), 4, UINT32_MAX);
    fixture_teardown(&f);
}

static void a_file_that_is_too_short_is_refused_before_it_is_touched(void **state)
{
    struct fixture f;
    struct shm *shm = NULL;
    struct shm_header header;

    (void)state;
    fixture_setup(&f);
    memcpy(&header, f.supervisor->base, sizeof(header));
    const int fd = memfd_create("short", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(shm_attach(&shm, fd, 1), -EPROTO); /* empty */
    assert_int_equal(write(fd, &header, sizeof(header)), sizeof(header));
    assert_int_equal(shm_attach(&shm, fd, 1), -EPROTO); /* a true header and nothing behind it */
    assert_int_equal(ftruncate(fd, (off_t)f.supervisor->size_bytes - 1), 0);
    assert_int_equal(shm_attach(&shm, fd, 1), -EPROTO);
    assert_int_equal(ftruncate(fd, (off_t)f.supervisor->size_bytes), 0);
    assert_int_equal(shm_attach(&shm, fd, 1), 0);
    shm_destroy(&shm);
    close(fd);
    int pipe_fds[2];
    assert_int_equal(pipe(pipe_fds), 0);
    assert_int_equal(shm_attach(&shm, pipe_fds[0], 1), -EPROTO); /* not even a file */
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    fixture_teardown(&f);
}

static void what_is_written_after_attach_moves_nothing(void **state)
{
    struct fixture f;

    (void)state;
    fixture_setup(&f);
    struct shm *worker = fixture_attach(&f, WORKER(0));
    memset(f.supervisor->base, 0xff, sizeof(struct shm_header));
    assert_int_equal(shm_worker_slots(worker), FIXTURE_WORKERS);
    assert_int_equal(shm_slot_count(f.supervisor), 4 + FIXTURE_WORKERS);
    shm_destroy(&worker);
    fixture_teardown(&f);
}

static void readers_find_the_newest_generation_that_lives(void **state)
{
    struct fixture f;
    struct shm *newer = NULL;
    struct shm *found = NULL;

    (void)state;
    fixture_setup(&f);
    const int lock = inherit_lock_slot(f.state_dir, FIXTURE_GENERATION, SHM_SLOT_SUPERVISOR);
    assert_true(lock >= 0);
    assert_int_equal(shm_create(&newer, f.state_dir, 2, &fixture_sizes),
                     0); /* nobody holds its lock */
    assert_int_equal(shm_attach_readonly(&found, f.state_dir), 0);
    assert_int_equal(shm_generation(found), FIXTURE_GENERATION);
    assert_int_equal(shm_my_slot(found), UINT32_MAX);
    assert_null(metrics_of(found));
    /* A read-only mapping is only read: none of these writes. */
    assert_false(shm_hint_push(found, WORKER(0), 1));
    assert_int_equal(shm_hint_drain(found, NULL, NULL), 0);
    assert_int_equal(lock_table_put(found, &(struct shm_lock){.workspace = "w", .session = "s"}),
                     -EINVAL);
    shm_process_begin(found, 1, SHM_ROLE_API, 1, 1);
    shm_process_end(found, 1);
    shm_heartbeat(found);
    shm_destroy(&found);
    close(lock);
    /* Its supervisor is dead now (the lock is free); of the other one nothing is known. */
    assert_int_equal(shm_attach_readonly(&found, f.state_dir), 0);
    assert_int_equal(shm_generation(found), 2);
    shm_destroy(&found);
    shm_destroy(&newer);
    assert_int_equal(shm_attach_readonly(&found, f.state_dir), -ENOENT);
    fixture_teardown(&f);
    assert_int_equal(shm_attach_readonly(&found, "/tmp/outboxd-no-such-directory"), -ENOENT);
    assert_null(found);
}

static void a_state_directory_is_the_same_however_it_is_written(void **state)
{
    char a[SHM_NAME_MAX];
    char b[SHM_NAME_MAX];

    (void)state;
    shm_format_name("/tmp", 10, a);
    shm_format_name("/tmp/../tmp/", 10, b);
    assert_string_equal(a, b);
    shm_format_name("/", 10, b);
    assert_string_not_equal(a, b);
    shm_format_name("/tmp", UINT64_MAX, a);
    assert_true(strlen(a) == strlen("/outboxd.") + 16 + 1 + 16);
}

static bool is_generation(uint64_t generation, void *arg)
{
    return generation == *(const uint64_t *)arg;
}

static void only_segments_of_dead_generations_are_unlinked(void **state)
{
    struct fixture f;
    struct shm *dead = NULL;
    uint64_t generation = UINT64_C(0xdead);
    char foreign[SHM_NAME_MAX + 8];
    char name[SHM_NAME_MAX];

    (void)state;
    fixture_setup(&f);
    assert_int_equal(shm_create(&dead, f.state_dir, generation, &fixture_sizes), 0);
    shm_format_name(f.state_dir, generation, name);
    (void)snprintf(foreign, sizeof(foreign), "%sx", name); /* looks like one of ours, but is none */
    const int fd = shm_open(foreign, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(shm_unlink_stale(f.state_dir, is_generation, &generation), 1);
    assert_int_equal(shm_unlink_stale(f.state_dir, is_generation, &generation), 0);
    assert_int_equal(shm_open(name, O_RDONLY, 0), -1);
    assert_int_equal(shm_unlink(foreign), 0);
    shm_destroy(&dead);
    shm_format_name(f.state_dir, FIXTURE_GENERATION, name);
    const int alive = shm_open(name, O_RDONLY, 0);
    assert_true(alive >= 0);
    close(alive);
    fixture_teardown(&f);
}

static void a_process_is_seen_by_others_from_begin_to_end(void **state)
{
    struct fixture f;
    struct shm_process p;

    (void)state;
    fixture_setup(&f);
    struct shm *worker = fixture_attach(&f, WORKER(1));
    assert_int_equal(shm_process_read(worker, WORKER(1), &p), -ENOENT);
    shm_process_begin(f.supervisor, WORKER(1), SHM_ROLE_WORKER, 4711, UINT64_C(0x8c21));
    assert_int_equal(shm_process_read(worker, WORKER(1), &p), 0);
    assert_int_equal(p.role, SHM_ROLE_WORKER);
    assert_int_equal(p.state, SHM_PROCESS_STARTING);
    assert_int_equal(p.pid, 4711);
    assert_int_equal(p.incarnation, 0x8c21);
    assert_int_equal(p.generation, FIXTURE_GENERATION);
    assert_true(p.started_mono_ms > 0 && p.started_mono_ms <= clock_mono_ms());
    shm_process_at(f.supervisor, WORKER(1))->heartbeat_mono_ms = 1;
    shm_heartbeat(worker);
    shm_process_set_state(f.supervisor, WORKER(1), SHM_PROCESS_READY);
    assert_int_equal(shm_process_read(f.supervisor, WORKER(1), &p), 0);
    assert_int_equal(p.state, SHM_PROCESS_READY);
    assert_true(p.heartbeat_mono_ms >= p.started_mono_ms);
    shm_process_end(f.supervisor, WORKER(1));
    assert_int_equal(shm_process_read(f.supervisor, WORKER(1), &p), 0);
    assert_int_equal(p.state, SHM_PROCESS_DOWN);
    assert_int_equal(p.pid, 4711); /* who it was can still be told */
    shm_destroy(&worker);
    fixture_teardown(&f);
}

static void what_keeps_a_process_away_is_seen_by_others(void **state)
{
    struct fixture f;
    struct shm_process p;
    struct shm_restart restart = {.deaths = SHM_LOOP_DEATHS - 1,
                                  .last_death = LABEL_DEATH_REASON_SIGNAL,
                                  .next_start_mono_ms = 123456};

    (void)state;
    fixture_setup(&f);
    struct shm *api = fixture_attach(&f, API(0));
    shm_process_begin(f.supervisor, WORKER(0), SHM_ROLE_WORKER, 4711, 1);
    shm_process_end(f.supervisor, WORKER(0));
    shm_process_set_state(f.supervisor, WORKER(0), SHM_PROCESS_WAITING);
    shm_process_set_restart(f.supervisor, WORKER(0), &restart);
    assert_int_equal(shm_process_read(api, WORKER(0), &p), 0);
    assert_int_equal(p.state, SHM_PROCESS_WAITING);
    assert_int_equal(p.restart.deaths, SHM_LOOP_DEATHS - 1);
    assert_string_equal(shm_death_name(p.restart.last_death), "signal");
    assert_int_equal(p.restart.next_start_mono_ms, 123456);
    assert_false(shm_process_is_looping(&p));
    restart.deaths = SHM_LOOP_DEATHS;
    shm_process_set_restart(f.supervisor, WORKER(0), &restart);
    assert_int_equal(shm_process_read(api, WORKER(0), &p), 0);
    assert_true(shm_process_is_looping(&p));
    /* Until it has been healthy for a while. */
    shm_process_begin(f.supervisor, WORKER(0), SHM_ROLE_WORKER, 4712, 2);
    shm_process_set_state(f.supervisor, WORKER(0), SHM_PROCESS_READY);
    assert_int_equal(shm_process_read(api, WORKER(0), &p), 0);
    assert_true(shm_process_is_looping(&p));
    /* Nobody wants it any more: it is not missed. */
    shm_process_end(f.supervisor, WORKER(0));
    assert_int_equal(shm_process_read(api, WORKER(0), &p), 0);
    assert_false(shm_process_is_looping(&p));
    restart.deaths = 1;
    shm_process_set_restart(f.supervisor, WORKER(0), &restart);
    shm_process_set_state(f.supervisor, WORKER(0), SHM_PROCESS_FAILED);
    assert_int_equal(shm_process_read(api, WORKER(0), &p), 0);
    assert_true(shm_process_is_looping(&p));
    shm_destroy(&api);
    fixture_teardown(&f);
}

static void slots_that_do_not_exist_are_ignored(void **state)
{
    struct fixture f;
    struct shm_process p = {.pid = 42};

    (void)state;
    fixture_setup(&f);
    shm_process_begin(f.supervisor, WORKER(FIXTURE_WORKERS), SHM_ROLE_WORKER, 1, 1);
    shm_process_set_state(f.supervisor, UINT32_MAX, SHM_PROCESS_READY);
    shm_process_end(f.supervisor, UINT32_MAX);
    shm_process_set_restart(f.supervisor, UINT32_MAX, &p.restart);
    assert_int_equal(shm_process_read(f.supervisor, UINT32_MAX, &p), -ENOENT);
    assert_int_equal(p.pid, 42);
    assert_int_equal(shm_slot_role(0), SHM_ROLE_SUPERVISOR);
    assert_int_equal(shm_slot_role(3), SHM_ROLE_API);
    assert_int_equal(shm_slot_role(4), SHM_ROLE_WORKER);
    assert_int_equal(shm_slot_role(63), SHM_ROLE_WORKER);
    assert_int_equal(shm_slot_role(64), SHM_ROLE_NONE);
    fixture_teardown(&f);
}

static void a_process_entry_of_garbage_is_told_from_a_true_one(void **state)
{
    struct fixture f;
    struct shm_process p = {.pid = 42};

    (void)state;
    fixture_setup(&f);
    shm_process_begin(f.supervisor, 1, SHM_ROLE_API, 7, 7);
    struct shm_process_cells *cells = shm_process_at(f.supervisor, 1);
    cells->state = 1000;
    assert_int_equal(shm_process_read(f.supervisor, 1, &p), -EAGAIN);
    cells->state = 2;
    cells->words[0] = 99;
    assert_int_equal(shm_process_read(f.supervisor, 1, &p), -EAGAIN);
    cells->words[0] = SHM_ROLE_API;
    cells->seq = 1; /* as if a writer had died half way */
    assert_int_equal(shm_process_read(f.supervisor, 1, &p), -EAGAIN);
    assert_int_equal(p.pid, 42);
    shm_process_begin(f.supervisor, 1, SHM_ROLE_API, 8, 8); /* the next one puts it right */
    assert_int_equal(shm_process_read(f.supervisor, 1, &p), 0);
    assert_int_equal(p.pid, 8);
    cells->deaths = cells->last_death = cells->next_start_mono_ms = UINT64_MAX;
    assert_int_equal(shm_process_read(f.supervisor, 1, &p), 0);
    assert_int_equal(p.restart.deaths, UINT32_MAX);
    assert_true(p.restart.last_death < LABELS_DEATH_REASON && p.restart.next_start_mono_ms >= 0);
    fixture_teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_segment_is_made_once_with_its_space_and_mode),
        cmocka_unit_test(the_failed_second_creator_leaves_the_first_ones_name),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(the_parts_do_not_overlap_at_the_smallest_and_largest_sizes),
        cmocka_unit_test(a_child_attaches_in_its_slot_and_not_outside),
        cmocka_unit_test(a_header_that_does_not_fit_the_file_is_refused),
        cmocka_unit_test(a_file_that_is_too_short_is_refused_before_it_is_touched),
        cmocka_unit_test(what_is_written_after_attach_moves_nothing),
        cmocka_unit_test(readers_find_the_newest_generation_that_lives),
        cmocka_unit_test(a_state_directory_is_the_same_however_it_is_written),
        cmocka_unit_test(only_segments_of_dead_generations_are_unlinked),
        cmocka_unit_test(a_process_is_seen_by_others_from_begin_to_end),
        cmocka_unit_test(what_keeps_a_process_away_is_seen_by_others),
        cmocka_unit_test(slots_that_do_not_exist_are_ignored),
        cmocka_unit_test(a_process_entry_of_garbage_is_told_from_a_true_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
