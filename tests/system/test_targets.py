"""Targets that are away, slow or limited: circuits, rates, deliveries in flight, and the ways to a target."""
import http.server
import pathlib
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import warnings

import harness
from harness import KINDS, SystemTest, free_port, in_parallel, wait_until

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

    def test_while_it_is_open_the_target_sees_no_request_and_then_one(self):
        target = self.target()
        target.script(path='/notes', status=503)
        daemon = self.with_circuits(target, workers=3)
        ids = [daemon.accept_ok(f's{n}', kind='note', payload={}) for n in range(12)]
        self.wait_open(daemon, 3)
        target.clear_script()
        self.assertDelivered(target, ids)
        times = [request.time for request in target.posts()]
        gaps = [(later - earlier, n) for n, (earlier, later) in enumerate(zip(times, times[1:]))]
        pauses = [n for gap, n in gaps if gap > 0.8]
        self.assertGreaterEqual(len(pauses), 2, gaps)
        # Between two pauses one request, whatever the number of workers.
        self.assertEqual([later - earlier for earlier, later in zip(pauses, pauses[1:])], [1] * (len(pauses) - 1), gaps)

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

    def test_entries_that_need_not_wait_for_each_other_keep_their_order_while_they_are_held(self):
        port = free_port()
        daemon = self.with_circuits(None, target={'url': f'http://127.0.0.1:{port}'},
                                    targets={'circuit_failures': 3, 'circuit_delay': '2s', 'max_circuit_delay': '2s'})
        for n in range(3):
            daemon.accept_ok(f'x{n}', kind='fire', payload={})
        self.wait_open(daemon)
        ids = []
        for _ in range(6):
            ids.append(daemon.accept_ok('held', kind='loose', payload={}))
            time.sleep(0.05)  # each is claimed, and held, before the next comes
        target = self.target(port=port)
        self.assertDelivered(target, ids)
        self.assertEqual([request.key for request in target.posts('/loose')], ids)

    def test_what_is_looked_up_waits_uncounted_and_is_not_sent_twice(self):
        target = self.target()
        target.script({'path': '/payments', 'close': 'after-request', 'store': True}, {'path': '/messages/*', 'close': 'after-request'})
        daemon = self.with_circuits(target, workers=1, verify_backoff='20ms', max_verify_backoff='20ms', max_verify_attempts=10)
        ids = [daemon.accept_ok(f's{n}', kind='pay', payload={}) for n in range(5)]
        self.wait_open(daemon, 2)
        waiting = [daemon.entry(entry).json() for entry in ids]
        self.assertEqual({entry['status'] for entry in waiting} - {'pending', 'delivering'}, {'verifying'}, waiting)
        self.assertLessEqual(sum(entry['verifyAttempts'] for entry in waiting), self.circuits(daemon, 'half_open'))
        target.clear_script()
        for entry in ids:
            daemon.wait_status(entry, 'sent')
            self.assertEqual(len(target.posts(key=entry)), 1)

    def test_what_may_be_the_messages_own_fault_opens_nothing(self):
        target = self.target()
        target.script({'body': 'poison', 'close': 'after-request'}, {'path': '/fires', 'status': 500}, {'path': '/payments', 'status': 429})
        daemon = self.with_circuits(target, retry_backoff='10ms', max_backoff='20ms')
        poison = daemon.accept_ok('poisoned', kind='note', payload={'text': 'poison'})
        wait_until(lambda: len(target.posts(key=poison)) > 10, 10, 'more failures than a circuit bears')
        for n in range(10):
            daemon.accept_ok(f'f{n}', kind='fire', payload={})
            daemon.accept_ok(f'p{n}', kind='pay', payload={})
        wait_until(lambda: len(target.posts('/fires')) == 10 and len(target.posts('/payments')) > 20, 10, 'all of them')
        self.assertEqual(self.circuits(daemon, 'open'), 0)

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
    def test_a_denied_address_is_an_error_that_names_the_settings(self):
        target = self.target()
        daemon = self.daemon(None, target={'url': target.url.replace('127.0.0.1', 'localhost')},
                             targets={'deny': ['127.0.0.0/8', '::1/128']})
        for n, url in enumerate([None, 'http://2130706433:{}', 'http://0177.1:{}', 'http://[::ffff:127.0.0.1]:{}', 'http://0.0.0.0:{}']):
            if url:
                daemon.call('PUT', '/v1/workspaces/w/target', {'url': url.format(target.port)})
            for kind in ('note', 'pay'):
                failed = daemon.wait_status(daemon.accept_ok(f's{n}', kind=kind, payload={}), 'error')
                self.assertEqual(failed['lastError']['code'], 'executor_error')
                self.assertIn('targets.deny', failed['lastError']['message'])
        self.assertEqual(target._connection_count, 0)

    def test_the_environment_leads_nowhere(self):
        target, proxy = self.target(), self.target()
        home = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix='obt-')))
        (home / '.netrc').write_text('machine 127.0.0.1 login user password sesame\ndefault login user password sesame\n')
        names = ('http_proxy', 'https_proxy', 'all_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY')
        daemon = self.daemon(target, environment={'HOME': str(home), 'NETRC': str(home / '.netrc'), 'SSLKEYLOGFILE': str(home / 'keys'),
                                                  **dict.fromkeys(names, proxy.url)})
        self.assertDelivered(target, [daemon.accept_ok(kind=kind, payload={}) for kind in ('note', 'pay', 'fire')], times=1)
        self.assertEqual(proxy._connection_count, 0)
        for request in target.requests():
            self.assertNotIn('authorization', request.headers)
            self.assertNotIn('accept-encoding', request.headers)


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


