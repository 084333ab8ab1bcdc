#!/usr/bin/env python3
"""An HTTP target that obeys a script and remembers everything: what the system tests and the quickstart deliver to.

In a test:      with Target() as target: target.script(path='/notes', nth=1, close='after-request'); …; target.requests()
By hand:        tests/support/target.py --port 9000, then POST /_script, GET /_requests (see --help).
Rules: standard library only; one thread with an asyncio loop; what it says of a request is what came over the wire.
"""
import argparse
import asyncio
import dataclasses
import json
import socket
import struct
import sys
import threading
import time
import urllib.parse

HELP = """
Control (never recorded, never scripted):
  GET  /_requests            every request seen: time, end, method, path, headers, body, connection, number on it
  GET  /_stored              what was stored, by Idempotency-Key
  POST /_script  RULE|[RULE] adds rules; the first that matches decides
  POST /_release {"name":N}  lets requests go on that a rule holds (without a name: all of them)
  POST /_reset               forgets requests, stored messages and rules
  GET  …/by-key/{id}         200 and the stored message, or 404 (unless a rule matches): the look-up of a verified kind

A rule matches by (all that are given must hold)
  method, path (exact, or a prefix ending in *), body (a substring), key (the Idempotency-Key),
  (rules on the body are asked last: the others decide before it was read)
  reused (true: not the first request of its connection), at ("request", or "connection": before anything is read)
and acts on its n-th match only with  nth (a number or a list, from 1), every (each n-th), times (at most so often).
It acts:
  delay      seconds before the answer               hold      true or a name: until released
  status, headers, answer                            the answer (its body: text, or JSON if not text)
  store      true: stored on arrival, before any delay or hold; false: not stored; default: stored with a 2xx answer to a
             request that is no look-up
  close      "after-request": no answer; "reset": RST, no answer; "mid-answer": after `after` bytes of the answer
  after      bytes: of the answer before a mid-answer close; of a connection before a reset at "connection" (default 0)
  read       bytes of the request's body to read before acting (default: all of it)
  endless    true, or the text it begins with: the answer's body never ends
  drip       seconds between single bytes of the answer
  garbage    text (latin-1) sent instead of an answer  informational  that many 1xx answers first
  huge_header  bytes of one header of the answer   twice     true: the whole answer two times, in one go
"""

MAX_HEAD = 1 << 20


@dataclasses.dataclass
class Request:
    """One request as it came. Times are CLOCK_MONOTONIC seconds: the same clock in every process of the machine."""
    index: int
    time: float
    method: str
    path: str
    headers: dict
    connection: int
    number: int
    body: bytes = b''
    end: float = 0.0       # its last byte was read
    answered: float = 0.0  # the answer's last byte was handed over
    stored: bool = False

    @property
    def key(self):
        return self.headers.get('idempotency-key', '')

    def json(self):
        return json.loads(self.body)

    def as_dict(self):
        fields = dataclasses.asdict(self)
        fields['body'] = self.body.decode('utf-8', 'replace')
        return fields


MATCHERS = {'method', 'path', 'body', 'key', 'reused', 'at', 'nth', 'every', 'times'}
ACTIONS = {'delay', 'hold', 'status', 'headers', 'answer', 'store', 'close', 'after', 'read', 'endless', 'drip', 'garbage',
           'informational', 'huge_header', 'twice'}


