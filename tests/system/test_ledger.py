"""The executor `ledger`: how attempts go, how rows decide, the park guard, the parked sweep (contract §4, §5).

The tables run as one: a session for each pair of row states and each question that is asked about them, all at once.
"""
import itertools
import json

from harness import SystemTest, in_parallel, key, main, wait_until
from store_checks import events

from ledger import COMPLETING, FAILING, Ledger

KINDS = [
    {'name': 'prompt', 'executor': 'ledger', 'max_attempts': 5, 'max_transient_failures': 100000, 'max_verify_attempts': 10000},
    {'name': 'twice', 'executor': 'ledger', 'max_attempts': 2},
    {'name': 'hasty', 'executor': 'ledger', 'max_transient_failures': 1, 'max_verify_attempts': 1},
]
ROWS = (None, 'LEDGERED', 'ADMITTED', 'PROMOTED', 'TURN_ENDED', 'STALLED', 'FAILED', 'DREAMT', 'fail', 'cut', 'web')
PAIRS = list(itertools.product(ROWS, ROWS))
NEVER = '1h'


def verdict(last, following):
    """What a pair of rows comes to, in the contract's words."""
    if last in COMPLETING or following in COMPLETING:
        return 'complete'
    if 'LEDGERED' in (last, following):
        return 'ledgered'
    if 'DREAMT' in (last, following) or last in FAILING or following in FAILING:
        return 'indeterminate'
    return 'failed' if following == 'FAILED' else 'free'


def name(*words):
    return '-'.join(str(word) for word in words)


class LedgerTest(SystemTest):
    def ledger(self, **options):
        ledger = Ledger(**options).start()
        self.addCleanup(ledger.stop)
        return ledger

    def start(self, ledger, /, **settings):
        """A daemon with short waits whose sweep stays out of the way unless a test asks for it."""
        given = dict({'kinds': KINDS, 'jitter': 'none', 'retry_backoff': '50ms', 'verify_delay': '50ms', 'verify_settle': '100ms',
                      'verify_timeout': '300ms', 'repoll_after': '100ms', 'parked_sweep_interval': NEVER,
                      'ledger': {'lookup_timeout': '5s', 'poll_interval': '20ms', 'poll_window': '300ms'}}, **settings)
        return self.daemon(ledger, **given)

    def send(self, daemon, session, kind='prompt', workspace='w', **members):
        members.setdefault('clientMessageID', session)
        if kind == 'prompt':
            return daemon.accept_ok(session, workspace=workspace, text=f'text of {session}', **members)
        return daemon.accept_ok(session, workspace=workspace, kind=kind, payload={'text': f'text of {session}'}, **members)

    def send_all(self, daemon, sessions, kind='prompt', workspace='w'):
        ids = in_parallel([lambda s=s: self.send(daemon, s, kind, workspace) for s in sessions], threads=16)
        return dict(zip(sessions, ids))

    def wait_for(self, daemon, entry, what, workspace='w', timeout=30):
        """Waits until what(entry as JSON) is true; the entry."""
        def look():
            answer = daemon.entry(entry, workspace)
            return answer.status == 200 and what(answer.json()) and answer.json()
        return wait_until(look, timeout, lambda: f'{entry}: {daemon.entry(entry, workspace)}', every=0.03)

    def assertSentOnce(self, daemon, ids, via=None):
        """One `sent` event for each; and how it was settled."""
        valkey = daemon.valkey()
        try:
            sent = [e for e in events(valkey) if e['type'] == 'sent']
        finally:
            valkey.close()
        found = {}
        for event in sent:
            found.setdefault(event['entryID'], []).append(event['via'])
        for session, entry in ids.items():
            self.assertEqual(len(found.get(entry, [])), 1, (session, found.get(entry)))
            if via:
                self.assertEqual(found[entry], [via], session)