class Tls(SystemTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix='obt-')
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.certificate = cls.made('good', 'IP:127.0.0.1')
        cls.other = cls.made('other', 'DNS:elsewhere.example')

    @classmethod
    def made(cls, name, names):
        """A certificate that signs itself."""
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2',
                        '-subj', f'/CN={name}', '-addext', f'subjectAltName={names}', '-keyout', str(cls.folder / f'{name}.key'),
                        '-out', str(cls.folder / f'{name}.pem')], check=True, capture_output=True)
        return str(cls.folder / f'{name}.pem')

    def tls_target(self, certificate, **limits):
        target = TlsTarget(certificate, certificate.replace('.pem', '.key'), **limits)
        self.addCleanup(target.stop)
        return target

    def refused(self, target, **targets):
        daemon = self.daemon(None, target={'url': target.url}, targets=targets, max_transient_failures=2)
        failed = daemon.wait_status(daemon.accept_ok(kind='fire', payload={}), 'error', timeout=20)
        self.assertEqual((failed['lastError']['code'], failed.get('attempts', 0)), ('unreachable', 0))
        self.assertEqual(target.posts, [])
        return failed['lastError']['message']

    def test_a_certificate_that_leads_to_nobody_known_is_refused(self):
        self.assertIn('certificate', self.refused(self.tls_target(self.certificate)))

    def test_with_the_authority_configured_it_is_delivered(self):
        target = self.tls_target(self.certificate)
        daemon = self.daemon(None, target={'url': target.url}, targets={'ca_file': self.certificate})
        entry = daemon.accept_ok(kind='fire', payload={})
        daemon.wait_status(entry, 'sent')
        self.assertEqual(target.posts, [entry])

    def test_a_certificate_of_another_name_is_refused(self):
        self.refused(self.tls_target(self.other), ca_file=self.other)

    def test_an_old_protocol_is_refused(self):
        self.enterContext(warnings.catch_warnings())
        warnings.simplefilter('ignore', DeprecationWarning)
        old = self.tls_target(self.certificate, minimum_version=ssl.TLSVersion.TLSv1, maximum_version=ssl.TLSVersion.TLSv1_1)
        self.refused(old, ca_file=self.certificate)

    def test_an_authority_that_cannot_be_read_is_told_before_anything_starts(self):
        daemon = self.daemon(self.target(), start=False, targets={'ca_file': '/nonexistent/ca.pem'})
        daemon.write_config()
        ran = subprocess.run([harness.program('outboxd'), '--config', str(daemon.config), '--check-config'], capture_output=True, text=True,
                             check=False, timeout=20 * harness.SLOW)
        self.assertEqual(ran.returncode, 2)
        self.assertIn('targets.ca_file: cannot read /nonexistent/ca.pem', ran.stdout + ran.stderr)


if __name__ == '__main__':
    harness.main()
