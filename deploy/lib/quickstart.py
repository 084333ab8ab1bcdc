#!/usr/bin/env python3
"""The part of deploy/quickstart that runs: a demo target in this process, outboxd beside it, messages on their way.

Rules: standard library only; ends outboxd the polite way (TERM) and leaves no process behind; nothing is shown that did
not happen: the journey is what the API answered and what the target received.
"""
import argparse
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get('OUTBOXD_BUILD') or ROOT / 'build')
sys.path.insert(0, str(ROOT / 'tests' / 'support'))
sys.dont_write_bytecode = True
from target import Target  # noqa: E402

CONFIG = {
    'verify_delay': '500ms', 'verify_settle': '500ms', 'retry_backoff': '500ms', 'max_backoff': '2s',
    'delivery_timeout': '20s', 'drain_timeout': '10s',
    'kinds': [
        {'name': 'note', 'url': '/notes', 'idempotent': True},
        {'name': 'payment', 'url': '/payments', 'idempotent': False,
         'verify': {'url': '/payments/by-key/{id}', 'delivered': 200, 'absent': 404}},
    ],
}

ENDED = {'sent', 'removed', 'discarded', 'replaced', 'error', 'parked'}
WORKSPACE = '/v1/workspaces/home'


def say(text=''):
    print(text, flush=True)


