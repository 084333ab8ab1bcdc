"""Prompts to a scripted agent that honours message IDs: every way in which an answer can be lost, late, refused or wrong
(contract §3, §4). What the real server does stands in test_opencode.py, old versions in test_agent_transcript.py."""
import json

import harness
from agent import Agent
from harness import free_port, wait_until
from prompts import PromptTest

TEXTS = ['plain', 'a\n', '\n\n a \n', 'a\r\nb\r', '\ta ', '\x01\x1b\x7f', '\U0001f469‍\U0001f469‍\U0001f467 é',
         '﻿a', '\u2028', '   ', '/help', '@/etc/hostname', '"\\u0041"', '\\ud83d', '�', '<&>%{id}{payload.a}']

_agents = []


def tearDownModule():
    for agent in _agents:
        agent.stop()


class AgentTest(PromptTest):
    """One agent and one outboxd for all tests that need no other: rules go by session."""
    limit = 90

    def setUp(self):
        if not _agents:
            _agents.append(Agent().start())
        self.agent = _agents[0]
        self.session = self.agent.create_session()
        self.path = f'/session/{self.session}/message'

    def plain(self):
        return self.shared_daemon('plain', {'url': self.agent.url}, delivery_timeout='15s')

    def other_agent(self, **options):
        agent = Agent(**options).start()
        self.addCleanup(agent.stop)
        return agent

    def prompt(self, text='hello', daemon=None, **members):
        return (daemon or self.plain()).accept_ok(self.session, text=text, **members)

    def on_post(self, **rule):
        """The next prompt of this test's session goes so."""
        return self.agent.script(dict({'times': 1}, **rule, method='POST', path=self.path))

    def on_lookup(self, **rule):
        return self.agent.script(dict(rule, method='GET', path=self.path + '/*'))

    def assertOneMessage(self, entry, text='hello', posts=None, daemon=None):
        """Delivered: the transcript has it once, in one part; `posts` requests were needed."""
        self.assertSentOnce(daemon or self.plain(), entry)
        self.assertEqual(self.agent.user_parts(self.session), [[text]])
        if posts is not None:
            self.assertEqual(len(self.agent.prompts(self.session)), posts)
        self.assertVerifiedBeforeEachResend()

    def assertVerifiedBeforeEachResend(self):
        """Between two requests for one entry stands a look-up that was answered; all of them carry the same IDs."""
        for entry in {r.key for r in self.agent.prompts(self.session)}:
            posts = [r for r in self.agent.prompts(self.session) if r.key == entry]
            self.assertEqual(len({(r.json()['messageID'], r.json()['parts'][0]['id']) for r in posts}), 1, 'other IDs')
            for before, after in zip(posts, posts[1:]):
                self.assertTrue([r for r in self.agent.message_lookups(self.session)
                                 if r.time > before.end and r.answered and r.answered < after.time], 'sent again unverified')


class WhatIsSent(AgentTest):
    def test_one_post_with_ids_of_the_servers_format_the_text_and_the_model_as_it_was_written(self):
        body = '{"text":"hello","model":{"providerID":"fake",  "modelID":"x","weight":1.50e+01}}'
        answer = self.plain().accept(self.session, body)
        self.assertEqual(answer.status, 202, answer)
        self.assertOneMessage(answer.json()['id'], posts=1)
        request, = self.agent.prompts(self.session)
        sent = request.json()
        self.assertRegex(sent['messageID'], r'^msg_[0-9a-f]{12}[0-9A-Za-z]{14}$')
        self.assertEqual([part['type'] for part in sent['parts']], ['text'])
        self.assertRegex(sent['parts'][0]['id'], r'^prt_[0-9a-f]{12}[0-9A-Za-z]{14}$')
        self.assertIn(b'"weight":1.50e+01', request.body)
        self.assertEqual(sent['model']['providerID'], 'fake')

    def test_without_a_model_none_is_sent(self):
        self.assertOneMessage(self.prompt(), posts=1)
        self.assertNotIn('model', self.agent.prompts(self.session)[0].json())

    def test_texts_arrive_byte_for_byte_and_in_order(self):
        ids = [self.prompt(text) for text in TEXTS]
        for entry in ids:
            self.assertSentOnce(self.plain(), entry, via='answer')
        self.assertEqual(self.agent.user_parts(self.session), [[text] for text in TEXTS])
        self.assertEqual([r.key for r in self.agent.prompts(self.session)], ids)

    def test_two_identical_texts_in_a_row_are_two_messages_with_ids_of_their_own(self):
        ids = [self.prompt('again'), self.prompt('again')]
        for entry in ids:
            self.assertSentOnce(self.plain(), entry)
        self.assertEqual(self.agent.user_parts(self.session), [['again'], ['again']])
        self.assertEqual(len({r.json()['messageID'] for r in self.agent.prompts(self.session)}), 2)


