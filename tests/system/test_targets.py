"""Targets that are away, slow or limited: circuits, rates, deliveries in flight, and the ways to a target."""
import http.server
import pathlib
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import warnings

import harness
from certificates import Authority
from harness import FAST, KINDS, Daemon, SystemTest, free_port, in_parallel, wait_until
from test_reload import ReloadTest

LOOSE = {'name': 'loose', 'url': '/loose', 'idempotent': True, 'ordering': 'first-due'}
OTHER = '/v1/workspaces/other/target'


class TargetTest(SystemTest):
    def circuits(self, daemon, to):
        return daemon.metric('outbox_target_circuit_transitions_total', to=to)

    def holds(self, daemon, reason):
        return daemon.metric('outbox_target_holds_total', reason=reason)

    def wait_open(self, daemon, times=1):
        wait_until(lambda: self.circuits(daemon, 'open') >= times, 15, 'an open circuit')

    def with_circuits(self, target, /, **settings):
        """Circuits that open after three failures, for a second at first."""
        limits = dict({'circuit_failures': 3, 'circuit_delay': '1s', 'max_circuit_delay': '2s'}, **settings.pop('targets', {}))
        return self.daemon(target, targets=limits, kinds=KINDS + [LOOSE], **settings)


class SharedCircuits(TargetTest):
    """One daemon for all tests of the class; each has a workspace and a target of its own."""

    @classmethod
    def setUpClass(cls):
        limits = {'circuit_failures': 3, 'circuit_delay': '1s', 'max_circuit_delay': '2s'}
        cls.nowhere = f'http://127.0.0.1:{free_port()}'
        cls.daemon_ = Daemon({**FAST, 'kinds': KINDS + [LOOSE], 'target': {'url': cls.nowhere}, 'targets': limits, 'workers': 3,
                              'retry_backoff': '10ms', 'max_backoff': '20ms', 'verify_backoff': '20ms', 'max_verify_backoff': '20ms',
                              'max_verify_attempts': 10})
        cls.addClassCleanup(cls.daemon_.close)
        cls.daemon_.start()
        cls.daemon_.segments()

    def setUp(self):
        self.workspace = self.id().rpartition('.')[2][:60]

    def tearDown(self):
        report = harness.SANITIZER.search(self.daemon_.log())
        self.assertIsNone(report, report and self.daemon_.log()[report.start():][:4000])

    def own_target(self, target):
        answer = self.daemon_.call('PUT', f'/v1/workspaces/{self.workspace}/target', {'url': getattr(target, 'url', target)})
        self.assertEqual(answer.status, 200, answer)

    def accept(self, session, **members):
        return self.daemon_.accept_ok(session, workspace=self.workspace, **members)

    def circuit(self):
        return self.daemon_.call('GET', f'/v1/workspaces/{self.workspace}/target').json()['circuit']

    def opened(self, target):
        """How often its circuit was opened, as the log tells (the metric counts those of all targets)."""
        lines = [line for line in self.daemon_.log().splitlines() if target.url in line]
        return sum('a target does not answer' in line or 'state=open' in line for line in lines)

    def wait_not_closed(self):
        wait_until(lambda: self.circuit() != 'closed', 15, 'its circuit to open')

    def test_while_it_is_open_the_target_sees_no_request_and_then_one(self):
        target = self.target()
        target.script(path='/notes', status=503)
        self.own_target(target)
        ids = [self.accept(f's{n}', kind='note', payload={}) for n in range(12)]
        wait_until(lambda: self.opened(target) >= 3, 15, 'a circuit that opens again', every=0.05)
        target.clear_script()
        self.assertDelivered(target, ids)
        times = [request.time for request in target.posts()]
        gaps = [(later - earlier, n) for n, (earlier, later) in enumerate(zip(times, times[1:]))]
        pauses = [n for gap, n in gaps if gap > 0.8]
        self.assertGreaterEqual(len(pauses), 2, gaps)
        # Between two pauses one request, whatever the number of workers.
        self.assertEqual([later - earlier for earlier, later in zip(pauses, pauses[1:])], [1] * (len(pauses) - 1), gaps)

    def test_a_probe_that_hangs_lets_others_go_ever_more_seldom(self):
        target = self.target()
        target.script(path='/notes', status=503)
        self.own_target(target)
        for n in range(8):
            self.accept(f's{n}', kind='note', payload={})
        self.wait_not_closed()
        target.clear_script()
        target.script(path='/notes', hold=True)

        def probes():  # what was still on its way when the circuit opened was answered
            return [request.time for request in target.posts() if not request.answered]
        wait_until(lambda: len(probes()) >= 3, 20, 'probes')
        first, second, third = probes()[:3]
        self.assertGreater(second - first, 0.8)
        self.assertGreater(third - second, 1.6)
        self.assertEqual(self.circuit(), 'half_open')
        target.clear_script()
        target.release()
        wait_until(lambda: self.circuit() == 'closed', 10, 'its circuit to close')

    def test_a_reload_and_the_death_of_all_workers_leave_it_as_it_is(self):
        target = self.target()
        target.script(path='/notes', status=503)
        self.own_target(target)
        ids = [self.accept('strict', kind='note', payload={'n': n}) for n in range(4)]
        ids += [self.accept(f's{n}', kind='note', payload={}) for n in range(4)]
        self.wait_not_closed()
        count = self.daemon_.log().count('new configuration in force')
        self.daemon_.process.send_signal(signal.SIGHUP)
        wait_until(lambda: self.daemon_.log().count('new configuration in force') > count, 30, 'the reload')
        self.assertNotEqual(self.circuit(), 'closed')
        self.daemon_.kill('worker')
        self.assertNotEqual(self.circuit(), 'closed')
        target.clear_script()
        self.assertDelivered(target, ids)
        arrived = [request.key for request in target.stored()]
        self.assertEqual([key for key in arrived if key in ids[:4]], ids[:4])
        wait_until(lambda: self.circuit() == 'closed', 10, 'its circuit to close')

    def test_entries_that_need_not_wait_for_each_other_keep_their_order_while_they_are_held(self):
        port = free_port()
        self.own_target(f'http://127.0.0.1:{port}')
        for n in range(3):
            self.accept(f'x{n}', kind='fire', payload={})
        self.wait_not_closed()
        ids = []
        for _ in range(6):
            ids.append(self.accept('held', kind='loose', payload={}))
            time.sleep(0.05)  # each is claimed, and held, before the next comes
        target = self.target(port=port)
        self.assertDelivered(target, ids)
        self.assertEqual([request.key for request in target.posts('/loose')], ids)

    def test_what_is_looked_up_waits_uncounted_and_is_not_sent_twice(self):
        target = self.target()
        target.script({'path': '/payments', 'close': 'after-request', 'store': True}, {'path': '/messages/*', 'close': 'after-request'})
        self.own_target(target)
        ids = [self.accept(f's{n}', kind='pay', payload={}) for n in range(5)]
        wait_until(lambda: self.opened(target) >= 2, 15, 'a circuit that opens again', every=0.05)
        waiting = [self.daemon_.entry(entry, self.workspace).json() for entry in ids]
        self.assertEqual({entry['status'] for entry in waiting} - {'pending', 'delivering'}, {'verifying'}, waiting)
        # Those that were under way when it opened, and the ones that found out.
        self.assertLessEqual(sum(entry['verifyAttempts'] for entry in waiting), 5 + self.opened(target))
        target.clear_script()
        for entry in ids:
            self.daemon_.wait_status(entry, 'sent', self.workspace)
            self.assertEqual(len(target.posts(key=entry)), 1)

    def test_what_may_be_the_messages_own_fault_opens_nothing(self):
        target = self.target()
        target.script({'body': 'poison', 'close': 'after-request'}, {'path': '/fires', 'status': 500}, {'path': '/payments', 'status': 429})
        self.own_target(target)
        poison = self.accept('poisoned', kind='note', payload={'text': 'poison'})
        wait_until(lambda: len(target.posts(key=poison)) > 10, 10, 'more failures than a circuit bears')
        for n in range(10):
            self.accept(f'f{n}', kind='fire', payload={})
            self.accept(f'p{n}', kind='pay', payload={})
        wait_until(lambda: len(target.posts('/fires')) == 10 and len(target.posts('/payments')) > 20, 10, 'all of them')
        self.assertEqual(self.circuit(), 'closed')
        self.assertEqual(self.opened(target), 0)


