"""outboxctl against a running outboxd: list, show, retry, remove, send, top."""
import json
import subprocess

import harness
from harness import SystemTest, wait_until


class Ctl(SystemTest):
    def setUp(self):
        self.the_target = self.target()
        self.the_target.script({'path': '/fires', 'status': 400, 'times': 1}, {'path': '/notes', 'hold': True, 'times': 1})
        self.the_daemon = self.daemon(self.the_target, workers=1)

    def test_list_show_retry_and_remove(self):
        daemon = self.the_daemon
        failed = daemon.accept_ok('s', kind='fire', payload={'n': 1})
        daemon.wait_status(failed, 'error')
        shown = daemon.ctl('--json', 'show', 'w', failed)
        self.assertEqual((shown.returncode, json.loads(shown.stdout)['id']), (0, failed), shown)
        listed = daemon.ctl('list', 'w', 's')
        self.assertEqual(listed.returncode, 0, listed)
        self.assertIn(failed, listed.stdout)
        self.assertIn('error', listed.stdout)
        self.assertEqual(daemon.ctl('retry', 'w', failed).returncode, 0)
        daemon.wait_status(failed, 'sent')
        self.assertEqual(daemon.ctl('retry', 'w', failed).returncode in (3, 4), True)
        self.assertEqual(daemon.ctl('show', 'w', 'ob_nothing').returncode, 3)

    def test_remove_of_an_entry_that_waits_and_of_one_being_sent(self):
        daemon = self.the_daemon
        sending = daemon.accept_ok('s', kind='note', payload={})
        wait_until(lambda: self.the_target.posts(), 10, 'the request')
        waiting = daemon.accept_ok('s', kind='note', payload={})
        busy = daemon.ctl('remove', 'w', sending)
        self.assertEqual(busy.returncode, 4, busy)
        self.assertEqual(daemon.ctl('remove', 'w', waiting).returncode, 0)
        self.assertEqual(daemon.status(waiting), 'removed')
        answer = daemon.call('DELETE', f'/v1/workspaces/w/entries/{sending}')
        self.assertProblem(answer, 409, 'busy')
        self.assertTrue(answer.headers.get('retry-after'))
        self.assertProblem(daemon.call('POST', f'/v1/workspaces/w/entries/{sending}/retry'), 409)
        self.the_target.release()
        daemon.wait_status(sending, 'sent')
        self.assertEqual(len(self.the_target.posts()), 1)

    def test_top_shows_processes_and_deliveries_in_flight(self):
        daemon = self.the_daemon
        entry = daemon.accept_ok('the-session', kind='note', payload={}, workspace='the-workspace')
        wait_until(lambda: self.the_target.posts(key=entry), 10, 'the request')

        def frame():
            return daemon.ctl('top', '--once', '--state-dir', str(daemon.state))
        wait_until(lambda: 'the-session' in frame().stdout, 10, lambda: f'the delivery in {frame()}')
        self.assertIn('the-workspace', frame().stdout)
        self.assertEqual(frame().returncode, 0)
        text = daemon.ctl('top', '--once', '--json', '--state-dir', str(daemon.state)).stdout
        json.loads(text)
        for pid in daemon.pids('worker') + daemon.pids('api'):
            self.assertIn(str(pid), text)
        self.the_target.release()

    def test_operations_on_a_workspace(self):
        daemon = self.the_daemon

        def ctl(*arguments, stdin=None):
            done = daemon.ctl(*arguments)
            self.assertEqual(done.returncode, 0, done)
            return done.stdout.split()
        self.assertEqual(ctl('pause', 'w'), ['paused', 'true'])
        entry = daemon.accept_ok('s', kind='fire', payload={})
        self.assertEqual(ctl('park', 'w', 'the reason')[:2], ['parked', '1'])
        self.assertIn('the reason', daemon.ctl('show', 'w', entry).stdout)
        self.assertIn('w', ctl('workspaces'))
        self.assertEqual(ctl('workspaces', 'w')[-8:-1], ['paused', '1', '0', '0', '0', '0', '1'])
        self.assertEqual(ctl('unpark', 'w'), ['unparked', '1'])
        self.assertEqual(ctl('sweep', 'w', 'unverifiable'), ['recovered', '0'])
        self.assertEqual(daemon.ctl('sweep', 'w', 'dust').returncode, 2)
        (daemon.folder / 'password').write_text('hush\n')
        shown = ctl('target', 'w', self.the_target.url, '--executor', 'http', '--username', 'u', '--password-file', 'password')
        self.assertEqual(shown[shown.index('hasPassword') + 1], 'true')
        self.assertNotIn('hush', shown)
        valkey = daemon.valkey()
        self.addCleanup(valkey.close)
        self.assertEqual(json.loads(valkey('HGET', harness.key('conf', 'w'), 'target'))['password'], 'hush')
        self.assertEqual(ctl('target', 'w'), shown)
        self.assertEqual(ctl('target', 'w', '--delete'), ['deleted', 'true'])
        self.assertEqual(daemon.ctl('target', 'w').returncode, 3)
        self.assertEqual(daemon.ctl('target', 'w', '--username', 'u').returncode, 2)
        self.assertEqual(daemon.ctl('target', 'w', 'http://h', '--password-file', 'no-such-file').returncode, 2)
        self.assertEqual(ctl('cleanup', 'w', '--yes')[0], 'keysRemoved')
        self.assertEqual(daemon.ctl('workspaces', 'w').returncode, 3)
        self.assertEqual(daemon.ctl('cleanup', 'a/b').returncode, 2)

    def test_edit_confirm_and_dependencies(self):
        daemon = self.the_daemon

        def ctl(*arguments, stdin=''):
            done = subprocess.run([harness.program('outboxctl'), '--server', f'http://127.0.0.1:{daemon.port}', *arguments],
                                  capture_output=True, text=True, timeout=20 * harness.SLOW, input=stdin)
            self.assertEqual(done.returncode, 0, done)
            return done.stdout.split()
        ctl('pause', 'w')
        first = ctl('send', 'w', 'one', '--kind', 'note', '--payload', '-', '--id', 'm1', stdin='{"a":12345678901234567890}')[0]
        second = ctl('send', 'w', 'two', '--kind', 'note', '--payload', '{"b":null}', '--depends-on', first)[0]
        third = ctl('send', 'w', 'two', '--kind', 'note', '--payload', '{}', '--depends-on', f'{first},{second}')[0]
        self.assertEqual(daemon.entry(third).json()['dependsOn'], [first, second])
        self.assertEqual(ctl('edit', 'w', first, '--payload', '{"c":1}')[:2], [first, 'edited'])
        self.assertEqual(ctl('edit', 'w', first, '--payload', '-', stdin=' {"d":2} ')[:2], [first, 'edited'])
        self.assertEqual(daemon.entry(first).json()['payload'], {'a': 12345678901234567890, 'c': 1, 'd': 2})
        self.assertEqual(ctl('confirm', 'w', first, '--result', '{"b":7}'), ['confirmed', 'true'])
        self.assertEqual(ctl('confirm', 'w', 'one', 'm1'), ['confirmed', 'true'])
        self.assertEqual(ctl('confirm', 'w', 'ob_none'), ['confirmed', 'false'])
        self.assertEqual(daemon.entry(second).json()['payload'], {'b': 7})
        self.assertEqual(ctl('remove', 'w', second), [second, 'removed'])
        self.assertIn('dependency_discarded', daemon.ctl('show', 'w', third).stdout)
        prompt = ctl('send', 'w', 'three', 'hello')[0]
        for arguments, stdin, text in ((('--text', '-'), '', '-'), (('--text-file', '-'), 'two\nlines', 'two\nlines')):
            self.assertEqual(ctl('edit', 'w', prompt, *arguments, stdin=stdin), [prompt, 'edited'])
            self.assertEqual(daemon.entry(prompt).json()['text'], text)
        self.assertEqual(ctl('edit', 'w', prompt, '--model', '{"id":"m"}'), [prompt, 'edited'])
        self.assertEqual(daemon.entry(prompt).json()['model'], {'id': 'm'})
        for arguments in (('edit', 'w', prompt), ('edit', 'w', prompt, '--payload', '{'), ('confirm', 'w'),
                          ('edit', 'w', prompt, '--text', 'a', '--text-file', 'b'), ('confirm', 'w', 'a/b', 'm1'),
                          ('send', 'w', 's', 'text', '--depends-on', 'a,,b')):
            self.assertEqual(daemon.ctl(*arguments).returncode, 2, arguments)
        self.assertEqual(daemon.ctl('edit', 'w', prompt, '--payload', '{"a":1}').returncode, 1)
        self.assertEqual(daemon.ctl('edit', 'w', 'ob_none', '--text', 't').returncode, 3)

    def test_what_became_of_an_entry_that_failed(self):
        daemon = self.the_daemon
        failed = daemon.accept_ok('s', kind='fire', payload={})
        daemon.wait_status(failed, 'error')
        self.assertEqual(daemon.ctl('remove', 'w', failed).stdout.split(), [failed, 'discarded'])
        self.the_target.script(path='/notes', status=422, times=1)
        sending = daemon.accept_ok('n', kind='note', payload={})
        wait_until(lambda: self.the_target.posts(key=sending), 10, 'the request')
        bad = daemon.accept_ok('m', kind='note', payload={})
        daemon.wait_status(bad, 'error')
        again, status = daemon.ctl('retry', 'w', bad).stdout.split()
        self.assertNotEqual((again, status), (bad, ''))
        self.assertEqual(daemon.status(bad), 'replaced')
        self.the_target.release()

    def test_usage_ends_with_2(self):
        self.assertEqual(self.the_daemon.ctl('no-such-command').returncode, 2)
        self.assertEqual(self.the_daemon.ctl('list').returncode, 2)


if __name__ == '__main__':
    harness.main()
