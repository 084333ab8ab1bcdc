#!/usr/bin/env python3
"""Fifty people operate on one workspace while fifty sessions of it are delivered to a target that refuses, conflicts, holds
and loses answers (contract §3, §6). What must hold whoever wins: no 5xx; nothing of a verified kind is posted again once
the target has it, nothing of an idempotent kind is stored under two keys; nothing is sent before what it depends on; one
`sent` event per entry that was sent; and in the end everything leaves.
  OUTBOXD_RACE   seconds of racing (default 8)
  OUTBOXD_SEED   of the people's and the target's dice (default: another one each time, printed when it fails)
"""
import collections
import json
import os
import random
import threading
import time

import harness
from harness import LOOK_UP, SystemTest, key, wait_until
from target import Rule, Target

SECONDS = float(os.environ.get('OUTBOXD_RACE', '8'))
PEOPLE = SESSIONS = 50
KINDS = [
    {'name': 'create', 'url': '/create', 'idempotent': True, 'follow_up_edit': 'update', 'follow_up_remove': 'delete'},
    {'name': 'update', 'url': '/update', 'idempotent': True},
    {'name': 'delete', 'url': '/delete', 'idempotent': True},
    {'name': 'first', 'url': '/first', 'idempotent': True, 'ordering': 'first-due', 'max_in_flight': 3},
    {'name': 'pay', 'url': '/payments', 'verify': LOOK_UP, 'max_in_flight': 5},
]
PROBLEM = {'Content-Type': 'application/problem+json'}
REFUSED = {'status': 422, 'headers': PROBLEM, 'answer': '{"code":"refused"}'}
CONFLICT = {'status': 412, 'headers': PROBLEM, 'answer': '{"code":"conflict","current":{"version":"v2"}}'}
TRICKS = [  # weight, what the target does with a request whose key it has not stored
    (50, {}), (12, {'delay': 0.03}), (3, {'delay': 0.3}), (2, {'hold': True}), (8, REFUSED), (6, CONFLICT),
    (6, {'status': 503}), (3, {'status': 500}), (7, {'close': 'after-request', 'store': True}), (4, {'close': 'after-request'}),
    (2, {'close': 'reset'}),
]
OPERATIONS = {'accept': 36, 'edit': 14, 'remove': 9, 'retry': 16, 'confirm': 6, 'show': 8, 'list': 6, 'pause': 1, 'park': 1,
              'sweep': 2}


class TrickyTarget(Target):
    """Decides by its dice; a repeat of what it has stored is answered as a target that honours the key answers it."""

    def __init__(self, seed):
        super().__init__()
        self.dice = random.Random(seed)
        self.is_calm = False

    def _rule_for(self, request, has_body):
        if has_body or self.is_calm or request.key in self._stored:
            return None
        if request.method == 'GET':
            return Rule(status=500) if self.dice.random() < 0.1 else None
        fields = self.dice.choices([t[1] for t in TRICKS], [t[0] for t in TRICKS])[0]
        return Rule(**fields) if fields else None


