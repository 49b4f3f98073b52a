//! Waiting for a run: what happens to it is shown, Ctrl-C ends it, and nobody waits longer than they want.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::Builder;
use std::time::Duration;

use super::interrupts::{Interrupt, Listening};
use super::render::progress::Progress;
use super::session::Session;
use crate::model::file_size::FILE_SIZE_LIMIT;
use crate::model::{Diagnostic, Kind, Phase, RunId};
use crate::process::RUN_VARIABLE;
use crate::protocol::{
    CancelRequest, Control, RunDetail, RunSummary, THREAD_UNREADABLE, WatchEvent,
};

/// Messages that may wait; beyond, the engine counts what we are behind.
const BACKLOG_MAX: usize = 1_024;

/// How often the changing line moves.
const TICK: Duration = Duration::from_millis(100);

/// What Ctrl-C means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnInterrupt {
    /// It ends the run: the command started it.
    Cancel,
    /// It ends the waiting: the run is somebody else's.
    Leave,
}

/// How a run is waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Follow {
    /// What Ctrl-C means.
    pub(crate) on_interrupt: OnInterrupt,
    /// Whether it is over, too, once a person has to approve the run.
    pub(crate) until_asked: bool,
    /// Whether only the end is of interest.
    pub(crate) quiet: bool,
    /// Whether what the run prints is shown as it comes.
    pub(crate) lines: bool,
    /// Longest wait in milliseconds.
    pub(crate) timeout_ms: Option<u64>,
}

/// How the waiting ended.
#[derive(Debug)]
pub(crate) enum Followed {
    /// The run has ended.
    Ended {
        /// All that is known of it.
        detail: Box<RunDetail>,
        /// Whether Ctrl-C had asked for its end.
        interrupted: bool,
    },
    /// We were told to go.
    Left {
        /// What becomes of the run.
        then: Then,
    },
    /// A person has to approve it.
    Asked(Box<RunDetail>),
    /// The run goes on; the wait has been long enough.
    TimedOut,
}

/// What becomes of a run that nobody waits for any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// It goes on.
    GoesOn,
    /// It is being cancelled.
    IsCancelled,
    /// Its engine was this process, and goes with it.
    EndsWithUs,
}

enum Incoming {
    Happened(WatchEvent),
    /// The run cannot go on before there is space, and why.
    NoSpace(&'static str),
    Signal(Interrupt),
    Cancelled(Result<(), Diagnostic>),
    Ended(Result<(), Diagnostic>),
}

/// Hears signals from before a run is asked for, so that none between the request and the waiting is lost.
pub(crate) struct SignalListener {
    sender: SyncSender<Incoming>,
    // Goes before `listening`, whose thread may be sending.
    receiver: Receiver<Incoming>,
    listening: Listening,
}

impl SignalListener {
    /// From now on signals wait for [`follow`].
    pub(crate) fn open(session: &Session<'_>) -> Result<SignalListener, Diagnostic> {
        let (sender, receiver) = sync_channel(BACKLOG_MAX);
        let for_signals = sender.clone();
        let listening = session
            .interrupts
            .listen(Box::new(move |signal| {
                // The end of the waiting is no failure of the signal.
                let _ = for_signals.send(Incoming::Signal(signal));
            }))
            .map_err(|error| internal("signals_unavailable", &error))?;
        Ok(SignalListener {
            sender,
            receiver,
            listening,
        })
    }
}

/// Waits for a run.
pub(crate) fn follow(
    session: &mut Session<'_>,
    signals: SignalListener,
    control: &Arc<dyn Control>,
    run: RunId,
    how: Follow,
) -> Result<Followed, Diagnostic> {
    let SignalListener {
        sender,
        receiver,
        listening,
    } = signals;
    let lines = how.lines && !how.quiet && !session.json();
    let watcher = watch(Arc::clone(control), run, lines, sender.clone())?;
    let now_ms = session.clock.monotonic_ms();
    let mut waiting = Waiting {
        control,
        run,
        how,
        sender,
        progress: Progress::new(session.io.width, how.quiet || session.json(), now_ms),
        deadline_ms: how.timeout_ms.map(|timeout| now_ms.saturating_add(timeout)),
        signals: 0,
    };
    let ended = waiting.until_over(session, &receiver);
    waiting.progress.clear(&mut session.io.err);
    let interrupted = waiting.signals > 0;
    let then = match &ended {
        Ok(Over::Left) if waiting.is_hosted_here() => Then::EndsWithUs,
        _ if interrupted => Then::IsCancelled,
        _ => Then::GoesOn,
    };
    // Whoever still sends is told that nobody reads any more.
    drop((waiting, receiver, listening));
    match ended? {
        Over::Run => {
            let joined = watcher.join();
            debug_assert!(joined.is_ok(), "the watcher forwards and nothing else");
            let detail = Box::new(control.run(&run.to_string())?);
            if detail.summary.outcome.is_none() {
                return Err(left_behind(run));
            }
            Ok(Followed::Ended {
                detail,
                interrupted,
            })
        }
        Over::Left => {
            // Nobody waits for an engine in this process that was told three times to end.
            std::mem::forget(Arc::clone(control));
            Ok(Followed::Left { then })
        }
        Over::Asked => Ok(Followed::Asked(Box::new(control.run(&run.to_string())?))),
        Over::TimedOut => Ok(Followed::TimedOut),
    }
}

fn watch(
    control: Arc<dyn Control>,
    run: RunId,
    lines: bool,
    sender: SyncSender<Incoming>,
) -> Result<std::thread::JoinHandle<()>, Diagnostic> {
    Builder::new()
        .name("watch".to_owned())
        .spawn(move || {
            let mut told_full = false;
            let mut forward = |event| {
                let is_silent = event == WatchEvent::Lagged { lost: 0 };
                let mut sent = sender.send(Incoming::Happened(event));
                if is_silent
                    && !told_full
                    && let Some(text) = shortage(control.as_ref())
                {
                    told_full = true;
                    sent = sender.send(Incoming::NoSpace(text));
                }
                match sent {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                }
            };
            let ended = if lines {
                control.watch(run, &mut forward)
            } else {
                control.watch_changes(run, &mut forward)
            };
            // Nobody may be waiting any more.
            let _ = sender.send(Incoming::Ended(ended));
        })
        .map_err(|error| internal("thread_unavailable", &error))
}

/// What the engine waits for before anything can be stored.
fn shortage(control: &dyn Control) -> Option<&'static str> {
    match control.status().ok()?.condition.as_str() {
        "disk_full" => Some("the disk is full: the run goes on once there is space"),
        FILE_SIZE_LIMIT => Some(
            "the store has reached the limit on the size of a file (`ulimit -f`, `LimitFSIZE=`): the run goes on once it is raised",
        ),
        _ => None,
    }
}

