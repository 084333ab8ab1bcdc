"""The kinds of messages that are sent during chaos, and what is promised of each: the only place where they are named."""
import dataclasses

import harness

SAME_KEY = 'again with the same key'   # may arrive more than once
ONCE = 'once'                          # is looked up before it is sent again
AT_MOST_ONCE = 'at most once'          # can't be looked up: an unknown outcome stays an error
REFUSED = 'never'                      # the target refuses it for good


@dataclasses.dataclass(frozen=True)
class Kind:
    name: str
    target: str        # which of the targets: http, agent, old agent, ledger
    arrives: str
    is_strict: bool
    settings: dict     # its declaration
    share: int = 1     # of the messages of its workspace
    error: str = ''    # the code of the error that it may, or must, end with


TIMEOUT = '3s'
# Bytes of a connection that ended are seen by a target up to 2.5 s later (run): absence counts after that.
SETTLE = {'timeout': TIMEOUT, 'verify_settle': '3s'}

KINDS = (
    Kind('note', 'http', SAME_KEY, True, {'url': '/notes', 'idempotent': True, 'timeout': TIMEOUT, 'max_in_flight': 20}, share=40),
    Kind('pay', 'http', ONCE, True, {'url': '/payments', 'verify': harness.LOOK_UP, **SETTLE}, share=40),
    Kind('fire', 'http', AT_MOST_ONCE, True, {'url': '/fires', 'timeout': TIMEOUT}, share=15, error='outcome_unknown'),
    Kind('poison', 'http', REFUSED, True, {'url': '/poison', 'idempotent': True, 'timeout': TIMEOUT}, share=5, error='poison'),
    Kind('prompt', 'agent', ONCE, False, {'executor': 'opencode', **SETTLE}),
    Kind('prompt', 'old agent', ONCE, False, {'executor': 'opencode', **SETTLE}),
    Kind('deliver', 'ledger', ONCE, True, {'executor': 'ledger', 'ordering': 'strict', **SETTLE}),
)
TARGETS = tuple(dict.fromkeys(kind.target for kind in KINDS))


def kinds_of(target):
    return [kind for kind in KINDS if kind.target == target]


def declarations():
    """For the configuration: each name once."""
    return list({kind.name: {'name': kind.name, **kind.settings} for kind in KINDS}.values())
