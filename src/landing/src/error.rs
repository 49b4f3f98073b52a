//! What can go wrong while reading or writing a repository.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

use super::ids::NameError;

/// A failure of the repository itself or of the file system below it.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// No repository at the directory or above it.
    #[error("`{}` is not inside a git repository", .0.display())]
    NotARepository(PathBuf),
    /// The repository has no work tree.
    #[error("the repository `{}` is bare", .0.display())]
    Bare(PathBuf),
    /// The repository belongs to another user and is not listed as safe.
    #[error("the repository at `{}` belongs to another user", .0.display())]
    OtherOwner(PathBuf),
    /// The repository uses a format that the built-in git library does not read.
    #[error("the repository uses an unsupported format: {0}")]
    UnsupportedFormat(String),
    /// A setting of git that has a value which cannot be followed.
    #[error("git's `{name}` {why}")]
    Setting {
        /// The setting, or the variable that gives it.
        name: String,
        /// What its value is, and why it is refused.
        why: String,
    },
    /// A branch that is only another name of a branch.
    #[error("the branch `{branch}` is a symbolic reference to `{target}`")]
    Symbolic {
        /// Its full name.
        branch: String,
        /// What it stands for.
        target: String,
    },
    /// A repository without its `HEAD`.
    #[error("`{}` is missing", .0.display())]
    HeadMissing(PathBuf),
    /// A lock that another program holds, or left behind.
    #[error("`{}` is held by {holder}", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// Who holds it, as far as it can be told.
        holder: String,
    },
    /// More data than this room is willing to record.
    #[error("{what}: {found} where at most {limit} are recorded")]
    TooMuch {
        /// What was counted, with its unit.
        what: &'static str,
        /// How much there is, at least.
        found: u64,
        /// The limit.
        limit: u64,
    },
    /// A system call on a file failed, or a name is not usable as one.
    #[error("cannot {doing} `{}`: {source}", path.display())]
    Io {
        /// The attempted step, as a verb.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The git library refused.
    #[error("cannot {doing}: {source}")]
    Git {
        /// The attempted step, as a verb with its object.
        doing: &'static str,
        /// The cause.
        source: git2::Error,
    },
}

impl GitError {
    /// A stable code for journals and views.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotARepository(_) => "not_a_repository",
            Self::Bare(_) => "bare_repository",
            Self::OtherOwner(_) => "other_owner",
            Self::UnsupportedFormat(_) | Self::Symbolic { .. } => "unsupported_format",
            Self::HeadMissing(_) => "head_missing",
            Self::Setting { .. } => "git_setting",
            Self::Locked { .. } => "locked",
            Self::TooMuch { .. } => "too_much_uncommitted",
            Self::Io { source, .. } if is_full(source) => "disk_full",
            Self::Io { source, .. } if source.kind() == io::ErrorKind::FileTooLarge => {
                "file_size_limit"
            }
            Self::Io { source, .. } if is_read_only(source) => "read_only",
            Self::Io { .. } => "io",
            Self::Git { .. } => "git",
        }
    }

    /// Whether something of a repository is missing or damaged, so that it cannot be read.
    pub fn is_unreadable(&self) -> bool {
        match self {
            Self::NotARepository(_)
            | Self::UnsupportedFormat(_)
            | Self::HeadMissing(_)
            | Self::Git { .. } => true,
            Self::Io { source, .. } => matches!(
                source.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::InvalidData
            ),
            _ => false,
        }
    }

    /// Returns the message with the hint, if there is one.
    pub fn with_hint(&self) -> String {
        match self.hint() {
            Some(hint) => format!("{self}; {hint}"),
            None => self.to_string(),
        }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NotARepository(_) => "run `git init` there, or set `cwd` to a repository".into(),
            Self::Bare(_) => "use a clone that has a work tree".into(),
            Self::OtherOwner(path) => format!(
                "run as the owner, or allow it: git config --global --add safe.directory '{}'",
                path.display()
            ),
            Self::UnsupportedFormat(_) => {
                "SHA-256 object ids, reftable storage and split or sparse indexes are not \
                 supported; use a clone in the default format"
                    .into()
            }
            Self::Symbolic { branch, target } => {
                let short = |name: &str| name.trim_start_matches("refs/heads/").to_owned();
                let (name, named) = (short(branch), short(target));
                format!(
                    "write `branch: {named}`, or make it a branch of its own: \
                     `git symbolic-ref -d {branch} && git branch {name} {named}`"
                )
            }
            Self::HeadMissing(head) => format!(
                "`echo 'ref: refs/heads/main' > '{}'`, with the branch that was checked out",
                head.display()
            ),
            Self::Locked { path, .. } => format!(
                "wait for the other program; if none is running, remove `{}`",
                path.display()
            ),
            Self::TooMuch { .. } => {
                "commit them, or list them in `.gitignore`, so that they need not be kept".into()
            }
            Self::Io { source, .. } if is_full(source) => "free some disk space".into(),
            Self::Io { source, .. } if source.kind() == io::ErrorKind::FileTooLarge => {
                "raise the limit on the size of a file for the engine: `ulimit -f unlimited`, or `LimitFSIZE=infinity` in its unit".into()
            }
            Self::Setting { name, .. } => {
                format!("correct `{name}`, or unset it where the engine is started")
            }
            Self::Io { path, source, .. }
                if is_read_only(source) && chown_remedy(path).is_some() =>
            {
                return chown_remedy(path);
            }
            Self::Io { path, source, .. } if source.raw_os_error() == Some(NOT_PERMITTED) => {
                format!(
                    "if it was made immutable, take that off it: `chattr -R -i '{}'`",
                    path.display()
                )
            }
            Self::Io { source, .. } if is_read_only(source) => {
                "make its place writable for this user".into()
            }
            Self::Git { source, .. } if source.class() == git2::ErrorClass::Config => {
                "repair the named line of git's configuration in an editor".into()
            }
            Self::Git { source, .. } if is_damage(source) => {
                "run `git fsck`; the repository seems to be damaged".into()
            }
            Self::Io { .. } | Self::Git { .. } => return None,
        })
    }
}

