// Which page the part of the URL behind # names, and what is shown while nobody is logged in.

import {h, fill} from '/ui/dom.js';
import {hasToken, setToken, whenRefused} from '/ui/client.js';
import {showLogin} from '/ui/login.js';
import {overview, workspacesPage} from '/ui/overview.js';

const content = document.getElementById('content');
const logout = document.getElementById('logout');
const connection = document.getElementById('connection');
const REFRESH_MS = 2000;

const pages = [
  {name: 'overview', path: /^\/?$/, show: overview},
  {name: 'workspaces', path: /^\/workspaces$/, show: workspacesPage},
];

let timer = null;
let isAsking = false;

function currentPage() {
  const path = location.hash.slice(1);
  return pages.find((page) => page.path.test(path)) || pages[0];
}

function mark(page) {
  for (const link of document.querySelectorAll('nav a')) {
    if (link.dataset.page === page.name) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
}

// What a page has asked for may come when another one, or the login, stands in its place: `turn` tells.
let turn = 0;

async function refresh() {
  const page = currentPage();
  const mine = ++turn;
  clearTimeout(timer);
  mark(page);
  logout.hidden = !hasToken();
  try {
    const nodes = await page.show();
    if (mine !== turn) return;
    fill(content, nodes);
    fill(connection);
    document.title = `${page.name} · outboxd`;
  } catch (problem) {
    if (mine !== turn) return;
    fill(connection, problem.status ? problem.message : 'The server does not answer; trying again.');
    if (problem.status === 403) fill(content, h('p', {class: 'error'}, problem.message));
  }
  timer = setTimeout(refresh, REFRESH_MS);
}

function ask(why) {
  if (isAsking) return;
  isAsking = true;
  turn++;
  clearTimeout(timer);
  logout.hidden = true;
  fill(connection);
  showLogin(content, why, () => {
    isAsking = false;
    refresh();
  });
}

whenRefused((problem) => {
  const had = hasToken();
  setToken(null);
  ask(had ? problem.message : '');
});
logout.addEventListener('click', () => {
  setToken(null);
  ask('');
});
addEventListener('hashchange', () => {
  if (!isAsking) refresh().then(() => content.focus());
});
refresh();
