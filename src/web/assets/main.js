// Every page but that of one run - the overview, runs, trends, skills, schedules - and, at the end, the shell around them.
import {a, Acts, ago, aside, asked, assign, b, begin, button, bytes, ceil, choice, clock, code, count, current, cut, DAY, dayName, detailOf, Dialog, div,
  em, empty, encode, ended, ending, endSession, facts, field, floor, form, get, go, h1, h3, HOUR, icon, input, instant, isAdmin, item, li, link, list,
  loaded, max, min, missing, mono, note, noteField, now, number, on, option, p, Page, pager, pairs, parse, part, path, plain, post, pre, readSession,
  rect, redraw, refused, renew, runLink, runOf, runPath, runState, scheduleLink, Search, section, select, setQuery, setSession, setZone, short, sign, signOf,
  skillLink, skillOf, skillPath, small, span, spell, standing, state, store, strong, svg, table, tags, tbody, td, textarea, th, thead, time, to, today,
  tone, took, tr, upTo, useAct, useGet, useLoad, useRef, useState, useWidth, waits, when, words, worked, zoned, zoneName} from './base.js';
import {Run} from './run.js';

const {circle, g, header, main, nav, text, title} = tags;

/** What is told where something is defined, or a schedule's state has changed. */
const DEFINED = {definitions:1, schedules:1};

// --- charts
/** A number at or above `most` at which an axis may end. */
const nice = most => {
  const unit = 10 ** floor(Math.log10(most));
  return [1, 2, 2.5, 5, 10].map(n => n * unit).find(n => n >= most);
};
const LEFT = 56, HIGH = 140, FLOOR = HIGH - 20;
/** Axes and names, and what `draw` puts in them. `of` has a line for each time, `series` are `{name, is, value}`; with `sum` they are stacked. */
const Chart = part(({name, of, series, show = number, most, sum, draw}) => {
  const [whole, set] = useState(), [box, wide] = useWidth(600), said = (s, o) => (s.value(o) == null ? '–' : show(s.value(o)));
  const top = most || nice(max(sum ? 1 : 0.001, ...of.flatMap(o => (sum ? sum(o) : series.map(s => s.value(o) || 0))))),
      y = n => FLOOR - (n / top) * (FLOOR - 10);
  const step = (wide - LEFT - 4) / of.length, x = i => LEFT + 4 + (i + 0.5) * step, each = ceil(85 / step);
  return div.chart({ref:box}, button('table', () => set(!whole), 'quiet', {pressed:!!whole, label:name + ': show as a table'}),
    whole ? table(name, [['When', o => o.long], sum && ['#runs', sum], ...series.map(s => ['#' + s.name, o => said(s, o)])], of, o => o.long)
    : [svg({width:wide, height:HIGH, role:'img', label:name},
        [top, top / 2, 0].map(n => [path.grid({d:`M${LEFT} ${y(n)}H${wide}`}), n % 1 && sum ? null : text({x:LEFT - 6, y:y(n) + 4, class:'axis'}, show(n))]),
        of.map((o, i) => i % each === 0 && text({x:x(i), y:HIGH - 4}, o.name)), draw({x, y, step, said})),
      series.length > 1 && !sum && p.key(series.map(s => span({class:'curve ' + tone(s.is)}, s.name)))]);
});
/** Stacked counts of outcomes. */
const bars = (name, of) => {
  const kinds = OUTCOMES.filter(kind => of.some(o => o.outcomes?.[kind]));
  const series = kinds.map(is => ({name:words(is), is, value:o => o.outcomes?.[is] || 0}));
  const draw = ({x, y, step}) => of.map((o, i) => {
    let n = 0;
    return series.map(s => s.value(o) > 0 && rect({class:'fill ' + tone(s.is), x:x(i) - step * 0.38, width:step * 0.76, rx:1.5,
        height:max(1.5, FLOOR - y(s.value(o)) - 0.7), y:y((n += s.value(o)))},
      title(`${o.long}: ${s.value(o)} ${s.name}`)));
  });
  return Chart({name, of, series, draw, sum:o => o.run_count || 0});
};
/** Lines over days; a day without a value is a gap. */
const lines = (name, of, series, show, most) => {
  const draw = ({x, y, said}) => series.map((s, at) => {
    const there = of.map((o, i) => s.value(o) != null && [x(i).toFixed(1), y(s.value(o)).toFixed(1)]);
    const join = (begin, end) => there.map((p, i) => (p ? (there[i - 1] ? 'L' : begin(p)) + p + (there[i + 1] ? '' : end(p)) : '')).join('');
    return g({class:tone(s.is)}, !at && path.area({d:join(p => `M${p[0]} ${FLOOR}L`, p => `L${p[0]} ${FLOOR}Z`)}), path.curve({d:join(() => 'M', () => '')}),
      there.map((p, i) => p && circle({cx:p[0], cy:p[1], r:of.length > 40 ? 1.5 : 2.5}, title(`${of[i].long}: ${s.name} ${said(s, of[i])}`))));
  });
  return Chart({name, of, series, show, most, draw});
};
/** Lines of days up to today, with or without runs. */
const byDay = (stats, days) => upTo(days, i => {
  const long = new Date(parse(today()) - (days - 1 - i) * DAY).toISOString().slice(0, 10), name = dayName(long);
  return {...stats.find(line => line.at === long), name:days > 7 ? name.replace(/^\w+,? /, '') : name, long};
});

// --- overview
const SEEN = 'workerctl.seen', FAILURES = 'failed,timed_out,unknown';

