"""Certificates for tests: an authority of our own and what it signs, made with the openssl program."""
import pathlib
import ssl
import subprocess


def run(*arguments):
    subprocess.run(['openssl', *map(str, arguments)], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.PIPE)


class Authority:
    """Files in `folder`; .ca is what those who trust it need."""

    def __init__(self, folder, name='test authority'):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.key, self.ca = self.folder / f'{name}.key', self.folder / f'{name}.pem'
        run('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '30',
            '-subj', f'/CN={name}', '-keyout', self.key, '-out', self.ca)

    def issue(self, name, days=30, purpose='serverAuth', hosts='DNS:localhost,IP:127.0.0.1', is_renewal=False):
        """(certificate, key). Negative days: it has run out already. A renewal keeps the key."""
        key, request, certificate = (self.folder / f'{name}.{end}' for end in ('key', 'csr', 'pem'))
        extensions = self.folder / f'{name}.ext'
        extensions.write_text(f'subjectAltName={hosts}\nextendedKeyUsage={purpose}\nbasicConstraints=CA:false\n')
        new_key = ('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', key)
        its_key = ('-new', '-key', key) if is_renewal else new_key
        run('req', *its_key, '-subj', f'/CN={name}', '-out', request)
        run('x509', '-req', '-in', request, '-CA', self.ca, '-CAkey', self.key, '-CAcreateserial', '-days', str(days),
            '-extfile', extensions, '-out', certificate)
        key.chmod(0o600)
        return certificate, key

    def context(self, certificate=None, key=None):
        """What a client needs that trusts only this authority, and shows a certificate if given."""
        context = ssl.create_default_context(cafile=str(self.ca))
        if certificate:
            context.load_cert_chain(certificate, key)
        return context
