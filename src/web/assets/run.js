// One run: what became of it, step by step, and what a person can do about it.
import {html, useEffect, useState} from './preact.js';
import {ask, download, get, id as encode, isAdmin, post} from './api.js';
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
  RunState,
  ScheduleLink,
  Section,
  SkillLink,
  State,
  Table,
  Time,
  Took,
  Waiting,
  detailOf,
  go,
  runPath,
  short,
  standing,
  useAct,
  useLoad,
  useNow,
  waits,
} from './parts.js';
import {Log} from './log.js';
import {bytes, count, number, plain, shown, skillOf, span, when, words} from './text.js';

const WAITS = ['queued', 'awaiting_approval', 'backing_off'];
const PHASE_TONES = {executing: 'run', verifying: 'odd', committing: 'ok', restoring: 'late', awaiting_approval: 'ask'};

const ended = e =>
  !e
    ? ''
    : {
        exited: `exit code ${e.code}`,
        signalled: `ended by signal ${e.signal}`,
        timed_out: 'time limit reached',
        limit_reached: `limit of ${words(e.resource)} reached`,
        stopped: 'stopped on request',
        not_started: `not started: ${e.message}`,
        answered: `answered in ${count(e.turns || 0, 'turn')}`,
      }[e.is] ||
      e.message ||
      words(e.is);

/** A bar for each phase on one axis; what waits is hollow. */
function Phases({phases, over}) {
  const now = useNow(over ? 3600000 : 1000);
  if (!phases?.length) return null;
  const at = text => (text ? Date.parse(text) : Math.max(now, Date.now())),
    begin = Math.min(...phases.map(p => at(p.begin))),
    end = Math.max(begin + 1, ...phases.map(p => at(p.end)));
  const attempts = Math.max(...phases.map(p => p.attempt));
  return html`<div class="phases" role="list" aria-label="Phases">${phases
    .filter(p => p.phase !== 'finished')
    .map((p, i) => {
      const from = at(p.begin),
        took = at(p.end) - from,
        waits = WAITS.includes(p.phase);
      return html`<div role="listitem" class="phase" key=${i}><span class="what">${
        attempts > 1 && p.attempt > 0 && html`<span class="muted" title="attempt">${p.attempt} · </span>`
      }${words(p.phase)}${waits && html`<span class="hidden"> (waiting)</span>`}</span>
      <span class="track" aria-hidden="true">
        <span class=${waits ? 'hollow' : 'f-' + (PHASE_TONES[p.phase] || 'wait')} style=${{left: `${((from - begin) / (end - begin)) * 100}%`, width: `max(3px, ${(took / (end - begin)) * 100}%)`}}>
          </span></span><span class="num" title=${`${when(p.begin, 'millis')} … ${p.end ? when(p.end, 'millis') : 'now'}`}>
          ${span(took)}${!p.end && ' …'}</span></div>`;
    })}</div>`;
}

const Check = ({check: c}) => {
  const tail = c.output_tail?.trimEnd(),
    body = c.command || tail;
  const head = html`<${State} is=${c.verdict} /> <span class="grow">${shown(c.description, {max: 300})}${
    !c.must_pass && html` <span class="chip">need not pass</span>`
  }</span><span class="muted">
      ${c.message ? shown(c.message, {max: 200}) : ended(c.ended)} ${c.duration_ms > 0 && span(c.duration_ms)}</span>`;
  return html`<li>${
    body
      ? html`<details open=${c.verdict === 'failed'}><summary>${head}</summary>${
          c.command &&
          html`<pre class="code">
    <span class="muted">$ </span>${shown(c.command, {lines: true, max: 5000})}</pre>`
        }${
          tail &&
          html`<pre class="code">
      ${shown(tail, {lines: true, max: 10000})}</pre>`
        }</details>`
      : html`<div class="summary">${head}</div>`
  }</li>`;
};

