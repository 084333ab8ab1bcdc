"""A real Chromium for tests of the dashboard (tests/support/browser/drive.mjs)."""
import json
import os
import subprocess

import harness

SUPPORT = harness.ROOT / 'tests' / 'support'


class BrowserError(AssertionError):
    """What was to be done in the page could not be done."""


class Browser:
    """One browser; open() begins with an empty tab and an empty storage."""

    def __init__(self):
        folder = subprocess.run([SUPPORT / 'npm_install.sh', 'browser'], check=True, capture_output=True, text=True).stdout.strip()
        self.node = subprocess.Popen(['node', SUPPORT / 'browser' / 'drive.mjs', folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     text=True, env={**os.environ, 'OUTBOXD_SLOW': str(harness.SLOW)})
        self._answer()

    def _answer(self):
        line = self.node.stdout.readline()
        if not line:
            raise BrowserError('the browser ended')
        answer = json.loads(line)
        if 'error' in answer:
            raise BrowserError(answer['error'])
        return answer['ok']

    def __getattr__(self, action):
        """browser.click(role='button', name='Log in'), browser.text(selector='h1'): the actions of drive.mjs."""
        def do(**what):
            self.node.stdin.write(json.dumps({'do': action, **what}) + '\n')
            self.node.stdin.flush()
            return self._answer()
        return do

    def end(self):
        self.node.stdin.close()
        self.node.wait(30)
        self.node.stdout.close()
