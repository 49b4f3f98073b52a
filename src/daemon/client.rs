//! The one interface to an engine for commands: over the socket where one answers, else hosted here.

mod web;

use std::io::Cursor;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::connect_options::ConnectOptions;
use super::exchange::{FOREIGN, Following, Line, Outgoing, Reply, open};
use super::paths;
use super::socket::canonical;
use super::sse::SseItem;
use super::wire::{
    CHANGED_HEADER, LINES_HEADER, NO_LINES, PATH_HEADER, PATHS_HEADER, SOURCE_HEADER, STARTING,
    VersionReply, starting,
};
use crate::engine::Host;
use crate::model::{Diagnostic, Kind, Problem, RunId};
use crate::protocol::{
    API_VERSION, ApproveRequest, BackfillQuery, BackfillSlot, CancelRequest, Changes, Control,
    DenyRequest, DiffQuery, Discarded, ForgetRequest, Forgot, Landed, LogsPage, LogsQuery,
    OutputFile, OutputSource, PauseRequest, Probe, ProbeRequest, ReloadReport, Rendered,
    ResolveRequest, ResumeRequest, RunDetail, RunSummary, RunsPage, RunsQuery, ScheduleView,
    SchedulesQuery, SignedRequest, SlotView, SlotsQuery, StatsLine, StatsQuery, Status,
    SubmitRequest, Submitted, TriggerRequest, WatchEvent, WorkerView,
};
use crate::protocol::{
    Calendar, CalendarQuery, ExplainQuery, ExplainedSchedule, NextQuery, NextSlots, SkillsPage,
    SkillsQuery, SlotsPage,
};

/// How long whatever listens may take to say who it is.
const INTRODUCTION_PATIENCE: Duration = Duration::from_secs(5);
/// How long an answer may take. Longer than the server's own limits, so that it can tell what is wrong.
const ANSWER_PATIENCE: Duration = Duration::from_mins(1);
/// How long a drain may take: it waits for what runs.
const DRAIN_PATIENCE: Duration = Duration::from_hours(1);
/// How long a stream may be silent; the server sends a comment every 15 s.
const SILENCE_PATIENCE: Duration = Duration::from_secs(45);
/// How often a stream that broke is taken up again without anything new in between.
const RESUMPTIONS_MAX: u32 = 6;

/// Code of the refusal where an engine serves another workspace.
pub(super) const OTHER_WORKSPACE: &str = "other_workspace";

/// Code of a watch whose engine is gone.
pub(super) const CONNECTION_LOST: &str = "connection_lost";

/// An engine behind a socket.
#[derive(Debug)]
pub struct HttpControl {
    line: Line,
    /// Whether the engine ends with the command that it is in.
    ends_soon: bool,
}

impl HttpControl {
    /// Asks whatever listens who it is, and accepts an engine of this API for this workspace only.
    pub(super) fn introduced(
        socket: &Path,
        options: &ConnectOptions,
    ) -> Result<HttpControl, Diagnostic> {
        let line = Line::new(socket, &options.workspace);
        let reply = line.send(Outgoing::get("/v1/version"), INTRODUCTION_PATIENCE)?;
        let mut control = HttpControl {
            line,
            ends_soon: false,
        };
        let version: VersionReply = match serde_json::from_slice(&reply.body) {
            Ok(version) if reply.status.is_success() => version,
            _ => return Err(control.misunderstood(&reply)),
        };
        if version.name != "workerctl" {
            return Err(control.foreign());
        }
        let served = Path::new(&version.workspace);
        if options.socket.is_none() && served != canonical(&options.workspace) {
            return Err(Diagnostic::new(
                Kind::Conflict,
                OTHER_WORKSPACE,
                format!(
                    "the engine at `{}` serves `{}`, not `{}`",
                    socket.display(),
                    served.display(),
                    options.workspace.display()
                ),
            )
            .hint("name the workspace with `-C`, or this engine with `--socket`"));
        }
        if version.api != API_VERSION {
            return Err(Diagnostic::new(
                Kind::Conflict,
                "version_mismatch",
                format!(
                    "the engine is workerctl {} with API {}; this command is {} with API {API_VERSION}",
                    version.version,
                    version.api,
                    env!("CARGO_PKG_VERSION")
                ),
            )
            .hint("restart the daemon, so that both are of one version"));
        }
        control.ends_soon = version.host == Host::InProcess.name();
        if version.ready {
            Ok(control)
        } else {
            Err(starting())
        }
    }

    /// Whether the engine ends with the command that it is in.
    pub(super) const fn ends_soon(&self) -> bool {
        self.ends_soon
    }