class Circuit(TargetTest):
    def test_a_dead_target_is_not_asked_nobodys_budget_is_spent_and_nothing_is_lost_or_reordered(self):
        port = free_port()
        daemon = self.with_circuits(None, target={'url': f'http://127.0.0.1:{port}'}, retry_backoff='10ms', max_backoff='20ms')
        sessions = {f's{n}': [daemon.accept_ok(f's{n}', kind='fire', payload={'n': i}) for i in range(3)] for n in range(15)}
        self.wait_open(daemon, 3)
        self.assertEqual(daemon.metric('outbox_default_target_circuit_open'), 1)
        self.assertEqual(daemon.metric('outbox_target_circuits'), 1)
        # Those that were under way when it opened, and one more each time that it was half-open.
        failures = daemon.metric('outbox_deliveries_total', outcome='transient')
        self.assertLessEqual(failures, 15 + self.circuits(daemon, 'half_open'))
        self.assertGreater(self.holds(daemon, 'circuit'), 0)
        heads = [daemon.entry(ids[0]).json() for ids in sessions.values()]
        self.assertLessEqual(sum(entry.get('transientFails', 0) for entry in heads), 15 + self.circuits(daemon, 'half_open'))
        self.assertEqual({entry['status'] for entry in heads} - {'pending', 'delivering'}, set())
        target = self.target(port=port)
        self.assertDelivered(target, [entry for ids in sessions.values() for entry in ids], times=1)
        arrived = [request.key for request in target.posts()]
        for ids in sessions.values():
            self.assertEqual([key for key in arrived if key in ids], ids)
        wait_until(lambda: daemon.metric('outbox_default_target_circuit_open') == 0, 5, 'a closed circuit')
        self.assertGreaterEqual(self.circuits(daemon, 'closed'), 1)
        for line in ('a target does not answer', 'a target answers again'):
            self.assertIn(line, daemon.log())

    def test_a_dead_target_holds_up_no_healthy_one(self):
        dead, alive = f'http://127.0.0.1:{free_port()}', self.target()
        daemon = self.with_circuits(alive)
        self.assertEqual(daemon.call('PUT', OTHER, {'url': dead}).json()['circuit'], 'closed')
        waiting = in_parallel([lambda n=n: daemon.accept_ok(f's{n}', workspace='other', kind='note', payload={}) for n in range(60)])
        self.wait_open(daemon)
        wait_until(lambda: daemon.call('GET', OTHER).json()['circuit'] != 'closed', 5, 'its circuit to be shown')
        ids = in_parallel([lambda n=n: daemon.accept_ok(f's{n}', kind='note', payload={}) for n in range(60)])
        self.assertDelivered(alive, ids, timeout=10, times=1)
        self.assertEqual(daemon.metric('outbox_default_target_circuit_open'), 0)
        # A target that is set anew has nothing to do with the one before.
        daemon.call('PUT', OTHER, {'url': alive.url + '/base'})
        self.assertEqual(daemon.call('GET', OTHER).json()['circuit'], 'closed')
        daemon.accept_ok('s0', workspace='other', kind='note', payload={})
        wait_until(lambda: len(alive.posts('/base/notes')) >= 2, 10, 'the session to go on at once')
        self.assertDelivered(alive, waiting, times=1)

    def test_a_worker_that_dies_as_the_one_that_finds_out_is_no_loss(self):
        port = free_port()
        hanging = socket.create_server(('127.0.0.1', port))  # takes connections and never says anything
        self.addCleanup(hanging.close)
        daemon = self.with_circuits(None, target={'url': f'http://127.0.0.1:{port}'}, delivery_timeout='400ms', retry_backoff='50ms')
        ids = [daemon.accept_ok(f's{n}', kind='note', payload={}) for n in range(6)]
        self.wait_open(daemon, 1)
        wait_until(lambda: self.circuits(daemon, 'half_open') >= 1, 10, 'one that finds out', every=0.005)
        daemon.kill('worker')
        hanging.close()
        self.assertDelivered(self.target(port=port), ids)

    def test_without_a_limit_there_are_no_circuits(self):
        daemon = self.with_circuits(None, target={'url': f'http://127.0.0.1:{free_port()}'}, targets={'circuit_failures': 0},
                                    retry_backoff='10ms', max_backoff='10ms')
        entry = daemon.accept_ok(kind='fire', payload={})
        self.assertEqual(daemon.wait_status(entry, 'error')['lastError']['code'], 'unreachable')
        self.assertEqual((self.circuits(daemon, 'open'), self.holds(daemon, 'circuit')), (0, 0))


