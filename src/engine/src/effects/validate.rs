//! Validating: looks at everything, touches nothing.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::super::work::Work;
use super::place::tree_spec;
use super::{Performer, failure};
use crate::git;
use crate::machine::Event;
use crate::model::evidence::Verdict;
use crate::model::legible::hex;
use crate::model::outcome::{Failure, Step};

impl Performer {
    pub(super) fn validate(&self, work: &Work) -> Event {
        let spec = &work.spec;
        if let Err(failure) = self.refuse_unapproved(work, Step::Validate) {
            let checks = Vec::new();
            return Event::ValidationFailed { failure, checks };
        }
        for (path, digest) in &spec.requires {
            if let Err(failure) = required(Path::new(path), digest.as_deref()) {
                return Event::ValidationFailed {
                    failure,
                    checks: Vec::new(),
                };
            }
        }
        for path in &spec.input_paths {
            if let Err(failure) = self.input_path(path) {
                return Event::ValidationFailed {
                    failure,
                    checks: Vec::new(),
                };
            }
        }
        if spec.plan.mutating
            && let Err(failure) = repository_ready(work)
        {
            return Event::ValidationFailed {
                failure,
                checks: Vec::new(),
            };
        }
        let checks = self.checks(work, &spec.pre_checks, 0);
        match checks.iter().find(|check| check.verdict == Verdict::Failed) {
            None => self.wake(work, checks),
            Some(check) => {
                let why = check
                    .ended
                    .as_ref()
                    .map(crate::model::evidence::Ended::describe);
                let message = format!(
                    "the check `{}` before the run failed: {}",
                    check.description,
                    why.unwrap_or_default()
                );
                let failure = Failure::new(
                    Step::Validate,
                    check.failed_code("pre_check_failed"),
                    message,
                );
                Event::ValidationFailed { failure, checks }
            }
        }
    }

    /// A `path` input must not leave the workspace through a link; it need not exist.
    fn input_path(&self, path: &str) -> Result<(), Failure> {
        let root = std::fs::canonicalize(&self.parts.workspace)
            .map_err(|error| failure(Step::Validate, "workspace_unreadable", &error))?;
        let mut probe: PathBuf = self.parts.workspace.join(path);
        loop {
            match std::fs::canonicalize(&probe) {
                Ok(resolved) if resolved.starts_with(&root) => return Ok(()),
                Ok(_) => {
                    return Err(Failure::new(
                        Step::Validate,
                        "input_path_leaves_workspace",
                        format!("`{path}` leads out of the workspace through a link"),
                    ));
                }
                Err(_) if std::fs::symlink_metadata(&probe).is_ok() => {
                    return Err(Failure::new(
                        Step::Validate,
                        "input_path_unreadable",
                        format!("`{path}` cannot be resolved"),
                    ));
                }
                Err(_) => match probe.parent() {
                    Some(parent) => probe = parent.to_owned(),
                    None => return Ok(()),
                },
            }
        }
    }
}

fn required(path: &Path, digest: Option<&str>) -> Result<(), Failure> {
    let Some(digest) = digest else {
        return match std::fs::metadata(path) {
            Ok(_) => Ok(()),
            Err(error) => Err(Failure::new(
                Step::Validate,
                "program_missing",
                format!("`{}` is needed and cannot be used: {error}", path.display()),
            )),
        };
    };
    let content = std::fs::read(path).map_err(|error| {
        let message = format!("the script `{}` cannot be read: {error}", path.display());
        Failure::new(Step::Validate, "script_missing", message)
    })?;
    if hex(&Sha256::digest(&content)) == digest {
        return Ok(());
    }
    Err(Failure::new(
        Step::Validate,
        "script_changed",
        format!(
            "the script `{}` changed since the run was accepted",
            path.display()
        ),
    ))
}

fn repository_ready(work: &Work) -> Result<(), Failure> {
    let spec = tree_spec(work)?;
    let author = work.spec.commit_author.as_deref();
    git::preflight(Path::new(&spec.workdir), author).map_err(|refusal| {
        let message = match refusal.hint {
            Some(hint) => format!("{}; {hint}", refusal.message),
            None => refusal.message,
        };
        Failure::new(Step::Validate, &refusal.code, message)
    })?;
    Ok(())
}