/// Returns the command that gives a file back which is another user's, such as root's after `sudo git commit`; `None` if
/// neither the file nor its directory is.
pub fn chown_remedy(path: &Path) -> Option<String> {
    let own = rustix::process::geteuid().as_raw();
    let owner = |path: &Path| Some(std::fs::symlink_metadata(path).ok()?.uid());
    let nearest = path.ancestors().find(|above| owner(above).is_some())?;
    let mut places = std::iter::once(nearest).chain(nearest.parent());
    let foreign = places.find(|place| owner(place).is_some_and(|uid| uid != own))?;
    let mut above = foreign.ancestors();
    let git_dir = above.find(|above| above.file_name().is_some_and(|name| name == ".git"));
    let (uid, place) = (owner(foreign)?, git_dir.unwrap_or(foreign).display());
    let shown = foreign.display();
    Some(format!(
        "`{shown}` belongs to another user (uid {uid}): `sudo chown -R {own} '{place}'`"
    ))
}

/// `EPERM`, which missing rights alone do not lead to: those are `EACCES`.
const NOT_PERMITTED: i32 = 1;

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

fn is_read_only(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied
    )
}

fn is_damage(error: &git2::Error) -> bool {
    use git2::ErrorClass::{Index, Object, Odb, Tree, Zlib};
    matches!(error.class(), Index | Object | Odb | Tree | Zlib)
}

/// Turns a failure of the git library into ours, with the step that failed.
pub fn git(doing: &'static str) -> impl Fn(git2::Error) -> GitError {
    move |source| {
        let text = source.message();
        // Libgit2 passes the text of `errno` on, but not its number.
        let kind = if text.contains("No space left on device") {
            io::ErrorKind::StorageFull
        } else if text.contains("File too large") {
            io::ErrorKind::FileTooLarge
        } else if text.contains("Read-only file system") {
            io::ErrorKind::ReadOnlyFilesystem
        } else if text.contains("Permission denied") {
            io::ErrorKind::PermissionDenied
        } else if text.contains("unsupported mandatory extension") {
            return GitError::UnsupportedFormat(text.to_owned());
        } else {
            return GitError::Git { doing, source };
        };
        GitError::Io {
            doing,
            path: PathBuf::from(".git"),
            source: io::Error::new(kind, text.to_owned()),
        }
    }
}

/// Less free space than this explains why a write failed.
const FULL_BELOW_BYTES: u64 = 1 << 20;

/// Turns a failed write of the git library into ours.
///
/// On a full disk, and at the limit on the size of a file, its buffered writers fail without a word, or even report
/// success for an object that is not there afterwards, so disk and limit are asked.
pub fn git_write(doing: &'static str, dir: &Path) -> impl Fn(git2::Error) -> GitError {
    let dir = dir.to_owned();
    move |source| {
        let silent = source.message() == "no error" || source.code() == git2::ErrorCode::NotFound;
        let full = rustix::fs::statvfs(&dir).is_ok_and(|disk| {
            disk.f_favail == 0 && disk.f_files > 0
                || disk.f_bavail.saturating_mul(disk.f_frsize) < FULL_BELOW_BYTES
        });
        let limited = getrlimit(Resource::Fsize).current.is_some();
        let cause = if full {
            Some(io::ErrorKind::StorageFull)
        } else {
            limited.then_some(io::ErrorKind::FileTooLarge)
        };
        if let Some(cause) = cause.filter(|_| silent) {
            return io_at(doing, &dir)(io::Error::from(cause));
        }
        git(doing)(source)
    }
}

/// Turns a failed system call into ours.
pub fn io_at<E: Into<io::Error>>(doing: &'static str, path: &Path) -> impl Fn(E) -> GitError {
    let path = path.to_owned();
    move |source| GitError::Io {
        doing,
        path: path.clone(),
        source: source.into(),
    }
}

impl From<NameError> for GitError {
    fn from(error: NameError) -> Self {
        GitError::Io {
            doing: "use the name",
            path: PathBuf::from(match &error {
                NameError::Oid(t) | NameError::RunId(t) | NameError::Reference(t) => t.clone(),
                NameError::Path { path, .. } => path.clone(),
            }),
            source: io::Error::new(io::ErrorKind::InvalidInput, error),
        }
    }
}
