// Calls to the API that this page came from, with the token that was typed in. The token stays in this tab: sessionStorage
// ends with it. It never stands in a URL, which histories and logs keep.

const KEY = 'outboxd.token';
let token = sessionStorage.getItem(KEY);
let onRefused = () => {};

export class Problem extends Error {
  constructor(status, document) {
    super(document.detail || document.title || `HTTP ${status}`);
    this.status = status;
    this.code = document.code || '';
  }
}

export const hasToken = () => token !== null;

export function setToken(value) {
  token = value;
  if (value === null) sessionStorage.removeItem(KEY);
  else sessionStorage.setItem(KEY, value);
}

// Called when a call was refused for want of a token.
export function whenRefused(then) { onRefused = then; }

function headers(more = {}) {
  return token === null ? more : {...more, Authorization: `Bearer ${token}`};
}

async function refusal(response) {
  const text = await response.text();
  let document = {title: text.slice(0, 200)};
  try {
    document = JSON.parse(text);
  } catch { /* something in between answered */ }
  const problem = new Problem(response.status, document);
  if (response.status === 401) onRefused(problem);
  return problem;
}

// The answer's JSON, or text where it is none. Throws a Problem, or a TypeError when nothing answered.
export async function call(method, path, body) {
  const response = await fetch(path, {
    method,
    headers: headers(body === undefined ? {} : {'Content-Type': 'application/json'}),
    body: body === undefined ? undefined : JSON.stringify(body),
    cache: 'no-store', credentials: 'omit', redirect: 'error', referrerPolicy: 'no-referrer',
  });
  // /readyz says why it is not ready in an answer that is no failure of the call.
  if (!response.ok && !(path === '/readyz' && response.status === 503)) throw await refusal(response);
  const kind = response.headers.get('Content-Type') || '';
  return kind.includes('json') ? response.json() : response.text();
}
