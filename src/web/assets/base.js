// What every page needs: elements, the API, the stream of events, words and times, and how each thing looks.

// --- elements
import {h, render, useErrorBoundary, useLayoutEffect as useEffect, useMemo, useRef, useState} from './preact.js';
export {useEffect, useMemo, useRef, useState};
/** What is used all over, by its short name. */
export const {assign} = Object, {ceil, floor, max, min, round} = Math, {parse} = Date, now = () => Date.now();

/** `tags.div.card({title: 'x'}, …children)`: an element with a class; what is null or false among the children is left out, lists lie flat. */
export const tags = new Proxy({}, {get:(_, tag) => new Proxy((...kids) => node(tag, kids), {get:(_, kind) => (...kids) => node(tag, kids, kind)})});
/** A part with a memory of its own (hooks), called like a tag. It is given its properties and its children. */
export const part = draw => {
  const drawn = ({kids, ...props}) => safe(draw(props, kids));
  return (...kids) => node(drawn, kids);
};
const ARIA = {label:'aria-label', pressed:'aria-pressed', current:'aria-current'};
const node = (tag, kids, kind) => {
  const given = kids[0]?.constructor === Object ? kids.shift() : {};
  if (typeof tag === 'function') return h(tag, {...given, kids});
  const props = kind ? {class:kind} : {};
  for (const name in given) props[ARIA[name] || name] = /title|label/.test(name) && given[name] ? plain(given[name], 2000) : given[name];
  return h(tag, props, ...kids.map(safe));
};
export const {a, aside, b, div, em, form, h1, h3, input, label, li, option, p, path, rect, select, small, span, strong, svg, tbody, td, textarea, th, thead, tr} = tags;
const {dd, dialog, dl, dt, h2, ul} = tags;

// Characters that act instead of showing: controls, bidirectional marks, invisible ones, tags. None of them ever gets into the document.
const ACTS = /[\0-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}\ud800-\udfff]/gu;
const escaped = c => {
  const n = c.codePointAt(0), hex = n.toString(16);
  return n < 256 ? '\\x' + hex.padStart(2, '0') : n > 0xffff ? `\\u{${hex}}` : '\\u' + hex.padStart(4, '0');
};
export const plain = (text, max = 300) => {
  text = String(text ?? '');
  return (text.length > max ? text.slice(0, max) + '…' : text).replace(ACTS, escaped);
};
/** Children as they may be shown: numbers as people write them, and nothing that acts. */
const safe = kid =>
  Array.isArray(kid) ? kid.map(safe) : typeof kid === 'number' ? number(kid) : typeof kid === 'string' && kid.search(ACTS) >= 0 ? marked(kid) : kid;
const marked = text => {
  const out = [];
  let from = 0;
  for (const {0:c, index} of text.matchAll(ACTS)) {
    out.push(text.slice(from, index), span.acts(escaped(c)));
    from = index + c.length;
  }
  return [...out, text.slice(from)];
};
let root, waiting, retry;
/** Draws the page once more, soon; a burst of changes is one drawing. */
export const redraw = () => {
  if (root) waiting ||= Promise.resolve().then(() => {
    waiting = retry?.();
    render(h(root), document.getElementById('app'));
  });
};
export const begin = draw => {
  root = () => {
    const [error, reset] = useErrorBoundary(console.error);
    // The next drawing begins anew.
    retry = error && reset;
    return error ? `This cannot be shown: ${plain(error.message)}` : safe(draw());
  };
  redraw();
};

// --- who is told of what: an event's name, `anew` (load everything again), `back` (the connection), `session`, `visible`
const listeners = {__proto__:null};
export const on = (topic, f) => ((listeners[topic] ||= new Set()).add(f), () => listeners[topic].delete(f));
const tell = (topic, data) => listeners[topic]?.forEach(f => f(data));

