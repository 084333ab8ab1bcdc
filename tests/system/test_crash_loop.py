"""Processes that die again and again: what /readyz, the metrics, the log and `outboxctl top` say of them, and that they come
back. The programs are the real ones behind a wrapper that can be told to end instead."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import tempfile

import harness
from harness import SystemTest, program, wait_until

FIRST_WORKER, SECOND_WORKER = 4, 5  # slots


class CrashLoop(SystemTest):
    limit = 120

    def setUp(self):
        self.programs = pathlib.Path(tempfile.mkdtemp(prefix='obp-'))
        self.addCleanup(shutil.rmtree, self.programs, ignore_errors=True)
        for name in ('outboxd-api', 'outboxd-worker'):
            wrapper = self.programs / name
            wrapper.write_text(f'''#!/bin/sh
# --slot N is the first argument: where a file of that name stands, its content is how this process ends.
if [ -e "{self.programs}/$2" ]; then exit "$(cat "{self.programs}/$2")"; fi
exec "{program(name)}" "$@"
''')
            wrapper.chmod(0o755)
        self.stored = self.target()

    def serving(self, **settings):
        return self.daemon(self.stored, environment={'OUTBOXD_LIBEXEC': str(self.programs)}, **settings)

    def end_at_start(self, slot, status):
        (self.programs / str(slot)).write_text(str(status))

    def start_again(self, slot):
        (self.programs / str(slot)).unlink()

    @staticmethod
    def kill_slot(daemon, slot):
        for pid in daemon.pids('worker'):
            with contextlib.suppress(OSError):
                arguments = pathlib.Path(f'/proc/{pid}/cmdline').read_bytes().split(b'\0')
                if arguments[arguments.index(b'--slot') + 1] == str(slot).encode():
                    os.kill(pid, signal.SIGKILL)

    @staticmethod
    def readiness(daemon):
        answer = daemon.get('/readyz')
        return answer.status, answer.json()

    def process(self, daemon, slot):
        return next(p for p in self.readiness(daemon)[1]['processes'] if p['slot'] == slot)

    def wait_deaths(self, daemon, slot, deaths):
        wait_until(lambda: self.process(daemon, slot).get('deathsInARow', 0) >= deaths, 20,
                   lambda: f'{deaths} deaths in slot {slot}: {self.readiness(daemon)}')

    def test_a_worker_that_dies_at_each_start_is_seen_everywhere_and_comes_back(self):
        daemon = self.serving()
        wait_until(lambda: self.readiness(daemon)[1]['status'] == 'ready', 10, 'both workers')
        self.end_at_start(SECOND_WORKER, 1)
        self.kill_slot(daemon, SECOND_WORKER)
        self.wait_deaths(daemon, SECOND_WORKER, 4)

        with self.subTest('readyz: still ready for clients, and says which process, how often, why and what comes next'):
            wait_until(lambda: self.process(daemon, SECOND_WORKER)['state'] == 'waiting', 10, 'the next delay')
            status, body = self.readiness(daemon)
            self.assertEqual((status, body['status']), (200, 'degraded'))
            self.assertEqual(len(body['degraded']), 1, body)
            self.assertRegex(body['degraded'][0], r'^worker in slot 5 died \d+ times in a row \(exit\); ')
            process = self.process(daemon, SECOND_WORKER)
            self.assertEqual(process['lastDeath'], 'exit')
            self.assertGreater(process['nextStartIn'], 0)
            self.assertLessEqual(process['nextStartIn'], 30)
            self.assertNotIn('deathsInARow', self.process(daemon, FIRST_WORKER))
        with self.subTest('metrics'):
            self.assertEqual(daemon.metric('outbox_process_crash_looping', role='worker', slot='5'), 1)
            self.assertEqual(daemon.metric('outbox_process_crash_looping'), 1)
            self.assertEqual(daemon.metric('outbox_process_up', slot='4'), 1)
            self.assertGreaterEqual(daemon.metric('outbox_process_restarts_total', role='worker', reason='exit'), 2)
        with self.subTest('log: every delay, longer each time'):
            delays = [int(line.partition('next_start_after_ms=')[2].split()[0]) for line in daemon.log().splitlines()
                      if 'next_start_after_ms=' in line]
            self.assertEqual(delays[:4], [0, 100, 200, 400])
            self.assertIn('dies again and again', daemon.log())
        with self.subTest('outboxctl top'):
            shown = json.loads(daemon.ctl('top', '--once', '--json', '--state-dir', str(daemon.state)).stdout)
            second = next(p for p in shown['processes'] if p['slot'] == SECOND_WORKER)
            self.assertGreaterEqual(second['deaths_in_a_row'], 4)
        with self.subTest('the other worker delivers meanwhile'):
            self.assertDelivered(self.stored, [daemon.accept_ok(f's{n}', kind='note', payload={'n': n}) for n in range(8)])

        with self.subTest('no worker at all: accepted all the same, and it waits'):
            self.end_at_start(FIRST_WORKER, 1)
            self.kill_slot(daemon, FIRST_WORKER)
            self.wait_deaths(daemon, FIRST_WORKER, 3)
            status, body = self.readiness(daemon)
            self.assertEqual((status, len(body['degraded'])), (200, 3), body)
            self.assertIn('no worker serves', body['degraded'][-1])
            waiting = daemon.accept_ok('s', kind='note', payload={'n': 'waits'})
        with self.subTest('they serve again, and after a healthy while nothing is held against them'):
            self.start_again(FIRST_WORKER)
            self.start_again(SECOND_WORKER)
            self.assertDelivered(self.stored, [waiting])
            wait_until(lambda: self.readiness(daemon)[1]['status'] == 'ready', 40, lambda: str(self.readiness(daemon)))
            self.assertEqual(daemon.metric('outbox_process_crash_looping'), 0)
            self.assertEqual(daemon.metric('outbox_process_up', role='worker'), 2)
            self.assertIn('serves again', daemon.log())

    def test_a_worker_that_refuses_its_configuration_is_told_and_started_again_by_a_reload(self):
        daemon = self.serving()
        wait_until(lambda: self.readiness(daemon)[1]['status'] == 'ready', 10, 'both workers')
        self.end_at_start(SECOND_WORKER, 2)
        self.kill_slot(daemon, SECOND_WORKER)
        wait_until(lambda: self.process(daemon, SECOND_WORKER)['state'] == 'failed', 10, 'the refusal')
        status, body = self.readiness(daemon)
        self.assertEqual((status, body['status']), (200, 'degraded'))
        self.assertEqual(body['degraded'], ['worker in slot 5 refuses its configuration: it is not started again, see the log'])
        self.assertEqual(daemon.metric('outbox_process_up', role='worker', slot='5'), 0)
        self.assertEqual(daemon.metric('outbox_process_crash_looping', role='worker', slot='5'), 1)
        self.assertIn('refuses its configuration', daemon.log())
        self.start_again(SECOND_WORKER)
        daemon.process.send_signal(signal.SIGHUP)
        wait_until(lambda: self.readiness(daemon)[1]['status'] == 'ready', 20, lambda: str(self.readiness(daemon)))
        wait_until(lambda: daemon.metric('outbox_process_up', role='worker') == 2, 20, 'two workers')
        self.assertEqual(daemon.metric('outbox_process_crash_looping'), 0)

    def test_a_program_that_can_not_be_started_is_told_and_tried_again(self):
        daemon = self.serving(workers=1)
        wrapper = self.programs / 'outboxd-worker'
        wrapper.chmod(0o644)
        daemon.kill('worker')
        self.wait_deaths(daemon, FIRST_WORKER, 3)
        self.assertEqual(self.process(daemon, FIRST_WORKER)['lastDeath'], 'spawn')
        wrapper.chmod(0o755)
        self.assertDelivered(self.stored, [daemon.accept_ok('s', kind='note', payload={})])
        self.assertGreaterEqual(daemon.metric('outbox_process_restarts_total', role='worker', reason='spawn'), 1)


if __name__ == '__main__':
    harness.main()
