/* The bytes of a connection that are not understood yet, and the read callbacks that fill them. */
#ifndef TESTS_BENCH_INPUT_H
#define TESTS_BENCH_INPUT_H

#include <stddef.h>
#include <uv.h>

#define INPUT_MAX (256U * 1024)

struct input {
    char *bytes; /* owned */
    size_t len, cap;
};

/* Room for the next read, for an alloc callback. An empty buffer: the peer sends more than
 * INPUT_MAX. */
uv_buf_t input_room(struct input *input);
/* Forgets the first `len` bytes. */
void input_consume(struct input *input, size_t len);
void input_done(struct input *input);

/* Writes at once if the socket takes it, else queues a copy. Returns 0 or a libuv error. */
int stream_write(uv_stream_t *stream, const char *bytes, size_t len);

#endif
