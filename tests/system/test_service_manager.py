"""What a service manager hears and gives: sd_notify, the watchdog, socket activation. The manager here is this test: a real
datagram socket, real listening sockets; systemd itself runs outboxd in tests/package."""
import contextlib
import os
import pathlib
import signal
import socket
import tempfile

import harness
from harness import Client, SystemTest, wait_until


class NotifySocket:
    """$NOTIFY_SOCKET: collects what is told, in order."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix='obn-')
        self.path = str(pathlib.Path(self.folder.name) / 'notify')
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.socket.bind(self.path)
        self.told = []

    def hear(self):
        """All datagrams so far, each a dictionary."""
        while True:
            try:
                text = self.socket.recv(4096).decode()
            except BlockingIOError:
                return self.told
            self.told.append(dict(line.split('=', 1) for line in text.splitlines()))

    def all(self, name):
        return [datagram[name] for datagram in self.hear() if name in datagram]

    def wait_status(self, beginning):
        return wait_until(lambda: next((s for s in self.all('STATUS') if s.startswith(beginning)), None), 20,
                          lambda: f'STATUS={beginning}…, told: {self.told}')

    def close(self):
        self.socket.close()
        self.folder.cleanup()


class ServiceManagerTest(SystemTest):
    limit = 60

    def managed(self, *arguments, launcher=(), fds=(), **settings):
        """A daemon that was not started yet, and what it tells."""
        notify = NotifySocket()
        self.addCleanup(notify.close)
        daemon = self.daemon(*arguments, start=False, environment={'NOTIFY_SOCKET': notify.path}, **settings)
        daemon.launcher = list(launcher)
        daemon.pass_fds = fds
        return daemon, notify

    def passing(self, *sockets):
        """How a manager starts a service with sockets: from descriptor 3 up, for the process of this very ID."""
        moves = ' '.join(f'{3 + i}<&{s.fileno()}' for i, s in enumerate(sockets))
        names = ':'.join(['api.socket'] * len(sockets))
        script = f'exec {moves}; LISTEN_PID=$$ LISTEN_FDS={len(sockets)} LISTEN_FDNAMES={names} exec "$@"'
        return {'launcher': ['sh', '-c', script, 'sh'], 'fds': tuple(s.fileno() for s in sockets)}

    def listener(self, address='127.0.0.1'):
        listener = socket.socket()
        self.addCleanup(listener.close)
        listener.bind((address, 0))
        listener.listen(64)
        os.set_inheritable(listener.fileno(), True)
        return listener


class Notify(ServiceManagerTest):

    def test_it_tells_when_it_serves_what_it_does_and_when_it_stops(self):
        target = self.target()
        target.script(hold=True)
        daemon, notify = self.managed(target)
        daemon.environment.update(WATCHDOG_USEC='200000', WATCHDOG_PID='1')  # another process: none of its business
        daemon.start()
        wait_until(lambda: notify.all('READY') == ['1'], 10, lambda: f'READY, told: {notify.told}')
        self.assertEqual(daemon.get('/readyz').status, 200)
        ids = [daemon.accept_ok(f's{n}', kind='note', payload={'n': n}) for n in range(3)]
        ids += [daemon.accept_ok('s0', kind='note', payload={'n': n}) for n in range(2)]
        notify.wait_status('serving: 2 workers, 3 in flight, 2 waiting')
        daemon.process.send_signal(signal.SIGTERM)
        wait_until(lambda: notify.all('STOPPING') == ['1'], 10, 'STOPPING')
        notify.wait_status('draining: 3 deliveries left')
        target.release()
        self.assertEqual(daemon.process.wait(20 * harness.SLOW), 0)
        self.assertEqual(notify.all('READY'), ['1'])
        self.assertEqual(notify.all('WATCHDOG'), [])

    def test_a_manager_that_does_not_read_holds_nothing_up_and_gets_the_state_later(self):
        daemon, notify = self.managed(self.target())
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as flood:
            with contextlib.suppress(BlockingIOError):
                while True:
                    flood.sendto(b'FULL=1', notify.path)
        daemon.start()
        self.assertNotIn('READY', {name for datagram in notify.told for name in datagram})
        wait_until(lambda: notify.all('READY') == ['1'], 10, 'READY')

    def test_a_store_that_is_away_stands_in_the_status(self):
        store = self.own_store()
        daemon, notify = self.managed(self.target(), store={'url': store.url})
        daemon.start()
        notify.wait_status('serving: 2 workers')
        store.kill()
        notify.wait_status('the store is away since 20')
        told = len(notify.hear())
        store.start()
        wait_until(lambda: any(d.get('STATUS', '').startswith('serving') for d in notify.hear()[told:]), 20, 'serving again')

    def test_the_watchdog_hears_from_the_loop_if_it_asked_this_process(self):
        daemon, notify = self.managed(self.target(), launcher=['sh', '-c', 'WATCHDOG_PID=$$ exec "$@"', 'sh'])
        daemon.environment['WATCHDOG_USEC'] = '200000'
        daemon.start()
        wait_until(lambda: len(notify.all('WATCHDOG')) >= 4, 10, 'four signs of life')
        os.kill(daemon.process.pid, signal.SIGSTOP)
        try:
            notify.hear()
            before = len(notify.all('WATCHDOG'))
            wait_until(lambda: harness.proc_stat(daemon.process.pid)[1] == 'T', 5, 'the supervisor to stand still')
            self.assertLessEqual(len(notify.all('WATCHDOG')), before + 1)
        finally:
            os.kill(daemon.process.pid, signal.SIGCONT)
        wait_until(lambda: len(notify.all('WATCHDOG')) > before + 1, 10, 'life again')


class SocketActivation(ServiceManagerTest):

    def assertServed(self, sockets, unused):
        for served in sockets:
            with socket.create_connection(served.getsockname()[:2], timeout=20 * harness.SLOW) as client:
                client.sendall(harness.raw_request('GET', '/readyz'))
                self.assertEqual(harness.read_answer(client).status, 200)
        with socket.socket() as probe:
            self.assertNotEqual(probe.connect_ex(('127.0.0.1', unused)), 0, '`listen` is served too')

    def test_sockets_passed_in_replace_those_of_listen_also_after_an_upgrade(self):
        sockets = [self.listener(), self.listener()]
        daemon, notify = self.managed(self.target(), **self.passing(*sockets))
        unused, daemon.port = daemon.port, sockets[0].getsockname()[1]
        daemon.start()
        wait_until(lambda: notify.all('READY'), 10, 'READY')
        self.assertServed(sockets, unused)
        self.assertIn('instead of `listen`', daemon.log())
        self.assertIn(f'127.0.0.1:{daemon.port}', daemon.log())
        old = daemon.pid('api')
        daemon.process.send_signal(signal.SIGUSR2)
        wait_until(lambda: len(notify.all('READY')) == 2, 20, lambda: f'READY again, told: {notify.told}')
        self.assertTrue(all(moment.isdigit() for moment in notify.all('MONOTONIC_USEC')))
        self.assertEqual(notify.all('RELOADING'), ['1'])
        wait_until(lambda: daemon.pids('api') and old not in daemon.pids('api'), 15, 'the old API to go')
        self.assertServed(sockets, unused)

    def test_a_supervisor_that_restarts_gets_the_same_sockets_and_nobody_is_refused_meanwhile(self):
        listener = self.listener()
        daemon, _ = self.managed(self.target(), **self.passing(listener))
        daemon.port = listener.getsockname()[1]
        daemon.start()
        for end in (lambda: self.assertEqual(daemon.stop(), 0), daemon.kill):
            end()
            waiting = Client(daemon.port)
            self.addCleanup(waiting.close)
            waiting.connection.connect()
            daemon.start()
            self.assertEqual(waiting.call('GET', '/healthz').status, 200)

    def test_a_socket_that_must_not_become_the_api_ends_the_start_with_a_reason(self):
        datagram = socket.socket(type=socket.SOCK_DGRAM)
        self.addCleanup(datagram.close)
        for passed, reason in ((self.listener('0.0.0.0'), 'without a token'), (datagram, 'no listening stream socket')):
            with self.subTest(reason):
                daemon, _ = self.managed(self.target(), **self.passing(passed))
                self.assertEqual(daemon.spawn().wait(20 * harness.SLOW), 1)
                self.assertIn(reason, daemon.log())
                self.assertIn('.socket unit', daemon.log())


if __name__ == '__main__':
    harness.main()
