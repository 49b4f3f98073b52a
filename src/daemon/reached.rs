//! The engine that a command has found. One in another command ends with that: then another one is found, or hosted
//! here, and what it refused is asked again.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use super::client::CONNECTION_LOST;
use super::connect_options::ConnectOptions;
use super::dialling::{Place, TRIES_MAX, TRY_PAUSE, find};
use super::exchange::{CUT_OFF, NO_ENGINE};
use super::wire::STARTING;
use crate::model::{Diagnostic, Kind, Problem, RunId};
use crate::protocol::{
    ApproveRequest, BackfillQuery, BackfillSlot, CancelRequest, Changes, Control, DenyRequest,
    DiffQuery, Discarded, ForgetRequest, Forgot, Landed, LogsPage, LogsQuery, OutputFile,
    PauseRequest, Probe, ProbeRequest, ReloadReport, Rendered, ResolveRequest, ResumeRequest,
    RunDetail, RunSummary, RunsPage, RunsQuery, ScheduleView, SchedulesQuery, SignedRequest,
    SlotView, SlotsQuery, StatsLine, StatsQuery, Status, SubmitRequest, Submitted, TriggerRequest,
    WatchEvent, WorkerView,
};
use crate::protocol::{
    Calendar, CalendarQuery, ExplainQuery, ExplainedSchedule, NextQuery, NextSlots, SkillsPage,
    SkillsQuery, SlotsPage,
};

/// What hears of a run.
type Callback<'a> = &'a mut dyn FnMut(WatchEvent) -> ControlFlow<()>;

