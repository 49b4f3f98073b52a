// Logging in and out, and what a session may do.
import assert from 'node:assert/strict';
import {fetchAs, isStream, logIn, scheduleAddress, settled, visit} from '../browser.mjs';
import {sleep, until} from '../daemon.mjs';

const unknownCode = /status of 401/;
const CHANGES = /^(run|cancel|retry|resolve|approve|deny|land|discard|trigger|pause|resume|backfill)\b/i;

export async function aCodeLogsInOnceAndLeavesTheAddressAtOnce(world) {
  const site = await world.site('full'), login = new URL(await site.daemon.login());
  const context = await world.context(site, {session: null}), page = await context.newPage();
  let answer;
  const held = new Promise(done => { answer = done; });
  await page.route('**/v1/web/login', async route => { await held; await route.continue(); });
  const asked = page.waitForRequest('**/v1/web/login');
  await page.goto('/runs?outcome=failed' + login.hash);
  await asked;
  assert.equal(page.url(), login.origin + '/runs?outcome=failed', 'the code is gone from the address before it is answered');
  answer();
  await until('the runs are shown', () => page.getByRole('heading', {level: 1, name: 'Runs'}).isVisible());
  assert.equal(page.url(), login.origin + '/runs?outcome=failed');
  await page.goBack().catch(() => {});
  assert.ok(!page.url().includes('login='), 'no address of the history has the code');

  const other = await world.context(site, {session: null, tolerate: unknownCode}), second = await other.newPage();
  await second.goto('/' + login.hash);
  await until('the second use is refused', () => second.getByRole('alert').isVisible());
  assert.ok(await second.getByText('workerctl web').first().isVisible(), 'it says where another code comes from');
  assert.ok(!second.url().includes('login='));
  assert.equal(await second.locator('nav').count(), 0);
}

export async function anEndedSessionAsksForAnotherAndKeepsTheAddress(world) {
  const site = await world.site('full'), session = await logIn(world.browser, site.daemon);
  const page = await world.page(site, '/runs?outcome=failed&text=import', {session, tolerate: unknownCode});
  const ended = await fetchAs(session, 'web/logout', {method: 'POST', body: '{}'});
  assert.equal(ended.status, 200);
  await page.reload();
  await until('the page asks to log in', () => page.getByText('workerctl web').first().isVisible());
  assert.equal(page.url(), session.origin + '/runs?outcome=failed&text=import');
  const login = new URL(await site.daemon.login());
  await page.evaluate(hash => { location.hash = hash; }, login.hash);
  await until('it goes on where it was', () => page.getByRole('heading', {level: 1, name: 'Runs'}).isVisible());
  assert.equal(page.url(), session.origin + '/runs?outcome=failed&text=import');
}

export async function loggingOutEndsTheSession(world) {
  const site = await world.site('full'), session = await logIn(world.browser, site.daemon);
  const page = await world.page(site, '/', {session, tolerate: unknownCode});
  assert.equal((await fetchAs(session, 'web/session')).status, 200);
  await page.getByRole('button', {name: 'Log out'}).click();
  await until('the page asks to log in', () => page.getByText('workerctl web').first().isVisible());
  await until('the session is over', async () => (await fetchAs(session, 'status')).status === 401);
  assert.deepEqual(await page.evaluate(token => Object.values(localStorage).filter(value => value.includes(token)), session.token), []);
}

export async function aLoginInOneTabIsOneInAllAndAnOlderTabEndsOnlyItsOwn(world) {
  const site = await world.site('full'), session = await logIn(world.browser, site.daemon), context = await world.context(site, {session, tolerate: unknownCode});
  const older = await context.newPage(), newer = await context.newPage(), kept = () => newer.evaluate(() => JSON.parse(Object.values(localStorage).find(value => value.includes('token'))).token);
  await visit(older, '/');
  await newer.goto(await site.daemon.login());
  await until('there is another session', async () => await kept() !== session.token);
  const token = await kept();
  assert.equal((await fetchAs(session, 'web/logout', {method: 'POST', body: '{}'})).status, 200);
  await older.getByRole('link', {name: 'Runs', exact: true}).first().click();
  await settled(older);
  await until('the older tab has the newer session', () => older.getByRole('group', {name: 'Runs', exact: true}).isVisible());
  assert.equal(await kept(), token);
  await newer.getByRole('button', {name: 'Log out'}).click();
  await until('both ask to log in', async () => await older.getByText('workerctl web').first().isVisible() && await newer.getByText('workerctl web').first().isVisible());
}

