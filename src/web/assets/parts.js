// Parts that pages share.
import {html, useEffect, useLayoutEffect, useRef, useState} from './preact.js';
import {on, ready} from './stream.js';
import {plain, relative, shown, span, when, words, zoneName} from './text.js';

// --- where we are
const routeListeners = new Set();
export const place = () => ({
  path: location.pathname,
  query: Object.fromEntries(new URLSearchParams(location.search)),
  hash: location.hash,
});
export const onPlace = f => (routeListeners.add(f), () => routeListeners.delete(f));
const moved = () => routeListeners.forEach(f => f());
addEventListener('popstate', moved);
export const go = (address, {replace = false} = {}) => {
  const other = address.split(/[?#]/)[0] !== location.pathname;
  history[replace ? 'replaceState' : 'pushState'](null, '', address);
  moved();
  if (other) {
    scrollTo(0, 0);
    // Where a reader of the screen goes on; the heading of the new page says where that is.
    requestAnimationFrame(() => document.getElementById('main')?.focus({preventScroll: true}));
  }
};
export const A = ({href, children, ...rest}) =>
  html`<a href=${href} ...${rest} onClick=${event => {
    if (event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(href);
  }}>${children}</a>`;
export const setQuery = values => {
  const q = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(values))
    if (value == null || value === '') q.delete(name);
    else q.set(name, value);
  const text = q.toString();
  go(location.pathname + (text && '?' + text), {replace: true});
};

export const runPath = run => `/runs/${encodeURIComponent(run)}`;
export const skillPath = name => {
  const cut = /[:/]/.exec(name)?.index ?? 0;
  return `/skills/${encodeURIComponent(name.slice(0, cut))}/${encodeURIComponent(name.slice(cut + 1))}`;
};
export const schedulePath = id => `/schedules/${encodeURIComponent(id)}`;

// --- data
/** Loads on mount, when `deps` change and when one of `topics` is told; what is there stays until the new is. */
export function useLoad(load, deps, topics = [], gap = 1000) {
  const [state, set] = useState({});
  const mine = useRef({}).current;
  mine.load = load;
  const go = async () => {
    clearTimeout(mine.timer);
    mine.timer = 0;
    mine.abort?.abort();
    const abort = (mine.abort = new AbortController());
    mine.at = Date.now();
    try {
      await ready;
      const data = await mine.load(abort.signal);
      if (mine.abort === abort) set({data});
    } catch (error) {
      if (mine.abort === abort) set(old => ({...old, error}));
    }
  };
  // Many changes are one request; a page that nobody sees asks for nothing.
  const soon = () => {
    mine.timer ||= setTimeout(
      () => (document.hidden ? ((mine.late = true), (mine.timer = 0)) : go()),
      Math.max(300, mine.at + gap - Date.now()),
    );
  };
  useEffect(() => {
    go();
    return () => {
      clearTimeout(mine.timer);
      mine.timer = 0;
      mine.abort?.abort();
      mine.abort = null;
    };
  }, deps);
  useEffect(() => {
    const seen = () => {
      if (!document.hidden && mine.late) {
        mine.late = false;
        soon();
      }
    };
    document.addEventListener('visibilitychange', seen);
    const ends = [...topics, 'anew', 'back'].map(topic =>
      typeof topic === 'string' ? on(topic, soon) : on(topic[0], event => topic[1](event, set) && soon()),
    );
    return () => {
      document.removeEventListener('visibilitychange', seen);
      ends.forEach(end => end());
    };
  }, deps);
  return {...state, reload: go, set};
}

/** Runs one request at a time, for buttons: a second click finds it busy. */
export function useAct() {
  const [state, set] = useState({busy: false, error: null});
  const lock = useRef(false),
    there = useRef(true);
  useEffect(
    () => () => {
      there.current = false;
    },
    [],
  );
  const act = async f => {
    if (lock.current) return;
    lock.current = true;
    set({busy: true, error: null});
    let error = null;
    try {
      await f();
    } catch (caught) {
      error = caught;
    }
    lock.current = false;
    if (there.current) set({busy: false, error});
  };
  return {...state, act};
}

export function useNow(ms = 10000) {
  const [now, set] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) set(Date.now());
    }, ms);
    return () => clearInterval(timer);
  }, [ms]);
  return now;
}

