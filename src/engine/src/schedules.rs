//! Schedules and their ledgers, as readers see them: current definitions, and what is stored.

use std::collections::HashMap;
use std::sync::Arc;

use super::lookup::find_skill;
use super::run_factory::RunFactory;
use super::stored_schedules;
use super::submission::refuse_unavailable;
use super::view::{Agenda, View};
use crate::catalog::Catalog;
use crate::model::schedule::{
    Pause, REASON_BYTES_MAX, Schedule, ScheduleState, Trigger, cut, json_bytes,
};
use crate::model::{Diagnostic, Kind, Timestamp, Zone};
use crate::protocol::{
    BlockedSlot, ExplainQuery, ExplainedSchedule, LastFire, NextDue, NextQuery, NextSlots,
    OverdueView, PauseRequest, PauseView, RunSummary, SchedulePlan, ScheduleView, SchedulesQuery,
    WaitingEvent,
};
use crate::schedule::{Recurrence, Watched, expectation, jitter_ms, next_start, undecided, words};
use crate::store::Store;
use crate::upcoming::{Explained, Upcoming, Wanted};

/// Most overdue schedules that readers are shown.
pub(super) const OVERDUE_SHOWN_MAX: usize = 200;

/// One page of the schedules of the current definitions.
pub(super) fn page(
    factory: &RunFactory,
    view: &View,
    store: &dyn Store,
    query: &SchedulesQuery,
) -> Result<Vec<ScheduleView>, Diagnostic> {
    let catalog = factory.definitions.current();
    // They are sorted by their ids, and most pages are asked for where the one before ended.
    let from = query.after.as_ref().map_or(0, |after| {
        let all = &catalog.schedules;
        all.partition_point(|schedule| *schedule.id <= **after)
    });
    if let Some(id) = &query.schedule {
        refuse_switched_off(&catalog, id)?;
    }
    let behind = catalog.schedules.iter().skip(from);
    let wanted = behind.filter(|schedule| is_wanted(schedule, query));
    views(
        &catalog,
        view,
        store,
        factory.clock.now(),
        wanted.take(query.most()),
    )
}

/// All schedules of the current definitions.
pub(super) fn all(
    factory: &RunFactory,
    view: &View,
    store: &dyn Store,
) -> Result<Vec<ScheduleView>, Diagnostic> {
    let catalog = factory.definitions.current();
    let enabled = catalog.schedules.iter().filter(|one| !one.disabled);
    views(&catalog, view, store, factory.clock.now(), enabled)
}

fn is_wanted(schedule: &Schedule, query: &SchedulesQuery) -> bool {
    let is_id = |id: &String| schedule.id.eq_ignore_ascii_case(id);
    let of = &schedule.skill;
    !schedule.disabled
        && query.schedule.as_ref().is_none_or(is_id)
        && query.worker.as_ref().is_none_or(|id| *id == of.worker)
        && query
            .skill
            .as_ref()
            .is_none_or(|id| *id == of.skill || *id == of.to_string())
}

fn views<'a>(
    catalog: &Catalog,
    view: &View,
    store: &dyn Store,
    now: Timestamp,
    schedules: impl Iterator<Item = &'a Arc<Schedule>>,
) -> Result<Vec<ScheduleView>, Diagnostic> {
    let mut skills = HashMap::new();
    schedules
        .map(|schedule| {
            let state = stored_schedules::one(store, &schedule.id, now);
            let state = state?;
            // Looked for once for each skill: that may take as long as there are workers.
            let skill = skills
                .entry(&schedule.skill)
                .or_insert_with(|| Prospect::of(catalog, schedule));
            let mut shown = view_of(schedule, state.as_ref(), skill, now, |run| {
                summary_of(view, store, run)
            })?;
            shown.fallback_reason = catalog.fallback_schedules.get(&*schedule.id).cloned();
            shown.inactive_reason = catalog.schedules_held().map(str::to_owned);
            shown.next = shown.next.filter(|_| shown.inactive_reason.is_none());
            Ok(shown)
        })
        .collect()
}

