//! What the kernel keeps about the process at the other end of a socket.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use rustix::io::Errno;

/// Groups that most users have at most; who has more is asked about twice.
const GROUPS_USUAL: usize = 64;

/// Most groups of one process: `NGROUPS_MAX` of Linux.
const GROUPS_MAX: usize = 65_536;

/// The supplementary groups that the other end of a Unix socket had when it connected.
///
/// The kernel keeps them with the socket. `/proc` would say what the process has become since, and says nothing at all
/// about other users' processes where it hides them, as under `ProtectProc=invisible` of the unit that we ship.
///
/// # Errors
/// It is no socket, or none with a peer.
pub fn groups_of_peer(socket: &impl AsFd) -> io::Result<Vec<u32>> {
    let descriptor = socket.as_fd().as_raw_fd();
    let mut groups = vec![0_u32; GROUPS_USUAL];
    loop {
        let mut bytes = libc::socklen_t::try_from(size_of_val(groups.as_slice())).unwrap_or(0);
        #[expect(
            unsafe_code,
            reason = "no library that we use asks for `SO_PEERGROUPS`"
        )]
        // SAFETY: the kernel writes at most `bytes` bytes to `groups`, which has as many, and any bytes are numbers.
        // The descriptor is borrowed for the call.
        let result = unsafe {
            libc::getsockopt(
                descriptor,
                libc::SOL_SOCKET,
                libc::SO_PEERGROUPS,
                groups.as_mut_ptr().cast(),
                &raw mut bytes,
            )
        };
        let count = usize::try_from(bytes).unwrap_or(0) / size_of::<u32>();
        if result == 0 {
            groups.truncate(count);
            return Ok(groups);
        }
        let error = io::Error::last_os_error();
        // It then says how many there are.
        let too_many = Errno::from_io_error(&error) == Some(Errno::RANGE);
        if !too_many || count <= groups.len() || count > GROUPS_MAX {
            return Err(error);
        }
        groups.resize(count, 0);
    }
}

/// `SO_PEERPIDFD`, which the C library's headers do not have yet.
const PEER_PIDFD: libc::c_int = 77;

/// A descriptor of the process that connected. `None` before Linux 6.5.
///
/// # Errors
/// It is no socket with a peer, or that process has been reaped.
pub fn pidfd_of_peer(socket: &impl AsFd) -> io::Result<Option<OwnedFd>> {
    let (mut found, descriptor) = (-1_i32, socket.as_fd().as_raw_fd());
    let mut bytes = libc::socklen_t::try_from(size_of_val(&found)).unwrap_or(0);
    #[expect(unsafe_code, reason = "no library that we use asks for `SO_PEERPIDFD`")]
    // SAFETY: the kernel writes at most `bytes` bytes to `found`, which has as many; the descriptor that it makes is
    // owned by nobody else.
    let owned = unsafe {
        let place = (&raw mut found).cast();
        let (level, size) = (libc::SOL_SOCKET, &raw mut bytes);
        let result = libc::getsockopt(descriptor, level, PEER_PIDFD, place, size);
        (result == 0 && found >= 0).then(|| OwnedFd::from_raw_fd(found))
    };
    let error = io::Error::last_os_error();
    match owned {
        None if Errno::from_io_error(&error) != Some(Errno::NOPROTOOPT) => Err(error),
        owned => Ok(owned),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn the_groups_of_a_peer_are_those_that_it_had() {
        let (one, _other) = UnixStream::pair().unwrap();
        let own = rustix::process::getgroups().unwrap();
        let mut own: Vec<u32> = own.into_iter().map(rustix::process::Gid::as_raw).collect();
        let mut found = groups_of_peer(&one).unwrap();
        own.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, own);
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(groups_of_peer(&file).is_err());
        assert!(pidfd_of_peer(&file).is_err());
    }
}
