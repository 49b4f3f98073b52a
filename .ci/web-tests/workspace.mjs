// Workspaces that the tests look at: one with runs of every kind, one without any, one with a definition that is broken.
import {execFileSync} from 'node:child_process';
import {closeSync, constants, mkdirSync, openSync, writeFileSync, writeSync} from 'node:fs';
import {join} from 'node:path';

/** Stands where nobody may read it: as a secret of a file, and as a sensitive input. */
export const SECRET = 'tr0ub4dor-and-3-horses';
export const SENSITIVE = 'correct-battery-staple-9';

/** Text that is told by whoever defines a skill or names a file. What it would do, if it were markup, sets `window.hacked`. */
export const HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=2</script><a href="https://evil.example/">a</a>';
/** Right-to-left override, zero width space, isolate: characters that act instead of showing. */
export const BIDI = 'abc\u202egnp.exe\u2066\u200b';

const q = text => JSON.stringify(text).replace(/[\u007f-\uffff]/g, c => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));

/** What the hostile skill prints: bytes, some of which are no UTF-8. */
const hostileLog = () => Buffer.concat([
  HOSTILE, '\n', `bidi ${BIDI} end\n`, 'bell \x07 backspace abc\b\b\bxyz null \0 delete \x7f c1 \x9b31m\n',
  'up \x1b[5A\x1b[2J\x1b[H cleared \x1b[1000D column \x1b[31;1mred\x1b[0m \x1b[?1049h alternate\n',
  'link \x1b]8;;https://evil.example/\x1b\\press me\x1b]8;;\x1b\\ title \x1b]0;owned\x07 paste \x1b[200~ \x1bP+q544e\x1b\\\n',
  'javascript:window.hacked=3 data:text/html,<script>window.hacked=4</script>\n', 'progress 1%\rprogress 50%\rprogress 100%\n',
  'not closed \x1b]8;;https://evil.example/', '\n', 'x'.repeat(1e6), '\n', '\u202e'.repeat(2000), '\n', Buffer.from([0x62, 0xff, 0xfe, 0xc3, 0x28, 0xf0, 0x9f, 0x0a]), 'after what is no UTF-8\n',
].map(part => Buffer.from(part)));

