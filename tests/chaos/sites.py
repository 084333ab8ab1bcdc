"""What chaos is done to: a site is a store with one outboxd (the store embedded), or two of them (the store outside, each node
on a wire of its own). All its programs are started through wrappers that preload the clock.
"""
import contextlib
import mmap
import os
import pathlib
import shutil
import signal
import struct
import time

import harness
from access import Access
from disk import limited_disk, mounted_disk
from harness import Daemon, OwnStore, Valkey
from kinds import TARGETS, declarations

RANGE_S = 60   # clocks show up to so much less or more than the time
FAR_AWAY = 10 ** 6

SETTINGS = {
    # Longer than a request and all that a clock may be stepped by: no lock ends because of a clock. What dead processes held
    # is found by their tokens.
    'lock_ttl': '3m', 'delivery_timeout': '3s', 'connect_timeout': '1s', 'verify_timeout': '1s', 'watchdog': '5s',
    # Nothing is given up: what ends as an error does so by design.
    'max_attempts': 1000, 'max_verify_attempts': 10000, 'max_transient_failures': 100000,
    'retry_backoff': '50ms', 'max_backoff': '500ms', 'max_retry_after': '2s', 'verify_delay': '100ms',
    'verify_backoff': '100ms', 'max_verify_backoff': '1s', 'repoll_after': '300ms', 'parked_sweep_interval': '2s',
    'ledger': {'lookup_timeout': '1s', 'poll_window': '500ms'}, 'drain_timeout': '5s', 'dedupe_ttl': '24h',
    'http': {'event_heartbeat': '1s'}, 'log': {'level': 'info'}, 'workers': 2,
}
# A circuit opens often and is soon tried again, else it would hide what else goes wrong. The last line's change with reloads.
TARGET_LIMITS = {'circuit_failures': 3, 'circuit_delay': '100ms', 'max_circuit_delay': '1s'}
RATES, IN_FLIGHT = (0, 40, 100), (4, 16, 512)

WRAPPER = """#!/bin/sh
trap '' XFSZ
export LD_PRELOAD='{shim}' OUTBOXD_CHAOS_CLOCK='{clock}'
exec '{program}' "$@"
"""


class Clock:
    """The wall clock of some processes: a file that clock_shim.c reads."""

    def __init__(self, folder, name):
        self.path = pathlib.Path(folder) / f'clock-{name}'
        self.path.write_bytes(bytes(mmap.PAGESIZE))
        with open(self.path, 'r+b') as file:
            self.map = mmap.mmap(file.fileno(), mmap.PAGESIZE)

    def set(self, offset_s):
        struct.pack_into('q', self.map, 0, int(offset_s * 10 ** 9))

    @property
    def offset(self):
        return struct.unpack_from('q', self.map, 0)[0] / 10 ** 9


def wrap(path, program, shim, clock):
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    path.write_text(WRAPPER.format(shim=shim, clock=clock.path, program=program))
    path.chmod(0o755)


def shim():
    found = harness.build_folder() / 'tests' / 'chaos' / 'libclock_shim.so'
    if not found.exists():
        raise FileNotFoundError(f'{found} is not built: run deploy/build')
    return found


class Node:
    """An outboxd that is started again whenever it has ended. authority: its API speaks TLS, by certificates of that one;
    None: it does not."""

    def __init__(self, site, name, settings, authority=None):
        self.site, self.name = site, name
        self.daemon = Daemon({**SETTINGS, 'node': name, 'kinds': declarations(), **settings}, {
            'ASAN_OPTIONS': 'abort_on_error=0:exitcode=99:detect_leaks=1:verify_asan_link_order=0'})
        self.port = self.daemon.port
        self.access = Access(self.daemon.folder, self.port, authority)
        self.daemon.settings.update(self.access.settings)
        self.set_limits(workers=2, rate=0, in_flight=16)
        self.clock = Clock(self.daemon.folder, 'node')
        for program in ('outboxd', 'outboxd-api', 'outboxd-worker'):
            wrap(self.daemon.libexec / program, harness.program(program), shim(), self.clock)
        self.not_before = 0.0     # when it may be started
        self.is_told_to_end = True
        self.starts = 0

    def set_limits(self, workers, rate, in_flight):
        """For the next start or reload."""
        self.daemon.settings.update(workers=workers, targets={**TARGET_LIMITS, 'ca_file': str(self.site.authority.ca), 'rate': rate,
                                                              'max_in_flight': in_flight})

    @property
    def is_running(self):
        return self.daemon.process is not None and self.daemon.process.poll() is None

    def keep(self):
        """Starts it if it is time to. Returns a complaint if it had ended by itself."""
        complaint = None
        if self.is_running:
            return None
        if not self.is_told_to_end:
            complaint = f'the supervisor of {self.name} ended by itself with {self.daemon.process.returncode}'
            self.is_told_to_end = True
        if time.monotonic() >= self.not_before:
            self.daemon.start(wait=False)
            self.is_told_to_end = False
            self.starts += 1
        return complaint

    def expect_end(self, for_s):
        """It will end, or has, by our doing; it stays away for so long."""
        self.is_told_to_end = True
        self.not_before = time.monotonic() + for_s

    def end(self):
        """Asks it to stop; its exit status, None if it does not."""
        self.not_before = time.monotonic() + FAR_AWAY
        self.is_told_to_end = True
        with contextlib.suppress(Exception):
            return self.daemon.stop(timeout=60)
        return None


