// What the door answers, whoever asks.
import assert from 'node:assert/strict';
import http from 'node:http';
import {fetchAs} from '../browser.mjs';

/** A request with exactly these headers, as a browser that was led astray, or no browser, would send it. */
const ask = (origin, path, headers, method = 'GET', body = '') => new Promise((done, failed) => {
  const request = http.request(origin + path, {method, headers, timeout: 20000}, response => {
    const parts = [];
    response.on('data', part => parts.push(part)).on('error', failed).on('end', () => done({status: response.statusCode, headers: response.headers, text: Buffer.concat(parts).toString()}));
  });
  request.on('error', failed).on('timeout', () => request.destroy(new Error('no answer'))).end(body);
});

export async function thePageAndItsFilesHaveAStrictPolicy(world) {
  const {admin: {origin}} = await world.site('empty'), page = await ask(origin, '/runs?outcome=failed', {});
  assert.equal(page.status, 200);
  const policy = page.headers['content-security-policy'];
  for (const rule of ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'"]) assert.ok(policy.includes(rule), `${rule} in ${policy}`);
  assert.ok(!/unsafe|https?:|\*/.test(policy), policy);
  assert.equal(page.headers['x-content-type-options'], 'nosniff');
  assert.match(page.headers['cache-control'], /no-store/);
  const files = [...page.text.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(found => found[1]);
  assert.ok(files.length >= 3);
  for (const file of files) {
    const told = await ask(origin, file, {'accept-encoding': 'gzip'});
    assert.equal(told.status, 200, file);
    assert.match(told.headers['cache-control'], /immutable/);
    assert.equal(told.headers['content-encoding'], 'gzip');
    assert.equal(told.headers['x-content-type-options'], 'nosniff');
  }
}

export async function otherNamesAndOtherOriginsAreRefused(world) {
  const {admin} = await world.site('empty'), {origin, token} = admin, port = new URL(origin).port, authorization = `Bearer ${token}`, json = {'content-type': 'application/json', authorization};
  for (const host of [`evil.example:${port}`, 'evil.example', `127.0.0.1.evil.example:${port}`]) for (const path of ['/', '/v1/status']) assert.ok((await ask(origin, path, {host, authorization})).status >= 400, `${host} ${path}`);
  for (const from of ['https://evil.example', 'null', `http://127.0.0.1:${+port + 1}`]) {
    assert.ok((await ask(origin, '/v1/reload', {...json, origin: from}, 'POST', '{}')).status >= 400, from);
    const read = await ask(origin, '/v1/status', {authorization, origin: from});
    assert.equal(read.headers['access-control-allow-origin'], undefined, from);
  }
  assert.ok((await ask(origin, '/v1/reload', {authorization, origin, 'content-type': 'text/plain'}, 'POST', '{}')).status >= 400, 'a body that a form could send');
  assert.equal((await fetchAs(admin, 'status')).status, 200);
}

export async function noCookieCarriesASession(world) {
  const site = await world.site('empty'), page = await world.page(site, '/');
  assert.deepEqual(await page.context().cookies(), []);
  for (const request of page.context().requests) assert.ok(!request.url().includes(site.admin.token), request.url());
}
