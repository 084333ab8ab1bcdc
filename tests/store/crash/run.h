/* One run of one or two actors on a scene, step by step: whose step it is, and what goes wrong with
 * it, is chosen from outside. After any step it can be told what would become of everything if all
 * of it stopped there. */
#ifndef TESTS_STORE_CRASH_RUN_H
#define TESTS_STORE_CRASH_RUN_H

#include "tests/store/crash/program.h"
#include "tests/store/crash/scene.h"

#define RUN_ACTORS      2
#define RUN_CHOICES_MAX 9

enum choice_type {
    CHOICE_STEP,      /* `1`: its next command is carried out and answered, or its time passes */
    CHOICE_KILL,      /* `k1`: it dies; its command never arrives */
    CHOICE_KILL_LATE, /* `z1`: it dies; its command arrives at some later moment */
    CHOICE_LOSE,      /* `r1`: its connection is cut; the command arrives at some later moment */
    CHOICE_LATE,      /* `l`: the late command arrives */
};
struct choice {
    enum choice_type type;
    unsigned actor; /* 0 or 1 */
};

struct scenario {
    const struct scene *scene;
    const struct program *programs[RUN_ACTORS]; /* the second may be NULL */
    unsigned faults;                            /* at most so many of a run's choices are faults */
};

struct run;

/* A server, two actors, a clock. Failures end the program. */
struct run *run_create(void);
void run_destroy(struct run **run);

/* Builds a scenario's scene; the runs that follow begin there. False: the scene itself fails. */
bool run_set_scenario(struct run *run, const struct scenario *scenario);
/* From the scene's state; ends the run before. */
void run_begin(struct run *run);
/* What may happen next; 0: all have ended. */
unsigned run_choices(const struct run *run, struct choice ret[RUN_CHOICES_MAX]);
/* False: that can't be chosen here. */
bool run_take(struct run *run, struct choice choice);
/* The name of what a choice is about, for people. */
const char *run_step_name(const struct run *run, struct choice choice);

/* Two runs with one key go on alike, whatever is chosen. */
uint64_t run_key(const struct run *run);
/* Two runs with one key end alike if all stops now. */
uint64_t run_rest_key(const struct run *run);
/* All stops here: checks the store, restarts, drives everything to its end, checks again, and goes
 * back to where the run stands. */
void run_check_rest(struct run *run);
/* What did not hold so far; "": all did. */
const char *run_why(const struct run *run);

int choice_print(struct choice choice, char ret[4]);
/* False: no choice. */
bool choice_parse(const char *text, size_t len, struct choice *ret);

#endif
