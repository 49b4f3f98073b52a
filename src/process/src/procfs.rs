//! What `/proc` says about processes. Formats: proc(5).

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::process::{Pid, WaitId, WaitIdOptions, getpgid, waitid};

/// Most processes that one walk looks at; twice the highest number that kernels allow by default.
const PROCESSES_MAX: usize = 1 << 16;

/// Most descriptors of one process that are looked at; the standard ones come first.
const DESCRIPTORS_MAX: usize = 256;

/// Most bytes of an environment that are searched for the markers.
const ENVIRON_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// One process at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) pid: u32,
    pub(super) state: u8,
    /// Number of threads that have not ended, the first one included.
    pub(super) threads: u32,
    pub(super) parent: u32,
    pub(super) group: u32,
    /// Start time in clock ticks since boot; with the pid it names a process for ever.
    pub(super) start: u64,
}

impl Stat {
    /// Returns true if it has exited and waits to be reaped. A process whose first thread has ended, while others go on,
    /// has the same state.
    pub(super) fn is_zombie(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x') && self.threads <= 1
    }

    /// A child of ours that was reaped before more was asked about it.
    pub(super) fn of_dead_child(pid: u32) -> Self {
        Self {
            pid,
            state: b'X',
            threads: 1,
            parent: std::process::id(),
            group: 0,
            start: HIDDEN_START,
        }
    }

    /// The pair that names it.
    pub(super) fn identity(&self) -> (u32, u64) {
        (self.pid, self.start)
    }
}

/// The start time of a child that `/proc` hides: it cannot be known.
const HIDDEN_START: u64 = u64::MAX;

/// The process `pid`, if there is one.
pub(super) fn stat(pid: u32) -> Option<Stat> {
    match read(&format!("/proc/{pid}/stat")) {
        Some(text) => parse_stat(pid, &text),
        None => hidden_child(pid),
    }
}

/// Size of the blocks in which getrusage(2) counts output.
const BLOCK_BYTES: u64 = 512;

/// Reaps the child `pid` if it has ended. Returns the bytes that it, and all that it has waited for, had the kernel write
/// to disks. `None` if it still runs or is no child of this process.
pub(super) fn reap(pid: u32) -> Option<u64> {
    let number = i32::try_from(pid).ok().filter(|number| *number > 0)?;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    #[expect(
        unsafe_code,
        reason = "rustix does not offer wait4, the only call that returns what a child wrote"
    )]
    // SAFETY: the kernel writes one structure to `usage`, for which zeros are a value too.
    let (reaped, usage) = unsafe {
        let no_status = std::ptr::null_mut();
        let reaped = libc::wait4(number, no_status, libc::WNOHANG, usage.as_mut_ptr());
        (reaped, usage.assume_init())
    };
    let blocks = u64::try_from(usage.ru_oublock).unwrap_or(0);
    (reaped == number).then(|| blocks.saturating_mul(BLOCK_BYTES))
}

/// A child of ours that `/proc` hides (`hidepid=`, `ProtectProc=`), because it made itself not dumpable or belongs to
/// another user.
fn hidden_child(pid: u32) -> Option<Stat> {
    let number = Pid::from_raw(i32::try_from(pid).ok()?)?;
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let has_ended = waitid(WaitId::Pid(number), look).ok()?.is_some();
    Some(Stat {
        pid,
        state: if has_ended { b'Z' } else { b'S' },
        threads: 1,
        parent: std::process::id(),
        group: getpgid(Some(number))
            .map_or(0, |group| group.as_raw_nonzero().get().cast_unsigned()),
        start: HIDDEN_START,
    })
}

/// A short file of the kernel. The standard library would ask for its length first, which such a
/// file has not, and then read it in small pieces.
fn read(path: &str) -> Option<Vec<u8>> {
    let mut file = fs::File::open(path).ok()?;
    let (mut bytes, mut piece) = (Vec::new(), [0_u8; 4096]);
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Some(bytes),
            Ok(length) => bytes.extend_from_slice(&piece[..length]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

fn parse_stat(pid: u32, text: &[u8]) -> Option<Stat> {
    // The second field is the program's name in parentheses, which may itself hold anything.
    let after_name = text.iter().rposition(|byte| *byte == b')')? + 1;
    let rest = std::str::from_utf8(&text[after_name..]).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().take(20).collect();
    Some(Stat {
        pid,
        state: *fields.first()?.as_bytes().first()?,
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        threads: fields.get(17)?.parse().ok()?,
        start: fields.get(19)?.parse().ok()?,
    })
}

/// How many bytes a process, and all that it has waited for, had the kernel write to disks; also of one that is
/// dead and not waited for. `None` where it may not be read: of another user's process.
pub(super) fn written_by(pid: u32) -> Option<u64> {
    let text = String::from_utf8(read(&format!("/proc/{pid}/io"))?).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("write_bytes: "))?;
    line.parse().ok()
}

/// All processes that can be seen.
pub(super) fn all() -> Vec<Stat> {
    numbers_in(Path::new("/proc"))
        .into_iter()
        .filter_map(stat)
        .collect()
}

fn numbers_in(dir: &Path) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .take(PROCESSES_MAX)
        .collect()
}

