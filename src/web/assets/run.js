// One run: what became of it, step by step, its log, and what a person can do about it.
import {a, Acts, ago, aside, ask, assign, button, bytes, ceil, choice, code, count, cut, detailOf, Dialog, div, download, em, empty, encode, facts, floor,
  follow, get, go, h3, icon, li, link, list, loaded, max, min, missing, mono, note, noteField, now, number, on, p, Page, pairs, parse, part, pre, radio,
  redraw, refused, renew, runLink, runPath, runState, scheduleLink, Search, section, short, skillLink, skillOf, small, span, spell, standing, state, store,
  strong, table, tags, time, useAct, useEffect, useGet, useLoad, useMemo, useRef, useState, waits, when, words, worked, zoneName} from './base.js';

const {details, mark, summary} = tags;

// --- phases and checks
const WAITS = ['queued', 'awaiting_approval', 'backing_off'], TONES = {executing:'run', verifying:'odd', committing:'ok', restoring:'late'};

/** A bar for each phase on one axis; what waits is hollow. */
const phases = of => {
  const at = text => (text ? parse(text) : now()), begin = at(of[0]?.begin), all = max(1, ...of.map(p => at(p.end) - begin)),
      part = ms => (ms / all) * 100;
  return list(of.filter(p => p.phase !== 'finished').map(p => {
    const hollow = WAITS.includes(p.phase), ms = at(p.end) - at(p.begin);
    return li({title:`${when(p.begin, 'millis')} … ${p.end ? when(p.end, 'millis') : 'now'}`},
        span(of.at(-1).attempt > 1 && small(p.attempt, ' · '), words(p.phase), hollow && span.hidden(' (waiting)')),
      span.track(span({class:hollow ? 'hollow' : `fill t-${TONES[p.phase] || 'wait'}`,
          style:`left: ${part(at(p.begin) - begin)}%; width: max(3px, ${part(ms)}%)`})), span.num(spell(ms), !p.end && ' …'));
  }), 'card phases');
};
// How an execution or a check ended.
const endOf = e => e && (e.is === 'exited' ? `exit code ${e.code}` : e.message || [e.is, e.signal, e.resource].filter(Boolean).map(words).join(' '));
const checks = of => list(of.map(c => {
  const head = [state(c.verdict), span(cut(c.description), !c.must_pass && [' ', em('need not pass')]),
      small(c.message ? cut(c.message, 200) : endOf(c.ended), ' ', c.duration_ms > 0 && spell(c.duration_ms))];
  return li(c.command || c.output_tail ? details({open:c.verdict === 'failed'}, summary(head), pre(c.command && '$ ' + c.command), pre(c.output_tail))
      : div.summary(head));
}), 'items folds');
const attempts = run => [run.pre_checks[0] && [h3('Before'), checks(run.pre_checks)],
  run.attempts.toReversed().map(a => [run.attempts.length > 1 && h3(`Attempt ${a.attempt} `,
      small(time(a.started_at, '', 'time'), a.execution && ` · ${endOf(a.execution.ended)} after ${spell(a.execution.duration_ms)}`)),
    a.failure && [note('failed', strong(words(a.failure.step), ' failed '), code(a.failure.code), ': ', cut(a.failure.message, 2000)),
        pre(a.execution?.stderr_tail)], checks(a.checks)]),
  !run.pre_checks.length && !run.attempts.some(a => a.checks.length) && empty('No check has run.')];

