// Skills: the list, and one with the form that runs it.
import {html, useState} from './preact.js';
import {get, isAdmin, onceKey, page, post} from './api.js';
import {
  A,
  Ago,
  Empty,
  Facts,
  Page,
  Refused,
  Note,
  RunLink,
  RunState,
  ScheduleLink,
  Search,
  Section,
  State,
  Switch,
  Table,
  Time,
  Two,
  Waiting,
  go,
  runPath,
  setQuery,
  skillPath,
  useAct,
  useLoad,
} from './parts.js';
import {RunTable} from './runs.js';
import {count, plain, shown, words} from './text.js';

export const Problems = ({of}) =>
  html`<ul class="items">${of.map(
    (p, i) => html`<li class="item" key=${i}><${State} is=${p.severity} />
  <div class="grow">${shown(p.message)} <span class="mono muted">${shown(p.place.path)}${p.place.line > 0 && ':' + p.place.line}</span>${
    p.hint && html`<p class="muted">hint: ${shown(p.hint)}</p>`
  }</div><code class="side muted">${shown(p.code)}</code></li>`,
  )}</ul>`;
const nameOf = s => (s.source === 'worker' ? s.skill : s.qualified);

export function Skills({query}) {
  const problems = query.show === 'problems',
    list = useLoad(
      signal => page('skills', {worker: query.worker, text: query.text, after: query.after, limit: 200}, {signal}),
      [query.worker, query.text, query.after],
      ['definitions', 'schedules', ['run', event => !!event.outcome]],
      4000,
    );
  const wrong = useLoad(signal => get('problems', {}, {signal}), [], ['definitions']);
  return html`<${Page} title="Skills" actions=${html`<${Switch} label="View" is=${query.show || ''} of=${[
    ['', 'Skills'],
    ['problems', `Problems${wrong.data ? ` (${wrong.data.length})` : ''}`],
  ]} on=${show => setQuery({show})} />`}>
    ${
      problems
        ? html`<${Waiting} of=${wrong}>${all =>
            all.length
              ? html`<${Problems} of=${[...all].sort((a, b) => 'ewn'.indexOf(a.severity[0]) - 'ewn'.indexOf(b.severity[0]))} />`
              : html`<${Empty}>No definition has a problem.<//>`}<//>`
        : html`
    <div class="fields" role="search">
      ${html`<${Search} label="Text" value=${query.text} on=${text => setQuery({text, after: null})} />`}${
        query.worker && html`<${A} class="button" href="/skills">All workers<//>`
      }</div>
    <${Waiting} of=${list}>${({rows, next}) => html`${
      rows.length
        ? html`<${Table} label="Skills by worker" heads=${['Skill', '~What it does', 'Last', 'Next', 'Is']} rows=${rows.map(s => [
            s.qualified,
            html`<${Two} and=${shown(s.name, {max: 80})}><${A} href=${skillPath(nameOf(s))}>${shown(nameOf(s))}<//>
        <//>`,
            shown(s.description, {max: 140}),
            s.last
              ? html`<${Two} and=${html`<${Ago} at=${s.last.finished_at || s.last.submitted_at} />`}><${A} href=${runPath(s.last.run)}>
          <${RunState} run=${s.last} /><//><//>`
              : 'never',
            s.next
              ? html`<${Two} and=${html`<${Time} at=${s.next.at} zone=${s.next.timezone} />`}>
            <${Ago} at=${s.next.at} zone=${s.next.timezone} /><//>`
              : '–',
            html`${s.unavailable.length > 0 && html`<${State} is="blocked_config">unavailable<//> `}${
              s.problems.length > 0 &&
              html`<${State} is=${s.problems.some(p => p.severity === 'error') ? 'error' : 'warning'}>
            ${count(s.problems.length, 'problem')}<//> `
            }${[s.mutating && 'mutating', s.approval && 'approval', s.dialect !== 'worker' && s.dialect, s.shadowed_by && 'shadowed']
              .filter(Boolean)
              .map(
                word => html`<span class="chip">
            ${shown(word)}</span> `,
              )}`,
          ])} />`
        : html`<${Empty}>
            ${query.text ? 'No skill fits.' : 'There is no skill. `workerctl new worker` writes the first.'}<//>`
    }
        ${next && html`<p class="pager"><button onClick=${() => setQuery({after: next.after})}>More</button></p>`}`}<//>`
    }<//>`;
}

