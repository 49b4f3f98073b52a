// Text of others stays text, wherever it is shown.
import assert from 'node:assert/strict';
import {readLog, scheduleAddress, visit} from '../browser.mjs';
import {until} from '../daemon.mjs';

/** What must never be, in a page that shows such text. */
async function unharmed(page, where) {
  const told = await page.evaluate(() => ({
    hacked: window.hacked,
    elements: [...document.querySelectorAll('img, iframe, object, embed, script:not([src^="/assets/"]), base, form[action], video, audio, link:not([href^="/assets/"]), style, marquee, foreignObject, use')].map(element => element.outerHTML.slice(0, 100)),
    handlers: [...document.querySelectorAll('*')].filter(element => [...element.attributes].some(a => a.name.startsWith('on'))).map(element => element.outerHTML.slice(0, 100)),
    links: [...document.querySelectorAll('a')].map(a => a.getAttribute('href')).filter(href => href !== null && !/^(\/(?![/\\])|#)/.test(href)),
    // Of what is not in a log, and of titles: characters that act.
    acting: [document.title, ...[...document.querySelectorAll('[title], [aria-label], [placeholder]')].flatMap(e => ['title', 'aria-label', 'placeholder'].map(name => e.getAttribute(name) || '')), document.body.innerText].flatMap(text => text.match(/.{0,30}[\0-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff].{0,10}/gu) || []).map(text => JSON.stringify(text)),
  }));
  assert.equal(told.hacked, undefined, `${where}: a script ran`);
  for (const name of ['elements', 'handlers', 'links', 'acting']) assert.deepEqual(told[name], [], `${where}: ${name}`);
}

export async function hostileTextOfDefinitionsAndRunsStaysText(world) {
  const site = await world.site('full'), {runs} = site, page = await world.page(site);
  for (const path of ['/', '/runs', '/runs?view=lanes', '/runs?text=%3Cimg%20src%3Dx%3E%E2%80%AE', '/skills', '/skills/lab/hostile', '/skills/lab/inputs', `/runs/${runs.hostile}`, `/runs/${runs.prices}`, `/runs/${runs.denied}`, `/runs/${runs.inputs}`, '/schedules', {schedule: 'lab/fine#resting'}, '/trends', '/runs/%3Cimg%20src%3Dx%20onerror%3D%22window.hacked%3D7%22%3E', '/skills/%3Cscript%3E/%E2%80%AEx', '/schedules/javascript%3Aalert(1)/%E2%80%AE']) {
    page.context().tolerate = /status of 4\d\d/;
    await visit(page, path.schedule ? await scheduleAddress(page, path.schedule) : path);
    await unharmed(page, path.schedule || path);
  }
  const broken = await world.site('broken'), other = await world.page(broken);
  for (const path of ['/', '/skills?show=problems', '/schedules']) {
    await visit(other, path);
    await unharmed(other, path);
  }
}

export async function hostileBytesOfALogStayText(world) {
  const site = await world.site('full'), page = await world.page(site, `/runs/${site.runs.hostile}`);
  const seen = new Set();
  for (const end of [false, true]) {
    const lines = await readLog(page);
    await unharmed(page, `the log${end ? ' wrapped' : ''}`);
    const text = [...lines.values()].join('\n');
    for (const what of ['<script>window.hacked=2</script>', 'press me', 'javascript:window.hacked=3', '\\u202e', 'after what is no UTF-8', 'progress 100%']) assert.ok(text.includes(what), `${what} is shown`);
    for (const number of lines.keys()) seen.add(number);
    if (!end) await page.getByRole('button', {name: 'wrap'}).click();
  }
  assert.equal(seen.size, (await site.daemon.lines(site.runs.hostile)).length);
  await page.getByRole('searchbox', {name: 'Search in the log'}).fill('onerror');
  await until('it is found', () => page.locator('mark').first().isVisible());
  await unharmed(page, 'what was found');
  await page.getByRole('searchbox', {name: 'Search in the log'}).fill('xxxxx');
  await page.getByRole('button', {name: /show all/}).first().click();
  await until('a long piece of a line is shown', () => page.getByRole('dialog').getByText(/65,536 characters/).isVisible());
  await unharmed(page, 'a long line');
}

export async function hostileNamesAndTextOfChangesStayText(world) {
  const site = await world.site('full'), page = await world.page(site, `/runs/${site.runs.prices}`), changes = page.getByRole('region', {name: 'Changes'}), files = changes.locator('details');
  await until('the paths are listed', async () => await files.count() >= 5);
  for (const file of await files.all()) await file.locator('summary').click();
  await until('all patches are there', async () => !/Loading/.test(await changes.innerText()) && await changes.locator('pre').count() >= 4);
  await unharmed(page, 'the changes');
  const text = await changes.innerText();
  for (const what of ['<img src=x onerror=window.hacked=5>.txt', '\\u202e', '<script>window.hacked=6</script>', 'binary']) assert.ok(text.includes(what), `${what} is shown`);
  await world.picture('changes', page);
}

export async function hostileInputsAreRenderedAsText(world) {
  const site = await world.site('full'), page = await world.page(site, '/skills/lab/hostile');
  await page.getByRole('button', {name: 'Show what would run'}).click();
  await until('what would run is shown', () => page.getByText('This would run').isVisible());
  await unharmed(page, 'what would run');
}
