"""The supervisor as its operator sees it: start, refusals, drain, signals, restarts, what children hold."""
import contextlib
import json
import os
import signal
import subprocess
import time

import harness
from harness import SystemTest, program, wait_until


class Start(SystemTest):
    limit = 120

    def run_outboxd(self, *arguments, timeout=20):
        return subprocess.run([program('outboxd'), *arguments], capture_output=True, text=True, timeout=timeout,
                              stdin=subprocess.DEVNULL)

    def test_a_second_supervisor_on_one_state_directory_refuses_and_says_who_holds_it(self):
        daemon = self.daemon(self.target())
        first = daemon.process
        second = daemon.spawn()
        self.assertEqual(second.wait(20), 1)
        self.assertIn(str(first.pid), daemon.log().rpartition('--- start')[2])
        self.assertEqual(daemon.get('/readyz').status, 200)
        self.assertEqual(len(daemon.pids('store')), 1)

    def test_a_bad_configuration_ends_with_2_and_tells_all_mistakes_with_their_lines(self):
        daemon = self.daemon(None, start=False, kinds=[])
        daemon.write_config()
        daemon.config.write_text('workers: many\ncolour: red\nlock_ttl: 5s\ndelivery_timeout: 10m\nkinds:\n  - {name: x, executor: magic}\n')
        for arguments in (('--config', str(daemon.config)), ('--config', str(daemon.config), '--check-config')):
            ran = self.run_outboxd(*arguments)
            self.assertEqual(ran.returncode, 2, ran)
            for needle in (':1:', 'workers', ':2:', 'colour', 'lock_ttl', 'executor'):
                self.assertIn(needle, ran.stderr + ran.stdout)

    def test_a_mistake_of_each_kind_is_one_line_with_its_place(self):
        """Each line of the file has one mistake; a file that is no YAML, no file, or empty of sense has its own."""
        mistakes = [
            ('colour: red', 'colour: unknown key'), ('wokers: 2', 'wokers: unknown key; did you mean workers?'),
            ('watchdog: 10', "watchdog: '10' is not a duration"), ('watchdog: 5s', 'watchdog: stands here again'),
            ('session_cap: 0', "session_cap: '0' is not between"), ('max_text_bytes: 1 MB', "max_text_bytes: '1 MB' is not a size"),
            ('jitter: ful', "jitter: 'ful' is none of"), ('max_attempts: [1]', 'max_attempts: must be a single value'),
            ('node: a.b', "node: 'a.b' is not 1 to 64"), ('durability: disk', "durability: 'disk' is none of"),
            ('listen: localhost:80', 'listen: '), ('target: {url: "ftp://x"}', 'target.url: '),
            ('targets: {deny: [x]}', "targets.deny: 'x' is no address range"), ('tls: {key: /a}', 'tls.key: is given without'),
            ('lock_ttl: 1m', 'lock_ttl: 1m is not greater than'), ('max_backoff: 1s', 'max_backoff: 1s is less than'),
            ('pid_file:', 'pid_file: has no value'), ('kinds:', None), ('- {url: /}', 'kinds[0].name: is missing'),
            ('- {name: a, url: b}', "kinds[1].url: 'b' does not begin with /"), ('- {name: b, url: "/{x}"}', 'kinds[2].url: '),
            ('- {name: b, url: /}', 'kinds[3].name: b is declared twice'),
            ('- {name: c, url: /, follow_up_edit: zzz}', "kinds[4].follow_up_edit: 'zzz' is no kind"),
        ]
        daemon = self.daemon(None, start=False)
        daemon.config.write_text('\n'.join(line for line, _ in mistakes) + '\n')
        ran = self.run_outboxd('--config', str(daemon.config), '--check-config')
        told = [line for line in ran.stderr.splitlines() if line]
        expected = [f'{daemon.config}:{n}: {says}' for n, (_, says) in enumerate(mistakes, 1) if says]
        self.assertEqual(ran.returncode, 2)
        self.assertEqual([says for says in expected if len([line for line in told if line.startswith(says)]) != 1], [], ran.stderr)
        self.assertEqual(len(told), len(expected), ran.stderr)
        for content, says in ((b'node: [a\n', 'not valid YAML'), (b'node: \xff\n', 'not valid UTF-8'), (b'- a\n', 'must be a mapping'),
                              (b'a: &x b\n', 'anchors'), (b'target: {password_file: /nowhere/password, username: u}\n', 'target.password_file')):
            daemon.config.write_bytes(content)
            ran = self.run_outboxd('--config', str(daemon.config))
            self.assertEqual(ran.returncode, 2, content)
            self.assertRegex(ran.stderr, rf'^{daemon.config}:[12]: [^\n]*{says}')
        ran = self.run_outboxd('--config', str(daemon.folder))
        self.assertEqual(ran.returncode, 2)
        self.assertIn(str(daemon.folder), ran.stderr)

    def test_check_config_and_print_config_of_a_good_one(self):
        daemon = self.daemon(None, start=False, target={'url': 'http://127.0.0.1:1', 'username': 'u', 'password': 'very secret'})
        daemon.write_config()
        self.assertEqual(self.run_outboxd('--config', str(daemon.config), '--check-config').returncode, 0)
        printed = self.run_outboxd('--config', str(daemon.config), '--print-config')
        self.assertEqual(printed.returncode, 0)
        self.assertIn('session_cap', printed.stdout)
        self.assertNotIn('very secret', printed.stdout + printed.stderr)

    def test_usage(self):
        self.assertEqual(self.run_outboxd('--no-such-option').returncode, 2)
        self.assertEqual(self.run_outboxd('--version').returncode, 0)
        self.assertEqual(self.run_outboxd('--config', '/nowhere.yaml').returncode, 2)

    def test_an_address_that_is_taken_is_named(self):
        daemon = self.daemon(self.target())
        other = self.daemon(None, start=False, listen=f'127.0.0.1:{daemon.port}')
        process = other.spawn()
        self.assertEqual(process.wait(60 * harness.SLOW), 1)
        self.assertIn(f'127.0.0.1:{daemon.port}', other.log())
        self.assertIn('listen', other.log())

    def test_every_child_has_only_what_it_needs(self):
        """No child holds the store's lock but the store; nobody holds another's descriptors."""
        daemon = self.daemon(self.target())
        self.assertEqual(len(daemon.pids('api')), 1)
        self.assertEqual(len(daemon.pids('worker')), 2)
        holders = []
        for pid, comm in daemon.processes().items():
            links = []
            for fd in os.listdir(f'/proc/{pid}/fd'):
                with contextlib.suppress(FileNotFoundError):  # closed since it was listed
                    links.append(os.readlink(f'/proc/{pid}/fd/{fd}'))
            if any(link.endswith('store.lock') for link in links):
                holders.append(comm)
            if comm == 'outboxd-worker':
                listening = [link for link in links if link.startswith('socket:') and self.is_listener(link)]
                self.assertEqual(listening, [], 'a worker holds a listener')
        self.assertEqual(len(holders), 1, holders)
        self.assertIn(holders[0], harness.ROLES['store'])

    def is_listener(self, link):
        inode = link.partition('[')[2].rstrip(']')
        with open('/proc/net/tcp', encoding='ascii') as table:
            return any(row.split()[9] == inode and row.split()[3] == '0A' for row in table.readlines()[1:])


