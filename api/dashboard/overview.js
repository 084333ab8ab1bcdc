import {h, table} from '/ui/dom.js';
import {call} from '/ui/client.js';
import {word} from '/ui/words.js';

const STATUSES = ['pending', 'delivering', 'verifying', 'error', 'parked'];

const WORKSPACES_MAX = 5000; // a page that asks for more every few seconds would be load of its own

async function someWorkspaces() {
  const some = [];
  let after = '';
  do {
    const page = await call('GET', `/v1/workspaces?limit=500${after && `&after=${encodeURIComponent(after)}`}`);
    some.push(...page.workspaces);
    after = page.next || '';
  } while (after && some.length < WORKSPACES_MAX);
  return {workspaces: some, isCut: after !== ''};
}

function cutNote(isCut) {
  return isCut && h('p', {class: 'error'}, `Only the first ${WORKSPACES_MAX} workspaces are counted here; /metrics counts all.`);
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
  const [ready, {workspaces, isCut}] = await Promise.all([call('GET', '/readyz'), someWorkspaces()]);
  return [h('h1', {}, 'Overview'), health(ready),
    h('section', {'aria-labelledby': 'entries'}, h('h2', {id: 'entries'}, 'Messages'), cutNote(isCut),
      h('dl', {class: 'tiles'}, STATUSES.map((status) => h('div', {class: `tile ${status}`},
        h('dt', {title: word(status).explanation}, word(status).label), h('dd', {}, String(sumOf(workspaces, status)))))))];
}

export async function workspacesPage() {
  const {workspaces, isCut} = await someWorkspaces();
  return [h('h1', {}, 'Workspaces'), cutNote(isCut), workspaces.length === 0 ? h('p', {}, 'Nothing waits anywhere.')
    : table('Workspaces with messages', ['Workspace', ...STATUSES.map((status) => word(status).label), 'Oldest'],
      workspaces.map((workspace) => [workspace.workspaceID,
        ...STATUSES.map((status) => String(workspace.entries[status] || 0)), seconds(workspace.oldestOpenAge)]))];
}