class Delivery(LedgerTest):
    def test_a_prompt_is_delivered_with_its_attempt_its_text_and_its_model(self):
        ledger = self.ledger()
        daemon = self.start(ledger, target={'url': ledger.url + '/', 'username': 'ann', 'password': 'secret'})
        model = '{"providerID":"p","big":12345678901234567890123,"ratio":1.50}'
        body = '{"clientMessageID":"m1","text":"say \\"hi\\" \u00e9","model":%s}' % model
        entry = daemon.accept_ok('s', body=body)
        daemon.wait_status(entry, 'sent')
        deliver, = ledger.delivers()
        self.assertEqual((deliver.session, deliver.entry, deliver.attempt), ('s', entry, 1))
        self.assertEqual(deliver.body['parts'], [{'type': 'text', 'text': 'say "hi" \u00e9'}])
        self.assertIn(model.encode(), deliver.request.body)
        headers = deliver.request.headers
        self.assertEqual(headers['authorization'], 'Basic YW5uOnNlY3JldA==')
        self.assertEqual(headers['content-type'], 'application/json')
        self.assertEqual(headers['connect-protocol-version'], '1')
        self.assertEqual((headers['idempotency-key'], headers['outbox-client-message-id'], headers['outbox-attempt']),
                         (entry, 'm1', '1'))
        self.assertSentOnce(daemon, {'s': entry}, 'answer')
        plain = self.send(daemon, 's2')
        daemon.wait_status(plain, 'sent')
        self.assertNotIn('model', ledger.delivers('s2')[0].body)

    def test_the_row_decides_within_the_window_bare_or_wrapped(self):
        for wrapped in (False, True):
            ledger = self.ledger(wrapped=wrapped)
            daemon = self.start(ledger, ledger={'poll_interval': '20ms', 'poll_window': '10s', 'lookup_timeout': '5s'})
            for state in COMPLETING:
                ledger.plan(state, 1, rows={1: 'LEDGERED'})
            ledger.plan('failed', 1, rows={1: 'LEDGERED'})
            ledger.plan('silent', 1, rows={1: 'LEDGERED'}, state='')  # Deliver's answer says nothing
            sessions = [*COMPLETING, 'failed', 'silent']
            ids = self.send_all(daemon, sessions)
            for session in sessions:
                wait_until(lambda s=session: ledger.looks(s, 1) >= 3, 20, f'looks at the row of {session}')
            for state in COMPLETING:
                ledger.set_rows(state, {1: state})
            ledger.set_rows('silent', {1: 'ADMITTED'})
            ledger.set_rows('failed', {1: 'FAILED'})
            for session in sessions:
                daemon.wait_status(ids[session], 'sent')
                self.assertEqual(ledger.attempts(session), [1, 2] if session == 'failed' else [1])
            settled = {s: i for s, i in ids.items() if s != 'failed'}
            self.assertSentOnce(daemon, settled, 'ledger')
            self.end(daemon)

    def test_a_ledgered_attempt_is_waited_for_and_never_sent_again(self):
        ledger = self.ledger()
        daemon = self.start(ledger)
        ledger.plan('s', 1, rows={1: 'LEDGERED'}, times=1)
        entry = self.send(daemon, 's')
        behind = self.send(daemon, 's', clientMessageID='behind')
        wait_until(lambda: ledger.looks('s', 1) >= 25, 20, 'polls after the window')  # which has room for 15
        waiting = daemon.entry(entry).json()
        self.assertEqual((waiting['status'], waiting.get('attempts', 0)), ('delivering', 0))
        self.assertEqual(ledger.attempts('s'), [1])
        self.assertEqual(daemon.status(behind), 'pending')  # the session waits for it
        ledger.set_rows('s', {1: 'STALLED'})
        daemon.wait_status(entry, 'sent')
        daemon.wait_status(behind, 'sent')
        self.assertEqual([d.entry for d in ledger.delivers('s')], [entry, behind])
        self.assertSentOnce(daemon, {'s': entry}, 'ledger')

    def test_refusals_count_attempts_and_honour_retry_after(self):
        ledger = self.ledger()
        daemon = self.start(ledger)
        ledger.plan('s', 1, rows={}, status=503, headers={'Retry-After': '1'})
        ledger.plan('s', 2, rows={}, status=404, answer={'code': 'not_found'})
        ledger.plan('s', 3, rows={3: 'FAILED'})
        entry = self.send(daemon, 's')
        daemon.wait_status(entry, 'sent', timeout=30)
        self.assertEqual(ledger.attempts('s'), [1, 2, 3, 4])
        first, second = ledger.delivers('s')[:2]
        self.assertGreaterEqual(second.request.time - first.request.time, 1.0)
        self.assertSentOnce(daemon, {'s': entry})

    def test_what_never_started_mints_no_attempt(self):
        ledger = self.ledger()
        daemon = self.start(ledger)
        ledger.stop()
        entry = self.send(daemon, 's')
        waiting = self.wait_for(daemon, entry, lambda e: e.get('transientFails', 0) >= 2)
        self.assertEqual((waiting['status'], waiting.get('attempts', 0), waiting.get('sends', 0)), ('pending', 0, 0))
        back = Ledger(port=ledger.port).start()
        self.addCleanup(back.stop)
        daemon.wait_status(entry, 'sent')
        self.assertEqual(back.attempts('s'), [1])
        self.assertEqual(back.looks('s', 1), 0)  # nothing was ever sent: nothing had to be looked up

    def test_an_answer_that_cannot_be_read_is_never_a_failure(self):
        """A page under 200: the row decides; where it can't be read either, the entry is verified until it can."""
        ledger = self.ledger()
        daemon = self.start(ledger)
        for session, row in (('row', 'ADMITTED'), ('blind', 'web')):
            ledger.plan(session, 1, rows={1: row}, status=200, answer='<html>')
        ids = self.send_all(daemon, ['row', 'blind'])
        daemon.wait_status(ids['row'], 'sent')
        seen = self.wait_for(daemon, ids['blind'], lambda e: e.get('verifyAttempts', 0) >= 2)
        self.assertEqual((seen['status'], seen.get('attempts', 0)), ('verifying', 0))
        ledger.set_rows('blind', {1: 'ADMITTED'})
        daemon.wait_status(ids['blind'], 'sent')
        self.assertEqual((ledger.attempts('row'), ledger.attempts('blind')), ([1], [1]))
        self.assertSentOnce(daemon, ids, 'ledger')

    def test_an_entry_without_a_text_is_no_loop(self):
        ledger = self.ledger()
        daemon = self.start(ledger)
        entry = daemon.accept_ok('s', kind='twice', payload={'title': 'no text'})
        failed = daemon.wait_status(entry, 'error')
        self.assertEqual(failed['lastError']['code'], 'executor_error')
        self.assertEqual(ledger.delivers(), [])

    def test_a_persons_retry_never_uses_a_spent_row_again(self):
        ledger = self.ledger()
        daemon = self.start(ledger)
        for attempt in (1, 2):
            ledger.plan('spent', attempt, rows={attempt: 'FAILED'})
        ledger.plan('unsure', 1, rows={1: 'fail', 2: 'fail'}, close='after-request')
        ids = {'spent': self.send(daemon, 'spent', 'twice'), 'unsure': self.send(daemon, 'unsure', 'hasty')}
        self.assertEqual(daemon.wait_status(ids['spent'], 'error')['lastError']['code'], 'attempts_exhausted')
        self.assertEqual(daemon.wait_status(ids['unsure'], 'error')['lastError']['code'], 'unverifiable')
        ledger.set_rows('unsure', {1: 'FAILED', 2: None})
        for entry in ids.values():
            self.assertEqual(daemon.call('POST', f'/v1/workspaces/w/entries/{entry}/retry').status, 200)
        for entry in ids.values():
            daemon.wait_status(entry, 'sent')
        self.assertEqual(ledger.attempts('spent'), [1, 2, 3])
        self.assertEqual(ledger.attempts('unsure'), [1, 2])
        self.assertSentOnce(daemon, ids)

    def test_a_retry_of_what_the_ledger_has_after_all_sends_nothing(self):
        ledger = self.ledger()
        daemon = self.start(ledger)
        ledger.plan('s', 1, rows={1: 'fail', 2: 'fail'}, close='after-request')
        entry = self.send(daemon, 's', 'hasty')
        daemon.wait_status(entry, 'error')
        ledger.set_rows('s', {1: 'ADMITTED', 2: None})
        self.assertEqual(daemon.call('POST', f'/v1/workspaces/w/entries/{entry}/retry').status, 200)
        daemon.wait_status(entry, 'sent')
        self.assertEqual(ledger.attempts('s'), [1])


