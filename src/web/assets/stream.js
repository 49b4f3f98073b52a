// The one stream of events of this tab, and who is told what it says.
import {authorised, current, onSession, setSession} from './api.js';

const QUIET_MS = 60000,
  HIDDEN_MS = 5000,
  EVENT_MAX = 8 << 20;
const listeners = new Map();
/** Calls `f` with what is told of a topic: an event's name, `anew` (load everything again), `link` (the connection). */
export const on = (topic, f) => {
  if (!listeners.has(topic)) listeners.set(topic, new Set());
  listeners.get(topic).add(f);
  return () => listeners.get(topic).delete(f);
};
const tell = (topic, data) => listeners.get(topic)?.forEach(f => f(data));

const digest = /\/assets\/([^/]+)\//.exec(import.meta.url)?.[1];
export const link = {lost: false, newer: false};
const change = values => {
  if (Object.keys(values).every(name => link[name] === values[name])) return;
  Object.assign(link, values);
  tell('link', link);
};

const watched = new Map();
let lastId = null,
  tries = 0,
  abort = null,
  timer = 0,
  wanted = false,
  opened;
/** Resolves once the stream has begun, so that what is loaded then misses no change; soon in any case. */
export const ready = Promise.race([
  new Promise(done => {
    opened = done;
  }),
  new Promise(done => setTimeout(done, 700)),
]);

/** Follows the log of a run: `next` gives the first line that is wanted, `tell` is called with each event. */
export const follow = (run, watcher) => {
  watched.set(run, watcher);
  again(20);
  return () => {
    if (watched.get(run) !== watcher) return;
    watched.delete(run);
    // The engine goes on telling of it until the next connection: not worth one of its own.
  };
};

const again = ms => {
  clearTimeout(timer);
  timer = setTimeout(connect, ms);
};
const close = () => {
  clearTimeout(timer);
  abort?.abort();
  abort = null;
};

async function connect() {
  close();
  if (!wanted || !current()) return;
  const mine = (abort = new AbortController());
  let quiet;
  const alive = () => {
    clearTimeout(quiet);
    quiet = setTimeout(() => mine.abort(), QUIET_MS);
  };
  try {
    alive();
    const runs = [...watched].map(([run, watcher]) => `${run}:${watcher.next()}`).join();
    const response = await fetch('/v1/events' + (runs && '?runs=' + encodeURIComponent(runs)), {
      headers: {...authorised(), Accept: 'text/event-stream', ...(lastId && {'Last-Event-ID': lastId})},
      cache: 'no-store',
      signal: mine.signal,
    });
    if (response.status === 401) return setSession(null);
    if (!response.ok) throw new Error(String(response.status));
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let pending = '';
    for (;;) {
      const {done, value} = await reader.read();
      if (done) break;
      alive();
      // Only the seam and what is new can hold the end of an event.
      const from = Math.max(0, pending.length - 1);
      pending += value;
      let begin = 0;
      for (let end; (end = pending.indexOf('\n\n', Math.max(begin, from))) >= 0; begin = end + 2) receive(pending.slice(begin, end));
      pending = pending.slice(begin);
      if (pending.length > EVENT_MAX) throw new Error('an event is too long');
    }
  } catch {
    /* told by `lost` below */
  } finally {
    clearTimeout(quiet);
  }
  if (abort !== mine) return;
  opened();
  // One end of a stream is no news: the daemon ends them when it is relieved. A second is.
  change({lost: tries > 0});
  again(Math.min(10000, 400 * 2 ** tries++) * (0.8 + Math.random() * 0.4));
}

function receive(text) {
  let name = 'message',
    data = '',
    id = null;
  for (const line of text.split('\n')) {
    if (line.startsWith('data:')) data += (data && '\n') + line.slice(line[5] === ' ' ? 6 : 5);
    else if (line.startsWith('event:')) name = line.slice(6).trim();
    else if (line.startsWith('id:')) id = line.slice(3).trim();
  }
  if (!data) return;
  let event;
  try {
    event = JSON.parse(data);
  } catch {
    return;
  }
  if (name === 'hello') {
    const back = tries > 0,
      anew = !event.resumed && (lastId !== null || back);
    tries = 0;
    change({lost: false, newer: !!(event.web && digest && event.web !== digest)});
    opened();
    if (anew) tell('anew', {});
    else if (back) tell('back', {});
  } else if (name === 'many') tell('anew', {});
  else if (event.run && ['line', 'partial', 'lagged', 'end'].includes(name)) watched.get(event.run)?.tell(name, event);
  else tell(name, event);
  // After it was handled: what failed half way is asked for again.
  if (id) lastId = id;
}

let hidden = 0;
document.addEventListener('visibilitychange', () => {
  clearTimeout(hidden);
  if (document.hidden) hidden = setTimeout(close, HIDDEN_MS);
  else if (!abort) again(0);
});
addEventListener('online', () => {
  if (link.lost) again(0);
});
onSession(session => {
  lastId = null;
  if (session) again(0);
  else close();
});
/** Opens the stream, once somebody is logged in. */
export const start = () => {
  wanted = true;
  again(0);
};