/** The width of an element, for drawings that are not to be scaled. */
export function useWidth(ref, first) {
  const [wide, set] = useState(first);
  useEffect(() => {
    const watcher = new ResizeObserver(([entry]) => set(Math.max(240, Math.round(entry.contentRect.width))));
    watcher.observe(ref.current);
    return () => watcher.disconnect();
  }, []);
  return wide;
}

// --- what things look like
const RING = 'M8 2.5a5.5 5.5 0 1 0 .01 0';
const ICONS = {
  check: 'M3.5 8.5l3 3 6-7',
  cross: 'M4 4l8 8M12 4l-8 8',
  query: 'M5.6 6a2.4 2.4 0 1 1 3.6 2.1c-.8.4-1.2.9-1.2 1.7M8 12.3v.2',
  clock: RING + 'M8 5v3l2 1.5',
  run: 'M5.5 4l6 4-6 4z',
  ask: RING + 'M8 5v3.6M8 10.8v.2',
  stop: 'M4.5 4.5h7v7h-7z',
  deny: RING + 'M4.2 11.8l7.6-7.6',
  glass: 'M4.5 3h7M4.5 13h7M5.5 3c0 4 5 5 5 10M10.5 3c0 4-5 5-5 10',
  pause: 'M6 4v8M10 4v8',
  skip: 'M4 4l4 4-4 4M8.5 4l4 4-4 4',
  minus: 'M4 8h8',
  ring: RING,
  none: RING + 'M5.5 8h5',
  back: 'M5 6h5a3 3 0 0 1 0 6H6M7.5 3.5L5 6l2.5 2.5',
  warn: 'M8 2.8l5.8 10.2H2.2zM8 6.6v2.8M8 11.2v.2',
  down: 'M8 3v9M4.5 8.5L8 12l3.5-3.5',
  theme: RING + 'M8 2.5v11a5.5 5.5 0 0 0 0-11',
  commit: 'M8 5.5a2.5 2.5 0 1 0 .01 0M1.5 8h4M10.5 8h4',
  mail: 'M2.5 4.5h11v7.5h-11zM2.5 5l5.5 4 5.5-4',
  disk: 'M3 4c0-2 10-2 10 0v8c0 2-10 2-10 0zM3 4c0 2 10 2 10 0',
  off: 'M8 2.5v5M5 4.5a4.8 4.8 0 1 0 6 0',
  search: 'M7 3a4 4 0 1 0 .01 0M10 10l3.5 3.5',
};
export const Icon = ({name}) =>
  html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false"><path d=${ICONS[name]} /></svg>`;

// State: word as shown, icon, tone (a class of the style sheet).
const STATES = {
  succeeded: ['check', 'ok'],
  failed: ['cross', 'bad'],
  timed_out: ['glass', 'late'],
  unknown: ['query', 'odd'],
  cancelled: ['stop', 'off'],
  denied: ['deny', 'off'],
  queued: ['clock', 'wait'],
  awaiting_approval: ['ask', 'ask'],
  backing_off: ['clock', 'wait'],
  running: ['run', 'run'],
  ran: ['check', 'ok'],
  caught_up: ['back', 'ok'],
  backfilled: ['back', 'ok'],
  skipped_overlap: ['skip', 'late'],
  missed: ['minus', 'late'],
  paused: ['pause', 'off'],
  blocked_hours: ['none', 'off'],
  blocked_config: ['deny', 'bad'],
  passed: ['check', 'ok'],
  warned: ['warn', 'late'],
  not_run: ['minus', 'off'],
  skipped: ['minus', 'off'],
  pending: ['clock', 'wait'],
  due: ['ring', 'wait'],
  nothing_to_do: ['none', 'ok'],
  overdue: ['clock', 'bad'],
  error: ['cross', 'bad'],
  warning: ['warn', 'late'],
  note: ['ask', 'off'],
  ok: ['check', 'ok'],
  ready: ['check', 'ok'],
  draining: ['pause', 'late'],
  drained: ['pause', 'late'],
  disk_full: ['disk', 'bad'],
};
export const look = name => STATES[name] || ['run', 'run'];
export const State = ({is, children}) => {
  const [icon, tone] = look(is);
  return html`<span class="state t-${tone}"><${Icon} name=${icon} />${children || words(is)}</span>`;
};
/** Where a run is, in one word: its outcome, else its phase. */
export const standing = run =>
  run.outcome ? (run.outcome.kind === 'succeeded' && run.nothing_to_do ? 'nothing_to_do' : run.outcome.kind) : run.phase;
