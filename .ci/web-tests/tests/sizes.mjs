// What the page weighs, as a browser is sent it.
import assert from 'node:assert/strict';
import {gunzipSync} from 'node:zlib';
import {get} from 'node:http';

/** The bytes of an answer as they came. */
const bytes = address => new Promise((done, failed) => get(address, response => {
  const parts = [];
  response.on('data', part => parts.push(part)).on('end', () => done(Buffer.concat(parts)));
}).on('error', failed));

export async function theFilesOfThePageAreSmall(world) {
  const {origin} = (await world.site('empty')).admin, page = await bytes(origin + '/');
  const files = new Set([...page.toString().matchAll(/\/assets\/[^"]+/g)].map(([path]) => path));
  let raw = page.length, sent = page.length;
  for (const path of files) {
    const packed = await bytes(origin + path), text = gunzipSync(packed);
    raw += text.length;
    sent += packed.length;
    for (const [, name] of text.toString().matchAll(/from ?["']\.\/([\w.]+)["']/g)) files.add(path.replace(/[^/]+$/, name));
  }
  console.log(`    ${files.size + 1} files, ${raw} bytes, ${sent} as they are sent`);
  assert.ok(files.size >= 4, 'all of them are found');
  assert.ok(sent < 40000, `they are sent as ${sent} bytes, and may be as 40,000`);
  assert.ok(raw < 100000, `they have ${raw} bytes, and may have 100,000`);
}
