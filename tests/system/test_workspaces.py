"""Operations on whole workspaces: park, unpark, pause, resume, sweeps, cleanup, targets, lists. Contract §3, §7."""
import contextlib
import http.client
import signal
import threading
import time

import harness
from harness import Client, SystemTest, encode, in_parallel, key, partition, wait_until


class Workspaces(SystemTest):
    def start(self, **settings):
        self.the_target = self.target()
        self.the_daemon = self.daemon(self.the_target, workers=1, **settings)
        return self.the_daemon, self.the_target

    def op(self, name, body=None, workspace='w'):
        answer = self.the_daemon.call('POST', f'/v1/workspaces/{workspace}/{name}', body)
        self.assertEqual(answer.status, 200, answer)
        return answer.json()

    def workspace(self, name='w'):
        answer = self.the_daemon.call('GET', f'/v1/workspaces/{name}')
        self.assertEqual(answer.status, 200, answer)
        return answer.json()

    def keys_of(self, workspace='w'):
        """Every key of it, and every member of a partition's index that names it."""
        valkey = self.the_daemon.valkey()
        try:
            mark = f':{{{partition(workspace)}}}'
            found = [k for k in valkey.keys() if f'{mark}:{encode(workspace)}' in k + ':' and
                     (k.endswith(f'{mark}:{encode(workspace)}') or f'{mark}:{encode(workspace)}:' in k)]
            for index in ('due', 'live', 'open', 'err', 'names'):
                for member in valkey('ZRANGE', f'outbox{index}{mark}', 0, -1):
                    if member.decode().split(':')[0] == encode(workspace):
                        found.append(f'{index} {member.decode()}')
            return found
        finally:
            valkey.close()

    def held(self, kind, count=1):
        """The next POSTs of a kind are held by the target until release()."""
        path = {'note': '/notes', 'pay': '/payments', 'fire': '/fires'}[kind]
        self.the_target.script({'path': path, 'hold': True, 'times': count})


class Pausing(Workspaces):
    def test_a_paused_workspace_accepts_and_delivers_when_it_is_resumed(self):
        daemon, target = self.start()
        self.assertEqual(self.op('pause'), {'paused': True})
        self.assertEqual(self.op('pause'), {'paused': True})
        paused = [daemon.accept_ok(f's{i}', kind='note', payload={}) for i in range(3)]
        other = daemon.accept_ok('s', kind='note', payload={}, workspace='other')
        daemon.wait_status(other, 'sent', 'other')
        self.assertTrue(self.workspace()['paused'])
        self.assertEqual({daemon.status(entry) for entry in paused}, {'pending'})
        daemon.restart()
        later = daemon.accept_ok('s', kind='note', payload={}, workspace='other')
        daemon.wait_status(later, 'sent', 'other')
        self.assertEqual({daemon.status(entry) for entry in paused}, {'pending'})
        self.assertEqual(self.op('resume'), {'paused': False})
        for entry in paused:
            daemon.wait_status(entry, 'sent')
        self.assertDelivered(target, paused, times=1)
        self.op('resume')
        answer = daemon.call('GET', '/v1/workspaces/w')
        self.assertFalse(answer.json()['paused'] if answer.status == 200 else False)

    def test_paused_before_the_first_claim_after_a_start(self):
        daemon, target = self.start()
        self.assertEqual(self.op('pause'), {'paused': True})  # it holds nothing yet
        for how in (signal.SIGTERM, signal.SIGKILL):
            daemon.restart(how)
            paused = [daemon.accept_ok(f's{i}', kind='note', payload={'n': i}) for i in range(5)]
            other = daemon.accept_ok('s', kind='note', payload={}, workspace='other')
            daemon.wait_status(other, 'sent', 'other')
            for entry in paused:
                self.assertEqual((daemon.status(entry), daemon.entry(entry).json().get('sends', 0)), ('pending', 0))
        self.assertEqual(len(target.posts()), 2)
        self.op('resume')
        wait_until(lambda: len(target.stored()) == 12, 15, 'all of them')

    def test_what_is_in_flight_finishes_and_its_session_goes_no_further(self):
        daemon, target = self.start()
        self.held('note')
        first = daemon.accept_ok(kind='note', payload={})
        wait_until(target.posts, 10, 'the request')
        second = daemon.accept_ok(kind='note', payload={})
        listed = {e['id']: e for e in daemon.entries()}
        self.assertGreaterEqual(listed[first]['inFlightFor'], 0)
        self.assertNotIn('blockedByInFlight', listed[first])
        self.assertTrue(listed[second]['blockedByInFlight'])
        self.assertTrue(daemon.entry(second).json()['blockedByInFlight'])
        self.assertGreaterEqual(daemon.entry(first).json()['inFlightFor'], 0)
        self.op('pause')
        target.release()
        daemon.wait_status(first, 'sent')
        self.assertEqual(daemon.status(second), 'pending')
        self.op('resume')
        daemon.wait_status(second, 'sent')


