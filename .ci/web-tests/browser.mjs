// The browser, and what is watched in all of its pages: errors, violations of the policy, requests to elsewhere.
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {chromium} from 'playwright-core';
import {sleep, until} from './daemon.mjs';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const TAGS = ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa'];
const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--js-flags=--expose-gc'];

export const launch = program => chromium.launch({executablePath: program, args: FLAGS, timeout: 60000});

/** Requests that have no answer yet, but for the stream, which has no end. */
const open = new WeakMap();
export const isStream = address => new URL(address).pathname === '/v1/events';
const isApi = address => new URL(address).pathname.startsWith('/v1/') && !isStream(address);

/** A context of its own, as a browser of another person. `bad` collects what no page may do. */
export async function newContext(browser, {origin, state, width = 1280, height = 900, scheme = 'light', hide} = {}) {
  const context = await browser.newContext({viewport: {width, height}, colorScheme: scheme, storageState: state, baseURL: origin, reducedMotion: 'reduce'});
  context.setDefaultTimeout(15000);
  context.setDefaultNavigationTimeout(30000);
  const bad = context.bad = [], requests = context.requests = [];
  // What a page does again and again is told once.
  const note = text => { if (bad.length < 20 && !bad.includes(text)) bad.push(text); };
  context.on('console', message => { if (message.type() === 'error') note(`console: ${message.text().slice(0, 1000)} (${message.page()?.url()})`); });
  context.on('weberror', error => note(`page error: ${error.error().stack.slice(0, 1000)}`));
  context.on('request', request => {
    const address = request.url();
    requests.push(request);
    if (!address.startsWith(origin + '/') && !/^(blob|data|about):/.test(address)) note(`a request to elsewhere: ${address}`);
    if (isApi(address)) open.get(request.frame().page())?.add(request);
  });
  for (const end of ['requestfinished', 'requestfailed']) context.on(end, request => { try { open.get(request.frame().page())?.delete(request); } catch { /* of a page that is gone */ } });
  context.on('page', page => open.set(page, new Set()));
  // What the console tells of the policy depends on the browser; the event does not.
  await context.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', event => console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber} ${event.sample}`));
  });
  // A headless page is always seen; this one says of itself what the test wants.
  if (hide !== undefined) await context.addInitScript(hidden => {
    let is = hidden;
    Object.defineProperty(document, 'hidden', {get: () => is});
    Object.defineProperty(document, 'visibilityState', {get: () => is ? 'hidden' : 'visible'});
    window.setHidden = next => { is = next; document.dispatchEvent(new Event('visibilitychange')); };
  }, hide);
  return context;
}

/** Waits until a page has all that it shows: a heading, nothing that still loads, no request under way. */
export async function settled(page) {
  let calm = 0;
  await until(`${page.url()} has all that it shows`, async () => {
    const there = await page.evaluate(() => !!document.querySelector('h1') && !document.querySelector('.loading'));
    calm = there && !open.get(page)?.size ? calm + 1 : 0;
    return calm >= 4;
  }, 30000);
}
export async function visit(page, path) {
  const answer = await page.goto(path, {waitUntil: 'load'});
  // Without one it is the same page with another hash.
  if (answer && !answer.ok()) throw new Error(`${path} is answered with ${answer.status()}: ${(await answer.text()).slice(0, 200)}`);
  await settled(page);
}

/** The address of a schedule, as the page itself links to it. */
export async function scheduleAddress(page, id) {
  await visit(page, '/schedules');
  return page.getByRole('link', {name: id, exact: true}).first().getAttribute('href');
}

