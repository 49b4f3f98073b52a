//! Preparing: takes the lease on the repository, records the baseline and the outputs as they were.

use std::path::Path;
use std::time::Duration;

use super::super::groundwork::Groundwork;
use super::super::work::Work;
use super::step_limit::TimeLeft;
use super::{Performer, failure, git_failure, lock};
use crate::git::{self, GitError, RepoPath};
use crate::machine::Event;
use crate::model::outcome::{Failure, Step};

/// How often the lease is tried while another engine holds it.
const LEASE_RETRY: Duration = Duration::from_millis(100);

impl Performer {
    pub(super) fn prepare(&self, work: &Work) -> Event {
        match self.lay_groundwork(work) {
            Ok(groundwork) => match serde_json::to_value(&groundwork) {
                Ok(baseline) => Event::Prepared { baseline },
                Err(error) => Event::PreparationFailed {
                    failure: failure(Step::Prepare, "internal", &error),
                },
            },
            Err(failure) => {
                self.release_repository(work.spec.run);
                Event::PreparationFailed { failure }
            }
        }
    }

    fn lay_groundwork(&self, work: &Work) -> Result<Groundwork, Failure> {
        let beneath = self
            .beneath()
            .map_err(|error| failure(Step::Prepare, "workspace_unreadable", &error))?;
        let mut outputs = Vec::new();
        for output in &work.spec.outputs {
            outputs.push(match &output.path {
                Some(path) => beneath
                    .stamp(path)
                    .map_err(|error| failure(Step::Prepare, "output_path", &error))?,
                None => None,
            });
        }
        let repository = if work.spec.plan.mutating {
            Some(self.baseline(work)?)
        } else {
            None
        };
        Ok(Groundwork {
            outputs,
            repository,
        })
    }

    fn baseline(&self, work: &Work) -> Result<git::Baseline, Failure> {
        let time = self.time_to_prepare(work);
        self.wait_for_repository(work, &time)?;
        self.watch_foreign(work.spec.run);
        let cwd = Path::new(&work.spec.cwd);
        let refused = |error: GitError| time.failure(Step::Prepare, &error);
        let run = git_run(work)?;
        let excluded = self.excluded(work)?;
        let is_over = || time.is_over();
        let deadline = git::Deadline::when(&is_over);
        let baseline = git::baseline(cwd, &excluded, &git::Limits::default(), &run, deadline)
            .map_err(refused)?;
        let outputs = output_paths(work)?;
        let obstacles = git::declared_dirty(cwd, &baseline, &outputs).map_err(refused)?;
        if let Some((path, obstacle)) = obstacles.first() {
            return Err(obstacle_failure(path, obstacle));
        }
        Ok(baseline)
    }

    fn wait_for_repository(&self, work: &Work, time: &TimeLeft<'_>) -> Result<(), Failure> {
        loop {
            match self.hold_repository(work) {
                Ok(()) => return Ok(()),
                Err(error @ GitError::Locked { .. }) => {
                    if time.is_over() {
                        return Err(git_failure(Step::Prepare, work, &error));
                    }
                    std::thread::sleep(LEASE_RETRY);
                }
                Err(error) => return Err(git_failure(Step::Prepare, work, &error)),
            }
        }
    }

    /// Paths that are nobody's change: ours, and those of other runs.
    pub(super) fn excluded(&self, work: &Work) -> Result<git::Exclusions, Failure> {
        let spec = &work.spec;
        let workspace = Path::new(&spec.workspace);
        let ours = [
            self.parts.state_dir.clone(),
            workspace.join(".workerctl"),
            workspace.join(&spec.threads_dir),
            workspace.join(&self.parts.metrics_dir),
        ];
        let foreign = lock(&self.foreign)
            .get(&spec.run)
            .cloned()
            .unwrap_or_default();
        let own: Vec<&String> = spec
            .outputs
            .iter()
            .filter_map(|o| o.path.as_ref())
            .collect();
        let foreign = foreign
            .iter()
            .filter(|path| !own.contains(path))
            .map(|p| workspace.join(p));
        let workdir = workdir(work)?;
        Ok(git::Exclusions::new(
            ours.into_iter()
                .chain(foreign)
                .filter_map(|path| repo_path(&workdir, &path)),
        ))
    }
}

/// A path relative to the repository; `None` for the root itself and outside of it.
pub(super) fn repo_path(workdir: &Path, path: &Path) -> Option<RepoPath> {
    let real;
    let relative = if let Ok(relative) = path.strip_prefix(workdir) {
        relative
    } else {
        real = std::fs::canonicalize(workdir).ok()?;
        path.strip_prefix(&real).ok()?
    };
    RepoPath::from_bytes(relative.as_os_str().as_encoded_bytes()).ok()
}

fn obstacle_failure(path: &RepoPath, obstacle: &git::OutputObstacle) -> Failure {
    let (code, why) = match obstacle {
        git::OutputObstacle::Dirty => (
            "path_was_dirty",
            "it holds uncommitted work or is untracked: commit, stash or remove it first",
        ),
        git::OutputObstacle::Ignored => (
            "output_ignored",
            "git ignores it, so it cannot be committed: change `.gitignore` or the destination",
        ),
        git::OutputObstacle::Filtered => (
            "output_filtered",
            "it has a `filter` attribute, which is not run here: change the attribute or the destination",
        ),
        git::OutputObstacle::InOtherRepository => (
            "output_in_other_repository",
            "it lies in a submodule or another repository",
        ),
        git::OutputObstacle::Blocked => (
            "output_blocked",
            "a link or a file stands where one of its directories should be",
        ),
        git::OutputObstacle::IsDirectory => (
            "output_is_directory",
            "a directory stands where the file should be",
        ),
    };
    Failure::new(
        Step::Prepare,
        code,
        format!("the output `{path}` cannot be used: {why}"),
    )
}

/// The run's id as the git room spells it.
pub(super) fn git_run(work: &Work) -> Result<git::RunId, Failure> {
    work.spec
        .run
        .to_string()
        .parse()
        .map_err(|error: git::NameError| failure(Step::Prepare, "internal", &error))
}

/// The root of the work tree that the run is about.
pub(super) fn workdir(work: &Work) -> Result<std::path::PathBuf, Failure> {
    let facts = git::locate(Path::new(&work.spec.cwd));
    facts
        .map(|facts| facts.workdir)
        .map_err(|error| git_failure(Step::Prepare, work, &error))
}

/// Declared outputs relative to the repository; those outside it are no part of a commit.
pub(super) fn output_paths(work: &Work) -> Result<Vec<RepoPath>, Failure> {
    let workspace = Path::new(&work.spec.workspace);
    let workdir = workdir(work)?;
    let paths = work
        .spec
        .outputs
        .iter()
        .filter_map(|output| output.path.as_ref());
    Ok(paths
        .filter_map(|path| repo_path(&workdir, &workspace.join(path)))
        .collect())
}
