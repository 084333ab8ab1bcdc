#!/usr/bin/env python3
"""The checker of tests/chaos can fail: each invariant is broken by a history of its own, and by no other invariant's.

A history in which nothing went wrong passes, also with what is allowed: repeats under the same key, errors by design.
"""
import collections
import pathlib
import sys
import types
import unittest

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / 'chaos'), str(TESTS / 'system')]

from check import Arrival, History, Message, Reading, check  # noqa: E402
from kinds import KINDS  # noqa: E402
from plan import TABLE, deeds  # noqa: E402
from signatures import Secrets, new_secret, signature  # noqa: E402

KIND = {kind.name: kind for kind in KINDS}
PLACES = {'any': ['one', 'other'], 'embedded': ['one'], 'outside': ['other'], 'target': ['http']}


class World:
    """A history that is told as it should be: what a test changes in it is what went wrong."""

    def __init__(self):
        self.history = History(readings={'all': Reading(lambda message: True)})
        self.reading = self.history.readings['all']

    def message(self, number, kind, session='w/s'):
        message = Message(number, KIND[kind], 'site', session, ids={f'ob_{number}'})
        self.history.messages[number] = message
        self.reading.accepted[f'ob_{number}'] += 1
        return message

    def arrives(self, number, is_stored=True, key=None):
        time = float(len(self.history.arrivals))
        self.history.arrivals.append(Arrival(number, key or f'ob_{number}', time, is_stored))

    def sent(self, number):
        self.reading.sent[f'ob_{number}'] += 1

    def delivered(self, number, kind, session='w/s'):
        self.message(number, kind, session)
        self.arrives(number)
        self.sent(number)

    def fails(self, number, kind, code):
        self.message(number, kind)
        self.history.endings[f'ob_{number}'] = ('error', code)

    def broken(self):
        return {i.name.partition(':')[0].partition(' (')[0]: i.count for i in check(self.history) if not i.holds}


