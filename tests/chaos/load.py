"""Clients that behave as clients should: one clientMessageID per message, the same request again until 202 or 200; the next
message of a session only then. Some are rude and close the connection without having read the answer.
"""
import collections
import contextlib
import http.client
import json
import random
import threading
import time

from check import Message
from harness import SLOW, Client
from kinds import kinds_of

SESSIONS = {'http': 6, 'agent': 1, 'old agent': 1, 'ledger': 1}  # of each client
ANSWER_LIMIT = 4.0   # seconds that a client waits for an answer
CATCH_UP = 5.0       # seconds of the pace that a client makes up for when it could not send
AGAIN_AFTER = 0.1    # seconds until a client tries again
RUDE = 0.02          # of the requests
FIRST_NUMBERS = 10 ** 6  # of one client


class Lane:
    """A session and its message that is to be acknowledged next."""

    def __init__(self, workspace, session, kinds):
        self.workspace, self.session, self.kinds = workspace, session, kinds
        self.message = None


class Sender:
    """One client in a thread of its own, of one site, with sessions of its own."""

    def __init__(self, load, site, place):
        self.load, self.site, self.place = load, site, place
        self.dice = random.Random(f'{load.seed} {site.name} {place}')
        self.lanes = [Lane(site.workspaces[target], site.new_session(target, f'c{place}-{n}'), kinds_of(target))
                      for target, count in SESSIONS.items() for n in range(count)]
        self.made = 0
        self.clients = {}
        self.thread = threading.Thread(target=self.guarded, name=f'client {site.name} {place}', daemon=True)

    def guarded(self):
        try:
            self.run()
        except Exception as error:
            self.load.faults_found.append(f'the client {self.site.name} {self.place} ended with {error!r}')
        for client in self.clients.values():
            client.close()

    def run(self):
        pause = self.load.senders_of_site / self.load.rate
        due = time.monotonic()
        while not self.load.is_over.wait(max(0, due - time.monotonic())):
            self.advance(self.dice.choice(self.lanes))
            due = max(due + pause * self.dice.uniform(0.5, 1.5), time.monotonic() - CATCH_UP)
        # What was sent once is sent until it is acknowledged.
        while unanswered := [lane for lane in self.lanes if lane.message]:
            if self.load.must_stop.is_set():
                return
            self.advance(self.dice.choice(unanswered))

    def advance(self, lane):
        if lane.message is None:
            lane.message = self.make(lane)
        message = lane.message
        status = self.post(lane, message)
        if status in (200, 202):
            message.acknowledged = time.monotonic()
            lane.message = None
            self.load.note(message, status)
        elif status in (429, 503, 0):
            self.load.must_stop.wait(AGAIN_AFTER)

    def make(self, lane):
        kind = self.dice.choices(lane.kinds, [kind.share for kind in lane.kinds])[0]
        self.made += 1
        message = Message(self.place * FIRST_NUMBERS + self.made, kind, self.site.name, f'{lane.workspace}/{lane.session}',
                          began=time.monotonic())
        self.load.messages[message.number] = message
        return message

    def body(self, message):
        base = {'clientMessageID': f'm{message.number}'}
        if message.kind.target == 'http':
            return {**base, 'kind': message.kind.name, 'payload': {'number': message.number}}
        return {**base, 'kind': message.kind.name, 'text': f'text {message.number}'}

    def post(self, lane, message):
        """The status; 0: none. Whatever the answer says of the entry's ID is kept."""
        node = self.dice.choice(self.site.nodes)
        client = self.clients.setdefault(node.name, Client(node.port, timeout=ANSWER_LIMIT / SLOW))
        path = f'/v1/workspaces/{lane.workspace}/sessions/{lane.session}/entries'
        message.posts += 1
        if self.dice.random() < RUDE:
            self.load.answers['not waited for'] += 1
            self.be_rude(client, path, message, node.access.client_headers)
            return 0
        try:
            answer = client.call('POST', path, self.body(message), node.access.client_headers)
        except (OSError, http.client.HTTPException):
            self.load.no_answers += 1
            return 0
        self.load.answers[answer.status] += 1
        if answer.status in (200, 202):
            message.ids.add(answer.json()['id'])
        elif answer.status not in (429, 503):
            self.load.log({'what': 'answered', 'number': message.number, 'status': answer.status, 'body': answer.body.decode()[:500]})
        return answer.status

    def be_rude(self, client, path, message, headers):
        with contextlib.suppress(OSError, http.client.HTTPException):
            client.connection.request('POST', path, json.dumps(self.body(message)), {'Content-Type': 'application/json', **headers})
        client.close()


class Load:
    """All clients of all sites. rate: messages a second of each site."""

    def __init__(self, seed, rate, log):
        self.seed, self.rate, self.log = seed, rate, log
        self.messages = {}
        self.answers = collections.Counter()
        self.no_answers = 0
        self.acknowledged = collections.Counter()  # by (kind, status)
        self.faults_found = []
        self.lock = threading.Lock()
        self.is_over, self.must_stop = threading.Event(), threading.Event()
        self.senders, self.senders_of_site = [], 0

    def start(self, sites, senders_of_site):
        self.senders_of_site = senders_of_site
        for place in range(senders_of_site):
            for n, site in enumerate(sites):
                self.senders.append(Sender(self, site, place * len(sites) + n + 1))
        for sender in self.senders:
            sender.thread.start()

    def note(self, message, status):
        with self.lock:
            self.acknowledged[message.kind.name, status] += 1
        self.log({'what': 'acknowledged', 'number': message.number, 'kind': message.kind.name, 'session': message.session,
                  'ids': sorted(message.ids), 'status': status, 'posts': message.posts, 'began': message.began,
                  'time': message.acknowledged})

    def finish(self, limit):
        """No new messages; those under way until they are acknowledged. How many could not be within `limit` seconds."""
        self.is_over.set()
        deadline = time.monotonic() + limit
        for sender in self.senders:
            sender.thread.join(max(0, deadline - time.monotonic()))
        self.must_stop.set()
        return sum(sender.thread.is_alive() for sender in self.senders)
