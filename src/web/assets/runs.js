// All runs: filters that stand in the address, lanes over time, a table by pages.
import {html, useRef, useState} from './preact.js';
import {page} from './api.js';
import {
  A,
  Ago,
  Empty,
  Icon,
  Page,
  RunLink,
  RunState,
  ScheduleLink,
  Search,
  SkillLink,
  Switch,
  Table,
  Time,
  Took,
  Two,
  Waiting,
  detailOf,
  go,
  look,
  place,
  runPath,
  setQuery,
  standing,
  useLoad,
  useNow,
  useWidth,
  waits,
} from './parts.js';
import {count, instant, number, parts, plain, shown, skillOf, span, when, words, zoneName} from './text.js';

const OUTCOMES = ['active', 'awaiting_approval', 'succeeded', 'failed', 'timed_out', 'unknown', 'cancelled', 'denied', 'unverified'];
const SPANS = [
  ['1', 'the last hour'],
  ['6', '6 hours'],
  ['24', '24 hours'],
  ['168', '7 days'],
  ['720', '30 days'],
];
const HOUR = 3600000,
  SIZE = 50,
  LANES = 500,
  TRIES = 5;

const local = at => {
  const p = parts(at);
  return `${p.day}T${String(p.hour).padStart(2, '0')}:${String(p.minute).padStart(2, '0')}`;
};

/** What the address asks for, as the API takes it. */
const wanted = query => {
  const {outcome, worker, skill, schedule, by, text} = query;
  return {
    outcome,
    worker,
    skill,
    schedule,
    by,
    text,
    ...(query.hours
      ? {since_ms: Date.now() - query.hours * HOUR}
      : {since_ms: query.from && instant(query.from), until_ms: query.to && instant(query.to)}),
  };
};

/** A page of rows. An answer may have fewer rows than were asked for, and more behind them. */
async function rowsOf(values, limit, signal) {
  let {rows, next} = await page('runs', {...values, limit}, {signal});
  for (let i = 0; next && rows.length < limit && i < TRIES; i++) {
    const more = await page('runs', {...next, limit: limit - rows.length}, {signal});
    rows = rows.concat(more.rows);
    next = more.next;
  }
  return {rows, before: next?.before || null};
}

// Ids begin with their time: 48 bits in Crockford's base 32.
const timeOf = run => [...run.slice(0, 10)].reduce((n, c) => n * 32 + '0123456789ABCDEFGHJKMNPQRSTVWXYZ'.indexOf(c), 0);

