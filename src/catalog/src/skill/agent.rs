//! How a skill's instructions are executed, and what its runs may spend.

use super::Builder;
use crate::agent_program::DeclaredProgram;
use crate::budgets::{self, DeclaredBudget};
use crate::dialect::{tools, workspace};
use crate::executor::Named;
use crate::keys::{SKILL, suggest};
use crate::model::Place;
use crate::model::agent::{DayBudget, DeclaredAgent};
use crate::model::definition::RunText;
use crate::report::Report;
use crate::view::View;

impl Builder<'_, '_> {
    /// A command that is misspelled would be none, and a model would be told to do what it can.
    pub(super) fn report_misspelled_run(&self, report: &mut Report) {
        let layers = [self.layers.file, self.layers.inline].into_iter().flatten();
        let mut keys = layers.flat_map(|layer| layer.entries());
        let known = SKILL.names();
        let near = keys.find(|(key, _)| {
            suggest(key, &known).is_none() && strsim::osa_distance(key, "run") <= 1
        });
        if let Some((key, value)) = near {
            let (key, id) = (key.escape_debug(), &self.item.id);
            report.error(
                "key-misspelled",
                value.key_place(),
                format!("`{key}` is no key, and without `run` a model would execute `{id}`"),
                "write `run`",
            );
        }
    }

    pub(super) fn agent(&self, run: &RunText, report: &mut Report) -> DeclaredAgent {
        let written = self.layers.get("budget");
        let asked = written.map(|view| budgets::read(view, report));
        let asked = asked.unwrap_or_default();
        let toolsets = self.layers.get("toolsets");
        let mut named = Named {
            model: None,
            toolsets: toolsets.map_or_else(Vec::new, names),
        };
        if *run != RunText::Instructions {
            named.report_missing(self.worker.config, report);
            if let Some(view) = written.filter(|_| asked.is_for_models()) {
                report.warning(
                    "budget-unused",
                    view.key_place(),
                    "a command uses no model, so in `budget` only `per_day.runs` has an effect"
                        .to_owned(),
                    "remove the rest; `timeout` and `limits` hold commands",
                );
            }
            return of_command(&asked, self.worker.budget.per_day);
        }
        let get = |key: &str| self.layers.get(key);
        named.model = workspace::model(get("preferred_model"), get("model"), report);
        let program = DeclaredProgram::read_within(get("agent"), &self.worker.program, report);
        if !program.names_program() {
            named.report_missing(self.worker.config, report);
        }
        let own = named.model.map(|(alias, _)| alias);
        let model = own.or_else(|| self.worker.model.clone());
        let program = program.resolved(model.as_deref(), self.worker.config);
        let (outer, config) = (&self.worker.budget, self.worker.config);
        let asks_model = config.model(model.as_deref()).filter(|_| program.is_none());
        if let Some(model) = asks_model {
            asked.check_prices(model, report);
            outer.check_prices(model, report);
        }
        DeclaredAgent {
            model,
            program: program.map(Box::new),
            max_iterations: get("max_iterations")
                .and_then(|view| workspace::max_iterations(view, report)),
            budget: asked.budget.within(outer.budget).within(config.budget),
            per_day: asked.per_day,
            worker_per_day: outer.per_day,
            context: self.worker.context.clone(),
        }
    }
}

/// A command spends nothing: only its runs are counted.
fn of_command(asked: &DeclaredBudget, worker: DayBudget) -> DeclaredAgent {
    let runs = |day: DayBudget| DayBudget {
        money: None,
        runs: day.runs,
    };
    DeclaredAgent {
        per_day: runs(asked.per_day),
        worker_per_day: runs(worker),
        ..DeclaredAgent::default()
    }
}

/// The names in a list or a text, with places.
fn names(view: View<'_>) -> Vec<(String, Place)> {
    let of = |item: View<'_>| {
        let place = item.place();
        let names = tools::names(&item.json()).into_iter();
        names.map(move |name| (name, place.clone()))
    };
    view.each().into_iter().flat_map(of).collect()
}
