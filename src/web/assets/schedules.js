// Schedules: all of them with their calendar, and one with its plan and what a person may do.
import {html, useRef, useState} from './preact.js';
import {get, isAdmin, page, post} from './api.js';
import {
  A,
  Ago,
  Dialog,
  Empty,
  Facts,
  Page,
  Refused,
  RunLink,
  Note,
  ScheduleLink,
  Search,
  Section,
  SkillLink,
  State,
  Switch,
  Table,
  Time,
  Two,
  Waiting,
  go,
  runPath,
  setQuery,
  useAct,
  useLoad,
} from './parts.js';
import {Calendar} from './calendar.js';
import {count, instant, number, parts, plain, shown, span, words} from './text.js';

const stateOf = s =>
  s.overdue
    ? 'overdue'
    : s.paused
      ? 'paused'
      : s.plan.blocked
        ? 'blocked_config'
        : s.failure_count > 0
          ? 'failed'
          : s.last?.outcome
            ? s.last.nothing_to_do
              ? 'nothing_to_do'
              : s.last.outcome
            : s.last
              ? 'running'
              : 'due';
const wordOf = s =>
  s.overdue ? 'overdue' : s.paused ? 'paused' : s.plan.blocked ? 'blocked' : s.failure_count > 1 ? `failed ${s.failure_count} times` : null;
const local = at => {
  const p = parts(at);
  return `${p.day}T${String(p.hour).padStart(2, '0')}:${String(p.minute).padStart(2, '0')}`;
};
const SIZE = 500,
  SHOWN = 500;

export function Schedules({query}) {
  const list = useLoad(
    signal => get('schedules', {worker: query.worker, after: query.after, limit: SIZE}, {signal}),
    [query.worker, query.after],
    ['schedules', 'definitions', ['run', event => !!event.schedule]],
    2500,
  );
  const fits = s =>
    (!query.text || (s.schedule + s.when + s.skill).toLowerCase().includes(query.text.toLowerCase())) &&
    ({overdue: s.overdue, failing: s.failure_count > 0, paused: s.paused}[query.show] ?? true);
  return html`<${Page} title="Schedules" actions=${html`<${Switch} label="Which" is=${query.show || ''} of=${[
    ['', 'All'],
    ['overdue', 'Overdue'],
    ['failing', 'Failing'],
    ['paused', 'Paused'],
  ]} on=${show => setQuery({show})} />`}>
    <${Section} title="Calendar" id="calendar"><${Calendar} worker=${query.worker} /><//>
    <${Section} title="All schedules" id="list" side=${html`<${Search} bare label="Filter schedules" hint="Filter" value=${query.text} on=${text => setQuery({text})} />`}>
    <${Waiting} of=${list}>${all => {
      const rows = all.filter(fits),
        held = all.find(s => s.held)?.held;
      return html`${held && html`<${Note} is="failed">No schedule is fired: ${shown(held)}<//>`}${
        rows.length
          ? html`<${Table} label="Schedules by id" heads=${['State', 'Schedule', 'When', 'Next', 'Last', '#Runs']} rows=${rows.map(s => [
              s.schedule,
              html`<${State} is=${stateOf(s)}>${wordOf(s)}<//>`,
              html`<${ScheduleLink} id=${s.schedule} />${
                s.kept && html` <span class="chip t-late" title=${plain(s.kept)}>kept as before</span>`
              }`,
              shown(s.when, {max: 160}),
              s.waiting?.length
                ? `${count(s.waiting.length, 'event')} ${s.waiting.length === 1 ? 'waits' : 'wait'}`
                : s.next && !s.paused
                  ? html`<${Two} and=${html`<${Time} at=${s.next} zone=${s.timezone} />`}><${Ago} at=${s.next} zone=${s.timezone} /><//>`
                  : '–',
              s.last
                ? html`<${Two} and=${html`<${Ago} at=${s.last.slot} zone=${s.timezone} />`}><${RunLink} run=${s.last.run}>
          <${State} is=${s.last.nothing_to_do ? 'nothing_to_do' : s.last.outcome || 'running'} /><//><//>`
                : 'never',
              number(s.actions),
            ])} />`
          : html`<${Empty}>
            ${all.length ? 'No schedule fits.' : 'There is no schedule. `schedule: {cron: "0 9 * * 1-5"}` among the keys of a skill makes one.'}<//>`
      }
      ${
        (all.length >= SIZE || query.after) &&
        html`<p class="pager">${
          query.after && html`<button onClick=${() => setQuery({after: null})}>First</button>`
        }<span class="grow"></span>${
          all.length >= SIZE && html`<button onClick=${() => setQuery({after: all.at(-1).schedule})}>More</button>`
        }</p>`
      }`;
    }}<//><//><//>`;
}

