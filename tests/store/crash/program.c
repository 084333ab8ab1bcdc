/* The table of programs. */
#include "tests/store/crash/program.h"

#include <string.h>

#include "tests/store/crash/scene.h"

static void run_worker(struct hand *hand, const struct program *program)
{
    (void)work(hand, &program->plan, NULL);
}

static void run_sweeper(struct hand *hand, const struct program *program)
{
    (void)program;
    (void)work_sweep(hand);
}

static void run_supervisor(struct hand *hand, const struct program *program)
{
    (void)hand_recover(hand, program->text);
}

/* A slow worker's lock ends by its time; what stands past it is anybody's. */
static void run_lock_end(struct hand *hand, const struct program *program)
{
    hand->pass_time(hand, LOCK_TTL_MS + 1);
    if (!hand->is_dead) {
        (void)hand_recover(hand, program->text);
    }
}

static void run_audit(struct hand *hand, const struct program *program)
{
    uint32_t mended = 0;

    (void)program;
    if (hand_audit(hand, &mended) && mended > 0) {
        journal_fail(hand->journal, "an audit mended %u places", mended);
    }
}

static void run_hour(struct hand *hand, const struct program *program)
{
    (void)program;
    hand->pass_time(hand, AN_HOUR_MS);
}

static void run_person(struct hand *hand, const struct program *program)
{
    (void)hand_operate(hand, program->operation, program->id, program->text);
}

static void run_echo(struct hand *hand, const struct program *program)
{
    (void)hand_echo(hand, program->id, program->message.session, program->message.cmid,
                    program->text);
}

static void run_walk(struct hand *hand, const struct program *program)
{
    (void)hand_walk(hand, program->walk);
}

static void run_pause(struct hand *hand, const struct program *program)
{
    (void)hand_pause(hand, program->is_paused);
}

static void run_client(struct hand *hand, const struct program *program)
{
    (void)hand_accept(hand, &program->message);
}

#define WORKER(name_, ...)                                                                         \
    {                                                                                              \
        .name = (name_), .run = run_worker, .plan = {.claims = 2, __VA_ARGS__ }                    \
    }
#define PERSON(name_, operation_, id_, patch_)                                                     \
    {                                                                                              \
        .name = (name_), .run = run_person, .operation = RESOLVER_##operation_, .id = (id_),       \
        .text = (patch_)                                                                           \
    }
#define ECHO(name_, id_, session_, cmid_, result_)                                                 \
    {                                                                                              \
        .name = (name_), .run = run_echo, .id = (id_), .text = (result_), .message = {             \
            .session = (session_),                                                                 \
            .cmid = (cmid_)                                                                        \
        }                                                                                          \
    }
#define WALK(name_, kind_)                                                                         \
    {                                                                                              \
        .name = (name_), .run = run_walk, .walk = WALK_##kind_                                     \
    }
#define CLIENT(name_, cmid_, kind_, session_, payload_, waits_for_)                                \
    {                                                                                              \
        .name = (name_), .run = run_client, .message = {                                           \
            (session_),                                                                            \
            "",                                                                                    \
            (cmid_),                                                                               \
            (kind_),                                                                               \
            (payload_),                                                                            \
            (waits_for_)                                                                           \
        }                                                                                          \
    }

const struct program programs[] = {
    WORKER("work", .first = TARGET_CONFIRMS),
    WORKER("work-singly", .is_single = true),
    WORKER("work-answer-lost", .first = TARGET_ANSWER_LOST),
    WORKER("work-request-lost", .first = TARGET_REQUEST_LOST),
    WORKER("work-refused", .first = TARGET_REFUSES),
    WORKER("work-unreached", .first = TARGET_UNREACHED),
    WORKER("work-failed", .first = TARGET_FAILS_IT),
    WORKER("work-conflict", .first = TARGET_CONFLICTS),
    WORKER("work-owned", .first = TARGET_OWNS_IT),
    WORKER("work-blind", .is_blind = true),
    WORKER("work-gives-back", .gives_back = true),
    WORKER("work-baseline", .notes_baseline = true, .is_single = true),
    {.name = "sweep", .run = run_sweeper},
    {.name = "recover", .run = run_supervisor, .text = SCENE_DEAD_PREFIX},
    {.name = "lock-ends", .run = run_lock_end, .text = "nobody."},
    {.name = "audit", .run = run_audit},
    {.name = "hour", .run = run_hour},
    PERSON("retry-a", RETRY, "a", ""),
    PERSON("retry-b", RETRY, "b", ""),
    PERSON("edit-a", EDIT, "a", "{\"v\":2}"),
    PERSON("edit-b", EDIT, "b", "{\"v\":3}"),
    PERSON("remove-a", REMOVE, "a", ""),
    PERSON("remove-b", REMOVE, "b", ""),
    ECHO("echo-a", "a", "", "", ""),
    ECHO("echo-a-result", "a", "", "", "{\"a\":\"r-a\"}"),
    ECHO("echo-mb", "", "x", "mb", ""),
    WALK("park", PARK),
    WALK("unpark", UNPARK),
    WALK("sweep-unverifiable", UNVERIFIABLE),
    WALK("sweep-errors", PARKED_ERRORS),
    WALK("cleanup", CLEANUP),
    {.name = "pause", .run = run_pause, .is_paused = true},
    {.name = "resume", .run = run_pause},
    CLIENT("send-c", "mc", "pay", "x", "{\"v\":1}", ""),
    CLIENT("send-c-after-a", "mc", "note", "y", "{\"a\":null}", "a"),
    CLIENT("send-a-again", "ma", "pay", "x", "{\"v\":1}", ""),
};
const unsigned program_count = sizeof(programs) / sizeof(programs[0]);

const struct program *program_find(const char *name)
{
    for (unsigned i = 0; i < program_count; i++) {
        if (strcmp(programs[i].name, name) == 0) {
            return &programs[i];
        }
    }
    return NULL;
}

const struct program *program_after_death(const struct program *program, char name)
{
    static const struct program supervisors[] = {
        {.name = "recover-1", .run = run_supervisor, .text = "node.1.1."},
        {.name = "recover-2", .run = run_supervisor, .text = "node.1.2."},
    };

    return program->run == run_worker && (name == '1' || name == '2') ? &supervisors[name - '1']
                                                                      : NULL;
}