// --- session
const KEY = 'workerctl.session';
export const store = localStorage;
let session;
export const current = () => session;
export const isAdmin = () => session?.role === 'admin' && !session.read_only;
/** Who is logged in is what the browser keeps, in each of its tabs. */
export const readSession = () => {
  const before = session?.token;
  try {
    session = JSON.parse(store[KEY]);
  } catch {
    // As if nobody were there.
    session = null;
  }
  if (session?.token !== before) session ? again(0, tell('anew')) : close();
  redraw();
};
export const setSession = next => readSession((store[KEY] = JSON.stringify(next)));
/** A newer one stays. */
export const endSession = token => readSession(store[KEY]?.includes(token) && delete store[KEY]);
addEventListener('storage', readSession);

// --- requests
export const encode = encodeURIComponent;
/** A query of what is not empty. */
export const query = values => {
  const q = String(new URLSearchParams(Object.entries(values || {}).filter(([, value]) => value || value === 0)));
  return q && '?' + q;
};
/** The response, where it is a good one; else what the API says, `{code, message, hints, details}`, is thrown. */
export async function ask(path, values, options = {}) {
  const token = session?.token, headers = {...(token && {Authorization:'Bearer ' + token}), ...options.headers};
  const response = await fetch('/v1/' + path + query(values), {cache:'no-store', ...options, headers}).catch(error => {
    throw error.name === 'AbortError' ? error
      : {message:'the daemon does not answer', hints:['`workerctl daemon` starts it, or `workerctl web` where that served the page']};
  });
  if (response.ok) return response;
  if (response.status === 401 && token) endSession(token);
  throw {message:`the answer has the status ${response.status}`, ...(await response.json().catch(() => 0))};
}
/** A list carries where it goes on (`next`: the query that asks for more) and how many lines the log has (`total`). */
export async function get(path, values, signal) {
  const response = await ask(path, values, {signal}), told = await response.json();
  if (!Array.isArray(told)) return told;
  const more = /<([^>]*)>\s*;\s*rel="?next"?/.exec(response.headers.get('Link'));
  told.next = more && Object.fromEntries(new URL(more[1], location.origin).searchParams);
  told.total = +response.headers.get('Workerctl-Lines');
  return told;
}
export const post = async (path, body = {}) =>
  (await ask(path, {}, {method:'POST', body:JSON.stringify(body), headers:{'Content-Type':'application/json'}})).json();
/** Hands a file to the browser; a link alone could not carry the token. */
export async function download(path, name) {
  const href = URL.createObjectURL(await (await ask(path)).blob());
  assign(document.createElement('a'), {href, download:plain(name).replace(/[\\/:\s]/g, '_')}).click();
  setTimeout(() => URL.revokeObjectURL(href), 60000);
}

// --- the stream
const QUIET_MS = 60000, HIDDEN_MS = 1000, EVENT_MAX = 8 << 20;
const digest = /assets\/([^/]+)/.exec(import.meta.url)?.[1], watched = new Map();
let lastId = null, tries = 0, abort = null, timer, hidden, opened;
/** What is told in banners: the connection is lost, a newer page is there. */
export const link = {};
/** Resolves once the stream has begun, so that what is loaded then misses no change; soon in any case. */
const ready = new Promise(done => setTimeout((opened = done), 700));
/** Follows the log of a run: `next` gives the first line that is wanted, `tell` is called with each event. */
export const follow = (run, watcher) => {
  watched.set(run, watcher);
  again(20);
  // The engine goes on telling of it until the next connection: not worth one of its own.
  return () => watched.get(run) === watcher && watched.delete(run);
};
/** Opens the stream, where somebody is logged in. */
const again = ms => {
  clearTimeout(timer);
  timer = setTimeout(connect, ms);
};
const close = () => {
  clearTimeout(timer);
  abort?.abort();
  abort = null;
};
const change = values => redraw(assign(link, values));