// --- changes and outputs
const MARKS = {'+':'add', '-':'del', '@':'at'};
const Patch = part(({text}) => {
  const [most, set] = useState(1000), lines = useMemo(() => text.replace(/\n$/, '').split('\n'), [text]);
  // Nodes that are the same are not compared again.
  const drawn = useMemo(() => {
    let inside = false;
    return tags.pre.diff({tabindex:0, label:'Changes'}, lines.slice(0, most).map(line => {
      inside = line.startsWith('@@') || (inside && !line.startsWith('diff --git'));
      return span({class:inside ? MARKS[line[0]] : 'meta'}, cut(line, 1000), '\n');
    }));
  }, [lines, most]);
  return [drawn, lines.length > most && button(`Show more of ${number(lines.length)} lines`, () => set(most * 4))];
});
const Change = part(({run, file:f}) => {
  const [open, set] = useState(false), patch = useLoad(async () => (open ? (await ask(`runs/${run}/diff`, {path:f.path})).text() : undefined), open);
  const draw = text => (text ? Patch({text:text[0] === '"' ? JSON.parse(text) : text}) : empty('There is no text to compare.'));
  return li(details({ontoggle:event => set(event.target.open)}, summary(em(f.status), span.mono(f.from && [cut(f.from), ' → '], cut(f.path)),
    f.protected && small('protected'), f.binary ? small('binary') : [span({class:'t-ok'}, '+', f.added ?? 0), span({class:'t-bad'}, '−', f.removed ?? 0)]),
        open && loaded(patch, draw)));
});
const Changes = part(({run:{summary:s, changed_count}}) => {
  // What is kept of it is another with each of these.
  const {run} = s, [most, set] = useState(100), files = useLoad(get => get(`runs/${run}/changes`),
      [s.phase, s.waiting_for, s.commit, changed_count].join());
  return section('Changes', !s.outcome && missing(files) ? empty('Nothing is kept yet.')
    : loaded(files, files => [list(files.slice(0, most).map(file => Change({key:file.path, run, file})), 'items folds')
      || empty('It changed nothing.'),
    files.length > most && button(`Show more of ${number(files.length)} files`, () => set(most * 4))]),
        changed_count > 0 && small(count(changed_count, 'path')));
});
const Output = part(({run, output:o}) => {
  const {busy, error, act} = useAct(), save = () => download(`runs/${run}/outputs/${encode(o.name)}`, (o.path || o.name).split('/').pop());
  return li(state(o.problem ? 'failed' : o.bytes != null || o.commits?.length ? 'passed' : 'not_run', o.name), ' ', mono(cut(o.path)), ' ',
    o.bytes != null && [small(bytes(o.bytes)), ' ', button('download', () => act(save), 'link', {disabled:busy})], o.commits?.map(c => code(c, 12)),
        o.problem && p({class:'t-bad'}, o.problem), refused(error));
});

// --- what a person may do
const approval = (run, done) => {
  const a = run.approval, waits = run.summary.phase === 'awaiting_approval',
      before = `before its ${a.before === 'landing' ? 'result lands' : 'command runs'}`;
  return div({class:waits && 'asked'}, section('Approval', [p(waits
      ? [state('awaiting_approval'), ` A person has to approve it ${before}`, a.expires_at && [', until ', time(a.expires_at)], '.']
      : a.denied_by ? [state('denied'), ` by ${a.denied_by} `, ago(a.denied_at)] : a.approved_by
          ? [state('passed', 'approved'), ` by ${a.approved_by} `, ago(a.approved_at)]
      : `It has to be approved ${before}.`, a.note && ` “${a.note}”`),
    a.checkpoints?.[0] && [p('To look at:'), list(a.checkpoints.map(text => li('☐ ', text)), 'plain')], pre(a.command), facts([
      ['Would land', code(a.result?.commit, 12)],
      ['Outputs', a.result?.outputs?.map(o => div(mono(o.path, ' ', bytes(o.bytes))))],
      ['Kept in', code(a.outputs_in)],
      ['Sandbox', a.sandbox],
      ['Digest', code(a.digest, 16)],
    ]), waits && Acts({path:`runs/${run.summary.run}/`, done, of:[
      {name:'Approve', tone:'main', title:'Approve this run', say:({note}) => ({digest:a.digest, note:note || null}),
          ask:[p('What is approved is exactly what is shown, by its digest ', code(a.digest, 16), '.'), noteField('Note')]},
      {name:'Deny', tone:'danger', title:'Deny this run', ask:noteField('Why', true)},
    ]})]));
};
const runActs = (run, done) => {
  const s = run.summary, kept = s.kept_commit;
  return Acts({path:`runs/${s.run}/`, done, of:[
    !s.outcome && {name:'Cancel', tone:'danger', title:'Cancel run ' + short(s.run), submit:'Cancel the run', say:form => ({now:form.now === 'yes'}),
      ask:[radio('now', 'no', 'Gracefully: its processes are asked to end', true), radio('now', 'yes', 'Now: its processes are ended at once')]},
    s.outcome?.kind === 'unknown' && !s.decided && {name:'Resolve', tone:'main', title:'How did it end?',
      ask:[p('Nobody saw the end of its command. Look at what it was to do, then say.'), radio('as', 'succeeded', 'It succeeded'),
          radio('as', 'failed', 'It failed'), noteField('Why you think so', true)]},
    kept && {name:'Land', tone:'main', title:'Land its commit', ask:p('The commit ', code(kept, 12), ' becomes part of ', code(run.branch) || 'its branch',
        '.')},
    kept && {name:'Discard', tone:'danger', title:'Discard its commit', ask:p('The commit ', code(kept, 12), ' is dropped, and cannot land any more.')},
    s.outcome && {name:'Retry', tone:s.outcome.kind === 'failed' && 'main', leads:true},
  ]});
};

