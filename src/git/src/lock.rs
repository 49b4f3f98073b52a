//! Locks: the lease on a repository, and git's own lock files taken in a recognisable way.
//!
//! Git's lock on `x` is the existence of `x.lock`; it says nothing of its owner, so one that a
//! killed program left behind can only be removed by a person. Ours are hard links to a file
//! that already says who took them: they are never empty, and can be told from foreign ones and,
//! when their process is gone, cleared. A process of another pid namespace, as in a container, is not
//! visible here: that one lives as long as it holds the kernel's lock on that file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::durable::{Written, sweep_temporaries};
use super::open::{Facts, sharing};
use workerctl_landing::Sharing;
use workerctl_landing::error::{GitError, io_at};

/// How often a lock that someone else holds is tried, and how long is waited in between.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// Longest note about a holder that is read.
const NOTE_BYTES_MAX: u64 = 4096;

/// The lease of engines: never removed, and it says nothing by being there.
const LEASE: &str = "workerctl.lock";

/// The same, and what earlier versions locked while a run worked in the checkout itself.
pub(super) const LEASES: [&str; 2] = [LEASE, "workerctl-in-place.lock"];

const MARKER: &str = "workerctl";
const PID_NS: &str = " pid_ns=";

/// Who holds a lock, as written into it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The process.
    pub pid: u32,
    /// When the process started, in clock ticks since boot; tells a reused pid apart.
    pub start_ticks: u64,
    /// The boot it belongs to.
    pub boot_id: String,
    /// Free text: the state directory of the engine.
    pub owner: String,
    /// The pid namespace in which the process has that number; empty where it is not known.
    pub pid_ns: String,
}

impl Holder {
    /// This process, on behalf of `owner`.
    pub fn this_process(owner: &str) -> Self {
        let pid = std::process::id();
        Self {
            pid,
            start_ticks: start_ticks(pid).unwrap_or(0),
            boot_id: boot_id(),
            owner: owner
                .chars()
                .filter(|c| !c.is_control())
                .take(1024)
                .collect(),
            pid_ns: pid_ns(),
        }
    }

    /// Whether that very process still runs; one that cannot be seen from here is taken to.
    pub fn is_alive(&self) -> bool {
        self.boot_id == boot_id()
            && (self.is_out_of_sight() || start_ticks(self.pid) == Some(self.start_ticks))
    }

    /// Whether it belongs to another pid namespace, so that its number means nothing here.
    fn is_out_of_sight(&self) -> bool {
        let own = pid_ns();
        !self.pid_ns.is_empty() && !own.is_empty() && self.pid_ns != own
    }

    fn to_line(&self) -> String {
        format!(
            "{MARKER} pid={} start={} boot={} owner={}{PID_NS}{}\n",
            self.pid, self.start_ticks, self.boot_id, self.owner, self.pid_ns
        )
    }

    fn from_line(line: &str) -> Option<Self> {
        let rest = line.trim_end_matches('\n').strip_prefix(MARKER)?;
        let rest = rest.strip_prefix(" pid=")?;
        let (pid, rest) = rest.split_once(" start=")?;
        let (start, rest) = rest.split_once(" boot=")?;
        let (boot, rest) = rest.split_once(" owner=")?;
        // Earlier versions wrote none, and read what follows the owner as a part of it.
        let (owner, pid_ns) = rest.rsplit_once(PID_NS).unwrap_or((rest, ""));
        Some(Self {
            pid: pid.parse().ok()?,
            start_ticks: start.parse().ok()?,
            boot_id: boot.to_owned(),
            owner: owner.to_owned(),
            pid_ns: pid_ns.to_owned(),
        })
    }
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {} ({})", self.pid, self.owner)
    }
}

fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

