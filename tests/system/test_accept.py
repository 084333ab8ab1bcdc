"""Acceptance: a message that came in whole is delivered once, whatever the client or the API process does next."""
import contextlib
import json
import socket
import struct
import threading

import harness
from harness import SystemTest, in_parallel, key, raw_request, wait_until


def entry_bytes(session, body, workspace='w', headers=()):
    return raw_request('POST', f'/v1/workspaces/{workspace}/sessions/{session}/entries', json.dumps(body).encode(), headers)


def note(name, **more):
    return dict({'clientMessageID': name, 'kind': 'note', 'payload': {'text': name}}, **more)


class ClientDisconnects(SystemTest):
    def test_a_client_that_closes_right_after_the_last_byte_gets_its_message_delivered(self):
        target = self.target()
        daemon = self.daemon(target)
        names = [f'm{n}' for n in range(40)]
        for n, name in enumerate(names):
            sock = daemon.socket()
            data = entry_bytes(f's{n}', note(name))
            if n % 2:  # the body in a segment of its own
                head = data.index(b'\r\n\r\n') + 4
                sock.sendall(data[:head])
                sock.sendall(data[head:])
            else:
                sock.sendall(data)
            sock.close()
        wait_until(lambda: len(target.stored()) >= len(names), 20, lambda: f'{len(target.stored())} of {len(names)} delivered')
        delivered = {r.json()['text']: r.key for r in target.stored()}
        for n, name in enumerate(names):
            repeat = daemon.accept(f's{n}', note(name))
            self.assertEqual(repeat.status, 200, repeat)
            self.assertEqual(repeat.json()['id'], delivered[name])
            self.assertEqual(repeat.json()['status'], 'duplicate')
            self.assertEqual(repeat.headers.get('idempotent-replay'), 'true')
        self.assertDelivered(target, delivered.values(), times=1)

    def test_a_client_that_resets_its_connection_can_repeat_and_gets_one_delivery(self):
        target = self.target()
        daemon = self.daemon(target)
        ids = []
        for n in range(20):
            sock = daemon.socket()
            sock.sendall(entry_bytes(f's{n}', note(f'm{n}')))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
            sock.close()
            ids.append(daemon.accept_patiently(session=f's{n}', **note(f'm{n}')))
        self.assertDelivered(target, ids, times=1)
        self.assertEqual(len(target.posts()), 20)

    def test_with_the_api_killed_right_after_the_last_byte_the_repeat_yields_exactly_one_delivery(self):
        target = self.target()
        daemon = self.daemon(target)
        ids = []
        for n in range(8):
            sock = daemon.socket()
            sock.sendall(entry_bytes(f's{n}', dict(note(f'm{n}'), kind='pay')))
            daemon.kill('api')
            sock.close()
            ids.append(daemon.accept_patiently(session=f's{n}', **dict(note(f'm{n}'), kind='pay')))
        self.assertDelivered(target, ids, times=1)
        self.assertEqual(len(target.posts()), 8, 'a message was accepted twice')

    def test_half_a_request_leaves_nothing(self):
        target = self.target()
        daemon = self.daemon(target)
        data = entry_bytes('s', note('half'))
        for cut in (len(data) - 1, len(data) - 20, 30):
            sock = daemon.socket()
            sock.sendall(data[:cut])
            sock.close()
        last = daemon.accept_ok('s', note('whole'))
        self.assertDelivered(target, [last], times=1)
        self.assertEqual([r.key for r in target.posts()], [last])