// --- the page
const valueOf = v => {
  const text = typeof v === 'string' ? v : JSON.stringify(v);
  return text.length > 300 ? details(summary(text.slice(0), small(` … all ${number(text.length)} characters`)), pre(text, 200000)) : /[\n\t]| {2}/.test(text) ? pre(text) : mono(text);
};
const agent = (run, spent) => section('Model', [
  run.message && [h3('Asked for'), pre(run.message, 20000, 'prose')], run.answer && [h3('Last answer'), pre(run.answer, 40000, 'prose')],
      run.turns?.[0] && table(run.turns.length > 200 ? 'The last 200 turns' : 'Turns', [
    ['Turn', t => `${t.attempt}.${t.turn}`],
    ['~Called', t => cut(t.calls.join(', '), 200)],
    ['#In', t => t.tokens.input],
    ['#Cached', t => t.tokens.cache_read],
    ['#Out', t => t.tokens.output],
    ['#Money', t => t.money ?? '–'],
  ], run.turns.slice(-200), t => `${t.attempt}.${t.turn}`)],
  spent && small(`${count(spent.turns, 'turn')}, ${number(Object.values(spent.tokens).reduce((a, b) => a + b, 0))} tokens`,
      spent.money != null && `, money ${spent.money}`, spent.unmeasured > 0 && `; of ${count(spent.unmeasured, 'request')} ${number(spent.estimated_tokens ?? 0)} tokens are estimated`,
      spent.estimated_money != null && `, money ${spent.estimated_money}`));
const moments = (title, rows, draw) => rows?.[0] && section(title, facts(rows.map(draw)));