    /// The socket at which it answers.
    pub fn socket(&self) -> &Path {
        self.line.socket()
    }

    fn foreign(&self) -> Diagnostic {
        self.line
            .diagnostic(FOREIGN, "is not a workerctl engine")
            .hint("choose the engine's socket with `--socket`")
    }

    /// What an answer that is no success says.
    fn misunderstood(&self, reply: &Reply) -> Diagnostic {
        if reply.status.is_success() {
            return self.foreign();
        }
        match serde_json::from_slice::<Diagnostic>(&reply.body) {
            Ok(diagnostic) => diagnostic,
            Err(_) => self.foreign(),
        }
    }

    fn of_another_form(&self, what: &str, error: &serde_json::Error) -> Diagnostic {
        self.line
            .unreachable("bad_answer", what, error)
            .hint("restart the daemon, so that both are of one version")
    }

    fn understood<T: DeserializeOwned>(&self, reply: &Reply) -> Result<T, Diagnostic> {
        if !reply.status.is_success() {
            return Err(self.misunderstood(reply));
        }
        serde_json::from_slice(&reply.body)
            .map_err(|error| self.of_another_form("sent a response in an unknown format", &error))
    }

    fn ask<T: DeserializeOwned>(&self, path: String) -> Result<T, Diagnostic> {
        let reply = self.line.send(Outgoing::get(path), ANSWER_PATIENCE)?;
        self.understood(&reply)
    }

    /// An answer that is no refusal.
    fn get(&self, path: String) -> Result<Reply, Diagnostic> {
        let reply = self.line.send(Outgoing::get(path), ANSWER_PATIENCE)?;
        if reply.status.is_success() {
            return Ok(reply);
        }
        Err(self.misunderstood(&reply))
    }

    fn post(
        &self,
        path: &str,
        body: &impl Serialize,
        patience: Duration,
    ) -> Result<Reply, Diagnostic> {
        self.line.send(Outgoing::post(path, body)?, patience)
    }

    /// Asks for a change. Where no answer arrives it may have been made or not.
    fn change<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Diagnostic> {
        let reply = self.post(path, body, ANSWER_PATIENCE).map_err(open)?;
        self.understood(&reply)
    }

    /// Reads one stream of a run to its end or break.
    fn follow(
        &self,
        following: &mut Following,
        last_id: &mut Option<String>,
        callback: &mut dyn FnMut(WatchEvent) -> ControlFlow<()>,
    ) -> Result<Stream, Diagnostic> {
        let mut stream = Stream::Broken { told: false };
        while let Some(told) = following.next(SILENCE_PATIENCE)? {
            let (name, id, data) = match told {
                SseItem::Quiet => {
                    if callback(WatchEvent::Lagged { lost: 0 }).is_break() {
                        return Ok(Stream::Ended);
                    }
                    continue;
                }
                SseItem::Event { name, id, data } => (name, id, data),
            };
            let unreadable =
                |error| self.of_another_form("sent an event in an unknown format", &error);
            match name.as_str() {
                "line" | "partial" | "changed" | "lagged" => {
                    let event = serde_json::from_str(&data).map_err(unreadable)?;
                    *last_id = id.or(last_id.take());
                    stream = Stream::Broken { told: true };
                    if callback(event).is_break() {
                        return Ok(Stream::Ended);
                    }
                }
                "end" => return Ok(Stream::Ended),
                "error" => return Err(serde_json::from_str(&data).map_err(unreadable)?),
                // A later version may tell more.
                _ => {}
            }
        }
        Ok(stream)
    }
}

/// How a stream ended.
enum Stream {
    /// There is nothing more to tell.
    Ended,
    /// The connection broke, before or after anything was told on it.
    Broken { told: bool },
}

impl Control for HttpControl {
    fn submit(&self, request: &SubmitRequest) -> Result<Submitted, Diagnostic> {
        self.change("/v1/runs", request)
    }

    fn render(&self, request: &SubmitRequest) -> Result<Rendered, Diagnostic> {
        let reply = self.post("/v1/render", request, ANSWER_PATIENCE)?;
        self.understood(&reply)
    }

    fn runs_page(&self, query: &RunsQuery) -> Result<RunsPage, Diagnostic> {
        let path = paths::with_query("/v1/runs", query);
        let reply = self.line.send(Outgoing::get(path), ANSWER_PATIENCE)?;
        Ok(RunsPage {
            next: reply.next("before").and_then(|run| run.parse().ok()),
            runs: self.understood(&reply)?,
        })
    }

    fn schedules(&self, query: &SchedulesQuery) -> Result<Vec<ScheduleView>, Diagnostic> {
        self.ask(paths::with_query("/v1/schedules", query))
    }