export async function anAddressThatLogsNobodyInEndsNoSession(world) {
  const site = await world.site('full'), page = await world.page(site, null, {tolerate: unknownCode});
  await page.goto('/#login=0123456789abcdef0123456789abcdef');
  await until('who is logged in stays so', () => page.locator('header nav').isVisible());
}

export async function aLogoutThatIsRefusedIsTold(world) {
  const site = await world.site('full'), page = await world.page(site, '/', {tolerate: /status of 503/});
  await page.route('**/v1/web/logout', route => route.fulfill({status: 503, json: {code: 'disk_full', message: 'the end cannot be written'}}));
  await page.getByRole('button', {name: 'Log out'}).click();
  await until('it is told', () => page.getByRole('alert').filter({hasText: 'the end cannot be written'}).isVisible());
  assert.ok(await page.locator('header nav').isVisible());
}

export async function aRoleThatHasChangedIsThatOfThePage(world) {
  const site = await world.site('full'), context = await world.context(site), page = await context.newPage();
  let role = 'read';
  await page.route('**/v1/web/session', async route => route.fulfill({json: {...await (await route.fetch()).json(), role}}));
  // It has changed while no page was open, and then while one is.
  await visit(page, '/skills/lab/fine');
  const shown = page.locator('header').getByText(/^(read|admin)$/);
  await until('it reads', async () => await shown.innerText() === 'read');
  role = 'admin';
  await visit(page, '/');
  await site.daemon.post('reload');
  await until('it may do everything', async () => await shown.innerText() === 'admin');
}

export async function aSessionThatOnlyReadsIsOfferedNothingThatChanges(world) {
  const site = await world.site('full'), session = await site.reader, {runs} = site;
  const page = await world.page(site, null, {session});
  for (const path of ['/', `/runs/${runs.publish}`, `/runs/${runs.unknown}`, `/runs/${runs.kept}`, `/runs/${runs.slow}`, `/runs/${runs.fine}`, {schedule: 'lab/fine'}, {schedule: 'lab/fine#resting'}, '/skills/lab/fine']) {
    await visit(page, path.schedule ? await scheduleAddress(page, path.schedule) : path);
    const names = await page.getByRole('main').getByRole('button').allInnerTexts();
    assert.deepEqual(names.filter(name => CHANGES.test(name.trim())), [], path.schedule || path);
  }
  await page.getByRole('button', {name: 'Show what would run'}).click();
  await until('what would run is shown', () => page.getByText('This would run').isVisible());
  assert.equal(await page.getByRole('button', {name: 'Run', exact: true}).count(), 0);
  const refused = await fetchAs(session, 'runs', {method: 'POST', body: JSON.stringify({skill: 'lab/fine'})});
  assert.equal(refused.status, 403);
}

export async function nothingButTheLoginIsThereForNobody(world) {
  const site = await world.site('full');
  const version = await (await fetch(`${site.admin.origin}/v1/version`)).text();
  assert.ok(!version.includes(site.place), 'who has no session learns nothing of the workspace');
  for (const path of ['status', 'runs', 'events', 'web/session']) {
    const answer = await fetch(`${site.admin.origin}/v1/${path}`);
    assert.equal(answer.status, 401, path);
  }
  for (const scheme of ['light', 'dark']) {
    const page = await world.page(site, null, {session: null, scheme, width: 360});
    await page.goto('/');
    await settled(page);
    assert.ok(await page.getByText('workerctl web').first().isVisible());
    assert.equal(page.context().requests.filter(request => request.url().includes('/v1/')).length, 0, 'it asks for nothing that it would be refused');
    await world.picture(`login-${scheme}-360`, page);
  }
}

