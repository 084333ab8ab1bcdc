"""What deploy/ offers to copy: the configuration of an external store, and of nginx and HAProxy in front. Each is started as
it stands but for ports, folders and limits, and outboxd works with it."""
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import unittest

import harness
from harness import Client, SystemTest, free_port, wait_until
from support_events import Stream

DEPLOY = harness.ROOT / 'deploy'


class DeployFiles(SystemTest):
    limit = 60

    def folder(self):
        folder = tempfile.TemporaryDirectory(prefix='obf-')
        self.addCleanup(folder.cleanup)
        return pathlib.Path(folder.name)

    def started(self, *command, cwd):
        """A program that ends with the test."""
        log = open(cwd / 'log', 'w+', encoding='utf-8')
        process = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        def end():
            process.terminate()
            process.wait(20)
            log.close()
        self.addCleanup(end)
        return process

    def wait_listening(self, port, process, folder):
        def listens():
            self.assertIsNone(process.poll(), (folder / 'log').read_text())
            with socket.socket() as probe:
                return probe.connect_ex(('127.0.0.1', port)) == 0
        wait_until(listens, 15, lambda: (folder / 'log').read_text())


class ExternalStore(DeployFiles):

    def test_outboxd_accepts_a_store_with_the_configuration_and_the_user_of_valkey_conf(self):
        folder, port = self.folder(), free_port()
        users = re.findall(r'^#(user .*)$', (DEPLOY / 'valkey.conf').read_text().replace('>PASSWORD', '>secret'), re.M)
        self.assertEqual(len(users), 2)
        config = folder / 'valkey.conf'
        config.write_text('\n'.join([f'include {DEPLOY / "valkey.conf"}', *users, f'port {port}', f'dir {folder}']) + '\n')
        (folder / 'password').write_text('secret\n')
        server = self.started(shutil.which('valkey-server') or shutil.which('redis-server'), str(config), cwd=folder)
        self.wait_listening(port, server, folder)

        target = self.target()
        daemon = self.daemon(target, store={'url': f'valkey://outboxd@127.0.0.1:{port}/0', 'password_file': str(folder / 'password')})
        self.assertEqual(daemon.get('/readyz').json()['durability'], 'fsync')
        self.assertDelivered(target, [daemon.accept_ok(kind='pay', payload={'n': 1})], times=1)
        self.assertNotIn('NOPERM', (folder / 'log').read_text() + daemon.log())


