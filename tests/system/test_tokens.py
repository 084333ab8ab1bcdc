"""Tokens: who may call, who may do what, in which workspaces; the token file and its reload; pages of other sites."""
import contextlib
import hashlib
import http.client
import json
import os
import secrets
import signal
import socket
import subprocess

import harness
from harness import SystemTest, raw_request, read_answer, wait_until
from support_events import Stream

ENTRY = {'clientMessageID': 'm', 'kind': 'note', 'payload': {'a': 1}}
CHALLENGE = 'Bearer realm="outboxd"'


class TokenTest(SystemTest):
    def token(self, daemon, role, workspaces, name='test'):
        """Adds a token to the daemon's file; the token."""
        token = 'obx_' + secrets.token_urlsafe(32)
        with open(daemon.folder / 'tokens', 'a', encoding='utf-8') as file:
            file.write(f'sha256:{hashlib.sha256(token.encode()).hexdigest()} {role} {workspaces} {name}\n')
        return token

    def guarded(self, *arguments, start=True, **settings):
        """A daemon that asks for tokens; .tokens holds an admin's, whom the harness's own calls are."""
        daemon = self.daemon(*arguments, start=False, token_file='./tokens', **settings)
        (daemon.folder / 'tokens').write_text('# who may call\n')
        harness.tokens[daemon.port] = self.token(daemon, 'admin', '*')
        if start:
            daemon.start()
        return daemon

    def ask(self, daemon, token, method, path, body=None, **headers):
        """With this token; '' sends none."""
        client = harness.Client(daemon.port)
        try:
            client.connection.putrequest(method, path)
            if token:
                client.connection.putheader('Authorization', f'Bearer {token}')
            for header, value in headers.items():
                client.connection.putheader(header.replace('_', '-'), value)
            data = json.dumps(body).encode() if body is not None else b''
            if body is not None:
                client.connection.putheader('Content-Type', 'application/json')
            client.connection.putheader('Content-Length', str(len(data)))
            client.connection.endheaders(data)
            answer = client.connection.getresponse()
            return harness.Answer(answer.status, answer.getheaders(), answer.read())
        finally:
            client.close()

    def reload(self, daemon, says='new configuration in force'):
        count = daemon.log().count(says)
        daemon.process.send_signal(signal.SIGHUP)
        wait_until(lambda: daemon.log().count(says) > count, 30, lambda: f'{says!r}: {daemon.log()[-2000:]}')


