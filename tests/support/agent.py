"""A scripted agent: speaks the part of opencode's HTTP API that outboxd uses, as tests/support/opencode/README.md describes
it, and obeys the rules of target.py, for what the real server can't be made to do (answers that never come, cuts at a
chosen moment, old versions, huge transcripts, clocks that are wrong). Records every request, like every target.

In a test:  with Agent(version='1.17.19') as agent: ses = agent.create_session(); agent.script(method='POST', path='/session/*', …)

What a rule's `store` means here, on a POST of a prompt: true: the message is stored on arrival, whatever is answered and
when; "empty": without its parts; false: not at all; default: stored with a 2xx answer. What was not stored on arrival a
test may store later with store_post().
"""
import base64
import json
import re
import secrets
import threading
import time
import urllib.parse

from target import Rule, Target

JSON = {'Content-Type': 'application/json'}
WEB_PAGE = 200, {'Content-Type': 'text/html;charset=UTF-8'}, b'<!doctype html><html><body>opencode</body></html>'
MESSAGES = re.compile(r'/session/([^/]+)/message$')
MESSAGE = re.compile(r'/session/([^/]+)/message/([^/]+)$')


def encoded(status, value, **headers):
    return status, dict(JSON, **headers), json.dumps(value).encode()


def not_found(what):
    return encoded(404, {'name': 'NotFoundError', 'data': {'message': what}})


