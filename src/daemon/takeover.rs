//! A daemon that starts while a command hosts the engine: it waits for the command's end, within bounds.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::socket::{Listener, TAKEN, listener_of};
use crate::clock::Clock;
use crate::engine::{ENGINE_RUNNING, Host};
use crate::model::Diagnostic;
use crate::store::lock::{self, LockState};

/// How long a daemon waits for commands that host the engine, in milliseconds.
const PATIENCE_MS: u64 = 10_000;
/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// Who keeps a daemon from starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Incumbent {
    /// A daemon: it stays.
    Daemon,
    /// A command, with its process: its engine ends with it.
    Command(u32),
    /// Nobody who says so: whoever it was has ended, or has not said yet who it is.
    Unknown,
}

/// The patience of one daemon that starts, and where others may stand in its way.
#[derive(Clone)]
pub(super) struct Takeover {
    clock: Arc<dyn Clock>,
    until_ms: u64,
    workspace: PathBuf,
    state_dir: PathBuf,
}

impl Takeover {
    /// The patience begins now.
    pub(super) fn new(clock: Arc<dyn Clock>, workspace: &Path, state_dir: &Path) -> Takeover {
        Takeover {
            until_ms: clock.monotonic_ms().saturating_add(PATIENCE_MS),
            clock,
            workspace: workspace.to_path_buf(),
            state_dir: state_dir.to_path_buf(),
        }
    }

    /// Tries until nobody is in the way. A daemon is not waited for, a command until the patience is over.
    pub(super) fn take_over<T>(
        &self,
        socket: Option<&Path>,
        mut attempt: impl FnMut() -> Result<T, Diagnostic>,
    ) -> Result<T, Diagnostic> {
        let mut told = None;
        loop {
            let refused = match attempt() {
                Err(refused) if is_held(&refused) => refused,
                done => return done,
            };
            let found = self.incumbent(socket);
            let over = self.clock.monotonic_ms() >= self.until_ms;
            match found {
                Incumbent::Daemon => return Err(refused),
                Incumbent::Command(_) | Incumbent::Unknown if over => return Err(refused),
                Incumbent::Command(process) if told != Some(process) => {
                    told = Some(process);
                    tracing::info!(process, "a command hosts the engine: waiting for its end");
                }
                Incumbent::Command(_) | Incumbent::Unknown => {}
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn incumbent(&self, socket: Option<&Path>) -> Incumbent {
        let mut found = socket.map_or(Incumbent::Unknown, |path| of_socket(listener_of(path)));
        // Its end frees the socket; whether a daemon holds the locks by then is told by taking them.
        if let Incumbent::Command(_) = found {
            return found;
        }
        for look in [
            lock::inspect_state(&self.state_dir),
            lock::inspect_workspace(&self.workspace),
        ] {
            match look.as_ref().map(of_lock) {
                Ok(Incumbent::Daemon) => return Incumbent::Daemon,
                Ok(Incumbent::Command(process)) => found = Incumbent::Command(process),
                // What cannot be looked at could not be taken either, and the attempt says why.
                Ok(Incumbent::Unknown) | Err(_) => {}
            }
        }
        found
    }
}

/// Whether another engine is the reason.
fn is_held(refused: &Diagnostic) -> bool {
    [TAKEN, ENGINE_RUNNING].contains(&refused.code.as_str())
}

fn of_socket(listener: Listener) -> Incumbent {
    match listener {
        // Whoever listens without a claim leaves it to us, and we have written it.
        Listener::Lives { pid, .. } if pid == rustix::process::getpid() => Incumbent::Unknown,
        Listener::Lives { pid, in_command } if in_command => {
            Incumbent::Command(pid.as_raw_nonzero().get().cast_unsigned())
        }
        Listener::Lives { .. } => Incumbent::Daemon,
        Listener::Dead | Listener::Unknown => Incumbent::Unknown,
    }
}

fn of_lock(found: &LockState) -> Incumbent {
    match found.holder() {
        // A new holder has the lock for a moment before it says who it is.
        None => Incumbent::Unknown,
        Some(holder) if holder.is_dead() => Incumbent::Unknown,
        Some(holder) if holder.host == Host::InProcess.name() => Incumbent::Command(holder.pid),
        Some(_) => Incumbent::Daemon,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::FakeClock;
    use crate::model::{Kind, Timestamp};
    use crate::store::lock::{Holder, Lock};

    struct Bed {
        directory: xtest::TempDir,
        clock: Arc<FakeClock>,
    }

    impl Bed {
        fn new() -> Bed {
            Bed {
                directory: xtest::tempdir(),
                clock: Arc::new(FakeClock::at(Timestamp::from_millis(0))),
            }
        }

        fn takeover(&self) -> Takeover {
            let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
            Takeover::new(
                clock,
                self.directory.path(),
                &self.directory.path().join("state"),
            )
        }

        /// The state directory is held by this process, as such a host.
        fn held_as(&self, host: &str) -> Lock {
            let state = self.directory.path().join("state");
            let mut holder = Holder::this_process(self.directory.path(), &state);
            holder.host = host.to_owned();
            Lock::of_state(&state, &holder).unwrap()
        }
    }

    fn held() -> Result<(), Diagnostic> {
        Err(Diagnostic::new(Kind::Conflict, ENGINE_RUNNING, "held"))
    }

    #[test]
    fn a_command_is_waited_for() {
        let bed = Bed::new();
        let mut lock = Some(bed.held_as("in_process"));
        let mut tries = 0;
        let done = bed.takeover().take_over(None, || {
            tries += 1;
            match tries {
                1 => held(),
                2 => {
                    lock = None;
                    held()
                }
                _ => Ok(()),
            }
        });
        assert_eq!((done, tries, lock.is_none()), (Ok(()), 3, true));
    }

    #[test]
    fn a_command_is_not_waited_for_without_end() {
        let bed = Bed::new();
        let _lock = bed.held_as("in_process");
        let mut tries = 0;
        let refused = bed.takeover().take_over(None, || {
            tries += 1;
            bed.clock.advance(PATIENCE_MS / 2);
            held()
        });
        assert_eq!((refused, tries), (held(), 2));
    }

    #[test]
    fn a_daemon_is_not_waited_for_and_neither_is_anything_else() {
        for host in ["daemon", ""] {
            let bed = Bed::new();
            let _lock = bed.held_as(host);
            let mut tries = 0;
            let refused = bed.takeover().take_over(None, || {
                tries += 1;
                held()
            });
            assert_eq!((refused, tries), (held(), 1), "{host:?}");
        }
        let bed = Bed::new();
        let _lock = bed.held_as("in_process");
        let other = Diagnostic::new(Kind::Internal, "store_broken", "broken");
        let mut tries = 0;
        let refused = bed.takeover().take_over(None, || {
            tries += 1;
            Err::<(), _>(other.clone())
        });
        assert_eq!((refused, tries), (Err(other.clone()), 1));
    }
}