/// What schedules do next.
pub(super) fn next_slots(
    factory: &RunFactory,
    view: &View,
    store: &dyn Store,
    query: &NextQuery,
) -> Result<NextSlots, Diagnostic> {
    let views = match &query.schedule {
        Some(id) => vec![the_one(factory, view, store, id)?],
        None => all(factory, view, store)?,
    };
    let after = query.after_ms.map(Timestamp::from_millis);
    let wanted = Wanted {
        now: factory.clock.now(),
        after: &|_| after,
        most: query.most(),
        is_one: query.schedule.is_some(),
    };
    Ok(Upcoming::of(&views, &wanted).document())
}

/// A schedule in words.
pub(super) fn explain(
    factory: &RunFactory,
    view: &View,
    store: &dyn Store,
    query: &ExplainQuery,
) -> Result<ExplainedSchedule, Diagnostic> {
    let after = query.at_ms.map(Timestamp::from_millis);
    let wanted = Wanted {
        now: factory.clock.now(),
        after: &|_| after,
        most: query.most(),
        is_one: true,
    };
    let shown = the_one(factory, view, store, &query.schedule)?;
    Ok(Explained::of(&shown, &wanted).document())
}

fn the_one(
    factory: &RunFactory,
    view: &View,
    store: &dyn Store,
    id: &str,
) -> Result<ScheduleView, Diagnostic> {
    let found = page(factory, view, store, &SchedulesQuery::one(id))?;
    found.into_iter().next().ok_or_else(|| unknown(id))
}

/// What is due next and what is overdue, as the definitions and the store tell it.
pub(super) fn agenda(views: &[ScheduleView]) -> Agenda {
    let of = |view: &ScheduleView| (view.id.clone(), view.timezone.clone());
    let due = views.iter().filter(|view| view.paused.is_none());
    let next = due.filter_map(|view| Some((view.next?, view)));
    let next = next.min_by_key(|(at, _)| *at).map(|(at, view)| {
        let (schedule, timezone) = of(view);
        NextDue {
            schedule,
            at,
            timezone,
        }
    });
    let overdue = views.iter().filter(|view| view.overdue).filter_map(|view| {
        let (schedule, timezone) = of(view);
        Some(OverdueView {
            schedule,
            expected_by: view.expected_by?,
            timezone,
        })
    });
    let failing = views.iter().filter_map(ScheduleView::failing);
    Agenda {
        schedules: views.len(),
        next,
        overdue: overdue.take(OVERDUE_SHOWN_MAX).collect(),
        failing: failing.take(OVERDUE_SHOWN_MAX).collect(),
    }
}

fn view_of(
    schedule: &Schedule,
    state: Option<&ScheduleState>,
    skill: &Prospect,
    now: Timestamp,
    summary_of: impl Fn(crate::model::RunId) -> Result<Option<RunSummary>, Diagnostic>,
) -> Result<ScheduleView, Diagnostic> {
    let zone: Zone = schedule.timezone.parse().unwrap_or(Zone::UTC);
    let present = state.cloned();
    let present = present.unwrap_or_else(|| ScheduleState::new(String::new(), now));
    let recurrence = Recurrence::of(&schedule.trigger, zone, present.anchor);
    let expected = recurrence
        .as_ref()
        .and_then(|slots| expectation(watched(schedule, slots), &present));
    let last = match present.last {
        Some((slot, run)) => {
            let summary = summary_of(run)?;
            let outcome = summary.as_ref().and_then(|run| run.outcome.as_ref());
            Some(LastFire {
                slot,
                run,
                outcome: outcome.map(|outcome| outcome.name().to_owned()),
                phase: summary.as_ref().and_then(RunSummary::open_phase),
                nothing_to_do: summary.is_some_and(|run| run.nothing_to_do),
            })
        }
        None => None,
    };
    Ok(ScheduleView {
        id: schedule.id.to_string(),
        skill: schedule.skill.to_string(),
        when: match &recurrence {
            Some(recurrence) => words(recurrence),
            None => event_in_words(&schedule.trigger),
        },
        timezone: schedule.timezone.to_string(),
        defined_at: schedule.place.to_string(),
        observed: present.seen.is_some(),
        next: recurrence
            .as_ref()
            .and_then(|slots| next_due(schedule, slots, &present, now)),
        waiting: waiting(schedule, recurrence.as_ref(), &present, now),
        paused: present.pause.clone().map(|pause| PauseView {
            reason: pause.reason,
            by: pause.by,
            at: pause.at,
        }),
        overlap: schedule.policy.overlap,
        known: state.is_some(),
        last,
        succeeded_at: present.succeeded_at,
        failures: present.failures,
        blocked: BlockedSlot::newest(&present),
        expected_by: expected.map(|expected| expected.by),
        overdue: expected.is_some_and(|expected| expected.is_missed(now)),
        fallback_reason: None,
        inactive_reason: None,
        restored: present.restored.map(|restored| *restored),
        actions: present.actions,
        totals: present.totals,
        plan: plan_of(schedule, state, skill),
    })
}