export const RunState = ({run}) => html`<${State} is=${standing(run)} />
  ${
    run.outcome?.kind === 'succeeded' &&
    run.unverified &&
    !run.nothing_to_do &&
    html` <span class="chip" title="no check that could have failed it">unverified</span>`
  }${run.reconciled && html` <span class="chip" title="its engine was lost; the checks prove its work">reconciled</span>`}`;
export const detailOf = outcome =>
  !outcome ? '' : outcome.failure ? `${outcome.failure.step}: ${outcome.failure.message}` : outcome.message || words(outcome.why);

/** Why it waits. The API names instants as it stores them. */
export const waits = run => (run.waiting_for ? 'waits for ' + run.waiting_for.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, at => when(at)) : '');

export const Time = ({at, zone, shape = 'short'}) =>
  at == null
    ? '–'
    : html`<time datetime=${typeof at === 'number' ? new Date(at).toISOString() : at} title=${`${when(at, 'full', zone)} (${zone || zoneName()})`}>
    ${when(at, shape, zone)}</time>`;
export const Ago = ({at, zone}) => {
  const now = useNow(Math.abs(Date.now() - Date.parse(at)) < 60000 ? 1000 : 10000);
  return at == null
    ? '–'
    : html`<time datetime=${at} title=${`${when(at, 'full', zone)} (${zone || zoneName()})`}>${relative(at, now)}</time>`;
};
/** How long something took, or has taken so far. */
export const Took = ({from, to}) => {
  const now = useNow(to || !from ? 3600000 : 1000);
  return from ? span((to ? Date.parse(to) : Math.max(now, Date.now())) - Date.parse(from)) : '–';
};

export const short = run => run.slice(-8).toLowerCase();
export const RunLink = ({run, children}) => html`<${A} href=${runPath(run)} class="mono" title=${run}>${children || short(run)}<//>`;
export const SkillLink = ({name}) => html`<${A} href=${skillPath(name)}>${shown(name, {max: 200})}<//>`;
export const ScheduleLink = ({id}) => html`<${A} href=${schedulePath(id)}>${shown(id, {max: 200})}<//>`;

export const Refused = ({error, again}) =>
  error &&
  html`<div role="alert"><${Note} is="failed"><p>
  ${shown(error.message, {lines: true})}${error.code && html` <code class="muted">${shown(error.code)}</code>`}</p>
  ${!!error.details?.length && html`<ul>${error.details.map(d => html`<li>${shown(d)}</li>`)}</ul>`}
  ${error.hints?.map(h => html`<p class="muted">hint: ${shown(h)}</p>`)}
  ${again && html`<button type="button" onClick=${again}>Try again</button>`}<//></div>`;
/** What a page shows of `useLoad` until its data is there. */
export const Waiting = ({of, children}) =>
  of.data !== undefined
    ? html`${of.error && html`<${Refused} error=${of.error} again=${of.reload} />`}${children(of.data)}`
    : of.error
      ? html`<${Refused} error=${of.error} again=${of.reload} />`
      : html`<p class="loading muted">Loading …</p>`;

export const Page = ({title, sub, actions, children, plainTitle}) => {
  useEffect(() => {
    document.title = `${plain(plainTitle || title, 80)} · workerctl`;
  }, [plainTitle || title]);
  return html`<div class="page"><div class="head"><div class="grow"><h1>${title}</h1>${sub && html`<p class="sub">${sub}</p>`}</div>${
    actions && html`<div class="actions">${actions}</div>`
  }</div>${children}</div>`;
};
export const Section = ({
  title,
  id,
  side,
  children,
  ...rest
}) => html`<section aria-labelledby=${id} ...${rest}><div class="head2"><h2 id=${id}>
  ${title}</h2>${side}</div>${children}</section>`;