const attention = (s, failures, since, mark) => {
  const items = [], add = (is, id, body, side) => items.push(item(is + id, sign(is), body, side));
  /** Some of the rows, and a link to the others. */
  const some = (is, rows, most, one, href, rest) => {
    rows.slice(0, most).forEach(row => add(is, ...one(row)));
    if (rows.length > most) add(is, '', to(href, `${number(rows.length - most)} more ${rest}`));
  };
  if (s.condition === 'disk_full') add('disk_full', '', [strong('The disk is full.'), ' Nothing new is accepted until there is space.']);
  if (s.condition === 'file_size_limit') add('file_size_limit', '', [strong('The store has reached the limit on the size of a file.'), ' Nothing new is accepted until it is raised: LimitFSIZE=infinity in the unit.']);
  if (s.condition.startsWith('drain')) add(s.condition, '', [strong(`The engine is ${s.condition}.`), ' It starts nothing new.']);
  if (s.inactive_reason) add('held', '', [strong('No schedule is fired: '), s.inactive_reason]);
  if (s.trees?.problem) add('warning', '', [strong('Trees for mutating runs: '), s.trees.problem]);
  some('overdue', s.overdue, 8, o => [o.schedule, [scheduleLink(o.schedule), ' is overdue'], ['expected ', ago(o.expected_by, o.timezone)]],
      '/schedules?show=overdue', 'overdue');
  const asked = s.active.filter(run => run.phase === 'awaiting_approval');
  some('awaiting_approval', [...asked, ...Array(max(0, s.awaiting_approval_count - asked.length))], min(8, asked.length),
    run => [run.run, [runOf(run), 'awaits approval'], ago(run.submitted_at)], '/runs?outcome=awaiting_approval', 'to be approved');
  some('failing', s.failing.filter(f => !failures.some(run => run.run === f.run)), 6, f => [f.schedule, [scheduleLink(f.schedule), ' has not succeeded ',
    f.failure_count === 1 ? 'the last time' : count(f.failure_count, 'time') + ' in a row', f.paused && ', and is paused'],
        f.run && ['last ', runLink(f.run)]], '/schedules?show=failing', 'failing');
  if (s.error_count) add('error', '', [to('/skills?show=problems', count(s.error_count, 'error') + ' in definitions'),
      s.fallback_schedule_count > 0 && `; ${count(s.fallback_schedule_count, 'schedule is', 'schedules are')} kept as before`]);
  if (s.kept_commit_count) add('kept_commit', '', [count(s.kept_commit_count, 'kept commit'), ' on no branch: ', s.kept_runs.map(one => [runLink(one.run), ' '])]);
  for (const push of s.failed_pushes.slice(0, 4))
    add('undelivered', push.repository + push.remote + push.branch, [code(push.branch), ' was not pushed to ', push.remote, ' ', small(cut(push.message, 160)),
        ' ', push.runs.slice(-4).map(run => [runLink(run), ' '])], push.next_attempt_at && ['next ', ago(push.next_attempt_at)]);
  for (const u of s.undelivered.slice(0, 4))
    add('undelivered', u.skill + u.schedule, ['A notice about ', skillLink(u.skill), ` is not delivered after ${count(u.attempt_count, 'try', 'tries')} `,
        small(cut(u.message, 160))], u.next_attempt_at && ['next ', ago(u.next_attempt_at)]);
  if (s.undelivered.length > 4) add('undelivered', '', count(s.undelivered.length - 4, 'more notice') + ' not delivered');
  // Of each skill the newest alone, with how many there are: one that fails every minute is one thing to look at.
  for (const [name, [run, ...before]] of Object.entries(Object.groupBy(failures, skillOf))) {
    const streak = s.failing.find(f => f.run === run.run)?.failure_count;
    add(standing(run), run.run, [runOf(run), runState(run), ' ', streak > 1 && [em(streak, ' times in a row'), ' '], small(cut(detailOf(run.outcome), 160)),
      before[0] && [' · ', to(`/runs?skill=${encode(name)}&outcome=${FAILURES}`, `and ${before.length} before it`)]], ago(run.finished_at));
  }
  return section('Needs attention', [list(items) || empty(sign('ok'), ' Nothing. All that was due has succeeded.'),
      failures.next && p(to('/runs?outcome=' + FAILURES, 'All failures'))],
    [small('runs that failed since ', time(since)), failures[0] && button('I have seen these', mark)]);
};
const going = s => {
  const runs = s.active.filter(run => run.phase !== 'awaiting_approval');
  return section('Running and queued', [list(runs.slice(0, 12).map(run => item(run.run, runState(run), [runOf(run), small(waits(run))],
      worked(run)))) || empty('Nothing runs.'),
    s.running + s.queued + s.backing_off_count > min(12, runs.length) && p(to('/runs?outcome=active', 'All that is active'))],
        small(`${s.running} running of at most ${s.max_parallel}, ${s.queued} queued, ${s.backing_off_count} backing off`));
};
const tally = (title, of) => {
  const sum = name => of.reduce((n, line) => n + (line[name] || 0), 0), ok = sum('succeeded_count'), bad = sum('failed_count');
  return div.card(div.head(h3(title), span(strong(sum('run_count')), small(' runs '), ok > 0 && state('ok', number(ok) + ' succeeded'), ' ',
    bad > 0 && state('failed', number(bad) + ' failed'))), bars('Runs, ' + title, of));
};
const lately = ([hours, days]) => {
  const last = floor(now() / HOUR) * HOUR, day = upTo(24, i => last - (23 - i) * HOUR);
  return section('How it went', div.pair(tally('24 hours', day.map(at => ({...hours.find(line => parse(line.at) === at), name:when(at, 'minute'),
      long:when(at)}))), tally('7 days', byDay(days, 7))), to('/trends', 'Trends'));
};
const due = ({next}) => section('Due next', list(next.map(fire => item(fire.schedule + fire.due, sign('due'), scheduleLink(fire.schedule),
  [ago(fire.starts, fire.timezone), ' ', time(fire.due, fire.timezone, 'minute')]))) || empty('Nothing is due.'), to('/schedules', 'Schedules'));

const Overview = part(({status}) => {
  const [since, setSince] = useState(max(+store[SEEN] || 0, now() - 7 * DAY)), s = status.data;
  const failures = useGet('runs', {outcome:FAILURES, since_ms:since, limit:40}, {run:ended});
  const next = useGet('schedules/next', {count:8}, DEFINED);
  const stats = useLoad(async get => {
    await zoned;
    return Promise.all(['hour', 'day'].map((bucket, i) => get('stats', {by:'all', bucket, from:today([1, 6][i]), to:today()})));
  }, '', {run:ended}, 10000);
  const mark = () => setSince((store[SEEN] = now()));
  return Page({title:'Overview', sub:s && [count(s.worker_count, 'worker'), ', ', count(s.skill_count, 'skill'), ', ', count(s.schedule_count, 'schedule'),
      `; version ${s.version}, up for ${spell(s.uptime_ms)}`,
    s.trees?.count > 0 && `; ${count(s.trees.count, 'tree')} with ${bytes(s.trees.bytes)}`]},
    loaded(status, s => [attention(s, failures.data || [], since, mark), div.pair(going(s), loaded(next, due))]), loaded(stats, lately));
});

