#!/usr/bin/env python3
"""A target with a delivery ledger that obeys a script: Deliver and GetDeliveryStatus, Connect's unary JSON.

  with Ledger() as ledger: ledger.plan('session', 1, status=500, rows={1: 'FAILED'}); …; ledger.delivers('session')

Rows are named by (session, attempt): entry IDs are learnt from Deliver, or told by know(). A row's state is one of the
contract's words without their prefix, any other text (a state that nobody knows), None (no such row), or one of
  'fail'   looking it up answers 500        'cut'   … or nothing, the connection is cut
  'web'    … or a web page under 200        'hang'  … or nothing until release()
Rules of target.py (script) come first. One Ledger serves many sessions at once; standard library only.
"""
import collections
import json
import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from target import Rule, Target  # noqa: E402

PATH = '/llmsafespaces.abi.v1.HarnessABIService'
PREFIX = 'LEDGER_STATE_'
COMPLETING = ('ADMITTED', 'PROMOTED', 'TURN_ENDED', 'STALLED')
FAILING = {
    'fail': {'status': 500, 'answer': {'code': 'internal', 'message': 'no'}},
    'cut': {'close': 'after-request'},
    'web': {'status': 200, 'answer': '<!doctype html><title>not a ledger</title>'},
    'hang': {'hold': 'ledger', 'status': 503, 'answer': {'code': 'unavailable'}},
}

# looked: how often the row before it had been looked up when it came
Deliver = collections.namedtuple('Deliver', 'session entry attempt body request looked')


class Ledger(Target):
    """Target whose plain answers are a ledger's. Everything public may be called from any thread."""

    def __init__(self, path=PATH, wrapped=False, **options):
        super().__init__(**options)
        self.path = path
        self.wrapped = wrapped          # states come in {"message": …}
        self._rows = {}                 # (session, attempt) -> state
        self._sessions = {}             # entry -> session
        self._plans = {}                # (session, attempt) -> fields
        self._delivers = []
        self._looks = collections.Counter()  # (session, attempt) -> look-ups
        self._guard = threading.RLock()

    # for tests

    def plan(self, session, attempt, rows=None, times=None, **answer):
        """What Deliver of this attempt does: `rows` {attempt: state} are set when it comes (default: this attempt is ADMITTED);
        `state` is what its answer says (default: the row's, '' for none), and members of a rule of target.py: status, close, …"""
        with self._guard:
            self._plans[session, attempt] = dict(answer, rows=rows, times=times)

    def set_rows(self, session, rows):
        with self._guard:
            self._rows.update({(session, attempt): state for attempt, state in rows.items()})

    def know(self, entry, session):
        with self._guard:
            self._sessions[entry] = session

    def delivers(self, session=None):
        with self._guard:
            return [d for d in self._delivers if session is None or d.session == session]

    def attempts(self, session):
        """The attempt numbers of its Delivers, in order."""
        return [d.attempt for d in self.delivers(session)]

    def looks(self, session, attempt):
        with self._guard:
            return self._looks[session, attempt]

    # for connections, in the loop's thread

    def _rule_for(self, request, has_body):
        rule = super()._rule_for(request, has_body)
        if rule or not has_body or not request.path.startswith(self.path + '/'):
            return rule
        try:
            body = json.loads(request.body)
            procedure = {'Deliver': self._deliver, 'GetDeliveryStatus': self._status}[request.path[len(self.path) + 1:]]
            return Rule(store=False, **procedure(body, request))
        except (ValueError, KeyError, TypeError) as error:
            return Rule(store=False, status=400, answer={'code': 'invalid_argument', 'message': repr(error)})

    def _deliver(self, body, request):
        session, entry, attempt = body['sessionId'], body['entryId'], body['attempt']
        with self._guard:
            self._sessions[entry] = session
            self._delivers.append(Deliver(session, entry, attempt, body, request, self._looks[session, attempt - 1]))
            plan = self._plans.get((session, attempt), {})
            if plan.get('times') is not None:
                if plan['times'] == 0:
                    plan = {}
                else:
                    plan['times'] -= 1
            fields = {name: value for name, value in plan.items() if name not in ('rows', 'times', 'state')}
            rows = plan.get('rows')
            self._rows.update({(session, a): s for a, s in ({attempt: 'ADMITTED'} if rows is None else rows).items()})
            state = plan.get('state', self._rows.get((session, attempt)))
        if 'status' not in fields and 'answer' not in fields:
            fields.update(self._answer(state or ''))
        return fields

    def _status(self, body, _request):
        with self._guard:
            session = self._sessions.get(body['entryId'])
            row = session, body['attempt']
            self._looks[row] += 1
            state = self._rows.get(row)
        if state is None:
            return {'status': 404, 'answer': {'code': 'not_found', 'message': 'no such row'}}
        return FAILING.get(state) or self._answer(state)

    def _answer(self, state):
        answer = {'state': PREFIX + state} if state and state not in FAILING else {}
        return {'status': 200, 'answer': {'message': answer} if self.wrapped else answer}
