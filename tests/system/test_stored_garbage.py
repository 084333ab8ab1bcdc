"""The store's content is untrusted: whatever somebody wrote there, an entry is shown as what it is, its session goes on, and a
person can take it away."""
import time

import harness
from harness import SystemTest, key, partition, wait_until

# What becomes of an entry: a name, the commands on its key ({} stands for it), whether it is delivered all the same.
SPOILED = [
    ('no-body', [('HDEL', '{}', 'body')], False),
    ('broken-msgpack', [('HSET', '{}', 'body', b'\xc1\xff\x00 nonsense')], False),
    ('cut-msgpack', [('HSET', '{}', 'body', b'\x82\xa4kind\xa4no')], False),
    ('no-map', [('HSET', '{}', 'body', b'\x05')], False),
    ('deep-msgpack', [('HSET', '{}', 'body', b'\x81\xa1a' + b'\x91' * 5000)], False),
    ('payload-no-json', [('HSET', '{}', 'body', b'\x82\xa4kind\xa4note\xa7payload\xa3{]}')], False),
    ('not-utf8', [('HSET', '{}', 'body', b'\x82\xa4kind\xa4note\xa7payload\xa4"\xff\xfe"')], False),
    ('no-status', [('HDEL', '{}', 'status')], False),
    ('unknown-status', [('HSET', '{}', 'status', 'half-way')], False),
    ('one-strange-field', [('DEL', '{}'), ('HSET', '{}', 'x', 'y')], False),
    ('a-text', [('DEL', '{}'), ('SET', '{}', 'garbage')], False),
    ('a-list', [('DEL', '{}'), ('RPUSH', '{}', 'garbage')], False),
    ('numbers', [('HSET', '{}', 'sends', '99999999999999999999', 'acceptedAt', '-1e300', 'nextAttemptAt', 'nan',
                  'attempts', '-5', 'verifyAttempts', 'x', 'transientFails', '18446744073709551616')], True),
    ('huge-times', [('HSET', '{}', 'acceptedAt', '9223372036854775807', 'lastAttemptAt', '-9223372036854775808',
                     'rank', '9223372036854775807', 'lastError', '{"code":5}', 'conflictCurrent', '{')], True),
]