const draw = (run, reload) => {
  const s = run.summary, over = !!s.outcome, why = detailOf(s.outcome), full = at => at && time(at, '', 'full');
  return Page({name:`${words(standing(s))} ${skillOf(s)} ${short(s.run)}`, title:[cut(run.title, 120), ' ', mono(short(s.run))], side:runActs(run, reload),
      sub:[runState(s), ' ', skillLink(skillOf(s)), over ? ' · ended ' : ' · accepted ', ago(s.finished_at || s.submitted_at), ', worked ',
          worked(s)]},
    why && note(standing(s), cut(why, 2000)), !run.approval?.asked_at && waits(s) && note('queued', 'It ', waits(s)),
    [...run.warnings, ...run.not_restored.map(path => `not put back: ${path}`)].map(text => note('warning', text)), run.approval && approval(run, reload),
    div.columns(div(section('Phases', phases(run.phases)),
        section('Log', Log({run:s.run, over, dropped:run.attempts.reduce((n, a) => n + (a.execution?.dropped_bytes || 0), 0)})),
      section('Checks', attempts(run)),
      (s.spent || run.message || run.answer || run.turns?.[0]) && agent(run, s.spent), (s.mutating || run.changed_count > 0) && Changes({run})),
    aside(section('Facts', [facts([
      ['Run', code(s.run)],
      ['Asked by', s.schedule ? ['schedule ', scheduleLink(s.schedule)] : run.submitted_by],
      ['Slot', s.slot && time(s.slot)],
      ['Accepted', full(s.submitted_at)],
      ['Started', full(s.started_at)],
      ['Ended', full(s.finished_at)],
      ['Attempts', s.attempts],
      ['Branch', code(run.branch)],
      ['Commit', [s.commit, ...(s.commits_made?.newest || [])].filter(Boolean).map(c => [code(c, 12), ' '])],
      ['Kept commit', code(s.kept_commit, 12)],
      ['Not pushed', s.push_error],
      ['Started by', s.parent && [runLink(s.parent), ' ', run.parent_skill && skillLink(skillOf({skill:run.parent_skill}))]],
      ['Repeats', s.retry_of && runLink(s.retry_of)],
      ['Started runs', run.children?.map(child => [runLink(child), ' '])],
      ['Thread', s.thread],
      ['Definition', code(run.definition_digest, 12)],
    ]), list(pairs(run.results, (name, r) => li(state(r.is, words(name)), ' ', small(words(r.is), r.why && ': ' + words(r.why)))), 'plain')]),
    run.outputs[0] && section('Outputs', list(run.outputs.map(output => Output({key:output.name, run:s.run, output})), 'plain')),
    Object.keys(run.inputs).length > 0 && section('Inputs', facts(pairs(run.inputs, (name, v) => [name, v != null && valueOf(v)]))),
    moments('Audit log', run.audit, act => [time(act.at, '', 'time'), [strong(words(act.action)), act.by && ` by ${act.by}`, act.note && ` “${act.note}”`]]),
    moments('Timeline', run.timeline, ([at, name]) => [time(at, '', 'millis'), words(name)]))));
};

export const Run = part(({names:[id]}) => {
  const changed = (event, {data}) => event.run === id && (redraw(data && renew(data.summary, event)), true);
  const run = useGet(`runs/${encode(id)}`, {}, {run:changed}, 700), full = run.data?.summary.run;
  // Any beginning or end of an id names a run; the address takes the whole one.
  useEffect(() => {
    if (full && full !== id) go(runPath(full) + location.hash, true);
  }, [full]);
  return full ? [refused(run.error, run.reload), draw(run.data, run.reload)] : Page({title:'Run'}, loaded(run));
});

// --- colours of SGR in the log
const GROUND = '#111418', INK = '#d6dae0';
const SIXTEEN = '000 cd3131 0dbc79 e5e510 2472c8 bc3fbc 11a8cd e5e5e5 666 f14c4c 23d18b f5f543 3b8eea d670d6 29b8db fff'.split(' ').map(hex => '#' + hex);
const colour = n => (n < 16 ? SIXTEEN[n]
    : `rgb(${n > 231 ? Array(3).fill(n * 10 - 2312) : [36, 6, 1].map(unit => floor((n - 16) / unit) % 6).map(i => i && 55 + i * 40)})`);
// What a code turns on or off, as declarations of a style; `turned` changes ground and ink.
const FLAGS = {1:{bold:'font-weight: 700'}, 3:{italic:'font-style: italic'}, 4:{line:'text-decoration: underline'}, 7:{turned:true},
    9:{line:'text-decoration: line-through'},
  22:{bold:0}, 23:{italic:0}, 24:{line:0}, 27:{turned:0}, 29:{line:0}, 39:{fg:0}, 49:{bg:0}};
