//! An engine that says what a test wants, and a command line without a process around it.

mod console;
mod page;
mod runs;

use std::ops::ControlFlow;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

pub(crate) use console::Console;
use runs::skill;
pub(crate) use runs::{NOW, detail, failed_detail, log_line, run_id, summary};

use super::interrupts::{Interrupt, SignalCallback};
use crate::model::schedule::{SlotRow, SlotStatus};
use crate::model::{Diagnostic, Kind, Phase, Problem, RunId};
use crate::protocol::{
    ApproveRequest, BackfillQuery, BackfillSlot, CancelRequest, Changes, Control, DenyRequest,
    DiffQuery, Discarded, ForgetRequest, Forgot, Landed, LogLine, LogsPage, LogsQuery, OutputFile,
    PauseRequest, Probe, ProbeRequest, ReloadReport, Rendered, RenderedCheck, ResolveRequest,
    ResumeRequest, RunDetail, RunSummary, RunsPage, RunsQuery, ScheduleView, SchedulesQuery,
    SignedRequest, SkillView, SlotView, SlotsQuery, StatsLine, StatsQuery, Status, SubmitRequest,
    Submitted, TriggerRequest, WatchEvent, WorkerView,
};
use crate::protocol::{
    Calendar, CalendarQuery, ExplainQuery, ExplainedSchedule, NextQuery, NextSlots, SkillsPage,
    SkillsQuery, SlotsPage,
};

use crate::thread::filter::LogFilter;

/// How long a test waits for what has to happen.
const PATIENCE: Duration = Duration::from_secs(20);

/// An engine that says what a test wants.
pub(crate) struct Fake {
    /// What there is to tell of the one run.
    pub(crate) detail: Mutex<RunDetail>,
    /// Its log.
    pub(crate) lines: Vec<LogLine>,
    /// Signals that arrive while it is watched; each is waited for.
    pub(crate) signals: Vec<Interrupt>,
    /// A signal that arrives while a submission is under way.
    pub(crate) early: Option<Interrupt>,
    /// What a submission is refused with.
    pub(crate) refusal: Option<Diagnostic>,
    /// Whether a daemon hosts it.
    pub(crate) daemon: bool,
    /// In which condition the engine is.
    pub(crate) condition: &'static str,
    /// What it says of what skills need.
    pub(crate) probes: Vec<Probe>,
    /// Its schedules.
    pub(crate) schedules: Vec<ScheduleView>,
    /// Rows of their ledger.
    pub(crate) slots: Vec<SlotView>,
    /// What was asked.
    pub(crate) asked: Mutex<Vec<String>>,
    told: Mutex<Option<SignalCallback>>,
    changed: Condvar,
}

impl Default for Fake {
    fn default() -> Fake {
        Fake {
            detail: Mutex::new(detail()),
            lines: Vec::new(),
            signals: Vec::new(),
            early: None,
            refusal: None,
            daemon: true,
            condition: "ready",
            probes: Vec::new(),
            schedules: Vec::new(),
            slots: Vec::new(),
            asked: Mutex::new(Vec::new()),
            told: Mutex::new(None),
            changed: Condvar::new(),
        }
    }
}

impl Fake {
    /// An engine whose run is this one.
    pub(crate) fn of(detail: RunDetail) -> Fake {
        Fake {
            detail: Mutex::new(detail),
            ..Fake::default()
        }
    }

    fn note(&self, asked: impl Into<String>) {
        self.asked.lock().unwrap().push(asked.into());
        self.changed.notify_all();
    }

    fn is_known(run: &str) -> Result<(), Diagnostic> {
        if run_id().matches(run) {
            Ok(())
        } else {
            Err(Diagnostic::new(
                Kind::NotFound,
                "run_unknown",
                format!("no run is called `{run}`"),
            ))
        }
    }

    /// Sends a signal; unless it is told to leave, waits until it has led to a request to end the run.
    fn signal(&self, signal: Interrupt, leaves: bool) {
        let before = Fake::cancels(&self.asked.lock().unwrap());
        (self.told.lock().unwrap().as_ref().unwrap())(signal);
        if !leaves {
            self.await_cancel(before);
        }
    }

    fn cancels(asked: &[String]) -> usize {
        asked.iter().filter(|one| one.starts_with("cancel")).count()
    }

