//! Watches over one command from its start until no process of it is left.

mod ending;

use std::cell::RefCell;
use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::command::{
    Command, EndCause, ExitStatus, Finished, Limits, OutputSink, Spawned, Stream,
};
use super::error::SpawnError;
use super::input::Input;
use super::output::{Output, READ_BYTES};
use super::registry;
use super::signal;
use super::spawn::{self, Child, Pipes};
use super::stop::{StopHandle, StopKind};
use super::usage::{Urgency, Usage};

/// Longest wait after KILL; only a process stuck in the kernel, or of another user, survives that.
const KILLED_WAIT: Duration = Duration::from_secs(5);

/// Longest wait after KILL for processes that would end if they got a processor: a machine can be that busy.
const RUNNABLE_WAIT: Duration = Duration::from_mins(1);

/// How soon processes are looked at again that cannot be waited for.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

thread_local! {
    /// What was read last; kept, for a thread that runs one command runs many.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Runs `command` until no process of it is left, and tells `sink` what it writes.
///
/// Blocks the calling thread; many threads may do so at once. The first process leads a process
/// group of its own, has the three standard descriptors, the given environment, and no signal
/// blocked. At the time limit, or when `stop` asks for it, everything that stems from the command
/// gets TERM and, after the grace period, KILL; what it leaves behind after its own exit likewise,
/// be it in another group or session.
///
/// # Errors
/// See [`SpawnError`]; an exit code other than 0, a signal, a time-out are no errors.
pub fn run(
    command: &Command,
    stop: &StopHandle,
    sink: &mut dyn OutputSink,
) -> Result<Finished, SpawnError> {
    if let Some(kind) = stop.requested() {
        return Err(SpawnError::StoppedBeforeStart { kind });
    }
    // Before anything starts: a process that loses its parents earlier would go to `init`, and nobody would find it.
    registry::become_subreaper()
        .map_err(|source| SpawnError::of_step("adopt orphaned processes", source))?;
    // Before the start too, so that a command never runs that cannot be stopped for want of a descriptor.
    stop.prepare()
        .map_err(|source| SpawnError::of_step("make a descriptor to stop it by", source))?;
    let started_at = Instant::now();
    let (child, pipes) = spawn::start(command)?;
    let mut watch = Watch::new(child, pipes, command, stop, started_at);
    sink.spawned(&Spawned {
        pid: watch.group(),
        tag: watch.child.tag,
        owner: command.owner.clone(),
    });
    BUFFER.with_borrow_mut(|buffer| {
        buffer.resize(READ_BYTES, 0);
        while watch.advance() {
            watch
                .wait(buffer, sink)
                .map_err(|source| SpawnError::of_step("watch the command", source))?;
            watch.has_enough = watch.has_enough || sink.has_enough();
        }
        Ok::<(), SpawnError>(())
    })?;
    watch.stdout.close(sink);
    watch.stderr.close(sink);
    watch.finish()
}

/// Where a command is on its way to its end.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Its first process runs and nobody wants it to end.
    Running,
    /// The first process has exited by itself; its output may still be on the way.
    Draining { until: Instant },
    /// Everything has got TERM.
    Terminating { until: Instant },
    /// Everything has got KILL.
    Killing { since: Instant, until: Instant },
    /// Nothing is left, or what is left cannot be ended.
    Over,
}

struct Watch<'a> {
    child: Child,
    limits: &'a Limits,
    stop: &'a StopHandle,
    stop_seen: Option<StopKind>,
    started_at: Instant,
    deadline: Option<Instant>,
    /// When it has been silent for too long.
    silent_at: Option<Instant>,
    /// Whether its sink wants no more.
    has_enough: bool,
    phase: Phase,
    ended: EndCause,
    stdout: Output,
    stderr: Output,
    stdin: Input<'a>,
    /// When the first process was seen to have exited.
    exited_at: Option<Instant>,
    reaped: bool,
    /// Every other process of the command that was ever seen.
    known: HashSet<(u32, u64)>,
    /// Processes that were to be ended after the first one had exited.
    outlived: HashSet<(u32, u64)>,
    /// One of these, whose end is waited for. One is enough: all have to go, and one descriptor
    /// instead of one for each keeps a wide tree from using up ours.
    awaited: Option<OwnedFd>,
    left: Vec<u32>,
    usage: Usage,
}

impl<'a> Watch<'a> {
    fn new(
        child: Child,
        pipes: Pipes,
        command: &'a Command,
        stop: &'a StopHandle,
        started_at: Instant,
    ) -> Self {
        let limits = &command.limits;
        Self {
            stdout: Output::new(Stream::Stdout, pipes.stdout, limits, pipes.stdout_file),
            stderr: Output::new(Stream::Stderr, pipes.stderr, limits, None),
            stdin: Input::new(pipes.stdin, &command.stdin),
            child,
            limits,
            stop,
            stop_seen: None,
            started_at,
            deadline: limits
                .timeout
                .and_then(|timeout| started_at.checked_add(timeout)),
            has_enough: false,
            silent_at: limits.silence.map(|silence| after(started_at, silence)),
            phase: Phase::Running,
            ended: EndCause::ByItself,
            exited_at: None,
            reaped: false,
            known: HashSet::new(),
            outlived: HashSet::new(),
            awaited: None,
            left: Vec::new(),
            usage: Usage::new(started_at),
        }
    }