class Concurrency(SystemTest):
    def test_50_concurrent_accepts_of_one_client_message_id_make_one_entry(self):
        target = self.target()
        daemon = self.daemon(target)
        barrier = threading.Barrier(50)

        def accept():
            with contextlib.closing(harness.Client(daemon.port)) as client:
                barrier.wait()
                return client.call('POST', '/v1/workspaces/w/sessions/s/entries', note('the one'))

        answers = in_parallel([accept] * 50)
        self.assertEqual(sorted(a.status for a in answers), [200] * 49 + [202])
        self.assertEqual(len({a.json()['id'] for a in answers}), 1)
        self.assertDelivered(target, [answers[0].json()['id']], times=1)

    def test_60_concurrent_accepts_into_an_empty_session_are_25_times_202_and_35_times_429(self):
        target = self.target()
        target.script(path='/notes', hold=True, times=1)
        daemon = self.daemon(target)
        barrier = threading.Barrier(60)

        def accept(n):
            with contextlib.closing(harness.Client(daemon.port)) as client:
                barrier.wait()
                return client.call('POST', '/v1/workspaces/w/sessions/s/entries', note(f'm{n}'))

        answers = in_parallel([lambda n=n: accept(n) for n in range(60)])
        accepted = {n: a.json()['id'] for n, a in enumerate(answers) if a.status == 202}
        refused = [n for n, a in enumerate(answers) if a.status == 429]
        self.assertEqual((len(accepted), len(refused)), (25, 35), {a.status for a in answers})
        for n in refused:
            self.assertProblem(answers[n], 429, 'session_full')
            self.assertGreaterEqual(int(answers[n].headers['retry-after']), 0)
        with contextlib.closing(daemon.valkey()) as valkey:
            markers = valkey.keys('outboxdedupe:*')
        self.assertEqual(markers, sorted(key('dedupe', 'w', 's', f'm{n}') for n in accepted), 'a marker of a refused message')
        wait_until(target.posts, 20, 'the first one, which is held')
        target.release()
        self.assertDelivered(target, accepted.values(), times=1)
        again = daemon.accept('s', note(f'm{refused[0]}'))
        self.assertEqual(again.status, 202, 'refused before, so new now')


class Names(SystemTest):
    def test_names_with_separators_never_collide(self):
        target = self.target()
        daemon = self.daemon(target)
        pairs = [('a', 'b:c'), ('a:b', 'c'), ('a', 'b%3Ac'), ('a%3Ab', 'c'), ('a:b:', 'c'), ('a', ':b:c'), ('a:', 'b:c'),
                 ('a%', 'b'), ('a', '%b'), ('~', '{}'), ('~', '{0}'), ('a', 'with space'), ('a', '"quoted" \'single\''),
                 ('a', 'žluťoučký kůň 🐎'), ('a', '{a}'), ('a', '\\'), ('a', '\n'), ('a', '*'), ('a', '?'), ('a', '[a]')]
        ids = {}
        for session, name in pairs:
            answer = daemon.accept(session, note(name), workspace='ws:1')
            self.assertEqual(answer.status, 202, (session, name, answer))
            self.assertEqual(answer.json()['clientMessageID'], name)
            ids[session, name] = answer.json()['id']
        self.assertEqual(len(set(ids.values())), len(pairs))
        for (session, name), entry in ids.items():
            repeat = daemon.accept(session, note(name), workspace='ws:1')
            self.assertEqual((repeat.status, repeat.json()['id']), (200, entry), (session, name))
        self.assertDelivered(target, ids.values(), times=1)
        self.assertEqual(sorted(r.json()['text'] for r in target.stored()), sorted(name for _, name in pairs))

    def test_workspaces_are_apart(self):
        target = self.target()
        daemon = self.daemon(target)
        ids = [daemon.accept_ok('s', note('m'), workspace=ws) for ws in ('a', 'a:', 'a:s', 'b', '%61')]
        self.assertEqual(len(set(ids)), 5)
        self.assertDelivered(target, ids, times=1)
        self.assertProblem(daemon.entry(ids[0], 'b'), 404)

    def test_a_client_message_id_of_256_bytes_is_taken_and_one_of_257_refused(self):
        daemon = self.daemon(self.target())
        self.assertEqual(daemon.accept('s', note('é' * 128)).status, 202)
        self.assertIn(daemon.accept('s', note('é' * 128 + 'x')).status, (400, 422))


