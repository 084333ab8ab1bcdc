"""Any bytes written over the shared memory while everything runs: no process ends or stands, no message is lost or goes
astray. A wrong byte may cost latency or a wrong figure, nothing else (contract §9)."""
import mmap
import os
import random
import threading
import time

import harness
from harness import SystemTest, wait_until


def patterns(dice, size):
    """(name, function that writes over the map)."""
    def fill(byte):
        def act(view):
            view[:] = bytes([byte]) * size
        return act

    def noise(view):
        view[:] = dice.randbytes(size)

    def words(view):
        extremes = [b'\xff' * 8, b'\x00' * 8, (1 << 63).to_bytes(8, 'little'), (0x7fffffff).to_bytes(8, 'little'),
                    b'\x01' + b'\x00' * 7]
        for _ in range(2000):
            at = dice.randrange(size // 8) * 8
            view[at:at + 8] = dice.choice(extremes)

    def head(view):
        view[:4096] = dice.randbytes(4096)

    def shuffle(view):
        at, to = dice.randrange(size // 2), dice.randrange(size // 2)
        length = size // 4
        view[to:to + length] = bytes(view[at:at + length])

    def odd_sequences(view):
        for at in range(0, size - 8, 64):
            view[at] = 1

    return [('zeros', fill(0)), ('ones', fill(255)), ('0x7f', fill(127)), ('noise', noise), ('words', words), ('head', head),
            ('shuffle', shuffle), ('odd sequences', odd_sequences)]


class Garbage(SystemTest):
    limit = 150

    def test_garbage_in_the_shared_memory_harms_nothing_but_latency(self):
        seed = random.SystemRandom().randrange(1 << 32)
        print(f'seed {seed}')
        dice = random.Random(seed)
        target = self.target()
        target.script({'method': 'POST', 'path': '*', 'delay': 0.01})
        daemon = self.daemon(target, watchdog='3s')
        segments = daemon.segments()
        self.assertTrue(segments, 'no segment found: this test tells nothing')
        daemon.wait_workers()
        pids = daemon.processes()
        accepted, ended = [], threading.Event()

        def send(part):
            n = 0
            while not ended.is_set():
                n += 1
                accepted.append(daemon.accept_patiently(session=f's{part}-{n % 7}', clientMessageID=f'{part}-{n}',
                                                        kind='pay' if n % 2 else 'note', payload={'n': n, 'part': part}))
        threads = [threading.Thread(target=send, args=(part,)) for part in range(4)]
        for thread in threads:
            thread.start()
        try:
            for path in segments:
                fd = os.open(path, os.O_RDWR)
                size = os.fstat(fd).st_size
                with mmap.mmap(fd, size) as view:
                    os.close(fd)
                    for name, write in patterns(dice, size) + patterns(dice, size):
                        with self.subTest(pattern=name):
                            for _ in range(5):
                                write(view)
                                seen = len(accepted)
                                wait_until(lambda: len(accepted) > seen + 10, 20, 'accepts going on')
                            delivered = len(target.stored())
                            wait_until(lambda: len(target.stored()) > delivered, 20, 'deliveries going on')
                            self.assertEqual(daemon.get('/healthz').status, 200)
                            self.assertIn(daemon.get('/metrics').status, (200, 503))
                            daemon.ctl('top', '--once', '--json', '--state-dir', str(daemon.state))
                            self.assertEqual(daemon.processes(), pids, 'a process ended')
        finally:
            ended.set()
            for thread in threads:
                thread.join()
        self.assertDelivered(target, accepted, timeout=60)
        self.assertEqual({r.key for r in target.stored()}, set(accepted))
        twice = [r.key for r in target.posts('/payments') if len(target.posts('/payments', r.key)) > 1]
        self.assertFalse(twice, 'misdelivered')
        # Nothing was claimed by a hint that nobody sent: the watchdog would have ended a process that stands.
        wait_until(lambda: not [s for s in {r.key for r in target.posts()} if s not in set(accepted)], 5)
        self.assertEqual(daemon.processes(), pids, 'a process ended')

    def test_a_segment_that_is_cut_short_ends_no_process(self):
        target = self.target()
        daemon = self.daemon(target, watchdog='3s')
        segments = daemon.segments()
        self.assertTrue(segments, 'no segment found: this test tells nothing')
        daemon.wait_workers()
        pids = daemon.processes()
        for part in (0, 4096, 0.5):
            for path in segments:
                size = path.stat().st_size
                os.truncate(path, int(size * part) if part == 0.5 else part)
            ids = [daemon.accept_patiently(session=f's{n}', clientMessageID=f'{part}-{n}', kind='pay', payload={'n': n})
                   for n in range(20)]
            self.assertDelivered(target, ids, times=1)
            wait_until(lambda: all(path.stat().st_size == size for path in segments), 10, 'the segment to be whole again')
            self.assertEqual(daemon.processes(), pids, 'a process ended')
            wait_until(lambda: daemon.ctl('top', '--once', '--json', '--state-dir', str(daemon.state)).returncode == 0, 10,
                       'the segment to be readable')
        # Whoever comes new finds a segment, too, and those that beat there are not taken for hanging.
        daemon.kill('worker')
        self.assertDelivered(target, [daemon.accept_ok(kind='pay', payload={})], times=1)
        survivors = {pid for pid, comm in pids.items() if comm != 'outboxd-worker'}
        started = time.monotonic()
        wait_until(lambda: time.monotonic() - started > 4, 10, 'the watchdog to have had its time')
        self.assertLessEqual(survivors, set(daemon.processes()), 'a process ended')

    def test_a_worker_that_dies_after_garbage_is_recovered_all_the_same(self):
        target = self.target()
        target.script(path='/payments', store=True, hold=True, times=30)
        daemon = self.daemon(target, workers=1)
        ids = [daemon.accept_ok(f's{n}', kind='pay', payload={'n': n}) for n in range(30)]
        wait_until(lambda: len(target.posts()) == 30, 10, 'requests in flight')
        for path in daemon.segments():
            fd = os.open(path, os.O_RDWR)
            size = os.fstat(fd).st_size
            os.pwrite(fd, os.urandom(size), 0)
            os.close(fd)
        daemon.kill('worker')
        for entry in ids:
            daemon.wait_status(entry, 'sent', timeout=20)
        self.assertDelivered(target, ids, times=1)


if __name__ == '__main__':
    harness.main()
