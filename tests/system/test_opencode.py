"""Prompts to a real opencode: what its transcript shows decides (contract §3, §4; issue: the reason outboxd exists).
One server for all tests, each with sessions of its own. It asks for a password: the targets here have it.
"""
import threading

import harness
import opencode
from agent import Agent
from harness import free_port, wait_until
from prompts import PromptTest

PASSWORD = 'for tests only'
PATIENT = {'max_transient_failures': 1000, 'max_verify_attempts': 10000}  # a restart takes as long as the machine is loaded
TEXTS = ['plain', 'a\n', '\n\n a \n', 'a\r\nb\r', '\ta ', '\x01\x1b\x7f', '\U0001f469‍\U0001f469‍\U0001f467 é',
         '﻿a', '\u2028', '/help', '@/etc/hostname', '\\ud83d', '�']

_server = None


def setUpModule():
    global _server
    _server = opencode.Opencode(password=PASSWORD).start()
    _server.say(_server.create_session(), 'warm up')  # a first turn takes seconds


def tearDownModule():
    _server.close()


class OpencodeTest(PromptTest):
    limit = 150

    def setUp(self):
        self.server = _server
        self.session = self.server.create_session()

    @property
    def target_settings(self):
        return {'url': self.server.url, 'username': self.server.username, 'password': PASSWORD}

    def plain(self):
        return self.shared_daemon('plain', self.target_settings, delivery_timeout='60s')

    def impatient(self):
        """delivery_timeout is far shorter than the turns."""
        return self.shared_daemon('impatient', self.target_settings, delivery_timeout='2s')

    def own(self, **settings):
        return self.own_daemon(self.target_settings, **dict(PATIENT, **settings))

    def in_turn(self, daemon, text, session=None):
        """An entry whose turn runs, until release()."""
        self.server.rule(text, hold=True)
        self.addCleanup(self.server.release)
        entry = daemon.accept_ok(session or self.session, text=text)
        self.server.wait_turn(text)
        return entry

    def assertOneMessage(self, daemon, entry, text, timeout=60, **how):
        """Sent, once, and the transcript has it once, in one part."""
        self.assertSentOnce(daemon, entry, timeout=timeout, **how)
        self.assertEqual(self.server.user_parts(self.session), [[text]])


