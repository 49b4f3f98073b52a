// The log of a run: only visible lines are in the document, only some pages of lines in memory.
import {html, useEffect, useLayoutEffect, useRef, useState} from './preact.js';
import {download, get, id as encode, page} from './api.js';
import {follow, on} from './stream.js';
import {Dialog, Icon, Refused, Search, Switch, useAct} from './parts.js';
import {bare, coloured, count, number, when, zoneName} from './text.js';

const SIZE = 500,
  PAGES_MAX = 24,
  CHARS_MAX = 4e6,
  LINE = 20,
  CUT = 2000,
  KEEP = 8000,
  FOUND_MAX = 5000;
const STREAMS = ['stdout', 'stderr', 'check', 'tool', 'event'];

/** A long line is kept as its beginning; the rest is fetched when somebody asks for it. */
const kept = line =>
  line.text.length > KEEP ? {...line, length: line.text.length, text: (' ' + line.text.slice(0, KEEP)).slice(1)} : line;

/** Lines by number: pages that are loaded when they are looked at and dropped when there are too many. */
class Lines {
  constructor(run, changed) {
    Object.assign(this, {run, changed, count: 0, pages: new Map(), asked: new Map(), partial: null, error: null, begun: false, columns: 0});
  }
  at(n) {
    return this.pages.get(Math.floor(n / SIZE))?.lines[n % SIZE];
  }
  put(line) {
    const number = Math.floor(line.line / SIZE);
    let found = this.pages.get(number);
    if (!found) this.pages.set(number, (found = {lines: new Array(SIZE), chars: 0, rows: 0, used: 0}));
    if (found.lines[line.line % SIZE]) return;
    const one = kept(line);
    found.lines[line.line % SIZE] = one;
    found.chars += one.text.length + 100;
    found.rows += this.rowsOf(one) - 1;
    found.used = Date.now();
    this.count = Math.max(this.count, line.line + 1);
  }
  /** How many rows a line takes: one, unless lines are wrapped. */
  rowsOf(line) {
    return this.columns ? Math.max(1, Math.ceil(Math.min(bare(line.text).length, CUT) / this.columns)) : 1;
  }
  measure(columns) {
    this.columns = columns;
    for (const found of this.pages.values()) found.rows = found.lines.reduce((rows, line) => rows + this.rowsOf(line) - 1, 0);
  }
  /** Rows above a line; those of pages that are not here count as one each. */
  above(n) {
    const number = Math.floor(n / SIZE);
    let rows = n;
    for (const [at, found] of this.pages) {
      if (at < number) rows += found.rows;
      else if (at === number && this.columns)
        for (let i = 0; i < n % SIZE; i++) if (found.lines[i]) rows += this.rowsOf(found.lines[i]) - 1;
    }
    return rows;
  }
  /** The line at a row, by halving. */
  lineAt(row) {
    if (!this.columns) return Math.min(this.count, Math.max(0, Math.floor(row)));
    let low = 0,
      high = this.count;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.above(middle) <= row) low = middle;
      else high = middle - 1;
    }
    return low;
  }
  /** Loads what is missing between two lines. */
  want(from, to) {
    for (let number = Math.floor(from / SIZE); number <= Math.floor(Math.max(from, to - 1) / SIZE); number++) {
      const found = this.pages.get(number),
        end = Math.min(SIZE, this.count - number * SIZE);
      if (found) found.used = Date.now();
      let missing = 0;
      while (missing < end && found?.lines[missing]) missing++;
      if (missing < end && !this.asked.has(number)) this.load(number, number * SIZE + missing);
    }
  }
  async load(number, from) {
    this.asked.set(number, true);
    try {
      const {rows, lines} = await page(`runs/${encode(this.run)}/logs`, {from, limit: (number + 1) * SIZE - from});
      rows.forEach(line => this.put(line));
      this.count = Math.max(this.count, lines);
      this.error = null;
      this.drop(number);
    } catch (error) {
      this.error = error;
    }
    // A page that stays short, as one that was asked for before its lines were written, is not asked for without end.
    setTimeout(
      () => {
        this.asked.delete(number);
        if (!this.error) this.changed();
      },
      this.error ? 3000 : 150,
    );
    this.changed();
  }
  async begin(line) {
    try {
      const {rows, lines} = await page(`runs/${encode(this.run)}/logs`, {tail: SIZE});
      rows.forEach(one => this.put(one));
      this.count = Math.max(this.count, lines);
      this.begun = true;
      this.error = null;
      if (line != null) this.want(line, line + 1);
    } catch (error) {
      this.error = error;
    }
    this.changed();
  }
  drop(keep) {
    let chars = 0;
    for (const found of this.pages.values()) chars += found.chars;
    const old = [...this.pages].sort((a, b) => a[1].used - b[1].used);
    while (old.length > 3 && (old.length > PAGES_MAX || chars > CHARS_MAX)) {
      const [number, found] = old.shift();
      if (number === keep) continue;
      chars -= found.chars;
      this.pages.delete(number);
    }
  }
}