/** A table that scrolls by itself. Rows are `[key, …cells]`; a head that begins with `#` is of numbers, one with `~` of prose. */
const KINDS = {'#': 'num', '~': 'says'};
export const Table = ({
  label,
  heads,
  rows,
  mark,
}) => html`<div class="scroll" role="group" aria-label=${label} tabindex="0"><table><thead><tr>
  ${heads.map(head => html`<th scope="col" class=${KINDS[head[0]]}>${head.replace(/^[#~]/, '')}</th>`)}</tr></thead>
  <tbody>${rows.map(
    ([key, ...cells]) => html`<tr key=${key} class=${mark === key ? 'chosen' : null}>
    ${cells.map((cell, i) => html`<td class=${KINDS[heads[i][0]]}>${cell}</td>`)}</tr>`,
  )}</tbody></table></div>`;
export const Two = ({children, and}) => html`${children}<span class="muted under">${and}</span>`;
export const Note = ({is, children}) =>
  html`<div class=${`note t-${look(is)[1]}`}><${Icon} name=${look(is)[0]} /><div>${children}</div></div>`;
/** Buttons of which one is pressed. */
export const Switch = ({label, is, of, on: set}) => html`<div class="switch" role="group" aria-label=${label}>
  ${of.map(
    ([
      value,
      name,
    ]) => html`<button type="button" key=${value} aria-pressed=${Array.isArray(is) ? is.includes(value) : is === value} onClick=${() => set(value)}>
    ${name}</button>`,
  )}</div>`;
/** A field that tells what was typed once the typing rests; what the address says later does not overwrite what is being typed. */
export function Search({label, value = '', hint = label, on: set, bare}) {
  const timer = useRef(0),
    field = useRef();
  useEffect(() => {
    if (document.activeElement !== field.current) field.current.value = value;
  }, [value]);
  return html`<label class=${bare ? 'field inline' : 'field'}>${
    bare
      ? html`<span class="hidden">${label}</span>
    <${Icon} name="search" />`
      : label
  }<input ref=${field} type="search" defaultValue=${value} placeholder=${bare ? hint : null} autocomplete="off" spellcheck=${false} onInput=${event => {
    const text = event.target.value.trim();
    clearTimeout(timer.current);
    timer.current = setTimeout(() => set(text), 300);
  }} /></label>`;
}
export const Facts = ({of}) => html`<dl class="facts">
  ${of
    .filter(row => row && row[1] != null && row[1] !== false && row[1] !== '')
    .map(
      ([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd>
    </div>`,
    )}</dl>`;
export const Empty = ({children}) => html`<p class="empty">${children}</p>`;

/** A dialog of the browser: it keeps the focus within, and gives it back. */
export function Dialog({title, onClose, onSubmit, submit, danger, children, wide}) {
  const ref = useRef(),
    {busy, error, act} = useAct();
  useLayoutEffect(() => {
    const dialog = ref.current,
      before = document.activeElement;
    dialog.showModal();
    return () => {
      if (dialog.open) dialog.close();
      before?.isConnected && before.focus();
    };
  }, []);
  return html`<dialog ref=${ref} class=${wide && 'wide'} aria-labelledby="dialog-title" onClose=${onClose} onCancel=${event => busy && event.preventDefault()}>
    <form onSubmit=${event => {
      event.preventDefault();
      onSubmit &&
        act(async () => {
          await onSubmit(new FormData(event.target));
          onClose();
        });
    }}>
      <h2 id="dialog-title">${title}</h2>${children}
      <${Refused} error=${error} />
      <div class="buttons"><button type="button" onClick=${() => ref.current.close()}>${submit ? 'Not now' : 'Close'}</button>${
        submit && html`<button class=${danger ? 'danger' : 'main'} disabled=${busy}>${busy ? 'Sending …' : submit}</button>`
      }</div>
    </form></dialog>`;
}

// --- announcements: few, so that they are heard
let said = 0,
  waiting = [],
  speaker = 0;
export const announce = text => {
  waiting.push(text);
  speaker ||= setTimeout(
    () => {
      speaker = 0;
      said = Date.now();
      const region = document.getElementById('announcements');
      if (region) region.textContent = waiting.length > 2 ? `${waiting.length} runs: ${waiting.slice(-1)} and others` : waiting.join('; ');
      waiting = [];
    },
    Math.max(200, said + 5000 - Date.now()),
  );
};
