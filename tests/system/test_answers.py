"""Every row of the contract's tables of outcomes (§3) and answers (§4), seen from outside: what the target got and how
the entry stands. `note` is idempotent; `fire` is not and has no look-up, so that every outcome can be told apart."""
import email.utils
import time

import harness
from harness import KINDS, SystemTest, free_port, wait_until

PROBLEM = {'Content-Type': 'application/problem+json'}

# name, what the target does on the first request, outcome for an idempotent kind, outcome for others
ROWS = [
    ('200', {'status': 200}, 'confirmed', 'confirmed'),
    ('201', {'status': 201}, 'confirmed', 'confirmed'),
    ('204', {'status': 204}, 'confirmed', 'confirmed'),
    ('299', {'status': 299}, 'confirmed', 'confirmed'),
    ('200 replayed', {'headers': {'Idempotent-Replay': 'true'}}, 'confirmed', 'confirmed'),
    ('200 not JSON', {'answer': '<html>', 'headers': {'Content-Type': 'application/json'}}, 'confirmed', 'confirmed'),
    ('200 bad encoding', {'headers': {'Content-Encoding': 'gzip'}, 'answer': 'not gzip'}, 'confirmed', 'confirmed'),
    ('200 endless', {'endless': True}, 'confirmed', 'confirmed'),
    ('200 cut in its body', {'close': 'mid-answer', 'after': 60, 'answer': 'x' * 1000, 'store': True}, 'confirmed', 'confirmed'),
    ('200 late body', {'endless': True, 'drip': 0.5}, 'confirmed', 'confirmed'),
    ('200 after 1xx', {'informational': 20}, 'confirmed', 'confirmed'),
    ('no answer', {'close': 'after-request'}, 'retry', 'ambiguous'),
    ('reset', {'close': 'reset'}, 'retry', 'ambiguous'),
    ('reset within the body', {'read': 1, 'close': 'reset'}, 'retry', 'ambiguous'),
    ('garbage', {'garbage': '\x00\x01\x02 nothing like HTTP\r\n\r\n'}, 'retry', 'ambiguous'),
    ('timeout', {'hold': True}, 'retry', 'ambiguous'),
    ('425', {'status': 425}, 'retry', 'rejected'),
    ('429', {'status': 429}, 'retry', 'rejected'),
    ('503', {'status': 503}, 'retry', 'rejected'),
    ('408', {'status': 408}, 'retry', 'ambiguous'),
    ('409 in progress', {'status': 409, 'headers': PROBLEM, 'answer': '{"code":"request_in_progress"}'}, 'retry', 'ambiguous'),
    ('409 in progress, but no problem document',
     {'status': 409, 'headers': {'Content-Type': 'application/json'}, 'answer': '{"code":"request_in_progress"}'}, 'failed', 'failed'),
    ('409 in progress, with parameters', {'status': 409, 'answer': '{"type":"https://x.example/request_in_progress"}',
     'headers': {'Content-Type': 'Application/Problem+JSON; charset=utf-8'}}, 'retry', 'ambiguous'),
    ('500', {'status': 500}, 'retry', 'ambiguous'),
    ('502', {'status': 502}, 'retry', 'ambiguous'),
    ('504', {'status': 504}, 'retry', 'ambiguous'),
    ('599', {'status': 599}, 'retry', 'ambiguous'),
    ('301', {'status': 301, 'headers': {'Location': '/elsewhere'}}, 'failed', 'failed'),
    ('307', {'status': 307, 'headers': {'Location': '/elsewhere'}}, 'failed', 'failed'),
    ('400', {'status': 400}, 'failed', 'failed'),
    ('401', {'status': 401}, 'failed', 'failed'),
    ('403', {'status': 403}, 'failed', 'failed'),
    ('404', {'status': 404}, 'failed', 'failed'),
    ('409 other', {'status': 409, 'headers': PROBLEM, 'answer': '{"code":"already_there"}'}, 'failed', 'failed'),
    ('410', {'status': 410}, 'failed', 'failed'),
    ('413', {'status': 413}, 'failed', 'failed'),
    ('415', {'status': 415}, 'failed', 'failed'),
    ('418', {'status': 418}, 'failed', 'failed'),
    ('422', {'status': 422, 'headers': PROBLEM, 'answer': '{"type":"https://example.org/problems/too_odd"}'}, 'failed', 'failed'),
    ('428', {'status': 428}, 'failed', 'failed'),
    ('503 setup', {'status': 503, 'headers': PROBLEM, 'answer': '{"code":"setup_required"}'}, 'failed', 'failed'),
    ('503 setup, but no problem document',
     {'status': 503, 'headers': {'Content-Type': 'text/json'}, 'answer': '{"code":"setup_required"}'}, 'retry', 'rejected'),
    ('412', {'status': 412, 'headers': PROBLEM, 'answer': '{"code":"conflict","current":{"version":7}}'}, 'conflict', 'conflict'),
    ('412 ETag', {'status': 412, 'headers': {'ETag': '"r7"'}}, 'conflict', 'conflict'),
]

