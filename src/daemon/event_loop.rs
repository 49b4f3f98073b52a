//! The daemon's own loop: signals, ticks, hints and answers, while the engine runs.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Interval, MissedTickBehavior, Sleep};

use super::access_control::AccessControl;
use super::engine_port::{HostSignal, Hosted};
use super::faults::internal;
use super::sensors::Sensors;
use super::server::{Listening, Server};
use super::socket::Endpoint;
use super::state::Notices;
use super::systemd::{Announcer, EXTEND_BY, EXTEND_EVERY, status_text};
use crate::engine::Heartbeat;
use crate::model::{Diagnostic, Kind};
use crate::protocol::{CancelRequest, Control, ReloadReport, Status};

/// How often definitions are looked through, whether or not anything hinted at a change.
const RESCAN_EVERY: Duration = Duration::from_secs(30);
/// How long after the last hint definitions are read again.
const QUIET_AFTER_HINT: Duration = Duration::from_millis(300);
/// How many hints may put the reading off.
const HINTS_AT_ONCE_MAX: u32 = 10;
/// How long the core loop may stand still: it turns at least every 30 s.
const TURN_MS_MAX: u64 = 45_000;
/// How long one commit to the store may take before it counts as hanging.
const COMMIT_MS_MAX: u64 = 60_000;
/// How long an engine may take to end once it has been drained.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// What is asked of the engine on the side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Matter {
    Reload,
    Rescan,
    Status,
    Hold,
}

/// What was asked of the engine on the side, with its answer.
enum Answer {
    Reloaded(Result<ReloadReport, Diagnostic>),
    Rescanned(Result<bool, Diagnostic>),
    Status(Box<Result<Status, Diagnostic>>),
    Held(Result<bool, Diagnostic>),
}

/// A question that is asked once at a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Question {
    #[default]
    Quiet,
    Asked,
    /// Wanted again before the answer came, which may not know of the latest change.
    AskedAgain,
}

impl Question {
    /// Whether it is to be asked now.
    fn ask(&mut self) -> bool {
        let now = *self == Question::Quiet;
        *self = if now {
            Question::Asked
        } else {
            Question::AskedAgain
        };
        now
    }

    /// Notes the answer; whether it was wanted again.
    fn answered(&mut self) -> bool {
        std::mem::take(self) == Question::AskedAgain
    }
}

/// The daemon's own loop. It never waits for the engine: questions are asked on the side.
pub(super) struct Daemon<'a> {
    engine: Arc<dyn Hosted>,
    announcer: Announcer,
    notices: Arc<Notices>,
    answers: JoinSet<Answer>,
    /// By [`Matter`].
    questions: [Question; 4],
    /// Set while the engine drains.
    draining: Option<JoinHandle<Result<(), Diagnostic>>>,
    /// Time since the last rescan.
    unscanned: Duration,
    /// The socket that is served.
    endpoint: &'a mut Endpoint,
    /// Where it is served.
    listening: Arc<Listening>,
    /// Who may connect to it.
    access: Arc<AccessControl>,
    /// Whether it was told that nobody can reach it.
    told_lost: bool,
    /// Whether it was told that the workspace's lock is lost and cannot be made anew.
    told_unheld: bool,
    /// What schedules wait for.
    sensors: Sensors,
}

