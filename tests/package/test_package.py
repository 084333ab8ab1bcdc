"""The Debian package where it belongs: installed on a Debian with systemd, started, reloaded, upgraded, removed, purged. The
machine is a container that forgets everything (container.py); the service, its sandbox and its manager are the real ones.

  test_package.py FILE.deb      skipped where no such container can be started, unless OUTBOXD_PACKAGE_TEST=must
"""
import base64
import contextlib
import http.client
import os
import pathlib
import re
import socket
import sys
import unittest

from container import ROOT, SLOW, Container, Unavailable

sys.path.insert(0, str(ROOT / 'tests' / 'system'))
from harness import Client, Target, raw_request, read_answer, wait_until  # noqa: E402

PORT = 7780
CONFIG = '/etc/outboxd/outboxd.yaml'
UNIT = 'outboxd.service'
SECURITY_MAX = 15  # systemd-analyze security, tenths


class PackageTest(unittest.TestCase):
    """In the order of the names: one machine, one story."""

    @classmethod
    def setUpClass(cls):
        cls.deb = pathlib.Path(DEB).resolve()
        try:
            cls.machine = Container()
        except Unavailable as why:
            if os.environ.get('OUTBOXD_PACKAGE_TEST') == 'must':
                raise
            raise unittest.SkipTest(f'{why}') from None
        cls.addClassCleanup(cls.machine.close)
        cls.machine.run('sh', '-c', 'cat >/srv/outboxd.deb', stdin=cls.deb.read_bytes())
        cls.machine.join_network()
        cls.target = Target().start()
        cls.addClassCleanup(cls.target.stop)

    def tearDown(self):
        if self._outcome.errors if hasattr(self._outcome, 'errors') else not self._outcome.success:
            print(self.machine.run('journalctl', '--no-pager', '-n', '60', '-o', 'cat', check=False).stdout, file=sys.stderr)

    # what the tests say

    def systemctl(self, *words, check=True):
        return self.machine.run('systemctl', *words, check=check)

    def show(self, name):
        return self.systemctl('show', '--value', '-p', name, UNIT).stdout.strip()

    def wait_shown(self, name, value, timeout=20):
        wait_until(lambda: self.show(name) == value, timeout, lambda: f'{name}: {self.show(name)}', every=0.1)

    def dpkg(self, *words):
        """dpkg is never asked anything, and never fails."""
        return self.machine.run('dpkg', '--force-confold,unsafe-io', *words)

    def configure(self, text):
        self.machine.write(CONFIG, text)

    def call(self, method, path, body=None):
        client = Client(PORT)
        try:
            return client.call(method, path, body)
        finally:
            client.close()

    def accept(self, name):
        """Repeats what was not accepted, as a client should."""
        def accepted():
            with contextlib.suppress(OSError, http.client.HTTPException):
                answer = self.call('POST', '/v1/workspaces/w/sessions/s/entries',
                                   {'clientMessageID': name, 'kind': 'note', 'payload': {'n': name}})
                return answer.status in (200, 202) and answer
            return None
        return wait_until(accepted, 20, f'{name} to be accepted').json()['id']

    def wait_delivered(self, entry):
        return wait_until(lambda: next((r for r in self.target.stored() if r.key == entry), None), 20, f'delivery of {entry}')

    def wait_ready(self):
        def ready():
            with contextlib.suppress(OSError, http.client.HTTPException):
                return self.call('GET', '/readyz').status == 200
        wait_until(ready, 20, 'ready')

    def installed(self):
        return set(self.machine.run('dpkg', '-L', 'outboxd').stdout.split())

    def processes(self):
        """{pid: name} of the service's user."""
        listed = self.machine.run('ps', '-o', 'pid=,comm=', '-u', 'outboxd', check=False).stdout
        return dict(line.split(None, 1) for line in listed.splitlines())