class Turns(OpencodeTest):
    def test_prompts_arrive_in_order_byte_for_byte(self):
        daemon = self.plain()
        ids = [daemon.accept_ok(self.session, text=text) for text in TEXTS]
        for entry in ids:
            self.assertSentOnce(daemon, entry, timeout=60)
        self.assertEqual(self.server.user_parts(self.session), [[text] for text in TEXTS])
        replies = [m for m in self.server.transcript(self.session) if m['info']['role'] == 'assistant']
        self.assertEqual(len(replies), len(TEXTS), 'a turn each')

    def test_the_model_is_the_one_that_was_asked_for(self):
        daemon = self.plain()
        entry = daemon.accept_ok(self.session, text='with a model', model={'providerID': 'fake', 'modelID': 'fake-1'})
        self.assertOneMessage(daemon, entry, 'with a model')
        model = self.server.transcript(self.session)[0]['info']['model']
        self.assertEqual((model['providerID'], model['modelID']), ('fake', 'fake-1'))

    def test_two_identical_texts_in_a_row_are_two_messages(self):
        daemon = self.plain()
        for entry in [daemon.accept_ok(self.session, text='the same'), daemon.accept_ok(self.session, text='the same')]:
            self.assertSentOnce(daemon, entry, timeout=60)
        self.assertEqual(self.server.user_parts(self.session), [['the same'], ['the same']])

    def test_a_turn_three_times_as_long_as_delivery_timeout_is_one_message(self):
        daemon = self.impatient()
        self.server.rule('long turn', first=6000)
        entry = daemon.accept_ok(self.session, text='long turn')
        self.assertOneMessage(daemon, entry, 'long turn', via='verification')
        wait_until(lambda: self.server.turns('long turn')[0]['outcome'] == 'done', 60, 'the end of the turn')
        turn, = self.server.turns('long turn')
        self.assertGreaterEqual(turn['ended'] - turn['started'], 6000)
        self.assertOneMessage(daemon, entry, 'long turn')
        self.assertEqual(len(self.server.turns('long turn')), 1)

    def test_a_session_that_somebody_keeps_busy_gets_it_once(self):
        daemon = self.impatient()
        self.server.rule('somebody else', hold=True)
        other = threading.Thread(target=self.server.say, args=(self.session, 'somebody else'))
        other.start()
        try:
            self.server.wait_turn('somebody else')
            entry = daemon.accept_ok(self.session, text='meanwhile')
            self.assertSentOnce(daemon, entry, timeout=60)
        finally:
            self.server.release()
            other.join()
        self.assertEqual(self.server.user_texts(self.session), ['somebody else', 'meanwhile'])

    def test_a_providers_error_is_a_delivery(self):
        daemon = self.plain()
        self.server.rule('provider breaks', status=400)
        entry = daemon.accept_ok(self.session, text='provider breaks')
        self.assertOneMessage(daemon, entry, 'provider breaks', via='answer')
        self.assertEqual(len(self.server.turns('provider breaks')), 1)

    def test_an_unknown_model_answers_500_though_it_is_stored(self):
        daemon = self.plain()
        entry = daemon.accept_ok(self.session, text='no such model', model={'providerID': 'fake', 'modelID': 'none'})
        self.assertOneMessage(daemon, entry, 'no such model', via='verification')

    def test_a_session_that_is_not_there_ends_with_its_attempts(self):
        daemon = self.plain()
        self.assertError(daemon, daemon.accept_ok('ses_none', text='nobody there'), 'attempts_exhausted')

    def test_sessions_do_not_wait_for_each_other(self):
        daemon = self.plain()
        held = self.in_turn(daemon, 'this one takes long')
        other = self.server.create_session()
        self.assertSentOnce(daemon, daemon.accept_ok(other, text='this one does not'), timeout=60)
        self.assertEqual(daemon.status(held), 'delivering')
        self.server.release()
        self.assertOneMessage(daemon, held, 'this one takes long')


class HalfStored(OpencodeTest):
    def test_a_message_without_its_parts_is_completed_by_the_same_ids(self):
        """A server that crashed between two writes leaves such a message. Here a scripted agent takes the first request,
        and the message with its ID is made by hand."""
        agent = Agent().start()
        self.addCleanup(agent.stop)
        agent.script({'method': 'POST', 'path': '*', 'close': 'reset'}, {'path': '/session/*', 'status': 500})
        daemon = self.own()
        self.set_target(daemon, 'half', {'url': agent.url})
        entry = daemon.accept_ok(self.session, text='half stored', workspace='half')
        wait_until(agent.prompts, 20, 'the first request')
        message = agent.prompts()[0].json()['messageID']
        status, _ = self.server.call('POST', f'/session/{self.session}/message',
                                     {'messageID': message, 'noReply': True, 'parts': []})
        self.assertEqual((status, self.server.user_parts(self.session)), (200, [[]]))
        self.set_target(daemon, 'half', self.target_settings)
        self.assertSentOnce(daemon, entry, 'half', timeout=60)
        self.assertEqual(self.server.user_parts(self.session), [['half stored']])
        self.assertEqual(self.server.transcript(self.session)[0]['info']['id'], message)
        self.assertEqual(len(agent.prompts()), 1)
        self.assertEqual(len(self.server.turns('half stored')), 1)


