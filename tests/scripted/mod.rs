//! An engine's double: answers from a script, remembers what it was asked, and hangs where it is told to.

mod shown;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use workerctl::model::schedule::{SlotRow, SlotStatus};
use workerctl::model::{Diagnostic, Kind, Problem, RunId, Timestamp};
use workerctl::protocol::{
    ApproveRequest, BackfillQuery, BackfillSlot, CancelRequest, ChangeStatus, Changes, Control,
    DenyRequest, DiffQuery, Discarded, Landed, LogLine, LogStream, LogsPage, LogsQuery, OutputFile,
    OutputSource, PathChange, PauseRequest, Probe, ProbeRequest, ReloadReport, Rendered,
    ResolveRequest, ResumeRequest, RunDetail, RunSummary, RunsPage, RunsQuery, ScheduleView,
    SchedulesQuery, SignedRequest, SlotView, SlotsQuery, Status, SubmitRequest, Submitted,
    TriggerRequest, WatchEvent, WorkerView,
};
use workerctl::protocol::{
    Calendar, CalendarQuery, ExplainQuery, ExplainedSchedule, NextQuery, NextSlots, SkillsPage,
    SkillsQuery, SlotsPage,
};
use workerctl::protocol::{ForgetRequest, Forgot, StatsLine, StatsQuery};

/// Something that can be held shut.
#[derive(Default)]
pub(crate) struct Gate {
    shut: Mutex<bool>,
    turned: Condvar,
}

impl Gate {
    pub(crate) fn shut(&self) {
        *self.shut.lock().expect("a lock") = true;
    }

    pub(crate) fn open(&self) {
        *self.shut.lock().expect("a lock") = false;
        self.turned.notify_all();
    }

    fn pass(&self) {
        let mut shut = self.shut.lock().expect("a lock");
        while *shut {
            shut = self.turned.wait(shut).expect("a lock");
        }
    }
}

/// The double.
pub(crate) struct Scripted {
    pub(crate) run: RunId,
    pub(crate) lines: Mutex<Vec<LogLine>>,
    pub(crate) submitted: Mutex<Vec<SubmitRequest>>,
    pub(crate) queries: Mutex<Vec<RunsQuery>>,
    pub(crate) cancelled: Mutex<Vec<CancelRequest>>,
    /// Held before `diff` answers.
    pub(crate) diff: Gate,
    /// Held before a watched run ends.
    pub(crate) end: Gate,
    /// Held before `drain` answers.
    pub(crate) drain: Gate,
    /// Who has approved, denied, resolved, retried, landed or discarded.
    pub(crate) answered_by: Mutex<Vec<String>>,
    pub(crate) reloads: AtomicU32,
    pub(crate) rescans: AtomicU32,
    pub(crate) drains: AtomicU32,
    pub(crate) watching: AtomicU32,
    pub(crate) ended: Mutex<bool>,
}

pub(crate) fn run_id(random: u128) -> RunId {
    RunId::following(None, Timestamp::from_millis(1_795_000_000_000), random)
}

impl Scripted {
    pub(crate) fn new() -> Arc<Scripted> {
        Arc::new(Scripted {
            run: run_id(7),
            lines: Mutex::new((0..3).map(line).collect()),
            submitted: Mutex::default(),
            queries: Mutex::default(),
            cancelled: Mutex::default(),
            diff: Gate::default(),
            end: Gate::default(),
            drain: Gate::default(),
            answered_by: Mutex::default(),
            reloads: AtomicU32::new(0),
            rescans: AtomicU32::new(0),
            drains: AtomicU32::new(0),
            watching: AtomicU32::new(0),
            ended: Mutex::new(false),
        })
    }

    fn found(&self, fragment: &str) -> Result<RunId, Diagnostic> {
        if self.run.matches(fragment) {
            Ok(self.run)
        } else {
            Err(Diagnostic::new(
                Kind::NotFound,
                "no_such_run",
                format!("no run `{fragment}`"),
            ))
        }
    }

    fn alive(&self) -> Result<(), Diagnostic> {
        if *self.ended.lock().expect("a lock") {
            Err(Diagnostic::new(
                Kind::Unreachable,
                "engine_ended",
                "the engine has ended",
            ))
        } else {
            Ok(())
        }
    }

    pub(crate) fn summary(&self) -> RunSummary {
        shown::summary(self.run)
    }

    fn answered(&self, by: Option<&String>) {
        let by = by.cloned().unwrap_or_default();
        self.answered_by.lock().expect("a lock").push(by);
    }
}

pub(crate) fn line(number: u64) -> LogLine {
    LogLine {
        line: number,
        at: Timestamp::from_millis(1_795_000_000_000),
        attempt: 1,
        stream: LogStream::Stdout,
        text: format!("line {number}\n\nevent: end\r\u{2028}\u{1b}[2J"),
        continued: false,
        carriage_returns: 0,
    }
}

impl Control for Scripted {
    fn stats(&self, _: &StatsQuery) -> Result<Vec<StatsLine>, Diagnostic> {
        self.alive()?;
        Ok(Vec::new())
    }