class Story(PackageTest):

    def test_1_installing_starts_a_service_that_works(self):
        said = self.dpkg('--install', '/srv/outboxd.deb')
        self.assertNotIn('mistakes', said.stderr)
        self.assertEqual(self.show('ActiveState'), 'active')
        self.assertEqual(self.systemctl('is-enabled', UNIT).stdout.strip(), 'enabled')
        self.assertEqual(self.call('GET', '/readyz').json()['durability'], 'fsync')
        self.assertEqual(self.machine.run('outboxd', '--check-config').stdout, 'configuration is good\n')
        self.assertIn('serving', self.show('StatusText'))

    def test_2_files_are_where_debian_expects_them(self):
        installed = self.installed()
        for path in ('/usr/sbin/outboxd', '/usr/bin/outboxctl', '/usr/libexec/outboxd/outboxd-api', '/usr/libexec/outboxd/outboxd-worker',
                     CONFIG, '/usr/share/doc/outboxd/copyright', '/usr/share/doc/outboxd/examples/outboxd.yaml.sample',
                     '/usr/share/bash-completion/completions/outboxctl', '/usr/share/man/man1/outboxctl.1.gz',
                     '/usr/share/man/man8/outboxd.8.gz', '/usr/share/man/man5/outboxd.yaml.5.gz', '/usr/share/man/man7/outboxd-metrics.7.gz',
                     '/usr/share/outboxd/prometheus/outboxd.alerts.yml', '/usr/share/outboxd/grafana/outboxd.json'):
            self.assertIn(path, installed)
        self.assertEqual(self.machine.run('dpkg-query', '-W', '-f', '${Conffiles}', 'outboxd').stdout.split()[0], CONFIG)
        self.assertEqual(self.machine.run('stat', '-c', '%U:%G %a', '/var/lib/outboxd').stdout.strip(), 'outboxd:outboxd 750')
        self.assertEqual(self.machine.run('stat', '-c', '%U:%G %a', CONFIG).stdout.strip(), 'root:root 644')

    def test_2_systemd_finds_nothing_to_complain_of(self):
        verified = self.machine.run('systemd-analyze', 'verify', '--man=no', 'outboxd.service', 'outboxd.socket')
        self.assertEqual(verified.stdout + verified.stderr, '')
        self.machine.run('systemd-analyze', 'security', '--no-pager', f'--threshold={SECURITY_MAX}', UNIT)

    def test_2_every_process_is_confined(self):
        names = self.processes()
        self.assertEqual({'outboxd', 'outboxd-api', 'outboxd-worker'} - set(names.values()), set())
        self.assertTrue({'valkey-server', 'redis-server'} & set(names.values()), names)
        for pid, name in names.items():
            status = dict(re.findall(r'^(\w+):\s*(.*)$', self.machine.read(f'/proc/{pid}/status'), re.M))
            with self.subTest(name):
                self.assertEqual((status['NoNewPrivs'], status['Seccomp'], int(status['CapEff'], 16), int(status['CapBnd'], 16)),
                                 ('1', '2', 0, 0))

    def test_3_it_delivers_with_a_credential_of_systemd(self):
        self.machine.write('/etc/outboxd/secret', 'open sesame\n')
        self.machine.run('chmod', '600', '/etc/outboxd/secret')
        self.machine.write('/etc/systemd/system/outboxd.service.d/test.conf',
                           '[Service]\nLoadCredential=target-password:/etc/outboxd/secret\nWatchdogSec=10s\nRestartSec=100ms\n')
        self.machine.run('sh', '-c', 'echo 127.0.0.1 target.example >>/etc/hosts')
        url = self.target.url.replace('127.0.0.1', 'target.example')  # names are resolved within the sandbox, too
        self.configure(f'target: {{url: "{url}", username: me, password_file: target-password}}\n'
                       'kinds: [{name: note, url: /notes, idempotent: true}]\nworkers: 2\n')
        self.systemctl('daemon-reload')
        self.systemctl('restart', UNIT)
        self.wait_ready()
        request = self.wait_delivered(self.accept('m1'))
        self.assertEqual(request.headers['authorization'], 'Basic ' + base64.b64encode(b'me:open sesame').decode())
        self.assertIn('only the service gets it', self.machine.run('outboxd', '--check-config').stderr)

    def test_4_a_bad_configuration_fails_the_reload_and_nothing_else(self):
        good = self.machine.read(CONFIG)
        pid = self.show('MainPID')
        self.configure(good + 'colour: red\n')
        self.assertNotEqual(self.systemctl('reload', UNIT, check=False).returncode, 0)
        self.assertIn('colour', self.machine.run('journalctl', '--no-pager', '-u', UNIT, '-n', '20').stdout)
        self.assertEqual((self.show('ActiveState'), self.show('MainPID')), ('active', pid))
        self.wait_delivered(self.accept('m2'))
        self.configure(good)
        self.systemctl('reload', UNIT)

    def test_4_an_upgrade_replaces_the_running_service_in_place(self):
        before = self.processes()
        main = self.show('MainPID')
        self.dpkg('--install', '/srv/outboxd.deb')
        self.wait_shown('SubState', 'running')
        wait_until(lambda: not {pid for pid, name in before.items() if name in ('outboxd-api', 'outboxd-worker')} & set(self.processes()), 20,
                   'new children', every=0.1)
        self.assertEqual((self.show('ActiveState'), self.show('MainPID'), self.show('NRestarts')), ('active', main, '0'))
        self.assertEqual(self.machine.run('readlink', f'/proc/{main}/exe').stdout, '/usr/sbin/outboxd\n')
        self.wait_delivered(self.accept('m2u'))

    def test_5_a_supervisor_that_was_killed_or_stands_still_is_started_again(self):
        for signal in ('KILL', 'STOP'):
            with self.subTest(signal):
                pid = self.show('MainPID')
                entry = self.accept(f'm3-{signal}')
                self.systemctl('kill', '--kill-who=main', f'--signal={signal}', UNIT)
                wait_until(lambda pid=pid: self.show('MainPID') not in ('0', pid) and self.show('ActiveState') == 'active', 30,
                           'another supervisor', every=0.1)
                self.wait_delivered(entry)
                self.wait_delivered(self.accept(f'm4-{signal}'))

    def test_6_sockets_of_systemd_keep_clients_waiting_over_a_restart(self):
        self.systemctl('stop', UNIT)
        self.systemctl('start', 'outboxd.socket')
        with socket.create_connection(('127.0.0.1', PORT), timeout=30 * SLOW) as early:
            early.sendall(raw_request('GET', '/healthz'))
            self.assertEqual(read_answer(early).status, 200)
        self.systemctl('stop', UNIT)
        with socket.create_connection(('127.0.0.1', PORT), timeout=30 * SLOW) as late:
            self.systemctl('start', UNIT)
            late.sendall(raw_request('GET', '/healthz'))
            self.assertEqual(read_answer(late).status, 200)
        self.wait_delivered(self.accept('m5'))

    def test_7_stopping_waits_for_what_is_in_flight(self):
        self.target.script(hold=True, times=1)
        entry = self.accept('m6')
        wait_until(lambda: any(r.key == entry for r in self.target.posts()), 10, 'the request')
        self.systemctl('stop', '--no-block', 'outboxd.socket', UNIT)
        self.wait_shown('StatusText', 'draining: 1 delivery left')
        self.target.release()
        self.wait_shown('ActiveState', 'inactive')
        self.assertEqual(self.show('Result'), 'success')
        self.assertEqual(self.processes(), {})
        self.systemctl('start', UNIT)
        self.wait_ready()
        self.assertEqual(self.call('GET', f'/v1/workspaces/w/entries/{entry}').json()['status'], 'sent')

    def test_8_a_bad_configuration_does_not_fail_the_installation_but_the_start(self):
        good = self.machine.read(CONFIG)
        self.systemctl('stop', UNIT)
        self.configure('session_cap: none\n')
        said = self.dpkg('--install', '/srv/outboxd.deb')
        self.assertIn('session_cap', said.stderr)
        self.assertIn('systemctl restart outboxd', said.stderr)
        self.assertEqual((self.show('ActiveState'), self.show('ExecMainStatus'), self.show('NRestarts')), ('failed', '2', '0'))
        self.configure(good)
        self.systemctl('restart', UNIT)

    def test_9_removing_leaves_nothing_running_and_purging_nothing_at_all(self):
        self.wait_ready()
        installed = {path for path in self.installed() if 'outbox' in path}
        self.dpkg('--remove', 'outboxd')
        self.assertEqual(self.processes(), {})
        self.assertEqual(self.machine.run('sh', '-c', 'ls /dev/shm').stdout, '')
        self.machine.run('test', '-e', CONFIG)
        self.machine.run('test', '-d', '/var/lib/outboxd/store')
        self.machine.run('rm', '-r', '/etc/outboxd/secret', '/etc/systemd/system/outboxd.service.d')  # what the test put there
        self.dpkg('--purge', 'outboxd')
        left = self.machine.run('sh', '-c', 'ls -d "$@" 2>/dev/null', 'sh', *installed, check=False).stdout
        left += self.machine.run('find', '/etc', '/run', '/var/lib', '/var/log', '-xdev', '-name', '*outboxd*', '-not', '-path', '/run/systemd/*',
                                 '-not', '-path', '/run/host/*', '-not', '-name', 'outboxd-backports.sources').stdout
        self.assertEqual(left, '')


if __name__ == '__main__':
    if len(sys.argv) < 2 or not os.path.isfile(sys.argv[1]):
        sys.exit(__doc__)
    DEB = sys.argv.pop(1)
    unittest.main(verbosity=2)