// --- runs
const OUTCOMES = ['active', 'awaiting_approval', 'succeeded', 'failed', 'timed_out', 'unknown', 'cancelled', 'denied', 'unverified'];
const FIELDS = {text:'Text', worker:'Worker', skill:'Skill', schedule:'Schedule', by:'Asked by'};
const TIMES = [['', 'any'], [1, 'the last hour'], [6, '6 hours'], [24, '24 hours'], [168, '7 days'], [720, '30 days'], ['own', 'from … to …']];
const SIZE = 50, LANES = 500, TRIES = 5;

/** What the address asks for, as the API takes it. */
const wanted = ({hours, from, to, view, ...rest}) =>
  ({...rest, since_ms:hours ? now() - hours * HOUR : from ? instant(from) : view && now() - DAY, until_ms:!hours && to && instant(to)});

const filters = query => {
  const picked = query.outcome?.split(',') || [], put = values => setQuery({...values, before:''}), own = !query.hours && (query.from || query.to);
  const pick = name => put({outcome:(picked.includes(name) ? picked.filter(one => one !== name) : [...picked, name]).join()});
  const choose = ({target:{value}}) => put(value === 'own' ? {hours:'', from:clock(now() - DAY)} : {hours:value, from:'', to:''});
  // While a time is typed it may have no value; without any its field would go.
  const date = (name, label) => Search({label, type:'datetime-local', value:query[name], set:at => (at || (query.from && query.to)) && put({[name]:at})});
  return form({role:'search', label:'Filter runs', onsubmit:event => event.preventDefault()}, div.chips({role:'group', label:'Outcome'},
    OUTCOMES.map(name => button([signOf(name), words(name)], () => pick(name), tone(name), {pressed:picked.includes(name)}))),
    div.fields(pairs(FIELDS, (name, label) => Search({label, value:query[name], set:text => put({[name]:text})})),
      field('Time', select({value:own ? 'own' : query.hours || '', onchange:choose}, TIMES.map(([value, name]) => option({value}, name)))),
      own && [date('from', `From (${zoneName()})`), date('to', 'To')],
      Object.keys(query).some(name => name !== 'view' && name !== 'before') && button('Clear', () => go('/runs' + (query.view ? '?view=lanes' : '')))));
};

const runTable = (rows, ofOneSkill, none) => table('Runs', [
  ['State', runState],
  ['Run', run => runLink(run.run)],
  !ofOneSkill && ['Skill', run => [skillLink(skillOf(run)), small(cut(run.title, 80))]],
  ['Asked by', run => (run.schedule ? scheduleLink(run.schedule) : run.parent ? ['run ', runLink(run.parent)] : plain(run.by || '–', 60))],
  ['Accepted', run => [time(run.submitted_at), small(ago(run.submitted_at))]],
  ['#Waited', run => (run.started_at || !run.outcome ? took(run.submitted_at, run.started_at) : '–')],
  ['#Took', worked],
  ['~What it says', run => [cut(detailOf(run.outcome) || waits(run), 160), run.attempts > 1 && [' ', em(run.attempts, ' attempts')],
      run.kept_commit && [' ', em({class:'t-late'}, 'kept commit')], run.push_error && [' ', em({class:'t-late'}, 'not pushed')]]],
], rows, run => run.run, none);

/** One lane for each skill; a bar is a run: hollow while it waited, filled while it ran. The table below says the same. */
const Lanes = part(({rows, from, end}) => {
  const [box, wide] = useWidth(960), names = [...new Set(rows.map(skillOf))].sort(), left = wide < 600 ? 96 : 190, high = 24, top = 22,
      bottom = top + names.length * high;
  const x = at => left + max(0, min(1, (new Date(at) - from) / (end - from))) * (wide - left - 8), fit = floor((left - 12) / 6.8);
  const step = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10080].map(n => n * 60000).find(ms => (end - from) / ms <= (wide - left) / 90)
      || 30 * DAY;
  // Ticks stand at whole hours of the zone's clock, not of UTC.
  const offset = parse(clock(from) + 'Z') - floor(from / 60000) * 60000, ticks = [];
  for (let at = ceil((from + offset) / step) * step - offset; at < end; at += step) ticks.push(at);
  const bar = run => {
    const y = top + names.indexOf(skillOf(run)) * high, begin = x(run.submitted_at), over = x(run.finished_at || now()),
        start = run.started_at ? x(run.started_at) : run.outcome ? begin : over;
    return g({key:run.run, class:'bar', onclick:() => go(runPath(run.run))},
      start - begin > 1 && rect.hollow({x:begin, y:y + 9, width:start - begin, height:6, rx:2}),
      (run.started_at || run.outcome) && rect({class:'fill ' + tone(standing(run)), x:start, y:y + 5, width:max(3, over - start), height:14, rx:2.5}));
  };
  return div.card(div({ref:box}), svg({width:wide, height:bottom + 4, role:'img',
      label:`${count(rows.length, 'run')} by skill from ${when(from)} to ${when(end)}, as in the table below`},
    ticks.map(at => [path.grid({d:`M${x(at)} ${top - 4}V${bottom}`}),
      text({x:min(x(at), wide - 30), y:12}, when(at, step < DAY ? 'minute' : 'day'))]),
    names.map((name, i) => [text.lane({y:top + i * high + 16}, name.length > fit ? '…' + name.slice(1 - fit) : name),
        path.grid({d:`M${left} ${top + (i + 1) * high}H${wide}`})]),
    rows.map(bar)), p.key('Hollow: waiting to start. Filled: since it started.'));
});

