// The page by keyboard alone, and what is told to those who cannot see it.
import assert from 'node:assert/strict';
import {scheduleAddress, settled, visit} from '../browser.mjs';
import {sleep, until} from '../daemon.mjs';

/** What has the focus, in words, with how it and what is around it looks. */
const focused = page => page.evaluate(() => {
  const element = document.activeElement;
  if (!element || element === document.body) return null;
  window.numbered ||= new Map();
  if (!window.numbered.has(element)) window.numbered.set(element, window.numbered.size);
  const around = [element, element.parentElement, element.nextElementSibling].filter(Boolean);
  const looks = () => JSON.stringify(around.map(one => { const s = getComputedStyle(one); return [s.outlineStyle, s.outlineWidth, s.outlineColor, s.boxShadow]; }));
  const own = around.map(one => getComputedStyle(one)).some(s => s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0 || s.boxShadow !== 'none');
  return {number: window.numbered.get(element), own, name: element.getAttribute('aria-label') || element.labels?.[0]?.innerText || element.innerText || element.getAttribute('href') || '', tag: element.tagName.toLowerCase(), href: element.getAttribute('href'), html: element.outerHTML.slice(0, 120), looks: (window.looks = looks)()};
});
/** Presses Tab until something has the focus that is looked for. */
async function tabTo(page, what, fits, key = 'Tab') {
  for (let i = 0; i < 120; i++) {
    await page.keyboard.press(key);
    const at = await focused(page);
    if (at && fits(at)) return at;
  }
  throw new Error(`Tab does not reach ${what}`);
}
const named = name => at => (typeof name === 'string' ? at.name.trim() === name : name.test(at.name));
const inDialog = page => page.evaluate(() => !!document.activeElement.closest('dialog'));

async function everything(world, path, options) {
  const site = await world.site('full'), page = await world.page(site, path(site.runs), options), wrong = [], seen = new Set();
  let before = null;
  for (let i = 0; i < 400; i++) {
    await page.keyboard.press('Tab');
    const after = before && await page.evaluate(() => window.looks()), at = await focused(page);
    // A field of a date has several stops within.
    if (before && at?.number === before.number) continue;
    if (before && (!before.own || after === before.looks)) wrong.push(`its focus is not seen: ${before.html}`);
    if (!at || seen.has(at.number)) break;
    seen.add(at.number);
    before = at;
  }
  const left = await page.evaluate(() => [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')]
    .filter(e => e.tabIndex >= 0 && !e.disabled && e.checkVisibility({checkVisibilityCSS: true}) && !window.numbered.has(e) && !e.closest('dialog'))
    .map(e => `Tab does not reach it: ${e.outerHTML.slice(0, 160)}`));
  wrong.push(...left);
  assert.ok(seen.size > 8, `${seen.size} stops`);
  assert.deepEqual(wrong, [], path(site.runs));
}
export const focusIsSeenAndReachesAllOfTheOverview = world => everything(world, () => '/');
export const focusIsSeenAndReachesAllOfTheRuns = world => everything(world, () => '/runs?skill=lab/badcheck');
export const focusIsSeenAndReachesAllOfARun = world => everything(world, runs => `/runs/${runs.badcheck}`);
export const focusIsSeenAndReachesAllOfAnApprovalInTheDark = world => everything(world, runs => `/runs/${runs.publish}`, {scheme: 'dark'});
export const focusIsSeenAndReachesAllOfASkill = world => everything(world, () => '/skills/lab/inputs');
export const focusIsSeenAndReachesAllOfTheSchedules = world => everything(world, () => '/schedules', {scheme: 'dark'});
export const focusIsSeenAndReachesAllOfTheTrends = world => everything(world, () => '/trends');

export async function theFirstStopSkipsToTheContent(world) {
  const site = await world.site('full'), page = await world.page(site, '/runs');
  await page.keyboard.press('Tab');
  assert.match((await focused(page)).name, /skip/i);
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'main');
}

