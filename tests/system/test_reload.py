"""HUP, TTIN and TTOU: a new configuration, more and fewer workers, while messages come and go."""
import os
import signal
import time

import harness
from harness import SystemTest, wait_until


class ReloadTest(SystemTest):
    """What reload and upgrade tests share."""

    def reload(self, daemon, how=signal.SIGHUP, says='new configuration in force'):
        """Sends the signal and waits until the log says that it is done."""
        count = daemon.log().count(says)
        daemon.process.send_signal(how)
        wait_until(lambda: daemon.log().count(says) > count, 30, lambda: f'{says!r}: {daemon.log()[-2000:]}')

    def change(self, daemon, **settings):
        daemon.settings.update(settings)
        daemon.write_config()


class Reload(ReloadTest):
    limit = 90

    def test_a_reload_puts_a_new_configuration_in_force_and_cuts_no_delivery(self):
        target = self.target()
        target.script(path='/fires', hold=True)
        daemon = self.daemon(target, drain_timeout='2m')
        before = daemon.wait_workers()
        held = daemon.accept_ok('slow', kind='fire', payload={'n': 1})
        wait_until(lambda: target.posts(), 10, 'the delivery in flight')
        self.change(daemon, kinds=harness.KINDS + [{'name': 'fresh', 'url': '/fresh', 'idempotent': True}])
        self.reload(daemon)
        fresh = daemon.accept_ok('s', kind='fresh', payload={'n': 3})
        self.assertDelivered(target, [fresh])
        self.assertFalse(before & daemon.workers_ready(), 'old workers serve')
        self.assertEqual(len(daemon.workers_ready()), 2)
        target.clear_script()
        target.release()
        wait_until(lambda: daemon.status(held) == 'sent', 10, lambda: daemon.entry(held))
        self.assertEqual(len(target.posts('/fires')), 1)
        wait_until(lambda: len(daemon.pids('worker')) == 2 and len(daemon.pids('api')) == 1, 15, 'the old ones to go')

    def test_a_bad_configuration_changes_nothing_and_says_why(self):
        daemon = self.daemon(self.target())
        daemon.wait_workers()
        before = daemon.processes()
        daemon.config.write_text('workers: many\ncolour: red\n')
        self.reload(daemon, says='nothing was changed')
        for needle in ('outboxd.yaml:1: workers', 'outboxd.yaml:2: colour'):
            self.assertIn(needle, daemon.log())
        self.assertEqual(daemon.processes(), before)
        daemon.accept_ok('s', kind='note', payload={})
        daemon.config.unlink()
        self.reload(daemon, says='nothing was changed')
        self.assertEqual(daemon.processes(), before)

    def test_what_needs_a_restart_is_named_and_left_and_the_rest_is_taken_over(self):
        daemon = self.daemon(self.target())
        self.change(daemon, listen='127.0.0.1:1', durability='memory', state_dir='/nowhere', workers=3)
        self.reload(daemon)
        self.assertIn('settings="listen, state_dir, durability"', daemon.log())
        self.assertEqual(len(daemon.workers_ready()), 3)
        answer = daemon.accept('s', kind='note', payload={})
        self.assertEqual(answer.headers['outbox-durability'], 'fsync')

    def test_a_child_that_does_not_become_ready_leaves_the_old_ones_serving(self):
        daemon = self.daemon(self.target())
        slots, before = daemon.wait_workers(), daemon.processes()
        worker = daemon.libexec / 'outboxd-worker'
        real = os.readlink(worker)
        worker.unlink()
        worker.write_text('#!/bin/sh\nexit 1\n')
        worker.chmod(0o755)
        self.reload(daemon, says='the old ones go on')
        self.assertEqual(daemon.processes(), before)
        entry = daemon.accept_ok('s', kind='note', payload={})
        daemon.wait_status(entry, 'sent')
        worker.unlink()
        worker.symlink_to(real)
        self.reload(daemon)
        self.assertFalse(slots & daemon.workers_ready())

    def test_workers_are_added_and_removed_and_a_reload_makes_it_what_is_configured(self):
        daemon = self.daemon(self.target(), workers=1)
        for _ in range(2):
            daemon.process.send_signal(signal.SIGTTIN)
            time.sleep(0.02)
        daemon.wait_workers(3)
        daemon.process.send_signal(signal.SIGTTOU)
        daemon.wait_workers(2)
        self.reload(daemon)
        self.assertEqual(len(daemon.workers_ready()), 1)
        self.reload(daemon, signal.SIGTTOU, 'as many workers as there may be')
        self.assertEqual(len(daemon.workers_ready()), 1)

    def test_signals_that_come_together_during_the_start_are_obeyed_after_it(self):
        daemon = self.daemon(self.target(), start=False, workers=1)
        daemon.process = daemon.spawn()
        wait_until(lambda: 'outboxd starts' in daemon.log(), 10, 'its first word')
        for number in (signal.SIGHUP, signal.SIGHUP, signal.SIGTTIN, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP):
            daemon.process.send_signal(number)
        daemon.wait_ready()
        wait_until(lambda: 'new configuration in force' in daemon.log(), 30, lambda: daemon.log()[-3000:])
        daemon.wait_status(daemon.accept_ok('s', kind='note', payload={}), 'sent')
        self.assertEqual(daemon.stop(), 0)

    def test_a_stop_in_the_middle_of_a_reload_stops(self):
        daemon = self.daemon(self.target())
        daemon.process.send_signal(signal.SIGHUP)
        time.sleep(0.05)
        self.assertEqual(daemon.stop(), 0)
        wait_until(lambda: not daemon.processes(), 5, lambda: daemon.processes())

    def test_kinds_keep_their_counters_whatever_their_order(self):
        target = self.target()
        daemon = self.daemon(target, kinds=[{'name': 'a', 'url': '/a', 'idempotent': True}, {'name': 'b', 'url': '/b', 'idempotent': True}])
        daemon.wait_status(daemon.accept_ok('s', kind='b', payload={}), 'sent')
        self.change(daemon, kinds=[{'name': 'c', 'url': '/c', 'idempotent': True}, {'name': 'b', 'url': '/b', 'idempotent': True},
                                   {'name': 'a', 'url': '/a', 'idempotent': True}])
        self.reload(daemon)
        for kind in 'aabc':
            daemon.wait_status(daemon.accept_ok('s', kind=kind, payload={}), 'sent')
        counts = {kind: daemon.metric('outbox_deliveries_total', kind=kind, outcome='confirmed') for kind in 'abc'}
        self.assertEqual(counts, {'a': 2, 'b': 2, 'c': 1})


if __name__ == '__main__':
    harness.main()
