"""What must hold after chaos: lays what was acknowledged beside what arrived, what the event streams told and what is left.
Pure: no processes, no clock. Every number must be 0.
"""
import collections
import dataclasses

from kinds import AT_MOST_ONCE, ONCE, REFUSED, SAME_KEY

EXAMPLES = 5


@dataclasses.dataclass
class Message:
    """One that a client sent until it was acknowledged. Numbers grow within a session; times are seconds (monotonic)."""
    number: int
    kind: object
    site: str
    session: str   # workspace/session
    began: float = 0.0
    acknowledged: float = 0.0
    posts: int = 0
    ids: set = dataclasses.field(default_factory=set)  # of the entry, as each answer gave it


# A request that a target read to its end; is_stored: it had its effect; is_signed: by a secret of its target.
Arrival = collections.namedtuple('Arrival', 'number key time is_stored is_signed', defaults=(True,))


@dataclasses.dataclass
class Reading:
    """What one reader of a stream was told. covers: whether an entry of a message is its business."""
    covers: object
    accepted: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    sent: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    resets: int = 0


@dataclasses.dataclass
class History:
    messages: dict = dataclasses.field(default_factory=dict)     # number -> Message
    arrivals: list = dataclasses.field(default_factory=list)
    readings: dict = dataclasses.field(default_factory=dict)     # name -> Reading
    endings: dict = dataclasses.field(default_factory=dict)      # entry without a `sent` -> (status, code of its error)
    answers: collections.Counter = dataclasses.field(default_factory=collections.Counter)  # to clients, by status
    left: list = dataclasses.field(default_factory=list)         # complaints about stores that should be empty
    faults_found: list = dataclasses.field(default_factory=list)  # sanitizers' reports, programs that ended by themselves


@dataclasses.dataclass
class Invariant:
    name: str
    count: int
    examples: list

    @property
    def holds(self):
        return self.count == 0


def invariant(name, wrong):
    wrong = list(wrong)
    return Invariant(name, len(wrong), wrong[:EXAMPLES])


EXPECTED_ANSWERS = {200, 202, 429, 503}


class Checker:
    def __init__(self, history):
        self.history = history
        self.messages = history.messages
        self.acknowledged = {n: m for n, m in history.messages.items() if m.ids}
        self.stored = collections.defaultdict(list)   # number -> its arrivals that had an effect, as they came
        self.arrived = collections.defaultdict(list)
        for arrival in sorted(history.arrivals, key=lambda a: a.time):
            self.arrived[arrival.number].append(arrival)
            if arrival.is_stored:
                self.stored[arrival.number].append(arrival)
        self.sent = collections.Counter()
        for reading in history.readings.values():
            self.sent |= reading.sent

    def entry(self, message):
        return next(iter(message.ids), '')

    def ending(self, message):
        return self.history.endings.get(self.entry(message), ('nowhere', ''))

    def is_sent(self, message):
        return any(self.sent[entry] for entry in message.ids)

    def is_error_by_design(self, message):
        status, code = self.ending(message)
        return status == 'error' and message.kind.error != '' and code == message.kind.error

    def tell(self, message):
        return (f'{message.kind.name} {message.number} {self.entry(message)} in {message.session}: '
                f'{len(self.arrived[message.number])} arrivals, {len(self.stored[message.number])} stored, '
                f'{"sent" if self.is_sent(message) else self.ending(message)}')

    def wrong(self, predicate):
        return [self.tell(m) for m in self.acknowledged.values() if predicate(m)]

    # what is asked of each message

    def is_lost(self, m):
        return m.kind.arrives != REFUSED and not self.stored[m.number] and not self.is_error_by_design(m)

    def has_no_end(self, m):
        return not self.is_sent(m) and not self.is_error_by_design(m)

    def is_told_sent_without_effect(self, m):
        return self.is_sent(m) and not self.stored[m.number]

    def is_doubled(self, m):
        return m.kind.arrives in (ONCE, AT_MOST_ONCE) and len(self.stored[m.number]) > 1

    def has_two_keys(self, m):
        return len({a.key for a in self.arrived[m.number]} | m.ids) > 1

    def disorder(self):
        """Among those of a session that were confirmed: an effect that came before one that was accepted earlier."""
        lanes = collections.defaultdict(list)
        for m in self.acknowledged.values():
            if m.kind.is_strict and self.is_sent(m) and self.stored[m.number]:
                lanes[m.session].append((self.stored[m.number][0].time, m))
        for lane in lanes.values():
            newest = None
            for _, m in sorted(lane, key=lambda pair: pair[0]):
                if newest and m.number < newest.number:
                    yield f'{self.tell(m)} after {newest.kind.name} {newest.number}'
                else:
                    newest = m

    def wrongly_told(self, what):
        for name, reading in self.history.readings.items():
            for m in self.acknowledged.values():
                if not reading.covers(m):
                    continue
                told = sum(getattr(reading, what)[entry] for entry in m.ids)
                if told != (1 if what == 'accepted' or not self.is_error_by_design(m) else 0):
                    yield f'{name}: {told} times, {self.tell(m)}'

    def check(self):
        history = self.history
        return [
            invariant('sent, but never acknowledged', [str(m) for n, m in self.messages.items() if not m.ids]),
            invariant('lost: acknowledged, never arrived', self.wrong(self.is_lost)),
            invariant('neither sent nor an error by design', self.wrong(self.has_no_end)),
            invariant('said to be sent, but the target has not got it', self.wrong(self.is_told_sent_without_effect)),
            invariant('out of order within a session (strict kinds)', self.disorder()),
            invariant('doubled at a target (kinds that can be looked up, or are sent once)', self.wrong(self.is_doubled)),
            invariant('arrived under more than one key', self.wrong(self.has_two_keys)),
            invariant('arrived without a signature of its target', [a for a in history.arrivals if not a.is_signed]),
            invariant('arrived, but never accepted', [a for a in history.arrivals if a.number not in self.acknowledged]),
            invariant('`accepted` events other than one', self.wrongly_told('accepted')),
            invariant('`sent` events other than one', self.wrongly_told('sent')),
            invariant('event streams with a gap (reset)', [name for name, r in history.readings.items() for _ in range(r.resets)]),
            invariant('answers to clients that no client expects',
                      [status for status, times in history.answers.items() if status not in EXPECTED_ANSWERS for _ in range(times)]),
            invariant('left in a store that should be empty', history.left),
            invariant('reports of sanitizers, programs that ended by themselves', history.faults_found),
        ]


def check(history):
    return Checker(history).check()
