#!/usr/bin/env python3
"""Counts the tests of one suite from meson's JSON log, which may hold others': cmocka's and unittest's own closing lines, not programs.

Prints to standard output what a person wants to see (closing lines, whole logs of failures), and "PASSED FAILED" to
descriptor 3. A program that failed without saying which test, or that ran none, counts as one failed.
"""
import json
import os
import re
import sys

MAX_LOG_LINES = 400

CMOCKA_PASSED = re.compile(r'^\[  PASSED  \] (\d+) test\(s\)\.', re.M)
CMOCKA_FAILED = re.compile(r'^\[  FAILED  \] (\d+) test\(s\)', re.M)
UNITTEST_RAN = re.compile(r'^Ran (\d+) tests? in ', re.M)
UNITTEST_END = re.compile(r'^(OK|FAILED)(?: \((.*)\))?$', re.M)
CLOSING = re.compile(r'^(?:\[  (?:PASSED |FAILED |SKIPPED) \] \d+ test\(s\).*|Ran \d+ tests? in .*|OK(?: \(.*\))?'
                     r'|FAILED \(.*\))$', re.M)


def count(text):
    """(passed, failed) as the runners' closing lines say."""
    passed = sum(map(int, CMOCKA_PASSED.findall(text)))
    failed = sum(map(int, CMOCKA_FAILED.findall(text)))
    for ran, end in zip(UNITTEST_RAN.findall(text), UNITTEST_END.findall(text)):
        parts = {name.strip(): int(number) for name, number in re.findall(r'([a-z ]+)=(\d+)', end[1])}
        bad = sum(parts.get(name, 0) for name in ('failures', 'errors', 'unexpected successes'))
        skipped = parts.get('skipped', 0)
        passed += max(0, int(ran) - bad - skipped)  # what breaks before the first test is an error of none
        failed += bad
    return passed, failed


def read(path):
    try:
        with open(path, encoding='utf-8') as log:
            return [json.loads(line) for line in log if line.strip()]
    except OSError as error:
        print(f'no log of this suite: {error}')
        return []


def main():
    suite, path = sys.argv[1:3]
    all_passed = all_failed = 0
    for program in read(path):
        if program['name'].partition(' / ')[0].rpartition(':')[2] != suite:  # project:suite / name
            continue
        name, result = program['name'].rpartition('/')[2], program['result']
        text = '\n'.join(part for part in (program.get('stdout'), program.get('stderr')) if part)
        passed, failed = count(text)
        note = ''
        if result != 'OK' and failed == 0:
            failed, note = 1, f'  ended with {result} ({program.get("returncode")})'
        elif result == 'OK' and passed + failed == 0:
            failed, note = 1, '  ran no test that could be counted'
        for line in [match.group(0) for match in CLOSING.finditer(text)] or ['']:
            print(f'{name}: {line}{note}')
        if failed:
            lines = text.splitlines()
            print(f'--- log of {name}' + (f', its last {MAX_LOG_LINES} lines of {len(lines)}' if len(lines) > MAX_LOG_LINES
                                          else ''))
            print('\n'.join(lines[-MAX_LOG_LINES:]))
            print(f'--- end of the log of {name}')
        all_passed += passed
        all_failed += failed
    if all_passed + all_failed == 0:
        print(f'the suite {suite} ran no test at all')
        all_failed = 1
    print(f'suite {suite}: {all_passed} passed, {all_failed} failed')
    sys.stdout.flush()
    with os.fdopen(3, 'w') as answer:
        answer.write(f'{all_passed} {all_failed}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
