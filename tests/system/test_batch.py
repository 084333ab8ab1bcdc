"""POST /v1/batch: many messages in one request, each answered on its line, in order, and none lost, doubled or overtaken."""
import contextlib
import http.client
import json
import threading

import harness
from harness import SystemTest, raw_request, wait_until
from test_tokens import TokenTest

NDJSON = 'application/x-ndjson'


def line(name, session='s', workspace='w', **more):
    members = dict({'workspaceID': workspace, 'sessionID': session, 'clientMessageID': name, 'kind': 'note',
                    'payload': {'text': name}}, **more)
    return {k: v for k, v in members.items() if v is not None}


def as_body(lines):
    return b''.join((entry if isinstance(entry, bytes) else json.dumps(entry).encode()) + b'\n' for entry in lines)


def send(daemon, lines, headers=(), timeout=60):
    """The answer of the whole batch."""
    with contextlib.closing(harness.Client(daemon.port, timeout)) as client:
        body = lines if isinstance(lines, bytes) else as_body(lines)
        return client.call('POST', '/v1/batch', body, {'Content-Type': NDJSON, **dict(headers)})


def answers_of(answer):
    return [json.loads(text) for text in answer.body.decode().splitlines()]


class BatchTest(SystemTest):
    def send(self, daemon, lines, **more):
        """One answer for each line."""
        answer = send(daemon, lines, **more)
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(answer.headers['content-type'], NDJSON)
        answers = answers_of(answer)
        if not isinstance(lines, bytes):
            self.assertEqual(len(answers), len(lines))
        return answers

    def texts(self, daemon, session, workspace='w'):
        return [e['payload']['text'] for e in daemon.entries(session, workspace)]


