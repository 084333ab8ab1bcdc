"""The dashboard in a real Chromium: logging in, what the token may see, and a policy that nothing of it breaks."""
import harness
from harness import wait_until
from support_browser import Browser
from test_tokens import TokenTest


class Dashboard(TokenTest):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.end)

    def open(self, daemon, **how):
        self.browser.open(url=f'http://127.0.0.1:{daemon.port}/', **how)

    def log_in(self, token):
        self.browser.fill(label='Access token', value=token)
        self.browser.click(role='button', name='Log in')

    def storage(self):
        return self.browser.evaluate(script='''[JSON.stringify(localStorage), document.cookie,
            JSON.stringify(performance.getEntriesByType('resource').map((entry) => entry.name)), location.href].join(' ')''')

    def assertClean(self, *expected):
        """Nothing stands in the console but what each of `expected` is part of, and people who don't see the page can use it."""
        complaints = [text for text in self.browser.complaints() if not any(part in text for part in expected)]
        self.assertEqual(complaints, [])
        self.assertEqual(self.browser.accessibility(), [])

    def test_a_token_lets_in_and_stays_in_the_tab(self):
        daemon = self.guarded(self.target())
        token = self.token(daemon, 'client', 'team-*', 'viewer')
        self.reload(daemon)
        daemon.accept_ok('s', workspace='team-a', text='hello')
        self.open(daemon)
        self.browser.wait(role='heading', name='Log in')
        self.assertClean('401')
        self.log_in('obx_nobody-has-this-one')
        self.browser.wait(text='does not know this token')
        self.log_in(token)
        self.browser.wait(role='heading', name='Overview')
        self.browser.wait(role='table', name='Processes')
        self.assertNotIn(token, self.storage())
        self.browser.reload()
        self.browser.wait(role='heading', name='Overview')
        self.browser.click(role='link', name='Workspaces')
        self.browser.wait(role='heading', name='Workspaces')
        self.assertNotIn(token, self.storage())
        self.assertClean('401')
        self.open(daemon)
        self.browser.wait(role='heading', name='Log in')  # another tab has nothing of it
        self.log_in(token)
        self.browser.click(role='button', name='Log out')
        self.browser.wait(role='heading', name='Log in')
        self.browser.reload()
        self.browser.wait(role='heading', name='Log in')

    def test_a_revoked_token_ends_at_the_login_with_the_reason(self):
        daemon = self.guarded(self.target())
        token = self.token(daemon, 'operator', '*', 'leaver')
        self.reload(daemon)
        self.open(daemon, dark=True, width=360, height=740)
        self.log_in(token)
        self.browser.wait(role='heading', name='Overview')
        self.assertClean('401')
        file = daemon.folder / 'tokens'
        file.write_text(''.join(line for line in file.read_text().splitlines(True) if 'leaver' not in line))
        self.reload(daemon)
        self.browser.wait(role='heading', name='Log in')
        self.assertClean('401')

    def test_without_tokens_nobody_is_asked_and_a_message_can_not_become_markup(self):
        daemon = self.daemon(self.target())
        self.open(daemon)
        self.browser.wait(role='heading', name='Overview')
        self.assertEqual(self.browser.count(selector='#logout:visible'), 0)
        self.assertClean()
        self.browser.evaluate(script='''(() => { const image = document.createElement('img');
            image.src = 'http://127.0.0.1:9/pixel'; document.body.append(image); })()''')
        wait_until(lambda: any('CSP: img-src' in text for text in self.browser.complaints()), 10,
                   lambda: 'the policy let a picture of another site in')
        with self.assertRaises(AssertionError):
            self.browser.evaluate(script="document.body.innerHTML = '<b>x</b>'")

    def test_an_api_that_goes_and_comes_back_is_waited_for(self):
        daemon = self.daemon(self.target())
        self.open(daemon)
        self.browser.wait(role='heading', name='Overview')
        daemon.stop()
        self.browser.wait(text='The server does not answer')
        daemon.start()
        self.browser.wait(selector='#connection:empty', state='attached')
        self.assertClean('ERR_CONNECTION_REFUSED', 'ERR_CONNECTION_RESET', 'ERR_EMPTY_RESPONSE', '503')


if __name__ == '__main__':
    harness.main()
