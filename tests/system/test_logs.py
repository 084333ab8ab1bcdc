"""What the log holds, and what it never may."""
import collections
import contextlib
import json
import os
import pathlib
import signal

import harness
from harness import SystemTest, wait_until

TEXT = 'recognisable-text-of-a-person'
SECRETS = ('recognisable-target-password', 'recognisable-workspace-password', 'recognisable-url-password', 'whsec_cmVjb2duaXNhYmxl')


def pairs_once(pairs):
    doubled = [key for key, count in collections.Counter(key for key, _ in pairs).items() if count > 1]
    if doubled:
        raise AssertionError(f'{doubled} stands twice in {pairs}')
    return dict(pairs)


class Logs(SystemTest):
    limit = 90

    def provoke(self, daemon, target):
        """Texts and secrets through every path that logs something."""
        kind = {'kind': 'note', 'payload': {'text': TEXT}}
        daemon.wait_status(daemon.accept_ok('plain', **kind), 'sent')
        target.script(path='/notes', status=422, answer={'type': 'about:blank', 'title': TEXT, 'detail': TEXT, 'code': 'refused'},
                      headers={'Content-Type': 'application/problem+json'}, times=1)
        daemon.wait_status(daemon.accept_ok('refused', **kind), 'error')
        target.script(path='/notes', status=302, headers={'Location': f'http://u:{SECRETS[2]}@127.0.0.1/{TEXT}'}, times=1)
        daemon.wait_status(daemon.accept_ok('redirected', **kind), 'error')
        target.script(path='/notes', close='reset', times=1)
        daemon.wait_status(daemon.accept_ok('cut', **kind), 'sent')
        failed = daemon.accept_ok('unknown', kind=TEXT, payload={'text': TEXT})
        wait_until(lambda: daemon.status(failed) == 'error', 10, lambda: daemon.entry(failed))
        daemon.accept('bad', body=f'{{"kind": "note", "payload": {{"text": "{TEXT}"')
        with contextlib.suppress(OSError):  # answered, and closed, before all of it was sent
            daemon.accept('bad', kind='note', payload={'text': TEXT * 20000})
        daemon.call('POST', '/v1/workspaces/w/sessions/a%00b/entries', kind)
        daemon.call('PUT', '/v1/workspaces/own/target', {'url': 'http://127.0.0.1:1', 'username': 'u', 'password': SECRETS[1],
                                                         'secrets': [SECRETS[3]]})
        daemon.call('PUT', '/v1/workspaces/own/target', {'url': f'ftp://u:{SECRETS[2]}@h/'})
        daemon.accept_ok('s', workspace='own', **kind)
        daemon.call('PATCH', f'/v1/workspaces/w/entries/{failed}', {'payload': {'text': TEXT}})
        daemon.call('DELETE', f'/v1/workspaces/w/entries/{failed}')
        daemon.call('POST', '/v1/workspaces/own/park', {'reason': TEXT})
        daemon.call('POST', '/v1/workspaces/w/confirm', {'entryID': failed, 'result': {'text': TEXT}})

    def test_no_secret_and_no_text_of_a_message_reaches_any_log(self):
        for level in ('info', 'debug'):
            with self.subTest(level=level):
                target = self.target()
                daemon = self.daemon(target, log={'level': level}, max_attempts=1, workers=1,
                                     target={'url': target.url, 'username': 'u', 'password': SECRETS[0]})
                self.provoke(daemon, target)
                daemon.process.send_signal(signal.SIGHUP)
                wait_until(lambda: 'new configuration in force' in daemon.log(), 30, 'the reload')
                self.assertEqual(daemon.stop(), 0)
                log = daemon.log() + (daemon.state / 'store' / 'valkey.log').read_text()
                for word in (*SECRETS, TEXT):
                    # A kind or a session may be named by its client: that is what a log is read for.
                    found = [line for line in log.splitlines() if word in line and f'kind={TEXT}' not in line]
                    self.assertFalse(found, f'{word} in the log')
                self.assertEqual('entry accepted' in log, level == 'debug')

    def test_each_step_of_an_entry_is_a_line_at_debug(self):
        target = self.target()
        target.script(path='/payments', times=1, close='after-request', store=False)
        daemon = self.daemon(target, workers=1)
        entry = daemon.accept_ok('s', kind='pay', payload={'n': 1})
        daemon.wait_status(entry, 'sent')
        steps = [(line.partition('msg="')[2].partition('"')[0], line.rpartition('status=')[2].split()[0] if ' status=' in line else '')
                 for line in daemon.log().splitlines() if f'entry={entry}' in line]
        self.assertEqual([what for what, _ in steps][:2], ['entry accepted', 'entry claimed'])
        settled = [status for what, status in steps if what == 'entry settled']
        self.assertEqual((settled[0], settled[-1]), ('verifying', 'sent'), steps)
        self.assertEqual(settled.count('sent'), 1, steps)

    def test_json_lines_are_json_with_every_name_once(self):
        target = self.target()
        daemon = self.daemon(target, log={'level': 'debug', 'format': 'json'}, workers=1)
        daemon.wait_status(daemon.accept_ok('s', kind='note', payload={}), 'sent')
        daemon.kill('worker')
        daemon.process.send_signal(signal.SIGUSR2)
        wait_until(lambda: 'new configuration in force' in daemon.log(), 30, 'the upgrade')
        self.assertEqual(daemon.stop(), 0)
        lines = [line for line in daemon.log().splitlines() if not line.startswith('--- start')]
        for line in lines:
            seen = json.loads(line, object_pairs_hook=pairs_once)
            self.assertLessEqual({'ts', 'level', 'role', 'pid', 'msg'}, set(seen))
        self.assertEqual({json.loads(line)['role'] for line in lines}, {'supervisor', 'api', 'worker'})

    def test_usr1_lets_every_process_open_the_log_file_anew(self):
        daemon = self.daemon(self.target(), start=False, workers=1)
        file = daemon.folder / 'file.log'
        daemon.settings['log'] = {'level': 'debug', 'file': str(file)}
        daemon.start()
        daemon.wait_workers(1)
        os.rename(file, f'{file}.1')
        daemon.process.send_signal(signal.SIGUSR1)
        wait_until(lambda: file.exists() and file.read_text().count('log file opened anew') == 3, 10, 'three processes')
        entry = daemon.accept_ok('s', kind='note', payload={})
        daemon.wait_status(entry, 'sent')
        old, new = pathlib.Path(f'{file}.1').read_text(), file.read_text()
        self.assertNotIn(entry, old)
        for what in ('entry accepted', 'entry settled'):
            self.assertTrue([line for line in new.splitlines() if what in line and entry in line], what)

    def test_a_log_that_can_not_be_written_stops_nothing(self):
        daemon = self.daemon(self.target(), start=False, workers=1)
        daemon.settings['log'] = {'level': 'debug', 'file': '/dev/full'}
        daemon.start()
        daemon.wait_status(daemon.accept_ok('s', kind='note', payload={}), 'sent')
        self.assertEqual(daemon.stop(), 0)


if __name__ == '__main__':
    harness.main()