/** Past slots, which of them can be run after all, and the ones that are chosen, one request each. */
function Backfill({id, zone, onClose, done}) {
  const able = s => !s.not_because && !sent.has(s.slot),
    [slots, set] = useState(null),
    [chosen, choose] = useState(new Set()),
    [sent, setSent] = useState(new Map()),
    {busy, error, act} = useAct(),
    form = useRef();
  const look = () =>
    act(async () => {
      const data = new FormData(form.current.closest('form'));
      const told = await get('schedules/backfill', {
        schedule: id,
        from_ms: instant(data.get('from'), zone),
        to_ms: instant(data.get('to'), zone),
      });
      set(told);
      choose(new Set());
    });
  return html`<${Dialog} wide title="Run past slots" submit=${chosen.size ? `Run ${count(chosen.size, 'slot')}` : null} onClose=${onClose} onSubmit=${async () => {
    for (const slot of [...chosen].sort()) {
      try {
        const row = await post('schedules/trigger', {schedule: id, slot});
        setSent(old => new Map(old).set(slot, row.run || ''));
        choose(old => {
          const next = new Set(old);
          next.delete(slot);
          return next;
        });
      } catch (refusal) {
        done();
        throw refusal;
      }
    }
    done();
  }}><div class="fields" ref=${form}>
    <label class="field">From (${zone})<input type="datetime-local" name="from" defaultValue=${local(Date.now() - 86400000)} required /></label>
      <label class="field">To<input type="datetime-local" name="to" defaultValue=${local(Date.now())} required /></label>
      <button type="button" disabled=${busy} onClick=${look}>Show slots</button>${
        slots?.some(able) &&
        html`<button type="button" onClick=${() =>
          choose(
            new Set(
              slots
                .slice(0, SHOWN)
                .filter(able)
                .map(s => s.slot),
            ),
          )}>Choose all</button>`
      }</div>
      <${Refused} error=${error} />
    ${
      slots &&
      (slots.length
        ? html`<${Table} label="Past slots" heads=${['Run it', 'Slot', 'Fate', '~Why not']} rows=${slots.slice(0, SHOWN).map(s => [
            s.slot,
            html`<input type="checkbox" aria-label="Run this slot" disabled=${!able(s)} checked=${chosen.has(s.slot)} onChange=${() =>
              choose(old => {
                const next = new Set(old);
                if (!next.delete(s.slot)) next.add(s.slot);
                return next;
              })} />`,
            html`<${Time} at=${s.slot} zone=${zone} />`,
            s.fate ? html`<${State} is=${s.fate} />` : '–',
            html`${shown(s.not_because ?? '')}${(s.run || sent.get(s.slot)) && html` <${RunLink} run=${s.run || sent.get(s.slot)} />`}`,
          ])} />
        ${slots.length > SHOWN && html`<p class="muted">The first ${SHOWN} of ${number(slots.length)} are shown.</p>`}`
        : html`<${Empty}>It had no slot then.<//>`)
    }<//>`;
}