export async function filtersAndTableWorkByKeyboard(world) {
  const site = await world.site('full'), page = await world.page(site, '/runs');
  await tabTo(page, 'the filter of failures', named('failed'));
  await page.keyboard.press('Space');
  await until('it is set', () => page.url().includes('outcome=failed'));
  await settled(page);
  assert.ok(await page.evaluate(() => document.activeElement.checked || document.activeElement.ariaPressed === 'true'), 'the focus stays at it');
  await tabTo(page, 'a run', at => at.tag === 'a' && /^\/runs\/[0-9A-Z]{26}$/.test(at.href));
  await page.keyboard.press('Enter');
  await until('the run is shown', () => /\/runs\/[0-9A-Z]{26}$/.test(page.url()));
  await until('the focus is in the new page', () => page.evaluate(() => document.activeElement.id === 'main'));
}

export async function theRunFormWorksByKeyboard(world) {
  const site = await world.site('full'), page = await world.page(site, '/skills/lab/inputs');
  await tabTo(page, 'the first input', named(/^words/));
  await page.keyboard.press('Control+A');
  await page.keyboard.type('typed by hand');
  await tabTo(page, 'the choice', named(/^level/));
  await page.keyboard.press('h');
  await tabTo(page, 'the button', named('Show what would run'));
  await page.keyboard.press('Enter');
  await until('it is shown', () => page.getByText('This would run').isVisible());
  assert.notEqual(await page.evaluate(() => document.activeElement), null);
  await tabTo(page, 'the button', named('Run'));
  await page.keyboard.press('Enter');
  await until('the run is shown', () => /\/runs\/[0-9A-Z]{26}$/.test(page.url()));
  const run = page.url().split('/').pop();
  await site.daemon.ended(run);
  const {inputs} = await site.daemon.run(run);
  assert.deepEqual([inputs.words, inputs.level], ['typed by hand', 'high']);
}

export async function aDialogKeepsTheFocusAndGivesItBack(world) {
  const site = await world.site('full'), gate = site.gate(), run = await site.daemon.submit('lab/slow', {gate: gate.path}), page = await world.page(site, `/runs/${run}`);
  await tabTo(page, 'the button', named('Cancel …'));
  await page.keyboard.press('Enter');
  await until('the dialog is there', () => page.getByRole('dialog').isVisible());
  assert.ok(await inDialog(page), 'the focus is in it');
  for (let i = 0; i < 12; i++) {
    await page.keyboard.press('Tab');
    const at = await focused(page);
    assert.ok(!at || await inDialog(page), `the focus leaves it for ${at?.html}`);
  }
  await page.keyboard.press('Escape');
  await until('the dialog is gone', async () => await page.getByRole('dialog').count() === 0);
  assert.equal((await focused(page)).name.trim(), 'Cancel …', 'the focus is where it was');
  await page.keyboard.press('Enter');
  await tabTo(page, 'the button', named('Cancel the run'));
  await page.keyboard.press('Enter');
  await until('it is cancelled', async () => (await page.title()).startsWith('cancelled'));
  gate.close();
}

export async function theCalendarWorksByArrows(world) {
  const site = await world.site('full'), page = await world.page(site);
  // Something has happened in this hour.
  const {run} = await site.daemon.post('schedules/trigger', {schedule: 'lab/fine'});
  await site.daemon.ended(run);
  await visit(page, await scheduleAddress(page, 'lab/fine'));
  const grid = page.getByRole('grid'), at = () => page.evaluate(() => document.activeElement.dataset?.cell?.replace(',', ' '));
  await until('it is there', () => grid.isVisible());
  await tabTo(page, 'the calendar', at => /data-cell/.test(at.html));
  const [row, hour] = (await at()).split(' ').map(Number);
  const told = page.locator(`a[href="/runs/${run}"]`), before = await told.count();
  await page.keyboard.press('Enter');
  await until('what happened in this hour is told', async () => await told.count() > before);
  assert.equal(await at(), `${row} ${hour}`, 'the focus stays');
  const go = async (key, to) => {
    await page.keyboard.press(key);
    assert.equal(await at(), to, key);
  };
  const left = Math.max(0, hour - 1), right = Math.min(23, left + 1);
  await go('ArrowLeft', `${row} ${left}`);
  await go('ArrowRight', `${row} ${right}`);
  await go('ArrowUp', `${row - 1} ${right}`);
  await go('ArrowDown', `${row} ${right}`);
  assert.equal(await grid.locator('button[tabindex="0"]').count(), 1, 'one stop of Tab');
  const next = await tabTo(page, 'what comes next', () => true);
  assert.ok(!/data-cell/.test(next.html), 'Tab leaves it');
}