impl<'a> Daemon<'a> {
    pub(super) fn new(
        engine: Arc<dyn Hosted>,
        announcer: Announcer,
        notices: Arc<Notices>,
        endpoint: &'a mut Endpoint,
        server: &Server,
    ) -> Daemon<'a> {
        Daemon {
            engine,
            announcer,
            notices,
            answers: JoinSet::new(),
            questions: Default::default(),
            draining: None,
            unscanned: Duration::ZERO,
            endpoint,
            listening: server.listening(),
            access: server.access(),
            told_lost: false,
            told_unheld: false,
            sensors: Sensors::default(),
        }
    }

    /// Tells the service manager that requests are answered.
    pub(super) fn ready(&self) {
        self.announcer.ready("ready");
    }

    /// Turns until the engine has ended.
    pub(super) async fn turn(
        &mut self,
        mut signals: mpsc::Receiver<HostSignal>,
        mut hinted: mpsc::Receiver<()>,
    ) {
        let period = self
            .announcer
            .watchdog()
            .map_or(RESCAN_EVERY, |watchdog| (watchdog / 2).min(RESCAN_EVERY))
            .max(Duration::from_millis(1));
        let mut tick = every(period);
        // The first tick is due at once and looks for nothing: the definitions have just been read.
        tick.tick().await;
        self.feed();
        self.ask(Matter::Status);
        self.watch();
        let mut extend = every(EXTEND_EVERY);
        let mut quiet: Option<Pin<Box<Sleep>>> = None;
        let (mut hints, mut listening) = (0, true);
        let notices = Arc::clone(&self.notices);
        loop {
            tokio::select! {
                asked = signals.recv(), if listening => match asked {
                    Some(HostSignal::Stop) => self.stop(),
                    Some(HostSignal::Reload) => self.reload(),
                    None => listening = false,
                },
                _ = tick.tick() => {
                    if self.engine.has_ended() {
                        return;
                    }
                    self.tick(period);
                }
                _ = extend.tick(), if self.draining.is_some() => self.announcer.extend(EXTEND_BY),
                Some(()) = hinted.recv() => if hints < HINTS_AT_ONCE_MAX {
                    hints += 1;
                    quiet = Some(Box::pin(tokio::time::sleep(QUIET_AFTER_HINT)));
                },
                () = until(&mut quiet) => {
                    (quiet, hints) = (None, 0);
                    self.ask(Matter::Rescan);
                }
                () = notices.changed.notified() => self.ask(Matter::Status),
                () = notices.reloaded.notified() => self.watch(),
                () = notices.ended.notified() => return,
                Some(answer) = self.answers.join_next(), if !self.answers.is_empty() => {
                    if self.receive(answer.ok()) {
                        return;
                    }
                }
                drained = until_drained(&mut self.draining) => {
                    if let Err(error) = drained {
                        tracing::error!(%error, "the engine was not drained in order");
                    }
                    return;
                }
            }
        }
    }

    /// Feeds the watchdog, where there is one, while the core loop lives.
    fn feed(&self) {
        let heartbeat = self.engine.heartbeat();
        if !lives(heartbeat) {
            tracing::error!(?heartbeat, "the core loop does not progress");
        } else if self.announcer.watchdog().is_some() {
            self.announcer.alive();
        }
    }

    /// Watches what the active schedules wait for.
    fn watch(&mut self) {
        self.sensors.set(self.engine.watched(), self.engine.hints());
    }

    fn tick(&mut self, period: Duration) {
        self.feed();
        self.unscanned += period;
        if self.unscanned >= RESCAN_EVERY {
            self.unscanned = Duration::ZERO;
            self.ask(Matter::Rescan);
            self.watch();
        }
        self.ask(Matter::Status);
        self.keep_socket();
        self.ask(Matter::Hold);
    }

    /// Binds a socket again whose file was removed; says once if it cannot be.
    fn keep_socket(&mut self) {
        if !self.endpoint.is_lost() {
            self.told_lost = false;
            return;
        }
        let socket = self.endpoint.path().unwrap_or(Path::new("")).to_path_buf();
        let why = match self.bind_again() {
            Ok(()) => {
                tracing::warn!(socket = %socket.display(), "the socket file was removed or replaced: it was bound again");
                return;
            }
            Err(why) => why,
        };
        if !std::mem::replace(&mut self.told_lost, true) {
            tracing::error!(
                socket = %socket.display(),
                why,
                "the socket file was removed or replaced: no command reaches this engine; end process {}",
                std::process::id()
            );
        }
    }

    fn bind_again(&mut self) -> Result<(), String> {
        if self.endpoint.is_passed {
            return Err("systemd made it: restart its socket unit".to_owned());
        }
        let listener = self
            .endpoint
            .bind_again()
            .map_err(|refused| refused.message)?;
        self.listening
            .replace(listener)
            .map_err(|error| error.to_string())?;
        self.access.restore_modes();
        Ok(())
    }

    /// Drains; asked again: ends what runs at once.
    pub(super) fn stop(&mut self) {
        let control = self.engine.control();
        if self.draining.is_some() {
            tracing::info!("second request to stop: active runs are ended at once");
            tokio::task::spawn_blocking(move || end_at_once(control.as_ref()));
            return;
        }
        tracing::info!("stopping: no new runs start, active runs may finish");
        self.announcer.stopping("draining");
        self.draining = Some(tokio::task::spawn_blocking(move || control.drain()));
    }

    /// A reload that somebody asked for.
    fn reload(&mut self) {
        self.announcer.reloading();
        self.ask(Matter::Reload);
        // Requests are answered from the former definitions meanwhile; that is no reason to be not ready.
        self.ready();
    }

    fn ask(&mut self, matter: Matter) {
        if !self.questions[matter as usize].ask() {
            return;
        }
        let engine = Arc::clone(&self.engine);
        self.answers.spawn_blocking(move || match matter {
            Matter::Reload => Answer::Reloaded(engine.control().reload()),
            Matter::Rescan => Answer::Rescanned(engine.rescan()),
            Matter::Status => Answer::Status(Box::new(engine.control().status())),
            Matter::Hold => Answer::Held(engine.keep_hold()),
        });
    }

    /// Says that the workspace's lock was removed, and once that it cannot be made anew.
    fn report_hold(&mut self, put_back: &Result<bool, Diagnostic>) {
        match put_back {
            Ok(false) => {}
            Ok(true) => tracing::warn!(
                "`.workerctl/lock` was removed or replaced, for example by `git clean -x`; it was created again"
            ),
            Err(_) if self.told_unheld => {}
            Err(error) => tracing::error!(
                %error,
                "`.workerctl/lock` was removed or replaced and cannot be created again: commands may not find this engine, process {}",
                std::process::id()
            ),
        }
        self.told_unheld = put_back.is_err();
    }

    /// Takes an answer; true when it says that the engine has ended.
    fn receive(&mut self, answer: Option<Answer>) -> bool {
        let Some(answer) = answer else {
            // A question panicked inside; which one is not known, so each may be asked again.
            self.questions = Default::default();
            tracing::error!("a request to the engine panicked");
            return false;
        };
        let (matter, refused) = match &answer {
            Answer::Reloaded(report) => (Matter::Reload, report.as_ref().err()),
            Answer::Rescanned(changed) => (Matter::Rescan, changed.as_ref().err()),
            Answer::Status(status) => (Matter::Status, status.as_ref().as_ref().err()),
            Answer::Held(_) => (Matter::Hold, None),
        };
        let ended = refused.is_some_and(|error| error.kind == Kind::Unreachable);
        match answer {
            Answer::Reloaded(report) => {
                report_reload(report);
                self.watch();
            }
            Answer::Rescanned(Ok(true)) => {
                tracing::info!("definitions have changed and were read again");
                self.watch();
            }
            Answer::Rescanned(Ok(false)) => {}
            Answer::Rescanned(Err(error)) => {
                tracing::warn!(%error, "definitions could not be reloaded; the previous ones remain in use");
            }
            Answer::Status(status) => match *status {
                Ok(status) => self.announcer.status(&status_text(&status)),
                Err(error) => tracing::warn!(%error, "the status of the engine cannot be read"),
            },
            Answer::Held(put_back) => self.report_hold(&put_back),
        }
        // The next tick looks at the lock again.
        if self.questions[matter as usize].answered() && matter != Matter::Hold {
            self.ask(matter);
        }
        ended
    }

    /// Ends: the server first lets requests under way finish, such as the one that drained the engine.
    pub(super) async fn end(self, server: Server) -> Result<(), Diagnostic> {
        self.announcer.stopping("ending");
        let Daemon {
            engine,
            mut answers,
            ..
        } = self;
        let ending = async move {
            // Who still asks the engine holds it.
            while answers.join_next().await.is_some() {}
            tokio::task::spawn_blocking(move || {
                server.stop();
                engine.join()
            })
            .await
        };
        match tokio::time::timeout(END_PATIENCE, ending).await {
            Ok(Ok(ended)) => {
                if ended.is_ok() {
                    tracing::info!("ended in order");
                }
                ended
            }
            Ok(Err(error)) => Err(internal(
                "engine_failed",
                "the engine failed while it ended",
                &error,
            )),
            Err(_) => Err(Diagnostic::new(
                Kind::Internal,
                "engine_hangs",
                format!("the engine did not end within {} s", END_PATIENCE.as_secs()),
            )),
        }
    }
}