class Rule:
    """What to do with which request. `body` is what the request must contain; `answer` is the body to answer with."""

    def __init__(self, **fields):
        unknown = set(fields) - MATCHERS - ACTIONS
        if unknown:
            raise ValueError('no such member of a rule: ' + ', '.join(sorted(unknown)))
        self.fields = fields
        self.matches = 0
        self.acted = 0

    def get(self, name, default=None):
        return self.fields.get(name, default)

    def end(self):
        """Does nothing from now on."""
        self.fields['times'] = 0

    def needs_body(self):
        return 'body' in self.fields

    def fits(self, request):
        fields = self.fields
        if 'method' in fields and fields['method'] != request.method:
            return False
        if 'path' in fields:
            path = fields['path']
            if request.path != path and not (path.endswith('*') and request.path.startswith(path[:-1])):
                return False
        if 'key' in fields and fields['key'] != request.key:
            return False
        if 'reused' in fields and fields['reused'] != (request.number > 1):
            return False
        return 'body' not in fields or fields['body'].encode() in request.body

    def acts(self):
        """Counts a match; whether it is one that the rule acts on."""
        self.matches += 1
        nth = self.fields.get('nth')
        if nth is not None and self.matches not in (nth if isinstance(nth, list) else [nth]):
            return False
        if self.matches % self.fields.get('every', 1):
            return False
        if self.acted >= self.fields.get('times', self.acted + 1):
            return False
        self.acted += 1
        return True


PLAIN = Rule()


