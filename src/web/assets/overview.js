// The overview: first what needs attention, then what goes on, what was, and what comes.
import {html, useState} from './preact.js';
import {get, id as encode, page} from './api.js';
import {
  A,
  Ago,
  Empty,
  Icon,
  Page,
  RunLink,
  RunState,
  ScheduleLink,
  Section,
  SkillLink,
  State,
  Time,
  Took,
  Waiting,
  detailOf,
  standing,
  useLoad,
} from './parts.js';
import {Bars} from './chart.js';
import {bytes, count, number, parts, plain, shown, skillOf, when, zoned} from './text.js';

const SEEN = 'workerctl.seen',
  FAILURES = 'failed,timed_out,unknown',
  DAY = 86400000;
const seen = () => Math.max(+localStorage.getItem(SEEN) || 0, Date.now() - 7 * DAY);

const Item = ({
  icon,
  tone,
  what,
  children,
  side,
}) => html`<li class="item"><span class="state t-${tone}"><${Icon} name=${icon} /><span class="hidden">
  ${what}</span></span><div class="grow">${children}</div>${side && html`<span class="side">${side}</span>`}</li>`;

function Attention({status, failures, look}) {
  const s = status,
    asked = s.active.filter(run => run.phase === 'awaiting_approval'),
    items = [];
  const add = (...item) =>
    items.push(html`<${Item} key=${item[0]} icon=${item[1]} tone=${item[2]} what=${item[3]} side=${item[5]}>${item[4]}<//>`);
  if (s.condition === 'disk_full')
    add('disk', 'disk', 'bad', 'disk full', html`<strong>The disk is full.</strong> Nothing new is accepted until there is space.`);
  if (s.condition.startsWith('drain'))
    add('drain', 'pause', 'late', s.condition, html`<strong>The engine is ${s.condition}.</strong> It starts nothing new.`);
  if (s.held_schedules) add('held', 'pause', 'bad', 'held', html`<strong>No schedule is fired:</strong> ${shown(s.held_schedules)}`);
  if (s.trees?.problem) add('trees', 'warn', 'late', 'trees', html`<strong>Trees for mutating runs:</strong> ${shown(s.trees.problem)}`);
  for (const o of s.overdue.slice(0, 8))
    add(
      'o' + o.schedule,
      'clock',
      'bad',
      'overdue',
      html`<${ScheduleLink} id=${o.schedule} /> is overdue`,
      html`expected <${Ago} at=${o.expected_by} zone=${o.timezone} />`,
    );
  if (s.overdue.length > 8)
    add(
      'o+',
      'clock',
      'bad',
      'overdue',
      html`<${A} href="/schedules?show=overdue">
    ${count(s.overdue.length - 8, 'more schedule is', 'more schedules are')} overdue<//>`,
    );
  for (const run of asked.slice(0, 8))
    add(
      run.run,
      'ask',
      'ask',
      'awaits approval',
      html`<${SkillLink} name=${skillOf(run.skill)} /> <${RunLink} run=${run.run} /> awaits approval`,
      html`<${Ago} at=${run.submitted_at} />`,
    );
  if (s.awaiting_approval_count > Math.min(8, asked.length))
    add(
      'a+',
      'ask',
      'ask',
      'awaiting',
      html`<${A} href="/runs?outcome=awaiting_approval">
    ${count(s.awaiting_approval_count, 'run awaits', 'runs await')} approval<//>`,
    );
  const failing = s.failing.filter(f => !failures.rows.some(run => run.run === f.run));
  for (const f of failing.slice(0, 6))
    add(
      'f' + f.schedule,
      'cross',
      'bad',
      'failing',
      html`<${ScheduleLink} id=${f.schedule} /> has not succeeded ${f.failure_count === 1 ? 'the last time' : count(f.failure_count, 'time') + ' in a row'}${f.paused && ', and is paused'}`,
      f.run && html`last <${RunLink} run=${f.run} />`,
    );
  if (failing.length > 6)
    add(
      'f+',
      'cross',
      'bad',
      'failing',
      html`<${A} href="/schedules?show=failing">
    ${count(failing.length - 6, 'more schedule fails', 'more schedules fail')}<//>`,
    );
  if (s.error_count)
    add(
      'defs',
      'cross',
      'bad',
      'errors',
      html`<${A} href="/skills?show=problems">${count(s.error_count, 'error')} in definitions<//>
    ${s.kept_schedule_count > 0 && html`; ${count(s.kept_schedule_count, 'schedule is', 'schedules are')} kept as before`}`,
    );
  if (s.kept_commit_count)
    add(
      'kept',
      'commit',
      'late',
      'kept',
      html`${count(s.kept_commit_count, 'kept commit')} on no branch: ${s.kept.map(run => html`<${RunLink} run=${run.run} /> `)}`,
    );
  for (const u of s.undelivered.slice(0, 4))
    add(
      'u' + u.skill + u.schedule,
      'mail',
      'late',
      'undelivered',
      html`A notice about <${SkillLink} name=${u.skill} /> is not delivered after ${count(u.try_count, 'try', 'tries')}${
        u.message && html`: ${shown(u.message, {max: 160})}`
      }`,
      u.next_try && html`next <${Ago} at=${u.next_try} />`,
    );
  // Of each skill the newest alone, with how many there are: one that fails every minute is one thing to look at.
  const groups = new Map();
  for (const run of failures.rows) groups.set(skillOf(run.skill), [...(groups.get(skillOf(run.skill)) || []), run]);
  for (const [name, runs] of groups) {
    const run = runs[0],
      streak = s.failing.find(f => f.run === run.run)?.failure_count;
    add(
      'r' + run.run,
      ...({failed: ['cross', 'bad'], timed_out: ['glass', 'late'], unknown: ['query', 'odd']}[standing(run)] || ['cross', 'bad']),
      standing(run),
      html`<${SkillLink} name=${skillOf(run.skill)} /> <${RunLink} run=${run.run} /> <${RunState} run=${run} />${
        streak > 1 &&
        html` <span class="chip">
      ${streak} times in a row</span>`
      } <span class="muted">${shown(detailOf(run.outcome), {max: 160})}</span>${
        runs.length > 1 && html` · <${A} href=${`/runs?skill=${encode(name)}&outcome=${FAILURES}`}>and ${runs.length - 1} before it<//>`
      }`,
      html`<${Ago} at=${run.finished_at} />`,
    );
  }
  return html`<${Section} title="Needs attention" id="attention" side=${html`<span class="muted">runs that failed since <${Time} at=${look.since} />
    </span>${failures.rows.length > 0 && html`<button onClick=${look.mark}>I have seen these</button>`}`}>
    ${
      items.length
        ? html`<ul class="items">${items}</ul>`
        : html`<${Empty}><span class="state t-ok"><${Icon} name="check" />
      </span> Nothing. All that was due has succeeded.<//>`
    }
    ${failures.next && html`<p><${A} href=${`/runs?outcome=${encode(FAILURES)}`}>All failures<//></p>`}<//>`;
}

function Going({status}) {
  const runs = status.active.filter(run => run.phase !== 'awaiting_approval'),
    more = status.running + status.queued - runs.length;
  return html`<${Section} title="Running and queued" id="going" side=${html`<span class="muted">
    ${status.running} running of at most ${status.max_parallel}, ${status.queued} queued</span>`}>
    ${
      runs.length
        ? html`<ul class="items">${runs.slice(0, 12).map(
            run => html`<li class="item" key=${run.run}><${RunState} run=${run} />
      <div class="grow"><${SkillLink} name=${skillOf(run.skill)} /> <${RunLink} run=${run.run} />${
        run.waiting_for && html` <span class="muted">waits for ${shown(run.waiting_for)}</span>`
      }</div><span class="side">
        <${Took} from=${run.started_at || run.submitted_at} /></span></li>`,
          )}</ul>`
        : html`<${Empty}>Nothing runs.<//>`
    }
    ${(runs.length > 12 || more > 0) && html`<p><${A} href="/runs?outcome=active">All that is active<//></p>`}<//>`;
}