class Limits(TargetTest):
    def test_a_rate_holds_for_all_workers_together_and_for_each_target_alone(self):
        target, other = self.target(), self.target()
        daemon = self.daemon(target, workers=3, targets={'rate': 20})
        daemon.call('PUT', OTHER, {'url': other.url})
        ids = in_parallel([lambda n=n: daemon.accept_ok(f's{n}', kind='note', payload={}) for n in range(40)]
                          + [lambda n=n: daemon.accept_ok('chain', kind='note', payload={'n': n}) for n in range(20)])
        others = [daemon.accept_ok(f's{n}', workspace='other', kind='note', payload={}) for n in range(3)]
        self.assertDelivered(other, others, timeout=10, times=1)
        self.assertLess(len(target.posts()), 60, 'the other target waited for this one')
        self.assertDelivered(target, ids, times=1)
        times = [request.time for request in target.posts()]
        self.assertGreater(times[-1] - times[0], (60 - 2) / 20 * 0.8)
        self.assertGreater(self.holds(daemon, 'rate'), 0)
        self.assertLess(self.holds(daemon, 'rate'), 60 * 10, 'those who wait ask in vain too often')

    def test_deliveries_in_flight_are_limited_for_each_target_and_the_others_go_on(self):
        target, other = self.target(), self.target()
        target.script(path='/notes', hold=True)
        daemon = self.daemon(target, workers=1, targets={'max_in_flight': 2})
        daemon.call('PUT', OTHER, {'url': other.url})
        ids = [daemon.accept_ok(f's{n}', kind='note', payload={}) for n in range(8)]
        wait_until(lambda: len(target.posts()) == 2 and self.holds(daemon, 'in_flight') >= 6, 10, 'two in flight, the others held')
        others = [daemon.accept_ok(f's{n}', workspace='other', kind='note', payload={}) for n in range(20)]
        self.assertDelivered(other, others, timeout=10, times=1)
        self.assertEqual(len(target.posts()), 2)
        target.clear_script()
        target.release()
        self.assertDelivered(target, ids, times=1)

    def test_a_session_with_much_to_say_lets_those_in_who_have_no_place(self):
        target = self.target()
        target.script(path='/notes', delay=0.05)
        daemon = self.daemon(target, workers=1, targets={'max_in_flight': 1})
        chain = [daemon.accept_ok('long', kind='note', payload={'n': n}) for n in range(20)]
        wait_until(lambda: target.posts(), 10, 'the first')
        single = [daemon.accept_ok(f's{n}', kind='note', payload={}) for n in range(4)]
        self.assertDelivered(target, chain + single, times=1)
        arrived = [request.key for request in target.posts()]
        self.assertLess(max(arrived.index(entry) for entry in single), arrived.index(chain[-1]), 'a session was starved')
        self.assertEqual([key for key in arrived if key in chain], chain)
        spans = sorted((request.time, request.answered) for request in target.posts())
        self.assertFalse([n for n in range(len(spans) - 1) if spans[n + 1][0] < spans[n][1]], 'two at once')


