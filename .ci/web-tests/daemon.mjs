// A daemon of one workspace: started, asked over its socket, ended by its id.
import {execFile, spawn} from 'node:child_process';
import {openSync, readFileSync} from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import {join} from 'node:path';
import {promisify} from 'node:util';

export const sleep = ms => new Promise(done => setTimeout(done, ms));
/** Asks again until the answer is true, and hands it on; what it says after `ms` is no answer is the failure. */
export async function until(what, ask, ms = 20000) {
  const end = Date.now() + ms;
  let last;
  for (;;) {
    try {
      const told = await ask();
      if (told) return told;
      last = undefined;
    } catch (error) { last = error; }
    if (Date.now() > end) throw new Error(`not within ${ms / 1000}s: ${what}${last ? ` (${last.message})` : ''}`);
    await sleep(50);
  }
}

/** A port that is free, and is none of those that the system gives to others while the daemon is down. */
export async function freePort() {
  for (let tries = 0; tries < 100; tries++) {
    const port = 15000 + Math.floor(Math.random() * 17000), server = net.createServer();
    const free = await new Promise(done => server.once('error', () => done(false)).listen(port, '127.0.0.1', () => server.close(() => done(true))));
    if (free) return port;
  }
  throw new Error('no port is free');
}

const started = new Set();
/** Ends what is left, once the tests are over. */
export const endAll = () => { for (const child of started) child.kill('SIGKILL'); };

export class Daemon {
  constructor(program, place, port, environment = {}) {
    Object.assign(this, {program, place, port, socket: join(place, 'state/run/workerctl.sock'), log: `${place}.log`});
    this.environment = {PATH: process.env.PATH, HOME: join(place, '..'), LANG: 'C.UTF-8', GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1', ...environment};
  }
  async start() {
    const before = this.told().length, log = openSync(this.log, 'a');
    const child = this.child = spawn(this.program, ['-C', this.place, 'daemon'], {env: this.environment, stdio: ['ignore', log, log]});
    started.add(child);
    this.over = new Promise(done => child.once('exit', done)).then(() => started.delete(child));
    await until(`the daemon of ${this.place} is ready: ${this.log}`, () => {
      if (child.exitCode !== null) throw new Error('it ended');
      return this.told().slice(before).includes(' ready ');
    }, 60000);
    await until(`the page is served: ${this.log}`, async () => (await fetch(`http://127.0.0.1:${this.port}/`)).ok);
    return this;
  }
  told() {
    try { return readFileSync(this.log, 'utf8'); } catch { return ''; }
  }
  async kill(signal = 'SIGKILL') {
    this.child.kill(signal);
    await this.over;
  }
  /** A request over the socket, as root. */
  ask(method, path, body) {
    return new Promise((done, failed) => {
      const text = body === undefined ? '' : JSON.stringify(body);
      const request = http.request({socketPath: this.socket, path: `/v1/${path}`, method, timeout: 30000, headers: {host: 'localhost', ...(text && {'content-type': 'application/json', 'content-length': Buffer.byteLength(text)})}}, response => {
        const parts = [];
        response.on('data', part => parts.push(part)).on('error', failed).on('end', () => {
          const told = Buffer.concat(parts).toString();
          if (response.statusCode >= 400) return failed(new Error(`${method} ${path}: ${response.statusCode} ${told.slice(0, 500)}`));
          done({headers: response.headers, text: told, get json() { return JSON.parse(told); }});
        });
      });
      request.on('error', failed).on('timeout', () => request.destroy(new Error(`${path}: no answer`))).end(text);
    });
  }
  async get(path) {
    return (await this.ask('GET', path)).json;
  }
  async post(path, body = {}) {
    return (await this.ask('POST', path, body)).json;
  }
  async submit(skill, inputs = {}) {
    return (await this.post('runs', {skill, inputs})).run;
  }
  async run(run) {
    return this.get(`runs/${run}`);
  }
  async summary(run) {
    return (await this.run(run)).summary;
  }
  /** Its summary, once it is in this phase or has this outcome. */
  reached(run, ...names) {
    return until(`run ${run} is ${names.join(' or ')}`, async () => {
      const summary = await this.summary(run);
      return (names.includes(summary.phase) || names.includes(summary.outcome?.kind)) && summary;
    }, 60000);
  }
  ended(run) {
    return until(`run ${run} has ended`, async () => (await this.summary(run)).outcome, 90000);
  }
  async lines(run) {
    const lines = [];
    for (;;) {
      const more = await this.get(`runs/${run}/logs?from=${lines.length}&limit=5000`);
      if (!more.length) return lines;
      lines.push(...more);
    }
  }
  /** The address that logs in once. */
  async login(...options) {
    const {stdout} = await promisify(execFile)(this.program, ['-C', this.place, 'web', '--no-open', '--json', ...options], {env: this.environment, timeout: 30000});
    const found = /http:\/\/127\.0\.0\.1:\d+\/#login=[^"\s]+/.exec(stdout);
    if (!found) throw new Error(`no address in what \`web\` prints: ${stdout}`);
    return found[0];
  }
}