export async function theOverviewAsksForLittle(world) {
  const site = await world.site('full'), context = await world.context(site), page = await context.newPage(), inspector = await context.newCDPSession(page);
  await inspector.send('Network.enable');
  const asked = new Map();
  let bytes = 0;
  inspector.on('Network.requestWillBeSent', ({requestId, request}) => { if (new URL(request.url).pathname.startsWith('/v1/')) asked.set(requestId, request.url); });
  inspector.on('Network.dataReceived', ({requestId, encodedDataLength, dataLength}) => { if (asked.has(requestId)) bytes += encodedDataLength || dataLength; });
  await visit(page, '/');
  console.log(`    ${asked.size} requests, ${bytes} bytes`);
  assert.ok(asked.size <= 6, `at most 6 requests: ${[...asked.values()].join(' ')}`);
  assert.ok(bytes <= 100000, `${bytes} bytes`);
}

export async function theOverviewShowsWhatRunsNow(world) {
  const site = await world.own(), {daemon} = site;
  try {
    const page = await world.page(site, '/', {tolerate: /ERR_/}), gate = site.gate(), going = page.getByRole('region', {name: 'Running and queued'});
    const run = await daemon.submit('lab/slow', {gate: gate.path}), link = going.locator(`a[href="/runs/${run}"]`);
    await until('it is listed', () => link.isVisible(), 5000);
    gate.write('end');
    await daemon.ended(run);
    await until('it is not any more', async () => !await link.isVisible(), 5000);
    // What happens while another page is shown is there on the way back.
    await page.getByRole('link', {name: 'Trends', exact: true}).first().click();
    const other = await daemon.submit('lab/slow', {gate: gate.path});
    await daemon.reached(other, 'executing');
    await page.getByRole('link', {name: 'Overview', exact: true}).click();
    await until('the other is listed', () => going.locator(`a[href="/runs/${other}"]`).isVisible(), 5000);
    gate.write('end');
    gate.close();
  } finally { await site.end(); }
}

export async function aRunThatHasEndedWaitsForNothing(world) {
  const site = await world.site('full'), page = await world.page(site);
  await page.route(/\/v1\/runs\?/, async route => {
    const answer = await route.fetch(), told = (await answer.json()).map(run => ({...run, waiting_for: run.outcome ? 'a free place' : null}));
    return route.fulfill({response: answer, json: told});
  });
  await visit(page, '/runs');
  assert.ok(!/waits for/.test(await page.getByRole('main').innerText()));
}

export async function aPageOfAnOlderDaemonSaysThatANewerIsThere(world) {
  const site = await world.site('full'), page = await world.page(site, null);
  // What the stream says first names the files that the daemon has now.
  await page.route(address => isStream(address.href), route => route.fulfill({status: 200, contentType: 'text/event-stream', body: 'id: x-1\nevent: hello\ndata: {"version":"9.9.9","web":"0123456789abcdef","resumed":false}\n\n'}));
  await page.goto('/');
  await until('it says so', () => page.getByText('A newer page is there').isVisible());
  await Promise.all([page.waitForEvent('framenavigated'), page.getByRole('button', {name: 'load it'}).click()]);
  await page.unrouteAll({behavior: 'ignoreErrors'});
  await page.reload();
  await settled(page);
  await until('it is not said any more', async () => !await page.getByText('A newer page is there').isVisible());
}

export async function aPageAsksForNothingWhileNothingHappens(world) {
  const site = await world.site('empty'), page = await world.page(site, '/'), {requests} = page.context();
  // What was under way when the page was there is over.
  await sleep(3000);
  const before = requests.length;
  await sleep(12000);
  assert.deepEqual(requests.slice(before).map(request => request.url()), []);
}
