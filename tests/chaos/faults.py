"""Carries out what plan.py says, and undoes it. Each fault is a function of the world and the deed; it returns what it met, or
None where there was nothing to meet (a process that is down already).
"""
import collections
import contextlib
import heapq
import http.client
import os
import random
import signal
import threading
import time

import harness
from sites import IN_FLIGHT, RANGE_S, RATES
import targets

KEEP_EVERY = 0.1
LATE_S = 1.2     # what the way to a target held back arrives so much later: within its wire's promise


class World:
    """sites, the wires to the targets and their moods; what is to be undone and when; what was done."""

    def __init__(self, sites, wires, moods, log):
        self.sites = {site.name: site for site in sites}
        self.wires, self.moods = wires, moods
        self.log = log
        self.undo = []          # heap of (time, number, function)
        self.undo_number = 0
        self.lock = threading.Lock()
        self.done = collections.Counter()
        self.missed = collections.Counter()
        self.faults_found = []
        self.is_over = threading.Event()
        self.keeper = threading.Thread(target=self.keep_on, name='keeper', daemon=True)

    # time

    def later(self, seconds, function):
        with self.lock:
            self.undo_number += 1
            heapq.heappush(self.undo, (time.monotonic() + seconds, self.undo_number, function))

    def undo_due(self, all_of_it=False):
        while True:
            with self.lock:
                if not self.undo or (self.undo[0][0] > time.monotonic() and not all_of_it):
                    return
                _, _, function = heapq.heappop(self.undo)
            function()

    def keep_on(self):
        """Starts again what ended, undoes what is due."""
        while not self.is_over.wait(KEEP_EVERY):
            try:
                self.keep()
            except Exception as error:
                self.complain(f'the keeper: {error!r}')

    def keep(self):
        self.undo_due()
        for site in self.sites.values():
            for complaint in site.keep():
                self.complain(complaint)

    def complain(self, text):
        self.faults_found.append(text)
        self.log({'what': 'complaint', 'text': text, 'time': time.monotonic()})

    # doing

    def carry_out(self, deed):
        met = FAULTS[deed.name](self, deed)
        (self.missed if met is None else self.done)[deed.name] += 1
        self.log({'what': 'fault', 'number': deed.number, 'name': deed.name, 'place': deed.place, 'lasts': round(deed.lasts, 2),
                  'met': met, 'time': time.monotonic()})

    def heal(self):
        """Everything goes on, and goes on well. Clocks stay at the latest that they ever showed: what waits for a time is due."""
        for mood in self.moods.values():
            mood.is_good = True
        self.undo_due(all_of_it=True)
        for site in self.sites.values():
            for pid in site.processes():
                send(pid, signal.SIGCONT)
            site.disk.free()
            for node in site.nodes:
                node.not_before = 0
            site.store_not_before = 0
        with nothing_late(self.wires.values()):
            for site in self.sites.values():
                for clock in (site.store_clock, *(node.clock for node in site.nodes)):
                    clock.set(RANGE_S)


def send(pid, what):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, what)


def choose(things, draw):
    return things[int(draw * len(things))] if things else None


# Processes

def victims(world, deed, role):
    """The processes of one role in one node of the site, or the node's own store."""
    site = world.sites[deed.place]
    node = choose(site.nodes, deed.draw)
    if role == 'store':
        pid = site.store_pid()
        return site, node, [pid] if pid else []
    found = [pid for pid, (owner, role_of) in sorted(site.processes().items()) if role_of == role and owner is node]
    return site, node, found


def kill(role):
    def act(world, deed):
        site, node, found = victims(world, deed, role)
        pid = choose(found, deed.pick)
        if pid is None:
            return None
        if role == 'supervisor':
            node.expect_end(deed.lasts)
        elif role == 'store':
            site.expect_store_end(deed.lasts)
        send(pid, signal.SIGKILL)
        return f'{node.name} {pid}'
    return act


def kill_node(world, deed):
    """All at once, a store that is its own included."""
    site = world.sites[deed.place]
    node = choose(site.nodes, deed.draw)
    node.expect_end(deed.lasts)
    pids = node.daemon.kill(wait=False)
    return f'{node.name} {len(pids)} processes' if pids else None


def stop(role):
    def act(world, deed):
        _, node, found = victims(world, deed, role)
        pid = choose(found, deed.pick)
        if pid is None:
            return None
        send(pid, signal.SIGSTOP)
        world.later(deed.lasts, lambda: send(pid, signal.SIGCONT))
        return f'{node.name} {pid}'
    return act


def stop_node(world, deed):
    site = world.sites[deed.place]
    node = choose(site.nodes, deed.draw)
    pids = [pid for pid, (owner, _) in site.processes().items() if owner is node]
    for pid in pids:
        send(pid, signal.SIGSTOP)
        world.later(deed.lasts, lambda pid=pid: send(pid, signal.SIGCONT))
    return f'{node.name} {len(pids)} processes' if pids else None


# Signals to the supervisor

def signalled(number, ends=False, prepare=None):
    def act(world, deed):
        node = choose(world.sites[deed.place].nodes, deed.draw)
        what = number(deed) if callable(number) else number
        # One that has only just begun would be ended by a signal that it does not handle yet.
        if not node.is_running or not (ends or harness.handles(node.daemon.process.pid, what)):
            return None
        if prepare:
            prepare(world, node, deed)
        if ends:
            node.expect_end(deed.lasts)
        send(node.daemon.process.pid, what)
        return node.name
    return act