/// One of the two ways to watch a run.
type Watch = fn(&dyn Control, RunId, Callback<'_>) -> Result<(), Diagnostic>;

/// Finds the engine of a workspace, or hosts it.
pub fn connect(options: &ConnectOptions) -> Result<Box<dyn Control>, Diagnostic> {
    Ok(Box::new(Reached::at(find(options)?, options)))
}

/// The engine of a workspace, wherever it is.
pub(super) struct Reached {
    options: ConnectOptions,
    place: Mutex<Place>,
    /// What was accepted last, and with which key: the next engine is asked for it again, and starts it.
    accepted: Mutex<Option<SubmitRequest>>,
}

impl Reached {
    /// The engine at that place.
    pub(super) fn at(place: Place, options: &ConnectOptions) -> Reached {
        Reached {
            options: options.clone(),
            place: Mutex::new(place),
            accepted: Mutex::new(None),
        }
    }

    /// The interface to it, and whether it ends with another command.
    fn present(&self) -> (Arc<dyn Control>, bool) {
        match &*self.place.lock().unwrap_or_else(PoisonError::into_inner) {
            Place::Elsewhere(control) => (Arc::clone(control) as _, control.ends_soon()),
            Place::Here(hosted) => (hosted.control(), false),
        }
    }

    /// Asks, and asks again where the engine has ended before it took anything on.
    fn again<T>(
        &self,
        ask: impl FnMut(&dyn Control) -> Result<T, Diagnostic>,
    ) -> Result<T, Diagnostic> {
        self.again_after(has_left, ask)
    }

    fn again_after<T>(
        &self,
        is_left: impl Fn(&Diagnostic) -> bool,
        mut ask: impl FnMut(&dyn Control) -> Result<T, Diagnostic>,
    ) -> Result<T, Diagnostic> {
        let mut tries = TRIES_MAX;
        loop {
            let (control, ends_soon) = self.present();
            match ask(control.as_ref()) {
                Err(error) if ends_soon && tries > 0 && is_left(&error) => {
                    tries -= 1;
                    self.find_again(control.as_ref())?;
                }
                answer => return answer,
            }
        }
    }

    /// Watches, and goes on with the next engine where this one has ended before the run.
    fn watch_on(&self, run: RunId, callback: Callback<'_>, watch: Watch) -> Result<(), Diagnostic> {
        let mut is_over = false;
        loop {
            let (control, ends_soon) = self.present();
            let answer = watch(control.as_ref(), run, &mut |event| {
                let flow = callback(event);
                is_over |= flow.is_break();
                flow
            });
            let refused = answer.as_ref().is_err_and(|error| !has_left(error));
            let accepted = self
                .accepted
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            let goes_on = ends_soon && !is_over && !refused;
            let Some(request) = accepted.filter(|_| goes_on) else {
                return answer;
            };
            let detail = self.again(|control| control.run(&run.to_string()))?;
            if detail.summary.outcome.is_some() {
                return Ok(());
            }
            self.find_again(control.as_ref())?;
            self.submit(&request)?;
        }
    }

    /// Finds the next engine, unless another thread has done so.
    fn find_again(&self, former: &dyn Control) -> Result<(), Diagnostic> {
        std::thread::sleep(TRY_PAUSE);
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        let is_former = match &*place {
            Place::Elsewhere(control) => std::ptr::addr_eq(Arc::as_ptr(control), former),
            Place::Here(_) => false,
        };
        if is_former {
            *place = find(&self.options)?;
        }
        Ok(())
    }
}

/// Whether an engine refused because it ends or has not begun, so that nothing was done.
fn has_left(error: &Diagnostic) -> bool {
    const CODES: [&str; 6] = [
        "draining",
        "ended",
        STARTING,
        CUT_OFF,
        CONNECTION_LOST,
        NO_ENGINE,
    ];
    error.kind != Kind::Open && CODES.contains(&error.code.as_str())
}

impl Control for Reached {
    fn submit(&self, request: &SubmitRequest) -> Result<Submitted, Diagnostic> {
        let has_key = request.key.is_some();
        let mut was_sent = false;
        let submitted = self.again_after(
            // With its key it makes no second run.
            |error| has_left(error) || (has_key && error.kind == Kind::Open),
            |control| {
                let submitted = control.submit(request);
                was_sent |= submitted
                    .as_ref()
                    .is_err_and(|error| error.kind == Kind::Open);
                submitted
            },
        );
        let mut submitted = submitted.map_err(|mut error| {
            if was_sent {
                error.kind = Kind::Open;
            }
            error
        })?;
        submitted.existing &= !was_sent;
        let mut accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        *accepted = has_key.then(|| request.clone());
        Ok(submitted)
    }

    fn render(&self, request: &SubmitRequest) -> Result<Rendered, Diagnostic> {
        self.again(|control| control.render(request))
    }

    fn runs_page(&self, query: &RunsQuery) -> Result<RunsPage, Diagnostic> {
        self.again(|control| control.runs_page(query))
    }

    fn run(&self, run: &str) -> Result<RunDetail, Diagnostic> {
        self.again(|control| control.run(run))
    }

    fn cancel(&self, run: &str, request: &CancelRequest) -> Result<RunSummary, Diagnostic> {
        self.again(|control| control.cancel(run, request))
    }

    fn retry(&self, run: &str, request: &SignedRequest) -> Result<Submitted, Diagnostic> {
        self.again(|control| control.retry(run, request))
    }

    fn approve(&self, run: &str, request: &ApproveRequest) -> Result<RunSummary, Diagnostic> {
        self.again(|control| control.approve(run, request))
    }

    fn deny(&self, run: &str, request: &DenyRequest) -> Result<RunSummary, Diagnostic> {
        self.again(|control| control.deny(run, request))
    }

    fn resolve(&self, run: &str, request: &ResolveRequest) -> Result<RunSummary, Diagnostic> {
        self.again(|control| control.resolve(run, request))
    }

    fn land(&self, run: &str, request: &SignedRequest) -> Result<Landed, Diagnostic> {
        self.again(|control| control.land(run, request))
    }

    fn discard(&self, run: &str, request: &SignedRequest) -> Result<Discarded, Diagnostic> {
        self.again(|control| control.discard(run, request))
    }

    fn diff(&self, run: &str, query: &DiffQuery) -> Result<String, Diagnostic> {
        self.again(|control| control.diff(run, query))
    }

    fn changes(&self, run: &str) -> Result<Changes, Diagnostic> {
        self.again(|control| control.changes(run))
    }

    fn output(&self, run: &str, name: &str) -> Result<OutputFile, Diagnostic> {
        self.again(|control| control.output(run, name))
    }

    fn thread(&self, run: &str) -> Result<serde_json::Value, Diagnostic> {
        self.again(|control| control.thread(run))
    }

    fn logs_page(&self, run: &str, query: &LogsQuery) -> Result<LogsPage, Diagnostic> {
        self.again(|control| control.logs_page(run, query))
    }

    fn watch(&self, run: RunId, callback: Callback<'_>) -> Result<(), Diagnostic> {
        self.watch_on(run, callback, |control, run, callback| {
            control.watch(run, callback)
        })
    }

    fn watch_changes(&self, run: RunId, callback: Callback<'_>) -> Result<(), Diagnostic> {
        self.watch_on(run, callback, |control, run, callback| {
            control.watch_changes(run, callback)
        })
    }

    fn status(&self) -> Result<Status, Diagnostic> {
        self.again(|control| control.status())
    }

    fn probe(&self, request: &ProbeRequest) -> Result<Vec<Probe>, Diagnostic> {
        self.again(|control| control.probe(request))
    }

    fn workers(&self) -> Result<Vec<WorkerView>, Diagnostic> {
        self.again(|control| control.workers())
    }

    fn schedules(&self, query: &SchedulesQuery) -> Result<Vec<ScheduleView>, Diagnostic> {
        self.again(|control| control.schedules(query))
    }

    fn slots_page(&self, query: &SlotsQuery) -> Result<SlotsPage, Diagnostic> {
        self.again(|control| control.slots_page(query))
    }

    fn calendar(&self, query: &CalendarQuery) -> Result<Calendar, Diagnostic> {
        self.again(|control| control.calendar(query))
    }

    fn next_slots(&self, query: &NextQuery) -> Result<NextSlots, Diagnostic> {
        self.again(|control| control.next_slots(query))
    }

    fn explain(&self, query: &ExplainQuery) -> Result<ExplainedSchedule, Diagnostic> {
        self.again(|control| control.explain(query))
    }

    fn skills_page(&self, query: &SkillsQuery) -> Result<SkillsPage, Diagnostic> {
        self.again(|control| control.skills_page(query))
    }

    fn problems(&self) -> Result<Vec<Problem>, Diagnostic> {
        self.again(|control| control.problems())
    }

    fn stats(&self, query: &StatsQuery) -> Result<Vec<StatsLine>, Diagnostic> {
        self.again(|control| control.stats(query))
    }

    fn forget(&self, request: &ForgetRequest) -> Result<Forgot, Diagnostic> {
        self.again(|control| control.forget(request))
    }

    fn pause(&self, request: &PauseRequest) -> Result<ScheduleView, Diagnostic> {
        self.again(|control| control.pause(request))
    }

    fn resume(&self, request: &ResumeRequest) -> Result<ScheduleView, Diagnostic> {
        self.again(|control| control.resume(request))
    }

    fn trigger(&self, request: &TriggerRequest) -> Result<SlotView, Diagnostic> {
        self.again(|control| control.trigger(request))
    }

    fn backfill(&self, query: &BackfillQuery) -> Result<Vec<BackfillSlot>, Diagnostic> {
        self.again(|control| control.backfill(query))
    }

    fn reload(&self) -> Result<ReloadReport, Diagnostic> {
        self.again(|control| control.reload())
    }

    fn drain(&self) -> Result<(), Diagnostic> {
        self.present().0.drain()
    }
}