    /// Waits for one more request to end the run than these.
    fn await_cancel(&self, before: usize) {
        let asked = self.asked.lock().unwrap();
        let (_asked, waited) = self
            .changed
            .wait_timeout_while(asked, PATIENCE, |asked| Fake::cancels(asked) == before)
            .unwrap();
        assert!(!waited.timed_out(), "no request followed the signal");
    }
}

impl Control for Fake {
    fn submit(&self, request: &SubmitRequest) -> Result<Submitted, Diagnostic> {
        let mut shown = request.clone();
        let given = shown.key.take_if(|key| !key.starts_with("once-"));
        shown.key = given.or(shown.key.map(|_| "once".to_owned()));
        let existing = shown.key.as_deref() != Some("once");
        self.note(format!("submit {}", serde_json::to_string(&shown).unwrap()));
        if let Some(refusal) = &self.refusal {
            return Err(refusal.clone());
        }
        if let Some(signal) = self.early {
            (self.told.lock().unwrap().as_ref().unwrap())(signal);
        }
        let summary = summary();
        Ok(Submitted {
            run: summary.run,
            thread: summary.thread,
            existing,
        })
    }

    fn render(&self, request: &SubmitRequest) -> Result<Rendered, Diagnostic> {
        self.note(format!("render {}", request.skill));
        Ok(Rendered {
            skill: skill().to_string(),
            cwd: "/w".to_owned(),
            instructions: None,
            argv: vec![
                "/bin/sh".to_owned(),
                "-c".to_owned(),
                "echo one\necho \"$A\"".to_owned(),
            ],
            environment: vec![("A".to_owned(), "x\u{1b}[2J".to_owned())],
            env_names: vec!["TOKEN".to_owned()],
            substitutions: Vec::new(),
            outputs: vec![("report".to_owned(), Some("workspace/r.md".to_owned()))],
            checks: vec![RenderedCheck {
                description: "not empty".to_owned(),
                command: Some("test -s workspace/r.md".to_owned()),
                must_pass: true,
            }],
            mutating: true,
            commit_message: Some("weekly-changes: Weekly changes".to_owned()),
            inputs: std::collections::BTreeMap::default(),
            sandbox: "auto".to_owned(),
            writes: Vec::new(),
            branch: Some("main".to_owned()),
            push: None,
            hooks: Vec::new(),
            digest: "d".to_owned(),
            budget_spent: None,
            notes: vec!["nothing is run".to_owned()],
        })
    }

    fn runs_page(&self, query: &RunsQuery) -> Result<RunsPage, Diagnostic> {
        self.note(format!("runs {}", serde_json::to_string(query).unwrap()));
        Ok(RunsPage {
            runs: vec![self.detail.lock().unwrap().summary.clone()],
            next: None,
        })
    }

    fn run(&self, run: &str) -> Result<RunDetail, Diagnostic> {
        Fake::is_known(run)?;
        Ok(self.detail.lock().unwrap().clone())
    }

    fn cancel(&self, run: &str, request: &CancelRequest) -> Result<RunSummary, Diagnostic> {
        Fake::is_known(run)?;
        self.note(format!("cancel now={}", request.now));
        Ok(self.detail.lock().unwrap().summary.clone())
    }

    fn retry(&self, run: &str, _request: &SignedRequest) -> Result<Submitted, Diagnostic> {
        Fake::is_known(run)?;
        self.submit(&SubmitRequest::default())
    }

    fn approve(&self, run: &str, request: &ApproveRequest) -> Result<RunSummary, Diagnostic> {
        Fake::is_known(run)?;
        self.note(format!("approve {}", request.digest));
        Ok(summary())
    }

    fn deny(&self, run: &str, request: &DenyRequest) -> Result<RunSummary, Diagnostic> {
        Fake::is_known(run)?;
        self.note(format!("deny {}", request.note));
        Ok(summary())
    }

    fn resolve(&self, run: &str, request: &ResolveRequest) -> Result<RunSummary, Diagnostic> {
        Fake::is_known(run)?;
        self.note(format!("resolve {} {}", request.resolution, request.note));
        Ok(summary())
    }