class Ends(SystemTest):
    limit = 90

    def test_term_finishes_what_is_in_flight_and_ends_with_0(self):
        target = self.target()
        target.script(hold=True)
        daemon = self.daemon(target)
        ids = [daemon.accept_ok(f's{n}', kind='fire', payload={'n': n}) for n in range(10)]
        ids_behind = [daemon.accept_ok(f's{n}', kind='note', payload={'n': n}) for n in range(10)]
        wait_until(lambda: len(target.posts()) == 10, 10, 'requests in flight')
        daemon.process.send_signal(signal.SIGTERM)

        def refuses():
            try:
                return daemon.get('/readyz').status != 200
            except OSError:
                return True
        wait_until(refuses, 10, 'no new requests')
        self.assertIsNone(daemon.process.poll(), 'it did not wait')
        target.clear_script()
        target.release()
        self.assertEqual(daemon.process.wait(20 * harness.SLOW), 0)
        wait_until(lambda: not daemon.processes(), 5, lambda: f'nothing left: {daemon.processes()}')
        self.assertFalse([p for p in daemon.known_segments if (harness.pathlib.Path('/dev/shm') / p).exists()], 'a segment is left')
        self.assertEqual({r.key for r in target.posts()}, set(ids), 'claimed while draining')
        daemon.start()
        self.assertDelivered(target, ids + ids_behind, times=1)

    def test_a_second_term_ends_at_once_and_what_was_in_flight_is_recovered(self):
        target = self.target()
        target.script(path='/payments', store=True, hold=True, times=10)
        daemon = self.daemon(target)
        ids = [daemon.accept_ok(f's{n}', kind='pay', payload={'n': n}) for n in range(10)]
        wait_until(lambda: len(target.posts()) == 10, 10, 'requests in flight')
        daemon.process.send_signal(signal.SIGTERM)
        wait_until(lambda: not daemon.pids('api'), 10, 'the API to end')
        self.assertIsNone(daemon.process.poll())
        daemon.process.send_signal(signal.SIGTERM)
        daemon.process.wait(5 * harness.SLOW)
        wait_until(lambda: not daemon.processes(), 5, lambda: f'nothing left: {daemon.processes()}')
        daemon.start()
        for entry in ids:
            daemon.wait_status(entry, 'sent')
        self.assertDelivered(target, ids, times=1)

    def test_quit_ends_at_once(self):
        target = self.target()
        target.script(hold=True, times=5)
        daemon = self.daemon(target)
        ids = [daemon.accept_ok(f's{n}', kind='note', payload={'n': n}) for n in range(5)]
        wait_until(lambda: len(target.posts()) == 5, 10, 'requests in flight')
        daemon.stop(signal.SIGQUIT, 5)
        wait_until(lambda: not daemon.processes(), 5, lambda: f'nothing left: {daemon.processes()}')
        daemon.start()
        self.assertDelivered(target, ids)

    def test_term_during_start_ends_it_too(self):
        for delay in (0.0, 0.02, 0.05, 0.1, 0.2):
            daemon = self.daemon(self.target(), start=False)
            process = daemon.spawn()
            deadline = time.monotonic() + delay
            wait_until(lambda: time.monotonic() > deadline, every=0.005)
            process.send_signal(signal.SIGTERM)
            self.assertIn(process.wait(20 * harness.SLOW), (0, -signal.SIGTERM))
            wait_until(lambda: not daemon.processes(), 5, lambda: f'nothing left: {daemon.processes()}')

    def test_drain_timeout_bounds_the_wait(self):
        target = self.target()
        target.script(hold=True, times=5)
        daemon = self.daemon(target, drain_timeout='1s')
        ids = [daemon.accept_ok(f's{n}', kind='note', payload={'n': n}) for n in range(5)]
        wait_until(lambda: len(target.posts()) == 5, 10, 'requests in flight')
        daemon.stop(signal.SIGTERM, 15)
        wait_until(lambda: not daemon.processes(), 5, lambda: f'nothing left: {daemon.processes()}')
        daemon.start()
        self.assertDelivered(target, ids)


