// What a person does with runs.
import assert from 'node:assert/strict';
import {logLine, visit} from '../browser.mjs';
import {sleep, until} from '../daemon.mjs';
import {keptCommit} from '../world.mjs';
import {HOSTILE, SENSITIVE} from '../workspace.mjs';

const runOf = page => until('the address names a run', () => /\/runs\/([0-9A-Z]{26})$/.exec(new URL(page.url()).pathname)?.[1]);
const dialog = page => page.getByRole('dialog');
/** Three dots behind the name of a button say that it asks first. */
const button = (within, name) => within.getByRole('button', {name: new RegExp(`^${name}( …)?$`)});
const press = (within, name) => button(within, name).click();
const says = (page, word) => until(`the page says ${word}`, async () => (await page.title()).startsWith(word));

export async function aRunIsAskedForOnceAfterWhatWouldRunIsShown(world) {
  const site = await world.site('full'), {daemon} = site, page = await world.page(site, '/skills/lab/inputs');
  const before = (await daemon.get('runs?skill=lab/inputs&limit=100')).length;
  await page.getByLabel(/^words/).fill('two words');
  await page.getByLabel(/^count/).fill('7');
  await page.getByLabel(/^really/).selectOption('true');
  await page.getByLabel(/^level/).selectOption('high');
  await page.getByLabel(/^names/).fill(`first\n${HOSTILE}`);
  await page.getByLabel(/^day/).fill('2026-02-28');
  await page.getByLabel(/^folder/).fill('workers');
  await page.getByLabel(/^token/).fill(SENSITIVE);
  await press(page, 'Show what would run');
  await until('the command is shown', () => page.getByText('the token is').first().isVisible());
  const shown = await page.getByRole('main').innerText();
  for (const value of ['two words', '2026-02-28', 'high']) assert.ok(shown.includes(value), `${value} is shown`);
  assert.ok(!shown.includes(SENSITIVE), 'what is sensitive is not');
  await page.getByRole('button', {name: 'Run', exact: true}).dblclick();
  const run = await runOf(page);
  await says(page, 'succeeded');
  assert.equal((await daemon.get('runs?skill=lab/inputs&limit=100')).length, before + 1, 'two clicks are one run');
  const {inputs} = await daemon.run(run);
  assert.deepEqual({...inputs, token: null, folder: null}, {words: 'two words', count: 7, really: true, level: 'high', names: ['first', HOSTILE], day: '2026-02-28', folder: null, token: null});
  await until('its log is there', () => logLine(page, 'the token is ***').isVisible());
  assert.ok(!(await page.content()).includes(SENSITIVE));
}

export async function whatWasTypedIsThereToBeChanged(world) {
  const site = await world.site('full'), page = await world.page(site, '/skills/lab/inputs'), words = page.getByLabel(/^words/);
  await words.fill('two words');
  await page.getByLabel(/^level/).selectOption('high');
  await press(page, 'Show what would run');
  await until('it is shown', () => page.getByText('This would run').isVisible());
  assert.ok(!await words.isVisible());
  await press(page, 'Change');
  assert.equal(await words.inputValue(), 'two words');
  assert.equal(await page.getByLabel(/^level/).inputValue(), 'high');
}

export async function anInputThatIsCalledMessageIsAnInput(world) {
  const site = await world.site('full'), page = await world.page(site, '/skills/lab/letter');
  await page.getByLabel(/^message/).fill('dear reader');
  await press(page, 'Show what would run');
  await press(page, 'Run');
  const run = await runOf(page);
  await says(page, 'succeeded');
  assert.deepEqual((await site.daemon.run(run)).inputs, {message: 'dear reader'});
}

export async function aTextThatIsTypedWhileOneLeavesChangesNoOtherPage(world) {
  const site = await world.site('full'), page = await world.page(site, '/runs');
  await page.getByLabel('Text').fill('import');
  await page.getByRole('link', {name: 'Trends', exact: true}).first().click();
  await sleep(600);
  assert.equal(new URL(page.url()).search, '');
}

