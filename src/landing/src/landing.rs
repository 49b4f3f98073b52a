//! The order in which a commit lands, and in which a killed landing is completed or taken back.

use std::fs;
use std::path::{Path, PathBuf};

use git2::{ErrorCode, ObjectType, Tree};

use crate::attempt::{Attempt, waiting};
use crate::error::{GitError, git};
use crate::forms::Forms;
use crate::ids::{Oid, RepoPath, RunId, checked_refname};
use crate::index::{self, IndexContent, Indexes};
use crate::journal::{Journal, Observer, Unobserved};
use crate::locks::Locks;
use crate::outcome::{LandError, MetFile, Obstacle, Outcome, Recovered};
use crate::plan::{Change, LogLine, Plan};
use crate::repository::{Repo, entry_at, same};
use crate::stage;
use crate::stand::Files;

/// What is to land. The commit and its objects are in the repository already.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// A directory of the repository.
    pub repository: &'a Path,
    /// The run.
    pub run: &'a RunId,
    /// The branch, as a full name.
    pub target: &'a str,
    /// Where the branch must be; `None` where it must not exist yet.
    pub from: Option<&'a Oid>,
    /// The commit.
    pub to: &'a Oid,
    /// Commits of earlier rounds of this run.
    pub earlier: &'a [Oid],
    /// For the reflogs.
    pub log: &'a LogLine,
}

/// Lands a commit, or says what is in the way; tries once and waits for nothing.
///
/// The caller holds the repository's lease, and no landing of the run is open in the journal.
pub fn land(
    request: &Request<'_>,
    journal: &mut dyn Journal,
    observer: &dyn Observer,
) -> Result<Outcome, LandError> {
    let name = checked_refname(request.target).map_err(GitError::from)?;
    if !name.starts_with("refs/heads/") {
        return Err(LandError::refused(
            "no_branch",
            format!("`{name}` is no branch"),
        ));
    }
    let repo = Repo::find(request.repository)?;
    if request.from.is_none() {
        repo.refuse_name_conflict(name)?;
    }
    let mut plan = draft(&repo, request)?;
    if let Some(commit) = repo.landed(&plan)? {
        let late = Vec::new();
        return Ok(Outcome::Landed { commit, late });
    }
    let tip = repo.tip(&plan.target)?;
    if tip.as_ref() != request.from {
        return moved(&repo, &plan, tip);
    }
    refuse_rewritten(&repo, request)?;
    let indexes = Indexes::default();
    let forms = match plan.followers().next() {
        Some(follower) => Some(Forms::of(&follower, &indexes)?),
        None => None,
    };
    if let Some(forms) = &forms {
        forms.resolve((request.from, request.to), &mut plan.changes)?;
    }
    note_indexes(&mut plan, &indexes)?;
    let attempt = Attempt {
        plan: &plan,
        observer,
        is_fresh: true,
        indexes: &indexes,
    };
    if let Some(obstacle) = attempt.compare(&repo)? {
        return Ok(waiting(obstacle, Vec::new()));
    }
    let staged = stage::stage(&repo, &plan, (forms.as_ref(), &indexes), observer);
    if staged.is_err() && plan.followers().any(|f| !f.workdir.is_dir()) {
        // A linked work tree was removed meanwhile, and is no hindrance the next time.
        stage::clear(&plan)?;
        return Ok(waiting(Obstacle::CheckoutsChanged, Vec::new()));
    }
    let stats = staged?;
    observer.before("record that it starts");
    // No checkout has been touched before this record: without it nobody would take back what is done from here on.
    if let Err(e) = journal.started(&plan) {
        stage::clear(&plan)?;
        return Err(LandError::Journal(e));
    }
    attempt.go(journal, &stats)
}

/// Refuses a commit without the tip of the branch in its history, which commits of other people would be lost with.
fn refuse_rewritten(repo: &Repo, request: &Request<'_>) -> Result<(), LandError> {
    let Some(from) = request.from.filter(|from| *from != request.to) else {
        return Ok(());
    };
    let found = repo.inner.graph_descendant_of(request.to.raw(), from.raw());
    if found.map_err(git("search the commits"))? {
        return Ok(());
    }
    let (to, target) = (request.to, request.target);
    let message = format!("the commit {to} does not descend from {from}, which `{target}` is at");
    Err(LandError::refused("history_rewritten", message))
}

/// Completes or takes back a landing that was started and whose end is not recorded.
///
/// May itself be killed at any point, and repeated.
pub fn recover(
    plan: &Plan,
    journal: &mut dyn Journal,
    observer: &dyn Observer,
) -> Result<Recovered, LandError> {
    let attempt = Attempt {
        plan,
        observer,
        is_fresh: false,
        indexes: &Indexes::default(),
    };
    let locks = Locks::of(plan, observer);
    if let Some(commit) = Repo::at(&plan.common_dir)?.landed(plan)? {
        return attempt.finish_landed(&locks, journal, commit);
    }
    if !plan.staging.is_dir() {
        // It goes only after its landing has ended, so there is nothing to take back.
        return attempt.end_taken_back(&locks, journal, Obstacle::StagingGone, Vec::new());
    }
    if let Some(obstacle) = locks.take()? {
        return Ok(Recovered::Blocked { obstacle });
    }
    Ok(match attempt.go(journal, &[])? {
        Outcome::Landed { commit, late } => Recovered::Landed { commit, late },
        Outcome::Waiting { obstacle, left } => Recovered::TakenBack { obstacle, left },
        Outcome::Interrupted { obstacle } => Recovered::Blocked { obstacle },
        // Neither is an outcome of an attempt that was started.
        Outcome::LandedIn { tip } => Recovered::TakenBack {
            obstacle: Obstacle::TipMoved { tip: Some(tip) },
            left: Vec::new(),
        },
        Outcome::Moved { tip, .. } => Recovered::TakenBack {
            obstacle: Obstacle::TipMoved { tip },
            left: Vec::new(),
        },
    })
}

