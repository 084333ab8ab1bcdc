"""Readers of event streams that count what they are told, over every restart."""
import collections

from check import Reading
from support_events import Follower


class Reader(Follower):
    """covers: whether a message is the stream's business."""

    def __init__(self, nodes, path, covers, log):
        super().__init__(nodes, path, timeout=15)
        self.reading = Reading(covers)
        self.types, self.vias = collections.Counter(), collections.Counter()
        self.log = log

    def note(self, event):
        data = event.data
        what = data['type']
        self.types[what] += 1
        if what == 'accepted':
            self.reading.accepted[data['entryID']] += 1
        elif what == 'sent':
            self.reading.sent[data['entryID']] += 1
            self.vias[data['via']] += 1
        self.log({'what': 'event', 'stream': self.path, 'id': event.own_id, **data})

    def read(self):
        self.reading.resets = len(self.resets)
        return self.reading


def readers_of(site, log):
    """One of everything; one of the workspace with the most messages."""
    workspace = site.workspaces['http']
    return {
        f'{site.name}, all': Reader(site.nodes, '/v1/events', lambda m: m.site == site.name, log),
        f'{site.name}, {workspace}': Reader(site.nodes, f'/v1/workspaces/{workspace}/events',
                                            lambda m: m.site == site.name and m.kind.target == 'http', log),
    }
