// Runs the tests of the web page: `node main.mjs [WORD …]`, only those whose names hold one of the words.
// WORKERCTL: the program; CHROMIUM: the browser; WEB_DIR: an empty directory; WEB_SHOTS: where pictures go.
import {mkdirSync} from 'node:fs';
import {join} from 'node:path';
import {launch} from './browser.mjs';
import {endAll} from './daemon.mjs';
import {World} from './world.mjs';

const FILES = ['sizes', 'door', 'looks', 'session', 'acts', 'schedules', 'logs', 'hostile', 'keyboard', 'tabs', 'faults'];
const NAMES = process.argv.slice(2), MINUTE = 60000;

/** What cannot be tried here, with why. */
class Skipped extends Error {}

const words = name => name.replace(/[A-Z]|\d+/g, ' $&').toLowerCase();
const bounded = (work, ms) => {
  let timer;
  return Promise.race([work, new Promise((_, failed) => { timer = setTimeout(() => failed(new Error(`it took longer than ${ms / 1000}s`)), ms); })]).finally(() => clearTimeout(timer));
};

const shots = process.env.WEB_SHOTS || join(process.env.WEB_DIR, 'shots');
mkdirSync(shots, {recursive: true});
const count = {passed: 0, failed: 0, skipped: 0};
const browser = await launch(process.env.CHROMIUM || '/usr/bin/chromium');
const world = new World({browser, program: process.env.WORKERCTL, directory: process.env.WEB_DIR, shots});
// Whatever happens, nothing of this goes on.
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => { endAll(); process.exit(130); });
process.on('exit', endAll);
// What a test that is over left behind fails none of the others.
process.on('unhandledRejection', error => console.log(`    late: ${error?.message}`));

// With what they need of each kind of run, which takes longer than any test.
try { await bounded(Promise.all(['full', 'empty', 'broken'].map(kind => world.site(kind))), 10 * MINUTE); } catch (error) {
  console.log(`FAILED the workspaces\n    ${error.stack}`);
  process.exit(1);
}

for (const file of FILES) {
  const tests = await import(`./tests/${file}.mjs`);
  for (const [name, test] of Object.entries(tests)) {
    const told = words(name);
    if (NAMES.length && !NAMES.some(part => told.includes(part) || file === part)) continue;
    const begun = Date.now();
    try {
      await bounded(test(world, reason => { throw new Skipped(reason); }), test.limit || 3 * MINUTE);
      const bad = world.bad();
      if (bad.length) throw new Error(bad.join('\n'));
      count.passed++;
      console.log(`ok ${told} (${((Date.now() - begun) / 1000).toFixed(1)}s)`);
    } catch (error) {
      if (error instanceof Skipped) {
        count.skipped++;
        console.log(`SKIPPED ${told}: ${error.message}`);
      } else {
        count.failed++;
        await world.picture(`failed-${name}`).catch(() => {});
        console.log(`FAILED ${told}\n    ${String(error.stack || error).replaceAll('\n', '\n    ')}`);
        for (const more of world.bad()) if (!error.message?.includes(more)) console.log(`    also: ${more.replaceAll('\n', '\n    ')}`);
      }
    }
    await world.afterTest();
  }
}
await bounded(browser.close(), MINUTE).catch(() => {});
await world.end();
console.log(`pictures: ${shots}`);
console.log(`${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`);
process.exit(count.failed ? 1 : 0);