fn plan_of(schedule: &Schedule, state: Option<&ScheduleState>, skill: &Prospect) -> SchedulePlan {
    SchedulePlan {
        trigger: (*schedule.trigger).clone(),
        policy: schedule.policy.as_ref().clone(),
        anchor: state.map(|state| state.anchor),
        cursor: state.map(|state| state.cursor),
        attempts: skill.attempts,
        blocked: skill.blocked.clone(),
    }
}

/// What a schedule may expect of its skill.
struct Prospect {
    /// Attempts before a run has failed; absent where the skill is not there.
    attempts: Option<u32>,
    /// Why it cannot run.
    blocked: Option<String>,
}

impl Prospect {
    fn of(catalog: &Catalog, schedule: &Schedule) -> Prospect {
        let found = find_skill(catalog, &schedule.skill.to_string());
        let attempts = found.as_ref().ok().map(|skill| skill.retry.max_attempts);
        let blocked = found.and_then(|skill| refuse_unavailable(&skill)).err();
        Prospect {
            attempts,
            blocked: blocked.map(|refused| refused.message),
        }
    }
}

/// Events that wait for their row, or the slot that does, and when the run of each starts.
fn waiting(
    schedule: &Schedule,
    recurrence: Option<&Recurrence>,
    state: &ScheduleState,
    now: Timestamp,
) -> Vec<WaitingEvent> {
    let slot = recurrence.and_then(|slots| undecided(watched(schedule, slots), state, now));
    let of_clock = slot.map(|(due, starts)| WaitingEvent {
        due,
        starts,
        after: None,
    });
    let jitter = schedule.policy.jitter_ms;
    let pending = state.pending.iter();
    let events = pending.map(|one| WaitingEvent {
        due: one.at,
        starts: one.at.plus_millis(jitter_ms(&schedule.id, one.at, jitter)),
        after: one.after,
    });
    events.chain(of_clock).collect()
}

/// When its next run starts, as if everything until now were settled.
pub(super) fn next_due(
    schedule: &Schedule,
    recurrence: &Recurrence,
    state: &ScheduleState,
    now: Timestamp,
) -> Option<Timestamp> {
    next_start(watched(schedule, recurrence), state, now)
}

fn watched<'a>(schedule: &'a Schedule, slots: &'a Recurrence) -> Watched<'a> {
    Watched {
        id: &schedule.id,
        slots,
        policy: &schedule.policy,
        zone: schedule.timezone.parse().unwrap_or(Zone::UTC),
    }
}

/// A run that goes on, has just ended, or is kept.
pub(super) fn summary_of(
    view: &View,
    store: &dyn Store,
    run: crate::model::RunId,
) -> Result<Option<RunSummary>, Diagnostic> {
    match view.run(run) {
        Some(shown) => Ok(Some(shown.summary.clone())),
        None => store.summary(run).map_err(Diagnostic::from),
    }
}

fn event_in_words(trigger: &Trigger) -> String {
    match trigger {
        Trigger::Reboot => "once after each start of the machine".to_owned(),
        Trigger::After { skill, .. } => format!("after runs of {skill}"),
        Trigger::Watch { paths, .. } => format!("when {} changes", paths.join(", ")),
        Trigger::OnCommit { branch } => format!("when `{branch}` has new commits"),
        Trigger::Cron { .. } | Trigger::Every { .. } | Trigger::At { .. } => String::new(),
    }
}

