"""Whether a request carries a signature (Standard Webhooks) by a secret that its target had. An implementation of its own, so
that what outboxd signs is judged by something else.
"""
import base64
import hashlib
import hmac
import os

PREFIX = 'whsec_'
IN_FORCE = 2


def new_secret():
    return PREFIX + base64.b64encode(os.urandom(32)).decode()


class Secrets:
    """Of one target, the newest last. What is no longer in force is good here all the same: an attempt that was under way while
    the secrets changed is signed by those before."""

    def __init__(self):
        self.all = [new_secret()]

    def in_force(self):
        return self.all[:-IN_FORCE - 1:-1]

    def renew(self):
        """To be called before outboxd is told: whatever becomes of that, each signature is known."""
        self.all = self.all + [new_secret()]

    def have_signed(self, request):
        """The signature is one of this very request: its key, and its body."""
        entry, given = request.headers.get('webhook-id', ''), request.headers.get('webhook-signature', '').split()
        content = b'.'.join((entry.encode(), request.headers.get('webhook-timestamp', '').encode(), request.body))
        return entry == request.key and any(signature(secret, content) in given for secret in reversed(self.all))


def signature(secret, content):
    key = base64.b64decode(secret.removeprefix(PREFIX))
    return 'v1,' + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
