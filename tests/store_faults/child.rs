//! A process that commits runs and says which are acknowledged; and what must be true afterwards.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, IoSlice};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use crate::machine::Entry;
use crate::model::RunSpec;
use crate::sample_runs::{admitted, batch, recorded, run, spec, submitted, summary};
use crate::store::{Batch, OpenOptions, SledStore, Store, StoreError, Write};

const DIRECTORY: &str = "WORKERCTL_TEST_CHILD_DIRECTORY";
const FIRST: &str = "WORKERCTL_TEST_CHILD_FIRST";
const COUNT: &str = "WORKERCTL_TEST_CHILD_COUNT";
const MODE: &str = "WORKERCTL_TEST_CHILD_MODE";

/// Options of stores in these tests.
pub(crate) fn options() -> OpenOptions {
    OpenOptions {
        reserve_bytes: 256 * 1024,
        ..OpenOptions::default()
    }
}

fn spec_of(n: u64) -> RunSpec {
    spec(n, if n % 9 == 4 { 6_000 } else { 40 })
}

fn events_of(n: u64) -> Vec<Entry> {
    vec![
        submitted(n),
        admitted(n, 1),
        recorded(n, 2, (n % 5) as usize * 900),
    ]
}

/// What run `n` commits; the line of the run before is closed lazily in between.
pub(crate) fn batch_of(n: u64) -> Batch {
    batch(vec![
        Write::Spec(Arc::new(spec_of(n))),
        Write::Entries {
            run: run(n),
            entries: events_of(n),
        },
        Write::Finished(Box::new(summary(n))),
    ])
}

/// Everything that was acknowledged is there and right; everything else is there whole or not at all.
/// Answers the first number that was never used.
pub(crate) fn check(store: &dyn Store, acknowledged: &BTreeSet<u64>, next: u64) -> u64 {
    let mut unused = next;
    for n in 1..next + 2_000 {
        let spec = store.spec(run(n)).unwrap();
        let there = spec.is_some();
        assert!(there || !acknowledged.contains(&n), "run {n} was lost");
        let journal = store.journal(run(n)).unwrap();
        let summary_of_n = store.summary(run(n)).unwrap();
        if there {
            assert_eq!(spec, Some(spec_of(n)), "{n}");
            assert_eq!(journal, events_of(n), "{n}");
            assert_eq!(summary_of_n, Some(summary(n)), "{n}");
            unused = unused.max(n + 1);
        } else {
            assert!(
                journal.is_empty() && summary_of_n.is_none(),
                "run {n} is torn"
            );
        }
        if !there && n > unused {
            break;
        }
    }
    unused
}

/// The running child.
pub(crate) struct Committer {
    pub(crate) process: Child,
    lines: BufReader<ChildStdout>,
}

impl Committer {
    /// Starts one that commits runs from `first` on, for ever or `count` of them; `wrapper` is put
    /// before the command.
    pub(crate) fn start(
        directory: &Path,
        first: u64,
        count: Option<u64>,
        mode: &str,
        wrapper: &[String],
    ) -> Committer {
        let own = std::env::current_exe().unwrap();
        let mut command = match wrapper.split_first() {
            Some((program, arguments)) => {
                let mut command = Command::new(program);
                command.args(arguments).arg(own);
                command
            }
            None => Command::new(own),
        };
        let mut process = command
            .args([
                "--exact",
                "child::commits",
                "--nocapture",
                "--include-ignored",
            ])
            .env(DIRECTORY, directory)
            .env(FIRST, first.to_string())
            .env(COUNT, count.unwrap_or(u64::MAX).to_string())
            .env(MODE, mode)
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap());
        Committer { process, lines }
    }

    /// The next word that it says, with its number; `None` once it is dead.
    pub(crate) fn next_word(&mut self) -> Option<(String, u64)> {
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap_or(0) == 0 {
                return None;
            }
            // The test harness says things of its own on the same stream.
            let Some((_, said)) = line.split_once('@') else {
                continue;
            };
            let (word, number) = said.trim().split_once(' ').unwrap();
            return Some((word.to_owned(), number.parse().unwrap()));
        }
    }

    /// Adds what it acknowledged until it has said so `count` times or is dead.
    pub(crate) fn read_acknowledged(&mut self, count: u64, into: &mut BTreeSet<u64>) {
        let mut left = count;
        while left > 0 {
            match self.next_word() {
                Some((word, n)) if word == "ack" => {
                    into.insert(n);
                    left -= 1;
                }
                Some(_) => {}
                None => return,
            }
        }
    }
}

/// Says a word by a call that no test makes fail, in one piece.
fn say(word: &str, number: u64) {
    let line = format!("@{word} {number}\n");
    rustix::io::writev(std::io::stdout(), &[IoSlice::new(line.as_bytes())]).unwrap();
}

fn number(name: &str) -> u64 {
    std::env::var(name).unwrap().parse().unwrap()
}

/// The child itself; does nothing unless it was started as one.
#[test]
#[ignore = "is the other process of the tests here"]
fn commits() {
    let Some(directory) = std::env::var_os(DIRECTORY) else {
        return;
    };
    let store = match SledStore::open(Path::new(&directory), options()) {
        Ok(store) => store,
        Err(error) => return say(name_of(&error), 0),
    };
    say("open", 0);
    if std::env::var(MODE).unwrap() == "hold" {
        // Until the parent closes the other end.
        let _ = std::io::stdin().lines().next();
        return;
    }
    let first = number(FIRST);
    for n in first..first.saturating_add(number(COUNT)) {
        let mut result = store.commit(&batch_of(n));
        for _ in 0..3 {
            if !matches!(result, Err(StoreError::Full { .. })) {
                break;
            }
            result = store.reopen().and_then(|()| store.commit(&batch_of(n)));
        }
        if let Err(error) = result {
            return say(name_of(&error), n);
        }
        say("ack", n);
        if let Err(error) = store.commit_lazily(&batch(vec![Write::Closed(run(n))])) {
            return say(name_of(&error), n);
        }
    }
    drop(store);
    say("done", 0);
}

fn name_of(error: &StoreError) -> &'static str {
    match error {
        StoreError::Full { .. } => "full",
        StoreError::Broken { .. } => "broken",
        StoreError::Gone { .. } => "gone",
        StoreError::Corrupt { .. } => "corrupt",
        StoreError::Newer { .. } => "newer",
        StoreError::Busy { .. } => "busy",
        StoreError::Refused { .. } => "refused",
    }
}
