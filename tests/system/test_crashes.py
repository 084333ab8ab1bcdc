"""kill -9 of anything: nothing is lost, nothing that the target has is sent twice unless the kind allows it."""
import contextlib
import http.client
import json
import os
import random
import signal
import statistics
import threading
import time

import harness
from harness import SLOW, SystemTest, wait_until

IN_FLIGHT = 100
RUNS = 5


class WorkerDies(SystemTest):
    limit = 150

    def in_flight(self, daemon, target, kind, run):
        """100 sessions, each with a request that the target holds; the entries' IDs."""
        ids = [daemon.accept_ok(f'r{run}-{n}', kind=kind, payload={'n': n, 'run': run}) for n in range(IN_FLIGHT)]
        wait_until(lambda: {r.key for r in target.posts()} >= set(ids), 20, 'all of them in flight')
        return ids

    def recovery_times(self, kind, look, hold):
        """Kills the worker RUNS times; how long until every held entry was looked after, in seconds."""
        target = self.target()
        times, everything = [], []
        for run in range(RUNS):
            # A fresh one each time: a worker that died before is started again later and later.
            daemon = self.daemon(target, workers=1)
            target.script(*hold)
            ids = self.in_flight(daemon, target, kind, run)
            target.clear_script()  # what comes now is answered at once
            before = len(target.requests())
            killed = time.monotonic()
            daemon.kill('worker', wait=False)
            wait_until(lambda: look(target, before) >= set(ids), 20, 'all of them looked after')
            first = {}
            for request in target.requests()[before:]:
                first.setdefault(request.key or request.path.rpartition('/')[2], request.time)
            times.append(max(first[entry] for entry in ids) - killed)
            for entry in ids:
                daemon.wait_status(entry, 'sent')
            self.assertDelivered(target, ids)
            everything += ids
            target.release()
            self.end(daemon)
        print(f'{kind}: {IN_FLIGHT} deliveries looked after in {statistics.median(times) * 1000:.0f} ms after the kill '
              f'(median of {RUNS}: {", ".join(f"{t * 1000:.0f}" for t in times)})')
        self.assertLess(statistics.median(times), 1.0 * SLOW)
        return target, everything

    def test_an_idempotent_kind_is_sent_again_within_a_second(self):
        target, ids = self.recovery_times('note', lambda t, before: {r.key for r in t.requests()[before:]},
                                          [{'path': '/notes', 'hold': True}])
        self.assertDelivered(target, ids, times=2)

    def test_a_verified_kind_is_looked_up_within_a_second_and_never_posted_twice_when_the_target_has_it(self):
        target, ids = self.recovery_times('pay', lambda t, before: {r.path.rpartition('/')[2] for r in t.requests()[before:]},
                                          [{'path': '/payments', 'store': True, 'hold': True}])
        self.assertDelivered(target, ids, times=1)

    def test_a_verified_kind_is_posted_again_only_after_the_target_said_that_it_is_absent(self):
        target = self.target()
        target.script(path='/payments', hold=True, times=20, store=False)
        daemon = self.daemon(target, workers=1)
        ids = [daemon.accept_ok(f's{n}', kind='pay', payload={'n': n}) for n in range(20)]
        wait_until(lambda: len(target.posts()) == 20, 10, 'all of them in flight')
        daemon.kill('worker')
        self.assertDelivered(target, ids, times=2)
        for entry in ids:
            second = target.posts(key=entry)[1]
            answers = [r for r in target.lookups(entry) if r.answered and r.answered < second.time]
            self.assertTrue(answers, f'{entry} was posted again without a look-up')
            self.assertEqual(second.headers['outbox-attempt'], '2')

    def test_a_kind_without_a_look_up_ends_in_error_with_its_outcome_unknown(self):
        target = self.target()
        target.script(path='/fires', hold=True)
        daemon = self.daemon(target, workers=1)
        entry = daemon.accept_ok(kind='fire', payload={})
        behind = daemon.accept_ok(kind='note', payload={})
        wait_until(lambda: target.posts('/fires'), 10, 'the request')
        daemon.kill('worker')
        self.assertEqual(daemon.wait_status(entry, 'error')['lastError']['code'], 'outcome_unknown')
        self.assertDelivered(target, [behind], times=1)
        self.assertEqual(len(target.posts('/fires')), 1)

    def test_other_workers_deliveries_are_not_touched(self):
        target = self.target()
        target.script(path='/notes', hold=True)
        daemon = self.daemon(target, workers=2)
        ids = []

        def holders():
            frame = json.loads(daemon.ctl('top', '--once', '--json', '--state-dir', str(daemon.state)).stdout)
            return {delivery['worker'] for delivery in frame['in_flight']}

        def both_hold_some():
            # Either worker may take what is due: more sessions until both have.
            ids.extend(daemon.accept_ok(f's{len(ids)}-{n}', kind='note', payload={'n': n}) for n in range(30))
            wait_until(lambda: len(target.posts()) == len(ids), 10, 'all of them in flight')
            return len(holders()) == 2
        wait_until(both_hold_some, 30, 'deliveries of both workers')
        accepted = len(ids)
        victim = daemon.pids('worker')[0]
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: len(target.posts()) > accepted, 10, 'something sent again')
        target.clear_script()
        target.release()
        self.assertDelivered(target, ids)
        counts = [len(target.posts(key=entry)) for entry in ids]
        self.assertIn(1, counts, 'the other worker\'s deliveries were sent again too')
        self.assertIn(2, counts)

    def test_a_worker_that_stands_is_killed_and_its_deliveries_go_on(self):
        target = self.target()
        target.script(path='/notes', hold=True, times=10)
        daemon = self.daemon(target, workers=1, watchdog='2s')
        ids = [daemon.accept_ok(f's{n}', kind='note', payload={'n': n}) for n in range(10)]
        wait_until(lambda: len(target.posts()) == 10, 10, 'all of them in flight')
        stood = daemon.pids('worker')
        daemon.kill('worker', how=signal.SIGSTOP)
        self.assertDelivered(target, ids, timeout=20)
        self.assertNotEqual(daemon.pids('worker'), stood)