CODES = {'409 other': 'already_there', '422': 'too_odd', '503 setup': 'setup_required'}


class Answers(SystemTest):
    limit = 120

    def check(self, kind, path, column):
        target = self.target()
        kinds = [dict(k, timeout='3s') for k in KINDS]
        daemon = self.daemon(target, kinds=kinds, retry_backoff='20ms', max_backoff='50ms')
        ids = {}
        for n, row in enumerate(ROWS):
            target.script(dict(row[1], path=path, body=f'"row {n:02}"', times=1))
        for n, row in enumerate(ROWS):
            ids[row[0]] = daemon.accept_ok(f's{n}', kind=kind, payload={'text': f'row {n:02}'})
        for row in ROWS:
            name, outcome, entry = row[0], row[column], ids[row[0]]
            with self.subTest(answer=name, kind=kind, outcome=outcome):
                self.check_outcome(daemon, target, name, entry, outcome)
        target.release()

    def check_outcome(self, daemon, target, name, entry, outcome):
        if outcome == 'confirmed':
            daemon.wait_status(entry, 'sent', timeout=20)
            self.assertEqual(len(target.posts(key=entry)), 1)
        elif outcome in ('retry', 'rejected'):
            daemon.wait_status(entry, 'sent', timeout=20)
            self.assertEqual([r.headers['outbox-attempt'] for r in target.posts(key=entry)], ['1', '2'])
        elif outcome == 'ambiguous':
            stands = daemon.wait_status(entry, 'error', timeout=20)
            self.assertEqual(stands['lastError']['code'], 'outcome_unknown')
            self.assertEqual(len(target.posts(key=entry)), 1)
        elif outcome == 'failed':
            stands = daemon.wait_status(entry, 'error')
            self.assertEqual(len(target.posts(key=entry)), 1)
            self.assertTrue(stands['lastError']['message'])
            if name in CODES:
                self.assertEqual(stands['lastError']['code'], CODES[name])
        elif outcome == 'conflict':
            stands = daemon.wait_status(entry, 'error')
            self.assertEqual(stands['lastError']['code'], 'conflict')
            self.assertEqual(stands['conflictCurrent'], '"r7"' if name == '412 ETag' else {'version': 7})
            self.assertEqual(len(target.posts(key=entry)), 1)

    def test_every_answer_to_an_idempotent_kind(self):
        self.check('note', '/notes', 2)

    def test_every_answer_to_a_kind_that_is_not(self):
        self.check('fire', '/fires', 3)

    def test_an_answer_that_is_lost_is_looked_up_and_what_the_target_has_is_never_posted_again(self):
        target = self.target()
        daemon = self.daemon(target)
        for n, row in enumerate(row for row in ROWS if row[3] == 'ambiguous' and 'hold' not in row[1]):
            target.script(dict(row[1], path='/payments', body=f'"row {n:02}"', times=1, store=True))
            entry = daemon.accept_ok(f's{n}', kind='pay', payload={'text': f'row {n:02}'})
            with self.subTest(answer=row[0]):
                stands = daemon.wait_status(entry, 'sent')
                self.assertEqual(len(target.posts(key=entry)), 1)
                self.assertGreaterEqual(len(target.lookups(entry)), 1)
                self.assertEqual(stands['status'], 'sent')

    def test_a_look_up_that_proves_nothing_is_asked_again_and_ends_unverifiable(self):
        target = self.target()
        target.script({'path': '/payments', 'close': 'after-request'}, {'path': '/messages/*', 'status': 500})
        daemon = self.daemon(target, max_verify_attempts=3)
        entry = daemon.accept_ok(kind='pay', payload={})
        self.assertEqual(daemon.wait_status(entry, 'error')['lastError']['code'], 'unverifiable')
        self.assertEqual(len(target.posts()), 1)
        self.assertIn(len(target.lookups(entry)), (3, 4))  # a worker that has just started sweeps, too

    def test_absence_counts_only_when_it_was_asked_late_enough(self):
        target = self.target()
        target.script(path='/payments', close='after-request', times=1)
        daemon = self.daemon(target, verify_delay='10ms', verify_settle='1s')
        entry = daemon.accept_ok(kind='pay', payload={})
        self.assertDelivered(target, [entry], times=2)
        first, second = target.posts(key=entry)
        self.assertGreaterEqual(second.time - first.end, 1.0)

    def test_on_ambiguous_retry_sends_again_without_a_look_up(self):
        target = self.target()
        target.script(path='/x', close='after-request', times=1)
        daemon = self.daemon(target, kinds=[{'name': 'x', 'url': '/x', 'on_ambiguous': 'retry'}])
        entry = daemon.accept_ok(kind='x', payload={})
        self.assertDelivered(target, [entry], times=2)

    def test_attempts_are_bounded(self):
        target = self.target()
        target.script(path='/fires', status=503)
        daemon = self.daemon(target, max_attempts=3)
        entry = daemon.accept_ok(kind='fire', payload={})
        stands = daemon.wait_status(entry, 'error')
        self.assertEqual((stands['lastError']['code'], stands['attempts'], stands['sends']), ('attempts_exhausted', 3, 3))
        self.assertEqual(len(target.posts()), 3)

    def test_an_idempotent_kind_is_tried_for_retry_for(self):
        target = self.target()
        target.script(path='/notes', status=503)
        daemon = self.daemon(target, retry_for='1s')
        entry = daemon.accept_ok(kind='note', payload={})
        stands = daemon.wait_status(entry, 'error')
        self.assertEqual(stands['lastError']['code'], 'retries_exhausted')
        self.assertGreater(len(target.posts()), 2)

    def test_a_kind_without_a_declaration_fails_with_no_executor(self):
        daemon = self.daemon(self.target())
        entry = daemon.accept_ok(kind='nobody.knows', payload={})
        self.assertEqual(daemon.wait_status(entry, 'error')['lastError']['code'], 'no_executor')

    def test_a_template_that_cannot_be_filled_fails_with_executor_error(self):
        target = self.target()
        daemon = self.daemon(target, kinds=[{'name': 'x', 'url': '/x/{payload.absent}', 'idempotent': True}])
        entry = daemon.accept_ok(kind='x', payload={'present': 1})
        self.assertEqual(daemon.wait_status(entry, 'error')['lastError']['code'], 'executor_error')
        self.assertEqual(target.posts(), [])


