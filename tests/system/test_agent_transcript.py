"""Prompts to agents that take no message ID (up to 1.18.14): what was sent is looked for in the transcript, by exact text
and time (contract §4). The agent is scripted; the real one stands in test_opencode.py."""
import harness
from agent import Agent
from harness import wait_until
from prompts import PromptTest

OLD = '1.17.19'
PAGE = 500
PAGES = 40
NOWHERE = {'url': 'http://127.0.0.1:1'}  # every workspace has a target of its own


class TranscriptTest(PromptTest):
    limit = 120

    def start(self, own=False, settings=None, **options):
        """An agent, a session, an outboxd: the shared one with a workspace for this agent, or one of the test's own."""
        self.agent = Agent(**dict({'version': OLD}, **options)).start()
        self.addCleanup(self.agent.stop)
        self.session = self.agent.create_session()
        self.workspace = 'w' + self.session
        if own or settings:
            self.the_daemon = self.own_daemon(NOWHERE, **dict({'verify_timeout': '60s'}, **(settings or {})))
        else:
            self.the_daemon = self.shared_daemon('shared', NOWHERE, verify_timeout='60s')
        self.set_target(self.the_daemon, self.workspace, {'url': self.agent.url})

    def lose(self, store, **rule):
        """The next prompt gets no answer."""
        self.agent.script(dict({'times': 1, 'close': 'reset'}, **rule, method='POST', path=f'/session/{self.session}/message',
                               store=store))

    def prompt(self, text='hello'):
        return self.the_daemon.accept_ok(self.session, text=text, workspace=self.workspace)

    def posts(self):
        return self.agent.prompts(self.session)

    def ours(self, text='hello'):
        return [texts for texts in self.agent.user_parts(self.session) if texts == [text]]

    def scans_between(self, before, after):
        return [r for r in self.agent.pages(self.session) if r.time > before.end and r.answered and r.answered < after.time]

    def assertSent(self, entry, posts, messages=1, text='hello'):
        self.assertSentOnce(self.the_daemon, entry, self.workspace, timeout=60)
        self.assertEqual((len(self.posts()), len(self.ours(text))), (posts, messages))
        for before, after in zip(self.posts(), self.posts()[1:]):
            if before.key == after.key:
                self.assertTrue(self.scans_between(before, after), 'sent again without a look at the transcript')
        for request in self.posts():
            self.assertNotIn('messageID', request.json())
            self.assertNotIn('id', request.json()['parts'][0])


class Versions(TranscriptTest):
    def test_ids_are_sent_to_those_versions_only_whose_turn_order_does_not_depend_on_them(self):
        for version, with_ids in (('1.18.33', True), ('1.18.16', True), ('1.19.0', True), ('2.0.0', True), ('1.18.14', False),
                                  ('1.18.3', False), ('1.17.19', False), ('1.3.2', False), ('0.9.99', False), (None, False),
                                  ('', False), ('newest', False), ('1.18', False)):
            with self.subTest(version=version):
                self.start(version=version)
                self.assertSentOnce(self.the_daemon, self.prompt(), self.workspace)
                request, = self.posts()
                self.assertEqual(('messageID' in request.json(), 'id' in request.json()['parts'][0]), (with_ids, with_ids))


