//! What a command may touch, enforced by the kernel: Landlock for files, TCP, signals and abstract sockets, and a
//! filter of system calls for the kinds of sockets and keys that Landlock does not know.
//!
//! Both are properties of a thread that its children take over. They are given to a thread of its own, which starts
//! the command and ends: so the command is started as any other, without a copy of our memory and without code
//! between fork and exec.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, NetPort,
    PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus,
    Scope,
};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Is, SeccompCondition,
    SeccompFilter, SeccompRule,
};
use serde::{Deserialize, Serialize};

use super::container::{Container, ReadyContainer};

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

/// What root could see and do past every wall.
const NEVER: [CapabilitySet; 16] = [
    CapabilitySet::SYS_PTRACE,
    CapabilitySet::PERFMON,
    CapabilitySet::BPF,
    CapabilitySet::SYS_ADMIN,
    CapabilitySet::SYS_MODULE,
    CapabilitySet::SYS_RAWIO,
    CapabilitySet::SYS_BOOT,
    CapabilitySet::SYS_TIME,
    CapabilitySet::MKNOD,
    CapabilitySet::CHECKPOINT_RESTORE,
    CapabilitySet::SYSLOG,
    CapabilitySet::SYS_PACCT,
    CapabilitySet::NET_ADMIN,
    CapabilitySet::IPC_OWNER,
    CapabilitySet::LINUX_IMMUTABLE,
    CapabilitySet::DAC_READ_SEARCH,
];

/// What a command may reach over networks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// Everything.
    #[default]
    Any,
    /// Nothing.
    None,
    /// These ports over TCP, and nothing else.
    Tcp(Vec<u16>),
}

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
    #[error("the kernel refuses to keep a command within walls: {0}")]
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
    filter: BpfProgram,
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
        let filter = self.filter().map_err(|error| refused(&error))?;
        let container = self.container.as_ref();
        Ok(RaisedWall {
            ruleset: created,
            filter,
            container: container.map(|found| found.prepare(self)).transpose()?,
        })
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

    /// Everything is allowed but for these: numbers of address families and protocols are those of socket(2).
    fn filter(&self) -> Result<BpfProgram, seccompiler::Error> {
        let not_these = |families: &[i32]| -> Result<SeccompRule, seccompiler::BackendError> {
            let conditions = families.iter().map(|family| argument(0, Is::Ne, *family));
            SeccompRule::new(conditions.collect::<Result<Vec<_>, _>>()?)
        };
        let mut sockets = Vec::new();
        if !self.unix_sockets {
            sockets.push(SeccompRule::new(vec![argument(0, Is::Eq, libc::AF_UNIX)?])?);
        }
        let (unix, netlink) = (libc::AF_UNIX, libc::AF_NETLINK);
        match &self.network {
            Network::Any => {}
            Network::None => sockets.push(not_these(&[unix, netlink])?),
            Network::Tcp(_) => {
                sockets.push(not_these(&[unix, netlink, libc::AF_INET, libc::AF_INET6])?);
                let kind = Is::MaskedEq(0xf);
                for family in [libc::AF_INET, libc::AF_INET6] {
                    for other in [libc::SOCK_DGRAM, libc::SOCK_RAW, libc::SOCK_SEQPACKET] {
                        let conditions = [
                            argument(0, Is::Eq, family)?,
                            argument(1, kind.clone(), other)?,
                        ];
                        sockets.push(SeccompRule::new(conditions.to_vec())?);
                    }
                    // Streams of other protocols are no TCP to the kernel's rules.
                    let conditions = [
                        argument(0, Is::Eq, family)?,
                        argument(2, Is::Ne, 0)?,
                        argument(2, Is::Ne, libc::IPPROTO_TCP)?,
                    ];
                    sockets.push(SeccompRule::new(conditions.to_vec())?);
                }
            }
        }
        // What it does is not seen by a filter, sockets included; keys of the user's session are secrets.
        let never = [
            libc::SYS_io_uring_setup,
            libc::SYS_keyctl,
            libc::SYS_add_key,
            libc::SYS_request_key,
        ];
        let mut rules: Rules = never.into_iter().map(|call| (call, Vec::new())).collect();
        if !sockets.is_empty() {
            rules.insert(libc::SYS_socket, sockets);
        }
        if matches!(self.network, Network::Tcp(_)) {
            rules.extend(connecting_while_sending()?);
            if !self.unix_sockets {
                // It binds a socket that is not bound to a port of the kernel's choice.
                rules.insert(libc::SYS_listen, Vec::new());
            }
        }
        rules.insert(libc::SYS_prlimit64, vec![limits_of_others()?]);
        rules.insert(libc::SYS_ioctl, typing_for_others()?);
        let rules = also_with_short_pointers(rules);
        let arch = std::env::consts::ARCH.try_into()?;
        let refuse = SeccompAction::Errno(libc::EACCES.cast_unsigned());
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?;
        Ok(filter.try_into()?)
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
        for capability in NEVER {
            // Who may not give them away has none to give.
            let _ = remove_capability_from_bounding_set(capability);
        }
        let refused = |error: &dyn std::error::Error| WallError::Refused(error.to_string());
        let ruleset = self.ruleset.try_clone().map_err(|error| refused(&error))?;
        let status = ruleset.restrict_self().map_err(|error| refused(&error))?;
        if status.ruleset == RulesetStatus::NotEnforced {
            return Err(WallError::Refused("nothing is enforced".to_owned()));
        }
        seccompiler::apply_filter(&self.filter).map_err(|error| refused(&error))
    }
}