function Actions({schedule: s, done}) {
  const [asks, set] = useState(null),
    {busy, error, act} = useAct(),
    close = () => set(null);
  if (!isAdmin()) return null;
  return html`<button class="main" onClick=${() => set('trigger')}>Trigger …</button>${
    s.plan.trigger && html`<button onClick=${() => set('backfill')}>Backfill …</button>`
  }${
    s.paused
      ? html`<button disabled=${busy} onClick=${() =>
          act(async () => {
            await post('schedules/resume', {schedule: s.schedule});
            done();
          })}>Resume</button>`
      : html`<button onClick=${() => set('pause')}>Pause …</button>`
  }<${Refused} error=${error} />
    ${
      asks === 'pause' &&
      html`<${Dialog} title="Pause this schedule" submit="Pause" onClose=${close} onSubmit=${async form => {
        await post('schedules/pause', {schedule: s.schedule, reason: form.get('reason')});
        done();
      }}>
        <p>Nothing of it is due until somebody resumes it.</p>
        <label class="field">Why<input name="reason" required maxlength="500" autocomplete="off" /></label><//>`
    }
    ${
      asks === 'trigger' &&
      html`<${Dialog} title="Run it now" submit="Run it now" onClose=${close} onSubmit=${async () => {
        const row = await post('schedules/trigger', {schedule: s.schedule});
        done();
        if (row.run) go(runPath(row.run));
      }}>
        <p>It runs for now, with a row of its own and within its policies.</p><//>`
    }
    ${asks === 'backfill' && html`<${Backfill} id=${s.schedule} zone=${s.timezone} onClose=${close} done=${done} />`}`;
}

function Slots({id, zone}) {
  const [before, set] = useState(null),
    slots = useLoad(
      signal => page('slots', {...(before || {schedule: id}), limit: 25}, {signal}),
      [id, before],
      ['schedules', ['run', event => event.schedule === id]],
      2500,
    );
  return html`<${Waiting} of=${slots}>${({rows, next}) =>
    html`${
      rows.length
        ? html`<${Table} label="Slots, newest first" heads=${['Slot', 'Fate', 'Run', '#Late', '~Why']} rows=${rows.map(s => [
            s.from + s.fate,
            html`<${Time} at=${s.from} zone=${zone} />${
              s.count !== 1 &&
              html` <span class="muted under">
      ${s.count == null ? 'many' : count(s.count, 'slot')} until <${Time} at=${s.to} zone=${zone} /></span>`
            }`,
            html`<${State} is=${s.fate} />`,
            s.run &&
              html`<${RunLink} run=${s.run} /> <${State} is=${s.nothing_to_do ? 'nothing_to_do' : s.outcome || 'running'}>
      ${!s.outcome && 'not ended'}<//>`,
            s.started_at ? span(Math.max(0, Date.parse(s.started_at) - Date.parse(s.from))) : '–',
            shown(s.reason ?? '', {max: 300}),
          ])} />`
        : html`<${Empty}>No slot is on record yet.<//>`
    }<p class="pager">${before && html`<button onClick=${() => set(null)}>Newest</button>`}<span class="grow"></span>${
      next && html`<button onClick=${() => set(next)}>Older</button>`
    }</p>`}<//>`;
}