    /// Does what is due; `false` when nothing is left to wait for.
    fn advance(&mut self) -> bool {
        let now = Instant::now();
        self.stop_seen = self.stop.requested().max(self.stop_seen);
        let stop_now = self.stop_seen == Some(StopKind::Now);
        self.count(now);
        match self.phase {
            Phase::Running => self.advance_running(now),
            Phase::Draining { until } => {
                // Who was left behind may finish in this time, its last words or its files.
                if stop_now {
                    self.kill(now);
                } else if self.is_drained() && (registry::nothing_left() || self.is_all_gone()) {
                    self.phase = Phase::Over;
                } else if now >= until {
                    self.awaited = None;
                    if self.rest(|_| {}).is_empty() {
                        self.phase = Phase::Over;
                    } else {
                        self.terminate(now);
                    }
                }
            }
            Phase::Terminating { until } => {
                if stop_now || now >= until {
                    self.kill(now);
                } else if self.is_all_gone() {
                    self.phase = Phase::Over;
                }
            }
            Phase::Killing { until, since } => {
                if self.is_all_gone() {
                    self.phase = Phase::Over;
                } else if now >= until {
                    let rest = self.rest(|_| {});
                    if now < after(since, RUNNABLE_WAIT)
                        && rest.iter().any(signal::waits_for_processor)
                    {
                        let until = after(now, KILLED_WAIT);
                        self.phase = Phase::Killing { until, since };
                    } else {
                        self.left = rest.iter().map(|process| process.pid).collect();
                        self.phase = Phase::Over;
                    }
                }
            }
            Phase::Over => {}
        }
        if let EndCause::Stopped(kind) = &mut self.ended {
            *kind = self.stop_seen.map_or(*kind, |seen| seen.max(*kind));
        }
        !matches!(self.phase, Phase::Over)
    }

    fn advance_running(&mut self, now: Instant) {
        if self.exited_at.is_some() {
            // The pipes are often at their end already; then there is nothing to wait for.
            self.phase = if self.is_drained() && registry::nothing_left() {
                Phase::Over
            } else {
                Phase::Draining {
                    until: after(now, self.limits.drain),
                }
            };
        } else if let Some(kind) = self.stop_seen {
            self.ended = EndCause::Stopped(kind);
            match kind {
                StopKind::Graceful => self.terminate(now),
                StopKind::Now => self.kill(now),
            }
        } else if self.deadline.is_some_and(|deadline| now >= deadline) {
            self.ended = EndCause::TimedOut;
            self.terminate(now);
        } else if self.has_enough {
            self.ended = EndCause::Enough;
            self.terminate(now);
        } else if self.silent_at.is_some_and(|at| now >= at) {
            self.ended = EndCause::Silent;
            self.terminate(now);
        }
    }

    /// Counts what the command uses when that is due, and ends it at once where that is too much: what grows is not
    /// given time to end by itself.
    fn count(&mut self, now: Instant) {
        if self.next_count().is_none_or(|at| now < at) {
            return;
        }
        if self.usage.is_urgent(now) {
            self.child.urgency.get_or_insert_with(Urgency::raise);
        } else {
            self.child.urgency = None;
        }
        let limits = &self.limits.resources;
        if let Some(reached) = self.usage.count(&self.child.registration, limits) {
            if self.ended == EndCause::ByItself {
                self.ended = reached;
            }
            self.kill(now);
        }
    }

    /// When the command is to be counted; what is being killed is not.
    fn next_count(&self) -> Option<Instant> {
        let is_ending = matches!(self.phase, Phase::Killing { .. } | Phase::Over);
        (!is_ending).then(|| self.usage.next())
    }

    fn is_drained(&self) -> bool {
        self.stdout.pipe().is_none() && self.stderr.pipe().is_none()
    }

    /// When `advance` has to be called again even if nothing happens.
    fn wakes_at(&self) -> Option<Instant> {
        let due = match self.phase {
            Phase::Running => self.deadline.into_iter().chain(self.silent_at).min(),
            Phase::Draining { until }
            | Phase::Terminating { until }
            | Phase::Killing { until, .. } => {
                // Without a descriptor to wait on, because none was to be had or the process had
                // just gone, only looking again helps.
                let looking = !matches!(self.phase, Phase::Draining { .. }) || self.is_drained();
                let blind = looking && self.exited_at.is_some() && self.awaited.is_none();
                Some(if blind {
                    until.min(Instant::now() + LOOK_AGAIN)
                } else {
                    until
                })
            }
            Phase::Over => None,
        };
        due.into_iter().chain(self.next_count()).min()
    }

