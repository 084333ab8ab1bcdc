"""Ten reloads and five upgrades in a row under a steady load: nobody may notice."""
import os
import random
import signal
import threading
import time

import harness
from harness import Client, wait_until
from test_reload import ReloadTest

DELAYS = (0.005, 0.02, 0.1, 0.5, 3)
RATE = int(os.environ.get('OUTBOXD_RATE', '60'))  # accepts a second: half of what two cores take with a sanitized build
SESSIONS = 100
CLIENTS = 6
MONOTONIC = ('_total', '_count', '_bucket', '_sum')


class Load:
    """Clients with connections that are kept, a scraper with a new connection each time, one with a kept one."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.stop = threading.Event()
        self.accepted = []  # (session, number within it, entry), in the order of the answers
        self.faults = []
        self.went_back = []
        self.scrapes = 0
        self.threads = [threading.Thread(target=self.guarded, args=(self.accepts, n)) for n in range(CLIENTS)]
        self.threads += [threading.Thread(target=self.guarded, args=(self.scrape, is_kept)) for is_kept in (True, False)]

    def guarded(self, work, argument):
        try:
            work(argument)
        except BaseException as fault:
            self.faults.append(f'{work.__name__}: {fault!r}')

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def accepts(self, client_number):
        client = Client(self.daemon.port)
        draw = random.Random(client_number)
        numbers = {}
        while not self.stop.is_set():
            session = f's{draw.randrange(client_number, SESSIONS, CLIENTS)}'
            number = numbers[session] = numbers.get(session, 0) + 1
            kind = f'd{draw.choices(range(len(DELAYS)), (40, 30, 20, 8, 2))[0]}'
            answer = client.call('POST', f'/v1/workspaces/w/sessions/{session}/entries',
                                 {'kind': kind, 'payload': {'session': session, 'number': number}})
            if answer.status == 429:
                numbers[session] -= 1  # its slow ones have filled it: not a fault of the server
            elif answer.status != 202:
                self.faults.append(repr(answer))
                return
            else:
                self.accepted.append((session, number, answer.json()['id']))
            self.stop.wait(CLIENTS / RATE * draw.uniform(0.5, 1.5))
        client.close()

    def scrape(self, is_kept):
        last = {}
        client = Client(self.daemon.port)
        while not self.stop.wait(0.03):
            if not is_kept:
                client.close()
                client = Client(self.daemon.port)
            answer = client.call('GET', '/metrics')
            if answer.status != 200:
                self.faults.append(repr(answer))
                return
            self.scrapes += 1
            for line in answer.body.decode().splitlines():
                name, _, value = line.rpartition(' ')
                if name.partition('{')[0].endswith(MONOTONIC) and not line.startswith('#'):
                    if float(value) < last.get(name, 0):
                        self.went_back.append((name, last[name], float(value)))
                    last[name] = float(value)
        client.close()


class ChangesUnderLoad(ReloadTest):
    limit = 240

    def test_ten_reloads_and_five_upgrades_are_noticed_by_nobody(self):
        target = self.target()
        for n, delay in enumerate(DELAYS):
            target.script(path=f'/d{n}', delay=delay)
        daemon = self.daemon(target, session_cap=100000, log={'level': 'info'},
                             kinds=[{'name': f'd{n}', 'url': f'/d{n}'} for n in range(len(DELAYS))])
        with Load(daemon) as load:
            wait_until(lambda: len(load.accepted) > RATE, 20, 'the load to begin')
            began = time.monotonic()
            for how in [signal.SIGHUP, signal.SIGHUP, signal.SIGUSR2] * 5:
                self.reload(daemon, how)
                self.assertFalse(load.faults + load.went_back)
            took = time.monotonic() - began
        self.assertFalse(load.faults, 'refused, answered with 5xx or cut')
        self.assertFalse(load.went_back, 'a counter went backwards')
        accepted = {entry: (session, number) for session, number, entry in load.accepted}
        wait_until(lambda: len({r.key for r in target.stored()} & set(accepted)) == len(accepted), 60, 'all deliveries')
        posts = [r for r in target.posts() if r.key in accepted]
        self.assertEqual(len(posts), len(accepted), 'sent twice')
        last = {}
        for post in sorted(posts, key=lambda post: post.time):
            session, number = accepted[post.key]
            self.assertEqual(number, last.get(session, 0) + 1, f'out of order in {session}')
            last[session] = number
        wait_until(lambda: daemon.metric('outbox_deliveries_total', outcome='confirmed') == len(accepted), 20, 'every confirmation counted')
        self.assertEqual(daemon.metric('outbox_locks_recovered_total'), 0, 'a lock was taken from somebody')
        print(f'{len(accepted)} accepted, {load.scrapes} scrapes, 15 changes in {took:.1f} s', flush=True)


if __name__ == '__main__':
    harness.main()
