// Trends: how long, how well, how late, by skill and by day.
import {html} from './preact.js';
import {get} from './api.js';
import {A, Empty, Page, Section, SkillLink, Switch, Table, Waiting, setQuery, useLoad} from './parts.js';
import {Bars, Lines} from './chart.js';
import {number, parts, plain, shown, span, when, zoned} from './text.js';

const DAY = 86400000;
const share = n => `${n === 100 ? 100 : n.toFixed(n < 99 ? 0 : 1)} %`;
// Of what people or rules stopped nobody can say whether it would have succeeded.
const rate = line => {
  const all = (line.succeeded_count || 0) + (line.failed_count || 0);
  return all ? (100 * line.succeeded_count) / all : null;
};

export function Trends({query}) {
  const days = +query.days || 30,
    skill = query.skill;
  const range = async () => {
    await zoned;
    return {from: parts(Date.now() - (days - 1) * DAY).day, to: parts(Date.now()).day};
  };
  const table = useLoad(
    async signal => get('stats', {by: 'skill', ...(await range())}, {signal}),
    [days],
    [['run', event => !!event.outcome]],
    15000,
  );
  const byDay = useLoad(
    async signal => {
      const {from, to} = await range(),
        lines = new Map(
          (await get('stats', {by: skill ? 'skill' : 'all', skill, bucket: 'day', from, to}, {signal})).map(line => [line.at, line]),
        );
      return Array.from({length: days}, (_, i) => {
        const day = new Date(Date.parse(from) + i * DAY).toISOString().slice(0, 10);
        return {...lines.get(day), name: when(Date.parse(day), 'day', 'UTC').replace(/^\w+,? /, ''), long: day};
      });
    },
    [days, skill],
    [['run', event => !!event.outcome]],
    15000,
  );
  return html`<${Page} title="Trends" sub=${
    skill
      ? html`Of ${shown(skill)}. <${A} href=${'/trends' + (query.days ? '?days=' + query.days : '')}>Of all skills<//>`
      : 'Of all skills; choose one in the table below'
  } plainTitle=${skill ? `Trends of ${plain(skill)}` : 'Trends'} actions=${html`<${Switch} label="Days" is=${days} of=${[7, 30, 90].map(n => [n, `${n} days`])} on=${days => setQuery({days})} />`}>
    <${Waiting} of=${byDay}>${of =>
      !of.some(line => line.run_count)
        ? html`<${Empty}>No run ended in these days.<//>`
        : html`<div class="pair">
      <${Section} title="Runs" id="runs" class="card"><${Bars} label="Runs by day and outcome" high=${150} of=${of} /><//>
      <${Section} title="Success rate" id="rate" class="card">
        <${Lines} label="Success rate by day" of=${of} most=${100} show=${share} series=${[{name: 'succeeded', value: rate}]} /><//>
      <${Section} title="Duration" id="duration" class="card">
        <${Lines} label="Duration by day" of=${of} show=${span} series=${[
          {name: 'median', value: line => line.p50_ms},
          {name: '95th percentile', value: line => line.p95_ms},
        ]} />
          <//>
      <${Section} title="Waiting time" id="waiting" class="card">
        <${Lines} label="Waiting time by day" of=${of} show=${span} series=${[
          {name: 'median', value: line => line.waited_p50_ms},
          {name: '95th percentile', value: line => line.waited_p95_ms},
        ]} />
          <//></div>`}<//>
    <${Section} title="By skill" id="table"><${Waiting} of=${table}>${rows =>
      rows.length
        ? html`<${Table} label="Runs by skill" mark=${skill} heads=${['Skill', '#Runs', '#Succeeded', '#Failed', '#Median', '#p95', '#Waited, median', '#p95', '#Money', 'Trends']} rows=${rows.map(
            line => [
              line.name,
              html`<${SkillLink} name=${line.name} />`,
              number(line.run_count),
              rate(line) == null ? '–' : share(rate(line)),
              line.failed_count
                ? html`<${A} href=${`/runs?skill=${encodeURIComponent(line.name)}&outcome=failed,timed_out,unknown`}>${number(line.failed_count)}<//>`
                : 0,
              span(line.p50_ms),
              span(line.p95_ms),
              span(line.waited_p50_ms),
              span(line.waited_p95_ms),
              shown(line.money ?? '–'),
              html`<${A} href=${`/trends?days=${days}&skill=${encodeURIComponent(line.name)}`} aria-label="show trends of ${plain(line.name)}">show<//>`,
            ],
          )} />`
        : html`<${Empty}>No run ended in these days.<//>`}<//><//><//>`;
}
