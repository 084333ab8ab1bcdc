"""What every system test stands on: real processes in a session and a folder of their own, a real target, no sleeps.

Rules: nothing outlives a test (processes are found by session and by the folder they hold open, not by name alone);
logs are shown when a test fails, and a sanitizer's report in them is a failure; each test has its own time limit.
  OUTBOXD_BUILD   the build folder (default: build-sanitize, else build, beside this tree)
  OUTBOXD_TLS     1: every daemon speaks TLS, so that any of these tests tries it
  OUTBOXD_SLOW    factor on time limits for slow builds and machines (default 1)
"""
import concurrent.futures
import contextlib
import ctypes
import faulthandler
import http.client
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import unittest
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / 'tests' / 'support'))
from certificates import Authority  # noqa: E402
from target import Target  # noqa: E402,F401 (re-exported to the tests)

TLS_FOR_ALL = os.environ.get('OUTBOXD_TLS') == '1'
SLOW = float(os.environ.get('OUTBOXD_SLOW', '1'))
ROLES = {'supervisor': ('outboxd',), 'api': ('outboxd-api',), 'worker': ('outboxd-worker',),
         'store': ('valkey-server', 'redis-server')}
SANITIZER = re.compile(r'ERROR: (Address|Leak|Thread)Sanitizer|runtime error: |AddressSanitizer:DEADLYSIGNAL')


def build_folder():
    given = os.environ.get('OUTBOXD_BUILD')
    if given:
        return pathlib.Path(given).resolve()
    for name in ('build-sanitize', 'build'):
        if (ROOT / name / 'supervisor' / 'outboxd').exists():
            return ROOT / name
    raise unittest.SkipTest('outboxd is not built: run deploy/build, or set OUTBOXD_BUILD')


def program(name):
    folder = {'outboxd': 'supervisor', 'outboxd-api': 'api', 'outboxd-worker': 'worker', 'outboxctl': 'api/ctl'}[name]
    for path in (build_folder() / folder / name, build_folder() / name, build_folder() / 'api' / name):
        if path.exists():
            return str(path)
    raise FileNotFoundError(f'{name} is not in {build_folder()}')


# Waiting

def wait_until(predicate, timeout=10, what='', every=0.01):
    """Waits for predicate() to be true and returns what it returned. Fails with `what` (text, or a function)."""
    deadline = time.monotonic() + timeout * SLOW
    while True:
        result = predicate()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f'not within {timeout * SLOW:g} s: {what() if callable(what) else what or predicate}')
        time.sleep(every)


def in_parallel(calls, threads=64):
    """Runs all calls at once (as far as threads go); their results in order."""
    with concurrent.futures.ThreadPoolExecutor(min(threads, max(1, len(calls)))) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


# Ports: below the range that outgoing connections take theirs from. An abstract Unix socket holds each while this process
# lives, so that two test programs never choose the same one, and nothing is left on disk.

_held_ports = []


def free_port():
    for _ in range(2000):
        port = random.SystemRandom().randrange(18000, 32000)
        lock = socket.socket(socket.AF_UNIX)
        try:
            lock.bind(f'\0outboxd-test-port-{port}')
            with socket.socket() as probe:
                probe.bind(('127.0.0.1', port))
        except OSError:
            lock.close()
            continue
        _held_ports.append(lock.detach())
        return port
    raise OSError('no free port')


# Processes

def become_subreaper():
    """Orphans of a killed supervisor come to us, so that none is left and none stays a zombie."""
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def proc_stat(pid):
    """(comm, state, parent, session), or None once it is gone."""
    try:
        text = pathlib.Path(f'/proc/{pid}/stat').read_text()
    except OSError:
        return None
    comm, _, rest = text[text.index('(') + 1:].rpartition(') ')
    fields = rest.split()
    return comm, fields[0], int(fields[1]), int(fields[3])


def handles(pid, number):
    """Whether the process has a handler for the signal."""
    with contextlib.suppress(OSError):
        found = re.search(r'^SigCgt:\s*(\w+)', pathlib.Path(f'/proc/{pid}/status').read_text(), re.MULTILINE)
        return bool(found and int(found[1], 16) >> (number - 1) & 1)
    return False


