"""Whatever a stranger sends: a problem document with a stable code, never a crash, never a half-written entry."""
import contextlib
import json
import os
import random
import socket
import ssl
import struct

import harness
from harness import SystemTest, raw_request, read_answer, wait_until

ACCEPT = '/v1/workspaces/w/sessions/s/entries'
GOOD = {'clientMessageID': 'm', 'kind': 'note', 'payload': {'a': 1}}


def with_member(**members):
    return json.dumps(dict(GOOD, **members)).encode()


# what is wrong, body, statuses that may be answered
BODIES = [
    ('no body', b'', {400}),
    ('not JSON', b'hello', {400}),
    ('half a document', b'{"kind":"note","payl', {400}),
    ('trailing garbage', b'{"kind":"note","payload":{}} x', {400}),
    ('two documents', b'{"kind":"note","payload":{}}{"kind":"note","payload":{}}', {400}),
    ('an array', b'[]', {400, 422}),
    ('a string', b'"text"', {400, 422}),
    ('null', b'null', {400, 422}),
    ('a number', b'1', {400, 422}),
    ('single quotes', b"{'kind':'note'}", {400}),
    ('a comment', b'{"kind":"note",/*x*/"payload":{}}', {400}),
    ('NaN', b'{"kind":"note","payload":NaN}', {400}),
    ('depth', b'{"kind":"note","payload":' + b'[' * 100000 + b']' * 100000 + b'}', {400, 413, 422}),
    ('depth just beyond', b'{"kind":"note","payload":' + b'[' * 70 + b']' * 70 + b'}', {400, 422}),
    ('unclosed depth', b'[' * 50000, {400, 422}),
    ('NUL escaped in a value', b'{"kind":"note","payload":{"a":"x\\u0000y"}}', {400, 422}),
    ('NUL escaped in a name', b'{"kind":"note","payload":{"x\\u0000y":1}}', {400, 422}),
    ('NUL escaped in the ID', b'{"clientMessageID":"a\\u0000","kind":"note","payload":{}}', {400, 422}),
    ('NUL byte', b'{"kind":"note","payload":{"a":"\x00"}}', {400}),
    ('NUL byte after the end', b'{"kind":"note","payload":{}}\x00', {400}),
    ('lone high surrogate', b'{"kind":"note","payload":{"a":"\\ud800"}}', {400, 422}),
    ('lone low surrogate', b'{"kind":"note","payload":{"a":"\\udc00x"}}', {400, 422}),
    ('lone surrogate in the ID', b'{"clientMessageID":"\\ud800","kind":"note","payload":{}}', {400, 422}),
    ('surrogate as UTF-8', b'{"kind":"note","payload":{"a":"\xed\xa0\x80"}}', {400}),
    ('not UTF-8', b'{"kind":"note","payload":{"a":"\xff\xfe"}}', {400}),
    ('overlong UTF-8', b'{"kind":"note","payload":{"a":"\xc0\xaf"}}', {400}),
    ('UTF-16', '{"kind":"note","payload":{}}'.encode('utf-16'), {400}),
    ('byte order mark', b'\xef\xbb\xbf{"kind":"note","payload":{}}', {400}),
    ('control character', b'{"kind":"note","payload":{"a":"\x01"}}', {400}),
    ('duplicate member', b'{"kind":"note","kind":"pay","payload":{}}', {400, 422}),
    ('duplicate member within', b'{"kind":"note","payload":{"a":1,"a":2}}', {400, 422}),
    ('unknown member', with_member(colour='red'), {400, 422}),
    ('kind is a number', with_member(kind=1), {400, 422}),
    ('kind is empty', with_member(kind=''), {400, 422}),
    ('kind is an object', with_member(kind={}), {400, 422}),
    ('kind too long', with_member(kind='k' * 1000), {400, 422}),
    ('ID is a number', with_member(clientMessageID=5), {400, 422}),
    ('ID is an array', with_member(clientMessageID=['m']), {400, 422}),
    ('ID too long', with_member(clientMessageID='m' * 257), {400, 422}),
    ('user is a number', with_member(userID=1), {400, 422}),
    ('user too long', with_member(userID='u' * 5000), {400, 422}),
    ('text is a number', json.dumps({'text': 1}).encode(), {400, 422}),
    ('text is an object', json.dumps({'text': {}}).encode(), {400, 422}),
    ('text too long', json.dumps({'text': 'x' * 100001}).encode(), {413, 422}),
    ('payload too long', with_member(payload={'a': 'x' * 100001}), {413, 422}),
    ('dependsOn is a string', with_member(dependsOn='ob_x'), {400, 422}),
    ('dependsOn of numbers', with_member(dependsOn=[1]), {400, 422}),
]


