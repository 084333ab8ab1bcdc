"""Some of what a node has counted (its own metrics), for the page: that what should have been met was met. A node that was
started anew counts from 0.
"""
import collections
import contextlib
import re

import harness

SAMPLE = re.compile(r'outbox_(target_holds_total|target_circuit_transitions_total|http_limited_total)\{\w+="(\w+)"\} (\d+)')
NAMES = {'target_holds_total': 'held by', 'target_circuit_transitions_total': 'circuits to', 'http_limited_total': 'limited by'}


def read(node):
    """{words: count} of those above 0."""
    with contextlib.closing(harness.Client(node.port)) as client:
        text = client.call('GET', '/metrics').body.decode()
    return collections.Counter({f'{NAMES[name]} {label}': int(count) for name, label, count in SAMPLE.findall(text) if int(count)})