class NotReached(SystemTest):
    def check(self, url, **settings):
        daemon = self.daemon(None, target={'url': url}, max_transient_failures=4, connect_timeout='500ms', **settings)
        other = daemon.accept_ok('a', kind='fire', payload={})
        idempotent = daemon.accept_ok('b', kind='note', payload={})
        stands = daemon.wait_status(other, 'error')
        self.assertEqual((stands['lastError']['code'], stands.get('attempts', 0)), ('unreachable', 0), 'no attempt was made')
        self.assertEqual(stands['transientFails'], 4)
        stands = daemon.entry(idempotent).json()
        self.assertEqual(stands['status'] in ('pending', 'delivering') and stands['attempts'] > 0, True, stands)

    def test_a_refused_connection_is_no_attempt(self):
        self.check(f'http://127.0.0.1:{free_port()}')

    def test_a_name_that_does_not_resolve_is_no_attempt(self):
        self.check('http://nothing.invalid')

    def test_a_tls_failure_is_no_attempt(self):
        self.check(self.target().url.replace('http:', 'https:'))

    def test_a_target_that_comes_back_gets_what_waited(self):
        port = free_port()
        daemon = self.daemon(None, target={'url': f'http://127.0.0.1:{port}'})
        ids = [daemon.accept_ok(f's{n}', kind='fire', payload={}) for n in range(5)]
        wait_until(lambda: all(daemon.entry(i).json().get('transientFails', 0) > 0 for i in ids), 10, 'a failure of each')
        self.assertDelivered(self.target(port=port), ids, times=1)