class Tables(LedgerTest):
    """(state of the last row) × (state of the next) for each question that is asked about them."""
    limit = 240

    def check(self, daemon, ids, question, expect):
        """expect(session, last, following, verdict) runs for every pair until it raises no more."""
        def left():
            failures = []
            for (last, following), (session, entry) in ids.items():
                try:
                    expect(session, entry, last, following, verdict(last, following))
                except AssertionError as error:
                    failures.append(f'{question} {last}/{following}: {error}')
            return failures
        wait_until(lambda: not left(), 90, lambda: '\n'.join(left()[:12]), every=0.5)

    def assertState(self, daemon, entry, status, attempts=None):
        answer = daemon.entry(entry).json()
        self.assertEqual(answer['status'], status, answer)
        if attempts is not None:
            self.assertEqual(answer.get('attempts', 0), attempts, answer)

    def begin(self, daemon, ledger, question, plan, kind='prompt'):
        """A session for each pair; plan(session, last, following) scripts it before the message is accepted."""
        sessions = {}
        for last, following in PAIRS:
            session = name(question, last, following)
            plan(session, last, following)
            sessions[last, following] = session
        ids = self.send_all(daemon, list(sessions.values()), kind)
        return {pair: (session, ids[session]) for pair, session in sessions.items()}

    def test_before_a_resend_the_rows_decide(self):
        ledger = self.ledger()
        daemon = self.start(ledger)
        ids = self.begin(daemon, ledger, 'resend',
                         lambda s, last, following: ledger.plan(s, 1, rows={1: last, 2: following}, status=500))

        def expect(session, entry, last, following, what):
            self.assertGreaterEqual(ledger.looks(session, 1), 1)
            if what == 'complete':
                self.assertState(daemon, entry, 'sent')
                self.assertEqual(ledger.attempts(session), [1])
            elif what == 'ledgered':
                self.assertState(daemon, entry, 'delivering', 1)
                self.assertGreaterEqual(ledger.looks(session, 1), 4)
                self.assertEqual(ledger.attempts(session), [1])
            elif what == 'indeterminate':
                self.assertState(daemon, entry, 'pending', 1)  # nothing is sent, nothing counted
                self.assertGreaterEqual(ledger.looks(session, 1), 4)
                self.assertEqual(ledger.attempts(session), [1])
            else:
                self.assertState(daemon, entry, 'sent')
                self.assertEqual(ledger.attempts(session), [1, 3] if what == 'failed' else [1, 2])
        self.check(daemon, ids, 'resend', expect)
        self.assertSentOnce(daemon, {s: e for (last, f), (s, e) in ids.items()
                                     if verdict(last, f) in ('complete', 'failed', 'free')})

    def test_verification_reads_the_rows(self):
        ledger = self.ledger()
        daemon = self.start(ledger)

        def plan(session, last, following):
            ledger.plan(session, 1, rows={1: 'FAILED'})
            ledger.plan(session, 2, rows={1: last, 2: following}, close='after-request')
        ids = self.begin(daemon, ledger, 'verify', plan)

        def expect(session, entry, last, following, what):
            if what == 'complete':
                self.assertState(daemon, entry, 'sent')
                self.assertEqual(ledger.attempts(session), [1, 2])
            elif what == 'ledgered':
                self.assertState(daemon, entry, 'delivering', 1)
                self.assertGreaterEqual(ledger.looks(session, 2), 4)
                self.assertEqual(ledger.attempts(session), [1, 2])
            elif what == 'indeterminate':
                self.assertState(daemon, entry, 'verifying', 1)
                self.assertGreaterEqual(ledger.looks(session, 2), 4)
                self.assertEqual(ledger.attempts(session), [1, 2])
            else:
                self.assertState(daemon, entry, 'sent')
                self.assertEqual(ledger.attempts(session), [1, 2, 3])
        self.check(daemon, ids, 'verify', expect)

    def test_a_poll_waits_as_long_as_it_takes(self):
        ledger = self.ledger()
        daemon = self.start(ledger)

        def plan(session, _last, _following):
            ledger.plan(session, 1, rows={1: 'FAILED'})
            ledger.plan(session, 2, rows={2: 'LEDGERED'}, times=1)
        ids = self.begin(daemon, ledger, 'poll', plan)
        for session, entry in ids.values():
            wait_until(lambda s=session: any(ledger.looks(s, 1) > d.looked for d in ledger.delivers(s)[1:]), 30,
                       f'a poll of {session}')
        for (last, following), (session, entry) in ids.items():
            ledger.set_rows(session, {1: last, 2: following})
        base = {session: ledger.looks(session, 2) for session, _ in ids.values()}

        def expect(session, entry, last, following, what):
            if what == 'complete':
                self.assertState(daemon, entry, 'sent')
                self.assertEqual(ledger.attempts(session), [1, 2])
            elif what in ('ledgered', 'indeterminate'):
                self.assertState(daemon, entry, 'delivering', 1)
                self.assertGreaterEqual(ledger.looks(session, 2), base[session] + 4)
                self.assertEqual(ledger.attempts(session), [1, 2])
            else:
                self.assertState(daemon, entry, 'sent')
                # Without a row the attempt was never owned: its number is free again.
                self.assertEqual(ledger.attempts(session), [1, 2, 3] if what == 'failed' else [1, 2, 2])
        self.check(daemon, ids, 'poll', expect)

    def test_the_guard_asks_before_an_entry_fails(self):
        ledger = self.ledger()
        daemon = self.start(ledger)

        def plan(session, last, following):
            ledger.plan(session, 1, rows={1: 'FAILED'})
            ledger.plan(session, 2, rows={2: last, 3: following}, status=500)
        ids = self.begin(daemon, ledger, 'guard', plan, 'twice')

        def expect(session, entry, last, following, what):
            self.assertEqual(ledger.attempts(session), [1, 2])
            self.assertGreaterEqual(ledger.looks(session, 3), 1)
            if what == 'complete':
                self.assertState(daemon, entry, 'sent')
            elif what == 'ledgered':
                self.assertState(daemon, entry, 'delivering', 1)
                self.assertGreaterEqual(ledger.looks(session, 3), 4)
            else:
                # A sweep that a hint brought about may have adopted the row that failed.
                self.assertState(daemon, entry, 'error')
                self.assertIn(daemon.entry(entry).json()['attempts'], (2, 3) if what == 'failed' else (2,))
                self.assertEqual(daemon.entry(entry).json()['lastError']['code'], 'attempts_exhausted')
        self.check(daemon, ids, 'guard', expect)
        valkey = daemon.valkey()
        failed = {e['entryID'] for e in events(valkey) if e['type'] == 'error'}
        valkey.close()
        for (last, following), (session, entry) in ids.items():
            self.assertEqual(entry in failed, verdict(last, following) not in ('complete', 'ledgered'), session)


