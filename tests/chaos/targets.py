"""Targets in a bad mood: they answer late, twice, truncated, with garbage, with errors or not at all, but never lie about what
they have. What arrives at them goes to a journal.
"""
import collections
import random
import threading
import time

from agent import Agent
from check import Arrival
from ledger import Ledger
from pulse import Pulse
from signatures import Secrets
from target import Rule, Target

GARBAGE = ('\x00\x01\x02\xff' * 20, 'HTTP/1.1 banana\r\n\r\n', 'SSH-2.0-OpenSSH_9.2\r\n', 'HTTP/1.1 200', '<html>502</html>',
           '\r\n\r\n\r\n')
LONGEST_DELAY = 4.0  # longer than any request may take
PROMISE_S = 1.0      # what has arrived is seen within that time, or never

# How a target treats a request that it could store: the members of a rule of tests/support/target.py. A 2xx that is begun is
# a promise: then it was stored.
MOODS = {
    'late': lambda dice: {'store': True, 'delay': dice.choice((0.1, 0.5, 1.0, LONGEST_DELAY))},
    'late and not stored': lambda dice: {'store': False, 'delay': dice.uniform(0.1, 1), 'status': 503},
    'twice': lambda dice: {'store': True, 'twice': True},
    'cut after the request': lambda dice: {'store': dice.random() < 0.5, 'close': 'after-request'},
    'reset': lambda dice: {'store': dice.random() < 0.5, 'close': 'reset'},
    'truncated': lambda dice: {'store': True, 'close': 'mid-answer', 'after': dice.choice((1, 9, 17, 30, 60))},
    'garbage': lambda dice: {'store': dice.random() < 0.5, 'garbage': dice.choice(GARBAGE)},
    'proves nothing': lambda dice: {'store': dice.random() < 0.5, 'status': dice.choice((500, 502, 504, 408))},
    'busy': lambda dice: {'store': False, 'status': dice.choice((503, 429)),
                          'headers': {'Retry-After': dice.choice(('1', '0', '-5', '99999999999', 'soon',
                                                                  'Thu, 01 Jan 1970 00:00:00 GMT'))}},
    'endless': lambda dice: {'store': True, 'endless': True, 'drip': dice.choice((0.002, 0.01))},
    'dripping': lambda dice: {'store': True, 'drip': 0.01},
    'informational first': lambda dice: {'store': True, 'informational': dice.randrange(1, 20)},
    'a huge header': lambda dice: {'store': True, 'huge_header': 200000},
}
# Of a look-up, the truth or nothing.
LOOK_UP_MOODS = {
    'late': lambda dice: {'delay': dice.choice((0.1, 0.5, LONGEST_DELAY))},
    'twice': lambda dice: {'twice': True},
    'cut after the request': lambda dice: {'close': 'after-request'},
    'reset': lambda dice: {'close': 'reset'},
    'truncated': lambda dice: {'close': 'mid-answer', 'after': dice.choice((1, 9))},
    'garbage': lambda dice: {'garbage': dice.choice(GARBAGE)},
    'proves nothing': lambda dice: {'status': dice.choice((500, 503, 429, 401))},
}
USUALLY = 0.15    # of the answers are not what they should be
IN_A_MOOD = 0.75  # while a target is in a mood of its own


class Mood:
    """What the next answer of one target is like."""

    def __init__(self, seed):
        self.dice = random.Random(seed)
        self.own = None       # the name of one, while a fault lasts
        self.is_good = False  # healed: no moods any more
        self.counts = collections.Counter()

    def draw(self, moods):
        """Members of a rule; {}: as it should be."""
        share = IN_A_MOOD if self.own else USUALLY
        if self.is_good or self.dice.random() > share:
            return {}
        name = self.own if self.own in moods else self.dice.choice(list(moods))
        self.counts[name] += 1
        return moods[name](self.dice)


class Journal:
    """What arrived, of all targets."""

    def __init__(self, log):
        self.lock = threading.Lock()
        self.arrivals = []
        self.log = log  # a function that takes a dictionary

    def note(self, number, key, is_stored, is_signed, **more):
        arrival = Arrival(number, key, time.monotonic(), is_stored, is_signed)
        with self.lock:
            self.arrivals.append(arrival)
        self.log({'what': 'arrived', **arrival._asdict(), **more})

    def note_look_up(self, path, status, **more):
        self.log({'what': 'looked up', 'path': path, 'status': status, 'time': time.monotonic(), **more})


