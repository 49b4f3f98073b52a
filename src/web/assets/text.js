// Text and times as they are shown. Whatever the API tells is data: nothing here makes markup of it.
import {html} from './preact.js';

// Characters that act instead of showing: controls, bidirectional marks, invisible ones, tags.
const ACTS =
  /[\0-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]|[\ud800-\udfff]/gu;
const ACTS_TEXT = new RegExp(ACTS.source.replace('\\0-\\x1f', '\\0-\\x08\\x0b-\\x1f'), 'gu');

const escaped = c => {
  const n = c.codePointAt(0);
  if (n < 32) return String.fromCodePoint(0x2400 + n);
  if (n === 127) return '␡';
  return n > 0xffff ? `\\u{${n.toString(16)}}` : '\\u' + n.toString(16).padStart(4, '0');
};

/** As plain text, for titles and messages. */
export const plain = (text, max = 300) => {
  text = String(text ?? '');
  return (text.length > max ? text.slice(0, max) + '…' : text).replace(ACTS, escaped);
};

/** As nodes, with what acts marked. `lines` keeps newlines and tabs. */
export const shown = (text, {max = 2000, lines = false} = {}) => {
  text = String(text ?? '');
  const rest = text.length - max,
    acts = lines ? ACTS_TEXT : ACTS;
  if (rest > 0) text = text.slice(0, max);
  const out = [];
  let from = 0;
  for (const found of text.matchAll(acts)) {
    if (found.index > from) out.push(text.slice(from, found.index));
    out.push(html`<span class="acts">${escaped(found[0])}</span>`);
    from = found.index + found[0].length;
  }
  out.push(from ? text.slice(from) : text);
  if (rest > 0) out.push(html`<span class="muted"> … ${count(rest, 'more character')}</span>`);
  return out;
};

const group = new Intl.NumberFormat('en');
export const number = n => group.format(n);
export const count = (n, word, many = word + 's') => `${group.format(n)} ${n === 1 ? word : many}`;

export const bytes = n => {
  if (n == null) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  while (n >= 1024 && i < 4) {
    n /= 1024;
    i++;
  }
  return `${i && n < 10 ? n.toFixed(1) : Math.round(n)} ${units[i]}`;
};

export const span = ms => {
  if (ms == null) return '–';
  if (ms < 1000) return `${Math.max(0, Math.round(ms))}ms`;
  const s = ms / 1000;
  if (s < 10) return `${s.toFixed(1)}s`;
  if (s < 60) return `${Math.round(s)}s`;
  const m = Math.floor(s / 60);
  if (m < 60) return Math.round(s % 60) ? `${m}m ${Math.round(s % 60) % 60}s` : `${m}m`;
  const h = Math.floor(m / 60);
  if (h < 48) return m % 60 ? `${h}h ${m % 60}m` : `${h}h`;
  return h % 24 ? `${Math.floor(h / 24)}d ${h % 24}h` : `${h / 24}d`;
};

let zone = 'UTC',
  known;
/** Resolves once the zone of the workspace is known, in which days are counted. */
export const zoned = new Promise(done => {
  known = done;
});
/** The zone of the workspace: that of every time without a zone of its own. */
export const setZone = name => {
  if (name && formats.get(name, 'full')) zone = name;
  known();
};
export const zoneName = () => zone;

