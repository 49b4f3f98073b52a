// The shell: session, address, header, banners.
import {html, render, useEffect, useState} from './preact.js';
import {current, get, isAdmin, onSession, post, setSession} from './api.js';
import {link, on, start} from './stream.js';
import {A, Icon, Page, Refused, State, announce, onPlace, place, short, useAct, useLoad} from './parts.js';
import {plain, setZone, shown, skillOf} from './text.js';

// What a page needs comes with the page; the others follow while nothing else is to be done.
const FILES = {
  overview: () => import('./overview.js'),
  runs: () => import('./runs.js'),
  run: () => import('./run.js'),
  skills: () => import('./skills.js'),
  schedules: () => import('./schedules.js'),
  trends: () => import('./trends.js'),
};
const ROUTES = [
  [/^\/$/, 'overview', 'Overview'],
  [/^\/runs$/, 'runs', 'Runs'],
  [/^\/runs\/([^/]+)$/, 'run', 'Run'],
  [/^\/skills$/, 'skills', 'Skills'],
  [/^\/skills\/([^/]+)\/([^/]+)$/, 'skills', 'Skill'],
  [/^\/schedules$/, 'schedules', 'Schedules'],
  [/^\/schedules\/([^/]+)$/, 'schedules', 'Schedule'],
  [/^\/trends$/, 'trends', 'Trends'],
];
const NAV = [
  ['/', 'Overview'],
  ['/runs', 'Runs'],
  ['/skills', 'Skills'],
  ['/schedules', 'Schedules'],
  ['/trends', 'Trends'],
];

const decode = text => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};
const Nowhere = () =>
  html`<${Page} title="Nothing is here"><p>This address names no page. <${A} href="/">The overview<//> has links to all.</p><//>`;

function Body({file, part, ...rest}) {
  const [state, set] = useState({});
  useEffect(() => {
    FILES[file]().then(
      module => set({Page: module[part]}),
      error => set({error}),
    );
  }, [file]);
  if (state.error)
    return html`<${Refused} error=${{message: 'this part of the page could not be loaded', hints: ['another version may run now']}} again=${() => location.reload()} />`;
  return state.Page ? html`<${state.Page} ...${rest} />` : html`<p class="loading muted">Loading …</p>`;
}

const THEMES = ['auto', 'light', 'dark'];
const theme = () => (THEMES.includes(localStorage.getItem('workerctl.theme')) ? localStorage.getItem('workerctl.theme') : 'auto');
const wear = name => {
  document.documentElement.dataset.theme = name;
};
wear(theme());
function Theme() {
  const [is, set] = useState(theme());
  return html`<button class="quiet" title="Colours: ${is}" onClick=${() => {
    const next = THEMES[(THEMES.indexOf(is) + 1) % 3];
    localStorage.setItem('workerctl.theme', next);
    wear(next);
    set(next);
  }}><${Icon} name="theme" /><span class="wide-only">${is}</span><span class="hidden narrow-only">Colours: ${is}</span></button>`;
}

