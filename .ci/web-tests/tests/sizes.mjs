// What the page weighs.
import assert from 'node:assert/strict';
import {readFileSync, readdirSync} from 'node:fs';
import {join} from 'node:path';
import {gzipSync} from 'node:zlib';

export async function theFilesOfThePageAreSmall() {
  const place = join(process.env.WEB_TREE, 'src/web/assets'), files = readdirSync(place).map(name => readFileSync(join(place, name)));
  const raw = files.reduce((sum, file) => sum + file.length, 0), packed = files.reduce((sum, file) => sum + gzipSync(file, {level: 9}).length, 0);
  console.log(`    ${files.length} files, ${raw} bytes, ${packed} compressed`);
  assert.ok(packed < 40000, `compressed they have ${packed} bytes, and may have 40,000`);
  assert.ok(raw < 100000, `they have ${raw} bytes, and may have 100,000`);
}
