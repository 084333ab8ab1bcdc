import {h, fill} from '/ui/dom.js';
import {call, setToken} from '/ui/client.js';

// Asks for a token in place of the page; `then` when the server knows it.
export function showLogin(content, why, then) {
  const told = h('p', {role: 'alert', class: 'error'}, why);
  const input = h('input', {type: 'password', id: 'token', autocomplete: 'off', spellcheck: 'false', required: true,
    'aria-describedby': 'token-help'});

  async function submit(event) {
    event.preventDefault();
    const value = input.value.trim();
    if (!/^[\x21-\x7e]+$/.test(value)) {
      fill(told, 'A token is one word, as outboxctl token create printed it.');
      return;
    }
    setToken(value);
    try {
      await call('GET', '/v1/workspaces?limit=1');
    } catch (problem) {
      setToken(null);
      fill(told, problem.status === 401 ? 'The server does not know this token.' : problem.message);
      input.select();
      return;
    }
    input.value = '';
    then();
  }

  fill(content, h('form', {class: 'login', onsubmit: submit},
    h('h1', {}, 'Log in'),
    h('label', {for: 'token'}, 'Access token'), input,
    h('p', {id: 'token-help'}, 'Kept in this tab alone, until it is closed. A token is made by ',
      h('code', {}, 'outboxctl token create'), '.'),
    told, h('button', {type: 'submit'}, 'Log in')));
  input.focus();
}
