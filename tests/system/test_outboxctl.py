"""outboxctl against a running outboxd: every command, in both forms; exit codes; what people and scripts rely on."""
import json
import shutil
import subprocess

import harness
from harness import wait_until
from support_ctl import Pretender, Shared, on_terminal, outboxctl

ACCEPTED = (202, {'id': 'ob_1', 'clientMessageID': 'm', 'status': 'pending'})
PROBLEM = {'title': 'Something', 'code': 'store_unavailable', 'detail': 'nothing'}
OTHER = {'title': 'Something', 'code': 'other'}


class Commands(Shared):
    def test_every_command_answers_people_and_scripts(self):
        daemon = self.daemon_
        held = daemon.accept_ok('held', kind='hold', payload={}, workspace='every')
        retried, dismissed, again = (self.failed('every', session) for session in 'abc')
        self.ctl('pause', 'every2')
        waiting = [self.json('send', 'every2', 's', '--kind', 'note', '--payload', '{}')['id'] for _ in range(4)]
        # Command, arguments, an exit code, a second time with --json: other arguments where it changes what it is about.
        rows = {
            'status': ((), ()),
            'workspaces': ((), ('every',)),
            'list': (('every', 'held'), ('every',)),
            'show': (('every', held), ('every', held)),
            'tail': None,  # goes on until it is stopped: test_events
            'top': (('--once', '--state-dir', str(daemon.state)),) * 2,
            'doctor': (('--config', str(daemon.config)),) * 2,
            'help': (('send',), None),
            'send': (('every2', 's', '--kind', 'note', '--payload', '{}'),) * 2,
            'retry': (('every', retried), ('every', again)),
            'dismiss': (('every', dismissed),) * 2,
            'remove': (('every2', waiting[0]), ('every2', waiting[1])),
            'edit': (('every2', waiting[2], '--payload', '{"a":1}'),) * 2,
            'confirm': (('every2', waiting[2]), ('every2', waiting[3])),
            'park': (('every2', 'why'),) * 2,
            'unpark': (('every2',),) * 2,
            'pause': (('every2',),) * 2,
            'resume': (('every3',),) * 2,
            'sweep': (('every', 'unverifiable'), ('every', 'parked-errors')),
            'target': (('every2', 'http://h'),) * 2,
            'cleanup': (('every2', '--yes'),) * 2,
            'token': None,  # asks no server: test_tokens
        }
        self.assertEqual(set(rows), set(outboxctl('__complete', 'outboxctl', '').stdout.split()[1:]))
        for name, row in rows.items():
            with self.subTest(command=name):
                if row is not None:
                    self.assertTrue(self.ctl(name, *row[0]))
                if row is not None and row[1] is not None:
                    self.assertIsInstance(self.json(name, *row[1]), dict)
        self.target_.release()

    def test_a_list_is_filtered_and_goes_through_all_sessions(self):
        self.ctl('pause', 'many')
        entries = {f's:{n}': self.daemon_.accept_ok(f's:{n}', kind='note' if n % 2 else 'pay', payload={'n': 10**20 + n},
                                                    workspace='many') for n in range(40)}
        self.assertEqual(sorted(self.ctl('list', 'many', '--quiet').split()), sorted(entries.values()))
        self.assertEqual(len(self.ctl('list', 'many', '-q', '--kind', 'pay').split()), 20)
        self.assertEqual(len(self.ctl('list', 'many', '-q', '--limit', '7').split()), 7)
        self.assertEqual(self.ctl('list', 'many', '-q', '--status', 'error'), '')
        self.assertEqual(len(self.ctl('list', 'many', '-q', '--status', 'pending,error').split()), 40)
        shown = self.ctl('list', 'many', 's:7').splitlines()
        self.assertEqual((len(shown), shown[1].split()[:3]), (2, [entries['s:7'], 'pending', 'note']))
        # JSON keeps what no C type holds.
        self.assertIn(f'{10**20 + 7}', self.ctl('--json', 'list', 'many', 's:7'))
        self.assertEqual([e['id'] for e in self.json('list', 'many', 's:7')['entries']], [entries['s:7']])
        self.assertEqual(len(self.json('list', 'many')['entries']), 40)
        self.assertEqual(self.json('list', 'nobody')['entries'], [])
        self.ctl('cleanup', 'many', '--yes')

    def test_workspaces_are_told_page_by_page(self):
        for n in range(3):
            self.ctl('pause', f'page{n}')
        names = [w['workspaceID'] for w in self.json('workspaces')['workspaces']]
        self.assertTrue({'page0', 'page1', 'page2'} <= set(names))
        self.assertEqual([w['workspaceID'] for w in self.json('workspaces', '--limit', '1')['workspaces']], names[:1])
        self.assertEqual([w['workspaceID'] for w in self.json('workspaces', '--after', names[0])['workspaces']], names[1:])
        self.assertIn('page1', self.ctl('workspaces'))
        self.assertEqual(self.ctl('workspaces', 'page1').splitlines()[1].split()[:2], ['page1', 'paused'])

    def test_a_journey_is_told_with_what_to_do(self):
        failed = self.failed('journey', clientMessageID='m1')
        waiting = self.daemon_.accept_ok('t', kind='note', payload={'text': 'hello'}, dependsOn=[failed], workspace='journey')
        shown = self.ctl('show', 'journey', failed)
        steps = [line.split()[-1] if 'accepted' in line else line for line in shown.split('Journey\n')[1].splitlines()]
        for at, what in enumerate(('accepted', 'delivering', 'error')):
            self.assertIn(what, steps[at])
        for text in ('m1', 'last error', 'ago', f'outboxctl retry journey {failed}', f'outboxctl dismiss journey {failed}'):
            self.assertIn(text, shown)
        self.assertIn(f'{failed}  error', self.ctl('show', 'journey', waiting))
        self.assertNotIn('journey', self.json('show', 'journey', failed))
        told = self.json('show', 'journey', failed, '--journey')
        self.assertEqual((told['id'], [event['type'] for event in told['journey']]), (failed, ['accepted', 'delivering', 'error']))
        self.ctl('dismiss', 'journey', failed)
        ended = self.ctl('show', 'journey', failed)
        self.assertIn('discarded', ended.splitlines()[0])
        self.assertIn('removed', ended)
        self.assertIn('dependency_discarded', self.ctl('show', 'journey', waiting))

    def test_entries_are_edited_confirmed_and_removed(self):
        def words(*arguments, **more):
            return self.ctl(*arguments, **more).split()
        daemon = self.daemon_
        self.ctl('pause', 'edits')
        first = words('send', 'edits', 'one', '--kind', 'note', '--payload', '-', '--id', 'm1',
                      stdin='{"a":12345678901234567890}')[0]
        second = words('send', 'edits', 'two', '--kind', 'note', '--payload', '{"b":null}', '--depends-on', first)[0]
        third = words('send', 'edits', 'two', '--kind', 'note', '--payload', '{}', '--depends-on', f'{first},{second}')[0]
        self.assertEqual(daemon.entry(third, 'edits').json()['dependsOn'], [first, second])
        self.assertEqual(words('edit', 'edits', first, '--payload', '{"c":1}'), [first, 'edited'])
        self.assertEqual(words('edit', 'edits', first, '--payload', '-', stdin=' {"d":2} '), [first, 'edited'])
        self.assertEqual(daemon.entry(first, 'edits').json()['payload'], {'a': 12345678901234567890, 'c': 1, 'd': 2})
        self.assertEqual(words('confirm', 'edits', first, '--result', '{"b":7}'), ['confirmed', 'true'])
        self.assertEqual(words('confirm', 'edits', 'one', 'm1'), ['confirmed', 'true'])
        self.assertEqual(words('confirm', 'edits', 'ob_none'), ['confirmed', 'false'])
        self.assertEqual(daemon.entry(second, 'edits').json()['payload'], {'b': 7})
        self.assertEqual(words('remove', 'edits', second, 'ob_none', code=3), [second, 'removed'])
        prompt = words('send', 'edits', 'three', 'hello')[0]
        for arguments, stdin, text in ((('--text', '-'), '', '-'), (('--text-file', '-'), 'two\nlines', 'two\nlines')):
            self.assertEqual(words('edit', 'edits', prompt, *arguments, stdin=stdin), [prompt, 'edited'])
            self.assertEqual(daemon.entry(prompt, 'edits').json()['text'], text)
        self.assertEqual(words('edit', 'edits', prompt, '--model', '{"id":"m"}'), [prompt, 'edited'])
        self.assertEqual(daemon.entry(prompt, 'edits').json()['model'], {'id': 'm'})
        self.ctl('cleanup', 'edits', '--yes')

    def test_failed_entries_are_retried_and_dismissed_and_no_others(self):
        one, two = self.failed('fails'), self.failed('fails')
        self.assertEqual(self.ctl('list', 'fails', '-q', '--status', 'error').split(), [one, two])
        self.ctl('pause', 'fails')
        self.assertEqual(self.ctl('retry', 'fails', one, 'ob_none', two, code=3).split(), [one, 'pending', two, 'pending'])
        refused = outboxctl('dismiss', 'fails', one, server=f'http://127.0.0.1:{self.daemon_.port}')
        self.assertEqual(refused.returncode, 4, refused)
        self.assertIn(f'{one} is pending', refused.stderr)
        self.assertEqual(self.daemon_.status(one, 'fails'), 'pending')
        self.assertEqual(self.json('retry', 'fails', one, code=4)['code'], 'not_failed')
        self.assertEqual(self.ctl('remove', 'fails', one).split(), [one, 'removed'])
        self.ctl('resume', 'fails')
        self.daemon_.wait_status(two, 'error', 'fails')
        for _ in range(2):  # a repeat says the same
            self.assertEqual(self.ctl('dismiss', 'fails', two).split(), [two, 'discarded'])

    def test_an_entry_that_is_being_sent_is_busy(self):
        entry = self.daemon_.accept_ok('s', kind='hold', payload={}, workspace='busy')
        wait_until(lambda: self.target_.posts(key=entry), 10, 'the request')
        self.assertEqual(self.json('remove', 'busy', entry, code=4)['code'], 'busy')
        shown = wait_until(lambda: [out for out in [self.ctl('top', '--once', '--state-dir', str(self.daemon_.state))]
                                    if 'busy' in out], 10, 'the delivery in a frame')[0]
        self.assertIn('sending', shown)
        frame = self.json('top', '--once', '--state-dir', str(self.daemon_.state))
        self.assertEqual({p['pid'] for p in frame['processes'] if p['role'] in ('api', 'worker')},
                         set(self.daemon_.pids('api') + self.daemon_.pids('worker')))
        self.target_.release()
        self.daemon_.wait_status(entry, 'sent', 'busy')

    def test_a_workspace_is_operated(self):
        daemon = self.daemon_
        self.assertEqual(self.ctl('pause', 'ops').split(), ['paused', 'true'])
        entry = daemon.accept_ok('s', kind='fire', payload={}, workspace='ops')
        self.assertEqual(self.ctl('park', 'ops', 'the reason').split(), ['parked', '1'])
        self.assertIn('the reason', self.ctl('show', 'ops', entry))
        self.assertEqual(self.ctl('workspaces', 'ops').split()[-8:-1], ['paused', '1', '0', '0', '0', '0', '1'])
        self.assertEqual(self.ctl('unpark', 'ops').split(), ['unparked', '1'])
        self.assertEqual(self.ctl('sweep', 'ops', 'unverifiable').split()[:2], ['recovered', '0'])
        password, secrets = daemon.folder / 'password', daemon.folder / 'secrets'
        password.write_text('hush\n')
        secrets.write_text('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n')
        shown = self.ctl('target', 'ops', self.target_.url, '--executor', 'http', '--username', 'u', '--password-file',
                         str(password), '--secrets-file', str(secrets)).split()
        self.assertEqual((shown[shown.index('hasPassword') + 1], shown[shown.index('secrets') + 1]), ('true', '1'))
        self.assertNotIn('hush', shown)
        self.assertEqual(self.ctl('target', 'ops').split(), shown)
        self.assertEqual(self.ctl('target', 'ops', '--delete').split(), ['deleted', 'true'])
        self.ctl('target', 'ops', code=3)
        self.assertEqual(self.ctl('cleanup', 'ops', '--yes').split()[0], 'keysRemoved')
        self.ctl('workspaces', 'ops', code=3)

    def test_a_cleanup_is_asked_for_on_a_terminal_and_said_elsewhere(self):
        server = ('--server', f'http://127.0.0.1:{self.daemon_.port}')
        self.ctl('pause', 'precious')
        self.ctl('cleanup', 'precious', code=2)
        shown, code = on_terminal(*server, 'cleanup', 'precious', typed='other\n')
        self.assertEqual(code, 2, shown)
        self.assertIn('nothing was deleted', shown)
        self.ctl('workspaces', 'precious')
        shown, code = on_terminal(*server, 'cleanup', 'precious', typed='precious\n')
        self.assertEqual(code, 0, shown)
        self.ctl('workspaces', 'precious', code=3)

    def test_wrong_usage_ends_with_2_and_asks_nobody(self):
        with Pretender((500, {})) as nobody:
            for line in ('no-such-command', 'list a/b', 'sweep w dust', 'target w --username u', 'target w http://h --delete',
                         'target w http://h --password-file no-such-file', 'edit w ob_1', 'edit w ob_1 --payload {',
                         'edit w ob_1 --text a --text-file b', 'confirm w a/b m1', 'send w s', 'send w s text --depends-on a,,b',
                         'send w s text --id=', 'send w s --payload {}', 'send w', 'tail w a/b', 'top --interval 0'):
                with self.subTest(line=line):
                    done = outboxctl(*line.split(' '), server=nobody.url)
                    self.assertEqual((done.returncode, done.stdout), (2, ''), done)
                    self.assertTrue(done.stderr)
            self.assertEqual(nobody.requests, [])

    def test_each_refusal_has_its_exit_code_and_says_what_to_do(self):
        free = f'http://127.0.0.1:{harness.free_port()}'
        for answer, code, text in (((404, OTHER), 3, 'Something'), ((409, OTHER), 4, 'Something'), ((429, OTHER), 6, 'Something'),
                                   ((503, PROBLEM), 6, 'outboxctl doctor'), ((401, OTHER), 7, 'OUTBOXCTL_TOKEN_FILE'),
                                   ((403, OTHER), 7, 'OUTBOXCTL_TOKEN_FILE'), ((500, OTHER), 1, 'Something'),
                                   ((200, '<html>'), 5, "not one of outboxd's"), ((502, '<html>'), 5, 'A proxy'),
                                   ((404, '<html>'), 3, 'is that an outboxd?'), (None, 5, 'no answer'), (free, 5, '--server')):
            with self.subTest(answer=answer), Pretender(answer) as server:
                url = free if answer is free else server.url
                for form in ((), ('--json',)):
                    done = outboxctl(*form, 'show', 'w', 'ob_1', server=url)
                    self.assertEqual(done.returncode, code, done)
                    self.assertIn(text, done.stderr)
                    if form:
                        self.assertTrue(json.loads(done.stdout)['code'])
                    else:
                        self.assertEqual(done.stdout, '')

    def test_top_says_that_nobody_runs_there(self):
        done = outboxctl('--json', 'top', '--once', '--state-dir', str(self.daemon_.folder))
        self.assertEqual((done.returncode, json.loads(done.stdout)['code']), (5, 'unreachable'), done)
        self.assertIn('no outboxd runs on this state directory', done.stderr)

    def test_the_manual_page_has_no_mistakes(self):
        page = outboxctl('--help=man').stdout
        self.assertIn('.SH "EXIT STATUS"', page)
        if not shutil.which('groff'):
            self.skipTest('groff is not installed')
        done = subprocess.run(['groff', '-man', '-ww', '-z', '-Tutf8'], input=page, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ''))


