/* Replays a driver's corpus without libFuzzer, and each file cut at every length: part of the
 * ordinary tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"

#define INPUT_MAX 65536

static const char *folder;

static void replay_file(const char *path)
{
    uint8_t *bytes = malloc(INPUT_MAX);
    FILE *file = fopen(path, "rb");

    assert_non_null(bytes);
    assert_non_null(file);
    const size_t len = fread(bytes, 1, INPUT_MAX, file);

    fclose(file);
    for (size_t cut = 0; cut <= len; cut++) {
        /* In memory of exactly that size, so that a read past the end is seen. */
        uint8_t *input = malloc(cut + 1);

        assert_non_null(input);
        for (size_t i = 0; i < cut; i++) {
            input[i] = bytes[i];
        }
        uint8_t *exact = realloc(input, cut > 0 ? cut : 1);

        (void)LLVMFuzzerTestOneInput(exact, cut);
        free(exact);
    }
    free(bytes);
}

static void the_corpus_holds(void **state)
{
    DIR *dir = opendir(folder);
    unsigned count = 0;

    (void)state;
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        char path[1024];

        if (entry->d_name[0] == '.') {
            continue;
        }
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        replay_file(path);
        count++;
    }
    closedir(dir);
    assert_true(count > 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_corpus_holds)};

    if (argc != 2) {
        fprintf(stderr, "usage: %s CORPUS-FOLDER\n", argv[0]);
        return 2;
    }
    folder = argv[1];
    return cmocka_run_group_tests_name("corpus", tests, NULL, NULL);
}
