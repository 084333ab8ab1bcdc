"""The store goes away, stands, is full, is loading: no 202 without durability, and nothing that got one is lost."""
import contextlib
import http.client
import signal
import socket
import threading
import time

import harness
from harness import SystemTest, wait_until


class Load:
    """Clients that send without patience and note every answer with its time."""

    def __init__(self, daemon, kind='note', threads=6):
        self.daemon, self.kind = daemon, kind
        self.answers = []  # (time of the answer, status, id)
        self.ended = threading.Event()
        self.threads = [threading.Thread(target=self.send, args=(part,)) for part in range(threads)]
        for thread in self.threads:
            thread.start()

    def send(self, part):
        n = 0
        while not self.ended.is_set():
            n += 1
            with contextlib.suppress(OSError, http.client.HTTPException):
                answer = self.daemon.accept(f's{part}-{n}', kind=self.kind, payload={'n': n, 'part': part})
                entry = answer.json().get('id') if answer.status == 202 else answer.code
                self.answers.append((time.monotonic(), answer.status, entry, answer.headers.get('retry-after')))
                if answer.status != 202:
                    self.ended.wait(0.02)

    def end(self):
        self.ended.set()
        for thread in self.threads:
            thread.join()

    def accepted(self):
        return [a[2] for a in self.answers if a[1] == 202]

    def refused_since(self, since):
        return [a for a in self.answers if a[0] > since and a[1] != 202]


class Outage(SystemTest):
    limit = 120

    def setUp(self):
        self.the_target = self.target()

    def on_own_store(self, *options, **settings):
        store = self.own_store(*options)
        return store, self.daemon(self.the_target, store={'url': store.url}, **settings)

    def test_a_store_killed_under_load_and_back_after_5_seconds_loses_nothing_that_was_accepted(self):
        store, daemon = self.on_own_store()
        load = Load(daemon, 'pay')
        wait_until(lambda: len(load.accepted()) > 100, 20, 'accepts')
        store.kill()
        gone = time.monotonic()
        wait_until(lambda: load.refused_since(gone), 10, 'a refusal')
        self.assertNotEqual(daemon.get('/readyz').status, 200)
        self.assertEqual(daemon.get('/healthz').status, 200)
        self.assertIn(b'\noutbox_store_up 0\n', daemon.get('/metrics').body)
        wait_until(lambda: time.monotonic() - gone > 5, 10, 'five seconds of outage')
        meanwhile = [a for a in load.answers if a[0] > gone + 1]
        self.assertEqual({a[1] for a in meanwhile}, {503}, 'something else than 503 while the store was away')
        self.assertEqual({a[2] for a in meanwhile}, {'store_unavailable'})
        self.assertTrue(all(a[3] for a in meanwhile), 'a 503 without Retry-After')
        store.start()
        back = time.monotonic()
        wait_until(lambda: [a for a in load.answers if a[0] > back and a[1] == 202], 20, 'accepts to go on')
        load.end()
        daemon.wait_ready()
        self.assertEqual(daemon.metric('outbox_store_up'), 1)
        self.assertDelivered(self.the_target, load.accepted(), timeout=40)
        for entry in load.accepted():
            self.assertEqual(len(self.the_target.stored(entry)), 1)
        twice = [r.key for r in self.the_target.posts() if len(self.the_target.posts(key=r.key)) > 1]
        self.assertFalse(twice, 'posted again although the target had it')

    def test_outcomes_that_could_not_be_written_are_written_when_the_store_is_back(self):
        store, daemon = self.on_own_store()
        self.the_target.script(path='/fires', hold=True)
        ids = [daemon.accept_ok(f's{n}', kind='fire', payload={'n': n}) for n in range(20)]
        wait_until(lambda: len(self.the_target.posts()) == 20, 10, 'requests in flight')
        store.kill()
        self.the_target.clear_script()
        self.the_target.release()
        wait_until(lambda: all(r.answered for r in self.the_target.posts()), 10, 'answers')
        store.start()
        for entry in ids:
            daemon.wait_status(entry, 'sent', timeout=20)
        self.assertDelivered(self.the_target, ids, times=1)

    def test_the_embedded_store_is_started_again_and_nothing_is_lost(self):
        daemon = self.daemon(self.the_target)
        load = Load(daemon)
        for _ in range(3):
            before = len(load.accepted())
            wait_until(lambda: len(load.accepted()) > before + 50, 30, 'accepts')
            daemon.kill('store')
        before = len(load.accepted())
        wait_until(lambda: len(load.accepted()) > before + 10, 30, 'accepts to go on')
        load.end()
        self.assertEqual(len(daemon.pids('store')), 1)
        self.assertDelivered(self.the_target, load.accepted(), timeout=40)

    def test_while_the_store_stands_nobody_gets_a_202(self):
        store, daemon = self.on_own_store()
        first = daemon.accept_ok(kind='note', payload={})
        self.assertDelivered(self.the_target, [first])
        store.process.send_signal(signal.SIGSTOP)
        answer = daemon.accept(kind='note', payload={}, clientMessageID='m')
        self.assertProblem(answer, 503, 'store_unavailable')
        self.assertTrue(answer.headers.get('retry-after'))
        store.process.send_signal(signal.SIGCONT)
        entry = daemon.accept_patiently(kind='note', payload={}, clientMessageID='m')
        self.assertDelivered(self.the_target, [entry], times=1)
        self.assertEqual(len(self.the_target.posts()), 2, 'accepted twice')

    def test_a_full_store_refuses_and_drains(self):
        store, daemon = self.on_own_store()
        self.the_target.script(path='/notes', hold=True, times=5)
        ids = [daemon.accept_ok(f's{n}', kind='note', payload={'n': n}) for n in range(5)]
        wait_until(lambda: len(self.the_target.posts()) == 5, 10, 'requests in flight')
        with contextlib.closing(harness.Valkey(store.path)) as valkey:
            valkey('CONFIG', 'SET', 'maxmemory', '1')
            self.assertProblem(daemon.accept('x', kind='note', payload={}), 503, 'store_unavailable')
            self.the_target.release()
            for entry in ids:
                daemon.wait_status(entry, 'sent')
            valkey('CONFIG', 'SET', 'maxmemory', '0')
        self.assertDelivered(self.the_target, [daemon.accept_patiently(session='x', kind='note', payload={})])

    def test_scripts_that_the_store_forgot_are_loaded_again(self):
        store, daemon = self.on_own_store()
        with contextlib.closing(harness.Valkey(store.path)) as valkey:
            valkey('SCRIPT', 'FLUSH')
        self.assertDelivered(self.the_target, [daemon.accept_ok(kind='pay', payload={})], times=1)

    def test_a_store_cut_off_by_client_kill_is_connected_to_again(self):
        store, daemon = self.on_own_store()
        for n in range(5):
            with contextlib.closing(harness.Valkey(store.path)) as valkey:
                valkey('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
            entry = daemon.accept_patiently(session=f's{n}', clientMessageID='m', kind='pay', payload={})
            self.assertDelivered(self.the_target, [entry], times=1)


class SlowNetwork:
    """TCP between outboxd and its store. After cut() everybody is connected anew at once, and what the old connections had
    sent reaches the store `late` seconds afterwards: as segments do that a network held back."""

    def __init__(self, path, late):
        self.path, self.late = str(path), late
        self.listener = socket.create_server(('127.0.0.1', 0), backlog=100)
        self.port = self.listener.getsockname()[1]
        self.passing = threading.Event()
        self.passing.set()
        self.clients, self.late_bytes = set(), 0
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                upstream = socket.socket(socket.AF_UNIX)
                upstream.connect(self.path)
                self.clients.add(client)
                threading.Thread(target=self.to_store, args=(client, upstream), daemon=True).start()
                threading.Thread(target=self.to_client, args=(client, upstream), daemon=True).start()

    def to_store(self, client, upstream):
        with contextlib.suppress(OSError), upstream, client:
            while data := self.receive(client):
                if client not in self.clients or not self.passing.is_set():
                    self.passing.wait()
                    time.sleep(self.late)
                    self.late_bytes += len(data)
                upstream.sendall(data)
            time.sleep(self.late)

    @staticmethod
    def receive(client):
        with contextlib.suppress(OSError):
            return client.recv(1 << 20)
        return b''

    @staticmethod
    def to_client(client, upstream):
        with contextlib.suppress(OSError):
            while data := upstream.recv(1 << 20):
                with contextlib.suppress(OSError):
                    client.sendall(data)
            client.shutdown(socket.SHUT_RDWR)

    def cut(self, after):
        """What is sent for `after` seconds is held back; then all connections end for those who have them."""
        self.passing.clear()
        time.sleep(after)
        old, self.clients = self.clients, set()
        self.passing.set()
        for client in old:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)


