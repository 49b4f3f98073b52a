//! What a command may touch, enforced by the kernel: Landlock for files, TCP, signals and abstract sockets, and a
//! filter of system calls for the kinds of sockets and keys that Landlock does not know.
//!
//! Both are properties of a thread that its children take over. They are given to a thread of its own, which starts
//! the command and ends: so the command is started as any other, without a copy of our memory and without code
//! between fork and exec.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, NetPort,
    PathBeneath, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set,
    set_capabilities,
};
use seccompiler::BpfProgram;
use serde::{Deserialize, Serialize};

use super::container::{Container, ReadyContainer};
use super::filter::{self, Network, Sockets};

/// The newest ABI of Landlock whose rights are known here; what the kernel lacks of them is left out.
const NEWEST: ABI = ABI::V7;

/// The first ABI that keeps files outside from being cut short, and with that the least that is a wall.
const LEAST: u32 = 3;

/// The first ABI that knows TCP.
const LEAST_FOR_TCP: u32 = 4;

/// Devices that hold nothing.
const DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// Capabilities that commands of root keep. All others reach beyond the sandbox, or change the whole machine.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETPCAP)
    .union(CapabilitySet::NET_BIND_SERVICE);

/// What a command may touch; everything else of files, networks, keys and processes is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wall {
    /// Files, and directories with all that lies below, that it may change and read.
    pub write: Vec<PathBuf>,
    /// Directories in which, and below which, it may see which names there are.
    pub list: Vec<PathBuf>,
    /// Files, and directories with all that lies below, that it may read and execute.
    pub read: Vec<PathBuf>,
    /// Networks.
    pub network: Network,
    /// Whether it may use Unix sockets: services of the same user listen there.
    pub unix_sockets: bool,
    /// Whether it may use System V IPC and POSIX message queues.
    #[serde(default)]
    pub ipc: bool,
    /// The container that it runs in besides.
    #[serde(default)]
    pub container: Option<Container>,
}

/// Why a command cannot be kept within its wall.
#[derive(Debug, thiserror::Error)]
pub enum WallError {
    /// The kernel lacks what it takes.
    #[error("the kernel has Landlock ABI {found}, and {wanted} is needed{what}")]
    Kernel {
        /// What it has; 0: none, or it is switched off.
        found: u32,
        /// What is needed.
        wanted: u32,
        /// For what.
        what: &'static str,
    },
    /// A path of it cannot be opened.
    #[error("`{path}` cannot be granted")]
    Path {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is no container.
    #[error("no container: {0}")]
    Container(String),
    /// The kernel refuses it.
    #[error("the kernel refuses to set up the sandbox: {0}")]
    Refused(String),
}

/// The ABI of Landlock that the kernel has; 0: none, or it is switched off.
pub fn landlock_abi() -> u32 {
    static FOUND: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    // The kernel tells it to whoever is restricted; a thread that does nothing else is no loss.
    let asked = || std::thread::spawn(ask).join().unwrap_or(0);
    *FOUND.get_or_init(asked)
}

fn ask() -> u32 {
    let handled = AccessFs::from_all(ABI::V1);
    let created = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(handled)
        .and_then(Ruleset::create);
    let status = created.and_then(RulesetCreated::restrict_self);
    match status.map(|status| status.landlock) {
        Ok(LandlockStatus::Available {
            effective_abi,
            kernel_abi,
        }) => kernel_abi.map_or(effective_abi as u32, |abi| u32::try_from(abi).unwrap_or(0)),
        _ => 0,
    }
}

/// Whether commands can be kept within walls by this kernel.
pub fn walls_stand() -> bool {
    landlock_abi() >= LEAST
}

/// A wall that only has to be put around a command; as often as is wanted.
///
/// It keeps hold of what is granted, even where that is removed meanwhile: not for long.
pub struct RaisedWall {
    ruleset: RulesetCreated,
    filters: [BpfProgram; 2],
    pub(super) container: Option<ReadyContainer>,
}

impl RaisedWall {
    /// Which level of the sandbox that is.
    pub fn level(&self) -> u32 {
        1 + u32::from(self.container.is_some())
    }
}

impl std::fmt::Debug for RaisedWall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RaisedWall").finish_non_exhaustive()
    }
}

