//! Where a mutating run works and where its result lands, decided when it is accepted.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::super::refusals;
use super::Submitting;
use crate::git::{self, Head};
use crate::model::legible::hex;
use crate::model::spec::{LaidOver, OutputSpec, TreeSpec};
use crate::model::{Diagnostic, Kind};

/// The repository of a mutating run.
pub(super) struct Repository {
    /// Its common git directory, which the lease is on.
    pub common_dir: String,
    /// The work tree, without links in its path.
    pub workdir: PathBuf,
    head: Head,
}

impl Submitting<'_> {
    pub(super) fn repository(&self, cwd: &str) -> Result<Repository, Diagnostic> {
        let facts = git::locate(Path::new(cwd)).map_err(|error| {
            let mut message = crate::model::diagnostic::chain(&error);
            let damage = git::damage_behind(Path::new(cwd), None, &error);
            if let Some(damage) = &damage {
                message = format!("{message}: {damage}");
            }
            let refused = Diagnostic::new(
                Kind::Blocked,
                error.code(),
                format!(
                    "`{}` is mutating and needs a git repository: {message}",
                    self.skill.address
                ),
            );
            match damage.map(|damage| damage.remedy).or(error.hint()) {
                Some(hint) => refused.hint(hint),
                None => refused.hint("run `git init` in the workspace, or set `mutating: false`"),
            }
        })?;
        git::author(Path::new(cwd), self.around.config.commit_author.as_deref()).map_err(
            |error| {
                let refused = Diagnostic::new(Kind::Blocked, error.code(), error.to_string());
                match error.hint() {
                    Some(hint) => refused.hint(hint),
                    None => refused,
                }
            },
        )?;
        let workdir = std::fs::canonicalize(&facts.workdir).unwrap_or(facts.workdir);
        if !self.workspace_root().starts_with(&workdir) && git::is_submodule(&workdir) {
            let message = format!(
                "`{}` would commit in the submodule `{}`, whose commit is pinned by the outer repository",
                self.skill.address,
                workdir.display()
            );
            return Err(Diagnostic::new(Kind::Blocked, "cwd_in_submodule", message)
                .hint("give the skill a `cwd` outside of it, or make the submodule a workspace of its own"));
        }
        Ok(Repository {
            common_dir: facts.common_dir.to_string_lossy().into_owned(),
            workdir,
            head: facts.head,
        })
    }

    /// The branch and the tree of a mutating run.
    pub(super) fn tree(
        &self,
        repository: &Repository,
        outputs: &[OutputSpec],
    ) -> Result<TreeSpec, Diagnostic> {
        let inside = |path: &Path| path.starts_with(&repository.workdir);
        for output in outputs.iter().filter_map(|output| output.path.as_ref()) {
            let place = self.workspace_root().join(output);
            if !inside(&place) {
                let message = format!(
                    "the output `{output}` is outside of the repository `{}` that `{}` changes",
                    repository.workdir.display(),
                    self.skill.address
                );
                return Err(Diagnostic::new(Kind::Definition, "output_in_other_repository", message)
                    .hint("give it a destination inside that repository, or write it in a skill of its own"));
            }
            self.refuse_inner_repository(repository, output, &place)?;
        }
        if let Some(remote) = &self.skill.push {
            refuse_unknown_remote(repository, remote)?;
        }
        let (target, create) = self.target(repository)?;
        let skill = self.skill;
        let keep = skill.keep.iter();
        let keep = keep.map(|path| self.inside(repository, "keep", path));
        Ok(TreeSpec {
            target,
            create,
            workdir: repository.workdir.to_string_lossy().into_owned(),
            keep: keep.collect::<Result<_, _>>()?,
            laid_over: self.laid_over(repository)?,
            stored_bytes: skill.filtered_stored,
            parallel: skill.parallel,
            land_wait_ms: self.around.config.land_wait_ms,
            push: skill.push.clone(),
            in_place: None,
        })
    }

    /// The branch that was asked for, else the one that a person has checked out, else what the repository
    /// calls its own.
    fn target(&self, repository: &Repository) -> Result<(String, bool), Diagnostic> {
        if let Some(chosen) = &self.skill.branch {
            return Ok((format!("refs/heads/{}", chosen.name), chosen.create));
        }
        if self.around.due.is_some() {
            let found = git::default_branch(&repository.workdir)
                .map_err(|error| refusals::of_git(&error))?;
            let name = match found {
                Some(name) => Some(name),
                None => self.first_seen(repository),
            };
            if let Some(name) = name {
                return Ok((name, false));
            }
        }
        match &repository.head {
            Head::Branch { refname, .. } | Head::Unborn { refname } => Ok((refname.clone(), false)),
            Head::Detached { oid } => {
                let message = format!(
                    "`HEAD` is detached at {oid}, so it is not known on which branch `{}` is to land",
                    self.skill.address
                );
                Err(Diagnostic::new(Kind::Blocked, "detached_head", message)
                    .hint("write `branch: NAME` into workerctl.yaml, or check a branch out: `git switch NAME`"))
            }
        }
    }

    /// The branch that was checked out when something first fell due for this repository: what is due at night
    /// must not follow what somebody checks out in the evening.
    fn first_seen(&self, repository: &Repository) -> Option<String> {
        let mut name = hex(&Sha256::digest(repository.common_dir.as_bytes()));
        name.truncate(16);
        let directory = self.around.state_dir.join("branches");
        let file = directory.join(name);
        let known = std::fs::read_to_string(&file).unwrap_or_default();
        // A crash may have left it empty.
        if known.starts_with("refs/heads/") {
            return Some(known.trim_end().to_owned());
        }
        let (Head::Branch { refname, .. } | Head::Unborn { refname }) = &repository.head else {
            return None;
        };
        let noted = std::fs::create_dir_all(&directory)
            .and_then(|()| std::fs::write(&file, format!("{refname}\n")));
        if let Err(error) = noted {
            tracing::warn!(path = %file.display(), %error, "the branch of scheduled runs cannot be noted");
        }
        Some(refname.clone())
    }

    /// Returns what the tree takes from the checkout beside its base: inputs of type `path`, committed or not, and `local`.
    fn laid_over(&self, repository: &Repository) -> Result<Vec<LaidOver>, Diagnostic> {
        let root = self.workspace_root();
        let named = self.input_paths().into_iter().filter_map(|path| {
            let place = root.join(path);
            let relative = place.strip_prefix(&repository.workdir).ok()?;
            let path = relative.to_str()?.trim_end_matches('/').to_owned();
            (!path.is_empty()).then_some(LaidOver {
                path,
                link: false,
                required: false,
            })
        });
        let mut laid_over: Vec<LaidOver> = named.collect();
        for entry in &self.skill.local {
            laid_over.push(LaidOver {
                path: self.inside(repository, "local", &entry.path)?,
                link: entry.link,
                required: true,
            });
        }
        Ok(laid_over)
    }

    /// A path of the workspace as one of the repository, which begins elsewhere where a skill works in another one.
    fn inside(&self, repository: &Repository, key: &str, path: &str) -> Result<String, Diagnostic> {
        let place = self.workspace_root().join(path);
        let relative = place.strip_prefix(&repository.workdir).ok();
        if let Some(relative) = relative.and_then(Path::to_str) {
            return Ok(relative.trim_end_matches('/').to_owned());
        }
        let message = format!(
            "`{key}: {path}` is outside of the repository `{}` that `{}` changes",
            repository.workdir.display(),
            self.skill.address
        );
        let code = "path_in_other_repository";
        let hint = format!("take it out of `{key}`, or set `{key}: []` for this skill");
        Err(Diagnostic::new(Kind::Definition, code, message).hint(hint))
    }

    /// A tree has no repositories inside, so such an output would become a part of the outer one.
    fn refuse_inner_repository(
        &self,
        repository: &Repository,
        output: &str,
        place: &Path,
    ) -> Result<(), Diagnostic> {
        let above = place.ancestors().skip(1);
        let mut above = above.take_while(|at| *at != repository.workdir);
        let Some(inner) = above.find(|at| at.join(".git").symlink_metadata().is_ok()) else {
            return Ok(());
        };
        let relative = place.strip_prefix(&repository.workdir).unwrap_or(place);
        match git::is_ignored(&repository.workdir, relative) {
            // It is put into its place beside the landing.
            Ok(true) => Ok(()),
            Ok(false) => {
                let message = format!(
                    "the output `{output}` is in the repository `{}`, and `{}` changes `{}`",
                    inner.display(),
                    self.skill.address,
                    repository.workdir.display()
                );
                Err(Diagnostic::new(Kind::Definition, "output_in_other_repository", message)
                    .hint("set `cwd` to that repository, give the output another destination, or let git ignore the repository inside"))
            }
            Err(error) => Err(refusals::of_git(&error)),
        }
    }

    /// The workspace without links in its path.
    pub(super) fn workspace_root(&self) -> PathBuf {
        let workspace = self.around.workspace;
        std::fs::canonicalize(workspace).unwrap_or_else(|_| workspace.to_owned())
    }
}

/// Whoever asks for a push learns of a name that means nothing before anything runs, not after the landing.
fn refuse_unknown_remote(repository: &Repository, remote: &str) -> Result<(), Diagnostic> {
    let known = git::remotes(&repository.workdir).map_err(|error| refusals::of_git(&error))?;
    if known.iter().any(|name| name == remote) {
        return Ok(());
    }
    let message = format!(
        "there is no remote `{remote}`, which `push` names, in `{}`",
        repository.workdir.display()
    );
    let others = if known.is_empty() {
        String::new()
    } else {
        format!(", or name one of `{}`", known.join("`, `"))
    };
    Err(
        Diagnostic::new(Kind::Blocked, "remote_missing", message).hint(format!(
            "add it: `git remote add {remote} URL`{others}, or write `push: false`"
        )),
    )
}
