//! Landings that were left half-way, and the trees that runs work in.

use super::{Finding, State};
use crate::cli::commands::{self, check::counted};
use crate::cli::engine::{self, LeftLanding};
use crate::cli::globals::Site;
use crate::cli::render::times;
use crate::protocol::{Control, TreesView};

/// Landings of an engine that was killed, with the locks in the way of people's git.
pub(super) fn left(site: &Site) -> Vec<LeftLanding> {
    engine::left_landings(site)
}

pub(super) fn told(landing: &LeftLanding) -> Finding {
    let text = format!(
        "the landing of run {} on `{}` was interrupted",
        landing.run, landing.branch
    );
    let locks = landing.locks.iter();
    let locks: Vec<String> = locks.map(|path| format!("`{}`", path.display())).collect();
    let text = match locks.as_slice() {
        [] => text,
        locks => format!("{text}: it holds {}", locks.join(", ")),
    };
    Finding::new("landing", State::Care, text).hint(
        "any command that uses the engine, such as `workerctl status`, completes it and removes its locks; if it remains, that command shows what blocks it",
    )
}

/// The trees and the commits on no branch, as an engine counts them.
pub(super) fn standing(control: &dyn Control) -> Vec<Finding> {
    let Ok(status) = control.status() else {
        return Vec::new();
    };
    let kept = (status.kept_commits > 0).then(|| {
        Finding::new("kept", State::Care, commands::status::kept(&status))
            .hint("`workerctl show RUN` says what kept it off its branch")
    });
    let unresolved = (status.unresolved > 0).then(|| {
        Finding::new("runs", State::Care, commands::status::unresolved(&status))
            .hint("`workerctl resolve RUN --as succeeded|failed --note TEXT` records what happened")
    });
    let git = status.git_problem.map(|problem| {
        Finding::new("git", State::Bad, problem)
            .hint("make it writable for the user of the engine; a service needs `ReadWritePaths=` in its unit")
    });
    let trees = status.trees.map(trees);
    trees
        .into_iter()
        .chain(git)
        .chain(unresolved)
        .chain(kept)
        .collect()
}

fn trees(trees: TreesView) -> Finding {
    if let Some(problem) = trees.problem {
        return Finding::new("trees", State::Bad, problem);
    }
    let count = counted(usize::try_from(trees.count).unwrap_or(usize::MAX), "tree");
    let text = format!(
        "{count}, {} in use, {}, in {}",
        trees.in_use,
        times::bytes(trees.bytes),
        trees.place.unwrap_or_default()
    );
    Finding::new("trees", State::Good, text)
}