function Whole({run, line, onClose}) {
  const [text, set] = useState(null),
    [error, setError] = useState(null),
    [upto, setUpto] = useState(20000);
  useEffect(() => {
    get(`runs/${encode(run)}/logs`, {from: line, limit: 1}).then(rows => set(rows[0]?.text ?? ''), setError);
  }, []);
  return html`<${Dialog} wide title="Line ${number(line)}" onClose=${onClose}><${Refused} error=${error} />${
    text != null &&
    html`<p class="muted">
    ${count(text.length, 'character')}</p><pre class="log-text whole" tabindex="0">${coloured(text.slice(0, upto))}</pre>
    ${
      upto < text.length &&
      html`<p>
      <button type="button" onClick=${() => setUpto(upto * 4)}>Show more: ${number(upto)} of ${number(text.length)}</button></p>`
    }`
  }<//>`;
}

const Line = ({
  line,
  find,
  link,
  marked,
  onWhole,
}) => html`<div id=${'L' + line.line} class=${`line s-${line.stream}${marked ? ' marked' : ''}`}>
  <a class="no" href=${'#L' + line.line} tabindex="-1" aria-label="Link to line ${line.line}" title=${`${when(line.at, 'millis')} ${zoneName()}`} onClick=${event => {
    event.preventDefault();
    link(line.line);
  }}>
    ${line.line}</a><span class="stream" title=${line.stream}>${line.stream === 'stdout' ? '' : line.stream === 'stderr' ? 'err' : line.stream}</span>
    <span class="log-text">${coloured(line.text.slice(0, CUT), find)}${
      (line.length || line.text.length) > CUT &&
      html` <button class="link" onClick=${() => onWhole(line.line)}>show all ${number(line.length || line.text.length)} characters</button>`
    }${line.rewrites > 0 && html` <span class="dim">(rewritten ${count(line.rewrites, 'time')})</span>`}</span></div>`;

/** Lines that fit a search or some streams, as far as they were looked for. */
function Found({run, streams, search, total, link, wrap, onWhole, live}) {
  const [state, set] = useState({rows: [], next: {from: 0}, busy: true}),
    mine = useRef(0);
  const stream = streams.length < STREAMS.length ? streams.join() : '';
  const go = async (rows, next) => {
    const turn = ++mine.current;
    set({rows, next, busy: true});
    try {
      for (let i = 0; next && i < 6 && rows.length < FOUND_MAX; i++) {
        const more = await page(`runs/${encode(run)}/logs`, {...next, limit: 1000, stream, search});
        if (turn !== mine.current) return;
        rows = rows.concat(more.rows.map(kept));
        next = more.next && {from: more.next.from};
      }
      set({rows, next, busy: false});
    } catch (error) {
      if (turn === mine.current) set({rows, next, busy: false, error});
    }
  };
  useEffect(() => {
    go([], {from: 0});
  }, [stream, search]);
  useEffect(
    () =>
      live(line =>
        set(old =>
          old.next ||
          old.busy ||
          (stream && !streams.includes(line.stream)) ||
          (search && !line.text.toLowerCase().includes(search.toLowerCase())) ||
          old.rows.some(one => one.line === line.line)
            ? old
            : {...old, rows: [...old.rows, kept(line)].slice(-FOUND_MAX)},
        ),
      ),
    [stream, search],
  );
  const box = useRef(),
    [top, setTop] = useState(0),
    first = Math.max(0, Math.floor(top / LINE) - 20),
    some = wrap ? state.rows.slice(0, 400) : state.rows.slice(first, first + 90);
  return html`<div class="log-box" ref=${box} role="group" aria-label="Lines that were found" tabindex="0" onScroll=${() => setTop(box.current.scrollTop)}>
    <div class=${wrap ? 'wrap' : 'log-rows'} style=${wrap ? {} : {height: `${state.rows.length * LINE}px`}}>
      <div style=${wrap ? {} : {transform: `translateY(${first * LINE}px)`}}>
      ${some.map(line => html`<${Line} key=${line.line} line=${line} find=${search.toLowerCase()} link=${link} onWhole=${onWhole} />`)}</div></div>
    <p class="log-end" role="status">${
      state.busy
        ? 'Looking …'
        : html`${count(state.rows.length, 'line')} of ${number(total)}${wrap && state.rows.length > 400 ? '; the first 400 are shown' : ''}${
            state.next
              ? html`; looked at up to line ${number(+state.next.from || 0)} <button onClick=${() => go(state.rows.length >= FOUND_MAX ? [] : state.rows, state.next)}>Go on</button>`
              : ''
          }`
    }<${Refused} error=${state.error} again=${() => go(state.rows, state.next)} />
        </p></div>`;
}

