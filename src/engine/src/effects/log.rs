//! Threads while runs are under way: one log per run, masked before anything leaves this room.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::super::view::View;
use super::super::work::Work;
use super::super::{model_keys, secrets};
use super::secret_command::Asker;
use super::{EffectParts, lock};
use crate::clock::Clock;
use crate::machine::{Action, Entry};
use crate::model::{RunId, RunSpec, SecretText, SecretUse, SkillRef};
use crate::process::Stream;
use crate::protocol::{LogLine, LogStream, WatchEvent};
use crate::store::metrics_file::MetricsFile;
use crate::store::secrets::Secrets;
use crate::store::thread_files::{Directories, Directory, FileError, ThreadWriter};
use crate::thread::line::{LogEnd, OutputSize, Source};
use crate::thread::mask::Masker;
use crate::thread::metrics::{MetricsLine, RefusalLine};

/// How long a line of output may stand in memory before it is in the file.
const HELD_BACK_MS_MAX: u64 = 200;

/// How long a line that is rewritten stands unchanged for watchers at least.
const REWRITTEN_MS: u64 = 250;

/// The logs of all runs under way.
pub(crate) struct Logs {
    workspace: PathBuf,
    state_dir: PathBuf,
    environment: BTreeMap<String, String>,
    grace: Duration,
    output_bytes_max: u64,
    clock: Arc<dyn Clock>,
    view: Arc<View>,
    open: Mutex<HashMap<RunId, Arc<RunLog>>>,
    /// What hid the secrets of each skill's latest run: notices are told when its log is closed.
    latest: Mutex<HashMap<SkillRef, Masker>>,
    directories: Arc<Directories>,
    metrics: MetricsFile,
}

/// The log of one run.
pub(crate) struct RunLog {
    run: RunId,
    clock: Arc<dyn Clock>,
    view: Arc<View>,
    masker: Masker,
    environment: Vec<(String, SecretText)>,
    files: Vec<(String, SecretText)>,
    refusal: Option<String>,
    writer: Mutex<Option<ThreadWriter>>,
    flushed_ms: AtomicU64,
    /// Whether the last write failed, which is logged once.
    is_failing: AtomicBool,
    /// When watchers were last told of a line that is rewritten.
    rewritten_ms: AtomicU64,
}

impl Logs {
    /// No logs yet.
    pub(crate) fn new(parts: &EffectParts) -> Logs {
        let directories = Arc::new(Directories::new(&parts.workspace));
        Logs {
            workspace: parts.workspace.clone(),
            state_dir: parts.state_dir.clone(),
            environment: parts.environment.clone(),
            grace: Duration::from_millis(parts.grace_ms),
            output_bytes_max: parts.output_bytes_max,
            clock: Arc::clone(&parts.clock),
            view: Arc::clone(&parts.view),
            open: Mutex::default(),
            latest: Mutex::default(),
            metrics: MetricsFile::new(Arc::clone(&directories), &parts.metrics_dir),
            directories,
        }
    }

    /// The directory that holds the threads, as it stands there now.
    pub(super) fn directory(&self, relative: &str) -> Result<Arc<Directory>, FileError> {
        self.directories.get(relative)
    }

    /// Appends the metrics of a run that has ended.
    pub(crate) fn measured(&self, line: &MetricsLine) -> Result<(), FileError> {
        self.metrics.append(line).map(drop)
    }

    /// Appends the metrics of a request that became no run.
    pub(crate) fn refused(&self, line: &RefusalLine) {
        if let Err(error) = self.metrics.append_refusal(line) {
            tracing::warn!(%error, "the metrics of a refusal could not be written");
        }
    }

    /// The log of a run; opened when it is first asked for.
    pub(crate) fn of(&self, work: &Work) -> Arc<RunLog> {
        let run = work.spec.run;
        if let Some(log) = lock(&self.open).get(&run) {
            return Arc::clone(log);
        }
        let log = Arc::new(self.open_log(work));
        if !log.masker().is_empty() {
            let skill = work.spec.skill.clone();
            lock(&self.latest).insert(skill, log.masker().clone());
        }
        let mut open = lock(&self.open);
        Arc::clone(open.entry(run).or_insert(log))
    }

    /// Writes the events of a run that its log does not hold yet; answers what hides its secrets.
    pub(crate) fn events(&self, work: &Work) -> Masker {
        let log = self.of(work);
        log.events(&work.entries, work.run.facts.attempts);
        log.masker().clone()
    }

    /// Hides the secrets of the skill's latest run.
    pub(crate) fn masker_of(&self, skill: &SkillRef) -> Masker {
        lock(&self.latest).get(skill).cloned().unwrap_or_default()
    }

    /// Closes the log of a run that has ended.
    pub(crate) fn close(&self, run: RunId) {
        if let Some(log) = lock(&self.open).remove(&run) {
            log.flush();
        }
    }

    /// Writes out what is held back of a run's log.
    pub(crate) fn flush(&self, run: RunId) {
        let log = lock(&self.open).get(&run).cloned();
        if let Some(log) = log {
            log.flush();
        }
    }