function Attempts({run}) {
  const many = run.attempts.length > 1;
  return html`${
    run.pre_checks.length > 0 &&
    html`<h3>Before anything was touched</h3><ul class="checks">
    ${run.pre_checks.map((c, i) => html`<${Check} key=${i} check=${c} />`)}</ul>`
  }
    ${[...run.attempts].reverse().map(
      a => html`<div key=${a.attempt}>${
        many &&
        html`<h3>Attempt ${a.attempt} <span class="muted">
      <${Time} at=${a.started_at} shape="time" />${a.execution && html` · ${ended(a.execution.ended)} after ${span(a.execution.duration_ms)}`}</span>
        </h3>`
      }
      ${
        a.failure &&
        html`<${Note} is="failed"><strong>${words(a.failure.step)} failed</strong> <code>
        ${shown(a.failure.code)}</code>: ${shown(a.failure.message, {lines: true})}<//>`
      }
      ${
        a.failure &&
        a.execution?.stderr_tail &&
        html`<pre class="code" aria-label="The end of standard error">
        ${shown(a.execution.stderr_tail.trimEnd(), {lines: true, max: 5000})}</pre>`
      }
      ${
        a.checks.length
          ? html`<ul class="checks">${a.checks.map((c, i) => html`<${Check} key=${i} check=${c} />`)}</ul>`
          : !many &&
            html`<${Empty}>
        ${run.summary.outcome ? 'No check ran.' : 'None has run yet.'}<//>`
      }</div>`,
    )}
    ${!run.attempts.length && !run.pre_checks.length && html`<${Empty}>Nothing has been executed.<//>`}`;
}