    fn land(&self, run: &str, _request: &SignedRequest) -> Result<Landed, Diagnostic> {
        Fake::is_known(run)?;
        let run = summary();
        Ok(Landed {
            commit: run.commit.clone().unwrap(),
            run,
            branch: "main".to_owned(),
            notes: vec!["hooks that follow a commit were not run: 1".to_owned()],
        })
    }

    fn discard(&self, run: &str, _request: &SignedRequest) -> Result<Discarded, Diagnostic> {
        Fake::is_known(run)?;
        let run = summary();
        Ok(Discarded {
            commit: run.commit.clone().unwrap(),
            run,
            references: 3,
        })
    }

    fn schedules(&self, query: &SchedulesQuery) -> Result<Vec<ScheduleView>, Diagnostic> {
        let is_wanted = |view: &&ScheduleView| {
            let is_id = |id: &String| view.id.eq_ignore_ascii_case(id);
            let is_behind = |after: &String| view.id > *after;
            query.schedule.as_ref().is_none_or(is_id) && query.after.as_ref().is_none_or(is_behind)
        };
        let all = self.schedules.iter().filter(is_wanted);
        Ok(all.take(query.most()).cloned().collect())
    }

    fn slots_page(&self, query: &SlotsQuery) -> Result<SlotsPage, Diagnostic> {
        self.note(format!("slots {}", serde_json::to_string(query).unwrap()));
        Ok(SlotsPage {
            slots: self.slots.clone(),
            next: None,
        })
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

    fn stats(&self, query: &StatsQuery) -> Result<Vec<StatsLine>, Diagnostic> {
        self.note(format!("stats {}", serde_json::to_string(query).unwrap()));
        let counts = crate::protocol::DayCounts::of(&summary());
        Ok(vec![StatsLine::of(skill().to_string(), &counts)])
    }

    fn forget(&self, request: &ForgetRequest) -> Result<Forgot, Diagnostic> {
        self.note(format!("forget {}", request.dry_run));
        Ok(Forgot::default())
    }

    fn pause(&self, request: &PauseRequest) -> Result<ScheduleView, Diagnostic> {
        self.note(format!("pause {}", serde_json::to_string(request).unwrap()));
        Ok(self.schedules[0].clone())
    }

    fn resume(&self, request: &ResumeRequest) -> Result<ScheduleView, Diagnostic> {
        self.note(format!("resume {}", request.schedule));
        Ok(self.schedules[0].clone())
    }

    fn trigger(&self, request: &TriggerRequest) -> Result<SlotView, Diagnostic> {
        self.note(format!(
            "trigger {}",
            serde_json::to_string(request).unwrap()
        ));
        let row = SlotRow::one(NOW, SlotStatus::Ran, NOW);
        Ok(SlotView::of(&request.schedule, &row))
    }

    fn backfill(&self, _query: &BackfillQuery) -> Result<Vec<BackfillSlot>, Diagnostic> {
        Ok(Vec::new())
    }

    fn diff(&self, run: &str, _query: &DiffQuery) -> Result<String, Diagnostic> {
        Fake::is_known(run)?;
        Ok("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\u{1b}[2J\r\n".to_owned())
    }

    fn changes(&self, run: &str) -> Result<Changes, Diagnostic> {
        Fake::is_known(run)?;
        Ok(Changes::default())
    }

    fn output(&self, run: &str, name: &str) -> Result<OutputFile, Diagnostic> {
        Fake::is_known(run)?;
        Err(Diagnostic::new(Kind::NotFound, "no_such_output", name))
    }

    fn thread(&self, run: &str) -> Result<serde_json::Value, Diagnostic> {
        Fake::is_known(run)?;
        Err(Diagnostic::new(Kind::NotFound, "no_thread_yet", run))
    }

    fn logs_page(&self, run: &str, query: &LogsQuery) -> Result<LogsPage, Diagnostic> {
        Fake::is_known(run)?;
        let filter = LogFilter::of(query)?;
        let wanted = self.lines.iter().filter(|line| filter.wants(line));
        let omitted = query.tail.map_or(0, |last| {
            wanted.clone().count().saturating_sub(last as usize)
        });
        let from = wanted.skip(omitted).filter(|line| line.line >= query.from);
        let total = self.lines.last().map_or(0, |last| last.line + 1);
        // Pages of two, so that a log has several.
        let lines: Vec<LogLine> = from.take(2).cloned().collect();
        let next = lines.last().map(|last| last.line + 1);
        Ok(LogsPage {
            next: next.filter(|next| *next < total),
            total,
            lines,
        })
    }

    fn watch(
        &self,
        run: RunId,
        callback: &mut dyn FnMut(WatchEvent) -> ControlFlow<()>,
    ) -> Result<(), Diagnostic> {
        assert_eq!(run, run_id());
        let ended = self.detail.lock().unwrap().summary.clone();
        let mut going = ended.clone();
        going.outcome = None;
        for phase in [Phase::Queued, Phase::Executing] {
            going.phase = phase;
            if callback(WatchEvent::Changed(Box::new(going.clone()))).is_break() {
                return Ok(());
            }
        }
        if self.early.is_some() {
            self.await_cancel(0);
        }
        for (at, signal) in self.signals.iter().enumerate() {
            let leaves = *signal == Interrupt::Terminated && self.daemon || at == 2;
            self.signal(*signal, leaves);
            if leaves {
                // Nobody listens any more, once the signal has been taken.
                while callback(WatchEvent::Lagged { lost: 0 }).is_continue() {}
                return Ok(());
            }
        }
        // Nothing happens for a while.
        for _ in 0..2 {
            if callback(WatchEvent::Lagged { lost: 0 }).is_break() {
                return Ok(());
            }
        }
        // Every second line is lost on the way.
        for line in self.lines.iter().step_by(2) {
            if callback(WatchEvent::Line(line.clone())).is_break() {
                return Ok(());
            }
        }
        let _ = callback(WatchEvent::Changed(Box::new(ended)));
        Ok(())
    }

    fn status(&self) -> Result<Status, Diagnostic> {
        let mut active = summary();
        active.phase = Phase::Queued;
        active.outcome = None;
        active.finished_at = None;
        active.commit = None;
        active.waiting_for = Some("the repository".to_owned());
        Ok(Status {
            version: "0.1.0".to_owned(),
            pid: if self.daemon { 1 } else { std::process::id() },
            host: if self.daemon { "daemon" } else { "in_process" }.to_owned(),
            workspace: "/w".to_owned(),
            state_dir: "/w/state".to_owned(),
            condition: self.condition.to_owned(),
            queued: 1,
            active: vec![active],
            max_parallel: 2,
            workers: 1,
            skills: 1,
            warnings: 1,
            timezone: "Europe/Berlin".to_owned(),
            uptime_ms: 61_000,
            syncs: 3,
            commits: 2,
            ..Status::default()
        })
    }

    fn probe(&self, _request: &ProbeRequest) -> Result<Vec<Probe>, Diagnostic> {
        Ok(self.probes.clone())
    }

    fn workers(&self) -> Result<Vec<WorkerView>, Diagnostic> {
        Ok(vec![WorkerView {
            id: "repo-steward".to_owned(),
            name: "Repo Steward".to_owned(),
            kind: Some("OpsWorker".to_owned()),
            version: Some("1.10".to_owned()),
            description: Some("Reports on\u{1b}[2J this repository".to_owned()),
            defined_at: "workers/repo-steward/worker.yaml:4".to_owned(),
            template: false,
            skills: vec![SkillView {
                address: skill().to_string(),
                name: "Weekly changes".to_owned(),
                description: "What changed\nin the last weeks".to_owned(),
                mutating: true,
                idempotent: true,
                repeatable: true,
                defined_at: "workers/repo-steward/worker.yaml:30".to_owned(),
                inputs: Vec::new(),
                outputs: Vec::new(),
                checks: 2,
                sandbox: String::new(),
                approval: None,
                takes_message: false,
                unavailable: Vec::new(),
            }],
            kept: serde_json::Map::new(),
            problems: Vec::new(),
        }])
    }

    fn reload(&self) -> Result<ReloadReport, Diagnostic> {
        Ok(ReloadReport {
            workers: 1,
            skills: 2,
            problems: Vec::new(),
            reloaded: 3,
        })
    }

    fn drain(&self) -> Result<(), Diagnostic> {
        self.note("drain");
        Ok(())
    }
}
