//! Landing: the commit becomes the tip of its branch, and the checkouts that have it follow.

use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::time::Duration;

use workerctl_landing::{
    FileJournal, LandError, LogLine, MetFile, Obstacle, Outcome, Plan, Recovered, Request,
    Unobserved, land, recover,
};

use super::super::landings::{self, DIRECTORY};
use super::super::work::Work;
use super::commit::{identity, recorded_time};
use super::place::tree_spec;
use super::turn;
use super::{Performer, failure, git_failure, git_run, land_failure};
use crate::git::{self, GitError, Oid, RepoPath};
use crate::machine::{Event, State};
use crate::model::outcome::{Failure, Step};

/// How often it is tried again while something is in the way.
const RETRY: Duration = Duration::from_millis(100);

/// Code of a failure for want of space, which may pass.
const DISK_FULL: &str = "disk_full";

/// Another run lands alone, which it does or fails to do before long.
const TURN: &str = "turn";

/// Most paths that a message names.
const NAMED_MAX: usize = 5;

/// How one try ended.
enum Tried {
    Ended(Event),
    InTheWay { code: String, why: String },
}

impl Performer {
    pub(super) fn publish_commit(&self, work: &Work, oid: &str, parent: Option<&str>) -> Event {
        let mut event = match self.landed(work, oid, parent) {
            Ok(event) => event,
            Err(failure) => return Event::CommitFailed { failure },
        };
        if matches!(event, Event::Committed { .. } | Event::LandedIn { .. }) {
            match (self.publish_ignored(work), &mut event) {
                (Ok(()), _) => {}
                (Err(failure), Event::Committed { warning, .. }) => {
                    let said = warning.take().into_iter().chain([failure.message]);
                    *warning = Some(said.collect::<Vec<_>>().join("; "));
                }
                // As where there is nothing to commit: the output is all that the run would have given.
                (Err(failure), _) => return Event::CommitFailed { failure },
            }
            self.end_tree(work);
        }
        event
    }

    /// Tries until it has landed, cannot land, or `land_wait` is over.
    fn landed(&self, work: &Work, oid: &str, parent: Option<&str>) -> Result<Event, Failure> {
        let (from, to) = ends(oid, parent)?;
        let spec = tree_spec(work)?;
        let announced = announced(work);
        loop {
            let tried = self.try_to_land(work, from.as_ref(), &to);
            if matches!(&tried, Err(failure) if failure.code == DISK_FULL) {
                self.free_landings();
            }
            let (code, why) = match tried {
                Ok(Tried::Ended(event)) => return Ok(event),
                Ok(Tried::InTheWay { code, why }) => (code, why),
                // What was begun is ended first, one way or the other: else it could land after its run has failed.
                Err(failure) if self.is_begun(work) || failure.code == DISK_FULL => {
                    (failure.code, failure.message)
                }
                Err(failure) => return Err(failure),
            };
            let waiting = || Event::LandingWaiting {
                code: code.clone(),
                why: why.clone(),
            };
            let is_begun = self.is_begun(work);
            if is_cancelled(work) && !is_begun {
                return Ok(Event::LandingStopped);
            }
            if work.stop.requested().is_some() {
                // Who cancels it is heard by the next try, an engine that ends leaves it to the next one.
                return Ok(waiting());
            }
            let Some((since, told)) = &announced else {
                return Ok(waiting());
            };
            let waited_ms = self.parts.clock.now().millis_since(*since);
            if waited_ms >= spec.land_wait_ms && !is_begun && code != TURN {
                let waited = crate::model::duration::show_millis(spec.land_wait_ms);
                let run = work.spec.run.short();
                let message = format!(
                    "{why}; it waited {waited}, and the commit is kept: `workerctl land {run}` lands it later"
                );
                return Err(Failure::new(Step::Land, &code, message));
            }
            if *told != code {
                return Ok(waiting());
            }
            std::thread::sleep(RETRY);
        }
    }

    /// Whether a landing of the run was begun and not ended.
    fn is_begun(&self, work: &Work) -> bool {
        let journal = FileJournal::new(&landing_file(&self.parts.state_dir, work));
        !matches!(journal.open_plan(), Ok(None))
    }