export async function anInputThatIsRefusedIsToldAndKept(world) {
  const site = await world.site('full'), page = await world.page(site, '/skills/lab/inputs', {tolerate: /status of 4\d\d/});
  await page.getByLabel(/^words/).fill('kept as typed');
  await page.getByLabel(/^count/).fill('77');
  await press(page, 'Show what would run');
  await until('it is told', () => page.getByRole('alert').filter({hasText: 'count'}).isVisible());
  assert.equal(await page.getByLabel(/^words/).inputValue(), 'kept as typed');
}

export async function aRunIsFollowedAndCancelled(world) {
  const site = await world.site('full'), {daemon} = site, gate = site.gate(), run = await daemon.submit('lab/slow', {gate: gate.path}), page = await world.page(site, `/runs/${run}`);
  const line = text => logLine(page, text);
  await until('it has begun', () => line('begun').isVisible());
  for (const upto of [3, 6, 9]) {
    gate.write('lines 3');
    await until(`line ${upto} comes by itself`, () => line(`counted ${upto}`).isVisible());
  }
  await press(page, 'Cancel');
  // What is drawn again each second leaves alone what was chosen.
  await dialog(page).getByLabel(/^Now/).check();
  await sleep(2200);
  assert.ok(await dialog(page).getByLabel(/^Now/).isChecked());
  await press(dialog(page), 'Cancel the run');
  await says(page, 'cancelled');
  assert.equal(await dialog(page).count(), 0);
  assert.equal((await daemon.summary(run)).outcome.kind, 'cancelled');
  assert.equal(await button(page, 'Cancel').count(), 0);
  gate.close();
}

export async function aRunIsRepeated(world) {
  const site = await world.site('full'), page = await world.page(site, `/runs/${site.runs.fine}`);
  await page.getByRole('button', {name: 'Retry', exact: true}).dblclick();
  const run = await until('another run is shown', async () => { const now = await runOf(page); return now !== site.runs.fine && now; });
  await says(page, 'succeeded');
  const {retry_of: of, by} = await site.daemon.summary(run);
  assert.equal(of, site.runs.fine);
  assert.notEqual(by, 'unknown', 'it is known who asked');
  const again = (await site.daemon.get('runs?skill=lab/fine&limit=100')).filter(one => one.retry_of === site.runs.fine);
  assert.equal(again.length, 1, 'two clicks are one run');
}

export async function anUnknownOutcomeIsSettled(world) {
  const site = await world.site('full'), {daemon, runs} = site, page = await world.page(site, `/runs/${runs.unknown}`);
  await press(page, 'Resolve');
  await dialog(page).getByLabel('It succeeded').check();
  await dialog(page).getByLabel(/Why/).fill(`seen by hand ${HOSTILE}`);
  await press(dialog(page), 'Resolve');
  await until('nothing is left to settle', async () => await button(page, 'Resolve').count() === 0 && await dialog(page).count() === 0);
  const {summary, acts} = await daemon.run(runs.unknown);
  assert.equal(summary.outcome.kind, 'succeeded');
  assert.ok(acts.some(act => act.act.startsWith('resolve') && act.note?.includes('seen by hand')), JSON.stringify(acts));
  await until('the note is shown as text', () => page.getByText('seen by hand <img').first().isVisible());
}

export async function whatWaitsForAPersonIsApprovedOrDenied(world) {
  const site = await world.site('full'), {daemon} = site;
  for (const [skill, phase] of [['lab/wipe', 'succeeded'], ['shop/publish', 'succeeded']]) {
    const run = await daemon.submit(skill);
    await daemon.reached(run, 'awaiting_approval');
    const page = await world.page(site, `/runs/${run}`);
    await press(page, 'Approve');
    await dialog(page).getByLabel(/Note/).fill('looks right');
    await press(dialog(page), 'Approve');
    await says(page, phase);
    assert.equal((await daemon.run(run)).approval.note, 'looks right');
  }
  const run = await daemon.submit('lab/wipe');
  await daemon.reached(run, 'awaiting_approval');
  const page = await world.page(site, `/runs/${run}`);
  await press(page, 'Deny');
  await dialog(page).getByLabel(/Why/).fill('not on a Friday');
  await press(dialog(page), 'Deny');
  await says(page, 'denied');
  assert.equal((await daemon.summary(run)).outcome.kind, 'denied');
  await until('the note is shown', () => page.getByText('not on a Friday').first().isVisible());
}

