"""Ambiguity storms: every send times out after the target has it, on two nodes with one store, while processes die.
Each text is POSTed exactly once, each entry says `sent` exactly once, and nothing is left.

The test command runs the large storms in a smaller size. In full (3,000 messages over 200 sessions):
  OUTBOXD_STORM=full python3 tests/system/test_storm.py
OUTBOXD_SEED repeats the order in which processes died.
"""
import collections
import contextlib
import os
import random
import signal
import threading
import time

import harness
import store_checks
from harness import SystemTest, Target, in_parallel, wait_until

FULL = os.environ.get('OUTBOXD_STORM') == 'full'
WORKSPACES = ['red', 'green', 'blue:sea']
LOCK_TTL = 4.0

SETTINGS = {
    # A worker that was stopped for longer than its locks live goes on afterwards: the watchdog must not take it before.
    'verify_timeout': '1s', 'lock_ttl': f'{LOCK_TTL:g}s', 'watchdog': '60s', 'workers': 2, 'session_cap': 100,
    # A look-up that comes before the target has read the request would rightly say "absent".
    'verify_settle': '2s', 'verify_delay': '50ms', 'verify_backoff': '50ms', 'max_verify_backoff': '400ms',
    # Being killed between the claim and the request costs an attempt each time.
    'max_attempts': 100, 'max_verify_attempts': 100, 'delivery_timeout': '1s', 'log': {'level': 'info'},
}


class VagueTarget(Target):
    """Keeps what it gets and never says so; asked about it, it first knows nothing, then tells the truth."""

    def __init__(self):
        super().__init__(idempotent=False)
        self.script(method='POST', path='/payments', store=True, delay=3600)
        self.asked = collections.Counter()

    def _look_up(self, key):
        self.asked[key] += 1
        if self.asked[key] <= 1 + sum(key.encode()) % 2:
            return 503, {}, b''
        return super()._look_up(key)


class Chaos:
    """Kills, stops and restarts what belongs to some nodes. Names what it did."""

    def __init__(self, daemons, dice):
        self.daemons = daemons
        self.dice = dice
        self.deeds = collections.Counter()

    def one_of(self, daemon, role):
        pids = daemon.pids(role)
        return self.dice.choice(pids) if pids else None

    def kill_worker(self, daemon):
        self.signal(daemon, 'worker', signal.SIGKILL)

    def kill_api(self, daemon):
        self.signal(daemon, 'api', signal.SIGKILL)

    def signal(self, daemon, role, what):
        pid = self.one_of(daemon, role)
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, what)

    def suspend_worker(self, daemon):
        """Beyond the life of its locks, so that others take over what it still believes to hold."""
        pid = self.one_of(daemon, 'worker')
        if not pid:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(LOCK_TTL + 1)
            os.kill(pid, signal.SIGCONT)

    def restart_supervisor(self, daemon):
        daemon.kill('supervisor')
        daemon.start()

    def restart_node(self, daemon):
        daemon.kill()
        daemon.start()

    def strike(self):
        deed = self.dice.choice([self.kill_worker] * 4 + [self.suspend_worker, self.kill_api, self.restart_supervisor,
                                                          self.restart_node])
        deed(self.dice.choice(self.daemons))
        self.deeds[deed.__name__] += 1


