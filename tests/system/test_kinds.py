#!/usr/bin/env python3
"""What a kind's declaration says is what happens (contract §4): the request's looks, lane, waits and limits of its own, and
how many of a kind run at once. And what an entry says that stands because of another (§6)."""
import threading
import time

import harness
from harness import LOOK_UP, SystemTest, wait_until

PROBLEM = {'Content-Type': 'application/problem+json'}


class Kinds(SystemTest):
    def begin(self, *kinds, workers=1, **settings):
        self.server = self.target()
        self.daemon_ = self.daemon(self.server, kinds=list(kinds), workers=workers, **settings)

    def send(self, kind, payload=None, session='s', **members):
        return self.daemon_.accept_ok(session=session, kind=kind, payload=payload or {}, **members)

    def call(self, method, path, body=None):
        return self.daemon_.call(method, f'/v1/workspaces/w{path}', body)

    def error_of(self, entry):
        return self.daemon_.wait_status(entry, 'error')['lastError']['code']

    # the request

    def test_method_url_body_and_content_type(self):
        self.begin({'name': 'k', 'method': 'PUT', 'url': '/r/{session}/{payload.emoji}', 'content_type': 'application/x-own',
                    'body': '{"id":{id},"n":[{payload.n}, {payload.emoji}]}', 'idempotent': True},
                   {'name': 'plain', 'url': '/plain', 'idempotent': True})
        entry = self.send('k', {'emoji': '#️⃣/?', 'n': 5})
        self.daemon_.wait_status(entry, 'sent')
        request, = self.server.requests(method='PUT')
        self.assertEqual(request.path, '/r/s/%23%EF%B8%8F%E2%83%A3%2F%3F')
        self.assertEqual(request.headers['content-type'], 'application/x-own')
        self.assertEqual(request.json(), {'id': entry, 'n': [5, '#️⃣/?']})
        self.assertEqual(request.key, entry)
        other = self.send('plain', {'a': [1.50]})
        self.daemon_.wait_status(other, 'sent')
        request, = self.server.posts(path='/plain')
        self.assertEqual((request.headers['content-type'], request.json()), ('application/json', {'a': [1.50]}))

    def test_lane(self):
        self.begin({'name': 'k', 'url': '/k', 'idempotent': True, 'lane': 'thread:{payload.thread}'})
        answer = self.call('POST', '/entries', {'kind': 'k', 'payload': {'thread': 'a/b'}})
        self.assertEqual(answer.status, 202, answer)
        shown = self.call('GET', f'/entries/{answer.json()["id"]}').json()
        self.assertEqual(shown['sessionID'], 'thread:a%2Fb')
        self.assertProblem(self.call('POST', '/entries', {'kind': 'k', 'payload': {}}), 422, 'lane_not_filled')

    # waits and limits: the same thing happens to a kind that says so and to one that does not

    def test_timeout(self):
        self.begin({'name': 'short', 'url': '/short', 'timeout': '300ms'}, {'name': 'long', 'url': '/long'})
        self.server.script({'path': '/short', 'hold': True}, {'path': '/long', 'hold': True})
        short, long = self.send('short', session='a'), self.send('long', session='b')
        self.assertEqual(self.error_of(short), 'outcome_unknown')
        self.assertEqual(self.daemon_.status(long), 'delivering')
        self.server.release()
        self.daemon_.wait_status(long, 'sent')

    def test_attempts(self):
        self.begin({'name': 'two', 'url': '/k', 'max_attempts': 2}, {'name': 'more', 'url': '/k'}, max_attempts=3)
        self.server.script(path='/k', status=503)
        two, more = self.send('two', session='a'), self.send('more', session='b')
        self.assertEqual([self.error_of(two), self.error_of(more)], ['attempts_exhausted'] * 2)
        self.assertEqual([len(self.server.posts(key=k)) for k in (two, more)], [2, 3])

    def test_transient_failures_and_backoff(self):
        own = {'max_transient_failures': 2, 'retry_backoff': '1ms', 'max_backoff': '1ms'}
        self.begin({'name': 'two', 'url': '/k', **own}, {'name': 'more', 'url': '/k'}, retry_backoff='1h', max_backoff='1h',
                   jitter='none')
        self.server.stop()
        two, more = self.send('two', session='a'), self.send('more', session='b')
        self.assertEqual(self.error_of(two), 'unreachable')
        wait_until(lambda: self.call('GET', f'/entries/{more}').json()['transientFails'] == 1, 10, 'a failure')
        self.assertEqual(self.daemon_.status(more), 'pending')

    def test_verification(self):
        own = {'verify_delay': '1ms', 'verify_settle': '1ms', 'max_verify_attempts': 2}
        look_up = dict(LOOK_UP, url='/looked-up/{id}')
        self.begin({'name': 'own', 'url': '/own', 'verify': look_up, **own}, {'name': 'not', 'url': '/not', 'verify': look_up},
                   verify_delay='1h', verify_backoff='1ms')
        self.server.script({'path': '/own', 'close': 'after-request'}, {'path': '/not', 'close': 'after-request'},
                           {'path': '/looked-up/*', 'status': 500})
        own, other = self.send('own', session='a'), self.send('not', session='b')
        self.assertEqual(self.error_of(own), 'unverifiable')
        self.daemon_.wait_status(other, 'verifying')
        self.assertEqual(self.call('GET', f'/entries/{own}').json()['verifyAttempts'], 2)
        self.assertEqual({r.path for r in self.server.requests(method='GET')}, {f'/looked-up/{own}'})

    def test_retry_for(self):
        self.begin({'name': 'own', 'url': '/k', 'idempotent': True, 'retry_for': '200ms'},
                   {'name': 'not', 'url': '/k', 'idempotent': True})
        self.server.script(path='/k', status=500)
        own, other = self.send('own', session='a'), self.send('not', session='b')
        self.assertEqual(self.error_of(own), 'retries_exhausted')
        self.assertEqual(self.daemon_.status(other) in ('pending', 'delivering'), True)

    # how many at once

    def most_at_once(self, path):
        """From the target's own clock: how many of its requests had come and were not answered."""
        requests = self.server.posts(path=path)
        moments = sorted([(r.time, 1) for r in requests] + [(r.answered, -1) for r in requests])
        at_once = most = 0
        for _time, change in moments:
            at_once += change
            most = max(most, at_once)
        return most

    def test_a_kind_at_its_limit_holds_up_nothing_else(self):
        self.begin({'name': 'slow', 'url': '/slow', 'idempotent': True, 'max_in_flight': 2, 'ordering': 'first-due'},
                   {'name': 'note', 'url': '/notes', 'idempotent': True}, max_in_flight=4)
        self.server.script(path='/slow', hold=True)
        slow = [self.send('slow', session=f's{n}') for n in range(80)]
        wait_until(lambda: len(self.server.posts(path='/slow')) == 2, 10, 'two of them')
        notes = [self.send('note', session=f'n{n}') for n in range(20)]
        self.assertDelivered(self.server, notes, times=1)
        behind = self.send('note', session='s79')  # first-due: it passes over the one that waits
        self.daemon_.wait_status(behind, 'sent')
        self.assertEqual(len(self.server.posts(path='/slow')), 2)
        self.assertEqual(self.daemon_.metric('outbox_entries', status='error'), 0)
        self.server.clear_script()
        self.server.release()
        self.assertDelivered(self.server, slow, times=1)
        for entry in slow:
            self.daemon_.wait_status(entry, 'sent')

    def test_many_sessions_share_few_places_in_order(self):
        self.begin({'name': 'few', 'url': '/few', 'idempotent': True, 'max_in_flight': 3})
        self.server.script(path='/few', delay=0.005)
        ids = {n: [self.send('few', {'n': k}, session=f's{n}') for k in range(3)] for n in range(100)}
        self.assertDelivered(self.server, [entry for entries in ids.values() for entry in entries], times=1)
        self.assertLessEqual(self.most_at_once('/few'), 3)
        self.assertGreater(self.most_at_once('/few'), 1)
        arrived = [r.key for r in self.server.posts(path='/few')]
        for entries in ids.values():
            self.assertEqual(sorted(entries, key=arrived.index), entries)

    def test_who_waits_for_a_place_is_given_back_when_the_worker_drains(self):
        self.begin({'name': 'one', 'url': '/one', 'idempotent': False, 'max_in_flight': 1})
        self.server.script(path='/one', hold=True)
        ids = [self.send('one', session=f's{n}') for n in range(5)]
        wait_until(lambda: self.server.posts(path='/one'), 10, 'the first')
        stopping = threading.Thread(target=self.daemon_.stop)
        stopping.start()
        time.sleep(0.2)  # the signal is on its way; whether it has come does not change what must hold
        self.server.clear_script()
        self.server.release()
        stopping.join()
        self.assertEqual(self.daemon_.process.returncode, 0)
        self.daemon_.start()
        self.assertDelivered(self.server, ids, times=1)

    def test_what_was_confirmed_while_it_waited_for_a_place_is_not_sent(self):
        self.begin({'name': 'one', 'url': '/one', 'idempotent': True, 'max_in_flight': 1})
        self.server.script(path='/one', hold=True)
        first = self.send('one', session='a')
        wait_until(lambda: self.server.posts(path='/one'), 10, 'the first')
        second = self.send('one', session='b')
        self.daemon_.wait_status(second, 'delivering')
        self.assertEqual(self.call('POST', '/confirm', {'entryID': second}).json(), {'confirmed': True})
        self.server.release()
        self.daemon_.wait_status(first, 'sent')
        third = self.send('one', session='b')
        self.server.clear_script()
        self.server.release()
        self.daemon_.wait_status(third, 'sent')
        self.assertFalse(self.server.posts(key=second))

    # one key for all attempts, a new one when a person tries again

    def test_keys_of_attempts(self):
        self.begin({'name': 'k', 'url': '/k', 'idempotent': True})
        self.server.script({'path': '/k', 'status': 503, 'times': 2}, {'path': '/k', 'close': 'after-request', 'times': 1},
                           {'path': '/k', 'status': 422, 'times': 1})
        entry = self.send('k')
        self.daemon_.wait_status(entry, 'error')
        self.assertEqual([(r.key, r.headers['outbox-attempt']) for r in self.server.posts()],
                         [(entry, str(n)) for n in (1, 2, 3, 4)])
        again = self.call('POST', f'/entries/{entry}/retry').json()['id']
        self.daemon_.wait_status(again, 'sent')
        self.assertEqual(self.server.posts()[-1].key, again)
        self.assertNotEqual(again, entry)

    def test_a_retry_after_a_conflict_carries_the_revision(self):
        for answer, headers, current, if_match in (
                ('{"code":"conflict","current":{"version":7,"text":"x"}}', PROBLEM, {'version': 7, 'text': 'x'}, '7'),
                ('{"code":"conflict","current":{"version":"\\"v7\\""}}', PROBLEM, {'version': '"v7"'}, '"v7"'),
                ('{"code":"conflict","current":{"version":12345678901234567890}}', PROBLEM, {'version': 12345678901234567890},
                 '12345678901234567890'),
                ('{"code":"conflict","current":8}', PROBLEM, 8, '8'),
                ('', {'ETag': '"r9"'}, '"r9"', '"r9"')):
            with self.subTest(current=current):
                self.begin({'name': 'k', 'url': '/k', 'idempotent': True})
                self.server.script(path='/k', status=412, headers=headers, answer=answer, times=1)
                entry = self.send('k')
                shown = self.daemon_.wait_status(entry, 'error')
                self.assertEqual((shown['lastError']['code'], shown['conflictCurrent']), ('conflict', current))
                self.call('POST', f'/entries/{entry}/retry')
                wait_until(lambda: len(self.server.stored()) == 1, 10, 'the retry')
                self.assertNotIn('if-match', self.server.posts()[0].headers)
                self.assertEqual(self.server.posts()[1].headers['if-match'].strip('"'), if_match.strip('"'))

    # an entry that stands says so

    def test_who_waits_for_a_failed_entry_says_so(self):
        self.begin({'name': 'k', 'url': '/k', 'idempotent': True}, {'name': 'bad', 'url': '/bad', 'idempotent': True})
        self.server.script({'path': '/bad', 'status': 422}, {'path': '/k', 'hold': True, 'times': 1})
        bad, under_way = self.send('bad', session='one'), self.send('k', session='two')
        waiting = self.send('k', session='three', dependsOn=[under_way, bad])
        behind = self.send('k', session='four', dependsOn=[waiting])
        self.daemon_.wait_status(bad, 'error')
        for shown in (self.call('GET', f'/entries/{waiting}').json(), self.daemon_.entries('three')[0]):
            self.assertEqual((set(shown['dependsOn']), shown['waitsForFailed']), ({under_way, bad}, [bad]))
        self.assertNotIn('waitsForFailed', self.daemon_.entries('four')[0])
        self.assertIn(f'waits for {bad}', self.daemon_.ctl('list', 'w', 'three').stdout)
        self.call('POST', '/park', {'reason': 'r'})
        self.assertEqual(self.daemon_.entries('four')[0]['waitsForFailed'], [waiting])
        self.call('POST', '/unpark')
        self.server.clear_script()
        self.server.release()
        again = self.call('POST', f'/entries/{bad}/retry').json()['id']
        self.daemon_.wait_status(behind, 'sent')
        self.assertEqual([self.daemon_.status(e) for e in (again, under_way, waiting)], ['sent'] * 3)


if __name__ == '__main__':
    harness.main()