class Parking(Workspaces):
    def test_park_takes_what_is_there_and_unpark_brings_back_just_that(self):
        daemon, target = self.start(kinds=harness.KINDS)
        target.script({'path': '/fires', 'status': 400, 'times': 1})
        failed = daemon.accept_ok('f', kind='fire', payload={})
        daemon.wait_status(failed, 'error')
        self.op('pause')
        entries = [daemon.accept_ok(f's{i % 7}', kind='note', payload={'n': i}) for i in range(40)]
        self.assertEqual(self.op('park', {'reason': 'the agent moves'}), {'parked': 40})
        self.assertEqual(self.op('park', {'reason': 'again'}), {'parked': 0})
        later = daemon.accept_ok('s1', kind='note', payload={'n': 'later'})
        shown = daemon.entry(entries[0]).json()
        self.assertEqual((shown['status'], shown['parkedReason']), ('parked', 'the agent moves'))
        self.assertProblem(daemon.call('POST', f'/v1/workspaces/w/entries/{entries[0]}/retry'), 409, 'not_failed')
        self.assertEqual(daemon.status(later), 'pending')
        self.assertEqual(daemon.status(failed), 'error')
        counts = self.workspace()['entries']
        self.assertEqual((counts['parked'], counts['pending'], counts['error']), (40, 1, 1))
        self.op('resume')
        # A strict kind's parked entry blocks its session: the later one waits behind it.
        other = daemon.accept_ok('free', kind='note', payload={})
        daemon.wait_status(other, 'sent')
        self.assertEqual(daemon.status(later), 'pending')
        self.assertEqual({daemon.status(entry) for entry in entries}, {'parked'})
        self.assertEqual(self.op('unpark'), {'unparked': 40})
        for entry in entries + [later]:
            daemon.wait_status(entry, 'sent')
        self.assertEqual(self.op('unpark'), {'unparked': 0})
        self.assertEqual(daemon.status(failed), 'error')
        self.assertDelivered(target, entries, times=1)

    def test_a_delivery_in_flight_when_it_was_parked_completes_once(self):
        daemon, target = self.start()
        for kind in ('note', 'pay', 'fire'):
            with self.subTest(kind):
                self.held(kind)
                entry = daemon.accept_ok(kind, kind=kind, payload={})
                wait_until(lambda: target.posts(key=entry), 10, 'the request')
                self.assertEqual(self.op('park', {'reason': 'r'}), {'parked': 1})
                shown = daemon.entry(entry).json()
                self.assertEqual(shown['status'], 'parked')
                self.assertIn('inFlightFor', shown)
                answer = daemon.call('DELETE', f'/v1/workspaces/w/entries/{entry}')
                self.assertProblem(answer, 409, 'busy')
                self.assertTrue(answer.headers.get('retry-after'))
                target.release()
                daemon.wait_status(entry, 'sent')
                self.assertEqual(self.op('unpark'), {'unparked': 0})
                self.assertEqual(len(target.posts(key=entry)), 1)

    def test_a_late_failure_leaves_it_parked_and_unpark_tries_again(self):
        daemon, target = self.start()
        target.script({'path': '/notes', 'hold': True, 'status': 503, 'times': 1})
        entry = daemon.accept_ok(kind='note', payload={})
        wait_until(target.posts, 10, 'the request')
        self.op('park', {'reason': 'r'})
        target.release()
        wait_until(lambda: daemon.entry(entry).json()['attempts'] == 1, 10, 'the late outcome')
        self.assertEqual(daemon.status(entry), 'parked')
        self.assertEqual(self.op('unpark'), {'unparked': 1})
        daemon.wait_status(entry, 'sent')
        self.assertEqual(len(target.posts(key=entry)), 2)

    def test_unparked_while_still_in_flight_it_counts_as_if_nothing_had_been(self):
        daemon, target = self.start()
        self.held('fire')
        entry = daemon.accept_ok(kind='fire', payload={})
        wait_until(target.posts, 10, 'the request')
        self.op('park', {'reason': 'r'})
        self.assertEqual(self.op('unpark'), {'unparked': 1})
        self.assertEqual(daemon.status(entry), 'delivering')
        target.release()
        daemon.wait_status(entry, 'sent')
        self.assertEqual(len(target.posts(key=entry)), 1)

    def test_a_worker_that_dies_leaves_it_parked_and_unpark_looks_it_up(self):
        daemon, target = self.start()
        self.held('pay')
        entry = daemon.accept_ok(kind='pay', payload={})
        wait_until(target.posts, 10, 'the request')
        self.op('park', {'reason': 'r'})
        daemon.kill('worker')
        wait_until(lambda: 'inFlightFor' not in daemon.entry(entry).json(), 10, 'its recovery')
        self.assertEqual(daemon.status(entry), 'parked')
        target.release()
        self.op('unpark')
        daemon.wait_status(entry, 'sent')
        # The target had it, or proved that it had not: never two of them stored.
        self.assertEqual(len([r for r in target.stored() if r.key == entry]), 1)


