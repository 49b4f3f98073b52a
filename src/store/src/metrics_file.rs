//! `metrics.jsonl`: one line for each finished run, at most once, and for each refusal, in files of bounded size.

use std::collections::BTreeSet;
use std::fs::{File, Metadata};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::OFlags;
use serde::Serialize;

use super::thread_files::{Directories, Directory, FileError};
use crate::model::RunId;
use crate::thread::metrics::{MetricsLine, RefusalLine};

/// Name of the file that grows.
pub const METRICS_FILE: &str = "metrics.jsonl";

/// Name of the file before it; one is kept.
pub const METRICS_FILE_BEFORE: &str = "metrics.1.jsonl";

/// Size in bytes at which a new file is begun.
pub const METRICS_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// How far back a run is looked for, in bytes: only runs that were closing when an engine was lost can
/// stand there already, and about two thousand lines fit.
const LOOK_BACK_BYTES: u64 = 1024 * 1024;

/// How many of the newest runs that have a line are remembered.
const RUNS_KNOWN_MAX: usize = 8_192;

/// The metrics of a workspace. One writer at a time; what it found and wrote is remembered, so that a
/// line costs one write as long as nobody else touches the file.
#[derive(Debug)]
pub struct MetricsFile {
    directories: Arc<Directories>,
    relative: String,
    bytes_max: u64,
    known: Mutex<FileTail>,
}

/// The file as it was left, and the runs that stand at its end.
#[derive(Debug, Default)]
struct FileTail {
    /// Device, inode and length.
    file: Option<(u64, u64, u64)>,
    runs: BTreeSet<RunId>,
}

impl FileTail {
    fn learn(&mut self, run: RunId) {
        self.runs.insert(run);
        if self.runs.len() > RUNS_KNOWN_MAX {
            self.runs.pop_first();
        }
    }
}

impl MetricsFile {
    /// The metrics in the directory `relative` below the workspace; nothing is opened yet.
    pub fn new(directories: Arc<Directories>, relative: &str) -> MetricsFile {
        MetricsFile {
            directories,
            relative: relative.to_owned(),
            bytes_max: METRICS_BYTES_MAX,
            known: Mutex::default(),
        }
    }

    /// Appends the line of a run unless one stands there; answers whether it was appended. The line is
    /// durable with the next sync of the file system; a run is not closed before that, so a power cut
    /// costs no line.
    pub fn append(&self, line: &MetricsLine) -> Result<bool, FileError> {
        self.append_of(Some(line.run), line)
    }

    /// Appends the line of a request that became no run.
    pub fn append_refusal(&self, line: &RefusalLine) -> Result<(), FileError> {
        self.append_of(None, line).map(drop)
    }

    fn append_of(&self, run: Option<RunId>, line: &impl Serialize) -> Result<bool, FileError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // Taken out, so that after a failure the file is looked at again.
        let remembered = known.file.take();
        let dir = self.directories.get(&self.relative)?;
        dir.ensure_ignored()?;
        let path = dir.path().join(METRICS_FILE);
        let failed = |doing| {
            let path = path.clone();
            move |source| FileError::io(doing, &path, source)
        };
        let mut file = open_growing(&dir)?;
        let found = file.metadata().map_err(failed("look at"))?;
        let mut length = found.len();
        if remembered != Some(identity(&found, length)) {
            known.runs.clear();
            length = read_end(&mut file, length, &mut known.runs).map_err(failed("read"))?;
            if length < LOOK_BACK_BYTES {
                read_end_before(&dir, &mut known.runs)?;
            }
        }
        let appended = run.is_none_or(|run| !known.runs.contains(&run));
        if appended {
            if length >= self.bytes_max {
                dir.rename(METRICS_FILE, METRICS_FILE_BEFORE)?;
                file = open_growing(&dir)?;
                length = 0;
            }
            let mut text =
                serde_json::to_vec(line).map_err(|error| failed("write")(error.into()))?;
            text.push(b'\n');
            if let Err(source) = file.write_all(&text) {
                // A part of the line would be cut by the next call anyway.
                let _ = file.set_len(length);
                return Err(failed("write")(source));
            }
            length += text.len() as u64;
            if let Some(run) = run {
                known.learn(run);
            }
        }
        let left = file.metadata().map_err(failed("look at"))?;
        known.file = Some(identity(&left, length));
        Ok(appended)
    }
}

fn identity(metadata: &Metadata, length: u64) -> (u64, u64, u64) {
    (metadata.dev(), metadata.ino(), length)
}

fn open_growing(dir: &Directory) -> Result<File, FileError> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::APPEND;
    dir.open_file(METRICS_FILE, flags)
}

/// Gathers the runs at the end of the file and cuts a part of a line that a crash left: its run is
/// closed again and leaves a whole one. Answers the length that remains.
fn read_end(file: &mut File, length: u64, runs: &mut BTreeSet<RunId>) -> std::io::Result<u64> {
    let tail = tail(file, length)?;
    let newline = tail.iter().rposition(|byte| *byte == b'\n');
    let whole = newline.map_or(0, |at| at + 1);
    gather(&tail[..whole], runs);
    let torn = (tail.len() - whole) as u64;
    if torn > 0 {
        file.set_len(length - torn)?;
    }
    Ok(length - torn)
}