const LAB = () => `
worker: {id: lab, name: Lab, description: "Skills to try the page with"}
skills:
  - id: fine
    name: "Fine day"
    description: "Ends well, with its check"
    timeout: 1m
    run: "echo all is well; echo a word to stderr >&2"
    verification: [{description: "it is so", command: "true"}]
    schedule: [{cron: "* * * * *", timezone: Europe/Berlin}, {id: hourly, cron: "7 * * * *"}, {id: resting, cron: "30 * * * *"}, {id: monthly, cron: "0 3 1 * *", timezone: America/New_York}]
  - id: failing
    name: "Nightly import"
    description: "Fails"
    timeout: 1m
    run: "echo importing; echo cannot reach db.internal >&2; exit 3"
    schedule: {at: MOMENTS, pause_on_failure: 2, expected_within: 1s}
  - id: unverified
    name: "Nobody checks"
    description: "Has no check that could fail it"
    timeout: 1m
    run: "echo done"
  - id: badcheck
    name: "A check fails"
    description: "What it did is not kept"
    timeout: 1m
    run: "echo looked"
    verification: [{description: "the sun is green", command: "echo it is yellow; exit 1"}]
  - id: overlong
    name: Overlong
    description: "Reaches its limit of time"
    timeout: 1s
    run: "sleep 60"
  # Does what is written to a FIFO, so that a test says when it goes on.
  - &gated
    id: slow
    name: "Slow march"
    description: "Prints as many lines as it is told to"
    timeout: 30m
    sandbox: "off"
    idempotent: true
    interface: {inputs: [{name: gate, type: path, required: true}]}
    run: |
      exec 3< {gate}
      n=0
      echo begun
      while read -r word much <&3; do
        case "$word" in
          lines) seq "$((n + 1))" "$((n + much))" | sed 's/^/counted /'; n="$((n + much))" ;;
          end) exit 0 ;;
          fail) exit 4 ;;
        esac
      done
  - {<<: *gated, id: careful, name: "Careful march", idempotent: false}
  - id: noisy
    name: "Noisy build"
    description: "A log of 10 MiB"
    timeout: 5m
    run: |
      awk 'BEGIN { for (i = 0; i < 100000; i++) printf "\\033[3%dmline %06d\\033[0m of the noisy build: compiling module %05d of the tree, with all that belongs to it\\n", 1 + i % 6, i, i * 7919 % 10007 }'
  - id: burst
    name: Burst
    description: "Short, to have many of"
    timeout: 1m
    interface: {inputs: [{name: n, type: number, default: 0}]}
    run: "echo {n}"
  - id: flaky
    name: "Flaky check"
    description: "Succeeds the second time"
    timeout: 1m
    idempotent: true
    retry: {max_attempts: 3, backoff: 100ms}
    run: "echo \\"attempt \${WORKERCTL_ATTEMPT}\\"; test \\"\${WORKERCTL_ATTEMPT}\\" -ge 2"
  - id: inputs
    name: "Inputs of each type"
    description: "Prints what it is given"
    timeout: 1m
    interface:
      inputs:
        - {name: words, type: string, default: "hello world", description: ${q('Any text, ' + HOSTILE)}}
        - {name: count, type: number, integer: true, min: 1, max: 9, default: 3}
        - {name: really, type: boolean, default: false}
        - {name: level, type: string, enum: [low, middle, high], default: low}
        - {name: names, type: array, default: [one, two]}
        - {name: day, type: date, default: 2026-01-23}
        - {name: folder, type: path, default: "."}
        - {name: token, type: string, sensitive: true, allow_dash: true}
    run: |
      printf '%s\\n' {words} {count} {really} {level} {day} {names} {folder}
      printf 'the token is %s\\n' {token}
  - id: letter
    name: "A letter"
    description: "Has an input that is called as what a person says"
    timeout: 1m
    interface: {inputs: [{name: message, type: string}]}
    run: "echo {message}"
  - id: secrets
    name: "Tells its secret"
    description: "Prints a secret, to be masked"
    timeout: 1m
    env: [{name: API_KEY, secret: {file: SECRET_FILE}}]
    run: "echo the key is $API_KEY; echo again: $API_KEY >&2"
  - id: hostile
    name: ${q('Hostile ' + HOSTILE)}
    description: ${q('Acts ' + BIDI + ' ' + HOSTILE)}
    timeout: 1m
    interface: {inputs: [{name: words, type: string, default: ${q(HOSTILE + BIDI)}, description: ${q(BIDI)}}]}
    run: "printf '%s\\\\n' {words}; cat workers/lab/hostile.bin; cat workers/lab/hostile.bin >&2"
    verification: [{description: ${q('check ' + HOSTILE)}, command: "cat workers/lab/hostile.bin | head -c 3000; true"}]
  - {id: wipe, name: "Wipe the cache", description: "A person is asked before it executes", timeout: 1m, run: "echo wiped", approval_required: true, human_checkpoints: ["nobody works there"]}
`;
const SHOP = () => `
worker: {id: shop, name: Shop, description: "Changes files"}
skills:
  - id: prices
    name: "Update prices"
    description: "Changes files of several kinds"
    mutating: true
    idempotent: true
    timeout: 1m
    commit: {message: ${q('prices: ' + HOSTILE)}}
    interface: {outputs: [{name: report, type: markdown, destination: "reports/{date}.md"}]}
    run: |
      mkdir -p data
      date +%s%N >> data/stamp.txt
      printf 'x\\n' > "data/<img src=x onerror=window.hacked=5>.txt"
      printf 'y\\n' > "data/$(printf 'bidi\\342\\200\\256gnp.txt')"
      printf '<script>window.hacked=6</script>\\n\\033[2Jcleared\\n' > data/markup.html
      head -c 3000 /dev/urandom > data/binary.bin
      printf '# Prices\\n\\n%s\\n' "$(date +%s%N)"
    verification: [{description: "a stamp is there", command: "test -s data/stamp.txt"}]
  - id: publish
    name: "Publish the catalogue"
    description: "A person is asked before the result lands"
    mutating: true
    timeout: 1m
    run: "mkdir -p data; date +%s%N > data/published.txt"
    verification: [{description: "it is written", command: "test -s data/published.txt"}]
    approval_required: true
    human_checkpoints: ["the prices look right"]
  - id: slow
    name: "Slow writer"
    description: "Takes a while before a person is asked"
    mutating: true
    timeout: 1m
    run: "sleep 4; date +%s%N > slow.txt"
    approval_required: true
  - id: kept
    name: "Kept commit"
    description: "Changes a file that may be in the way"
    mutating: true
    timeout: 1m
    run: "date +%s%N > blocked.txt"
    verification: [{description: "it is written", command: "test -s blocked.txt"}]
`;
const BROKEN = `
worker: {id: broken, name: Broken}
skills:
  - {id: one, name: One, description: "no time limit", timeout: 1x, run: "echo {undefined_thing}", schedule: {cron: "99 * * * *"}}
  - {id: "Two Words", run: [1, 2], bogus_key: ${q(HOSTILE)}}
`;