const apply = (codes, style) => {
  for (let i = 0; i < codes.length; i++) {
    const c = +codes[i], base = c < 90 ? c : c - 60, key = base < 40 ? 'fg' : 'bg', byte = at => min(255, +codes[i + at] || 0), kind = codes[i + 1];
    if (!c) style = {};
    else if (c !== 38 && c !== 48) style = {...style, ...(base > 29 && base < 48 && base % 10 < 8 ? {[key]:SIXTEEN[(base % 10) + (c < 90 ? 0 : 8)]}
        : FLAGS[c])};
    else if (kind === '5' || kind === '2') {
      style = {...style, [key]:kind === '5' ? colour(byte(2)) : `rgb(${[byte(2), byte(3), byte(4)]})`};
      i += kind === '5' ? 2 : 4;
    }
  }
  return style;
};
const painted = ({fg, bg, turned, bold, italic, line}, inner) => {
  if (turned) [fg, bg] = [bg || GROUND, fg || INK];
  // Ink is made light and ground dark enough that one can be read on the other.
  return span({style:[bold, italic, line, bg && `background: oklch(from ${bg} min(l, .4) c h)`,
      (fg || bg) && `color: oklch(from ${fg || INK} max(l, ${bg ? 0.85 : 0.68}) c h)`].filter(Boolean).join(';')}, inner);
};
// CSI, OSC and other strings, and escapes of two characters; only CSI … m has a meaning here.
const ESCAPE = /\x1b\[([0-9;:]*)m|\x1b(?:\[[0-?]*[ -\/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -\/]*[0-~])/g;
/** A line as nodes, with its colours; `find` is marked. */
const coloured = (text, find) => {
  const out = [];
  let style = {}, from = 0;
  const push = end => {
    const piece = text.slice(from, end), low = find && piece.toLowerCase(), nodes = [];
    let at = 0;
    for (let hit; find && (hit = low.indexOf(find, at)) >= 0; at = hit + find.length) nodes.push(piece.slice(at, hit),
        mark(piece.slice(hit, hit + find.length)));
    if (piece) out.push(painted(style, [nodes, piece.slice(at)]));
  };
  for (const found of text.matchAll(ESCAPE)) {
    push(found.index);
    if (found[1] != null) style = apply(found[1].split(/[;:]/), style);
    from = found.index + found[0].length;
  }
  push();
  return out;
};

// --- the log: only visible lines are in the document, only some pages of lines in memory
const PAGE = 500, PAGES_MAX = 24, LINE = 20, CUT = 2000, FOUND_MAX = 5000, WHOLE = 200000, WRAP = 'workerctl.wrap';
const STREAMS = ['stdout', 'stderr', 'check', 'tool', 'event'];

/** Lines by number: pages that are loaded when they are looked at and dropped when there are too many. Without `path`: lines that were found. */
class Lines {
  constructor(path) {
    assign(this, {path, count:0, pages:new Map(), asked:new Set(), columns:0, gaps:[]});
  }
  /** Notes that the log leaves out the numbers from one up to another. */
  skip(from, to) {
    if (from >= to) return;
    const touch = ([begin, end]) => begin <= to && from <= end, joined = [[from, to], ...this.gaps.filter(touch)];
    const gap = [min(...joined.map(one => one[0])), max(...joined.map(one => one[1]))];
    this.gaps = [...this.gaps.filter(one => !touch(one)), gap].sort((a, b) => a[0] - b[0]);
  }
  /** The first number from one on that is not known to be left out. */
  next(n) {
    return this.gaps.find(([begin, end]) => begin <= n && n < end)?.[1] ?? n;
  }
  /** Finds by halving where a gap begins that goes on to a line: it may leave out millions. */
  async begin(high, end) {
    for (let low = 0; low < high;) {
      const middle = floor((low + high) / 2), [line] = await get(this.path, {from:middle, limit:1});
      if (!line || line.line >= end) high = middle;
      else low = line.line + 1;
    }
    this.skip(high, end);
  }
  at(n) {
    return this.pages.get(floor(n / PAGE))?.lines[n % PAGE];
  }
  put(line, n = line.line) {
    const number = floor(n / PAGE), found = this.pages.get(number) || {lines:Array(PAGE), rows:0}, length = line.text.length;
    this.pages.set(number, found);
    found.used = now();
    this.count = max(this.count, n + 1);
    if (found.lines[n % PAGE]) return;
    // A long line is kept as its beginning, copied; the rest is fetched when somebody asks for it.
    const one = (found.lines[n % PAGE] = {...line, length, text:length > CUT ? (' ' + line.text.slice(0, CUT)).slice(1) : line.text});
    found.rows += this.more(one);
  }
  /** Measures how many rows a line takes beyond one, where lines are wrapped. */
  more(line) {
    return (line.more = this.columns && max(0, ceil(line.text.replace(ESCAPE, '').length / this.columns) - 1));
  }
  measure(columns) {
    this.columns = columns;
    for (const found of this.pages.values()) found.rows = found.lines.reduce((rows, line) => rows + this.more(line), 0);
  }
  /** Rows above a line; those of pages that are not here count as one each. */
  above(n) {
    let rows = n;
    for (const [begin, end] of this.gaps) if (begin < n) rows -= min(end, n) - begin;
    for (const [number, found] of this.pages)
      if (number < floor(n / PAGE)) rows += found.rows;
      else if (number * PAGE < n) for (let i = 0; this.columns && i < n % PAGE; i++) rows += found.lines[i]?.more || 0;
    return rows;
  }
  /** The line at a row, by halving. */
  lineAt(row) {
    let low = 0, high = this.count;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.above(middle) <= row) low = middle;
      else high = middle - 1;
    }
    return low;
  }
  /** Loads what is missing between two lines, from the first on: an answer with long lines has fewer than were asked for. */
  want(from, to) {
    for (let number = floor(from / PAGE); this.path && number * PAGE < to; number++) {
      const found = this.pages.get(number), end = min(number * PAGE + PAGE, this.count);
      let n = number * PAGE;
      if (found) found.used = now();
      while (n < end && (this.at(n) || this.next(n) > n)) n = max(n + 1, this.next(n));
      number = max(number, floor(n / PAGE) - 1);
      if (n < end && !this.asked.has(number)) this.load({from:n, limit:PAGE - (n % PAGE)}, number);
    }
  }
  async load(values, number = -1) {
    let rows;
    this.asked.add(number);
    try {
      rows = await get(this.path, values);
      let at = values.from ?? rows[0]?.line;
      const first = rows[0]?.line;
      rows.forEach(line => {
        this.skip(at, line.line);
        at = line.line + 1;
        this.put(line);
      });
      if (values.from < first) await this.begin(values.from, first);
      this.count = max(this.count, rows.total);
      this.begun = true;
      this.error = null;
      this.drop(number);
    } catch (error) {
      this.error = error;
    }
    // A page that stays short, as one that was asked for before its lines were written, is not asked for without end.
    setTimeout(() => redraw(this.asked.delete(number)), rows?.length ? 150 : 3000);
    redraw();
  }
  drop(keep) {
    if (this.pages.size <= PAGES_MAX) return;
    const old = [...this.pages].filter(([number]) => number !== keep).sort((a, b) => a[1].used - b[1].used);
    this.pages.delete(old[0][0]);
  }
}