function Filters({query}) {
  const picked = (query.outcome || '').split(',').filter(Boolean);
  const put = (name, value) => setQuery({[name]: value, before: null});
  const field = (name, label) => html`<${Search} label=${label} value=${query[name]} on=${text => put(name, text)} />`;
  return html`<form class="filters" role="search" aria-label="Filter runs" onSubmit=${event => event.preventDefault()}>
    <fieldset class="chips"><legend class="hidden">Outcome</legend>${OUTCOMES.map(
      name => html`<label class="pick" key=${name}>
      <input type="checkbox" checked=${picked.includes(name)} onChange=${() => put('outcome', (picked.includes(name) ? picked.filter(one => one !== name) : [...picked, name]).join())} />
        <span class="t-${name === 'unverified' ? 'off' : look(name)[1]}"><${Icon} name=${name === 'unverified' ? 'none' : look(name)[0]} />
        ${words(name)}</span></label>`,
    )}</fieldset>
    <div class="fields">
      ${field('text', 'Text')}${field('worker', 'Worker')}${field('skill', 'Skill')}${field('schedule', 'Schedule')}${field('by', 'Asked by')}
    <label class="field">Time<select value=${query.hours || (query.from || query.to ? 'own' : '')} onChange=${event => {
      const v = event.target.value;
      setQuery({hours: v === 'own' ? null : v, from: v === 'own' ? local(Date.now() - 24 * HOUR) : null, to: null, before: null});
    }}>
      <option value="">any</option>${SPANS.map(
        ([value, name]) => html`<option value=${value}>
        ${name}</option>`,
      )}<option value="own">from … to …</option></select></label>
    ${
      (query.from || query.to) &&
      !query.hours &&
      html`<label class="field">From (${zoneName()})<input type="datetime-local" value=${query.from || ''} onChange=${event => put('from', event.target.value)} />
        </label><label class="field">To<input type="datetime-local" value=${query.to || ''} onChange=${event => put('to', event.target.value)} />
        </label>`
    }
    ${
      Object.keys(query).some(name => !['view', 'before'].includes(name)) &&
      html`<${A} class="button" href=${'/runs' + (query.view ? '?view=' + query.view : '')}>Clear<//>`
    }</div></form>`;
}

export const RunTable = ({rows, skill = true, label = 'Runs'}) =>
  html`<${Table} label=${label} heads=${['State', 'Run', ...(skill ? ['Skill'] : []), 'Asked by', 'Accepted', '#Waited', '#Took', '~What it says']} rows=${rows.map(
    run => [
      run.run,
      html`<${RunState} run=${run} />`,
      html`<${RunLink} run=${run.run} />`,
      ...(skill ? [html`<${Two} and=${shown(run.title ?? '', {max: 80})}><${SkillLink} name=${skillOf(run.skill)} /><//>`] : []),
      run.schedule
        ? html`<${ScheduleLink} id=${run.schedule} />`
        : run.parent
          ? html`run <${RunLink} run=${run.parent} />`
          : shown(run.by || '–', {max: 60}),
      html`<${Two} and=${html`<${Ago} at=${run.submitted_at} />`}>
      <${Time} at=${run.submitted_at} /><//>`,
      run.started_at || !run.outcome ? html`<${Took} from=${run.submitted_at} to=${run.started_at} />` : '–',
      html`<${Took} from=${run.started_at} to=${run.finished_at} />`,
      html`${shown(detailOf(run.outcome) || waits(run), {max: 160})}${
        run.attempts > 1 &&
        html` <span class="chip">
    ${run.attempts} attempts</span>`
      }${run.kept_commit && html` <span class="chip t-late">kept commit</span>`}`,
    ],
  )} />`;

/** One lane for each skill; a bar is a run: hollow while it waited, filled while it ran. The table below says the same. */
function Lanes({rows, from, to}) {
  const now = useNow(5000),
    box = useRef(),
    wide = useWidth(box, 960),
    [near, setNear] = useState(null);
  const end = to ?? now,
    names = [...new Set(rows.map(run => skillOf(run.skill)))].sort(),
    left = wide < 600 ? 96 : 190,
    high = 24,
    top = 22;
  const x = at => left + Math.max(0, Math.min(1, (at - from) / (end - from))) * (wide - left - 8),
    fit = Math.floor((left - 12) / 6.8);
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10080].map(minutes => minutes * 60000),
    step = steps.find(ms => (end - from) / ms <= (wide - left) / 90) || steps.at(-1),
    ticks = [];
  // Ticks stand at whole hours of the zone's clock, not of UTC.
  const offset = Date.parse(local(from) + 'Z') - Math.floor(from / 60000) * 60000;
  for (let at = Math.ceil((from + offset) / step) * step - offset; at < end; at += step) ticks.push(at);
  return html`<div class="lanes" ref=${box}>
    <svg width=${wide} height=${top + names.length * high + 4} role="img" aria-label=${`${count(rows.length, 'run')} in ${count(names.length, 'lane')}, one for each skill, from ${when(from)} to ${when(end)}; the table below has the same`} onMouseLeave=${() => setNear(null)}>
    <g class="grid">${ticks.map(at => html`<path d="M${x(at)} ${top - 4}V${top + names.length * high}" />`)}</g>
      ${ticks.map(at => html`<text x=${x(at)} y="12" text-anchor="middle">${when(at, step >= 86400000 ? 'day' : 'minute')}</text>`)}
    ${names.map(
      (name, i) => html`<text class="lane" x="0" y=${top + i * high + 16}>
      ${plain(name.length > fit ? '…' + name.slice(1 - fit) : name)}</text><path class="grid" d="M${left} ${top + (i + 1) * high}H${wide}" />`,
    )}
    ${rows.map(run => {
      const y = top + names.indexOf(skillOf(run.skill)) * high,
        begin = Date.parse(run.submitted_at),
        started = run.started_at && Date.parse(run.started_at),
        over = run.finished_at ? Date.parse(run.finished_at) : now;
      const wait = x(started || over) - x(begin),
        tone = look(standing(run))[1];
      return html`<g key=${run.run} class="bar" onClick=${() => go(runPath(run.run))} onMouseEnter=${() => setNear(run)}>${
        wait > 1 && html`<rect class="hollow" x=${x(begin)} y=${y + 9} width=${wait} height="6" rx="2" />`
      }${
        (started || run.outcome) &&
        html`<rect class="f-${tone}" x=${x(started || begin)} y=${y + 5} width=${Math.max(3, x(over) - x(started || over))} height="14" rx="2.5" />`
      }</g>`;
    })}</svg><p class="muted tip" aria-hidden="true">${
      near
        ? html`<${RunState} run=${near} /> ${plain(skillOf(near.skill))} ${near.run.slice(-8).toLowerCase()} · ${when(near.submitted_at)} · took ${span((near.finished_at ? Date.parse(near.finished_at) : now) - Date.parse(near.started_at || near.submitted_at))}`
        : 'Hollow: waiting. Filled: running, in the colour of its outcome.'
    }</p>
        </div>`;
}

export function Runs({query}) {
  const lanes = query.view === 'lanes',
    hours = +query.hours || 24,
    top = !query.before,
    key = JSON.stringify(query);
  const values = () => (lanes && !query.from ? {...wanted(query), since_ms: Date.now() - hours * HOUR} : wanted(query));
  // A run that is listed is changed in its place; the list is asked for again where one may come in.
  const changed = (event, set) => {
    let known = false;
    set(old =>
      old.data
        ? {
            ...old,
            data: {...old.data, rows: old.data.rows.map(run => (run.run === event.run ? ((known = true), {...run, ...event}) : run))},
          }
        : old,
    );
    return (top || lanes) && (!known || !!query.outcome);
  };
  const list = useLoad(
    signal => rowsOf({...values(), before: query.before}, lanes ? LANES : SIZE, signal),
    [key],
    [['run', changed]],
    2000,
  );
  return html`<${Page} title="Runs" sub=${`Times in ${zoneName()}`} actions=${html`<${Switch} label="View" is=${query.view || ''} of=${[
    ['', 'Table'],
    ['lanes', 'Lanes'],
  ]} on=${view => setQuery({view, before: null})} />`}>
    <${Filters} query=${query} />
    <${Waiting} of=${list}>${({rows, before}) => html`
      ${
        lanes &&
        rows.length > 0 &&
        html`<${Lanes} rows=${rows} from=${query.from ? instant(query.from) : Date.now() - hours * HOUR} to=${query.to ? instant(query.to) : null} />`
      }
      ${
        rows.length
          ? html`<${RunTable} rows=${lanes ? rows.slice(0, 100) : rows} />`
          : html`<${Empty}>
        ${before ? 'None of those that were looked at fits.' : key === '{}' ? 'Nothing has run yet.' : 'No run fits.'}<//>`
      }
      ${lanes && rows.length > 100 && html`<p class="muted">The table has the newest 100 of ${number(rows.length)}.</p>`}
      <p class="pager">${
        !top && html`<${A} class="button" href=${location.pathname + location.search.replace(/([?&])before=[^&]*&?/, '$1')}>Newest<//>`
      }
        <span class="muted grow">
          ${count(rows.length, 'run')}${before && rows.length < (lanes ? LANES : SIZE) ? `; looked at those since ${when(timeOf(before))}` : ''}</span>
        ${
          before &&
          html`<button onClick=${() => {
            const q = new URLSearchParams(location.search);
            q.set('before', before);
            go(`${place().path}?${q}`);
            scrollTo(0, 0);
          }}>
            ${rows.length < SIZE ? 'Go on' : 'Older'}</button>`
        }</p>`}<//><//>`;
}
