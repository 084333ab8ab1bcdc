"""Signed requests, judged by an implementation that is not ours (the npm package standardwebhooks)."""
import base64
import json
import os
import subprocess
import time

import harness
from harness import KINDS, ROOT, SystemTest, wait_until
from test_reload import ReloadTest

SUPPORT = ROOT / 'tests' / 'support' / 'standardwebhooks'
NAMES = ('webhook-id', 'webhook-timestamp', 'webhook-signature')


def secret():
    return 'whsec_' + base64.b64encode(os.urandom(32)).decode()


class Judge:
    """The package, in a process of its own: verdicts on requests that a target got."""

    def __init__(self):
        folder = subprocess.run([SUPPORT.parent / 'npm_install.sh', 'standardwebhooks'], check=True, capture_output=True, text=True).stdout.strip()
        self.node = subprocess.Popen(['node', SUPPORT / 'verify.cjs', folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def says(self, request, secret_text, **changes):
        """'ok', or why it refused. `changes`: body, or headers by name with _ for -."""
        body = changes.pop('body', request.body)
        headers = {name: request.headers[name] for name in NAMES if name in request.headers}
        headers.update({name.replace('_', '-'): value for name, value in changes.items()})
        question = {'secret': secret_text, 'headers': headers, 'body': base64.b64encode(body).decode()}
        self.node.stdin.write(json.dumps(question) + '\n')
        self.node.stdin.flush()
        return self.node.stdout.readline().strip()

    def close(self):
        self.node.stdin.close()
        self.node.stdout.close()
        self.node.wait(10)


class Webhooks(ReloadTest):
    @classmethod
    def setUpClass(cls):
        cls.judge = Judge()
        cls.addClassCleanup(cls.judge.close)

    def assertSigned(self, request, *secrets):
        for text in secrets:
            self.assertEqual(self.judge.says(request, text), 'ok')
        self.assertEqual(len(request.headers['webhook-signature'].split(' ')), len(secrets))

    def assertRefused(self, request, secret_text, **changes):
        self.assertIn('No matching signature', self.judge.says(request, secret_text, **changes))

    def delivered(self, daemon, target, **members):
        entry = daemon.accept_ok(**members)
        self.assertDelivered(target, [entry])
        return target.posts(key=entry)[-1]

    def with_secrets_file(self, target, *secrets, **settings):
        daemon = self.daemon(target, start=False, **settings)
        path = daemon.folder / 'secrets'
        path.write_text('# newest first\n' + '\n'.join(secrets) + '\n')
        daemon.settings['target'] = {'url': target.url, 'secrets_file': str(path)}
        return daemon.start(), path

    def test_the_configured_targets_requests_are_signed_by_each_of_its_secrets(self):
        target = self.target()
        new, old = secret(), secret()
        daemon, _ = self.with_secrets_file(target, new, old)
        body = '{ "text" : "grüße \\u00fc\\n", "n":1.0}'
        request = self.delivered(daemon, target, body='{"kind":"note","payload":' + body + '}')
        self.assertEqual(request.body, body.encode())
        self.assertSigned(request, new, old)
        self.assertEqual(request.headers['webhook-id'], request.key)
        self.assertLess(abs(time.time() - int(request.headers['webhook-timestamp'])), 60)
        self.assertRefused(request, secret())
        self.assertRefused(request, new, body=request.body.replace(b'1.0', b'1.1'))
        self.assertRefused(request, new, webhook_id='ob_other')
        self.assertRefused(request, new, webhook_timestamp=str(int(request.headers['webhook-timestamp']) + 1))
        for text in (new, old):
            self.assertNotIn(text, daemon.log())
            self.assertNotIn(text, subprocess.run([harness.program('outboxd'), '--config', str(daemon.config), '--print-config'],
                                                  capture_output=True, text=True, check=True).stdout)

    def test_every_attempt_of_an_entry_has_its_id_and_a_time_of_its_own(self):
        target = self.target()
        target.script(path='/notes', status=503, headers={'Retry-After': '1'}, times=1)
        text = secret()
        daemon, _ = self.with_secrets_file(target, text)
        last = self.delivered(daemon, target, kind='note', payload={})
        first = target.posts()[0]
        self.assertEqual(first.headers['webhook-id'], last.headers['webhook-id'])
        self.assertNotEqual(first.headers['webhook-timestamp'], last.headers['webhook-timestamp'])
        self.assertSigned(first, text)
        self.assertSigned(last, text)

    def test_a_workspaces_own_target_has_its_own_secrets_and_they_rotate(self):
        target, own = self.target(), self.target()
        configured, old, new = secret(), secret(), secret()
        daemon, _ = self.with_secrets_file(target, configured)
        daemon.call('PUT', '/v1/workspaces/w/target', {'url': own.url, 'secrets': [old]})
        self.assertSigned(self.delivered(daemon, own, kind='note', payload={}), old)
        daemon.call('PUT', '/v1/workspaces/w/target', {'url': own.url, 'secrets': [new, old]})
        rotating = self.delivered(daemon, own, kind='note', payload={})
        self.assertSigned(rotating, new, old)
        self.assertRefused(rotating, configured)
        daemon.call('PUT', '/v1/workspaces/w/target', {'url': own.url, 'secrets': [new]})
        rotated = self.delivered(daemon, own, kind='note', payload={})
        self.assertSigned(rotated, new)
        self.assertRefused(rotated, old)
        daemon.call('PUT', '/v1/workspaces/w/target', {'url': own.url})
        bare = self.delivered(daemon, own, kind='note', payload={})
        self.assertFalse(set(NAMES) & set(bare.headers))
        self.assertSigned(self.delivered(daemon, target, workspace='other', kind='note', payload={}), configured)

    def test_a_reload_takes_over_a_rotated_file(self):
        target = self.target()
        old, new = secret(), secret()
        daemon, path = self.with_secrets_file(target, old)
        self.assertSigned(self.delivered(daemon, target, kind='note', payload={}), old)
        path.write_text(f'{new}\n{old}\n')
        self.reload(daemon)
        self.assertSigned(self.delivered(daemon, target, kind='note', payload={}), new, old)
        path.write_text('whsec_tooshort\n')
        self.reload(daemon, says='nothing was changed')
        self.assertIn('target.secrets_file: its line 1 is no secret', daemon.log())
        self.assertSigned(self.delivered(daemon, target, kind='note', payload={}), new, old)

    def test_whatever_a_target_speaks_attempts_are_signed_and_nothing_else_is(self):
        target, elsewhere = self.target(), self.target()
        text = secret()
        kinds = KINDS + [{'name': 'ledger', 'executor': 'ledger'}, {'name': 'away', 'url': elsewhere.url + '/x', 'idempotent': True},
                         {'name': 'gone', 'url': '/gone', 'method': 'DELETE', 'idempotent': True}]
        daemon, _ = self.with_secrets_file(target, text, kinds=kinds, ledger={'path': '/ledger'})
        target.script({'path': '/ledger/Deliver', 'answer': {'state': 'LEDGER_STATE_LEDGERED'}},
                      {'path': '/ledger/GetDeliveryStatus', 'answer': {'state': 'LEDGER_STATE_ADMITTED'}},
                      {'path': '/global/health', 'answer': {'healthy': True, 'version': '1.18.33'}},
                      {'path': '/session/*', 'answer': {'info': {'role': 'assistant'}}})
        for n, members in enumerate([{'kind': 'ledger', 'payload': {'text': 'hello'}}, {'text': 'a prompt'}, {'kind': 'gone', 'payload': {}},
                                     {'kind': 'away', 'payload': {}}]):
            daemon.wait_status(daemon.accept_ok(f's{n}', **members), 'sent')
        for path in ('/ledger/Deliver', '/session/*', '/gone'):
            for request in target.requests(path):
                self.assertSigned(request, text)
        for request in target.requests('/ledger/GetDeliveryStatus') + target.requests('/global/*') + elsewhere.requests():
            self.assertFalse(set(NAMES) & set(request.headers), request)
        self.assertEqual([len(target.requests(path)) for path in ('/ledger/Deliver', '/session/*', '/gone', '/global/*')], [1, 1, 1, 1])
        self.assertEqual(len(elsewhere.requests()), 1)


if __name__ == '__main__':
    harness.main()