/// The lock files of git's that a landing holds now, which keep people's git from working.
pub fn held_locks(plan: &Plan) -> Vec<PathBuf> {
    Locks::of(plan, &Unobserved).held()
}

/// Files that were replaced or deleted by a landing and have been written to since, through a
/// descriptor that was open. Ask before [`stage::clear`].
pub fn late_edits(plan: &Plan) -> Result<Vec<MetFile>, LandError> {
    let follows_modes = Repo::at(&plan.common_dir)?.follows_modes();
    let mut found = Vec::new();
    for follower in plan.followers() {
        let files = Files::open(&follower, follows_modes, &Unobserved)?;
        found.extend(files.late()?);
    }
    Ok(found)
}

fn draft(repo: &Repo, request: &Request<'_>) -> Result<Plan, LandError> {
    Ok(Plan {
        run: request.run.clone(),
        target: request.target.to_owned(),
        from: request.from.cloned(),
        to: request.to.clone(),
        earlier: request.earlier.to_vec(),
        common_dir: repo.common_dir.clone(),
        staging: stage::free_place(&repo.common_dir, request.run),
        checkouts: repo.checkouts(request.target)?,
        changes: repo.changes(request.from, request.to)?,
        log: request.log.clone(),
        sharing: repo.sharing()?,
    })
}

/// What a branch that is elsewhere holds for the paths of the commit.
fn moved(repo: &Repo, plan: &Plan, tip: Option<Oid>) -> Result<Outcome, LandError> {
    let (base, tree) = (repo.tree(plan.from.as_ref())?, repo.tree(tip.as_ref())?);
    let mut conflicts = Vec::new();
    let mut holds_all = true;
    for change in &plan.changes {
        let there = entry_at(tree.as_ref(), &change.path)?;
        let is_new = same(there.as_ref(), change.new.as_ref());
        holds_all &= is_new;
        let is_other = !same(there.as_ref(), change.old.as_ref())
            || is_in_the_way(base.as_ref(), tree.as_ref(), change)?;
        if tip.is_some() && !is_new && is_other {
            conflicts.push(change.path.clone());
        }
    }
    Ok(match tip {
        Some(tip) if holds_all => Outcome::LandedIn { tip },
        tip => Outcome::Moved { tip, conflicts },
    })
}

/// Returns true if a branch got a file or link in the place of a directory on the way to a new file, or a directory in the
/// place of that file.
fn is_in_the_way(
    base: Option<&Tree<'_>>,
    tip: Option<&Tree<'_>>,
    change: &Change,
) -> Result<bool, GitError> {
    let path = change.path.as_path();
    let entry = |tree: Option<&Tree<'_>>, place: &Path| match tree.map(|tree| tree.get_path(place))
    {
        Some(Ok(found)) => Ok(Some((found.id(), found.kind() == Some(ObjectType::Tree)))),
        Some(Err(error)) if error.code() != ErrorCode::NotFound => Err(git("read a tree")(error)),
        _ => Ok(None),
    };
    for place in path.ancestors().take_while(|_| change.new.is_some()) {
        if place.as_os_str().is_empty() {
            break;
        }
        let found = entry(tip, place)?;
        let is_unfit = found.is_some_and(|(_, is_tree)| is_tree == (place == path));
        if is_unfit && found != entry(base, place)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Files that a sparse checkout leaves out are changed in the index only; what is staged already as the
/// commit has it is not ours to take back.
fn note_indexes(plan: &mut Plan, indexes: &Indexes) -> Result<(), LandError> {
    let changes = &plan.changes;
    for checkout in plan.checkouts.iter_mut().filter(|c| c.follows) {
        let Some(workdir) = &checkout.workdir else {
            continue;
        };
        let seen = indexes.read(&checkout.git_dir.join("index"))?;
        let index = &seen.index;
        let is_left_out = |path: &RepoPath| {
            index::is_skipped(index, path)
                && fs::symlink_metadata(workdir.join(path.as_path())).is_err()
        };
        let numbered = changes.iter().enumerate();
        let omitted = numbered.filter(|(_, change)| is_left_out(&change.path));
        checkout.index_only = omitted.map(|(number, _)| number).collect();
        let numbered = changes.iter().enumerate();
        let staged = numbered.filter(|(_, c)| index::held(index, c, changes) == IndexContent::New);
        checkout.staged_before = staged.map(|(number, _)| number).collect();
    }
    Ok(())
}
