//! The limit of open files, which errors of the system name without its number or a remedy.

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::model::Diagnostic;

/// What every cause that [`open_files_cause`] returns contains.
const OPEN_FILES: &str = "limit of open files";

/// Returns which limit of open files an error of this process has reached, judged by its text, and how to raise it;
/// `None` for other errors.
pub fn open_files_cause(error: &str) -> Option<String> {
    let is = |errno: Errno| error.contains(&format!("(os error {})", errno.raw_os_error()));
    if is(Errno::MFILE) {
        let limit = getrlimit(Resource::Nofile).current?;
        let process = std::process::id();
        return Some(format!(
            "the {OPEN_FILES} of process {process}, {limit}, is reached: raise it with `ulimit -n`, or for the daemon with `LimitNOFILE=` in its unit"
        ));
    }
    is(Errno::NFILE).then(|| {
        let limit = std::fs::read_to_string("/proc/sys/fs/file-max").unwrap_or_default();
        format!(
            "the {OPEN_FILES} of the machine, {}, is reached: raise it with `sysctl fs.file-max=…`, or end processes that hold many",
            limit.trim()
        )
    })
}

/// Adds the cause that the text of an error of the system leaves open: the limit of open files. What else would help
/// does not while it is reached.
#[must_use]
pub fn with_cause(mut refused: Diagnostic) -> Diagnostic {
    let is_known = |hint: &String| hint.contains(OPEN_FILES);
    if !refused.hints.iter().any(is_known)
        && let Some(cause) = open_files_cause(&refused.message)
    {
        refused.hints = vec![cause];
    }
    refused
}