    /// Makes everything that was written so far durable.
    pub(crate) fn sync(&self) {
        for log in lock(&self.open).values() {
            log.flush();
        }
        sync_file_system(&self.workspace);
    }

    fn open_log(&self, work: &Work) -> RunLog {
        let spec = &work.spec;
        let (mut kept, mut refusal) =
            match secrets::read(&self.state_dir, spec.run, &spec.sensitive) {
                Ok(kept) => (kept, None),
                Err(why) => (Secrets::default(), Some(why)),
            };
        // Most were there when the run was accepted: another engine goes on with it, and may have them no more.
        let (environment, missing) = self.named_secrets(work);
        refusal = refusal.or(missing);
        let keys = model_keys::of_run(spec, &self.environment);
        let named: Vec<(&str, &[u8])> = environment
            .iter()
            .chain(&keys)
            .map(|(name, value)| (name.as_str(), value))
            .chain(kept.values.iter().map(|value| ("input", value)))
            .map(|(name, value)| (name, value.expose().as_bytes()))
            .collect();
        // A secret that cannot be masked was refused before; here nothing may be logged unmasked.
        let masker = Masker::new(named);
        let writer = match &masker {
            Ok(masker) => self.open_writer(spec, masker.clone()),
            Err(error) => {
                tracing::error!(run = %spec.run, %error, "nothing is logged for this run, because its secrets could not be masked");
                refusal = refusal.or_else(|| Some(error.to_string()));
                None
            }
        };
        for (name, value) in environment {
            let is_file = spec.secrets.get(&name).is_some_and(|one| one.as_file);
            let given = if is_file {
                let path = secret_file(&self.state_dir, spec.run, &name);
                kept.files.push((path.clone(), value));
                SecretText::new(path)
            } else {
                value
            };
            kept.environment.push((name, given));
        }
        RunLog {
            run: spec.run,
            clock: Arc::clone(&self.clock),
            view: Arc::clone(&self.view),
            masker: masker.unwrap_or_default(),
            environment: kept.environment,
            files: kept.files,
            refusal,
            writer: Mutex::new(writer),
            flushed_ms: AtomicU64::new(0),
            is_failing: AtomicBool::new(false),
            rewritten_ms: AtomicU64::new(0),
        }
    }

    /// The secrets that the run is given by name, as far as they can be had, and why the first that lacks cannot.
    fn named_secrets(&self, work: &Work) -> (Vec<(String, SecretText)>, Option<String>) {
        let asker = Asker {
            environment: &self.environment,
            workspace: &self.workspace,
            state_dir: &self.state_dir,
            grace: self.grace,
            run: work.spec.run,
            stop: &work.stop,
        };
        let ask = |name: &str, one: &SecretUse| asker.ask(name, one);
        // Another engine may do these again, long after the run: nothing is started then that needs a secret.
        let is_over = matches!(work.action, Action::Close | Action::Save { last: true });
        let ask: Option<secrets::Ask<'_>> = if is_over { None } else { Some(&ask) };
        let (mut found, mut missing) = (Vec::new(), None);
        for name in &work.spec.env_names {
            match secrets::value(name, &work.spec.secrets, &self.environment, ask) {
                Ok(value) => found.extend(value.map(|value| (name.clone(), value))),
                Err(refused) => {
                    let told = std::iter::once(refused.message).chain(refused.hints);
                    let told: Vec<String> = told.collect();
                    missing.get_or_insert(told.join("; "));
                }
            }
        }
        (found, missing)
    }

    fn open_writer(&self, spec: &RunSpec, masker: Masker) -> Option<ThreadWriter> {
        let opened = self.directory(&spec.threads_dir).and_then(|directory| {
            directory.ensure_ignored()?;
            ThreadWriter::open(&directory, spec, masker, spec.submitted_at)
        });
        match opened {
            Ok(writer) => Some(writer.with_output_bytes_max(self.output_bytes_max)),
            Err(error) => {
                let why = crate::model::diagnostic::chain(&error);
                tracing::error!(run = %spec.run, why, "the thread's log cannot be written");
                None
            }
        }
    }
}

impl RunLog {
    /// Variables that hold secrets.
    pub(crate) fn environment(&self) -> &[(String, SecretText)] {
        &self.environment
    }

    /// Files that hold values too large or too secret for the environment, with their content.
    pub(crate) fn files(&self) -> &[(String, SecretText)] {
        &self.files
    }

    /// Why no command of the run may be started: its secrets cannot be read.
    pub(crate) fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Hides the run's secrets.
    pub(crate) fn masker(&self) -> &Masker {
        &self.masker
    }

    /// Writes the events that the log does not hold yet.
    pub(crate) fn events(&self, entries: &[Arc<Entry>], attempt: u32) {
        let mut writer = lock(&self.writer);
        let Some(writer) = writer.as_mut() else {
            return;
        };
        let next = writer.next_seq() as usize;
        let Some(fresh) = entries.get(next..).filter(|fresh| !fresh.is_empty()) else {
            return;
        };
        let fresh = fresh.iter().map(AsRef::as_ref);
        let written = writer.entries(fresh, attempt).and_then(|lines| {
            writer.flush()?;
            Ok(lines)
        });
        match written {
            Ok(lines) => self.tell(&lines),
            Err(error) => {
                tracing::warn!(run = %self.run, %error, "events could not be written to the thread");
            }
        }
    }

