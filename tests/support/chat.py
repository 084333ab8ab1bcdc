"""A small chat service for the example deploy/examples/chat.yaml: what a well-behaved HTTP API does. It honours
Idempotency-Key (a repeat gets the first answer, and Idempotent-Replay: true), If-Match, speaks problem documents, and asks
to be left alone for a while with 503 or 429 and Retry-After when told so.

    with Chat() as chat: chat.url; chat.refuse(times, status, retry_after); chat.lose(times); chat.threads['t1']
"""
import http.server
import json
import socket
import threading
import urllib.parse


class Chat:
    def __init__(self):
        self.lock = threading.Lock()
        self.threads = {}      # thread -> [message], in the order of their creation
        self.reactions = {}    # message -> set of emoji
        self.read = {}
        self.settings = {}     # name -> {'value', 'version'}
        self.drafts = {}
        self.uploads = {}
        self.answers = {}      # Idempotency-Key -> the first answer
        self.requests = []     # (method, path, key) as they came
        self.replays = 0
        self.refusals = []     # (status, Retry-After) for the next requests
        self.to_lose = 0       # answers that are not given
        chat = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def log_message(self, *arguments):
                pass

            def handle_any(self):
                length = int(self.headers.get('Content-Length') or 0)
                body = self.rfile.read(length)
                chat.serve(self, body)

            do_GET = do_POST = do_PUT = do_DELETE = handle_any

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f'http://127.0.0.1:{self.server.server_port}/api'

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    # what a test tells it

    def refuse(self, times, status=503, retry_after=None):
        with self.lock:
            self.refusals += [(status, retry_after)] * times

    def lose(self, times):
        with self.lock:
            self.to_lose += times

    # the service

    def serve(self, handler, body):
        key = handler.headers.get('Idempotency-Key')
        with self.lock:
            self.requests.append((handler.command, handler.path, key))
            if self.refusals:
                status, retry_after = self.refusals.pop(0)
                headers = {'Retry-After': str(retry_after)} if retry_after is not None else {}
                return self.answer(handler, status, {'title': 'busy'}, headers, 'application/problem+json')
            if key in self.answers:
                self.replays += 1
                status, document, headers = self.answers[key]
                return self.answer(handler, status, document, {**headers, 'Idempotent-Replay': 'true'})
            status, document, headers = self.carry_out(handler, body)
            if status < 300:
                self.answers[key] = (status, document, headers)
                if self.to_lose:
                    self.to_lose -= 1
                    handler.close_connection = True
                    return handler.connection.shutdown(socket.SHUT_RDWR)
            kind = 'application/json' if status < 300 else 'application/problem+json'
            return self.answer(handler, status, document, headers, kind)

    @staticmethod
    def answer(handler, status, document, headers, kind='application/json'):
        text = b'' if document is None else json.dumps(document).encode()
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        if status != 204:
            handler.send_header('Content-Type', kind)
            handler.send_header('Content-Length', str(len(text)))
        handler.end_headers()
        if status != 204:
            handler.wfile.write(text)

    def carry_out(self, handler, body):
        method = handler.command
        parts = [urllib.parse.unquote(part) for part in handler.path.split('/')[2:]]
        try:
            payload = json.loads(body) if body else {}
        except ValueError:
            return 400, {'type': 'about:blank', 'code': 'not_json'}, {}
        if parts[0] == 'threads' and parts[2] == 'messages':
            return self.messages(method, parts[1], parts[3] if len(parts) > 3 else None, payload)
        if parts[0] == 'messages' and len(parts) == 4 and parts[2] == 'reactions':
            return self.reaction(method, parts[1], parts[3])
        if parts[0] == 'threads' and len(parts) == 3:
            (self.read if parts[2] == 'read' else self.drafts)[parts[1]] = payload
            return 204, None, {}
        if parts[0] == 'settings' and len(parts) == 2:
            return self.setting(parts[1], payload, handler.headers.get('If-Match'))
        if parts[0] == 'uploads':
            return self.upload(parts[1:], payload)
        return 404, {'type': 'https://chat.example/problems/no_such_place', 'detail': handler.path}, {}

    def messages(self, method, thread, message, payload):
        messages = self.threads.setdefault(thread, [])
        if message is None:
            if not payload.get('text'):
                return 422, {'code': 'empty_message', 'detail': 'a message has a text'}, {}
            made = {**payload, 'id': f'{thread}-{len(messages) + 1}'}
            messages.append(made)
            return 201, {'id': made['id']}, {}
        found = [m for m in messages if m['id'] == message]
        if not found:
            return 404, {'code': 'no_such_message'}, {}
        if method == 'DELETE':
            messages.remove(found[0])
            return 204, None, {}
        found[0].update(payload)
        return 200, {'id': message}, {}

    def reaction(self, method, message, emoji):
        reactions = self.reactions.setdefault(message, set())
        if method == 'DELETE':
            reactions.discard(emoji)
        else:
            reactions.add(emoji)
        return 204, None, {}

    def setting(self, name, payload, if_match):
        now = self.settings.get(name, {'version': 0})
        if now['version'] and if_match != str(now['version']):
            return 412, {'code': 'changed', 'current': {'version': str(now['version']), 'value': now['value']}}, {}
        self.settings[name] = {'version': now['version'] + 1, 'value': payload['value']}
        return 200, {'version': now['version'] + 1}, {}

    def upload(self, parts, payload):
        if not parts:
            upload = f'u{len(self.uploads) + 1}'
            self.uploads[upload] = {'name': payload['name'], 'finished': False}
            return 201, {'upload': upload}, {}
        if parts[0] not in self.uploads:
            return 404, {'code': 'no_such_upload'}, {}
        self.uploads[parts[0]]['finished'] = True
        return 200, {'attachment': f'a-{parts[0]}'}, {}