    pub(super) fn land_once(
        &self,
        work: &Work,
        oid: &str,
        parent: Option<&str>,
    ) -> Result<Event, Failure> {
        let (from, to) = ends(oid, parent)?;
        Ok(match self.try_to_land(work, from.as_ref(), &to)? {
            Tried::Ended(event) => event,
            Tried::InTheWay { code, why } => Event::LandingWaiting { code, why },
        })
    }

    fn try_to_land(&self, work: &Work, from: Option<&Oid>, to: &Oid) -> Result<Tried, Failure> {
        let _landing = self.landing.read().unwrap_or_else(PoisonError::into_inner);
        let spec = tree_spec(work)?;
        let workdir = Path::new(&spec.workdir);
        let refused = |error: LandError| land_failure(Step::Land, work, &error);
        let facts = git::locate(workdir).map_err(|e| git_failure(Step::Land, work, &e))?;
        let (run, branch) = (work.spec.run, turn::branch(&facts.common_dir, &spec.target));
        if let Some(other) = self.whose_turn(&branch, run) {
            let (code, why) = (TURN.to_owned(), format!("{} lands first", other.short()));
            return Ok(Tried::InTheWay { code, why });
        }
        let owner = format!("{} run {run}", self.parts.owner);
        let _lease = match git::RepositoryLease::acquire(&facts, &owner) {
            Ok(lease) => lease,
            Err(error @ GitError::Locked { .. }) => {
                let (code, why) = ("busy".to_owned(), crate::model::diagnostic::chain(&error));
                return Ok(Tried::InTheWay { code, why });
            }
            Err(error) => return Err(git_failure(Step::Land, work, &error)),
        };
        let path = landing_file(&self.parts.state_dir, work);
        let mut journal = FileJournal::new(&path);
        let open = journal
            .open_plan()
            .map_err(|error| failure(Step::Land, "journal", &error))?;
        if let Some(plan) = self.verified(work, open, &path).map_err(refused)? {
            match recover(&plan, &mut journal, &Unobserved).map_err(refused)? {
                Recovered::Landed { commit, late } => return Ok(ended(&commit, &late)),
                Recovered::TakenBack { obstacle, .. } => {
                    tracing::info!(run = %work.spec.run, %obstacle, "a landing was rolled back and starts again");
                }
                Recovered::Blocked { obstacle } => return Ok(in_the_way(&obstacle)),
            }
        }
        self.refuse_recorded(work)?;
        let (at, offset_min) = recorded_time(work);
        let identity = identity(work, Step::Land)?;
        let time = (at.millis().div_euclid(1_000), offset_min);
        let (time_s, offset_min) = identity.committer_time(time);
        let log = LogLine {
            name: identity.committer.name,
            email: identity.committer.email,
            time_s,
            offset_min,
            message: format!("workerctl: {} {}", work.spec.skill, work.spec.run),
        };
        let request = Request {
            repository: workdir,
            run: &git_run(work)?,
            target: &spec.target,
            from,
            to,
            earlier: &earlier(work, to),
            log: &log,
        };
        let outcome = land(&request, &mut journal, &Unobserved).map_err(refused)?;
        match &outcome {
            Outcome::Moved { .. } => self.take_turn(branch, run, work.run.facts.rounds),
            _ => self.pass_turn(&branch, run),
        }
        Ok(match outcome {
            Outcome::Landed { commit, late } => ended(&commit, &late),
            Outcome::LandedIn { tip } => Tried::Ended(Event::LandedIn {
                tip: tip.as_str().to_owned(),
            }),
            Outcome::Moved { tip, conflicts } => moved(work, tip, &conflicts)?,
            Outcome::Waiting { obstacle, .. } | Outcome::Interrupted { obstacle } => {
                in_the_way(&obstacle)
            }
        })
    }
}