    /// Writes a line of output, or a part of one; answers what was kept of it, masked.
    pub(crate) fn output(
        &self,
        attempt: u32,
        logged_as: Option<LogStream>,
        stream: Stream,
        bytes: &[u8],
        more: bool,
    ) -> Vec<LogLine> {
        let source = source_of(logged_as, stream);
        let mut writer = lock(&self.writer);
        let Some(writer) = writer.as_mut() else {
            return Vec::new();
        };
        let now = self.clock.now();
        let mut lines = writer.output(now, attempt, source, bytes);
        if !more {
            lines.extend(writer.output(now, attempt, source, b"\n"));
        }
        let now_ms = self.clock.monotonic_ms();
        let held_ms = now_ms.saturating_sub(self.flushed_ms.load(Ordering::Relaxed));
        let is_watched = self.view.is_watched(self.run) && !self.is_failing.load(Ordering::Relaxed);
        if held_ms >= HELD_BACK_MS_MAX || is_watched {
            self.flushed_ms.store(now_ms, Ordering::Relaxed);
            self.flush_writer(writer);
        }
        self.tell(&lines);
        if more && self.view.is_watched(self.run) {
            let told_ms = self.rewritten_ms.load(Ordering::Relaxed);
            if now_ms.saturating_sub(told_ms) >= REWRITTEN_MS
                && let Some(line) = writer.rewritten(now, attempt, source)
            {
                self.rewritten_ms.store(now_ms, Ordering::Relaxed);
                self.view.told(self.run, &WatchEvent::Partial(line));
            }
        }
        lines
    }

    /// The command has ended: what was held back of its streams is written.
    ///
    /// Answers those lines, and how much of its output is omitted.
    pub(crate) fn end_output(
        &self,
        attempt: u32,
        logged_as: Option<LogStream>,
    ) -> (Vec<LogLine>, OutputSize) {
        let mut lines = Vec::new();
        let mut omitted = OutputSize::default();
        let mut writer = lock(&self.writer);
        let Some(writer) = writer.as_mut() else {
            return (lines, omitted);
        };
        let now = self.clock.now();
        for stream in [Stream::Stdout, Stream::Stderr] {
            let source = source_of(logged_as, stream);
            let (held_back, unwritten) = writer.end_output(now, attempt, source);
            lines.extend(held_back);
            omitted = omitted.plus(unwritten);
        }
        if let Err(error) = writer.flush() {
            tracing::warn!(run = %self.run, %error, "output could not be written to the thread");
        }
        self.tell(&lines);
        (lines, omitted)
    }

    /// Writes what is pending; an error says that the log is not whole.
    pub(crate) fn written(&self) -> Result<(), FileError> {
        match lock(&self.writer).as_mut() {
            Some(writer) => writer.flush(),
            None => Ok(()),
        }
    }

    /// Writes what is pending and answers where the log ends; `None` where that cannot be told.
    pub(crate) fn end(&self) -> Option<LogEnd> {
        lock(&self.writer).as_mut()?.end().ok()
    }

    /// Whether the log could be opened.
    pub(crate) fn is_open(&self) -> bool {
        lock(&self.writer).is_some()
    }

    fn flush(&self) {
        if let Some(writer) = lock(&self.writer).as_mut() {
            self.flush_writer(writer);
        }
    }

    fn flush_writer(&self, writer: &mut ThreadWriter) {
        let flushed = writer.flush();
        let was_failing = self.is_failing.swap(flushed.is_err(), Ordering::Relaxed);
        if let Err(error) = flushed
            && !was_failing
        {
            tracing::warn!(run = %self.run, %error, "the thread's log could not be flushed");
        }
    }

    fn tell(&self, lines: &[LogLine]) {
        if lines.is_empty() || !self.view.is_watched(self.run) {
            return;
        }
        for line in lines {
            self.view.told(self.run, &WatchEvent::Line(line.clone()));
        }
    }
}

/// Where the value of a variable lies that is given as a file.
fn secret_file(state_dir: &Path, run: RunId, name: &str) -> String {
    let scratch = state_dir.join("scratch").join(run.to_string());
    let path = scratch.join("secrets").join(name);
    path.to_string_lossy().into_owned()
}

fn source_of(logged_as: Option<LogStream>, stream: Stream) -> Source {
    match (logged_as, stream) {
        (Some(LogStream::Check), _) => Source::Check,
        (Some(LogStream::Tool), _) => Source::Tool,
        (_, Stream::Stdout) => Source::Stdout,
        (_, Stream::Stderr) => Source::Stderr,
    }
}

/// One call makes the files of all runs durable, however many there are.
fn sync_file_system(workspace: &Path) {
    let synced = std::fs::File::open(workspace)
        .and_then(|directory| rustix::fs::syncfs(&directory).map_err(std::io::Error::from));
    if let Err(error) = synced {
        tracing::warn!(%error, "the workspace's files could not be synced");
    }
}