class OneServer(BatchTest):
    """All on one server: each test has workspaces of its own."""

    @classmethod
    def setUpClass(cls):
        cls.owner = SystemTest()
        cls.addClassCleanup(cls.owner.doCleanups)
        cls.the_target = cls.owner.target()
        kinds = harness.KINDS + [{'name': 'laned', 'url': '/notes', 'idempotent': True, 'lane': 'thread:{payload.thread}'}]
        cls.daemon_of_all = cls.owner.daemon(cls.the_target, kinds=kinds, session_cap=100, max_text_bytes='2KB',
                                             batch={'max_bytes': '200KB', 'max_lines': 600})

    def setUp(self):
        self.server = self.daemon_of_all

    def pause(self, workspace):
        """What is accepted stays, so that it can be looked at."""
        self.assertEqual(self.server.call('POST', f'/v1/workspaces/{workspace}/pause').status, 200)

    def test_the_order_of_lines_is_the_order_of_each_session(self):
        for workspace in ('order', 'order2', 'order3'):
            self.pause(workspace)
        places = [('order', 'a'), ('order2', 'a'), ('order', 'b'), ('order3', 'c')]
        lines = [line(f'm{n}', places[n * 7 % 4][1], places[n * 7 % 4][0]) for n in range(360)]
        answers = self.send(self.server, lines)
        self.assertEqual({a['status'] for a in answers}, {202})
        self.assertEqual(len({a['id'] for a in answers}), 360)
        self.assertEqual([a['clientMessageID'] for a in answers], [f'm{n}' for n in range(360)])
        for workspace, session in places:
            names = [e['clientMessageID'] for e in lines if (e['workspaceID'], e['sessionID']) == (workspace, session)]
            self.assertEqual(self.texts(self.server, session, workspace), names)

    def test_messages_are_delivered_once_each_in_order(self):
        answers = self.send(self.server, [line(f'd{n}', 'lane', 'deliver') for n in range(90)])
        ids = [a['id'] for a in answers]
        self.assertDelivered(self.the_target, ids, times=1)
        mine = [r.key for r in self.the_target.posts() if r.key in set(ids)]
        self.assertEqual(mine, ids)

    def test_every_message_is_counted_and_has_its_event(self):
        self.pause('counted')
        before = {r: self.server.metric('outbox_accepts_total', result=r) for r in ('accepted', 'duplicate', 'invalid')}
        lines = [line(f'e{n}', f's{n % 3}', 'counted') for n in range(9)] + [line('e0', 's0', 'counted'), b'{']
        self.send(self.server, lines)
        after = {r: self.server.metric('outbox_accepts_total', result=r) for r in before}
        self.assertEqual({r: after[r] - before[r] for r in before}, {'accepted': 9, 'duplicate': 1, 'invalid': 1})
        self.assertEqual(self.server.call('GET', '/v1/workspaces/counted').json()['entries']['pending'], 9)
        partition = harness.partition('counted')
        with contextlib.closing(self.server.valkey()) as valkey:
            events = [dict(zip(e[1][::2], e[1][1::2])) for e in valkey('XRANGE', f'outboxev:{{{partition}}}', '-', '+')]
        mine = [e[b'clientMessageID'] for e in events if e[b'workspaceID'] == b'counted' and e[b'type'] == b'accepted']
        self.assertEqual(mine, [b'e%d' % n for n in range(9)])

    def test_repeats_get_the_original_and_another_body_is_refused(self):
        self.pause('again')
        first = self.send(self.server, [line('one', 'a', 'again'), line('two', 'a', 'again'), line('one', 'b', 'again')])
        self.assertEqual([a['status'] for a in first], [202, 202, 202], 'one clientMessageID in two sessions is two')
        answers = self.send(self.server, [
            line('one', 'a', 'again'), line('two', 'a', 'again', payload={'text': 'other'}), line('new', 'a', 'again'),
            line('new', 'a', 'again'), line('new', 'a', 'again', payload={'text': 'other'})])
        self.assertEqual([a['status'] for a in answers], [200, 422, 202, 200, 422])
        self.assertEqual((answers[0]['id'], answers[0]['entryStatus']), (first[0]['id'], 'pending'))
        self.assertEqual(answers[1]['code'], 'idempotency_key_reuse')
        self.assertEqual(answers[3]['id'], answers[2]['id'])
        self.assertEqual(self.texts(self.server, 'a', 'again'), ['one', 'two', 'new'])
        alone = self.server.accept('a', workspace='again', clientMessageID='new', kind='note', payload={'text': 'new'})
        self.assertEqual((alone.status, alone.json()['id']), (200, answers[2]['id']), 'a batch and a single POST differ')

    def test_a_bad_line_is_answered_in_its_place_and_stops_no_other(self):
        self.pause('bad')
        good = [line(f'g{n}', 'a', 'bad') for n in range(3)]
        rows = [
            (good[0], 202, None),
            (b'', 400, 'body_missing'),
            (b'not json', 400, 'invalid_json'),
            (b'{"workspaceID":"bad","workspaceID":"bad"}', 400, 'duplicate_member'),
            (b'[' * 70, 400, 'json_too_deep'),
            (line('x', 'a', None), 422, 'missing_member'),
            (line('x', 'a', 'no/such'), 400, 'invalid_name'),
            (line('x', '', 'bad'), 400, 'invalid_name'),
            (line('x', 'a', 'bad', payload=None), 422, 'missing_member'),
            (line('x', 'a', 'bad', more=1), 422, 'unknown_member'),
            (line('x', 'a', 'bad', payload={'text': 'x' * 3000}), 413, 'too_large'),
            (b'{"workspaceID":"bad","text":"' + b'x' * 30000 + b'"}', 413, 'too_large'),
            (line('x', None, 'bad', kind='laned'), 422, 'lane_not_filled'),
            (good[1], 202, None),
            (json.dumps(good[2]).encode() + b'\r', 202, None),
        ]
        answers = self.send(self.server, [row[0] for row in rows])
        self.assertEqual([(a['status'], a.get('code')) for a in answers], [(row[1], row[2]) for row in rows])
        self.assertEqual(self.texts(self.server, 'a', 'bad'), ['g0', 'g1', 'g2'])

    def test_a_line_without_a_session_goes_into_the_lane_of_its_kind(self):
        self.pause('lanes')
        answers = self.send(self.server, [line('a', None, 'lanes', kind='laned', payload={'thread': 'x', 'text': 'a'}),
                                          line('b', None, 'lanes'), line('c', 'thread:x', 'lanes')])
        self.assertEqual([a['status'] for a in answers], [202] * 3)
        self.assertEqual(self.texts(self.server, 'thread:x', 'lanes'), ['a', 'c'])
        self.assertEqual(self.texts(self.server, 'global', 'lanes'), ['b'])

    def test_nothing_overtakes_a_line_that_found_its_session_full(self):
        """Also when the session has room again before its later lines are looked at."""
        self.pause('full')
        answers = self.send(self.server, [line(f'f{n}', 'a', 'full') for n in range(300)])
        self.assertEqual([a['status'] for a in answers], [202] * 100 + [429] * 200)
        self.assertEqual({a['code'] for a in answers[100:]}, {'session_full'})
        self.assertEqual(self.texts(self.server, 'a', 'full'), [f'f{n}' for n in range(100)])
        # Delivered meanwhile: a line may only be accepted if all before it were.
        lines = [line(f'o{n}', 'b', 'full-drains') for n in range(500)]
        for _ in range(200):
            statuses = [a['status'] for a in self.send(self.server, lines)]
            refused = statuses.index(429) if 429 in statuses else len(lines)
            self.assertNotIn(202, statuses[refused:], 'a later line was accepted')
            if refused == len(lines):
                break
        texts = [r.json()['text'] for r in self.the_target.stored() if r.json()['text'].startswith('o')]
        wait_until(lambda: len([r for r in self.the_target.stored() if r.json()['text'].startswith('o')]) == 500, 30, 'all of them')
        texts = [r.json()['text'] for r in self.the_target.stored() if r.json()['text'].startswith('o')]
        self.assertEqual(texts, [f'o{n}' for n in range(500)])

    def test_what_a_line_depends_on_holds_it_back(self):
        self.the_target.script(path='/notes', hold=True, times=1)
        first = self.server.accept('held', workspace='deps', kind='note', payload={'text': 'first'}).json()['id']
        wait_until(lambda: self.server.status(first, 'deps') == 'delivering', 20, 'the first to be under way')
        gone = 'ob_' + '0' * 26
        answers = self.send(self.server, [line('later', 'b', 'deps', dependsOn=[first]), line('behind', 'c', 'deps'),
                                          line('lost', 'd', 'deps', dependsOn=[gone])])
        self.assertEqual([a['status'] for a in answers], [202] * 3)
        self.assertEqual(self.server.wait_status(answers[1]['id'], 'sent', 'deps')['status'], 'sent')
        self.assertEqual(self.server.entry(answers[0]['id'], 'deps').json().get('dependsOn'), [first])
        self.assertEqual(self.server.wait_status(answers[2]['id'], 'error', 'deps')['lastError']['code'], 'dependency_discarded')
        self.the_target.release()
        self.server.wait_status(answers[0]['id'], 'sent', 'deps')

    def test_a_batch_beyond_its_limits_is_refused_as_a_whole(self):
        self.pause('limits')
        lines = [line(f'l{n}', 'a', 'limits') for n in range(601)]
        answer = send(self.server, lines)
        self.assertProblem(answer, 413, 'batch_too_large')
        self.assertProblem(send(self.server, as_body(lines[:1]) + b' ' * 200000), 413, 'too_large')
        self.assertProblem(send(self.server, b''), 400, 'body_missing')
        self.assertProblem(send(self.server, lines[:1], headers={'Content-Type': 'application/json'}), 415,
                           'unsupported_media_type')
        self.assertProblem(send(self.server, lines[:1], headers={'Idempotency-Key': 'k'}), 400, 'invalid_header')
        self.assertEqual(self.server.entries('a', 'limits'), [])

    def test_who_goes_away_in_the_middle_can_repeat(self):
        lines = [line(f'a{n}', f's{n % 5}', 'away') for n in range(400)]
        body = as_body(lines)
        sock = self.server.socket()
        sock.sendall(raw_request('POST', '/v1/batch', body, [('Content-Type', NDJSON)]))
        sock.close()
        answers = self.send(self.server, lines)
        self.assertTrue({a['status'] for a in answers} <= {200, 202}, answers[0])
        self.assertDelivered(self.the_target, [a['id'] for a in answers], times=1)


