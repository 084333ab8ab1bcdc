"""A real opencode server and its fake model provider, for system tests (tests/support/opencode/ says what is known of it).

Rules: one server serves all tests of a program (it takes seconds to start and half a gigabyte; sessions are cheap), in a
folder of its own; close() leaves nothing behind. What can't be installed or started is an error with what npm or opencode
said, never a skipped test.
  OPENCODE_TEST_VERSION   another version than the pinned one
"""
import atexit
import base64
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import urllib.parse

from harness import ROOT, SLOW, free_port, wait_until

SUPPORT = ROOT / 'tests' / 'support' / 'opencode'


def call(url, method, path, body=None, headers=None, timeout=30):
    """(status, the answer's JSON, or its bytes if it is none)."""
    at = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(at.hostname, at.port, timeout=timeout * SLOW)
    headers = dict(headers or {})
    if body is not None:
        headers['Content-Type'] = 'application/json'
        body = json.dumps(body)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        data = answer.read()
    finally:
        connection.close()
    try:
        return answer.status, json.loads(data)
    except ValueError:
        return answer.status, data


class Opencode:
    """start, stop, kill, restart: always the same folder, port and data."""

    username = 'opencode'

    def __init__(self, password=None):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='oco-'))
        self.port = free_port()
        self.provider_port = free_port()
        self.password = password
        self.facts = {}
        atexit.register(self.close)

    # life

    @property
    def url(self):
        return f'http://127.0.0.1:{self.port}'

    @property
    def version(self):
        return self.facts['OPENCODE_VERSION']

    def version_at_least(self, *wanted):
        return tuple(int(part) for part in self.version.split('.')) >= wanted

    def start(self):
        """Returns once it answers. Goes on with what an earlier life left."""
        command = [str(SUPPORT / 'start.sh'), str(self.folder), '--port', str(self.port),
                   '--provider-port', str(self.provider_port), '--timeout', str(int(60 * SLOW))]
        if self.password:
            command += ['--password', self.password]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            raise AssertionError(f'the opencode of the tests can not be started:\n{done.stderr.strip()}')
        self.facts = dict(line.split('=', 1) for line in done.stdout.splitlines() if '=' in line)
        return self

    def end(self, *options):
        subprocess.run([str(SUPPORT / 'stop.sh'), str(self.folder), *options], stdin=subprocess.DEVNULL, check=True)
        with contextlib.suppress(KeyError, ChildProcessError, ValueError):
            os.waitpid(int(self.facts['OPENCODE_PID']), os.WNOHANG)  # ours, if the test is a subreaper

    def stop(self):
        self.end('--only', 'opencode')

    def kill(self):
        """kill -9 of the server; the provider lives on."""
        self.end('--kill', '--only', 'opencode')

    def freeze(self):
        """From now on it accepts connections and answers nothing, until thaw()."""
        os.kill(int(self.facts['OPENCODE_PID']), signal.SIGSTOP)

    def thaw(self):
        os.kill(int(self.facts['OPENCODE_PID']), signal.SIGCONT)

    def restart(self):
        self.kill()
        return self.start()

    def is_down(self):
        return not (self.folder / 'opencode.pid').exists()

    def close(self):
        atexit.unregister(self.close)
        self.end('--kill')
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self):
        with contextlib.suppress(OSError):
            return (self.folder / 'log' / 'opencode.log').read_text(errors='replace')
        return ''

    # the server

    def call(self, method, path, body=None):
        headers = {}
        if self.password:
            secret = base64.b64encode(f'{self.username}:{self.password}'.encode()).decode()
            headers['Authorization'] = f'Basic {secret}'
        return call(self.url, method, path, body, headers)

    def create_session(self, title='of a test'):
        """Its ID. With a title of its own no turn asks the provider for one."""
        status, answer = self.call('POST', '/session', {'title': title})
        if status != 200:
            raise AssertionError(f'no session: {status} {answer}')
        return answer['id']

    def transcript(self, session):
        """Every message, oldest first: [{info, parts}, …]."""
        status, answer = self.call('GET', f'/session/{session}/message')
        if status != 200:
            raise AssertionError(f'no transcript of {session}: {status} {answer}')
        return answer

    def user_parts(self, session):
        """The text parts of every user message: [[text, …], …]."""
        return [[part['text'] for part in message['parts'] if part['type'] == 'text']
                for message in self.transcript(session) if message['info']['role'] == 'user']

    def user_texts(self, session):
        """The text of every user message, oldest first."""
        return [''.join(parts) for parts in self.user_parts(session)]

    def say(self, session, text, **members):
        """A prompt past outboxd; the whole turn."""
        return self.call('POST', f'/session/{session}/message', dict({'parts': [{'type': 'text', 'text': text}]}, **members))

    # the provider

    def provider(self, method, path, body=None):
        return call(f'http://127.0.0.1:{self.provider_port}', method, path, body)[1]

    def rule(self, match, **fields):
        """Turns whose newest user message contains `match` go so (the fields of README.md); the newest rule first."""
        rules = self.provider('GET', '/control')['rules']
        self.provider('PUT', '/control', {'rules': [dict(fields, match=match)] + rules})

    def release(self):
        """Lets turns go on that a rule holds. How many."""
        return self.provider('POST', '/control/release', {})['released']

    def turns(self, text=None):
        """What the provider was asked for: turns whose newest user message contains the text."""
        return [request for request in self.provider('GET', '/requests')
                if request['kind'] == 'turn' and (text is None or text in request['user'])]

    def wait_turn(self, text, timeout=20):
        """Until a turn of this text has reached the provider: then its message is stored and the POST is open."""
        wait_until(lambda: self.turns(text), timeout, f'a turn of {text!r}', every=0.03)
