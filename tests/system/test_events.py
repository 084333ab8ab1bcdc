"""Event streams (Server-Sent Events): content and order, resume without gap or duplicate, heartbeats, resets, slow readers."""
import contextlib
import json
import re
import signal
import socket
import subprocess
import threading
import time

import harness
from harness import SystemTest, in_parallel, read_answer, wait_until
from support_events import Follower, Stream

TIME = re.compile(r'^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$')


def types_of(events, entry):
    return [event.data['type'] for event in events if event.name == 'queue.update' and event.data['entryID'] == entry]


class Events(SystemTest):
    def stream(self, daemon, path='/v1/events', last=None, **options):
        stream = Stream(daemon.port, path, last, **options)
        self.addCleanup(stream.close)
        return stream


class Content(Events):
    def setUp(self):
        self.the_target = self.target()
        self.the_daemon = self.daemon(self.the_target, workers=1, stuck_after='1s')

    def test_a_delivery_is_told_from_acceptance_to_the_end(self):
        daemon = self.the_daemon
        streams = [self.stream(daemon, path) for path in
                   ('/v1/events', '/v1/workspaces/w/events', '/v1/workspaces/w/sessions/s/events')]
        others = [self.stream(daemon, path) for path in ('/v1/workspaces/x/events', '/v1/workspaces/w/sessions/t/events')]
        entry = daemon.accept_ok('s', kind='note', payload={'n': 1}, clientMessageID='c1', userID='u1')
        for stream in streams:
            stream.wait(lambda events: types_of(events, entry)[-1:] == ['sent'])
            self.assertEqual(types_of(stream.events, entry), ['accepted', 'delivering', 'sent'])
            updates = [event for event in stream.events if event.name == 'queue.update']
            for event in updates:
                self.assertEqual({name: event.data[name] for name in
                                  ('workspaceID', 'sessionID', 'entryID', 'clientMessageID', 'userID', 'kind')},
                                 {'workspaceID': 'w', 'sessionID': 's', 'entryID': entry, 'clientMessageID': 'c1', 'userID': 'u1',
                                  'kind': 'note'})
                self.assertRegex(event.data['at'], TIME)
                self.assertTrue(event.id)
            self.assertEqual(updates[1].data['attempt'], 1)
            self.assertEqual(updates[2].data['via'], 'answer')
            self.assertEqual(stream.headers['content-type'], 'text/event-stream')
            self.assertEqual(stream.headers['cache-control'], 'no-store')
            self.assertEqual(stream.headers['x-accel-buffering'], 'no')
        theirs = [daemon.accept_ok('s', kind='note', payload={}, workspace='x'), daemon.accept_ok('t', kind='note', payload={})]
        for stream, own in zip(others, theirs):  # nothing comes before what is their own
            stream.wait(lambda events, e=own: types_of(events, e)[-1:] == ['sent'])
            self.assertEqual({event.data['entryID'] for event in stream.events if event.name == 'queue.update'}, {own})
        self.assertEqual(daemon.metric('outbox_event_readers'), 5)

    def test_what_is_tried_again_says_when(self):
        daemon = self.the_daemon
        self.the_target.script({'path': '/notes', 'status': 503, 'times': 1})
        stream = self.stream(daemon, '/v1/workspaces/w/events')
        entry = daemon.accept_ok('s', kind='note', payload={})
        stream.wait(lambda events: types_of(events, entry)[-1:] == ['sent'])
        self.assertEqual(types_of(stream.events, entry), ['accepted', 'delivering', 'retrying', 'delivering', 'sent'])
        retrying = next(event for event in stream.events if event.data.get('type') == 'retrying')
        self.assertRegex(retrying.data['nextAttemptAt'], TIME)
        self.assertNotIn('clientMessageID', retrying.data)

    def test_what_waits_too_long_is_announced_once_and_only_to_those_connected(self):
        daemon = self.the_daemon
        self.the_target.script({'path': '/notes', 'hold': True, 'times': 1})
        stream = self.stream(daemon, '/v1/workspaces/w/sessions/s/events')
        sending = daemon.accept_ok('s', kind='note', payload={})
        waiting = daemon.accept_ok('s', kind='note', payload={}, userID='u')
        stream.wait(lambda events: 'delayed' in types_of(events, waiting))
        delayed = next(event for event in stream.events if event.data.get('type') == 'delayed')
        self.assertIsNone(delayed.own_id)
        self.assertEqual((delayed.data['entryID'], delayed.data['userID'], delayed.data['kind']), (waiting, 'u', 'note'))
        self.assertRegex(delayed.data['at'], TIME)
        position = next(event.id for event in stream.events if event.data.get('type') == 'accepted')
        self.the_target.release()
        stream.wait(lambda events: types_of(events, waiting)[-1:] == ['sent'])
        self.assertEqual(types_of(stream.events, waiting), ['accepted', 'delayed', 'delivering', 'sent'])
        self.assertNotIn('delayed', types_of(stream.events, sending))
        again = self.stream(daemon, '/v1/workspaces/w/sessions/s/events', last=position)
        again.wait(lambda events: types_of(events, waiting)[-1:] == ['sent'])
        self.assertNotIn('delayed', types_of(again.events, waiting))

    def test_paths_and_methods_are_answered_as_everywhere(self):
        daemon = self.the_daemon
        self.assertProblem(daemon.call('POST', '/v1/events', {}), 405, 'method_not_allowed')
        self.assertProblem(daemon.call('GET', '/v1/workspaces/a%20b!/events'), 400, 'invalid_name')
        self.assertProblem(daemon.call('GET', '/v1/workspaces/w/sessions/events'), 404, 'not_found')

    def test_a_client_of_http_1_0_gets_the_stream_without_chunks(self):
        daemon = self.the_daemon
        sock = daemon.socket()
        sock.sendall(b'GET /v1/workspaces/w/events HTTP/1.0\r\n\r\n')
        received = b''
        while b'event: heartbeat' not in received:
            received += sock.recv(4096)
        entry = daemon.accept_ok('s', kind='note', payload={})
        while b'"type":"sent"' not in received:
            received += sock.recv(4096)
        self.assertNotIn(b'chunked', received.lower())
        self.assertIn(entry.encode(), received)
        sock.close()


