"""A short run of tests/chaos/run: everything fails for a while, and every invariant holds afterwards.

  OUTBOXD_CHAOS_MINUTES  how long all of it takes (default 2)
  OUTBOXD_CHAOS_SEED     which faults in which order (default: drawn, and told)
Few messages, since it runs beside other tests; what counts here is that each fault comes, not how many messages meet it.
"""
import os
import subprocess
import sys
import unittest

import harness

MINUTES = float(os.environ.get('OUTBOXD_CHAOS_MINUTES', '2'))
RATE = 24  # messages a second
SEED = os.environ.get('OUTBOXD_CHAOS_SEED')


class Chaos(unittest.TestCase):
    def test_nothing_is_lost_doubled_or_out_of_order_whatever_fails(self):
        harness.build_folder()  # skips where nothing is built
        command = [sys.executable, str(harness.ROOT / 'tests' / 'chaos' / 'run'), '--minutes', f'{MINUTES:g}',
                   '--rate', str(RATE)]
        run = subprocess.run(command + (['--seed', SEED] if SEED else []), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, check=False)
        print(run.stdout, flush=True)
        self.assertEqual(run.returncode, 0, 'an invariant does not hold: the page above names it, and the seed')


if __name__ == '__main__':
    harness.main()