class Crashes(LedgerTest):
    limit = 120

    def test_workers_that_die_in_any_phase_lose_and_double_nothing(self):
        ledger = self.ledger()
        daemon = self.start(ledger, ledger={'lookup_timeout': '10s', 'poll_interval': '20ms', 'poll_window': '10s'})
        ledger.plan('deliver', 1, rows={1: 'ADMITTED'}, hold='deliver')
        ledger.plan('lost', 1, rows={}, hold='deliver')             # it dies before the ledger wrote anything
        ledger.plan('window', 1, rows={1: 'LEDGERED'})
        ledger.plan('look-up', 1, rows={1: 'hang'}, status=500)
        ledger.plan('verify', 1, rows={1: 'hang'}, close='after-request')
        ledger.plan('error', 1, rows={1: 'fail'}, close='after-request')
        sessions = ['deliver', 'lost', 'window', 'look-up', 'verify']
        ids = self.send_all(daemon, sessions)
        ids['error'] = self.send(daemon, 'error', 'hasty')
        daemon.wait_status(ids['error'], 'error')
        ledger.set_rows('error', {1: 'hang'})
        before = ledger.looks('error', 1)
        self.send(daemon, 'elsewhere')  # a hint: the sweep looks at the partition
        wait_until(lambda: ledger.looks('error', 1) > before, 20, 'the sweep to hang')
        wait_until(lambda: len(ledger.delivers('deliver')) == len(ledger.delivers('lost')) == 1, 20, 'Deliver')
        for session in ('window', 'look-up', 'verify'):
            wait_until(lambda s=session: ledger.looks(s, 1) >= 1, 20, f'a look at {session}')
        daemon.kill('worker')
        ledger.set_rows('window', {1: 'TURN_ENDED'})
        ledger.set_rows('look-up', {1: None})
        for session in ('verify', 'error'):
            ledger.set_rows(session, {1: 'ADMITTED'})
        ledger.release()
        for session, entry in ids.items():
            if session == 'error':  # what the dead one had taken is due again after an interval, or by hand
                self.assertEqual(daemon.call('POST', '/v1/workspaces/w/sweep', {'what': 'parked-errors'}).status, 200)
            daemon.wait_status(entry, 'sent', timeout=40)
            self.assertEqual(ledger.attempts(session), [1, 2] if session in ('lost', 'look-up') else [1], session)
        self.assertSentOnce(daemon, ids)