class Dedupe(SystemTest):
    def test_the_same_client_message_id_with_another_body_is_refused(self):
        target = self.target()
        daemon = self.daemon(target)
        entry = daemon.accept_ok('s', note('m'))
        for other in (dict(note('m'), payload={'text': 'other'}), dict(note('m'), kind='pay'), dict(note('m'), userID='u')):
            self.assertProblem(daemon.accept('s', other), 422, 'idempotency_key_reuse')
        self.assertDelivered(target, [entry], times=1)
        daemon.wait_status(entry, 'sent')
        self.assertProblem(daemon.accept('s', dict(note('m'), payload={'text': 'other'})), 422, 'idempotency_key_reuse')
        self.assertEqual(len(target.posts()), 1)

    def test_a_repeat_says_how_the_original_stands(self):
        target = self.target()
        target.script(hold=True, times=1)
        daemon = self.daemon(target)
        entry = daemon.accept_ok('s', note('m'))
        daemon.wait_status(entry, 'delivering')
        repeat = daemon.accept('s', note('m'))
        self.assertEqual((repeat.status, repeat.json()['entryStatus']), (200, 'delivering'))
        wait_until(lambda: target.posts(key=entry), 10, 'the request')  # one that comes after release() is held for ever
        target.release()
        daemon.wait_status(entry, 'sent')
        repeat = daemon.accept('s', note('m'))
        self.assertEqual((repeat.status, repeat.json()['id'], repeat.json()['entryStatus']), (200, entry, 'sent'))

    def test_the_same_body_with_members_in_another_order_is_the_same(self):
        daemon = self.daemon(self.target())
        path = '/v1/workspaces/w/sessions/s/entries'
        first = daemon.call('POST', path, '{"clientMessageID":"m","kind":"note","payload":{"a":1,"b":2}}')
        second = daemon.call('POST', path, '{"payload": {"b":2, "a":1}, "kind":"note", "clientMessageID":"m"}')
        self.assertEqual((first.status, second.status), (202, 200))
        self.assertEqual(first.json()['id'], second.json()['id'])

    def test_without_a_client_message_id_every_accept_is_an_entry(self):
        target = self.target()
        daemon = self.daemon(target)
        body = {'kind': 'note', 'payload': {'text': 'x'}}
        ids = [daemon.accept_ok('s', body) for _ in range(3)] + [daemon.accept_ok('s', dict(body, clientMessageID=''))]
        self.assertEqual(len(set(ids)), 4)
        self.assertDelivered(target, ids, times=1)

    def test_the_idempotency_key_header_may_carry_the_client_message_id(self):
        daemon = self.daemon(self.target())
        body = {'kind': 'note', 'payload': {}}
        first = daemon.accept('s', body, headers={'Idempotency-Key': 'k'})
        self.assertEqual((first.status, first.json()['clientMessageID']), (202, 'k'))
        self.assertEqual(daemon.accept('s', dict(body, clientMessageID='k')).status, 200)
        self.assertEqual(daemon.accept('s', dict(body, clientMessageID='k'), headers={'Idempotency-Key': 'k'}).status, 200)
        other = daemon.accept('s', dict(body, clientMessageID='other'), headers={'Idempotency-Key': 'k'})
        self.assertProblem(other, other.status)
        self.assertIn(other.status, (400, 409, 422))

    def test_what_was_accepted_reaches_the_target_as_the_client_wrote_it(self):
        target = self.target()
        daemon = self.daemon(target)
        payload = '{"big": 12345678901234567890123, "small":1.10, "text":"\\u00e9 \\ud83d\\ude00", "list":[1,  2]}'
        answer = daemon.call('POST', '/v1/workspaces/w/sessions/s/entries',
                             '{"clientMessageID":"m \\"1\\"","kind":"note","payload":' + payload + '}',
                             {'traceparent': '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'})
        self.assertEqual(answer.status, 202)
        self.assertTrue(answer.headers['location'].endswith(answer.json()['id']), answer.headers)
        self.assertEqual(answer.headers.get('outbox-durability'), 'fsync')
        self.assertDelivered(target, [answer.json()['id']], times=1)
        request = target.posts()[0]
        self.assertEqual(request.body.decode(), payload)
        self.assertEqual(request.headers['outbox-attempt'], '1')
        self.assertEqual(request.headers['traceparent'], '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01')
        self.assertIn('outbox-client-message-id', request.headers)
        self.assertNotIn('expect', request.headers)


class Lanes(SystemTest):
    def test_a_kind_with_a_lane_names_its_session(self):
        target = self.target()
        kinds = [{'name': 'message', 'url': '/threads/{payload.thread}/messages', 'lane': 'thread:{payload.thread}', 'idempotent': True}]
        daemon = self.daemon(target, kinds=kinds)
        target.script(path='/threads/*', hold=True, times=1)
        answer = daemon.call('POST', '/v1/workspaces/w/entries', {'kind': 'message', 'payload': {'thread': 'a/b c'}})
        self.assertEqual(answer.status, 202, answer)
        wait_until(lambda: target.posts(), 10, 'the request')
        self.assertEqual(target.posts()[0].path, '/threads/a%2Fb%20c/messages')
        target.release()
        daemon.wait_status(answer.json()['id'], 'sent')


if __name__ == '__main__':
    harness.main()