/// Who is whose child. Reads as it goes where the kernel lists children
/// (`CONFIG_PROC_CHILDREN`), else it holds a reading of all of `/proc`.
pub(super) struct Families {
    by_parent: Option<HashMap<u32, Vec<u32>>>,
}

impl Families {
    pub(super) fn now() -> Self {
        if kernel_lists_children() {
            return Self { by_parent: None };
        }
        Self::from_scan(&all())
    }

    fn from_scan(processes: &[Stat]) -> Self {
        let mut by_parent: HashMap<u32, Vec<u32>> = HashMap::new();
        for process in processes {
            by_parent
                .entry(process.parent)
                .or_default()
                .push(process.pid);
        }
        Self {
            by_parent: Some(by_parent),
        }
    }

    /// The children of all threads of `pid`.
    pub(super) fn children(&self, pid: u32) -> Vec<u32> {
        if let Some(by_parent) = &self.by_parent {
            return by_parent.get(&pid).cloned().unwrap_or_default();
        }
        let tasks = format!("/proc/{pid}/task");
        let mut children = Vec::new();
        for thread in numbers_in(Path::new(&tasks)) {
            let list = format!("{tasks}/{thread}/children");
            children.extend(read_children(&list).unwrap_or_default());
        }
        children
    }

    /// All that descend from `roots`, or somewhat more than `most`, parents before their children and the roots not
    /// included; `visit` is shown each, and says whether its children are looked for.
    pub(super) fn walk(
        &self,
        roots: &[u32],
        most: usize,
        visit: impl Fn(&Stat) -> bool,
    ) -> Vec<Stat> {
        let mut seen: HashSet<u32> = roots.iter().copied().collect();
        let mut found = Vec::new();
        let mut open: Vec<u32> = roots.to_vec();
        while let Some(parent) = open.pop().filter(|_| found.len() <= most) {
            for child in self.children(parent) {
                if seen.len() < PROCESSES_MAX && seen.insert(child) {
                    let process = stat(child);
                    found.extend(process);
                    open.extend(process.filter(&visit).map(|process| process.pid));
                }
            }
        }
        found
    }
}

fn read_children(path: &str) -> Option<Vec<u32>> {
    let text = String::from_utf8(read(path)?).ok()?;
    Some(
        text.split_ascii_whitespace()
            .filter_map(|number| number.parse().ok())
            .collect(),
    )
}

/// The children that one thread of this process has started itself. `None` where the kernel keeps
/// no such list.
pub(super) fn children_of_own_thread(thread: i32) -> Option<Vec<u32>> {
    read_children(&format!("/proc/self/task/{thread}/children"))
}

fn kernel_lists_children() -> bool {
    own_orphans_file().is_some()
}

/// The kernel's list of the children of our first thread, held open.
///
/// A process whose parent dies is given to the first living thread of the nearest subreaper, and
/// our first thread lives as long as we do. So this one file answers for the price of one read
/// whether any process has come to us that way.
fn own_orphans_file() -> Option<&'static fs::File> {
    static FILE: OnceLock<Option<fs::File>> = OnceLock::new();
    let open = || {
        let pid = std::process::id();
        fs::File::open(format!("/proc/{pid}/task/{pid}/children")).ok()
    };
    FILE.get_or_init(open).as_ref()
}

/// The children of our first thread: those that it started and those that were given to us when their parents exited.
/// `None` if the kernel keeps no such list.
pub(super) fn orphans() -> Option<Vec<u32>> {
    kernel_lists_children().then_some(())?;
    let pid = std::process::id();
    read_children(&format!("/proc/{pid}/task/{pid}/children"))
}

/// Whether our first thread has no children but those for which `known` holds. `false` also when
/// the kernel does not say.
pub(super) fn no_orphans_but(known: impl Fn(u32) -> bool) -> bool {
    let Some(file) = own_orphans_file() else {
        return false;
    };
    let mut buffer = [0_u8; 1024];
    let Ok(length) = file.read_at(&mut buffer, 0) else {
        return false;
    };
    if length == buffer.len() {
        return false;
    }
    // The kernel may leave out a child when a sibling goes away during the reading, and only an
    // empty list is certain; so a list with entries has to be read twice with the same result.
    let first = &buffer[..length];
    let mut again = [0_u8; 1024];
    if length > 0 && file.read_at(&mut again, 0).ok() != Some(length) {
        return false;
    }
    if length > 0 && first != &again[..length] {
        return false;
    }
    let Ok(text) = std::str::from_utf8(first) else {
        return false;
    };
    text.split_ascii_whitespace()
        .all(|number| number.parse().is_ok_and(&known))
}

