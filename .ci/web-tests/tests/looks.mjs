// Every page, in both themes and two widths: no error, nothing that axe finds, no scrolling sideways; and a picture of each.
import {axe, scheduleAddress, visit} from '../browser.mjs';

const PAGES = {
  full: runs => ({
    overview: '/', runs: '/runs', 'runs-failed': '/runs?outcome=failed,timed_out', lanes: '/runs?view=lanes', skills: '/skills', problems: '/skills?show=problems', 'skill-inputs': '/skills/lab/inputs', 'skill-hostile': '/skills/lab/hostile',
    schedules: '/schedules', schedule: {schedule: 'lab/fine'}, 'schedule-failing': {schedule: 'lab/failing'}, 'schedule-paused': {schedule: 'lab/fine#resting'}, trends: '/trends', nowhere: '/runs/a/b', 'no-run': '/runs/01ZZZZZZZZZZZZZZZZZZZZZZZZ',
    ...Object.fromEntries(['fine', 'badcheck', 'overlong', 'unknown', 'flaky', 'denied', 'hostile', 'secrets', 'noisy', 'prices', 'publish', 'wipe', 'kept', 'slow', 'inputs'].map(name => [`run-${name}`, `/runs/${runs[name]}`])),
  }),
  empty: () => ({overview: '/', runs: '/runs', lanes: '/runs?view=lanes', skills: '/skills', problems: '/skills?show=problems', schedules: '/schedules', trends: '/trends'}),
  broken: () => ({overview: '/', runs: '/runs', skills: '/skills', problems: '/skills?show=problems', skill: '/skills/good/fine', schedules: '/schedules', schedule: {schedule: 'good/fine'}, trends: '/trends'}),
};
/** A run that is not there is answered with 404, which the console tells. */
const tolerate = /status of 404.*\/runs\/01ZZ/;

async function look(world, kind, scheme, width) {
  const site = await world.site(kind), wrong = [], page = await world.page(site, null, {scheme, width, tolerate});
  const context = page.context();
  for (const [name, path] of Object.entries(PAGES[kind](site.runs))) {
    const told = [];
    context.bad.length = 0;
    try {
      await visit(page, path.schedule ? await scheduleAddress(page, path.schedule) : path);
      await page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
      await page.screenshot({path: `${world.shots}/${kind}-${name}-${scheme}-${width}.png`, fullPage: true});
      const over = await page.evaluate(() => {
        const {scrollWidth, clientWidth} = document.documentElement;
        if (scrollWidth <= clientWidth) return null;
        const widest = [...document.querySelectorAll('body *')].filter(element => element.getBoundingClientRect().right > clientWidth + 1 && !element.closest('.scroll, .log-box, pre')).at(-1);
        return `it scrolls sideways, ${scrollWidth} of ${clientWidth} px: ${widest?.outerHTML.slice(0, 160)}`;
      });
      if (over) told.push(over);
      told.push(...context.bad.filter(one => !tolerate.test(one)));
      // What axe itself does to a page is not the page's.
      told.push(...await axe(page));
    } catch (error) { told.push(error.message, ...context.bad.filter(one => !tolerate.test(one))); }
    wrong.push(...[...new Set(told)].map(one => `${kind} ${name} ${scheme} ${width}: ${one}`));
  }
  context.bad.length = 0;
  if (wrong.length) throw new Error(`${wrong.length} found\n${wrong.join('\n')}`);
}

const limit = 15 * 60000;
const test = (kind, scheme, width) => Object.assign(world => look(world, kind, scheme, width), {limit});
export const fullPagesInLight1280 = test('full', 'light', 1280);
export const fullPagesInDark1280 = test('full', 'dark', 1280);
export const fullPagesInLight360 = test('full', 'light', 360);
export const fullPagesInDark360 = test('full', 'dark', 360);
export const emptyPagesInLight1280 = test('empty', 'light', 1280);
export const emptyPagesInDark1280 = test('empty', 'dark', 1280);
export const emptyPagesInLight360 = test('empty', 'light', 360);
export const emptyPagesInDark360 = test('empty', 'dark', 360);
export const brokenPagesInLight1280 = test('broken', 'light', 1280);
export const brokenPagesInDark1280 = test('broken', 'dark', 1280);
export const brokenPagesInLight360 = test('broken', 'light', 360);
export const brokenPagesInDark360 = test('broken', 'dark', 360);
