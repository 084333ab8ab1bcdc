"""TLS on the listener: what it takes, what it refuses, clients that vanish in the middle, new certificates."""
import contextlib
import http.client
import os
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time

import harness
from certificates import Authority
from harness import SystemTest, in_parallel, raw_request, read_answer, wait_until
from support_events import Stream

ENTRY = {'kind': 'note', 'payload': {'a': 1}}
ACCEPT = '/v1/workspaces/w/sessions/s/entries'


class TlsTest(SystemTest):
    limit = 120

    def secured(self, *arguments, start=True, **settings):
        """A daemon with a certificate of an authority of its own: .authority."""
        daemon = self.daemon(*arguments, start=False, **settings)
        daemon.authority = Authority(daemon.folder / 'authority')
        daemon.certificate, daemon.key = daemon.authority.issue('server')
        daemon.settings['tls'] = {'certificate': str(daemon.certificate), 'key': str(daemon.key)}
        harness.tls_contexts[daemon.port] = daemon.authority.context()
        if start:
            daemon.start()
        return daemon

    def reload(self, daemon, says='new configuration in force'):
        count = daemon.log().count(says)
        daemon.process.send_signal(signal.SIGHUP)
        wait_until(lambda: daemon.log().count(says) > count, 30, lambda: f'{says!r}: {daemon.log()[-2000:]}')

    def tcp(self, daemon):
        sock = socket.create_connection(('127.0.0.1', daemon.port), timeout=20 * harness.SLOW)
        self.addCleanup(sock.close)
        return sock

    def hello(self, context):
        """A client's first message, and nothing else."""
        into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
        with contextlib.suppress(ssl.SSLWantReadError):
            context.wrap_bio(into, out, server_hostname='127.0.0.1').do_handshake()
        return out.read()

    def cpu_seconds(self, pid):
        with open(f'/proc/{pid}/stat', encoding='ascii') as file:
            fields = file.read().rpartition(') ')[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


class SharedDaemon(TlsTest):
    """One daemon for all tests of a class."""
    the_daemon = None

    @classmethod
    def setUpClass(cls):
        cls.the_target = harness.Target().start()

    def setUp(self):
        if not self.the_daemon:
            type(self).the_daemon = self.secured(self.the_target, session_cap=2000, http={'header_timeout': '3s', 'body_timeout': '1s',
                                                                                          'event_heartbeat': '200ms'})

    def end(self, daemon):
        if daemon is not self.the_daemon:
            super().end(daemon)

    @classmethod
    def tearDownClass(cls):
        cls.the_target.stop()
        if cls.the_daemon:
            log = cls.the_daemon.log()
            cls.the_daemon.segments()
            cls.the_daemon.close()
            report = harness.SANITIZER.search(log)
            if report:
                raise AssertionError('a sanitizer reported:\n' + log[max(0, report.start() - 200):report.start() + 4000])


class Handshakes(SharedDaemon):
    def test_versions_and_ciphers_are_modern_ones_and_the_protocol_is_http_1_1(self):
        daemon = self.the_daemon
        context = daemon.authority.context()
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context.minimum_version = context.maximum_version = version
            with context.wrap_socket(self.tcp(daemon), server_hostname='127.0.0.1') as sock:
                self.assertEqual(sock.version(), {ssl.TLSVersion.TLSv1_2: 'TLSv1.2', ssl.TLSVersion.TLSv1_3: 'TLSv1.3'}[version])
                self.assertRegex(sock.cipher()[0], 'GCM|POLY1305')
        refused = (['-tls1_1', '-cipher', 'ALL:@SECLEVEL=0'], ['-tls1', '-cipher', 'ALL:@SECLEVEL=0'],
                   ['-tls1_2', '-cipher', 'ECDHE-ECDSA-AES128-SHA'], ['-tls1_2', '-cipher', 'AES128-GCM-SHA256'], ['-alpn', 'h2'])
        for options in refused:
            result = subprocess.run(['openssl', 's_client', '-connect', f'127.0.0.1:{daemon.port}', *options], input=b'',
                                    capture_output=True, timeout=20 * harness.SLOW, check=False)
            self.assertIn(b'alert', result.stdout + result.stderr, options)
        context = daemon.authority.context()
        context.set_alpn_protocols(['h2', 'http/1.1'])
        with context.wrap_socket(self.tcp(daemon), server_hostname='127.0.0.1') as sock:
            self.assertEqual(sock.selected_alpn_protocol(), 'http/1.1')

    def test_clients_that_stop_in_the_middle_of_a_handshake_cost_nothing_and_are_cut(self):
        """The HTTP library alone spins while a handshake waits for its client."""
        daemon = self.the_daemon
        api, hello = daemon.pid('api'), self.hello(daemon.authority.context())
        waiting = [self.tcp(daemon) for _ in range(60)]
        for n, sock in enumerate(waiting):
            sock.sendall((hello, hello[:40], b'', b'\x16\x03\x01')[n % 4])
        self.assertEqual(daemon.get('/healthz').status, 200)
        before = self.cpu_seconds(api)
        time.sleep(1.5)
        self.assertLess(self.cpu_seconds(api) - before, 0.75, 'it is busy with clients that say nothing')
        for sock in waiting:
            sock.settimeout(15 * harness.SLOW)
            with contextlib.suppress(ConnectionError):
                while sock.recv(4096):
                    pass
        self.assertGreater(daemon.metric('outbox_http_limited_total', limit='header_timeout'), 0)

    def test_bytes_that_are_no_tls_harm_nobody(self):
        daemon = self.the_daemon
        hello = self.hello(daemon.authority.context())
        for data in (raw_request('GET', '/readyz'), b'\x00' * 300, b'\x16\x03\x01\xff\xff' + b'x' * 5000, hello[:-20] + b'y' * 20,
                     b'\x15\x03\x03\x00\x02\x01\x00' * 50, hello + b'\x17\x03\x03\x00\x20' + b'z' * 32):
            with self.subTest(data=data[:10]):
                sock = self.tcp(daemon)
                with contextlib.suppress(ConnectionError):
                    sock.sendall(data)
                    sock.shutdown(socket.SHUT_WR)
                    while sock.recv(65536):
                        pass
        self.assertEqual(daemon.accept('s', ENTRY).status, 202)

    def test_client_certificates_are_demanded_where_configured_beside_whatever_else(self):
        daemon = self.secured(start=False)
        clients, others = Authority(daemon.folder / 'clients'), Authority(daemon.folder / 'others', 'another authority')
        daemon.settings['tls']['client_ca'] = str(clients.ca)
        shown = clients.issue('client', purpose='clientAuth')
        harness.tls_contexts[daemon.port] = daemon.authority.context(*shown)
        daemon.start()
        self.assertEqual(daemon.accept('s', ENTRY).status, 202)
        for certificate in (None, others.issue('stranger', purpose='clientAuth'), clients.issue('server-only', purpose='serverAuth'),
                            clients.issue('late', days=-1, purpose='clientAuth')):
            context = daemon.authority.context(*certificate) if certificate else daemon.authority.context()
            with self.subTest(certificate=certificate and certificate[0].name):
                with self.assertRaises((ssl.SSLError, ConnectionError)):
                    with context.wrap_socket(self.tcp(daemon), server_hostname='127.0.0.1') as sock:
                        sock.sendall(raw_request('GET', '/healthz'))
                        if not sock.recv(1000):
                            raise ConnectionError
        self.assertEqual(daemon.get('/healthz').status, 200)


class Traffic(SharedDaemon):
    def test_messages_large_ones_too_and_kept_connections(self):
        target, daemon = self.the_target, self.the_daemon
        ids = [daemon.accept_ok(f's{n}', kind='note', payload={'n': n}) for n in range(20)]
        large = daemon.accept('big', {'kind': 'note', 'payload': {'x': 'y' * 90000}})
        self.assertEqual(large.status, 202, large)
        ids.append(large.json()['id'])

        def many(n):
            client = harness.Client(daemon.port)
            try:
                return [client.call('POST', f'/v1/workspaces/w/sessions/p{n}/entries', {'kind': 'note', 'payload': {'i': i}}).json()['id']
                        for i in range(10)]
            finally:
                client.close()
        for found in in_parallel([lambda n=n: many(n) for n in range(16)], 16):
            ids += found
        self.assertDelivered(target, ids, times=1)
        with daemon.socket() as sock:  # a head in single bytes: each in a record of its own
            for byte in raw_request('GET', '/healthz'):
                sock.sendall(bytes([byte]))
            self.assertEqual(read_answer(sock).status, 200)
        with daemon.socket() as sock:  # several requests in one record
            sock.sendall(raw_request('GET', '/healthz') * 5)
            stream = sock.makefile('rb')
            for _ in range(5):
                self.assertIn(b' 200 ', stream.readline())
                length = 0
                for line in iter(stream.readline, b'\r\n'):
                    length = int(line.split(b':')[1]) if line.lower().startswith(b'content-length') else length
                stream.read(length)

    def test_a_message_is_accepted_although_its_client_is_gone(self):
        target, daemon = self.the_target, self.the_daemon
        descriptors = f'/proc/{daemon.pid("api")}/fd'
        before, delivered = len(os.listdir(descriptors)), len(target.posts())
        for n in range(10):
            sock = daemon.socket()
            sock.sendall(raw_request('POST', ACCEPT.replace('/s/', f'/gone{n}/'), b'{"kind":"note","payload":{"n":%d}}' % n))
            if n % 2:  # a reset
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
            sock.close()
        wait_until(lambda: len(target.posts()) == delivered + 10, 20, lambda: f'{len(target.posts()) - delivered} of 10')
        wait_until(lambda: len(os.listdir(descriptors)) <= before + 2, 10, 'their places to be free')

    def test_a_slow_client_is_told_why_within_its_tls(self):
        daemon = self.the_daemon
        for data, limit in ((b'GET /readyz HTTP/1.1\r\nHost: localhost\r\nX: ', 'header_timeout'),
                            (raw_request('POST', ACCEPT, b'', [('Content-Length', '100'), ('Content-Type', 'application/json')]) + b'{', 'body_timeout')):
            with daemon.socket() as sock:
                sock.sendall(data)
                self.assertProblem(read_answer(sock), 408, 'request_timeout')
            self.assertGreater(daemon.metric('outbox_http_limited_total', limit=limit), 0)

    def test_outboxctl_speaks_tls_and_believes_only_whom_it_is_told_to(self):
        daemon = self.the_daemon

        def ask(*arguments, **environment):
            kept = {name: value for name, value in os.environ.items() if not name.startswith('OUTBOXCTL')}
            return subprocess.run([harness.program('outboxctl'), '--server', f'https://127.0.0.1:{daemon.port}', *arguments], cwd=daemon.folder,
                                  capture_output=True, text=True, timeout=30 * harness.SLOW, env={**kept, **environment}, check=False)
        self.assertEqual(ask('send', 'w', 'ctl', 'x', '--ca', str(daemon.authority.ca)).returncode, 0)
        self.assertEqual(ask('workspaces', OUTBOXCTL_CA_FILE=str(daemon.authority.ca)).returncode, 0)
        done = ask('workspaces')
        self.assertEqual(done.returncode, 5, done)
        self.assertRegex(done.stderr, '(?i)certificate')
        other = Authority(daemon.folder / 'other')
        self.assertEqual(ask('workspaces', '--ca', str(other.ca)).returncode, 5)

    def test_event_streams_run_over_tls_and_a_large_list_goes_to_a_slow_reader(self):
        daemon = self.the_daemon
        stream = Stream(daemon.port, '/v1/workspaces/w/events')
        self.addCleanup(stream.close)
        stream.wait(lambda events: len(events) >= 2)  # heartbeats alone
        entry = daemon.accept_ok('s', kind='note', payload={})
        stream.wait(lambda events: any(event.data.get('entryID') == entry and event.data['type'] == 'sent' for event in events))
        daemon.call('POST', '/v1/workspaces/paused/pause')
        for n in range(60):
            daemon.accept_ok('list', workspace='paused', kind='note', payload={'n': n, 'x': 'y' * 20000})
        with daemon.socket() as sock:
            sock.sendall(raw_request('GET', '/v1/workspaces/paused/sessions/list/entries'))
            time.sleep(0.5)  # more than fits into the kernel's buffers waits for us
            answer = read_answer(sock)
        self.assertEqual(len(answer.json()['entries']), 60)


class Certificates(TlsTest):
    def served_by(self, daemon):
        with contextlib.closing(daemon.socket()) as sock:
            return sock.getpeercert()['serialNumber']

    def test_a_new_certificate_serves_after_a_reload_and_cuts_no_connection(self):
        target = self.target()
        target.script(hold=True, path='/fires')
        daemon = self.secured(target)
        first = self.served_by(daemon)
        kept = harness.Client(daemon.port)
        self.addCleanup(kept.close)
        self.assertEqual(kept.call('GET', '/healthz').status, 200)
        certificate, key = daemon.authority.issue('server')  # the same files, anew
        self.assertEqual((certificate, key), (daemon.certificate, daemon.key))
        self.assertEqual(self.served_by(daemon), first, 'nothing changes before the reload')
        failures, stop = [], []

        def load():
            while not stop:
                try:
                    with contextlib.closing(harness.Client(daemon.port)) as client:
                        answer = client.call('POST', '/v1/workspaces/w/sessions/load/entries', ENTRY)
                        if answer.status not in (202, 429, 503):  # 503: on a slow machine the store's answer is late
                            failures.append(answer)
                except (OSError, http.client.HTTPException) as error:
                    failures.append(error)
        threads = [threading.Thread(target=load) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            self.reload(daemon)
            self.assertEqual(kept.call('GET', '/healthz').status, 200, 'on the old connection')
        finally:
            stop.append(True)
            for thread in threads:
                thread.join()
        self.assertEqual(failures, [])
        wait_until(lambda: self.served_by(daemon) != first, 10, 'the new certificate')

    def test_what_is_wrong_with_certificate_or_key_is_told_and_changes_nothing(self):
        daemon = self.secured()
        first, pids = self.served_by(daemon), daemon.processes()
        good_certificate, good_key = daemon.certificate.read_bytes(), daemon.key.read_bytes()
        late, late_key = (path.read_bytes() for path in daemon.authority.issue('late', days=-1))
        for certificate, key, line in ((b'rubbish', good_key, 'holds no certificate'), (good_certificate, b'rubbish', 'holds no private key'),
                                       (good_certificate, late_key, 'is the key of another certificate'),
                                       (late, late_key, 'is not valid any more since'), (None, good_key, 'tls.certificate: cannot read')):
            if certificate is None:
                daemon.certificate.unlink()
            else:
                daemon.certificate.write_bytes(certificate)
            daemon.key.write_bytes(key)
            with self.subTest(line=line):
                self.reload(daemon, says='nothing was changed')
                self.assertIn(line, daemon.log())
                result = subprocess.run([harness.program('outboxd'), '--config', str(daemon.config), '--check-config'], capture_output=True,
                                        text=True, timeout=20 * harness.SLOW, cwd=daemon.folder, check=False)
                self.assertEqual(result.returncode, 2)
                self.assertIn(line, result.stderr)
        self.assertEqual(daemon.processes(), pids)
        self.assertEqual(self.served_by(daemon), first)

    def test_one_that_has_run_out_is_a_warning_at_a_start_since_messages_are_delivered_all_the_same(self):
        target = self.target()
        daemon = self.secured(target, start=False)
        certificate, key = daemon.authority.issue('late', days=-1)
        path = daemon.folder / 'sock'
        daemon.settings.update(tls={'certificate': str(certificate), 'key': str(key)}, listen=[f'127.0.0.1:{daemon.port}', f'unix:{path}'])
        daemon.process = daemon.spawn()
        wait_until(lambda: 'msg=ready' in daemon.log(), 20, lambda: daemon.log())
        self.assertIn('is not valid any more since', daemon.log())

        def accept():
            with socket.socket(socket.AF_UNIX) as sock:  # plain
                sock.settimeout(20 * harness.SLOW)
                sock.connect(os.fspath(path))
                sock.sendall(raw_request('POST', ACCEPT, b'{"kind":"note","payload":{},"clientMessageID":"m"}'))
                return read_answer(sock)
        answer = wait_until(lambda: (got := accept()).status != 503 and got, 20, 'the store')
        self.assertEqual(answer.status, 202)
        self.assertDelivered(target, [answer.json()['id']])
        with self.assertRaises(ssl.SSLCertVerificationError):
            daemon.socket()


if __name__ == '__main__':
    harness.main()
