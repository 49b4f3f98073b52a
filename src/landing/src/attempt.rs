//! Landing, completing and taking back: one code for a landing that goes on and one that is recovered.

use std::fs;

use crate::branch;
use crate::entries::Entries;
use crate::ids::{Oid, RepoPath};
use crate::index::{
    self, Direction, IndexBuild, IndexContent, IndexSnapshot, Indexes, Prepared, Stats,
};
use crate::journal::{Journal, Observer};
use crate::locks::{Locks, lock_of};
use crate::outcome::{LandError, MetFile, Obstacle, Outcome, Recovered};
use crate::plan::{Change, Follower, Plan};
use crate::repository::{Repo, entry_at, operation, same};
use crate::stage::clear;
use crate::stand::{Files, Stand};
use crate::worktree::sync_directory;

/// One landing from its recorded start to its end, whether it is the first process to work at it or not.
pub(crate) struct Attempt<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) observer: &'a dyn Observer,
    /// Whether nothing was placed yet when it began.
    pub(crate) is_fresh: bool,
    pub(crate) indexes: &'a Indexes,
}

impl Attempt<'_> {
    /// From a recorded start, with the locks taken or not, to its end.
    pub(crate) fn go(
        &self,
        journal: &mut dyn Journal,
        stats: &[Stats],
    ) -> Result<Outcome, LandError> {
        let locks = Locks::of(self.plan, self.observer);
        if let Some(obstacle) = locks.take()? {
            return self.give_up(&locks, journal, obstacle);
        }
        // A process that was killed right after it exchanged an index may have taken out one that somebody had just
        // written. That goes back before anything else is looked at.
        for follower in self.plan.followers() {
            for way in [Direction::Forward, Direction::Back] {
                Prepared::of(&follower, way).put_back(&follower)?;
            }
        }
        let repo = Repo::at(&self.plan.common_dir)?;
        // A process that was killed after it moved the branch has landed the commit: what is left are logs, locks and
        // the record.
        if let Some(commit) = repo.landed(self.plan)? {
            return Ok(match self.finish_landed(&locks, journal, commit)? {
                Recovered::Landed { commit, late } => Outcome::Landed { commit, late },
                Recovered::TakenBack { obstacle, left } => waiting(obstacle, left),
                Recovered::Blocked { obstacle } => Outcome::Interrupted { obstacle },
            });
        }
        let found = match self.compare(&repo) {
            Ok(None) => self.forward(&repo, &locks, stats),
            found => found,
        };
        match found {
            Ok(None) => {}
            Ok(Some(obstacle)) => return self.give_up(&locks, journal, obstacle),
            // What may not be written goes back as what is in the way does; a branch that has moved stays.
            Err(error) if error.is_denied() && repo.tip(&self.plan.target)? == self.plan.from => {
                let why = error.denial();
                return self.give_up(&locks, journal, Obstacle::Denied { why });
            }
            Err(error) => return Err(error),
        }
        // Before the record, so that people wait for nothing more. Whoever is killed in between is found by `landed`
        // above.
        locks.release()?;
        let late = self.late(&repo)?;
        self.observer.before("record that it landed");
        journal.landed(self.plan).map_err(LandError::Journal)?;
        let commit = self.plan.to.clone();
        Ok(Outcome::Landed { commit, late })
    }

    /// What keeps the landing from going on, if anything.
    pub(crate) fn compare(&self, repo: &Repo) -> Result<Option<Obstacle>, LandError> {
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
        let is_seen = Prepared::of(follower, Direction::Forward).is_current(follower);
        if self.is_fresh && is_seen && follower.checkout.index_only.is_empty() {
            // The entries were compared when the new index was made of this very one, and each file is
            // when its turn comes: so under the locks a large index is not read once more.
            return Ok(None);
        }
        let seen = self.indexes.read(&follower.index())?;
        let changes = &self.plan.changes;
        let is_staged =
            |change: &&Change| index::held(&seen.index, change, changes) == IndexContent::Other;
        let staged = changes.iter().filter(is_staged);
        let paths: Vec<_> = staged.map(|change| change.path.clone()).collect();
        if !paths.is_empty() {
            return Ok(Some(Obstacle::Staged { workdir, paths }));
        }
        let files = Files::open(follower, repo.follows_modes(), self.observer)?;
        let mut paths = self.appeared(&seen.index, follower);
        let stand_fits = |stand| match stand {
            Stand::Old | Stand::New => true,
            Stand::Placed | Stand::Edited | Stand::Restored => !self.is_fresh,
            Stand::Blocked => false,
        };
        paths.extend(files.dirty(stand_fits, Some(&seen))?);
        Ok((!paths.is_empty()).then_some(Obstacle::Dirty { workdir, paths }))
    }

    /// Paths that were left out of the work tree when the plan was made, and are not any more.
    fn appeared(&self, index: &Entries, follower: &Follower<'_>) -> Vec<RepoPath> {
        let numbered = self.plan.changes.iter().enumerate();
        let omitted = numbered.filter(|(n, _)| follower.checkout.index_only.contains(n));
        let here = |path: &RepoPath| {
            let file = follower.workdir.join(path.as_path());
            let is_gone = index.get(path.as_bytes()).is_none();
            fs::symlink_metadata(file).is_ok() || !(is_gone || index::is_skipped(index, path))
        };
        let appeared = omitted.filter(|(_, change)| here(&change.path));
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
        // The files of every checkout are durable before the first index changes: a power cut can leave files that
        // are ahead of their index, which shows them as modified, but no index that is ahead of its files.
        for follower in &followers {
            let files = Files::open(follower, repo.follows_modes(), self.observer)?;
            if let Some(path) = files.place_all()? {
                return Ok(Some(dirty(follower, vec![path])));
            }
            files.sync()?;
        }
        // An editor may have saved over a file since it was placed, by renaming its old buffer over it. With the new
        // index that would be a change against the commit that nobody wanted.
        for follower in &followers {
            let files = Files::open(follower, repo.follows_modes(), self.observer)?;
            let is_in_place = |stand| matches!(stand, Stand::New | Stand::Placed | Stand::Edited);
            let paths = files.dirty(is_in_place, None)?;
            if !paths.is_empty() {
                return Ok(Some(dirty(follower, paths)));
            }
        }
        for (number, follower) in followers.iter().enumerate() {
            // Somebody who removed a lock by hand may be writing the index by now.
            if let Some(lost) = locks.lost() {
                return Ok(Some(lost));
            }
            if !self.replace_index(follower, stats.get(number))? {
                let lock = lock_of(&follower.index());
                return Ok(Some(Obstacle::LockLost { lock }));
            }
        }
        branch::ensure_logs(self.plan, self.observer)?;
        if let Some(lost) = locks.lost() {
            return Ok(Some(lost));
        }
        if !branch::move_branch(self.plan, self.observer)? {
            let lock = lock_of(&self.plan.common_dir.join(&self.plan.target));
            return Ok(Some(Obstacle::LockLost { lock }));
        }
        match branch::append_logs(self.plan, self.observer).map_err(LandError::from) {
            // The branch has moved: a log that may not be written is no reason to keep git from working.
            Err(error) if !error.is_denied() => Err(error),
            _ => Ok(None),
        }
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
        let prepared = Prepared::of(follower, Direction::Forward);
        if !prepared.is_current(follower) {
            // The times of files that somebody may have written to since are not known: they stay zero.
            self.observer.before("make the index again");
            let none = Stats::new();
            let stats = stats.unwrap_or(&none);
            match index::prepare((follower, self.indexes), Direction::Forward, stats, |_| {
                true
            })? {
                IndexBuild::Ready => {}
                IndexBuild::Same => return Ok(true),
                IndexBuild::Staged => return Ok(false),
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
        // Durable before the branch moves: an old index behind a new branch would show the whole commit as undone.
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
        // An index is put back under its lock only. Where somebody holds that now, nothing is put back and no end is
        // recorded: the landing stays open, and recovery tries again.
        if self.is_touched()?
            && let Some(held) = locks.retake_indexes()?
        {
            locks.release()?;
            return Ok(Outcome::Interrupted { obstacle: held });
        }
        let left = match self.take_back() {
            // Git works again at least; the rest goes back as soon as it may.
            Err(error) if error.is_denied() => {
                locks.release()?;
                let why = error.denial();
                return Ok(Outcome::Interrupted {
                    obstacle: Obstacle::Denied { why },
                });
            }
            left => left?,
        };
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
            let seen = IndexSnapshot::read(&follower.index())?;
            let changes = &self.plan.changes;
            let is_new = |c| index::held(&seen.index, c, changes) == IndexContent::New;
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

    /// The index goes back before the files, as it went after them: a commit of an index that is ahead of
    /// the files would show their old content as a change of somebody's.
    fn take_back(&self) -> Result<Vec<MetFile>, LandError> {
        let repo = Repo::at(&self.plan.common_dir)?;
        let mut left = Vec::new();
        for follower in self.plan.followers().filter(|f| f.workdir.is_dir()) {
            let head = repo.head_tree(&follower.checkout.git_dir)?;
            let mut had_old = Vec::new();
            for change in &self.plan.changes {
                let there = entry_at(head.as_ref(), &change.path)?;
                had_old.push(same(there.as_ref(), change.old.as_ref()));
            }
            let before = &follower.checkout.staged_before;
            let wanted = |number| had_old.get(number) == Some(&true) && !before.contains(&number);
            if index::prepare(
                (&follower, self.indexes),
                Direction::Back,
                &Stats::new(),
                wanted,
            )? == IndexBuild::Ready
            {
                // Where somebody has written it meanwhile, theirs stays.
                let prepared = Prepared::of(&follower, Direction::Back);
                self.exchange_index(&follower, &prepared)?;
            }
            let files = Files::open(&follower, repo.follows_modes(), self.observer)?;
            left.extend(files.take_back_all(head.as_ref())?);
            files.sync()?;
        }
        Ok(left)
    }

    pub(crate) fn end_taken_back(
        &self,
        locks: &Locks<'_>,
        journal: &mut dyn Journal,
        obstacle: Obstacle,
        left: Vec<MetFile>,
    ) -> Result<Recovered, LandError> {
        locks.release()?;
        self.observer.before("record that it was taken back");
        journal
            .taken_back(self.plan, &left)
            .map_err(LandError::Journal)?;
        // Recorded first: a landing without its folder counts as ended. The folder stays where something was left,
        // for it has the only copy of what was replaced.
        if left.is_empty() {
            self.observer.before("clear the staging folder");
            clear(self.plan)?;
        }
        Ok(Recovered::TakenBack { obstacle, left })
    }

    pub(crate) fn finish_landed(
        &self,
        locks: &Locks<'_>,
        journal: &mut dyn Journal,
        commit: Oid,
    ) -> Result<Recovered, LandError> {
        let repo = Repo::at(&self.plan.common_dir)?;
        if repo.tip(&self.plan.target)?.as_ref() == Some(&self.plan.to) {
            let now = repo.checkouts(&self.plan.target)?;
            let done = branch::complete_logs(self.plan, &now, self.observer);
            done.map_err(LandError::from)
                .or_else(|error| error.is_denied().then_some(()).ok_or(error))?;
        }
        locks.release()?;
        let late = self.late(&repo)?;
        self.observer.before("record that it landed");
        journal.landed(self.plan).map_err(LandError::Journal)?;
        Ok(Recovered::Landed { commit, late })
    }

    fn late(&self, repo: &Repo) -> Result<Vec<MetFile>, LandError> {
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

pub(crate) fn waiting(obstacle: Obstacle, left: Vec<MetFile>) -> Outcome {
    Outcome::Waiting { obstacle, left }
}
