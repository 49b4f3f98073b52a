//! Neighbours: other workspaces of the repository. What changes below one while a run is under way is what
//! its own runs write, and not this run's to commit or to put back.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use super::super::work::Work;
use super::prepare::{output_paths, repo_path, workdir};
use super::{Performer, git_failure};
use crate::git::{self, Drift, Exclusions, RepoPath, ResultTree};
use crate::model::outcome::{Failure, Step};

/// How often it is looked again because a neighbour wrote meanwhile.
const ROUNDS: usize = 8;

/// Most paths that a warning names.
const NAMED_MAX: usize = 5;

/// An engine makes this in its workspace before it does anything else, and never removes it.
const LOCK: &str = ".workerctl/lock";

/// Tells changed paths of neighbours; what it has looked at it remembers.
struct Neighbours {
    workdir: PathBuf,
    /// Where the run is at home: no directory that holds one of these is a neighbour.
    home: Vec<RepoPath>,
    outputs: Vec<RepoPath>,
    known: HashMap<Vec<u8>, bool>,
}

/// What was found.
#[derive(Default)]
struct Found {
    /// Changed paths by the workspace that they lie in.
    changed: BTreeMap<RepoPath, BTreeSet<RepoPath>>,
    /// What is to be left out: the workspace, or single paths where an output of the run lies in it.
    excluded: BTreeSet<RepoPath>,
}

impl Neighbours {
    fn of(work: &Work) -> Result<Neighbours, Failure> {
        let workdir = workdir(work)?;
        let home = [&work.spec.workspace, &work.spec.cwd];
        let home = home.map(|place| repo_path(&workdir, Path::new(place)));
        Ok(Neighbours {
            home: home.into_iter().flatten().collect(),
            outputs: output_paths(work)?,
            known: HashMap::new(),
            workdir,
        })
    }

    fn find<'p>(&mut self, paths: impl IntoIterator<Item = &'p RepoPath>) -> Found {
        let mut found = Found::default();
        for path in paths {
            if self.outputs.iter().any(|output| path.is_within(output)) {
                continue;
            }
            let Some(neighbour) = self.around(path) else {
                continue;
            };
            let holds_output = self.outputs.iter().any(|o| o.is_within(&neighbour));
            let left_out = if holds_output { path } else { &neighbour };
            found.excluded.insert(left_out.clone());
            let changed = found.changed.entry(neighbour).or_default();
            changed.insert(path.clone());
        }
        found
    }

    /// The outermost neighbour that a path lies in.
    fn around(&mut self, path: &RepoPath) -> Option<RepoPath> {
        let bytes = path.as_bytes();
        let ends = bytes.iter().enumerate().filter(|(_, b)| **b == b'/');
        for (end, _) in ends {
            if self.is_neighbour(&bytes[..end]) {
                return RepoPath::from_bytes(&bytes[..end]).ok();
            }
        }
        None
    }

    fn is_neighbour(&mut self, directory: &[u8]) -> bool {
        if let Some(known) = self.known.get(directory) {
            return *known;
        }
        let is = RepoPath::from_bytes(directory).is_ok_and(|path| {
            let place = self.workdir.join(path.as_path()).join(LOCK);
            let is_home = self.home.iter().any(|home| home.is_within(&path));
            !is_home && std::fs::symlink_metadata(place).is_ok_and(|found| found.is_file())
        });
        self.known.insert(directory.to_vec(), is);
        is
    }
}

impl Found {
    fn is_none(&self) -> bool {
        self.excluded.is_empty()
    }

    fn add(&mut self, other: Found) {
        for (neighbour, paths) in other.changed {
            self.changed.entry(neighbour).or_default().extend(paths);
        }
        self.excluded.extend(other.excluded);
    }

