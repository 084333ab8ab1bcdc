"""How clients reach a node: tokens for whoever calls, and a certificate of an authority of our own that is renewed meanwhile."""
import hashlib
import secrets

import harness


class Access:
    """Of one node: files in its folder. authority: None: no TLS."""

    def __init__(self, folder, port, authority):
        self.authority = authority
        self.admin, self.client = (f'obx_{secrets.token_urlsafe(32)}' for _ in range(2))
        tokens = folder / 'tokens'
        tokens.write_text(''.join(f'sha256:{hashlib.sha256(token.encode()).hexdigest()} {role} * {role}\n'
                                  for role, token in (('admin', self.admin), ('client', self.client))))
        harness.tokens[port] = self.admin
        self.settings = {'token_file': str(tokens)}
        if authority:
            harness.tls_contexts[port] = authority.context()
            self.name = folder.name  # the folder's name is nobody else's
            certificate, key = authority.issue(self.name)
            self.settings['tls'] = {'certificate': str(certificate), 'key': str(key)}

    @property
    def client_headers(self):
        return {'Authorization': f'Bearer {self.client}'}

    def renew_certificate(self):
        """Under the same key: a node that starts at this very moment finds a pair that fits."""
        if self.authority:
            self.authority.issue(self.name, is_renewal=True)
