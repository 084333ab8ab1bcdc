/* Reading and matching the logs, see the header. Benchmark only: aborts when out of memory. */
#include "tests/bench/check_logs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/keys.h"

static size_t *slot_of(struct message_table *table, const char *id)
{
    size_t at = fnv1a64(id, strlen(id)) & (table->slot_count - 1);

    while (table->slots[at] != 0 && strcmp(table->messages[table->slots[at] - 1].id, id) != 0) {
        at = (at + 1) & (table->slot_count - 1);
    }
    return &table->slots[at];
}

static struct message *add(struct message_table *table)
{
    if (table->count == table->cap) {
        table->cap = table->cap ? table->cap * 2 : (size_t)1 << 16;
        table->messages = realloc(table->messages, table->cap * sizeof(*table->messages));
        if (!table->messages) {
            abort();
        }
    }
    struct message *message = &table->messages[table->count++];

    *message = (struct message){0};
    return message;
}

static void make_slots(struct message_table *table)
{
    for (table->slot_count = 1; table->slot_count < table->count * 2 + 2;) {
        table->slot_count *= 2;
    }
    table->slots = calloc(table->slot_count, sizeof(*table->slots));
    if (!table->slots) {
        abort();
    }
    for (size_t i = 0; i < table->count; i++) {
        *slot_of(table, table->messages[i].id) = i + 1;
    }
}

static int read_load(const char *path, struct message_table *table)
{
    FILE *file = fopen(path, "r");
    struct message m = {0};

    if (!file) {
        return -errno;
    }
    while (fscanf(file, "%47s %" SCNu32 " %*u %d %*u %*u %" SCNu64 " %" SCNu64, m.id, &m.session,
                  &m.status, &m.send_ns, &m.answer_ns) == 5) {
        *add(table) = m;
    }
    (void)fclose(file); /* was only read */
    make_slots(table);
    return 0;
}

static void add_post(struct message_table *table, const char *id, uint64_t begin_ns,
                     uint64_t end_ns, int status)
{
    size_t slot = *slot_of(table, id);

    if (table->posts++ == 0 || begin_ns < table->first_post_ns) {
        table->first_post_ns = begin_ns;
    }
    if (end_ns > table->last_post_ns) {
        table->last_post_ns = end_ns;
    }
    if (slot == 0) {
        table->unknown_posts++;
        return;
    }
    struct message *message = &table->messages[slot - 1];

    if (message->posts++ == 0) {
        message->first_post_ns = begin_ns;
    }
    if (status >= 200 && status < 300 && message->confirmed++ == 0) {
        message->confirmed_ns = begin_ns;
        message->confirmed_at_ns = end_ns;
    }
}

static int read_sink(const char *path, struct message_table *table)
{
    FILE *file = fopen(path, "r");
    uint64_t begin_ns, end_ns;
    char id[MESSAGE_ID_MAX];
    int status;

    if (!file) {
        return -errno;
    }
    while (fscanf(file, "%" SCNu64 " %" SCNu64 " %d %47s", &begin_ns, &end_ns, &status, id) == 4) {
        add_post(table, id, begin_ns, end_ns, status);
    }
    (void)fclose(file); /* was only read */
    return 0;
}

int check_logs_read(const char *load_log, const char *sink_log, struct message_table *ret)
{
    struct message_table table = {0};
    int err = read_load(load_log, &table);

    if (err == 0) {
        err = read_sink(sink_log, &table);
    }
    if (err < 0) {
        check_logs_done(&table);
        return err;
    }
    *ret = table;
    return 0;
}

void check_logs_done(struct message_table *table)
{
    free(table->messages);
    free(table->slots);
    *table = (struct message_table){0};
}
