//! Where runs of a skill work and where their result lands: what of it applies to this skill.

use std::collections::BTreeMap;

use super::Builder;
use crate::isolation::{self, PushTo};
use crate::model::Place;
use crate::model::isolation::{BranchChoice, LocalEntry};
use crate::report::Report;

/// Keys of skills and workers whose values name something that may be missing.
pub(crate) const PLACED: [&str; 5] = ["branch", "push", "cwd", "env", "hooks"];

/// What a skill says of it; where it says nothing its worker; and where that says nothing the configuration.
pub(super) struct SkillPlacement {
    pub(super) branch: Option<BranchChoice>,
    pub(super) keep: Vec<String>,
    pub(super) local: Vec<LocalEntry>,
    pub(super) parallel: bool,
    pub(super) push: Option<String>,
    pub(super) filtered_stored: bool,
}

impl Builder<'_, '_> {
    /// A skill's own keys count before its worker's, and those before the configuration's. Its own are told where they can have no effect; a worker's
    /// are for those of its skills to which they apply.
    pub(super) fn placement(&self, mutating: bool, report: &mut Report) -> SkillPlacement {
        let config = self.worker.config;
        let own = isolation::read(|key| self.layers.get(key), config, report);
        let worker = &self.worker.placement;
        self.report_removed(mutating, report);
        self.report_unused(mutating, report);
        SkillPlacement {
            branch: own
                .branch
                .or_else(|| worker.branch.clone())
                .or_else(|| config.branch.clone())
                .filter(|_| mutating),
            keep: only(mutating, own.keep.or_else(|| worker.keep.clone())),
            local: only(mutating, own.local.or_else(|| worker.local.clone())),
            parallel: self.flag("parallel", report).unwrap_or(false) && mutating,
            push: own
                .push
                .or_else(|| worker.push.clone())
                .map_or_else(|| config.push.clone(), PushTo::remote)
                .filter(|_| mutating),
            filtered_stored: self.filtered_stored(report) && mutating,
        }
    }

    /// Where values are written that only the environment can refuse: in the skill, or in its worker.
    pub(super) fn places(&self) -> BTreeMap<String, Place> {
        let mut places = self.worker.places.clone();
        for key in PLACED {
            if let Some(view) = self.layers.get(key) {
                places.insert(key.to_owned(), view.place());
            }
        }
        if let Some(run) = self.layers.get("run") {
            let program = run.items().next().or_else(|| run.get("interpreter"));
            places.extend(program.map(|program| ("program".to_owned(), program.place())));
        }
        let tools = self.layers.get("required_tools").into_iter();
        for item in tools.flat_map(|tools| tools.each()) {
            if let Some(name) = item.scalar_text() {
                places.insert(format!("required_tools/{name}"), item.place());
            }
        }
        places
    }

    /// Reports keys that only earlier versions evaluate.
    fn report_removed(&self, mutating: bool, report: &mut Report) {
        if let Some(view) = self.layers.get("writes") {
            report.error(
                "writes-removed",
                view.key_place(),
                "`writes` was removed: all that a run changes in its worktree is its result"
                    .to_owned(),
                "remove `writes`",
            );
        }
        let Some(view) = self.layers.get("isolation") else {
            return;
        };
        // It promises that the checkout is left alone, which such a run does not keep: it works there.
        if !mutating && isolation::names_worktree(view) {
            report.error(
                "isolation-not-mutating",
                view.place(),
                format!(
                    "`{}` is not mutating: it works in the checkout, and `isolation: worktree` would not change that",
                    self.item.id
                ),
                "write `mutating: true`, or remove `isolation`",
            );
        } else {
            isolation::report_isolation(view, report);
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
    fn report_unused(&self, mutating: bool, report: &mut Report) {
        let changes_nothing = "on a skill that is not mutating";
        let no_tree = "on runs that have no worktree";
        for (key, why) in [
            ("branch", changes_nothing),
            ("push", changes_nothing),
            ("parallel", changes_nothing),
            ("keep", no_tree),
            ("local", no_tree),
            ("filtered", no_tree),
        ] {
            let Some(view) = self.layers.get(key).filter(|_| !mutating) else {
                continue;
            };
            report.warning(
                "placement-unused",
                view.key_place(),
                format!("`{key}` has no effect {why}"),
                &format!("write `mutating: true`, or remove `{key}`"),
            );
        }
    }
}

fn only<T>(applies: bool, list: Option<Vec<T>>) -> Vec<T> {
    list.filter(|_| applies).unwrap_or_default()
}