class Checker(unittest.TestCase):
    def setUp(self):
        self.world = World()

    def assertBroken(self, *names):
        self.assertEqual(sorted(self.world.broken()), sorted(names))

    def test_a_history_without_a_fault_passes(self):
        for number, kind in enumerate(('note', 'pay', 'fire', 'deliver', 'prompt')):
            self.world.delivered(number, kind)
        self.world.arrives(0)                         # a note again, with the same key
        self.world.arrives(1, is_stored=False)        # a payment that the target did not keep
        self.world.fails(10, 'fire', 'outcome_unknown')
        self.world.arrives(10)                        # it may have arrived
        self.world.fails(11, 'poison', 'poison')
        self.assertBroken()

    def test_lost(self):
        self.world.message(1, 'note')
        self.assertBroken('lost', 'neither sent nor an error by design', '`sent` events other than one')

    def test_said_to_be_sent_without_having_arrived(self):
        self.world.message(1, 'pay')
        self.world.sent(1)
        self.assertBroken('lost', 'said to be sent, but the target has not got it')

    def test_never_acknowledged(self):
        self.world.delivered(1, 'note')
        self.world.history.messages[2] = Message(2, KIND['note'], 'site', 'w/s')
        self.assertBroken('sent, but never acknowledged')

    def test_an_error_that_is_not_by_design(self):
        for number, (kind, code) in enumerate((('note', 'retries_exhausted'), ('pay', 'unverifiable'), ('fire', 'unreachable'))):
            self.world.fails(number, kind, code)
            self.world.arrives(number)
        self.assertEqual(self.world.broken(), {'neither sent nor an error by design': 3, '`sent` events other than one': 3})

    def test_out_of_order(self):
        for number in (2, 1, 3):
            self.world.delivered(number, 'pay')
        self.assertEqual(self.world.broken(), {'out of order within a session': 1})

    def test_order_is_asked_within_a_session_and_of_strict_kinds_only(self):
        self.world.delivered(2, 'pay', 'w/one')
        self.world.delivered(1, 'pay', 'w/two')
        self.world.delivered(4, 'prompt', 'w/one')
        self.world.delivered(3, 'prompt', 'w/one')
        self.assertBroken()

    def test_doubled(self):
        for number, kind in enumerate(('pay', 'fire', 'deliver', 'prompt')):
            self.world.delivered(number, kind, f'w/{kind}')
            self.world.arrives(number)
        self.assertEqual(self.world.broken(), {'doubled at a target': 4})

    def test_a_repeat_under_another_key(self):
        self.world.delivered(1, 'note')
        self.world.arrives(1, key='ob_9')
        self.assertBroken('arrived under more than one key')

    def test_arrived_though_never_accepted(self):
        self.world.arrives(7)
        self.assertBroken('arrived, but never accepted')

    def test_arrived_without_a_signature(self):
        self.world.delivered(1, 'note')
        self.world.history.arrivals[0] = self.world.history.arrivals[0]._replace(is_signed=False)
        self.assertBroken('arrived without a signature of its target')

    def test_events_that_are_missing_or_doubled(self):
        for what in ('accepted', 'sent'):
            for change in (1, -1):
                with self.subTest(what=what, change=change):
                    self.setUp()
                    self.world.delivered(1, 'note')
                    other = self.world.history.readings['other'] = Reading(lambda message: True)
                    other.accepted, other.sent = (collections.Counter(c) for c in (self.world.reading.accepted, self.world.reading.sent))
                    getattr(other, what)['ob_1'] += change
                    self.assertEqual(self.world.broken(), {f'`{what}` events other than one': 1})

    def test_a_gap_in_a_stream(self):
        self.world.reading.resets = 1
        self.assertBroken('event streams with a gap')

    def test_an_answer_that_nobody_expects(self):
        self.world.history.answers.update({202: 5, 500: 2})
        self.assertEqual(self.world.broken(), {'answers to clients that no client expects': 2})

    def test_what_is_left_and_what_programs_said(self):
        self.world.history.left.append('outboxq:…')
        self.world.history.faults_found.append('ERROR: AddressSanitizer')
        self.assertBroken('left in a store that should be empty', 'reports of sanitizers, programs that ended by themselves')


class Signed(unittest.TestCase):
    def setUp(self):
        self.secrets = Secrets()

    def request(self, secret, key='ob_1', body=b'{}'):
        headers = {'webhook-id': 'ob_1', 'webhook-timestamp': '1', 'webhook-signature': signature(secret, b'ob_1.1.{}')}
        return types.SimpleNamespace(headers=headers, key=key, body=body)

    def test_by_each_secret_that_ever_was_and_by_no_other(self):
        first = self.secrets.all[0]
        for _ in range(3):
            self.secrets.renew()
        self.assertEqual(len(self.secrets.in_force()), 2)
        for secret in (first, *self.secrets.in_force()):
            self.assertTrue(self.secrets.have_signed(self.request(secret)))
        self.assertFalse(self.secrets.have_signed(self.request(new_secret())))

    def test_of_this_very_request(self):
        secret = self.secrets.all[0]
        self.assertFalse(self.secrets.have_signed(self.request(secret, body=b'{ }')))
        self.assertFalse(self.secrets.have_signed(self.request(secret, key='ob_2')))


class Plan(unittest.TestCase):
    @staticmethod
    def first(seed, count=400):
        return [deed for deed, _ in zip(deeds(seed, PLACES), range(count))]

    def test_a_seed_names_one_order_of_faults(self):
        self.assertEqual(self.first(1), self.first(1))
        self.assertNotEqual(self.first(1), self.first(2))

    def test_everything_comes_once_before_anything_comes_again(self):
        self.assertEqual({deed.name for deed in self.first(1, len(TABLE))}, {row.name for row in TABLE})


if __name__ == '__main__':
    unittest.main(verbosity=2)
