/* What the disk takes for one append that is to last: 4 KB each, then fdatasync, one after the
 * other. Prints one line of key=value. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
#include <uv.h>

#include "tests/bench/quantile.h"

#define APPEND_BYTES 4096
#define COUNT        1000

static int append(int fd, uint64_t *ret_ns)
{
    static char block[APPEND_BYTES];
    const uint64_t begin_ns = uv_hrtime();

    if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block) || fdatasync(fd) < 0) {
        return -1;
    }
    *ret_ns = uv_hrtime() - begin_ns;
    return 0;
}

int main(int argc, char **argv)
{
    static uint64_t took[COUNT];

    if (argc != 2) {
        fprintf(stderr, "usage: bench-fsync FILE (it is made, and deleted)\n");
        return 2;
    }
    const int fd = open(argv[1], O_CREAT | O_EXCL | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);

    if (fd < 0) {
        perror(argv[1]);
        return 1;
    }
    int err = 0;

    for (size_t i = 0; i < COUNT && err == 0; i++) {
        err = append(fd, &took[i]);
    }
    if (err < 0) {
        perror(argv[1]);
    } else {
        quantile_sort(took, COUNT);
        printf("fsync_p50_ms=%.3f fsync_p99_ms=%.3f\n", quantile_ms(took, COUNT, 0.5),
               quantile_ms(took, COUNT, 0.99));
    }
    close(fd);
    unlink(argv[1]);
    return err < 0 ? 1 : 0;
}
