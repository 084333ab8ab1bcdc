"""TLS to the store, where the build has it (hiredis 1.0 and newer); elsewhere a refusal that names the way."""

import harness
from certificates import Authority
from harness import SystemTest, free_port, wait_until


class StoreTls(SystemTest):
    limit = 90

    def setUp(self):
        self.daemon_ = self.daemon(self.target(), start=False)

    def secured(self, hosts='DNS:localhost,IP:127.0.0.1', clients=False):
        """A store that speaks TLS only, but for its socket; .authority, .port."""
        authority = Authority(self.daemon_.folder / 'authority')
        certificate, key = authority.issue('store', hosts=hosts)
        port = free_port()
        store = self.own_store('--tls-port', str(port), '--tls-cert-file', str(certificate), '--tls-key-file', str(key),
                               '--tls-ca-cert-file', str(authority.ca), '--tls-auth-clients', 'yes' if clients else 'no')
        store.authority, store.port = authority, port
        return store

    def start(self, url):
        """The daemon's process, ready or ended."""
        daemon = self.daemon_
        daemon.settings['store'] = {'url': url}
        daemon.process = daemon.spawn()
        wait_until(lambda: daemon.process.poll() is not None or 'msg=ready' in daemon.log(), 40, lambda: daemon.log()[-3000:])
        return daemon.process

    def is_built(self):
        self.daemon_.settings['store'] = {'url': 'valkeys://localhost:1'}
        self.daemon_.write_config()
        process = self.daemon_.spawn()
        refused = wait_until(lambda: ('no TLS to the store' in self.daemon_.log() and 'no') or
                             ('waiting for the store' in self.daemon_.log() and 'yes') or
                             ('cannot reach the store' in self.daemon_.log() and 'yes'), 40, lambda: self.daemon_.log()[-3000:])
        process.kill()
        process.wait()
        return refused == 'yes'

    def test_without_it_the_refusal_names_the_way(self):
        if self.is_built():
            self.skipTest('TLS to the store is built in')
        self.assertIn('stunnel', self.daemon_.log())

    def test_messages_go_over_tls_and_an_impostor_is_refused(self):
        if not self.is_built():
            self.skipTest('TLS to the store is not built in')
        daemon, store = self.daemon_, self.secured()
        self.assertIsNone(self.start(f'valkeys://localhost:{store.port}/0?ca={store.authority.ca}').poll(), daemon.log())
        daemon.wait_ready()
        ids = [daemon.accept_ok(f's{n}', kind='note', payload={'x': 'y' * 50000}) for n in range(20)]
        for entry in ids:
            daemon.wait_status(entry, 'sent')
        store.kill()
        wait_until(lambda: daemon.accept('s', kind='note', payload={}).status == 503, 20, 'the outage')
        store.start()
        daemon.wait_status(daemon.accept_patiently(session='after', kind='note', payload={}), 'sent')
        self.assertEqual(daemon.stop(), 0)
        for url, why in ((f'valkeys://localhost:{store.port}?ca={Authority(daemon.folder / "other").ca}', 'cannot prove that it is the one'),
                         (f'valkeys://localhost:{store.port}', 'cannot prove that it is the one'),
                         (f'valkeys://localhost:{store.port}?ca=/no/such/file', 'bad store.url')):
            with self.subTest(url=url):
                before = daemon.log().count(why)
                self.assertNotEqual(self.start(url).wait(40 * harness.SLOW), 0)
                self.assertGreater(daemon.log().count(why), before)

    def test_a_certificate_for_another_name_is_none_and_clients_show_theirs(self):
        if not self.is_built():
            self.skipTest('TLS to the store is not built in')
        daemon, store = self.daemon_, self.secured(hosts='DNS:store.example', clients=True)
        self.assertNotEqual(self.start(f'valkeys://localhost:{store.port}?ca={store.authority.ca}').wait(40 * harness.SLOW), 0)
        self.assertIn('cannot prove that it is the one', daemon.log())
        store.kill()
        certificate, key = store.authority.issue('store')  # the same files, for localhost now
        store.start()
        shown, shown_key = store.authority.issue('outboxd', purpose='clientAuth')
        self.assertIsNone(self.start(f'valkeys://127.0.0.1:{store.port}?ca={store.authority.ca}&certificate={shown}&key={shown_key}').poll(),
                          daemon.log())
        daemon.wait_ready()
        daemon.wait_status(daemon.accept_ok('s', kind='note', payload={}), 'sent')


if __name__ == '__main__':
    harness.main()