async function connect() {
  close();
  if (!session || document.hidden) return;
  const own = (abort = new AbortController());
  let quiet, pending = '';
  const alive = () => {
    clearTimeout(quiet);
    quiet = setTimeout(() => own.abort(), QUIET_MS);
  };
  try {
    alive();
    const runs = [...watched].map(([run, watcher]) => `${run}:${watcher.next()}`).join();
    const response = await ask('events', {runs}, {headers:{Accept:'text/event-stream', ...(lastId && {'Last-Event-ID':lastId})}, signal:own.signal});
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let more; pending.length < EVENT_MAX && !(more = await reader.read()).done;) {
      alive();
      // Only the seam and what is new can hold the end of an event.
      let from = max(0, pending.length - 1), begin = 0;
      pending += more.value;
      for (let end; (end = pending.indexOf('\n\n', from)) >= 0; begin = from = end + 2) receive(pending.slice(begin, end));
      pending = pending.slice(begin);
    }
  } catch {
    // Told by `lost` below.
  }
  clearTimeout(quiet);
  if (abort !== own) return;
  opened();
  // One end of a stream is no news: the daemon ends them when it is relieved. A second is.
  change({lost:tries > 0});
  again(min(4000, 400 * 2 ** tries++) * (0.8 + Math.random() * 0.4));
}
function receive(text) {
  const field = name => text.split('\n').find(line => line.startsWith(name + ': '))?.slice(name.length + 2);
  const name = field('event'), id = field('id');
  let event;
  try {
    event = JSON.parse(field('data'));
  } catch {
    return;
  }
  if (name === 'hello') {
    const back = tries > 0, anew = !event.resumed && (lastId || back);
    tries = 0;
    change({lost:false, newer:event.web && event.web !== digest});
    opened();
    if (anew || back) tell(anew ? 'anew' : 'back');
  } else if (['line', 'partial', 'lagged', 'end', 'error'].includes(name)) {
    watched.get(event.run)?.tell(name, event);
    // What failed is not asked for again.
    if (name === 'error') watched.delete(event.run);
  } else tell(name === 'many' ? 'anew' : name, event);
  // After it was handled: what failed half way is asked for again.
  lastId = id || lastId;
}
document.addEventListener('visibilitychange', () => {
  clearTimeout(hidden);
  if (document.hidden) hidden = setTimeout(close, HIDDEN_MS);
  else if (!abort || link.lost) again(0);
  tell('visible');
});
addEventListener('online', () => link.lost && again(0));

// --- words
/** Something for each name and value, and something for each number up to `n`. */
export const pairs = (of, f) => Object.entries(of).map(([name, value]) => f(name, value));
export const upTo = (n, f) => Array.from({length:n}, (_, i) => f(i));
export const words = text => String(text ?? '').replace(/_/g, ' ');
export const number = new Intl.NumberFormat('en').format;
export const count = (n, word, many = word + 's') => `${number(n)} ${n === 1 ? word : many}`;
export const cut = (text, max = 300) => (text?.length > max ? [text.slice(0, max), small(` … ${count(text.length - max, 'more character')}`)] : text);
export const bytes = n => {
  const i = max(0, min(4, floor(Math.log2(n) / 10)));
  n /= 1024 ** i;
  return `${i && n < 10 ? n.toFixed(1) : round(n)} ${['B', 'KiB', 'MiB', 'GiB', 'TiB'][i]}`;
};
const two = (s, big, unit, less, rest) => floor(s / big) + unit + (s % big >= less ? ` ${floor((s % big) / less)}${rest}` : '');
/** How long: `1.5s`, `2m 5s`, `3h`. */
export const spell = ms => {
  const s = round(ms / 1000);
  if (ms == null) return '–';
  if (ms < 9950) return ms < 1000 ? `${max(0, round(ms))}ms` : `${(ms / 1000).toFixed(1)}s`;
  return s < 60 ? s + 's' : s < 3600 ? two(s, 60, 'm', 1, 's') : s < 172800 ? two(s, 3600, 'h', 60, 'm') : two(s, 86400, 'd', 3600, 'h');
};