class FoundOrNot(TranscriptTest):
    def test_what_was_stored_is_found_by_its_text_and_not_sent_again(self):
        self.start()
        self.lose(store=True)
        entry = self.prompt()
        self.assertSent(entry, posts=1)
        self.assertSentOnce(self.the_daemon, entry, self.workspace, via='verification')

    def test_what_was_not_is_sent_again_after_a_look(self):
        self.start()
        self.lose(store=False)
        self.assertSent(self.prompt(), posts=2)

    def test_a_status_of_400_and_more_is_looked_up_too(self):
        for store, posts in ((True, 1), (False, 2)):
            with self.subTest(stored=store):
                self.start()
                self.lose(store=store, close=None, status=500)
                self.assertSent(self.prompt(), posts=posts)

    def test_texts_that_only_resemble_it_are_not_taken_for_it(self):
        self.start()
        self.lose(store=False)

        def others(session):
            for text in ('hello\n', ' hello', 'Hello', 'hello hello', 'hell', ''):
                self.agent.add(session, text)
            self.agent.add(session, 'hello', role='assistant')
            self.agent.add(session, None, parts=[])
        self.agent.on_request = lambda r: others(self.session) if r.method == 'POST' and len(self.posts()) == 0 else None
        self.assertSent(self.prompt(), posts=2)

    def test_texts_of_every_kind_are_found(self):
        self.start()
        for text in ('a\n', 'a\r\nb\r', '\U0001f469‍\U0001f469‍\U0001f467', '﻿a\u2028', '"\\', '   ', '\x7f\x1b'):
            with self.subTest(text=text):
                before = len(self.posts())
                self.lose(store=True)
                self.assertSent(self.prompt(text), posts=before + 1, text=text)

    def test_the_same_text_from_before_is_not_taken_for_it(self):
        """Somebody said the same a moment ago, well within the two minutes that clocks may differ."""
        self.start()
        self.agent.add(self.session, 'hello')
        self.lose(store=False)
        self.assertSent(self.prompt(), posts=2, messages=2)

    def test_the_same_text_twice_in_a_row_is_two_messages_whatever_becomes_of_the_answers(self):
        for first, second, posts in ((True, True, 2), (True, False, 3), (False, True, 3), (False, False, 4)):
            with self.subTest(first=first, second=second):
                self.start()
                self.agent.first_posts = [{'close': 'reset', 'store': first}, {'close': 'reset', 'store': second}]
                ids = [self.prompt(), self.prompt()]
                for entry in ids:
                    self.assertSentOnce(self.the_daemon, entry, self.workspace, timeout=60)
                self.assertEqual((len(self.ours()), len(self.posts())), (2, posts))

    def test_one_that_was_overtaken_by_the_same_text_is_not_taken_for_it(self):
        self.start(settings={'retry_backoff': '2s', 'max_backoff': '2s', 'jitter': 'none', 'verify_delay': '5s'})
        self.agent.script(method='GET', path='/global/health', status=503, times=1)
        first = self.prompt('same')
        wait_until(lambda: self.the_daemon.entry(first, self.workspace).json().get('transientFails'), 15, 'its first failure')
        self.lose(store=False)
        second = self.prompt('same')
        for entry in (first, second):
            self.assertSentOnce(self.the_daemon, entry, self.workspace, timeout=60)
        self.assertEqual(len(self.ours('same')), 2)

    def hide_transcript(self):
        """Until sweep(): a worker looks at failed entries by itself, too, also soon after it started."""
        self.hiding = self.agent.script(method='GET', path=f'/session/{self.session}/message?limit=500', status=500)

    def unverifiable(self, store, text='same'):
        """A prompt whose outcome nobody could tell: `error`, passed over by those behind it."""
        self.lose(store=store)
        self.hide_transcript()
        entry = self.prompt(text)
        self.assertError(self.the_daemon, entry, 'unverifiable', self.workspace)
        return entry

    def sweep(self):
        self.hiding.end()
        answer = self.the_daemon.call('POST', f'/v1/workspaces/{self.workspace}/sweep', {'what': 'unverifiable'})
        self.assertEqual(answer.status, 200, answer)

    def test_one_that_was_passed_over_does_not_take_a_later_one_of_the_same_text_for_itself(self):
        for has_others in (False, True):
            for store, posts in ((False, 3), (True, 2)):
                with self.subTest(stored=store, has_others=has_others):
                    self.start(own=True, settings={'max_verify_attempts': 1})
                    if has_others:
                        self.agent.add(self.session, 'before', at_ms=self.agent.now_ms() - 600_000)
                    first = self.unverifiable(store)
                    second = self.prompt('same')
                    self.assertSentOnce(self.the_daemon, second, self.workspace)
                    self.sweep()
                    self.assertSentOnce(self.the_daemon, first, self.workspace, timeout=60)
                    self.assertEqual((len(self.posts()), len(self.ours('same'))), (posts, 2))

    def test_what_is_sent_again_after_that_is_looked_for_behind_the_others(self):
        """Its second request is lost, too: what a later one has said is not its own, what it has said itself is."""
        for store, posts in ((False, 4), (True, 3)):
            with self.subTest(stored=store):
                self.start(own=True, settings={'max_verify_attempts': 2})
                self.hide_transcript()
                self.lose(store=False)
                first = self.prompt('same')
                self.assertError(self.the_daemon, first, 'unverifiable', self.workspace)
                self.assertSentOnce(self.the_daemon, self.prompt('same'), self.workspace)
                self.lose(store=store)
                self.sweep()
                self.assertSentOnce(self.the_daemon, first, self.workspace, timeout=60)
                self.assertEqual((len(self.posts()), len(self.ours('same'))), (posts, 2))

    def test_nothing_is_proven_once_the_message_that_parts_them_is_gone(self):
        self.start(own=True, settings={'max_verify_attempts': 1})
        first = self.unverifiable(False)
        parting = self.agent.add(self.session, 'in between')
        self.assertSentOnce(self.the_daemon, self.prompt('same'), self.workspace)
        self.agent.forget(self.session, parting)
        before = len(self.posts())
        self.sweep()
        wait_until(lambda: any(event['type'] == 'rearmed' for event in self.events(self.the_daemon, first, self.workspace)), 10,
                   'the sweep')
        self.assertError(self.the_daemon, first, 'unverifiable', self.workspace)
        self.assertEqual((len(self.posts()), len(self.ours('same'))), (before, 1))

    def test_a_worker_that_dies_mid_turn_leaves_one_message(self):
        """The send window's start is in the store."""
        for store, posts in ((True, 1), (False, 2)):
            with self.subTest(stored=store):
                self.start(own=True)
                self.lose(store=store, close=None, hold='dies')
                entry = self.prompt()
                wait_until(self.posts, 20, 'the request')
                self.the_daemon.kill('worker')
                self.assertSent(entry, posts=posts)