class AnswersThatAreLost(AgentTest):
    def test_cut_after_it_was_stored_means_one_post_and_a_look_up_by_its_id(self):
        for close in ('after-request', 'reset'):
            with self.subTest(close=close):
                self.setUp()
                self.on_post(close=close, store=True)
                entry = self.prompt()
                self.assertOneMessage(entry, posts=1)
                self.assertSentOnce(self.plain(), entry, via='verification')
                self.assertEqual(self.agent.message_lookups(self.session)[0].path.rpartition('/')[2],
                                 self.agent.prompts(self.session)[0].json()['messageID'])

    def test_cut_before_it_was_stored_means_a_second_post_after_absence_was_proven(self):
        self.on_post(close='after-request')
        self.assertOneMessage(self.prompt(), posts=2)

    def test_absence_counts_only_when_it_was_asked_late_enough(self):
        """The server stores some time after the connection ended: a 404 right after it is not final."""
        daemon = self.own_daemon({'url': self.agent.url}, verify_settle='6s', verify_delay='20ms')
        self.on_post(close='reset')

        def store_later(request):
            if request.method == 'GET' and request.path.startswith(self.path) and not self.agent.user_texts(self.session):
                self.agent.store_post(self.agent.prompts(self.session)[0])
        self.agent.on_request = store_later
        self.addCleanup(setattr, self.agent, 'on_request', None)
        self.on_lookup(times=1, status=404, answer={'name': 'NotFoundError', 'data': {'message': 'Message not found'}})
        entry = self.prompt(daemon=daemon)
        self.assertOneMessage(entry, posts=1, daemon=daemon)
        self.assertGreaterEqual(len(self.agent.message_lookups(self.session)), 2)

    def test_an_answer_that_never_comes_is_given_up_after_delivery_timeout(self):
        daemon = self.shared_daemon('hasty', {'url': self.agent.url}, delivery_timeout='1s')
        self.on_post(hold='never', store=True)
        self.assertOneMessage(self.prompt(daemon=daemon), posts=1, daemon=daemon)

    def test_an_answer_that_breaks_off_proves_nothing(self):
        for store, posts in ((True, 1), (False, 2)):
            with self.subTest(stored=store):
                self.setUp()
                self.on_post(close='mid-answer', store=store)
                self.assertOneMessage(self.prompt(), posts=posts)

    def test_an_answer_that_breaks_off_in_its_headers_is_no_answer_without_a_body(self):
        for after in (len('HTTP/1.1 200 OK\r\n'), len('HTTP/1.1 200 OK\r\nContent-Ty')):
            with self.subTest(bytes=after):
                self.setUp()
                self.on_post(close='mid-answer', after=after, store=True)
                self.assertOneMessage(self.prompt(), posts=1)

    def test_an_answer_that_is_too_long_or_never_ends_is_looked_up(self):
        daemon = self.shared_daemon('hasty', {'url': self.agent.url}, delivery_timeout='1s')
        self.on_post(endless='{"info":{"id":"msg_1","role":"assistant"},"parts":[{"type":"text","text":"', store=True)
        self.assertOneMessage(self.prompt(daemon=daemon), posts=1, daemon=daemon)

    def test_a_message_without_its_parts_is_completed_by_the_same_ids(self):
        self.on_post(close='reset', store='empty')
        self.assertOneMessage(self.prompt(), posts=2)

    def test_look_ups_that_prove_nothing_end_unverifiable_and_a_person_who_retries_sends_nothing_twice(self):
        daemon = self.own_daemon({'url': self.agent.url}, max_verify_attempts=3)
        self.on_post(close='reset', store=True)
        rule = self.on_lookup(status=500)
        entry = self.prompt(daemon=daemon)
        self.assertEqual(self.assertError(daemon, entry, 'unverifiable')['verifyAttempts'], 3)
        self.assertIn(len(self.agent.message_lookups(self.session)), (3, 4))  # a sweep may have looked, too
        rule.fields['times'] = 0
        self.assertEqual(daemon.call('POST', f'/v1/workspaces/w/entries/{entry}/retry').status, 200)
        self.assertOneMessage(entry, posts=1, daemon=daemon)

    def test_a_web_page_verifies_nothing(self):
        daemon = self.own_daemon({'url': self.agent.url}, max_verify_attempts=2)
        self.on_post(close='reset')
        self.on_lookup(answer='<!doctype html>', headers={'Content-Type': 'text/html'})
        entry = self.prompt(daemon=daemon)
        self.assertError(daemon, entry, 'unverifiable')
        self.assertEqual(len(self.agent.prompts(self.session)), 1)

    def test_another_message_under_that_path_verifies_nothing(self):
        daemon = self.own_daemon({'url': self.agent.url}, max_verify_attempts=2)
        self.on_post(close='reset')
        self.on_lookup(answer={'info': {'id': 'msg_000000000000aaaaaaaaaaaaaa', 'role': 'user', 'time': {'created': 1}},
                               'parts': [{'id': 'prt_x', 'type': 'text', 'text': 'another'}]})
        self.assertError(daemon, self.prompt(daemon=daemon), 'unverifiable')
        self.assertEqual(len(self.agent.prompts(self.session)), 1)


