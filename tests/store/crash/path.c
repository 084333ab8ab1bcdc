/* Text, repetition, shrinking. */
#include "tests/store/crash/path.h"

#include <string.h>

void path_print(const struct scenario *scenario, const struct path *path, FILE *out)
{
    char text[4];

    fprintf(out, "%s", scenario->scene->name);
    for (unsigned i = 0; i < RUN_ACTORS && scenario->programs[i]; i++) {
        fprintf(out, " %s", scenario->programs[i]->name);
    }
    fprintf(out, ":");
    for (unsigned i = 0; i < path->count; i++) {
        choice_print(path->choices[i], text);
        fprintf(out, " %s", text);
    }
}

static bool read_word(const char **at, char stop, char *ret, size_t cap)
{
    const char *from = *at + strspn(*at, " ");
    const size_t len = strcspn(from, stop == ':' ? " :" : " ");

    if (len == 0 || len >= cap) {
        return false;
    }
    snprintf(ret, cap, "%.*s", (int)len, from);
    *at = from + len;
    return true;
}

bool path_parse(const char *text, struct scenario *ret_scenario, struct path *ret)
{
    const char *at = text;
    char word[64];

    *ret_scenario = (struct scenario){0};
    *ret = (struct path){0};
    if (!read_word(&at, ':', word, sizeof(word)) || !(ret_scenario->scene = scene_find(word))) {
        return false;
    }
    for (unsigned i = 0; i < RUN_ACTORS && *at != ':'; i++) {
        if (!read_word(&at, ':', word, sizeof(word)) ||
            !(ret_scenario->programs[i] = program_find(word))) {
            return false;
        }
    }
    if (*at != ':' || !ret_scenario->programs[0]) {
        return false;
    }
    at++;
    while (ret->count < PATH_MAX_CHOICES && read_word(&at, ' ', word, sizeof(word))) {
        struct choice *choice = &ret->choices[ret->count++];

        if (!choice_parse(word, strlen(word), choice)) {
            return false;
        }
        ret_scenario->faults += choice->type != CHOICE_STEP && choice->type != CHOICE_LATE;
    }
    return true;
}

void path_replay(struct run *run, const struct scenario *scenario, const struct path *path,
                 FILE *out)
{
    static const char *const means[] = {
        [CHOICE_STEP] = "",
        [CHOICE_KILL] = " (dies; never arrives)",
        [CHOICE_KILL_LATE] = " (dies; arrives later)",
        [CHOICE_LOSE] = " (cut off; arrives later)",
        [CHOICE_LATE] = " (arrives late)",
    };

    (void)scenario;
    run_begin(run);
    run_check_rest(run);
    for (unsigned i = 0; i < path->count && run_why(run)[0] == '\0'; i++) {
        const struct choice choice = path->choices[i];
        const char *name = run_step_name(run, choice);
        char text[4];

        if (!run_take(run, choice)) {
            continue;
        }
        choice_print(choice, text);
        if (out) {
            fprintf(out, "  %-2s %s%s\n", text, name, means[choice.type]);
        }
        if (run_why(run)[0] == '\0') {
            run_check_rest(run);
        }
    }
}

/* The same complaint, whichever numbers it names. */
static bool is_alike(const char *a, const char *b)
{
    const size_t len = strcspn(a, "0123456789");

    return len > 0 && len == strcspn(b, "0123456789") && strncmp(a, b, len) == 0;
}

void path_shrink(struct run *run, const struct scenario *scenario, struct path *path,
                 const char *why)
{
    for (unsigned i = path->count; i > 0; i--) {
        struct path shorter = *path;

        shorter.count--;
        memmove(&shorter.choices[i - 1], &shorter.choices[i],
                (path->count - i) * sizeof(shorter.choices[0]));
        path_replay(run, scenario, &shorter, NULL);
        if (is_alike(run_why(run), why)) {
            *path = shorter;
        }
    }
}