class Clocks(TranscriptTest):
    def test_an_agent_whose_clock_differs_by_less_than_two_minutes_is_understood(self):
        for ahead in (-90, 90):
            for store, posts in ((True, 1), (False, 2)):
                with self.subTest(ahead=ahead, stored=store):
                    self.start(ahead=ahead)
                    self.lose(store=store)
                    self.assertSent(self.prompt(), posts=posts)

    def test_an_agent_whose_clock_is_an_hour_ahead_is_too(self):
        for store, posts in ((True, 1), (False, 2)):
            with self.subTest(stored=store):
                self.start(ahead=3600)
                self.agent.fill(self.session, 700, from_ms=self.agent.now_ms() - 1000)
                self.lose(store=store)
                self.assertSent(self.prompt(), posts=posts)


class LongTranscripts(TranscriptTest):
    def test_it_is_found_on_a_later_page_by_the_cursor(self):
        self.start(after_store=lambda session: self.agent.fill(session, 4 * PAGE))
        self.lose(store=True)
        self.assertSent(self.prompt(), posts=1)
        asked = self.agent.pages(self.session)
        self.assertGreaterEqual(len([r for r in asked if 'before=' in r.path]), 4)

    def test_a_scan_ends_where_the_window_begins(self):
        self.start()
        self.agent.fill(self.session, 30 * PAGE, from_ms=self.agent.now_ms() - 600_000)
        self.lose(store=False)
        entry = self.prompt()
        self.assertSent(entry, posts=2)
        self.assertLess(len(self.scans_between(*self.posts())), 5)

    def test_a_scan_of_forty_pages_that_reaches_neither_proves_nothing(self):
        self.start(settings={'max_verify_attempts': 1})
        self.agent.fill(self.session, 10, from_ms=self.agent.now_ms() - 1000)

        def others(request):
            if request.method == 'POST':
                self.agent.fill(self.session, PAGE * PAGES + 20)
        self.agent.on_request = others
        self.lose(store=False)
        entry = self.prompt()
        self.assertError(self.the_daemon, entry, 'unverifiable', self.workspace, timeout=90)
        after, = self.posts()
        self.assertEqual(len([r for r in self.agent.pages(self.session) if r.time > after.end]), PAGES)

    def test_a_full_page_without_a_cursor_is_not_the_end(self):
        """The oldest versions have no cursor: what lies behind the newest page can't be seen."""
        self.start(settings={'max_verify_attempts': 2}, version='1.1.65', has_cursor=False,
                   after_store=lambda session: self.agent.fill(session, 2 * PAGE))
        self.lose(store=True)
        self.assertError(self.the_daemon, self.prompt(), 'unverifiable', self.workspace)
        self.assertEqual(len(self.posts()), 1)

    def test_a_page_that_fails_proves_nothing(self):
        self.start(settings={'max_verify_attempts': 3}, after_store=lambda session: self.agent.fill(session, 2 * PAGE))
        self.lose(store=True)
        self.agent.later_pages = [(500, b''), (200, b'<!doctype html>'), (200, b'{"messages":[]}')]
        self.assertError(self.the_daemon, self.prompt(), 'unverifiable', self.workspace)
        self.assertEqual(len(self.posts()), 1)


if __name__ == '__main__':
    harness.main()
