//! The room with real processes.

mod hostile;
mod inheritance;
mod orphans;
mod outcomes;
mod resources;
mod streams;
mod usage;
mod walls;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::*;

/// Far longer than anything here takes, short enough to see a hang.
const LONG: Duration = Duration::from_mins(1);

/// Keeps everything that it is given, and may stop the command at a line.
struct Kept {
    pieces: Vec<(Stream, Vec<u8>, bool)>,
    pid: u32,
    record: Option<LiveRecord>,
    stop_at: Option<(&'static str, StopKind, StopHandle)>,
}

impl Kept {
    fn new() -> Self {
        Self {
            pieces: Vec::new(),
            pid: 0,
            record: None,
            stop_at: None,
        }
    }

    fn stopping(line: &'static str, kind: StopKind, stop: &StopHandle) -> Self {
        Self {
            stop_at: Some((line, kind, stop.clone())),
            ..Self::new()
        }
    }

    /// The bytes of one stream, with a line feed after each line.
    fn bytes(&self, stream: Stream) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (_, piece, more) in self.pieces.iter().filter(|(of, ..)| *of == stream) {
            bytes.extend_from_slice(piece);
            if !more {
                bytes.push(b'\n');
            }
        }
        bytes
    }

    fn stdout(&self) -> String {
        String::from_utf8(self.bytes(Stream::Stdout)).unwrap()
    }

    fn stderr(&self) -> String {
        String::from_utf8(self.bytes(Stream::Stderr)).unwrap()
    }
}

impl OutputSink for Kept {
    fn spawned(&mut self, child: &Spawned) {
        self.pid = child.pid;
        self.record = child.live_record().ok();
    }

    fn line(&mut self, stream: Stream, bytes: &[u8], more: bool) {
        self.pieces.push((stream, bytes.to_vec(), more));
        if let Some((line, kind, stop)) = &self.stop_at
            && bytes == line.as_bytes()
        {
            stop.stop(*kind);
        }
    }
}

/// A number that no other command of any test has.
fn unique() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!(
        "{}{:05}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

fn argv(words: &[&str]) -> Command {
    owned_argv(
        words,
        Owner {
            run: format!("run-{}", unique()),
            attempt: 1,
        },
    )
}

fn owned_argv(words: &[&str], owner: Owner) -> Command {
    let parent = std::env::vars().collect();
    Command {
        program: Program::Argv(words.iter().map(|word| (*word).to_owned()).collect()),
        cwd: PathBuf::from("/"),
        env: environment(&parent, &std::env::temp_dir(), [], &owner),
        stdin: Stdin::Null,
        stdout_file: None,
        scratch: None,
        limits: Limits {
            timeout: Some(LONG),
            grace: Duration::from_secs(20),
            ..Limits::default()
        },
        owner,
        may_control: false,
        wall: None,
    }
}

fn sh(text: &str) -> Command {
    let program = Program::Shell {
        shell: PathBuf::from("/bin/sh"),
        text: text.to_owned(),
    };
    Command {
        program,
        ..argv(&[])
    }
}

fn never() -> StopHandle {
    StopHandle::new()
}

fn run_kept(command: &Command) -> (Finished, Kept) {
    let mut sink = Kept::new();
    let finished = run(command, &never(), &mut sink).unwrap();
    (finished, sink)
}

/// A command line that stands for one test's processes, and the count of those alive.
struct Sleeper {
    argument: String,
}

impl Sleeper {
    fn new() -> Self {
        Self {
            argument: format!("1000.{}", unique()),
        }
    }

    /// The text with every `S` that stands alone replaced by a long sleep of this test.
    fn text(&self, text: &str) -> String {
        let sleep = format!("sleep {}", self.argument);
        text.split(' ')
            .map(|word| if word == "S" { &sleep } else { word })
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// All processes whose command line holds the number, shells that would start another one
    /// included.
    fn alive(&self) -> Vec<u32> {
        let is_ours = |pid: u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|word| {
                word.windows(self.argument.len())
                    .any(|part| part == self.argument.as_bytes())
            })
        };
        procfs::all()
            .iter()
            .map(|process| process.pid)
            .filter(|pid| is_ours(*pid))
            .collect()
    }

    /// Those that sleep.
    fn asleep(&self) -> usize {
        let want = format!("sleep\0{}\0", self.argument).into_bytes();
        let line = |pid: u32| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        procfs::all()
            .iter()
            .filter(|process| line(process.pid) == want)
            .count()
    }

    /// Waits until `count` of them sleep.
    fn await_count(&self, count: usize) {
        let until = Instant::now() + LONG;
        while self.asleep() < count {
            assert!(
                Instant::now() < until,
                "{} of {count} came up",
                self.asleep()
            );
            std::thread::yield_now();
        }
    }
}

fn env_rounds(default: usize) -> usize {
    std::env::var("WORKERCTL_TEST_ROUNDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(default)
}

/// Runs the ignored test `name` alone in a new process of this test binary, with the soft limit
/// of descriptors lowered if `descriptors` says so.
fn alone(name: &str, descriptors: Option<u32>) {
    let program = std::env::current_exe().unwrap();
    let limit = descriptors.map_or(String::new(), |n| format!("ulimit -S -n {n}; "));
    let output = std::process::Command::new("sh")
        .args(["-c", &format!("{limit}exec \"$@\""), "sh"])
        .arg(program)
        .args(["--exact", &format!("tests::{name}")])
        .args(["--ignored", "--nocapture", "--test-threads=1"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}\n{errors}"
    );
}
