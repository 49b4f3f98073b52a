// What the tests share: workspaces with their daemons, sessions, and contexts that are closed after each test.
import {writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {logIn, newContext, visit} from './browser.mjs';
import {Daemon, freePort, until} from './daemon.mjs';
import {Gate, HOSTILE, SENSITIVE, makeWorkspace} from './workspace.mjs';

export class World {
  constructor(settings) {
    Object.assign(this, settings, {sites: new Map(), contexts: [], count: 0});
  }
  /** A workspace with its daemon; `full`, `empty` and `broken` are made once. */
  site(kind) {
    if (!this.sites.has(kind)) this.sites.set(kind, this.make(kind, kind).then(async site => {
      if (kind === 'full') await fill(site);
      return site;
    }));
    return this.sites.get(kind);
  }
  /** One that a test may do to as it likes: it ends with `end`. */
  own(kind = 'full') {
    return this.make(kind, `own${++this.count}`);
  }
  async make(kind, name, place = join(this.directory, name)) {
    const port = await freePort(), workspace = makeWorkspace(place, kind, port);
    const daemon = await new Daemon(this.program, place, port).start();
    const admin = await logIn(this.browser, daemon);
    let reader;
    return {kind, ...workspace, daemon, admin, gates: 0,
      get reader() { return reader ||= logIn(this.browser, daemon, '--read-only'); }, browser: this.browser,
      gate() { return new Gate(place, `gate-${++this.gates}`); },
      end: () => daemon.kill()};
  }
  /** A context of a session, or of nobody; closed after the test. `tolerate`: what may stand in its console. */
  async context(site, {session = site.admin, tolerate, ...options} = {}) {
    const context = await newContext(this.browser, {origin: site.admin.origin, state: session?.state, ...options});
    context.tolerate = tolerate;
    this.contexts.push(context);
    return context;
  }
  async page(site, path, options) {
    const page = await (await this.context(site, options)).newPage();
    if (path) await visit(page, path);
    return page;
  }
  bad() {
    return [...new Set(this.contexts.flatMap(context => context.bad.filter(told => !context.tolerate?.test(told))))].slice(0, 20);
  }
  async picture(name, page = this.contexts.at(-1)?.pages().at(-1)) {
    await page?.screenshot({path: join(this.shots, `${name}.png`), timeout: 10000});
  }
  async afterTest() {
    await Promise.all(this.contexts.splice(0).map(context => context.close().catch(() => {})));
  }
  async end() {
    for (const site of this.sites.values()) await site.then(made => made.end(), () => {});
  }
}

/** Runs of each kind: ended in each way, running, waiting, kept. */
async function fill(site) {
  const {daemon, place, git} = site, runs = site.runs = {};
  // Its engine is lost while it executes, and it may not be started again.
  const careful = site.gate();
  runs.unknown = await daemon.submit('lab/careful', {gate: careful.path});
  await daemon.reached(runs.unknown, 'executing');
  await daemon.kill();
  await daemon.start();
  await daemon.reached(runs.unknown, 'unknown');
  careful.close();
  const several = {fine: 'lab/fine', hostile: 'lab/hostile', secrets: 'lab/secrets', flaky: 'lab/flaky', unverified: 'lab/unverified', badcheck: 'lab/badcheck', overlong: 'lab/overlong', noisy: 'lab/noisy', prices: 'shop/prices', wipe: 'lab/wipe', publish: 'shop/publish', denied: 'lab/wipe', cancelled: 'lab/wipe'};
  for (const [name, skill] of Object.entries(several)) runs[name] = await daemon.submit(skill, name === 'hostile' ? {words: HOSTILE} : {});
  runs.inputs = await daemon.submit('lab/inputs', {token: SENSITIVE, names: ['ä', HOSTILE]});
  for (const name of ['wipe', 'publish', 'denied', 'cancelled']) await daemon.reached(runs[name], 'awaiting_approval');
  await daemon.post(`runs/${runs.denied}/deny`, {note: `not today ${HOSTILE}`});
  await daemon.post(`runs/${runs.cancelled}/cancel`, {now: true});
  for (const name of Object.keys(runs)) if (!['wipe', 'publish'].includes(name)) await daemon.ended(runs[name]);
  runs.again = await daemon.submit('shop/prices');
  await daemon.ended(runs.again);
  runs.kept = await keptCommit(site);
  git('checkout', '-q', '--', '.');
  site.slow = site.gate();
  runs.slow = await daemon.submit('lab/slow', {gate: site.slow.path});
  site.slow.write('lines 60');
  await until('it has printed', async () => (await daemon.lines(runs.slow)).length > 60);
  await daemon.post('schedules/pause', {schedule: 'lab/fine#resting', reason: `a holiday ${HOSTILE}`});
  await until('a schedule has failed twice and is overdue', async () => {
    const {overdue, failing} = await daemon.get('status');
    return overdue.length && failing[0]?.failure_count === 2;
  });
}

/** A run whose commit could not land, for a file of the checkout was in its way; it lies there no more. */
export async function keptCommit({daemon, place, git}) {
  writeFileSync(join(place, 'blocked.txt'), 'mine, not committed\n');
  const run = await daemon.submit('shop/kept');
  await daemon.ended(run);
  git('checkout', '-q', '--', 'blocked.txt');
  const {kept_commit: kept} = await daemon.summary(run);
  if (!kept) throw new Error('its commit is not kept');
  return run;
}