function Header({status, path}) {
  const {user, read_only} = current(),
    {act} = useAct();
  const workspace = status?.workspace || '',
    condition = status?.condition;
  return html`<header><${A} class="brand" href="/" aria-label="workerctl, overview"><svg viewBox="0 0 32 32" aria-hidden="true">
    <rect width="32" height="32" rx="8" /><path d="M6 10l5 13 5-11 5 11 5-13" /></svg><span>workerctl</span><//>
    <nav aria-label="Pages">
      ${NAV.map(
        ([href, name]) => html`<${A} href=${href} aria-current=${(href === '/' ? path === '/' : path.startsWith(href)) ? 'page' : null}>
        ${name}<//>`,
      )}</nav>
    <div class="who">
      ${workspace && html`<span class="workspace" title=${plain(workspace)}>${shown(workspace.split('/').pop(), {max: 40})}</span>`}
      ${condition && html`<${State} is=${condition} />`}
      <span class="user" title=${isAdmin() ? 'may act' : 'may look'}>${shown(user, {max: 40})} <span class="muted">
        ${read_only ? 'read-only' : isAdmin() ? 'admin' : 'read'}</span></span>
      <${Theme} />
      <button class="quiet" title="Log out" onClick=${() =>
        act(async () => {
          await post('web/logout').catch(() => {});
          setSession(null);
        })}>
        <${Icon} name="off" /><span class="hidden">Log out</span></button>
    </div></header>`;
}

function Banners() {
  const [{lost, newer}, set] = useState({...link});
  useEffect(() => on('link', state => set({...state})), []);
  return html`<div class="banners" role="status">${
    lost &&
    html`<p class="t-late">
    <${Icon} name="warn" />The daemon does not answer; trying again.</p>`
  }
    ${
      newer &&
      html`<p class="t-run">
      <${Icon} name="ask" />A newer page is there: <button class="link" onClick=${() => location.reload()}>load it</button></p>`
    }</div>`;
}

function Login({error}) {
  return html`<main id="main" class="login" tabindex="-1"><svg viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="8" />
    <path d="M6 10l5 13 5-11 5 11 5-13" /></svg>
    <h1>workerctl</h1>${error && html`<${Refused} error=${error} />`}
    <p>Nobody is logged in here. In a terminal, in the workspace:</p><pre><code>workerctl web</code></pre>
    <p class="muted">It prints an address with a code that is good once, and opens it. Where that goes wrong, ask for another.</p></main>`;
}

function Shell() {
  const [, redraw] = useState(0);
  const again = () => redraw(n => n + 1);
  useEffect(() => {
    const ends = [onPlace(again), onSession(again)];
    return () => ends.forEach(end => end());
  }, []);
  useEffect(
    () =>
      on('run', run => {
        if (['failed', 'timed_out', 'unknown'].includes(run.outcome?.kind))
          announce(
            `run ${short(run.run)} of ${plain(skillOf(run.skill), 60)} ${run.outcome.kind === 'failed' ? 'failed' : 'ended: ' + run.outcome.kind}`,
          );
      }),
    [],
  );
  const status = useLoad(
    async signal => {
      const told = await get('status', {}, {signal});
      setZone(told.timezone);
      return told;
    },
    [],
    ['status', 'schedules', 'definitions'],
    2000,
  );
  const {path, query} = place();
  let file = null,
    part,
    names = [];
  for (const [pattern, of, name] of ROUTES) {
    const found = pattern.exec(path);
    if (found) [file, part, names] = [of, name, found.slice(1).map(decode)];
  }
  useEffect(() => {
    const timer = setTimeout(() => Object.values(FILES).forEach(load => load().catch(() => {})), 2000);
    return () => clearTimeout(timer);
  }, []);
  return html`<a class="skip" href="#main" onClick=${event => {
    event.preventDefault();
    document.getElementById('main').focus();
  }}>Skip to the content</a>
    <${Header} status=${status.data} path=${path} /><${Banners} />
    <main id="main" tabindex="-1">${
      file ? html`<${Body} key=${path} file=${file} part=${part} names=${names} query=${query} status=${status} />` : html`<${Nowhere} />`
    }</main>`;
}

const app = document.getElementById('app');
const draw = error =>
  render(
    html`${
      current() ? html`<${Shell} />` : html`<${Login} error=${error} />`
    }<div id="announcements" class="hidden" role="status" aria-live="polite"></div>`,
    app,
  );

async function begin() {
  const code = /^#login=(.+)$/.exec(location.hash)?.[1];
  let error = null;
  if (code) {
    // Gone before anything else happens: an address is shown, kept and copied.
    history.replaceState(null, '', location.pathname + location.search);
    try {
      setSession(await post('web/login', {code: decode(code)}));
    } catch (refusal) {
      error = refusal;
    }
  }
  app.textContent = '';
  onSession(() => draw());
  draw(current() ? null : error);
  start();
}
addEventListener('hashchange', () => {
  if (location.hash.startsWith('#login=')) location.reload();
});
begin();
