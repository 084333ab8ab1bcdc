/* A driver without libFuzzer, as part of the ordinary tests: its corpus, each file cut at every
 * length, and then some thousand inputs made from it. They are the same ones each time. What is
 * being looked at stands in a file (INPUT.PID) that only a finding leaves behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

#define INPUT_MAX 65536
#define MADE_MAX  8192
#define FILES_MAX 256

static const char *folder;
static unsigned made_count;

static struct {
    uint8_t *bytes;
    size_t len;
} corpus[FILES_MAX];
static size_t corpus_count;

/* ---- what is being looked at ---- */

/* A file mapped: its content is there whatever becomes of this process. */
static struct {
    char path[64];
    int fd;
    uint8_t *bytes;
} current;

static void current_open(void)
{
    snprintf(current.path, sizeof(current.path), "input.%ld", (long)getpid());
    current.fd = open(current.path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(current.fd >= 0 && ftruncate(current.fd, INPUT_MAX) == 0);
    current.bytes = mmap(NULL, INPUT_MAX, PROT_READ | PROT_WRITE, MAP_SHARED, current.fd, 0);
    assert_ptr_not_equal(current.bytes, MAP_FAILED);
    print_message(
        "an input that ends this test stays in %s: this program shows it again when that is "
        "its only argument\n",
        current.path);
}

static void current_close(void)
{
    (void)munmap(current.bytes, INPUT_MAX);
    close(current.fd);
    unlink(current.path);
}

/* In memory of exactly that size, so that a read past the end is seen. */
static void look_at(const uint8_t *bytes, size_t len)
{
    uint8_t *exact = malloc(len > 0 ? len : 1);

    assert_non_null(exact);
    if (len > 0) {
        memcpy(exact, bytes, len);
        memcpy(current.bytes, bytes, len);
    }
    assert_int_equal(ftruncate(current.fd, (off_t)len), 0);
    (void)LLVMFuzzerTestOneInput(exact, len);
    assert_int_equal(ftruncate(current.fd, INPUT_MAX), 0);
    free(exact);
}

/* ---- the corpus ---- */

static void read_file(const char *path)
{
    FILE *file = fopen(path, "rb");

    assert_non_null(file);
    assert_true(corpus_count < FILES_MAX);
    corpus[corpus_count].bytes = malloc(INPUT_MAX);
    assert_non_null(corpus[corpus_count].bytes);
    corpus[corpus_count].len = fread(corpus[corpus_count].bytes, 1, INPUT_MAX, file);
    corpus_count++;
    fclose(file);
}

/* By name: the order in a folder is another on each machine. */
static void read_corpus(void)
{
    struct dirent **names;
    const int count = scandir(folder, &names, NULL, alphasort);

    assert_true(count >= 0);
    for (int i = 0; i < count; i++) {
        char path[1024];

        if (names[i]->d_name[0] != '.') {
            snprintf(path, sizeof(path), "%s/%s", folder, names[i]->d_name);
            read_file(path);
        }
        free(names[i]);
    }
    free(names);
}

static void the_corpus_holds(void **state)
{
    (void)state;
    assert_true(corpus_count > 0);
    for (size_t i = 0; i < corpus_count; i++) {
        for (size_t cut = 0; cut <= corpus[i].len; cut++) {
            look_at(corpus[i].bytes, cut);
        }
    }
}

/* ---- inputs made from it ---- */

/* xorshift64*: the same numbers on every machine. */
static uint64_t dice_state = 0x9e3779b97f4a7c15;

static size_t dice(size_t below)
{
    dice_state ^= dice_state >> 12;
    dice_state ^= dice_state << 25;
    dice_state ^= dice_state >> 27;
    return below > 0 ? (size_t)((dice_state * UINT64_C(0x2545f4914f6cdd1d)) >> 33) % below : 0;
}

/* Puts `from` into the input at a place, over what stands there or before it. */
static size_t put(uint8_t *made, size_t len, const uint8_t *from, size_t from_len, bool is_over)
{
    const size_t at = dice(len + 1);
    const size_t rest = is_over && from_len < len - at ? len - at - from_len
                        : is_over                      ? 0
                                                       : len - at;

    if (at + from_len + rest > MADE_MAX) {
        return len;
    }
    memmove(made + at + from_len, made + len - rest, rest);
    memmove(made + at, from, from_len); /* it may be a piece of the input itself */
    return at + from_len + rest;
}

static size_t change(uint8_t *made, size_t len)
{
    static const char *const words[] = {"\"",
                                        "\\",
                                        "{",
                                        "}",
                                        "[",
                                        "]",
                                        ":",
                                        "-1",
                                        "null",
                                        "%",
                                        "9223372036854775807",
                                        "18446744073709551616",
                                        "1e999",
                                        "\xff\xfe",
                                        "\xc0\x80",
                                        "\xed\xa0\x80",
                                        "\n",
                                        " "};
    static const uint8_t zeros[8];
    const size_t other = dice(corpus_count), at = dice(len), piece = dice(corpus[other].len + 1);
    const char *word = words[dice(sizeof(words) / sizeof(words[0]))];

    switch (dice(7)) {
    case 0: /* a bit */
        if (len > 0) {
            made[at] ^= (uint8_t)(1U << dice(8));
        }
        return len;
    case 1: /* a byte */
        if (len > 0) {
            made[at] = (uint8_t)dice(256);
        }
        return len;
    case 2: /* some are gone */
        if (len > 0) {
            const size_t gone = 1 + dice(len - at);

            memmove(made + at, made + at + gone, len - at - gone);
            return len - gone;
        }
        return len;
    case 3:
        return put(made, len, (const uint8_t *)word, strlen(word), dice(2) == 0);
    case 4:
        return put(made, len, zeros, dice(sizeof(zeros) + 1), dice(2) == 0);
    case 5: /* a piece of another one */
        return put(made, len, corpus[other].bytes + dice(corpus[other].len - piece + 1), piece,
                   dice(2) == 0);
    default: /* the same once more */
        return len > 0 ? put(made, len, made + at, dice(len - at + 1), false) : len;
    }
}

static void what_is_made_from_it_holds(void **state)
{
    uint8_t *made = malloc(2 * MADE_MAX);

    (void)state;
    assert_non_null(made);
    for (unsigned i = 0; i < made_count; i++) {
        const size_t from = dice(corpus_count);
        size_t len = corpus[from].len < MADE_MAX ? corpus[from].len : MADE_MAX;

        memcpy(made, corpus[from].bytes, len);
        for (size_t changes = 1 + dice(6); changes > 0; changes--) {
            len = change(made, len);
        }
        look_at(made, len);
    }
    free(made);
}

static int begin(void **state)
{
    (void)state;
    read_corpus();
    current_open();
    return 0;
}

static int end(void **state)
{
    (void)state;
    current_close();
    for (size_t i = 0; i < corpus_count; i++) {
        free(corpus[i].bytes);
    }
    return 0;
}

/* One input, as a finding left it. */
static int look_at_file(const char *path)
{
    uint8_t *bytes = malloc(INPUT_MAX);
    FILE *file = fopen(path, "rb");

    if (!bytes || !file) {
        fprintf(stderr, "%s can't be read\n", path);
        free(bytes);
        return 2;
    }
    const size_t len = fread(bytes, 1, INPUT_MAX, file);
    uint8_t *exact = realloc(bytes, len > 0 ? len : 1);

    fclose(file);
    (void)LLVMFuzzerTestOneInput(exact, len);
    free(exact);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_corpus_holds),
        cmocka_unit_test(what_is_made_from_it_holds),
    };

    if (argc == 2) {
        return look_at_file(argv[1]);
    }
    if (argc != 3) {
        fprintf(stderr, "usage: %s CORPUS-FOLDER NUMBER | INPUT\n", argv[0]);
        return 2;
    }
    folder = argv[1];
    made_count = (unsigned)strtoul(argv[2], NULL, 10);
    return cmocka_run_group_tests_name("corpus", tests, begin, end);
}