class Bodies(SystemTest):
    limit = 120

    def setUp(self):
        self.the_target = self.target()
        self.the_daemon = self.daemon(self.the_target)
        self.pids = self.the_daemon.processes()

    def nothing_happened(self):
        """Every process is the same, no entry was made, and a good request works."""
        daemon = self.the_daemon
        with contextlib.closing(daemon.valkey()) as valkey:
            self.assertEqual([k for k in valkey.keys() if k.startswith(('outboxe:', 'outboxq:', 'outboxdedupe:'))], [])
        self.assertEqual(self.the_target.requests(), [])
        self.assertEqual(daemon.processes(), self.pids)
        entry = daemon.accept_ok(body=GOOD)
        self.assertDelivered(self.the_target, [entry], times=1)

    def test_a_bad_body_is_refused_with_a_problem_document(self):
        for what, body, statuses in BODIES:
            for path in (ACCEPT, '/v1/workspaces/w/entries'):
                with self.subTest(what=what, path=path):
                    answer = self.the_daemon.call('POST', path, body, {'Content-Type': 'application/json'})
                    self.assertIn(answer.status, statuses, answer)
                    self.assertProblem(answer, answer.status)
        self.nothing_happened()

    def test_the_same_refusal_has_the_same_code(self):
        codes = {self.the_daemon.call('POST', ACCEPT, b'hello').code for _ in range(3)}
        self.assertEqual(len(codes), 1)

    def test_a_wrong_content_type_is_refused(self):
        for content_type in ('text/plain', 'application/xml', 'application/jsonx', '', 'application/x-www-form-urlencoded'):
            with self.subTest(content_type=content_type):
                answer = self.the_daemon.call('POST', ACCEPT, json.dumps(GOOD), {'Content-Type': content_type})
                self.assertProblem(answer, 415)
        self.nothing_happened()

    def test_a_content_type_with_parameters_is_taken(self):
        answer = self.the_daemon.call('POST', ACCEPT, json.dumps(GOOD), {'Content-Type': 'Application/JSON; charset=utf-8'})
        self.assertEqual(answer.status, 202, answer)

    def test_names_that_are_not_names_are_refused_at_every_endpoint(self):
        for ws, ses in (('w' * 65, 's'), ('w', 's' * 129), ('w x', 's'), ('w', 's/t'), ('wé', 's'), ('w', 'é'), ('', 's'),
                        ('w', ''), ('w"', 's'), ('w', '{s}')):
            ws, ses = (part.encode('utf-8').decode('latin-1').replace(' ', '+') for part in (ws, ses))
            for method, path in (('POST', f'/v1/workspaces/{ws}/sessions/{ses}/entries'),
                                 ('GET', f'/v1/workspaces/{ws}/sessions/{ses}/entries')):
                with self.subTest(method=method, path=path[:80]):
                    with self.the_daemon.socket() as sock:
                        sock.sendall(raw_request(method, path, json.dumps(GOOD).encode() if method == 'POST' else b''))
                        answer = read_answer(sock)
                    self.assertIn(answer.status, (400, 404, 422), answer)
                    self.assertProblem(answer, answer.status)
        self.nothing_happened()

    def test_names_of_the_longest_length_are_taken(self):
        self.assertEqual(self.the_daemon.accept('s' * 128, GOOD, 'w' * 64).status, 202)
        self.assertEqual(self.the_daemon.accept('~:%._-', GOOD, 'A:%~._-').status, 202)

    def test_ids_that_are_not_there_or_no_ids_are_not_found(self):
        for entry in ('ob_0', 'ob_', 'x', 'ob_' + 'a' * 500, 'ob_%00', '..', '%2e%2e', "ob_'", 'ob_{1}'):
            for method, path in (('GET', ''), ('DELETE', ''), ('POST', '/retry')):
                with self.subTest(method=method, entry=entry[:40]):
                    answer = self.the_daemon.call(method, f'/v1/workspaces/w/entries/{entry}{path}')
                    self.assertIn(answer.status, (400, 404), answer)
                    self.assertProblem(answer, answer.status)
        self.nothing_happened()

    def test_unknown_paths_and_methods(self):
        for method, path, status in (('GET', '/nothing', 404), ('GET', '/v1', 404), ('POST', '/v1/workspaces', 404),
                                     ('GET', '//', 404), ('GET', '/v1/workspaces/w/sessions/s/entries/extra', 404),
                                     ('PUT', ACCEPT, 405), ('PATCH', ACCEPT, 405), ('DELETE', ACCEPT, 405), ('POST', '/metrics', 405),
                                     ('BREW', ACCEPT, 405), ('DELETE', '/readyz', 405), ('TRACE', ACCEPT, 405)):
            with self.subTest(method=method, path=path):
                answer = self.the_daemon.call(method, path)
                self.assertIn(answer.status, (status,) if status == 405 else (404, 405), answer)
                self.assertProblem(answer, answer.status)
                if answer.status == 405:
                    self.assertTrue(answer.headers.get('allow'), answer.headers)
        self.nothing_happened()


