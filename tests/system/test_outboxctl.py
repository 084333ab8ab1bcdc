"""outboxctl against a running outboxd: list, show, retry, remove, send, top."""
import json

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
        self.assertEqual(daemon.ctl('sweep', 'w', 'dust').returncode, 1)
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
        self.assertEqual(daemon.ctl('target', 'w', 'http://h', '--password-file', 'no-such-file').returncode, 1)
        self.assertEqual(ctl('cleanup', 'w')[0], 'keysRemoved')
        self.assertEqual(daemon.ctl('workspaces', 'w').returncode, 3)
        self.assertEqual(daemon.ctl('cleanup', 'a/b').returncode, 2)

    def test_usage_ends_with_2(self):
        self.assertEqual(self.the_daemon.ctl('no-such-command').returncode, 2)
        self.assertEqual(self.the_daemon.ctl('list').returncode, 2)


if __name__ == '__main__':
    harness.main()