class Site:
    """nodes, workspaces {target: name}, and the store: its process, whether it is kept running, a connection to it."""

    def __init__(self, name, targets, wires, authority):
        self.name = name
        self.targets = targets
        self.authority = authority  # of its targets that speak TLS, and of its API if that does
        self.workspaces = {target: f'{name}-{target.replace(" ", "-")}' for target in TARGETS}
        self.wires = wires  # to the targets, {name: Wire}
        self.nodes = []
        self.store_wires = []
        self.store_not_before = 0.0
        self.is_store_told_to_end = False
        self.disk = None

    def new_session(self, target, name):
        create = getattr(self.targets[target], 'create_session', None)
        return create() if create else name

    def set_targets(self):
        """Each workspace has the target of its kinds, through its wire."""
        for target in self.workspaces:
            answer = self.set_target(self.nodes[0], target)
            if answer.status != 200:
                raise AssertionError(f'the target {target} of {self.name} was refused: {answer}')

    def set_target(self, node, name, timeout=30):
        """With the secrets that are in force. The answer of that node."""
        target = self.targets[name]
        with contextlib.closing(harness.Client(node.port, timeout)) as client:
            return client.call('PUT', f'/v1/workspaces/{self.workspaces[name]}/target', {
                'url': f'{target.url.partition(":")[0]}://127.0.0.1:{self.wires[name].port}', 'secrets': target.secrets.in_force()})

    def keep(self):
        return [complaint for node in self.nodes for complaint in [node.keep()] if complaint]

    def wait_ready(self):
        for node in self.nodes:
            node.daemon.wait_ready(60)
            node.daemon.segments()

    def valkey(self):
        return Valkey(self.store_socket, timeout=60)

    def processes(self):
        """{pid: (node or None, role)} of all that belongs to it."""
        roles = {comm: role for role, comms in harness.ROLES.items() for comm in comms}
        return {pid: (node, roles.get(comm, comm)) for node in self.nodes for pid, comm in node.daemon.processes().items()}

    def logs(self):
        return {f'{node.name}.log': node.daemon.log_path for node in self.nodes}

    def close(self):
        for node in self.nodes:
            node.daemon.close()


class EmbeddedSite(Site):
    """One node that runs its store itself, its API under TLS."""

    def __init__(self, name, targets, wires, authority):
        super().__init__(name, targets, wires, authority)
        node = Node(self, f'{name}-node', {}, authority)
        self.nodes = [node]
        folder = node.daemon.folder / 'bin'
        folder.mkdir()
        self.store_clock = Clock(node.daemon.folder, 'store')
        wrap(folder / 'valkey-server', OwnStore.program, shim(), self.store_clock)
        node.daemon.environment['PATH'] = f'{folder}:{os.environ["PATH"]}'
        self.store_socket = node.daemon.state / 'store.sock'
        (node.daemon.state / 'store').mkdir(mode=0o700)
        self.disk = mounted_disk(node.daemon.state / 'store') or limited_disk(node.daemon.state / 'store', self.store_pid)

    def store_pid(self):
        pids = self.nodes[0].daemon.pids('store')
        return pids[0] if pids else None

    def expect_store_end(self, for_s):
        """The supervisor starts it again."""

    def logs(self):
        return {**super().logs(), f'{self.name}-valkey.log': self.nodes[0].daemon.state / 'store' / 'valkey.log'}

    def close(self):
        # The store's folder is a mount: it goes before the node's.
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        harness.wait_until(lambda: not self.processes(), 10, 'the death of all of them')
        self.disk.close()
        super().close()


class OutsideSite(Site):
    """Two nodes with a store that somebody else runs."""

    def __init__(self, name, targets, wires, authority, network):
        super().__init__(name, targets, wires, authority)
        self.store = OwnStore('--enable-debug-command', 'no')
        self.store_clock = Clock(self.store.folder, 'store')
        self.store.program = str(self.store.folder / 'valkey-server')
        wrap(pathlib.Path(self.store.program), OwnStore.program, shim(), self.store_clock)
        self.store_socket = self.store.path
        self.store.start()
        self.disk = limited_disk(self.store.folder, self.store_pid)
        self.store_wires = [network.wire(str(self.store.path), promise=5) for _ in range(2)]
        # One node reaches it by TCP as `valkey://`, as does the other: each by its own wire.
        self.nodes = [Node(self, f'{name}-{side}', {'store': {'url': f'valkey://127.0.0.1:{wire.port}'}})
                      for side, wire in zip(('north', 'south'), self.store_wires)]

    def store_pid(self):
        return self.store.process.pid if self.store.process.poll() is None else None

    def expect_store_end(self, for_s):
        self.store_not_before = time.monotonic() + for_s

    def keep(self):
        if self.store.process.poll() is not None and time.monotonic() >= self.store_not_before:
            self.store.spawn()
        return super().keep()

    def logs(self):
        return {**super().logs(), f'{self.name}-valkey.log': self.store.folder / 'log'}

    def close(self):
        super().close()
        self.store.close()
        shutil.rmtree(self.store.folder, ignore_errors=True)
