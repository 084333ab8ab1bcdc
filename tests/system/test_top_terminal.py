"""outboxctl top on a terminal: it fits, follows a new size, and gives the terminal back however it ends."""
import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

import harness
from harness import SystemTest, wait_until

ENTER, LEAVE, HOME = b'\x1b[?1049h', b'\x1b[?1049l', b'\x1b[H'


class Terminal:
    """outboxctl top in a pseudo-terminal of its own."""

    def __init__(self, daemon, rows=24, columns=80, **environment):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))
            ctl = harness.program('outboxctl')
            os.execve(ctl, [ctl, 'top', '--interval', '0.1', '--state-dir', str(daemon.state)],
                      {**{k: v for k, v in os.environ.items() if k != 'NO_COLOR'}, 'TERM': 'xterm', **environment})
        self.output = b''

    def read(self):
        """All that has come so far."""
        while select.select([self.fd], [], [], 0.02)[0]:
            try:
                part = os.read(self.fd, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            self.output += part
        return self.output

    def frames(self):
        """Whole frames: those that another one followed."""
        return self.read().split(HOME)[1:-1]

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))

    def wait_end(self):
        """Its exit code, negative for a signal."""
        deadline = time.monotonic() + 10 * harness.SLOW
        while time.monotonic() < deadline:
            self.read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.read()
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
        raise AssertionError('top does not end')

    def close(self):
        if self.pid:
            with contextlib.suppress(OSError):
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
        os.close(self.fd)


class TopOnATerminal(SystemTest):
    def setUp(self):
        self.the_target = self.target()
        self.the_target.script({'path': '/notes', 'hold': True})
        self.the_daemon = self.daemon(self.the_target, workers=1)
        for n in range(30):
            self.the_daemon.accept_ok(f'session-{n}', kind='note', payload={})
        wait_until(lambda: len(self.the_target.posts()) == 30, 10, 'all in flight')

    def tearDown(self):
        self.the_target.release()

    def terminal(self, **arguments):
        terminal = Terminal(self.the_daemon, **arguments)
        self.addCleanup(terminal.close)
        return terminal

    def test_it_fits_and_follows_a_new_size(self):
        terminal = self.terminal(rows=24, columns=80)
        wait_until(lambda: len(terminal.frames()) >= 2, 10, 'frames')
        frame = terminal.frames()[-1]
        self.assertEqual(frame.count(b'\n'), 23)
        self.assertIn(b'of 30, oldest first', frame)
        terminal.resize(10, 40)
        wait_until(lambda: terminal.frames()[-1].count(b'\n') == 9, 10, 'the smaller frame')
        terminal.resize(60, 120)
        wait_until(lambda: b'IN FLIGHT (30)' in terminal.frames()[-1], 10, 'the larger frame')

    def test_it_gives_the_terminal_back_however_it_ends(self):
        for name, end, status in (('q', lambda t: os.write(t.fd, b'q'), 0), ('^C', lambda t: os.write(t.fd, b'\x03'), 0),
                                  ('TERM', lambda t: os.kill(t.pid, signal.SIGTERM), -signal.SIGTERM)):
            with self.subTest(by=name):
                terminal = self.terminal()
                wait_until(terminal.frames, 10, 'a frame')
                self.assertFalse(termios.tcgetattr(terminal.fd)[3] & termios.ECHO)
                end(terminal)
                self.assertEqual(terminal.wait_end(), status)
                self.assertTrue(terminal.output.endswith(b'\x1b[?25h' + LEAVE), terminal.output[-60:])
                echo_and_lines = termios.ECHO | termios.ICANON
                self.assertEqual(termios.tcgetattr(terminal.fd)[3] & echo_and_lines, echo_and_lines)

    def test_suspended_it_gives_the_terminal_back_and_takes_it_again(self):
        terminal = self.terminal()
        wait_until(terminal.frames, 10, 'a frame')
        os.write(terminal.fd, b'\x1a')
        wait_until(lambda: terminal.read().endswith(LEAVE), 10, 'the terminal back')
        wait_until(lambda: os.waitpid(terminal.pid, os.WNOHANG | os.WUNTRACED)[0] == terminal.pid, 10, 'it to stop')
        os.kill(terminal.pid, signal.SIGCONT)
        wait_until(lambda: terminal.read().count(ENTER) == 2, 10, 'the view again')

    def test_colours_only_where_they_are_wanted(self):
        for colours, environment in ((True, {}), (False, {'NO_COLOR': '1'}), (False, {'TERM': 'dumb'})):
            terminal = self.terminal(**environment)
            wait_until(lambda: b'IN FLIGHT' in terminal.read(), 10, 'a frame')
            self.assertEqual(b'\x1b[1m' in terminal.output, colours, environment)
        once = self.the_daemon.ctl('top', '--once', '--state-dir', str(self.the_daemon.state))
        self.assertNotIn('\x1b', once.stdout)

    def test_a_reader_that_goes_ends_it(self):
        top = subprocess.Popen([harness.program('outboxctl'), 'top', '--interval', '0.1', '--state-dir',
                                str(self.the_daemon.state)], stdout=subprocess.PIPE)
        self.addCleanup(top.kill)
        self.assertIn(b'outboxd', top.stdout.readline())
        top.stdout.close()
        self.assertNotEqual(top.wait(10 * harness.SLOW), None)


if __name__ == '__main__':
    harness.main()