class AnswersThatRefuse(AgentTest):
    def test_a_status_of_400_and_more_says_nothing_about_storage(self):
        for status in (400, 404, 409, 429, 500, 503):
            for store, posts in ((True, 1), (False, 2)):
                with self.subTest(status=status, stored=store):
                    self.setUp()
                    self.on_post(status=status, store=store, answer={'name': 'UnknownError', 'data': {'message': 'no'}})
                    self.assertOneMessage(self.prompt(), posts=posts)

    def test_attempts_are_bounded_and_each_is_preceded_by_a_look_up(self):
        self.on_post(status=500, times=100)
        entry = self.prompt()
        stands = self.assertError(self.plain(), entry, 'attempts_exhausted')
        self.assertEqual((stands['attempts'], len(self.agent.prompts(self.session))), (5, 5))
        self.assertVerifiedBeforeEachResend()

    def test_what_is_no_agent_is_never_taken_for_one(self):
        page = {'answer': '<!doctype html>', 'headers': {'Content-Type': 'text/html'}}
        for name, rule in (('a web page', page), ('JSON of another kind', {'answer': {'ok': True}}),
                           ('no role', {'answer': {'info': {'id': 'msg_1'}, 'parts': []}}),
                           ('a role that is none', {'answer': {'info': {'role': 7}}}), ('a list', {'answer': []}),
                           ('nothing', {'answer': ''}), ('204', {'status': 204, 'answer': ''})):
            with self.subTest(answer=name):
                self.setUp()
                self.on_post(**dict({'status': 200}, **rule), store=False)
                self.assertError(self.plain(), self.prompt(), 'not_an_agent')
                self.assertEqual(len(self.agent.prompts(self.session)), 1)

    def test_a_wrong_base_path_is_not_an_agent(self):
        daemon = self.own_daemon({'url': self.agent.url + '/wrong'})
        self.assertError(daemon, self.prompt(daemon=daemon), 'not_an_agent')
        self.assertEqual(self.agent.user_texts(self.session), [])

    def test_wrong_credentials_are_rejected_and_nothing_is_sent(self):
        agent = self.agent = self.other_agent(password='right')
        self.session = agent.create_session()
        daemon = self.own_daemon({'url': agent.url, 'username': 'opencode', 'password': 'wrong'}, max_attempts=2)
        stands = self.assertError(daemon, self.prompt(daemon=daemon), 'attempts_exhausted')
        self.assertEqual(stands['attempts'], 2)
        self.assertEqual(agent.user_texts(self.session), [])
        self.assertNotIn('wrong', json.dumps(stands))

    def test_right_credentials_are_sent_with_every_request(self):
        agent = self.agent = self.other_agent(password='right')
        self.session = agent.create_session()
        self.path = f'/session/{self.session}/message'
        daemon = self.own_daemon({'url': agent.url, 'username': 'opencode', 'password': 'right'})
        self.on_post(close='reset', store=True)
        self.assertOneMessage(self.prompt(daemon=daemon), posts=1, daemon=daemon)