/// Gathers the runs at the end of the file before, which only matters while the present one is short.
fn read_end_before(dir: &Directory, runs: &mut BTreeSet<RunId>) -> Result<(), FileError> {
    let path = dir.path().join(METRICS_FILE_BEFORE);
    let mut file = match dir.open_file(METRICS_FILE_BEFORE, OFlags::RDONLY) {
        Ok(file) => file,
        Err(FileError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let bytes = file
        .metadata()
        .and_then(|metadata| tail(&mut file, metadata.len()))
        .map_err(|source| FileError::io("read", &path, source))?;
    gather(&bytes, runs);
    Ok(())
}

/// The last bytes of a file, bounded.
fn tail(file: &mut File, length: u64) -> std::io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(length.saturating_sub(LOOK_BACK_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(LOOK_BACK_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The runs of whole lines. `retry_of` names a run, too, and does not count; a line that is cut at the
/// front or was written by somebody else names none.
fn gather(bytes: &[u8], runs: &mut BTreeSet<RunId>) {
    #[derive(serde::Deserialize)]
    struct OfRun {
        run: RunId,
    }
    let lines = bytes.split(|byte| *byte == b'\n');
    runs.extend(lines.filter_map(|line| {
        let read: OfRun = serde_json::from_slice(line).ok()?;
        Some(read.run)
    }));
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::model::Timestamp;

    fn metrics_of(workspace: &Path) -> MetricsFile {
        MetricsFile::new(Arc::new(Directories::new(workspace)), "m")
    }

    fn line(number: u128) -> MetricsLine {
        let run = RunId::following(None, Timestamp::from_millis(1_795_000_000_000), number);
        MetricsLine {
            version: 1,
            run,
            worker: "w".into(),
            skill: "s".into(),
            outcome: "succeeded".into(),
            failed_step: None,
            code: None,
            verification: "passed".into(),
            reconciled: false,
            mutating: false,
            attempts: 1,
            submitted_at: String::new(),
            started_at: None,
            finished_at: None,
            queue_ms: 0,
            execution_ms: 0,
            verification_ms: 0,
            backoff_ms: 0,
            duration_ms: None,
            total_ms: 0,
            output_bytes: 0,
            iterations: 0,
            tokens: crate::model::agent::Tokens::default(),
            money: None,
            unmeasured: 0,
            changed_count: 0,
            commit: None,
            retry_of: Some(RunId::following(None, Timestamp::from_millis(5), 1)),
        }
    }

    fn runs(dir: &Path, name: &str) -> Vec<RunId> {
        let text = std::fs::read_to_string(dir.join("m").join(name)).unwrap();
        text.lines()
            .map(|line| serde_json::from_str::<MetricsLine>(line).unwrap().run)
            .collect()
    }

    #[test]
    fn a_run_leaves_one_line_however_often_it_is_closed() {
        let dir = xtest::tempdir();
        for _ in 0..3 {
            let metrics = metrics_of(dir.path());
            for number in 1..=4 {
                metrics.append(&line(number)).unwrap();
            }
        }
        assert_eq!(runs(dir.path(), METRICS_FILE).len(), 4);
    }

    #[test]
    fn a_torn_line_is_cut_and_written_anew() {
        let dir = xtest::tempdir();
        let metrics = metrics_of(dir.path());
        metrics.append(&line(1)).unwrap();
        metrics.append(&line(2)).unwrap();
        let path = dir.path().join("m").join(METRICS_FILE);
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(file.metadata().unwrap().len() - 9).unwrap();
        assert!(metrics.append(&line(2)).unwrap());
        assert_eq!(runs(dir.path(), METRICS_FILE).len(), 2);
    }

    #[test]
    fn what_others_do_to_the_file_is_noticed() {
        let dir = xtest::tempdir();
        let metrics = metrics_of(dir.path());
        let path = dir.path().join("m").join(METRICS_FILE);
        assert!(metrics.append(&line(1)).unwrap());
        // Another engine wrote a line in between.
        assert!(metrics_of(dir.path()).append(&line(2)).unwrap());
        assert!(!metrics.append(&line(2)).unwrap());
        // Somebody moved the file away, then the whole directory.
        std::fs::rename(&path, dir.path().join("m/kept")).unwrap();
        assert!(metrics.append(&line(1)).unwrap());
        std::fs::rename(dir.path().join("m"), dir.path().join("kept")).unwrap();
        assert!(metrics.append(&line(3)).unwrap());
        assert_eq!(runs(dir.path(), METRICS_FILE), [line(3).run]);
    }

    #[test]
    fn a_full_file_is_put_aside_and_still_looked_at() {
        let dir = xtest::tempdir();
        let mut metrics = metrics_of(dir.path());
        metrics.bytes_max = 1;
        assert!(metrics.append(&line(1)).unwrap());
        assert!(metrics.append(&line(2)).unwrap());
        assert!(!metrics.append(&line(1)).unwrap());
        assert!(!metrics.append(&line(2)).unwrap());
        assert_eq!(runs(dir.path(), METRICS_FILE_BEFORE), [line(1).run]);
        assert_eq!(runs(dir.path(), METRICS_FILE), [line(2).run]);
    }
}
