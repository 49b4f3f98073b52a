// Charts, each of which is a table as well.
import {html, useRef, useState} from './preact.js';
import {Table, look, useWidth} from './parts.js';
import {number, words} from './text.js';

const ORDER = ['succeeded', 'cancelled', 'denied', 'timed_out', 'unknown', 'failed'];

/** A number at or above `most` at which an axis may end. */
const nice = most => {
  const unit = 10 ** Math.floor(Math.log10(most || 1));
  return [1, 2, 2.5, 5, 10].map(n => n * unit).find(n => n >= most) || 1;
};

function Either({label, heads, rows, draw}) {
  const [table, set] = useState(false),
    box = useRef(),
    wide = useWidth(box, 600);
  return html`<div class="chart" ref=${box}>
    <button class="quiet toggle" aria-pressed=${table} aria-label="${label}: show as a table" onClick=${() => set(!table)}>
      ${table ? 'chart' : 'table'}</button>
    ${table ? html`<${Table} label=${label} heads=${heads} rows=${rows.map(row => [row[0], ...row])} />` : draw(wide)}</div>`;
}

/** Names below an axis, as many as there is room for. */
const Names = ({of, x, y, wide}) => {
  const step = Math.ceil(of.length / (wide / 85));
  return of.map((line, i) => i % step === 0 && html`<text x=${x(i)} y=${y} text-anchor="middle">${line.name}</text>`);
};

/** Stacked counts of outcomes. */
export function Bars({label, of, high = 120}) {
  const most = nice(Math.max(1, ...of.map(line => line.run_count || 0))),
    floor = high - 18;
  const kinds = ORDER.filter(kind => of.some(line => line.outcomes?.[kind]));
  const y = n => floor - (n / most) * (floor - 8);
  return html`<${Either} label=${label} heads=${['When', '#runs', ...kinds.map(kind => '#' + words(kind))]} rows=${of.map(line => [line.long, number(line.run_count || 0), ...kinds.map(kind => number(line.outcomes?.[kind] || 0))])} draw=${wide => {
    const step = (wide - 40) / of.length;
    return html`<svg class="plot" width=${wide} height=${high} role="img" aria-label=${`${label}: ${number(of.reduce((n, line) => n + (line.run_count || 0), 0))} in all`}>
      <g class="grid"><path d="M36 ${y(most)}H${wide}M36 ${y(most / 2)}H${wide}M36 ${floor}H${wide}" /></g>
        <text x="30" y=${y(most) + 4} text-anchor="end">${number(most)}</text><text x="30" y=${floor} text-anchor="end">0</text>
      ${of.map((line, i) => {
        let n = 0;
        return html`<g>${kinds.map(kind => {
          const part = line.outcomes?.[kind];
          if (!part) return null;
          const top = y((n += part)),
            tall = y(n - part) - top;
          return html`<rect class="f-${look(kind)[1]}" x=${38 + i * step + step * 0.12} width=${step * 0.76} y=${top} height=${Math.max(1.5, tall - (kinds.length > 1 ? 0.7 : 0))} rx="1.5">
            <title>${line.long}: ${part} ${words(kind)}</title></rect>`;
        })}</g>`;
      })}<${Names} of=${of} x=${i => 38 + (i + 0.5) * step} y=${high - 4} wide=${wide} /></svg>`;
  }} />`;
}

/** Lines over days; a day without a value is a gap. */
export function Lines({label, of, series, show, most, high = 150}) {
  const top = most || nice(Math.max(0.001, ...of.flatMap(line => series.map(s => s.value(line) ?? 0)))),
    floor = high - 20,
    y = n => floor - (n / top) * (floor - 10);
  return html`<${Either} label=${label} heads=${['When', ...series.map(s => '#' + s.name)]} rows=${of.map(line => [line.long, ...series.map(s => (s.value(line) == null ? '–' : show(s.value(line))))])} draw=${wide => {
    const x = i => 70 + (i * (wide - 90)) / Math.max(1, of.length - 1);
    return html`<svg class="plot" width=${wide} height=${high} role="img" aria-label=${label}><g class="grid">
      <path d="M56 ${y(top)}H${wide}M56 ${y(top / 2)}H${wide}M56 ${floor}H${wide}" /></g>
      ${[top, top / 2, 0].map(n => html`<text x="50" y=${y(n) + 4} text-anchor="end">${show(n)}</text>`)}
      ${series.map((s, at) => {
        let path = '',
          area = '',
          open = null;
        of.forEach((line, i) => {
          const value = s.value(line);
          if (value == null) {
            if (open != null) area += `L${x(i - 1)} ${floor}Z`;
            open = null;
            return;
          }
          path += `${open == null ? 'M' : 'L'}${x(i).toFixed(1)} ${y(value).toFixed(1)}`;
          area += `${open == null ? `M${x(i)} ${floor}L` : 'L'}${x(i).toFixed(1)} ${y(value).toFixed(1)}`;
          open = i;
        });
        if (open != null) area += `L${x(open)} ${floor}Z`;
        return html`<g class="series c${at}">${!at && html`<path class="area" d=${area} />`}<path class="line" d=${path} />
          ${of.map(
            (line, i) =>
              s.value(line) != null &&
              html`<circle cx=${x(i)} cy=${y(s.value(line))} r=${of.length > 40 ? 1.5 : 2.5}><title>
            ${line.long}: ${s.name} ${show(s.value(line))}</title></circle>`,
          )}</g>`;
      })}<${Names} of=${of} x=${x} y=${high - 4} wide=${wide} /></svg>
    <p class="key" aria-hidden="true">${series.map((s, at) => html`<span class="c${at}">${s.name}</span>`)}</p>`;
  }} />`;
}
