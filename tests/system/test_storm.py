"""Ambiguity storms: every send times out after the target has it, on two nodes with one store, while processes die.
Each text is POSTed exactly once, each entry says `sent` exactly once, and nothing is left.

The test command runs the large storms in a smaller size. In full (3,000 messages over 200 sessions):
  OUTBOXD_STORM=full python3 tests/system/test_storm.py
OUTBOXD_SEED repeats the order in which processes died.
"""
import collections
import concurrent.futures
import contextlib
import itertools
import os
import random
import signal
import threading
import time
import unittest

import harness
import store_checks
from agent import Agent
from harness import SystemTest, Target, in_parallel, wait_until
from ledger import Ledger

FULL = os.environ.get('OUTBOXD_STORM') == 'full'
WORKSPACES = ['red', 'green', 'blue:sea']
LOCK_TTL = 4.0

SETTINGS = {
    # A worker that was stopped for longer than its locks live goes on afterwards: the watchdog must not take it before.
    'verify_timeout': '1s', 'lock_ttl': f'{LOCK_TTL:g}s', 'watchdog': '60s', 'workers': 2,
    # A look-up that comes before the target has read the request would rightly say "absent".
    'verify_settle': '2s', 'verify_delay': '50ms', 'verify_backoff': '50ms', 'max_verify_backoff': '400ms',
    # Being killed between the claim and the request costs an attempt each time.
    'max_attempts': 100, 'max_verify_attempts': 100, 'max_transient_failures': 1000, 'delivery_timeout': '1s',
    'log': {'level': 'info'}, 'repoll_after': '300ms', 'ledger': {'lookup_timeout': '1s', 'poll_window': '300ms'},
}


class Payments(Target):
    """A verified http kind. The target keeps what it gets and never says so; asked about it, it first knows nothing, then
    tells the truth."""
    kind = {'name': 'pay', 'url': '/payments', 'verify': harness.LOOK_UP, 'timeout': '700ms'}
    is_strict = True
    via = 'verification'

    def __init__(self):
        super().__init__(idempotent=False)
        self.script(method='POST', path='/payments', store=True, delay=3600)
        self.asked = collections.Counter()

    def session(self, number):
        return f's{number}'

    def entry(self, n):
        return {'kind': 'pay', 'payload': {'n': n}}

    def numbers(self):
        """Of the messages that were POSTed, as they came."""
        return [request.json()['n'] for request in self.posts() if request.end]

    def _look_up(self, key):
        self.asked[key] += 1
        if self.asked[key] <= 1 + sum(key.encode()) % 2:
            return 503, {}, b''
        return super()._look_up(key)


class Prompts(Agent):
    """Prompts to an agent that takes message IDs."""
    kind = {'name': 'prompt', 'timeout': '700ms', 'verify_settle': '2s'}
    is_strict = False
    via = 'verification'
    agent_version = '1.18.33'

    def __init__(self):
        super().__init__(version=self.agent_version)
        self.script(method='POST', path='/session/*', store=True, delay=3600)
        self.sessions = collections.defaultdict(self.create_session)
        self.asked = collections.Counter()

    def session(self, number):
        return self.sessions[number]

    def entry(self, n):
        return {'text': f'text {n}'}

    def numbers(self):
        return [int(request.json()['parts'][0]['text'].split()[1]) for request in self.prompts()]

    def _answer_for(self, request, rule):
        if request.method == 'GET' and '/message' in request.path:
            self.asked[request.path] += 1
            if self.asked[request.path] % 3 == 1:
                return 503, {}, b''
        return super()._answer_for(request, rule)


class OldPrompts(Prompts):
    """Prompts to an agent that takes none: its transcript is searched."""
    agent_version = '1.17.19'