/// The value of the variable `name` in the environment that `pid` was started with. `None` also
/// when that may not be read.
pub(super) fn environment_of(pid: u32, names: [&str; 2]) -> [Option<String>; 2] {
    let mut bytes = Vec::new();
    if let Ok(file) = fs::File::open(format!("/proc/{pid}/environ")) {
        // An environment that cannot be read to its end is searched as far as it was read.
        let _ = file.take(ENVIRON_BYTES_MAX).read_to_end(&mut bytes);
    }
    names.map(|name| {
        bytes.split(|byte| *byte == 0).find_map(|entry| {
            let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            String::from_utf8(value.to_vec()).ok()
        })
    })
}

/// Whether `pid` has `no_new_privs`, which it inherits and cannot clear. `None`: its status cannot be read.
pub(super) fn no_new_privs_of(pid: u32) -> Option<bool> {
    let status = String::from_utf8(read(&format!("/proc/{pid}/status"))?).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("NoNewPrivs:"))?;
    Some(line.trim() != "0")
}

/// The path of the control group (version 2) of `pid`, relative to the root of the hierarchy.
pub(super) fn control_group_of(pid: u32) -> Option<PathBuf> {
    let text = String::from_utf8(read(&format!("/proc/{pid}/cgroup"))?).ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(PathBuf::from(path))
}

/// The soft limit of file locks of `pid`; see [`super::tag`]. `None`: unlimited or not readable.
///
/// The system call is asked first because it also answers for processes that `/proc` hides.
pub(super) fn lock_limit_of(pid: u32) -> Option<u64> {
    let number = i32::try_from(pid).ok()?;
    let mut found = libc::rlimit64 {
        rlim_cur: libc::RLIM64_INFINITY,
        rlim_max: libc::RLIM64_INFINITY,
    };
    #[expect(
        unsafe_code,
        reason = "rustix only asks for a limit of another process while it sets one"
    )]
    // SAFETY: the kernel writes one structure to `found`, and reads nothing.
    let result =
        unsafe { libc::prlimit64(number, libc::RLIMIT_LOCKS, std::ptr::null(), &raw mut found) };
    if result == 0 {
        return Some(found.rlim_cur).filter(|limit| *limit != libc::RLIM64_INFINITY);
    }
    // The limits of other users' processes are no secret.
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max file locks"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// Returns the process IDs of `pid` in its PID namespaces, that of the reader first. Empty if they cannot be read.
pub(super) fn pids_in_namespaces(pid: u32) -> Vec<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let pids = line.into_iter().flat_map(str::split_ascii_whitespace);
    pids.filter_map(|pid| pid.parse().ok()).collect()
}

/// The inode numbers of the pipes that `pid` has open, as far as they may be read.
pub(super) fn pipes_of(pid: u32) -> Vec<u64> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return Vec::new();
    };
    entries
        .take(DESCRIPTORS_MAX)
        .filter_map(|entry| {
            let target = fs::read_link(entry.ok()?.path()).ok()?;
            target
                .to_str()?
                .strip_prefix("pipe:[")?
                .strip_suffix(']')?
                .parse()
                .ok()
        })
        .collect()
}

/// The id of this boot of the kernel, read once.
pub(super) fn boot_id() -> std::io::Result<String> {
    static READ: OnceLock<String> = OnceLock::new();
    if let Some(id) = READ.get() {
        return Ok(id.clone());
    }
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(READ.get_or_init(|| id.trim().to_owned()).clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
        let text = b"7 (a) b (c)) S 5 6 6 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 999 1\n";
        let want = Stat {
            pid: 7,
            state: b'S',
            threads: 1,
            parent: 5,
            group: 6,
            start: 4242,
        };
        assert_eq!(parse_stat(7, text), Some(want));
        assert_eq!(parse_stat(7, b"7 (x"), None);
        assert_eq!(parse_stat(7, b"7 (x) S 1"), None);
        assert_eq!(parse_stat(7, b""), None);
    }

    #[test]
    fn children_are_found_with_and_without_the_kernels_lists() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let me = std::process::id();
        assert!(Families::now().children(me).contains(&child.id()));
        assert!(
            Families::from_scan(&all())
                .children(me)
                .contains(&child.id())
        );
        assert!(
            Families::from_scan(&all())
                .walk(&[me], usize::MAX, |_| true)
                .iter()
                .any(|s| s.pid == child.id())
        );
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn the_environment_of_a_process_is_searched_by_whole_names() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .env_clear()
            .env("XWORKERCTL_RUN", "no")
            .env("WORKERCTL_RUN", "yes")
            .spawn()
            .unwrap();
        let found = environment_of(child.id(), ["WORKERCTL_RUN", "WORKERCTL_ATTEMPT"]);
        assert_eq!(found, [Some("yes".to_owned()), None]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(environment_of(child.id(), ["A", "B"]), [None, None]);
    }
}