class EverythingDies(SystemTest):
    limit = 150

    def check_kill(self, kind, roles, stored):
        target = self.target()
        target.script({'method': 'POST', 'path': '*', 'hold': True, 'store': stored, 'times': 50})
        daemon = self.daemon(target)
        ids = [daemon.accept_ok(f's{n}', kind=kind, payload={'n': n}) for n in range(50)]
        ids += [daemon.accept_ok(f's{n}', kind=kind, payload={'n': n, 'second': True}) for n in range(50)]
        wait_until(lambda: len(target.posts()) == 50, 20, 'requests in flight')
        daemon.kill(*roles)
        daemon.start()
        self.assertDelivered(target, ids, timeout=40)
        for entry in ids:
            daemon.wait_status(entry, 'sent', timeout=20)
        for session in range(50):
            self.assertEqual([r.key for r in target.stored() if r.json()['n'] == session], [ids[session], ids[50 + session]])
        return target, daemon, ids

    def test_everything_at_once_the_store_included_then_a_restart_loses_nothing(self):
        self.check_kill('note', (), False)

    def test_everything_at_once_then_a_restart_posts_nothing_twice_that_the_target_has(self):
        target, _, ids = self.check_kill('pay', (), True)
        self.assertDelivered(target, ids, times=1)

    def test_everything_but_the_store(self):
        target, _, ids = self.check_kill('pay', ('supervisor', 'api', 'worker'), True)
        self.assertDelivered(target, ids, times=1)

    def test_what_was_accepted_a_moment_before_is_there_afterwards(self):
        target = self.target()
        daemon = self.daemon(target)
        for _ in range(3):
            accepted = []
            ended = threading.Event()

            def send(part):
                quiet = contextlib.suppress(OSError, http.client.HTTPException)
                with contextlib.closing(harness.Client(daemon.port)) as client, quiet:
                    n = 0
                    while not ended.is_set():
                        n += 1
                        answer = client.call('POST', f'/v1/workspaces/w/sessions/s{part}-{n}/entries',
                                             {'kind': 'pay', 'payload': {'n': n}})
                        if answer.status == 202:
                            accepted.append(answer.json()['id'])

            threads = [threading.Thread(target=send, args=(part,)) for part in range(8)]
            for thread in threads:
                thread.start()
            wait_until(lambda: len(accepted) > 200, 20, 'accepts')
            daemon.kill()
            ended.set()
            for thread in threads:
                thread.join()
            daemon.start()
            self.assertDelivered(target, accepted, timeout=40)
        for entry, count in {r.key: len(target.stored(r.key)) for r in target.stored()}.items():
            self.assertEqual(count, 1, entry)