def free_port(wanted=0):
    """The wanted port if nobody has it, else a free one."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(('127.0.0.1', wanted))
        except OSError:
            probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def children_of(pid):
    """(pid, name) of its children."""
    found = []
    for entry in pathlib.Path('/proc').iterdir():
        if entry.name.isdigit():
            try:
                comm, _, rest = (entry / 'stat').read_text().partition('(')[2].rpartition(') ')
            except OSError:
                continue
            if int(rest.split()[1]) == pid and rest.split()[0] != 'Z':
                found.append((int(entry.name), comm))
    return sorted(found, key=lambda child: (child[1], child[0]))


class Demo:
    def __init__(self, is_check):
        self.is_check = is_check
        self.start_time = time.monotonic()
        # A check is on its own; the demo keeps its folder, so that what was accepted survives a restart of the quickstart.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='outboxd-check-') if is_check else BUILD / 'quickstart')
        self.folder.mkdir(parents=True, exist_ok=True)
        self.state = self.folder / 'state'
        if len(str(self.state)) > 80:  # a Unix socket's path has room for 107 bytes
            self.state = pathlib.Path(tempfile.gettempdir()) / f'outboxd-quickstart-{os.getuid()}'
        self.state.mkdir(mode=0o750, exist_ok=True)
        self.port = free_port(0 if is_check else 7780)
        self.target = Target(port=free_port(0 if is_check else 9000))
        self.log_path = self.folder / 'outboxd.log'
        self.outboxd = None
        self.known = {}
        self.sessions = set()  # of each supervisor that we started
        self.accepted = []

    # outboxd

    def start(self):
        self.target.start()
        # The demo's point: the first payment's answer is lost on the way, though the target has the payment.
        self.target.script({'path': '/payments', 'nth': 1, 'store': True, 'delay': 0.2, 'close': 'after-request'},
                           {'method': 'POST', 'path': '*', 'delay': 0.2, 'store': True})
        config = dict(CONFIG, listen=f'127.0.0.1:{self.port}', state_dir=str(self.state), target={'url': self.target.url})
        path = self.folder / 'outboxd.yaml'
        path.write_text(json.dumps(config, indent=2) + '\n')  # JSON is YAML
        self.config_path = path
        self.spawn()

    def spawn(self):
        with open(self.log_path, 'ab') as log:
            self.outboxd = subprocess.Popen([str(BUILD / 'supervisor' / 'outboxd'), '--config', str(self.config_path)],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self.sessions.add(self.outboxd.pid)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if self.outboxd.poll() is not None:
                raise RuntimeError(f'outboxd ended at once with {self.outboxd.returncode}')
            try:
                if self.call('GET', '/readyz')[0] == 200:
                    return
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.05)
        raise RuntimeError('outboxd did not get ready within 30 s')

    def stop(self):
        if self.outboxd and self.outboxd.poll() is None:
            self.outboxd.send_signal(signal.SIGTERM)
            try:
                self.outboxd.wait(20)
            except subprocess.TimeoutExpired:
                self.outboxd.kill()
                self.outboxd.wait()
        self.kill_session()
        self.target.stop()

    def kill_session(self):
        """What a killed supervisor left: everything in the sessions that we opened."""
        for _ in range(50):
            left = []
            for entry in pathlib.Path('/proc').iterdir():
                if entry.name.isdigit():
                    try:
                        rest = (entry / 'stat').read_text().rpartition(') ')[2].split()
                    except OSError:
                        continue
                    if int(rest[3]) in self.sessions and rest[0] != 'Z':
                        left.append(int(entry.name))
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            if not left:
                return
            time.sleep(0.05)

    def call(self, method, path, body=None):
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=10)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None,
                               {'Content-Type': 'application/json'} if body is not None else {})
            answer = connection.getresponse()
            text = answer.read()
            try:
                return answer.status, json.loads(text)
            except ValueError:
                return answer.status, {}
        finally:
            connection.close()

    # messages

    def send(self, session, kind, name, payload):
        """As a client should: the same request until it is accepted. The entry's ID."""
        body = {'clientMessageID': name, 'kind': kind, 'payload': payload}
        for _ in range(200):
            try:
                status, answer = self.call('POST', f'{WORKSPACE}/sessions/{session}/entries', body)
                if status in (200, 202):
                    self.accepted.append(answer['id'])
                    return answer['id']
                if status not in (429, 503):
                    raise RuntimeError(f'{name} was refused: {status} {answer}')
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.1)
        raise RuntimeError(f'{name} was not accepted within 20 s')

    def since(self):
        return f'{time.monotonic() - self.start_time:6.2f} s'

    def journey(self, messages, timeout=30):
        """Prints every state that the messages are seen in; whether all of them were sent."""
        seen = {entry: 'accepted' for entry in messages}
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline and not all(status in ENDED for status in seen.values()):
            for entry, label in messages.items():
                if seen[entry] in ENDED:
                    continue
                status = self.call('GET', f'{WORKSPACE}/entries/{entry}')[1].get('status', seen[entry])
                if status != seen[entry] and not (status == 'pending' and seen[entry] == 'accepted'):
                    seen[entry] = status
                    note = ''
                    if status == 'verifying':
                        note = '   the answer was lost: it is looked up, not sent again'
                    if status == 'sent':
                        posts = len(self.target.posts(key=entry))
                        lookups = len(self.target.lookups(entry))
                        note = f'   the target got it in {posts} request{"s" if posts != 1 else ""}' + \
                            (f' and {lookups} look-up{"s" if lookups != 1 else ""}' if lookups else '')
                    say(f'  {self.since()}  {label:<22} {status:<11}{note}')
            time.sleep(0.02)
        return all(status == 'sent' for status in seen.values())

    def show_messages(self):
        run = f'{int(time.time()):x}'
        say()
        say('Three notes in one session, in order, and two payments. The first payment\'s answer is lost on its way back.')
        say()
        messages = {}
        for session, kind, number in (('anna', 'note', 1), ('anna', 'note', 2), ('anna', 'note', 3),
                                      ('bob', 'payment', 1), ('bob', 'payment', 2)):
            label = f'{session}: {kind} {number}'
            entry = self.send(session, kind, f'{run}-{kind}-{number}', {'text': f'{kind} {number}', 'amount': number})
            messages[entry] = label
            say(f'  {self.since()}  {label:<22} {"accepted":<11}   202, {entry}')
        arrived = self.journey(messages)
        say()
        stored = {r.key for r in self.target.stored()}
        lost = [label for entry, label in messages.items() if entry not in stored]
        twice = [label for entry, label in messages.items()
                 if 'payment' in label and len(self.target.posts(key=entry)) != 1]
        order = [r.key for r in self.target.stored() if r.key in messages and messages[r.key].startswith('anna')]
        if lost or not arrived:
            say(f'  not arrived: {", ".join(lost) or "still under way"}')
            return False
        if twice:
            say(f'  sent more than once: {", ".join(twice)}')
            return False
        if order != [entry for entry in messages if entry in order]:
            say('  out of order')
            return False
        say(f'  {len(messages)} of {len(messages)} messages arrived, in order, each payment in exactly one request.')
        return True

    # the foreground

    def show_help(self):
        url = f'http://127.0.0.1:{self.port}'
        say()
        say('It stays up, with one message a second. Try:')
        say()
        say(f'  curl {url}/readyz           ready? and what a 202 is worth')
        say(f'  curl {url}/metrics          Prometheus')
        say(f'  curl {url}{WORKSPACE}/sessions/anna/entries')
        say(f'  curl {self.target.url}/_requests        everything the target received')
        say(f'  curl -X POST {url}{WORKSPACE}/sessions/me/entries -H "Content-Type: application/json" \\')
        say('       -d \'{"clientMessageID":"hello-1","kind":"note","payload":{"text":"hello"}}\'')
        say(f'  {BUILD}/api/ctl/outboxctl top --state-dir {self.state}    live view')
        say('  kill -9 any of these, or all of them, and watch: nothing accepted is lost')
        say()
        self.show_processes()
        say()
        say(f'  log: {self.log_path}    configuration: {self.config_path}    end: Ctrl-C')
        say()

    def show_processes(self):
        """Prints what came and went since the last call."""
        now = {self.outboxd.pid: 'outboxd'}
        now.update(children_of(self.outboxd.pid))
        for pid, name in self.known.items():
            if pid not in now:
                say(f'  {self.since()}  process {pid:<8} {name:<16} is gone')
        for pid, name in now.items():
            if pid not in self.known:
                say(f'  {self.since()}  process {pid:<8} {name:<16} runs')
        self.known = now

    def foreground(self, ended):
        self.show_help()
        number = 0
        mine = []
        shown = 0.0
        run = f'{int(time.time()):x}'
        while not ended.is_set():
            if self.outboxd.poll() is not None:
                say(f'  {self.since()}  outboxd itself ended ({self.outboxd.returncode}): starting it again')
                self.spawn()
            self.show_processes()
            number += 1
            try:
                mine.append(self.send(f'session-{number % 5}', 'note' if number % 3 else 'payment', f'{run}-{number}',
                                      {'text': f'message {number}'}))
            except RuntimeError as error:
                say(f'  {self.since()}  {error}')
            if time.monotonic() - shown > 5:
                shown = time.monotonic()
                stored = {r.key for r in self.target.stored()}
                under_way = sum(1 for entry in mine if entry not in stored)
                say(f'  {self.since()}  accepted {len(mine)}, arrived {len(mine) - under_way}, under way {under_way}')
            ended.wait(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--check', action='store_true')
    options = parser.parse_args()
    ended = threading.Event()
    demo = Demo(options.check)

    def on_signal(_signal, _frame):
        if ended.is_set() or options.check:
            raise KeyboardInterrupt
        ended.set()

    signal.signal(signal.SIGINT, on_signal)
    signal.signal(signal.SIGTERM, on_signal)
    ok = False
    try:
        demo.start()
        say(f'outboxd on http://127.0.0.1:{demo.port}, demo target on {demo.target.url}, store embedded in {demo.state}')
        ok = demo.show_messages()
        if not options.check and not ended.is_set():
            demo.foreground(ended)
    except KeyboardInterrupt:
        ok = ok and not options.check
    except (OSError, RuntimeError, http.client.HTTPException) as error:
        say(f'\nit did not work: {error}')
        ok = False
    if not ok and demo.log_path.exists():
        say(f'--- the end of {demo.log_path}')
        say('\n'.join(demo.log_path.read_text(errors='replace').splitlines()[-40:]))
    say('ending outboxd (TERM: it finishes what it is sending) …')
    demo.stop()
    if options.check:
        shutil.rmtree(demo.folder, ignore_errors=True)
        say('quickstart --check: ' + ('ok' if ok else 'FAILED'))
    return 0 if ok else 1


if __name__ == '__main__':
    sys.exit(main())