class Tokens(TokenTest, BatchTest):
    def test_a_line_for_a_workspace_beyond_the_token_is_forbidden_and_the_others_are_not(self):
        daemon = self.guarded(self.target())
        harness.tokens[daemon.port] = self.token(daemon, 'client', 'team-*', 'batch')
        self.reload(daemon)
        answers = self.send(daemon, [line('a', 's', 'team-1'), line('b', 's', 'other'), line('c', 's', 'team-2')])
        self.assertEqual([(a['status'], a.get('code')) for a in answers], [(202, None), (403, 'forbidden'), (202, None)])
        harness.tokens[daemon.port] = 'obx_unknown'
        self.assertProblem(send(daemon, [line('a', 's', 'team-1')]), 401, 'token_invalid')


class Faults(BatchTest):
    limit = 120

    def repeat(self, daemon, lines):
        """As a client does: what was not accepted again, in its order, until all of it is. {name: ID}"""
        ids, left = {}, list(lines)

        def all_accepted():
            with contextlib.suppress(OSError, http.client.HTTPException):
                answers = answers_of(send(daemon, left))
                for entry, answer in zip(left, answers):
                    self.assertIn(answer['status'], (200, 202, 429, 503), answer)
                    if answer['status'] in (200, 202):
                        ids[entry['clientMessageID']] = answer['id']
                left[:] = [e for e in left if e['clientMessageID'] not in ids]
            return not left
        wait_until(all_accepted, 60, lambda: f'{len(left)} are left', every=0.05)
        return ids

    def test_an_api_killed_in_the_middle_leaves_nothing_lost_or_doubled(self):
        target = self.target()
        daemon = self.daemon(target, session_cap=10000)
        lines = [line(f'k{n}', f's{n % 4}', f'w{n % 3}', kind='note') for n in range(3000)]
        sock = daemon.socket()
        sock.sendall(raw_request('POST', '/v1/batch', as_body(lines), [('Content-Type', NDJSON)]))
        wait_until(lambda: daemon.metric('outbox_accepts_total', result='accepted') > 0, 30, 'some to be accepted', every=0.001)
        daemon.kill('api')
        sock.close()
        ids = self.repeat(daemon, lines)
        self.assertEqual(len(set(ids.values())), len(lines))
        self.check_by_workspace(daemon, target, lines)

    def check_by_workspace(self, daemon, target, lines):
        for workspace in {e['workspaceID'] for e in lines}:
            for session in {e['sessionID'] for e in lines}:
                expected = [e['clientMessageID'] for e in lines if (e['workspaceID'], e['sessionID']) == (workspace, session)]
                names = set(expected)

                def delivered(names=names):
                    return list(dict.fromkeys(r.json()['text'] for r in target.stored() if r.json()['text'] in names))
                wait_until(lambda: len(delivered()) == len(names), 90, lambda: f'{len(delivered())} of {len(names)}', every=0.1)
                self.assertEqual(delivered(), expected, 'out of order')
        self.assertEqual(len({r.key for r in target.stored()}), len(lines), 'a message was accepted twice')

    def test_a_store_that_goes_away_in_the_middle_keeps_the_order(self):
        target = self.target()
        store = self.own_store()
        daemon = self.daemon(target, store={'url': store.url}, session_cap=10000)
        everything = []
        for attempt in range(6):  # the batch may be through before the store is gone
            lines = [line(f'{attempt}-{n}', f's{n % 3}') for n in range(5000)]
            everything += lines
            results = self.kill_meanwhile(daemon, store, lines)
            statuses = [a['status'] for a in results]
            self.assertEqual(len(statuses), len(lines))
            self.assertEqual(statuses, sorted(statuses), 'a line behind a refused one was accepted')
            store.start()
            accepted = {e['clientMessageID'] for e, a in zip(lines, results) if a['status'] == 202}
            ids = self.repeat(daemon, [e for e, a in zip(lines, results) if a['status'] != 202])
            self.assertFalse(set(ids) & accepted)
            if ids and accepted:
                break
        self.assertTrue(ids and accepted, 'no batch was hit in the middle')
        self.check_by_workspace(daemon, target, everything)

    def kill_meanwhile(self, daemon, store, lines):
        """The answers of a batch during which the store was killed, once some of it was accepted."""
        results = []
        before = daemon.metric('outbox_accepts_total', result='accepted')
        thread = threading.Thread(target=lambda: results.extend(answers_of(send(daemon, lines))))
        thread.start()
        wait_until(lambda: daemon.metric('outbox_accepts_total', result='accepted') > before, 30, 'some to be accepted', every=0.001)
        store.kill()
        thread.join()
        return results


if __name__ == '__main__':
    harness.main()
