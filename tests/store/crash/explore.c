/* Depth first. A run can't be taken back by a step: after each leaf it begins anew and follows the
 * path to where the next choice is. */
#include "tests/store/crash/explore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/store/crash/path.h"
#include "tests/store/crash/seen.h"

struct level {
    struct choice choices[RUN_CHOICES_MAX];
    unsigned count, next; /* next: the choice that is being walked */
    uint64_t key, paths;
};

struct walk {
    struct run *run;
    const struct scenario *scenario;
    struct explored *counted;
    struct level levels[PATH_MAX_CHOICES];
    unsigned depth;
    struct seen states; /* number: of ways from there to the end */
    struct seen rests;  /* states from which a restart was checked */
};

static struct path path_to(const struct walk *walk)
{
    struct path path = {.count = walk->depth};

    for (unsigned i = 0; i < walk->depth; i++) {
        path.choices[i] = walk->levels[i].choices[walk->levels[i].next];
    }
    return path;
}

static bool fails(const struct walk *walk)
{
    return run_why(walk->run)[0] != '\0';
}

static void take(struct walk *walk, struct choice choice)
{
    walk->counted->steps++;
    if (!run_take(walk->run, choice)) {
        const struct path path = path_to(walk);

        path_print(walk->scenario, &path, stderr);
        fprintf(stderr, "a run went another way when it was repeated\n");
        abort();
    }
}

/* All stops here: once for each state that the rest depends on. */
static void check_rest(struct walk *walk)
{
    const uint64_t key = run_rest_key(walk->run);

    if (!fails(walk) && !seen_find(&walk->rests, key)) {
        seen_add(&walk->rests, key, 1);
        walk->counted->points++;
        run_check_rest(walk->run);
    }
}

/* From where the run stands down to what is known already, or to the end. Returns the ways that
 * lead on from there; 0: something failed. */
static uint64_t descend(struct walk *walk)
{
    for (;;) {
        const uint64_t key = run_key(walk->run);
        const uint64_t *known = seen_find(&walk->states, key);
        struct level *level = &walk->levels[walk->depth];

        if (known) {
            return *known;
        }
        check_rest(walk);
        if (fails(walk)) {
            return 0;
        }
        if (walk->depth == PATH_MAX_CHOICES) {
            fprintf(stderr, "a run without an end\n");
            abort();
        }
        *level = (struct level){.key = key};
        level->count = run_choices(walk->run, level->choices);
        walk->counted->states++;
        if (level->count == 0) {
            seen_add(&walk->states, key, 1);
            return 1;
        }
        walk->depth++;
        take(walk, level->choices[0]);
        if (fails(walk)) {
            return 0;
        }
    }
}

/* The next choice that was not walked, with the run standing before it; false: there is none. */
static bool turn_back(struct walk *walk, uint64_t paths)
{
    while (walk->depth > 0) {
        struct level *level = &walk->levels[walk->depth - 1];

        level->paths += paths;
        if (++level->next < level->count) {
            break;
        }
        paths = level->paths;
        seen_add(&walk->states, level->key, paths);
        walk->depth--;
    }
    if (walk->depth == 0) {
        walk->counted->interleavings += paths;
        return false;
    }
    run_begin(walk->run);
    walk->counted->runs++;
    for (unsigned i = 0; i < walk->depth; i++) {
        take(walk, walk->levels[i].choices[walk->levels[i].next]);
    }
    return true;
}

static bool report(struct walk *walk)
{
    struct path path = path_to(walk);
    char why[256];

    snprintf(why, sizeof(why), "%s", run_why(walk->run));
    path_shrink(walk->run, walk->scenario, &path, why);
    path_replay(walk->run, walk->scenario, &path, stderr);
    fprintf(stderr, "%s\nrepeat it: OUTBOXD_CRASH_REPLAY='", why);
    path_print(walk->scenario, &path, stderr);
    fprintf(stderr, "'\n");
    return false;
}

bool explore(struct run *run, const struct scenario *scenario, struct explored *counted)
{
    static struct walk walk;
    bool is_more = true;

    walk = (struct walk){.run = run, .scenario = scenario, .counted = counted};
    seen_init(&walk.states);
    seen_init(&walk.rests);
    if (!run_set_scenario(run, scenario)) {
        fprintf(stderr, "%s: %s\n", scenario->scene->name, run_why(run));
        is_more = false;
    }
    bool is_fine = is_more;

    if (is_more) {
        run_begin(run);
        counted->runs++;
    }
    while (is_more && is_fine) {
        const uint64_t paths = descend(&walk);

        is_fine = !fails(&walk) || report(&walk);
        is_more = is_fine && turn_back(&walk, paths);
    }
    seen_done(&walk.states);
    seen_done(&walk.rests);
    return is_fine;
}

bool explore_replay(struct run *run, const char *text)
{
    struct scenario scenario;
    struct path path;

    if (!path_parse(text, &scenario, &path)) {
        fprintf(stderr, "no such run: %s\n", text);
        return false;
    }
    if (!run_set_scenario(run, &scenario)) {
        fprintf(stderr, "%s: %s\n", scenario.scene->name, run_why(run));
        return false;
    }
    path_replay(run, &scenario, &path, stdout);
    printf("%s\n", run_why(run)[0] != '\0' ? run_why(run) : "all holds");
    return run_why(run)[0] == '\0';
}
