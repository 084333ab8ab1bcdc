"""Readers of Server-Sent Events for tests, by the rules of EventSource: an event counts once its blank line came."""
import contextlib
import dataclasses
import http.client
import json
import threading
import time

import harness


@dataclasses.dataclass
class Event:
    name: str
    data: dict
    id: str       # the last one told, here or before
    own_id: str   # of this very event; None: it had none


class Stream:
    """Connects at once; .events grows in a thread of its own (unless threaded is False: then iterate over read())."""

    def __init__(self, port, path, last=None, query=None, threaded=True, timeout=60):
        self.connection = harness.http_connection(port, timeout * harness.SLOW)
        headers = harness.with_token(port, {'Accept': 'text/event-stream'})
        if last:
            headers['Last-Event-ID'] = last
        self.connection.request('GET', path + (f'?lastEventID={query}' if query else ''), headers=headers)
        self.answer = self.connection.getresponse()
        self.headers = {name.lower(): value for name, value in self.answer.getheaders()}
        if self.answer.status != 200:
            body = self.answer.read()
            self.connection.close()
            raise AssertionError(f'{path} answered {self.answer.status} {body!r}')
        self.events, self.ended, self.error = [], False, None
        self.last = last
        self.changed = threading.Condition()
        if threaded:
            threading.Thread(target=self.run, daemon=True).start()

    def read(self):
        """Each event as it comes, until the stream ends."""
        name, data, own_id = '', [], None
        while True:
            line = self.answer.readline()
            if not line.endswith(b'\n'):
                return
            line = line.rstrip(b'\r\n').decode()
            if not line:
                if data:
                    self.last = own_id if own_id is not None else self.last
                    yield Event(name or 'message', json.loads('\n'.join(data)), self.last, own_id)
                name, data, own_id = '', [], None
                continue
            field, _, value = line.partition(':')
            value = value[1:] if value.startswith(' ') else value
            if field == 'event':
                name = value
            elif field == 'data':
                data.append(value)
            elif field == 'id':
                own_id = value

    def run(self):
        try:
            for event in self.read():
                with self.changed:
                    self.events.append(event)
                    self.changed.notify_all()
        except (OSError, ValueError, AttributeError, http.client.HTTPException) as error:
            self.error = error
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def wait(self, predicate, timeout=30):
        deadline = time.monotonic() + timeout * harness.SLOW
        with self.changed:
            while not predicate(self.events):
                left = deadline - time.monotonic()
                if self.ended or left <= 0:
                    raise AssertionError(f'{"the stream ended" if self.ended else "nothing"} after {self.events[-5:]}')
                self.changed.wait(left)

    def close(self):
        if self.connection.sock:
            try:
                self.connection.sock.shutdown(2)
            except OSError:
                pass
        try:
            self.answer.fp and self.answer.fp.raw._sock.shutdown(2)
        except (OSError, AttributeError):
            pass


class Follower:
    """Reads a stream like EventSource: connects again with the last ID, to each of its daemons in turn (one or a list)."""

    def __init__(self, daemons, path, timeout=60):
        self.daemons = daemons if isinstance(daemons, list) else [daemons]
        self.path, self.timeout = path, timeout
        self.events, self.last, self.connections, self.resets = [], None, 0, []
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.first = threading.Event()

    def start(self):
        self.thread.start()
        self.first.wait(20)

    def run(self):
        tries = 0
        while not self.stopping.is_set():
            port = self.daemons[tries % len(self.daemons)].port
            tries += 1
            try:
                stream = Stream(port, self.path, self.last, threaded=False, timeout=self.timeout)
            except (OSError, http.client.HTTPException, AssertionError):
                time.sleep(0.02)
                continue
            self.connections += 1
            with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
                for event in stream.read():
                    self.last = event.id
                    self.first.set()
                    if event.name == 'reset':
                        self.resets.append(event)
                    elif event.name == 'queue.update':
                        self.note(event)
                    if self.stopping.is_set():
                        break
            stream.close()

    def note(self, event):
        self.events.append(event)

    def seen(self, type_name):
        return [event.data['entryID'] for event in list(self.events) if event.data['type'] == type_name]

    def stop(self):
        self.stopping.set()