class Deliveries(Ledger):
    """Prompts to a target with a ledger. It keeps each delivery and never says so until it is asked more than once."""
    kind = {'name': 'prompt', 'executor': 'ledger', 'timeout': '700ms', 'verify_settle': '2s'}
    is_strict = False
    via = 'ledger'

    def __init__(self):
        super().__init__(idempotent=False)
        self.rows = set()
        self.asked = collections.Counter()

    def session(self, number):
        return f's{number}'

    def entry(self, n):
        return {'text': f'text {n}'}

    def numbers(self):
        delivered = [request.json() for request in self.posts(self.path + '/Deliver') if request.end]
        return [int(body['parts'][0]['text'].split()[1]) for body in delivered]

    def _deliver(self, body, _request):
        self.rows.add((body['entryId'], body['attempt']))
        return {'delay': 3600}

    def _status(self, body, _request):
        row = body['entryId'], body['attempt']
        self.asked[row] += 1
        if self.asked[row] % 3 == 1:
            return {'status': 500, 'answer': {'code': 'internal'}}
        return self._answer('ADMITTED') if row in self.rows else {'status': 404, 'answer': {'code': 'not_found'}}


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

    target_class = Payments

    def nodes(self, target, **settings):
        self.store = self.own_store()
        self.valkey = harness.Valkey(self.store.path, timeout=60)
        self.addCleanup(self.valkey.close)
        settings = dict({**SETTINGS, **settings}, store={'url': self.store.url}, kinds=[target.kind])
        return [self.daemon(target, node=name, **settings) for name in ('north', 'south')]

    def start_target(self):
        target = self.target_class().start()
        self.addCleanup(target.stop)
        return target

    def accept_all(self, target, daemons, sessions, messages, goes_on=lambda: False):
        """{entry ID: (session, n)}; those of one session in the order of n, through both nodes in turn. More than asked for
        as long as goes_on() says so."""
        accepted = {}

        def fill(session):
            workspace = WORKSPACES[session % len(WORKSPACES)]
            for n in itertools.count(session, sessions):
                if n >= messages and not goes_on():
                    return
                entry = daemons[n // sessions % len(daemons)].accept_patiently(
                    workspace=workspace, session=target.session(session), clientMessageID=f'm{n}', **target.entry(n))
                accepted[entry] = (session, n)
        in_parallel([lambda session=session: fill(session) for session in range(sessions)], threads=sessions)
        self.assertGreaterEqual(len(accepted), messages, 'two messages with one ID')
        return accepted

    def wait_for_the_end(self, timeout):
        wait_until(lambda: store_checks.count_open(self.valkey) == 0, timeout,
                   lambda: f'{store_checks.count_open(self.valkey)} entries are still open', every=0.1)

    def check(self, target, accepted):
        arrived = target.numbers()
        self.assertEqual({n: times for n, times in collections.Counter(arrived).items() if times != 1}, {},
                         'POSTed more than once')
        session_of = {n: session for session, n in accepted.values()}
        self.assertEqual(set(arrived), set(session_of))
        if target.is_strict:
            order = collections.defaultdict(list)
            for n in arrived:
                order[session_of[n]].append(n)
            self.assertEqual({s: ns for s, ns in order.items() if ns != sorted(ns)}, {}, 'out of order')

        events = store_checks.events(self.valkey)
        sent = collections.Counter(event['entryID'] for event in events if event['type'] == 'sent')
        self.assertEqual(set(sent), set(accepted))
        self.assertEqual({key: n for key, n in sent.items() if n != 1}, {}, 'more than one sent event')
        self.assertEqual({event['via'] for event in events if event['type'] == 'sent'}, {target.via})
        wait_until(lambda: not store_checks.leftovers(self.valkey), 15, lambda: f'left: {store_checks.leftovers(self.valkey)}')
        return events

    def storm(self, sessions, messages, timeout=90):
        target = self.start_target()
        nodes = self.nodes(target)
        accepted = self.accept_all(target, nodes, sessions, messages)
        self.wait_for_the_end(timeout)
        events = self.check(target, accepted)
        types = collections.Counter(event['type'] for event in events)
        self.assertGreaterEqual(types['delivering'], messages)
        self.assertGreaterEqual(types['verifying'], messages)
        return nodes

    def storm_with_deaths(self, sessions, messages, strikes):
        """Messages go on coming until processes have died often enough."""
        seed = int(os.environ.get('OUTBOXD_SEED', random.SystemRandom().randrange(1 << 32)))
        print(f'OUTBOXD_SEED={seed}')
        target = self.start_target()
        nodes = self.nodes(target, session_cap=20)
        chaos = Chaos(nodes, random.Random(seed))
        is_over = threading.Event()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            filler = pool.submit(self.accept_all, target, nodes, sessions, messages, lambda: not is_over.is_set())
            try:
                wait_until(target.posts, 20, 'the first request')
                for _ in range(strikes):
                    chaos.strike()
                    time.sleep(chaos.dice.uniform(0.1, 0.8))
            finally:
                is_over.set()
            accepted = filler.result()
        print(f'{len(accepted)} messages; meanwhile {dict(chaos.deeds)}')
        self.wait_for_the_end(120)
        self.check(target, accepted)


class StormOfPayments(Storm):
    def test_two_nodes_twelve_sessions_seventy_two_messages(self):
        self.storm(12, 72)

    @unittest.skipUnless(FULL, 'OUTBOXD_STORM=full runs it')
    def test_a_large_one(self):
        for node in self.storm(200, 3000):
            self.assertGreater(node.metric('outbox_verifications_total', verdict='delivered'), 0, 'one node did it all')

    def test_processes_die_meanwhile(self):
        self.storm_with_deaths(*((200, 3000, 40) if FULL else (40, 120, 4)))


class StormOfPrompts(Storm):
    target_class = Prompts

    def test_two_nodes_twelve_sessions_seventy_two_messages(self):
        self.storm(12, 72)

    @unittest.skipUnless(FULL, 'OUTBOXD_STORM=full runs it')
    def test_processes_die_meanwhile(self):
        self.storm_with_deaths(*((200, 3000, 40) if FULL else (20, 60, 3)))


class StormOfPromptsWithoutIDs(Storm):
    target_class = OldPrompts

    def test_processes_die_meanwhile(self):
        self.storm_with_deaths(*((200, 3000, 40) if FULL else (20, 60, 3)))


class StormOfDeliveries(Storm):
    target_class = Deliveries

    def test_two_nodes_twelve_sessions_seventy_two_messages(self):
        self.storm(12, 72)

    def test_processes_die_meanwhile(self):
        self.storm_with_deaths(*((200, 3000, 40) if FULL else (20, 60, 3)))


if __name__ == '__main__':
    harness.main()
