// A calendar of slots: days by hours, each cell in the colour and with the sign of the worst that happened in it.
import {html, useEffect, useRef, useState} from './preact.js';
import {get, page} from './api.js';
import {Icon, Note, Refused, RunLink, ScheduleLink, State, Table, Time, Waiting, look, useLoad} from './parts.js';
import {count, parts, plain, shown, when, words} from './text.js';

const HOUR = 3600000,
  DAY = 24 * HOUR;
const RANK = [
  'due',
  'blocked_hours',
  'succeeded',
  'ran',
  'paused',
  'skipped_overlap',
  'cancelled',
  'denied',
  'missed',
  'blocked_config',
  'unknown',
  'timed_out',
  'failed',
];
const worse = (a, b) => (RANK.indexOf(a) > RANK.indexOf(b) ? a : b);
/** What a fate means, where its word does not say it. */
const MEANS = {
  ran: 'it ran in time',
  caught_up: 'it ran later',
  backfilled: 'a person had it run afterwards',
  skipped_overlap: 'an earlier run had not ended',
  missed: 'it did not run',
  paused: 'the schedule was paused',
  blocked_hours: 'nothing is due in these hours',
  blocked_config: 'the definition could not be run',
};

const counts = map =>
  Object.entries(map || {})
    .map(([name, n]) => `${n} ${words(name)}`)
    .join(', ');
const told = cell => [counts(cell.fates), counts(cell.outcomes), cell.due > 0 && `${cell.due} due`].filter(Boolean).join('; ') || 'nothing';

/** Cells by `day hour` of the zone. Where an hour comes twice, as clocks go back, both are in one cell. */
const arranged = ({cells, timezone}) => {
  const by = new Map();
  for (const cell of cells) {
    const p = parts(cell.at, timezone),
      key = `${p.day} ${p.hour}`,
      old = by.get(key);
    if (!old) {
      by.set(key, {...cell, begin: Date.parse(cell.at), end: Date.parse(cell.at) + HOUR});
      continue;
    }
    const sum = (a, b) =>
      Object.fromEntries([...new Set([...Object.keys(a), ...Object.keys(b)])].map(name => [name, (a[name] || 0) + (b[name] || 0)]));
    by.set(key, {
      ...old,
      fates: sum(old.fates, cell.fates),
      outcomes: sum(old.outcomes, cell.outcomes),
      due: old.due + cell.due,
      worst: worse(cell.worst, old.worst),
      end: Date.parse(cell.at) + HOUR,
    });
  }
  return by;
};

function Detail({cell, schedule, zone}) {
  const past = useLoad(
    signal => page('slots', {schedule, since_ms: cell.begin, until_ms: cell.end, limit: 100}, {signal}),
    [cell.begin, schedule],
  );
  const why = useLoad(
    signal =>
      schedule && cell.end > Date.now()
        ? get('schedules/explain', {schedule, at_ms: Math.max(Date.now(), cell.begin - 1), count: 12}, {signal})
        : null,
    [cell.begin, schedule],
  );
  const coming = why.data?.next?.filter(at => Date.parse(at) < cell.end) || [];
  return html`<div class="card detail" aria-live="polite"><h3>
    ${when(cell.begin, 'day', zone)}, ${when(cell.begin, 'minute', zone)} to ${when(cell.end, 'minute', zone)} <span class="muted">${zone}</span></h3>
    <${Waiting} of=${past}>${({rows, next}) =>
      html`<ul class="items">${rows.map(
        (s, i) => html`<li class="item" key=${i}>
      <${State} is=${s.outcome || s.fate} /><div class="grow">${!schedule && html`<${ScheduleLink} id=${s.schedule} /> `}${
        s.count !== 1 && html`${s.count == null ? 'many slots' : count(s.count, 'slot')} until <${Time} at=${s.to} zone=${zone} />: `
      }${s.outcome && html`${words(s.fate)}: `}${MEANS[s.fate]}${s.reason && html`, ${shown(s.reason, {max: 300})}`}${
        s.unreadable && html` <strong>The row is damaged.</strong>`
      }${s.run && html` · run <${RunLink} run=${s.run} />`}</div><span class="side">
        <${Time} at=${s.from} zone=${zone} shape="time" /></span></li>`,
      )}</ul>${next && html`<p class="muted">The first ${rows.length} are shown.</p>`}${
        !rows.length && !cell.due && html`<p class="muted">No slot is on record here.</p>`
      }`}<//>
    ${
      cell.due > 0 &&
      html`<p>
      <${State} is="due" /> ${count(cell.due, 'slot')}${coming.length > 0 && ': ' + coming.map(at => when(at, 'minute', zone)).join(', ') + (coming.length < cell.due ? ' …' : '')}</p>`
    }
    ${
      why.data?.policies &&
      html`<ul class="plain muted">${why.data.policies.map(
        (p, i) => html`<li key=${i}>
      ${shown(p.says)}</li>`,
      )}</ul>`
    }<${Refused} error=${why.error} /></div>`;
}

