"""A store as crashes, older writers and restores from pieces may leave it: nothing that was accepted is lost, nothing that
the target has is sent again.

Every combination of: where the entry stands (queue, staging, both, neither) × its status and whether it was ever sent ×
whether the target has it × whose lock is on the session and whether that is indexed × how the session and its workspace
are indexed. Each is a session of its own, with an untouched entry behind the damaged one. Not among them is what leaves no
trace at all to start from: an entry in no queue and in no index, which nobody was told of.
"""
import collections
import itertools

import harness
import store_checks
from harness import SystemTest, Target, in_parallel, key, wait_until

NODE = 'here'
DEAD = f'{NODE}.abc.3.1.1'         # its lock file can be taken
ELSEWHERE = 'gone.def.3.1.1'       # another node's, that nobody hears of: its lock ends by its deadline
LOCK_MS = 5000

PLACES = ('queue', 'staging', 'both', 'neither')
#          status, sends, the target has it
STATES = (('pending', 0, False), ('pending', 1, False), ('pending', 1, True), ('delivering', 1, False),
          ('delivering', 1, True), ('verifying', 1, False), ('verifying', 1, True), ('parked', 0, False),
          ('parked', 1, True))
#          token, it stands in outboxlive
LOCKS = (('', False), ('', True), (DEAD, True), (DEAD, False), (ELSEWHERE, True), (ELSEWHERE, False))
INDEXES = ('due', 'deadline', 'no session', 'never', 'far', 'no workspace')

Case = collections.namedtuple('Case', 'place status sends has token live index')


def cases():
    for place, (status, sends, has), (token, live), index in itertools.product(PLACES, STATES, LOCKS, INDEXES):
        if status == 'parked' and place == 'neither':
            continue  # no index names a parked entry: only its queue does
        if index == 'deadline' and not token:
            continue  # is one of a lock
        yield Case(place, status, sends, has, token, live, index)


class KnowingTarget(Target):
    """Has some messages from before."""

    def __init__(self):
        super().__init__(idempotent=False)
        self.had = set()

    def _look_up(self, key):
        return (200, {}, b'{}') if key in self.had else super()._look_up(key)


def damage(valkey, ws, ses, entry, case):
    """Makes of a session with two pending entries, as accepted, what the case says."""
    p = harness.partition(ws)
    clock = valkey('TIME')
    now = int(clock[0]) * 1000 + int(clock[1]) // 1000
    if case.place in ('staging', 'neither'):
        valkey('LREM', key('q', ws, ses), 1, entry)
    if case.place in ('staging', 'both'):
        valkey('RPUSH', key('d', ws, ses), entry)
    fields = ['status', case.status]
    if case.sends:
        fields += ['sends', case.sends, 'lastAttemptAt', now - 60000, 'firstClaimAt', now - 60000]
    if case.status == 'parked':
        # What park wrote: how it stood then.
        prior = 'pending' if not case.sends else 'verifying' if case.place == 'queue' else 'delivering'
        fields += ['parkedReason', 'test', 'priorStatus', prior]
        valkey('ZREM', f'outboxopen:{{{p}}}', f'{ws}:{entry}')
    valkey('HSET', key('e', ws, entry), *fields)
    if case.status != 'pending':
        for counts in (f'outboxstat:{{{p}}}', key('wsstat', ws)):
            valkey('HINCRBY', counts, 'pending', -1)
            valkey('HINCRBY', counts, case.status, 1)
    if case.token:
        valkey('SET', key('lock', ws, ses), case.token, 'PX', LOCK_MS)
    if case.live:
        valkey('ZADD', f'outboxlive:{{{p}}}', now + LOCK_MS, f'{ws}:{ses}')
    sessions = key('ws', ws)
    if case.index == 'no session':
        valkey('ZREM', sessions, ses)
    elif case.index == 'no workspace':
        valkey('ZREM', f'outboxdue:{{{p}}}', ws)
    else:
        score = {'due': now, 'deadline': now + LOCK_MS, 'never': '+inf', 'far': now + 10 ** 9}[case.index]
        valkey('ZADD', sessions, score, ses)