function Counts({hours, days}) {
  const now = Date.now(),
    perHour = new Map(hours.map(line => [Date.parse(line.at), line])),
    begin = Math.floor(now / 3600000) * 3600000;
  const last24 = Array.from({length: 24}, (_, i) => {
    const at = begin - (23 - i) * 3600000;
    return {...perHour.get(at), name: when(at, 'minute'), long: when(at)};
  });
  const perDay = new Map(days.map(line => [line.at, line]));
  const last7 = Array.from({length: 7}, (_, i) => {
    const day = parts(now - (6 - i) * DAY).day;
    return {...perDay.get(day), name: when(Date.parse(day), 'day', 'UTC'), long: day};
  });
  return html`<${Section} title="How it went" id="counts" side=${html`<${A} href="/trends">Trends<//>`}><div class="pair">
    <${Tally} title="24 hours" of=${last24} unit="hour" /><${Tally} title="7 days" of=${last7} unit="day" /></div><//>`;
}
function Tally({title, of, unit}) {
  const sum = name => of.reduce((n, line) => n + (line[name] || 0), 0),
    runs = sum('run_count'),
    bad = sum('failed_count'),
    ok = sum('succeeded_count');
  return html`<div class="card"><div class="head2"><h3>${title}</h3><span class="figures"><strong>${number(runs)}</strong> <span class="muted">
    ${runs === 1 ? 'run' : 'runs'}</span> ${
      ok > 0 &&
      html`<span class="state t-ok"><${Icon} name="check" />
      ${number(ok)} succeeded</span>`
    } ${bad > 0 && html`<span class="state t-bad"><${Icon} name="cross" />${number(bad)} failed</span>`}</span></div>
    <${Bars} label="Runs by ${unit}, ${title}" of=${of} /></div>`;
}