export function Schedule({names: [id]}) {
  const one = useLoad(
    async signal => {
      const [found] = await get('schedules', {schedule: id}, {signal});
      if (!found) throw Object.assign(new Error(`there is no schedule ${plain(id)}`), {hints: ['it may be gone, or switched off']});
      return found;
    },
    [id],
    ['schedules', 'definitions', ['run', event => event.schedule === id]],
    1500,
  );
  const why = useLoad(signal => get('schedules/explain', {schedule: id}, {signal}), [id], ['definitions']),
    s = one.data;
  return html`<${Page} title=${shown(id)} plainTitle=${id} sub=${
    s &&
    html`<${State} is=${stateOf(s)}>
    ${wordOf(s)}<//> runs <${SkillLink} name=${s.skill} /> · ${shown(s.when)}`
  } actions=${s && html`<${Actions} schedule=${s} done=${one.reload} />`}>
    <${Waiting} of=${one}>${s => html`
      ${s.held && html`<${Note} is="failed">No schedule is fired: ${shown(s.held)}<//>`}${
        s.plan.blocked && html`<${Note} is="blocked_config">Its skill cannot run: ${shown(s.plan.blocked)}<//>`
      }${s.kept && html`<${Note} is="warning">It is kept as it was before an error: ${shown(s.kept)}<//>`}${
        s.restored &&
        html`<${Note} is="warning">Its state was damaged and made anew <${Ago} at=${s.restored.at} />: ${shown(s.restored.reason)}<//>`
      }${s.paused && html`<${Note} is="paused">Paused by ${shown(s.paused.by)} <${Ago} at=${s.paused.at} />: ${shown(s.paused.reason)}<//>`}
      <${Section} title="Calendar" id="calendar"><${Calendar} schedule=${id} /><//>
      <div class="columns"><div>
        <${Section} title="Slots" id="slots" side=${html`<${A} href=${`/runs?schedule=${encodeURIComponent(id)}`}>Its runs<//>`}>
          <${Slots} id=${id} zone=${s.timezone} /><//></div>
      <aside aria-label="Facts"><${Section} title="Facts" id="facts"><${Facts} of=${[
        ['Next', s.next && html`<${Time} at=${s.next} zone=${s.timezone} /> (<${Ago} at=${s.next} zone=${s.timezone} />)`],
        ['Zone', shown(s.timezone)],
        s.waiting.length > 0 && [
          'Waiting',
          s.waiting.map(
            w => html`<div>
          <${Time} at=${w.due} zone=${s.timezone} /> starts <${Ago} at=${w.starts} />${
            w.after && html` after <${RunLink} run=${w.after} />`
          }</div>`,
          ),
        ],
        ['Last', s.last && html`<${RunLink} run=${s.last.run} /> ${s.last.outcome && html`<${State} is=${s.last.outcome} />`}`],
        ['Last success', s.succeeded_at && html`<${Ago} at=${s.succeeded_at} />`],
        ['Failures in a row', s.failure_count || null],
        [
          'Expected by',
          s.expected_by && html`<${Time} at=${s.expected_by} zone=${s.timezone} />${s.overdue && html` <${State} is="overdue" />`}`,
        ],
        ['Defined at', html`<code class="break">${shown(s.defined_at)}</code>`],
        [
          'Slots so far',
          Object.entries(s.totals).map(
            ([fate, n]) => html`<div>
          <${State} is=${fate} /> ${number(n)}</div>`,
          ),
        ],
      ]} /><//>
        <${Section} title="Plan" id="plan"><${Waiting} of=${why}>${w => html`<p>${shown(w.words)}</p><ul class="plain">
          ${w.policies?.map((p, i) => html`<li key=${i}><span class="muted">${shown(words(p.about))}</span> ${shown(p.says)}</li>`)}</ul>
            ${
              w.next?.length > 0 &&
              html`<h3>Comes next</h3><ol class="plain timeline">${w.next.slice(0, 5).map(
                at => html`<li key=${at}>
            <${Time} at=${at} zone=${s.timezone} /> <span class="muted"><${Ago} at=${at} /></span></li>`,
              )}</ol>`
            }${
              w.clock_changes?.length > 0 &&
              html`<h3>Changes of clocks</h3><ul class="plain">${w.clock_changes.slice(0, 6).map(
                (c, i) => html`<li key=${i}><span class="muted">
            ${shown(c.date)}</span> ${shown(c.what, {max: 300})}</li>`,
              )}</ul>`
            }`}<//><//></aside></div>`}<//><//>`;
}