class Storm(SystemTest):
    limit = 240

    def nodes(self, target, **settings):
        self.store = self.own_store()
        self.valkey = harness.Valkey(self.store.path, timeout=60)
        self.addCleanup(self.valkey.close)
        settings = dict(SETTINGS, store={'url': self.store.url}, **settings)
        return [self.daemon(target, node=name, **settings) for name in ('north', 'south')]

    def vague_target(self):
        target = VagueTarget().start()
        self.addCleanup(target.stop)
        return target

    def accept_all(self, daemons, sessions, messages, kind):
        """{entry ID: (workspace, session, n)}; those of one session in the order of n, through both nodes in turn."""
        accepted = {}

        def fill(session):
            workspace = WORKSPACES[session % len(WORKSPACES)]
            for n in range(session, messages, sessions):
                entry = daemons[n // sessions % len(daemons)].accept_patiently(
                    workspace=workspace, session=f's{session}', clientMessageID=f'm{n}', kind=kind, payload={'n': n})
                accepted[entry] = (workspace, session, n)
        in_parallel([lambda session=session: fill(session) for session in range(sessions)], threads=6)
        self.assertEqual(len(accepted), messages, 'two messages with one ID')
        return accepted

    def wait_for_the_end(self, timeout):
        wait_until(lambda: store_checks.count_open(self.valkey) == 0, timeout,
                   lambda: f'{store_checks.count_open(self.valkey)} entries are still open', every=0.1)

    def check(self, target, accepted):
        posts = collections.Counter(r.key for r in target.posts() if r.end)
        texts = collections.Counter(r.json()['n'] for r in target.posts() if r.end)
        self.assertEqual({key: n for key, n in posts.items() if n != 1}, {}, 'POSTed more than once')
        self.assertEqual(set(posts), set(accepted))
        self.assertEqual(set(texts.elements()), {n for _, _, n in accepted.values()})
        order = collections.defaultdict(list)
        for request in target.stored():
            order[accepted[request.key][1]].append(accepted[request.key][2])
        self.assertEqual({s: ns for s, ns in order.items() if ns != sorted(ns)}, {}, 'out of order')

        events = store_checks.events(self.valkey)
        sent = collections.Counter(event['entryID'] for event in events if event['type'] == 'sent')
        self.assertEqual(set(sent), set(accepted))
        self.assertEqual({key: n for key, n in sent.items() if n != 1}, {}, 'more than one sent event')
        self.assertEqual({event['via'] for event in events if event['type'] == 'sent'}, {'verification'})
        wait_until(lambda: not store_checks.leftovers(self.valkey), 15, lambda: f'left: {store_checks.leftovers(self.valkey)}')
        return events

    def storm(self, sessions, messages, timeout=90):
        target = self.vague_target()
        nodes = self.nodes(target, kinds=[{'name': 'pay', 'url': '/payments', 'verify': harness.LOOK_UP, 'timeout': '700ms'}])
        accepted = self.accept_all(nodes, sessions, messages, 'pay')
        self.wait_for_the_end(timeout)
        events = self.check(target, accepted)
        kinds = collections.Counter(event['type'] for event in events)
        self.assertEqual(kinds['delivering'], messages)
        self.assertGreaterEqual(kinds['verifying'], messages)
        for node in nodes:
            self.assertGreater(node.metric('outbox_verifications_total', verdict='delivered'), 0, f'{node.settings["node"]} idle')

    def test_two_nodes_twelve_sessions_seventy_two_messages(self):
        self.storm(12, 72)

    def test_a_large_one(self):
        self.storm(*((200, 3000) if FULL else (100, 900)))

    def test_processes_die_meanwhile(self):
        sessions, messages = (200, 3000) if FULL else (40, 320)
        seed = int(os.environ.get('OUTBOXD_SEED', random.SystemRandom().randrange(1 << 32)))
        print(f'OUTBOXD_SEED={seed}')
        target = self.vague_target()
        nodes = self.nodes(target, kinds=[{'name': 'pay', 'url': '/payments', 'verify': harness.LOOK_UP, 'timeout': '700ms'}])
        chaos = Chaos(nodes, random.Random(seed))
        accepted = {}
        filler = threading.Thread(target=lambda: accepted.update(self.accept_all(nodes, sessions, messages, 'pay')))
        filler.start()
        wait_until(lambda: target.posts(), 20, 'the first request')
        strikes = 0
        while strikes < (40 if FULL else 10) and (filler.is_alive() or store_checks.count_open(self.valkey) > 0):
            chaos.strike()
            strikes += 1
            time.sleep(chaos.dice.uniform(0.1, 0.8))
        print(f'{dict(chaos.deeds)} while messages were under way')
        filler.join()
        self.assertGreaterEqual(strikes, 5, 'it was over before much happened')
        self.wait_for_the_end(120)
        self.check(target, accepted)


if __name__ == '__main__':
    harness.main()
