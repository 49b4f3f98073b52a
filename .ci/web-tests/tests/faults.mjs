// The daemon is killed, drained, has no space: what an open page says, and what of the log is there afterwards.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {existsSync, mkdirSync, rmSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {logBox, logLine, readLog, visit} from '../browser.mjs';
import {sleep, until} from '../daemon.mjs';

const SILENT = /The daemon does not answer/;
/** A server that is not there is told by the console. */
const tolerate = /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|status of 503/;
const lost = page => page.getByText(SILENT);

async function restarted(world, fromTop) {
  const site = await world.own();
  try {
    const {daemon} = site, gate = site.gate(), run = await daemon.submit('lab/slow', {gate: gate.path});
    await daemon.reached(run, 'executing');
    gate.write('lines 700');
    const page = await world.page(site, `/runs/${run}`, {tolerate}), line = text => logLine(page, text);
    await until('the log is followed', () => line('counted 700').isVisible());
    // Somebody who reads the beginning is not to miss what comes at the end.
    if (fromTop) await logBox(page).evaluate(element => { element.scrollTop = 0; });
    gate.write('lines 300');
    await daemon.kill();
    await until('the page says that nobody answers', () => lost(page).isVisible());
    assert.match(await page.locator('header').innerText(), /not reached/);
    assert.match(await page.locator('.log').getByRole('status').innerText(), /, not followed/);
    await daemon.start();
    await until('it goes on by itself', async () => !await lost(page).isVisible());
    // The command may be started again, and is: it counts anew.
    await until('it is started again', async () => (await daemon.lines(run)).filter(one => one.text === 'begun').length === 2);
    gate.write('lines 900');
    gate.write('end');
    await daemon.ended(run);
    await until('the end is shown', async () => (await page.title()).startsWith('succeeded'));
    if (!fromTop) await until('the last lines are shown', () => line('counted 900').isVisible());
    const told = await daemon.lines(run), read = await readLog(page);
    assert.deepEqual([...read], told.map(one => [one.line, one.text]));
    assert.ok(told.length > 1600);
    gate.close();
  } finally { await site.end(); }
}
export const aLogThatIsFollowedLosesAndDoublesNoLineWhenTheDaemonIsKilled = world => restarted(world, false);
export const aLogThatIsReadFromItsBeginningLosesAndDoublesNoLineWhenTheDaemonIsKilled = world => restarted(world, true);

export async function aDaemonThatIsBackAfterAWhileIsNoticedSoon(world) {
  const site = await world.own();
  try {
    const page = await world.page(site, '/', {tolerate});
    await site.daemon.kill();
    await until('the page says that nobody answers', () => lost(page).isVisible());
    await sleep(15000);
    await site.daemon.start();
    await until('it goes on by itself', async () => !await lost(page).isVisible(), 6000);
    await until('it is ready', async () => /ready/.test(await page.locator('header').innerText()));
  } finally { await site.end(); }
}

export async function aSkillWhoseFileBreaksOrGoesSaysSo(world) {
  const site = await world.own('broken'), {daemon, place} = site, file = join(place, 'workers/good/worker.yaml');
  try {
    const run = await daemon.submit('good/fine');
    await daemon.ended(run);
    writeFileSync(file, 'worker: {id: good\n');
    await daemon.post('reload');
    const page = await world.page(site, '/skills', {tolerate});
    await until('it is marked', () => page.getByRole('row').filter({hasText: 'good/fine'}).getByText(/\d problem/).isVisible());
    await visit(page, '/skills/good/fine');
    assert.match(await page.getByRole('main').innerText(), /the last good definition of `good` stays in use/);
    rmSync(file);
    await daemon.post('reload');
    await until('it is told to be gone', () => page.getByRole('alert').filter({hasText: 'there is no skill good/fine'}).isVisible());
    assert.equal(await page.getByRole('main').getByRole('button').count(), 0);
    await page.getByRole('link', {name: 'Its runs'}).click();
    await until('its run is listed', () => page.locator(`a[href="/runs/${run}"]`).first().isVisible());
  } finally { await site.end(); }
}

export async function whatCannotBeShownIsToldUntilItCan(world) {
  const site = await world.site('full'), page = await world.page(site, null, {tolerate: /TypeError/});
  await page.route('**/v1/status', route => route.fulfill({json: {}}));
  await page.goto('/');
  await until('it is told', () => page.getByText('This cannot be shown').isVisible());
  await page.unrouteAll({behavior: 'ignoreErrors'});
  await until('it is shown', () => page.getByRole('heading', {name: 'Needs attention'}).isVisible());
  assert.ok(!await page.getByText('This cannot be shown').isVisible());
}

export async function aPageSaysThatTheEngineIsDrained(world) {
  const site = await world.own();
  try {
    const {daemon} = site, gate = site.gate(), run = await daemon.submit('lab/slow', {gate: gate.path});
    await daemon.reached(run, 'executing');
    const page = await world.page(site, '/', {tolerate});
    // It is answered once all is drained.
    const drained = daemon.post('drain', {}).catch(() => {});
    await until('it says so', () => page.getByText(/drain/).first().isVisible());
    await world.picture('drained', page);
    gate.write('end');
    await drained;
    gate.close();
  } finally { await site.end(); }
}

export async function aPageSaysThatTheDiskIsFull(world, skip) {
  if (process.getuid() !== 0) skip('only root can mount a small disk');
  const place = join(world.directory, 'small');
  mkdirSync(join(place, 'state'), {recursive: true});
  try { execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', join(place, 'state')], {stdio: 'pipe'}); } catch (error) { skip(`no small disk can be mounted: ${error.stderr}`.trim()); }
  let site;
  try {
    site = await world.make('full', 'small');
    const page = await world.page(site, '/', {tolerate: /ERR_|status of 5/}), filler = join(place, 'state', 'filler');
    const fill = bytes => { try { for (;;) writeFileSync(filler, Buffer.alloc(bytes), {flag: 'a'}); } catch (error) { assert.equal(error.code, 'ENOSPC'); } };
    // What the engine kept in reserve is given back first, and is taken here as well.
    await until('the engine says that the disk is full', async () => {
      fill(1 << 20);
      fill(512);
      await Promise.race([site.daemon.post('runs', {skill: 'lab/fine'}).catch(() => {}), sleep(3000)]);
      return (await site.daemon.get('status')).condition === 'disk_full';
    }, 90000);
    // What is freed meanwhile is taken, too.
    await until('the page says so', async () => {
      fill(512);
      const {condition} = await site.daemon.get('status');
      if (await page.getByText(/disk is full|disk full/).first().isVisible()) return true;
      throw new Error(`the engine says ${condition}`);
    }, 30000);
    await world.picture('disk-full', page);
    rmSync(filler);
    await until('the page says that it is not any more', async () => !await page.getByText(/disk is full/).isVisible(), 60000);
  } finally {
    await site?.end();
    if (existsSync(place)) execFileSync('umount', ['-l', join(place, 'state')]);
  }
}
