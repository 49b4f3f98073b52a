// Logs: large ones, and what of them is where.
import assert from 'node:assert/strict';
import {heap, isStream, readLog, settled, visit} from '../browser.mjs';
import {until} from '../daemon.mjs';
import {SECRET, SENSITIVE} from '../workspace.mjs';

const box = page => page.getByRole('group', {name: 'Lines of the log'});
/** What a download has. */
async function downloaded(page, press) {
  const [download] = await Promise.all([page.waitForEvent('download'), press()]), parts = [];
  for await (const part of await download.createReadStream()) parts.push(part);
  return Buffer.concat(parts).toString();
}

export async function aLogOfTenMebibytesIsNeitherInTheDocumentNorInMemory(world) {
  const site = await world.site('full'), run = site.runs.noisy, context = await world.context(site), page = await context.newPage(), inspector = await context.newCDPSession(page);
  await inspector.send('Network.enable');
  const asked = new Set();
  let bytes = 0;
  inspector.on('Network.requestWillBeSent', ({requestId, request}) => { if (/\/logs|\/events/.test(new URL(request.url).pathname)) asked.add(requestId); });
  inspector.on('Network.dataReceived', ({requestId, dataLength}) => { if (asked.has(requestId)) bytes += dataLength; });
  await page.goto(`/runs/${run}`);
  await until('lines are in sight', () => page.locator('.line .log-text').first().isVisible());
  const first = bytes;
  assert.ok(first < 1e6, `${first} bytes of the log were fetched before its first lines were shown`);
  await settled(page);
  const [total] = [(await site.daemon.lines(run)).length];
  assert.ok(total > 100000);
  let most = 0;
  for (const part of [0.9, 0.5, 0.1, 0, 0.3, 0.7, 1, 0.25]) {
    await box(page).evaluate((element, part) => { element.scrollTop = (element.scrollHeight - element.clientHeight) * part; }, part);
    await until(`lines at ${part} are there`, () => box(page).evaluate(element => {
      const frame = element.getBoundingClientRect(), rows = [...element.querySelectorAll('.line')].filter(row => { const at = row.getBoundingClientRect(); return at.bottom > frame.top && at.top < frame.bottom; });
      return rows.length > 5 && rows.every(row => row.id);
    }));
    most = Math.max(most, await page.evaluate(() => document.querySelectorAll('*').length));
  }
  const used = await heap(page);
  console.log(`    ${first} bytes before the first lines, at most ${most} elements, ${(used / 1e6).toFixed(1)} MB of heap`);
  assert.ok(most < 3000, `${most} elements`);
  assert.ok(used < 50e6, `${used} bytes of heap`);
}

export async function aLineHasAnAddress(world) {
  const site = await world.site('full'), page = await world.page(site, `/runs/${site.runs.noisy}#L77777`);
  await until('it is in sight', () => page.locator('#L77777').isVisible());
  const told = (await site.daemon.get(`runs/${site.runs.noisy}/logs?from=77777&limit=1`))[0];
  assert.ok((await page.locator('#L77777 .log-text').textContent()).includes(told.text.replace(/\x1b\[\d*m/g, '')));
}

export async function aLogWithLongLinesOpensAtItsEnd(world) {
  const site = await world.site('full'), run = site.runs.hostile, page = await world.page(site, `/runs/${run}`), last = (await site.daemon.lines(run)).at(-1).line;
  await until('its last line is in sight', () => box(page).evaluate((element, id) => {
    const at = document.getElementById(id)?.getBoundingClientRect(), frame = element.getBoundingClientRect();
    return at && at.top >= frame.top && at.bottom <= frame.bottom + 1;
  }, `L${last}`), 5000);
}

export async function aLogIsSearchedAndFiltered(world) {
  const site = await world.site('full'), page = await world.page(site, `/runs/${site.runs.noisy}`), found = page.getByRole('group', {name: 'Lines that were found'});
  await page.getByRole('searchbox', {name: 'Search in the log'}).fill('LINE 004242');
  await until('the line is found', async () => (await found.locator('.log-text').allInnerTexts()).join().includes('line 004242'));
  await until('one is told', () => page.getByText(/^1 line of/).isVisible());
  await page.getByRole('searchbox', {name: 'Search in the log'}).fill('');
  await until('all lines are back', () => box(page).isVisible());
  await visit(page, `/runs/${site.runs.fine}`);
  for (const name of ['stdout', 'check', 'tool', 'event']) await page.getByRole('group', {name: 'Streams'}).getByRole('button', {name, exact: true}).click();
  await until('only standard error is left', async () => (await found.locator('.log-text').allInnerTexts()).join() === 'a word to stderr');
}

export async function aWholeLogIsDownloaded(world) {
  const site = await world.site('full'), page = await world.page(site, `/runs/${site.runs.noisy}`);
  const text = await downloaded(page, () => page.getByRole('button', {name: 'Download'}).click());
  assert.ok(text.length > 10e6 && text.includes('line 000000') && text.includes('line 099999'));
}

export async function aReadLogIsThatOfTheApi(world) {
  const site = await world.site('full'), page = await world.page(site, `/runs/${site.runs.slow}`), told = await site.daemon.lines(site.runs.slow), read = await readLog(page);
  assert.deepEqual([...read], told.map(line => [line.line, line.text]));
}

export async function secretsAreShownNowhere(world) {
  const site = await world.site('full'), {daemon, runs} = site;
  for (const [run, secret] of [[runs.secrets, SECRET], [runs.inputs, SENSITIVE]]) {
    const context = await world.context(site), page = await context.newPage(), answers = [];
    context.on('response', response => isStream(response.url()) || answers.push(response.body().then(body => [response.url(), body.toString()], () => null)));
    await visit(page, `/runs/${run}`);
    await until('what was masked is shown', () => page.locator('.log-text').getByText('***').first().isVisible());
    assert.ok(!(await page.content()).includes(secret), 'in the page');
    assert.ok(!(await downloaded(page, () => page.getByRole('button', {name: 'Download'}).click())).includes(secret), 'in what is downloaded');
    await page.getByRole('searchbox', {name: 'Search in the log'}).fill(secret);
    await until('nothing is found', () => page.getByText(/^0 lines of/).isVisible());
    for (const answer of await Promise.all(answers)) if (answer) assert.ok(!answer[1].includes(secret), answer[0]);
    assert.ok(!JSON.stringify(await daemon.lines(run)).includes(secret));
  }
}
