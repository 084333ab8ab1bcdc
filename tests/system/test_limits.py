"""Limits on whatever a stranger can push: each has its answer, is counted, and hurts nobody else."""
import contextlib
import os
import signal
import socket
import time

import harness
from harness import SystemTest, raw_request, read_answer, wait_until

ACCEPT = '/v1/workspaces/w/sessions/s/entries'
BODY = b'{"kind":"note","payload":{"a":1}}'
HEAD_OF_A_BODY = raw_request('POST', ACCEPT, b'', [('Content-Length', '100000'), ('Content-Type', 'application/json')])


class Limits(SystemTest):
    limit = 120

    def from_address(self, daemon, address='127.0.0.1'):
        """A connection whose client has this address; closed at the end."""
        sock = socket.socket()
        self.addCleanup(sock.close)
        sock.settimeout(20 * harness.SLOW)
        sock.bind((address, 0))
        sock.connect(('127.0.0.1', daemon.port))
        return sock

    def limited(self, daemon, limit):
        return daemon.metric('outbox_http_limited_total', limit=limit)

    def ask(self, daemon, address='127.0.0.1', request=raw_request('GET', '/healthz')):
        """The answer to one request on a connection of its own; None: closed without one."""
        sock = self.from_address(daemon, address)
        try:
            sock.sendall(request)
            return read_answer(sock)
        except ConnectionError:
            return None
        finally:
            sock.close()

    def is_closed(self, sock):
        sock.settimeout(0.05)
        try:
            return sock.recv(1) == b''
        except socket.timeout:
            return False
        except OSError:
            return True


class Places(Limits):
    def test_one_strangers_connections_leave_room_for_others_whatever_it_does_with_them(self):
        daemon = self.daemon(self.target(), http={'max_connections': 40, 'header_timeout': '5m', 'body_timeout': '5m'})
        for what, data in (('says nothing', b''), ('half a head', b'GET / HTTP/1.1\r\nX: '), ('half a body', HEAD_OF_A_BODY + b'{'),
                           ('keeps it', raw_request('GET', '/healthz'))):
            with self.subTest(what=what):
                stranger = []
                for _ in range(60):
                    with contextlib.suppress(OSError):
                        sock = self.from_address(daemon, '127.0.0.66')
                        sock.sendall(data)
                        stranger.append(sock)
                for n in range(30):  # more than are free; each keeps its place
                    answer = self.ask(daemon, f'127.0.0.{100 + n % 3}', raw_request('POST', ACCEPT.replace('/s/', f'/{n}/'), BODY))
                    self.assertEqual(answer and answer.status, 202, answer)
                for sock in stranger:
                    sock.close()
        self.assertGreater(self.limited(daemon, 'connections'), 0)

    def test_an_address_at_its_limit_is_told_so_and_others_come_in(self):
        daemon = self.daemon(self.target(), http={'max_connections_per_address': 3, 'header_timeout': '5m'})
        first = [self.from_address(daemon, '127.0.0.66') for _ in range(3)]
        for sock in first:
            sock.sendall(raw_request('GET', '/healthz'))
            self.assertEqual(read_answer(sock).status, 200)
        answer = self.ask(daemon, '127.0.0.66')
        self.assertProblem(answer, 429, 'too_many_connections_from_address')
        self.assertTrue(answer.headers['retry-after'])
        self.assertEqual(answer.headers['connection'].lower(), 'close')
        silent = self.from_address(daemon, '127.0.0.66')  # without a request it is not kept for long
        wait_until(lambda: self.is_closed(silent), 10, 'the refused one to be closed')
        self.assertEqual(self.limited(daemon, 'connections_per_address'), 2)
        self.assertEqual(self.ask(daemon, '127.0.0.67').status, 200)
        first[0].sendall(raw_request('GET', '/healthz'))
        self.assertEqual(read_answer(first[0]).status, 200, 'those that were there go on')
        first[0].close()
        wait_until(lambda: self.ask(daemon, '127.0.0.66').status == 200, 10, 'its place to be free')
        flood = [self.from_address(daemon, '127.0.0.66') for _ in range(200)]
        self.assertEqual(self.ask(daemon, '127.0.0.67').status, 200, 'in a flood, too')
        wait_until(lambda: sum(self.is_closed(sock) for sock in flood) > 100, 10, 'most of it to be closed at once')

    def test_when_all_places_are_at_work_a_newcomer_is_told_so(self):
        daemon = self.daemon(self.target(), http={'max_connections': 4, 'event_heartbeat': '200ms'})
        readers = []
        for n in range(4):  # event streams: places that wait for us, not for their client
            sock = self.from_address(daemon, f'127.0.0.{60 + n}')
            sock.sendall(raw_request('GET', '/v1/events'))
            self.assertIn(b' 200 ', sock.recv(1000))
            readers.append(sock)
        answer = self.ask(daemon, '127.0.0.99', raw_request('POST', ACCEPT, BODY))
        self.assertProblem(answer, 503, 'too_many_connections')
        self.assertEqual(answer.headers['retry-after'], '1')
        readers.pop().close()
        wait_until(lambda: self.ask(daemon, '127.0.0.99').status == 200, 10, 'a place to be free')
        for sock in readers:
            self.assertFalse(self.is_closed(sock), 'nobody that is served was cut')


