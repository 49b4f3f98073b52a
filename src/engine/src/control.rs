//! The interface to an engine in this process.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::approval;
use super::definitions::Reload;
use super::due::DueCache;
use super::inbox::Inbox;
use super::prepares::Prepares;
use super::refusals::{ended, no_such_run, open, unexpected};
use super::request::{Answer, Request};
use super::restricted::Restricted;
use super::run_factory::{Origin, RunFactory};
use super::view::{Condition, RunSnapshot, View};
use super::work::Effects;
use super::{Host, listing, model_test, probe, reading, refusals, rendering, schedules};
use super::{manual_trigger, output_files, patches, slot_pages};
use crate::clock::Clock;
use crate::git::checkouts;
use crate::machine::{CancelKind, Event, Resolution};
use crate::model::schedule::Pause;
use crate::model::{Diagnostic, Kind, Problem, RunId};
use crate::protocol::{
    ApproveRequest, BackfillQuery, BackfillSlot, CancelRequest, Change, Changes, Control,
    DenyRequest, DiffQuery, Discarded, ForgetRequest, Forgot, Landed, LogsPage, LogsQuery,
    OutputFile, PauseRequest, Probe, ProbeRequest, ReloadReport, Rendered, ResolveRequest,
    ResumeRequest, RunDetail, RunSummary, RunsPage, RunsQuery, ScheduleView, SchedulesQuery,
    SignedRequest, SlotView, SlotsQuery, StatsLine, StatsQuery, Status, SubmitRequest, Submitted,
    TriggerRequest, WatchEvent, WorkerView,
};
use crate::protocol::{
    Calendar, CalendarQuery, ExplainQuery, ExplainedSchedule, NextQuery, NextSlots, SkillsPage,
    SkillsQuery, SlotsPage,
};
use crate::store::Store;

/// How long a request may wait to become durable on a disk that is full: the engine tries every 5 s.
const DURABLE_PATIENCE: Duration = Duration::from_secs(15);

/// Longest idempotency key in bytes.
const KEY_BYTES_MAX: usize = 255;

/// Longest note of a person in bytes.
const NOTE_BYTES_MAX: usize = 4_096;

/// An engine in this process, as every face of the program sees it.
pub(super) struct EngineControl {
    pub(super) inbox: Arc<Inbox>,
    pub(super) view: Arc<View>,
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) factory: Arc<RunFactory>,
    pub(super) host: Host,
    pub(super) started_ms: u64,
    pub(super) effects: Arc<dyn Effects>,
    /// Where trees of runs lie, or why they can lie nowhere.
    pub(super) trees: Result<PathBuf, String>,
    /// Held while what is kept of a run lands or is dropped, so that not both happen.
    pub(super) settling: Mutex<()>,
    /// Held while it is looked whether definitions have changed, so that many who ask at once read them once.
    pub(super) rereading: Mutex<()>,
    /// Slots to come, as they were counted last.
    pub(super) due: DueCache,
}

impl EngineControl {
    pub(super) fn ask(&self, request: Request) -> Result<Answer, Diagnostic> {
        let changes = request.changes_runs();
        let answer = self.inbox.request(request)?;
        loop {
            match answer.recv_timeout(DURABLE_PATIENCE) {
                Ok(answer) => return answer,
                Err(RecvTimeoutError::Disconnected) => return Err(ended(changes)),
                Err(RecvTimeoutError::Timeout) => {
                    if changes && matches!(self.view.condition(), Condition::Short(_)) {
                        return Err(open());
                    }
                }
            }
        }
    }

    pub(super) fn accept(
        &self,
        request: &SubmitRequest,
        retry_of: Option<RunId>,
    ) -> Result<Submitted, Diagnostic> {
        if let Some(key) = &request.key
            && (key.is_empty() || key.len() > KEY_BYTES_MAX || key.chars().any(char::is_control))
        {
            let why = format!("a key has 1 to {KEY_BYTES_MAX} bytes and no control characters");
            return Err(Diagnostic::new(Kind::Usage, "key", why));
        }
        let origin = Origin {
            retry_of,
            ..Origin::default()
        };
        self.see_changes()?;
        let catalog = self.factory.definitions.current();
        let submission = self.factory.submission(&catalog, request, origin)?;
        let run = submission.spec.run;
        match self.ask(Request::Submit(Box::new(submission))) {
            Ok(Answer::Submitted(submitted)) => {
                if submitted.existing {
                    self.factory.forget(run);
                }
                Ok(submitted)
            }
            Ok(Answer::Run(_) | Answer::Slot(_) | Answer::Done) => Err(unexpected()),
            Err(refused) => {
                // A run that may still be accepted needs them; if it never is, the next start forgets them.
                if refused.kind != Kind::Open {
                    self.factory.forget(run);
                }
                Err(refused)
            }
        }
    }