class Person(threading.Thread):
    """Does one random thing after the other, and remembers what the judge must know."""

    def __init__(self, race, number):
        super().__init__(daemon=True)
        self.race, self.dice = race, random.Random(f'{race.seed} {number}')
        self.number, self.error, self.counter = number, None, 0

    def run(self):
        names, weights = list(OPERATIONS), list(OPERATIONS.values())
        try:
            while time.monotonic() < self.race.until:
                getattr(self, self.dice.choices(names, weights)[0])()
        except Exception as error:  # the test shows it
            self.error = error

    def call(self, method, path, body=None):
        answer = self.race.the_daemon.call(method, '/v1/workspaces/w' + path, body)
        self.race.answers[f'{method} {answer.status}'] += 1
        if answer.status >= 500:
            self.race.server_errors.append((method, path, body, answer))
        return answer

    def some_entry(self):
        known = self.race.known
        return self.dice.choice(known[-300:]) if known else 'ob_none'

    def accept(self):
        self.counter += 1
        text = f'{self.number}-{self.counter}'
        deps = [self.some_entry() for _ in range(self.dice.choice([0, 0, 0, 1, 1, 2]))]
        deps = [d for d in deps if d != 'ob_none']
        body = {'kind': self.dice.choice(['create', 'create', 'first', 'pay']), 'clientMessageID': text,
                'payload': {'text': text, 'version': 0, 'ok': self.dice.choice([None, 1])}}
        if deps:
            body['dependsOn'] = deps
        answer = self.call('POST', f'/sessions/s{self.dice.randrange(SESSIONS)}/entries', body)
        if answer.status == 202:
            entry = answer.json()['id']
            self.race.depends_on[entry] = deps
            self.race.known.append(entry)

    def edit(self):
        entry = self.some_entry()
        self.race.touched[entry].append(time.monotonic())
        answer = self.call('PATCH', f'/entries/{entry}', {'payload': {'version': self.dice.randrange(1000)}})
        if answer.status == 200:
            result = answer.json()
            if result['result'] == 'follow_up':
                self.race.depends_on.setdefault(result['id'], [entry])
            if result['id'] != entry:
                self.race.known.append(result['id'])

    def remove(self):
        answer = self.call('DELETE', f'/entries/{self.some_entry()}')
        if answer.status == 200 and answer.json()['result'] == 'follow_up':
            self.race.known.append(answer.json()['id'])

    def retry(self):
        entry = self.some_entry()
        self.race.touched[entry].append(time.monotonic())
        answer = self.call('POST', f'/entries/{entry}/retry')
        if answer.status == 200 and answer.json()['id'] != entry:
            self.race.known.append(answer.json()['id'])

    def confirm(self):
        entry = self.some_entry()
        self.race.echoed.setdefault(entry, time.monotonic())
        self.call('POST', '/confirm', {'entryID': entry, **({'result': {'ok': 2}} if self.dice.random() < 0.5 else {})})

    def show(self):
        self.call('GET', f'/entries/{self.some_entry()}')

    def list(self):
        self.call('GET', f'/sessions/s{self.dice.randrange(SESSIONS)}/entries')

    def pause(self):
        self.call('POST', '/pause')
        time.sleep(self.dice.random() * 0.1)
        self.call('POST', '/resume')

    def park(self):
        self.call('POST', '/park', {'reason': 'a race'})
        time.sleep(self.dice.random() * 0.1)
        self.call('POST', '/unpark')

    def sweep(self):
        self.call('POST', '/sweep', {'what': self.dice.choice(['unverifiable', 'parked-errors'])})


