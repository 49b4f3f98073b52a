//! Recording: what an attempt left, once its last process is dead.

use std::path::Path;

use super::super::groundwork::AttemptTree;
use super::super::work::Work;
use super::execute::{stdout_path, temporary_beside};
use super::prepare::output_paths;
use super::{Performer, failure, git_failure, repository_gone};
use crate::git;
use crate::machine::Event;
use crate::model::evidence::{CHANGES_SHOWN_MAX, CommitsMade, OutputState, Recorded};
use crate::model::outcome::{Failure, Step, StepResult};
use crate::model::spec::OutputKind;

impl Performer {
    pub(super) fn record(&self, work: &Work, attempt: u32) -> Event {
        match self.result(work) {
            Ok(result) => Event::ResultRecorded { attempt, result },
            Err(failure) => Event::RecordingFailed { attempt, failure },
        }
    }

    fn result(&self, work: &Work) -> Result<Recorded, Failure> {
        let refused = |error: &dyn std::error::Error| failure(Step::Verify, "output_path", error);
        let groundwork = work.groundwork().ok_or_else(no_groundwork)?;
        let beneath = self.beneath().map_err(|error| refused(&error))?;
        if let Some(path) = stdout_path(&work.spec) {
            let temporary = temporary_beside(path, work.spec.run);
            if work.run.facts.results.execution == StepResult::Passed {
                beneath
                    .publish(&temporary, path)
                    .map_err(|error| refused(&error))?;
            } else {
                beneath
                    .discard(&temporary)
                    .map_err(|error| refused(&error))?;
            }
        }
        let mut outputs: Vec<OutputState> = Vec::new();
        for (place, output) in work.spec.outputs.iter().enumerate() {
            let before = groundwork.outputs.get(place).copied().flatten();
            outputs.push(beneath.state(output, before));
        }
        if groundwork.repository.is_some()
            && let Some(gone) = repository_gone(Step::Verify, work)
        {
            return Err(gone);
        }
        let (tree, excluded, warnings) = match &groundwork.repository {
            Some(baseline) => {
                let own = self.own_result(work, baseline)?;
                (Some(own.tree), own.excluded, own.warnings)
            }
            None => Default::default(),
        };
        if let Some(tree) = &tree {
            for (state, output) in outputs.iter_mut().zip(&work.spec.outputs) {
                if output.kind == OutputKind::GitCommit {
                    state.written =
                        !tree.commits_made.is_empty() || tree.shown_changes().next().is_some();
                    state.problem =
                        (!state.written).then(|| "nothing was changed or committed".to_owned());
                    state.commits = commits_made(tree).newest;
                }
            }
        }
        let changes: Vec<_> = tree
            .iter()
            .flat_map(git::ResultTree::shown_changes)
            .collect();
        let shown: Vec<String> = changes
            .iter()
            .take(CHANGES_SHOWN_MAX)
            .map(|change| change.change.path.to_string())
            .collect();
        let changed_count = u64::try_from(changes.len()).unwrap_or(u64::MAX);
        let commits = tree.as_ref().map(commits_made).unwrap_or_default();
        let tree = serde_json::to_value(AttemptTree {
            repository: tree,
            excluded,
        })
        .map_err(|error| failure(Step::Verify, "internal", &error))?;
        Ok(Recorded {
            outputs,
            changed: shown,
            changed_count,
            tree,
            commits,
            warnings,
        })
    }

    pub(super) fn result_tree(
        &self,
        work: &Work,
        baseline: &git::Baseline,
        excluded: &git::Exclusions,
    ) -> Result<git::ResultTree, Failure> {
        self.hold_repository(work)
            .map_err(|error| git_failure(Step::Verify, work, &error))?;
        let cwd = Path::new(&work.spec.cwd);
        let outputs = output_paths(work)?;
        git::result_tree(cwd, baseline, excluded, &git::Limits::default(), &outputs)
            .map_err(|error| git_failure(Step::Verify, work, &error))
    }
}

fn commits_made(tree: &git::ResultTree) -> CommitsMade {
    let ids = tree.commits_made.iter();
    CommitsMade {
        count: u64::try_from(tree.count_made()).unwrap_or(u64::MAX),
        newest: ids.map(|oid| oid.as_str().to_owned()).collect(),
    }
}

fn no_groundwork() -> Failure {
    Failure::new(
        Step::Verify,
        "internal",
        "the baseline of the run cannot be read",
    )
}