    fn forget(&self, _: &ForgetRequest) -> Result<Forgot, Diagnostic> {
        self.alive()?;
        Ok(Forgot::default())
    }

    fn submit(&self, request: &SubmitRequest) -> Result<Submitted, Diagnostic> {
        self.alive()?;
        let mut submitted = self.submitted.lock().expect("a lock");
        let existing =
            request.key.is_some() && submitted.iter().any(|known| known.key == request.key);
        match request.skill.as_str() {
            "full" => {
                return Err(Diagnostic::new(
                    Kind::Blocked,
                    "queue_full",
                    "the queue is full",
                ));
            }
            "panic" => panic!("a request that fails inside"),
            _ => submitted.push(request.clone()),
        }
        Ok(Submitted {
            run: self.run,
            thread: self.summary().thread,
            existing,
        })
    }

    fn render(&self, request: &SubmitRequest) -> Result<Rendered, Diagnostic> {
        Ok(Rendered {
            skill: request.skill.clone(),
            cwd: "/w".into(),
            instructions: None,
            argv: vec!["/bin/sh".into(), "-c".into(), "true".into()],
            environment: Vec::new(),
            env_names: Vec::new(),
            substitutions: Vec::new(),
            outputs: Vec::new(),
            checks: Vec::new(),
            mutating: false,
            commit_message: None,
            inputs: BTreeMap::default(),
            writes: Vec::new(),
            sandbox: "auto".into(),
            branch: None,
            push: None,
            hooks: Vec::new(),
            digest: String::new(),
            budget_spent: None,
            notes: Vec::new(),
        })
    }

    fn runs_page(&self, query: &RunsQuery) -> Result<RunsPage, Diagnostic> {
        self.queries.lock().expect("a lock").push(query.clone());
        let runs = vec![self.summary()];
        let next = (query.limit == 1).then_some(self.run);
        Ok(RunsPage { runs, next })
    }

    fn run(&self, run: &str) -> Result<RunDetail, Diagnostic> {
        self.found(run)?;
        Ok(shown::detail(self.run, self.summary()))
    }

    fn cancel(&self, run: &str, request: &CancelRequest) -> Result<RunSummary, Diagnostic> {
        self.found(run)?;
        self.cancelled.lock().expect("a lock").push(request.clone());
        if request.now {
            self.drain.open();
            return Ok(self.summary());
        }
        Err(Diagnostic::new(
            Kind::Conflict,
            "too_late",
            "the run has ended",
        ))
    }

    fn retry(&self, run: &str, request: &SignedRequest) -> Result<Submitted, Diagnostic> {
        let run = self.found(run)?;
        self.answered(request.by.as_ref());
        Ok(Submitted {
            run,
            thread: self.summary().thread,
            existing: false,
        })
    }

    fn approve(&self, run: &str, request: &ApproveRequest) -> Result<RunSummary, Diagnostic> {
        self.found(run)?;
        self.answered(request.by.as_ref());
        Ok(self.summary())
    }

    fn deny(&self, run: &str, request: &DenyRequest) -> Result<RunSummary, Diagnostic> {
        self.found(run)?;
        self.answered(request.by.as_ref());
        Ok(self.summary())
    }

    fn resolve(&self, run: &str, request: &ResolveRequest) -> Result<RunSummary, Diagnostic> {
        self.found(run)?;
        self.answered(request.by.as_ref());
        match request.resolution.as_str() {
            "succeeded" | "failed" => Ok(self.summary()),
            _ => Err(Diagnostic::new(
                Kind::Usage,
                "bad_resolution",
                "neither `succeeded` nor `failed`",
            )),
        }
    }

    fn land(&self, run: &str, request: &SignedRequest) -> Result<Landed, Diagnostic> {
        self.found(run)?;
        self.answered(request.by.as_ref());
        Ok(Landed {
            run: self.summary(),
            commit: "0".repeat(40),
            branch: "main".to_owned(),
            notes: Vec::new(),
        })
    }

    fn discard(&self, run: &str, request: &SignedRequest) -> Result<Discarded, Diagnostic> {
        self.found(run)?;
        self.answered(request.by.as_ref());
        Ok(Discarded {
            run: self.summary(),
            commit: "0".repeat(40),
            references: 3,
        })
    }

    fn diff(&self, run: &str, _: &DiffQuery) -> Result<String, Diagnostic> {
        self.found(run)?;
        self.diff.pass();
        Ok("--- a\n+++ b\n".into())
    }

    fn changes(&self, run: &str) -> Result<Changes, Diagnostic> {
        self.found(run)?;
        let paths = vec![PathChange {
            path: "a".to_owned(),
            status: ChangeStatus::Added,
            from: None,
            added: Some(1),
            removed: Some(0),
            binary: false,
            old_mode: None,
            mode: Some("100644".to_owned()),
            protected: false,
        }];
        Ok(Changes { paths, total: 7 })
    }

