//! The order in which a commit lands, and in which a killed landing is completed or taken back.

use std::fs;
use std::path::Path;

use crate::branch;
use crate::error::GitError;
use crate::forms::Forms;
use crate::ids::{Oid, RepoPath, RunId, checked_refname};
use crate::index::{self, Held, Prepared, Stats, Way};
use crate::journal::{Journal, Observer};
use crate::locks::{Locks, lock_of};
use crate::outcome::{Kept, LandError, Obstacle, Outcome, Recovered};
use crate::plan::{Follower, LogLine, Plan};
use crate::repository::{Repo, entry_at, operation, same};
use crate::stage;
use crate::stand::{Files, Stand};
use crate::worktree::sync_directory;

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
    let forms = match plan.followers().next() {
        Some(follower) => Some(Forms::of(follower.workdir)?),
        None => None,
    };
    if let Some(forms) = &forms {
        forms.resolve((request.from, request.to), &mut plan.changes)?;
    }
    note_indexes(&mut plan)?;
    let attempt = Attempt {
        plan: &plan,
        observer,
        is_fresh: true,
    };
    if let Some(obstacle) = attempt.compare(&repo)? {
        return Ok(waiting(obstacle, Vec::new()));
    }
    let stats = stage::stage(&repo, &plan, forms.as_ref(), observer)?;
    observer.before("record that it starts");
    if let Err(e) = journal.started(&plan) {
        clear(&plan)?;
        return Err(LandError::Journal(e));
    }
    attempt.go(journal, &stats)
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

/// Removes the staging folder of a landing that has ended.
pub fn clear(plan: &Plan) -> Result<(), LandError> {
    match fs::remove_dir_all(&plan.staging) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(crate::error::io_at("remove", &plan.staging)(e).into())
        }
        _ => Ok(()),
    }
}

/// Files that were replaced or deleted by a landing and have been written to since, through a
/// descriptor that was open. Ask before [`clear`].
pub fn late_edits(plan: &Plan) -> Result<Vec<Kept>, LandError> {
    let follows_modes = Repo::at(&plan.common_dir)?.follows_modes();
    let mut found = Vec::new();
    for follower in plan.followers() {
        let files = Files::open(&follower, follows_modes, &crate::journal::Unobserved)?;
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
    })
}

fn waiting(obstacle: Obstacle, left: Vec<Kept>) -> Outcome {
    Outcome::Waiting { obstacle, left }
}

/// What a branch that is elsewhere holds for the paths of the commit.
fn moved(repo: &Repo, plan: &Plan, tip: Option<Oid>) -> Result<Outcome, LandError> {
    let tree = repo.tree(tip.as_ref())?;
    let mut conflicts = Vec::new();
    let mut holds_all = true;
    for change in &plan.changes {
        let there = entry_at(tree.as_ref(), &change.path)?;
        let is_new = same(there.as_ref(), change.new.as_ref());
        holds_all &= is_new;
        if tip.is_some() && !is_new && !same(there.as_ref(), change.old.as_ref()) {
            conflicts.push(change.path.clone());
        }
    }
    Ok(match tip {
        Some(tip) if holds_all => Outcome::LandedIn { tip },
        tip => Outcome::Moved { tip, conflicts },
    })
}

/// Files that a sparse checkout leaves out are changed in the index only; what is staged already as the
/// commit has it is not ours to take back.
fn note_indexes(plan: &mut Plan) -> Result<(), LandError> {
    let changes = &plan.changes;
    for checkout in plan.checkouts.iter_mut().filter(|c| c.follows) {
        let Some(workdir) = &checkout.workdir else {
            continue;
        };
        let index = index::read(&checkout.git_dir.join("index"))?;
        let is_left_out = |path: &RepoPath| {
            index::is_skipped(&index, path)
                && fs::symlink_metadata(workdir.join(path.as_path())).is_err()
        };
        let numbered = changes.iter().enumerate();
        let left_out = numbered.filter(|(_, change)| is_left_out(&change.path));
        checkout.index_only = left_out.map(|(number, _)| number).collect();
        let numbered = changes.iter().enumerate();
        let staged = numbered.filter(|(_, c)| index::held(&index, c, changes) == Held::New);
        checkout.staged_before = staged.map(|(number, _)| number).collect();
    }
    Ok(())
}