def holds_open(pid, folder):
    folder = str(folder).rstrip('/') + '/'
    with contextlib.suppress(OSError):
        if os.readlink(f'/proc/{pid}/cwd').startswith(folder):
            return True
        for fd in os.listdir(f'/proc/{pid}/fd'):
            with contextlib.suppress(OSError):
                if os.readlink(f'/proc/{pid}/fd/{fd}').startswith(folder):
                    return True
    return False


# HTTP

class Answer:
    """A status line, headers (lower-case names) and body."""

    def __init__(self, status, headers, body):
        self.status = status
        self.headers = {name.lower(): value for name, value in headers}
        self.body = body

    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        """The problem's stable code; None if this isn't a problem document."""
        if not self.headers.get('content-type', '').startswith('application/problem+json'):
            return None
        return self.json().get('code')

    def __repr__(self):
        return f'<{self.status} {self.body[:300]!r}>'


# How the server on a port is spoken to, for tests that give their daemons a certificate or tokens.
tls_contexts = {}  # port: ssl.SSLContext
IDLE = 20  # seconds after which a kept connection is not used again; servers keep them longer
tokens = {}        # port: the token that is shown unless the headers say otherwise


def http_connection(port, timeout):
    if port in tls_contexts:
        return http.client.HTTPSConnection('127.0.0.1', port, timeout=timeout, context=tls_contexts[port])
    return http.client.HTTPConnection('127.0.0.1', port, timeout=timeout)


def with_token(port, headers):
    headers = dict(headers or {})
    if port in tokens and 'Authorization' not in headers:
        headers['Authorization'] = f'Bearer {tokens[port]}'
    return headers


class Client:
    """A keep-alive client for one thread. Connects again when the server closed the connection between two requests,
    never after it has sent something."""

    def __init__(self, port, timeout=30):
        self.port = port
        self.connection = http_connection(port, timeout * SLOW)
        self.used = time.monotonic()

    def call(self, method, path, body=None, headers=None):
        headers = with_token(self.port, headers)
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        if body is not None:
            headers.setdefault('Content-Type', 'application/json')
        if isinstance(body, str):
            body = body.encode()
        if time.monotonic() - self.used > IDLE:  # the server may be about to close it: a request would meet that halfway
            self.connection.close()
        try:
            self.connection.request(method, path, body, headers)
            answer = self.connection.getresponse()
            self.used = time.monotonic()
            return Answer(answer.status, answer.getheaders(), answer.read())
        except BaseException:
            self.connection.close()
            raise

    def close(self):
        self.connection.close()


def raw_request(method, path, body=b'', headers=(), version='HTTP/1.1'):
    """The bytes of a request, for raw sockets."""
    lines = [f'{method} {path} {version}', 'Host: localhost']
    names = {name.lower() for name, _ in headers}
    if body and 'content-type' not in names:
        lines.append('Content-Type: application/json')
    if 'content-length' not in names and 'transfer-encoding' not in names and (body or method in ('POST', 'PUT', 'PATCH')):
        lines.append(f'Content-Length: {len(body)}')
    lines += [f'{name}: {value}' for name, value in headers]
    return ('\r\n'.join(lines) + '\r\n\r\n').encode('latin-1') + body


def read_answer(sock):
    """One answer from a raw socket; None if the peer closed without one."""
    try:
        answer = http.client.HTTPResponse(sock)
        answer.begin()
        return Answer(answer.status, answer.getheaders(), answer.read())
    except (http.client.HTTPException, ConnectionError):
        return None


# Store

class StoreError(Exception):
    pass


class Valkey:
    """A tiny RESP client."""

    def __init__(self, path, timeout=10):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout * SLOW)
        self.socket.connect(str(path))
        self.file = self.socket.makefile('rb')

    def __call__(self, *words):
        encoded = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.socket.sendall(b'*%d\r\n' % len(encoded) + b''.join(b'$%d\r\n%s\r\n' % (len(w), w) for w in encoded))
        return self.read()

    def read(self):
        line = self.file.readline()
        if not line.endswith(b'\r\n'):
            raise ConnectionError('the store closed the connection')
        kind, rest = line[:1], line[1:-2]
        if kind == b'+':
            return rest.decode()
        if kind == b'-':
            raise StoreError(rest.decode())
        if kind == b':':
            return int(rest)
        if kind == b'$':
            size = int(rest)
            return None if size < 0 else self.file.read(size + 2)[:-2]
        if kind == b'*':
            return None if int(rest) < 0 else [self.read() for _ in range(int(rest))]
        raise StoreError(f'unknown reply {line!r}')

    def keys(self, pattern='*'):
        """Tests only: no process of ours ever does this."""
        return sorted(key.decode() for key in self('KEYS', pattern))

    def close(self):
        self.file.close()
        self.socket.close()