class People(Workspaces):
    def test_busy_is_the_entry_in_flight_and_its_neighbours_are_done_at_once(self):
        daemon, target = self.start()
        self.held('fire')
        flying = daemon.accept_ok(kind='fire', payload={})
        wait_until(target.posts, 10, 'the request')
        neighbour = daemon.accept_ok(kind='fire', payload={})
        stays = daemon.accept_ok(kind='fire', payload={})
        path = '/v1/workspaces/w/entries/'
        for answer in (daemon.call('POST', f'{path}{flying}/retry'), daemon.call('DELETE', path + flying)):
            self.assertProblem(answer, 409, 'busy')
            self.assertTrue(answer.headers.get('retry-after'))
        self.assertProblem(daemon.call('POST', f'{path}{neighbour}/retry'), 409, 'not_failed')
        self.assertEqual(daemon.call('DELETE', path + neighbour).status, 200)
        self.assertProblem(daemon.call('DELETE', path + 'ob_nothing'), 404, 'entry_not_found')
        target.release()
        daemon.wait_status(stays, 'sent')
        self.assertEqual([r.key for r in target.posts()], [flying, stays])


class Sweeping(Workspaces):
    def test_unverifiable_errors_are_looked_up_again_and_no_others(self):
        daemon, target = self.start(max_verify_attempts=2, verify_delay='20ms', verify_backoff='20ms')
        target.script({'path': '/payments', 'store': True, 'close': 'after-request', 'times': 2},
                      {'path': '/fires', 'status': 400, 'times': 1}, {'path': '/messages/*', 'status': 500, 'times': 4})
        failed = daemon.accept_ok('f', kind='fire', payload={})
        lost = [daemon.accept_ok(f's{i}', kind='pay', payload={}) for i in range(2)]
        for entry in lost + [failed]:
            daemon.wait_status(entry, 'error')
        self.assertEqual([daemon.entry(entry).json()['lastError']['code'] for entry in lost], ['unverifiable'] * 2)
        self.assertEqual(self.op('sweep', {'what': 'unverifiable'}), {'recovered': 2})
        for entry in lost:
            daemon.wait_status(entry, 'sent')
            self.assertEqual(len(target.posts(key=entry)), 1)
        self.assertEqual(self.op('sweep', {'what': 'unverifiable'}), {'recovered': 0})
        self.assertEqual(daemon.status(failed), 'error')

    def test_what_may_be_swept(self):
        daemon, _ = self.start()
        path = '/v1/workspaces/w/sweep'
        answer = daemon.call('POST', path, {'what': 'dust'})
        self.assertProblem(answer, 422, 'invalid_member')
        self.assertIn('unverifiable or parked-errors', answer.json()['detail'])
        self.assertProblem(daemon.call('POST', path, {}), 422, 'missing_member')
        self.assertProblem(daemon.call('POST', path, {'what': 1}), 422, 'invalid_member')
        self.assertProblem(daemon.call('POST', path, {'what': 'unverifiable', 'x': 1}), 422, 'unknown_member')
        self.assertProblem(daemon.call('POST', path, ''), 400, 'body_missing')
        self.assertProblem(daemon.call('POST', path), 415)
        self.assertEqual(self.op('sweep', {'what': 'parked-errors'}), {'recovered': 0, 'stayed': 0, 'waiting': 0})