// --- times, in the zone of the workspace where they have none of their own
let zone = 'UTC', known;
export const HOUR = 3600000, DAY = 24 * HOUR;
/** Resolves once the zone of the workspace is known, in which days are counted. */
export const zoned = new Promise(done => (known = done));
export const zoneName = () => zone;
export const setZone = name => known((zone = format(name || zone, 'full').resolvedOptions().timeZone));
const HM = {hour:'2-digit', minute:'2-digit', hourCycle:'h23'}, HMS = {...HM, second:'2-digit'}, MD = {month:'short', day:'numeric'};
const SHAPES = {
  full:{dateStyle:'medium', timeStyle:'long', hourCycle:'h23'},
  short:{...MD, ...HM},
  time:HMS,
  minute:HM,
  millis:{...HMS, fractionalSecondDigits:3},
  day:{...MD, weekday:'short'},
  iso:{year:'numeric', month:'2-digit', day:'2-digit', ...HM},
};
const made = {};
const format = (name, shape) => {
  const make = timeZone => (made[shape + name] ||= new Intl.DateTimeFormat(shape === 'iso' ? 'sv-SE' : 'en-GB', {...SHAPES[shape], timeZone}));
  try {
    return make(name);
  } catch {
    // A zone that this browser does not know must not take the page down.
    return make('UTC');
  }
};
export const when = (at, shape = 'short', name) => (isNaN(new Date(at)) ? at : format(name || zone, shape).format(new Date(at)));
/** What a clock of the zone shows: `2026-11-26T05:00`. */
export const clock = (at, name) => when(at, 'iso', name).replace(' ', 'T');
export const today = (ago = 0) => clock(now() - ago * DAY).slice(0, 10);
/** Of a day without a zone, as `2026-11-26`. */
export const dayName = day => when(day, 'day', 'UTC');
/** The instant at which a clock of the zone shows `2026-11-26T05:00`. */
export const instant = (local, name) => {
  const wanted = parse(local + 'Z');
  let at = wanted;
  // Twice, for the offset of the first guess may be that of the other side of a change of clocks.
  for (let i = 0; i < 2; i++) at += wanted - parse(clock(at, name) + 'Z');
  return at;
};
const timed = (at, zone, text) => (at == null ? '–' : tags.time({datetime:new Date(at).toJSON(), title:`${when(at, 'full', zone)} (${zone || zoneName()})`},
    text));
export const time = (at, zone, shape) => timed(at, zone, when(at, shape, zone));
export const ago = (at, zone) => {
  const ms = new Date(at) - now(), far = Math.abs(ms), said = far < 10000 ? round(far / 1000) + 's' : spell(far).split(' ')[0];
  return timed(at, zone, far < 5000 ? 'now' : ms < 0 ? said + ' ago' : 'in ' + said);
};
/** How long something took, or has taken so far. */
export const took = (from, to) => (from ? spell(new Date(to || now()) - new Date(from)) : '–');
/** How long a run worked, or has worked so far, without its waits. Runs of older versions have only their start and end. */
export const worked = run => (run.duration_ms == null ? took(run.started_at, run.finished_at)
  : spell(run.duration_ms + (run.working_since && now() - new Date(run.working_since))));
// What is told as so long ago, or so long so far, goes on; and drawings follow the width of the window.
setInterval(() => document.hidden || redraw(), 1000);
addEventListener('resize', redraw);