    fn set_pause(&self, schedule: &str, pause: Option<Pause>) -> Result<ScheduleView, Diagnostic> {
        let schedule = schedules::switched_on(&self.factory, schedule)?.id.clone();
        if self.host != Host::Daemon {
            return Err(schedules::no_daemon());
        }
        schedules::refuse_held(&self.factory)?;
        let request = Request::Pause {
            schedule: schedule.to_string(),
            pause,
        };
        self.ask(request)?;
        self.due.forget();
        let shown = self.schedules(&SchedulesQuery::one(&schedule))?;
        let mut shown = shown.into_iter();
        shown.next().ok_or_else(|| schedules::unknown(&schedule))
    }

    /// What a sandboxed run changes in the repository of a run only with approval.
    fn restricted(&self, shown: &RunSnapshot) -> Restricted {
        let tree = shown.spec.tree.as_ref();
        let repository = tree.map_or(&shown.spec.workspace, |tree| &tree.workdir);
        let factory = &self.factory;
        Restricted::new(
            &factory.definitions.saved(),
            &factory.environment,
            &checkouts(std::path::Path::new(repository)),
        )
    }

    /// A run, live or from the store.
    pub(super) fn shown(&self, run: RunId) -> Result<Arc<RunSnapshot>, Diagnostic> {
        match self.view.run(run) {
            Some(shown) => Ok(shown),
            None => reading::stored(self.store.as_ref(), run, &self.factory.workspace)?
                .map(Arc::new)
                .ok_or_else(|| no_such_run(&run.to_string())),
        }
    }
}

impl Control for EngineControl {
    fn submit(&self, request: &SubmitRequest) -> Result<Submitted, Diagnostic> {
        // Who asks without a connection has this process's user.
        let user_id = request.user_id;
        let user_id = user_id.or_else(|| Some(rustix::process::geteuid().as_raw()));
        let request = SubmitRequest {
            user_id,
            ..request.clone()
        };
        let submitted = self.accept(&request, None);
        if let Err(refused) = &submitted {
            let catalog = self.factory.definitions.current();
            let line = refusals::line(&catalog, &request.skill, refused, self.clock.now());
            if let Some(line) = line {
                self.effects.refused(&line);
            }
        }
        submitted
    }

    fn render(&self, request: &SubmitRequest) -> Result<Rendered, Diagnostic> {
        self.see_changes()?;
        let catalog = self.factory.definitions.current();
        let ready = self.factory.ready(&catalog, request, Origin::default())?;
        let rendered = rendering::rendered(&ready);
        let budget_spent = self.factory.budget_spent(&catalog, &rendered.skill)?;
        Ok(Rendered {
            budget_spent,
            ..rendered
        })
    }

    fn runs_page(&self, query: &RunsQuery) -> Result<RunsPage, Diagnostic> {
        let mut page = listing::page(&self.view, self.store.as_ref(), query)?;
        self.add_push_errors(page.runs.iter_mut());
        Ok(page)
    }

    fn run(&self, run: &str) -> Result<RunDetail, Diagnostic> {
        let shown = self.shown(self.resolve_id(run)?)?;
        let mut detail = reading::detail(&shown);
        if let Some(view) = &mut detail.approval {
            approval::complete(view, &shown, &self.factory.state_dir);
            detail.protected_changes =
                patches::protected_changes(&shown, &self.restricted(&shown))?;
        }
        self.complete(&mut detail)?;
        self.add_push_errors(std::iter::once(&mut detail.summary));
        Ok(detail)
    }

    fn cancel(&self, run: &str, request: &CancelRequest) -> Result<RunSummary, Diagnostic> {
        let run = self.resolve_id(run)?;
        let shown = self.shown(run)?;
        if let Some(caller) = request.caller_run {
            refusals::unless_started_by(caller, &shown.spec)?;
        }
        let kind = if request.now {
            CancelKind::Now
        } else {
            CancelKind::Graceful
        };
        let by = request.by.clone().unwrap_or_else(|| "unknown".to_owned());
        match self.ask(Request::Cancel { run, kind, by })? {
            // The run has ended, and the push of its branch is not tried again.
            Answer::Done => Ok(shown.summary.clone()),
            answer => summary_of(answer),
        }
    }

