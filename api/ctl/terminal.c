/* Signals are blocked except while waiting, so that none comes between two writes; handlers set
 * flags, terminal_wait() acts. One terminal per process: its state stands here. */
#include "api/ctl/terminal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/core/buf.h"

#define ENTER "\033[?1049h\033[?25l\033[2J"
#define LEAVE "\033[?25h\033[?1049l"

static volatile sig_atomic_t end_signal, was_resized, is_to_suspend;

static struct {
    bool has_screen, has_keys;
    struct termios before;
    sigset_t mask_before;
} terminal;

static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGWINCH, SIGTSTP};
#define SIGNAL_COUNT (sizeof(signals) / sizeof(signals[0]))

static void on_signal(int number)
{
    if (number == SIGWINCH) {
        was_resized = 1;
    } else if (number == SIGTSTP) {
        is_to_suspend = 1;
    } else {
        end_signal = number;
    }
}

static bool write_all(const char *bytes, size_t len)
{
    while (len > 0) {
        const ssize_t written = write(STDOUT_FILENO, bytes, len);

        if (written < 0 && errno == EAGAIN) {
            struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

            (void)poll(&out, 1, -1);
        } else if (written < 0 && errno != EINTR) {
            return false;
        }
        if (written > 0) {
            bytes += written;
            len -= (size_t)written;
        }
    }
    return true;
}

bool terminal_is_capable(void)
{
    const char *term = getenv("TERM");

    return isatty(STDOUT_FILENO) && term && term[0] && strcmp(term, "dumb") != 0;
}

static void take_screen(void)
{
    if (terminal.has_keys) {
        struct termios raw = terminal.before;

        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO); /* ISIG stays: ^C and ^Z are signals */
        raw.c_cc[VMIN] = 0;
        raw.c_cc[VTIME] = 0;
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    }
    if (terminal.has_screen) {
        (void)write_all(ENTER, strlen(ENTER));
    }
}

static void give_screen(void)
{
    if (terminal.has_screen) {
        (void)write_all(LEAVE, strlen(LEAVE));
    }
    if (terminal.has_keys) {
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal.before);
    }
}

void terminal_start(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t ours;

    sigemptyset(&ours);
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        sigaddset(&ours, signals[i]);
    }
    action.sa_mask = ours;
    sigprocmask(SIG_BLOCK, &ours, &terminal.mask_before);
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        sigaction(signals[i], &action, NULL);
    }
    terminal.has_screen = terminal_is_capable();
    terminal.has_keys = terminal.has_screen && tcgetattr(STDIN_FILENO, &terminal.before) == 0;
    take_screen();
}

void terminal_stop(void)
{
    give_screen();
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        (void)signal(signals[i], SIG_DFL);
    }
    if (end_signal != 0 && end_signal != SIGINT) {
        (void)raise(end_signal);
    }
    sigprocmask(SIG_SETMASK, &terminal.mask_before, NULL); /* what was raised comes now */
}

void terminal_size(size_t *ret_rows, size_t *ret_columns)
{
    struct winsize size = {0};

    *ret_rows = 0;
    *ret_columns = 0;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
        *ret_rows = size.ws_row;
        *ret_columns = size.ws_col;
    }
}

bool terminal_show(const struct buf *frame)
{
    struct buf screen;

    if (!terminal.has_screen) {
        return write_all(frame->bytes, frame->len);
    }
    buf_init(&screen, frame->max * 2);
    buf_append_str(&screen, "\033[H");
    for (size_t at = 0; at < frame->len;) {
        const char *line = frame->bytes + at;
        const size_t len = strcspn(line, "\n");

        /* No line feed behind the last line: a full screen would scroll. */
        buf_append_str(&screen, at > 0 ? "\n" : "");
        buf_append(&screen, line, len);
        buf_append_str(&screen, "\033[K");
        at += len + 1;
    }
    buf_append_str(&screen, "\033[J");
    const bool is_shown = !screen.failed && write_all(screen.bytes, screen.len);

    buf_done(&screen);
    return is_shown;
}

static void suspend(void)
{
    give_screen();
    (void)raise(SIGSTOP);
    take_screen();
}

/* Whether a key that ends the view was pressed. */
static bool read_keys(void)
{
    char keys[64];
    const ssize_t count = read(STDIN_FILENO, keys, sizeof(keys));

    if (count <= 0) {
        terminal.has_keys = false; /* never poll a closed input again */
        return false;
    }
    return memchr(keys, 'q', (size_t)count) || memchr(keys, 'Q', (size_t)count);
}

enum terminal_event terminal_wait(long ms)
{
    const int64_t deadline_ms = clock_mono_ms() + ms;

    for (;;) {
        struct pollfd in = {.fd = terminal.has_keys ? STDIN_FILENO : -1, .events = POLLIN};
        const int64_t left_ms = deadline_ms - clock_mono_ms();
        const int64_t wait_ms = left_ms > 0 ? left_ms : 0;
        const struct timespec wait = {wait_ms / 1000, wait_ms % 1000 * 1000000};
        const int ready = ppoll(&in, 1, &wait, &terminal.mask_before);

        if (end_signal != 0 || (ready > 0 && read_keys())) {
            return TERMINAL_END;
        }
        if (is_to_suspend || was_resized) {
            if (is_to_suspend) {
                suspend();
            }
            is_to_suspend = 0;
            was_resized = 0;
            return TERMINAL_REDRAW;
        }
        if (wait_ms == 0) {
            return TERMINAL_TICK;
        }
    }
}
