"""The manual pages as they are built: formatted without a warning, and nothing missing that a table names.

  test_manuals.py SOURCE BUILD
"""
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

SOURCE, BUILD = map(pathlib.Path, sys.argv[1:3])
PAGES = sorted(page for folder in ('api/ctl', 'common', 'deploy') for page in (BUILD / folder).rglob('outbox*.[1-8]'))


def rows(table, macro):
    """The texts in quotes of each row of a .def table."""
    text = re.sub(r'/\*.*?\*/', '', (SOURCE / table).read_text(), flags=re.S)
    return [re.findall(r'"((?:[^"\\]|\\.)*)"', row) for row in re.findall(rf'^{macro}\s*\((.*)\)\s*$', text, re.M)]


SETTINGS = [row[0] for row in rows('common/base/settings.def', 'SETTING')]
KIND_MEMBERS = [row[0] for row in rows('common/base/kinds.def', 'KIND_(?:SETTING|LIMIT)')]


def page(name):
    return (BUILD / 'deploy' / name).read_text()


class Manuals(unittest.TestCase):

    def test_every_page_is_there(self):
        self.assertLessEqual({'outboxd.8', 'outboxd.yaml.5'}, {page.name for page in PAGES})
        self.assertGreater(len(SETTINGS), 50)
        self.assertGreater(len(KIND_MEMBERS), 20)

    @unittest.skipUnless(shutil.which('groff'), 'groff is not installed')
    def test_pages_are_formatted_without_a_warning(self):
        for path in PAGES:
            with self.subTest(path.name):
                ran = subprocess.run(['groff', '-mandoc', '-Tutf8', '-ww', '-z', '-rLL=78n', path], capture_output=True, text=True)
                self.assertEqual((ran.returncode, ran.stdout + ran.stderr), (0, ''))

    @unittest.skipUnless(shutil.which('mandoc'), 'mandoc is not installed')
    def test_pages_in_mdoc_are_good_for_mandoc_too(self):
        for path in (BUILD / 'deploy').glob('outbox*.[1-8]'):
            with self.subTest(path.name):
                ran = subprocess.run(['mandoc', '-Tlint', '-Wwarning', path], capture_output=True, text=True)
                self.assertEqual((ran.returncode, ran.stdout), (0, ''))

    def test_every_setting_and_every_member_of_a_kind_is_in_the_manual(self):
        told = re.findall(r'^\.It Cm (\S+)', page('outboxd.yaml.5'), re.M)
        self.assertEqual(told, SETTINGS + KIND_MEMBERS)

    def test_every_signal_is_in_the_manual(self):
        text = (SOURCE / 'supervisor/signals.def').read_text()
        signals = [name for name, action in re.findall(r'^SIGNAL_ROW\((\w+),\s*(\w+)', text, re.M) if action != 'REAP']
        self.assertGreater(len(signals), 7)
        self.assertEqual(re.findall(r'^\.It Dv SIG(\w+)', page('outboxd.8'), re.M), signals)

    def test_every_option_of_outboxd_is_in_its_manual(self):
        options = re.findall(r'^    \{"([a-z-]+)", (?:no|required)_argument', (SOURCE / 'supervisor/main.c').read_text(), re.M)
        self.assertGreater(len(options), 5)
        for option in options:
            self.assertIn(f'Fl -{option}', page('outboxd.8'))

    def test_every_setting_is_in_the_sample_with_its_default(self):
        sample = (SOURCE / 'deploy/outboxd.yaml.sample').read_text()
        for row in rows('common/base/settings.def', 'SETTING'):
            path, default = row[0], row[1]
            section, _, key = path.rpartition('.')
            with self.subTest(path):
                block = re.search(rf'^#{section}:\n((?:#.*\n)+)', sample, re.M)[1] if section else sample
                value = re.search(rf'^#{"  " if section else ""}{key}: (.*)$', block, re.M)
                self.assertIsNotNone(value, 'not in the sample')
                if default:
                    self.assertEqual(re.sub(r'["\[\]]', '', value[1]), default)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