    fn retry(&self, run: &str, request: &SignedRequest) -> Result<Submitted, Diagnostic> {
        let shown = self.repeatable(self.resolve_id(run)?)?;
        self.repeat(&shown, request)
    }

    fn approve(&self, run: &str, request: &ApproveRequest) -> Result<RunSummary, Diagnostic> {
        self.approve_run(self.decided_id(run)?, request)
    }

    fn deny(&self, run: &str, request: &DenyRequest) -> Result<RunSummary, Diagnostic> {
        self.deny_run(self.decided_id(run)?, request)
    }

    fn resolve(&self, run: &str, request: &ResolveRequest) -> Result<RunSummary, Diagnostic> {
        let run = self.decided_id(run)?;
        self.shown(run)?;
        let resolution = match request.resolution.as_str() {
            "succeeded" => Resolution::Succeeded,
            "failed" => Resolution::Failed,
            other => {
                return Err(Diagnostic::new(
                    Kind::Usage,
                    "resolution",
                    format!("`{other}` is neither `succeeded` nor `failed`"),
                ));
            }
        };
        refuse_note(&request.note)?;
        let event = Event::Resolved {
            resolution,
            note: request.note.clone(),
            by: request.by.clone(),
        };
        summary_of(self.ask(Request::Settled { run, event })?)
    }

    fn land(&self, run: &str, request: &SignedRequest) -> Result<Landed, Diagnostic> {
        self.land_kept(self.decided_id(run)?, request.by.clone())
    }

    fn discard(&self, run: &str, request: &SignedRequest) -> Result<Discarded, Diagnostic> {
        self.discard_kept(self.decided_id(run)?, request.by.clone())
    }

    fn diff(&self, run: &str, query: &DiffQuery) -> Result<String, Diagnostic> {
        patches::patch(self.shown(self.resolve_id(run)?)?.as_ref(), query)
    }

    fn changes(&self, run: &str) -> Result<Changes, Diagnostic> {
        let shown = self.shown(self.resolve_id(run)?)?;
        patches::changes(&shown, &self.restricted(&shown))
    }

    fn output(&self, run: &str, name: &str) -> Result<OutputFile, Diagnostic> {
        let shown = self.shown(self.resolve_id(run)?)?;
        output_files::output(&shown, name, &self.factory.state_dir)
    }

    fn thread(&self, run: &str) -> Result<serde_json::Value, Diagnostic> {
        reading::thread(&self.shown(self.resolve_id(run)?)?.spec)
    }

    fn logs_page(&self, run: &str, query: &LogsQuery) -> Result<LogsPage, Diagnostic> {
        let shown = self.shown(self.resolve_id(run)?)?;
        self.effects.flush_log(shown.spec.run);
        reading::page(&shown.spec, query)
    }

    fn watch(
        &self,
        run: RunId,
        callback: &mut dyn FnMut(WatchEvent) -> ControlFlow<()>,
    ) -> Result<(), Diagnostic> {
        self.watch_with(run, Some(0), callback)
    }

    fn watch_lines_from(
        &self,
        run: RunId,
        from: u64,
        callback: &mut dyn FnMut(WatchEvent) -> ControlFlow<()>,
    ) -> Result<(), Diagnostic> {
        self.watch_with(run, Some(from), callback)
    }

    fn watch_changes(
        &self,
        run: RunId,
        callback: &mut dyn FnMut(WatchEvent) -> ControlFlow<()>,
    ) -> Result<(), Diagnostic> {
        self.watch_with(run, None, callback)
    }

    fn follow(
        &self,
        after: Option<&str>,
        callback: &mut dyn FnMut(&str, &[Change]) -> ControlFlow<()>,
    ) -> Result<(), Diagnostic> {
        self.view.changes.follow(after, callback);
        Ok(())
    }

    fn status(&self) -> Result<Status, Diagnostic> {
        self.standing()
    }

    fn probe(&self, request: &ProbeRequest) -> Result<Vec<Probe>, Diagnostic> {
        if let Some(test) = &request.notify {
            return self.effects.test_notify(test);
        }
        let Some(alias) = &request.model else {
            return Ok(probe::SkillProbe::of(&self.factory).probe());
        };
        let catalog = self.factory.definitions.current();
        let (config, environment) = (&catalog.config, &self.factory.environment);
        let tested = model_test::test(config, alias, environment, self.clock.as_ref());
        Ok(vec![tested])
    }

