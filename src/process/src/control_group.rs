//! What control groups prove about the origin of a process.

use std::path::{Component, Path, PathBuf};

use rustix::fs::{Access, access};

use super::procfs::control_group_of;

/// Where the hierarchy may be mounted; the second is that of machines that have version 1 too.
const ROOTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// Returns true if `pid` is in a control group that no descendant of this process can have entered.
///
/// A process starts in the group of its parent. To move it, or to start it elsewhere, the kernel asks for write access to
/// `cgroup.procs` of the nearest common ancestor of both groups. If this user lacks it, so do its descendants. False if
/// this process is root, or if the groups cannot be compared.
pub(super) fn is_apart(pid: u32) -> bool {
    let both = control_group_of(std::process::id()).zip(control_group_of(pid));
    let common = both.and_then(|(own, other)| common(&own, &other));
    common.is_some_and(|common| {
        let places = ROOTS.map(|root| Path::new(root).join(&common).join("cgroup.procs"));
        let members = places.iter().find(|place| place.exists());
        let is_root = rustix::process::geteuid().is_root();
        !is_root && members.is_some_and(|members| access(members, Access::WRITE_OK).is_err())
    })
}

/// The nearest common ancestor. `None` if `other` is `own` or below it, or outside of the visible hierarchy.
fn common(own: &Path, other: &Path) -> Option<PathBuf> {
    let visible = |path: &Path| path.components().all(|part| part != Component::ParentDir);
    if !visible(own) || !visible(other) || other.starts_with(own) {
        return None;
    }
    let pairs = own.components().zip(other.components());
    let shared = pairs.take_while(|(own, other)| own == other);
    Some(shared.map(|(part, _)| part).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_compared_at_their_nearest_common_ancestor() {
        let common = |own: &str, other: &str| common(Path::new(own), Path::new(other));
        let service = "system.slice/workerctl.service";
        let session = "user.slice/user-1000.slice/session-1.scope";
        assert_eq!(common(service, session), Some(PathBuf::new()));
        let other = "system.slice/monitor.service";
        assert_eq!(common(service, other), Some("system.slice".into()));
        assert_eq!(common(service, "system.slice"), Some("system.slice".into()));
        for within in [service, "system.slice/workerctl.service/moved"] {
            assert_eq!(common(service, within), None);
        }
        assert_eq!(common(service, "../outside"), None);
        assert_eq!(common("", session), None);
    }
}