class FirstByte(SystemTest):
    def test_silence_ends_an_attempt_early_and_a_slow_body_does_not(self):
        target = self.target()
        target.script({'path': '/notes', 'hold': True, 'times': 1}, {'path': '/slow', 'drip': 0.02, 'answer': 'x' * 40})
        kinds = KINDS + [{'name': 'slow', 'url': '/slow', 'timeout': '20s'}]
        daemon = self.daemon(target, kinds=kinds, first_byte_timeout='300ms')
        note, slow = daemon.accept_ok('a', kind='note', payload={}), daemon.accept_ok('b', kind='slow', payload={})
        self.assertDelivered(target, [note], times=2)
        first, second = target.posts('/notes')
        self.assertGreaterEqual(second.time - first.end, 0.25)
        self.assertLess(second.time - first.end, 10, 'not before its time limit was over')
        daemon.wait_status(slow, 'sent')
        self.assertEqual(len(target.posts('/slow')), 1)
        target.script(path='/fires', hold=True)
        failed = daemon.wait_status(daemon.accept_ok('c', kind='fire', payload={}), 'error')
        self.assertIn('first_byte_timeout', failed['lastError']['message'])
        target.release()


class Ways(SystemTest):
    def test_neither_a_denied_address_nor_the_environment_is_asked_by_attempts_and_look_ups(self):
        target, proxy, denied = self.target(), self.target(), self.target(host='127.0.0.2')
        home = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix='obt-')))
        (home / '.netrc').write_text('machine 127.0.0.1 login user password sesame\ndefault login user password sesame\n')
        (home / '.curlrc').write_text(f'proxy = "{proxy.url}"\nuser = "user:sesame"\nlocation\n')
        names = ('http_proxy', 'https_proxy', 'all_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY')
        elsewhere = {'name': 'elsewhere', 'url': '/elsewhere', 'verify': {'url': denied.url + '/by-key/{id}', 'delivered': 200, 'absent': 404}}
        daemon = self.daemon(target, kinds=KINDS + [elsewhere], targets={'deny': ['127.0.0.2', '10.0.0.0/8', '::1']}, max_verify_attempts=2,
                             environment={'HOME': str(home), 'CURL_HOME': str(home), 'NETRC': str(home / '.netrc'), 'NO_PROXY': '',
                                          'SSLKEYLOGFILE': str(home / 'keys'), **dict.fromkeys(names, proxy.url)})
        with self.subTest('the environment'):
            self.assertDelivered(target, [daemon.accept_ok(kind=kind, payload={}) for kind in ('note', 'pay', 'fire')], times=1)
            for request in target.requests():
                self.assertNotIn('authorization', request.headers)
                self.assertNotIn('accept-encoding', request.headers)
        with self.subTest('a redirect'):
            target.script(path='/notes', status=307, headers={'Location': denied.url + '/notes'})
            failed = daemon.wait_status(daemon.accept_ok('moved', kind='note', payload={}), 'error')
            self.assertEqual(failed['lastError']['code'], 'http_307')
        with self.subTest('a look-up'):
            target.script(path='/elsewhere', close='after-request')
            failed = daemon.wait_status(daemon.accept_ok('e', kind='elsewhere', payload={}), 'error')
            self.assertEqual(failed['lastError']['code'], 'unverifiable', failed)
            self.assertIn('targets.deny', failed['lastError']['message'])
            self.assertEqual(len(target.posts('/elsewhere')), 1)
        hosts = ('127.0.0.2', '2130706434', '0177.2', '0x7f.0.0.2', '0x7f000002', '[::ffff:127.0.0.2]', '[::ffff:7f00:2]', '[64:ff9b::7f00:2]',
                 '[2002:7f00:2::]', '[64:ff9b::10.1.2.3]', '0.0.0.0', '0', '[::]')
        entries = {}
        for n, host in enumerate(hosts):
            self.assertEqual(daemon.call('PUT', f'/v1/workspaces/w{n}/target', {'url': f'http://{host}:{denied.port}'}).status, 200, host)
            for kind in ('note', 'pay'):
                entries[host, kind] = daemon.accept_ok(kind, workspace=f'w{n}', kind=kind, payload={}), f'w{n}'
        for (host, kind), (entry, workspace) in entries.items():
            with self.subTest(host=host, kind=kind):
                failed = daemon.wait_status(entry, 'error', workspace)
                self.assertEqual(failed['lastError']['code'], 'executor_error')
                self.assertIn('targets.deny', failed['lastError']['message'])
        self.assertEqual((denied._connection_count, proxy._connection_count), (0, 0))