class CrashWindows(SystemTest):
    limit = 200
    maxDiff = None

    def check_all(self, kind, wanted):
        target = KnowingTarget().start()
        self.addCleanup(target.stop)
        store = self.own_store()
        valkey = harness.Valkey(store.path, timeout=60)
        self.addCleanup(valkey.close)
        daemon = self.daemon(target, node=NODE, store={'url': store.url}, lock_ttl='60s', verify_settle='500ms')
        # Accepts go on in a paused workspace: nothing is claimed yet. A damaged workspace index needs one of its own.
        made = []
        for number, case in enumerate(c for c in cases() if wanted(c)):
            ws = f'own{number}' if case.index == 'no workspace' else f'w{number % 40}'
            made.append((case, ws, f's{number}'))
        for ws in {ws for _, ws, _ in made}:
            valkey('HSET', key('conf', ws), 'paused', 1)

        def fill(part):
            return [(case, ws, ses, [daemon.accept_ok(ses, workspace=ws, kind=kind, clientMessageID=f'{n}',
                                                      payload={'session': ses, 'n': n}) for n in (0, 1)])
                    for case, ws, ses in part]
        filled = sum(in_parallel([lambda part=made[n::8]: fill(part) for n in range(8)]), [])
        self.assertEqual(target.requests(), [])
        daemon.stop()

        valkey('CONFIG', 'SET', 'appendfsync', 'no')  # thousands of single commands
        locks = daemon.state / 'locks'
        locks.mkdir(exist_ok=True)
        (locks / 'abc.3').touch()
        for case, ws, ses, (first, _) in filled:
            damage(valkey, ws, ses, first, case)
            if case.has:
                target.had.add(first)
        for ws in {ws for _, ws, _ in made}:
            valkey('DEL', key('conf', ws))
            if not ws.startswith('own'):
                valkey('ZADD', f'outboxdue:{{{harness.partition(ws)}}}', 0, ws)
        valkey('CONFIG', 'SET', 'appendfsync', 'always')
        daemon.start()

        parked = [case for case, *_ in filled if case.status == 'parked']
        wait_until(lambda: store_checks.count_open(valkey) == len(parked) and not valkey.keys('outboxlock:*') and
                   not valkey.keys('outboxd:*'), 90, lambda: self.explain(valkey, filled), every=0.2)
        return target, valkey, filled

    def explain(self, valkey, filled):
        """Which cases have not ended."""
        left = [(case, entries) for case, ws, ses, entries in filled
                if case.status != 'parked' and any(valkey('EXISTS', key('e', ws, entry)) for entry in entries)]
        return (f'{len(left)} of {len(filled)} cases to end: ' + '\n'.join(map(str, left[:12])) +
                f'\nand {valkey.keys("outboxlock:*")[:5]} {valkey.keys("outboxd:*")[:5]} to go')

    def check(self, kind, wanted=lambda case: True):
        target, valkey, filled = self.check_all(kind, wanted)
        posts = collections.Counter(request.key for request in target.posts())
        arrival = {request.key: request.index for request in target.posts()}
        events = store_checks.events(valkey)
        sent = collections.Counter(event['entryID'] for event in events if event['type'] == 'sent')
        wrong = []
        for case, ws, ses, (first, second) in filled:
            if case.status == 'parked':
                # Inert, and so is what is behind it in a strict lane; where its outcome may be known is kept.
                status, prior = valkey('HMGET', key('e', ws, first), 'status', 'priorStatus')
                right = (status == b'parked' and posts[first] == posts[second] == 0 and
                         valkey('LRANGE', key('q', ws, ses), 0, -1) == [first.encode(), second.encode()])
                if case.place != 'queue':
                    right = right and prior == (b'verifying' if case.sends and kind == 'pay' else b'pending')
            else:
                resend = kind == 'note' and case.has
                right = posts[first] in ((0, 1) if resend else (0,) if case.has else (1,)) and posts[second] == 1
                right = right and sent[first] == sent[second] == 1
                if case.place != 'neither' and first in arrival:
                    right = right and arrival[first] < arrival[second]  # it kept its place
            if not right:
                wrong.append((case, posts[first], posts[second], sent[first], sent[second]))
        self.assertEqual(wrong, [], f'{len(wrong)} of {len(filled)}')
        left = [complaint for complaint in store_checks.leftovers(valkey)
                if not any(f':{ws}:' in complaint + ':' for case, ws, _, _ in filled if case.status == 'parked')]
        of_parked = ('outboxstat:', 'outboxopen:', 'outboxdue:', 'outboxnames:')
        left = [complaint for complaint in left if not complaint.startswith(of_parked)]
        self.assertEqual(left, [])
        for kind_of_count in ('pending', 'delivering', 'verifying', 'parked', 'error'):
            total = sum(int(valkey('HGET', stat, kind_of_count) or 0) for stat in valkey.keys('outboxstat:*'))
            parked = sum(case.status == 'parked' for case, *_ in filled)
            self.assertEqual(total, parked if kind_of_count in ('parked', 'pending') else 0, kind_of_count)

    def test_what_can_be_looked_up_is_never_sent_twice(self):
        self.check('pay')

    def test_what_is_idempotent_arrives(self):
        self.check('note', lambda case: case.index in ('due', 'no session'))


if __name__ == '__main__':
    harness.main()
