"""USR2: another program takes over in place; what was in flight is finished by the processes that began it."""
import os
import signal
import time

import harness
from harness import SystemTest, wait_until
from test_reload import ReloadTest


class Upgrade(ReloadTest):
    limit = 90

    def upgrade(self, daemon, says='new configuration in force'):
        self.reload(daemon, signal.SIGUSR2, says)

    def put_in_place(self, daemon, name, script):
        """Another program under that name; what brings the real one back."""
        path = daemon.libexec / name
        real = os.readlink(path)
        path.unlink()
        path.write_text('#!/bin/sh\n' + script.replace('REAL', real))
        path.chmod(0o755)

        def back():
            path.unlink()
            path.symlink_to(real)
        return back

    def test_an_upgrade_keeps_the_process_the_store_and_what_is_in_flight_and_replaces_the_rest(self):
        target = self.target()
        target.script(path='/fires', hold=True)
        daemon = self.daemon(target, drain_timeout='2m')
        store, api, workers = daemon.pid('store'), daemon.pid('api'), set(daemon.pids('worker'))
        held = daemon.accept_ok('slow', kind='fire', payload={'n': 1})
        wait_until(lambda: target.posts(), 10, 'the delivery in flight')
        self.upgrade(daemon)
        self.assertIsNone(daemon.process.poll())
        self.assertEqual(daemon.log().count('outboxd goes on'), 1)
        self.assertEqual(daemon.pid('store'), store)
        wait_until(lambda: api not in daemon.pids('api'), 15, 'the old API to go')
        self.assertEqual(len(workers & set(daemon.pids('worker'))), 1, 'the one with the delivery')
        daemon.client.close()
        self.upgrade(daemon)
        daemon.wait_status(daemon.accept_ok('s', kind='note', payload={}), 'sent')
        target.clear_script()
        target.release()
        wait_until(lambda: daemon.status(held) == 'sent', 10, lambda: daemon.entry(held))
        self.assertEqual(len(target.posts('/fires')), 1)
        self.assertEqual(len(daemon.segments()), 1)
        self.assertEqual(daemon.stop(), 0)
        wait_until(lambda: not daemon.processes(), 5, lambda: daemon.processes())
        self.assertFalse([p for p in daemon.known_segments if (harness.pathlib.Path('/dev/shm') / p).exists()], 'a segment is left')

    def test_a_program_that_fails_its_check_changes_nothing(self):
        daemon = self.daemon(self.target())
        daemon.wait_workers()
        before = daemon.processes()
        for script, why in (('echo broken >&2; exit 3\n', 'exit 3'), ('kill -SEGV $$\n', 'signal 11')):
            back = self.put_in_place(daemon, 'outboxd', script)
            self.upgrade(daemon, 'no upgrade: nothing was changed')
            self.assertIn(why, daemon.log())
            back()
        os.unlink(daemon.libexec / 'outboxd')
        self.upgrade(daemon, 'no upgrade: nothing was changed')
        self.assertEqual(daemon.processes(), before)
        os.symlink(harness.program('outboxd'), daemon.libexec / 'outboxd')
        self.change(daemon, workers='many')
        self.upgrade(daemon, 'no upgrade: nothing was changed')
        self.assertEqual(daemon.processes(), before)
        self.change(daemon, workers=1)
        self.upgrade(daemon)
        self.assertEqual(len(daemon.workers_ready()), 1)

    def test_a_program_that_is_proven_and_then_can_not_be_executed_changes_nothing(self):
        daemon = self.daemon(self.target())
        daemon.wait_workers()
        before = daemon.processes()
        self.put_in_place(daemon, 'outboxd', 'rm "$0"; printf broken >"$0"; chmod 755 "$0"; exit 0\n')
        self.upgrade(daemon, 'no upgrade: nothing was changed')
        self.assertEqual(daemon.processes(), before)
        daemon.wait_status(daemon.accept_ok('s', kind='note', payload={}), 'sent')
        self.reload(daemon)

    def test_new_children_that_do_not_become_ready_leave_the_old_ones_serving(self):
        daemon = self.daemon(self.target())
        for name in ('outboxd-worker', 'outboxd-api'):
            with self.subTest(broken=name):
                slots, before = daemon.wait_workers(), daemon.processes()
                back = self.put_in_place(daemon, name, 'exit 1\n')
                self.upgrade(daemon, 'the old ones go on as they were')
                wait_until(lambda: set(daemon.processes()) <= set(before), 10, 'those that began to go')
                self.assertEqual(daemon.workers_ready(), slots)
                daemon.wait_status(daemon.accept_ok('s', kind='note', payload={}), 'sent')
                back()
                daemon.client.close()
                self.reload(daemon)
                self.assertFalse(slots & daemon.workers_ready())

    def test_an_old_child_that_dies_after_an_upgrade_is_recovered_and_replaced(self):
        """Under its own generation's name, or nobody would know whose lock it held."""
        for layout in ('the same', 'another'):
            with self.subTest(layout=layout):
                target = self.target()
                target.script(path='/payments', times=1, hold=True, store=False)
                daemon = self.daemon(target, environment={'OUTBOXD_TEST_LAYOUT': 'other'} if layout == 'another' else {}, drain_timeout='2m')
                workers = set(daemon.pids('worker'))
                paid = daemon.accept_ok('s', kind='pay', payload={'n': 1})
                wait_until(lambda: target.posts(), 10, 'the delivery in flight')
                self.upgrade(daemon)
                wait_until(lambda: len(workers & set(daemon.pids('worker'))) == 1, 10, 'the idle one to go')
                os.kill((workers & set(daemon.pids('worker'))).pop(), signal.SIGKILL)
                daemon.wait_status(paid, 'sent')
                self.assertEqual(len(target.posts()), 2)
                self.assertTrue(target.lookups(), 'not looked up before it was sent again')
                self.end(daemon)

    def test_another_layout_of_the_shared_memory_gets_a_segment_of_its_own_and_counts_on(self):
        target = self.target()
        daemon = self.daemon(target, environment={'OUTBOXD_TEST_LAYOUT': 'other'}, drain_timeout='2m')
        for n in range(3):
            daemon.wait_status(daemon.accept_ok(f's{n}', kind='note', payload={}), 'sent')
        target.script(path='/fires', hold=True)
        held = daemon.accept_ok('slow', kind='fire', payload={})
        wait_until(lambda: len(target.posts()) == 4, 10, 'the delivery in flight')
        old = daemon.segments()
        counters = self.counters(daemon)
        self.upgrade(daemon)
        self.assertIn('another layout', daemon.log())
        after = self.counters(daemon)
        self.assertFalse({name: (value, after.get(name)) for name, value in counters.items() if after.get(name, -1) < value})
        wait_until(lambda: set(daemon.segments()) - set(old), 10, 'a new segment')
        daemon.wait_status(daemon.accept_ok('s', kind='note', payload={}), 'sent')
        target.clear_script()
        target.release()
        wait_until(lambda: daemon.status(held) == 'sent', 10, lambda: daemon.entry(held))
        self.assertEqual(len(target.posts('/fires')), 1)
        self.assertEqual(daemon.stop(), 0)
        self.assertFalse([p for p in daemon.known_segments if (harness.pathlib.Path('/dev/shm') / p).exists()], 'a segment is left')

    def counters(self, daemon):
        lines = [line.rpartition(' ') for line in daemon.get('/metrics').body.decode().splitlines() if not line.startswith('#')]
        return {name: float(value) for name, _, value in lines if name.partition('{')[0].endswith(('_total', '_count', '_bucket', '_sum'))}

    def test_signals_at_any_moment_of_an_upgrade_lead_to_a_defined_state(self):
        daemon = self.daemon(self.target(), workers=1)
        for wait in (0, 0.02, 0.05, 0.1, 0.2, 0.4):
            for number in (signal.SIGHUP, signal.SIGTTIN, signal.SIGUSR1, signal.SIGUSR2):
                if number == signal.SIGTTIN and wait > 0.05:
                    continue
                daemon.process.send_signal(signal.SIGUSR2)
                time.sleep(wait)
                daemon.process.send_signal(number)
                time.sleep(wait)
        self.upgrade(daemon)
        daemon.wait_workers(1)
        daemon.wait_status(daemon.accept_ok('s', kind='note', payload={}), 'sent')
        self.assertEqual(daemon.stop(), 0)
        for wait in (0.05, 0.15, 0.3, 0.5):
            daemon.start()
            daemon.process.send_signal(signal.SIGUSR2)
            time.sleep(wait)
            self.assertEqual(daemon.stop(), 0, f'{wait} s after USR2: {daemon.log()[-3000:]}')
            wait_until(lambda: not daemon.processes(), 5, lambda: daemon.processes())

    def test_a_supervisor_killed_in_the_middle_of_an_upgrade_is_followed_by_the_next(self):
        daemon = self.daemon(self.target(), workers=1)
        for wait in (0.1, 0.3, 0.6):
            daemon.process.send_signal(signal.SIGUSR2)
            time.sleep(wait)
            entry = daemon.accept_patiently(session='s', kind='note', payload={'wait': wait}, clientMessageID=f'm{wait}')
            os.kill(daemon.process.pid, signal.SIGKILL)
            daemon.process.wait(10)
            daemon.start()
            daemon.wait_status(entry, 'sent')


if __name__ == '__main__':
    harness.main()
