//! A new repository and its first commit.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::Path;

use git2::{Config, ErrorCode, Reference, Repository, RepositoryInitOptions, RepositoryOpenFlags};

use super::author::Author;
use super::beneath::{Observed, Worktree};
use super::branch::{LogLine, Swap};
use super::commit::{PreparedCommit, refresh_after};
use super::deadline::{Deadline, Paced};
use super::error::{GitError, git, git_write, io_at};
use super::ids::{Oid, RepoPath};
use super::open::{Facts, Handle, locate};
use super::tree::{MODE_LINK, Overlay, TreeEntry};
use super::worktree_form::Forms;

/// The first branch where git's configuration names none.
const BRANCH_DEFAULT: &str = "main";

/// Most paths of a first commit.
pub const FIRST_COMMIT_PATHS_MAX: usize = 1_024;

/// Who makes the first commit, when, and with which message.
#[derive(Debug, Clone, Copy)]
pub struct FirstCommit<'a> {
    /// Author and committer.
    pub author: &'a Author,
    /// The whole message.
    pub message: &'a str,
    /// When, in seconds since 1970.
    pub time_s: i64,
    /// The offset of the author's zone from UTC in minutes.
    pub offset_min: i32,
}

/// Makes a repository in a directory that exists and lies in none, durable on return.
///
/// The first branch is `init.defaultBranch` of git's configuration, else `main`. No template is
/// copied, because a template may bring hooks.
pub fn create_repository(dir: &Path) -> Result<Facts, GitError> {
    refuse_within_another(dir)?;
    let branch = initial_branch()?;
    let mut options = RepositoryInitOptions::new();
    options
        .no_reinit(true)
        .mkdir(false)
        .mkpath(false)
        .external_template(false)
        .initial_head(&branch);
    let made =
        Repository::init_opts(dir, &options).map_err(git_write("make a repository in", dir))?;
    let git_dir = File::open(made.path()).map_err(io_at("open", made.path()))?;
    rustix::fs::syncfs(git_dir).map_err(io_at("sync", made.path()))?;
    locate(dir)
}

/// Any repository counts, also one that cannot be worked with.
fn refuse_within_another(dir: &Path) -> Result<(), GitError> {
    let flags = RepositoryOpenFlags::empty();
    match Repository::open_ext(dir, flags, std::iter::empty::<&OsStr>()) {
        Err(e) if e.code() == ErrorCode::NotFound && e.class() != git2::ErrorClass::Config => {
            Ok(())
        }
        Err(e) => Err(git("look for a repository")(e)),
        Ok(found) => {
            let why = format!("it lies in the repository `{}`", found.path().display());
            let source = io::Error::new(io::ErrorKind::AlreadyExists, why);
            Err(io_at("make a repository in", dir)(source))
        }
    }
}

fn initial_branch() -> Result<String, GitError> {
    let fail = git("read git's configuration");
    let mut config = Config::open_default().map_err(&fail)?;
    let config = config.snapshot().map_err(&fail)?;
    let name = match config.get_string("init.defaultbranch") {
        Ok(name) if !name.is_empty() => name,
        Ok(_) => BRANCH_DEFAULT.to_owned(),
        Err(e) if e.code() == ErrorCode::NotFound => BRANCH_DEFAULT.to_owned(),
        Err(e) => return Err(fail(e)),
    };
    if Reference::is_valid_name(&format!("refs/heads/{name}")) {
        return Ok(name);
    }
    Err(GitError::Git {
        doing: "name the first branch as `init.defaultBranch` says",
        source: git2::Error::from_str("it is no valid name of a branch"),
    })
}

/// Commits exactly these files, paths from the root of the work tree, on a branch that has no
/// commit yet; then brings the index up to date for them. Durable on return.
pub fn first_commit(
    dir: &Path,
    paths: &[RepoPath],
    how: &FirstCommit<'_>,
) -> Result<Oid, GitError> {
    let found = u64::try_from(paths.len()).unwrap_or(u64::MAX);
    if paths.len() > FIRST_COMMIT_PATHS_MAX {
        return Err(GitError::TooMuch {
            what: "paths of a first commit",
            found,
            limit: FIRST_COMMIT_PATHS_MAX as u64,
        });
    }
    let handle = Handle::open_durable(dir)?;
    let head = handle.head()?;
    if head.oid().is_some() {
        return Err(not_the_first());
    }
    let worktree = Worktree::open(handle.workdir())?;
    let forms = Forms::new(&handle);
    let mut overlay = Overlay::new();
    let mut objects = Vec::new();
    for path in paths {
        let entry = entry_of(&handle, &worktree, &forms, path)?;
        objects.push(entry.oid.clone());
        overlay.insert(path.clone(), Some(entry));
    }
    let tree = handle.write_tree(None, &overlay, &mut objects, Deadline::NONE)?;
    let fail = git_write("write the commit in", handle.repo.commondir());
    let time = git2::Time::new(how.time_s, how.offset_min);
    let Author { name, email } = how.author;
    let who = git2::Signature::new(name, email, &time).map_err(&fail)?;
    let tree = handle.tree(&tree)?;
    let oid = handle
        .repo
        .commit(None, &who, &who, how.message, &tree, &[]);
    let oid = Oid::from(oid.map_err(fail)?);
    objects.push(oid.clone());
    handle.sync_objects(&objects, Deadline::NONE)?;
    let log = LogLine {
        author: how.author,
        time_s: how.time_s,
        offset_min: how.offset_min,
        message: "commit (initial)",
    };
    match handle.swap_ref(head.refname(), None, &oid, &log)? {
        Swap::Moved => {}
        Swap::Tip(_) => return Err(not_the_first()),
    }
    let made = PreparedCommit {
        refname: head.refname().to_owned(),
        oid,
        parent: None,
    };
    // An index that could not be refreshed shows the files as deleted and untracked, no more.
    refresh_after(dir, &made)?;
    Ok(made.oid)
}

fn entry_of(
    handle: &Handle,
    worktree: &Worktree,
    forms: &Forms,
    path: &RepoPath,
) -> Result<TreeEntry, GitError> {
    let refused = |kind, why| io_at("commit", path.as_path())(io::Error::new(kind, why));
    let gone = || refused(io::ErrorKind::NotFound, "there is no such file");
    match worktree.observe(path)? {
        Observed::Absent => Err(gone()),
        Observed::Directory | Observed::Other => {
            let why = "it is neither a file nor a symbolic link";
            Err(refused(io::ErrorKind::InvalidInput, why))
        }
        Observed::Link(target, _) => {
            let fail = git_write("write an object in", handle.repo.commondir());
            Ok(TreeEntry {
                oid: handle.repo.blob(&target).map_err(fail)?.into(),
                mode: MODE_LINK,
            })
        }
        Observed::File(_) if handle.is_filtered(path)? => {
            let why = "it has a `filter` attribute, and no filter is run";
            Err(refused(io::ErrorKind::InvalidInput, why))
        }
        Observed::File(_) => {
            let (file, stat) = worktree.read(path)?.ok_or_else(gone)?;
            let mut file = Paced::new(file, Deadline::NONE);
            Ok(TreeEntry {
                oid: handle.normal_blob(&mut file, path, forms)?.into(),
                mode: forms.mode(stat.st_mode),
            })
        }
    }
}

fn not_the_first() -> GitError {
    GitError::Git {
        doing: "make the first commit",
        source: git2::Error::from_str("the branch has a commit"),
    }
}