/// Calls that are refused, each where one of its rules applies, or always.
type Rules = std::collections::BTreeMap<i64, Vec<SeccompRule>>;

/// TCP Fast Open, which connects a socket without the call that Landlock looks at: tcp(7).
fn connecting_while_sending() -> Result<Rules, seccompiler::BackendError> {
    const OPTION: i32 = 30; // TCP_FASTOPEN_CONNECT
    let flag = u64::from(libc::MSG_FASTOPEN.cast_unsigned());
    let with_flag = |number| {
        let set = SeccompCondition::new(number, Length::Dword, Is::MaskedEq(flag), flag)?;
        Ok::<_, seccompiler::BackendError>(vec![SeccompRule::new(vec![set])?])
    };
    let option = vec![
        argument(1, Is::Eq, libc::IPPROTO_TCP)?,
        argument(2, Is::Eq, OPTION)?,
    ];
    Ok(Rules::from([
        (libc::SYS_sendto, with_flag(3)?),
        (libc::SYS_sendmsg, with_flag(2)?),
        (libc::SYS_sendmmsg, with_flag(3)?),
        (libc::SYS_setsockopt, vec![SeccompRule::new(option)?]),
    ]))
}

/// Setting limits of another process of the same user, such as the bytes that the engine may write.
fn limits_of_others() -> Result<SeccompRule, seccompiler::BackendError> {
    let is_other = argument(0, Is::Ne, 0)?;
    let sets = SeccompCondition::new(2, Length::Qword, Is::Ne, 0)?;
    SeccompRule::new(vec![is_other, sets])
}

/// Putting characters into the terminal, as if the person before it had typed them.
fn typing_for_others() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    /// The second is that of consoles, where pasting is one of its functions; ioctl_tty(2), ioctl_console(2).
    const CALLS: [libc::Ioctl; 2] = [libc::TIOCSTI, 0x541c];
    let rule = |call| {
        let call = SeccompCondition::new(1, Length::Dword, Is::Eq, call)?;
        SeccompRule::new(vec![call])
    };
    CALLS.into_iter().map(rule).collect()
}

/// The same calls by the numbers of programs with pointers of 32 bits (x32), where the processor has those: the filter
/// tells architectures apart, and these share one.
fn also_with_short_pointers(rules: Rules) -> Rules {
    const X32: i64 = 0x4000_0000;
    // These have numbers of their own there.
    const OTHERS: [(i64, i64); 4] = [
        (libc::SYS_ioctl, 514),
        (libc::SYS_sendmsg, 518),
        (libc::SYS_sendmmsg, 538),
        (libc::SYS_setsockopt, 541),
    ];
    if !cfg!(target_arch = "x86_64") {
        return rules;
    }
    let number = |call| {
        let other = OTHERS.iter().find(|(usual, _)| *usual == call);
        X32 | other.map_or(call, |(_, short)| *short)
    };
    let short = rules
        .iter()
        .map(|(call, rules)| (number(*call), rules.clone()));
    let short: Vec<_> = short.collect();
    rules.into_iter().chain(short).collect()
}

fn argument(number: u8, is: Is, value: i32) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(number, Length::Dword, is, u64::from(value.cast_unsigned()))
}

fn is_missing(error: &dyn std::error::Error) -> bool {
    let cause = error
        .source()
        .and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::NotFound)
}

/// What is not there needs no grant.
fn granted(
    ruleset: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, WallError> {
    let failed = |source| WallError::Path {
        path: path.to_owned(),
        source,
    };
    let found = match std::fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ruleset),
        // A link to nowhere, or into what this user may not enter: nor may the command.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(ruleset),
        Err(error) => return Err(failed(error)),
    };
    let access = if found.is_dir() {
        access
    } else {
        access & AccessFs::from_file(NEWEST)
    };
    let opened = match PathFd::new(path) {
        Ok(opened) => opened,
        // It has gone since: somebody else's temporary directory, for instance.
        Err(error) if is_missing(&error) => return Ok(ruleset),
        Err(error) => return Err(failed(io::Error::other(error))),
    };
    ruleset
        .add_rule(PathBeneath::new(opened, access))
        .map_err(|error| WallError::Refused(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_comes_and_goes_keeps_no_command_from_starting() {
        if landlock_abi() == 0 {
            println!("SKIPPED: this kernel has no Landlock");
            return;
        }
        let place = tempfile::tempdir().unwrap();
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