class Access(TokenTest):
    limit = 120

    @classmethod
    def setUpClass(cls):
        cls.the_target, cls.the_daemon = harness.Target().start(), None

    def setUp(self):
        """One daemon for all of these tests."""
        if not self.the_daemon:
            cls = type(self)
            daemon = cls.the_daemon = self.guarded(self.the_target, start=False)
            cls.tokens = {role: self.token(daemon, role, 'a,team-*', f'{role} of teams') for role in ('client', 'operator', 'admin')}
            cls.nothing = self.token(daemon, 'client', '@none')
            daemon.start()

    def end(self, daemon):
        pass  # with the class

    @classmethod
    def tearDownClass(cls):
        cls.the_target.stop()
        if cls.the_daemon:
            cls.the_daemon.segments()
            cls.the_daemon.close()

    def test_1_without_a_token_nothing_but_health_answers(self):
        daemon = self.the_daemon
        for method, path in (('POST', '/v1/workspaces/a/sessions/s/entries'), ('GET', '/v1/workspaces'), ('GET', '/v1/events'),
                             ('GET', '/metrics'), ('DELETE', '/v1/workspaces/a'), ('GET', '/nothing'), ('OPTIONS', '/v1/workspaces'),
                             ('HEAD', '/v1/workspaces'), ('GET', '/v1/workspaces/a/entries/x?access_token=' + self.tokens['admin'])):
            with self.subTest(method=method, path=path):
                answer = self.ask(daemon, '', method, path, ENTRY if method == 'POST' else None)
                self.assertEqual(answer.status, 401, answer)
                self.assertEqual(answer.headers['www-authenticate'], CHALLENGE)
                if method != 'HEAD':
                    self.assertProblem(answer, 401, 'token_missing')
        self.assertEqual(self.ask(daemon, '', 'GET', '/healthz').status, 200)
        answer = self.ask(daemon, '', 'GET', '/readyz')
        self.assertEqual(answer.status, 200)
        self.assertNotIn('processes', answer.json(), 'what runs is nobody\'s business without a token')
        self.assertIn('processes', self.ask(daemon, self.tokens['client'], 'GET', '/readyz').json())

    def test_2_a_token_that_is_not_known_is_told_so(self):
        good = self.tokens['admin']
        for token in ('x', good[:-1], good + 'x', good.upper(), good.encode().hex(), '%6f' + good[1:], 'obx_' + 'x' * 43, 'y' * 10000):
            with self.subTest(token=token[:20]):
                answer = self.ask(self.the_daemon, token, 'GET', '/v1/workspaces')
                self.assertProblem(answer, 401, 'token_invalid')
                self.assertIn('error="invalid_token"', answer.headers['www-authenticate'])
        for header in ('Bearer', 'Bearer  '):
            answer = self.ask(self.the_daemon, '', 'GET', '/v1/workspaces', Authorization=header)
            self.assertProblem(answer, 400, 'invalid_authorization')
        for header in ('Basic ' + good, good, 'Token ' + good):
            answer = self.ask(self.the_daemon, '', 'GET', '/v1/workspaces', Authorization=header)
            self.assertProblem(answer, 401, 'token_missing')

    def test_3_roles_reach_as_far_as_they_should(self):
        asked = (('client', 'POST', '/v1/workspaces/a/sessions/s/entries', ENTRY), ('client', 'GET', '/v1/workspaces/a/sessions/s/entries', None),
                 ('client', 'GET', '/v1/workspaces/a/entries/ob_x', None), ('client', 'GET', '/v1/workspaces/a', None),
                 ('client', 'GET', '/v1/workspaces', None), ('client', 'GET', '/metrics', None),
                 ('operator', 'POST', '/v1/workspaces/a/entries/ob_x/retry', None), ('operator', 'DELETE', '/v1/workspaces/a/entries/ob_x', None),
                 ('operator', 'PATCH', '/v1/workspaces/a/entries/ob_x', {'payload': {}}), ('operator', 'POST', '/v1/workspaces/a/pause', None),
                 ('operator', 'POST', '/v1/workspaces/a/resume', None), ('operator', 'POST', '/v1/workspaces/a/park', {'reason': 'x'}),
                 ('operator', 'POST', '/v1/workspaces/a/unpark', None), ('operator', 'POST', '/v1/workspaces/a/sweep', {'what': 'unverifiable'}),
                 ('operator', 'POST', '/v1/workspaces/a/confirm', {'entryID': 'ob_x'}), ('operator', 'GET', '/v1/workspaces/a/target', None),
                 ('admin', 'PUT', '/v1/workspaces/a/target', {'url': 'http://127.0.0.1:1'}), ('admin', 'DELETE', '/v1/workspaces/a/target', None),
                 ('admin', 'DELETE', '/v1/workspaces/a', None))
        roles = ('client', 'operator', 'admin')
        for least, method, path, body in asked:
            for role in roles:
                with self.subTest(role=role, method=method, path=path):
                    answer = self.ask(self.the_daemon, self.tokens[role], method, path, body)
                    if roles.index(role) < roles.index(least):
                        self.assertProblem(answer, 403, 'forbidden')
                        self.assertIn('error="insufficient_scope"', answer.headers['www-authenticate'])
                    else:
                        self.assertIn(answer.status, (200, 202, 404), answer)

    def test_4_other_workspaces_are_forbidden_whether_they_exist_or_not(self):
        daemon = self.the_daemon
        hidden = daemon.accept('s', ENTRY, workspace='other').json()['id']
        texts = set()
        for workspace in ('other', 'nowhere', 'team', 'A', 'a%20', '%61', 'team%2Dx', '*', 'te..', '%2e%2e', 'a;b', 'x' * 100):
            for method, path in (('GET', f'/entries/{hidden}'), ('GET', '/sessions/s/entries'), ('GET', ''), ('GET', '/events'),
                                 ('DELETE', ''), ('PUT', '/target'), ('POST', '/pause')):
                answer = self.ask(daemon, self.tokens['admin'], method, f'/v1/workspaces/{workspace}{path}')
                with self.subTest(workspace=workspace, method=method, path=path):
                    self.assertProblem(answer, 403, 'forbidden')
                    texts.add(answer.body)
        self.assertEqual(len(texts), 1, 'all refusals read the same')
        for token in self.tokens.values():
            self.assertProblem(self.ask(daemon, token, 'GET', f'/v1/workspaces/a/entries/{hidden}'), 404, 'entry_not_found')

    def test_5_lists_show_what_the_token_may_see_page_by_page(self):
        daemon = self.the_daemon
        visible = {'a', 'team-'} | {f'team-{n}' for n in range(12)}
        names = visible | {f'other{n}' for n in range(12)} | {'team', 'teams', 'tean'}
        for workspace in names:  # a paused one keeps its entry, and so its place in the list
            daemon.call('POST', f'/v1/workspaces/{workspace}/pause')
            self.assertEqual(daemon.accept('s', ENTRY, workspace=workspace).status, 202)
        for limit in (1, 5, 500):
            found, path, pages = [], f'/v1/workspaces?limit={limit}', 0
            while path:
                answer = self.ask(daemon, self.tokens['client'], 'GET', path).json()
                self.assertLessEqual(len(answer['workspaces']), limit)
                found += [row['workspaceID'] for row in answer['workspaces']]
                if 'next' in answer:
                    self.assertIn(answer['next'], visible, 'the place to go on from is no secret name')
                path = f'/v1/workspaces?limit={limit}&after={answer["next"]}' if 'next' in answer else None
                pages += 1
            self.assertEqual(sorted(found), sorted(visible), limit)
        self.assertEqual(self.ask(daemon, self.nothing, 'GET', '/v1/workspaces').json(), {'workspaces': []})
        self.assertEqual(self.ask(daemon, self.nothing, 'GET', '/metrics').status, 200)
        for workspace in names:
            daemon.call('POST', f'/v1/workspaces/{workspace}/resume')
        wait_until(lambda: not any(sum(w['entries'].values()) for w in daemon.call('GET', '/v1/workspaces?limit=500').json()['workspaces']), 30,
                   'what waited to be delivered: the next test looks at all events')

    def test_6_the_global_stream_tells_what_the_token_may_see_live_and_resumed(self):
        daemon = self.the_daemon

        def stream(token, last=None):
            harness_token, harness.tokens[daemon.port] = harness.tokens[daemon.port], token
            try:
                opened = Stream(daemon.port, '/v1/events', last)
            finally:
                harness.tokens[daemon.port] = harness_token
            self.addCleanup(opened.close)
            return opened

        def workspaces(opened):
            return {event.data['workspaceID'] for event in opened.events if event.name == 'queue.update'}
        seeing, all_of_them, blind = stream(self.tokens['client']), stream(harness.tokens[daemon.port]), stream(self.nothing)
        for opened in (seeing, all_of_them, blind):
            opened.wait(lambda events: events)
        start = seeing.events[0].own_id
        for n in range(10):
            for workspace in ('other', 'team-1', 'a'):
                daemon.accept(f'e{n}', dict(ENTRY, clientMessageID=f'e{n}'), workspace=workspace)
        for opened in (seeing, all_of_them):
            opened.wait(lambda events: sum(event.data.get('type') == 'sent' and event.data['workspaceID'] == 'team-1' for event in events) == 10)
        self.assertEqual(workspaces(seeing), {'a', 'team-1'})
        self.assertLessEqual({'other', 'a', 'team-1'}, workspaces(all_of_them))
        again = stream(self.tokens['client'], start)
        again.wait(lambda events: sum(event.data.get('type') == 'sent' and event.data['workspaceID'] == 'team-1' for event in events) == 10)
        self.assertEqual(workspaces(again), {'a', 'team-1'})
        self.assertEqual(workspaces(blind), set())

    def test_7_headers_that_two_readers_may_read_differently_are_refused(self):
        daemon, good = self.the_daemon, self.tokens['client']
        bad = 'obx_' + 'x' * 43

        def send(*headers, path='/v1/workspaces'):
            with daemon.socket() as sock:
                sock.sendall(raw_request('GET', path, headers=headers))
                return read_answer(sock)
        for first, second in ((good, bad), (bad, good), (good, good)):
            self.assertProblem(send(('Authorization', f'Bearer {first}'), ('authorization', f'Bearer {second}')), 400, 'invalid_authorization')
        self.assertEqual(send(('aUTHORIZATION', f'bEARER {good}')).status, 200)
        for header in (f'Bearer {good}, Bearer {bad}', f'Bearer {good} x', f'Bearer "{good}"', f'Bearer {good}\tx'):
            answer = send(('Authorization', header))
            self.assertEqual(answer.status, 401, answer)
        body = json.dumps(ENTRY).encode()
        for headers in ([('Content-Length ', str(len(body)))], [('Transfer-Encoding', 'xchunked')], [('Transfer-Encoding', 'chunked, identity')],
                        [('Content-Length', str(len(body))), ('Content-Length', '0')], [('Content-Length', f'{len(body)}, {len(body)}')],
                        [('Content-Length', str(len(body))), ('Transfer-Encoding', 'chunked')], [('Content\tLength', '5')]):
            with daemon.socket() as sock:
                sock.sendall(raw_request('POST', '/v1/workspaces/a/sessions/s/entries', body,
                                         headers + [('Authorization', f'Bearer {good}'), ('Content-Type', 'application/json')]))
                answer = read_answer(sock)
                self.assertEqual(answer and answer.status, 400, headers)
                with contextlib.suppress(ConnectionError):
                    self.assertEqual(sock.recv(100), b'', 'nothing of it is taken for another request')
        for name in ('Authorization ', 'X-Authorization', 'Proxy-Authorization', 'Authorizatio\u00f1'):
            answer = send((name, f'Bearer {good}'))
            self.assertTrue(answer is None or answer.status in (400, 401), answer)
        with daemon.socket() as sock:  # folded, and a NUL
            sock.sendall(f'GET /v1/workspaces HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer\r\n {good}\0\r\n\r\n'.encode())
            answer = read_answer(sock)
        self.assertTrue(answer is None or answer.status in (400, 401), answer)
        for path in ('/v1/workspaces/a/../other', '/v1/workspaces/a%2F..%2Fother', '//v1/workspaces/other', '/v1/workspaces/other/',
                     '/V1/workspaces/other', 'http://localhost/v1/workspaces/other', '/v1/workspaces/a\\..\\other'):
            answer = send(('Authorization', f'Bearer {good}'), path=path)
            self.assertTrue(answer is None or answer.status in (400, 403, 404), (path, answer))

    def test_8_tokens_stand_in_no_log_and_no_answer(self):
        daemon = self.the_daemon
        answers = [self.ask(daemon, token, 'GET', path).body for token in self.tokens.values()
                   for path in ('/v1/workspaces', '/nothing', '/metrics', '/readyz', '/v1/workspaces/other')]
        self.ask(daemon, 'obx_wrongwrong', 'GET', f'/v1/workspaces?token={self.tokens["admin"]}')
        text = daemon.log() + b''.join(answers).decode()
        for token in [*self.tokens.values(), harness.tokens[daemon.port], 'obx_wrongwrong']:
            self.assertNotIn(token, text)
            self.assertNotIn(hashlib.sha256(token.encode()).hexdigest(), text)
        printed = self.run_outboxd(daemon, '--print-config')
        self.assertNotIn('sha256', printed)
        report = harness.SANITIZER.search(daemon.log())
        self.assertIsNone(report, daemon.log()[report.start() - 200:report.start() + 3000] if report else '')

    def run_outboxd(self, daemon, argument):
        result = subprocess.run([harness.program('outboxd'), '--config', str(daemon.config), argument], capture_output=True, text=True,
                                timeout=20 * harness.SLOW, cwd=daemon.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout


class File(TokenTest):
    limit = 120

    def test_a_reload_lets_new_ones_in_and_revoked_ones_out(self):
        daemon = self.guarded(self.target())
        old = self.token(daemon, 'client', 'w')
        self.assertEqual(self.ask(daemon, old, 'GET', '/v1/workspaces').status, 401, 'not before the reload')
        self.reload(daemon)
        wait_until(lambda: self.ask(daemon, old, 'GET', '/v1/workspaces').status == 200, 10, 'the new token to be known')
        harness.tokens[daemon.port], admin = old, harness.tokens[daemon.port]
        stream = Stream(daemon.port, '/v1/events')
        self.addCleanup(stream.close)
        stream.wait(lambda events: events)
        harness.tokens[daemon.port] = admin
        tokens = daemon.folder / 'tokens'
        tokens.write_text(''.join(line for line in tokens.read_text().splitlines(True)
                                  if hashlib.sha256(old.encode()).hexdigest() not in line))
        self.reload(daemon)
        # For a moment the API before may still take a connection.
        wait_until(lambda: self.ask(daemon, old, 'GET', '/v1/workspaces').status == 401, 10, 'the revoked token to be refused')
        wait_until(lambda: stream.ended, 20, 'the stream of a revoked token to end')
        daemon.kill('api')  # another starts with what was checked, whatever stands in the file by then
        tokens.write_text('rubbish\n')
        wait_until(lambda: self.answers(daemon, admin), 20, 'the API to be there again')
        self.assertEqual(self.ask(daemon, old, 'GET', '/v1/workspaces').status, 401)

    def answers(self, daemon, token):
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.ask(daemon, token, 'GET', '/v1/workspaces').status == 200
        return False

    def outboxctl(self, daemon, *arguments, token_file=None):
        environment = {name: value for name, value in os.environ.items() if not name.startswith('OUTBOXCTL')}
        if token_file:
            environment['OUTBOXCTL_TOKEN_FILE'] = str(token_file)
        return subprocess.run([harness.program('outboxctl'), '--server', f'http://127.0.0.1:{daemon.port}', *arguments], cwd=daemon.folder,
                              capture_output=True, text=True, timeout=30 * harness.SLOW, env=environment, check=False)

    def test_outboxctl_makes_lists_and_revokes_tokens(self):
        daemon = self.guarded(self.target(), start=False)
        file = daemon.folder / 'fresh'
        daemon.settings['token_file'] = './fresh'
        made = {}
        for role in ('client', 'operator'):
            done = self.outboxctl(daemon, 'token', 'create', '--role', role, '--workspace', 'w,team-*', '--name', f'the {role}', '--file', 'fresh')
            self.assertEqual((done.returncode, len(done.stdout.splitlines())), (0, 1), done)
            made[role] = daemon.folder / role
            made[role].touch(mode=0o600)
            made[role].write_text(done.stdout)
            self.assertNotIn(done.stdout.strip(), file.read_text() + done.stderr)
        self.assertEqual(file.stat().st_mode & 0o137, 0, oct(file.stat().st_mode))
        daemon.process = daemon.spawn()

        def ask(role, *arguments):
            return self.outboxctl(daemon, *arguments, token_file=made[role])
        wait_until(lambda: ask('client', 'send', 'w', 's', 'hello', '--timeout', '1s').returncode == 0, 20, lambda: daemon.log()[-2000:])
        self.assertEqual(ask('client', 'send', 'other', 's', 'hello').returncode, 7)
        self.assertEqual(ask('client', 'pause', 'w').returncode, 7)
        self.assertEqual(ask('operator', 'pause', 'w').returncode, 0)
        self.assertEqual(self.outboxctl(daemon, 'list', 'w').returncode, 7, 'without a token')
        self.assertEqual(ask('operator', 'status').returncode, 0)
        listed = json.loads(self.outboxctl(daemon, 'token', 'list', '--file', 'fresh', '--json').stdout)
        self.assertEqual([(row['role'], row['workspaces'], row['name']) for row in listed],
                         [('client', 'w,team-*', 'the client'), ('operator', 'w,team-*', 'the operator')])
        self.assertEqual(self.outboxctl(daemon, 'token', 'revoke', 'the nobody', '--file', 'fresh').returncode, 3)
        self.assertEqual(self.outboxctl(daemon, 'token', 'revoke', 'the client', '--file', 'fresh').returncode, 0)
        self.assertEqual(file.stat().st_mode & 0o137, 0, oct(file.stat().st_mode))
        self.reload(daemon)
        wait_until(lambda: ask('client', 'list', 'w').returncode == 7, 10, 'the revoked token to be refused')
        self.assertEqual(ask('operator', 'list', 'w').returncode, 0)
        done = self.outboxctl(daemon, 'token', 'create', '--role', 'client', '--workspace', 'a', '--workspace', 'b', '--file', 'fresh')
        self.assertEqual(done.returncode, 2, 'the second would silently take the place of the first')

    def test_tokens_made_at_the_same_time_all_stand_in_the_file(self):
        daemon = self.guarded(start=False)
        file = daemon.folder / 'many'
        harness.in_parallel([lambda n=n: self.outboxctl(daemon, 'token', 'create', '--role', 'client', '--workspace', f'w{n}', '--name', f'n{n}',
                                                        '--file', 'many') for n in range(12)], 6)
        harness.in_parallel([lambda n=n: self.outboxctl(daemon, 'token', *(('revoke', f'n{n}') if n % 2 else
                                                                           ('create', '--role', 'admin', '--workspace', '*', '--name', f'm{n}')),
                                                        '--file', 'many') for n in range(12)], 6)
        names = [line.split(' ')[3] for line in file.read_text().splitlines()]
        self.assertEqual(sorted(names), sorted([f'n{n}' for n in range(0, 12, 2)] + [f'm{n}' for n in range(0, 12, 2)]))

    def test_a_bad_file_is_told_with_its_line_and_changes_nothing(self):
        daemon = self.guarded(self.target())
        tokens, good = daemon.folder / 'tokens', (daemon.folder / 'tokens').read_text()
        for text, line in ((good + 'hello\n', 'tokens:3: does not begin with a hash'),
                           (good + good, 'tokens:4: is the token of line 2'), (good + 'obx_secretsecret client a\n', 'tokens:3: holds a token itself')):
            tokens.write_text(text)
            self.reload(daemon, says='nothing was changed')
            self.assertIn(line, daemon.log())
            self.assertNotIn('secretsecret', daemon.log())
        tokens.unlink()
        self.reload(daemon, says='nothing was changed')
        self.assertIn('token_file: cannot read ./tokens', daemon.log())
        tokens.write_text(good)
        tokens.chmod(0o666)
        self.reload(daemon, says='nothing was changed')
        self.assertIn('chmod o-w', daemon.log())
        self.assertEqual(daemon.call('GET', '/v1/workspaces').status, 200)

    def test_with_an_empty_file_nobody_gets_in(self):
        daemon = self.guarded(self.target())
        token = harness.tokens[daemon.port]
        (daemon.folder / 'tokens').write_text('')
        self.reload(daemon)
        self.assertIn('holds no token: nobody may call', daemon.log())
        wait_until(lambda: self.ask(daemon, token, 'GET', '/v1/workspaces').status == 401, 10, 'the token to be refused')
        self.assertProblem(self.ask(daemon, token, 'GET', '/v1/workspaces'), 401, 'token_invalid')
        self.assertEqual(self.ask(daemon, '', 'GET', '/healthz').status, 200)

    def test_a_listener_for_others_never_goes_without_tokens(self):
        daemon = self.guarded(self.target(), start=False)
        daemon.settings['listen'] = f'0.0.0.0:{daemon.port}'
        daemon.start()
        del daemon.settings['token_file']
        daemon.settings['listen'] = f'127.0.0.1:{daemon.port}'  # which would need a restart
        daemon.write_config()
        self.reload(daemon, says='nothing was changed')
        self.assertIn('without token_file other machines could call the API', daemon.log())
        self.assertEqual(self.ask(daemon, '', 'GET', '/v1/workspaces').status, 401)


class Pages(TokenTest):
    """What browsers do from pages of other sites."""
    limit = 120

    def test_without_tokens_other_sites_pages_are_kept_out(self):
        daemon = self.daemon(self.target())

        def ask(host, origin=None, method='POST', path='/v1/workspaces/w/pause'):
            with daemon.socket() as sock:
                headers = [('Host', host)] + ([('Origin', origin)] if origin else []) + [('Content-Length', '0')]
                sock.sendall((f'{method} {path} HTTP/1.1\r\n' + ''.join(f'{n}: {v}\r\n' for n, v in headers) + '\r\n').encode())
                return read_answer(sock)
        here = f'127.0.0.1:{daemon.port}'
        for host in (here, f'localhost:{daemon.port}', 'localhost', f'[::1]:{daemon.port}'):
            self.assertEqual(ask(host).status, 200, host)
            self.assertEqual(ask(host, f'http://{host}').status, 200, host)
        for origin in ('http://evil.example', 'null', f'http://localhost:{daemon.port}', f'http://{here}.evil.example'):
            answer = ask(here, origin)
            self.assertProblem(answer, 403, 'foreign_origin')
            self.assertNotIn('access-control-allow-origin', answer.headers)
        for method, path in (('GET', '/v1/workspaces'), ('POST', '/v1/workspaces/w/pause')):
            self.assertProblem(ask(f'evil.example:{daemon.port}', None, method, path), 421, 'foreign_host')
        with daemon.socket() as sock:
            sock.sendall(b'POST /v1/workspaces/w/pause HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n')
            self.assertIn(read_answer(sock).status, (400, 421))
        self.assertProblem(daemon.call('OPTIONS', '/v1/workspaces', headers={'Origin': f'http://{here}', 'Access-Control-Request-Method': 'GET'}),
                           405)

    def test_named_origins_may_call_with_a_token_and_no_others(self):
        app = 'https://app.example.org'
        daemon = self.guarded(self.target(), http={'cors_origins': [app, 'http://localhost:3000']})
        preflight = {'Access_Control_Request_Method': 'POST', 'Access_Control_Request_Headers': 'authorization'}
        path = '/v1/workspaces/w/sessions/s/entries'
        answer = self.ask(daemon, '', 'OPTIONS', path, Origin=app, **preflight)
        self.assertEqual(answer.status, 204)
        self.assertEqual(answer.headers['access-control-allow-origin'], app)
        self.assertEqual(answer.headers['access-control-allow-methods'], 'GET, POST')
        self.assertIn('Authorization', answer.headers['access-control-allow-headers'])
        self.assertEqual(answer.headers['vary'], 'Origin')
        self.assertNotIn('access-control-allow-credentials', answer.headers)
        for origin in ('https://evil.example', app + '.evil.example', app.upper(), 'null', 'http://app.example.org', f'{app}:443'):
            answer = self.ask(daemon, '', 'OPTIONS', path, Origin=origin, **preflight)
            self.assertEqual(answer.status, 401, origin)
            self.assertNotIn('access-control-allow-origin', answer.headers)
        answer = self.ask(daemon, '', 'POST', path, ENTRY, Origin=app)
        self.assertEqual(answer.status, 401)
        self.assertEqual(answer.headers['access-control-allow-origin'], app, 'so that the page can tell why')
        answer = self.ask(daemon, harness.tokens[daemon.port], 'POST', path, ENTRY, Origin=app)
        self.assertEqual(answer.status, 202)
        self.assertEqual(answer.headers['access-control-allow-origin'], app)
        self.assertIn('Location', answer.headers['access-control-expose-headers'])
        answer = self.ask(daemon, harness.tokens[daemon.port], 'GET', path, Origin='https://evil.example')
        self.assertEqual(answer.status, 200)  # the browser keeps it from the page
        self.assertNotIn('access-control-allow-origin', answer.headers)
        self.assertEqual(answer.headers['vary'], 'Origin')

    def test_every_answer_says_what_a_browser_must_not_do_with_it(self):
        daemon = self.guarded(self.target())
        for token in ('', harness.tokens[daemon.port]):
            for method, path in (('GET', '/'), ('GET', '/healthz'), ('GET', '/v1/workspaces'), ('GET', '/nothing'), ('GET', '/metrics'),
                                 ('POST', '/v1/workspaces/w/sessions/s/entries')):
                answer = self.ask(daemon, token, method, path, ENTRY if method == 'POST' else None)
                self.assertEqual(answer.headers['x-content-type-options'], 'nosniff', path)
                self.assertEqual(answer.headers['cache-control'], 'no-store', path)
                self.assertEqual(answer.headers['cross-origin-resource-policy'], 'same-origin', path)
        page = self.ask(daemon, '', 'GET', '/')
        self.assertIn("frame-ancestors 'none'", page.headers['content-security-policy'])
        self.assertIn("default-src 'none'", page.headers['content-security-policy'])
        self.assertEqual(page.headers['x-frame-options'], 'DENY')

    def test_a_unix_socket_asks_for_a_token_like_any_other_and_for_no_host(self):
        daemon = self.guarded(self.target(), start=False)
        path = daemon.folder / 'api.sock'
        daemon.settings['listen'] = [f'127.0.0.1:{daemon.port}', f'unix:{path}']
        daemon.start()
        for token, status in (('', 401), (harness.tokens[daemon.port], 200)):
            with socket.socket(socket.AF_UNIX) as sock:
                sock.settimeout(20 * harness.SLOW)
                sock.connect(os.fspath(path))
                headers = [('Authorization', f'Bearer {token}')] if token else []
                sock.sendall(raw_request('GET', '/v1/workspaces', headers=headers).replace(b'Host: localhost', b'Host: anything'))
                self.assertEqual(read_answer(sock).status, status)


if __name__ == '__main__':
    harness.main()
