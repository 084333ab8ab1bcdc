"""What the tests of prompts share: one outboxd per set of settings for a whole program (each test has sessions of its own),
the events that stand in the store, and what must hold of every prompt.
"""
import json
import unittest

from harness import FAST, SANITIZER, Daemon, SystemTest, key, partition

PROMPT = {'name': 'prompt', 'executor': 'opencode'}


class PromptTest(SystemTest):
    _daemons = {}

    def run(self, result=None):
        self._shown = set()
        return super().run(result)

    def shared_daemon(self, name, target, **settings):
        """The daemon of that name for this whole program: started when first asked for. Its log is shown when a test of
        it fails, a sanitizer's report in it fails the program."""
        daemon = self._daemons.get(name)
        if daemon is None:
            daemon = self._daemons[name] = self.make(target, settings)
            unittest.addModuleCleanup(self.end_shared, name)
        if name not in self._shown:
            self._shown.add(name)
            self.addCleanup(lambda: self._kept_logs.append((daemon.folder.name, daemon.log()[-12000:])))
        return daemon

    @staticmethod
    def make(target, settings):
        settings = dict(FAST, kinds=[PROMPT], workers=1, target=target, **settings)
        daemon = Daemon(settings)
        try:
            daemon.start()
            daemon.segments()
        except BaseException:
            print(daemon.log())
            daemon.close()
            raise
        return daemon

    @classmethod
    def end_shared(cls, name):
        daemon = cls._daemons.pop(name)
        log = daemon.log()
        daemon.close()
        report = SANITIZER.search(log)
        if report:
            raise AssertionError('a sanitizer reported:\n' + log[max(0, report.start() - 200):report.start() + 4000])

    def own_daemon(self, target, **settings):
        """A daemon of this test alone, to be killed or told other things than the shared one."""
        return self.daemon(None, target=target, **dict({'kinds': [PROMPT], 'workers': 1}, **settings))

    @staticmethod
    def set_target(daemon, workspace, target):
        """Gives a workspace a target of its own, past the API: from the next claim on."""
        valkey = daemon.valkey()
        try:
            valkey('HSET', key('conf', workspace), 'target', json.dumps(target))
        finally:
            valkey.close()

    # looking

    def events(self, daemon, entry, workspace='w'):
        """The events of an entry as they stand in the stream: [{type, …}, …]."""
        valkey = daemon.valkey()
        try:
            rows = valkey('XRANGE', f'outboxev:{{{partition(workspace)}}}', '-', '+')
        finally:
            valkey.close()
        found = [dict(zip((w.decode() for w in words[::2]), (w.decode() for w in words[1::2]))) for _, words in rows]
        return [event for event in found if event['entryID'] == entry]

    def assertSentOnce(self, daemon, entry, workspace='w', timeout=30, via=None):
        """It ended as sent, and the stream says so exactly once."""
        daemon.wait_status(entry, 'sent', workspace, timeout)
        sent = [event for event in self.events(daemon, entry, workspace) if event['type'] == 'sent']
        self.assertEqual(len(sent), 1, sent)
        if via:
            self.assertEqual(sent[0].get('via'), via)

    def assertError(self, daemon, entry, code, workspace='w', timeout=30):
        stands = daemon.wait_status(entry, 'error', workspace, timeout)
        self.assertEqual(stands['lastError']['code'], code, stands)
        self.assertFalse([event for event in self.events(daemon, entry, workspace) if event['type'] == 'sent'])
        return stands

    def failures(self, daemon, entry, member='transientFails'):
        return daemon.entry(entry).json().get(member, 0)
