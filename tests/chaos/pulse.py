"""How late a loop may be: what a busy machine delays counts against what the world promises (run), not for a fault of outboxd."""
import collections

EVERY = 0.05


class Pulse:
    """Of an asyncio loop. What is handled now came after `.oldest`, whatever kept the loop from seeing it: that is the time of a
    tick so far back that the loop has asked for events since."""

    def __init__(self, loop):
        self.loop = loop
        self.ticks = collections.deque([loop.time()], maxlen=3)
        loop.call_soon_threadsafe(self.tick)

    def tick(self):
        self.ticks.append(self.loop.time())
        self.loop.call_later(EVERY, self.tick)

    @property
    def oldest(self):
        return self.ticks[0]

    @property
    def lag(self):
        return self.loop.time() - self.oldest