const lineOf = hash => {
  const found = /^#L(\d+)$/.exec(hash);
  return found ? +found[1] : null;
};

export function Log({run, over}) {
  const [, redraw] = useState(0),
    [wrap, setWrap] = useState(localStorage.getItem('workerctl.wrap') === 'on'),
    [streams, setStreams] = useState(STREAMS),
    [search, setSearch] = useState(''),
    [marked, setMarked] = useState(() => lineOf(location.hash)),
    [whole, setWhole] = useState(null);
  const [end, setEnd] = useState(marked == null),
    box = useRef(),
    mine = useRef({frame: 0, goal: marked, hear: new Set()}).current,
    saving = useAct();
  const draw = () => {
    mine.frame ||= requestAnimationFrame(() => {
      mine.frame = 0;
      redraw(n => n + 1);
    });
  };
  const lines = (mine.lines ||= new Lines(run, draw)),
    filtered = !!search || streams.length < STREAMS.length;

  useEffect(() => {
    let unfollow = () => {},
      there = true;
    const begin = async () => {
      await lines.begin(marked);
      if (!there || !lines.begun) return;
      // From the first line that is not here: after a lost connection none is missed and none comes twice.
      unfollow = follow(run, {
        next: () => lines.count,
        tell: (name, event) => {
          if (name === 'line') {
            lines.put(event);
            lines.drop(Math.floor(event.line / SIZE));
            if (lines.partial && event.line >= lines.partial.line) lines.partial = null;
            mine.hear.forEach(f => f(event));
          } else if (name === 'partial') lines.partial = event.line >= lines.count ? event : null;
          else if (name === 'lagged') lines.begin();
          else lines.partial = null;
          draw();
        },
      });
    };
    begin();
    const ends = ['back', 'anew'].map(topic =>
      on(topic, () => {
        if (!lines.begun) begin();
        else {
          lines.error = null;
          lines.asked.clear();
          draw();
        }
      }),
    );
    const hash = () => {
      const line = lineOf(location.hash);
      if (line != null) jump(line);
    };
    addEventListener('hashchange', hash);
    return () => {
      there = false;
      unfollow();
      ends.forEach(end => end());
      removeEventListener('hashchange', hash);
      cancelAnimationFrame(mine.frame);
    };
  }, [run]);
  // What the stream may have held back when the run ended is asked for once.
  useEffect(() => {
    if (over && lines.begun) lines.begin();
  }, [over]);

  const columns = () => {
    const probe = box.current?.querySelector('.probe');
    return probe ? Math.max(20, Math.floor((box.current.clientWidth - 118) / (probe.getBoundingClientRect().width / 100))) : 80;
  };
  useLayoutEffect(() => {
    lines.measure(wrap ? columns() : 0);
    draw();
  }, [wrap, filtered]);
  useEffect(() => {
    if (!box.current) return;
    const watcher = new ResizeObserver(() => {
      if (wrap) lines.measure(columns());
      draw();
    });
    watcher.observe(box.current);
    return () => watcher.disconnect();
  }, [wrap, filtered]);

  const jump = line => {
    setSearch('');
    setStreams(STREAMS);
    setMarked(line);
    setEnd(false);
    mine.goal = line;
    history.replaceState(null, '', `${location.pathname}${location.search}#L${line}`);
    draw();
  };
  // After each drawing: the end stays in sight while it is followed, a line that was asked for comes into it, and what was looked
  // at stays where it is when lines above it turn out to be higher.
  useLayoutEffect(() => {
    const element = box.current;
    if (!element || filtered) return;
    if (end) element.scrollTop = element.scrollHeight;
    else if (mine.goal != null && lines.begun) {
      element.scrollTop = lines.above(Math.min(mine.goal, lines.count)) * LINE - element.clientHeight / 3;
      if (lines.at(mine.goal) || mine.goal >= lines.count) mine.goal = null;
    } else if (mine.anchor) {
      const moved = lines.above(mine.anchor.line) * LINE - mine.anchor.top;
      if (moved) element.scrollTop += moved;
    }
    mine.scrolled = element.scrollTop;
    remember();
  });
  const remember = () => {
    const line = lines.lineAt(box.current.scrollTop / LINE);
    mine.anchor = {line, top: lines.above(line) * LINE};
  };
  const scrolled = () => {
    const element = box.current,
      up = element.scrollTop < mine.scrolled - 2;
    mine.scrolled = element.scrollTop;
    if (element.scrollHeight - element.scrollTop - element.clientHeight < 4) setEnd(true);
    else if (up) setEnd(false);
    remember();
    draw();
  };

  const height = box.current?.clientHeight || 480,
    top = end ? Math.max(0, lines.above(lines.count) * LINE - height) : box.current?.scrollTop || 0;
  const first = Math.max(0, lines.lineAt(top / LINE) - 15),
    last = Math.min(lines.count, first + Math.ceil(height / LINE) + 30),
    seen = [];
  for (let n = first; n < last; n++) seen.push(lines.at(n) || {line: n, missing: true});
  useEffect(() => {
    if (lines.begun && !filtered && last > first) lines.want(first, last);
  });
  const rows = lines.above(lines.count) + (lines.partial ? 1 : 0),
    behind = lines.count - last;

  return html`<div class="log"><div class="log-bar"><${Search} bare label="Search in the log" value=${search} on=${setSearch} />
      <${Switch} label="Streams" is=${streams} of=${STREAMS.map(name => [name, name])} on=${name => setStreams(STREAMS.filter(one => streams.includes(one) !== (one === name)))} />
      <button aria-pressed=${wrap} onClick=${() => {
        localStorage.setItem('workerctl.wrap', wrap ? 'off' : 'on');
        setWrap(!wrap);
      }}>wrap</button>
      <span class="grow muted">${count(lines.count, 'line')}${!over && !filtered && end ? ', following' : ''}</span>
      <button disabled=${saving.busy} onClick=${() => saving.act(() => download(`runs/${encode(run)}/logs/raw`, `${run}.log`))}>
        <${Icon} name="down" />Download</button></div>
    <${Refused} error=${lines.error || saving.error} again=${lines.error && (() => lines.begin())} />
    ${
      filtered
        ? html`<${Found} run=${run} streams=${streams} search=${search} total=${lines.count} link=${jump} wrap=${wrap} onWhole=${setWhole} live=${f => (mine.hear.add(f), () => mine.hear.delete(f))} />`
        : html`
    <div class="log-frame"><div class="log-box" ref=${box} role="group" aria-label="Lines of the log" tabindex="0" onScroll=${scrolled}>
      <span class="probe log-text" aria-hidden="true">${'0'.repeat(100)}</span>
      ${
        lines.begun && !lines.count && !lines.partial
          ? html`<p class="log-end">Nothing is in the log yet.</p>`
          : html`<div class=${wrap ? 'wrap log-rows' : 'log-rows'} style=${{height: `${rows * LINE}px`}}>
          <div style=${{transform: `translateY(${lines.above(first) * LINE}px)`}}>
      ${seen.map(line =>
        line.missing
          ? html`<div class="line" key=${line.line}><span class="no">${line.line}</span><span class="dim">…</span>
        </div>`
          : html`<${Line} key=${line.line} line=${line} link=${jump} marked=${line.line === marked} onWhole=${setWhole} />`,
      )}
      ${
        lines.partial &&
        last === lines.count &&
        html`<div class="line partial s-${lines.partial.stream}" key="partial"><span class="no">…</span>
        <span class="stream"></span><span class="log-text">${coloured(lines.partial.text.slice(0, CUT))}</span></div>`
      }</div></div>`
      }</div>
      ${
        !end &&
        lines.count > 0 &&
        html`<button class="to-end" onClick=${() => {
          mine.goal = null;
          setEnd(true);
        }}><${Icon} name="down" />
        ${over ? 'To the end' : 'Follow'}${behind > 0 ? ` (${number(behind)} below)` : ''}</button>`
      }</div>`
    }
    ${whole != null && html`<${Whole} run=${run} line=${whole} onClose=${() => setWhole(null)} />`}</div>`;
}