function Input({input: i}) {
  const id = 'in-' + i.name,
    given = i.default,
    text = given == null ? '' : typeof given === 'object' ? (given.join?.('\n') ?? JSON.stringify(given)) : String(given),
    type = i.type;
  const common = {id, name: i.name, required: i.required && given == null, 'aria-describedby': id + '-about', autocomplete: 'off'};
  return html`<div class="field"><label for=${id}>${shown(i.name)} <span class="muted">
    ${shown(type)}${i.required && given == null && ', required'}</span></label>
    ${
      i.sensitive
        ? html`<input ...${common} type="password" autocomplete="new-password" />`
        : type === 'boolean'
          ? html`<select ...${common}>
      ${given == null && html`<option value=""></option>`}${['true', 'false'].map(
        v => html`<option selected=${text === v}>
        ${v}</option>`,
      )}</select>`
          : i.allowed.length && type !== 'array'
            ? html`<select ...${common}>${
                given == null &&
                html`<option value="">
        </option>`
              }${i.allowed.map(v => html`<option value=${v} selected=${v === text}>${shown(v)}</option>`)}</select>`
            : type === 'array'
              ? html`<textarea ...${common} rows="3" spellcheck=${false}>${text}</textarea>`
              : html`<input ...${common} type=${type === 'number' ? 'number' : type === 'date' ? 'date' : 'text'} step="any" defaultValue=${text} value=${undefined} spellcheck=${false} />`
    }
    <span class="muted" id=${id + '-about'}>
      ${shown(i.description, {max: 300})}${type === 'array' && ' One on each line.'}${i.allowed.length > 0 && type === 'array' && ` Of: ${plain(i.allowed.join(', '))}.`}</span>
        </div>`;
}
/** Values as JSON; what is left empty is not given. */
const values = (skill, form) =>
  Object.fromEntries(
    skill.inputs.flatMap(i => {
      const text = form.get(i.name);
      if (text == null || text === '') return [];
      return [
        [
          i.name,
          i.type === 'number'
            ? +text
            : i.type === 'boolean'
              ? text === 'true'
              : i.type === 'array'
                ? text.split('\n').filter(Boolean)
                : text,
        ],
      ];
    }),
  );

