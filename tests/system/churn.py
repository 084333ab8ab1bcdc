#!/usr/bin/env python3
"""Descriptors and memory stay flat while messages come and go: two outboxds under load, one left in peace and one reloaded
again and again. Prints a line for each process and minute, then the trends; exit status 1 if one is beyond its bound.

  OUTBOXD_BUILD=build-release tests/system/churn.py                # ten minutes
  OUTBOXD_BUILD=build-release tests/system/churn.py --minutes 60

Load: clients that connect, send, list, read events and go; targets that answer, refuse, hang up; deliveries, retries, look-ups.
What a store keeps for a while (markers, tombstones, events) it keeps for seconds here, so that it has to be flat, too.
Judged over all but the first fifth (caches fill):
  memory       the trend of anonymous memory, as growth over the whole judged time: at most 1 MiB, of the store 4 MiB
  descriptors  the least of the last third: at most that of the first third (the least: what load needs comes and goes)
"""
import argparse
import collections
import contextlib
import http.client
import os
import pathlib
import random
import signal
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import harness  # noqa: E402
from harness import KINDS, FAST, Client, Daemon, Target  # noqa: E402

SAMPLE_EVERY = 5
RELOAD_EVERY = 15
GROWTH_MAX_KB = {'store': 4096}
GROWTH_MAX_KB_ELSE = 1024
WARM_UP = 0.2

Sample = collections.namedtuple('Sample', 'at fds rss pss anonymous')


def sample(pid, at):
    """None once it is gone."""
    try:
        fds = len(os.listdir(f'/proc/{pid}/fd'))
        values = {}
        for line in pathlib.Path(f'/proc/{pid}/smaps_rollup').read_text().splitlines()[1:]:
            name, _, rest = line.partition(':')
            values[name] = int(rest.split()[0])
    except OSError:
        return None
    return Sample(at, fds, values['Rss'], values['Pss'], values['Anonymous'])


