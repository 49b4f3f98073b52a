// Logs: large ones, and what of them is where.
import assert from 'node:assert/strict';
import {heap, isStream, logBox, logLoaded, logTexts, readLog, settled, visit} from '../browser.mjs';
import {sleep, until} from '../daemon.mjs';
import {SECRET, SENSITIVE} from '../workspace.mjs';

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
  await until('lines are in sight', () => logTexts(page).first().isVisible());
  const first = bytes;
  assert.ok(first < 1e6, `${first} bytes of the log were fetched before its first lines were shown`);
  await settled(page);
  const [total] = [(await site.daemon.lines(run)).length];
  assert.ok(total > 100000);
  let most = 0;
  for (const part of [0.9, 0.5, 0.1, 0, 0.3, 0.7, 1, 0.25]) {
    await logBox(page).evaluate((element, part) => { element.scrollTop = (element.scrollHeight - element.clientHeight) * part; }, part);
    await until(`lines at ${part} are there`, () => logLoaded(page));
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
  assert.ok((await page.locator('#L77777 > :last-child').textContent()).includes(told.text.replace(/\x1b\[\d*m/g, '')));
}

export async function aLogWithLongLinesOpensAtItsEnd(world) {
  const site = await world.site('full'), run = site.runs.hostile, page = await world.page(site, `/runs/${run}`), last = (await site.daemon.lines(run)).at(-1).line;
  await until('its last line is in sight', () => logBox(page).evaluate((element, id) => {
    const at = document.getElementById(id)?.getBoundingClientRect(), frame = element.getBoundingClientRect();
    return at && at.top >= frame.top && at.bottom <= frame.bottom + 1;
  }, `L${last}`), 5000);
}

export async function aLogIsSearchedAndFiltered(world) {
  const site = await world.site('full'), page = await world.page(site, `/runs/${site.runs.noisy}`);
  await page.getByRole('searchbox', {name: 'Search in the log'}).fill('LINE 004242');
  await until('the line is found, and no other', async () => {
    const texts = await logTexts(page).allInnerTexts();
    return texts.length === 1 && texts[0].includes('line 004242');
  });
  await page.getByRole('searchbox', {name: 'Search in the log'}).fill('');
  await until('all lines are back', async () => await logTexts(page).count() > 10);
  await visit(page, `/runs/${site.runs.fine}`);
  for (const name of ['stdout', 'check', 'tool', 'event']) await page.getByRole('group', {name: 'Streams'}).getByRole('button', {name, exact: true}).click();
  await until('only standard error is left', async () => (await logTexts(page).allInnerTexts()).join() === 'a word to stderr');
}

export async function whatIsFoundIsBoundedAndGoesOn(world) {
  const site = await world.site('full'), {daemon} = site, gate = site.gate(), run = await daemon.submit('lab/slow', {gate: gate.path});
  const lines = n => until(`${n} lines are written`, async () => +(await daemon.ask('GET', `runs/${run}/logs?tail=1`)).headers['workerctl-lines'] >= n);
  gate.write('lines 4900');
  await lines(4901);
  const page = await world.page(site, `/runs/${run}`), status = page.locator('.log').getByRole('status'), says = text => until(`it says ${text}`, async () => (await status.innerText()).includes(text));
  await page.getByRole('searchbox', {name: 'Search in the log'}).fill('counted');
  await says('4,900 found');
  // They come by themselves up to a bound; from there on somebody asks for them.
  gate.write('lines 300');
  await lines(5201);
  await says('5,000 found up to line');
  await status.getByRole('button', {name: 'Go on'}).click();
  await says('200 found from line');
  gate.write('lines 1');
  await says('201 found from line');
  gate.write('end');
  gate.close();
  await daemon.ended(run);
}

export async function anAnswerWithFewerLinesIsAskedForOnce(world) {
  const site = await world.site('full'), page = await world.page(site), asked = [];
  await page.route(/logs\?from=/, route => {
    const address = new URL(route.request().url()), {searchParams: values} = address;
    asked.push(+values.get('from'));
    values.set('limit', Math.min(100, values.get('limit')));
    return route.continue({url: address.href});
  });
  await visit(page, `/runs/${site.runs.noisy}`);
  await logBox(page).evaluate(element => { element.scrollTop = 0; });
  await until('a page of lines is there', () => asked.includes(400));
  await sleep(1000);
  assert.deepEqual(asked, [...new Set(asked)]);
  await until('lines are in sight', () => logLoaded(page));
}

export async function aLogThatIsNotThereAnyMoreIsToldOnce(world) {
  const site = await world.site('full'), run = site.runs.fine, page = await world.page(site), asked = [];
  await page.route(address => isStream(address.href), route => {
    const runs = new URL(route.request().url()).searchParams.get('runs');
    asked.push(runs);
    const error = runs ? `event: error\ndata: ${JSON.stringify({run, kind: 'not_found', code: 'run', message: 'the run is forgotten'})}\n\n` : '';
    return route.fulfill({status: 200, contentType: 'text/event-stream', body: `id: x-1\nevent: hello\ndata: {"version":"9.9.9","resumed":true}\n\n${error}`});
  });
  await page.goto(`/runs/${run}`);
  await until('it is told', () => page.getByRole('alert').filter({hasText: 'the run is forgotten'}).isVisible());
  const before = asked.length;
  await until('the stream is opened again', () => asked.length > before + 1);
  assert.equal(asked.filter(Boolean).length, 1, `${asked}`);
  assert.equal(await page.getByRole('alert').count(), 1);
  assert.ok(await logTexts(page).first().isVisible());
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
    await until('what was masked is shown', () => logTexts(page).filter({hasText: '***'}).first().isVisible());
    assert.ok(!(await page.content()).includes(secret), 'in the page');
    assert.ok(!(await downloaded(page, () => page.getByRole('button', {name: 'Download'}).click())).includes(secret), 'in what is downloaded');
    await page.getByRole('searchbox', {name: 'Search in the log'}).fill(secret);
    await until('nothing is found', () => page.getByText(/\b0 (lines of|found)/).isVisible());
    for (const answer of await Promise.all(answers)) if (answer) assert.ok(!answer[1].includes(secret), answer[0]);
    assert.ok(!JSON.stringify(await daemon.lines(run)).includes(secret));
  }
}

export async function aLogThatIsIncompleteSaysSo(world) {
  const site = await world.site('full'), page = await world.page(site), status = page.locator('.log').getByRole('status');
  await page.route(`**/v1/runs/${site.runs.fine}`, async route => {
    const told = await (await route.fetch()).json();
    told.attempts[0].execution.dropped_bytes = 1677722;
    return route.fulfill({json: told});
  });
  await visit(page, `/runs/${site.runs.fine}`);
  const says = async () => assert.match(await status.innerText(), /1\.6 MiB of output not kept/);
  await says();
  await page.getByRole('searchbox', {name: 'Search in the log'}).fill('what was never printed');
  await until('nothing is found', () => status.getByText(/\b0 found/).isVisible());
  await says();
}