// --- where we are
addEventListener('popstate', redraw);
export const go = (address, replace) => {
  const other = address.split(/[?#]/)[0] !== location.pathname;
  history[replace ? 'replaceState' : 'pushState'](null, '', address);
  redraw();
  if (!other) return;
  scrollTo(0, 0);
  // Where a reader of the screen goes on; the heading of the new page says where that is.
  setTimeout(() => document.getElementById('main')?.focus({preventScroll:true}));
};
// Every link of the page to itself is followed without loading it again.
addEventListener('click', event => {
  const href = event.target.closest?.('a[href^="/"]')?.getAttribute('href');
  if (!href || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  go(href);
});
export const asked = () => Object.fromEntries(new URLSearchParams(location.search));
export const setQuery = (values, push) => go(location.pathname + query({...asked(), ...values}), !push);
export const runPath = run => '/runs/' + encode(run);
export const skillPath = name => '/skills/' + name.split(/[:/](.*)/s).slice(0, 2).map(encode).join('/');

// --- loading and acting
/** Loads when `key` changes and when a topic is told: `{topic: 1}`, or `{topic: event => whether it matters}`. What is there stays until the new is. */
export function useLoad(load, key, topics, gap = 2000) {
  const own = useRef();
  own.load = load;
  const stop = () => {
    clearTimeout(own.timer);
    own.timer = 0;
    own.abort?.abort();
  };
  own.reload = async () => {
    stop();
    const abort = (own.abort = new AbortController());
    own.at = now();
    let data, error;
    try {
      await ready;
      data = await own.load((path, values) => get(path, values, abort.signal));
    } catch (caught) {
      error = caught;
    }
    if (own.abort !== abort) return;
    own.error = error;
    if (!error) own.data = data;
    redraw();
  };
  // Many changes are one request; a page that nobody sees asks for nothing.
  const late = () => {
    own.timer = 0;
    own.late = document.hidden;
    if (!own.late) own.reload();
  };
  useEffect(() => {
    own.reload();
    const ends = Object.entries({...topics, anew:1, back:1, visible:() => own.late}).map(([topic, wants]) => on(topic, event => {
      if (wants === 1 || wants(event, own)) own.timer ||= setTimeout(late, max(300, own.at + gap - now()));
    }));
    return () => {
      stop();
      own.abort = null;
      ends.forEach(end => end());
    };
  }, [key]);
  return own;
}
/** Of no path there is nothing. */
export const useGet = (path, values, topics, gap) => useLoad(async get => (path ? get(path, values) : null), path + JSON.stringify(values), topics, gap);
/** Whether a change of a run is its end. */
export const ended = event => event.outcome;

/** Runs one request at a time, for buttons: a second click finds it busy. */
export function useAct() {
  const own = useRef();
  own.act ||= async f => {
    if (own.busy) return;
    redraw(assign(own, {busy:true, error:null}));
    await f().catch(error => (own.error = error));
    own.busy = false;
    redraw();
  };
  return own;
}
/** A place for a drawing that is not to be scaled, and its width. */
export const useWidth = first => {
  const box = useRef();
  useEffect(redraw, []);
  return [box, box.current?.clientWidth || first];
};

// --- signs
const RING = 'M8 2.5a5.5 5.5 0 1 0 .01 0';
const ICONS = {
  check:'M3.5 8.5l3 3 6-7',
  cross:'M4 4l8 8M12 4l-8 8',
  query:'M5.6 6a2.4 2.4 0 1 1 3.6 2.1c-.8.4-1.2.9-1.2 1.7M8 12.3v.2',
  clock:RING + 'M8 5v3l2 1.5',
  run:'M5.5 4l6 4-6 4z',
  ask:RING + 'M8 5v3.6M8 10.8v.2',
  stop:'M4.5 4.5h7v7h-7z',
  deny:RING + 'M4.2 11.8l7.6-7.6',
  glass:'M4.5 3h7M4.5 13h7M5.5 3c0 4 5 5 5 10M10.5 3c0 4-5 5-5 10',
  pause:'M6 4v8M10 4v8',
  skip:'M4 4l4 4-4 4M8.5 4l4 4-4 4',
  minus:'M4 8h8',
  ring:RING,
  warn:'M8 2.8l5.8 10.2H2.2zM8 6.6v2.8M8 11.2v.2',
  down:'M8 3v9M4.5 8.5L8 12l3.5-3.5',
  theme:RING + 'M8 2.5v11a5.5 5.5 0 0 0 0-11',
  off:'M8 2.5v5M5 4.5a4.8 4.8 0 1 0 6 0',
  search:'M7 3a4 4 0 1 0 .01 0M10 10l3.5 3.5',
};
export const icon = name => svg.icon({viewBox:'0 0 16 16', 'aria-hidden':true}, path({d:ICONS[name]}));
// Icon, tone (a class of the style sheet) and the states that look so; any other looks as `running` does.
const LOOKS = {__proto__:null};
for (const row of `check ok succeeded ran passed ok ready caught_up backfilled
cross bad failed error failing
glass late timed_out
query odd unknown
stop off cancelled
deny off denied
deny bad blocked_config disk_full file_size_limit
clock wait queued backing_off pending
clock bad overdue
ask ask awaiting_approval
ask off note
skip late skipped_overlap
minus late missed
minus off not_run skipped blocked_hours unverified
pause off paused
pause late draining drained
pause bad held
minus ok nothing_to_do
ring wait due
warn late warned warning kept_commit undelivered`.split('\n')) {
  const [icon, tone, ...names] = row.split(' ');
  for (const name of names) LOOKS[name] = {icon, tone:'t-' + tone};
}
const look = name => LOOKS[name] || {icon:'run', tone:'t-run'};
export const tone = name => look(name).tone;
export const signOf = name => icon(look(name).icon);
export const state = (is, said) => span({class:'state ' + tone(is)}, signOf(is), said || words(is));
/** The sign alone; its word is for those who do not see it. */
export const sign = is => state(is, span.hidden(words(is)));
/** Where a run is, in one word: its outcome, else its phase. */
export const standing = run => (run.outcome ? ending({...run, outcome:run.outcome.kind}) : run.phase);
/** The same of the short form that schedules and slots have. */
export const ending = s => (s.nothing_to_do && s.outcome === 'succeeded' ? 'nothing_to_do' : s.outcome || s.phase || 'running');
export const runState = run => [state(standing(run)), standing(run) === 'succeeded' && run.unverified
    && [' ', em({title:'no check that could have failed it'}, 'unverified')],
  run.reconciled && [' ', em({title:'its engine was lost; the checks prove its work'}, 'reconciled')]];
export const detailOf = outcome => (outcome?.failure ? `${outcome.failure.step}: ${outcome.failure.message}` : outcome?.message || words(outcome?.why));
/** Takes in what an event says of a run: fields that it lacks no longer apply. */
export const renew = (run, event) => assign(run, {waiting_for:null, working_since:null, retry_at:null}, event);
/** Why it waits. The API names instants as it stores them. */
export const waits = run => !run.outcome && (run.retry_at ? 'retries at ' + when(run.retry_at)
  : run.waiting_for && 'waits for ' + run.waiting_for.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, at => when(at)));

// --- links and text
export const to = (href, ...text) => a({href}, ...text);
export const short = run => run.slice(-8).toLowerCase();
export const runLink = run => a.mono({href:runPath(run), title:run}, short(run));
export const skillLink = name => to(skillPath(name), name);
/** A run by its skill and itself. */
export const runOf = run => [skillLink(skillOf(run)), ' ', runLink(run.run), ' '];
export const scheduleLink = id => to('/schedules/' + id.split('/').map(encode).join('/'), id);
export const skillOf = run => `${run.skill.worker}/${run.skill.skill}`;
export const code = (text, length = 200) => text && tags.code({title:text}, text.slice(0, length));
export const mono = (...text) => small.mono(...text);
export const pre = (text, max = 20000, kind) => text && tags.pre({class:kind, tabindex:0}, cut(text.trimEnd(), max));

// --- the frame of a page
export const Page = part(({title, name = title, sub, side}, kids) => {
  useEffect(() => {
    document.title = plain(name, 80) + ' · workerctl';
  }, [name]);
  return div.page(div.head(div(h1(title), sub && p.sub(sub)), side), kids);
});
export const section = (title, body, side) => tags.section({label:title, key:title}, div.head(h2(title), side), body);
export const empty = (...text) => p.empty(...text);
export const note = (is, ...text) => div({class:'note ' + tone(is)}, signOf(is), div(...text));
export const refused = (error, again) => error && div({role:'alert'},
    note('failed', cut(error.message, 2000), ' ', code(error.code), error.details?.map(d => p(d)), error.hints?.map(h => p(small('hint: ', h))),
  again && error.kind !== 'not_found' && p(button('Try again', again))));
/** Whether what was to be loaded is not there. */
export const missing = of => of.error?.kind === 'not_found';
/** What a page shows of `useLoad`. */
export const loaded = (of, draw) => [refused(of.error, of.reload), of.data !== undefined ? draw(of.data) : !of.error && p.loading('Loading …')];

// --- lists
export const list = (items, kind = 'items') => items[0] && ul({class:kind}, items);
export const item = (key, lead, body, side) => li({key}, lead, div(body), side && small(side));
/** Names and values; what has no value is left out. */
export const facts = rows => dl(rows.map(row => row && !!row[1] && row[1].length !== 0 && div(dt(row[0]), dd(row[1]))));
const KINDS = {'#':'num', '~':'says'};
/** A table that scrolls by itself. Columns are `[head, cell of a row]`; a head that begins with `#` is of numbers, one with `~` of prose. */
export const table = (label, columns, rows, keyOf, none, chosen) => {
  if (!rows.length) return empty(none);
  columns = columns.filter(Boolean);
  return div.scroll({role:'group', label, tabindex:0}, tags.table(
    thead(tr(columns.map(([head]) => th({scope:'col', class:KINDS[head[0]]}, head.replace(/^[#~]/, ''))))),
    tbody(rows.map(row => tr({key:keyOf(row), class:chosen === keyOf(row) && 'chosen'},
        columns.map(([head, cell]) => td({class:KINDS[head[0]]}, cell(row))))))));
};
export const pager = (first, side, more) => p.pager(first, small(side), more);

// --- fields
export const button = (name, onclick, kind, rest) => tags.button({type:'button', class:kind, onclick, ...rest}, name);
/** Buttons of which some are pressed; `of` is a list, or values with their names. */
export const choice = (label, is, of, set) => div.switch({role:'group', label},
  pairs(of, (value, name) => button(name, () => set(of.map ? name : value), '', {pressed:[is].flat().includes(of.map ? name : value)})));
export const field = (name, control, about) => label.field(name, control, small(about));
export const noteField = (text, required, name = 'note') => field(text, textarea({name, rows:2, required}));
export const radio = (name, value, text, defaultChecked) => label.pick(input({type:'radio', name, value, required:true, defaultChecked}), text);
/** A field that tells what was typed once the typing rests; what the address says later does not overwrite what is being typed. */
export const Search = part(({label:name, value = '', set, bare, type = 'search'}) => {
  const ref = useRef();
  useEffect(() => {
    if (document.activeElement !== ref.current) ref.current.value = value;
  }, [value]);
  const stop = () => clearTimeout(ref.timer);
  useEffect(() => stop, []);
  const oninput = ({target}) => {
    stop();
    ref.timer = setTimeout(() => set(target.value.trim()), 300);
  };
  return label({class:bare ? 'field bare' : 'field'}, bare ? icon('search') : name,
    input({ref, type, label:name, placeholder:bare && name, spellcheck:'false', oninput}));
});
/** A dialog of the browser: it keeps the focus within, and gives it back. */
export const Dialog = part(({title, close, send, submit, tone = 'main'}, kids) => {
  const ref = useRef(), {busy, error, act} = useAct();
  useEffect(() => {
    const before = document.activeElement;
    ref.current.showModal();
    return () => before?.focus();
  }, []);
  const onsubmit = event => {
    event.preventDefault();
    act(async () => {
      await send(Object.fromEntries(new FormData(event.target)));
      close();
    });
  };
  return dialog({ref, label:title, onclose:close, oncancel:event => busy && event.preventDefault()}, form({onsubmit}, h2(title), kids, refused(error),
    div.buttons(button(submit ? 'Not now' : 'Close', () => ref.current.close()), submit && tags.button({class:tone, disabled:busy}, submit))));
});
// What a person may do, as buttons that post to `path` and their name `{...body, ...fields of the form}`, or what `say` makes of
// the fields; with a `title` a dialog comes first, which shows `ask` or is drawn by `own`.
export const Acts = part(({path, body, of, done}) => {
  const {busy, error, act} = useAct(), [open, set] = useState();
  if (!isAdmin()) return;
  const all = of.filter(Boolean), one = all.find(a => a.name === open), close = () => set();
  const send = one => async form => {
    const {run} = await post(path + one.name.toLowerCase(), {...body, ...(one.say ? one.say(form) : form)});
    done();
    // What led to another run goes on there.
    if (one.leads && run) go(runPath(run));
  };
  return div.buttons(all.map(one => button(one.name + (one.title ? ' …' : ''), () => (one.title ? set(one.name) : act(send(one))), one.tone,
      {key:one.name, disabled:busy})), refused(error),
    one?.own ? one.own(close) : one && Dialog({title:one.title, submit:one.submit || one.name, tone:one.tone, close, send:send(one)}, one.ask));
});
