"""Stopping with much in flight, and processes that stand or spin. Times are printed; what is asserted is order."""
import os
import random
import signal
import time

import harness
from harness import SystemTest, in_parallel, wait_until


class Drain(SystemTest):
    limit = 90

    def in_flight(self, count, **script):
        """That many deliveries on their way, each in a session of its own."""
        target = self.target()
        draw = random.Random(1)
        for n in range(count):
            target.script(path=f'/slow/{n}', delay=draw.uniform(1, 3), **script)
        daemon = self.daemon(target, log={'level': 'info'}, kinds=[{'name': 'slow', 'url': '/slow/{payload.n}'}])
        ids = in_parallel([lambda n=n: daemon.accept_ok(f's{n}', kind='slow', payload={'n': n}) for n in range(count)], 16)
        wait_until(lambda: len(target.posts()) == count, 20, 'all in flight')
        return target, daemon, ids

    def test_term_lets_two_hundred_deliveries_of_up_to_three_seconds_finish(self):
        target, daemon, ids = self.in_flight(200)
        began = time.monotonic()
        self.assertEqual(daemon.stop(), 0)
        ended = time.monotonic()
        answered = [post.answered for post in target.posts()]
        self.assertTrue(all(answered), 'it did not wait')
        self.assertEqual(len(target.posts()), len(ids))
        self.assertFalse(daemon.processes())
        print(f'exit 0 {ended - began:.2f} s after TERM, {ended - max(answered):.2f} s after the slowest answer', flush=True)
        daemon.start()
        self.assertFalse([entry for entry in ids if daemon.status(entry) != 'sent'])
        self.assertDelivered(target, ids, times=1)

    def test_a_second_term_ends_it_and_all_of_it_is_recovered_at_the_next_start(self):
        target, daemon, ids = self.in_flight(50)
        daemon.process.send_signal(signal.SIGTERM)
        wait_until(lambda: 'signal: drain' in daemon.log(), 10, 'the first to be taken: two at once are one')
        began = time.monotonic()
        daemon.process.send_signal(signal.SIGTERM)
        self.assertNotEqual(daemon.process.wait(10 * harness.SLOW), 0)
        wait_until(lambda: not daemon.processes(), 5, lambda: daemon.processes())
        print(f'gone {time.monotonic() - began:.2f} s after the second TERM', flush=True)
        daemon.start()
        # No look-up and not idempotent: nobody knows, and nothing is sent again.
        for entry in ids:
            daemon.wait_status(entry, 'error')
        self.assertEqual(len(target.posts()), len(ids))


class Watchdog(SystemTest):
    limit = 90

    def test_a_worker_that_stands_with_fifty_deliveries_is_killed_and_they_are_looked_up(self):
        target = self.target()
        target.script(path='/payments', store=True, hold=True, times=50)
        daemon = self.daemon(target, workers=1, watchdog='1s', max_verify_attempts=100)
        ids = in_parallel([lambda n=n: daemon.accept_ok(f's{n}', kind='pay', payload={'n': n}) for n in range(50)], 16)
        wait_until(lambda: len(target.posts()) == 50, 20, 'all in flight')
        stopped = daemon.pid('worker')
        os.kill(stopped, signal.SIGSTOP)
        began = time.monotonic()
        wait_until(lambda: len(target.lookups()) > 0, 30, 'the first look-up')
        first = time.monotonic()
        for entry in ids:
            daemon.wait_status(entry, 'sent')
        self.assertNotIn(stopped, daemon.pids('worker'))
        self.assertDelivered(target, ids, times=1)
        self.assertEqual(daemon.metric('outbox_process_restarts_total', role='worker', reason='watchdog'), 1)
        print(f'first look-up {first - began:.2f} s after SIGSTOP, watchdog 1 s', flush=True)

    def test_the_late_twin_of_a_worker_whose_locks_were_taken_changes_nothing(self):
        """The watchdog is far away: the locks run out while the worker stands, another takes over, the first goes on."""
        target = self.target()
        target.script(path='/payments', store=True, hold=True, times=10)
        target.script(path='/fires', store=True, hold=True, times=10)
        daemon = self.daemon(target, workers=1, watchdog='10m', delivery_timeout='2s', verify_timeout='1s', lock_ttl='3s',
                             connect_timeout='1s', max_verify_attempts=100)
        paid = [daemon.accept_ok(f'p{n}', kind='pay', payload={'n': n}) for n in range(10)]
        fired = [daemon.accept_ok(f'f{n}', kind='fire', payload={'n': n}) for n in range(10)]
        wait_until(lambda: len(target.posts()) == 20, 20, 'all in flight')
        twin = daemon.pid('worker')
        os.kill(twin, signal.SIGSTOP)
        daemon.process.send_signal(signal.SIGTTIN)
        for entry in paid:
            daemon.wait_status(entry, 'sent', timeout=30)
        for entry in fired:
            daemon.wait_status(entry, 'error', timeout=30)
        before = {entry: daemon.entry(entry).body for entry in fired}
        confirmed = daemon.metric('outbox_deliveries_total', outcome='confirmed')
        target.clear_script()
        target.release()
        os.kill(twin, signal.SIGCONT)
        wait_until(lambda: all(post.answered for post in target.posts()), 10, 'late answers')
        later = [daemon.accept_ok(f'p{n}', kind='note', payload={'n': n}) for n in range(10)]
        self.assertDelivered(target, later, times=1)
        self.assertIn(twin, daemon.pids('worker'), 'the twin lives on')
        self.assertEqual({entry: daemon.entry(entry).body for entry in fired}, before)
        self.assertDelivered(target, paid, times=1)
        self.assertEqual(len(target.posts('/fires')), 10)
        self.assertLessEqual(daemon.metric('outbox_deliveries_total', outcome='confirmed'), confirmed + len(later))

    def test_an_api_that_stands_is_killed_and_another_serves_who_waits(self):
        daemon = self.daemon(self.target(), watchdog='1s')
        api = daemon.pid('api')
        os.kill(api, signal.SIGSTOP)
        self.assertEqual(daemon.accept('s', kind='note', payload={}).status, 202)
        self.assertNotEqual(daemon.pid('api'), api)
        self.assertEqual(daemon.metric('outbox_process_restarts_total', role='api', reason='watchdog'), 1)

    def test_a_worker_that_says_ready_and_then_spins_is_killed(self):
        daemon = self.daemon(self.target(), start=False, workers=1, watchdog='1s')
        path = daemon.libexec / 'outboxd-worker'
        real = os.readlink(path)
        path.unlink()
        path.write_text('#!/bin/sh\necho READY >&6\nexec 6>&-\nwhile :; do :; done\n')
        path.chmod(0o755)
        daemon.start()
        entry = daemon.accept_ok('s', kind='note', payload={})
        wait_until(lambda: daemon.log().count('makes no progress') == 1 and
                   daemon.log().rpartition('makes no progress')[2].count('event=ready'), 30, 'the watchdog, and the next one')
        path.unlink()  # not while a shell is about to read it
        path.symlink_to(real)
        daemon.wait_status(entry, 'sent', timeout=30)


if __name__ == '__main__':
    harness.main()