class Sweep(LedgerTest):
    limit = 240
    QUICK = {'lookup_timeout': '2s', 'poll_interval': '20ms', 'poll_window': '300ms'}

    def fail_all(self, daemon, ledger, sessions):
        """Entries in `error`, unverifiable after one Deliver that was cut; looking them up fails."""
        for session in sessions:
            ledger.plan(session, 1, rows={1: 'fail', 2: 'fail'}, close='after-request')
        ids = self.send_all(daemon, sessions, 'hasty')
        for entry in ids.values():
            self.assertEqual(daemon.wait_status(entry, 'error', timeout=60)['lastError']['code'], 'unverifiable')
        return ids

    def test_every_pair_of_rows_with_and_without_budget_and_proof(self):
        rows = (None, 'LEDGERED', 'ADMITTED', 'STALLED', 'FAILED', 'DREAMT', 'fail')
        cases = {name('sweep', *case): case for case in itertools.product(rows, rows, (1, 4, 5), (False, True))}
        ledger = self.ledger()
        daemon = self.start(ledger, parked_sweep_interval='1s', ledger=self.QUICK, max_attempts=5)
        ids = self.fail_all(daemon, ledger, list(cases))
        valkey = daemon.valkey()
        self.addCleanup(valkey.close)
        looked = {}
        for session, (last, following, attempts, is_unverifiable) in cases.items():
            ledger.set_rows(session, {attempts: 'fail', attempts + 1: 'fail'})
            code = 'unverifiable' if is_unverifiable else 'attempts_exhausted'
            valkey('HSET', key('e', 'w', ids[session]), 'attempts', attempts, 'lastError', json.dumps({'code': code}))
            looked[session] = ledger.looks(session, attempts + 1)
            ledger.set_rows(session, {attempts: last, attempts + 1: following})

        def expected(last, following, attempts, is_unverifiable):
            """(status, attempts or None, Delivers)"""
            what = verdict(last, following)
            if what == 'complete':
                return 'sent', None, [1]
            if what in ('ledgered', 'indeterminate'):
                return 'error', attempts, [1]
            adopted = attempts + (what == 'failed')
            if adopted >= 5:
                return 'error', adopted, [1]
            counted = attempts + 1 if is_unverifiable else adopted  # verified first, which counts the attempt
            return ('error', 5, [1]) if counted >= 5 else ('sent', None, [1, counted + 1])

        def wrong():
            found = []
            for session, case in cases.items():
                status, attempts, delivers = expected(*case)
                entry = daemon.entry(ids[session]).json()
                looks = ledger.looks(session, case[2] + 1) - looked[session]
                if entry['status'] != status or ledger.attempts(session) != delivers or \
                        (attempts is not None and entry['attempts'] != attempts) or looks < (2 if status == 'error' else 1):
                    found.append(f'{session}: {looks} looks, Delivers {ledger.attempts(session)}, {entry}')
            return found
        wait_until(lambda: not wrong(), 100, lambda: '\n'.join(wrong()[:8]), every=1)
        self.assertSentOnce(daemon, {s: ids[s] for s, case in cases.items() if expected(*case)[0] == 'sent'})
        self.assertSentOnce(daemon, {s: ids[s] for s, case in cases.items() if expected(*case)[2] == [1] and
                                     expected(*case)[0] == 'sent'}, 'ledger')
        for outcome in ('verified', 'completed', 'rearmed', 'stayed', 'indeterminate'):
            self.assertGreater(daemon.metric('outbox_parked_sweep_outcomes_total', outcome=outcome), 0, outcome)
        for loop in ('sweep', 'claim', 'reconcile'):
            self.assertGreater(daemon.metric('outbox_loop_last_run_timestamp_seconds', loop=loop), 0, loop)

    def test_a_sweep_with_nothing_to_do_says_that_it_ran(self):
        daemon = self.start(self.ledger(), parked_sweep_interval='1s')

        def ran():
            return daemon.metric('outbox_loop_last_run_timestamp_seconds', loop='sweep')
        first = wait_until(ran, 20, 'the first pass')
        wait_until(lambda: ran() > first, 20, 'another pass')

    def test_a_target_that_is_away_holds_up_neither_deliveries_nor_other_workspaces(self):
        ledger = self.ledger()
        daemon = self.start(ledger, parked_sweep_interval='1s', ledger=self.QUICK)
        hanging = [f'hang-{n}' for n in range(70)]  # more than are looked up at once
        self.fail_all(daemon, ledger, hanging)
        for session in hanging:
            ledger.set_rows(session, {1: 'hang', 2: 'hang'})
        ledger.plan('other', 1, rows={1: 'fail'}, close='after-request')
        other = self.send(daemon, 'other', 'hasty', workspace='other')
        daemon.wait_status(other, 'error', workspace='other')
        ledger.set_rows('other', {1: 'ADMITTED'})
        for n in range(5):
            daemon.wait_status(self.send(daemon, f'fresh-{n}'), 'sent')
        daemon.wait_status(other, 'sent', workspace='other', timeout=40)
        ledger.release()

    def test_by_hand_it_runs_at_once(self):
        ledger = self.ledger()
        daemon = self.start(ledger)
        ids = self.fail_all(daemon, ledger, ['has', 'owns', 'has-not'])
        ledger.set_rows('has', {1: 'PROMOTED', 2: None})
        ledger.set_rows('owns', {1: 'LEDGERED', 2: None})
        ledger.set_rows('has-not', {1: 'FAILED', 2: None})
        for _ in range(2):
            answer = daemon.call('POST', '/v1/workspaces/w/sweep', {'what': 'parked-errors'})
            self.assertEqual(answer.status, 200, answer)
        daemon.wait_status(ids['has'], 'sent')
        daemon.wait_status(ids['has-not'], 'sent')
        self.assertEqual(daemon.status(ids['owns']), 'error')
        self.assertEqual([ledger.attempts(s) for s in ids], [[1], [1], [1, 2]])
        self.assertSentOnce(daemon, {s: ids[s] for s in ('has', 'has-not')})


if __name__ == '__main__':
    main()