function Patch({text}) {
  const [most, set] = useState(1000),
    lines = text.replace(/\n$/, '').split('\n'),
    marks = {'+': 'add', '-': 'del', '@': 'at'};
  const meta = /^(diff --git|index |--- |\+\+\+ |new file|deleted file|similarity|rename |old mode|new mode)/;
  let inside = false;
  return html`<pre class="code diff" tabindex="0" aria-label="Changes">${lines.slice(0, most).map(line => {
    if (line.startsWith('@@')) inside = true;
    else if (line.startsWith('diff --git')) inside = false;
    return html`<span class=${!inside && meta.test(line) ? 'meta' : marks[line[0]] || ''}>${shown(line, {lines: true, max: 1000})}${'\n'}</span>`;
  })}</pre>${lines.length > most && html`<button onClick=${() => set(most * 4)}>Show more of ${number(lines.length)} lines</button>`}`;
}
function ChangedFile({run, file}) {
  const [open, set] = useState(false),
    [patch, setPatch] = useState(null),
    [error, setError] = useState(null);
  const load = async () => {
    setError(null);
    try {
      const text = await (await ask(`runs/${encode(run)}/diff?path=${encode(file.path)}`)).text();
      let told = text;
      // The patch is JSON where the API wraps it.
      if (/^["{]/.test(text))
        try {
          const value = JSON.parse(text);
          told = typeof value === 'string' ? value : (value.patch ?? text);
        } catch {
          /* a patch after all */
        }
      setPatch(told);
    } catch (refusal) {
      setError(refusal);
    }
  };
  useEffect(() => {
    if (open && patch == null) load();
  }, [open]);
  return html`<details onToggle=${event => set(event.target.open)}><summary><span class="chip s-${file.status}">
    ${file.status}</span> <span class="mono grow">${file.from && html`${shown(file.from, {max: 300})} → `}${shown(file.path, {max: 300})}</span>
      ${
        file.binary
          ? html`<span class="muted">binary</span>`
          : html`<span class="plus">+${number(file.added ?? 0)}</span> <span class="less">−${number(file.removed ?? 0)}</span>`
      }</summary>
    ${
      open &&
      html`<${Refused} error=${error} again=${load} />${
        patch != null
          ? patch
            ? html`<${Patch} text=${patch} />`
            : html`<${Empty}>There is no text to compare.<//>`
          : !error && html`<p class="muted">Loading …</p>`
      }`
    }</details>`;
}
function Changes({run}) {
  const [all, set] = useState(false),
    files = useLoad(signal => get(`runs/${encode(run.summary.run)}/changes`, {}, {signal}), [run.changed_count, run.summary.phase]);
  return html`<${Waiting} of=${files}>${files =>
    html`${
      files.length
        ? html`<ul class="files">
    ${files.slice(0, all ? 5000 : 100).map(file => html`<li key=${file.path}><${ChangedFile} run=${run.summary.run} file=${file} /></li>`)}</ul>`
        : html`<${Empty}>It changed nothing.<//>`
    }${files.length > 100 && !all && html`<button onClick=${() => set(true)}>Show all ${number(files.length)} files</button>`}`}<//>`;
}

function Output({run, output: o}) {
  const {busy, error, act} = useAct();
  return html`<li><${State} is=${o.problem ? 'failed' : o.bytes != null || o.commits?.length ? 'passed' : 'not_run'}>
    ${shown(o.name)}<//> <span class="mono muted clip">${shown(o.path, {max: 300})}</span>${
      o.bytes != null &&
      html` <span class="muted">
      ${bytes(o.bytes)}</span> <button class="link" disabled=${busy} onClick=${() => act(() => download(`runs/${encode(run)}/outputs/${encode(o.name)}`, (o.path || o.name).split('/').pop()))}>download</button>`
    }
    ${o.commits?.map(c => html` <code>${shown(c.slice(0, 12))}</code>`)}${
      o.problem &&
      html`<p class="t-bad">
      ${shown(o.problem)}</p>`
    }<${Refused} error=${error} /></li>`;
}

function Approval({run, done}) {
  const a = run.approval,
    [asks, set] = useState(null),
    path = `runs/${encode(run.summary.run)}/`,
    waits = run.summary.phase === 'awaiting_approval';
  const send = async (what, body) => {
    await post(path + what, body);
    done();
  };
  return html`<${Section} title="Approval" id="approval" class=${waits ? 'asked' : null}>
    <p>${
      waits
        ? html`<${State} is="awaiting_approval" /> A person has to approve it before its ${a.before === 'landing' ? 'result lands' : 'command runs'}${
            a.expires_at && html`, until <${Time} at=${a.expires_at} />`
          }.`
        : a.denied_by
          ? html`<${State} is="denied" /> by ${shown(a.denied_by)} <${Ago} at=${a.denied_at} />`
          : a.approved_by
            ? html`<${State} is="passed">approved<//> by ${shown(a.approved_by)} <${Ago} at=${a.approved_at} />`
            : `It has to be approved before its ${a.before === 'landing' ? 'result lands' : 'command runs'}.`
    }${a.note && html` “${shown(a.note)}”`}</p>
    ${a.checkpoints?.length > 0 && html`<p>To look at:</p><ul class="plain">${a.checkpoints.map(text => html`<li>☐ ${shown(text)}</li>`)}</ul>`}
    ${a.command && html`<pre class="code" tabindex="0" aria-label="What would run">${shown(a.command, {lines: true, max: 20000})}</pre>`}
    <${Facts} of=${[
      [
        'Would land',
        a.result?.commit &&
          html`<code>
      ${shown(a.result.commit.slice(0, 12))}</code>`,
      ],
      [
        'Outputs',
        a.result?.outputs?.map(
          o => html`<div class="mono">
        ${shown(o.path)} <span class="muted">${bytes(o.bytes)}</span></div>`,
        ),
      ],
      [
        'Kept in',
        a.outputs_in &&
          html`<code>
        ${shown(a.outputs_in)}</code>`,
      ],
      ['Sandbox', shown(a.sandbox)],
      [
        'Digest',
        a.digest &&
          html`<code title=${plain(a.digest)}>
        ${shown(a.digest.slice(0, 16))}…</code>`,
      ],
    ]} />
    ${
      waits &&
      isAdmin() &&
      html`<div class="buttons"><button class="main" onClick=${() => set('approve')}>Approve</button>
      <button class="danger" onClick=${() => set('deny')}>Deny</button></div>`
    }
    ${
      asks === 'approve' &&
      html`<${Dialog} title="Approve this run" submit="Approve" onClose=${() => set(null)} onSubmit=${form => send('approve', {digest: a.digest, note: form.get('note') || null})}>
        <p>What is approved is exactly what is shown, by its digest <code>${shown(a.digest?.slice(0, 16))}…</code>.</p>
        <label class="field">Note (may be left out)<textarea name="note" rows="2"></textarea></label><//>`
    }
    ${
      asks === 'deny' &&
      html`<${Dialog} title="Deny this run" submit="Deny" danger onClose=${() => set(null)} onSubmit=${form => send('deny', {note: form.get('note')})}>
        <label class="field">Why<textarea name="note" rows="2" required></textarea></label><//>`
    }<//>`;
}

function Actions({run, done}) {
  const s = run.summary,
    {busy, error, act} = useAct(),
    [asks, set] = useState(null),
    path = `runs/${encode(s.run)}/`;
  const send = async (what, body) => {
    const told = await post(path + what, body);
    done();
    return told;
  };
  if (!isAdmin()) return null;
  const close = () => set(null);
  return html`${!s.outcome && html`<button class="danger" onClick=${() => set('cancel')}>Cancel …</button>`}
    ${s.outcome?.kind === 'unknown' && !s.decided && html`<button class="main" onClick=${() => set('resolve')}>Resolve …</button>`}
    ${
      s.kept_commit &&
      html`<button class="main" disabled=${busy} onClick=${() => set('land')}>Land …</button>
      <button class="danger" onClick=${() => set('discard')}>Discard …</button>`
    }
    ${
      s.outcome &&
      html`<button class=${s.outcome.kind === 'failed' ? 'main' : ''} disabled=${busy} onClick=${() =>
        act(async () => {
          const {run} = await send('retry', {});
          go(runPath(run));
        })}>Retry</button>`
    }
    <${Refused} error=${error} />
    ${
      asks === 'cancel' &&
      html`<${Dialog} title="Cancel run ${short(s.run)}" submit="Cancel the run" danger onClose=${close} onSubmit=${form => send('cancel', {now: form.get('how') === 'now'})}>
        <label class="pick"><input type="radio" name="how" value="soon" checked />
        <span>Gracefully: its processes are asked to end, and ended after a while</span></label><label class="pick">
        <input type="radio" name="how" value="now" /><span>Now: its processes are ended at once</span></label><//>`
    }
    ${
      asks === 'resolve' &&
      html`<${Dialog} title="How did it end?" submit="Resolve" onClose=${close} onSubmit=${form => send('resolve', {as: form.get('as'), note: form.get('note')})}>
        <p>Nobody saw the end of its command. Look at what it was to do, then say.</p><label class="pick">
        <input type="radio" name="as" value="succeeded" required /><span>It succeeded</span></label><label class="pick">
        <input type="radio" name="as" value="failed" /><span>It failed</span></label>
        <label class="field">Why you think so<textarea name="note" rows="2" required></textarea></label><//>`
    }
    ${
      asks === 'land' &&
      html`<${Dialog} title="Land its commit" submit="Land" onClose=${close} onSubmit=${() => send('land')}><p>The commit <code>
      ${shown(s.kept_commit.slice(0, 12))}</code> becomes part of ${run.branch ? html`<code>${shown(run.branch)}</code>` : 'its branch'}.</p><//>`
    }
    ${
      asks === 'discard' &&
      html`<${Dialog} title="Discard its commit" submit="Discard" danger onClose=${close} onSubmit=${() => send('discard')}>
      <p>The commit <code>${shown(s.kept_commit.slice(0, 12))}</code> is dropped, and cannot land any more.</p><//>`
    }`;
}

function Value({of}) {
  const [open, set] = useState(false),
    text = typeof of === 'string' ? of : JSON.stringify(of);
  if (open) return html`<pre class="code" tabindex="0">${shown(text, {lines: true, max: 200000})}</pre>`;
  return html`<span class="mono break">${shown(text.slice(0, 300), {lines: true})}</span>${
    text.length > 300 && html` <button class="link" onClick=${() => set(true)}>show all ${number(text.length)} characters</button>`
  }`;
}
const tokens = t => (t.input || 0) + (t.output || 0) + (t.cache_read || 0) + (t.cache_write || 0);

function Agent({run}) {
  const s = run.summary.spent;
  return html`<${Section} title="Model" id="model" side=${
    s &&
    html`<span class="muted">
    ${count(s.turns, 'turn')}, ${number(tokens(s.tokens))} tokens${s.money != null && `, money ${plain(s.money)}`}${s.unmeasured > 0 && `; ${s.unmeasured} estimated`}</span>`
  }>
    ${run.message && html`<h3>Asked for</h3><pre class="code prose">${shown(run.message, {lines: true, max: 20000})}</pre>`}${
      run.answer && html`<h3>Last answer</h3><pre class="code prose">${shown(run.answer, {lines: true, max: 40000})}</pre>`
    }
    ${
      run.turns?.length > 0 &&
      html`<${Table} label="Turns" heads=${['Turn', '~Called', '#In', '#Cached', '#Out', '#Money']} rows=${run.turns.slice(-200).map(t => [`${t.attempt}.${t.turn}`, `${t.attempt}.${t.turn}`, shown(t.calls.join(', ') || '–', {max: 200}), number(t.tokens.input), number(t.tokens.cache_read), number(t.tokens.output), shown(t.money ?? '–')])} />`
    }<//>`;
}

