// Chromium, driven by lines of JSON: node drive.mjs FOLDER (of npm_install.sh). Each line {do, ...} is answered by one line
// {ok} or {error}. Elements are found as people find them: by role and name, by label, by text.
import {createRequire} from 'node:module';
import {createInterface} from 'node:readline';
import {readFileSync} from 'node:fs';

const require = createRequire(`${process.argv[2]}/package.json`);
const {chromium} = require('playwright-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const {OUTBOXD_CHROMIUM: executablePath = '/usr/bin/chromium', OUTBOXD_SLOW: slow = '1'} = process.env;

const browser = await chromium.launch({executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage']});
let context;
let page;
let complaints = []; // what the console, a script or the policy found wrong

async function open({url, dark = false, width = 1280, height = 800}) {
  if (context) await context.close();
  context = await browser.newContext({viewport: {width, height}, colorScheme: dark ? 'dark' : 'light', reducedMotion: 'reduce',
    bypassCSP: false});
  context.setDefaultTimeout(20000 * Number(slow));
  page = await context.newPage();
  complaints = [];
  page.on('console', (message) => { if (message.type() === 'error') complaints.push(`${message.text()} (${message.location().url})`); });
  page.on('pageerror', (error) => complaints.push(String(error)));
  await page.addInitScript(() => addEventListener('securitypolicyviolation',
    (event) => console.error(`CSP: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`)));
  await page.goto(url);
}

function find({role, name, label, text, selector, exact = true}) {
  if (role) return page.getByRole(role, name === undefined ? {} : {name, exact}).first();
  if (label) return page.getByLabel(label, {exact}).first();
  if (text) return page.getByText(text, {exact: false}).first();
  return page.locator(selector).first();
}

// axe runs in a world of its own: the page's policy forbids strangers' scripts, and has to stay in force.
async function accessibility() {
  const session = await context.newCDPSession(page);
  const {frameTree} = await session.send('Page.getFrameTree');
  const {executionContextId} = await session.send('Page.createIsolatedWorld', {frameId: frameTree.frame.id, worldName: 'axe'});
  const run = (expression) => session.send('Runtime.evaluate',
    {expression, contextId: executionContextId, awaitPromise: true, returnByValue: true});
  await run(axe);
  const {result, exceptionDetails} = await run('axe.run(document, {resultTypes: ["violations"]}).then((all) => all.violations.map((v) => '
    + '`${v.id}: ${v.help}: ${v.nodes.map((node) => node.html).join(" ; ")}`))');
  await session.detach();
  if (exceptionDetails) throw new Error(exceptionDetails.text);
  return result.value;
}

const actions = {
  open,
  click: (what) => find(what).click(),
  fill: (what) => find(what).fill(what.value),
  press: ({key}) => page.keyboard.press(key),
  wait: (what) => find(what).waitFor({state: what.state || 'visible'}),
  text: async (what) => (await find(what).innerText()),
  count: async ({selector}) => page.locator(selector).count(),
  url: async () => page.url(),
  reload: () => page.reload(),
  evaluate: ({script}) => page.evaluate(script),
  screenshot: ({path, full = false}) => page.screenshot({path, fullPage: full}).then(() => true),
  accessibility,
  complaints: async () => complaints,
};

process.stdout.write('{"ok":"ready"}\n');
for await (const line of createInterface({input: process.stdin})) {
  const what = JSON.parse(line);
  try {
    process.stdout.write(`${JSON.stringify({ok: (await actions[what.do](what)) ?? null})}\n`);
  } catch (error) {
    process.stdout.write(`${JSON.stringify({error: String(error)})}\n`);
  }
}
await browser.close();