const Runs = part(({query}) => {
  const lanes = query.view === 'lanes', limit = lanes ? LANES : SIZE, key = JSON.stringify(query), asks = wanted(query);
  // A run that is listed is changed in its place; the list is asked for again where one may come in.
  const changed = (event, {data}) => {
    const known = data?.rows.find(run => run.run === event.run);
    redraw(known && renew(known, event));
    return (lanes || !query.before) && (!known || query.outcome);
  };
  const runs = useLoad(async get => {
    if (query.from || query.to) await zoned;
    let rows = [], next = wanted(query);
    // An answer may have fewer rows than were asked for, and more behind them.
    for (let i = 0; next && rows.length < limit && i < TRIES; i++) {
      const more = await get('runs', {...next, limit:limit - rows.length});
      rows = rows.concat(more);
      next = more.next;
    }
    return {rows, before:next?.before};
  }, key, {run:changed});
  return Page({title:'Runs', sub:'Times in ' + zoneName(), side:choice('View', query.view || '', {'':'Table', lanes:'Lanes'},
      view => setQuery({view, before:''}))}, filters(query),
    loaded(runs, ({rows, before}) => [lanes && rows[0] && Lanes({rows, from:asks.since_ms, end:asks.until_ms || now()}),
      runTable(rows.slice(0, lanes ? 100 : SIZE), false, before ? 'None of those that were looked at fits.'
        : location.search ? 'There is no such run.' : 'No run yet.'),
      pager(query.before && button('Newest', () => setQuery({before:''})),
        [count(rows.length, 'run'), lanes && rows.length > 100 && '; the table has the newest 100',
            before && rows.length < limit && '; not all were looked at'],
        before && button(rows.length < limit ? 'Go on' : 'Older', () => scrollTo(0, setQuery({before}, true) || 0)))]));
});

// --- trends
const NONE = 'No run ended in these days.';
const share = n => `${n.toFixed(n < 99 || n === 100 ? 0 : 1)} %`;
// Of what people or rules stopped nobody can say whether it would have succeeded.
const rate = line => (line.succeeded_count || line.failed_count ? (100 * line.succeeded_count) / (line.succeeded_count + line.failed_count) : null);
const percent = line => (rate(line) == null ? '–' : share(rate(line)));

const Trends = part(({query:{days = '30', skill}}) => {
  // Days are counted for so long.
  if (!(days <= 366)) days = '366';
  const load = (key, values) => useLoad(async get => (await zoned, get('stats', {...values, from:today(days - 1), to:today()})), key + days, {run:ended},
      15000);
  const all = load('', {by:'skill'}), daily = load(skill, {by:skill ? 'skill' : 'all', skill, bucket:'day'});
  const times = kind => [['median', 'p50_ms', 'running'], ['95th percentile', 'p95_ms',
      'timed_out']].map(([name, key, is]) => ({name, is, value:line => line[kind + key]}));
  const draw = rows => {
    const of = byDay(rows, +days), success = [{name:'succeeded', is:'running', value:rate}];
    const charts = {Runs:bars('Runs by day and outcome', of), 'Success rate':lines('Success rate by day', of, success, share, 100),
        Duration:lines('Duration by day', of, times(''), spell),
      'Waiting time':lines('Waiting time by day', of, times('waited_'), spell)};
    return rows.length ? div.pair(pairs(charts, (name, chart) => div.card(section(name, chart)))) : empty(NONE);
  };
  return Page({title:'Trends', sub:skill ? [`Of ${skill}. `, to('/trends?days=' + days, 'Of all skills')] : 'Of all skills',
    side:choice('Days', days, {7:'7 days', 30:'30 days', 90:'90 days'}, days => setQuery({days}))}, loaded(daily, draw),
    section('By skill', loaded(all, rows => table('Runs by skill', [
      ['Skill', line => skillLink(line.name)],
      ['#Runs', line => line.run_count],
      ['#Succeeded', percent],
      ['#Failed', line => (line.failed_count ? to(`/runs?skill=${encode(line.name)}&outcome=${FAILURES}`, line.failed_count) : 0)],
      ['#Median', line => spell(line.p50_ms)],
      ['#p95', line => spell(line.p95_ms)],
      ['#Waited, median', line => spell(line.waited_p50_ms)],
      ['#p95', line => spell(line.waited_p95_ms)],
      ['#Money', line => (line.money == null ? '–' : (line.estimated_money == null ? '' : '~') + line.money)],
      ['Trends', line => tags.a({href:`/trends?days=${days}&skill=${encode(line.name)}`, label:'show trends of ' + line.name}, 'show')],
    ], rows, line => line.name, NONE, skill))));
});


// --- skills
const problems = of => list(of.map((p, i) => item(i, state(p.severity),
    [p.message, ' ', mono(p.place.path, p.place.line > 0 && ':' + p.place.line), p.hint && tags.p(small('hint: ', p.hint))], code(p.code))));
/** Where a whole file is broken its skills stay as they were before, and what is wrong is told of the file alone. */
const wrongWith = (s, {data = []}) => {
  const of = data.filter(p => s.defined_at.startsWith(p.place.path));
  return of.some(p => p.code === 'kept-last-good' && !p.skill) ? of : s.problems;
};
const weight = of => {
  const is = ['error', 'warning', 'note'].find(is => of.some(p => p.severity === is));
  return is && state(is, count(of.length, is === 'note' ? is : 'problem'));
};
const coming = (at, zone) => [ago(at, zone), small(time(at, zone))];
const nameOf = s => (s.source === 'worker' ? s.skill : s.qualified);

const Skills = part(({query:{show = '', worker, text, after}}) => {
  const skills = useGet('skills', {worker, text, after, limit:200}, {...DEFINED, run:ended}), wrong = useGet('problems', {}, {definitions:1});
  const marks = s => [s.mutating && 'mutating', s.approval && 'approval', s.dialect !== 'worker' && s.dialect, s.shadowed_by && 'shadowed'];
  const found = rows => [table('Skills', [
    ['Skill', s => [to(skillPath(nameOf(s)), nameOf(s)), small(cut(s.name, 80))]],
    ['~What it does', s => cut(s.description, 140)],
    ['Last', s => (s.last ? [to(runPath(s.last.run), runState(s.last)), small(ago(s.last.finished_at || s.last.submitted_at))] : 'never')],
    ['Next', s => (s.next ? coming(s.next.at, s.next.timezone) : '–')],
    ['Is', s => [s.unavailable[0] && state('blocked_config', 'unavailable'), ' ',
      weight(wrongWith(s, wrong)), marks(s).map(word => word && [' ', em(word)])]],
  ], rows, s => s.qualified, text ? 'No skill fits.' : 'There is no skill. `workerctl new worker` writes the first.'),
      rows.next && pager('', '', button('More', () => setQuery({after:rows.next.after})))];
  return Page({title:'Skills', side:choice('View', show, {'':'Skills', problems:`Problems (${wrong.data?.length ?? '…'})`}, show => setQuery({show}))},
    show ? loaded(wrong, all => problems(all.toSorted((a, b) => 'ewn'.indexOf(a.severity[0]) - 'ewn'.indexOf(b.severity[0])))
        || empty('No definition has a problem.'))
    : [div.fields({role:'search'}, Search({label:'Text', value:text, set:text => setQuery({text, after:''})})), loaded(skills, found)]);
});

