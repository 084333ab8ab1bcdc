"""Order within a session; nobody waits for somebody else's trouble."""
import statistics
import time

import harness
from harness import SLOW, SystemTest, in_parallel, wait_until


class Order(SystemTest):
    limit = 120

    def check_fifo(self, kind, **rule):
        target = self.target()
        target.script(dict({'method': 'POST', 'every': 10}, **rule))
        daemon = self.daemon(target, session_cap=300, retry_backoff='5ms', max_backoff='10ms', verify_delay='5ms',
                             verify_settle='0', verify_backoff='5ms')
        ids = [daemon.accept_ok('s', clientMessageID=f'm{n}', kind=kind, payload={'n': n}) for n in range(200)]
        self.assertDelivered(target, ids, timeout=80)
        self.assertEqual([r.key for r in target.stored()], ids, 'out of order')
        self.assertGreaterEqual(len(target.posts()), 220, 'no attempt failed')
        order = [r.key for r in target.posts()]
        self.assertEqual([key for n, key in enumerate(order) if n == 0 or order[n - 1] != key], ids,
                         'a later message was sent between two attempts of an earlier one')

    def test_200_messages_keep_their_order_while_every_tenth_attempt_fails(self):
        self.check_fifo('note', status=503)

    def test_200_messages_keep_their_order_while_every_tenth_answer_is_lost(self):
        self.check_fifo('note', close='after-request')

    def test_200_messages_of_a_verified_kind_keep_their_order_while_every_tenth_attempt_is_lost(self):
        self.check_fifo('pay', close='after-request')

    def test_a_strict_entry_in_backoff_blocks_those_behind_it(self):
        target = self.target()
        target.script(body='"n":0', status=503, times=3)
        daemon = self.daemon(target)
        ids = [daemon.accept_ok('s', '{"kind":"note","payload":{"n":%d}}' % n) for n in range(5)]
        self.assertDelivered(target, ids)
        self.assertEqual([r.key for r in target.posts()], [ids[0]] * 4 + ids[1:])

    def test_a_first_due_entry_in_backoff_is_passed_over(self):
        target = self.target()
        kinds = [{'name': 'any', 'url': '/any', 'idempotent': True, 'ordering': 'first-due', 'retry_backoff': '1s', 'max_backoff': '1s'}]
        target.script(body='"n":0', status=503, headers={'Retry-After': '1'}, times=1)
        daemon = self.daemon(target, kinds=kinds)
        ids = [daemon.accept_ok('s', '{"kind":"any","payload":{"n":%d}}' % n) for n in range(5)]
        self.assertDelivered(target, ids)
        self.assertEqual([r.key for r in target.stored()], ids[1:] + ids[:1])

    def test_an_entry_in_error_is_passed_over_and_keeps_its_place_for_a_retry(self):
        target = self.target()
        target.script(body='"n":0', status=400, times=1)
        daemon = self.daemon(target)
        ids = [daemon.accept_ok('s', '{"kind":"fire","payload":{"n":%d}}' % n) for n in range(3)]
        self.assertDelivered(target, ids[1:], times=1)
        daemon.wait_status(ids[0], 'error')
        self.assertEqual(daemon.call('POST', f'/v1/workspaces/w/entries/{ids[0]}/retry').status, 200)
        self.assertDelivered(target, ids)


class Fairness(SystemTest):
    limit = 120

    def test_a_target_that_hangs_for_one_session_delays_no_other(self):
        target = self.target()
        target.script(body='hang', hold=True)
        daemon = self.daemon(target, workers=1)
        stuck = daemon.accept_ok('stuck', kind='note', payload={'text': 'hang'})
        daemon.accept_ok('stuck', kind='note', payload={'text': 'behind it'})
        wait_until(lambda: target.posts(key=stuck), 10, 'the hanging request')
        ids = [daemon.accept_ok(f's{n % 20}', kind='note', payload={'n': n}) for n in range(100)]
        self.assertDelivered(target, ids, times=1)
        self.assertEqual(daemon.status(stuck), 'delivering')
        self.assertEqual(len(target.posts()), 101)

    def test_many_hanging_sessions_leave_room_for_others(self):
        """A hog takes at most its share of the slots."""
        target = self.target()
        target.script(body='hang', hold=True)
        daemon = self.daemon(target, workers=1, max_in_flight=32)
        for n in range(100):
            daemon.accept_ok(f's{n}', kind='note', payload={'text': 'hang'}, workspace='hog')
        wait_until(lambda: len(target.posts()) >= 8, 10, 'hanging requests')
        ids = [daemon.accept_ok(f's{n}', kind='note', payload={'n': n}, workspace='quiet') for n in range(20)]
        self.assertDelivered(target, ids, times=1)

    def test_10000_waiting_messages_of_one_workspace_hardly_delay_another_ones_single_message(self):
        target = self.target()
        target.script(body='big', delay=0.25)
        daemon = self.daemon(target, workers=2, max_in_flight=32, log={'level': 'info'})

        def latency(n):
            before = time.monotonic()
            entry = daemon.accept_ok(f'q{n}', kind='note', payload={'n': n}, workspace='quiet')
            wait_until(lambda: target.posts(key=entry), 20, 'the single message', every=0.001)
            return target.posts(key=entry)[0].time - before

        def fill(part):
            for n in range(part, 1000, 8):
                for k in range(10):
                    daemon.accept_ok(f's{n}', kind='note', payload={'text': 'big', 'k': k}, workspace='big')

        idle = statistics.median(latency(n) for n in range(9))
        in_parallel([lambda part=part: fill(part) for part in range(8)], 8)
        waiting = 10000 - len(target.posts())
        busy = statistics.median(latency(100 + n) for n in range(9))
        print(f'single message: idle {idle * 1000:.1f} ms, behind {waiting} waiting messages {busy * 1000:.1f} ms')
        self.assertGreater(waiting, 3000, 'the load was gone too soon to tell anything')
        self.assertLess(busy, 10 * idle + 0.1 * SLOW)


if __name__ == '__main__':
    harness.main()