/** What axe finds in a page, each with where. The policy of the page holds for scripts in it, not for what the inspector evaluates. */
export async function axe(page) {
  const inspector = await page.context().newCDPSession(page);
  await inspector.send('Runtime.evaluate', {expression: AXE});
  const {result, exceptionDetails} = await inspector.send('Runtime.evaluate', {
    expression: `axe.run(document, {runOnly: ${JSON.stringify(TAGS)}}).then(told => JSON.stringify(told.violations))`, awaitPromise: true, returnByValue: true,
  });
  await inspector.detach();
  if (exceptionDetails) throw new Error(`axe: ${exceptionDetails.exception?.description ?? exceptionDetails.text}`);
  return JSON.parse(result.value).map(found => `${found.id}: ${found.help}: ${found.nodes.slice(0, 3).map(node => `${node.target} ${(node.any[0] ?? node.all[0] ?? node.none[0])?.message ?? ''}`).join(' | ')}`);
}

/** Logs in by a code and hands on what the browser keeps of it. */
export async function logIn(browser, daemon, ...options) {
  const address = await daemon.login(...options), origin = new URL(address).origin;
  const context = await newContext(browser, {origin}), page = await context.newPage();
  await page.goto(address);
  await until('the page says who is logged in', () => page.locator('header nav').isVisible());
  const state = await context.storageState();
  await context.close();
  const token = state.origins[0].localStorage.map(kept => { try { return JSON.parse(kept.value).token; } catch { return null; } }).find(Boolean);
  return {origin, state, token};
}

/** A request at the door, as a browser of this session would send it. */
export const fetchAs = (session, path, options = {}) => fetch(`${session.origin}/v1/${path}`, {...options, headers: {authorization: `Bearer ${session.token}`, ...(options.body && {'content-type': 'application/json'}), origin: session.origin, ...options.headers}});

export const logBox = page => page.getByRole('group', {name: 'Lines of the log'});
/** What lines say: those that are in the document, of the log or of what was found in it. */
export const logTexts = page => page.locator('[id^="L"] > :last-child');
/** The line with this text. */
export const logLine = (page, text) => logTexts(page).filter({hasText: new RegExp(`^${text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`)});
/** Whether lines are in sight, and none of those that are is still to be loaded. */
export const logLoaded = page => logBox(page).evaluate(element => {
  const frame = element.getBoundingClientRect(), rows = [...element.querySelectorAll('[id^="L"], .line')].filter(row => { const at = row.getBoundingClientRect(); return at.bottom > frame.top && at.top < frame.bottom; });
  return rows.length > 0 && rows.every(row => row.lastElementChild.textContent !== '…');
});

/** All lines of a log as a person would read them: by scrolling from the top, `{number: text}`. Fails where one differs from itself. */
export async function readLog(page) {
  const box = logBox(page), lines = new Map();
  await box.evaluate(element => { element.scrollTop = 0; element.dispatchEvent(new Event('scroll')); });
  for (let turns = 0; turns < 2000; turns++) {
    await until('the lines in sight are loaded', () => logLoaded(page));
    const seen = await box.evaluate(element => ({
      rows: [...element.querySelectorAll('[id^="L"]')].map(row => [+row.id.slice(1), row.lastElementChild.textContent]).filter(([, text]) => text !== '…'),
      atEnd: element.scrollHeight - element.scrollTop - element.clientHeight < 4,
    }));
    const numbers = seen.rows.map(([number]) => number);
    if (new Set(numbers).size !== numbers.length) throw new Error(`a line stands twice: ${numbers}`);
    for (const [number, text] of seen.rows) {
      if (lines.has(number) && lines.get(number) !== text) throw new Error(`line ${number} is now ${text}`);
      lines.set(number, text);
    }
    if (seen.atEnd) return lines;
    await box.evaluate(element => { element.scrollTop += element.clientHeight * 0.8; });
    await sleep(60);
  }
  throw new Error('the log has no end');
}

/** Bytes of the heap once nothing more can be collected. */
export async function heap(page) {
  const inspector = await page.context().newCDPSession(page);
  await inspector.send('HeapProfiler.collectGarbage');
  const {usedSize} = await inspector.send('Runtime.getHeapUsage');
  await inspector.detach();
  return usedSize;
}