struct Attempt<'a> {
    plan: &'a Plan,
    observer: &'a dyn Observer,
    /// Whether nothing was placed yet when it began.
    is_fresh: bool,
}

impl Attempt<'_> {
    /// From a recorded start, with the locks taken or not, to its end.
    fn go(&self, journal: &mut dyn Journal, stats: &[Stats]) -> Result<Outcome, LandError> {
        let locks = Locks::of(self.plan, self.observer);
        if let Some(obstacle) = locks.take()? {
            return self.give_up(&locks, journal, obstacle);
        }
        for follower in self.plan.followers() {
            for way in [Way::Forward, Way::Back] {
                Prepared::of(&follower, way).put_back(&follower)?;
            }
        }
        let repo = Repo::at(&self.plan.common_dir)?;
        if let Some(commit) = repo.landed(self.plan)? {
            return Ok(match self.finish_landed(&locks, journal, commit)? {
                Recovered::Landed { commit, late } => Outcome::Landed { commit, late },
                Recovered::TakenBack { obstacle, left } => waiting(obstacle, left),
                Recovered::Blocked { obstacle } => Outcome::Interrupted { obstacle },
            });
        }
        if let Some(obstacle) = self.compare(&repo)? {
            return self.give_up(&locks, journal, obstacle);
        }
        if let Some(obstacle) = self.forward(&repo, &locks, stats)? {
            return self.give_up(&locks, journal, obstacle);
        }
        locks.release()?;
        let late = self.late(&repo)?;
        self.observer.before("record that it landed");
        journal.landed(self.plan).map_err(LandError::Journal)?;
        let commit = self.plan.to.clone();
        Ok(Outcome::Landed { commit, late })
    }

    /// What keeps the landing from going on, if anything.
    fn compare(&self, repo: &Repo) -> Result<Option<Obstacle>, LandError> {
        let plan = self.plan;
        let tip = repo.tip(&plan.target)?;
        if tip != plan.from {
            return Ok(Some(Obstacle::TipMoved { tip }));
        }
        for now in repo.checkouts(&plan.target)? {
            let then = plan.checkouts.iter().find(|c| c.git_dir == now.git_dir);
            let follows = then.is_some_and(|then| then.follows);
            if now.follows != follows {
                return Ok(Some(Obstacle::CheckoutsChanged));
            }
            let busy = operation(&now, &plan.target);
            if busy.is_some() {
                return Ok(busy);
            }
            if now.follows && now.workdir.is_none() && now.git_dir.join("locked").exists() {
                let git_dir = now.git_dir;
                return Ok(Some(Obstacle::CheckoutMissing { git_dir }));
            }
        }
        for follower in plan.followers() {
            let found = self.compare_checkout(repo, &follower)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn compare_checkout(
        &self,
        repo: &Repo,
        follower: &Follower<'_>,
    ) -> Result<Option<Obstacle>, LandError> {
        let workdir = follower.workdir.to_owned();
        if !workdir.is_dir() {
            return Ok(Some(Obstacle::CheckoutsChanged));
        }
        let index = index::read(&follower.index())?;
        let changes = &self.plan.changes;
        let is_staged =
            |change: &&crate::plan::Change| index::held(&index, change, changes) == Held::Other;
        let staged = changes.iter().filter(is_staged);
        let paths: Vec<_> = staged.map(|change| change.path.clone()).collect();
        if !paths.is_empty() {
            return Ok(Some(Obstacle::Staged { workdir, paths }));
        }
        let files = Files::open(follower, repo.follows_modes(), self.observer)?;
        let mut paths = self.appeared(&index, follower);
        paths.extend(files.dirty(|stand| match stand {
            Stand::Old | Stand::New => true,
            Stand::Placed | Stand::Edited | Stand::Restored => !self.is_fresh,
            Stand::Blocked => false,
        })?);
        Ok((!paths.is_empty()).then_some(Obstacle::Dirty { workdir, paths }))
    }

    /// Paths that were left out of the work tree when the plan was made, and are not any more.
    fn appeared(&self, index: &git2::Index, follower: &Follower<'_>) -> Vec<RepoPath> {
        let numbered = self.plan.changes.iter().enumerate();
        let left_out = numbered.filter(|(n, _)| follower.checkout.index_only.contains(n));
        let here = |path: &RepoPath| {
            let file = follower.workdir.join(path.as_path());
            let is_gone = index.get_path(path.as_path(), 0).is_none();
            fs::symlink_metadata(file).is_ok() || !(is_gone || index::is_skipped(index, path))
        };
        let appeared = left_out.filter(|(_, change)| here(&change.path));
        appeared.map(|(_, change)| change.path.clone()).collect()
    }

    /// Files, index, branch, reflogs: in this order, so that no commit of somebody's can hold less than
    /// the branch says.
    fn forward(
        &self,
        repo: &Repo,
        locks: &Locks<'_>,
        stats: &[Stats],
    ) -> Result<Option<Obstacle>, LandError> {
        let followers: Vec<_> = self.plan.followers().collect();
        for follower in &followers {
            let files = Files::open(follower, repo.follows_modes(), self.observer)?;
            if let Some(path) = files.place_all()? {
                return Ok(Some(dirty(follower, vec![path])));
            }
            files.sync()?;
        }
        for follower in &followers {
            let files = Files::open(follower, repo.follows_modes(), self.observer)?;
            let is_in_place = |stand| matches!(stand, Stand::New | Stand::Placed | Stand::Edited);
            let paths = files.dirty(is_in_place)?;
            if !paths.is_empty() {
                return Ok(Some(dirty(follower, paths)));
            }
        }
        for (number, follower) in followers.iter().enumerate() {
            if let Some(lost) = locks.lost() {
                return Ok(Some(lost));
            }
            if !self.replace_index(follower, stats.get(number))? {
                let lock = lock_of(&follower.index());
                return Ok(Some(Obstacle::LockLost { lock }));
            }
        }
        branch::ensure_log(self.plan, self.observer)?;
        if let Some(lost) = locks.lost() {
            return Ok(Some(lost));
        }
        if !branch::move_branch(self.plan, self.observer)? {
            let lock = lock_of(&self.plan.common_dir.join(&self.plan.target));
            return Ok(Some(Obstacle::LockLost { lock }));
        }
        branch::append_logs(self.plan, self.observer)?;
        Ok(None)
    }

    /// Puts the new index in place; `false` where somebody has written the index in spite of the lock.
    fn replace_index(
        &self,
        follower: &Follower<'_>,
        stats: Option<&Stats>,
    ) -> Result<bool, LandError> {
        if self.plan.changes.is_empty() {
            return Ok(true);
        }
        let prepared = Prepared::of(follower, Way::Forward);
        if !prepared.is_current(follower) {
            // The times of files that somebody may have written to since are not known: they stay zero.
            self.observer.before("make the index again");
            let none = Stats::new();
            let stats = stats.unwrap_or(&none);
            if !index::prepare(follower, Way::Forward, stats, |_| true)? {
                return Ok(true);
            }
        }
        self.exchange_index(follower, &prepared)
    }

    fn exchange_index(
        &self,
        follower: &Follower<'_>,
        prepared: &Prepared,
    ) -> Result<bool, LandError> {
        self.observer.before("replace the index");
        let is_ours = prepared.replace(follower)?;
        self.observer.before("sync the index");
        sync_directory(&follower.checkout.git_dir)?;
        Ok(is_ours)
    }

    /// Takes back what was placed, as far as nobody has changed it, and ends the landing.
    fn give_up(
        &self,
        locks: &Locks<'_>,
        journal: &mut dyn Journal,
        obstacle: Obstacle,
    ) -> Result<Outcome, LandError> {
        if self.is_touched()?
            && let Some(held) = locks.retake_indexes()?
        {
            locks.release()?;
            return Ok(Outcome::Interrupted { obstacle: held });
        }
        let left = self.take_back()?;
        Ok(match self.end_taken_back(locks, journal, obstacle, left)? {
            Recovered::Landed { commit, late } => Outcome::Landed { commit, late },
            Recovered::TakenBack { obstacle, left } => waiting(obstacle, left),
            Recovered::Blocked { obstacle } => Outcome::Interrupted { obstacle },
        })
    }

    /// Whether anything of ours is in a checkout.
    fn is_touched(&self) -> Result<bool, LandError> {
        let repo = Repo::at(&self.plan.common_dir)?;
        for follower in self.plan.followers().filter(|f| f.workdir.is_dir()) {
            let files = Files::open(&follower, repo.follows_modes(), self.observer)?;
            let mut changes = follower.file_changes();
            if changes.any(|(number, change)| files.is_placed(number, change)) {
                return Ok(true);
            }
            let index = index::read(&follower.index())?;
            let changes = &self.plan.changes;
            let is_new = |c| index::held(&index, c, changes) == Held::New;
            let mut ours = changes
                .iter()
                .enumerate()
                .filter(|(number, _)| !follower.checkout.staged_before.contains(number));
            if ours.any(|(_, change)| is_new(change)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn take_back(&self) -> Result<Vec<Kept>, LandError> {
        let repo = Repo::at(&self.plan.common_dir)?;
        let mut left = Vec::new();
        for follower in self.plan.followers().filter(|f| f.workdir.is_dir()) {
            let head = repo.head_tree(&follower.checkout.git_dir)?;
            let files = Files::open(&follower, repo.follows_modes(), self.observer)?;
            left.extend(files.take_back_all(head.as_ref())?);
            files.sync()?;
            let mut had_old = Vec::new();
            for change in &self.plan.changes {
                let there = entry_at(head.as_ref(), &change.path)?;
                had_old.push(same(there.as_ref(), change.old.as_ref()));
            }
            let before = &follower.checkout.staged_before;
            let wanted = |number| had_old.get(number) == Some(&true) && !before.contains(&number);
            if index::prepare(&follower, Way::Back, &Stats::new(), wanted)? {
                // Where somebody has written it meanwhile, theirs stays.
                let prepared = Prepared::of(&follower, Way::Back);
                self.exchange_index(&follower, &prepared)?;
            }
        }
        Ok(left)
    }

    fn end_taken_back(
        &self,
        locks: &Locks<'_>,
        journal: &mut dyn Journal,
        obstacle: Obstacle,
        left: Vec<Kept>,
    ) -> Result<Recovered, LandError> {
        locks.release()?;
        self.observer.before("record that it was taken back");
        journal
            .taken_back(self.plan, &left)
            .map_err(LandError::Journal)?;
        if left.is_empty() {
            self.observer.before("clear the staging folder");
            clear(self.plan)?;
        }
        Ok(Recovered::TakenBack { obstacle, left })
    }

    fn finish_landed(
        &self,
        locks: &Locks<'_>,
        journal: &mut dyn Journal,
        commit: Oid,
    ) -> Result<Recovered, LandError> {
        let repo = Repo::at(&self.plan.common_dir)?;
        if repo.tip(&self.plan.target)?.as_ref() == Some(&self.plan.to) {
            let now = repo.checkouts(&self.plan.target)?;
            branch::complete_logs(self.plan, &now, self.observer)?;
        }
        locks.release()?;
        let late = self.late(&repo)?;
        self.observer.before("record that it landed");
        journal.landed(self.plan).map_err(LandError::Journal)?;
        Ok(Recovered::Landed { commit, late })
    }

    fn late(&self, repo: &Repo) -> Result<Vec<Kept>, LandError> {
        let mut found = Vec::new();
        for follower in self.plan.followers().filter(|f| f.workdir.is_dir()) {
            let files = Files::open(&follower, repo.follows_modes(), self.observer)?;
            found.extend(files.late()?);
        }
        Ok(found)
    }
}

fn dirty(follower: &Follower<'_>, paths: Vec<RepoPath>) -> Obstacle {
    let workdir = follower.workdir.to_owned();
    Obstacle::Dirty { workdir, paths }
}
