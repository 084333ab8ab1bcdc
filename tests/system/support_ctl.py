"""What the tests of outboxctl share: one server for all tests of a class, a terminal, a server that only pretends."""
import contextlib
import http.server
import json
import os
import pty
import subprocess
import threading

import harness
from harness import SystemTest

KINDS = harness.KINDS + [{'name': 'hold', 'executor': 'http', 'url': '/holds', 'idempotent': True},
                         {'name': 'laned', 'executor': 'http', 'url': '/notes', 'lane': 'lane:{payload.n}', 'idempotent': True}]


def outboxctl(*arguments, server=None, stdin=None, environment=None, timeout=20):
    """Runs it; stdin is text, or nothing (/dev/null)."""
    command = [harness.program('outboxctl'), *(('--server', server) if server else ()), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout * harness.SLOW,
                          env={**os.environ, **(environment or {})},
                          **({'input': stdin} if stdin is not None else {'stdin': subprocess.DEVNULL}))


def on_terminal(*arguments, environment=None, typed=''):
    """(what stood on the terminal, exit code) of an outboxctl in a pseudo-terminal of its own."""
    clean = {name: value for name, value in os.environ.items() if name != 'NO_COLOR'}
    pid, fd = pty.fork()
    if pid == 0:
        ctl = harness.program('outboxctl')
        os.execve(ctl, [ctl, *arguments], {**clean, 'TERM': 'xterm', **(environment or {})})
    shown = b''
    os.write(fd, typed.encode())
    with contextlib.suppress(OSError):  # the other end is closed
        while part := os.read(fd, 65536):
            shown += part
    os.close(fd)
    return shown.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Shared(SystemTest):
    """self.daemon_ and self.target_ serve all tests of a class: each takes a workspace of its own. `fire` always fails,
    `hold` is never answered until released."""

    @classmethod
    def setUpClass(cls):
        cls.target_ = harness.Target().start()
        cls.addClassCleanup(cls.target_.stop)
        cls.target_.script({'path': '/fires', 'status': 400}, {'path': '/holds', 'hold': True})
        cls.daemon_ = harness.Daemon({**harness.FAST, 'kinds': KINDS, 'target': {'url': cls.target_.url}, 'workers': 1})
        cls.addClassCleanup(cls.end_daemon)
        cls.daemon_.start()
        cls.daemon_.segments()

    @classmethod
    def end_daemon(cls):
        log = cls.daemon_.log()
        cls.target_.release()
        cls.daemon_.close()
        report = harness.SANITIZER.search(log)
        if report:
            raise AssertionError('a sanitizer reported:\n' + log[max(0, report.start() - 200):][:4000])

    def ctl(self, *arguments, code=0, **more):
        """Its standard output; it must have ended with `code`."""
        done = outboxctl(*arguments, server=f'http://127.0.0.1:{self.daemon_.port}', **more)
        self.assertEqual(done.returncode, code, done)
        return done.stdout

    def json(self, *arguments, **more):
        return json.loads(self.ctl('--json', *arguments, **more))

    def failed(self, workspace, session='s', **members):
        """An entry that has failed."""
        entry = self.daemon_.accept_ok(session, kind='fire', payload={}, workspace=workspace, **members)
        self.daemon_.wait_status(entry, 'error', workspace)
        return entry


class Pretender:
    """An HTTP server that answers by a list, one answer a request (the last one again and again): (status, body), with a
    third member headers; None closes the connection without an answer. Keeps what it was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def handle_one(handler):
                body = handler.rfile.read(int(handler.headers.get('Content-Length') or 0))
                self.requests.append((handler.command, handler.path, dict(handler.headers), body))
                answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                if answer is None:
                    handler.close_connection = True
                    return
                status, content, headers = (*answer, {})[:3]
                text = content if isinstance(content, str) else json.dumps(content)
                handler.send_response(status)
                for name, value in headers.items():
                    handler.send_header(name, value)
                handler.send_header('Content-Length', str(len(text.encode())))
                handler.end_headers()
                handler.wfile.write(text.encode())

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_one

            def log_message(handler, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.url = f'http://127.0.0.1:{self.server.server_address[1]}'
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