    fn slots_page(&self, query: &SlotsQuery) -> Result<SlotsPage, Diagnostic> {
        let path = paths::with_query("/v1/slots", query);
        let reply = self.line.send(Outgoing::get(path), ANSWER_PATIENCE)?;
        Ok(SlotsPage {
            next: reply.next("before"),
            slots: self.understood(&reply)?,
        })
    }

    fn calendar(&self, query: &CalendarQuery) -> Result<Calendar, Diagnostic> {
        self.ask(paths::with_query("/v1/schedules/calendar", query))
    }

    fn next_slots(&self, query: &NextQuery) -> Result<NextSlots, Diagnostic> {
        self.ask(paths::with_query("/v1/schedules/next", query))
    }

    fn explain(&self, query: &ExplainQuery) -> Result<ExplainedSchedule, Diagnostic> {
        self.ask(paths::with_query("/v1/schedules/explain", query))
    }

    fn stats(&self, query: &StatsQuery) -> Result<Vec<StatsLine>, Diagnostic> {
        self.ask(paths::with_query("/v1/stats", query))
    }

    fn forget(&self, request: &ForgetRequest) -> Result<Forgot, Diagnostic> {
        self.change("/v1/forget", request)
    }

    fn pause(&self, request: &PauseRequest) -> Result<ScheduleView, Diagnostic> {
        self.change("/v1/schedules/pause", request)
    }

    fn resume(&self, request: &ResumeRequest) -> Result<ScheduleView, Diagnostic> {
        self.change("/v1/schedules/resume", request)
    }

    fn trigger(&self, request: &TriggerRequest) -> Result<SlotView, Diagnostic> {
        self.change("/v1/schedules/trigger", request)
    }

    fn backfill(&self, query: &BackfillQuery) -> Result<Vec<BackfillSlot>, Diagnostic> {
        self.ask(paths::with_query("/v1/schedules/backfill", query))
    }

    fn run(&self, run: &str) -> Result<RunDetail, Diagnostic> {
        self.ask(paths::of_run(run, "")?)
    }

    fn cancel(&self, run: &str, request: &CancelRequest) -> Result<RunSummary, Diagnostic> {
        self.change(&paths::of_run(run, "/cancel")?, request)
    }

    fn retry(&self, run: &str, request: &SignedRequest) -> Result<Submitted, Diagnostic> {
        self.change(&paths::of_run(run, "/retry")?, request)
    }

    fn approve(&self, run: &str, request: &ApproveRequest) -> Result<RunSummary, Diagnostic> {
        self.change(&paths::of_run(run, "/approve")?, request)
    }

    fn deny(&self, run: &str, request: &DenyRequest) -> Result<RunSummary, Diagnostic> {
        self.change(&paths::of_run(run, "/deny")?, request)
    }

    fn resolve(&self, run: &str, request: &ResolveRequest) -> Result<RunSummary, Diagnostic> {
        self.change(&paths::of_run(run, "/resolve")?, request)
    }

    fn land(&self, run: &str, request: &SignedRequest) -> Result<Landed, Diagnostic> {
        self.change(&paths::of_run(run, "/land")?, request)
    }

    fn discard(&self, run: &str, request: &SignedRequest) -> Result<Discarded, Diagnostic> {
        self.change(&paths::of_run(run, "/discard")?, request)
    }

    fn diff(&self, run: &str, query: &DiffQuery) -> Result<String, Diagnostic> {
        let path = paths::with_query(&paths::of_run(run, "/diff")?, query);
        let reply = self.get(path)?;
        String::from_utf8(reply.body.to_vec()).map_err(|error| {
            self.line
                .unreachable("bad_answer", "gave a patch that is no text", &error)
        })
    }

    fn changes(&self, run: &str) -> Result<Changes, Diagnostic> {
        let reply = self.get(paths::of_run(run, "/changes")?)?;
        let paths: Vec<_> = self.understood(&reply)?;
        let total = reply.number(&PATHS_HEADER).unwrap_or(paths.len() as u64);
        Ok(Changes { paths, total })
    }

    fn output(&self, run: &str, name: &str) -> Result<OutputFile, Diagnostic> {
        let rest = format!("/outputs/{}", paths::encoded(name));
        let reply = self.get(paths::of_run(run, &rest)?)?;
        let changed = reply.text(&CHANGED_HEADER).map(|changed| changed == "true");
        let source = match reply.text(&SOURCE_HEADER) {
            Some("held") => OutputSource::Held,
            Some(other) => match other.strip_prefix("commit ") {
                Some(oid) => OutputSource::Commit(oid.to_owned()),
                None => OutputSource::Destination { changed },
            },
            None => OutputSource::Destination { changed },
        };
        Ok(OutputFile {
            path: paths::decoded(reply.text(&PATH_HEADER).unwrap_or(name)),
            source,
            bytes: reply.body.len() as u64,
            content: Box::new(Cursor::new(reply.body)),
        })
    }