class WrongTargets(OpencodeTest):
    def test_a_wrong_base_path_is_not_an_agent_and_never_verified_as_delivered(self):
        daemon = self.own_daemon(dict(self.target_settings, url=self.server.url + '/wrong'))
        self.assertError(daemon, daemon.accept_ok(self.session, text='astray'), 'not_an_agent')
        self.assertEqual(self.server.user_texts(self.session), [])

    def test_a_wrong_password_is_rejected_and_nothing_is_sent(self):
        daemon = self.own_daemon(dict(self.target_settings, password='wrong'), max_attempts=2)
        stands = self.assertError(daemon, daemon.accept_ok(self.session, text='unknown'), 'attempts_exhausted')
        self.assertEqual(stands['attempts'], 2)
        self.assertEqual(self.server.user_texts(self.session), [])

    def test_a_workspace_has_a_target_of_its_own(self):
        daemon = self.own_daemon({'url': f'http://127.0.0.1:{free_port()}'}, max_transient_failures=1)
        answer = daemon.call('PUT', '/v1/workspaces/mine/target', self.target_settings)
        self.assertIn(answer.status, (200, 201, 204), answer)
        self.assertNotIn(PASSWORD.encode(), daemon.get('/v1/workspaces/mine/target').body)
        entry = daemon.accept_ok(self.session, text='to mine', workspace='mine')
        elsewhere = daemon.accept_ok(self.session, text='to nobody')
        self.assertSentOnce(daemon, entry, 'mine', timeout=60)
        self.assertError(daemon, elsewhere, 'unreachable')
        self.assertEqual(self.server.user_texts(self.session), ['to mine'])


class Crashes(OpencodeTest):
    """These kill the server, so they come with daemons of their own."""
    limit = 240

    def back(self):
        if self.server.is_down():
            self.server.start()

    def setUp(self):
        super().setUp()
        self.addCleanup(self.back)

    def test_killed_and_restarted_it_is_sent_again_only_if_the_transcript_lacks_it(self):
        """One is killed mid-turn, others while their requests are on their way: stored, half stored or not, each is one
        message in the end."""
        daemon = self.own(verify_settle='1s')
        entry = self.in_turn(daemon, 'killed mid-turn')
        sessions = [self.server.create_session() for _ in range(6)]
        ids = [daemon.accept_ok(session, text=f'any moment {session}') for session in sessions]
        wait_until(lambda: any(daemon.status(entry) != 'pending' for entry in ids), 20, 'a request')
        self.server.restart()
        self.assertOneMessage(daemon, entry, 'killed mid-turn', via='verification')
        for entry in ids:
            self.assertSentOnce(daemon, entry, timeout=90)
        for session in sessions:
            self.assertEqual(self.server.user_parts(session), [[f'any moment {session}']])

    def test_a_worker_that_is_killed_mid_turn_leaves_one_message(self):
        daemon = self.own()
        entry = self.in_turn(daemon, 'worker dies')
        daemon.kill('worker')
        self.assertOneMessage(daemon, entry, 'worker dies', via='verification')
        self.assertEqual(len(self.server.turns('worker dies')), 1)

    def test_a_server_that_accepts_connections_and_answers_nothing_gets_no_prompt(self):
        daemon = self.own(connect_timeout='500ms')
        self.server.freeze()
        try:
            entry = daemon.accept_ok(self.session, text='frozen')
            wait_until(lambda: self.failures(daemon, entry) > 0, 60, 'a failure that is no attempt')
            self.assertEqual(self.failures(daemon, entry, 'attempts'), 0)
        finally:
            self.server.thaw()
        self.assertOneMessage(daemon, entry, 'frozen', via='answer')

    def test_away_for_longer_than_the_budget_it_is_unverifiable_and_a_sweep_completes_it_without_a_second_send(self):
        """One by hand; the other waits for the sweep that comes by itself when the target answers again."""
        by_hand = self.own(max_verify_attempts=3, parked_sweep_interval='24h')
        by_itself = self.own(max_verify_attempts=3, parked_sweep_interval='1s')
        other = self.server.create_session()
        entry = self.in_turn(by_hand, 'swept by hand')
        second = self.in_turn(by_itself, 'swept by itself', other)
        self.server.kill()
        self.assertError(by_hand, entry, 'unverifiable')
        self.assertError(by_itself, second, 'unverifiable')
        self.server.start()
        answer = by_hand.call('POST', '/v1/workspaces/w/sweep', {'what': 'unverifiable'})
        self.assertEqual((answer.status, answer.json()), (200, {'recovered': 1}))
        self.assertOneMessage(by_hand, entry, 'swept by hand', via='verification')
        self.assertSentOnce(by_itself, second, timeout=60, via='verification')
        self.assertEqual(self.server.user_parts(other), [['swept by itself']])
        for text in ('swept by hand', 'swept by itself'):
            self.assertEqual(len(self.server.turns(text)), 1)


if __name__ == '__main__':
    harness.main()