class Probing(AgentTest):
    def test_a_server_that_answers_nothing_gets_a_probe_and_no_prompt(self):
        agent = self.agent = self.other_agent()
        self.session = agent.create_session()
        starting = agent.script(path='*', hold='starting')
        daemon = self.own_daemon({'url': agent.url}, max_transient_failures=1000)
        entry = self.prompt(daemon=daemon)
        wait_until(lambda: self.failures(daemon, entry) > 0, 30, 'a failure that is no attempt')
        self.assertEqual((len(agent.prompts()), self.failures(daemon, entry, 'attempts')), (0, 0))
        self.assertTrue(agent.probes())
        starting.fields['times'] = 0
        self.assertOneMessage(entry, posts=1, daemon=daemon)

    def test_a_server_that_is_away_is_no_attempt_and_gets_the_prompt_when_it_is_there(self):
        port = free_port()
        daemon = self.own_daemon({'url': f'http://127.0.0.1:{port}'}, max_transient_failures=1000)
        agent = Agent(port=port)
        self.session = agent.create_session()
        entry = self.prompt(daemon=daemon)
        wait_until(lambda: self.failures(daemon, entry) > 1, 30, 'failures that are no attempts')
        self.agent = agent.start()
        self.addCleanup(agent.stop)
        self.assertOneMessage(entry, posts=1, daemon=daemon)

    def test_one_that_stays_away_is_unreachable(self):
        daemon = self.own_daemon({'url': f'http://127.0.0.1:{free_port()}'}, max_transient_failures=3)
        stands = self.assertError(daemon, self.prompt(daemon=daemon), 'unreachable')
        self.assertEqual((stands['transientFails'], stands.get('attempts', 0)), (3, 0))

    def test_a_version_that_changed_while_it_was_away_is_noticed(self):
        """An older one gets no IDs, though the entry may have some already."""
        agent = self.agent = self.other_agent()
        self.session = agent.create_session()
        daemon = self.own_daemon({'url': agent.url}, max_transient_failures=1000)
        self.assertOneMessage(self.prompt(daemon=daemon), posts=1, daemon=daemon)
        agent.stop()
        entry = self.prompt('to the old one', daemon=daemon)
        wait_until(lambda: self.failures(daemon, entry) > 0, 30, 'a failure that is no attempt')
        old = self.other_agent(port=agent.port, version='1.17.19')
        old._sessions[self.session] = []
        self.agent = old
        self.assertSentOnce(daemon, entry)
        request, = old.prompts()
        self.assertNotIn('messageID', request.json())
        self.assertNotIn('id', request.json()['parts'][0])