function Rendered({of: r, run, back}) {
  const {busy, error, act} = useAct();
  return html`<div class="rendered"><h3>This would run</h3>
    ${
      r.instructions
        ? html`<pre class="code prose" tabindex="0" aria-label="Instructions">
      ${shown(r.instructions.text, {lines: true, max: 40000})}</pre>`
        : html`<pre class="code" tabindex="0" aria-label="Command">
        ${r.argv.map((word, i) => html`${i > 0 && '\n'}${shown(word, {lines: true, max: 20000})}`)}</pre>`
    }
    <${Facts} of=${[
      [
        'In',
        html`<code class="break">
      ${shown(r.cwd)}</code>`,
      ],
      r.instructions && [
        'Model',
        `${plain(r.instructions.model)} (${plain(r.instructions.model_name)}), at most ${count(r.instructions.max_iterations, 'turn')}; tools: ${plain(r.instructions.tools.join(', '), 500) || 'none'}`,
      ],
      r.environment.length > 0 && [
        'Environment',
        r.environment.map(
          ([name, v]) => html`<div class="mono break">
        ${shown(name)}=${shown(v, {max: 300})}</div>`,
        ),
      ],
      r.env_names.length > 0 && ['Secrets', shown(r.env_names.join(', '))],
      r.outputs.length > 0 && [
        'Outputs',
        r.outputs.map(
          ([name, path]) => html`<div>
        <code>${shown(name)}</code> ${shown(path ?? '')}</div>`,
        ),
      ],
      r.checks.length > 0 && [
        'Checks',
        html`<ul class="plain">${r.checks.map(
          c =>
            html`<li>${shown(c.description)}${
              c.command &&
              html`<div class="mono muted break">
          ${shown(c.command, {max: 500})}</div>`
            }</li>`,
        )}</ul>`,
      ],
      r.writes?.length > 0 && ['May write', shown(r.writes.join(', '))],
      r.branch && ['Lands on', html`<code>${shown(r.branch)}</code>`],
      r.commit_message && [
        'Commit',
        html`<span class="pre">
          ${shown(r.commit_message, {lines: true})}</span>`,
      ],
    ]} />
    ${r.notes.map(n => html`<${Note} is="note">${shown(n)}<//>`)}${r.budget_spent && html`<${Note} is="failed">${shown(r.budget_spent)}<//>`}
    <${Refused} error=${error} /><div class="buttons"><button type="button" onClick=${back}>Change</button>${
      isAdmin()
        ? html`<button type="button" class="main" disabled=${busy} onClick=${() => act(run)}>${busy ? 'Sending …' : 'Run'}</button>`
        : html`<span class="muted">Only an admin may run it.</span>`
    }</div></div>`;
}

function Form({skill: s}) {
  const {busy, error, act} = useAct(),
    [rendered, set] = useState(null);
  const [says, setSays] = useState(s.dialect !== 'worker');
  const render = event => {
    event.preventDefault();
    const form = new FormData(event.target),
      request = {skill: nameOf(s), inputs: values(s, form)};
    if (form.get('message')) request.message = form.get('message');
    // One key for what is shown, so that a second click, or an answer that got lost, makes no second run.
    act(async () => {
      const told = await post('render', request);
      set({told, request: {...request, digest: told.digest, key: onceKey()}});
    });
  };
  if (rendered)
    return html`<${Rendered} of=${rendered.told} back=${() => set(null)} run=${async () => {
      const {run} = await post('runs', rendered.request);
      go(runPath(run));
    }} />`;
  return html`<form class="inputs" onSubmit=${render}>${s.inputs.map(i => html`<${Input} key=${i.name} input=${i} />`)}
    ${
      !s.inputs.length &&
      says &&
      html`<div class="field"><label for="message">What you want</label><textarea id="message" name="message" rows="4">
      </textarea></div>`
    }
    ${
      !s.inputs.length &&
      !says &&
      html`<p class="muted">It takes no input. <button type="button" class="link" onClick=${() => setSays(true)}>Give instructions a message</button>
        </p>`
    }
    <${Refused} error=${error} /><div class="buttons"><button class="main" disabled=${busy}>Show what would run</button></div></form>`;
}

export function Skill({names: [owner, id]}) {
  const fits = s =>
    (s.skill === `${owner}/${id}` && s.source === 'worker') || s.qualified === `${owner}:${id}` || s.qualified === `${owner}/${id}`;
  const skill = useLoad(
    async signal => {
      for (let next = {text: id, limit: 200}; next;) {
        const told = await page('skills', next, {signal});
        const found = told.rows.find(fits);
        if (found) return found;
        next = told.next;
      }
      throw Object.assign(new Error(`there is no skill ${plain(owner)}/${plain(id)}`), {
        hints: ['it may be gone, or its definition may be broken: see the problems of skills'],
      });
    },
    [owner, id],
    ['definitions', 'schedules'],
    2000,
  );
  const runs = useLoad(
    signal => page('runs', {skill: `${owner}/${id}`, limit: 10}, {signal}),
    [owner, id],
    [['run', event => event.skill?.worker === owner && event.skill?.skill === id]],
    1500,
  );
  const schedules = useLoad(signal => get('schedules', {skill: `${owner}/${id}`}, {signal}), [owner, id], ['schedules'], 2000);
  const name = `${owner}/${id}`,
    s = skill.data;
  return html`<${Page} title=${s ? shown(s.name) : shown(name)} plainTitle=${name} sub=${
    s &&
    html`<span class="mono">
    ${shown(nameOf(s))}</span> · ${shown(s.description, {max: 400})}`
  }>
    <${Waiting} of=${skill}>${s => html`${s.unavailable.map(u => html`<${Note} is="blocked_config">It is unavailable: ${shown(u.reason)}<//>`)}
      ${s.problems.length > 0 && html`<${Section} title="Problems" id="problems"><${Problems} of=${s.problems} /><//>`}
      <div class="columns"><div><${Section} title="Run it" id="run"><${Form} key=${s.defined_at} skill=${s} /><//>
        <${Section} title="Runs" id="runs" side=${html`<${A} href=${`/runs?skill=${encodeURIComponent(name)}`}>All<//>`}><${Waiting} of=${runs}>
          ${({rows}) =>
            rows.length
              ? html`<${RunTable} rows=${rows} skill=${false} label="Its newest runs" />`
              : html`<${Empty}>It has never run.<//>`}<//><//></div>
      <aside aria-label="Facts"><${Section} title="Facts" id="facts"><${Facts} of=${[
        ['Worker', html`<${A} href=${`/skills?worker=${encodeURIComponent(owner)}`}>${shown(owner)}<//>`],
        ['Last', s.last ? html`<${RunState} run=${s.last} /> <${RunLink} run=${s.last.run} />` : 'never ran'],
        [
          'Defined at',
          html`<code class="break">
          ${shown(s.defined_at)}</code>`,
        ],
        ['Mutating', s.mutating ? 'yes: it ends in a commit' : 'no'],
        ['After a crash', s.repeatable ? 'it is started again' : 'it is not started again'],
        ['Sandbox', shown(s.sandbox)],
        s.approval && ['Approval', `before ${words(s.approval)}`],
        ['Checks', s.check_count || 'none: unverified'],
        s.source !== 'worker' && ['Source', `${plain(s.source)} (${plain(s.dialect)}, ${plain(s.trust)})`],
        s.shadowed_by && ['Shadowed by', shown(s.shadowed_by)],
      ]} />
          <//>
        ${
          s.outputs.length > 0 &&
          html`<${Section} title="Outputs" id="outputs"><${Facts} of=${s.outputs.map(o => [
            shown(o.name),
            html`${shown(o.type)} <span class="mono muted break">${shown(o.destination ?? '')}</span>`,
          ])} /><//>`
        }
        <${Section} title="Schedules" id="schedules"><${Waiting} of=${schedules}>${all =>
          all.length
            ? html`<ul class="plain">
          ${all.map(
            c =>
              html`<li key=${c.schedule}><${ScheduleLink} id=${c.schedule} /> <span class="muted">${shown(c.when)}</span>${
                c.paused ? html` <${State} is="paused" />` : c.next && html` · <${Ago} at=${c.next} zone=${c.timezone} />`
              }</li>`,
          )}</ul>`
            : html`<${Empty}>It runs when somebody asks.<//>`}<//><//></aside></div>`}<//><//>`;
}
