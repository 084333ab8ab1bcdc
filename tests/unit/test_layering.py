#!/usr/bin/env python3
"""Rules about the source that no compiler checks: who includes whom, headers that stand alone, banned functions,
a transition table without double rows.

Run by meson: test_layering.py SOURCE_ROOT BUILD_DIR COMPILER...
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

ROOT, BUILD, COMPILER = sys.argv[1], sys.argv[2], sys.argv[3:]

# What a file in a folder may include, besides its own folder. The longest folder that fits counts.
ALLOWED = {
    'common/core': [],
    'common/base': ['common/core'],
    'common/access': ['common/core', 'common/base'],
    'common/shm': ['common/core', 'common/base'],
    'common/store': ['common/core', 'common/base', 'common/shm'],
    'worker': ['common'],
    'api': ['common'],
    'supervisor': ['common'],
}
BANNED = ['strcpy', 'strcat', 'sprintf', 'vsprintf', 'strtok', 'atoi', 'atol', 'atoll', 'gets', 'alloca', 'system']
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
# Made at build time, or found by name only: no folder of ours.
GENERATED = {'build_config.h'}


def sources(*endings):
    for folder in ALLOWED:
        for base, folders, files in os.walk(os.path.join(ROOT, folder)):
            folders.sort()
            for name in sorted(files):
                if name.endswith(endings):
                    yield os.path.relpath(os.path.join(base, name), ROOT)


def read(path):
    with open(os.path.join(ROOT, path), encoding='utf-8') as file:
        return file.read()


def without_comments_and_strings(text):
    """The code alone, line numbers kept."""
    pattern = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
    return pattern.sub(lambda m: '\n' * m.group(0).count('\n') if m.group(0)[0] == '/' else '""', text)


def folder_of(path):
    fitting = [folder for folder in ALLOWED if path.startswith(folder + '/')]
    return max(fitting, key=len) if fitting else None


def include_mistake(path, target):
    """Why `path` may not include `target`, or None."""
    folder = folder_of(path)
    if target in GENERATED or target.startswith(folder + '/'):
        return None
    if any(target.startswith(other + '/') for other in ALLOWED[folder]):
        return None
    if folder_of(target) is None and not target.startswith(('tests/', 'common/')):
        # Neither from the root nor ours: a generated file of the folder itself.
        return None if '/' not in target else f'{path} includes {target}: not written from the root'
    return f'{path} includes {target}: {folder} may include {ALLOWED[folder] or "nothing else"}'


def banned_calls(text):
    code = without_comments_and_strings(text)
    pattern = re.compile(r'(?<![\w.>])(' + '|'.join(BANNED) + r')\s*\(')
    return [(code.count('\n', 0, m.start()) + 1, m.group(1)) for m in pattern.finditer(code)]


def compile_text(text):
    """The compiler's complaints about a translation unit; empty: none."""
    flags = ['-std=gnu17', '-D_GNU_SOURCE', '-Wall', '-Wextra', '-Woverride-init', '-Werror', '-fsyntax-only',
             '-Wno-unused-function', '-I', ROOT, '-I', os.path.dirname(os.path.dirname(BUILD))]
    with tempfile.NamedTemporaryFile('w', suffix='.c') as file:
        file.write(text)
        file.flush()
        done = subprocess.run(COMPILER + flags + [file.name], capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ''


class Layering(unittest.TestCase):
    def test_includes_point_one_way_only(self):
        mistakes = []
        for path in sources('.c', '.h', '.def'):
            for target in INCLUDE.findall(read(path)):
                mistakes.append(include_mistake(path, target))
        self.assertEqual([m for m in mistakes if m], [])

    def test_a_wrong_include_would_be_seen(self):
        self.assertIsNotNone(include_mistake('common/core/a.c', 'common/base/err.h'))
        self.assertIsNotNone(include_mistake('common/base/a.c', 'common/shm/shm.h'))
        self.assertIsNotNone(include_mistake('common/shm/a.c', 'common/store/store.h'))
        self.assertIsNotNone(include_mistake('common/store/a.c', 'worker/claim.h'))
        self.assertIsNotNone(include_mistake('worker/a.c', 'api/router.h'))
        self.assertIsNotNone(include_mistake('api/ctl/a.c', 'supervisor/spawn.h'))
        self.assertIsNotNone(include_mistake('supervisor/a.c', 'tests/support/x.h'))
        self.assertIsNone(include_mistake('worker/a.c', 'common/store/store.h'))
        self.assertIsNone(include_mistake('api/ctl/a.c', 'api/problem.h'))

    def test_every_header_compiles_alone_and_twice(self):
        headers = list(sources('.h'))
        self.assertTrue(headers)

        def check(path):
            said = compile_text(f'#include "{path}"\n#include "{path}"\nint unit_is_not_empty;\n')
            # A library that this compiler is not told where to find is no mistake of the header.
            return '' if 'No such file' in said and f'"{ROOT}' not in said and 'common/' not in said.split('fatal error')[1] else said

        with ThreadPoolExecutor(2) as pool:
            for path, said in zip(headers, pool.map(check, headers)):
                with self.subTest(header=path):
                    self.assertEqual(said, '')

    def test_no_banned_function_is_called(self):
        found = [f'{path}:{line}: {name}()' for path in sources('.c', '.h') for line, name in banned_calls(read(path))]
        self.assertEqual(found, [])

    def test_a_banned_call_would_be_seen(self):
        self.assertEqual(banned_calls('int x;\nx = atoi (s); /* strcpy(a, b) */ "gets(" my_system(1); snprintf(a);'),
                         [(2, 'atoi')])

    def test_a_second_row_for_a_pair_does_not_compile(self):
        table = read('common/core/lifecycle.def')
        row = next(line for line in table.splitlines() if line.startswith('TRANSITION(DELIVERING, CONFIRMED,'))
        code = re.sub(r'#include "common/core/lifecycle.def"', '', read('common/core/lifecycle.c'))
        macro = re.search(r'static const struct transition transitions.*?\n};', code, re.S)
        self.assertIsNotNone(macro)
        head = code[:macro.start()]
        rows = '\n'.join(line for line in table.splitlines() if line.startswith('TRANSITION('))
        for extra, is_refused in (('', False), (row, True)):
            body = macro.group(0)[:-2] + '\n' + rows + '\n' + extra + '\n};\n'
            said = compile_text(head + body + 'const void *use(void) { return transitions; }\n')
            self.assertEqual('override-init' in said or 'initializer-overrides' in said, is_refused, said)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