def encode(text):
    """Percent-encoding of key parts (contract §2)."""
    return urllib.parse.quote(text, safe='._~-')


def partition(workspace):
    value = 0xcbf29ce484222325
    for byte in workspace.encode():
        value = (value ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return value % 64


def key(name, workspace, *parts):
    """The contract's key: key('q', ws, ses), key('dedupe', ws, ses, cmid), …"""
    return ':'.join([f'outbox{name}:{{{partition(workspace)}}}'] + [encode(part) for part in (workspace,) + parts])


class OwnStore:
    """A Valkey (or Redis) of the test's own, to be killed and started at will: settings `store: {url: store.url}`."""

    program = shutil.which('valkey-server') or shutil.which('redis-server') or '/usr/bin/valkey-server'

    def __init__(self, *options):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='obs-'))
        self.path = self.folder / 'sock'
        self.url = f'unix://{self.path}'
        self.options = options
        self.process = None

    def spawn(self):
        """Starts it without waiting for anything."""
        self.process = subprocess.Popen(
            [self.program, '--dir', str(self.folder), '--unixsocket', str(self.path), '--port', '0', '--save', '', '--appendonly', 'yes',
             '--appendfsync', 'always', '--maxmemory-policy', 'noeviction', '--daemonize', 'no', '--logfile', 'log', *self.options],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def start(self):
        self.spawn()

        def answers():
            with contextlib.suppress(OSError, StoreError):
                valkey = Valkey(self.path)
                try:
                    return valkey('PING') == 'PONG'
                finally:
                    valkey.close()
        wait_until(answers, 10, 'the store of the test')
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        self.process.send_signal(signal.SIGCONT)
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


# The daemon

class Daemon:
    """An outboxd on a folder of its own. start, kill, restart; close() leaves nothing behind."""

    def __init__(self, settings, environment=None):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='obx-'))
        self.state = self.folder / 'state'
        self.state.mkdir(mode=0o750)
        self.port = free_port()
        self.settings = {'listen': f'127.0.0.1:{self.port}', 'state_dir': str(self.state), 'workers': 2, 'node': 'test',
                         'log': {'level': 'debug'}}
        self.settings.update(settings)
        self.ended = False
        # Names of our own for the programs, so that a test can put others in their place.
        self.libexec = self.folder / 'libexec'
        self.libexec.mkdir()
        for name in ('outboxd', 'outboxd-api', 'outboxd-worker'):
            (self.libexec / name).symlink_to(program(name))
        self.environment = {'OUTBOXD_LIBEXEC': str(self.libexec), **(environment or {})}
        self.launcher = []  # a program that executes the rest of its arguments
        self.pass_fds = ()
        if TLS_FOR_ALL:
            authority = Authority(self.folder / 'certificates')
            certificate, key = authority.issue('server')
            self.settings.setdefault('tls', {'certificate': str(certificate), 'key': str(key)})
            tls_contexts[self.port] = authority.context()
        self.config = self.folder / 'outboxd.yaml'
        self.log_path = self.folder / 'log'
        self.process = None
        self.sessions = set()
        self.known_segments = set()
        self.started = 0
        self.threads = threading.local()
        self.clients = []

    # life

    def write_config(self):
        self.config.write_text(json.dumps(self.settings, indent=1) + '\n')  # JSON is YAML

    def spawn(self, *arguments):
        """Starts the supervisor without waiting for anything."""
        self.write_config()
        leaks = os.environ.get('ASAN_OPTIONS', 'detect_leaks=1')
        environment = dict(os.environ, ASAN_OPTIONS=f'abort_on_error=0:exitcode=99:{leaks}',
                           UBSAN_OPTIONS='print_stacktrace=1:halt_on_error=1')
        for name in ('JOURNAL_STREAM', 'NOTIFY_SOCKET'):
            environment.pop(name, None)
        environment.update(self.environment)
        with open(self.log_path, 'ab') as log:
            log.write(f'--- start {self.started + 1}\n'.encode())
            log.flush()
            process = subprocess.Popen([*self.launcher, str(self.libexec / 'outboxd'), '--config', str(self.config), *arguments],
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, env=environment,
                                       pass_fds=self.pass_fds, start_new_session=True)
        self.started += 1
        self.sessions.add(process.pid)
        return process

    def start(self, wait=True):
        for client in self.clients:
            client.close()  # of an earlier life
        self.process = self.spawn()
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self, timeout=20):
        def ready():
            if self.process.poll() is not None:
                raise AssertionError(f'outboxd ended with {self.process.returncode} instead of getting ready')
            try:
                return self.get('/readyz').status == 200
            except (OSError, http.client.HTTPException):
                return False
        wait_until(ready, timeout, lambda: 'ready: ' + self.log()[-3000:], every=0.02)

    def workers_ready(self):
        """Slots of the workers that are ready: the API is, a moment before they are."""
        return {p['slot'] for p in self.get('/readyz').json()['processes'] if p['role'] == 'worker' and p['state'] == 'ready'}

    def wait_workers(self, count=2):
        wait_until(lambda: len(self.workers_ready()) == count, 20, lambda: f'{count} workers: {self.workers_ready()}')
        return self.workers_ready()

    def stop(self, how=signal.SIGTERM, timeout=30):
        """Asks the supervisor to end and waits; its exit status."""
        self.process.send_signal(how)
        return self.process.wait(timeout * SLOW)

    def processes(self):
        """{pid: comm} of everything that belongs to this folder and runs."""
        found = {}
        for name in os.listdir('/proc'):
            if not name.isdigit():
                continue
            pid = int(name)
            stat = proc_stat(pid)
            if stat is None or (stat[3] not in self.sessions and not (stat[0].startswith(('outboxd', 'valkey', 'redis'))
                                                                      and holds_open(pid, self.folder))):
                continue
            if stat[1] == 'Z':
                if stat[2] == os.getpid() and not (self.process and pid == self.process.pid):
                    with contextlib.suppress(ChildProcessError):
                        os.waitpid(pid, os.WNOHANG)
                continue
            found[pid] = stat[0]
        return found

    def pids(self, role):
        return sorted(pid for pid, comm in self.processes().items() if comm in ROLES[role])

    def pid(self, role):
        pids = self.pids(role)
        if len(pids) != 1:
            raise AssertionError(f'{len(pids)} processes are {role}, expected one')
        return pids[0]

    def kill(self, *roles, how=signal.SIGKILL, wait=True):
        """Kills every process of these roles (none given: all, in one go); the pids."""
        found = self.processes()
        pids = [pid for pid, comm in found.items() if not roles or any(comm in ROLES[role] for role in roles)]
        # The supervisor first, so that it can't answer the death of the others.
        pids.sort(key=lambda pid: found[pid] != 'outboxd')
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, how)
        for client in self.clients:
            client.close()  # what it was connected to may be gone: its next call begins anew
        if wait and how in (signal.SIGKILL,):
            wait_until(lambda: not set(pids) & set(self.processes()), 10, f'death of {pids}')
            if self.process and self.process.pid in pids:
                self.process.wait(10)
        return pids

    def restart(self, how=None, wait=True):
        """Ends it (kill -9 of everything, unless a signal is given for the supervisor) and starts it again."""
        if how is None:
            self.kill()
        else:
            self.stop(how)
        return self.start(wait)

    def close(self):
        for _ in range(100):
            pids = self.processes()
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if not pids:
                break
            time.sleep(0.05)
        if self.process:
            self.process.wait(10)
        for client in self.clients:
            client.close()
        left = self.processes()
        self.remove_segments()
        shutil.rmtree(self.folder, ignore_errors=True)
        if left:
            raise AssertionError(f'processes that can not be killed: {left}')

    def remove_segments(self):
        """A supervisor that was killed leaves its segment for the next one to remove; here none comes."""
        for name in self.known_segments:
            with contextlib.suppress(OSError):
                (pathlib.Path('/dev/shm') / name).unlink()

    def segments(self):
        """Shared-memory segments that processes of ours have mapped."""
        found = set()
        for pid in self.processes():
            with contextlib.suppress(OSError):
                for line in pathlib.Path(f'/proc/{pid}/maps').read_text().splitlines():
                    name = line.rpartition(' ')[2]
                    if name.startswith('/dev/shm/outboxd.'):
                        found.add(pathlib.Path(name))
        self.known_segments.update(path.name for path in found)
        return sorted(found)

    def log(self):
        with contextlib.suppress(OSError):
            return self.log_path.read_text(errors='replace')
        return ''

    # talking to it

    @property
    def client(self):
        """This thread's keep-alive client."""
        if not hasattr(self.threads, 'client'):
            self.threads.client = Client(self.port)
            self.clients.append(self.threads.client)
        return self.threads.client

    def call(self, method, path, body=None, headers=None):
        return self.client.call(method, path, body, headers)

    def get(self, path):
        """On a connection of its own."""
        client = Client(self.port)
        try:
            return client.call('GET', path)
        finally:
            client.close()

    def accept(self, session='s', body=None, workspace='w', headers=None, **members):
        """POSTs an entry; members of the entry as keywords, or a whole body."""
        return self.call('POST', f'/v1/workspaces/{workspace}/sessions/{session}/entries', members if body is None else body,
                         headers)

    def accept_ok(self, *arguments, **members):
        answer = self.accept(*arguments, **members)
        if answer.status != 202:
            raise AssertionError(f'expected 202, got {answer}')
        return answer.json()['id']

    def accept_patiently(self, timeout=60, **members):
        """What a client should do: the same request again until it is accepted. The entry's ID."""
        deadline = time.monotonic() + timeout * SLOW
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException):
                answer = self.accept(**members)
                if answer.status in (200, 202):
                    return answer.json()['id']
                if answer.status not in (429, 503):
                    raise AssertionError(f'refused: {answer}')
            if time.monotonic() > deadline:
                raise AssertionError(f'not accepted in {timeout * SLOW:g} s: {members}')
            time.sleep(0.02)

    def entries(self, session='s', workspace='w'):
        return self.call('GET', f'/v1/workspaces/{workspace}/sessions/{session}/entries').json()['entries']

    def entry(self, entry_id, workspace='w'):
        return self.call('GET', f'/v1/workspaces/{workspace}/entries/{entry_id}')

    def status(self, entry_id, workspace='w'):
        """`pending` … `parked`, or how it ended: `sent`, `removed`, …"""
        answer = self.entry(entry_id, workspace)
        return answer.json()['status'] if answer.status == 200 else f'http {answer.status}'

    def wait_status(self, entry_id, status, workspace='w', timeout=15):
        """The entry as it was when it had that status: a moment later it may have another."""
        def seen():
            answer = self.entry(entry_id, workspace)
            return answer.json() if answer.status == 200 and answer.json()['status'] == status else None
        return wait_until(seen, timeout, lambda: f'{entry_id} to be {status}: {self.entry(entry_id, workspace)}', every=0.03)

    def socket(self):
        sock = socket.create_connection(('127.0.0.1', self.port), timeout=20 * SLOW)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.port in tls_contexts:
            return tls_contexts[self.port].wrap_socket(sock, server_hostname='127.0.0.1')
        return sock

    def valkey(self):
        return Valkey(self.state / 'store.sock')

    def metric(self, name, **labels):
        """Sum over the series of this name that carry these labels."""
        total = 0.0
        for line in self.get('/metrics').body.decode().splitlines():
            match = re.match(r'([a-zA-Z_:]+)(?:\{(.*)\})? (\S+)$', line)
            if match and match[1] == name and all(f'{k}="{v}"' in (match[2] or '') for k, v in labels.items()):
                total += float(match[3])
        return total

    def ctl(self, *arguments, timeout=20):
        return subprocess.run([program('outboxctl'), '--server', f'http://127.0.0.1:{self.port}', *arguments],
                              capture_output=True, text=True, timeout=timeout * SLOW, cwd=self.folder, stdin=subprocess.DEVNULL)