class Resume(Events):
    limit = 150

    def test_a_position_is_resumed_by_header_and_by_query(self):
        daemon = self.daemon(self.target(), workers=1)
        for path in ('/v1/events', '/v1/workspaces/w/events', '/v1/workspaces/w/sessions/s/events'):
            stream = self.stream(daemon, path)
            entries = [daemon.accept_ok('s', kind='note', payload={}) for _ in range(3)]
            stream.wait(lambda events: types_of(events, entries[-1])[-1:] == ['sent'])
            updates = [event for event in stream.events if event.name == 'queue.update']
            stream.close()
            for index in (0, 4, 8):
                for options in ({'last': updates[index].id}, {'query': updates[index].id}):
                    again = self.stream(daemon, path, **options)
                    again.wait(lambda events: any(event.name == 'heartbeat' for event in events))
                    self.assertEqual([event.data for event in again.events if event.name == 'queue.update'],
                                     [event.data for event in updates[index + 1:]])
                    self.assertEqual([event.id for event in again.events if event.name == 'queue.update'],
                                     [event.id for event in updates[index + 1:]])
                    again.close()

    def test_killing_the_api_under_load_loses_and_doubles_nothing(self):
        daemon = self.daemon(self.target(), workers=2, session_cap=1000)
        workspaces = [f'w{i}' for i in range(12)]
        followers = [Follower(daemon, '/v1/events')] + [Follower(daemon, f'/v1/workspaces/{name}/events') for name in workspaces[:4]]
        for follower in followers:
            self.addCleanup(follower.stop)
            follower.start()
        accepted, stop = {}, threading.Event()

        def load(number):
            count = 0
            while not stop.is_set():
                workspace = workspaces[(number + count) % len(workspaces)]
                entry = daemon.accept_patiently(workspace=workspace, session=f's{number}', kind='note', payload={'n': count},
                                                clientMessageID=f'{number}-{count}')
                accepted[entry] = workspace
                count += 1
        threads = [threading.Thread(target=load, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for _ in range(4):
            before = len(accepted)
            wait_until(lambda: len(accepted) > before + 60, 30, 'accepts')
            daemon.kill('api')
        stop.set()
        for thread in threads:
            thread.join()
        wait_until(lambda: len(followers[0].seen('sent')) >= len(accepted), 60,
                   lambda: f'{len(followers[0].seen("sent"))} of {len(accepted)} sent events')
        self.assertGreater(followers[0].connections, 3)
        for follower in followers:
            mine = {entry for entry, workspace in accepted.items() if follower.path in ('/v1/events', f'/v1/workspaces/{workspace}/events')}
            wait_until(lambda f=follower, m=mine: set(f.seen('sent')) >= m, 30, 'all of them')
            for type_name in ('accepted', 'sent'):
                seen = follower.seen(type_name)
                self.assertEqual(len(seen), len(set(seen)), f'{type_name} twice on {follower.path}')
                self.assertEqual(set(seen), mine, f'{type_name} on {follower.path}')
            self.assertFalse(follower.resets)

    def test_an_outage_of_the_store_leaves_no_gap_and_no_reader_is_cut(self):
        store = self.own_store()
        daemon = self.daemon(self.target(), workers=1, store={'url': store.url}, http={'event_heartbeat': '200ms'})
        streams = [self.stream(daemon), self.stream(daemon, '/v1/workspaces/w/events')]
        first = daemon.accept_ok('s', kind='note', payload={})
        for stream in streams:
            stream.wait(lambda events: types_of(events, first)[-1:] == ['sent'])
        store.kill()
        wait_until(lambda: daemon.get('/readyz').status == 503, 10, 'the outage to be seen')
        for stream in streams:
            count = len(stream.events)
            stream.wait(lambda events, n=count: len(events) > n)  # heartbeats go on
        store.start()
        second = daemon.accept_patiently(session='s', kind='note', payload={})
        for stream in streams:
            stream.wait(lambda events: types_of(events, second)[-1:] == ['sent'])
            self.assertEqual(types_of(stream.events, second), ['accepted', 'delivering', 'sent'])
            self.assertEqual(types_of(stream.events, first), ['accepted', 'delivering', 'sent'])

    def test_what_was_trimmed_while_the_store_was_out_of_reach_is_told_as_a_reset(self):
        daemon = self.daemon(self.target(), workers=1)
        paths = ('/v1/events', '/v1/workspaces/w/events')
        streams = {path: self.stream(daemon, path) for path in (*paths, '/v1/workspaces/other/events')}
        entry = daemon.accept_ok('s', kind='note', payload={})
        for path in paths:
            streams[path].wait(lambda events: types_of(events, entry)[-1:] == ['sent'])
        valkey = daemon.valkey()
        self.addCleanup(valkey.close)
        name = f'outboxev:{{{harness.partition("w")}}}'
        daemon.kill('api', how=signal.SIGSTOP)
        valkey('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
        for n in range(3):
            valkey('XADD', name, '*', 'type', 'accepted', 'workspaceID', 'w', 'sessionID', 's', 'entryID', f'ob_{n}')
        valkey('XTRIM', name, 'MAXLEN', '1')
        daemon.kill('api', how=signal.SIGCONT)
        for path in paths:
            wait_until(lambda p=path: streams[p].ended, 30, 'the stream with a gap to be cut')
            self.assertNotIn('ob_2', [e.data.get('entryID') for e in streams[path].events])
            again = self.stream(daemon, path, last=streams[path].last)
            again.wait(lambda events: any(event.name == 'reset' for event in events))
            self.assertEqual([e.data['reason'] for e in again.events if e.name == 'reset'], ['trimmed'])
        self.assertFalse(streams['/v1/workspaces/other/events'].ended)
        later = daemon.accept_patiently(session='s', kind='note', payload={}, workspace='other')
        streams['/v1/workspaces/other/events'].wait(lambda events: types_of(events, later)[-1:] == ['sent'])

    def test_a_stream_that_was_trimmed_beyond_the_position_says_reset(self):
        daemon = self.daemon(self.target(), workers=1, events_max=100, session_cap=100000)
        early = {path: self.stream(daemon, path) for path in ('/v1/events', '/v1/workspaces/w/events')}
        positions = {}
        entry = daemon.accept_ok('s', kind='note', payload={})
        for path, stream in early.items():
            stream.wait(lambda events: types_of(events, entry))
            positions[path] = next(event.id for event in stream.events if event.name == 'queue.update')
            stream.close()
        in_parallel([lambda n=n: daemon.accept_ok(f's{n % 20}', kind='note', payload={}) for n in range(400)], 8)
        daemon.kill('api')  # the ring remembers them: the store does not
        wait_until(lambda: ready(daemon), 20, 'the API')
        valkey = daemon.valkey()
        self.assertLess(valkey('XLEN', f'outboxev:{{{harness.partition("w")}}}'), 400)
        valkey('XTRIM', f'outboxev:{{{harness.partition("w")}}}', 'MAXLEN', '5')
        for path, position in positions.items():
            stream = self.stream(daemon, path, last=position)
            stream.wait(lambda events: any(event.name == 'reset' for event in events))
            reset = next(event for event in stream.events if event.name == 'reset')
            self.assertEqual(reset.data, {'reason': 'trimmed'})
            self.assertTrue(reset.own_id)
            later = daemon.accept_ok('later', kind='note', payload={})
            stream.wait(lambda events, e=later: types_of(events, e)[-1:] == ['sent'])
            resumed = self.stream(daemon, path, last=reset.own_id)
            resumed.wait(lambda events, e=later: types_of(events, e)[-1:] == ['sent'])
            self.assertFalse([event for event in resumed.events if event.name == 'reset'])

    def test_positions_ahead_and_nonsense_say_reset(self):
        daemon = self.daemon(self.target(), workers=1)
        daemon.accept_ok('s', kind='note', payload={})
        p = harness.partition('w')
        ahead = f'p{p}.{int(time.time() * 1000) + 3600000}-0'
        for path, last, reason in (
                ('/v1/workspaces/w/events', ahead, 'ahead'),
                ('/v1/workspaces/w/events', f'p{(p + 1) % 64}.1-1', 'invalid'),
                ('/v1/workspaces/w/events', f'p{p}.18446744073709551615-18446744073709551615', 'invalid'),
                ('/v1/workspaces/w/events', f'p{p}.01-1', 'invalid'),
                ('/v1/events', ahead, 'invalid'), ('/v1/events', 'g', 'invalid'), ('/v1/events', 'gAAAA', 'invalid'),
                ('/v1/events', 'g' + 'f' * 8000, 'invalid'), ('/v1/events', '%00%ff', 'invalid')):
            stream = self.stream(daemon, path, last=last)
            stream.wait(lambda events: any(event.name == 'reset' for event in events))
            self.assertEqual([event.data['reason'] for event in stream.events if event.name == 'reset'], [reason], last)
            stream.close()

    def test_heartbeats_carry_positions_that_follow_what_others_do(self):
        daemon = self.daemon(self.target(), workers=1, http={'event_heartbeat': '100ms'})
        stream = self.stream(daemon, '/v1/workspaces/w/sessions/quiet/events')
        stream.wait(lambda events: events)
        first = stream.events[0].own_id
        entry = daemon.accept_ok('s', kind='note', payload={})
        daemon.wait_status(entry, 'sent')
        stream.wait(lambda events: events[-1].own_id != first and events[-1].name == 'heartbeat')
        self.assertTrue(all(event.name == 'heartbeat' and TIME.match(event.data['at']) and event.own_id for event in stream.events))
        everything = self.stream(daemon, '/v1/events')
        everything.wait(lambda events: len(events) >= 3)
        self.assertTrue(all(event.name == 'heartbeat' and event.own_id for event in everything.events))


class Readers(Events):
    limit = 120

    def test_who_does_not_read_is_cut_and_the_others_go_on(self):
        daemon = self.daemon(self.target(), workers=1, session_cap=1000000)
        good = self.stream(daemon, '/v1/workspaces/w/events')
        good.wait(lambda events: events)
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect(('127.0.0.1', daemon.port))
        sock.sendall(b'GET /v1/workspaces/w/events HTTP/1.1\r\nHost: localhost\r\n\r\n')
        wait_until(lambda: daemon.metric('outbox_event_readers') == 2, 10, 'two readers')
        valkey = daemon.valkey()
        key = f'outboxev:{{{harness.partition("w")}}}'
        filler = 'x' * 3000
        number = 0

        def more():
            nonlocal number
            for _ in range(200):
                valkey('XADD', key, '*', 'type', 'edited', 'workspaceID', 'w', 'sessionID', 's', 'entryID', f'e{number}', 'reason', filler)
                number += 1
            return daemon.metric('outbox_event_readers_cut_total') == 1
        wait_until(more, 60, 'the cut', every=0)
        self.assertEqual(daemon.metric('outbox_http_limited_total', limit='event_reader'), 1)
        wait_until(lambda: daemon.metric('outbox_event_readers') == 1, 10, 'one reader')
        good.wait(lambda events: any(event.data.get('entryID') == f'e{number - 1}' for event in events))
        self.assertEqual([event.data['entryID'] for event in good.events if event.name == 'queue.update'],
                         [f'e{n}' for n in range(number)])
        sock.close()

    def test_hundreds_of_readers_get_what_is_theirs_and_end_when_it_drains(self):
        daemon = self.daemon(self.target(), workers=1)
        streams = in_parallel([lambda n=n: self.stream(daemon, f'/v1/workspaces/w/sessions/s{n % 50}/events') for n in range(300)], 16)
        entries = [daemon.accept_ok(f's{n}', kind='note', payload={}) for n in range(50)]
        for number, stream in enumerate(streams):
            stream.wait(lambda events, e=entries[number % 50]: types_of(events, e)[-1:] == ['sent'])
            self.assertEqual({event.data['entryID'] for event in stream.events if event.name == 'queue.update'}, {entries[number % 50]})
        self.assertEqual(daemon.metric('outbox_event_readers'), 300)
        self.assertEqual(daemon.stop(signal.SIGTERM, timeout=60), 0)
        self.assertNotIn('draining took too long', daemon.log())
        for stream in streams:
            wait_until(lambda s=stream: s.ended, 10, 'the end of a stream')
            self.assertIsNone(stream.error)

    def test_readers_that_leave_are_noticed(self):
        daemon = self.daemon(self.target(), workers=1, http={'event_heartbeat': '100ms'})
        streams = [self.stream(daemon) for _ in range(20)]
        self.assertEqual(daemon.metric('outbox_event_readers'), 20)
        for stream in streams:
            stream.close()
        wait_until(lambda: daemon.metric('outbox_event_readers') == 0, 20, 'nobody')
        self.assertEqual(daemon.metric('outbox_event_readers_cut_total'), 0)

    def test_without_a_store_a_new_reader_is_told_to_come_back(self):
        store = self.own_store()
        daemon = self.daemon(self.target(), workers=1, store={'url': store.url})
        store.kill()
        wait_until(lambda: daemon.get('/readyz').status == 503, 10, 'the outage to be seen')
        answer = daemon.get('/v1/events')
        self.assertProblem(answer, 503, 'store_unavailable')
        self.assertTrue(answer.headers.get('retry-after'))
        store.start()
        wait_until(lambda: ready(daemon), 20, 'the store')
        stream = self.stream(daemon)
        entry = daemon.accept_patiently(session='s', kind='note', payload={})
        stream.wait(lambda events: types_of(events, entry)[-1:] == ['sent'])


def ready(daemon):
    with contextlib.suppress(OSError, harness.http.client.HTTPException):
        return daemon.get('/readyz').status == 200
    return False


class Ctl(Events):
    def follow(self, daemon, *arguments):
        process = subprocess.Popen([harness.program('outboxctl'), '--server', f'http://127.0.0.1:{daemon.port}', 'events', *arguments],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        lines = []
        thread = threading.Thread(target=lambda: lines.extend(iter(process.stdout.readline, '')), daemon=True)
        thread.start()

        def end():
            process.kill()
            process.wait()
            thread.join()
            process.stdout.close()
        self.addCleanup(end)
        return lines

    def test_outboxctl_follows_and_goes_on_after_the_api_died(self):
        daemon = self.daemon(self.target(), workers=1)
        people, scripts = self.follow(daemon, 'w', 's'), self.follow(daemon, '--json')
        wait_until(lambda: daemon.metric('outbox_event_readers') == 2, 20, 'two readers')
        first = daemon.accept_ok('s', kind='note', payload={})
        daemon.accept_ok('t', kind='note', payload={})
        wait_until(lambda: len(people) == 3 and len(scripts) == 6, 20, lambda: people + scripts)
        daemon.kill('api')
        wait_until(lambda: ready(daemon), 20, 'the API')
        second = daemon.accept_patiently(session='s', kind='note', payload={})
        wait_until(lambda: len(people) == 6 and len(scripts) == 9, 30, lambda: people + scripts)
        self.assertEqual([line.split()[1:4] for line in people],
                         [[what, 'w/s', entry] for entry in (first, second) for what in ('accepted', 'delivering', 'sent')])
        events = [json.loads(line) for line in scripts]
        resumed = self.follow(daemon, '--json', '--last', events[2]['id'])
        wait_until(lambda: len(resumed) == 6, 20, lambda: resumed)
        self.assertEqual([json.loads(line)['data'] for line in resumed], [event['data'] for event in events[3:]])

    def test_outboxctl_says_what_is_wrong(self):
        daemon = self.daemon(self.target(), workers=1)
        self.assertEqual(daemon.ctl('events', 'a b').returncode, 2)
        self.assertEqual(daemon.ctl('events', 'w', 's', 'x').returncode, 2)
        daemon.kill()
        gone = daemon.ctl('events')
        self.assertEqual(gone.returncode, 5)
        self.assertIn('no answer', gone.stderr)


if __name__ == '__main__':
    harness.main()