const git = (place, ...args) => execFileSync('git', ['-C', place, '-c', 'user.name=Ada Lovelace', '-c', 'user.email=ada@example.com', ...args], {stdio: ['ignore', 'pipe', 'pipe'], timeout: 60000}).toString().trim();

/** Makes a workspace: `kind` is `full`, `empty` or `broken`. */
export function makeWorkspace(place, kind, port) {
  mkdirSync(join(place, 'workers'), {recursive: true});
  mkdirSync(join(place, 'gates'));
  writeFileSync(join(place, '.gitignore'), '/state\n/gates\n');
  writeFileSync(join(place, 'workerctl.yaml'), `timezone: Europe/Berlin\nmax_parallel: 4\nbranch: main\ngrace: 1s\nland_wait: 1s\noutput_bytes_max: 67108864\ncommit: {author: "Ada Lovelace <ada@example.com>"}\nskills: {personal: false}\nweb: {listen: "127.0.0.1:${port}"}\n`);
  if (kind === 'full') {
    // Soon, and never again: it fails twice, pauses itself and is overdue from then on.
    const moments = JSON.stringify([6, 8].map(seconds => new Date(Date.now() + seconds * 1000).toISOString().slice(0, 19) + 'Z'));
    const secret = join(place, '..', `${kind}.secret`);
    writeFileSync(secret, SECRET + '\n', {mode: 0o600});
    for (const name of ['lab', 'shop']) mkdirSync(join(place, 'workers', name));
    writeFileSync(join(place, 'workers/lab/worker.yaml'), LAB().replace('SECRET_FILE', secret).replace('MOMENTS', moments));
    writeFileSync(join(place, 'workers/lab/hostile.bin'), hostileLog());
    writeFileSync(join(place, 'workers/shop/worker.yaml'), SHOP());
    writeFileSync(join(place, 'blocked.txt'), 'as it was\n');
  }
  if (kind === 'broken') {
    for (const name of ['good', 'broken']) mkdirSync(join(place, 'workers', name));
    writeFileSync(join(place, 'workers/good/worker.yaml'), 'worker: {id: good, name: Good}\nskills:\n  - {id: fine, name: Fine, description: "Ends well", timeout: 1m, run: "echo fine", schedule: {cron: "0 9 * * *"}}\n');
    writeFileSync(join(place, 'workers/broken/worker.yaml'), BROKEN);
  }
  git(place, 'init', '-q', '-b', 'main');
  git(place, 'add', '-A');
  git(place, 'commit', '-qm', 'All that is there');
  return {place, git: (...args) => git(place, ...args)};
}

/** A FIFO that a gated skill reads. Opened for both directions: nobody waits for the other, and what was written stays. */
export class Gate {
  constructor(place, name) {
    this.path = `gates/${name}`;
    execFileSync('mkfifo', [join(place, 'gates', name)]);
    this.file = openSync(join(place, 'gates', name), constants.O_RDWR | constants.O_NONBLOCK);
  }
  write(line) {
    writeSync(this.file, line + '\n');
  }
  close() {
    closeSync(this.file);
  }
}