const control = i => {
  const given = i.default, text = String(given?.join?.('\n') ?? (typeof given === 'object' && given ? JSON.stringify(given) : given ?? '')),
      many = i.type === 'array', required = i.required && given == null;
  const common = {name:i.name, required, autocomplete:i.sensitive ? 'new-password' : 'off', spellcheck:'false'},
      options = i.type === 'boolean' ? ['true', 'false'] : !many && i.allowed;
  return field(span(b(i.name), ` ${i.type}${required ? ', required' : ''}`),
    i.sensitive ? input({...common, type:'password'})
    : options?.length ? select(common, given == null && option({value:''}), options.map(value => option({value, selected:value === text}, value)))
    : many ? textarea({...common, rows:3, defaultValue:text})
    : input({...common, type:['number', 'date'].includes(i.type) ? i.type : 'text', step:'any', defaultValue:text}),
    [cut(i.description), many && ' One on each line.', many && i.allowed[0] && ` Of: ${i.allowed.join(', ')}.`]);
};
const CONVERT = {number:Number, boolean:text => text === 'true', array:text => text.split('\n').filter(Boolean)};
/** Values as JSON; what is left empty is not given. */
const values = (inputs, form) => Object.fromEntries(inputs.filter(i => form.get(i.name)).map(i => [i.name,
    (CONVERT[i.type] || String)(form.get(i.name).replace(/\r/g, ''))]));
const each = (rows, draw) => rows?.map(row => div(draw(row)));
const rendered = ({instructions:i, ...r}) => [h3('This would run'), i ? pre(i.text, 40000, 'prose') : pre(r.argv.join('\n')), facts([
  ['In', code(r.cwd)],
  ['Model', i && `${i.model} (${i.model_name}), at most ${count(i.max_iterations, 'turn')}; tools: ${i.tools.join(', ') || 'none'}`],
  ['Environment', each(r.environment, ([name, v]) => code(`${name}=${v}`))],
  ['Secrets', r.env_names.join(', ')],
  ['Outputs', each(r.outputs, ([name, path]) => [code(name), ' ', path])],
  ['Checks', each(r.checks, c => [c.description, ' ', mono(cut(c.command, 500))])],
  ['May write', r.writes?.join(', ')],
  ['Lands on', code(r.branch)],
  ['Commit', r.commit_message && span.pre(r.commit_message)],
]), r.notes.map(text => note('note', text)), r.budget_spent && note('failed', r.budget_spent)];

const Form = part(({skill:s}) => {
  const {busy, error, act} = useAct(), [ready, set] = useState();
  const onsubmit = event => {
    event.preventDefault();
    const form = new FormData(event.target), request = {skill:nameOf(s), inputs:values(s.inputs, form),
        message:(s.takes_message && form.get('message')) || undefined};
    act(async () => {
      const told = await post('render', request);
      // One key for what is shown, so that a second click, or an answer that got lost, makes no second run; `randomUUID` is not there without TLS.
      set({told, request:{...request, digest:told.digest, key:crypto.getRandomValues(new Uint32Array(4)).join('-')}});
    });
  };
  const run = async () => go(runPath((await post('runs', ready.request)).run));
  // What was typed stays in its form, to be changed.
  return [form({class:'card inputs', style:ready && 'display: none', onsubmit}, s.inputs.map(control), s.takes_message
      ? field('What you want', textarea({name:'message', rows:4})) : !s.inputs.length && p(small('It takes no input.')), refused(error),
          div.buttons(tags.button.main({disabled:busy}, 'Show what would run'))),
    ready && div({class:'card inputs'}, rendered(ready.told), refused(error), div.buttons(button('Change', () => set()),
      isAdmin() ? button('Run', () => act(run), 'main', {disabled:busy}) : small('Only an admin may run it.')))];
});

const Skill = part(({names:[owner, id]}) => {
  const name = `${owner}/${id}`, about = {skill:name};
  const skill = useLoad(async get => {
    for (let next = {text:id, limit:200}; next;) {
      const rows = await get('skills', next);
      const found = rows.find(s => s.qualified === `${owner}:${id}` || s.qualified === name || (s.skill === name && s.source === 'worker'));
      if (found) return found;
      next = rows.next;
    }
    throw {kind:'not_found', message:`there is no skill ${name}`};
  }, name, DEFINED);
  const runs = useGet('runs', {...about, limit:10}, {run:event => event.skill.worker === owner && event.skill.skill === id});
  const plans = useGet('schedules', about, {schedules:1}), wrong = useGet('problems', {}, {definitions:1}), s = skill.data;
  return Page({title:s?.name || name, name, sub:s && [span.mono(nameOf(s)), ' · ', cut(s.description, 400)]},
      missing(skill) ? [refused(skill.error), p(to('/runs?skill=' + encode(name), 'Its runs'), ' · ', to('/skills?show=problems', 'Problems'))]
  : loaded(skill, s => [s.unavailable.map(u => note('blocked_config', 'It is unavailable: ', u.reason)),
    weight(wrongWith(s, wrong)) && section('Problems', problems(wrongWith(s, wrong))),
    div.columns(div(section('Run it', Form({key:s.defined_at, skill:s})),
      section('Runs', loaded(runs, rows => runTable(rows, true, 'It has never run.')), to('/runs?skill=' + encode(name), 'All'))),
    aside(section('Facts', facts([
      ['Worker', to('/skills?worker=' + encode(owner), owner)],
      ['Last', s.last ? [runState(s.last), ' ', runLink(s.last.run)] : 'never ran'],
      ['Defined at', code(s.defined_at)],
      ['Mutating', s.mutating ? 'yes' : 'no'],
      ['After a crash', s.repeatable ? 'started again' : 'not started again'],
      ['Sandbox', s.sandbox],
      ['Approval', s.approval && 'before ' + words(s.approval)],
      ['Checks', s.check_count || 'none'],
      s.source !== 'worker' && ['Source', `${s.source} (${s.dialect}, ${s.trust})`],
      ['Shadowed by', s.shadowed_by],
    ])), s.outputs[0] && section('Outputs', facts(s.outputs.map(o => [o.name, [o.type, ' ', mono(o.destination)]]))),
    section('Schedules', loaded(plans, all => list(all.map(c => li({key:c.schedule}, scheduleLink(c.schedule), ' ', small(c.when), ' ',
        c.paused ? state('paused') : c.next && ago(c.next, c.timezone))), 'plain')
      || empty('It runs when somebody asks.')))))]));
});