class Races(SystemTest):
    limit = SECONDS + 150

    def setUp(self):
        self.seed = os.environ.get('OUTBOXD_SEED', str(random.randrange(1 << 30)))
        self.the_target = TrickyTarget(self.seed).start()
        self.addCleanup(self.the_target.stop)
        self.the_daemon = self.daemon(self.the_target, workers=2, kinds=KINDS, max_attempts=3, max_verify_attempts=5,
                                      events_max=10000000)  # all of them are counted at the end
        self.known, self.depends_on, self.echoed = [], {}, {}
        self.touched = collections.defaultdict(list)  # by ID: when a person began to retry or edit it
        self.answers, self.server_errors = collections.Counter(), []
        self.shown = {}

    def race(self):
        self.until = time.monotonic() + SECONDS
        people = [Person(self, n) for n in range(PEOPLE)]
        for person in people:
            person.start()
        while any(person.is_alive() for person in people):
            time.sleep(0.3)
            self.the_target.release()
        for person in people:
            if person.error:
                raise person.error

    def open_entries(self):
        return [e for s in range(SESSIONS) for e in self.the_daemon.entries(f's{s}')]

    def let_everything_leave(self):
        """A person who sends again what failed, and now and then discards it."""
        dice = random.Random(self.seed)
        self.the_target.is_calm = True
        deadline = time.monotonic() + 60 * harness.SLOW
        while True:
            self.the_target.release()
            for what in ('resume', 'unpark'):
                self.assertEqual(self.the_daemon.call('POST', f'/v1/workspaces/w/{what}').status, 200)
            entries = self.open_entries()
            if not entries:
                return
            self.assertLess(time.monotonic(), deadline, f'{len(entries)} entries never leave, such as ' +
                            json.dumps(entries[:3], indent=1))
            for entry in entries:
                if entry['status'] == 'error':
                    self.touched[entry['id']].append(time.monotonic())
                    self.the_daemon.call(*(('DELETE', f'/v1/workspaces/w/entries/{entry["id"]}') if dice.random() < 0.1 else
                                           ('POST', f'/v1/workspaces/w/entries/{entry["id"]}/retry')))
            time.sleep(0.1)

    # the judge

    def show(self, entry):
        if entry not in self.shown:
            answer = self.the_daemon.entry(entry)
            self.shown[entry] = answer.json() if answer.status == 200 else {'status': 'gone'}
        return self.shown[entry]

    def stands_for(self, entry):
        """The entry and what replaced it, one after the other."""
        chain = [entry]
        while self.show(chain[-1]).get('replacedBy'):
            chain.append(self.show(chain[-1])['replacedBy'])
        return chain

    def check_nothing_is_delivered_twice(self):
        stored = {}  # key -> when
        for request in self.the_target.stored():
            stored[request.key] = request
        again = [r for r in self.the_target.posts(path='/payments') if r.key in stored and r.index > stored[r.key].index]
        self.assertFalse(again, 'posted again although the target had it')
        keys = collections.defaultdict(set)
        for request in stored.values():
            if request.path in ('/create', '/first', '/payments'):
                keys[request.json()['text']].add(request.key)
        twice = {text: found for text, found in keys.items() if len(found) > 1}
        self.assertFalse(twice, {k: [(self.show(k), [p for p in map(vars, self.the_target.posts(key=k))]) for k in found]
                                 for found in list(twice.values())[:1] for k in found})

    def check_what_depends_went_later(self):
        stored = {r.key: max(r.end, r.answered) for r in self.the_target.stored()}
        first_post = {}
        for request in self.the_target.posts():
            first_post.setdefault(request.key, request.time)
        for origin, deps in list(self.depends_on.items()):
            posts = [(k, first_post[k]) for k in self.stands_for(origin) if k in first_post]
            for sent, at in posts[:1]:
                for dep in deps:
                    chain = self.stands_for(dep)
                    if sent in chain:
                        continue  # a follow-up that was never sent became part of a later edit of what it followed
                    was_there = any(k in stored and stored[k] <= at for k in chain)
                    # An echo that names an entry which was replaced means the replacement.
                    was_echoed = any(when <= at and set(chain) & set(self.stands_for(k)) for k, when in self.echoed.items())
                    # What it depended on was discarded, and a person sent it all the same.
                    was_dropped = self.show(chain[-1])['status'] != 'sent' and \
                        any(t <= at for k in self.stands_for(origin) for t in self.touched.get(k, []))
                    self.assertTrue(was_there or was_echoed or was_dropped,
                                    f'{sent} (of {origin}) was sent before {dep}: {[self.show(k) for k in chain]}, '
                                    f'stored {[stored.get(k) for k in chain]}, sent {at}')

    def check_events(self):
        valkey = self.the_daemon.valkey()
        self.addCleanup(valkey.close)
        events = valkey('XRANGE', key('ev', 'w').rsplit(':', 1)[0], '-', '+')
        sent = collections.Counter()
        for _position, fields in events:
            event = dict(zip(fields[::2], fields[1::2]))
            if event[b'type'] == b'sent':
                sent[event[b'entryID'].decode()] += 1
        self.assertFalse({entry: n for entry, n in sent.items() if n > 1}, 'several sent events')
        for entry in self.known:
            self.assertEqual(sent[entry], int(self.show(entry)['status'] == 'sent'), self.show(entry))

    def test_people_and_deliveries_race(self):
        try:
            self.race()
            self.assertFalse(self.server_errors[:5], f'{len(self.server_errors)} answers were 5xx')
            self.let_everything_leave()
            self.check_nothing_is_delivered_twice()
            self.check_what_depends_went_later()
            self.check_events()
        except BaseException:
            print(f'OUTBOXD_SEED={self.seed}')
            raise
        print(f'{len(self.known)} entries, {len(self.the_target.posts())} requests, '
              f'{len(self.the_target.stored())} stored; {dict(sorted(self.answers.items()))}')
        # The race was one: each sort of thing happened.
        self.assertGreater(len(self.the_target.stored()), PEOPLE)
        for what in ('PATCH 200', 'DELETE 200', 'POST 202', 'POST 409', 'POST 200'):
            self.assertGreater(self.answers[what], 0, what)


if __name__ == '__main__':
    harness.main()