class _Connection(asyncio.Protocol):
    """One connection: reads a request, has it answered, goes on with the next (a pipelining client has to wait)."""

    def __init__(self, target):
        self.target = target
        self.transport = None
        self.buffer = bytearray()
        self.request = None   # being read
        self.rule = None
        self.missing = 0
        self.chunked = False
        self.busy = False
        self.can_write = asyncio.Event()
        self.can_write.set()
        self.seen = 0
        self.reset_after = None
        self.requests = 0
        self.task = None

    # the loop calls these

    def connection_made(self, transport):
        self.transport = transport
        self.target._connections.add(self)
        self.number = self.target._next_connection()
        rule = self.target._rule_for_connection()
        if rule:
            self.reset_after = rule.get('after', 0)
            if self.reset_after == 0:
                self.reset()

    def connection_lost(self, error):
        self.target._connections.discard(self)
        self.can_write.set()
        if self.task:
            self.task.cancel()
        self.transport = None

    def eof_received(self):
        return self.busy and not self.target.tls  # a half-closed client still gets its answer

    def pause_writing(self):
        self.can_write.clear()

    def resume_writing(self):
        self.can_write.set()

    def data_received(self, data):
        self.seen += len(data)
        if self.reset_after is not None and self.seen >= self.reset_after:
            self.reset()
            return
        self.buffer += data
        if not self.busy:
            self.read_on()

    # reading

    def read_on(self):
        while self.transport and not self.busy:
            if self.request is None and not self.read_head():
                return
            if not self.read_body():
                return

    def read_head(self):
        end = self.buffer.find(b'\r\n\r\n')
        if end < 0:
            if len(self.buffer) > MAX_HEAD:
                self.reset()
            return False
        lines = self.buffer[:end].decode('latin-1').split('\r\n')
        del self.buffer[:end + 4]
        try:
            method, path, _version = lines[0].split(' ')
        except ValueError:
            self.transport.write(b'HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
            self.transport.close()
            return False
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(':')
            headers[name.strip().lower()] = value.strip()
        self.requests += 1
        self.request = Request(0, time.monotonic(), method, path, headers, self.number, self.requests)
        self.chunked = headers.get('transfer-encoding', '').lower() == 'chunked'
        self.missing = 0 if self.chunked else int(headers.get('content-length') or 0)
        self.rule = None
        if path.startswith('/_'):
            return True
        if headers.get('expect', '').lower() == '100-continue':
            self.transport.write(b'HTTP/1.1 100 Continue\r\n\r\n')
        self.target._record(self.request)
        self.rule = self.target._rule_for(self.request, has_body=False)
        if self.rule and self.rule.get('read') is not None:
            self.missing = min(self.missing, self.rule.get('read'))
        return True

    def read_body(self):
        if self.chunked:
            body = self.take_chunks()
            if body is None:
                return False
        else:
            if len(self.buffer) < self.missing:
                return False
            body = bytes(self.buffer[:self.missing])
            del self.buffer[:self.missing]
        request, rule = self.request, self.rule
        self.request = None
        request.body = body
        request.end = time.monotonic()
        if request.path.startswith('/_'):
            self.target._control(self, request)
            return True
        rule = rule or self.target._rule_for(request, has_body=True) or PLAIN
        if rule.get('delay') or rule.get('hold') or rule.get('endless') or rule.get('drip') or rule.get('informational'):
            self.busy = True
            self.task = asyncio.ensure_future(self.answer_slowly(request, rule))
            return False
        self.answer(request, rule)
        return self.transport is not None

    def take_chunks(self):
        body = bytearray()
        at = 0
        while True:
            end = self.buffer.find(b'\r\n', at)
            if end < 0:
                return None
            size = int(bytes(self.buffer[at:end]).split(b';')[0], 16)
            if len(self.buffer) < end + 2 + size + 2:
                return None
            body += self.buffer[end + 2:end + 2 + size]
            at = end + 2 + size + 2
            if size == 0:
                del self.buffer[:at]
                return bytes(body)

    # answering

    def reset(self):
        """RST rather than FIN."""
        transport, self.transport = self.transport, None
        if transport:
            sock = transport.get_extra_info('socket')
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
            transport.abort()

    def send(self, data):
        if self.transport:
            self.transport.write(data)

    def close(self):
        if self.transport:
            self.transport.close()
            self.transport = None

    def answer(self, request, rule, ready=None):
        close = rule.get('close')
        status, headers, body = ready or self.target._answer_for(request, rule)
        if close == 'after-request':
            self.close()
            return
        if close == 'reset':
            self.reset()
            return
        if rule.get('garbage') is not None:
            self.send(rule.get('garbage').encode('latin-1'))
            self.close()
            return
        if rule.get('huge_header'):
            headers['X-Huge'] = 'x' * rule.get('huge_header')
        data = render(status, headers, body)
        if close == 'mid-answer':
            self.send(data[:rule.get('after', len(data) // 2)])
            self.close()
            return
        request.answered = time.monotonic()
        self.send(data * 2 if rule.get('twice') else data)
        if headers.get('Connection') == 'close':
            self.close()

    async def answer_slowly(self, request, rule):
        ready = self.target._answer_for(request, rule) if rule.get('store') else None
        try:
            if rule.get('hold'):
                await self.target._held(rule.get('hold'))
            if rule.get('delay'):
                await asyncio.sleep(rule.get('delay'))
            for _ in range(rule.get('informational', 0)):
                await self.send_bounded(b'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n')
            if rule.get('endless'):
                await self.answer_endlessly(ready or self.target._answer_for(request, rule), rule)
            elif rule.get('drip'):
                status, headers, body = ready or self.target._answer_for(request, rule)
                for byte in render(status, headers, body):
                    await self.send_bounded(bytes([byte]))
                    await asyncio.sleep(rule.get('drip'))
            else:
                self.answer(request, rule, ready)
        except asyncio.CancelledError:
            return
        self.task = None
        self.busy = False
        self.read_on()

    async def answer_endlessly(self, ready, rule):
        status, headers, _ = ready
        headers['Transfer-Encoding'] = 'chunked'
        await self.send_bounded(render(status, headers, None))
        if isinstance(rule.get('endless'), str):
            start = rule.get('endless').encode()
            await self.send_bounded(b'%x\r\n%s\r\n' % (len(start), start))
        piece = b'400\r\n' + b'x' * 1024 + b'\r\n'
        while self.transport:
            await self.send_bounded(piece)
            await asyncio.sleep(rule.get('drip', 0))

    async def send_bounded(self, data):
        await self.can_write.wait()
        if not self.transport or self.transport.is_closing():
            raise asyncio.CancelledError
        self.transport.write(data)


REASONS = {200: 'OK', 201: 'Created', 204: 'No Content', 404: 'Not Found', 500: 'Internal Server Error',
           503: 'Service Unavailable'}


def render(status, headers, body):
    lines = [f'HTTP/1.1 {status} {REASONS.get(status, "Status")}']
    if body is not None and status != 204 and 'Content-Length' not in headers:
        lines.append(f'Content-Length: {len(body)}')
    lines += [f'{name}: {value}' for name, value in headers.items()]
    return ('\r\n'.join(lines) + '\r\n\r\n').encode('latin-1') + (body or b'')


class Target:
    """The target in a thread of this process. Everything public may be called from any other thread."""

    def __init__(self, host='127.0.0.1', port=0, idempotent=True, on_request=None, tls=None):
        self.host = host
        self.port = port
        self.idempotent = idempotent    # the same key replays the first answer
        self.on_request = on_request    # called in the target's thread when a request's head was read
        self.tls = tls                  # an ssl.SSLContext: it speaks TLS
        self._lock = threading.Lock()
        self._requests = []
        self._rules = []
        self._stored = {}               # key -> [Request, …], the requests that were stored under it
        self._answers = {}              # key -> first answer
        self._connections = set()
        self._connection_count = 0
        self._released = {}             # name -> asyncio.Event
        self._loop = None
        self._server = None
        self._thread = None

    # for tests

    def start(self):
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True, name='target')
        self._thread.start()
        ready.wait()
        if self._server is None:
            raise OSError(f'target: cannot listen on {self.host}:{self.port}')
        return self

    def stop(self):
        if self._loop and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(10)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    @property
    def url(self):
        return f'http{"s" if self.tls else ""}://{self.host}:{self.port}'

    def script(self, *rules, **fields):
        """Adds rules (dictionaries), or one rule by keywords. The first that matches a request decides."""
        added = [Rule(**rule) for rule in rules] + ([Rule(**fields)] if fields else [])
        with self._lock:
            self._rules += added
        return added[-1] if added else None

    def clear_script(self):
        with self._lock:
            self._rules = []

    def reset(self):
        with self._lock:
            self._requests, self._rules = [], []
            self._stored, self._answers = {}, {}
        self.release()

    def release(self, name=None):
        """Lets held requests go on: those of one hold, or all."""
        def act():
            for known, event in list(self._released.items()):
                if name is None or known == name:
                    event.set()
        if self._loop:
            self._loop.call_soon_threadsafe(act)

    def drop_connections(self):
        """Cuts every open connection with RST."""
        def act():
            for connection in list(self._connections):
                connection.reset()
        self._loop.call_soon_threadsafe(act)

    def requests(self, path=None, key=None, method=None):
        with self._lock:
            found = list(self._requests)
        return [r for r in found if (path is None or r.path == path or (path.endswith('*') and r.path.startswith(path[:-1])))
                and (key is None or r.key == key) and (method is None or r.method == method)]

    def posts(self, path=None, key=None):
        return self.requests(path, key, 'POST')

    def lookups(self, key=None):
        return [r for r in self.requests(method='GET') if key is None or r.path.endswith('/by-key/' + key)]

    def stored(self, key=None):
        """The requests that had an effect: of one key, or all in order of arrival."""
        with self._lock:
            if key is not None:
                return list(self._stored.get(key, []))
            found = [r for requests in self._stored.values() for r in requests]
        return sorted(found, key=lambda r: r.index)

    # for connections, in the loop's thread

    def _run(self, ready):
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        self._loop = loop
        try:
            self._server = loop.run_until_complete(
                loop.create_server(lambda: _Connection(self), self.host, self.port, backlog=4096, ssl=self.tls))
        except OSError as error:
            print(f'target: {error}', file=sys.stderr)
            ready.set()
            return
        self.port = self._server.sockets[0].getsockname()[1]
        ready.set()
        try:
            loop.run_forever()
        finally:
            self._server.close()
            for connection in list(self._connections):
                if connection.transport:
                    connection.transport.abort()
            tasks = asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()

    def _next_connection(self):
        self._connection_count += 1
        return self._connection_count

    def _record(self, request):
        with self._lock:
            request.index = len(self._requests)
            self._requests.append(request)
        if self.on_request:
            self.on_request(request)

    def _rule_for(self, request, has_body):
        """Before the body was read only rules can match that don't ask for it; those that do are asked afterwards."""
        with self._lock:
            for rule in self._rules:
                if rule.get('at', 'request') != 'request' or rule.needs_body() != has_body:
                    continue
                if rule.fits(request) and rule.acts():
                    return rule
        return None

    def _rule_for_connection(self):
        with self._lock:
            for rule in self._rules:
                if rule.get('at') == 'connection' and rule.acts():
                    return rule
        return None

    async def _held(self, hold):
        name = hold if isinstance(hold, str) else ''
        event = self._released.get(name)
        if event is None or event.is_set():
            event = self._released[name] = asyncio.Event()
        await event.wait()

    def _answer_for(self, request, rule):
        """Stores what is to be stored and says what to answer: (status, headers, body)."""
        by_key = request.method == 'GET' and '/by-key/' in request.path
        if by_key and 'status' not in rule.fields:
            return self._look_up(urllib.parse.unquote(request.path.rpartition('/')[2]))
        status = rule.get('status', 200)
        headers = dict(rule.get('headers') or {})
        body = rule.get('answer', '{"ok":true}' if 200 <= status < 300 else '')
        if not isinstance(body, str):
            body = json.dumps(body)
            headers.setdefault('Content-Type', 'application/json')
        body = body.encode()
        stores = rule.get('store')
        if stores is None:
            stores = request.method not in ('GET', 'HEAD') and 200 <= status < 300 and not rule.get('close') \
                and rule.get('garbage') is None
        with self._lock:
            if rule is PLAIN and self.idempotent and request.key in self._answers:
                status, headers, body = self._answers[request.key]
                return status, dict(headers, **{'Idempotent-Replay': 'true'}), body
            if stores and not (self.idempotent and request.key and request.key in self._stored):
                request.stored = True
                self._stored.setdefault(request.key, []).append(request)
                if request.key:
                    self._answers.setdefault(request.key, (status, dict(headers), body))
        return status, headers, body

    def _look_up(self, key):
        with self._lock:
            found = self._stored.get(key)
        if not found:
            return 404, {'Content-Type': 'application/problem+json'}, b'{"code":"not_found","status":404}'
        body = {'key': key, 'times': len(found), 'body': found[0].body.decode('utf-8', 'replace')}
        return 200, {'Content-Type': 'application/json'}, json.dumps(body).encode()

    def _control(self, connection, request):
        status, body = 200, {'ok': True}
        try:
            call = (request.method, request.path.partition('?')[0])
            if call == ('GET', '/_requests'):
                body = [r.as_dict() for r in self.requests()]
            elif call == ('GET', '/_stored'):
                body = {key: [r.as_dict() for r in self.stored(key)] for key in list(self._stored)}
            elif call == ('POST', '/_script'):
                rules = json.loads(request.body)
                self.script(*(rules if isinstance(rules, list) else [rules]))
            elif call == ('POST', '/_release'):
                self.release((json.loads(request.body) if request.body else {}).get('name'))
            elif call == ('POST', '/_reset'):
                self.reset()
            else:
                status, body = 404, {'code': 'not_found', 'detail': HELP}
        except (ValueError, TypeError, AttributeError) as error:
            status, body = 400, {'code': 'bad_request', 'detail': str(error)}
        connection.send(render(status, {'Content-Type': 'application/json'}, json.dumps(body).encode()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog=HELP,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--host', default='127.0.0.1')
    parser.add_argument('--port', type=int, default=0, help='0 picks a free one; it is printed')
    parser.add_argument('--not-idempotent', action='store_true', help='every request has its effect again')
    parser.add_argument('--verbose', action='store_true', help='print each request')
    options = parser.parse_args()

    def show(request):
        print(f'{request.method} {request.path} {request.key} attempt {request.headers.get("outbox-attempt", "-")} '
              f'(connection {request.connection}, request {request.number})', flush=True)

    target = Target(options.host, options.port, not options.not_idempotent, show if options.verbose else None)
    try:
        target.start()
    except OSError:
        return 1
    print(f'target listening on {target.url}', flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        pass
    target.stop()
    return 0


if __name__ == '__main__':
    sys.exit(main())