class Agent(Target):
    """version: what /global/health says; None: it says nothing of it. has_cursor: false for the oldest ones, which give the
    newest `limit` messages and no way to the rest. ahead: seconds by which its clock is ahead of ours.
    password: asks for basic authentication. after_store: called in the loop's thread with each session whose prompt
    was just stored. first_posts: rules for the first POST of each entry, in the order in which entries come.
    later_pages: (status, body) of answers to pages that are asked for by a cursor, one each."""

    def __init__(self, version='1.18.33', has_cursor=True, ahead=0.0, password=None, after_store=None, **options):
        super().__init__(idempotent=False, **options)
        self.version = version
        self.has_cursor = has_cursor
        self.ahead = ahead
        self.password = password
        self.after_store = after_store
        self.username = 'opencode'
        self.first_posts = []
        self.later_pages = []
        self._seen = set()       # entries of which a POST came
        self._sessions = {}      # ID -> [{info, parts}, …], oldest first
        self._cursors = {}       # opaque text -> (session, ID of the page's oldest message)
        self._transcripts = threading.RLock()
        self._made = 0

    # for tests

    def create_session(self):
        session = 'ses_' + secrets.token_hex(8)
        with self._transcripts:
            self._sessions[session] = []
        return session

    def now_ms(self):
        return int((time.time() + self.ahead) * 1000)

    def add(self, session, text, role='user', at_ms=None, message_id=None, parts=None):
        """A message that did not come through outboxd; its ID. Times may lie in the past: it goes to its place in time."""
        at_ms = self.now_ms() if at_ms is None else at_ms
        with self._transcripts:
            self._made += 1
            message_id = message_id or f'msg_{at_ms * 4096 + self._made % 4096 & 0xffffffffffff:012x}{secrets.token_hex(7)}'
            if parts is None:
                parts = [{'id': f'prt_{message_id[4:]}', 'type': 'text', 'text': text}]
            transcript = self._sessions[session]
            place = len(transcript)
            while place and transcript[place - 1]['info']['time']['created'] > at_ms:
                place -= 1
            transcript.insert(place, {'info': {'id': message_id, 'sessionID': session, 'role': role,
                                               'time': {'created': at_ms}}, 'parts': parts})
        return message_id

    def forget(self, session, message_id):
        """A message is taken out of the transcript."""
        with self._transcripts:
            self._sessions[session] = [m for m in self._sessions[session] if m['info']['id'] != message_id]

    def fill(self, session, count, text='filler', from_ms=None, every_ms=1, role='user'):
        """`count` messages one after the other, the first at from_ms (default: now)."""
        from_ms = self.now_ms() if from_ms is None else from_ms
        for n in range(count):
            self.add(session, f'{text} {n}', role, from_ms + n * every_ms)

    def store_post(self, request, parts=True):
        """Stores what a recorded POST asked for, as the server does it: given IDs replace what has them, others append."""
        session = MESSAGES.search(request.path)[1]
        body = request.json()
        given = body.get('messageID')
        with self._transcripts:
            message = next((m for m in self._sessions[session] if m['info']['id'] == given), None) if given else None
            if message is None:
                given = self.add(session, None, message_id=given, parts=[])
                message = next(m for m in self._sessions[session] if m['info']['id'] == given)
            message['info']['time']['created'] = self.now_ms()
            message['info']['model'] = body.get('model')
            for part in body['parts'] if parts else []:
                old = next((p for p in message['parts'] if p['id'] == part.get('id')), None)
                if old:
                    old.update(part)
                else:
                    message['parts'].append(dict({'id': 'prt_' + secrets.token_hex(13)}, **part))
        return message

    def transcript(self, session):
        with self._transcripts:
            return json.loads(json.dumps(self._sessions[session]))

    def user_parts(self, session):
        return [[part['text'] for part in message['parts']] for message in self.transcript(session)
                if message['info']['role'] == 'user']

    def user_texts(self, session):
        return [''.join(parts) for parts in self.user_parts(session)]

    def prompts(self, session=None, text=None):
        """The POSTs of prompts, those of one session, those with exactly this text."""
        found = [r for r in self.posts() if MESSAGES.search(r.path) and r.end]
        return [r for r in found if (session is None or MESSAGES.search(r.path)[1] == session)
                and (text is None or r.json()['parts'][0]['text'] == text)]

    def probes(self):
        return self.requests('/global/health', method='GET')

    def message_lookups(self, session=None):
        """GETs of one message by its ID."""
        return [r for r in self.requests(method='GET') if (found := MESSAGE.search(r.path)) and session in (None, found[1])]

    def pages(self, session=None):
        """GETs of a page of the transcript."""
        return [r for r in self.requests(method='GET')
                if (found := MESSAGES.search(r.path.partition('?')[0])) and session in (None, found[1])]

    # the server, in the loop's thread

    def _rule_for(self, request, has_body):
        if has_body and request.method == 'POST' and request.key not in self._seen:
            self._seen.add(request.key)
            if self.first_posts:
                return Rule(**self.first_posts.pop(0))
        return super()._rule_for(request, has_body)

    def _answer_for(self, request, rule):
        path, _, query = request.path.partition('?')
        path = urllib.parse.unquote(path)
        asks = urllib.parse.parse_qs(query)
        if not self._knows(request):
            return 401, {'WWW-Authenticate': 'Basic realm="opencode"'}, b''
        scripted = super()._answer_for(request, rule) if {'status', 'answer'} & set(rule.fields) else None
        if request.method == 'POST' and MESSAGES.fullmatch(path):
            return self._prompt(request, rule, scripted)
        if scripted:
            return scripted
        if request.method == 'GET':
            if path == '/global/health':
                return encoded(200, dict({'healthy': True}, **({'version': self.version} if self.version else {})))
            found = MESSAGES.fullmatch(path)
            if found:
                return self._page(found[1], asks)
            found = MESSAGE.fullmatch(path)
            if found:
                return self._message(found[1], found[2])
        return WEB_PAGE  # any path it does not know, whatever the method

    def _knows(self, request):
        if not self.password:
            return True
        secret = base64.b64encode(f'{self.username}:{self.password}'.encode()).decode()
        return request.headers.get('authorization') == 'Basic ' + secret

    def _prompt(self, request, rule, scripted):
        session = MESSAGES.search(request.path)[1]
        if session not in self._sessions:
            return scripted or not_found(f'Session not found: {session}')
        store = rule.get('store')
        if store is None:
            store = (scripted is None or 200 <= scripted[0] < 300) and not rule.get('close') and rule.get('garbage') is None
        message = None
        if store:
            request.stored = True
            message = self.store_post(request, parts=store != 'empty')
        if scripted:
            return scripted
        parent = message['info']['id'] if message else 'msg_' + secrets.token_hex(13)
        if message and store != 'empty':
            self.add(session, 'ok', role='assistant')
        if message and self.after_store:
            self.after_store(session)
        return encoded(200, {'info': {'id': 'msg_' + secrets.token_hex(13), 'sessionID': session, 'role': 'assistant',
                                      'parentID': parent, 'time': {'created': self.now_ms()}},
                             'parts': [{'type': 'text', 'text': 'ok'}]})

    def _message(self, session, message_id):
        with self._transcripts:
            for message in self._sessions.get(session, []):
                if message['info']['id'] == message_id:
                    return encoded(200, message)
        return not_found(f'Message not found: {message_id}')

    def _page(self, session, asks):
        limit = int(asks.get('limit', ['0'])[0])
        before = asks.get('before', [None])[0]
        with self._transcripts:
            if session not in self._sessions:
                return not_found(f'Session not found: {session}')
            transcript = self._sessions[session]
            end = len(transcript)
            if before is not None and self.later_pages:
                status, body = self.later_pages.pop(0)
                return status, {}, body
            if before is not None:
                if not limit or self._cursors.get(before, ('',))[0] != session:
                    return encoded(400, {'name': 'BadRequest', 'data': {'message': 'before', 'kind': 'Query'}})
                oldest = self._cursors[before][1]
                end = next(n for n, message in enumerate(transcript) if message['info']['id'] == oldest)
            start = max(0, end - limit) if limit else 0
            page = transcript[start:end]
            headers = {}
            if start > 0 and self.has_cursor:
                cursor = secrets.token_urlsafe(24)
                self._cursors[cursor] = session, page[0]['info']['id']
                headers['X-Next-Cursor'] = cursor
                headers['Link'] = f'</session/{session}/message?limit={limit}&before={cursor}>; rel="next"'
            return encoded(200, page, **headers)