    /// Waits until something happens or is due, and moves bytes in all three streams.
    fn wait(&mut self, buffer: &mut [u8], sink: &mut dyn OutputSink) -> io::Result<()> {
        let timeout = self.wakes_at().map(|at| {
            let left = at.saturating_duration_since(Instant::now());
            Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(left.subsec_nanos()),
            }
        });
        let exit = self.exited_at.is_none().then(|| self.child.pidfd.as_fd());
        let sources = [
            (self.stdout.pipe(), PollFlags::IN),
            (self.stderr.pipe(), PollFlags::IN),
            (self.stdin.pipe.as_ref().map(AsFd::as_fd), PollFlags::OUT),
            (exit, PollFlags::IN),
            (self.stop.wakes(self.stop_seen), PollFlags::IN),
            (self.awaited.as_ref().map(AsFd::as_fd), PollFlags::IN),
        ];
        let mut polled: Vec<PollFd<'_>> = Vec::with_capacity(sources.len());
        let mut place = [None; 6];
        for (index, (fd, flags)) in sources.into_iter().enumerate() {
            if let Some(fd) = fd {
                place[index] = Some(polled.len());
                polled.push(PollFd::from_borrowed_fd(fd, flags));
            }
        }
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let ready = place.map(|at| at.is_some_and(|at| !polled[at].revents().is_empty()));
        drop(polled);
        let [stdout, stderr, stdin, exited, _stopped, awaited] = ready;
        if (stdout || stderr)
            && let Some(silence) = self.limits.silence
        {
            self.silent_at = Some(after(Instant::now(), silence));
        }
        if stdout {
            self.stdout.read(buffer, sink)?;
        }
        if stderr {
            self.stderr.read(buffer, sink)?;
        }
        if stdin {
            self.stdin.write();
        }
        if exited {
            self.exited_at = Some(Instant::now());
            self.child.registration.first_process_exited();
        }
        if awaited {
            self.awaited = None;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Finished, SpawnError> {
        let status = self.reap()?;
        if !self.left.is_empty() {
            let pids = std::mem::take(&mut self.left);
            return Err(SpawnError::Remain { pids });
        }
        let exited_at = self.exited_at.unwrap_or_else(Instant::now);
        let survivors = self.outlived.len();
        Ok(Finished {
            status,
            ended: self.ended,
            duration: exited_at.saturating_duration_since(self.started_at),
            stdout_bytes: self.stdout.bytes,
            stderr_bytes: self.stderr.bytes,
            dropped_bytes: self.stdout.dropped() + self.stderr.dropped(),
            survivors_ended: u32::try_from(survivors).unwrap_or(u32::MAX),
            stdout_file_error: self.stdout.take_copy_error(),
        })
    }

    /// The exit status. Whoever traces the command, such as a debugger of the engine, is told of its end first.
    fn awaited_status(&self) -> io::Result<Option<&std::process::Output>> {
        let patience = self.exited_at.map_or(Duration::ZERO, |_| KILLED_WAIT);
        let until = after(Instant::now(), patience);
        loop {
            match self.child.handle.try_wait()? {
                None if Instant::now() < until => std::thread::sleep(LOOK_AGAIN),
                waited => return Ok(waited),
            }
        }
    }

    /// Takes the exit status. This frees the process id, so it comes after the last signal.
    fn reap(&mut self) -> Result<ExitStatus, SpawnError> {
        let step = "wait for the command";
        self.reaped = true;
        let waited = self.awaited_status();
        let output = waited.map_err(|source| SpawnError::Io { step, source })?;
        let Some(output) = output else {
            let pids = vec![self.group()];
            return Err(SpawnError::Remain { pids });
        };
        match (output.status.code(), output.status.signal()) {
            (Some(code), _) => Ok(ExitStatus::Exited(code)),
            (None, Some(signal)) => Ok(ExitStatus::Signalled(signal)),
            (None, None) => Err(SpawnError::Io {
                step,
                source: io::Error::other("no exit status"),
            }),
        }
    }
}

/// Takes what is still read while a command is ended whose sink has failed.
struct Nobody;

impl OutputSink for Nobody {
    fn line(&mut self, _: Stream, _: &[u8], _: bool) {}
}

/// An error or a panic of the sink must not leave anything running.
impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if self.reaped {
            return;
        }
        self.kill(Instant::now());
        let mut buffer = vec![0; READ_BYTES];
        while self.advance() && self.wait(&mut buffer, &mut Nobody).is_ok() {}
        let _ = self.reap();
    }
}

/// `duration` after `now`, or as good as for ever.
fn after(now: Instant, duration: Duration) -> Instant {
    const AS_GOOD_AS_EVER: Duration = Duration::from_hours(30 * 365 * 24);
    now.checked_add(duration).unwrap_or(now + AS_GOOD_AS_EVER)
}