def other_limits(_world, node, deed):
    dice = random.Random(deed.pick)
    node.set_limits(dice.randint(1, 3), dice.choice(RATES), dice.choice(IN_FLIGHT))
    node.access.renew_certificate()
    node.daemon.write_config()


def bad_configuration(world, node, _deed):
    node.daemon.config.write_text('workers: many\ncolour: red\n')
    world.later(1, node.daemon.write_config)


# The store

def on_store(command):
    def act(world, deed):
        site = world.sites[deed.place]
        try:
            with contextlib.closing(harness.Valkey(site.store_socket, timeout=1 / harness.SLOW)) as valkey:
                valkey(command)
        except (OSError, harness.StoreError):
            return None
        return site.name
    return act


def disk_full(world, deed):
    site = world.sites[deed.place]
    site.disk.fill()
    world.later(deed.lasts, site.disk.free)
    return f'{site.name}: {site.disk.how}'


# Clocks. What was sent before its connection's end arrives, and is seen, within the promises of wires and targets by the true time:
# no clock is stepped while such requests may be on their way, since absence at a target counts by the store's clock.

@contextlib.contextmanager
def nothing_late(wires):
    """Within it no target sees a request whose connection ended before it."""
    for wire in wires:
        wire.permit_late(False)
    time.sleep(targets.PROMISE_S)  # what had got through
    yield
    time.sleep(max(wire.promise for wire in wires))  # what was still on its way has been dropped
    for wire in wires:
        wire.permit_late(True)


def step_store_clock(world, deed):
    site = world.sites[deed.place]
    with nothing_late(world.wires.values()):
        site.store_clock.set(RANGE_S * (2 * deed.pick - 1))
    return f'{site.name} to {site.store_clock.offset:+.0f} s'


def step_node_clock(world, deed):
    node = choose(world.sites[deed.place].nodes, deed.draw)
    node.clock.set(RANGE_S * (2 * deed.pick - 1))
    return f'{node.name} to {node.clock.offset:+.0f} s'


# Wires

def store_wire(world, deed):
    return choose(world.sites[deed.place].store_wires, deed.draw)


def target_wire(world, deed):
    return world.wires[deed.place]


def on_wire(find, act, undo=None):
    def carry_out(world, deed):
        wire = find(world, deed)
        act(wire, deed)
        if undo:
            world.later(deed.lasts, lambda: undo(wire))
        return deed.place
    return carry_out


def wire_faults(prefix, find):
    return {
        f'{prefix}: cut': on_wire(find, lambda w, d: w.cut(0.3 + d.pick, by_reset=d.draw < 0.5)),
        f'{prefix}: truncate': on_wire(find, lambda w, d: w.truncate(int(1 + 200 * d.pick))),
        f'{prefix}: half-close': on_wire(find, lambda w, d: w.half_close(to_client=d.pick < 0.5)),
        f'{prefix}: delay': on_wire(find, lambda w, d: w.delay(0.02 + 0.4 * d.pick), lambda w: w.delay(0)),
        f'{prefix}: black hole': on_wire(find, lambda w, d: w.black_hole(True), lambda w: w.black_hole(False)),
        f'{prefix}: refuse': on_wire(find, lambda w, d: w.refuse(), lambda w: w.take_again()),
        f'{prefix}: late': on_wire(find, lambda w, d: w.hold_back(), lambda w: w.let_go(LATE_S)),
    }


def mood(world, deed):
    found = world.moods[deed.place]
    found.own = choose(list(targets.MOODS), deed.pick)
    world.later(deed.lasts, lambda: setattr(found, 'own', None))
    return f'{deed.place}: {found.own}'


def new_secret(world, deed):
    """Also while requests are signed by those before, and whether the answer comes or not."""
    site = world.sites[deed.place]
    name = choose(list(site.workspaces), deed.pick)
    site.targets[name].secrets.renew()
    try:
        return f'{site.name} {name}: {site.set_target(choose(site.nodes, deed.draw), name, timeout=1 / harness.SLOW).status}'
    except (OSError, http.client.HTTPException):
        return f'{site.name} {name}: no answer'


FAULTS = {
    **{f'kill {role}': kill(role) for role in ('worker', 'api', 'supervisor', 'store')},
    **{f'stop {role}': stop(role) for role in ('worker', 'api', 'supervisor', 'store')},
    'kill node': kill_node,
    'stop node': stop_node,
    'TERM': signalled(signal.SIGTERM, ends=True),
    'QUIT': signalled(signal.SIGQUIT, ends=True),
    'HUP, other limits': signalled(signal.SIGHUP, prepare=other_limits),
    'HUP, bad configuration': signalled(signal.SIGHUP, prepare=bad_configuration),
    'USR2': signalled(signal.SIGUSR2),
    'TTIN or TTOU': signalled(lambda deed: signal.SIGTTIN if deed.pick < 0.5 else signal.SIGTTOU),
    'rewrite of the AOF': on_store('BGREWRITEAOF'),
    'disk full': disk_full,
    'step store clock': step_store_clock,
    'step node clock': step_node_clock,
    **wire_faults('store', store_wire),
    **wire_faults('target', target_wire),
    'target: mood': mood,
    'target: new secret': new_secret,
}
