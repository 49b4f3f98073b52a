// Tabs that nobody sees, and many at once.
import assert from 'node:assert/strict';
import {isStream, logLine, settled, visit} from '../browser.mjs';
import {until} from '../daemon.mjs';

/** Streams of a context that are open now. */
function streams(context) {
  const open = new Set(), all = [];
  context.on('request', request => { if (isStream(request.url())) { open.add(request); all.push(request); } });
  for (const end of ['requestfinished', 'requestfailed']) context.on(end, request => open.delete(request));
  return {open, all};
}

export async function aTabThatNobodySeesHoldsNoStreamAndGoesOnWhereItWas(world) {
  const site = await world.site('full'), {daemon} = site, gate = site.gate(), run = await daemon.submit('lab/slow', {gate: gate.path});
  await daemon.reached(run, 'executing');
  const context = await world.context(site, {hide: false}), {open, all} = streams(context), page = await context.newPage();
  await visit(page, `/runs/${run}`);
  const line = text => logLine(page, text);
  gate.write('lines 2');
  await until('lines come', () => line('counted 2').isVisible());
  assert.equal(open.size, 1);
  await page.evaluate(() => window.setHidden(true));
  await until('the stream is closed', () => open.size === 0);
  gate.write('lines 5');
  await until('they are written', async () => (await daemon.lines(run)).some(one => one.text === 'counted 7'));
  const before = all.length;
  await page.evaluate(() => window.setHidden(false));
  await until('what came meanwhile is shown', () => line('counted 7').isVisible());
  assert.equal(open.size, 1);
  assert.ok((await all[before].allHeaders())['last-event-id'], 'the stream is resumed');
  for (const n of [1, 2, 3, 4, 5, 6, 7]) assert.equal(await line(`counted ${n}`).count(), 1);
  gate.write('end');
  await until('it has ended', async () => (await page.title()).startsWith('succeeded'));
  gate.close();
}

export async function twelveTabsAllLoadAndHearOfAChange(world) {
  const site = await world.site('full'), {daemon} = site, context = await world.context(site, {hide: true}), gate = site.gate();
  const run = await daemon.submit('lab/slow', {gate: gate.path});
  await daemon.reached(run, 'executing');
  const pages = await Promise.all(Array.from({length: 12}, () => context.newPage()));
  await Promise.all(pages.map(page => page.goto(`/runs/${run}`)));
  /** Each is looked at for a while, as somebody does who looks for one of them. */
  const each = async look => {
    for (const page of pages) {
      await page.evaluate(() => window.setHidden(false));
      await look(page);
      await page.evaluate(() => window.setHidden(true));
    }
  };
  await each(settled);
  gate.write('end');
  await daemon.ended(run);
  await each(page => until('a tab hears that the run has ended', async () => (await page.title()).startsWith('succeeded'), 30000));
  gate.close();
}