export async function theLogIsSearchedByKeyboard(world) {
  const site = await world.site('full'), page = await world.page(site, `/runs/${site.runs.noisy}`);
  await tabTo(page, 'the search', named('Search in the log'));
  await page.keyboard.type('line 000123');
  await until('it is found', () => page.locator('mark').first().isVisible());
  assert.equal(await page.evaluate(() => document.activeElement.type), 'search', 'the focus stays');
  await page.keyboard.press('Control+A');
  await page.keyboard.press('Delete');
  await tabTo(page, 'the lines', named('Lines of the log'));
  const top = () => page.evaluate(() => document.activeElement.scrollTop);
  await page.keyboard.press('Home');
  await until('it is at its beginning', async () => await top() === 0);
  await page.keyboard.press('PageDown');
  await until('it scrolls', async () => await top() > 0);
}

export async function theFocusStaysWhenRunsChange(world) {
  const site = await world.site('full'), {daemon} = site, gate = site.gate(), run = await daemon.submit('lab/slow', {gate: gate.path});
  await daemon.reached(run, 'executing');
  for (const path of ['/runs', '/']) {
    const page = await world.page(site, path), link = page.getByRole('main').locator(`a[href="/runs/${run}"]`).first();
    await link.focus();
    const more = [];
    for (let i = 0; i < 4; i++) more.push(await daemon.submit('lab/burst', {n: i}));
    for (const one of more) await daemon.ended(one);
    const failed = more.push(await daemon.submit('lab/badcheck'));
    await daemon.ended(more[failed - 1]);
    await until('the newest is listed', () => page.locator(`a[href="/runs/${more.at(-1)}"]`).first().isVisible());
    await settled(page);
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute('href')), `/runs/${run}`, 'the focus is at the same run');
  }
  gate.write('end');
  gate.close();
}

export async function twoHundredRunsThatChangeAreToldInFewWords(world) {
  const site = await world.site('full'), {daemon} = site, pages = [];
  for (const path of ['/', '/runs']) {
    const page = await world.page(site, path);
    await page.evaluate(() => {
      window.told = [];
      const last = new WeakMap(), regions = '[aria-live]:not([aria-live=off]), [role=status], [role=alert], [role=log]';
      const read = () => { for (const region of document.querySelectorAll(regions)) { const text = region.textContent; if (last.get(region) !== text) { if (last.has(region) || text) window.told.push([Math.round(performance.now()), region.id || region.className || region.tagName, text.slice(0, 200)]); last.set(region, text); } } };
      read();
      window.told.length = 0;
      new MutationObserver(read).observe(document.body, {subtree: true, childList: true, characterData: true, attributes: true});
    });
    pages.push(page);
  }
  const asked = pages.map(page => page.context().requests.length), runs = [];
  for (let i = 0; i < 200; i++) runs.push(await daemon.submit(i % 4 ? 'lab/burst' : 'lab/badcheck', i % 4 ? {n: i} : {}));
  for (const run of runs) await daemon.ended(run);
  // What was held back is said once more.
  await sleep(6000);
  for (const [i, page] of pages.entries()) {
    const told = await page.evaluate(() => window.told), by = Map.groupBy ? Map.groupBy(told, one => one[1]) : told.reduce((map, one) => map.set(one[1], [...(map.get(one[1]) || []), one]), new Map());
    console.log(`    ${told.length} texts, ${page.context().requests.length - asked[i]} requests`);
    assert.ok(told.length > 0, 'that runs failed is told');
    for (const list of by.values()) for (let n = 1; n < list.length; n++) assert.ok(list[n][0] - list[n - 1][0] >= 2000, `too soon after the one before: ${JSON.stringify(list.slice(n - 1, n + 1))}`);
  }
}
twoHundredRunsThatChangeAreToldInFewWords.limit = 6 * 60000;