fn internal(code: &str, error: &std::io::Error) -> Diagnostic {
    Diagnostic::new(
        Kind::Internal,
        code,
        format!("cannot wait for the run: {error}"),
    )
}

fn left_behind(run: RunId) -> Diagnostic {
    Diagnostic::new(
        Kind::Unreachable,
        "engine_left",
        "the engine exited before the run ended; the run is not lost",
    )
    .hint(format!(
        "run `workerctl wait {}` once an engine is running again",
        run.short()
    ))
}

enum Over {
    Run,
    Asked,
    Left,
    TimedOut,
}

struct Waiting<'a> {
    control: &'a Arc<dyn Control>,
    run: RunId,
    how: Follow,
    sender: SyncSender<Incoming>,
    progress: Progress,
    deadline_ms: Option<u64>,
    signals: u32,
}

impl Waiting<'_> {
    fn until_over(
        &mut self,
        session: &mut Session<'_>,
        receiver: &Receiver<Incoming>,
    ) -> Result<Over, Diagnostic> {
        loop {
            let now_ms = session.clock.monotonic_ms();
            if self.deadline_ms.is_some_and(|deadline| deadline <= now_ms) {
                return Ok(Over::TimedOut);
            }
            let err = &mut session.io.err;
            let incoming = match self.next(err.is_terminal, now_ms, receiver) {
                Ok(Some(incoming)) => incoming,
                Ok(None) => {
                    self.progress.tick(err, session.clock.monotonic_ms());
                    continue;
                }
                // We hold a sender ourselves; without any, nothing would ever come.
                Err(()) => return Ok(Over::Run),
            };
            match incoming {
                Incoming::Happened(WatchEvent::Line(line)) => {
                    if self.how.lines {
                        self.progress.line(err, &line, now_ms);
                    }
                }
                Incoming::Happened(WatchEvent::Partial(line)) => {
                    if self.how.lines {
                        self.progress.partial(err, &line, now_ms);
                    }
                }
                Incoming::Happened(WatchEvent::Changed(summary)) => {
                    if let Some(around) = self.waits_for_itself(session.environment, &summary) {
                        return Err(around);
                    }
                    if self.how.until_asked && summary.phase == Phase::AwaitingApproval {
                        return Ok(Over::Asked);
                    }
                    self.progress.changed(err, &summary, now_ms);
                }
                Incoming::Happened(WatchEvent::Lagged { lost }) => self.progress.lagged(err, lost),
                Incoming::NoSpace(_) if self.how.quiet || session.globals.json => {}
                Incoming::NoSpace(text) => {
                    self.progress.clear(err);
                    super::render::diagnostic::warning(err, text);
                }
                Incoming::Signal(signal) => {
                    if self.signalled(session, signal).is_break() {
                        return Ok(Over::Left);
                    }
                }
                Incoming::Cancelled(Ok(())) => {}
                Incoming::Cancelled(Err(refused)) => {
                    self.progress.clear(err);
                    super::render::diagnostic::warning(err, &refused.message);
                }
                Incoming::Ended(ended) => {
                    return match ended {
                        Ok(()) => Ok(Over::Run),
                        // How it ended stands in the store; what it printed does not decide that.
                        Err(error) if error.code == THREAD_UNREADABLE => {
                            self.progress.clear(err);
                            super::render::diagnostic::warning(err, &error.message);
                            Ok(Over::Run)
                        }
                        Err(error) => Err(error.hint(format!(
                            "the run is not forgotten: `workerctl wait {}` once an engine runs",
                            self.run.short()
                        ))),
                    };
                }
            }
        }
    }

    /// The refusal to wait for a run that waits for the one whose command this is.
    fn waits_for_itself(
        &self,
        environment: &BTreeMap<String, String>,
        summary: &RunSummary,
    ) -> Option<Diagnostic> {
        let around: RunId = environment.get(RUN_VARIABLE)?.parse().ok()?;
        let reason = summary.waiting_for.as_ref()?;
        if !reason.contains(&around.short()) {
            return None;
        }
        let (run, around) = (self.run.short(), around.short());
        let message = format!("deadlock: {run} waits for {around}, whose command waits for {run}");
        let refused = Diagnostic::new(Kind::Conflict, "waits_for_itself", message);
        Some(
            refused
                .hint(format!(
                    "{run} starts when {around} has ended: ask for it with `--no-wait`"
                ))
                .hint(format!("`workerctl cancel {run}` drops it")),
        )
    }

    /// The next message; `None` when it is time to move the changing line or to look at the deadline.
    fn next(
        &self,
        terminal: bool,
        now_ms: u64,
        receiver: &Receiver<Incoming>,
    ) -> Result<Option<Incoming>, ()> {
        let left = self
            .deadline_ms
            .map(|deadline| Duration::from_millis(deadline - now_ms));
        let patience = match (terminal && !self.how.quiet, left) {
            (true, Some(left)) => left.min(TICK),
            (true, None) => TICK,
            (false, Some(left)) => left,
            (false, None) => return receiver.recv().map(Some).map_err(|_| ()),
        };
        match receiver.recv_timeout(patience) {
            Ok(incoming) => Ok(Some(incoming)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(()),
        }
    }

    /// Breaks when it is time to go.
    fn signalled(&mut self, session: &mut Session<'_>, signal: Interrupt) -> ControlFlow<()> {
        // An engine in this process would go with it, so its run is ended in order.
        let ours = signal == Interrupt::Interrupted || self.is_hosted_here();
        if self.how.on_interrupt == OnInterrupt::Leave || !ours {
            return ControlFlow::Break(());
        }
        self.signals += 1;
        let err = &mut session.io.err;
        match self.signals {
            1 => {
                self.progress.note(
                    err,
                    "cancelling; interrupt again to end its processes at once",
                );
                self.cancel(session.asked_by(), false);
            }
            2 => {
                self.progress.note(
                    err,
                    "ending its processes; interrupt again to exit without waiting",
                );
                self.cancel(session.asked_by(), true);
            }
            _ => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }

    fn is_hosted_here(&self) -> bool {
        self.control
            .status()
            .is_ok_and(|status| status.pid == std::process::id())
    }

    /// Asks from another thread, so that an engine that does not answer cannot keep anyone from leaving.
    fn cancel(&self, by: Option<String>, now: bool) {
        let (control, run, sender) = (Arc::clone(self.control), self.run, self.sender.clone());
        let asked = Builder::new().name("cancel".to_owned()).spawn(move || {
            let request = CancelRequest {
                now,
                by,
                ..CancelRequest::default()
            };
            let answer = control.cancel(&run.to_string(), &request).map(|_| ());
            drop(control);
            // The run may have ended in between.
            let _ = sender.send(Incoming::Cancelled(answer));
        });
        if let Err(error) = asked {
            let refused = Err(internal("thread_unavailable", &error));
            // A full channel means that there is much to show; the warning is one more line of it.
            let _ = self.sender.try_send(Incoming::Cancelled(refused));
        }
    }
}