    /// One for each neighbour.
    fn warnings(&self) -> Vec<String> {
        let warning = |(neighbour, paths): (&RepoPath, &BTreeSet<RepoPath>)| {
            let named = paths.iter().take(NAMED_MAX).map(|path| format!("`{path}`"));
            let mut named: Vec<String> = named.collect();
            if paths.len() > NAMED_MAX {
                named.push(format!("and {} more", paths.len() - NAMED_MAX));
            }
            format!(
                "left as it is, neither committed nor put back, because it lies in another workspace, \
                 `{neighbour}`: {}",
                named.join(", ")
            )
        };
        self.changed.iter().map(warning).collect()
    }
}

/// The result of a run without what its neighbours wrote.
pub(super) struct OwnResult {
    /// What is the run's.
    pub tree: ResultTree,
    /// What is nobody's change for it.
    pub excluded: Exclusions,
    /// What was left of neighbours.
    pub warnings: Vec<String>,
}

impl Performer {
    pub(super) fn own_result(
        &self,
        work: &Work,
        baseline: &git::Baseline,
    ) -> Result<OwnResult, Failure> {
        let mut neighbours = Neighbours::of(work)?;
        let (mut excluded, mut left) = (self.excluded(work)?, Found::default());
        for _ in 0..ROUNDS {
            let tree = self.result_tree(work, baseline, &excluded)?;
            let found = neighbours.find(concerned(&tree));
            if found.is_none() {
                return Ok(OwnResult {
                    tree,
                    excluded,
                    warnings: left.warnings(),
                });
            }
            excluded = excluded.with(found.excluded.iter().cloned());
            left.add(found);
        }
        let message = "another workspace of the repository writes file after file where an output of this run \
                       lies, so that the result cannot be told from them; run it when that one is idle";
        Err(Failure::new(Step::Verify, "neighbour_writes", message))
    }

    /// What a run whose result nobody recorded leaves alone when it is put back, and what it says of it.
    pub(super) fn left_unrecorded(
        &self,
        work: &Work,
        baseline: &git::Baseline,
    ) -> Result<(Exclusions, Vec<String>), Failure> {
        let excluded = self.excluded(work)?;
        let changed = git::dirty_paths(Path::new(&work.spec.cwd), &excluded)
            .map_err(|error| git_failure(Step::Verify, work, &error))?;
        let mut neighbours = Neighbours::of(work)?;
        let found = neighbours.find(&changed);
        let before: BTreeSet<&RepoPath> = baseline.dirty.iter().map(|dirty| &dirty.path).collect();
        let fresh = changed.iter().filter(|path| !before.contains(path));
        let warnings = neighbours.find(fresh).warnings();
        Ok((excluded.with(found.excluded), warnings))
    }

    /// What is otherwise than recorded, and no neighbour's.
    pub(super) fn own_drift(
        &self,
        work: &Work,
        baseline: &git::Baseline,
        result: &ResultTree,
        recorded: &Exclusions,
    ) -> Result<Drift, Failure> {
        let now = self.excluded(work)?;
        let mut excluded = recorded.with(now.paths().iter().cloned());
        let mut neighbours = Neighbours::of(work)?;
        let (cwd, limits) = (Path::new(&work.spec.cwd), git::Limits::default());
        let mut rounds = 0;
        loop {
            let drift = git::check_unchanged(cwd, baseline, result, &excluded, &limits)
                .map_err(|error| git_failure(Step::Verify, work, &error))?;
            let found = neighbours.find(&drift.paths);
            rounds += 1;
            if found.is_none() || rounds == ROUNDS {
                return Ok(drift);
            }
            excluded = excluded.with(found.excluded);
        }
    }
}

/// Every path that a result says something of.
fn concerned(tree: &ResultTree) -> impl Iterator<Item = &RepoPath> {
    let changes = tree.changes.iter().map(|change| &change.change.path);
    let others = [
        &tree.nested,
        &tree.too_deep,
        &tree.hidden_in,
        &tree.unmerged,
        &tree.submodules,
        &tree.case_collisions,
    ];
    changes.chain(others.into_iter().flatten())
}
