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

    def test_usage_ends_with_2(self):
        self.assertEqual(self.the_daemon.ctl('no-such-command').returncode, 2)
        self.assertEqual(self.the_daemon.ctl('list').returncode, 2)


if __name__ == '__main__':
    harness.main()