class Load:
    """Threads that are clients of one daemon until stop()."""

    def __init__(self, daemon, clients):
        self.daemon = daemon
        self.accepted = 0
        self.stopped = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(n,), daemon=True) for n in range(clients)]
        for thread in self.threads:
            thread.start()

    def run(self, number):
        chance = random.Random(number)
        turn = 0
        while not self.stopped.is_set():
            client = Client(self.daemon.port)
            with contextlib.suppress(OSError, http.client.HTTPException):  # an API that goes says so; the next turn has a new one
                for _ in range(chance.randrange(1, 20)):
                    turn += 1
                    path = f'/v1/workspaces/w{number % 3}/sessions/s{number}-{turn % 50}/entries'
                    kind = chance.choice(('note', 'note', 'pay'))
                    answer = client.call('POST', path, {'kind': kind, 'clientMessageID': f'{number}-{turn}', 'payload': {'text': 'x' * 300}})
                    self.accepted += answer.status == 202
                client.call('GET', path)
                client.call('GET', '/metrics')
            client.close()
            with contextlib.suppress(OSError, http.client.HTTPException), self.daemon.socket() as events:
                events.sendall(harness.raw_request('GET', '/v1/events'))
                events.recv(4096)
            self.stopped.wait(0.05)

    def stop(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join()


def links(pid):
    """What its descriptors are."""
    found = []
    for fd in os.listdir(f'/proc/{pid}/fd'):
        with contextlib.suppress(OSError):
            found.append(os.readlink(f'/proc/{pid}/fd/{fd}'))
    return found


def misbehave(target):
    target.script(every=17, status=503)
    target.script(every=41, close='after-request')


def start(target, **settings):
    misbehave(target)
    return Daemon({**FAST, 'kinds': KINDS, 'target': {'url': target.url}, 'dedupe_ttl': '5s', 'events_max': 1000,
                   'log': {'level': 'warn'}, **settings}).start()


def role_of(comm):
    return next((role for role, names in harness.ROLES.items() if comm in names), comm)


def trend_kb_per_minute(samples):
    """Least squares."""
    times = [s.at / 60 for s in samples]
    mean_time, mean = sum(times) / len(times), sum(s.anonymous for s in samples) / len(samples)
    spread = sum((t - mean_time) ** 2 for t in times)
    return sum((t - mean_time) * (s.anonymous - mean) for t, s in zip(times, samples)) / spread if spread else 0.0


def judge(name, samples, seconds):
    """The line about one process, and whether it is within its bounds."""
    judged = [s for s in samples if s.at >= seconds * WARM_UP]
    third = max(1, len(judged) // 3)
    first, last = (min(s.fds for s in part) for part in (judged[:third], judged[-third:]))
    growth = trend_kb_per_minute(judged) * (judged[-1].at - judged[0].at) / 60
    bound = GROWTH_MAX_KB.get(name.split()[1], GROWTH_MAX_KB_ELSE)
    good = growth <= bound and last <= first
    print(f'{name:24} memory {growth:+8.0f} KB in {(judged[-1].at - judged[0].at) / 60:.1f} min (at most {bound}), '
          f'descriptors at least {first} then {last}: {"flat" if good else "NOT FLAT"}')
    return good


def watch(daemons, seconds):
    """{(daemon, role, pid): samples}; a line for each process that lives and minute."""
    found = collections.defaultdict(list)
    begun = time.monotonic()
    reloaded = begun
    minute = 0
    print(f'{"minute":>6} {"process":24} {"pid":>8} {"fds":>5} {"RSS KB":>8} {"PSS KB":>8} {"heap KB":>8}')
    while time.monotonic() - begun < seconds:
        time.sleep(min(SAMPLE_EVERY, seconds / 10))
        at = time.monotonic() - begun
        if time.monotonic() - reloaded > RELOAD_EVERY:
            reloaded = time.monotonic()
            daemons['reloaded'].process.send_signal(signal.SIGHUP)
        for name, daemon in daemons.items():
            for pid, comm in daemon.processes().items():
                seen = sample(pid, at)
                if seen:
                    found[name, role_of(comm), pid].append(seen)
        if at // 60 > minute:
            minute = int(at // 60)
            for (name, role, pid), samples in sorted(found.items()):
                s = samples[-1]
                if s.at == at and (name == 'steady' or role in ('supervisor', 'store')):
                    print(f'{minute:6} {name + " " + role:24} {pid:8} {s.fds:5} {s.rss:8} {s.pss:8} {s.anonymous:8}', flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--minutes', type=float, default=10)
    parser.add_argument('--clients', type=int, default=4, help='of each of the two')
    options = parser.parse_args()
    seconds = options.minutes * 60
    harness.become_subreaper()
    with contextlib.ExitStack() as stack:
        daemons, loads = {}, {}
        for name in ('steady', 'reloaded'):
            target = Target().start()
            stack.callback(target.stop)
            daemons[name] = start(target)
            stack.callback(daemons[name].close)
            daemons[name].wait_workers()
            loads[name] = Load(daemons[name], options.clients)
        found = watch(daemons, seconds)
        for load in loads.values():
            load.stop()
        print(f'\naccepted: {", ".join(f"{name} {load.accepted}" for name, load in loads.items())}; '
              f'reloads put into force: {len({pid for name, role, pid in found if (name, role) == ("reloaded", "api")}) - 1}')
        # Those that lived all the time: reloads replace the others.
        lived = [(f'{name} {role}', samples) for (name, role, pid), samples in sorted(found.items())
                 if samples[0].at < seconds * WARM_UP and samples[-1].at > seconds * 0.95]
        good = [judge(name, samples, seconds) for name, samples in lived]
        for name, daemon in daemons.items():
            if daemon.process.poll() is not None:
                print(f'{name}: the supervisor ended')
                good.append(False)
    return 0 if all(good) and len(good) >= 7 else 1


if __name__ == '__main__':
    sys.exit(main())
