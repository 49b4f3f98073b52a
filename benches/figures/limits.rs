//! What this machine can do at best: processes, syncs and round trips without any of ours around them.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bytes that one commit of a run writes, about.
const COMMIT_BYTES: usize = 1_024;

/// The load of the last minute.
pub(crate) fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}

/// Seconds of processor time that this process and its ended children have used.
pub(crate) fn processor_seconds() -> [f64; 2] {
    processor_seconds_in("/proc/self/stat")
}

/// Seconds of processor time that a process has used, without its children.
pub(crate) fn processor_seconds_of(pid: u32) -> f64 {
    processor_seconds_in(&format!("/proc/{pid}/stat"))[0]
}

fn processor_seconds_in(path: &str) -> [f64; 2] {
    let text = std::fs::read_to_string(path).unwrap();
    let fields: Vec<&str> = text.rsplit_once(')').unwrap().1.split(' ').collect();
    let ticks = |places: [usize; 2]| -> f64 {
        let [user, system] = places.map(|place| fields[place].parse::<f64>().unwrap());
        (user + system) / 100.0
    };
    [ticks([12, 13]), ticks([14, 15])]
}

/// The middle of some samples.
pub(crate) fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The middle of how long something takes, in seconds.
pub(crate) fn median_of(samples: usize, mut something: impl FnMut()) -> f64 {
    let timed = (0..samples.max(1)).map(|_| {
        let begun = Instant::now();
        something();
        begun.elapsed().as_secs_f64()
    });
    median(timed.collect())
}

fn spawn_true() {
    let status = Command::new("true")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
}

/// Processes a second that `parallelism` threads start and wait for, each one after the other.
pub(crate) fn spawn_ceiling(parallelism: u64, processes: u64) -> f64 {
    let left = AtomicU64::new(processes);
    let take = |left: u64| left.checked_sub(1);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..parallelism {
            scope.spawn(|| {
                while left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
                    .is_ok()
                {
                    spawn_true();
                }
            });
        }
    });
    processes as f64 / begun.elapsed().as_secs_f64()
}

/// Seconds to start one process and wait for it, nothing else going on.
pub(crate) fn spawn_seconds(samples: usize) -> f64 {
    median_of(samples, spawn_true)
}

/// Seconds to append to a file in `directory` and `fdatasync` it.
pub(crate) fn sync_seconds(directory: &Path, samples: usize) -> f64 {
    let mut file = File::create(directory.join("floor")).unwrap();
    let bytes = [b'x'; COMMIT_BYTES];
    median_of(samples, || {
        file.write_all(&bytes).unwrap();
        file.sync_data().unwrap();
    })
}

/// Seconds to connect to a Unix socket, send a line and be answered one.
pub(crate) fn connect_seconds(directory: &Path, samples: usize) -> f64 {
    let path = directory.join("floor.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let wanted = samples.max(1);
    let server = std::thread::spawn(move || {
        for stream in listener.incoming().take(wanted) {
            let mut stream = stream.unwrap();
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            stream.write_all(&byte).unwrap();
        }
    });
    let seconds = median_of(wanted, || {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(b"x").unwrap();
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
    });
    server.join().unwrap();
    std::fs::remove_file(&path).unwrap();
    seconds
}

/// What bounds runs at some parallelism.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bound {
    /// Processes a second.
    pub ceiling: f64,
    /// Seconds of one process alone.
    pub spawn_s: f64,
    /// Seconds of one sync.
    pub sync_s: f64,
    parallelism: u64,
}

impl Bound {
    /// Measures it now, for work in `directory`.
    pub(crate) fn measure(directory: &Path, parallelism: u64, processes: u64) -> Bound {
        Bound {
            ceiling: spawn_ceiling(parallelism, processes),
            spawn_s: spawn_seconds(100),
            sync_s: sync_seconds(directory, 100),
            parallelism,
        }
    }

    /// The bound from before and after what it is compared with.
    pub(crate) fn between(before: Bound, after: Bound) -> Bound {
        Bound {
            ceiling: f64::midpoint(before.ceiling, after.ceiling),
            spawn_s: f64::midpoint(before.spawn_s, after.spawn_s),
            sync_s: f64::midpoint(before.sync_s, after.sync_s),
            parallelism: before.parallelism,
        }
    }

    /// Runs a second that a loop could reach which starts a process and syncs twice for each.
    pub(crate) fn runs_per_second(self) -> f64 {
        let by_latency = self.parallelism as f64 / (self.spawn_s + 2.0 * self.sync_s);
        self.ceiling.min(by_latency)
    }
}

/// Waits until something holds; ends the benchmark when it does not within `patience`.
pub(crate) fn wait_until(what: &str, patience: Duration, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(
            begun.elapsed() < patience,
            "{what} took longer than {patience:?}"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}
