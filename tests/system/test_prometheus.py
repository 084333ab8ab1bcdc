"""Prometheus as it will look at outboxd: the real promtool and prometheus of Debian, the rules and the dashboard of deploy/.
One outboxd and one Prometheus serve all tests that need them; their order does not matter."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest
import urllib.parse
import urllib.request

import harness
from harness import ROOT, SystemTest, wait_until

RULES = [ROOT / 'deploy' / 'prometheus' / name for name in ('outboxd.recording.yml', 'outboxd.alerts.yml')]
RULE_TESTS = [ROOT / 'tests' / 'prometheus' / name for name in ('rules_test.yml', 'rules_days_test.yml')]
DASHBOARD = json.loads((ROOT / 'deploy' / 'grafana' / 'outboxd.json').read_text())
HISTOGRAM_SUFFIX = re.compile(r'_(bucket|sum|count)$')


def promtool(*arguments, **options):
    return subprocess.run(['promtool', *map(str, arguments)], capture_output=True, text=True, timeout=60 * harness.SLOW, **options)


class Prometheus:
    """A server with a configuration, a port and a folder of its own."""

    def __init__(self, target_port):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='obm-'))
        self.url = f'http://127.0.0.1:{harness.free_port()}'
        config = self.folder / 'prometheus.yml'
        config.write_text(json.dumps({
            'global': {'scrape_interval': '500ms', 'scrape_timeout': '500ms', 'evaluation_interval': '1s'},
            'rule_files': [str(path) for path in RULES],
            'scrape_configs': [{'job_name': 'outboxd', 'static_configs': [{'targets': [f'127.0.0.1:{target_port}']}]}]}))
        with open(self.folder / 'log', 'wb') as log:
            self.process = subprocess.Popen(
                ['prometheus', f'--config.file={config}', f'--storage.tsdb.path={self.folder}/data', '--log.level=warn',
                 f'--web.listen-address={self.url.removeprefix("http://")}'],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, start_new_session=True)

    def ask(self, path, **parameters):
        with urllib.request.urlopen(f'{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}',
                                    timeout=20 * harness.SLOW) as answer:
            return json.load(answer)['data']

    def query(self, expression):
        """[(labels, value)…]"""
        return [(sample['metric'], float(sample['value'][1])) for sample in self.ask('query', query=expression)['result']]

    def value(self, expression):
        """Of the only sample; None if there is none."""
        samples = self.query(expression)
        if len(samples) > 1:
            raise AssertionError(f'{len(samples)} samples of {expression}')
        return samples[0][1] if samples else None

    def wait_value(self, expression, expected):
        def is_there():
            with contextlib.suppress(OSError):
                return self.value(expression) == expected
        wait_until(is_there, 20, lambda: f'{expression} to be {expected}, it is {self.query(expression)}; '
                   + (self.folder / 'log').read_text()[-2000:], every=0.1)

    def rules(self):
        return [rule for group in self.ask('rules')['groups'] for rule in group['rules']]

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Rules(unittest.TestCase):
    def test_promtool_finds_nothing_wrong_with_them(self):
        ran = promtool('check', 'rules', '--lint=all', '--lint-fatal', *RULES)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        with tempfile.TemporaryDirectory(prefix='obm-') as folder:
            sample = pathlib.Path(folder) / 'prometheus.yml'
            shutil.copy(ROOT / 'deploy' / 'prometheus' / 'prometheus.yml.sample', sample)
            for path in RULES:
                shutil.copy(path, folder)
            ran = promtool('check', 'config', sample)
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
            self.assertEqual(ran.stdout.count('rules found'), len(RULES), 'the sample names all rule files')

    def test_each_alert_fires_when_it_should_and_only_then(self):
        ran = promtool('test', 'rules', *RULE_TESTS)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        expected = ''.join(path.read_text() for path in RULE_TESTS)
        for alert in re.findall(r'- alert: (\w+)', ''.join(path.read_text() for path in RULES)):
            self.assertIn(f'alertname="{alert}"', expected, f'no test expects {alert} to fire')


class Names:
    """What a running outboxd exposes: labels of every metric and the values that they have."""

    def __init__(self, exposition):
        self.types = dict(re.findall(r'^# TYPE (\S+) (\S+)$', exposition, re.M))
        self.values = {name: {} for name in self.types}
        for name, labels in re.findall(r'^(\w+)(?:\{(.*)\})? \S+$', exposition, re.M):
            for key, value in re.findall(r'(\w+)="([^"]*)"', labels):
                self.values[self.family(name)].setdefault(key, set()).add(value)

    def family(self, name):
        return name if name in self.types else HISTOGRAM_SUFFIX.sub('', name)

    def mistakes(self, expression):
        """Metrics, labels and label values of a query that outboxd has not."""
        known = {'job', 'instance', 'le'}
        for name, matchers in re.findall(r'\b(outbox_\w+)(?:\{([^}]*)\})?', re.sub(r'\w+:outbox_[\w:]+', '', expression)):
            family = self.family(name)
            if family not in self.types:
                yield f'no metric {name}'
                continue
            if (family != name) != (self.types[family] == 'histogram'):
                yield f'{name} is no way to ask for a {self.types[family]}'
            known |= set(self.values[family])
            for key, operator, value in re.findall(r'(\w+)(=~|!~|!=|=)"([^"]*)"', matchers or ''):
                if key in ('job', 'instance'):
                    continue
                for one in value.split('|') if '~' in operator else [value]:
                    if one not in self.values[family].get(key, ()):
                        yield f'no {name}{{{key}="{one}"}}'
        for labels in re.findall(r'\b(?:by|without|ignoring|on) ?\(([^)]*)\)', expression):
            yield from (f'no label {label}' for label in re.findall(r'\w+', labels) if label not in known)


class Scraped(SystemTest):
    limit = 120

    @classmethod
    def setUpClass(cls):
        cls.target_there = harness.Target().start()
        cls.addClassCleanup(cls.target_there.stop)
        settings = {'kinds': harness.KINDS, 'target': {'url': cls.target_there.url}, **harness.FAST, 'parked_sweep_interval': '1s'}
        cls.outboxd = harness.Daemon(settings)
        cls.addClassCleanup(cls.outboxd.close)
        cls.outboxd.start()
        cls.outboxd.segments()
        cls.prometheus = Prometheus(cls.outboxd.port)
        cls.addClassCleanup(cls.prometheus.close)
        cls.accepted = 0

    def tearDown(self):
        self._kept_logs.append(('outboxd', self.outboxd.log()[-12000:]))  # shown where the test failed
        self.assertIsNone(harness.SANITIZER.search(self.outboxd.log()), self.outboxd.log()[-4000:])

    def send(self, count):
        first, type(self).accepted = self.accepted, self.accepted + count
        self.assertDelivered(self.target_there,
                             [self.outboxd.accept_patiently(session=f's{n}', kind='note', payload={}, clientMessageID=f'm{n}')
                              for n in range(first, self.accepted)])

    def test_promtool_finds_nothing_wrong_with_the_metrics(self):
        self.send(3)
        ran = promtool('check', 'metrics', input=self.outboxd.get('/metrics').body.decode())
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, '', ''))

    def test_its_numbers_are_those_of_what_happened_also_when_processes_are_killed(self):
        confirmed = 'sum(outbox_deliveries_total{kind="note",outcome="confirmed"})'
        accepted = 'sum(outbox_accepts_total{result="accepted"})'
        self.send(20)
        with self.subTest('as many as were sent'):
            self.prometheus.wait_value(accepted, self.accepted)
            self.prometheus.wait_value(confirmed, self.accepted)
            self.prometheus.wait_value('outbox_delivery_duration_seconds_count{kind="note"}', self.accepted)
            self.prometheus.wait_value('outbox_dispatch_latency_seconds_count', self.accepted)
            self.prometheus.wait_value('sum(outbox_http_requests_total{route="accept",status="202"})', self.accepted)
            self.prometheus.wait_value('sum(outbox_entries)', 0)
            self.prometheus.wait_value('outbox_store_up', 1)
        with self.subTest('processes'):
            for role, count in (('supervisor', 1), ('api', 1), ('worker', 2)):
                self.prometheus.wait_value(f'sum(outbox_process_up{{role="{role}"}})', count)
            self.prometheus.wait_value('sum(outbox_process_crash_looping)', 0)
        with self.subTest('a worker is killed: one restart, and nothing is counted anew'):
            os.kill(self.outboxd.pids('worker')[0], signal.SIGKILL)
            self.send(20)
            self.prometheus.wait_value('outbox_process_restarts_total{role="worker",reason="signal"}', 1)
            self.prometheus.wait_value(accepted, self.accepted)
            wait_until(lambda: self.prometheus.value(confirmed) >= self.accepted, 10, 'deliveries to be counted')
            self.prometheus.wait_value('sum(outbox_process_up{role="worker"})', 2)
        with self.subTest('the API is killed'):
            self.outboxd.kill('api')
            self.outboxd.wait_ready()
            self.send(5)
            self.prometheus.wait_value('outbox_process_restarts_total{role="api",reason="signal"}', 1)
            # What was accepted, also before the one that tells it now was started.
            self.prometheus.wait_value(accepted, self.accepted)
        with self.subTest('a reload replaces every child: that is no restart, and the ones that ended are not missed'):
            reloaded = 'outbox_config_last_reload_success_timestamp_seconds'
            before = self.prometheus.value(reloaded)
            self.outboxd.process.send_signal(signal.SIGHUP)
            wait_until(lambda: self.prometheus.value(reloaded) > before, 20, 'the reload to be told', every=0.1)
            self.prometheus.wait_value('count(outbox_process_up{role="worker"} == 1)', 2)
            self.send(5)
            self.prometheus.wait_value(accepted, self.accepted)
            self.prometheus.wait_value('sum(outbox_process_restarts_total{role!="store"})', 2)
            self.prometheus.wait_value('sum(outbox_process_up == bool 0)', 0)
            self.prometheus.wait_value('sum(outbox_process_crash_looping)', 0)
        with self.subTest('no counter of any name ever went backwards'):
            names = [name for name in self.prometheus.ask('label/__name__/values')
                     if re.match(r'outbox_.*_(total|bucket|sum|count)$', name)]
            self.assertGreater(len(names), 15)
            for name in names:
                self.assertEqual(self.prometheus.query(f'resets({name}[10m]) > 0'), [], name)

    def test_rules_are_evaluated_and_nothing_fires_while_all_is_well(self):
        self.send(3)
        wait_until(lambda: all(rule['health'] != 'unknown' for rule in self.prometheus.rules()) and self.prometheus.rules(), 20,
                   'every rule to be evaluated', every=0.2)
        for rule in self.prometheus.rules():
            self.assertEqual(rule['health'], 'ok', rule)
            if rule['type'] != 'alerting':
                continue
            with self.subTest(alert=rule['name']):
                self.assertIn(rule['labels']['severity'], ('critical', 'warning', 'info'))
                self.assertEqual(set(rule['annotations']), {'summary', 'description'})
                self.assertGreater(len(rule['annotations']['description']), 100, 'it says what to do')
                self.assertNotEqual(rule['state'], 'firing', rule['alerts'])

    def queries_of_the_dashboard(self):
        asked = [(panel['title'], target['expr']) for panel in DASHBOARD['panels'] for target in panel.get('targets', ())]
        asked += [(annotation['name'], annotation['expr']) for annotation in DASHBOARD['annotations']['list']]
        for title, expression in asked:
            expression = expression.replace('$__rate_interval', '1m').replace('$job', '.*').replace('$instance', '.*')
            self.assertNotIn('$', expression)
            yield title, expression

    def test_the_dashboard_and_the_rules_name_what_there_is(self):
        self.send(3)
        wait_until(lambda: self.outboxd.metric('outbox_loop_last_run_timestamp_seconds', loop='sweep') > 0, 20, 'a sweep')
        names = Names(self.outboxd.get('/metrics').body.decode())
        self.assertEqual(list(names.mistakes('sum by (colour) (rate(outbox_accepts_total{result="eaten"}[5m])) + outbox_nothing')),
                         ['no outbox_accepts_total{result="eaten"}', 'no metric outbox_nothing', 'no label colour'])
        wait_until(lambda: len(self.prometheus.rules()) > 30, 20, 'the rules')
        for what, expression in [*self.queries_of_the_dashboard(), *((r['name'], r['query']) for r in self.prometheus.rules())]:
            with self.subTest(what):
                self.assertEqual(list(names.mistakes(expression)), [], expression)

    def test_the_reference_page_tells_of_each_metric(self):
        told = dict(re.findall(r'^\| `(\w+)` \| (\w+) \|', (harness.build_folder() / 'common' / 'shm' / 'metrics.md').read_text(),
                               re.M))
        wait_until(lambda: self.outboxd.metric('outbox_store_up') == 1, 10, 'the store')
        self.assertEqual(told, Names(self.outboxd.get('/metrics').body.decode()).types)

    def test_every_panel_of_the_dashboard_has_something_to_show(self):
        self.send(3)
        self.prometheus.wait_value('sum(outbox_accepts_total{result="accepted"})', self.accepted)
        self.send(3)  # twice seen: a rate
        for title, expression in self.queries_of_the_dashboard():
            with self.subTest(title):
                if ' > 0' in expression:
                    self.prometheus.query(expression)  # may be empty, must be right
                else:
                    wait_until(lambda expression=expression: self.prometheus.query(expression), 10, expression, every=0.2)

    def test_the_dashboard_is_laid_out_without_overlaps(self):
        taken = set()
        for panel in DASHBOARD['panels']:
            place = panel['gridPos']
            cells = {(x, y) for x in range(place['x'], place['x'] + place['w']) for y in range(place['y'], place['y'] + place['h'])}
            self.assertFalse(cells & taken, panel['title'])
            self.assertLessEqual(place['x'] + place['w'], 24, panel['title'])
            self.assertTrue(panel['type'] == 'row' or panel['description'], panel['title'])
            taken |= cells
        ids = [panel['id'] for panel in DASHBOARD['panels']]
        self.assertEqual(len(ids), len(set(ids)))


if __name__ == '__main__':
    harness.main()