export async function whatWillLandIsShownToWhoFollowsTheRun(world) {
  const site = await world.site('full'), {daemon} = site, page = await world.page(site, null, {tolerate: /status of 404/});
  // As if it were asked for before anything is kept.
  let early = 0;
  await page.route('**/changes', async route => early++ ? route.continue() : route.fulfill({status: 404, json: {kind: 'not_found', code: 'nothing_kept', message: 'nothing is kept'}}));
  const run = await daemon.submit('shop/slow');
  await page.goto(`/runs/${run}`);
  const changes = page.getByRole('region', {name: 'Changes'});
  await until('nothing is kept yet', () => changes.getByText('Nothing is kept yet.').isVisible());
  assert.equal(await changes.getByRole('alert').count(), 0);
  await daemon.reached(run, 'awaiting_approval');
  await until('what will land is shown', () => changes.getByText('slow.txt').isVisible());
  await press(page, 'Deny');
  await dialog(page).getByLabel(/Why/).fill('seen');
  await press(dialog(page), 'Deny');
  await says(page, 'denied');
}

export async function aKeptCommitLandsOrIsDropped(world) {
  const site = await world.site('full'), {daemon, git} = site;
  const kept = await keptCommit(site), page = await world.page(site, `/runs/${kept}`), before = git('rev-parse', 'main');
  await press(page, 'Land');
  await press(dialog(page), 'Land');
  await until('it has landed', async () => await button(page, 'Land').count() === 0 && !(await daemon.summary(kept)).kept_commit);
  assert.notEqual(git('rev-parse', 'main'), before);
  const other = await keptCommit(site), tip = git('rev-parse', 'main');
  await visit(page, `/runs/${other}`);
  await press(page, 'Discard');
  await press(dialog(page), 'Discard');
  await until('it is gone', async () => await button(page, 'Discard').count() === 0 && !(await daemon.summary(other)).kept_commit);
  assert.equal(git('rev-parse', 'main'), tip);
}

export async function timesAreTypedKeyByKey(world) {
  const site = await world.site('full'), page = await world.page(site, '/runs'), values = () => new URL(page.url()).searchParams;
  await page.getByLabel('Time').selectOption('own');
  for (const [name, key] of [['From', 'from'], ['To', 'to']]) {
    await page.getByLabel(new RegExp(`^${name}`)).focus();
    for (const digit of name === 'From' ? '0305' : '03062031') {
      await page.keyboard.press(digit);
      if (digit === '0') await sleep(400);
    }
    if (name === 'To') {
      await page.keyboard.press('Tab');
      await page.keyboard.type('0102AM');
    }
    await until(`${name} stands in the address`, () => /^\d{4}-03-0[56]T/.test(values().get(key)));
  }
  assert.match(values().get('to'), /^2031-03-06T01:02/);
  assert.match(values().get('from'), /-03-05T/);
}

export async function filtersStandInTheAddress(world) {
  const site = await world.site('full'), page = await world.page(site, '/runs');
  const outcomes = page.getByRole('group', {name: 'Outcome'});
  await outcomes.getByText('failed', {exact: true}).click();
  await until('the outcome stands there', () => new URL(page.url()).searchParams.get('outcome') === 'failed');
  await page.getByLabel('Text').fill('import');
  await until('the text stands there', () => new URL(page.url()).searchParams.get('text') === 'import');
  await until('only those are listed', async () => {
    const rows = await page.getByRole('table').getByRole('row').allInnerTexts();
    return rows.length > 1 && rows.slice(1).every(row => row.includes('Nightly import'));
  });
  await page.reload();
  assert.equal(await outcomes.locator('[aria-pressed="true"], input:checked').count(), 1);
  assert.equal(await page.getByLabel('Text').inputValue(), 'import');
  await page.getByText('Clear', {exact: true}).click();
  await until('all are listed', () => new URL(page.url()).search === '');
  assert.equal(await page.getByLabel('Text').inputValue(), '');
}
