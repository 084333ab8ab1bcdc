/* Expands circuit.def into [state][event]. */
#include "common/core/circuit.h"

#include "common/core/backoff.h"
#include "common/core/keys.h"

enum event {
#define EVENT(id) EVENT_##id,
#include "common/core/circuit.def"
    EVENT_COUNT,
};

enum then {
    THEN_NOTHING,
    THEN_GO,
    THEN_PROBE,
    THEN_PROBE_AGAIN,
    THEN_WAIT,
    THEN_COUNT,
    THEN_FORGET,
    THEN_OPEN,
    THEN_REOPEN,
    THEN_CLOSE,
};

struct transition {
    enum circuit_state next;
    enum then then; /* THEN_NOTHING: there is no such transition */
};

/* A second row for a pair is a compile error (-Woverride-init). */
static const struct transition transitions[CIRCUIT_STATE_COUNT][EVENT_COUNT] = {
#define TRANSITION(from, event, next_, then_)                                                      \
    [CIRCUIT_##from][EVENT_##event] = {.next = CIRCUIT_##next_, .then = THEN_##then_},
#include "common/core/circuit.def"
};

static int64_t delay_of(const struct circuit *circuit, const struct circuit_limits *limits)
{
    return backoff_delay_ms(circuit->opens, limits->delay_ms, limits->max_ms, false, 0);
}

/* When the state began. */
static int64_t since_ms(const struct circuit *circuit, const struct circuit_limits *limits)
{
    return circuit->state == CIRCUIT_CLOSED ? circuit->at_ms
                                            : circuit->at_ms - delay_of(circuit, limits);
}

static enum event failure(const struct circuit *circuit, const struct circuit_input *input,
                          const struct circuit_limits *limits)
{
    if (input->began_ms < since_ms(circuit, limits)) {
        return EVENT_FAILED_LONG_AGO;
    }
    if (input->may_be_own_fault && input->mark > 0 && input->mark == circuit->mark &&
        circuit->failures > 0) {
        return EVENT_FAILED_AGAIN;
    }
    return circuit->failures + 1U >= limits->failures ? EVENT_FAILED_ENOUGH : EVENT_FAILED;
}

static enum event event_of(const struct circuit *circuit, const struct circuit_input *input,
                           const struct circuit_limits *limits)
{
    switch (input->what) {
    case CIRCUIT_WAS_ASKED:
        return input->now_ms < circuit->at_ms ? EVENT_ASKED_EARLY : EVENT_ASKED_IN_TIME;
    case CIRCUIT_HAS_ANSWERED:
        return EVENT_ANSWERED;
    case CIRCUIT_HAS_FAILED:
        break;
    }
    return failure(circuit, input, limits);
}

/* What somebody else wrote may be anything. */
static struct circuit mended(const struct circuit *circuit, int64_t now_ms,
                             const struct circuit_limits *limits)
{
    struct circuit sound = *circuit;

    if ((unsigned)sound.state >= CIRCUIT_STATE_COUNT) {
        return (struct circuit){0};
    }
    if (sound.state == CIRCUIT_CLOSED && sound.at_ms > now_ms) {
        sound.at_ms = 0; /* nobody knows since when */
    } else if (sound.at_ms > now_ms + limits->max_ms) {
        sound.at_ms = now_ms + limits->max_ms;
    }
    return sound;
}

static void open_for(struct circuit *circuit, int64_t now_ms, const struct circuit_limits *limits)
{
    if (circuit->opens < UINT8_MAX) {
        circuit->opens++;
    }
    circuit->at_ms = now_ms + delay_of(circuit, limits);
}

static void apply(const struct transition *transition, const struct circuit_input *input,
                  const struct circuit_limits *limits, struct circuit_step *step)
{
    struct circuit *next = &step->next;

    next->state = transition->next;
    switch (transition->then) {
    case THEN_NOTHING:
        return;
    case THEN_GO:
        step->may_go = true;
        return;
    case THEN_PROBE:
        step->may_go = true;
        next->at_ms = input->now_ms + delay_of(next, limits);
        return;
    case THEN_PROBE_AGAIN:
        step->may_go = true;
        open_for(next, input->now_ms, limits);
        return;
    case THEN_WAIT:
        step->wait_ms = next->at_ms - input->now_ms;
        return;
    case THEN_COUNT:
        next->failures++;
        next->mark = input->mark;
        return;
    case THEN_FORGET:
        next->failures = 0;
        next->mark = 0;
        return;
    case THEN_OPEN:
        next->opens = 0;
        open_for(next, input->now_ms, limits);
        return;
    case THEN_REOPEN:
        open_for(next, input->now_ms, limits);
        return;
    case THEN_CLOSE:
        *next = (struct circuit){.state = transition->next, .at_ms = input->now_ms};
        return;
    }
}

struct circuit_step circuit_step(const struct circuit *circuit, const struct circuit_input *input,
                                 const struct circuit_limits *limits)
{
    struct circuit_step step = {.next = {0}, .may_go = true};

    if (limits->failures == 0) {
        return step;
    }
    step.next = mended(circuit, input->now_ms, limits);
    step.may_go = false;
    const struct transition *transition =
        &transitions[step.next.state][event_of(&step.next, input, limits)];

    if (transition->then != THEN_NOTHING) {
        apply(transition, input, limits, &step);
    }
    return step;
}

uint8_t circuit_mark(const char *name, uint64_t len)
{
    return len == 0 ? 0 : (uint8_t)(fnv1a64(name, len) % UINT8_MAX + 1);
}

const char *circuit_state_name(enum circuit_state state)
{
    static const char *const names[] = {
#define STATE(id, name) [CIRCUIT_##id] = (name),
#include "common/core/circuit.def"
    };

    return (unsigned)state < CIRCUIT_STATE_COUNT ? names[state] : "invalid";
}
