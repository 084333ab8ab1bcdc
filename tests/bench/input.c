/* Bytes in and out of a libuv stream, see the header. Benchmark only: aborts when out of memory. */
#include "tests/bench/input.h"

#include <stdlib.h>
#include <string.h>

#define READ_ROOM 4096U

uv_buf_t input_room(struct input *input)
{
    if (input->cap - input->len < READ_ROOM && input->cap < INPUT_MAX) {
        input->cap = input->cap ? input->cap * 2 : READ_ROOM * 2;
        input->bytes = realloc(input->bytes, input->cap);
        if (!input->bytes) {
            abort();
        }
    }
    return uv_buf_init(input->bytes + input->len, (unsigned)(input->cap - input->len));
}

void input_consume(struct input *input, size_t len)
{
    memmove(input->bytes, input->bytes + len, input->len - len);
    input->len -= len;
}

void input_done(struct input *input)
{
    free(input->bytes);
    *input = (struct input){0};
}

struct queued_write {
    uv_write_t request;
    char bytes[];
};

static void on_written(uv_write_t *request, int status)
{
    (void)status; /* a broken connection shows in its reader */
    free(request);
}

int stream_write(uv_stream_t *stream, const char *bytes, size_t len)
{
    char *start = (char *)(uintptr_t)bytes; /* libuv does not write to it */
    uv_buf_t buffer = uv_buf_init(start, (unsigned)len);
    int written = uv_try_write(stream, &buffer, 1);

    if (written == (int)len || (written < 0 && written != UV_EAGAIN)) {
        return written < 0 ? written : 0;
    }
    size_t sent = written > 0 ? (size_t)written : 0;
    struct queued_write *rest = malloc(sizeof(*rest) + len - sent);

    if (!rest) {
        abort();
    }
    memcpy(rest->bytes, bytes + sent, len - sent);
    buffer = uv_buf_init(rest->bytes, (unsigned)(len - sent));
    int err = uv_write(&rest->request, stream, &buffer, 1, on_written);

    if (err < 0) {
        free(rest);
    }
    return err;
}
