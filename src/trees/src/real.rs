//! The real repository, read only: its objects, references and settings.

use std::fs;
use std::path::{Path, PathBuf};

use git2::{Config, ConfigLevel, Repository, RepositoryOpenFlags};
use workerctl_landing::error::GitError;
use workerctl_landing::open::open;
use workerctl_landing::{holds_password, setting, without_user};

use crate::error::{TreeError, git, io_at};
use crate::model::Base;

/// A fresh handle: it caches references and settings, so none outlives a call.
pub(crate) struct Real {
    pub(crate) repo: Repository,
    pub(crate) common: PathBuf,
    config: Config,
}

/// Settings that hold in a run tree as they do in the repository, wherever they are set.
const BASICS: [&str; 7] = [
    "core.autocrlf",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.symlinks",
    "core.excludesfile",
    "core.attributesfile",
];

/// Sections of the repository's own settings by which its remotes are reached.
const REMOTES: [&str; 5] = ["remote.", "url.", "http.", "credential.", "core.sshcommand"];

impl Real {
    pub(crate) fn open(place: &Path) -> Result<Self, TreeError> {
        let flags = RepositoryOpenFlags::empty();
        let repo = open(place, flags, "open the repository")?;
        let common = repo.commondir().components().collect();
        let config = repo.config().and_then(|mut config| config.snapshot());
        let config = config.map_err(git("read the settings of the repository"))?;
        let real = Self {
            repo,
            common,
            config,
        };
        real.refuse_partial()?;
        Ok(real)
    }

    fn refuse_partial(&self) -> Result<(), TreeError> {
        let entries = self.config.entries(Some(r"^remote\..*\.promisor$"));
        let mut entries = entries.map_err(git("read the settings of the repository"))?;
        while let Some(Ok(entry)) = entries.next() {
            if Config::parse_bool(entry.value().unwrap_or("true")).unwrap_or(false) {
                let what = format!(
                    "`{}` is a partial clone, which lacks contents; use a whole clone",
                    self.common.display()
                );
                return Err(GitError::UnsupportedFormat(what).into());
            }
        }
        Ok(())
    }

    /// The lines of `packed-refs`, and symbolic references with their targets.
    pub(crate) fn references(&self, base: &Base<'_>) -> Result<References, TreeError> {
        const OWN: [&[u8]; 5] = [
            b"refs/workerctl/",
            b"refs/stash",
            b"refs/bisect/",
            b"refs/worktree/",
            b"refs/rewritten/",
        ];
        let mut found = References::default();
        let listed = self.repo.references().map_err(git("list the references"))?;
        // A reference that is damaged, or goes at this moment, is none.
        for reference in listed.flatten() {
            let name = reference.name_bytes().to_vec();
            if OWN.iter().any(|own| name.starts_with(own)) || name == base.target.as_bytes() {
                continue;
            }
            if let Some(target) = reference.symbolic_target_bytes() {
                found.symbolic.push((name, target.to_vec()));
            } else if let Some(oid) = reference.target() {
                found.direct.push((name, oid.to_string()));
            }
        }
        if let Some(commit) = base.commit {
            let name = base.target.as_bytes().to_vec();
            found.direct.push((name, commit.as_str().to_owned()));
        }
        found.direct.sort();
        Ok(found)
    }

    /// Every directory of objects: the repository's, and those it borrows from.
    pub(crate) fn object_directories(&self) -> Vec<PathBuf> {
        let mut found = vec![self.common.join("objects")];
        let mut at = 0;
        while let Some(dir) = found.get(at).cloned() {
            at += 1;
            let text = fs::read(dir.join("info/alternates")).unwrap_or_default();
            for line in String::from_utf8_lossy(&text).lines() {
                let other: PathBuf = dir.join(line);
                let is_new = !line.is_empty() && !line.starts_with('#') && !found.contains(&other);
                if is_new && found.len() < 64 {
                    found.push(other);
                }
            }
        }
        found
    }

    /// The text of settings that hold in every tree of this repository.
    pub(crate) fn settings(&self, target: &str) -> Result<String, TreeError> {
        let mut text = String::from(
            "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tlogallrefupdates = true\n\
             [gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n",
        );
        for name in BASICS {
            if name.ends_with("file") {
                if let Ok(path) = self.config.get_path(name) {
                    setting(
                        &mut text,
                        name,
                        Some(&self.absolute(&path.to_string_lossy())),
                    );
                }
            } else if let Ok(value) = self.config.get_string(name) {
                setting(&mut text, name, Some(&value));
            }
        }
        let short = target.strip_prefix("refs/heads/").unwrap_or(target);
        let branch = format!("branch.{short}.");
        let fail = git("read the settings of the repository");
        let mut entries = self.config.entries(None).map_err(&fail)?;
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(&fail)?;
            let (Ok(name), value) = (entry.name(), entry.value().ok()) else {
                continue;
            };
            let is_own = matches!(entry.level(), ConfigLevel::Local | ConfigLevel::Worktree);
            if !is_own
                || !(name.starts_with(&branch) || REMOTES.iter().any(|r| name.starts_with(r)))
            {
                continue;
            }
            let value = value.filter(|_| entry.has_value());
            // The run reads its tree, and is not told the passwords of the repository.
            let is_secret = holds_password(name, value.unwrap_or_default());
            if name.starts_with("remote.") && name.ends_with("url") {
                let url = value.map(|url| self.absolute(url));
                let url = url.map(|url| if is_secret { without_user(&url) } else { url });
                setting(&mut text, name, url.as_deref());
            } else if !is_secret {
                setting(&mut text, name, value);
            }
        }
        Ok(text)
    }

    /// A relative path means the same from the tree as from the checkout.
    fn absolute(&self, value: &str) -> String {
        let first = value.split('/').next().unwrap_or_default();
        if value.is_empty() || first.is_empty() || first.contains(':') || first.starts_with('~') {
            return value.to_owned();
        }
        let from = self.repo.workdir().unwrap_or(&self.common);
        from.join(value).to_string_lossy().into_owned()
    }
}

#[derive(Debug, Default)]
pub(crate) struct References {
    pub(crate) direct: Vec<(Vec<u8>, String)>,
    pub(crate) symbolic: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Reads a file that need not be there.
pub(crate) fn read_optional(path: &Path) -> Result<Vec<u8>, TreeError> {
    match fs::read(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other.map_err(io_at("read", path)),
    }
}