impl Wall {
    /// Opens all that is granted.
    ///
    /// # Errors
    /// See [`WallError`].
    pub fn raise(&self) -> Result<RaisedWall, WallError> {
        self.refuse_old_kernel()?;
        let refused = |error: &dyn std::error::Error| WallError::Refused(error.to_string());
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(NEWEST))
            .map_err(|error| refused(&error))?;
        if self.network != Network::Any {
            ruleset = ruleset
                .handle_access(AccessNet::from_all(NEWEST))
                .map_err(|error| refused(&error))?;
        }
        let mut created = ruleset
            .scope(Scope::from_all(NEWEST))
            .and_then(Ruleset::create)
            .map_err(|error| refused(&error))?;
        let read = AccessFs::from_read(NEWEST);
        for path in &self.read {
            created = granted(created, path, read)?;
        }
        for path in &self.list {
            created = granted(created, path, AccessFs::ReadDir.into())?;
        }
        let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
        for path in DEVICES {
            created = granted(created, Path::new(path), device | AccessFs::Truncate)?;
        }
        let all = AccessFs::from_all(NEWEST) & !(AccessFs::MakeBlock | AccessFs::MakeChar);
        for path in &self.write {
            created = granted(created, path, all)?;
        }
        if let Network::Tcp(ports) = &self.network {
            for port in ports {
                let rule = NetPort::new(*port, AccessNet::ConnectTcp);
                created = created.add_rule(rule).map_err(|error| refused(&error))?;
            }
        }
        let filters = [
            filter::compile(&self.sockets()),
            filter::compile_unreadable(),
        ];
        let [readable, unreadable] = filters.map(|filter| filter.map_err(|error| refused(&error)));
        let container = self.container.as_ref();
        Ok(RaisedWall {
            ruleset: created,
            filters: [readable?, unreadable?],
            container: container.map(|found| found.prepare(self)).transpose()?,
        })
    }

    fn sockets(&self) -> Sockets<'_> {
        Sockets {
            network: &self.network,
            unix: self.unix_sockets,
            ipc: self.ipc,
        }
    }

    fn refuse_old_kernel(&self) -> Result<(), WallError> {
        let found = landlock_abi();
        let (wanted, what) = match self.network {
            Network::Any => (LEAST, ""),
            Network::None | Network::Tcp(_) => (LEAST_FOR_TCP, " for a network that is restricted"),
        };
        if found < wanted {
            return Err(WallError::Kernel {
                found,
                wanted,
                what,
            });
        }
        Ok(())
    }
}

impl RaisedWall {
    /// Does this in a thread of its own, within the wall.
    ///
    /// # Errors
    /// The thread could not be started, or the wall not put around it: then nothing was done.
    pub fn within<T: Send + 'static>(
        self: Arc<Self>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WallError> {
        let walled = move || {
            self.apply()?;
            Ok(work())
        };
        let thread = std::thread::Builder::new().name("within-wall".to_owned());
        let thread = thread.spawn(walled).map_err(|source| WallError::Path {
            path: "a thread".into(),
            source,
        })?;
        let ended = thread.join();
        ended.unwrap_or_else(|_| Err(WallError::Refused("what was done within it failed".into())))
    }

    /// Puts it around the calling thread, for the rest of its life and of all that it starts.
    pub(super) fn apply(&self) -> Result<(), WallError> {
        drop_capabilities().map_err(|error| WallError::Refused(error.to_string()))?;
        let refused = |error: &dyn std::error::Error| WallError::Refused(error.to_string());
        let ruleset = self.ruleset.try_clone().map_err(|error| refused(&error))?;
        let status = ruleset.restrict_self().map_err(|error| refused(&error))?;
        if status.ruleset == RulesetStatus::NotEnforced {
            return Err(WallError::Refused("nothing is enforced".to_owned()));
        }
        let mut filters = self.filters.iter();
        filters.try_for_each(|filter| {
            seccompiler::apply_filter(filter).map_err(|error| refused(&error))
        })
    }
}