class Moody:
    """Goes before Target in the list of bases. Keeps no requests: a long run has too many of them."""

    name = ''
    moods = MOODS
    is_secure = False  # speaks TLS

    def begin(self, seed, journal, tls):
        self.mood = Mood(f'{seed} {self.name}')
        self.journal = journal
        self.secrets = Secrets()
        self.seen = 0
        self.tls = tls if self.is_secure else None
        self.start()
        self.pulse = Pulse(self._loop)

    def _record(self, request):
        request.index = self.seen
        self.seen += 1

    def _rule_for(self, request, has_body):
        if not has_body:
            return None
        if self.is_too_late():
            return Rule(store=False, close='reset')
        fields = self.mood.draw(self.moods if request.method == 'POST' else LOOK_UP_MOODS)
        return Rule(**fields) if fields else None

    def is_too_late(self):
        late = self.pulse.lag > PROMISE_S
        self.mood.counts['too late to be seen'] += late
        return late

    def _answer_for(self, request, rule):
        status, headers, body = super()._answer_for(request, rule)
        if request.method == 'POST':
            self.journal.note(self.number(request), request.key, request.stored, self.secrets.have_signed(request), target=self.name,
                              attempt=request.headers.get('outbox-attempt'), status=status)
        else:
            self.journal.note_look_up(request.path, status, target=self.name)
        request.headers = {'idempotency-key': request.key}  # what is stored stays: no more of it than needed
        return status, headers, body


class HttpTarget(Moody, Target):
    """Notes, payments, fires; refuses poison. Each request has its effect, whatever its key: the checker tells them apart."""
    name = 'http'
    is_secure = True

    def __init__(self):
        super().__init__(idempotent=False)

    def _rule_for(self, request, has_body):
        if has_body and request.path == '/poison':
            return Rule(store=False, status=422, answer={'code': 'poison'}, headers={'Content-Type': 'application/problem+json'})
        return super()._rule_for(request, has_body)

    @staticmethod
    def number(request):
        return request.json()['number']


def number_in_parts(request):
    return int(request.json()['parts'][0]['text'].split()[1])


class AgentTarget(Moody, Agent):
    name = 'agent'
    agent_version = '1.18.33'
    # An agent's 200 with anything but a message in it says that it is none: not a mood, a mistake of the configuration.
    moods = {name: mood for name, mood in MOODS.items() if name not in ('endless', 'a huge header')}

    def __init__(self):
        super().__init__(version=self.agent_version)

    number = staticmethod(number_in_parts)


class OldAgentTarget(AgentTarget):
    name = 'old agent'
    agent_version = '1.17.19'


class LedgerTarget(Moody, Ledger):
    """Some rows are ledgered for a while before they are admitted, some fail then."""
    name = 'ledger'
    moods = AgentTarget.moods
    number = staticmethod(number_in_parts)

    def __init__(self):
        super().__init__(idempotent=False)
        self.rows = {}  # (entry, attempt) -> (when it is decided, state then)

    # Past Moody's: a ledger's answers are rules of their own.
    def _rule_for(self, request, has_body):
        if has_body and self.is_too_late():
            return Rule(store=False, close='reset')
        return Ledger._rule_for(self, request, has_body)

    def _answer_for(self, request, rule):
        return Target._answer_for(self, request, rule)

    def _deliver(self, body, request):
        fields = self.mood.draw(self.moods)
        is_stored = fields.pop('store', True)
        row = body['entryId'], body['attempt']
        if is_stored and row not in self.rows:
            self.rows[row] = self.fate()
        has_effect = is_stored and self.rows[row][1] == 'ADMITTED'
        self.journal.note(self.number(request), body['entryId'], has_effect, self.secrets.have_signed(request), target=self.name,
                          attempt=body['attempt'], row=self.rows.get(row))
        return {**self._answer(self.state_of(row) if row in self.rows else ''), **fields}

    def fate(self):
        dice = self.mood.dice
        if self.mood.is_good or dice.random() > 0.2:
            return time.monotonic(), 'ADMITTED'
        return time.monotonic() + dice.uniform(0.2, 2), dice.choice(('ADMITTED', 'ADMITTED', 'FAILED'))

    def _status(self, body, _request):
        fields = self.mood.draw(LOOK_UP_MOODS)
        row = body['entryId'], body['attempt']
        truth = (self._answer(self.state_of(row)) if row in self.rows else
                 {'status': 404, 'answer': {'code': 'not_found', 'message': 'no such row'}})
        self.journal.note_look_up(f'{row}', truth['status'], target=self.name, answer=str(truth['answer']), mood=str(fields))
        return {**truth, **fields}

    def state_of(self, row):
        decided, state = self.rows[row]
        return state if time.monotonic() >= decided else 'LEDGERED'


ALL = {target.name: target for target in (HttpTarget, AgentTarget, OldAgentTarget, LedgerTarget)}
