//! The one interface to an engine, wherever it runs.

use std::ops::ControlFlow;

use serde_json::Value;

use super::{
    ApproveRequest, BackfillQuery, BackfillSlot, CancelRequest, Change, Changes, DenyRequest,
    DiffQuery, Discarded, ForgetRequest, Forgot, Landed, LogLine, LogsPage, LogsQuery, OutputFile,
    PauseRequest, Probe, ProbeRequest, ReloadReport, Rendered, ResolveRequest, ResumeRequest,
    RunDetail, RunSummary, RunsPage, RunsQuery, ScheduleView, SchedulesQuery, SignedRequest,
    SlotView, SlotsQuery, StatsLine, StatsQuery, Status, SubmitRequest, Submitted, TriggerRequest,
    WatchEvent, WorkerView,
};
use super::{Calendar, CalendarQuery, ExplainQuery, ExplainedSchedule, NextQuery, NextSlots};
use super::{SkillsPage, SkillsQuery, SlotsPage};
use crate::model::{Diagnostic, Kind, Problem, RunId};

/// The one interface to an engine: over the socket, or hosted in this process.
///
/// Every call blocks until it is answered. `run` arguments are ids in full or any unique prefix or suffix.
pub trait Control: Send + Sync {
    /// Accepts a run; on return it is durable.
    fn submit(&self, request: &SubmitRequest) -> Result<Submitted, Diagnostic>;
    /// Checks and renders everything without accepting anything.
    fn render(&self, request: &SubmitRequest) -> Result<Rendered, Diagnostic>;
    /// One page of runs, newest first, after a bounded number of them was looked at.
    fn runs_page(&self, query: &RunsQuery) -> Result<RunsPage, Diagnostic>;
    /// As many runs as a query asks for, newest first, asked for page by page.
    fn runs(&self, query: &RunsQuery) -> Result<Vec<RunSummary>, Diagnostic> {
        let (mut query, mut all) = (query.clone(), Vec::new());
        let most = query.most();
        loop {
            let page = self.runs_page(&query)?;
            all.extend(page.runs);
            query.before = page.next;
            if query.before.is_none() || all.len() >= most {
                return Ok(all);
            }
            query.limit = u32::try_from(most - all.len()).unwrap_or(u32::MAX);
        }
    }
    /// Shows one run in full.
    fn run(&self, run: &str) -> Result<RunDetail, Diagnostic>;
    /// Asks to end a run.
    fn cancel(&self, run: &str, request: &CancelRequest) -> Result<RunSummary, Diagnostic>;
    /// Accepts a new run with the same inputs and the present definition.
    fn retry(&self, run: &str, request: &SignedRequest) -> Result<Submitted, Diagnostic>;
    /// Approves what a run waits with; on return it is durable.
    fn approve(&self, run: &str, request: &ApproveRequest) -> Result<RunSummary, Diagnostic>;
    /// Refuses it.
    fn deny(&self, run: &str, request: &DenyRequest) -> Result<RunSummary, Diagnostic>;
    /// Settles an unknown outcome.
    fn resolve(&self, run: &str, request: &ResolveRequest) -> Result<RunSummary, Diagnostic>;
    /// Lands the commit that was kept of a run.
    fn land(&self, run: &str, request: &SignedRequest) -> Result<Landed, Diagnostic>;
    /// Drops what is kept of a run that has not landed; repeating it is no error.
    fn discard(&self, run: &str, request: &SignedRequest) -> Result<Discarded, Diagnostic>;
    /// What a run changed, as a patch, bounded.
    fn diff(&self, run: &str, query: &DiffQuery) -> Result<String, Diagnostic>;
    /// The paths that a run changed, bounded.
    fn changes(&self, run: &str) -> Result<Changes, Diagnostic>;
    /// The file of a declared output of a run.
    fn output(&self, run: &str, name: &str) -> Result<OutputFile, Diagnostic>;
    /// The summary file of a run's thread, as it stands.
    fn thread(&self, run: &str) -> Result<Value, Diagnostic>;
    /// Reads lines of a run's log, after a bounded part of it was looked at.
    fn logs_page(&self, run: &str, query: &LogsQuery) -> Result<LogsPage, Diagnostic>;
    /// The lines of one page.
    fn logs(&self, run: &str, query: &LogsQuery) -> Result<Vec<LogLine>, Diagnostic> {
        Ok(self.logs_page(run, query)?.lines)
    }
    /// Tells what happens to a run, from the first line of its log on, until it has ended or the callback breaks.
    ///
    /// While nothing happens the callback is told `Lagged { lost: 0 }` at least every 30 s, so that one whose
    /// reader has left can break.
    fn watch(
        &self,
        run: RunId,
        callback: &mut dyn FnMut(WatchEvent) -> ControlFlow<()>,
    ) -> Result<(), Diagnostic>;
    /// The same from another line of its log on.
    fn watch_lines_from(
        &self,
        run: RunId,
        from: u64,
        callback: &mut dyn FnMut(WatchEvent) -> ControlFlow<()>,
    ) -> Result<(), Diagnostic> {
        self.watch(run, &mut |event| match event {
            WatchEvent::Line(line) if line.line < from => ControlFlow::Continue(()),
            event => callback(event),
        })
    }
    /// The same without the lines of its log, however many there are.
    fn watch_changes(
        &self,
        run: RunId,
        callback: &mut dyn FnMut(WatchEvent) -> ControlFlow<()>,
    ) -> Result<(), Diagnostic> {
        self.watch(run, &mut |event| match event {
            WatchEvent::Line(_) | WatchEvent::Partial(_) => ControlFlow::Continue(()),
            event => callback(event),
        })
    }
    /// Tells what changes behind `after`, an id that was told earlier, until the engine ends or the callback breaks.
    ///
    /// While nothing changes the callback is told nothing at least every 30 s, so that one whose reader has left can
    /// break. An engine in this process alone tells it: over the socket `GET /v1/events` does.
    fn follow(
        &self,
        _after: Option<&str>,
        _callback: &mut dyn FnMut(&str, &[Change]) -> ControlFlow<()>,
    ) -> Result<(), Diagnostic> {
        let why = "`GET /v1/events` reports changes";
        Err(Diagnostic::new(Kind::Usage, "not_here", why))
    }
    /// What the engine does at the moment.
    fn status(&self) -> Result<Status, Diagnostic>;
    /// Tries what skills need, where the engine runs. Nothing of it stays.
    fn probe(&self, request: &ProbeRequest) -> Result<Vec<Probe>, Diagnostic>;
    /// Lists workers with their skills.
    fn workers(&self) -> Result<Vec<WorkerView>, Diagnostic>;
    /// One page of the skills of workers and of roots, with their newest runs and next slots.
    fn skills_page(&self, query: &SkillsQuery) -> Result<SkillsPage, Diagnostic>;
    /// What is wrong with the definitions.
    fn problems(&self) -> Result<Vec<Problem>, Diagnostic>;
    /// One page of the active schedules, by id.
    fn schedules(&self, query: &SchedulesQuery) -> Result<Vec<ScheduleView>, Diagnostic>;
    /// All schedules that a query names, by id, asked for page by page. Its `limit` is that of a page.
    fn all_schedules(&self, query: &SchedulesQuery) -> Result<Vec<ScheduleView>, Diagnostic> {
        let (mut query, mut all) = (query.clone(), Vec::new());
        loop {
            let page = self.schedules(&query)?;
            let is_last = page.len() < query.most();
            query.after = page.last().map(|view| view.id.clone());
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }
    /// One page of rows of the ledger of slots, newest first, after a bounded number of them was looked at.
    fn slots_page(&self, query: &SlotsQuery) -> Result<SlotsPage, Diagnostic>;
    /// As many rows as a query asks for, newest first, asked for page by page.
    fn slots(&self, query: &SlotsQuery) -> Result<Vec<SlotView>, Diagnostic> {
        let (mut query, mut all) = (query.clone(), Vec::new());
        let most = query.most();
        loop {
            let page = self.slots_page(&query)?;
            all.extend(page.slots);
            query.before = page.next;
            if query.before.is_none() || all.len() >= most {
                return Ok(all);
            }
            query.limit = u32::try_from(most - all.len()).unwrap_or(u32::MAX);
        }
    }
    /// What became of slots, and how many are to come, by hours or days.
    fn calendar(&self, query: &CalendarQuery) -> Result<Calendar, Diagnostic>;
    /// What schedules do next.
    fn next_slots(&self, query: &NextQuery) -> Result<NextSlots, Diagnostic>;
    /// A schedule in words.
    fn explain(&self, query: &ExplainQuery) -> Result<ExplainedSchedule, Diagnostic>;
    /// Pauses a schedule; nothing of it is due until it goes on.
    fn pause(&self, request: &PauseRequest) -> Result<ScheduleView, Diagnostic>;
    /// Lets a paused schedule go on.
    fn resume(&self, request: &ResumeRequest) -> Result<ScheduleView, Diagnostic>;
    /// Runs a schedule now, or for a past slot.
    fn trigger(&self, request: &TriggerRequest) -> Result<SlotView, Diagnostic>;
    /// Slots that are past, and whether each can be run after all; oldest first.
    fn backfill(&self, query: &BackfillQuery) -> Result<Vec<BackfillSlot>, Diagnostic>;
    /// Reads definitions and configuration again.
    fn reload(&self) -> Result<ReloadReport, Diagnostic>;
    /// What the runs came to that ended in some days, line by line.
    fn stats(&self, query: &StatsQuery) -> Result<Vec<StatsLine>, Diagnostic>;
    /// Forgets what `retention` does not keep, at once; or tells what that is.
    fn forget(&self, request: &ForgetRequest) -> Result<Forgot, Diagnostic>;
    /// Starts nothing new, waits for what runs, ends the engine.
    fn drain(&self) -> Result<(), Diagnostic>;
}