class RetryAfter(SystemTest):
    def waits(self, value, **settings):
        """Seconds between the two attempts when the first was answered with this Retry-After."""
        target = self.target()
        target.script(path='/fires', status=503, headers={'Retry-After': value}, times=1)
        daemon = self.daemon(target, jitter='none', **settings)
        entry = daemon.accept_ok(kind='fire', payload={})
        self.assertDelivered(target, [entry], times=2)
        first, second = target.posts(key=entry)
        return second.time - first.answered

    def test_seconds_are_a_floor(self):
        self.assertGreaterEqual(self.waits('1'), 0.99)

    def test_a_date_is_a_floor_in_each_of_its_three_forms(self):
        for form in ('imf', '850', 'asctime'):
            due = int(time.time()) + 4
            at = time.gmtime(due)
            text = {'imf': email.utils.formatdate(due, usegmt=True), '850': time.strftime('%A, %d-%b-%y %H:%M:%S GMT', at),
                    'asctime': time.strftime('%a %b ', at) + f'{at.tm_mday:2d}' + time.strftime(' %H:%M:%S %Y', at)}[form]
            with self.subTest(form=form, text=text):
                self.waits(text)
                self.assertGreaterEqual(time.time(), due)

    def test_what_makes_no_sense_falls_back_to_the_backoff(self):
        for value in ('-5', '', 'soon', '1.5', '99999999999999999999999', '1e3', 'Sun, 06 Nov 1994 08:49:37 GMT', '0x10'):
            with self.subTest(value=value):
                self.waits(value)  # it is sent again within the test's patience

    def test_more_than_the_maximum_is_clamped(self):
        self.assertGreaterEqual(self.waits('100000', max_retry_after='1s'), 0.99)

    def test_an_idempotent_kind_honours_it_too(self):
        target = self.target()
        target.script(path='/notes', status=429, headers={'Retry-After': '1'}, times=1)
        daemon = self.daemon(target)
        entry = daemon.accept_ok(kind='note', payload={})
        self.assertDelivered(target, [entry], times=2)
        first, second = target.posts(key=entry)
        self.assertGreaterEqual(second.time - first.answered, 0.99)


class NoHiddenResend(SystemTest):
    def on_a_reused_connection(self, kind, path, **rule):
        target = self.target()
        daemon = self.daemon(target, workers=1)
        self.assertDelivered(target, [daemon.accept_ok(kind=kind, payload={'text': 'first'})], times=1)
        target.script(dict(rule, path=path, reused=True))
        entry = daemon.accept_ok(kind=kind, payload={'text': 'second'})
        wait_until(lambda: target.posts(key=entry), 10, 'the request')
        self.assertGreater(target.posts(key=entry)[0].number, 1, 'the connection was not reused: this test tells nothing')
        return target, daemon, entry

    def test_a_reused_connection_closed_without_an_answer_means_exactly_one_post(self):
        for close in ('after-request', 'reset'):
            with self.subTest(close=close):
                target, daemon, entry = self.on_a_reused_connection('fire', '/fires', close=close)
                self.assertEqual(daemon.wait_status(entry, 'error')['lastError']['code'], 'outcome_unknown')
                self.assertEqual(len(target.posts(key=entry)), 1)

    def test_with_a_look_up_it_is_confirmed_by_that_one_post(self):
        target, daemon, entry = self.on_a_reused_connection('pay', '/payments', close='after-request', store=True)
        daemon.wait_status(entry, 'sent')
        self.assertEqual(len(target.posts(key=entry)), 1)

    def test_an_answer_that_came_twice_is_not_taken_for_that_to_the_next_request(self):
        target = self.target()
        # Too long to be read in one go: the second one is still there when the first was read.
        target.script({'path': '/notes', 'twice': True, 'answer': 'x' * 50000}, {'path': '/fires', 'nth': 1, 'status': 503})
        daemon = self.daemon(target, workers=1, retry_backoff='10ms', max_backoff='10ms')
        ids = [daemon.accept_ok('s', kind=kind, payload={}) for kind in ('note', 'fire')]
        self.assertDelivered(target, ids)
        self.assertEqual([len(target.posts(path)) for path in ('/notes', '/fires')], [1, 2])

    def test_a_connection_that_died_while_idle_is_no_attempt_lost(self):
        """The target closes idle connections: the next request may fail on one, but is never sent twice by it."""
        target = self.target()
        daemon = self.daemon(target, workers=1)
        for n in range(10):
            entry = daemon.accept_ok(kind='pay', payload={'n': n})
            daemon.wait_status(entry, 'sent')
            target.drop_connections()
            self.assertEqual(len(target.stored(entry)), 1)


if __name__ == '__main__':
    harness.main()
