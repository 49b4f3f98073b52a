//! Who a run's commit is by.

use std::ffi::OsStr;
use std::path::Path;
use std::{env, iter};

use git2::{Config, ConfigLevel, ErrorCode, Repository, RepositoryOpenFlags};
use serde::{Deserialize, Serialize};

use super::open::Handle;
use workerctl_landing::error::{GitError, git};

/// Who a commit is by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    /// The name.
    pub name: String,
    /// The mail address.
    pub email: String,
}

/// Why there is no usable author.
#[derive(Debug, thiserror::Error)]
pub enum AuthorError {
    /// Neither configured here nor in git.
    #[error("no commit author is known: git has no `{missing}`")]
    Unset {
        /// The missing setting.
        missing: &'static str,
    },
    /// A value that would corrupt the commit.
    #[error("the commit author's {what} `{value}` is not usable: {why}")]
    Invalid {
        /// `name` or `mail address`.
        what: &'static str,
        /// The value, escaped.
        value: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The configuration cannot be read.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl AuthorError {
    /// A stable code for journals and views.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unset { .. } => "author_unset",
            Self::Invalid { .. } => "author_invalid",
            Self::Git(error) => error.code(),
        }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unset { .. } => Some(
                "git config --global user.name 'Your Name'\n\
                 git config --global user.email 'you@example.com'"
                    .to_owned(),
            ),
            Self::Invalid { .. } => Some("write it as `Your Name <you@example.com>`".to_owned()),
            Self::Git(error) => error.hint(),
        }
    }
}

/// The author of a run's commit: `configured` (`Name <mail>`, from `commit.author`), else
/// `author.*` of git's configuration, else `user.*`.
pub fn author(cwd: &Path, configured: Option<&str>) -> Result<Author, AuthorError> {
    if let Some(text) = configured {
        let invalid = || AuthorError::Invalid {
            what: "form",
            value: text.escape_debug().to_string(),
            why: "it is not `Name <mail>`",
        };
        let (name, rest) = text.split_once('<').ok_or_else(invalid)?;
        let email = rest.trim_end().strip_suffix('>').ok_or_else(invalid)?;
        return checked(name.trim(), email.trim());
    }
    let settings = Settings::of(cwd)?;
    let get = |keys: [&'static str; 2]| {
        let found = keys.iter().find_map(|key| settings.get(key));
        found
            .filter(|v| !v.trim().is_empty())
            .ok_or(AuthorError::Unset { missing: keys[1] })
    };
    let name = get(["author.name", "user.name"])?;
    let email = get(["author.email", "user.email"])?;
    checked(name.trim(), email.trim())
}

/// Git's configuration in a repository, found where git itself would look for it.
struct Settings {
    /// Each file by itself, the one that wins first.
    levels: Vec<Config>,
}

impl Settings {
    fn of(cwd: &Path) -> Result<Self, GitError> {
        let fail = git("read the configuration");
        let handle = Handle::open(cwd)?;
        // The git library honours these variables only together with others, such as
        // `GIT_INDEX_FILE`, which must not reach us. Of this handle nothing but the configuration is read.
        let asked =
            ["GLOBAL", "SYSTEM", "NOSYSTEM"].map(|of| env::var_os(format!("GIT_CONFIG_{of}")));
        let config = if asked.iter().any(Option::is_some) {
            let flags = RepositoryOpenFlags::FROM_ENV
                | RepositoryOpenFlags::NO_SEARCH
                | RepositoryOpenFlags::NO_DOTGIT;
            Repository::open_ext(handle.repo.path(), flags, iter::empty::<&OsStr>())
                .and_then(|repo| repo.config())
        } else {
            handle.repo.config()
        };
        let config = config.map_err(&fail)?;
        let mut levels = Vec::new();
        for level in Self::ORDER {
            // For git the variable takes the place of both files of a person, also when it is empty.
            let replaced = match level {
                ConfigLevel::XDG => asked[0].is_some(),
                ConfigLevel::Global => asked[0].as_ref().is_some_and(|file| file.is_empty()),
                _ => false,
            };
            match config.open_level(level).and_then(|mut one| one.snapshot()) {
                Ok(_) if replaced => {}
                Ok(one) => levels.push(one),
                Err(e) if e.code() == ErrorCode::NotFound => {}
                Err(e) => return Err(fail(e)),
            }
        }
        Ok(Self { levels })
    }

    const ORDER: [ConfigLevel; 6] = [
        ConfigLevel::Worktree,
        ConfigLevel::Local,
        ConfigLevel::Global,
        ConfigLevel::XDG,
        ConfigLevel::System,
        ConfigLevel::ProgramData,
    ];

    fn get(&self, key: &str) -> Option<String> {
        self.levels.iter().find_map(|one| one.get_string(key).ok())
    }
}

fn checked(name: &str, email: &str) -> Result<Author, AuthorError> {
    for (what, value) in [("name", name), ("mail address", email)] {
        let why = if value.is_empty() {
            "it is empty"
        } else if value.len() > 256 {
            "it is longer than 256 bytes"
        } else if value.chars().any(char::is_control) {
            "it has a line end or another control character"
        } else if value.contains(['<', '>']) {
            "it has an angle bracket"
        } else if value.chars().all(|c| ".,:;\"' \\".contains(c)) {
            "git would drop all of it"
        } else {
            continue;
        };
        return Err(AuthorError::Invalid {
            what,
            value: value.escape_debug().to_string(),
            why,
        });
    }
    Ok(Author {
        name: name.to_owned(),
        email: email.to_owned(),
    })
}
