//! Taking back the commits that a run made, and `HEAD` where the run switched it.

use super::super::author::Author;
use super::super::baseline::{Baseline, ResultTree};
use super::super::branch::{LogLine, Swap};
use super::super::error::{GitError, git};
use super::super::ids::Oid;
use super::super::open::{Handle, Head};

/// What became of the branch.
#[derive(Default)]
pub(super) struct BranchState {
    /// Whether commits of the run are no longer in it.
    pub(super) reset: bool,
    /// Why it was left where it is although it moved.
    pub(super) kept: Option<String>,
    /// What was taken off, with how to get it back: it may be a person's.
    pub(super) notes: Vec<String>,
}

impl BranchState {
    /// Whose commits they are is not known, so none is taken back.
    pub(super) fn unrecorded(baseline: &Baseline, now: &Head) -> Self {
        let kept = (*now != baseline.head).then(|| {
            "it moved, and the end of the run was not seen: a commit may be somebody else's"
                .to_owned()
        });
        Self {
            kept,
            ..Self::default()
        }
    }
}

impl Handle {
    /// Takes the run's commits back, only while the branch still points at the last of them.
    pub(super) fn put_branch_back(
        &self,
        baseline: &Baseline,
        result: &ResultTree,
    ) -> Result<BranchState, GitError> {
        let (then, end) = (&baseline.head, &result.head);
        if then == end {
            return Ok(BranchState::default());
        }
        if then.refname() != end.refname() {
            return self.put_head_back(then, end);
        }
        let refname = then.refname();
        let moved = match (end.oid(), then.oid()) {
            (Some(from), Some(to)) => self.swap_back(baseline, refname, from, to)?,
            (Some(from), None) => self.delete_back(refname, from)?,
            (None, _) => Some("it was deleted by the run".to_owned()),
        };
        Ok(match moved {
            None => BranchState {
                reset: true,
                kept: None,
                notes: self.taken_off(refname, result),
            },
            Some(kept) => BranchState {
                kept: Some(kept),
                ..BranchState::default()
            },
        })
    }

    /// `None` when the branch is back, else why it is not.
    fn swap_back(
        &self,
        baseline: &Baseline,
        refname: &str,
        from: &Oid,
        to: &Oid,
    ) -> Result<Option<String>, GitError> {
        let author = Author {
            name: "workerctl".to_owned(),
            email: "workerctl@localhost".to_owned(),
        };
        let log = LogLine {
            author: &author,
            time_s: baseline.run.accepted_at_s(),
            offset_min: 0,
            message: "workerctl: the run failed and was taken back",
        };
        Ok(match self.swap_ref(refname, Some(from), to, &log)? {
            Swap::Moved => None,
            Swap::Tip(Some(tip)) if tip == *to => None,
            Swap::Tip(Some(tip)) => Some(format!("`{refname}` has moved on to {tip}")),
            Swap::Tip(None) => Some(format!("`{refname}` is gone")),
        })
    }

    fn delete_back(&self, refname: &str, from: &Oid) -> Result<Option<String>, GitError> {
        match self.repo.find_reference(refname) {
            Err(e) if e.code() == git2::ErrorCode::NotFound => Ok(None),
            Err(e) => Err(git("read a reference")(e)),
            Ok(mut found) if found.target() == Some(from.raw()) => {
                // Deleting compares with the value that was just read, under git's lock.
                found.delete().map_err(git("delete a reference"))?;
                Ok(None)
            }
            Ok(_) => Ok(Some(format!("`{refname}` has moved on"))),
        }
    }

    fn put_head_back(&self, then: &Head, end: &Head) -> Result<BranchState, GitError> {
        let now = self.head()?;
        if now.refname() == then.refname() {
            let is_back = now.oid() == then.oid();
            return Ok(BranchState {
                reset: is_back,
                kept: (!is_back).then(|| format!("`{}` has moved during the run", then.refname())),
                notes: vec![switched_back(then, end)],
            });
        }
        if now != *end {
            let kept = Some("`HEAD` has been switched again since the run".to_owned());
            return Ok(BranchState {
                kept,
                ..BranchState::default()
            });
        }
        let fail = git("put `HEAD` back");
        match then {
            Head::Branch { refname, oid } => {
                if self.tip(refname)?.as_ref() != Some(oid) {
                    let kept = Some(format!("`{refname}` has moved during the run"));
                    return Ok(BranchState {
                        kept,
                        ..BranchState::default()
                    });
                }
                self.repo.set_head(refname).map_err(fail)?;
            }
            Head::Unborn { refname } => self.repo.set_head(refname).map_err(fail)?,
            Head::Detached { oid } => self.repo.set_head_detached(oid.raw()).map_err(fail)?,
        }
        Ok(BranchState {
            reset: true,
            kept: None,
            notes: vec![switched_back(then, end)],
        })
    }

    /// Names the commits that are no longer in the branch; the run's hidden references keep them.
    fn taken_off(&self, refname: &str, result: &ResultTree) -> Vec<String> {
        let Some(last) = result.head.oid() else {
            return Vec::new();
        };
        let commits = &result.commits_made;
        if commits.is_empty() {
            return Vec::new();
        }
        let mut named: Vec<String> = commits
            .iter()
            .rev()
            .take(COMMITS_NAMED)
            .map(|oid| self.named(oid))
            .collect();
        let count = result.count_made();
        if count > COMMITS_NAMED {
            named.push(format!("and {} more", count - COMMITS_NAMED));
        }
        let count = match count {
            1 => "1 commit that was made meanwhile was".to_owned(),
            count => format!("{count} commits that were made meanwhile were"),
        };
        vec![format!(
            "{count} taken off `{}`: {}; `git branch rescue {}` brings them back",
            short_name(refname),
            named.join(", "),
            short(last),
        )]
    }

    fn named(&self, oid: &Oid) -> String {
        let found = self.repo.find_commit(oid.raw());
        let subject = found.ok().and_then(|commit| {
            let subject = commit.summary_bytes()?;
            Some(String::from_utf8_lossy(subject).into_owned())
        });
        let subject = subject.unwrap_or_default();
        let subject: String = subject
            .chars()
            .filter(|c| !c.is_control())
            .take(72)
            .collect();
        format!("{} {subject}", short(oid)).trim_end().to_owned()
    }
}

/// How many commits a note names.
const COMMITS_NAMED: usize = 5;

/// Digits of an id that are shown.
const ID_SHOWN: usize = 10;

fn short(oid: &Oid) -> &str {
    oid.as_str().get(..ID_SHOWN).unwrap_or(oid.as_str())
}

fn short_name(refname: &str) -> &str {
    refname.strip_prefix("refs/heads/").unwrap_or(refname)
}

/// Names where `HEAD` was at the end of the run: a person may have put it there.
fn switched_back(then: &Head, end: &Head) -> String {
    let back = short_name(then.refname());
    match end {
        Head::Branch { refname, .. } | Head::Unborn { refname } => {
            let away = short_name(refname);
            format!(
                "`HEAD` was switched to `{away}` meanwhile and is back on `{back}`: `git switch {away}`"
            )
        }
        Head::Detached { oid } => {
            let at = short(oid);
            format!(
                "`HEAD` was detached at {at} meanwhile and is back on `{back}`: `git switch --detach {at}`"
            )
        }
    }
}