// --- the calendar: days by hours, each cell in the colour and with the sign of the worst that happened in it
const PAST = 9, AHEAD = 4, HOURS = upTo(24, h => h);
/** What a status means, where its word does not say it. */
const MEANS = {
  caught_up:'it ran later',
  backfilled:'a person had it run afterwards',
  skipped_overlap:'an earlier run had not ended',
  missed:'it did not run',
  paused:'the schedule was paused',
  blocked_hours:'nothing is due in these hours',
  blocked_config:'the definition could not be run',
};
const LEGEND = ['succeeded', 'failed', 'timed_out', 'unknown', 'missed', 'skipped_overlap', 'paused', 'blocked_hours', 'due'];
const counts = map => pairs(map, (name, n) => `${n} ${words(name)}`).join(', ');
const told = cell => [counts(cell.statuses), counts(cell.outcomes), cell.due > 0 && `${cell.due} due`].filter(Boolean).join('; ');
const slotTable = (rows, zone, ofAll) => table('Slots', [
  ['Slot', s => [time(s.from, zone), s.count !== 1 && small(s.count == null ? 'many slots' : count(s.count, 'slot'), ' until ', time(s.to, zone))]],
  ofAll && ['Schedule', s => scheduleLink(s.schedule)],
  ['Status', s => state(s.status)],
  ['Run', s => s.run && [runLink(s.run), ' ', state(ending(s))]],
  ['#Late', s => (s.started_at ? spell(parse(s.started_at) - parse(s.from)) : '–')],
  ['~Why', s => [MEANS[s.status], s.reason && ': ' + s.reason.slice(0), s.unreadable && ' (the row is damaged)']],
], rows, s => s.schedule + s.from + s.status, 'No slot is on record.');

const Detail = part(({cell, schedule, zone}) => {
  const end = cell.begin + cell.hours * HOUR, past = useGet('slots', {schedule, since_ms:cell.begin, until_ms:end, limit:100});
  const why = useGet(schedule && end > now() && 'schedules/explain', {schedule, at_ms:cell.begin - 1, count:12});
  const coming = why.data?.next.filter(at => parse(at) < end && parse(at) > now()).map(at => when(at, 'minute', zone)).join(', ');
  return div({class:'card detail', 'aria-live':'polite'},
      h3(`${when(cell.begin, 'day', zone)}, ${when(cell.begin, 'minute', zone)} to ${when(end, 'minute', zone)} `, small(zone)),
    loaded(past, rows => [(rows[0] || !cell.due) && slotTable(rows, zone, !schedule), rows.next && small(`The first ${rows.length} are shown.`)]),
    cell.due > 0 && p(state('due'), ' ', count(cell.due, 'slot'), coming && ': ' + coming), why.data?.policies.map(rule => p(small(rule.text))),
        refused(why.error));
});

const Calendar = part(({schedule, worker}) => {
  const [back, setBack] = useState(0), [whole, setWhole] = useState(), [at, setAt] = useState(), [open, setOpen] = useState(), grid = useRef();
  const begin = floor(now() / HOUR) * HOUR - (back * 7 + PAST) * DAY;
  const data = useGet('schedules/calendar', {schedule, worker, from_ms:begin, to_ms:begin + (PAST + AHEAD) * DAY, bucket:'hour'},
    {schedules:1, run:event => event.schedule && (!schedule || event.schedule === schedule)});
  const draw = ({timezone:zone, cells, due_known_until:known, incomplete}) => {
    const by = new Map(), moment = clock(now(), zone), first = parse(clock(begin, zone).slice(0, 10));
    // Where an hour comes twice, as clocks go back, the second is told with the first.
    for (const cell of cells) {
      const key = clock(cell.at, zone).slice(0, 13), hours = by.has(key) ? 2 : 1;
      by.set(key, {...cell, begin:parse(cell.at) - (hours - 1) * HOUR, hours});
    }
    const days = upTo(PAST + AHEAD + 1, i => new Date(first + i * DAY).toISOString().slice(0, 10));
    const [row, hour] = at || [max(0, days.indexOf(moment.slice(0, 10))), +moment.slice(11, 13)];
    const onkeydown = event => {
      const to = {ArrowLeft:[row, hour - 1], ArrowRight:[row, hour + 1], ArrowUp:[row - 1, hour], ArrowDown:[row + 1, hour]}[event.key];
      if (!to) return;
      event.preventDefault();
      grid.current.querySelector(`[data-cell="${to}"]`)?.focus();
    };
    const draw = (day, r, h) => {
      const key = `${day}T${String(h).padStart(2, '0')}`, cell = by.get(key), is = cell?.worst === 'ran' ? 'running' : cell?.worst;
      const says = `${h}:00: ` + (cell ? told(cell) : known && key > clock(known, zone) ? 'not known yet' : 'nothing');
      return td({'aria-selected':!!cell && open === cell.begin}, tags.button({'data-cell':[r, h], tabindex:r === row && h === hour ? 0 : -1, title:says,
          label:dayName(day) + ' ' + says,
        class:(cell ? tone(is) : '') + (moment.startsWith(key) ? ' now' : ''), onfocus:() => setAt([r, h]), onclick:() => setOpen(cell?.begin)},
            cell && signOf(is)));
    };
    const cell = [...by.values()].find(cell => cell.begin === open);
    return [whole ? table('Slots by the hour', [['Hour', c => time(c.at, zone)], ['Statuses', c => counts(c.statuses)], ['Outcomes', c => counts(c.outcomes)],
        ['#Due', c => c.due]], cells, c => c.at)
      : [div.scroll(tags.table.calendar({role:'grid', label:'Slots by day and hour', ref:grid, onkeydown},
          thead(tr(th(span.hidden('Day')), HOURS.map(h => th(h)))),
          tbody(days.map((day, r) => tr({key:day}, th({class:moment.startsWith(day) && 'today'}, dayName(day)), HOURS.map(h => draw(day, r, h))))))),
        p.key(LEGEND.map(is => state(is)))],
      incomplete && note('warning', 'Not every slot was looked at.'), cell && Detail({key:open, cell, schedule, zone})];
  };
  return section('Calendar', [div.buttons(button('Earlier', () => setBack(back + 1)), button('Later', () => setBack(back - 1), '', {disabled:!back}),
      small(data.data && `Hours of ${data.data.timezone}`),
    button('table', () => setWhole(!whole), 'quiet', {pressed:!!whole})), loaded(data, draw)]);
});

