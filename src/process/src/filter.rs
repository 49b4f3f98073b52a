//! The filter of system calls (seccomp) of the sandbox: what Landlock has no rules for.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Is,
    SeccompCondition, SeccompFilter, SeccompRule,
};
use serde::{Deserialize, Serialize};

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

/// What decides which sockets and other means of communication a filter refuses.
pub(super) struct Sockets<'a> {
    pub(super) network: &'a Network,
    pub(super) unix: bool,
    pub(super) ipc: bool,
}

/// Refused system calls: each if one of its rules applies, or always if it has none.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Changes flags of inodes by path, which Landlock does not cover; since Linux 6.17.
const FILE_SETATTR: i64 = 469;

/// Opens a mount and changes its attributes, as `open_tree` and `mount_setattr` do; since Linux 6.15.
const OPEN_TREE_ATTR: i64 = 467;

/// Calls that are always refused.
///
/// Those of io_uring open and use sockets unseen by a filter. Keys of the user's session are secrets. The others are of
/// no use within Landlock, or look past it; a user namespace would allow some of them.
const REFUSED: [i64; 33] = [
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    libc::SYS_open_by_handle_at,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_fsmount,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    FILE_SETATTR,
    OPEN_TREE_ATTR,
];

/// System V IPC and POSIX message queues, which all processes of a user share.
const IPC: [i64; 13] = [
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// The bits of a socket's type that are no flags.
const KIND: u64 = 0xf;

/// Compiles the filter of a sandbox: everything is allowed except for what stands here.
///
/// Numbers of address families and protocols are those of socket(2).
pub(super) fn compile(allowed: &Sockets<'_>) -> Result<BpfProgram, Error> {
    let always = REFUSED
        .into_iter()
        .chain(IPC.into_iter().filter(|_| !allowed.ipc));
    let mut rules: Rules = always.map(|call| (call, Vec::new())).collect();
    let sockets = sockets(allowed)?;
    if !sockets.is_empty() {
        rules.insert(libc::SYS_socket, sockets);
    }
    rules.insert(libc::SYS_socketpair, pairs(allowed)?);
    if matches!(allowed.network, Network::Tcp(_)) {
        rules.extend(connecting_while_sending()?);
        if !allowed.unix {
            // It binds a socket that is not bound to a port of the kernel's choice.
            rules.insert(libc::SYS_listen, Vec::new());
        }
    }
    rules.insert(libc::SYS_fcntl, vec![leases()?]);
    rules.insert(
        libc::SYS_prlimit64,
        vec![limits_of_others()?, mark_of_runs(1, Some(2))?],
    );
    rules.insert(libc::SYS_setrlimit, vec![mark_of_runs(0, None)?]);
    rules.insert(libc::SYS_ioctl, refused_ioctls()?);
    rules.extend(modes_of_files()?);
    answering(rules, libc::EACCES)
}

/// Compiles the filter of calls whose arguments no filter can read, because they are in the memory of the process. It
/// answers as a kernel that does not know them, so that programs use the older calls instead.
///
/// `clone3` can start a process in another control group, and `openat2` can create a file that is run as its owner.
pub(super) fn compile_unreadable() -> Result<BpfProgram, Error> {
    let calls = [libc::SYS_clone3, libc::SYS_openat2];
    answering(calls.map(|call| (call, Vec::new())).into(), libc::ENOSYS)
}

fn answering(rules: Rules, errno: i32) -> Result<BpfProgram, Error> {
    let rules = also_with_short_pointers(rules);
    let arch = std::env::consts::ARCH.try_into()?;
    let refuse = SeccompAction::Errno(errno.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?;
    Ok(filter.try_into()?)
}

/// Returns the rules of opening files, creating them and changing their modes.
///
/// No file may get a set-user-ID or set-group-ID bit: with such a file, another user would act as the user of the engine.
fn modes_of_files() -> Result<Rules, BackendError> {
    /// chmod(2) since Linux 6.6.
    const FCHMODAT2: i64 = 452;
    /// The access mode 3, which opens a file for `ioctl` only. Landlock has no right for it, so that every file could be
    /// opened, and locked against other programs.
    const NEITHER_READ_NOR_WRITTEN: u32 = libc::O_ACCMODE.cast_unsigned();
    let has = |number: u8, bits: u32| {
        let bits = u64::from(bits);
        SeccompCondition::new(number, Length::Dword, Is::MaskedEq(bits), bits)
    };
    let with_mode = |mode: u8| -> Result<_, BackendError> {
        Ok(vec![
            all_of([has(mode, libc::S_ISUID)])?,
            all_of([has(mode, libc::S_ISGID)])?,
        ])
    };
    // Without these flags, the mode is not read and can be anything.
    let opening = |flags: u8| {
        let mut found = vec![all_of([has(flags, NEITHER_READ_NOR_WRITTEN)])?];
        for flag in [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY] {
            for bit in [libc::S_ISUID, libc::S_ISGID] {
                found.push(all_of([
                    has(flags, flag.cast_unsigned()),
                    has(flags + 1, bit),
                ])?);
            }
        }
        Ok::<_, BackendError>(found)
    };
    let mut rules = Rules::from([
        (libc::SYS_fchmod, with_mode(1)?),
        (libc::SYS_fchmodat, with_mode(2)?),
        (FCHMODAT2, with_mode(2)?),
        (libc::SYS_mknodat, with_mode(2)?),
        (libc::SYS_openat, opening(2)?),
    ]);
    #[cfg(target_arch = "x86_64")]
    rules.extend([
        (libc::SYS_chmod, with_mode(1)?),
        (libc::SYS_creat, with_mode(1)?),
        (libc::SYS_mknod, with_mode(1)?),
        (libc::SYS_open, opening(1)?),
    ]);
    Ok(rules)
}

/// Sockets that are refused.
fn sockets(allowed: &Sockets<'_>) -> Result<Vec<SeccompRule>, BackendError> {
    let (unix, netlink) = (libc::AF_UNIX, libc::AF_NETLINK);
    let mut found = Vec::new();
    if !allowed.unix {
        found.push(all_of([argument(0, Is::Eq, unix)])?);
    }
    if *allowed.network != Network::Any {
        // Addresses and routes are asked for there; other protocols reach programs and modules.
        let of_netlink = argument(0, Is::Eq, netlink);
        found.push(all_of([
            of_netlink,
            argument(2, Is::Ne, libc::NETLINK_ROUTE),
        ])?);
    }
    match allowed.network {
        Network::Any => {}
        Network::None => found.push(no_family_of(&[unix, netlink])?),
        Network::Tcp(_) => {
            found.push(no_family_of(&[
                unix,
                netlink,
                libc::AF_INET,
                libc::AF_INET6,
            ])?);
            for family in [libc::AF_INET, libc::AF_INET6] {
                for other in [libc::SOCK_DGRAM, libc::SOCK_RAW, libc::SOCK_SEQPACKET] {
                    let kind = argument(1, Is::MaskedEq(KIND), other);
                    found.push(all_of([argument(0, Is::Eq, family), kind])?);
                }
                // Streams of other protocols are no TCP to the kernel's rules.
                found.push(all_of([
                    argument(0, Is::Eq, family),
                    argument(2, Is::Ne, 0),
                    argument(2, Is::Ne, libc::IPPROTO_TCP),
                ])?);
            }
        }
    }
    Ok(found)
}

/// Pairs of sockets that are refused: a datagram socket sends to any address without being connected, and to the kernel
/// a raw Unix socket is one. Streams and sequenced packets go to the other end of the pair only.
fn pairs(allowed: &Sockets<'_>) -> Result<Vec<SeccompRule>, BackendError> {
    let mut found = vec![no_family_of(&[libc::AF_UNIX])?];
    if !allowed.unix {
        for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
            found.push(all_of([argument(1, Is::MaskedEq(KIND), kind)])?);
        }
    }
    Ok(found)
}

/// TCP Fast Open, which connects a socket without the call that Landlock looks at: tcp(7).
fn connecting_while_sending() -> Result<Rules, BackendError> {
    const OPTION: i32 = 30; // TCP_FASTOPEN_CONNECT
    let flag = u64::from(libc::MSG_FASTOPEN.cast_unsigned());
    let with_flag = |number| {
        let set = SeccompCondition::new(number, Length::Dword, Is::MaskedEq(flag), flag);
        Ok::<_, BackendError>(vec![all_of([set])?])
    };
    let option = all_of([
        argument(1, Is::Eq, libc::IPPROTO_TCP),
        argument(2, Is::Eq, OPTION),
    ]);
    Ok(Rules::from([
        (libc::SYS_sendto, with_flag(3)?),
        (libc::SYS_sendmsg, with_flag(2)?),
        (libc::SYS_sendmmsg, with_flag(3)?),
        (libc::SYS_setsockopt, vec![option?]),
    ]))
}

/// Taking a lease on a file, which every other process that opens the file waits for, up to 45 s: fcntl(2).
fn leases() -> Result<SeccompRule, BackendError> {
    all_of([argument(1, Is::Eq, libc::F_SETLEASE)])
}

/// Setting limits of another process of the same user, such as the bytes that the engine may write.
fn limits_of_others() -> Result<SeccompRule, BackendError> {
    let sets = SeccompCondition::new(2, Length::Qword, Is::Ne, 0);
    all_of([argument(0, Is::Ne, 0), sets])
}

/// Setting the limit on file locks, by which the engine recognises processes of runs: see `tag.rs`. `resource` and
/// `new_limit` are numbers of arguments; without a new limit, prlimit(2) only reads.
fn mark_of_runs(resource: u8, new_limit: Option<u8>) -> Result<SeccompRule, BackendError> {
    let is_mark = argument(resource, Is::Eq, libc::RLIMIT_LOCKS.cast_signed());
    let sets = new_limit.map(|number| SeccompCondition::new(number, Length::Qword, Is::Ne, 0));
    all_of([is_mark].into_iter().chain(sets))
}

/// Returns the `ioctl` calls that are refused: they put characters into the terminal as if a user had typed them, or
/// change inodes through a descriptor that was opened for reading, which Landlock does not cover.
fn refused_ioctls() -> Result<Vec<SeccompRule>, BackendError> {
    /// `TIOCSTI`; `TIOCLINUX`, which can paste, of consoles: ioctl_tty(2), ioctl_console(2). `FS_IOC_SETVERSION` in both
    /// sizes and `FS_IOC_FSSETXATTR`: ioctl_iflags(2).
    const CALLS: [libc::Ioctl; 5] = [libc::TIOCSTI, 0x541c, 0x4008_7602, 0x4004_7602, 0x401c_5820];
    /// Types of calls, of which only those that follow are allowed. `f` is that of ext4, of encryption and of verity,
    /// with `FS_IOC_GETFLAGS` in both sizes and `FS_IOC_FIEMAP`; 0x94 that of btrfs, with `FICLONE`, `FICLONERANGE` and
    /// `FIDEDUPERANGE`; 0xf5 that of f2fs.
    const TYPES: [(u64, &[u64]); 3] = [
        (0x66, &[0x8008_6601, 0x8004_6601, 0xc020_660b]),
        (0x94, &[0x4004_9409, 0x4020_940d, 0xc018_9436]),
        (0xf5, &[]),
    ];
    let call = |is, value| SeccompCondition::new(1, Length::Dword, is, value);
    let calls = CALLS
        .into_iter()
        .map(|number| all_of([call(Is::Eq, number)]));
    let types = TYPES.into_iter().map(|(kind, allowed)| {
        let of_type = call(Is::MaskedEq(0xff00), kind << 8);
        let others = allowed.iter().map(|number| call(Is::Ne, *number));
        all_of([of_type].into_iter().chain(others))
    });
    calls.chain(types).collect()
}

/// The same calls by the numbers of programs with pointers of 32 bits (x32), where the processor has those: the filter
/// tells architectures apart, and these share one.
fn also_with_short_pointers(rules: Rules) -> Rules {
    const X32: i64 = 0x4000_0000;
    // These have numbers of their own there.
    const OTHERS: [(i64, i64); 5] = [
        (libc::SYS_ioctl, 514),
        (libc::SYS_sendmsg, 518),
        (libc::SYS_kexec_load, 528),
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

fn no_family_of(families: &[i32]) -> Result<SeccompRule, BackendError> {
    all_of(families.iter().map(|family| argument(0, Is::Ne, *family)))
}

fn all_of(
    conditions: impl IntoIterator<Item = Result<SeccompCondition, BackendError>>,
) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions.into_iter().collect::<Result<Vec<_>, _>>()?)
}

fn argument(number: u8, is: Is, value: i32) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(number, Length::Dword, is, u64::from(value.cast_unsigned()))
}