class Sending(Shared):
    def test_what_is_sent_may_come_from_anywhere(self):
        text, payload = self.daemon_.folder / 'text', self.daemon_.folder / 'payload'
        text.write_text('from a file\n')
        payload.write_text('{"n": 100000000000000000001}')
        self.ctl('pause', 'send')
        for arguments, stdin, member, expected in (
                (('s', 'plain'), None, 'text', 'plain'), (('s', '-'), 'piped\n', 'text', 'piped\n'),
                (('s', '--text-file', str(text)), None, 'text', 'from a file\n'),
                (('s', '--kind', 'note', '--payload-file', str(payload)), None, 'payload', {'n': 100000000000000000001}),
                (('s', '--kind', 'note', '--payload', '-'), '[1]', 'payload', [1]),
                (('--kind', 'laned', '--payload', '{"n":5}'), None, 'sessionID', 'lane:5'),
                (('s', 'x', '--user', 'u1', '--model', '{"id":"m"}'), None, 'userID', 'u1')):
            with self.subTest(arguments=arguments):
                entry = self.json('send', 'send', *arguments, stdin=stdin)['id']
                self.assertEqual(self.daemon_.entry(entry, 'send').json()[member], expected)
        self.assertIn('(202)', self.ctl('send', 'send', 't', 'hello', '--id', 'twice'))
        self.assertIn('before (200), now pending', self.ctl('send', 'send', 't', 'hello', '--id', 'twice'))
        self.assertEqual(self.json('send', 'send', 't', 'other', '--id', 'twice', code=4)['code'], 'idempotency_key_reuse')

    def test_it_is_repeated_with_the_same_id_until_it_is_accepted(self):
        unavailable = (503, PROBLEM, {'Retry-After': '0'})
        with Pretender(None, unavailable, (429, PROBLEM), ACCEPTED) as server:
            done = outboxctl('send', 'w', 's', 'hello', server=server.url)
            self.assertEqual(done.returncode, 0, done)
            self.assertTrue(done.stdout.startswith('ob_1  accepted (202)'), done)
            ids = {json.loads(body)['clientMessageID'] for _, _, _, body in server.requests}
            self.assertEqual((len(server.requests), len(ids)), (4, 1))
            self.assertTrue(all(one in done.stderr for one in ids), done)
        with Pretender(None, (200, {'id': 'ob_1', 'status': 'duplicate', 'entryStatus': 'sent'})) as server:
            done = outboxctl('send', 'w', 's', 'hello', '--id', 'mine', server=server.url)
            self.assertIn('accepted before (200), now sent', done.stdout)
            self.assertEqual([json.loads(r[3])['clientMessageID'] for r in server.requests], ['mine'] * 2)

    def test_it_gives_up_when_it_is_told_to_or_when_it_must(self):
        for answer, code, tries in ((None, 5, 1), ((503, PROBLEM), 6, 1), ((422, PROBLEM), 1, 1)):
            with self.subTest(answer=answer), Pretender(answer) as server:
                done = outboxctl('--json', 'send', 'w', 's', 'hello', '--timeout', '0', server=server.url)
                self.assertEqual((done.returncode, len(server.requests)), (code, tries), done)
                self.assertTrue(json.loads(done.stdout)['code'])
                self.assertEqual('--id ctl-' in done.stderr, code != 1, done)
        with Pretender((503, PROBLEM)) as server:
            self.assertEqual(outboxctl('send', 'w', 's', 'hello', '--timeout', '1', server=server.url).returncode, 6)
            self.assertGreater(len(server.requests), 1)

    def test_a_full_session_is_waited_for(self):
        self.ctl('pause', 'full')
        for n in range(25):
            self.daemon_.accept_ok('s', kind='note', payload={'n': n}, workspace='full')
        self.assertEqual(self.json('send', 'full', 's', 'x', '--timeout', '0', code=6)['code'], 'session_full')
        sending = subprocess.Popen([harness.program('outboxctl'), '--server', f'http://127.0.0.1:{self.daemon_.port}', 'send',
                                    'full', 's', '--kind', 'note', '--payload', '{}'], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(sending.kill)
        self.assertIn('not accepted yet', sending.stderr.readline())
        self.ctl('resume', 'full')
        self.assertIn('accepted (202)', sending.communicate(timeout=30 * harness.SLOW)[0])

    def test_the_token_is_read_from_a_file_that_others_can_not_read(self):
        token = self.daemon_.folder / 'token'
        token.write_text('secret-token\n')
        with Pretender(ACCEPTED) as server:
            for mode, code in ((0o644, 2), (0o606, 2), (0o660, 2), (0o640, 0), (0o600, 0)):
                token.chmod(mode)
                done = outboxctl('send', 'w', 's', 'x', server=server.url, environment={'OUTBOXCTL_TOKEN_FILE': str(token)})
                self.assertEqual(done.returncode, code, (oct(mode), done))
            self.assertEqual([r[2]['Authorization'] for r in server.requests], ['Bearer secret-token'] * 2)
            for text in ('', 'two words\n', 'two\nlines\n'):
                token.write_text(text)
                done = outboxctl('send', 'w', 's', 'x', server=server.url, environment={'OUTBOXCTL_TOKEN_FILE': str(token)})
                self.assertEqual(done.returncode, 2, done)
            gone = outboxctl('send', 'w', 's', 'x', server=server.url, environment={'OUTBOXCTL_TOKEN_FILE': '/no/such/file'})
            self.assertIn('/no/such/file', gone.stderr)
            self.assertEqual(len(server.requests), 2)


if __name__ == '__main__':
    harness.main()
