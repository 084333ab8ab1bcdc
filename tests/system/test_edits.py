#!/usr/bin/env python3
"""Dependencies, edits, removals, echoes: contract §6, against real processes and a scripted target."""
import json

import harness
from harness import SystemTest, wait_until

KINDS = [
    {'name': 'create', 'executor': 'http', 'url': '/create', 'idempotent': True, 'follow_up_edit': 'update',
     'follow_up_remove': 'delete'},
    {'name': 'update', 'executor': 'http', 'url': '/update', 'idempotent': True},
    {'name': 'delete', 'executor': 'http', 'url': '/delete', 'idempotent': True},
    {'name': 'plain', 'executor': 'http', 'url': '/plain', 'idempotent': True},
    {'name': 'once', 'executor': 'http', 'url': '/once', 'idempotent': False},
]


class Edits(SystemTest):
    def begin(self, **settings):
        self.server = self.target()
        self.daemon_ = self.daemon(self.server, kinds=KINDS, **settings)
        return self.daemon_

    def send(self, kind, payload, session='s', depends_on=(), **members):
        body = {'kind': kind, 'payload': payload, **members}
        if depends_on:
            body['dependsOn'] = list(depends_on)
        return self.daemon_.accept_ok(session=session, body=body)

    def call(self, method, path, body=None):
        return self.daemon_.call(method, f'/v1/workspaces/w{path}', body)

    def edit(self, entry, **members):
        return self.call('PATCH', f'/entries/{entry}', members)

    def show(self, entry):
        return self.call('GET', f'/entries/{entry}').json()

    def bodies(self, path):
        return [json.loads(r.body) for r in self.server.posts(path=path)]

    # dependencies

    def test_an_entry_is_not_sent_before_what_it_depends_on_and_gets_its_result(self):
        self.begin()
        self.server.script(path='/create', hold=True, answer={'id': 77, 'note': 'of the target'})
        first = self.send('create', {'name': 'a'}, session='one')
        second = self.send('plain', {'ref': 1, 'id': None, 'other': None}, session='two', depends_on=[first])
        wait_until(lambda: self.server.posts(path='/create'), 10, 'the first')
        self.assertEqual(self.show(second)['dependsOn'], [first])
        self.assertFalse(self.server.posts(path='/plain'))
        self.server.release()
        self.daemon_.wait_status(second, 'sent')
        self.assertEqual(self.bodies('/plain'), [{'ref': 1, 'id': 77, 'other': None}])

    def test_a_dependency_that_was_confirmed_before_fills_at_acceptance(self):
        self.begin()
        self.server.script(path='/create', answer={'id': 'x-1'})
        first = self.send('create', {'name': 'a'})
        self.daemon_.wait_status(first, 'sent')
        second = self.send('plain', {'id': None}, depends_on=[first])
        self.daemon_.wait_status(second, 'sent')
        self.assertEqual(self.bodies('/plain'), [{'id': 'x-1'}])

    def test_a_dependency_that_nobody_knows_fails_the_entry(self):
        self.begin()
        second = self.send('plain', {'id': None}, depends_on=['ob_00000000000000000000000000'])
        self.assertEqual(self.daemon_.wait_status(second, 'error')['lastError']['code'], 'dependency_discarded')
        self.assertEqual(self.call('POST', f'/entries/{second}/retry').status, 200)
        wait_until(lambda: self.bodies('/plain') == [{'id': None}], 10, 'it is sent without that dependency')

    def test_a_failed_dependency_is_waited_for_until_it_is_retried(self):
        self.begin()
        self.server.script(path='/create', nth=1, status=422)
        first = self.send('create', {'name': 'a'}, session='one')
        second = self.send('plain', {'n': 1}, session='two', depends_on=[first])
        self.daemon_.wait_status(first, 'error')
        self.assertEqual(self.daemon_.status(second), 'pending')
        again = self.call('POST', f'/entries/{first}/retry').json()
        self.assertNotEqual(again['id'], first)
        self.daemon_.wait_status(second, 'sent')
        self.assertEqual(self.show(first)['status'], 'replaced')

    def test_discarding_gives_what_it_knows_and_fails_the_chain(self):
        self.begin()
        self.server.script(path='/create', status=422)
        first = self.send('create', {'name': 'a', 'x': None}, session='one')
        second = self.send('plain', {'name': None, 'x': None}, session='two', depends_on=[first])
        third = self.send('plain', {'n': 3}, session='three', depends_on=[second])
        self.daemon_.wait_status(first, 'error')
        self.assertEqual(self.call('DELETE', f'/entries/{first}').json()['result'], 'discarded')
        for entry in (second, third):
            self.assertEqual(self.show(entry)['lastError']['code'], 'dependency_discarded')
        self.assertEqual(self.show(second)['payload'], {'name': 'a', 'x': None})
        self.call('POST', f'/entries/{third}/retry')
        again = self.call('POST', f'/entries/{second}/retry').json()['id']
        self.daemon_.wait_status(again, 'sent')
        wait_until(lambda: len(self.server.posts(path='/plain')) == 2, 10, 'both')
        self.assertEqual(self.bodies('/plain')[0], {'name': 'a', 'x': None})

    # edits

    def test_an_entry_that_was_not_sent_is_edited_in_place(self):
        self.begin()
        self.call('POST', '/pause')
        first = self.send('create', {'text': 'old', 'tags': [1], 'n': 100})
        answer = self.edit(first, payload={'text': 'new', 'tags': None})
        self.assertEqual((answer.status, answer.json()['result'], answer.json()['id']), (200, 'edited', first))
        self.call('POST', '/resume')
        self.daemon_.wait_status(first, 'sent')
        self.assertEqual(self.bodies('/create'), [{'text': 'new', 'n': 100}])

    def test_an_entry_in_flight_is_edited_by_a_follow_up_and_a_second_edit_changes_that(self):
        self.begin()
        self.server.script(path='/create', hold=True)
        first = self.send('create', {'text': 'one'})
        wait_until(lambda: self.server.posts(path='/create'), 10, 'in flight')
        edit = self.edit(first, payload={'text': 'two'}).json()
        self.assertEqual(edit['result'], 'follow_up')
        again = self.edit(first, payload={'extra': True}).json()
        self.assertEqual((again['result'], again['id']), ('follow_up', edit['id']))
        self.server.release()
        self.daemon_.wait_status(edit['id'], 'sent')
        self.assertEqual(self.bodies('/create'), [{'text': 'one'}])
        self.assertEqual(self.bodies('/update'), [{'text': 'two', 'extra': True}])

    def test_a_kind_without_an_edit_says_so(self):
        self.begin()
        self.server.script(path='/plain', hold=True)
        first = self.send('plain', {'text': 'one'})
        wait_until(lambda: self.server.posts(path='/plain'), 10, 'in flight')
        self.assertProblem(self.edit(first, payload={'text': 'two'}), 409, 'already_sent')
        self.assertProblem(self.call('DELETE', f'/entries/{first}'), 409, 'busy')
        self.server.release()
        self.daemon_.wait_status(first, 'sent')
        self.assertProblem(self.edit(first, payload={'text': 'two'}), 409, 'already_sent')
        self.assertProblem(self.edit('ob_none', payload={'text': 'two'}), 404, 'entry_not_found')

    def test_an_edit_of_a_failed_entry_replaces_it_and_takes_its_unsent_edits_along(self):
        self.begin()
        self.server.script(path='/create', nth=1, hold=True, status=412, answer={'version': 'v7'},
                           headers={'ETag': '"v7"'})
        first = self.send('create', {'text': 'one', 'n': 1}, session='one', clientMessageID='m1')
        wait_until(lambda: self.server.posts(path='/create'), 10, 'in flight')
        follow = self.edit(first, payload={'text': 'two'}).json()['id']
        behind = self.send('plain', {'n': 2}, session='two', depends_on=[follow])
        self.server.release()
        self.assertEqual(self.daemon_.wait_status(first, 'error')['lastError']['code'], 'conflict')
        answer = self.edit(first, payload={'n': 9}).json()
        self.assertEqual(answer['result'], 'replaced')
        self.daemon_.wait_status(behind, 'sent')
        self.assertEqual(self.bodies('/create')[1], {'text': 'two', 'n': 9})
        self.assertEqual(self.server.posts(path='/create')[1].headers['if-match'], '"v7"')
        self.assertFalse(self.bodies('/update'))
        self.assertEqual(self.show(follow)['status'], 'replaced')
        repeat = self.daemon_.accept(session='one', body={'kind': 'create', 'payload': {'text': 'one', 'n': 1},
                                                          'clientMessageID': 'm1'})
        self.assertEqual((repeat.status, repeat.json()['id']), (200, answer['id']))

    # removals

    def test_what_was_sent_is_removed_by_a_follow_up(self):
        self.begin()
        self.server.script(path='/create', hold=True)
        first = self.send('create', {'text': 'one'})
        wait_until(lambda: self.server.posts(path='/create'), 10, 'in flight')
        answer = self.call('DELETE', f'/entries/{first}').json()
        self.assertEqual(answer['result'], 'follow_up')
        self.assertEqual(self.call('DELETE', f'/entries/{first}').json()['id'], answer['id'])
        self.server.release()
        self.daemon_.wait_status(answer['id'], 'sent')
        self.assertEqual(self.bodies('/delete'), [{'text': 'one'}])

    def test_removing_what_was_not_sent_fails_what_waits_for_it(self):
        self.begin()
        self.call('POST', '/pause')
        first = self.send('create', {'text': 'one'}, session='one')
        second = self.send('plain', {'n': 1}, session='two', depends_on=[first])
        self.assertEqual(self.call('DELETE', f'/entries/{first}').json()['result'], 'removed')
        self.assertEqual(self.call('DELETE', f'/entries/{first}').json()['result'], 'removed')
        self.assertEqual(self.show(second)['lastError']['code'], 'dependency_discarded')

    # echoes

    def test_an_echo_confirms_while_the_request_is_in_flight_and_the_lane_goes_on(self):
        self.begin()
        self.server.script(path='/create', hold=True)
        first = self.send('create', {'text': 'one'}, clientMessageID='m1')
        second = self.send('plain', {'n': 2})
        wait_until(lambda: self.server.posts(path='/create'), 10, 'in flight')
        answer = self.call('POST', '/confirm', {'sessionID': 's', 'clientMessageID': 'm1', 'result': {'id': 5}})
        self.assertEqual(answer.json(), {'confirmed': True})
        self.daemon_.wait_status(second, 'sent')
        self.assertEqual(self.show(first)['status'], 'sent')
        self.assertEqual(self.call('POST', '/confirm', {'entryID': first}).json(), {'confirmed': True})
        self.assertEqual(self.call('POST', '/confirm', {'entryID': 'ob_none'}).json(), {'confirmed': False})
        self.server.release()

    def test_the_lane_goes_on_after_an_echo_in_the_same_worker_too(self):
        self.begin(workers=1)
        self.server.script(path='/create', hold=True, answer={'id': 9})
        first = self.send('create', {'text': 'one'}, clientMessageID='m1')
        wants = self.send('plain', {'id': None}, session='other', depends_on=[first])
        second = self.send('plain', {'n': 2})
        wait_until(lambda: self.server.posts(path='/create'), 10, 'in flight')
        self.call('POST', '/confirm', {'entryID': first})
        self.daemon_.wait_status(second, 'sent')
        self.assertEqual(self.daemon_.status(wants), 'pending')
        self.server.release()
        self.daemon_.wait_status(wants, 'sent')
        self.assertEqual(self.bodies('/plain'), [{'n': 2}, {'id': 9}])
        self.assertEqual(self.daemon_.stop(), 0)

    def test_after_an_echo_without_a_result_dependents_wait_for_the_answer(self):
        self.begin()
        self.server.script(path='/create', hold=True, answer={'id': 12})
        first = self.send('create', {'text': 'one'}, session='one')
        wants = self.send('plain', {'id': None}, session='two', depends_on=[first])
        wants_nothing = self.send('plain', {'id': 1}, session='three', depends_on=[first])
        wait_until(lambda: self.server.posts(path='/create'), 10, 'in flight')
        self.call('POST', '/confirm', {'entryID': first})
        self.daemon_.wait_status(wants_nothing, 'sent')
        self.assertEqual(self.daemon_.status(wants), 'pending')
        self.server.release()
        self.daemon_.wait_status(wants, 'sent')
        self.assertEqual(self.bodies('/plain'), [{'id': 1}, {'id': 12}])


if __name__ == '__main__':
    harness.main()