/// The kernel's name for the namespace of this process's number; empty where it gives none.
fn pid_ns() -> String {
    fs::read_link("/proc/self/ns/pid")
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// Field 22 of `/proc/<pid>/stat`; the name in field 2 may hold blanks and parentheses.
fn start_ticks(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let after_name = &text[text.rfind(')')? + 1..];
    after_name.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// The exclusive right to change a repository, held from preparing to committing or restoring.
///
/// It is a `flock` on `<git common dir>/workerctl.lock` and ends with the value or the process.
/// It keeps engines apart, not people: those are kept apart by git's own locks.
#[derive(Debug)]
pub struct RepositoryLease {
    file: File,
    path: PathBuf,
}

impl RepositoryLease {
    /// Takes the lease without waiting; [`GitError::Locked`] names the holder.
    pub fn acquire(facts: &Facts, owner: &str) -> Result<Self, GitError> {
        Self::of(&facts.git_dir, &facts.common_dir, owner, facts.sharing)
    }

    /// The same for a repository of which only its common directory is known.
    pub fn of_repository(common_dir: &Path, owner: &str) -> Result<Self, GitError> {
        Self::of(common_dir, common_dir, owner, sharing(common_dir))
    }

    /// The same for a repository of which only its directories are known.
    pub(super) fn of(
        git_dir: &Path,
        common_dir: &Path,
        owner: &str,
        sharing: Sharing,
    ) -> Result<Self, GitError> {
        let held = Self::lock(common_dir.join(LEASE), owner, sharing)?;
        // Whoever wrote one held the lease, which keeps engines of every pid namespace apart.
        let alive = |pid| start_ticks(pid).is_some();
        sweep_temporaries(common_dir, alive)?;
        if git_dir != common_dir {
            sweep_temporaries(git_dir, alive)?;
        }
        Ok(held)
    }

    fn lock(path: PathBuf, owner: &str, sharing: Sharing) -> Result<Self, GitError> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o644)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
            .open(&path)
            .map_err(io_at("open", &path))?;
        // It can only be set where it is right already, if another user made the file.
        let _ = sharing.adjust_file(&file);
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut note = String::new();
                let _ = (&file).take(NOTE_BYTES_MAX).read_to_string(&mut note);
                let holder = Holder::from_line(&note)
                    .map_or_else(|| "another engine".to_owned(), |h| h.to_string());
                return Err(GitError::Locked { path, holder });
            }
            Err(e) => return Err(io_at("lock", &path)(e)),
        }
        let note = Holder::this_process(owner).to_line();
        let write = |file: &mut File| -> io::Result<()> {
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(note.as_bytes())
        };
        write(&mut file).map_err(io_at("write", &path))?;
        Ok(Self { file, path })
    }

    /// The lock file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for RepositoryLease {
    fn drop(&mut self) {
        // The note is a courtesy. Unlocked by name, as a process that is being started has the file too.
        let _ = self.file.set_len(0);
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// One of git's lock files, taken in our name; removed when dropped.
pub(super) struct GitLock {
    path: PathBuf,
    /// The same file, locked, so that other pid namespaces see that its holder lives.
    _held: Option<File>,
}

impl GitLock {
    /// Takes `<target>.lock`, waiting about a second for a living holder.
    ///
    /// `scratch` is a directory of the same file system where no file is mistaken for another.
    pub(super) fn take(target: &Path, scratch: &Path, sharing: Sharing) -> Result<Self, GitError> {
        let mut name = target.as_os_str().to_owned();
        name.push(".lock");
        let path = PathBuf::from(name);
        let note = Written::new(
            scratch,
            Holder::this_process("").to_line().as_bytes(),
            sharing,
        )?;
        let mut held = held(note.path());
        for _ in 0..TRIES {
            match fs::hard_link(note.path(), &path) {
                Ok(()) => {
                    return Ok(Self {
                        path,
                        _held: held.take(),
                    });
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(io_at("create", &path)(e)),
            }
            if !clear_if_stale(&path)? {
                thread::sleep(PAUSE);
            }
        }
        let holder = holder_of(&path).map_or_else(
            || "another program, such as git".to_owned(),
            |(_, holder)| holder.to_string(),
        );
        Err(GitError::Locked { path, holder })
    }
}

impl Drop for GitLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The file, locked; `None` where the file system knows no such locks.
fn held(path: &Path) -> Option<File> {
    let file = OpenOptions::new().read(true).write(true).open(path).ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(file)
}

/// Opens a file for reading: a link is not followed, a pipe not waited for.
pub(super) fn open_at_once(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
}

/// A lock file of ours, and who took it.
fn holder_of(path: &Path) -> Option<(File, Holder)> {
    let mut note = String::new();
    let file = open_at_once(path).ok()?;
    (&file)
        .take(NOTE_BYTES_MAX)
        .read_to_string(&mut note)
        .ok()?;
    Some((file, Holder::from_line(&note)?))
}

/// Whether the process that took a lock file is gone for certain.
fn is_gone(file: &File, holder: &Holder) -> bool {
    // It locked the file before it gave it this name. Where there are no such locks, nobody can tell.
    let let_go = || flock(file, FlockOperation::NonBlockingLockShared).is_ok();
    !holder.is_alive() || (holder.is_out_of_sight() && let_go())
}

/// Whose a lock file of git's is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockOwner {
    /// A process of ours that lives, or cannot be seen from here.
    Ours(Holder),
    /// A process of ours that is gone.
    Left,
    /// Another program's, such as git.
    Foreign,
}

/// Whose a lock file is.
pub(super) fn owner_of(path: &Path) -> LockOwner {
    match holder_of(path) {
        Some((file, holder)) if is_gone(&file, &holder) => LockOwner::Left,
        Some((_, holder)) => LockOwner::Ours(holder),
        None => LockOwner::Foreign,
    }
}

/// Removes a lock file of ours whose process is gone; foreign locks are left alone.
pub(super) fn clear_if_stale(path: &Path) -> Result<bool, GitError> {
    match holder_of(path) {
        Some((file, holder)) if is_gone(&file, &holder) => match fs::remove_file(path) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(e) => Err(io_at("remove the stale lock", path)(e)),
        },
        Some(_) | None => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_reads_back() {
        let me = Holder::this_process("/srv/state dir owner=x\n");
        let back = Holder::from_line(&me.to_line()).unwrap();
        assert_eq!(back, me);
        assert!(back.is_alive());
        assert!(
            !Holder {
                boot_id: "other".into(),
                ..me.clone()
            }
            .is_alive()
        );
        assert!(
            !Holder {
                start_ticks: me.start_ticks + 1,
                ..me
            }
            .is_alive()
        );
        assert_eq!(
            Holder::from_line("4b825dc642cb6eb9a060e54bf8d69288fbee4904\n"),
            None
        );
    }

    #[test]
    fn a_process_of_another_pid_namespace_counts_as_alive_and_its_file_tells() {
        let line = |pid_ns: &str| {
            let nobody = u32::MAX;
            let boot = boot_id();
            format!("workerctl pid={nobody} start=1 boot={boot} owner=/x{pid_ns}\n")
        };
        let own = format!(" pid_ns={}", pid_ns());
        let table = [
            ("", false),
            (" pid_ns=", false),
            (own.as_str(), false),
            (" pid_ns=pid:[1]", true),
        ];
        for (written, alive) in table {
            let holder = Holder::from_line(&line(written)).unwrap();
            assert_eq!(holder.is_alive(), alive, "{written:?}");
            assert_eq!(holder.owner, "/x");
            let of_another_boot = Holder {
                boot_id: "other".into(),
                ..holder
            };
            assert!(!of_another_boot.is_alive());
        }
        let dir = xtest::tempdir();
        let lock = dir.path().join("index.lock");
        fs::write(&lock, line(" pid_ns=pid:[1]")).unwrap();
        let its = held(&lock).unwrap();
        assert!(!clear_if_stale(&lock).unwrap());
        drop(its);
        assert!(clear_if_stale(&lock).unwrap());
        assert!(!lock.exists());
    }

    const HELD: &str = "WORKERCTL_TEST_HELD_LOCK";

    #[test]
    fn a_lock_that_is_held_is_not_cleared_from_another_pid_namespace() {
        let unshare = |program: &Path| {
            let mut command = std::process::Command::new("unshare");
            command.args(["-pf", "--mount-proc"]).arg(program);
            command
        };
        let works = unshare(Path::new("true")).output();
        if !works.is_ok_and(|done| done.status.success()) {
            return eprintln!("skipped: pid namespaces do not work here");
        }
        let dir = xtest::tempdir();
        let taken = GitLock::take(&dir.path().join("index"), dir.path(), Sharing::Umask).unwrap();
        let name = "lock::tests::inner_not_cleared";
        let done = unshare(&std::env::current_exe().unwrap())
            .args(["--exact", name, "--ignored"])
            .env(HELD, &taken.path)
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
        assert!(String::from_utf8_lossy(&done.stdout).contains("1 passed"));
        assert!(taken.path.exists());
    }

    #[test]
    #[ignore = "run by `a_lock_that_is_held_is_not_cleared_from_another_pid_namespace`"]
    fn inner_not_cleared() {
        let Some(lock) = std::env::var_os(HELD).map(PathBuf::from) else {
            return;
        };
        assert!(!clear_if_stale(&lock).unwrap());
        assert!(lock.exists());
    }

    #[test]
    fn a_stale_lock_of_ours_is_cleared_and_a_foreign_one_is_not() {
        let dir = xtest::tempdir();
        let target = dir.path().join("index");
        let lock = dir.path().join("index.lock");
        let gone = Holder {
            boot_id: "gone".into(),
            ..Holder::this_process("")
        };
        fs::write(&lock, gone.to_line()).unwrap();
        drop(GitLock::take(&target, dir.path(), Sharing::Umask).unwrap());
        assert!(!lock.exists());
        fs::write(&lock, "").unwrap();
        let refused = GitLock::take(&target, dir.path(), Sharing::Umask)
            .err()
            .unwrap();
        assert_eq!(refused.code(), "locked");
        assert!(lock.exists());
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            1,
            "nothing else is left"
        );
    }
}