    fn output(&self, run: &str, name: &str) -> Result<OutputFile, Diagnostic> {
        self.found(run)?;
        Ok(OutputFile {
            path: format!("out/{name}"),
            source: OutputSource::Destination {
                changed: Some(true),
            },
            bytes: 3,
            content: Box::new(&b"abc"[..]),
        })
    }

    fn thread(&self, run: &str) -> Result<serde_json::Value, Diagnostic> {
        self.found(run)?;
        Ok(serde_json::json!({"type": "conversation"}))
    }

    fn logs_page(&self, run: &str, query: &LogsQuery) -> Result<LogsPage, Diagnostic> {
        self.found(run)?;
        let lines = self.lines.lock().expect("a lock").clone();
        let total = lines.len() as u64;
        let wanted = lines.into_iter().filter(|line| line.line >= query.from);
        let lines: Vec<LogLine> = wanted.take(query.most()).collect();
        let next = lines.last().map(|last| last.line + 1);
        Ok(LogsPage {
            next: next.filter(|next| *next < total),
            total,
            lines,
        })
    }

    fn watch(
        &self,
        _: RunId,
        callback: &mut dyn FnMut(WatchEvent) -> ControlFlow<()>,
    ) -> Result<(), Diagnostic> {
        self.watching.fetch_add(1, Ordering::SeqCst);
        let lines = self.lines.lock().expect("a lock").clone();
        for line in lines {
            if callback(WatchEvent::Line(line)).is_break() {
                return Ok(());
            }
        }
        let _ = callback(WatchEvent::Lagged { lost: 2 });
        let _ = callback(WatchEvent::Lagged { lost: 0 });
        self.end.pass();
        let _ = callback(WatchEvent::Changed(Box::new(self.summary())));
        Ok(())
    }

    fn status(&self) -> Result<Status, Diagnostic> {
        self.alive()?;
        Ok(Status {
            version: "0".into(),
            pid: 1,
            host: "daemon".into(),
            workspace: "/w".into(),
            state_dir: "/s".into(),
            condition: "ready".into(),
            running: 2,
            queued: 1,
            active: vec![self.summary()],
            max_parallel: 2,
            workers: 1,
            skills: 1,
            timezone: "UTC".into(),
            uptime_ms: 1,
            syncs: 1,
            commits: 1,
            ..Status::default()
        })
    }

    fn probe(&self, _request: &ProbeRequest) -> Result<Vec<Probe>, Diagnostic> {
        Ok(vec![Probe {
            subject: "output".to_owned(),
            ok: false,
            message: "outputs cannot be written".to_owned(),
            hints: vec!["look at the unit".to_owned()],
        }])
    }

    fn workers(&self) -> Result<Vec<WorkerView>, Diagnostic> {
        Ok(Vec::new())
    }

    fn schedules(&self, _query: &SchedulesQuery) -> Result<Vec<ScheduleView>, Diagnostic> {
        Ok(Vec::new())
    }

    fn slots_page(&self, _query: &SlotsQuery) -> Result<SlotsPage, Diagnostic> {
        Ok(SlotsPage::default())
    }

    fn calendar(&self, _query: &CalendarQuery) -> Result<Calendar, Diagnostic> {
        Ok(Calendar::default())
    }

    fn next_slots(&self, _query: &NextQuery) -> Result<NextSlots, Diagnostic> {
        Ok(NextSlots::default())
    }

    fn explain(&self, _query: &ExplainQuery) -> Result<ExplainedSchedule, Diagnostic> {
        Ok(ExplainedSchedule::default())
    }

    fn skills_page(&self, _query: &SkillsQuery) -> Result<SkillsPage, Diagnostic> {
        Ok(SkillsPage::default())
    }

    fn problems(&self) -> Result<Vec<Problem>, Diagnostic> {
        Ok(Vec::new())
    }

    fn pause(&self, request: &PauseRequest) -> Result<ScheduleView, Diagnostic> {
        Ok(shown::schedule(&request.schedule))
    }

    fn resume(&self, request: &ResumeRequest) -> Result<ScheduleView, Diagnostic> {
        Ok(shown::schedule(&request.schedule))
    }

    fn trigger(&self, request: &TriggerRequest) -> Result<SlotView, Diagnostic> {
        let at = Timestamp::from_millis(0);
        let row = SlotRow::one(at, SlotStatus::Ran, at);
        Ok(SlotView::of(&request.schedule, &row))
    }

    fn backfill(&self, query: &BackfillQuery) -> Result<Vec<BackfillSlot>, Diagnostic> {
        Ok(vec![BackfillSlot {
            slot: Timestamp::from_millis(query.from_ms),
            status: None,
            run: None,
            skip_reason: None,
        }])
    }

    fn reload(&self) -> Result<ReloadReport, Diagnostic> {
        self.reloads.fetch_add(1, Ordering::SeqCst);
        Ok(ReloadReport {
            workers: 1,
            skills: 1,
            problems: Vec::new(),
            reloaded: 1,
        })
    }

    fn drain(&self) -> Result<(), Diagnostic> {
        self.drains.fetch_add(1, Ordering::SeqCst);
        self.drain.pass();
        *self.ended.lock().expect("a lock") = true;
        Ok(())
    }
}