/// Drops all capabilities but [`KEPT`] from the calling thread, and from all that it starts.
///
/// The permitted set can only shrink afterwards, because of `no_new_privs`, which Landlock sets. The inheritable and
/// ambient sets would otherwise pass the bounding set.
fn drop_capabilities() -> io::Result<()> {
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        if !KEPT.contains(capability) {
            // An ordinary user may not, and the kernel does not know all numbers.
            let _ = remove_capability_from_bounding_set(capability);
        }
    }
    let found = capabilities(None)?;
    let kept = CapabilitySets {
        effective: found.effective & KEPT,
        permitted: found.permitted & KEPT,
        inheritable: found.inheritable & KEPT,
    };
    // A service with no capabilities to drop may not be allowed to make the call, as under the shipped units.
    if kept == found {
        return Ok(());
    }
    Ok(set_capabilities(None, kept)?)
}

/// Returns the path of a descriptor, without links, as the kernel has it.
fn opened_path(opened: &OwnedFd) -> Option<PathBuf> {
    let number = opened.as_raw_fd();
    std::fs::read_link(format!("/proc/self/fd/{number}")).ok()
}

/// What is not there needs no grant.
fn granted(
    ruleset: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, WallError> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let opened = match open(path, flags, Mode::empty()) {
        Ok(opened) => opened,
        // It has gone since, leads nowhere, or into what this user may not enter: nor may the command.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => return Ok(ruleset),
        Err(error) => {
            return Err(WallError::Path {
                path: path.to_owned(),
                source: error.into(),
            });
        }
    };
    // The path was decided on without links. If a run has put one there meanwhile, its target was not. `openat2` could
    // refuse links, but fails under `RestrictSUIDSGID=` of the shipped units.
    let is_same = opened_path(&opened).is_some_and(|found| found == path);
    if !is_same && !DEVICES.iter().any(|device| Path::new(device) == path) {
        return Ok(ruleset);
    }
    // The library leaves out what does not apply to a file.
    ruleset
        .add_rule(PathBeneath::new(opened, access))
        .map_err(|error| WallError::Refused(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run can replace a directory by a link between the decision and the grant.
    #[test]
    fn a_link_in_the_place_of_a_granted_directory_grants_nothing() {
        if !walls_stand() {
            xtest::skip("this kernel has no Landlock");
            return;
        }
        let place = xtest::tempdir();
        let root = place.path().canonicalize().unwrap();
        for name in ["granted", "hidden"] {
            std::fs::create_dir(root.join(name)).unwrap();
            std::fs::write(root.join(name).join("file"), name).unwrap();
        }
        std::os::unix::fs::symlink("hidden", root.join("link")).unwrap();
        let wall = Wall {
            read: ["granted", "link"].map(|name| root.join(name)).to_vec(),
            ..Wall::default()
        };
        let raised = Arc::new(wall.raise().unwrap());
        let read = move || {
            ["granted", "link", "hidden"]
                .map(|name| std::fs::read(root.join(name).join("file")).is_ok())
        };
        assert_eq!(raised.within(read).unwrap(), [true, false, false]);
    }

    #[test]
    fn a_directory_that_comes_and_goes_keeps_no_command_from_starting() {
        if landlock_abi() == 0 {
            xtest::skip("this kernel has no Landlock");
            return;
        }
        let place = xtest::tempdir();
        let path = place.path().join("now-and-then");
        let other = path.clone();
        let flickers = std::thread::spawn(move || {
            for _ in 0..4_000 {
                std::fs::create_dir(&other).unwrap();
                std::fs::remove_dir(&other).unwrap();
            }
        });
        while !flickers.is_finished() {
            let ruleset = Ruleset::default()
                .handle_access(AccessFs::from_all(NEWEST))
                .and_then(Ruleset::create)
                .unwrap();
            granted(ruleset, &path, AccessFs::from_read(NEWEST)).unwrap();
        }
        flickers.join().unwrap();
    }
}
