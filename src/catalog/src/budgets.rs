//! `budget`: what runs with a model may spend.

use super::amounts;
use super::keys::{BUDGET, PER_DAY};
use super::report::Report;
use super::view::View;
use crate::model::Place;
use crate::model::agent::{Budget, DayBudget, Model};

/// What the keys hold, for messages.
const EXPECTED: &str = "a map such as `{money: 2.50}`";

/// The largest limits: a larger number is more likely a typing error than meant.
const TOKENS_MAX: u64 = 1_000_000_000_000;
const TURNS_MAX: u32 = 1_000_000;
const RUNS_MAX: u32 = 1_000_000;

/// What one level of a definition says.
#[derive(Debug, Clone)]
pub(crate) struct DeclaredBudget {
    /// Of one run.
    pub(crate) budget: Budget,
    /// Of the runs of a day.
    pub(crate) per_day: DayBudget,
    /// Where it first limits money.
    pub(crate) money: Option<Place>,
}

impl Default for DeclaredBudget {
    fn default() -> DeclaredBudget {
        DeclaredBudget {
            budget: Budget::UNSAID,
            per_day: DayBudget::default(),
            money: None,
        }
    }
}

impl DeclaredBudget {
    /// Whether anything is said that means nothing to a command.
    pub(crate) fn is_for_models(&self) -> bool {
        self.budget != Budget::UNSAID || self.per_day.money.is_some()
    }

    /// Says that what this model spends cannot be counted, where it is limited.
    pub(crate) fn check_prices(&self, model: &Model, report: &mut Report) {
        let Some(place) = self.money.as_ref().filter(|_| model.prices.is_none()) else {
            return;
        };
        let alias = &model.alias;
        report.error(
            "prices-missing",
            place.clone(),
            format!("money is limited, and the model `{alias}` has no prices"),
            &format!("add `prices: {{input: …, output: …}}` to `{alias}` below `models` of workerctl.yaml"),
        );
    }
}

/// Reads `budget`. A key that is not known is an error: otherwise nothing would be limited.
pub(crate) fn read(view: View<'_>, report: &mut Report) -> DeclaredBudget {
    let mut asked = DeclaredBudget::default();
    if !BUDGET.is_map(view, "budget", EXPECTED, report) {
        return asked;
    }
    let day = view.written("per_day");
    let day = day.filter(|day| PER_DAY.is_map(*day, "per_day", EXPECTED, report));
    let of_day = |key| day.and_then(|day| day.written(key));
    let money = [view.written("money"), of_day("money")];
    asked.money = money.into_iter().flatten().next().map(|view| view.place());
    let [of_run, of_day_money] = money.map(|money| amounts::money_limit(money?, "money", report));
    asked.budget = Budget {
        tokens: view
            .written("tokens")
            .and_then(|view| amounts::whole(view, "tokens", 1..=TOKENS_MAX, report)),
        money: of_run,
        turns: view
            .written("turns")
            .and_then(|view| amounts::small(view, "turns", TURNS_MAX, report)),
    };
    asked.per_day = DayBudget {
        money: of_day_money,
        runs: of_day("runs").and_then(|view| amounts::small(view, "runs", RUNS_MAX, report)),
    };
    if let (Some(run), Some(day), Some(place)) = (of_run, of_day_money, &asked.money)
        && run > day
    {
        report.error(
            "limits-contradict",
            place.clone(),
            format!(
                "`money: {run}` of one run is more than `per_day: {{money: {day}}}` of all runs"
            ),
            "lower the limit of one run, or raise the limit per day",
        );
    }
    asked
}