export function Calendar({schedule, worker}) {
  const [back, setBack] = useState(0),
    [table, setTable] = useState(false),
    [at, setAt] = useState(null),
    [open, setOpen] = useState(null),
    grid = useRef();
  const PAST = 9,
    AHEAD = 4;
  const window = () => {
    const today = Math.floor(Date.now() / HOUR) * HOUR - back * 7 * DAY;
    return {from_ms: today - PAST * DAY, to_ms: today + AHEAD * DAY};
  };
  const data = useLoad(
    signal => get('schedules/calendar', {schedule, worker, ...window(), bucket: 'hour'}, {signal}),
    [schedule, worker, back],
    ['schedules', ['run', event => !!event.schedule && (!schedule || event.schedule === schedule)]],
    3000,
  );
  const focus = (row, hour) => {
    setAt([row, hour]);
    grid.current?.querySelector(`[data-cell="${row} ${hour}"]`)?.focus();
  };
  useEffect(() => setOpen(null), [schedule, back]);
  return html`<div class="calendar"><div class="head2"><div class="buttons"><button onClick=${() => setBack(back + 1)}>Earlier</button>
    <button disabled=${!back} onClick=${() => setBack(Math.max(0, back - 1))}>Later</button>${
      back > 0 && html`<button onClick=${() => setBack(0)}>Today</button>`
    }</div><span class="muted grow">
      ${data.data && `Hours of ${plain(data.data.timezone)}`}</span><button class="quiet" aria-pressed=${table} onClick=${() => setTable(!table)}>
      ${table ? 'calendar' : 'table'}</button></div>
    <${Waiting} of=${data}>${data => {
      const zone = data.timezone,
        cells = arranged(data),
        {from_ms, to_ms} = window(),
        days = [],
        now = parts(Date.now(), zone),
        known = data.due_known_until && Date.parse(data.due_known_until);
      for (let day = parts(from_ms, zone).day, i = 0; i < PAST + AHEAD + 1; i++)
        days.push(new Date(Date.parse(day) + i * DAY).toISOString().slice(0, 10));
      const [row, hour] = at || [days.indexOf(now.day) < 0 ? 0 : days.indexOf(now.day), now.hour],
        all = [...cells.values()];
      const move = event => {
        const to = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[event.key];
        const [r, h] = event.key === 'Home' ? [row, 0] : event.key === 'End' ? [row, 23] : to ? [row + to[0], hour + to[1]] : [];
        if (r == null) return;
        event.preventDefault();
        focus(Math.max(0, Math.min(days.length - 1, r)), Math.max(0, Math.min(23, h)));
      };
      return html`${
        table
          ? html`<${Table} label="Slots by the hour" heads=${['Hour', 'Fates', 'Outcomes', '#Due']} rows=${all.map(cell => [
              cell.at,
              html`<${Time} at=${cell.at} zone=${zone} />`,
              counts(cell.fates) || '–',
              counts(cell.outcomes) || '–',
              cell.due,
            ])} />`
          : html`
      <div class="scroll"><table class="grid" role="grid" aria-label="Slots by day and hour" ref=${grid} onKeyDown=${move}><thead><tr role="row">
        <th scope="col" role="columnheader"><span class="hidden">Day</span></th>
          ${Array.from({length: 24}, (_, h) => html`<th scope="col" role="columnheader">${h}</th>`)}</tr></thead>
      <tbody>${days.map(
        (day, r) => html`<tr role="row" key=${day} class=${day === now.day ? 'today' : null}><th scope="row" role="rowheader">
        ${when(Date.parse(day), 'day', 'UTC')}</th>${Array.from({length: 24}, (_, h) => {
          const cell = cells.get(`${day} ${h}`),
            is = cell && (cell.worst === 'ran' ? 'running' : cell.worst),
            [icon, tone] = is ? look(is) : [null, 'empty'],
            far = known && Date.parse(day) > known;
          return html`<td role="gridcell" key=${h} aria-selected=${open === cell && !!cell}>
          <button data-cell="${r} ${h}" tabindex=${r === row && h === hour ? 0 : -1} class=${`cell c-${tone}${day === now.day && h === now.hour ? ' now' : ''}`} aria-label=${`${when(Date.parse(day), 'day', 'UTC')} ${h}:00: ${cell ? told(cell) : far ? 'not known yet' : 'nothing'}`} title=${cell && `${h}:00 – ${told(cell)}`} onFocus=${() => setAt([r, h])} onClick=${() => cell && setOpen(cell)}>
            ${icon && html`<${Icon} name=${icon} />`}</button></td>`;
        })}</tr>`,
      )}</tbody></table></div>
      <p class="key">
        ${['succeeded', 'failed', 'timed_out', 'unknown', 'missed', 'skipped_overlap', 'paused', 'blocked_hours', 'due'].map(name => html`<${State} is=${name} />`)}</p>`
      }
      ${data.incomplete && html`<${Note} is="warning">There are more slots than were looked at; not every cell is whole.<//>`}
      ${open && html`<${Detail} key=${open.begin} cell=${open} schedule=${schedule} zone=${zone} />`}`;
    }}<//></div>`;
}