# The base of every test

class TimeLimit(Exception):
    pass


class SystemTest(unittest.TestCase):
    """self.target() and self.daemon(…) end by themselves. `limit` is a test's time in seconds."""
    limit = 60

    def run(self, result=None):
        before = len(result.failures) + len(result.errors) if result else 0
        self._kept_logs = []

        def too_late(_signal, frame):
            stack = ''.join(traceback.format_stack(frame)[-4:])
            signal.setitimer(signal.ITIMER_REAL, 30)  # for the clean-up
            raise TimeLimit(f'the test took longer than {self.limit * SLOW:g} s, at\n{stack}')

        previous = signal.signal(signal.SIGALRM, too_late)
        signal.setitimer(signal.ITIMER_REAL, self.limit * SLOW)
        try:
            return super().run(result)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)
            if result and len(result.failures) + len(result.errors) > before:
                for name, text in self._kept_logs:
                    print(f'--- log of {name}, its end:\n{text}', file=sys.stderr)

    def own_store(self, *options):
        store = OwnStore(*options).start()
        self.addCleanup(store.close)
        return store

    def target(self, **options):
        target = Target(**options).start()
        self.addCleanup(target.stop)
        return target

    def daemon(self, target=None, /, start=True, environment=None, **settings):
        """An outboxd that delivers to `target`. Kinds: `note` (idempotent), `pay` (verified look-up), `fire` (neither)."""
        settings.setdefault('kinds', KINDS)
        if target is not None:
            settings.setdefault('target', {'url': target.url})
        for name, value in FAST.items():
            settings.setdefault(name, value)
        daemon = Daemon(settings, environment)
        self.addCleanup(self.end, daemon)
        if start:
            daemon.start()
            daemon.segments()
        return daemon

    def end(self, daemon):
        """Kills all of it. Every daemon gets this at its test's end; a test with many may do it earlier."""
        if daemon.ended:
            return
        daemon.ended = True
        log = daemon.log()
        try:
            daemon.segments()
        finally:
            daemon.close()
        self._kept_logs.append((daemon.folder.name, log[-12000:]))
        report = SANITIZER.search(log)
        if report:
            at = max(0, report.start() - 200)
            self.fail('a sanitizer reported:\n' + log[at:at + 4000])

    # assertions in our words

    def assertProblem(self, answer, status, code=None):
        self.assertIsNotNone(answer, 'no answer at all')
        self.assertEqual(answer.status, status, answer)
        self.assertTrue(answer.headers.get('content-type', '').startswith('application/problem+json'), answer.headers)
        problem = answer.json()
        self.assertTrue(problem.get('code'), problem)
        self.assertEqual(problem.get('status', status), status)
        if code:
            self.assertEqual(problem['code'], code, problem)

    def assertDelivered(self, target, ids, timeout=30, times=None):
        """All of these were stored at the target; exactly `times` POSTs of each if given."""
        ids = set(ids)
        wait_until(lambda: ids <= {r.key for r in target.stored()}, timeout,
                   lambda: f'{len(ids - {r.key for r in target.stored()})} of {len(ids)} messages were not delivered')
        if times is not None:
            counts = {}
            for request in target.posts():
                counts[request.key] = counts.get(request.key, 0) + 1
            wrong = {entry: counts.get(entry, 0) for entry in ids if counts.get(entry, 0) != times}
            self.assertFalse(wrong, 'sent another number of times')


# Short waits, so that tests are quick; what a test is about it sets itself.
FAST = {
    'retry_backoff': '50ms', 'max_backoff': '200ms', 'verify_delay': '100ms', 'verify_backoff': '100ms',
    'max_verify_backoff': '500ms', 'verify_settle': '200ms', 'delivery_timeout': '20s', 'connect_timeout': '2s',
    'verify_timeout': '5s', 'drain_timeout': '10s', 'dedupe_ttl': '1h',
    'targets': {'circuit_delay': '50ms', 'max_circuit_delay': '200ms'},
}

LOOK_UP = {'url': '/messages/by-key/{id}', 'delivered': 200, 'absent': 404}

KINDS = [
    {'name': 'note', 'executor': 'http', 'url': '/notes', 'idempotent': True},
    {'name': 'pay', 'executor': 'http', 'url': '/payments', 'idempotent': False, 'verify': LOOK_UP},
    {'name': 'fire', 'executor': 'http', 'url': '/fires', 'idempotent': False},
]


def main():
    faulthandler.enable()
    become_subreaper()
    unittest.main(module='__main__', verbosity=2)
