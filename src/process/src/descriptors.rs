//! Keeps what this process was started with away from commands: descriptors, and the leave to dump core.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::io::{Errno, FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Marks every open descriptor but the three standard ones close-on-exec.
///
/// What this program opens is marked from the beginning; what it was *given*, by a shell or
/// systemd, is not. To be called once at the start, before the first command.
///
/// # Errors
/// `/proc` cannot be read, or a descriptor cannot be marked.
pub fn close_inherited_on_exec() -> io::Result<()> {
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let Some(number) = entry?
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<i32>().ok())
        else {
            continue;
        };
        if number <= 2 {
            continue;
        }
        #[expect(
            unsafe_code,
            reason = "the number is just being listed as open; it is only marked"
        )]
        // SAFETY: another thread may close the number meanwhile; then the kernel answers EBADF or
        // a newer descriptor of ours is marked that is marked anyway. Nothing is read or closed.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        let marked = fcntl_getfd(descriptor)
            .and_then(|flags| fcntl_setfd(descriptor, flags | FdFlags::CLOEXEC));
        match marked {
            Ok(()) | Err(Errno::BADF) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// What a crashed program leaves in its directory would become part of a result, and holds its secrets. A command
/// that wants it raises its own limit again (`ulimit -c`).
pub(super) fn refuse_core_dumps() {
    let limit = Rlimit {
        current: Some(0),
        ..getrlimit(Resource::Core)
    };
    // Refused nowhere: a lower limit may always be set.
    let _ = setrlimit(Resource::Core, limit);
}
