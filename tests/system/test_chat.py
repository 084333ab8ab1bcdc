#!/usr/bin/env python3
"""deploy/examples/chat.yaml as it stands (but for places), end to end against a chat service: ten operations."""
import json
import sys

import harness
from harness import ROOT, SystemTest, wait_until

sys.path.insert(0, str(ROOT / 'tests' / 'support'))
from chat import Chat  # noqa: E402  pylint: disable=wrong-import-position


class ChatDaemon(harness.Daemon):
    """The example's kinds as they stand; the other settings are the test's."""

    def write_config(self):
        example = (ROOT / 'deploy' / 'examples' / 'chat.yaml').read_text()
        ours = ''.join(f'{name}: {json.dumps(value)}\n' for name, value in self.settings.items())  # JSON is YAML
        self.config.write_text(ours + example[example.index('\nkinds:'):])


class ChatService(SystemTest):
    def setUp(self):
        self.chat = Chat()
        self.addCleanup(self.chat.close)
        self.daemon_ = ChatDaemon({**harness.FAST, 'target': {'url': self.chat.url}})
        self.addCleanup(self.end, self.daemon_)
        self.daemon_.start()

    def do(self, kind, payload, depends_on=(), **members):
        body = {'kind': kind, 'payload': payload, **members}
        if depends_on:
            body['dependsOn'] = list(depends_on)
        answer = self.daemon_.call('POST', '/v1/workspaces/anna/entries', body)
        self.assertEqual(answer.status, 202, answer)
        return answer.json()['id']

    def done(self, *entries):
        for entry in entries:
            self.daemon_.wait_status(entry, 'sent', workspace='anna')

    def call(self, method, path, body=None):
        return self.daemon_.call(method, f'/v1/workspaces/anna{path}', body)

    def test_the_ten_operations(self):
        create = self.do('message.create', {'thread': 't1', 'id': None, 'text': 'hello'})
        self.done(create)
        update = self.do('message.update', {'thread': 't1', 'id': 't1-1', 'text': 'hello!'})
        add = self.do('reaction.add', {'message': 't1-1', 'emoji': '👍'})
        mark = self.do('read.mark', {'thread': 't1', 'upTo': 't1-1'})
        setting = self.do('setting.put', {'name': 'theme', 'value': 'dark'})
        draft = self.do('draft.put', {'thread': 't1', 'text': 'and ano'})
        start = self.do('upload.start', {'name': 'cat.png'})
        finish = self.do('upload.finish', {'name': 'cat.png', 'upload': None}, depends_on=[start])
        with_cat = self.do('message.create', {'thread': 't1', 'id': None, 'text': 'look', 'attachment': None},
                           depends_on=[finish])
        self.done(update, add, mark, setting, draft, start, finish, with_cat)
        self.done(self.do('reaction.remove', {'message': 't1-1', 'emoji': '👍'}))
        self.done(self.do('message.delete', {'thread': 't1', 'id': 't1-1'}))
        self.assertEqual([m['text'] for m in self.chat.threads['t1']], ['look'])
        self.assertEqual(self.chat.threads['t1'][0]['attachment'], 'a-u1')
        self.assertTrue(self.chat.uploads['u1']['finished'])
        self.assertEqual(self.chat.reactions['t1-1'], set())
        self.assertEqual(self.chat.read['t1']['upTo'], 't1-1')
        self.assertEqual(self.chat.settings['theme'], {'version': 1, 'value': 'dark'})
        self.assertEqual(self.chat.drafts['t1']['text'], 'and ano')

    def test_names_cannot_end_a_path(self):
        names = ['#️⃣', 'a/b', 'a?b=c', '../..', '%2e%2e', 'ü ö', 'a;b', '👩‍👩‍👧', '.', '..', 'a\tb']
        entries = [self.do('reaction.add', {'message': 'm', 'emoji': name}) for name in names]
        self.done(*entries)
        self.assertEqual(self.chat.reactions['m'], set(names))
        self.assertTrue(all(path.startswith('/api/messages/m/reactions/') for _, path, _ in self.chat.requests))

    def test_an_edit_made_while_the_message_is_on_its_way_reaches_the_message_that_was_created(self):
        self.chat.refuse(2)
        create = self.do('message.create', {'thread': 't1', 'id': None, 'text': 'one'})
        wait_until(lambda: self.chat.requests, 10, 'the first attempt')
        edit = self.call('PATCH', f'/entries/{create}', {'payload': {'text': 'two'}}).json()
        self.assertIn(edit['result'], ('follow_up', 'edited'))
        self.done(create, edit['id'])
        self.assertEqual(self.chat.threads['t1'], [{'thread': 't1', 'id': 't1-1', 'text': 'two'}])

    def test_lost_answers_are_asked_for_again_with_the_same_key_and_nothing_is_done_twice(self):
        self.chat.lose(3)
        entries = [self.do('message.create', {'thread': 't1', 'id': None, 'text': str(i)}) for i in range(6)]
        self.done(*entries)
        self.assertEqual([m['text'] for m in self.chat.threads['t1']], [str(i) for i in range(6)])
        self.assertEqual(self.chat.replays, 3)

    def test_a_conflict_shows_the_revision_and_a_retry_carries_it(self):
        self.chat.settings['theme'] = {'version': 7, 'value': 'light'}
        entry = self.do('setting.put', {'name': 'theme', 'value': 'dark'})
        shown = self.daemon_.wait_status(entry, 'error', workspace='anna')
        self.assertEqual(shown['conflictCurrent'], {'version': '7', 'value': 'light'})
        again = self.call('POST', f'/entries/{entry}/retry').json()['id']
        self.done(again)
        self.assertEqual(self.chat.settings['theme'], {'version': 8, 'value': 'dark'})

    def test_a_refusal_for_a_reason_has_the_services_own_code(self):
        entry = self.do('message.create', {'thread': 't1', 'id': None, 'text': ''})
        shown = self.daemon_.wait_status(entry, 'error', workspace='anna')
        self.assertEqual(shown['lastError']['code'], 'empty_message')
        answer = self.call('PATCH', f'/entries/{entry}', {'payload': {'text': 'now with a text'}}).json()
        self.assertEqual(answer['result'], 'replaced')
        self.done(answer['id'])
        self.assertEqual([m['text'] for m in self.chat.threads['t1']], ['now with a text'])

    def test_retry_after_is_waited_for_with_the_same_key(self):
        self.chat.refuse(1, 429, 1)
        entry = self.do('read.mark', {'thread': 't1', 'upTo': 'm'})
        self.done(entry)
        self.assertEqual([key for _, _, key in self.chat.requests], [entry, entry])


if __name__ == '__main__':
    harness.main()