class LateCalls(SystemTest):
    def test_claims_that_reach_the_store_after_their_connection_was_given_up_leave_no_session_locked(self):
        target = self.target()
        store = self.own_store()
        network = SlowNetwork(store.path, late=1.0)
        self.addCleanup(network.listener.close)
        daemon = self.daemon(target, store={'url': f'valkey://127.0.0.1:{network.port}'})
        load = Load(daemon, 'fire')
        wait_until(lambda: len(load.accepted()) > 100, 20, 'accepts')
        network.cut(after=0.3)
        before = len(load.accepted())
        wait_until(lambda: len(load.accepted()) > before + 50 and network.late_bytes > 0, 20, 'accepts to go on')
        load.end()
        daemon.wait_ready()
        # Given back unsent: neither stuck until the lock's end nor "outcome unknown".
        self.assertDelivered(target, load.accepted(), timeout=20, times=1)


class Preflight(SystemTest):
    def refused(self, *needles, options=(), **settings):
        store = self.own_store(*options)
        daemon = self.daemon(None, start=False, store={'url': store.url}, **settings)
        process = daemon.spawn()
        self.assertEqual(process.wait(20), 1)
        for needle in needles:
            self.assertIn(needle, daemon.log())

    def test_a_store_without_aof_is_refused_with_the_command_that_mends_it(self):
        self.refused('appendonly', 'CONFIG SET', options=('--appendonly', 'no'))

    def test_a_store_that_syncs_less_than_promised_is_refused(self):
        self.refused('appendfsync', 'CONFIG SET', options=('--appendfsync', 'everysec'))

    def test_a_store_that_evicts_is_refused(self):
        self.refused('maxmemory-policy', 'noeviction', options=('--maxmemory-policy', 'allkeys-lru'))

    def test_everysec_is_taken_when_the_configuration_says_so_and_a_202_says_it(self):
        store = self.own_store('--appendfsync', 'everysec')
        daemon = self.daemon(self.target(), store={'url': store.url}, durability='everysec')
        answer = daemon.accept(kind='note', payload={})
        self.assertEqual((answer.status, answer.headers.get('outbox-durability')), (202, 'everysec'))
        self.assertIn('everysec', daemon.get('/readyz').body.decode())


if __name__ == '__main__':
    harness.main()