class Sizes(Limits):
    def test_heads_bodies_and_depths_are_bounded_and_counted(self):
        daemon = self.daemon(self.target(), max_text_bytes='1KB')
        deep = b'{"kind":"note","payload":' + b'[' * 70 + b']' * 70 + b'}'
        large = b'{"kind":"note","payload":{"a":"' + b'x' * 3000 + b'"}}'
        asked = (('header_bytes', raw_request('GET', '/healthz', headers=[('X', 'x' * 20000)]), 431, 'headers_too_large'),
                 ('body_bytes', raw_request('POST', ACCEPT, large), 413, 'too_large'),
                 ('body_bytes', raw_request('POST', ACCEPT, b'', [('Content-Length', str(1 << 40)), ('Content-Type', 'application/json')]), 413, 'too_large'),
                 ('json_depth', raw_request('POST', ACCEPT, deep), 400, 'json_too_deep'))
        for limit, request, status, code in asked:
            with self.subTest(limit=limit, code=code):
                before = self.limited(daemon, limit)
                self.assertProblem(self.ask(daemon, request=request), status, code)
                self.assertEqual(self.limited(daemon, limit), before + 1)
        before = self.limited(daemon, 'header_bytes')
        for request in (raw_request('GET', '/healthz', headers=[('X', 'x' * 40000)]), raw_request('GET', '/' + 'x' * 40000),
                        raw_request('GET', '/healthz', headers=[(f'X{n}', 'x' * 30) for n in range(500)])):
            answer = self.ask(daemon, request=request)  # more than the HTTP library keeps: it answers itself, in its own words
            self.assertTrue(answer is None or answer.status in (413, 414, 431), answer)
        self.assertEqual(self.limited(daemon, 'header_bytes'), before + 3)
        self.assertEqual(daemon.accept('s', {'kind': 'note', 'payload': {}}).status, 202)

    def test_slow_heads_and_bodies_are_cut_while_others_are_served(self):
        daemon = self.daemon(self.target(), http={'header_timeout': '1s', 'body_timeout': '1s'})
        kept = self.from_address(daemon)
        kept.sendall(raw_request('GET', '/healthz'))
        self.assertEqual(read_answer(kept).status, 200)
        slow = [('header_timeout', b'GET / HTTP/1.1\r\nX: ', self.from_address(daemon)), ('body_timeout', HEAD_OF_A_BODY, self.from_address(daemon)),
                ('header_timeout', b'GET / HTTP/1.1\r\nHost: localhost\r\nX: ', kept)]
        before = {limit: self.limited(daemon, limit) for limit, _, _ in slow}
        for _, data, sock in slow:
            sock.sendall(data)
        deadline, served = time.monotonic() + 8 * harness.SLOW, 0
        answers = {}
        while len(answers) < len(slow) and time.monotonic() < deadline:
            self.assertEqual(daemon.accept(f's{served}', {'kind': 'note', 'payload': {}}).status, 202)
            served += 1
            for n, (_, _, sock) in enumerate(slow):
                if n in answers:
                    continue
                with contextlib.suppress(OSError):
                    sock.sendall(b'x')  # it drips on
                sock.settimeout(0.02)
                with contextlib.suppress(socket.timeout):
                    if sock.recv(1, socket.MSG_PEEK):
                        sock.settimeout(5)
                        answers[n] = read_answer(sock)
        self.assertEqual(len(answers), len(slow))
        for answer in answers.values():
            self.assertProblem(answer, 408, 'request_timeout')
        self.assertEqual(self.limited(daemon, 'header_timeout'), before['header_timeout'] + 2)
        self.assertEqual(self.limited(daemon, 'body_timeout'), before['body_timeout'] + 1)


class Work(Limits):
    def test_bodies_of_all_together_are_bounded(self):
        """Each is small enough, and none is complete."""
        daemon = self.daemon(self.target(), http={'body_timeout': '5m'})
        length = 310_000
        head = raw_request('POST', ACCEPT, b'', [('Content-Length', str(length)), ('Content-Type', 'application/json')])
        sent = []
        for n in range(260):
            sock = self.from_address(daemon, f'127.0.0.{20 + n % 200}')
            sock.sendall(head + b'{"x":"' + b'y' * (length - 1000))
            sent.append(sock)
            if n > 200 and self.limited(daemon, 'body_memory') > 0:
                break
        self.assertProblem(self.ask(daemon, request=head + b'y' * length), 503, 'too_many_bodies')
        self.assertEqual(daemon.get('/readyz').status, 200, 'what brings no body is answered')
        for sock in sent:
            sock.close()
        wait_until(lambda: self.ask(daemon, request=raw_request('POST', ACCEPT, BODY)).status == 202, 10, 'room again')

    def test_requests_that_wait_for_the_store_are_bounded(self):
        daemon = self.daemon(self.target(), workers=1, api_connections=1, watchdog='5m', http={'max_connections': 6000})
        store = daemon.pid('store')
        os.kill(store, signal.SIGSTOP)
        try:
            waiting = []
            for n in range(4300):
                sock = socket.create_connection(('127.0.0.1', daemon.port), timeout=20 * harness.SLOW)
                self.addCleanup(sock.close)
                sock.sendall(raw_request('POST', ACCEPT.replace('/s/', f'/{n}/'), BODY))
                waiting.append(sock)
            answer = read_answer(waiting[-1])
            self.assertProblem(answer, 503, 'overloaded')
            self.assertTrue(answer.headers['retry-after'])
            self.assertEqual(daemon.get('/healthz').status, 200, 'what needs no store is answered')
            self.assertGreater(self.limited(daemon, 'store_requests'), 0)
        finally:
            os.kill(store, signal.SIGCONT)
        answer = read_answer(waiting[0])
        self.assertIn(answer.status, (202, 503), answer)


if __name__ == '__main__':
    harness.main()