const Whole = part(({path, line, close}) => {
  const {data, error} = useGet(path, {from:line, limit:1}), text = data?.[0]?.text || '';
  return Dialog({title:'Line ' + number(line), close}, refused(error),
      small(count(text.length, 'character'), text.length > WHOLE && ', of which the first are shown'),
    tags.pre.screen({tabindex:0}, coloured(text.slice(0, WHOLE))));
});
const lineOf = () => +(/^#L(\d+)$/.exec(location.hash)?.[1] ?? NaN);

const Log = part(({run, over, dropped}) => {
  const own = useRef(), box = useRef(), saving = useAct(), path = `runs/${run}/logs`, element = box.current;
  if (!own.all) assign(own, {all:new Lines(path), streams:STREAMS, search:'', end:isNaN(lineOf()), goal:lineOf(), marked:lineOf()});
  const {all, streams, search, end, marked} = own, stream = streams.length < STREAMS.length ? streams.join() : '', wrap = store[WRAP] === 'on';
  const put = values => redraw(assign(own, values));
  const filter = stream + '/' + search, lines = (own.found?.filter === filter ? own.found : filter === '/' ? (own.found = null)
      : (own.found = assign(new Lines(), {filter}))) || all;
  /** Looks for lines that fit, some thousands at a time; where there are too many, those that were found make room. */
  const find = async (found, next) => {
    if (found.count >= FOUND_MAX) assign(found, new Lines(), {since:next.from});
    redraw(assign(found, {busy:true, error:null}));
    try {
      for (let i = 0; next && i < 6 && found.count < FOUND_MAX; i++) {
        const rows = await get(path, {...next, limit:1000, stream, search});
        if (own.found !== found) return;
        rows.forEach(line => found.put(line, found.count));
        found.upto = rows.total;
        // What came meanwhile was heard of, and not looked at.
        next = rows.next ? {from:rows.next.from} : all.count > rows.total && {from:rows.total};
      }
    } catch (error) {
      found.error = error;
    }
    redraw(assign(found, {busy:false, next}));
  };
  useEffect(() => {
    if (own.found) find(own.found, {from:0});
  }, [filter]);
  own.fits = line => (!stream || streams.includes(line.stream)) && line.text.toLowerCase().includes(search.toLowerCase());
  const jump = line => put({search:'', streams:STREAMS, marked:line, end:false, goal:line});

  useEffect(() => {
    let unfollow, gone;
    // Many lines are one drawing.
    const soon = () => (own.frame ||= setTimeout(() => redraw((own.frame = 0)), 40));
    const hear = (name, event) => {
      const found = own.found;
      all.partial = name === 'partial' && event.line >= all.count ? event : null;
      if (name === 'error') own.broken = event.error || event;
      if (name === 'lagged') {
        all.load({tail:PAGE});
        if (found) found.next ||= {from:all.count};
      }
      if (name === 'line') {
        all.put(event);
        all.drop(floor(event.line / PAGE));
        if (found && !found.next && !found.busy && event.line >= found.upto && own.fits(event))
          if (found.count < FOUND_MAX) found.put(event, found.count);
          else found.next = {from:event.line};
      }
      soon();
    };
    const begin = async () => {
      if (!all.begun) await all.load({tail:PAGE});
      // From the first line that is not here: after a lost connection none is missed and none comes twice.
      if (all.begun && !gone) unfollow ||= follow(run, {next:() => all.count, tell:hear});
    };
    const hash = () => lineOf() >= 0 && jump(lineOf()), ends = [on('back', begin), on('anew', begin)];
    begin();
    addEventListener('hashchange', hash);
    return () => {
      gone = true;
      unfollow?.();
      ends.forEach(end => end());
      removeEventListener('hashchange', hash);
    };
  }, []);
  // What the stream may have held back when the run ended is asked for once.
  useEffect(() => {
    if (over && all.begun) all.load({tail:PAGE});
  }, [over]);

  const columns = wrap && element ? max(20, floor((element.clientWidth - 118) / (element.firstChild.getBoundingClientRect().width / 100))) : 0;
  if (lines.columns !== columns) lines.measure(columns);
  // After each drawing: the end stays in sight while it is followed, and a line that was asked for comes into it.
  useEffect(() => {
    const element = box.current, {goal} = own;
    if (end) element.scrollTop = element.scrollHeight;
    else if (goal >= 0 && all.begun && lines === all) {
      element.scrollTop = lines.above(min(goal, lines.count)) * LINE - element.clientHeight / 3;
      if (lines.at(goal) || lines.next(goal) > goal || goal >= lines.count) own.goal = NaN;
    }
    own.scrolled = element.scrollTop;
    if (all.begun) lines.want(first, last);
  });
  const onscroll = () => {
    const {scrollTop, scrollHeight, clientHeight} = box.current, up = scrollTop < own.scrolled - 2;
    put({scrolled:scrollTop, end:scrollHeight - scrollTop - clientHeight < 4 || (!up && end)});
  };
  const height = element?.clientHeight || 480, rows = lines.above(lines.count), top = end ? rows * LINE - height : element?.scrollTop || 0;
  const first = max(0, lines.lineAt(top / LINE) - 15), seen = [];
  let last = first;
  for (const most = ceil(height / LINE) + 30; last < lines.count && seen.length < most; last++) {
    last = lines.next(last);
    if (last < lines.count) seen.push(lines.at(last) || {line:last});
  }
  const partial = lines === all && last === lines.count && all.partial;
  const row = line => div({key:line.line, id:'L' + line.line, class:`line s-${line.stream} ${line.line === marked ? 'marked' : ''}`},
    a.no({href:'#L' + line.line, tabindex:-1, title:line.at && `${when(line.at, 'millis')} ${zoneName()}`}, String(line.line)),
        span.stream({stdout:'', stderr:'err'}[line.stream] ?? line.stream),
    span.text(line.text == null ? '…' : coloured(line.text, search.toLowerCase()),
        line.length > CUT && [' ', button(`show all ${number(line.length)} characters`, () => put({whole:line.line}), 'link')],
      line.carriage_returns > 0 && ` (rewritten ${count(line.carriage_returns, 'time')})`));
  return div({class:'card log'}, div.tools(Search({bare:true, label:'Search in the log', value:search, set:search => put({search})}),
      choice('Streams', streams, STREAMS, name => put({streams:STREAMS.filter(one => streams.includes(one) !== (one === name))})),
      button('wrap', () => put({goal:end ? NaN : first + 20, wrapped:(store[WRAP] = wrap ? 'off' : 'on')}), '', {pressed:wrap}),
      small({role:'status'}, count(all.count, 'line'), lines === all ? !over && (link.lost || own.broken ? ', not followed' : end && ', following')
        : [`, ${number(lines.count)} found`,
        lines.since && ` from line ${number(+lines.since)}`, lines.busy ? ' …'
          : lines.next && [` up to line ${number(+lines.next.from)} `, button('Go on', () => find(lines, lines.next))]],
        dropped > 0 && span({class:'t-late'}, `; ${bytes(dropped)} of output not kept (output limit)`)),
      button([icon('down'), 'Download'], () => saving.act(() => download(path + '/raw', run + '.log')), '', {disabled:saving.busy})),
    refused(lines.error || own.broken || saving.error, lines.error && (() => (lines === all ? all.load({tail:PAGE}) : find(lines, lines.next)))),
    div({class:wrap ? 'screen wrap' : 'screen', ref:box, role:'group', label:'Lines of the log', tabindex:0, onscroll},
        span.probe({'aria-hidden':true}, '0'.repeat(100)),
      all.begun && !all.count && !partial && p('Nothing is in the log yet.'),
      div.rows({style:`height: ${(rows + !!partial) * LINE}px`}, div({style:`transform: translateY(${lines.above(first) * LINE}px)`}, seen.map(row),
        partial && div.line(span.no('…'), span.stream(), span.text(coloured(partial.text.slice(0, CUT))))))),
    !end && lines.count > 0 && button([icon('down'), over ? 'To the end' : 'Follow', lines.count > last && ` (${number(lines.above(lines.count) - lines.above(last))} below)`],
        () => put({end:true, goal:NaN}), 'toend'),
    own.whole != null && Whole({path, line:own.whole, close:() => put({whole:null})}));
});