class Sweeps(AgentTest):
    def unverifiable(self, store):
        """An entry that ended so, and the rule that keeps the agent from telling."""
        daemon = self.own_daemon({'url': self.agent.url}, max_verify_attempts=2, parked_sweep_interval='24h')
        self.on_post(close='reset', store=store)
        silence = self.on_lookup(status=500)
        entry = self.prompt(daemon=daemon)
        self.assertError(daemon, entry, 'unverifiable')
        return daemon, entry, silence

    def sweep(self, daemon):
        answer = daemon.call('POST', '/v1/workspaces/w/sweep', {'what': 'unverifiable'})
        self.assertEqual(answer.status, 200, answer)
        return answer.json()['recovered']

    def test_by_hand_it_is_asked_again_and_sent_again_only_if_it_is_absent(self):
        for store, posts in ((True, 1), (False, 2)):
            with self.subTest(stored=store):
                self.setUp()
                daemon, entry, silence = self.unverifiable(store)
                silence.fields['times'] = 0
                self.assertEqual(self.sweep(daemon), 1)
                self.assertOneMessage(entry, posts=posts, daemon=daemon)
                self.assertEqual(self.sweep(daemon), 0)
                self.end(daemon)

    def test_by_hand_it_gets_a_fresh_window_and_may_end_unverifiable_again(self):
        daemon, entry, silence = self.unverifiable(store=True)
        before = len(self.agent.message_lookups(self.session))
        self.assertEqual(self.sweep(daemon), 1)
        wait_until(lambda: len(self.agent.message_lookups(self.session)) == before + 2, 20, 'two more look-ups')
        self.assertEqual(self.assertError(daemon, entry, 'unverifiable')['verifyAttempts'], 2)
        silence.fields['times'] = 0
        self.assertEqual(self.sweep(daemon), 1)
        self.assertOneMessage(entry, posts=1, daemon=daemon)

    def test_it_runs_by_itself_when_an_agent_that_was_away_answers_again(self):
        for store, posts in ((True, 0), (False, 1)):
            with self.subTest(stored=store):
                agent = self.agent = self.other_agent()
                self.session = agent.create_session()
                self.path = f'/session/{self.session}/message'
                daemon = self.own_daemon({'url': agent.url}, max_verify_attempts=2, parked_sweep_interval='1s')
                self.on_post(hold='away', store=store)
                entry = self.prompt(daemon=daemon)
                wait_until(agent.prompts, 20, 'the request')
                agent.stop()
                self.assertError(daemon, entry, 'unverifiable')
                self.assertEqual(len(agent.prompts()), 1)
                back = self.other_agent(port=agent.port)
                back._sessions = agent._sessions
                self.assertSentOnce(daemon, entry)
                self.assertEqual(agent.user_parts(self.session), [['hello']])
                self.assertEqual(len(back.prompts()), posts)
                self.end(daemon)

    def test_other_errors_are_left_alone(self):
        daemon = self.own_daemon({'url': self.agent.url}, max_attempts=1)
        self.on_post(status=500)
        entry = self.prompt(daemon=daemon)
        self.assertError(daemon, entry, 'attempts_exhausted')
        self.assertEqual(self.sweep(daemon), 0)
        self.assertEqual(daemon.status(entry), 'error')


class Crashes(AgentTest):
    def test_a_worker_that_dies_mid_turn_leaves_one_message(self):
        for store, posts in ((True, 1), (False, 2)):
            with self.subTest(stored=store):
                self.setUp()
                daemon = self.own_daemon({'url': self.agent.url})
                self.on_post(hold='dies', store=store)
                entry = self.prompt(daemon=daemon)
                wait_until(lambda: self.agent.prompts(self.session), 20, 'the request')
                daemon.kill('worker')
                self.assertOneMessage(entry, posts=posts, daemon=daemon)
                self.end(daemon)

    def test_everything_dies_mid_turn(self):
        daemon = self.own_daemon({'url': self.agent.url})
        self.on_post(hold='dies', store=True)
        entry = self.prompt(daemon=daemon)
        wait_until(lambda: self.agent.prompts(self.session), 20, 'the request')
        daemon.restart()
        self.assertOneMessage(entry, posts=1, daemon=daemon)


if __name__ == '__main__':
    harness.main()