class Wire(SystemTest):
    """Below JSON: what is hardly HTTP."""
    limit = 120

    def setUp(self):
        self.the_target = self.target()
        self.the_daemon = self.daemon(self.the_target, http={'header_timeout': '1s', 'body_timeout': '1s'})
        self.pids = self.the_daemon.processes()

    def send(self, data, half_close=False):
        with self.the_daemon.socket() as sock:
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                sock.sendall(data)
                if half_close:
                    sock.shutdown(socket.SHUT_WR)
            return read_answer(sock)

    def still_well(self):
        self.assertEqual(self.the_daemon.processes(), self.pids)
        self.assertDelivered(self.the_target, [self.the_daemon.accept_ok('after', GOOD)], times=1)

    def test_a_chunked_body_is_taken(self):
        body = json.dumps(GOOD).encode()
        chunks = b''.join(b'%x\r\n%s\r\n' % (len(body[n:n + 7]), body[n:n + 7]) for n in range(0, len(body), 7)) + b'0\r\n\r\n'
        head = raw_request('POST', ACCEPT, headers=[('Transfer-Encoding', 'chunked'), ('Content-Type', 'application/json')])
        answer = self.send(head + chunks)
        self.assertEqual(answer.status, 202, answer)
        self.assertDelivered(self.the_target, [answer.json()['id']], times=1)

    def test_bad_chunks_make_no_entry(self):
        head = raw_request('POST', ACCEPT, headers=[('Transfer-Encoding', 'chunked'), ('Content-Type', 'application/json')])
        body = json.dumps(GOOD).encode()
        for tail in (b'zz\r\n' + body, b'-5\r\n' + body, b'ffffffffffffffffff\r\n' + body, b'5\r\n' + body + b'\r\n0\r\n\r\n',
                     b'%x\r\n%s\r\n' % (len(body), body)):
            with self.subTest(tail=tail[:30]):
                answer = self.send(head + tail, half_close=True)
                self.assertTrue(answer is None or answer.status >= 400, answer)
        self.assertEqual(self.the_target.requests(), [])
        self.still_well()

    def test_bad_lengths_make_no_entry(self):
        body = json.dumps(GOOD).encode()
        for length in ('-1', 'x', '99999999999999999999', '1e3', ''):
            with self.subTest(length=length):
                answer = self.send(raw_request('POST', ACCEPT, body, [('Content-Length', length)]), half_close=True)
                self.assertTrue(answer is None or answer.status >= 400, answer)
        answer = self.send(raw_request('POST', ACCEPT, body, [('Content-Length', str(len(body) + 5))]), half_close=True)
        self.assertTrue(answer is None or answer.status >= 400, answer)
        self.assertEqual(self.the_target.requests(), [])
        self.still_well()

    def test_a_body_that_is_too_large_is_refused_without_being_kept(self):
        answer = self.send(raw_request('POST', ACCEPT, b'', [('Content-Length', str(1 << 40)), ('Content-Type', 'application/json')]))
        self.assertProblem(answer, 413)
        big = b'{"text":"' + b'x' * 3000000 + b'"}'
        answer = self.send(raw_request('POST', ACCEPT, big))
        if answer is not None:  # cut while sending is an answer too
            self.assertProblem(answer, 413)
        self.still_well()

    def test_headers_that_are_too_large_are_refused(self):
        for headers in ([('X-Big', 'x' * 200000)], [(f'X-{n}', 'y') for n in range(20000)]):
            answer = self.send(raw_request('GET', '/readyz', headers=headers))
            self.assertTrue(answer is None or answer.status in (400, 413, 414, 431), answer)
        answer = self.send(raw_request('GET', '/' + 'x' * 200000))
        self.assertTrue(answer is None or answer.status in (400, 404, 414, 431), answer)
        self.still_well()

    def test_bytes_that_are_no_http_harm_nobody(self):
        dice = random.Random(7)
        for data in (b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', b'\r\n\r\n\r\n', b'GET\r\n\r\n', b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
                     b'GET / HTTP/9.9\r\n\r\n', b'\x00' * 100, dice.randbytes(5000), b'GET / HTTP/1.1\r\nbroken header\r\n\r\n'):
            with self.subTest(data=data[:20]):
                self.send(data, half_close=True)
        self.still_well()

    def test_a_dripping_client_is_cut_at_its_deadline(self):
        for data in (b'GET /readyz HTTP/1.1\r\nHost: x\r\nX-Drip: ',
                     raw_request('POST', ACCEPT, b'', [('Content-Length', '1000'), ('Content-Type', 'application/json')]) + b'{"a'):
            with self.subTest(data=data[:20]), self.the_daemon.socket() as sock:
                sock.sendall(data)

                def cut(sock=sock):
                    try:
                        sock.sendall(b'x')
                        sock.settimeout(0.05)
                        sock.recv(4096)
                        return True  # an answer, or its end
                    except socket.timeout:
                        return False
                    except OSError:
                        return True
                wait_until(cut, 8, 'the dripping client to be cut', every=0.1)
        self.still_well()

    def test_a_client_that_is_cut_is_told_why_in_a_whole_document(self):
        for data in (b'GET /readyz HTTP/1.1\r\nHost: x\r\nX-Drip: ',
                     raw_request('POST', ACCEPT, b'', [('Content-Length', '1000'), ('Content-Type', 'application/json')]) + b'{"a'):
            with self.subTest(data=data[:20]):
                self.assertProblem(self.send(data), 408, 'request_timeout')
        self.still_well()

    def test_clients_that_are_gone_in_the_middle_of_a_request_hold_no_place(self):
        daemon = self.daemon(self.target(), http={'header_timeout': '10m', 'body_timeout': '10m'})
        descriptors = f'/proc/{daemon.pid("api")}/fd'
        before = len(os.listdir(descriptors))
        whole = raw_request('POST', ACCEPT, b'{"text":"x"}')
        for linger in (None, struct.pack('ii', 1, 0)):  # an orderly end, and a reset
            for length in (40, len(whole) - 3):
                for _ in range(100):
                    with daemon.socket() as sock:
                        sock.sendall(whole[:length])
                        if linger:
                            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        wait_until(lambda: len(os.listdir(descriptors)) <= before + 5, 15, 'their places to be free')

    def test_a_chunked_body_without_end_is_cut_with_a_reason(self):
        head = raw_request('POST', ACCEPT, headers=[('Transfer-Encoding', 'chunked'), ('Content-Type', 'application/json')])
        answer = self.send(head + (b'10000\r\n' + b'x' * 65536 + b'\r\n') * 200)
        self.assertProblem(answer, 413, 'too_large')
        self.still_well()

    def test_a_body_with_two_lengths_is_refused_and_what_follows_it_is_not_read(self):
        body = json.dumps(GOOD).encode()
        hidden = raw_request('POST', ACCEPT, body)
        for headers in ([('Content-Length', '2'), ('Content-Length', str(len(body)))],
                        [('Content-Length', str(len(body))), ('Transfer-Encoding', 'chunked')],
                        [('Transfer-Encoding', 'chunked'), ('Content-Length', '2')]):
            with self.subTest(headers=headers):
                answer = self.send(raw_request('POST', ACCEPT, body, headers) + hidden)
                self.assertProblem(answer, 400, 'ambiguous_length')
                self.assertEqual(answer.headers.get('connection', '').lower(), 'close')
        self.assertEqual(self.the_target.requests(), [])
        self.still_well()

    def test_a_large_head_is_refused_with_a_problem_document(self):
        answer = self.send(raw_request('GET', '/healthz', headers=[('X-Big', 'x' * 20000)]))
        self.assertProblem(answer, 431, 'headers_too_large')
        self.still_well()

    def test_clients_that_go_away_leave_log_lines_of_our_form_only(self):
        def lines():
            return [line for line in self.the_daemon.log().splitlines() if 'Failed to send' in line]

        def reset_until_told():
            sock = self.the_daemon.socket()
            sock.sendall(raw_request('POST', ACCEPT, json.dumps(GOOD).encode()))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
            sock.close()
            return lines()
        wait_until(reset_until_told, 20, 'a line about a client that went away', every=0.05)
        for line in lines():
            self.assertRegex(line, r'^ts=\S+ level=debug role=api ')

    def test_expect_100_continue_gets_it(self):
        body = json.dumps(GOOD).encode()
        with self.the_daemon.socket() as sock:
            sock.sendall(raw_request('POST', ACCEPT, b'', [('Content-Length', str(len(body))), ('Expect', '100-continue'),
                                                           ('Content-Type', 'application/json')]))
            self.assertTrue(sock.recv(4096).startswith(b'HTTP/1.1 100'))
            sock.sendall(body)
            self.assertEqual(read_answer(sock).status, 202)

    def test_pipelined_requests_are_answered_in_order(self):
        with self.the_daemon.socket() as sock:
            sock.sendall(b''.join(raw_request('POST', ACCEPT, with_member(clientMessageID=f'p{n}')) for n in range(10)))
            stream = sock.makefile('rb')
            names = []
            for _ in range(10):
                status = stream.readline()
                self.assertIn(b' 202 ', status)
                length = 0
                for line in iter(stream.readline, b'\r\n'):
                    if line.lower().startswith(b'content-length:'):
                        length = int(line.split(b':')[1])
                names.append(json.loads(stream.read(length))['clientMessageID'])
        self.assertEqual(names, [f'p{n}' for n in range(10)])

    def test_http_1_0_and_head_work(self):
        with self.the_daemon.socket() as sock:
            sock.sendall(b'GET /healthz HTTP/1.0\r\n\r\n')
            self.assertEqual(read_answer(sock).status, 200)

    def test_thousands_of_idle_connections_leave_room_for_one_more(self):
        socks = []
        try:
            for _ in range(800):
                socks.append(self.the_daemon.socket())
            self.assertEqual(self.the_daemon.get('/healthz').status, 200)
        finally:
            for sock in socks:
                sock.close()
        self.still_well()


class FromTheStore(SystemTest):
    def test_an_entry_with_an_unreadable_body_fails_alone(self):
        """Bytes in the store that nobody of us wrote."""
        target = self.target()
        target.script(hold=True, times=1)
        daemon = self.daemon(target, workers=1)
        first = daemon.accept_ok(kind='note', payload={'n': 1})
        wait_until(lambda: target.posts(), 10, 'the first in flight')
        second = daemon.accept_ok(kind='note', payload={'n': 2})
        third = daemon.accept_ok(kind='note', payload={'n': 3})
        with contextlib.closing(daemon.valkey()) as valkey:
            name = harness.key('e', 'w', second)
            self.assertEqual(valkey('EXISTS', name), 1, f'{name} of {valkey.keys()}')
            valkey('HSET', name, 'body', b'\xc1\xff\x00 nonsense')
        self.assertEqual(len(daemon.entries()), 3)
        target.release()
        self.assertDelivered(target, [first, third], times=1)
        self.assertEqual(daemon.wait_status(second, 'error')['lastError']['code'], 'executor_error')


if __name__ == '__main__':
    harness.main()
