//! A new repository and its first commit.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use git2::{Config, ErrorCode, Reference, Repository, RepositoryInitOptions, RepositoryOpenFlags};

use workerctl_landing::error::{GitError, git, git_write, io_at};
use workerctl_landing::ids::{Oid, RepoPath};
use workerctl_landing::open::outer_configuration;
use workerctl_landing::{
    Journal, LandError, LogLine, MetFile, Outcome, Plan, Request, Sharing, Unobserved, clear, land,
};

use super::author::Identity;
use super::open::{Facts, Handle, locate};

/// The first branch where git's configuration names none.
const BRANCH_DEFAULT: &str = "main";

/// Most paths of a first commit.
pub const FIRST_COMMIT_PATHS_MAX: usize = 1_024;

/// Who makes the first commit, when, and with which message.
#[derive(Debug, Clone, Copy)]
pub struct FirstCommit<'a> {
    /// Author and committer.
    pub identity: &'a Identity,
    /// The whole message.
    pub message: &'a str,
    /// When, in seconds since 1970, where the identity does not say it.
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
    let mut config = outer_configuration()?;
    let config = config.snapshot().map_err(git("read git's configuration"))?;
    let branch = initial_branch(&config)?;
    let sharing = Sharing::read(&config)?;
    let mut options = RepositoryInitOptions::new();
    options
        .no_reinit(true)
        .mkdir(false)
        .mkpath(false)
        .external_template(false)
        .initial_head(&branch);
    let made =
        Repository::init_opts(dir, &options).map_err(git_write("make a repository in", dir))?;
    share(&made, sharing)?;
    let git_dir = File::open(made.path()).map_err(io_at("open", made.path()))?;
    rustix::fs::syncfs(git_dir).map_err(io_at("sync", made.path()))?;
    locate(dir)
}

/// Gives all of a new repository the permissions that `core.sharedRepository` of a user asks for, as `git init` does.
fn share(repository: &Repository, sharing: Sharing) -> Result<(), GitError> {
    let value = match sharing {
        Sharing::Umask => return Ok(()),
        Sharing::AtLeast(given) if given & 0o004 == 0 => "1".to_owned(),
        Sharing::AtLeast(_) => "2".to_owned(),
        Sharing::Exactly(given) => format!("0{given:o}"),
    };
    let fail = git_write("write the settings of", repository.path());
    let mut config = repository.config().map_err(&fail)?;
    config
        .set_str("core.sharedrepository", &value)
        .and_then(|()| config.set_bool("receive.denyNonFastforwards", true))
        .map_err(fail)?;
    let mut left = vec![repository.path().to_owned()];
    while let Some(path) = left.pop() {
        sharing.adjust(&path)?;
        if path.is_dir() {
            for entry in std::fs::read_dir(&path).map_err(io_at("list", &path))? {
                left.push(entry.map_err(io_at("list", &path))?.path());
            }
        }
    }
    Ok(())
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
            let why = format!("it is in the repository `{}`", found.path().display());
            let source = io::Error::new(io::ErrorKind::AlreadyExists, why);
            Err(io_at("make a repository in", dir)(source))
        }
    }
}

