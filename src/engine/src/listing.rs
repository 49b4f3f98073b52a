//! Lists of runs: those that go on or have just ended from the published view, all others from the store.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use super::view::View;
use crate::model::{Diagnostic, Kind, Outcome, RunId, Timestamp};
use crate::protocol::{RunSummary, RunsPage, RunsQuery};
use crate::store::Store;

/// How many runs are looked at for one answer beyond those that it holds.
const LOOKED_AT_MAX: usize = 2_000;

/// One page of runs, newest first.
pub(super) fn page(
    view: &View,
    store: &dyn Store,
    query: &RunsQuery,
) -> Result<RunsPage, Diagnostic> {
    expect_known_outcome(query)?;
    let before = before(query);
    let mut page = Filling::new(query);
    let mut live = VecDeque::from(view.newest(before, page.budget + 1));
    store.summaries(before, &mut |stored| {
        while let Some(newer) = live.pop_front_if(|shown| shown.spec.run > stored.run) {
            page.look(&newer.summary)?;
        }
        // One that has just ended may be in both; a later commit than the one that was read shows it in the store.
        live.pop_front_if(|shown| shown.spec.run == stored.run);
        page.look(&stored)
    })?;
    let all_looked_at = live.iter().try_for_each(|shown| page.look(&shown.summary));
    let _: ControlFlow<()> = all_looked_at;
    Ok(page.done())
}

/// The run that is newer than all that are wanted. A query by time does not read what is newer.
fn before(query: &RunsQuery) -> Option<RunId> {
    let of_time = query
        .until_ms
        .map(|until| RunId::lowest_of(Timestamp::from_millis(until)));
    query.before.into_iter().chain(of_time).min()
}

/// A page that is being filled.
struct Filling<'a> {
    query: &'a RunsQuery,
    text: Option<String>,
    by: Option<String>,
    most: usize,
    /// How many more may be looked at.
    budget: usize,
    page: RunsPage,
    last: Option<RunId>,
}

impl Filling<'_> {
    fn new(query: &RunsQuery) -> Filling<'_> {
        let most = query.most();
        Filling {
            query,
            text: query.text.as_deref().map(str::to_lowercase),
            by: query.by.as_deref().map(str::to_lowercase),
            most,
            budget: most + LOOKED_AT_MAX,
            page: RunsPage::default(),
            last: None,
        }
    }

    /// Takes the next run if it is wanted; breaks where nothing more is to be read.
    fn look(&mut self, run: &RunSummary) -> ControlFlow<()> {
        let is_past = |since| run.submitted_at.millis() < since;
        if self.query.since_ms.is_some_and(is_past) {
            return ControlFlow::Break(());
        }
        if self.page.next.is_none() && (self.page.runs.len() == self.most || self.budget == 0) {
            self.page.next = self.last;
        }
        if self.page.next.is_some() {
            return ControlFlow::Break(());
        }
        self.budget -= 1;
        self.last = Some(run.run);
        if self.is_wanted(run) {
            self.page.runs.push(run.clone());
        }
        ControlFlow::Continue(())
    }

    fn done(self) -> RunsPage {
        self.page
    }

    fn is_wanted(&self, run: &RunSummary) -> bool {
        let query = self.query;
        let outcome = run.outcome.as_ref();
        let fits = |wanted: &str| match wanted {
            "active" => outcome.is_none(),
            "unverified" => run.unverified,
            "reconciled" => run.reconciled,
            "nothing_to_do" => run.nothing_to_do,
            name => outcome.is_some_and(|o| o.name() == name) || run.phase.name() == name,
        };
        let is_skill =
            |skill: &String| *skill == run.skill.skill || *skill == run.skill.to_string();
        let is_schedule = |wanted: &String| {
            let schedule = run.schedule.as_ref();
            schedule.is_some_and(|id| id.eq_ignore_ascii_case(wanted))
        };
        (query.outcome.is_none() || query.outcomes().any(fits))
            && query
                .worker
                .as_ref()
                .is_none_or(|worker| *worker == run.skill.worker)
            && query.skill.as_ref().is_none_or(is_skill)
            && query.schedule.as_ref().is_none_or(is_schedule)
            && self
                .by
                .as_ref()
                .is_none_or(|by| run.by.to_lowercase().contains(by))
            && self.text.as_ref().is_none_or(|text| tells(run, text))
    }
}

/// Whether a run tells this text somewhere, which is in lower case.
fn tells(run: &RunSummary, text: &str) -> bool {
    let holds = |told: &str| told.to_lowercase().contains(text);
    let of_failure = match &run.outcome {
        Some(Outcome::Failed { failure }) => holds(&failure.code) || holds(&failure.message),
        Some(Outcome::Unknown { why }) => holds(why),
        _ => false,
    };
    of_failure
        || holds(&run.skill.to_string())
        || holds(&run.title)
        || holds(&run.run.to_string())
        || run.schedule.as_deref().is_some_and(holds)
        || run
            .newest_commit()
            .is_some_and(|commit| commit.starts_with(text))
}

/// Refuses what no run can be in.
pub fn expect_known_outcome(query: &RunsQuery) -> Result<(), Diagnostic> {
    const OTHERS: [&str; 4] = ["active", "unverified", "reconciled", "nothing_to_do"];
    let known = || Outcome::NAMES.into_iter().chain(OTHERS);
    let is_known = |outcome: &&str| {
        let mut phases = crate::model::Phase::ALL.iter();
        known().any(|one| one == *outcome) || phases.any(|phase| phase.name() == *outcome)
    };
    match query.outcomes().find(|outcome| !is_known(outcome)) {
        None => Ok(()),
        Some(outcome) => {
            let text = format!("`{outcome}` is no outcome and no phase");
            Err(Diagnostic::new(Kind::Usage, "outcome", text).hint(format!(
                "one of: {}",
                known().collect::<Vec<_>>().join(", ")
            )))
        }
    }
}
