"""A network that misbehaves: wires between a client and a server that cut, delay, half-close, swallow, refuse and hold back.

One thread with an asyncio loop. What a wire promises even at its worst: bytes of a connection that ended on the client's
side reach the server within `promise` seconds or never, as verify_settle asks of a real network.
"""
import asyncio
import collections
import contextlib
import socket
import struct
import threading

import harness
from pulse import Pulse

LOST = object()


class Side(asyncio.Protocol):
    """One end of a link. `queue` holds what it received and the other end has not got yet: (due, bytes, None for EOF, LOST)."""

    def __init__(self, link):
        self.link = link
        self.peer = None
        self.transport = None
        self.queue = collections.deque()
        self.ended = None   # when it said EOF or was lost
        self.is_told_eof = False
        self.timer = None

    def connection_made(self, transport):
        self.transport = transport
        self.link.side_is_up(self)

    def data_received(self, data):
        self.receive(data)

    def eof_received(self):
        self.end(None)
        return True  # it may still be written to

    def connection_lost(self, error):
        self.transport = None
        self.end(LOST)

    def end(self, how):
        self.ended = self.ended or self.link.wire.network.pulse.oldest
        self.receive(how)

    def receive(self, what):
        self.queue.append((self.link.now() + self.link.wire.latency, what))
        self.flush()

    def abort(self, by_reset=False):
        transport, self.transport = self.transport, None
        if not transport:
            return
        if by_reset:
            sock = transport.get_extra_info('socket')
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        self.ended = self.ended or self.link.now()
        transport.abort()

    def say_eof(self):
        if self.transport and not self.transport.is_closing() and not self.is_told_eof:
            self.is_told_eof = True
            with contextlib.suppress(OSError):  # reset meanwhile
                self.transport.write_eof()

    def flush(self):
        """Passes on what is due, as the wire allows."""
        wire, now = self.link.wire, self.link.now()
        while self.queue and self.peer.transport and not wire.holds(self):
            due, what = self.queue[0]
            if due > now:
                if not self.timer:
                    self.timer = wire.network.loop.call_at(due, self.on_time)
                return
            self.queue.popleft()
            if isinstance(what, bytes) and self.is_too_late(now):
                wire.counts['bytes too late to arrive'] += len(what)
                self.queue.clear()
                self.peer.abort()
            elif what is LOST:
                self.peer.transport.close()
            elif what is None:
                self.peer.say_eof()
                if self.peer.ended:
                    self.peer.transport.close()
            else:
                self.link.pass_on(self, what)

    def is_too_late(self, now):
        """Also if this loop was so late that the client may have ended long ago."""
        wire = self.link.wire
        if self is not self.link.client:
            return False
        if self.ended and not wire.is_late_permitted:
            return True
        return (now - self.ended if self.ended else wire.network.pulse.lag) > wire.promise

    def on_time(self):
        self.timer = None
        self.flush()


class Link:
    def __init__(self, wire):
        self.wire = wire
        self.client, self.server = Side(self), Side(self)
        self.client.peer, self.server.peer = self.server, self.client
        self.bytes_left = None   # before it is cut

    def now(self):
        return self.wire.network.loop.time()

    def side_is_up(self, side):
        if side is self.client:
            self.wire.links.add(self)
            self.wire.counts['connections'] += 1
            asyncio.ensure_future(self.connect())
        else:
            self.client.flush()

    async def connect(self):
        loop, upstream = self.wire.network.loop, self.wire.upstream
        try:
            if isinstance(upstream, str):
                await loop.create_unix_connection(lambda: self.server, upstream)
            else:
                await loop.create_connection(lambda: self.server, '127.0.0.1', upstream)
        except OSError:
            self.cut()

    def pass_on(self, source, data):
        if self.bytes_left is not None:
            data, self.bytes_left = data[:self.bytes_left], self.bytes_left - len(data)
        if not source.peer.is_told_eof and not source.peer.transport.is_closing():
            source.peer.transport.write(data)  # else it is lost
        if self.bytes_left is not None and self.bytes_left <= 0:
            self.cut()

    def cut(self, by_reset=False):
        self.client.abort(by_reset)
        self.server.abort(by_reset)

    def is_over(self):
        return not self.client.transport and not self.server.transport


class Wire:
    """A listener (port) before a server (a port, or the path of a socket). Faults are called from any thread."""

    def __init__(self, network, upstream, promise):
        self.network = network
        self.upstream = upstream
        self.promise = promise
        self.links = set()
        self.counts = collections.Counter()
        self.latency = 0.0
        self.is_black = False
        self.is_holding = False
        self.is_late_permitted = True
        self.listener = None
        self.port = harness.free_port()  # the same one after it was refused for a while
        network.ask(self.open())

    async def open(self):
        if self.listener and self.listener.is_serving():
            return
        self.listener = await self.network.loop.create_server(lambda: Link(self).client, '127.0.0.1', self.port, backlog=512)

    def holds(self, side):
        return self.is_black or (self.is_holding and side is side.link.client)

    def each_link(self):
        self.links = {link for link in self.links if not link.is_over()}
        return list(self.links)

    def flush(self):
        for link in self.each_link():
            link.client.flush()
            link.server.flush()

    # faults

    def cut(self, share, by_reset):
        """Every link, or a share of them (by their age)."""
        def act():
            links = self.each_link()
            for link in links[:max(1, int(len(links) * share))]:
                self.counts['links cut'] += 1
                link.cut(by_reset)
        self.network.act(act)

    def truncate(self, size):
        """Every link is cut after so many bytes more, in whatever direction they go."""
        def act():
            for link in self.each_link():
                self.counts['links cut in the middle'] += 1
                link.bytes_left = size
        self.network.act(act)

    def half_close(self, to_client):
        def act():
            for link in self.each_link():
                self.counts['links half-closed'] += 1
                (link.client if to_client else link.server).say_eof()
        self.network.act(act)

    def delay(self, latency):
        def act():
            self.latency = latency
        self.network.act(act)

    def black_hole(self, is_black):
        def act():
            self.is_black = is_black
            self.flush()
        self.network.act(act)

    def refuse(self):
        """Links are cut and no new one is taken."""
        def act():
            self.listener.close()
            for link in self.each_link():
                link.cut()
        self.network.act(act)

    def take_again(self):
        self.network.ask(self.open())

    def permit_late(self, is_permitted):
        """Whether bytes of a connection that ended may still arrive."""
        async def act():
            self.is_late_permitted = is_permitted
        self.network.ask(act())

    def hold_back(self):
        """From now on requests stay in the network."""
        def act():
            self.is_holding = True
        self.network.act(act)

    def let_go(self, late):
        """Clients lose their links; what was held back arrives `late` seconds afterwards all the same."""
        def act():
            self.is_holding = False
            for link in self.each_link():
                waiting = list(link.client.queue)
                link.client.abort()
                link.client.queue = collections.deque((link.now() + late, what) for _, what in waiting)
                link.client.queue.append((link.now() + late, LOST))
                self.counts['requests that arrived after their connection'] += len(waiting)
                link.client.flush()
        self.network.act(act)


class Network:
    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.pulse = Pulse(self.loop)
        self.thread = threading.Thread(target=self.loop.run_forever, name='network', daemon=True)
        self.thread.start()

    def wire(self, upstream, promise):
        return Wire(self, upstream, promise)

    def act(self, function):
        self.loop.call_soon_threadsafe(function)

    def ask(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(10)

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