fn initial_branch(config: &Config) -> Result<String, GitError> {
    let name = match config.get_string("init.defaultbranch") {
        Ok(name) if !name.is_empty() => name,
        Ok(_) => BRANCH_DEFAULT.to_owned(),
        Err(e) if e.code() == ErrorCode::NotFound => BRANCH_DEFAULT.to_owned(),
        Err(e) => return Err(git("read git's configuration")(e)),
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
    let fail = git_write("write the commit in", handle.repo.commondir());
    let mut index = git2::Index::new().map_err(&fail)?;
    for path in paths {
        index
            .add(&entry_of(&handle, path)?)
            .map_err(git("commit a file"))?;
    }
    let tree = index.write_tree_to(&handle.repo).map_err(&fail)?;
    let tree = handle.repo.find_tree(tree).map_err(&fail)?;
    let time = (how.time_s, how.offset_min);
    let [author, committer] = how.identity.signatures(time).map_err(&fail)?;
    let oid = handle
        .repo
        .commit(None, &author, &committer, how.message, &tree, &[]);
    let oid = Oid::from(oid.map_err(&fail)?);
    share_objects(&handle, &oid)?;
    land_first(dir, head.refname(), &oid, how)?;
    Ok(oid)
}

/// The git library gives what it writes the permissions that the umask leaves.
fn share_objects(handle: &Handle, commit: &Oid) -> Result<(), GitError> {
    let sharing = handle.sharing()?;
    let tree = handle.tree_of(Some(commit))?;
    let Some(tree) = tree.filter(|_| sharing != Sharing::Umask) else {
        return Ok(());
    };
    let mut objects = vec![commit.raw(), tree.id()];
    tree.walk(git2::TreeWalkMode::PreOrder, |_, entry| {
        objects.push(entry.id());
        git2::TreeWalkResult::Ok
    })
    .map_err(git("read a tree"))?;
    for oid in objects {
        let name = oid.to_string();
        let (fan, rest) = name.split_at(2);
        let fan = handle.repo.commondir().join("objects").join(fan);
        let object = fan.join(rest);
        if object.exists() {
            sharing.adjust(&fan)?;
            sharing.adjust(&object)?;
        }
    }
    Ok(())
}

/// Puts the commit on the branch, and its files into the index.
fn land_first(dir: &Path, target: &str, oid: &Oid, how: &FirstCommit<'_>) -> Result<(), GitError> {
    let id = ulid::Ulid::from_parts(u64::try_from(how.time_s).unwrap_or(0) * 1_000, 0);
    let time = how.identity.committer_time((how.time_s, how.offset_min));
    let committer = &how.identity.committer;
    let request = Request {
        repository: dir,
        run: &id.to_string().parse()?,
        target,
        from: None,
        to: oid,
        earlier: &[],
        log: &LogLine {
            name: committer.name.clone(),
            email: committer.email.clone(),
            time_s: time.0,
            offset_min: time.1,
            message: "commit (initial)".to_owned(),
        },
    };
    let mut journal = Once::default();
    let landed = land(&request, &mut journal, &Unobserved);
    if let Some(plan) = journal.0 {
        // Nothing was replaced that anybody could miss.
        let _ = clear(&plan);
    }
    let why = match landed {
        Ok(Outcome::Landed { .. }) => return Ok(()),
        Ok(Outcome::LandedIn { .. } | Outcome::Moved { .. }) => return Err(not_the_first()),
        Ok(Outcome::Waiting { obstacle, .. } | Outcome::Interrupted { obstacle }) => {
            obstacle.to_string()
        }
        Err(LandError::Git(error)) => return Err(error),
        Err(error) => error.to_string(),
    };
    Err(io_at("make the first commit in", dir)(io::Error::other(
        why,
    )))
}

/// Files that were there before are all that this commit holds, so that a killed one leaves nothing to take back.
#[derive(Default)]
struct Once(Option<Plan>);

impl Journal for Once {
    fn started(&mut self, plan: &Plan) -> io::Result<()> {
        self.0 = Some(plan.clone());
        Ok(())
    }

    fn landed(&mut self, _: &Plan) -> io::Result<()> {
        Ok(())
    }

    fn taken_back(&mut self, _: &Plan, _: &[MetFile]) -> io::Result<()> {
        Ok(())
    }
}

fn entry_of(handle: &Handle, path: &RepoPath) -> Result<git2::IndexEntry, GitError> {
    let at = handle.workdir().join(path.as_path());
    let refused = |source| io_at("commit", path.as_path())(source);
    let gone = || io::Error::new(io::ErrorKind::NotFound, "there is no such file");
    let found = match std::fs::symlink_metadata(&at) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(refused(gone())),
        found => found.map_err(refused)?,
    };
    let fail = git_write("write an object in", handle.repo.commondir());
    let is_filtered = handle
        .repo
        .get_attr(
            path.as_path(),
            "filter",
            git2::AttrCheckFlags::FILE_THEN_INDEX,
        )
        .map_err(git("read the attributes"))?;
    let (mode, oid) = if found.is_symlink() {
        let target = std::fs::read_link(&at).map_err(refused)?;
        let blob = handle.repo.blob(target.as_os_str().as_encoded_bytes());
        (0o120_000, blob.map_err(fail)?)
    } else if !found.is_file() {
        let why = "it is neither a file nor a symbolic link";
        return Err(refused(io::Error::new(io::ErrorKind::InvalidInput, why)));
    } else if is_filtered.is_some() {
        let why = "it has a `filter` attribute, and no filter is run";
        return Err(refused(io::Error::new(io::ErrorKind::InvalidInput, why)));
    } else {
        let mode = if found.mode() & 0o100 == 0 {
            0o100_644
        } else {
            0o100_755
        };
        let blob = handle.repo.blob_path(&at);
        (mode, blob.map_err(fail)?)
    };
    Ok(git2::IndexEntry {
        ctime: git2::IndexTime::new(0, 0),
        mtime: git2::IndexTime::new(0, 0),
        dev: 0,
        ino: 0,
        mode,
        uid: 0,
        gid: 0,
        file_size: 0,
        id: oid,
        flags: 0,
        flags_extended: 0,
        path: path.as_bytes().to_vec(),
    })
}

fn not_the_first() -> GitError {
    GitError::Git {
        doing: "make the first commit",
        source: git2::Error::from_str("the branch has a commit"),
    }
}