class Children(SystemTest):
    limit = 90

    def test_children_are_started_again_and_counted(self):
        target = self.target()
        daemon = self.daemon(target)
        for role in ('api', 'worker', 'store'):
            count = len(daemon.pids(role))
            killed = daemon.kill(role)
            wait_until(lambda role=role, killed=killed, count=count: len(daemon.pids(role)) == count and
                       not set(killed) & set(daemon.pids(role)), 15, f'{role} to be started again')
            daemon.wait_ready()
            entry = daemon.accept_patiently(kind='note', payload={'after': role})
            self.assertDelivered(target, [entry])
        self.assertGreaterEqual(daemon.metric('outbox_process_restarts_total', role='worker'), 2)
        self.assertGreaterEqual(daemon.metric('outbox_process_restarts_total', role='api'), 1)

    def test_a_child_that_dies_again_and_again_is_restarted_with_growing_delay(self):
        daemon = self.daemon(self.target(), workers=1)
        gaps = []
        for _ in range(4):
            pid = wait_until(lambda: daemon.pids('worker'), 30, 'a worker')
            os.kill(pid[0], signal.SIGKILL)
            died = time.monotonic()
            # One look at a time: between two, the old one may go and be taken for the next.
            wait_until(lambda pid=pid: set(daemon.pids('worker')) - set(pid), 60, 'the next one')
            gaps.append(time.monotonic() - died)
        # 0, 100, 200, 400 ms at least: other load can only lengthen them.
        self.assertGreater(gaps[1], 0.09, gaps)
        self.assertGreater(gaps[-1], 0.39, gaps)
        self.assertEqual(daemon.get('/healthz').status, 200)

    def test_readyz_says_what_a_202_is_worth_and_healthz_that_it_lives(self):
        daemon = self.daemon(self.target())
        ready = daemon.get('/readyz')
        self.assertEqual((ready.status, json.loads(ready.body)['durability']), (200, 'fsync'))
        self.assertEqual(daemon.get('/healthz').status, 200)

    def test_metrics_tell_what_happened(self):
        target = self.target()
        daemon = self.daemon(target)
        ids = [daemon.accept_ok(f's{n}', kind='note', payload={'n': n}) for n in range(7)]
        daemon.accept_ok('x', kind='fire', payload={}, clientMessageID='m')
        daemon.accept('x', kind='fire', payload={}, clientMessageID='m')
        self.assertDelivered(target, ids)
        wait_until(lambda: daemon.metric('outbox_deliveries_total', kind='note', outcome='confirmed') == 7, 10, 'deliveries counted')
        self.assertEqual(daemon.metric('outbox_accepts_total'), 9)
        self.assertEqual(daemon.metric('outbox_process_up', role='worker'), 2)
        wait_until(lambda: daemon.metric('outbox_dispatch_latency_seconds_count') == 8, 10, 'every start counted')


if __name__ == '__main__':
    harness.main()
