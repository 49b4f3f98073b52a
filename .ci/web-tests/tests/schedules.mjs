// What a person does with schedules.
import assert from 'node:assert/strict';
import {scheduleAddress, visit} from '../browser.mjs';
import {until} from '../daemon.mjs';
import {HOSTILE} from '../workspace.mjs';

const id = encodeURIComponent, dialog = page => page.getByRole('dialog');
/** The page of a schedule, loaded by its address. */
const open = async (world, site, schedule) => {
  const page = await world.page(site);
  await visit(page, await scheduleAddress(page, schedule));
  return page;
};
const button = (within, name) => within.getByRole('button', {name: new RegExp(`^${name}( …)?$`)});
const press = (within, name) => button(within, name).click();

export async function aScheduleIsPausedAndResumed(world) {
  const site = await world.site('full'), {daemon} = site, schedule = 'lab/fine#hourly', page = await open(world, site, schedule);
  const paused = async () => (await daemon.get(`schedules?schedule=${id(schedule)}`))[0].paused;
  await press(page, 'Pause');
  await dialog(page).getByLabel(/Why/).fill(`stocktaking ${HOSTILE}`);
  await press(dialog(page), 'Pause');
  await until('it is paused', () => button(page, 'Resume').isVisible());
  assert.equal((await paused()).reason, `stocktaking ${HOSTILE}`);
  await until('the reason is shown', () => page.getByText('stocktaking <img').first().isVisible());
  await press(page, 'Resume');
  await until('it is not', () => button(page, 'Pause').isVisible());
  assert.equal(await paused(), null);
}

export async function aScheduleIsTriggered(world) {
  const site = await world.site('full'), page = await open(world, site, 'lab/fine#monthly');
  await press(page, 'Trigger');
  await press(dialog(page), 'Run it now');
  await until('its run is shown', () => /\/runs\/[0-9A-Z]{26}$/.test(page.url()));
  await until('it has ended', async () => (await page.title()).startsWith('succeeded'));
  assert.equal((await site.daemon.summary(page.url().split('/').pop())).schedule, 'lab/fine#monthly');
}

export async function pastSlotsAreShownBeforeTheyRun(world) {
  const site = await world.site('full'), {daemon} = site, schedule = 'lab/fine#monthly', page = await open(world, site, schedule);
  const ran = async () => (await daemon.get(`runs?schedule=${id(schedule)}&limit=100`)).length, before = await ran();
  await press(page, 'Backfill');
  await dialog(page).getByLabel(/^From/).fill('2026-01-15T00:00');
  await dialog(page).getByLabel(/^To/).fill('2026-03-15T00:00');
  await press(dialog(page), 'Show slots');
  await until('both slots are shown', async () => await dialog(page).getByRole('row').count() === 3);
  assert.equal(await ran(), before, 'to show them runs nothing');
  await dialog(page).getByLabel(/^From/).fill('2026-01-15T00:01');
  await until('those of another time are not offered', async () => await dialog(page).getByRole('row').count() === 0);
  await press(dialog(page), 'Show slots');
  await press(dialog(page), 'Run 2 slots');
  await until('the dialog is gone', async () => await dialog(page).count() === 0);
  assert.equal(await ran(), before + 2);
}

export async function anHourThatIsPastSaysWhatBecameOfItsSlots(world) {
  const site = await world.site('full'), schedule = 'lab/failing';
  const page = await open(world, site, schedule), cell = page.getByRole('grid', {name: 'Slots by day and hour'}).getByRole('button', {name: /failed/}).first();
  // An hour from now it is one of the past, of which nothing is to come.
  await page.evaluate(() => { const now = Date.now; Date.now = () => now() + 3600000; });
  await cell.click();
  await until('its slots are shown', () => page.locator('.detail').getByText('failed').first().isVisible());
}

export async function aFailingScheduleSaysWhy(world) {
  const site = await world.site('full'), page = await open(world, site, 'lab/failing'), text = await page.getByRole('main').innerText();
  assert.match(text, /overdue/);
  assert.match(text, /2 failures in a row/);
}

export async function aPausedScheduleHasNoNextSlotAndIsRunAllTheSame(world) {
  const site = await world.site('full'), page = await open(world, site, 'lab/fine#resting'), text = await page.getByRole('main').innerText();
  assert.match(text, /–, paused/);
  assert.match(text, /Would come next, were it not paused/);
  assert.ok(!/Comes next/.test(text));
  await press(page, 'Trigger');
  await dialog(page).getByLabel('although it is paused').check();
  await press(dialog(page), 'Run it now');
  await until('its run is shown', () => /\/runs\/[0-9A-Z]{26}$/.test(page.url()));
  assert.equal((await site.daemon.summary(page.url().split('/').pop())).schedule, 'lab/fine#resting');
}
