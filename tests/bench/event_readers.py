#!/usr/bin/env python3
"""What open event streams cost the API: memory and CPU of one process, and what they do to accepts.

  tests/bench/event_readers.py [--readers 5000] [--seconds 10] [--sessions 1000] [--workspaces 50] [--clients 16]

Nine of ten readers follow a session, the others a workspace; two follow everything. Needs a build (OUTBOXD_BUILD)."""
import argparse
import os
import pathlib
import resource
import select
import socket
import statistics
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'system'))
import harness  # noqa: E402

TICKS = os.sysconf('SC_CLK_TCK')


def memory_mib(pid):
    for line in pathlib.Path(f'/proc/{pid}/status').read_text().splitlines():
        if line.startswith('VmRSS'):
            return int(line.split()[1]) / 1024
    return 0


def cpu_seconds(pid):
    fields = pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(') ')[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class Readers:
    """All streams in one thread: counts events, keeps nothing."""

    def __init__(self, port, paths):
        self.epoll = select.epoll()
        self.sockets = {}
        self.begun = self.events = self.heartbeats = self.ended = 0
        for path in paths:
            sock = socket.create_connection(('127.0.0.1', port))
            sock.sendall(f'GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n'.encode())
            sock.setblocking(False)
            self.sockets[sock.fileno()] = sock
            self.epoll.register(sock.fileno(), select.EPOLLIN)
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            for number, _ in self.epoll.poll(0.5):
                try:
                    data = self.sockets[number].recv(1 << 18)
                except OSError:
                    data = b''
                if not data:
                    self.epoll.unregister(number)
                    self.ended += 1
                    continue
                self.begun += data.count(b'HTTP/1.1 200')
                self.events += data.count(b'event: queue.update')
                self.heartbeats += data.count(b'event: heartbeat')


def main():
    parser = argparse.ArgumentParser()
    for name, default in (('readers', 5000), ('seconds', 10), ('sessions', 1000), ('workspaces', 50), ('clients', 16)):
        parser.add_argument(f'--{name}', type=int, default=default)
    options = parser.parse_args()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit[1], limit[1]))
    harness.become_subreaper()
    target = harness.Target().start()
    daemon = harness.Daemon({'target': {'url': target.url}, 'kinds': harness.KINDS, 'session_cap': 1000000, 'workers': 1,
                             'log': {'level': 'info'}})
    try:
        daemon.start()
        measure(daemon, options)
    finally:
        daemon.segments()
        daemon.close()
        target.stop()


def accepts(daemon, options, seconds, what):
    """Some clients, each one accept after the other: how many a second, how long each took, what each cost the API."""
    api = daemon.pid('api')
    times, began, cpu = [], time.monotonic(), cpu_seconds(api)
    prefix = 'w' if what == 'with readers' else 'elsewhere'

    def client(first):
        for number in range(first, 1 << 30, options.clients):
            at = time.monotonic()
            if at - began > seconds:
                return
            session = number % options.sessions
            daemon.accept_ok(f's{session}', kind='note', payload={}, workspace=f'{prefix}{session % options.workspaces}')
            times.append(time.monotonic() - at)
    harness.in_parallel([lambda n=n: client(n) for n in range(options.clients)], options.clients)
    print(f'accepts {what}: {len(times) / seconds:.0f}/s, p50 {statistics.median(times) * 1000:.2f} ms, '
          f'p99 {statistics.quantiles(times, n=100)[98] * 1000:.2f} ms, '
          f'{1e6 * (cpu_seconds(api) - cpu) / len(times):.0f} us of the API each')


def measure(daemon, options):
    api = daemon.pid('api')
    accepts(daemon, options, options.seconds, 'without readers')
    time.sleep(2)
    before = memory_mib(api)
    paths = []
    for number in range(options.readers - 2):
        session = number % options.sessions
        workspace = f'/v1/workspaces/w{session % options.workspaces}'
        paths.append(f'{workspace}/events' if number % 10 == 0 else f'{workspace}/sessions/s{session}/events')
    began = time.monotonic()
    readers = Readers(daemon.port, paths + ['/v1/events'] * 2)
    harness.wait_until(lambda: readers.begun == options.readers, 120, lambda: f'{readers.begun} of {options.readers} streams')
    print(f'{options.readers} streams opened in {time.monotonic() - began:.1f} s')
    print(f'memory of the API: {before:.0f} MiB before, {memory_mib(api):.0f} MiB with them '
          f'({(memory_mib(api) - before) * 1024 / options.readers:.1f} KiB each)')
    cpu, beats, at = cpu_seconds(api), readers.heartbeats, time.monotonic()
    time.sleep(max(options.seconds, 16))
    print(f'quiet: {100 * (cpu_seconds(api) - cpu) / (time.monotonic() - at):.1f} % of a core, '
          f'{(readers.heartbeats - beats) / (time.monotonic() - at):.0f} heartbeats/s')
    accepts(daemon, options, options.seconds, 'that only two of the readers follow')
    cpu, events, at = cpu_seconds(api), readers.events, time.monotonic()
    accepts(daemon, options, options.seconds, 'with readers')
    spent = time.monotonic() - at
    print(f'load: {100 * (cpu_seconds(api) - cpu) / spent:.1f} % of a core, {(readers.events - events) / spent:.0f} events/s sent')
    print(f'memory of the API: {memory_mib(api):.0f} MiB; ended: {readers.ended}, cut: '
          f'{daemon.metric("outbox_event_readers_cut_total"):.0f}')


main()