function Due({next}) {
  return html`<${Section} title="Due next" id="due" side=${html`<${A} href="/schedules">Schedules<//>`}>${
    next.length
      ? html`<ul class="items">
    ${next.map(
      fire => html`<li class="item" key=${fire.schedule + fire.due}><${State} is="due"><span class="hidden">due</span><//><div class="grow">
      <${ScheduleLink} id=${fire.schedule} /></div><span class="side"><${Ago} at=${fire.starts} zone=${fire.timezone} /> <span class="muted">
      <${Time} at=${fire.due} zone=${fire.timezone} shape="minute" /></span></span></li>`,
    )}</ul>`
      : html`<${Empty}>Nothing is due: there is no schedule, or none that follows the clock.<//>`
  }<//>`;
}

export function Overview({status}) {
  const [since, setSince] = useState(seen);
  const failures = useLoad(
    signal => page('runs', {outcome: FAILURES, since_ms: since, limit: 40}, {signal}),
    [since],
    [['run', event => !!event.outcome]],
  );
  const stats = useLoad(
    async signal => {
      await zoned;
      const now = Date.now(),
        today = parts(now).day;
      const [hours, days] = await Promise.all([
        get('stats', {by: 'all', bucket: 'hour', from: parts(now - DAY).day, to: today}, {signal}),
        get('stats', {by: 'all', bucket: 'day', from: parts(now - 6 * DAY).day, to: today}, {signal}),
      ]);
      return {hours, days};
    },
    [],
    [['run', event => !!event.outcome]],
    10000,
  );
  const next = useLoad(async signal => (await get('schedules/next', {count: 8}, {signal})).next, [], ['schedules', 'definitions'], 2000);
  const look = {
    since,
    mark: () => {
      const now = Date.now();
      localStorage.setItem(SEEN, now);
      setSince(now);
    },
  };
  const s = status.data;
  return html`<${Page} title="Overview" sub=${
    s &&
    html`${count(s.worker_count, 'worker')}, ${count(s.skill_count, 'skill')}, ${count(s.schedule_count, 'schedule')}; version ${plain(s.version)}, up for <${Took} from=${new Date(Date.now() - s.uptime_ms).toISOString()} />
      ${s.trees?.count > 0 && html`; ${count(s.trees.count, 'tree')} with ${bytes(s.trees.bytes)}`}`
  }>
    <${Waiting} of=${status}>${s => html`<${Attention} status=${s} failures=${failures.data || {rows: []}} look=${look} />
      <div class="pair"><${Going} status=${s} /><${Waiting} of=${next}>${next => html`<${Due} next=${next} />`}<//></div>`}<//>
    <${Waiting} of=${stats}>${data => html`<${Counts} ...${data} />`}<//><//>`;
}