impl Performer {
    /// The recorded landing, if it is of a commit of this run; another one is put aside.
    fn verified(
        &self,
        work: &Work,
        open: Option<Plan>,
        path: &Path,
    ) -> Result<Option<Plan>, LandError> {
        let Some(plan) = open else { return Ok(None) };
        let events = work.entries.iter().map(|entry| &entry.event);
        match landings::verify(&plan, work.spec.run, events, &self.parts.workspace) {
            Ok(()) => Ok(Some(plan)),
            Err(error) if landings::is_different(&error) => {
                landings::put_aside(path, &error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

fn is_cancelled(work: &Work) -> bool {
    matches!(
        work.run.state,
        State::Publishing {
            cancelled: true,
            ..
        }
    )
}

/// Where the branch has to be, and the commit that it is to get.
fn ends(oid: &str, parent: Option<&str>) -> Result<(Option<Oid>, Oid), Failure> {
    let malformed = |error: git::NameError| failure(Step::Land, "internal", &error);
    let from = parent.map(str::parse).transpose().map_err(malformed)?;
    Ok((from, oid.parse().map_err(malformed)?))
}

/// Where the landings of a run are recorded before anything of them is done.
pub(super) fn landing_file(state_dir: &Path, work: &Work) -> PathBuf {
    state_dir.join(DIRECTORY).join(work.spec.run.to_string())
}

/// Since when it waits, and for what it was last said to. That it waited its turn does not count.
fn announced(work: &Work) -> Option<(crate::model::Timestamp, String)> {
    let mut found = None;
    for entry in work.entries.iter().rev() {
        match &entry.event {
            Event::LandingWaiting { code, .. } if code == TURN => {
                return found.or_else(|| Some((entry.at, code.clone())));
            }
            Event::LandingWaiting { code, .. } => {
                let told = found.map_or_else(|| code.clone(), |(_, told)| told);
                found = Some((entry.at, told));
            }
            Event::CommitPrepared { .. } => break,
            _ => {}
        }
    }
    found
}

/// Commits of earlier rounds: at most one of all ever lands.
fn earlier(work: &Work, to: &Oid) -> Vec<Oid> {
    let prepared = work.entries.iter().filter_map(|entry| match &entry.event {
        Event::CommitPrepared { oid, .. } => oid.parse().ok(),
        _ => None,
    });
    prepared.filter(|oid| oid != to).collect()
}

fn ended(commit: &Oid, late: &[MetFile]) -> Tried {
    let warning = (!late.is_empty()).then(|| {
        let named = late.iter().map(|kept| match &kept.replaced {
            Some(place) => format!("`{}` (now in `{}`)", kept.path, place.display()),
            None => format!("`{}`", kept.path),
        });
        let named: Vec<String> = named.collect();
        format!(
            "written to while the commit landed, and kept for a day: {}",
            named.join(", ")
        )
    });
    Tried::Ended(Event::Committed {
        oid: commit.as_str().to_owned(),
        warning,
    })
}

fn in_the_way(obstacle: &Obstacle) -> Tried {
    Tried::InTheWay {
        code: obstacle.code().to_owned(),
        why: obstacle.to_string(),
    }
}

/// The branch is elsewhere: the same change can be put on its tip, or it cannot.
fn moved(work: &Work, tip: Option<Oid>, conflicts: &[RepoPath]) -> Result<Tried, Failure> {
    let short = tree_spec(work)?.branch();
    let Some(tip) = tip else {
        let message = format!("the branch `{short}` is gone; the commit is kept");
        return Err(Failure::new(Step::Land, "branch_gone", message));
    };
    let made = work
        .kept_result()
        .map_or(0, |kept| kept.change.commits_count);
    if conflicts.is_empty() && made == 0 {
        let tip = tip.as_str().to_owned();
        return Ok(Tried::Ended(Event::TargetMoved { tip }));
    }
    let message = if conflicts.is_empty() {
        format!("`{short}` moved to {tip}, and commits that the run made are not rebased onto it")
    } else {
        let named = conflicts
            .iter()
            .take(NAMED_MAX)
            .map(|path| format!("`{path}`"));
        let mut named: Vec<String> = named.collect();
        if conflicts.len() > NAMED_MAX {
            named.push(format!("{} more", conflicts.len() - NAMED_MAX));
        }
        format!(
            "`{short}` moved to {tip}, which changed what the run changed: {}",
            named.join(", ")
        )
    };
    let failure = Failure::new(Step::Land, "conflict", message);
    Ok(Tried::Ended(Event::Conflicted { failure }))
}