function Shown({run, reload}) {
  const s = run.summary,
    over = !!s.outcome,
    commits = [s.commit, ...(s.commits_made?.newest || [])].filter(Boolean),
    why = detailOf(s.outcome),
    agent = s.spent || run.message || run.answer || run.turns?.length > 0;
  return html`<${Page} plainTitle=${`${words(standing(s))} ${skillOf(s.skill)} ${short(s.run)}`} title=${html`${shown(run.title, {max: 120})} <span class="mono muted">
    ${short(s.run)}</span>`} sub=${html`<${RunState} run=${s} /> <${SkillLink} name=${skillOf(s.skill)} /> · ${
    over ? html`ended <${Ago} at=${s.finished_at} />, took ` : html`accepted <${Ago} at=${s.submitted_at} />, `
  }<${Took} from=${s.started_at || s.submitted_at} to=${s.finished_at} />`} actions=${html`<${Actions} run=${run} done=${reload} />`}>
    ${why && html`<${Note} is=${standing(s)}>${shown(why, {lines: true})}<//>`}
    ${!over && s.waiting_for && !run.approval?.asked_at && html`<${Note} is="queued">It ${shown(waits(s))}<//>`}
    ${[...run.warnings, ...run.not_restored.map(path => `not put back: ${path}`)].map(text => html`<${Note} is="warning">${shown(text)}<//>`)}
    ${run.approval && html`<${Approval} run=${run} done=${reload} />`}
    <div class="columns"><div>
      <${Section} title="Phases" id="phases"><${Phases} phases=${run.phases} over=${over} /><//>
      <${Section} title="Log" id="log"><${Log} run=${s.run} over=${over} /><//>
      <${Section} title="Checks" id="checks"><${Attempts} run=${run} /><//>
      ${agent && html`<${Agent} run=${run} />`}
      ${
        (s.mutating || run.changed_count > 0) &&
        html`<${Section} title="Changes" id="changes" side=${
          run.changed_count > 0 && html`<span class="muted">${count(run.changed_count, 'path')}</span>`
        }><${Changes} run=${run} /><//>`
      }
    </div><aside aria-label="Facts">
      <${Section} title="Facts" id="facts"><${Facts} of=${[
        ['Run', html`<code class="break">${shown(s.run)}</code>`],
        ['Asked by', s.schedule ? html`schedule <${ScheduleLink} id=${s.schedule} />` : shown(run.submitted_by)],
        s.slot && ['Slot', html`<${Time} at=${s.slot} />`],
        ['Accepted', html`<${Time} at=${s.submitted_at} shape="full" />`],
        ['Started', s.started_at && html`<${Time} at=${s.started_at} shape="full" />`],
        ['Ended', s.finished_at && html`<${Time} at=${s.finished_at} shape="full" />`],
        ['Attempts', s.attempts],
        [
          'Branch',
          run.branch &&
            html`<code>
          ${shown(run.branch)}</code>`,
        ],
        commits.length > 0 && [
          'Commit',
          commits.map(
            c => html`<code title=${plain(c)}>
            ${shown(c.slice(0, 12))}</code> `,
          ),
        ],
        s.kept_commit && ['Kept commit', html`<code>${shown(s.kept_commit.slice(0, 12))}</code>`],
        s.parent && ['Started by', html`<${RunLink} run=${s.parent} />`],
        s.retry_of && ['Repeats', html`<${RunLink} run=${s.retry_of} />`],
        run.children?.length > 0 && ['Started', run.children.slice(0, 50).map(child => html`<${RunLink} run=${child} /> `)],
        ['Thread', html`<span class="break">${shown(s.thread)}</span>`],
        [
          'Definition',
          html`<code title=${plain(run.definition_digest)}>
            ${shown(run.definition_digest.slice(0, 12))}</code>`,
        ],
      ]} />
        <ul class="plain results">${Object.entries(run.results).map(
          ([name, r]) => html`<li key=${name}><${State} is=${r.is}>
          ${words(name)}<//> <span class="muted">${words(r.is)}${r.why ? ': ' + plain(words(r.why)) : ''}</span></li>`,
        )}</ul><//>
      ${
        run.outputs.length > 0 &&
        html`<${Section} title="Outputs" id="outputs"><ul class="plain outputs">
        ${run.outputs.map(o => html`<${Output} key=${o.name} run=${s.run} output=${o} />`)}</ul><//>`
      }
      ${
        Object.keys(run.inputs).length > 0 &&
        html`<${Section} title="Inputs" id="inputs">
        <${Facts} of=${Object.entries(run.inputs)
          .filter(([, v]) => v != null)
          .map(([name, v]) => [
            shown(name),
            html`<${Value} of=${v} />`,
          ])} /><//>`
      }
      ${
        run.acts?.length > 0 &&
        html`<${Section} title="Acts" id="acts"><ol class="plain timeline">${run.acts.map(
          (a, i) => html`<li key=${i}>
        <${Time} at=${a.at} shape="time" /> <span><strong>${shown(words(a.act))}</strong>${a.by && html` by ${shown(a.by)}`}${
          a.note && html` “${shown(a.note)}”`
        }</span></li>`,
        )}</ol><//>`
      }
      <${Section} title="Timeline" id="timeline"><ol class="plain timeline">${run.timeline.map(
        ([at, name], i) => html`<li key=${i}>
        <${Time} at=${at} shape="millis" /> <span>${shown(words(name))}</span></li>`,
      )}</ol><//>
    </aside></div><//>`;
}

export function Run({names: [id]}) {
  const run = useLoad(
    signal => get(`runs/${encode(id)}`, {}, {signal}),
    [id],
    [
      [
        'run',
        (event, set) => {
          if (event.run !== id) return false;
          set(old => (old.data ? {...old, data: {...old.data, summary: {...old.data.summary, ...event}}} : old));
          return true;
        },
      ],
    ],
    700,
  );
  // Any beginning or end of an id names a run; the address takes the whole one.
  const full = run.data?.summary.run;
  useEffect(() => {
    if (full && full !== id) go(runPath(full) + location.hash, {replace: true});
  }, [full]);
  return run.data === undefined
    ? html`<${Page} title="Run" plainTitle="Run"><${Waiting} of=${run} /><//>`
    : html`<${Refused} error=${run.error} again=${run.reload} /><${Shown} key=${full} run=${run.data} reload=${run.reload} />`;
}
