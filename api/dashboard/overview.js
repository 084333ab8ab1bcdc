import {h, table} from '/ui/dom.js';
import {call} from '/ui/client.js';
import {word} from '/ui/words.js';

const STATUSES = ['pending', 'delivering', 'verifying', 'error', 'parked'];

async function allWorkspaces() {
  const all = [];
  let after = '';
  do {
    const page = await call('GET', `/v1/workspaces?limit=500${after && `&after=${encodeURIComponent(after)}`}`);
    all.push(...page.workspaces);
    after = page.next || '';
  } while (after && all.length < 5000);
  return all;
}

export function seconds(value) {
  if (value === undefined || value === null) return '—';
  const steps = [[86400, 'd'], [3600, 'h'], [60, 'min']];
  for (const [size, unit] of steps) {
    if (value >= size) return `${(value / size).toFixed(1)} ${unit}`;
  }
  return `${Math.round(value)} s`;
}

function sumOf(workspaces, status) {
  return workspaces.reduce((sum, workspace) => sum + (workspace.entries[status] || 0), 0);
}

function health(ready) {
  const troubles = ready.degraded || [];
  return h('section', {'aria-labelledby': 'health'}, h('h2', {id: 'health'}, 'Health'),
    h('p', {class: `state ${ready.status === 'ready' ? 'good' : 'bad'}`},
      ready.status === 'ready' ? 'Ready' : ready.status === 'degraded' ? 'Degraded' : ready.detail || 'Not ready'),
    h('p', {}, `Store ${ready.store ? 'reachable' : 'out of reach'}; a 202 is as durable as ${ready.durability}.`),
    troubles.length > 0 && h('ul', {class: 'error'}, troubles.map((text) => h('li', {}, text))),
    ready.processes && table('Processes', ['Process', 'State', 'Deaths in a row'],
      ready.processes.map((process) => [`${process.role} ${process.slot}`, process.state, String(process.deathsInARow || 0)])));
}

export async function overview() {
  const [ready, workspaces] = await Promise.all([call('GET', '/readyz'), allWorkspaces()]);
  return [h('h1', {}, 'Overview'), health(ready),
    h('section', {'aria-labelledby': 'entries'}, h('h2', {id: 'entries'}, 'Messages'),
      h('dl', {class: 'tiles'}, STATUSES.map((status) => h('div', {class: `tile ${status}`},
        h('dt', {title: word(status).explanation}, word(status).label), h('dd', {}, String(sumOf(workspaces, status)))))))];
}

export async function workspacesPage() {
  const workspaces = await allWorkspaces();
  return [h('h1', {}, 'Workspaces'), workspaces.length === 0 ? h('p', {}, 'Nothing waits anywhere.')
    : table('Workspaces with messages', ['Workspace', ...STATUSES.map((status) => word(status).label), 'Oldest'],
      workspaces.map((workspace) => [workspace.workspaceID,
        ...STATUSES.map((status) => String(workspace.entries[status] || 0)), seconds(workspace.oldestOpenAge)]))];
}