class TlsTarget:
    """Answers 204 to every POST, over TLS."""

    def __init__(self, certificate, key, **limits):
        self.posts = []
        target = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def do_POST(self):
                self.rfile.read(int(self.headers['Content-Length']))
                target.posts.append(self.headers['Idempotency-Key'])
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        for name, value in limits.items():
            setattr(context, name, value)
        if limits:
            context.set_ciphers('ALL:@SECLEVEL=0')
        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.server.handle_error = lambda *_: None  # a client that does not like the certificate
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f'https://127.0.0.1:{self.server.server_port}'
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Tls(ReloadTest):
    def tls_target(self, certificate, **limits):
        target = TlsTarget(*certificate, **limits)
        self.addCleanup(target.stop)
        return target

    def test_only_a_valid_certificate_of_that_name_from_a_known_authority_is_spoken_to(self):
        self.enterContext(warnings.catch_warnings())
        warnings.simplefilter('ignore', DeprecationWarning)  # the old protocol
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix='obt-')))
        known, unknown = Authority(folder / 'known'), Authority(folder / 'unknown')
        good = known.issue('good')
        refused = {
            'known to nobody': self.tls_target(unknown.issue('stranger')),
            'of another name': self.tls_target(known.issue('other', hosts='DNS:elsewhere.example,IP:127.0.0.2')),
            'run out': self.tls_target(known.issue('old', days=-1)),
            'for clients': self.tls_target(known.issue('client', purpose='clientAuth')),
            'an old protocol': self.tls_target(good, minimum_version=ssl.TLSVersion.TLSv1, maximum_version=ssl.TLSVersion.TLSv1_1),
        }
        target = self.tls_target(good)
        daemon = self.daemon(None, target={'url': target.url}, max_transient_failures=2)

        def assert_refused(why, workspace, entry):
            with self.subTest(why):
                failed = daemon.wait_status(entry, 'error', workspace)
                self.assertEqual((failed['lastError']['code'], failed.get('attempts', 0)), ('unreachable', 0), failed)

        assert_refused("not the system's authority", 'w', daemon.accept_ok(kind='fire', payload={}))
        self.change(daemon, targets={'ca_file': str(known.ca), **FAST['targets']})
        self.reload(daemon)
        entries = []
        for n, (why, other) in enumerate(refused.items()):
            daemon.call('PUT', f'/v1/workspaces/t{n}/target', {'url': other.url})
            entries.append((why, f't{n}', daemon.accept_ok(workspace=f't{n}', kind='fire', payload={})))
        for entry in entries:
            assert_refused(*entry)
        self.assertEqual([other.posts for other in refused.values()], [[]] * len(refused))
        entry = daemon.accept_ok(kind='fire', payload={})
        daemon.wait_status(entry, 'sent')
        self.assertEqual(target.posts, [entry])

    def test_an_authority_that_cannot_be_read_is_told_before_anything_starts(self):
        daemon = self.daemon(self.target(), start=False, targets={'ca_file': '/nonexistent/ca.pem'})
        daemon.write_config()
        ran = subprocess.run([harness.program('outboxd'), '--config', str(daemon.config), '--check-config'], capture_output=True, text=True,
                             check=False, timeout=20 * harness.SLOW)
        self.assertEqual(ran.returncode, 2)
        self.assertIn('targets.ca_file: cannot read /nonexistent/ca.pem', ran.stdout + ran.stderr)


if __name__ == '__main__':
    harness.main()