@unittest.skipUnless(shutil.which('systemd-analyze'), 'systemd is not installed')
class Units(DeployFiles):

    def analyze(self, *words):
        return subprocess.run(['systemd-analyze', *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)

    def test_systemd_has_nothing_to_say_against_the_units_and_rates_them_1_5_or_better(self):
        folder = self.folder()
        for unit in ('outboxd.service', 'outboxd.socket'):
            text = (DEPLOY / 'systemd' / unit).read_text().replace('/usr/sbin/outboxd', harness.program('outboxd'))
            (folder / unit).write_text(text)
        verified = self.analyze('verify', '--man=no', *(str(path) for path in sorted(folder.iterdir())))
        self.assertEqual((verified.returncode, verified.stdout + verified.stderr), (0, ''))
        rated = self.analyze('security', '--offline=true', '--threshold=15', '--no-pager', str(DEPLOY / 'systemd/outboxd.service'))
        self.assertEqual(rated.returncode, 0, rated.stdout + rated.stderr)

    def test_the_service_has_the_time_that_a_drain_takes(self):
        timeout = re.search(r'^TimeoutStopSec=(\d+)min$', (DEPLOY / 'systemd/outboxd.service').read_text(), re.M)
        delivery = re.search(r'"delivery_timeout", *DURATION, *"(\d+)m"', (harness.ROOT / 'common/base/settings.def').read_text())
        self.assertGreaterEqual(int(timeout[1]) * 60, int(delivery[1]) * 60 + 30 + 30, 'drain_timeout, and the store after it')


class InFront(DeployFiles):
    """Through the proxy: a message, a stream of events, readiness; metrics are not for everybody."""

    def behind(self, source, replacements, command, wrap=''):
        daemon = self.daemon(self.target())
        folder, port = self.folder(), free_port()
        text = (DEPLOY / 'examples' / source).read_text()
        for old, new in replacements.items():
            self.assertIn(old, text)
            text = text.replace(old, new.format(port=port))
        text = text.replace('127.0.0.1:7780', f'127.0.0.1:{daemon.port}')
        (folder / source).write_text(text)
        config = folder / 'config'
        config.write_text(wrap.format(folder=folder, source=folder / source))
        check, run = [[word.format(config=config, folder=folder) for word in words] for words in command]
        checked = subprocess.run(check, capture_output=True, text=True, cwd=folder)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        process = self.started(*run, cwd=folder)
        self.wait_listening(port, process, folder)
        return daemon, port

    def works(self, daemon, port):
        client = Client(port)
        self.addCleanup(client.close)
        wait_until(lambda: client.call('GET', '/readyz').status == 200, 10, 'ready through the proxy')
        stream = Stream(port, '/v1/workspaces/w/events')
        body = {'clientMessageID': 'm1', 'kind': 'note', 'payload': {'text': 'x' * 20000}}
        first = client.call('POST', '/v1/workspaces/w/sessions/s/entries', body)
        self.assertEqual(first.status, 202, first)
        self.assertEqual(client.call('POST', '/v1/workspaces/w/sessions/s/entries', body).json()['id'], first.json()['id'])
        wait_until(lambda: [e for e in stream.events if e.data.get('type') == 'sent'], 10, 'the event, as it comes')
        self.assertEqual(client.call('GET', '/metrics').status, 200)

    def survives_a_restart_of_the_api(self, daemon, port):
        """What is on its way when the API dies is sent again by the proxy, or refused: never accepted twice."""
        daemon.kill('api')
        client = Client(port)
        self.addCleanup(client.close)

        def accepted():
            answer = client.call('POST', '/v1/workspaces/w/sessions/s/entries', {'clientMessageID': 'm2', 'kind': 'note', 'payload': {}})
            self.assertIn(answer.status, (200, 202, 502, 503, 504), answer)
            return answer.status in (200, 202)
        wait_until(accepted, 20, 'to be accepted after the restart', every=0.1)

    @unittest.skipUnless(shutil.which('nginx', path='/usr/sbin:/usr/bin'), 'nginx is not installed')
    def test_nginx(self):
        nginx = ['/usr/sbin/nginx', '-p', '{folder}/', '-c', '{config}', '-e', 'stderr']
        daemon, port = self.behind(
            'nginx.conf', {'listen 80;': 'listen 127.0.0.1:{port};'}, ([*nginx, '-t', '-q'], nginx),
            'daemon off; pid {folder}/pid; error_log stderr; events {{}}\n'
            'http {{ access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f;\n'
            'uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s; include {source}; }}\n')
        self.works(daemon, port)
        self.survives_a_restart_of_the_api(daemon, port)

    @unittest.skipUnless(shutil.which('haproxy', path='/usr/sbin:/usr/bin'), 'haproxy is not installed')
    def test_haproxy(self):
        daemon, port = self.behind('haproxy.cfg', {'bind :8080': 'bind 127.0.0.1:{port}', 'maxconn 8000': 'maxconn 100'},
                                   (['/usr/sbin/haproxy', '-c', '-q', '-f', '{folder}/haproxy.cfg'],
                                    ['/usr/sbin/haproxy', '-db', '-f', '{folder}/haproxy.cfg']))
        self.works(daemon, port)
        self.survives_a_restart_of_the_api(daemon, port)


if __name__ == '__main__':
    harness.main()
