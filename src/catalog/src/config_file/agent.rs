//! `models`, `budget`, `toolsets` and `instances`: what executes instructions, with what tools, for how much and for whom.

use super::Reader;
use crate::agent_program::DeclaredProgram;
use crate::model::config::CONFIG_FILE;
use crate::report::Report;
use crate::tree::Data;
use crate::view::View;
use crate::{budgets, instances, models, toolsets};

impl Reader<'_, '_> {
    pub(super) fn models(&mut self, report: &mut Report) {
        if let Some(view) = self.at("models") {
            for (view, model) in models::read(view, report) {
                self.stands_at(&format!("models.{}", model.alias), view);
                self.config.models.insert(model.alias.clone(), model);
            }
        }
        if let Some(view) = self.at("toolsets") {
            for (view, set) in toolsets::read(view, report) {
                self.stands_at(&format!("toolsets.{}", set.name), view);
                self.config.toolsets.insert(set.name.clone(), set);
            }
        }
    }

    pub(super) fn program(&mut self, report: &mut Report) {
        let Some(view) = self.map.written("agent") else {
            return;
        };
        self.at_all("agent");
        if !matches!(view.data(), Data::Map(_)) {
            return view.wrong_type("agent", "a map such as `{cli: claude}`", report);
        }
        let outer = DeclaredProgram::default();
        let asked = DeclaredProgram::read_within(Some(view), &outer, report);
        self.config.program = asked.resolved(None, self.config).map(Box::new);
    }

    pub(super) fn instances(&mut self, report: &mut Report) {
        let Some(view) = self.at("instances") else {
            return;
        };
        for (view, template, made) in instances::read(view, report) {
            self.stands_at(&format!("instances.{template}"), view);
            self.config.instances.insert(template.to_owned(), made);
        }
    }

    fn stands_at(&mut self, path: &str, view: View<'_>) {
        let origin = format!("{CONFIG_FILE}:{}", view.key_place().line);
        self.config.origins.insert(path.to_owned(), origin);
    }

    /// Reads what is limited where neither worker nor skill says; after the models, whose prices it needs.
    pub(super) fn budget(&mut self, report: &mut Report) {
        let Some(view) = self.map.written("budget") else {
            return;
        };
        self.at_all("budget");
        let asked = budgets::read(view, report);
        self.config.budget = asked.budget.within(self.config.budget);
        self.config.per_day = asked.per_day;
        for model in self.config.models.values() {
            asked.check_prices(model, report);
        }
    }
}
