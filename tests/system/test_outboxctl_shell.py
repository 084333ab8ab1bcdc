"""outboxctl on a terminal and in a shell: colours, completion; its status and doctor, with a server and without."""
import json
import pathlib
import subprocess

import harness
from harness import wait_until
from support_ctl import Shared, on_terminal, outboxctl

COMPLETION = harness.ROOT / 'deploy' / 'completion' / 'outboxctl'
RED = '\x1b[31m'


class Colours(Shared):
    def test_colours_only_where_they_are_wanted(self):
        entry = self.failed('colours')
        line = ('--server', f'http://127.0.0.1:{self.daemon_.port}', 'list', 'colours')
        for options, environment, expected in (
                ((), {}, True), ((), {'NO_COLOR': '1'}, False), ((), {'NO_COLOR': ''}, True), ((), {'TERM': 'dumb'}, False),
                (('--color=never',), {}, False), (('--color=always',), {'NO_COLOR': '1'}, True), (('--color', 'auto'), {}, True)):
            with self.subTest(options=options, environment=environment):
                shown, code = on_terminal(*line, *options, environment=environment)
                self.assertEqual((code, entry in shown, f'{RED}error' in shown, '\x1b' in shown), (0, True, expected, expected))
        self.assertNotIn('\x1b', outboxctl(*line).stdout)
        self.assertIn(RED, outboxctl(*line, '--color=always').stdout)
        self.assertNotIn('\x1b', outboxctl(*line, '--color=always', '--json').stdout)


class Completion(Shared):
    def complete(self, *words):
        """What bash offers for the last of these words, as it splits the line itself."""
        script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; '
                  '_outboxctl "$1"; printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(['bash', '--norc', '-c', script, 'bash', str(COMPLETION), harness.program('outboxctl'), *words],
                              capture_output=True, text=True, cwd=self.daemon_.folder, check=False, stdin=subprocess.DEVNULL,
                              env={'OUTBOXCTL_SERVER': f'http://127.0.0.1:{self.daemon_.port}', 'PATH': '/usr/bin:/bin'})
        self.assertEqual((done.returncode, done.stderr), (0, ''), done)
        return done.stdout.split()

    def test_bash_offers_commands_options_values_and_files(self):
        help_text = outboxctl('--help').stdout
        commands = self.complete('')
        self.assertGreater(len(commands), 20)
        for name in commands:
            self.assertIn(f'\n  {name} ', help_text)
        of_send = outboxctl('send', '--help').stdout
        for option in self.complete('send', '--'):
            self.assertIn(option, of_send)
        for words, offered in ((('unp',), ['unpark']), (('list', 'w', '--qu'), ['--quiet']), (('--color', '=', 'al'), ['always']),
                               (('list', 'w', '--status', 'error,pa'), ['error,parked']), (('sweep', 'w', 'u'), ['unverifiable']),
                               (('doctor', '--config', 'outb'), ['outboxd.yaml']), (('doctor', '--config', '=', 'outb'), ['outboxd.yaml']),
                               (('top', '--state-dir', 'st'), ['state']), (('send', 'w', 's', 'x'), [])):
            with self.subTest(words=words):
                self.assertEqual(self.complete(*words), offered)

    def test_bash_offers_live_names(self):
        failed = self.failed('complete-me', 'thread:7')
        self.daemon_.accept_ok('other', kind='hold', payload={}, workspace='complete-me')
        self.assertEqual(self.complete('list', 'compl'), ['complete-me'])
        self.assertEqual(sorted(self.complete('tail', 'complete-me', '')), ['other', 'thread:7'])
        self.assertEqual(self.complete('tail', 'complete-me', 'thread', ':', ''), ['7'])
        self.assertEqual(self.complete('retry', 'complete-me', ''), [failed])
        self.assertEqual(len(self.complete('show', 'complete-me', 'ob')), 2)
        self.assertEqual(self.complete('retry', 'a/b', ''), [])
        self.assertEqual(self.complete('--server', 'http', ':', f'//127.0.0.1:{harness.free_port()}', 'list', ''), [])
        self.target_.release()


class Examined(Shared):
    def doctor(self, daemon, *options, code):
        """{check: (level, what was found)} of the last finding of each check; none may lack what to do."""
        done = outboxctl('--json', 'doctor', '--config', str(daemon.config), *options)
        self.assertEqual(done.returncode, code, done)
        checks = json.loads(done.stdout)['checks']
        for check in checks:
            self.assertTrue(check['level'] in ('ok', 'note') or check.get('do'), check)
        return {check['check']: (check['level'], check['found']) for check in checks}