class CleaningUp(Workspaces):
    def test_nothing_is_left_and_others_are_untouched(self):
        daemon, target = self.start()
        target.script({'path': '/fires', 'status': 400, 'times': 1})
        sent = daemon.accept_ok('a', kind='note', payload={}, clientMessageID='m1')
        failed = daemon.accept_ok('b', kind='fire', payload={}, clientMessageID='m2')
        daemon.wait_status(sent, 'sent')
        daemon.wait_status(failed, 'error')
        gone = daemon.accept_ok('c', kind='note', payload={}, workspace='w2')
        daemon.wait_status(gone, 'sent', 'w2')
        self.op('pause')
        for i in range(30):
            daemon.accept_ok(f's{i % 4}', kind='note', payload={}, clientMessageID=f'x{i}')
        self.assertEqual(daemon.call('PUT', '/v1/workspaces/w/target', {'url': 'http://127.0.0.1:1'}).status, 200)
        before = [k for k in self.keys_of() if ' ' not in k]
        others = set(self.keys_of('w2'))
        answer = daemon.call('DELETE', '/v1/workspaces/w')
        self.assertEqual((answer.status, answer.json()), (200, {'keysRemoved': len(before)}), before)
        self.assertEqual(self.keys_of(), [])
        self.assertEqual(daemon.call('DELETE', '/v1/workspaces/w').json(), {'keysRemoved': 0})
        self.assertEqual(self.keys_of(), [])
        self.assertProblem(daemon.call('GET', '/v1/workspaces/w'), 404, 'workspace_not_found')
        self.assertProblem(daemon.entry(sent), 404, 'entry_not_found')
        self.assertEqual(set(self.keys_of('w2')), others)
        # It begins anew, and is not paused.
        again = daemon.accept_ok('a', kind='note', payload={}, clientMessageID='m1')
        self.assertNotEqual(again, sent)
        daemon.wait_status(again, 'sent')

    def test_during_deliveries_whatever_becomes_of_them(self):
        daemon, target = self.start()
        self.held('note', 4)
        self.held('pay', 4)
        target.script({'path': '/fires', 'hold': True, 'status': 500, 'times': 4})
        kinds = ['note', 'pay', 'fire']
        flying = [daemon.accept_ok(f's{i}', kind=kinds[i % 3], payload={}) for i in range(12)]
        for i in range(12):
            daemon.accept_ok(f's{i}', kind=kinds[i % 3], payload={})
        wait_until(lambda: len(target.posts()) == 12, 15, lambda: f'the requests: {len(target.posts())}')
        pids = daemon.pids('worker') + daemon.pids('api')
        self.assertGreater(daemon.call('DELETE', '/v1/workspaces/w').json()['keysRemoved'], 24)
        other = daemon.accept_ok('s', kind='note', payload={}, workspace='other')
        daemon.wait_status(other, 'sent', 'other')
        target.release()
        wait_until(lambda: daemon.metric('outbox_locks_held') == 0, 10, 'the end of the deliveries')
        self.assertEqual(self.keys_of(), [])
        self.assertEqual(len(target.posts(key=flying[0])), 1)
        self.assertEqual(len(target.posts()), 13)
        self.assertEqual(daemon.pids('worker') + daemon.pids('api'), pids)
        wait_until(lambda: all(daemon.metric('outbox_entries', status=s) == 0 for s in ('pending', 'delivering', 'verifying')),
                   10, 'counts of zero')

    def test_while_messages_come_in_and_go_out(self):
        daemon, _ = self.start()
        done = threading.Event()

        def client(number):
            sent = 0
            while not done.is_set():
                if daemon.accept(f's{number}-{sent % 5}', kind='note', payload={}).status == 202:
                    sent += 1
            return sent

        def cleaner():
            for _ in range(5):
                self.assertEqual(daemon.call('DELETE', '/v1/workspaces/w').status, 200)
                time.sleep(0.1)  # load between two of them, not something that is waited for
            done.set()
            return 0
        self.assertGreater(sum(in_parallel([lambda n=n: client(n) for n in range(3)] + [cleaner])), 10)
        self.assertEqual(daemon.call('DELETE', '/v1/workspaces/w').status, 200)
        wait_until(lambda: daemon.metric('outbox_locks_held') == 0, 10, 'the end of the deliveries')
        self.assertEqual(self.keys_of(), [])