/// Whether the core loop turns, or has a good reason not to.
fn lives(heartbeat: Heartbeat) -> bool {
    heartbeat.loop_lag_ms <= TURN_MS_MAX
        || heartbeat
            .committing_for_ms
            .is_some_and(|committing| committing < COMMIT_MS_MAX)
}

fn report_reload(report: Result<ReloadReport, Diagnostic>) {
    match report {
        Ok(report) => tracing::info!(
            workers = report.workers,
            skills = report.skills,
            problems = report.problems.len(),
            reloaded = report.reloaded,
            "definitions were read again"
        ),
        Err(error) => {
            tracing::warn!(%error, "definitions could not be reloaded; the previous ones remain in use");
        }
    }
}

/// Ends every run at once.
fn end_at_once(control: &dyn Control) {
    let request = CancelRequest {
        now: true,
        by: Some("a second request to stop the daemon".to_owned()),
        ..CancelRequest::default()
    };
    match control.status() {
        Ok(status) => {
            for run in status.active {
                if let Err(error) = control.cancel(&run.run.to_string(), &request) {
                    tracing::warn!(run = %run.run, %error, "the run could not be ended at once");
                }
            }
        }
        Err(error) => tracing::warn!(%error, "the active runs could not be listed"),
    }
}

async fn until(quiet: &mut Option<Pin<Box<Sleep>>>) {
    match quiet {
        Some(quiet) => quiet.as_mut().await,
        None => std::future::pending().await,
    }
}

async fn until_drained(
    draining: &mut Option<JoinHandle<Result<(), Diagnostic>>>,
) -> Result<(), Diagnostic> {
    match draining {
        Some(draining) => draining.await.unwrap_or_else(|error| {
            Err(internal("drain_failed", "draining failed inside", &error))
        }),
        None => std::future::pending().await,
    }
}

pub(super) fn every(period: Duration) -> Interval {
    let mut interval = tokio::time::interval(period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watchdog_is_fed_while_the_loop_turns_or_a_commit_is_young() {
        let table = [
            (0, None, true),
            (TURN_MS_MAX, None, true),
            (TURN_MS_MAX + 1, None, false),
            (50_000, Some(50_000), true),
            (61_000, Some(COMMIT_MS_MAX), false),
        ];
        for (loop_lag_ms, committing_for_ms, expected) in table {
            let heartbeat = Heartbeat {
                loop_lag_ms,
                committing_for_ms,
            };
            assert_eq!(lives(heartbeat), expected, "{heartbeat:?}");
        }
    }
}