class Status(Examined):
    def test_a_server_that_is_ready(self):
        self.failed('status')
        wait_until(lambda: 'error 1' in self.ctl('status'), 10, 'the gauge')
        shown, state = self.ctl('status'), self.json('status')
        for text in ('ready', 'fsync', 'worker', 'outboxctl list WORKSPACE --status error'):
            self.assertIn(text, shown)
        self.assertEqual((state['ready'], state['entries']['error'], state['durability'], state['restarts']),
                         (True, 1, 'fsync', 0))
        self.assertEqual(state['version'], outboxctl('--version').stdout.split()[1])
        self.assertEqual({process['role'] for process in state['processes']}, {'supervisor', 'api', 'worker'})

    def test_a_server_that_is_not(self):
        store = self.own_store()
        daemon = self.daemon(self.target_, workers=1, store={'url': store.url})
        server = f'http://127.0.0.1:{daemon.port}'
        self.assertEqual(outboxctl('status', server=server).returncode, 0)
        store.kill()
        away = wait_until(lambda: [d for d in [outboxctl('status', server=server)] if d.returncode == 1], 20, 'a status of 1')[0]
        self.assertIn('not ready, ', away.stdout)
        self.assertFalse(json.loads(outboxctl('status', '--json', server=server).stdout)['ready'])
        sick = self.doctor(daemon, code=1)
        self.assertEqual((sick['store.reachable'][0], sick['server.ready'][0]), ('failure', 'failure'))
        daemon.kill()
        self.assertEqual(outboxctl('status', server=server).returncode, 5)


class Doctor(Examined):
    def test_a_server_that_is_well(self):
        well = self.doctor(self.daemon_, code=0)
        for check in ('config.file', 'state_dir.access', 'state_dir.space', 'store.reachable', 'store.version', 'store.durability',
                      'store.writes', 'store.memory', 'clock.store', 'clock.steps', 'server.ready', 'server.version', 'server.processes'):
            self.assertEqual(well[check][0], 'ok', (check, well[check]))
        for check in ('clock.sync', 'limits.files', 'limits.backlog', 'memory.shm', 'server.entries'):
            self.assertIn(well[check][0], ('ok', 'note', 'warning'), check)
        self.assertIn(str(self.daemon_.port), well['server.ready'][1])
        self.assertIn('0 failures', outboxctl('doctor', '--config', str(self.daemon_.config)).stdout)

    def test_warnings_count_where_they_should(self):
        failed = self.failed('strict')
        wait_until(lambda: self.doctor(self.daemon_, code=0)['server.entries'][0] == 'warning', 10, 'a warning')
        self.doctor(self.daemon_, '--strict', code=1)
        self.ctl('dismiss', 'strict', failed)

    def test_without_a_server(self):
        daemon = self.daemon(self.target_, start=False)
        daemon.write_config()
        alone = self.doctor(daemon, code=0)
        self.assertEqual((alone['server.ready'][0], alone['store.reachable'][0], alone['state_dir.access'][0]), ('warning', 'note', 'ok'))

    def test_what_is_wrong_with_the_configuration_and_its_files(self):
        daemon = self.daemon(self.target_, start=False)
        password = pathlib.Path(daemon.folder) / 'password'
        password.write_text('hush')
        password.chmod(0o644)
        daemon.settings['target'].update(username='u', password_file=str(password))
        daemon.write_config()
        daemon.state.chmod(0o777)
        sick = self.doctor(daemon, code=1)
        self.assertEqual((sick['config.secrets'][0], sick['state_dir.access'][0]), ('failure', 'failure'))
        self.assertIn('target.password_file', sick['config.secrets'][1])
        password.chmod(0o600)
        daemon.state.chmod(0o750)
        self.assertEqual(self.doctor(daemon, code=0)['config.secrets'][0], 'ok')
        daemon.settings.update(workers='many', no_such_setting=1)
        daemon.write_config()
        done = outboxctl('doctor', '--config', str(daemon.config))
        self.assertEqual((done.returncode, done.stdout.count('failure  config.file')), (1, 2), done)

    def test_a_store_that_would_lose_messages(self):
        store = self.own_store('--appendonly', 'no')
        daemon = self.daemon(self.target_, start=False, store={'url': store.url})
        daemon.write_config()
        self.assertIn('durability: fsync', self.doctor(daemon, code=1)['store.durability'][1])
        daemon.settings['durability'] = 'memory'
        daemon.write_config()
        self.assertEqual(self.doctor(daemon, code=0)['store.durability'][0], 'warning')


if __name__ == '__main__':
    harness.main()
