//! Where runs of a skill work and where their result lands: what of it applies to this skill.

use super::Builder;
use crate::isolation::{self, AskedIsolation, PushTo};
use crate::model::definition::Output;
use crate::model::isolation::{BranchChoice, Isolation, LocalEntry};
use crate::report::Report;
use crate::tree::Data;

/// What a skill says of it; where it says nothing its worker; and where that says nothing the configuration.
pub(super) struct SkillPlacement {
    pub(super) isolation: Option<Isolation>,
    pub(super) branch: Option<BranchChoice>,
    pub(super) writes: Vec<String>,
    pub(super) keep: Vec<String>,
    pub(super) local: Vec<LocalEntry>,
    pub(super) parallel: bool,
    pub(super) push: Option<String>,
    pub(super) filtered_stored: bool,
}

impl Builder<'_, '_> {
    /// A skill's own keys count before its worker's, and those before the configuration's. Its own are told where they can have no effect; a worker's
    /// are for those of its skills to which they apply.
    pub(super) fn placement(
        &self,
        mutating: bool,
        outputs: &[Output],
        report: &mut Report,
    ) -> SkillPlacement {
        let config = self.worker.config;
        let own = isolation::read(|key| self.layers.get(key), config, report);
        let worker = &self.worker.placement;
        let isolation = self.isolation(own.isolation.as_ref(), mutating, report);
        let writes = self.layers.get("writes").map_or_else(Vec::new, |view| {
            isolation::paths(view, "writes", config, report)
        });
        self.check_owned(outputs, own.isolation.as_ref(), isolation, report);
        let in_place = isolation == Some(Isolation::InPlace);
        let tree = mutating && !in_place;
        self.report_unused(mutating, tree, report);
        SkillPlacement {
            isolation,
            branch: own
                .branch
                .or_else(|| worker.branch.clone())
                .or_else(|| config.branch.clone())
                .filter(|_| mutating),
            writes,
            keep: only(tree, own.keep.or_else(|| worker.keep.clone())),
            local: only(tree, own.local.or_else(|| worker.local.clone())),
            parallel: self.flag("parallel", report).unwrap_or(false) && tree,
            push: own
                .push
                .or_else(|| worker.push.clone())
                .map_or_else(|| config.push.clone(), PushTo::remote)
                .filter(|_| mutating),
            filtered_stored: self.filtered_stored(report) && tree,
        }
    }

    fn isolation(
        &self,
        own: Option<&AskedIsolation>,
        mutating: bool,
        report: &mut Report,
    ) -> Option<Isolation> {
        let asked = own.or(self.worker.placement.isolation.as_ref())?;
        match asked.isolation {
            None if mutating => {
                report.error(
                    "isolation-none",
                    asked.place.clone(),
                    format!(
                        "`{}` changes things: its runs need a tree of their own, or must say what they own",
                        self.item.id
                    ),
                    "write `isolation: worktree`, or `isolation: in_place` with what the skill writes",
                );
                None
            }
            // It promises that the checkout is left alone, which such a run does not keep: it works there.
            Some(Isolation::Worktree) if !mutating && own.is_some() => {
                report.error(
                    "isolation-not-mutating",
                    asked.place.clone(),
                    format!(
                        "`{}` is not mutating: it works in the checkout, and `isolation: worktree` would not keep it from there",
                        self.item.id
                    ),
                    "write `mutating: true`, or remove `isolation`",
                );
                None
            }
            Some(Isolation::InPlace) if !mutating && own.is_some() => {
                report.warning(
                    "placement-unused",
                    asked.place.clone(),
                    "`isolation: in_place` has no effect on a skill that is not mutating"
                        .to_owned(),
                    "write `mutating: true`, or remove `isolation`",
                );
                None
            }
            _ if !mutating => None,
            said => said,
        }
    }

    /// What runs in the checkout own has to be said; elsewhere `writes` would restrict nothing.
    fn check_owned(
        &self,
        outputs: &[Output],
        own: Option<&AskedIsolation>,
        isolation: Option<Isolation>,
        report: &mut Report,
    ) {
        if isolation != Some(Isolation::InPlace) {
            if let Some(view) = self.layers.get("writes") {
                report.error(
                    "writes-elsewhere",
                    view.key_place(),
                    "`writes` is for mutating skills with `isolation: in_place`: it would restrict nothing here"
                        .to_owned(),
                    "write `isolation: in_place`, or remove `writes`",
                );
            }
            return;
        }
        let declared = outputs.iter().any(|output| output.destination.is_some());
        // What was written and cannot be read is told already.
        let unwritten = self
            .layers
            .get("writes")
            .is_none_or(|view| matches!(view.data(), Data::List(items) if items.is_empty()));
        if unwritten && !declared {
            let place = own.or(self.worker.placement.isolation.as_ref());
            report.error(
                "in-place-owns-nothing",
                place.map_or_else(|| self.place(), |asked| asked.place.clone()),
                format!(
                    "`{}` works in the checkout and names nothing that it writes: nothing would be its own",
                    self.item.id
                ),
                "declare an output with a `destination`, or add `writes: [data/]`",
            );
        }
    }

    fn filtered_stored(&self, report: &mut Report) -> bool {
        let Some(view) = self.layers.get("filtered") else {
            return false;
        };
        let text = view.text("filtered", report);
        let stored = text.as_deref() == Some("stored");
        if let Some(other) = text.filter(|_| !stored) {
            report.error(
                "unknown-value",
                view.place(),
                format!("`filtered: {}` is not known", other.escape_debug()),
                "write `filtered: stored` where the skill can work on files as git stores them",
            );
        }
        stored
    }

    /// Says which of the skill's own keys can have no effect.
    fn report_unused(&self, mutating: bool, tree: bool, report: &mut Report) {
        let changes_nothing = "on a skill that is not mutating";
        let no_tree = "on runs that have no tree of their own";
        let to_mutating = "write `mutating: true`";
        let to_tree = if mutating {
            "write `isolation: worktree`"
        } else {
            to_mutating
        };
        for (key, applies, why, hint) in [
            ("branch", mutating, changes_nothing, to_mutating),
            ("push", mutating, changes_nothing, to_mutating),
            ("parallel", mutating, changes_nothing, to_mutating),
            (
                "parallel",
                !mutating || tree,
                "with `isolation: in_place`: one run at a time works in a checkout",
                to_tree,
            ),
            ("keep", tree, no_tree, to_tree),
            ("local", tree, no_tree, to_tree),
            ("filtered", tree, no_tree, to_tree),
        ] {
            let Some(view) = self.layers.get(key).filter(|_| !applies) else {
                continue;
            };
            report.warning(
                "placement-unused",
                view.key_place(),
                format!("`{key}` has no effect {why}"),
                &format!("{hint}, or remove `{key}`"),
            );
        }
    }
}

fn only<T>(applies: bool, list: Option<Vec<T>>) -> Vec<T> {
    list.filter(|_| applies).unwrap_or_default()
}