    fn thread(&self, run: &str) -> Result<serde_json::Value, Diagnostic> {
        self.ask(paths::of_run(run, "/thread")?)
    }

    fn logs_page(&self, run: &str, query: &LogsQuery) -> Result<LogsPage, Diagnostic> {
        let path = paths::with_query(&paths::of_run(run, "/logs")?, query);
        let reply = self.get(path)?;
        Ok(LogsPage {
            lines: self.understood(&reply)?,
            total: reply.number(&LINES_HEADER).unwrap_or_default(),
            next: reply.next("from").and_then(|line| line.parse().ok()),
        })
    }

    fn watch(
        &self,
        run: RunId,
        callback: &mut dyn FnMut(WatchEvent) -> ControlFlow<()>,
    ) -> Result<(), Diagnostic> {
        self.watch_from(run, None, callback)
    }

    fn watch_changes(
        &self,
        run: RunId,
        callback: &mut dyn FnMut(WatchEvent) -> ControlFlow<()>,
    ) -> Result<(), Diagnostic> {
        self.watch_from(run, Some(NO_LINES.to_string()), callback)
    }

    fn status(&self) -> Result<Status, Diagnostic> {
        self.ask("/v1/status".to_owned())
    }

    fn probe(&self, request: &ProbeRequest) -> Result<Vec<Probe>, Diagnostic> {
        self.change("/v1/probe", request)
    }

    fn workers(&self) -> Result<Vec<WorkerView>, Diagnostic> {
        self.ask("/v1/workers".to_owned())
    }

    fn skills_page(&self, query: &SkillsQuery) -> Result<SkillsPage, Diagnostic> {
        let path = paths::with_query("/v1/skills", query);
        let reply = self.line.send(Outgoing::get(path), ANSWER_PATIENCE)?;
        Ok(SkillsPage {
            next: reply.next("after"),
            skills: self.understood(&reply)?,
        })
    }

    fn problems(&self) -> Result<Vec<Problem>, Diagnostic> {
        self.ask("/v1/problems".to_owned())
    }

    fn reload(&self) -> Result<ReloadReport, Diagnostic> {
        self.change("/v1/reload", &serde_json::json!({}))
    }

    fn drain(&self) -> Result<(), Diagnostic> {
        let reply = self.post("/v1/drain", &serde_json::json!({}), DRAIN_PATIENCE)?;
        if reply.status.is_success() {
            Ok(())
        } else {
            Err(self.misunderstood(&reply))
        }
    }
}

impl HttpControl {
    /// Watches a run from an event on, or from the first line.
    fn watch_from(
        &self,
        run: RunId,
        mut last_id: Option<String>,
        callback: &mut dyn FnMut(WatchEvent) -> ControlFlow<()>,
    ) -> Result<(), Diagnostic> {
        let (mut begun, mut broken) = (false, 0_u32);
        loop {
            let mut request = Outgoing::get(paths::of_run(&run.to_string(), "/events")?);
            request.last_event_id.clone_from(&last_id);
            let lost = match self.line.follow(request, ANSWER_PATIENCE) {
                Ok(Ok(mut following)) => {
                    begun = true;
                    match self.follow(&mut following, &mut last_id, callback)? {
                        Stream::Ended => return Ok(()),
                        Stream::Broken { told } => {
                            broken = if told { 0 } else { broken };
                            None
                        }
                    }
                }
                Ok(Err(reply)) => match self.misunderstood(&reply) {
                    starting if starting.code == STARTING => Some(starting),
                    refused => return Err(refused),
                },
                Err(error) if begun && error.kind == Kind::Unreachable => Some(error),
                Err(error) => return Err(error),
            };
            // A daemon that is restarted takes the run up again; so do we, for a while.
            if broken == RESUMPTIONS_MAX {
                return Err(lost.unwrap_or_else(|| self.cut_off(run)));
            }
            std::thread::sleep(Duration::from_millis(100 << broken));
            broken += 1;
        }
    }

    fn cut_off(&self, run: RunId) -> Diagnostic {
        Diagnostic::new(
            Kind::Unreachable,
            CONNECTION_LOST,
            format!(
                "the engine at `{}` no longer reports on run {}",
                self.socket().display(),
                run.short()
            ),
        )
        .hint(
            "the run is not lost: `workerctl show` and `workerctl wait` answer once an engine runs",
        )
    }
}