// --- schedules
const stateOf = s => {
  const is = s.overdue ? 'overdue' : s.paused ? 'paused' : s.plan.blocked ? 'blocked_config' : s.failure_count ? 'failed' : s.last ? ending(s.last) : 'due';
  return state(is, is === 'failed' && s.failure_count > 1 && `failed ${s.failure_count} times`);
};
const notFired = s => s?.inactive_reason && note('held', 'No schedule is fired: ', s.inactive_reason);
const MANY = 500;

const Schedules = part(({query:{worker, after, text = '', show = ''}}) => {
  const all = useGet('schedules', {worker, after, limit:MANY}, {...DEFINED, run:event => event.schedule});
  const fits = s => (s.schedule + s.when + s.skill).toLowerCase().includes(text.toLowerCase())
      && (!show || {overdue:s.overdue, failing:s.failure_count, paused:s.paused}[show]);
  const draw = all => {
    const rows = all.filter(fits);
    return [notFired(all.find(s => s.inactive_reason)), table('Schedules', [
      ['State', stateOf],
      ['Schedule', s => [scheduleLink(s.schedule), s.fallback_reason && [' ', em({class:'t-late', title:s.fallback_reason}, 'kept as before')]]],
      ['When', s => cut(s.when, 160)],
      ['Next', s => (s.waiting?.length ? count(s.waiting.length, 'event waits', 'events wait') : s.next && !s.paused ? coming(s.next, s.timezone) : '–')],
      ['Last', s => (s.last ? [to(runPath(s.last.run), state(ending(s.last))), small(ago(s.last.slot, s.timezone))] : 'never')],
      ['#Runs', s => s.actions],
    ], rows, s => s.schedule, all.length ? 'No schedule fits.' : 'There is no schedule. The key `schedule` of a skill makes one.'),
    (all.length >= MANY || after) && pager(after && button('First', () => setQuery({after:''})), '',
        all.length >= MANY && button('More', () => setQuery({after:all.at(-1).schedule})))];
  };
  return Page({title:'Schedules', side:choice('Which', show, {'':'All', overdue:'Overdue', failing:'Failing', paused:'Paused'}, show => setQuery({show}))},
      Calendar({worker}),
    section('All schedules', loaded(all, draw), Search({bare:true, label:'Filter schedules', value:text, set:text => setQuery({text})})));
});

/** Past slots and what would become of each; then those that can be run after all, one request each. */
const Backfill = part(({id, zone, close, done}) => {
  const [slots, set] = useState(), {busy, error, act} = useAct(), box = useRef(), able = slots?.filter(s => !s.skip_reason) || [];
  const find = async () => {
    const at = name => instant(box.current.querySelector(`[name=${name}]`).value, zone);
    set((await get('schedules/backfill', {schedule:id, from_ms:at('from'), to_ms:at('to')})).slice(0, MANY));
  };
  const send = async () => {
    for (const s of able.toSorted((a, b) => (a.slot < b.slot ? -1 : 1))) assign(s,
        {run:(await post('schedules/trigger', {schedule:id, slot:s.slot})).run, skip_reason:'it was run now'});
    done();
  };
  const at = (name, label, ms) => field(label, input({type:'datetime-local', name, defaultValue:clock(ms, zone), required:true}));
  return Dialog({title:'Run past slots', submit:able[0] && `Run ${count(able.length, 'slot')}`, close, send},
    div.fields({ref:box, oninput:() => set()}, at('from', `From (${zone})`, now() - DAY), at('to', 'To', now()),
        button('Show slots', () => act(find), '', {disabled:busy})), refused(error),
    slots && table('Past slots', [
      ['Slot', s => time(s.slot, zone)],
      ['Status', s => (s.status ? state(s.status) : '–')],
      ['~Would it run?', s => [s.skip_reason ? ['no: ', s.skip_reason] : 'yes', ' ', s.run && runLink(s.run)]],
    ], slots, s => s.slot, 'It had no slot then.'), slots?.length === MANY && small(`The first ${MANY} are shown.`));
});
const scheduleActs = (s, done) => Acts({path:'schedules/', body:{schedule:s.schedule}, done, of:[
  {name:'Trigger', tone:'main', title:'Run it now', submit:'Run it now', leads:true, say:({despite}) => ({despite:[despite].filter(Boolean)}),
    ask:[p('It runs within its policies.'), s.paused && label.pick(input({type:'checkbox', name:'despite', value:'pause', required:true}),
      'although it is paused')]},
  s.plan.trigger && {name:'Backfill', title:'Run past slots', own:close => Backfill({id:s.schedule, zone:s.timezone, close, done})},
  s.paused ? {name:'Resume'} : {name:'Pause', title:'Pause this schedule',
      ask:[p('Nothing of it is due until somebody resumes it.'), noteField('Why', true, 'reason')]},
]});
const Slots = part(({id, zone}) => {
  const [before, set] = useState(), slots = useGet('slots', {...(before || {schedule:id}), limit:25}, {schedules:1, run:event => event.schedule === id});
  return loaded(slots, rows => [slotTable(rows, zone), pager(before && button('Newest', () => set()), '',
      rows.next && button('Older', () => set(rows.next)))]);
});