const SHAPES = {
  full: {dateStyle: 'medium', timeStyle: 'long', hourCycle: 'h23'},
  short: {month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', hourCycle: 'h23'},
  time: {hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23'},
  minute: {hour: '2-digit', minute: '2-digit', hourCycle: 'h23'},
  millis: {hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3, hourCycle: 'h23'},
  day: {weekday: 'short', month: 'short', day: 'numeric'},
  parts: {year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', hourCycle: 'h23'},
};
const formats = {
  made: new Map(),
  get(name, shape) {
    const key = `${shape} ${name}`;
    if (!this.made.has(key)) {
      let format = null;
      // A zone that this browser does not know must not take the page down.
      try {
        format = new Intl.DateTimeFormat('en-GB', {...SHAPES[shape], timeZone: name});
      } catch {
        /* told as UTC */
      }
      this.made.set(key, format);
    }
    return this.made.get(key);
  },
};
export const when = (at, shape = 'short', name = zone) => {
  const ms = typeof at === 'number' ? at : Date.parse(at);
  return Number.isNaN(ms) ? plain(at) : (formats.get(name, shape) || formats.get('UTC', shape)).format(ms);
};
/** Day and hour in a zone: `{day: '2026-11-26', hour: 5, minute: 0}`. */
export const parts = (at, name = zone) => {
  const p = {};
  for (const {type, value} of (formats.get(name, 'parts') || formats.get('UTC', 'parts')).formatToParts(
    typeof at === 'number' ? at : Date.parse(at),
  ))
    p[type] = value;
  return {day: `${p.year}-${p.month}-${p.day}`, hour: +p.hour, minute: +p.minute};
};
/** The instant at which a clock of the zone shows `2026-11-26T05:00`. */
export const instant = (local, name = zone) => {
  const wanted = Date.parse(local + 'Z');
  let at = wanted;
  // Twice, for the offset of the first guess may be that of the other side of a change of clocks.
  for (let i = 0; i < 2; i++) {
    const p = parts(at, name);
    at += wanted - Date.parse(`${p.day}T${String(p.hour).padStart(2, '0')}:${String(p.minute).padStart(2, '0')}Z`);
  }
  return at;
};

export const relative = (at, now = Date.now()) => {
  const ms = (typeof at === 'number' ? at : Date.parse(at)) - now,
    s = Math.abs(ms) / 1000;
  if (s < 5) return 'now';
  const said =
    s < 60
      ? `${Math.round(s)}s`
      : s < 3600
        ? `${Math.round(s / 60)}m`
        : s < 172800
          ? `${Math.round(s / 3600)}h`
          : `${Math.round(s / 86400)}d`;
  return ms < 0 ? `${said} ago` : `in ${said}`;
};

export const skillOf = ref => (typeof ref === 'string' ? ref : `${ref.worker}/${ref.skill}`);
export const words = text => String(text ?? '').replace(/_/g, ' ');

// Colours of SGR, each computed against the dark ground of the log.
const GROUND = [17, 20, 24];
const cube = n => {
  if (n >= 232) return Array(3).fill(8 + (n - 232) * 10);
  const at = i => (i ? 55 + i * 40 : 0);
  n -= 16;
  return [at(Math.floor(n / 36)), at(Math.floor(n / 6) % 6), at(n % 6)];
};
const light = rgb => {
  const [r, g, b] = rgb.map(c => ((c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
/** The colour, moved away from the ground until it can be read. */
const readable = (rgb, ground) => {
  const g = light(ground),
    to = g > 0.18 ? 0 : 255;
  for (let i = 0; i < 12; i++) {
    const l = light(rgb);
    if ((Math.max(l, g) + 0.05) / (Math.min(l, g) + 0.05) >= 4.6) break;
    rgb = rgb.map(c => Math.round(c + (to - c) * 0.2));
  }
  return rgb;
};
const css = rgb => `rgb(${rgb.join(' ')})`;
const SIXTEEN = [
  [0, 0, 0],
  [205, 49, 49],
  [13, 188, 121],
  [229, 229, 16],
  [36, 114, 200],
  [188, 63, 188],
  [17, 168, 205],
  [229, 229, 229],
  [102, 102, 102],
  [241, 76, 76],
  [35, 209, 139],
  [245, 245, 67],
  [59, 142, 234],
  [214, 112, 214],
  [41, 184, 219],
  [255, 255, 255],
];

const apply = (codes, style) => {
  for (let i = 0; i < codes.length; i++) {
    const c = +codes[i] || 0;
    if (c === 0) style = {};
    else if (c === 1) style = {...style, bold: true};
    else if (c === 2) style = {...style, dim: true};
    else if (c === 3) style = {...style, italic: true};
    else if (c === 4) style = {...style, under: true};
    else if (c === 7) style = {...style, turned: true};
    else if (c === 9) style = {...style, struck: true};
    else if (c === 22) style = {...style, bold: false, dim: false};
    else if (c === 23) style = {...style, italic: false};
    else if (c === 24) style = {...style, under: false};
    else if (c === 27) style = {...style, turned: false};
    else if (c === 29) style = {...style, struck: false};
    else if (c === 39) style = {...style, fg: null};
    else if (c === 49) style = {...style, bg: null};
    else if (c === 38 || c === 48) {
      const key = c === 38 ? 'fg' : 'bg',
        byte = at => Math.min(255, Math.max(0, +codes[at] || 0));
      if (codes[i + 1] === '5') {
        const n = byte(i + 2);
        style = {...style, [key]: n < 16 ? SIXTEEN[n] : cube(n)};
        i += 2;
      } else if (codes[i + 1] === '2') {
        style = {...style, [key]: [byte(i + 2), byte(i + 3), byte(i + 4)]};
        i += 4;
      }
    } else {
      const low =
        c >= 30 && c <= 37
          ? ['fg', c - 30]
          : c >= 40 && c <= 47
            ? ['bg', c - 40]
            : c >= 90 && c <= 97
              ? ['fg', c - 82]
              : c >= 100 && c <= 107
                ? ['bg', c - 92]
                : null;
      if (low) style = {...style, [low[0]]: SIXTEEN[low[1]]};
    }
  }
  return style;
};
const painted = (style, inner) => {
  if (!Object.values(style).some(Boolean)) return inner;
  let {fg, bg} = style;
  if (style.turned) [fg, bg] = [bg || GROUND, fg || [214, 218, 224]];
  const paint = {};
  if (bg) paint.backgroundColor = css(bg);
  if (fg || bg) paint.color = css(readable(fg || [214, 218, 224], bg || GROUND));
  if (style.bold) paint.fontWeight = 700;
  if (style.italic) paint.fontStyle = 'italic';
  if (style.under || style.struck) paint.textDecoration = style.under ? 'underline' : 'line-through';
  return html`<span style=${paint}>${inner}</span>`;
};

// CSI, OSC and other strings, and escapes of two characters; only CSI … m has a meaning here.
const ESCAPE = /\x1b\[([0-9;:]*)m|\x1b(?:\[[0-?]*[ -\/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -\/]*[0-~])/g;
/** A line of a log without its escapes, as it is searched and measured. */
export const bare = text => (text.includes('\x1b') ? text.replace(ESCAPE, '') : text);
/** A line of a log as nodes, with its colours; `find` is marked. */
export const coloured = (text, find) => {
  const out = [];
  let style = {},
    from = 0;
  const push = piece => {
    if (!piece) return;
    const nodes = [];
    const low = find ? piece.toLowerCase() : '';
    let at = 0,
      hit;
    while (find && (hit = low.indexOf(find, at)) >= 0) {
      nodes.push(...shown(piece.slice(at, hit), {max: 1e6}), html`<mark>${shown(piece.slice(hit, hit + find.length))}</mark>`);
      at = hit + find.length;
    }
    nodes.push(...shown(piece.slice(at), {max: 1e6}));
    out.push(painted(style, nodes));
  };
  for (const found of text.matchAll(ESCAPE)) {
    push(text.slice(from, found.index));
    if (found[1] !== undefined) style = apply(found[1].split(/[;:]/), style);
    from = found.index + found[0].length;
  }
  push(text.slice(from));
  return out;
};