class SupervisorDies(SystemTest):
    def test_a_new_supervisor_adopts_the_store_and_leaves_the_old_childrens_deliveries_to_them(self):
        target = self.target()
        target.script(path='/fires', hold=True)
        daemon = self.daemon(target)
        ids = [daemon.accept_ok(f's{n}', kind='fire', payload={'n': n}) for n in range(20)]
        wait_until(lambda: len(target.posts()) == 20, 10, 'requests in flight')
        store, old_workers = daemon.pid('store'), daemon.pids('worker')
        daemon.kill('supervisor')
        daemon.start()
        self.assertEqual(daemon.pid('store'), store, 'a second store')
        more = [daemon.accept_ok(f'n{n}', kind='note', payload={'n': n}) for n in range(10)]
        self.assertDelivered(target, more, times=1)
        # One that had nothing in flight has ended at once.
        self.assertTrue(set(old_workers) & set(daemon.pids('worker')), 'old workers did not finish what they send')
        target.clear_script()
        target.release()
        for entry in ids:
            daemon.wait_status(entry, 'sent')
        self.assertDelivered(target, ids, times=1)
        wait_until(lambda: not set(old_workers) & set(daemon.pids('worker')), 20, 'the old workers to end')
        self.assertEqual(daemon.stop(), 0)
        wait_until(lambda: not daemon.processes(), 10, lambda: f'nothing left: {daemon.processes()}')

    def test_old_workers_that_die_later_are_recovered_by_the_new_supervisor(self):
        target = self.target()
        target.script(path='/notes', hold=True, times=20)
        daemon = self.daemon(target)
        ids = [daemon.accept_ok(f's{n}', kind='note', payload={'n': n}) for n in range(20)]
        wait_until(lambda: len(target.posts()) == 20, 10, 'requests in flight')
        old_workers = daemon.pids('worker')
        daemon.kill('supervisor')
        daemon.start()
        killed = 0
        for pid in old_workers:
            with contextlib.suppress(ProcessLookupError):  # one that had nothing in flight has ended
                os.kill(pid, signal.SIGKILL)
                killed += 1
        self.assertGreater(killed, 0)
        self.assertDelivered(target, ids, times=2)

    def test_nobody_is_left_when_the_supervisor_died_and_nothing_is_in_flight(self):
        target = self.target()
        daemon = self.daemon(target)
        self.assertDelivered(target, [daemon.accept_ok(kind='note', payload={})])
        daemon.kill('supervisor')
        wait_until(lambda: not daemon.pids('api') and not daemon.pids('worker'), 20, lambda: f'{daemon.processes()} to end')


class AnythingDies(SystemTest):
    limit = 180

    def test_random_kills_under_load_lose_nothing_and_post_nothing_twice(self):
        seed = random.SystemRandom().randrange(1 << 32)
        print(f'seed {seed}')
        dice = random.Random(seed)
        target = self.target()
        target.script({'method': 'POST', 'path': '/payments', 'store': True, 'delay': 0.02})
        daemon = self.daemon(target)
        accepted, ended = [], threading.Event()

        def send(part):
            n = 0
            while not ended.is_set():
                n += 1
                kind = 'pay' if n % 2 else 'note'
                accepted.append(daemon.accept_patiently(session=f's{part}-{n % 5}', clientMessageID=f'{part}-{n}', kind=kind,
                                                        payload={'n': n, 'part': part}))
        threads = [threading.Thread(target=send, args=(part,)) for part in range(6)]
        for thread in threads:
            thread.start()
        for _ in range(8):
            roles = dice.choice([('worker',), ('worker',), ('api',), ('store',), ('supervisor',), ('api', 'worker'), ()])
            seen = len(accepted)
            wait_until(lambda: len(accepted) > seen + 50, 30, 'accepts going on', every=0.002)
            daemon.kill(*roles)
            if not roles or 'supervisor' in roles:
                daemon.start()
            daemon.wait_ready()
        ended.set()
        for thread in threads:
            thread.join()
        self.assertDelivered(target, accepted, timeout=60)
        self.assertEqual(len(accepted), len(set(accepted)), 'two messages with one ID')
        twice = [r.key for r in target.posts('/payments') if len(target.posts('/payments', r.key)) > 1]
        self.assertFalse(twice, 'posted again although the target had it')
        self.assertEqual({r.key for r in target.stored()}, set(accepted), 'delivered though never accepted')


if __name__ == '__main__':
    harness.main()