const Schedule = part(({names}) => {
  const id = names.join('/');
  const one = useGet('schedules', {schedule:id}, {...DEFINED, run:event => event.schedule === id});
  const why = useGet('schedules/explain', {schedule:id}, {definitions:1}), s = one.data?.[0], zone = s?.timezone;
  const at = (at, ...more) => at && [time(at, zone), ' ', ...more],
      said = (title, rows, draw) => rows?.[0] && [title && h3(title), list(rows.slice(0, 6).map(row => li(draw(row))), 'plain')];
  const plan = w => [p(w.description), said('', w.policies, rule => [small(words(rule.key)), ' ', rule.text]),
      said(s.paused ? 'Would come next, were it not paused' : 'Comes next', w.next, next => at(next, small(ago(next)))),
    said('Changes of clocks', w.clock_changes, c => [small(c.date), ' ', cut(c.message)])];
  return Page({title:id, sub:s && [stateOf(s), ' runs ', skillLink(s.skill), ' · ', s.when], side:s && scheduleActs(s, one.reload)},
      loaded(one, () => !s ? empty('There is no such schedule.') : [notFired(s),
    s.plan.blocked && note('blocked_config', 'Its skill cannot run: ', s.plan.blocked),
        s.fallback_reason && note('warning', 'The last valid definition is in use: ', s.fallback_reason),
    s.restored && note('warning', 'Its state was damaged and made anew ', ago(s.restored.at), ': ', s.restored.reason),
        s.paused && note('paused', `Paused by ${s.paused.by} `, ago(s.paused.at), ': ', s.paused.reason),
    Calendar({schedule:id}), div.columns(div(section('Slots', Slots({id, zone}), to('/runs?schedule=' + encode(id), 'Its runs'))),
        aside(section('Facts', facts([
      ['Next', s.paused ? '–, paused' : at(s.next, '(', ago(s.next), ')')],
      ['Zone', zone],
      ['Waiting', s.waiting.map(w => div(at(w.due, 'starts ', ago(w.starts)), w.after && [' after ', runLink(w.after)]))],
      ['Last', s.last && [runLink(s.last.run), ' ', state(ending(s.last))]],
      ['Last success', s.succeeded_at && ago(s.succeeded_at)],
      ['Failures in a row', s.failure_count],
      ['Expected by', at(s.expected_by, s.overdue && state('overdue'))],
      ['Defined at', code(s.defined_at)],
      ['Slots so far', pairs(s.totals, (status, n) => div(state(status), ' ', n))],
    ])), section('Plan', loaded(why, plan))))]));
});

// --- the shell: address, header, banners, login
const NAV = {'':'Overview', runs:'Runs', skills:'Skills', schedules:'Schedules', trends:'Trends'};
// A page by the first part of its address, and the one of a single thing by the parts that follow.
const PAGES = {'':[Overview], runs:[Runs, Run], skills:[Skills, , Skill], schedules:[Schedules, , Schedule], trends:[Trends]};
const Nowhere = part(() => Page({title:'Nothing is here'}, p('This address names no page.')));
const decode = text => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};
const logo = () => svg({viewBox:'0 0 32 32', 'aria-hidden':true}, rect({width:32, height:32, rx:8}), path({d:'M6 10l5 13 5-11 5 11 5-13'}));

const THEMES = ['auto', 'light', 'dark'], THEME = 'workerctl.theme';
const wear = name => (document.documentElement.dataset.theme = store[THEME] = name);
wear(THEMES.includes(store[THEME]) ? store[THEME] : 'auto');

const Header = part(({status:s, first}) => {
  const {user, token, read_only} = current(), {error, act} = useAct(), theme = store[THEME];
  const turn = () => redraw(wear(THEMES[(THEMES.indexOf(theme) + 1) % 3]));
  const leave = () => post('web/logout').then(() => endSession(token));
  const quiet = (name, title, onclick) => button(name, onclick, 'quiet', {title, label:title});
  return [header(a.brand({href:'/'}, logo(), span('workerctl')),
    nav({label:'Pages'}, pairs(NAV, (at, name) => a({href:'/' + at, current:at === first && 'page'}, name))),
    div.who(s?.workspace && strong({title:s.workspace}, plain(s.workspace.split('/').pop(), 40)),
      s && (link.lost ? state('unknown', 'not reached') : state(s.condition)),
      span(plain(user, 40), ' ', small(read_only ? 'read-only' : isAdmin() ? 'admin' : 'read')),
      quiet([icon('theme'), span(theme)], 'Colours: ' + theme, turn), quiet(icon('off'), 'Log out', () => act(leave)))),
    div.banners(refused(error))];
});
const login = error => main.login(logo(), h1('workerctl'), refused(error), p('Nobody is logged in here. In the workspace:'),
    tags.pre(tags.code('workerctl web')),
  p(small('It opens an address with a code that is good once.')));

const Shell = part(() => {
  const path = location.pathname, [first, ...names] = path.slice(1).split('/').map(decode), Body = PAGES[first]?.[names.length] || Nowhere;
  const status = useLoad(async get => {
    const told = await get('status');
    setZone(told.timezone);
    return told;
    // What runs is told by the overview alone.
  }, !first, {...DEFINED, status:1, run:() => !first});
  // The overview, which is opened most, offers nothing that the role decides: it asks once the role may have changed.
  const role = useLoad(async get => {
    const {token} = current(), told = (first || role.data === null) && await get('web/session');
    if (told && token === current()?.token) setSession({...current(), ...told});
    return null;
  }, !first, {definitions:1});
  return [a.skip({href:'#main'}, 'Skip to the content'), Header({status:status.data, first}),
    div.banners({role:'status'}, link.lost && note('warning', 'The daemon does not answer; trying again.'),
      link.newer && note('note', 'A newer page is there: ', button('load it', () => location.reload(), 'link'))),
    main({id:'main', tabindex:-1}, Body({key:path, names, query:asked(), status}))];
});

// Few things are announced, so that they are heard.
let said = '', saidAt = 0;
on('run', run => {
  const kind = run.outcome?.kind;
  if (!FAILURES.includes(kind) || now() < saidAt + 5000) return;
  saidAt = now();
  said = `run ${short(run.run)} of ${skillOf(run)} ended: ${words(kind)}`;
});

let refusal;
async function login_and_draw() {
  const code = /^#login=(.+)$/.exec(location.hash)?.[1];
  if (code) {
    // Gone before anything else happens: an address is shown, kept and copied.
    history.replaceState(null, '', location.pathname + location.search);
    await post('web/login', {code:decode(code)}).then(setSession, error => (refusal = error));
  }
  document.getElementById('app').textContent = '';
  begin(() => [current() ? Shell() : login(refusal), div.hidden({role:'status'}, said)]);
  // Not before: a code that is refused ends no session that is there.
  readSession();
}
addEventListener('hashchange', () => location.hash.startsWith('#login=') && location.reload());
login_and_draw();