    fn workers(&self) -> Result<Vec<WorkerView>, Diagnostic> {
        let catalog = self.factory.definitions.current();
        let view = |worker: &Arc<crate::model::Worker>| WorkerView::of(worker, &catalog.problems);
        Ok(catalog.workers.iter().map(view).collect())
    }

    fn skills_page(&self, query: &SkillsQuery) -> Result<SkillsPage, Diagnostic> {
        self.skills_of(query)
    }

    fn problems(&self) -> Result<Vec<Problem>, Diagnostic> {
        Ok(self.factory.definitions.current().problems.clone())
    }

    fn schedules(&self, query: &SchedulesQuery) -> Result<Vec<ScheduleView>, Diagnostic> {
        schedules::page(&self.factory, &self.view, self.store.as_ref(), query)
    }

    fn slots_page(&self, query: &SlotsQuery) -> Result<SlotsPage, Diagnostic> {
        slot_pages::page(&self.factory, &self.view, self.store.as_ref(), query)
    }

    fn calendar(&self, query: &CalendarQuery) -> Result<Calendar, Diagnostic> {
        self.calendar_of(query)
    }

    fn next_slots(&self, query: &NextQuery) -> Result<NextSlots, Diagnostic> {
        schedules::next_slots(&self.factory, &self.view, self.store.as_ref(), query)
    }

    fn explain(&self, query: &ExplainQuery) -> Result<ExplainedSchedule, Diagnostic> {
        schedules::explain(&self.factory, &self.view, self.store.as_ref(), query)
    }

    fn stats(&self, query: &StatsQuery) -> Result<Vec<StatsLine>, Diagnostic> {
        self.counted(query)
    }

    fn forget(&self, request: &ForgetRequest) -> Result<Forgot, Diagnostic> {
        self.effects.forget(request)
    }

    fn pause(&self, request: &PauseRequest) -> Result<ScheduleView, Diagnostic> {
        let pause = schedules::pause_of(request, self.clock.now())?;
        self.set_pause(&request.schedule, Some(pause))
    }

    fn resume(&self, request: &ResumeRequest) -> Result<ScheduleView, Diagnostic> {
        self.set_pause(&request.schedule, None)
    }

    fn trigger(&self, request: &TriggerRequest) -> Result<SlotView, Diagnostic> {
        if self.host != Host::Daemon {
            return Err(schedules::no_daemon());
        }
        manual_trigger::trigger(&self.factory, request, |trigger| {
            self.ask(Request::Trigger(Box::new(trigger)))
        })
    }

    fn backfill(&self, query: &BackfillQuery) -> Result<Vec<BackfillSlot>, Diagnostic> {
        manual_trigger::past(&self.factory, self.store.as_ref(), query)
    }

    fn reload(&self) -> Result<ReloadReport, Diagnostic> {
        self.reloaded(Reload::ByPerson)
    }

    fn drain(&self) -> Result<(), Diagnostic> {
        self.ask(Request::Drain).map(|_| ())
    }
}

impl EngineControl {
    fn watch_with(
        &self,
        run: RunId,
        lines_from: Option<u64>,
        callback: &mut dyn FnMut(WatchEvent) -> ControlFlow<()>,
    ) -> Result<(), Diagnostic> {
        let watching = self.view.watch(run).ok_or_else(|| {
            Diagnostic::new(Kind::Conflict, "busy", "too many watchers")
                .hint("end one, or read the thread's log")
        })?;
        self.effects.flush_log(run);
        let shown = self.shown(run)?;
        if shown.lost {
            self.ask(Request::Settle)?;
        }
        let told = reading::Delivered::new(&shown.spec, lines_from, callback);
        let watched = reading::watch(&self.view, &shown, &watching, told);
        drop(watching);
        let shown = self.view.run(run).filter(|shown| shown.spec.foreground);
        if shown.is_some_and(|shown| !shown.run.is_finished()) && self.view.ended().is_none() {
            self.view.lost_client(run);
        }
        watched
    }
}

pub(super) fn refuse_note(note: &str) -> Result<(), Diagnostic> {
    if note.trim().is_empty() || note.len() > NOTE_BYTES_MAX {
        let why = format!("give the reason in a note of 1 to {NOTE_BYTES_MAX} bytes");
        return Err(Diagnostic::new(Kind::Usage, "note", why));
    }
    Ok(())
}

pub(super) fn summary_of(answer: Answer) -> Result<RunSummary, Diagnostic> {
    match answer {
        Answer::Run(summary) => Ok(*summary),
        Answer::Submitted(_) | Answer::Slot(_) | Answer::Done => Err(unexpected()),
    }
}

pub(super) fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