/// The schedule of this id.
pub(super) fn named(factory: &RunFactory, id: &str) -> Result<Arc<Schedule>, Diagnostic> {
    let catalog = factory.definitions.current();
    let all = &catalog.schedules;
    // Most ids are written as they are, and these are sorted.
    let exact = all.binary_search_by(|one| (*one.id).cmp(id)).ok();
    let found = exact.and_then(|at| all.get(at));
    found
        .or_else(|| all.iter().find(|one| one.id.eq_ignore_ascii_case(id)))
        .cloned()
        .ok_or_else(|| unknown(id))
}

/// The id of a schedule as it is defined, with its definition; `None` where that has gone and what is stored of it has not.
pub(super) fn defined_or_gone(
    factory: &RunFactory,
    store: &dyn Store,
    id: &str,
) -> Result<(String, Option<Arc<Schedule>>), Diagnostic> {
    let unknown = match named(factory, id) {
        Ok(defined) => return Ok((defined.id.to_string(), Some(defined))),
        Err(unknown) => unknown,
    };
    let mut gone = None;
    store.schedules(&mut |stored, _| {
        if stored.eq_ignore_ascii_case(id) {
            gone = Some(stored.to_owned());
        }
    })?;
    Ok((gone.ok_or(unknown)?, None))
}

/// The schedule of this id, which its definition does not switch off.
pub(super) fn switched_on(factory: &RunFactory, id: &str) -> Result<Arc<Schedule>, Diagnostic> {
    refuse_switched_off(&factory.definitions.current(), id)?;
    named(factory, id)
}

/// Refuses what somebody asks for while no schedule is active.
pub(super) fn refuse_held(factory: &RunFactory) -> Result<(), Diagnostic> {
    match factory.definitions.current().schedules_held() {
        Some(why) => Err(Diagnostic::new(Kind::Conflict, "schedules_held", why)
            .hint("`workerctl check` tells the error")),
        None => Ok(()),
    }
}

fn refuse_switched_off(catalog: &Catalog, id: &str) -> Result<(), Diagnostic> {
    let mut off = catalog.schedules.iter().filter(|one| one.disabled);
    let Some(found) = off.find(|one| one.id.eq_ignore_ascii_case(id)) else {
        return Ok(());
    };
    let why = format!("`{}` is switched off at {}", found.id, found.place);
    Err(Diagnostic::new(Kind::Blocked, "schedule_off", why)
        .hint("switch it on there; `workerctl run` starts the skill itself"))
}

/// There is no such schedule.
pub(super) fn unknown(id: &str) -> Diagnostic {
    let shown: String = id.chars().take(128).filter(|c| !c.is_control()).collect();
    Diagnostic::new(
        Kind::NotFound,
        "schedule_not_found",
        format!("no schedule `{shown}`"),
    )
    .hint("`workerctl schedule list` lists them")
}

/// Only a daemon fires schedules.
pub(super) fn no_daemon() -> Diagnostic {
    Diagnostic::new(
        Kind::Unreachable,
        "no_daemon",
        "schedules are fired by a daemon, and none runs",
    )
    .hint("`workerctl daemon` starts one")
}

/// How much is kept of who paused a schedule, in bytes as JSON writes it.
const BY_BYTES_MAX: usize = 128;

/// What a request to pause says.
pub(super) fn pause_of(request: &PauseRequest, now: Timestamp) -> Result<Pause, Diagnostic> {
    let reason = request.reason.trim();
    let is_text = !reason.is_empty() && !reason.chars().any(char::is_control);
    if !is_text || json_bytes(reason) > REASON_BYTES_MAX {
        let why = format!("a reason of 1 to {REASON_BYTES_MAX} bytes in one line has to say why");
        return Err(Diagnostic::new(Kind::Usage, "reason", why)
            .hint("for example: `--reason \"a holiday\"`"));
    }
    Ok(Pause {
        reason: reason.to_owned(),
        by: cut(request.by.as_deref().unwrap_or("unknown"), BY_BYTES_MAX).to_owned(),
        at: now,
    })
}