class CutShort(Workspaces):
    """The API is killed while it works its way through a workspace: the repeated call finds what is left to do."""
    ENTRIES = 3000
    SESSIONS = 3

    def fill(self):
        daemon, _ = self.start(session_cap=self.ENTRIES)
        self.op('pause')

        def client(session):
            for _ in range(self.ENTRIES // self.SESSIONS):
                daemon.accept_ok(f's{session}', kind='note', payload={})
        in_parallel([lambda n=n: client(n) for n in range(self.SESSIONS)])
        self.valkey = daemon.valkey()
        self.addCleanup(self.valkey.close)
        self.assertEqual(self.count('pending'), self.ENTRIES)
        return daemon

    def count(self, status):
        return int(self.valkey('HGET', key('wsstat', 'w'), status) or 0)

    def cut(self, method, path, body, done):
        """Makes the call; as soon as so much is done the API is killed. Then the call is made once more, in peace."""
        daemon = self.the_daemon
        for at in (1, 900, 1800):
            def call():
                client = Client(daemon.port)
                with contextlib.closing(client), contextlib.suppress(OSError, AssertionError, http.client.HTTPException):
                    client.call(method, path, body)
            thread = threading.Thread(target=call)
            thread.start()
            while done() < at and thread.is_alive():
                pass
            daemon.kill('api')
            thread.join()
            wait_until(self.is_there, 30, 'the API again')
        answer = daemon.call(method, path, body)
        self.assertEqual(answer.status, 200, answer)

    def is_there(self):
        try:
            return self.the_daemon.get('/readyz').status == 200
        except (OSError, http.client.HTTPException):
            return False

    def test_park_and_unpark(self):
        self.fill()
        self.cut('POST', '/v1/workspaces/w/park', {'reason': 'because'}, lambda: self.count('parked'))
        self.assertEqual((self.count('pending'), self.count('parked')), (0, self.ENTRIES))
        self.cut('POST', '/v1/workspaces/w/unpark', None, lambda: self.count('pending'))
        self.assertEqual((self.count('pending'), self.count('parked')), (self.ENTRIES, 0))

    def test_cleanup(self):
        daemon = self.fill()
        self.cut('DELETE', '/v1/workspaces/w', None, lambda: self.ENTRIES - self.count('pending'))
        self.assertEqual(self.keys_of(), [])
        daemon.wait_status(daemon.accept_ok('s0', kind='note', payload={}), 'sent')


class Listing(Workspaces):
    def test_pages_hold_each_workspace_once(self):
        daemon, _ = self.start()
        names = [f'ws{i}' for i in range(30)] + ['w:1', 'w%3A1', '~x']
        for name in names:
            self.op('pause', workspace=name)
        for name in names[:5]:
            daemon.accept_ok('s', kind='note', payload={}, workspace=name)
        seen, after, pages = [], '', 0
        while True:
            answer = daemon.call('GET', f'/v1/workspaces?limit=7&after={encode(after)}')
            self.assertEqual(answer.status, 200, answer)
            page = answer.json()
            seen += page['workspaces']
            pages += 1
            if 'next' not in page:
                break
            after = page['next']
        self.assertEqual(sorted(w['workspaceID'] for w in seen), sorted(names))
        self.assertEqual(pages, 5)
        self.assertEqual([w['workspaceID'] for w in seen], sorted(names, key=lambda n: (partition(n), encode(n))))
        for one in seen:
            self.assertTrue(one['paused'])
            self.assertEqual(one['entries']['pending'], 1 if one['workspaceID'] in names[:5] else 0)
            self.assertEqual('oldestOpenAge' in one, one['workspaceID'] in names[:5])
        for query in ('limit=0', 'limit=501', 'limit=x', 'limit=-1', 'after=a/b', 'after=' + 'x' * 65):
            self.assertProblem(daemon.call('GET', f'/v1/workspaces?{query}'), 400, 'invalid_query')

    def test_sessions_are_told_page_by_page(self):
        daemon, _ = self.start()
        self.op('pause')
        names = {f's{n}' for n in range(1300)} | {'a:b', 'a%3Ab', '~'}
        harness.in_parallel([lambda name=name: daemon.accept_ok(name, kind='note', payload={}) for name in names], 16)
        seen, after, pages = [], '', 0
        while pages == 0 or after:
            answer = daemon.call('GET', f'/v1/workspaces/w/sessions?after={after}')
            self.assertEqual(answer.status, 200, answer)
            seen += [session['sessionID'] for session in answer.json()['sessions']]
            after = answer.json().get('next', '')
            pages += 1
        self.assertEqual((sorted(seen), pages > 1), (sorted(names), True))
        self.assertEqual(daemon.call('GET', '/v1/workspaces/nobody/sessions').json(), {'sessions': []})
        for query in ('after=x', 'after=-1', 'after=' + '1' * 24):
            self.assertProblem(daemon.call('GET', f'/v1/workspaces/w/sessions?{query}'), 400, 'invalid_query')

    def test_a_workspace_is_there_as_long_as_something_is_stored_of_it(self):
        daemon, _ = self.start()
        self.assertProblem(daemon.call('GET', '/v1/workspaces/w'), 404, 'workspace_not_found')
        self.assertEqual(daemon.get('/v1/workspaces').json(), {'workspaces': []})
        self.op('pause')
        self.assertEqual(self.workspace()['sessions'], 0)
        self.op('resume')
        self.assertProblem(daemon.call('GET', '/v1/workspaces/w'), 404, 'workspace_not_found')
        self.assertEqual(daemon.get('/v1/workspaces').json(), {'workspaces': []})
        self.assertEqual(self.keys_of(), [])


class Targets(Workspaces):
    PATH = '/v1/workspaces/w/target'
    SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

    def test_set_get_and_delete(self):
        daemon, _ = self.start()
        self.assertProblem(daemon.call('GET', self.PATH), 404, 'target_not_found')
        whole = {'url': 'https://agent.example/base', 'executor': 'opencode', 'username': 'opencode', 'password': 'hush-hush',
                 'secrets': [self.SECRET]}
        shown = {'url': 'https://agent.example/base', 'executor': 'opencode', 'username': 'opencode', 'hasPassword': True,
                 'secrets': 1, 'circuit': 'closed'}
        for _ in range(2):
            answer = daemon.call('PUT', self.PATH, whole)
            self.assertEqual((answer.status, answer.json()), (200, shown))
        self.assertEqual(daemon.call('GET', self.PATH).json(), shown)
        self.assertTrue(self.workspace()['hasTarget'])
        valkey = daemon.valkey()
        self.addCleanup(valkey.close)
        self.assertIn(b'hush-hush', valkey('HGET', key('conf', 'w'), 'target'))
        self.assertNotIn('hush-hush', daemon.log())
        self.assertNotIn(b'hush-hush', daemon.call('GET', '/v1/workspaces').body + daemon.call('GET', '/v1/workspaces/w').body)
        self.assertEqual(daemon.call('DELETE', self.PATH).status, 200)
        self.assertProblem(daemon.call('DELETE', self.PATH), 404, 'target_not_found')
        self.assertEqual(self.keys_of(), [])

    def test_what_is_no_target(self):
        daemon, _ = self.start()
        url = 'http://h'
        for body, code in (
                ({}, 'missing_member'), ({'url': 'ftp://h'}, 'invalid_member'), ({'url': 'http://u:p@h'}, 'invalid_member'),
                ({'url': 'http://'}, 'invalid_member'), ({'url': 'http://h?q'}, 'invalid_member'),
                ({'url': 'http://h/a b'}, 'invalid_member'), ({'url': 'http://h/' + 'x' * 2048}, 'invalid_member'),
                ({'url': url, 'executor': 'smtp'}, 'invalid_member'), ({'url': url, 'username': 'a:b'}, 'invalid_member'),
                ({'url': url, 'username': 'a\r\nX: y'}, 'invalid_member'), ({'url': url, 'password': 'p\n'}, 'invalid_member'),
                ({'url': url, 'secrets': 'whsec_x'}, 'invalid_member'), ({'url': url, 'secrets': ['x']}, 'invalid_member'),
                ({'url': url, 'secrets': ['whsec_AAAA']}, 'invalid_member'), ({'url': url, 'timeout': 1}, 'unknown_member'),
                ({'url': None}, 'invalid_member')):
            with self.subTest(body=str(body)[:60]):
                self.assertProblem(daemon.call('PUT', self.PATH, body), 422, code)
        self.assertProblem(daemon.call('PUT', self.PATH, '{'), 400, 'invalid_json')
        self.assertProblem(daemon.call('GET', self.PATH), 404, 'target_not_found')


if __name__ == '__main__':
    harness.main()