class StoredGarbage(SystemTest):
    limit = 120

    def setUp(self):
        self.target_ = self.target()
        self.daemon_ = self.daemon(self.target_, workers=1)
        self.valkey = self.daemon_.valkey()
        self.addCleanup(self.valkey.close)

    def spoil(self, entry, commands):
        name = key('e', 'w', entry)
        for command in commands:
            self.valkey(*[name if word == '{}' else word for word in command])

    def sessions_of_three(self):
        """{name: (first, spoiled, last)}: all accepted while nothing is claimed."""
        self.assertEqual(self.daemon_.call('POST', '/v1/workspaces/w/pause').status, 200)
        lanes = {}
        for name, commands, _ in SPOILED:
            lanes[name] = [self.daemon_.accept_ok(session=name, kind='note', payload={'n': n}) for n in range(3)]
            self.spoil(lanes[name][1], commands)
        return lanes

    def claims(self):
        return self.daemon_.metric('outbox_store_requests_total', script='claim')

    def test_a_spoiled_entry_is_shown_and_removed_and_its_session_goes_on(self):
        lanes = self.sessions_of_three()
        for name, lane in lanes.items():
            with self.subTest(name, when='before a claim'):
                self.assertEqual([e['id'] for e in self.daemon_.entries(session=name)], lane)
                self.assertEqual(self.daemon_.get(f'/v1/workspaces/w/entries/{lane[1]}').status, 200)
        self.assertEqual(self.daemon_.call('POST', '/v1/workspaces/w/resume').status, 200)
        good = [entry for lane in lanes.values() for entry in (lane[0], lane[2])]
        good += [lanes[name][1] for name, _, is_delivered in SPOILED if is_delivered]
        self.assertDelivered(self.target_, good, times=1)
        for name, _, is_delivered in SPOILED:
            entry = lanes[name][1]
            with self.subTest(name, when='after a claim'):
                if is_delivered:
                    continue
                shown = self.daemon_.wait_status(entry, 'error')
                self.assertIs(shown.get('unreadable'), True, shown)
                self.assertEqual([e['id'] for e in self.daemon_.entries(session=name)], [entry])
                self.assertIn(entry, self.daemon_.ctl('list', 'w', name).stdout)
                told = self.daemon_.ctl('show', 'w', entry)
                self.assertEqual(told.returncode, 0, told.stderr)
                self.assertIn('cannot be read', told.stdout)
                self.assertEqual(self.daemon_.call('DELETE', f'/v1/workspaces/w/entries/{entry}').status, 200)
                self.assertEqual(self.daemon_.entries(session=name), [])
        spoiled = {lanes[name][1] for name, _, is_delivered in SPOILED if not is_delivered}
        self.assertEqual([r.key for r in self.target_.posts() if r.key in spoiled], [])
        self.rests()

    def test_indexes_that_name_nothing_hold_up_nobody(self):
        tag = f'{{{partition("w")}}}'
        held = self.daemon_.accept_ok(session='gone', kind='note', payload={})
        self.assertDelivered(self.target_, [held], times=1)
        for words in (('RPUSH', key('q', 'w', 'ghosts'), 'ob_nothing', '', 'a b:c'), ('ZADD', key('ws', 'w'), '1', 'ghosts'),
                      ('RPUSH', key('d', 'w', 'staged'), 'ob_nothing'), ('ZADD', key('ws', 'w'), '1', 'staged'),
                      ('ZADD', key('ws', 'w'), '1', 'nobody', '1', '%', '1', 'x' * 5000),
                      ('ZADD', f'outboxdue:{tag}', '1', 'nobody', '1', '%zz', '1', 'w'),
                      ('ZADD', f'outboxopen:{tag}', '1', 'w:ob_nothing', '1', 'garbage', '1', ':::'),
                      ('ZADD', f'outboxerr:{tag}', '1', 'w:ob_nothing', '1', 'garbage'),
                      ('ZADD', f'outboxlive:{tag}', '1', 'w:nobody', '1', 'garbage', '1', ':'),
                      ('ZADD', f'outboxnames:{tag}', '0', '%zz', '0', 'nobody'),
                      ('SADD', key('owned', 'w', 'ghosts'), 'ob_nothing'),
                      ('SADD', key('dep', 'w', held), 'ob_nothing')):
            self.valkey(*words)
        entries = [self.daemon_.accept_ok(session=session, kind='note', payload={}) for session in ('ghosts', 'staged', 'new')]
        self.assertDelivered(self.target_, entries, times=1)
        for path in ('/v1/workspaces', '/v1/workspaces/w', '/v1/workspaces/w/sessions', '/readyz', '/metrics'):
            with self.subTest(path):
                self.assertEqual(self.daemon_.get(path).status, 200)
        self.assertEqual(self.daemon_.entries(session='ghosts'), [])
        self.rests()

    def rests(self):
        """Nobody asks the store again and again for what can't be done."""
        def is_quiet():
            before = self.claims()
            time.sleep(1)
            return self.claims() - before < 100

        wait_until(is_quiet, 20, 'the worker asks without end')

    def test_a_failed_workspace_key_hides_no_other_workspace(self):
        self.daemon_.accept_ok(workspace='w', kind='note', payload={})
        other = self.daemon_.accept_ok(workspace='other', kind='note', payload={})
        self.assertDelivered(self.target_, [other], times=1)
        for name in ('wsstat', 'ws', 'conf'):
            with self.subTest(name):
                self.valkey('DEL', key(name, 'w'))
                self.valkey('SET', key(name, 'w'), 'garbage')
                answer = self.daemon_.get('/v1/workspaces')
                self.assertEqual(answer.status, 200, answer)
                entry = self.daemon_.accept_ok(workspace='other', kind='note', payload={'after': name})
                self.assertDelivered(self.target_, [entry], times=1)
                self.valkey('DEL', key(name, 'w'))
        self.rests()

    def test_a_workspace_of_garbage_is_cleaned_up(self):
        self.sessions_of_three()
        answer = self.daemon_.call('DELETE', '/v1/workspaces/w')
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual([name for name in self.valkey.keys(f'*:{{{partition("w")}}}:w:*')], [])


if __name__ == '__main__':
    harness.main()
