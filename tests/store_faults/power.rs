//! Power cuts: an ext4 file system on a loop device is shut down without writing its journal.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use crate::child::{Committer, check, options};
use crate::rig::{Dice, rounds, run_tool, skip};
use crate::store::SledStore;

/// A file system of its own; unmounted in the end.
struct Disk {
    image: PathBuf,
    mount: PathBuf,
}

impl Disk {
    fn create(directory: &Path) -> Option<Disk> {
        if !rustix::process::geteuid().is_root() {
            skip("mounting needs root");
            return None;
        }
        let disk = Disk {
            image: directory.join("image"),
            mount: directory.join("mount"),
        };
        std::fs::create_dir(&disk.mount).unwrap();
        File::create(&disk.image)
            .unwrap()
            .set_len(256 << 20)
            .unwrap();
        let image = disk.image.to_str().unwrap();
        if !run_tool("mkfs.ext4", &["-q", "-m", "0", image]) || !disk.mount() {
            skip("no ext4 on a loop device can be had");
            return None;
        }
        Some(disk)
    }

    fn mount(&self) -> bool {
        let (image, mount) = (self.image.to_str().unwrap(), self.mount.to_str().unwrap());
        run_tool("mount", &["-o", "loop", image, mount])
    }

    fn unmount(&self) -> bool {
        run_tool("umount", &[self.mount.to_str().unwrap()])
    }

    /// Nothing reaches the disk from here on, the journal included.
    fn cut(&self) {
        let directory = File::open(&self.mount).unwrap();
        // FS_IOC_SHUTDOWN with FS_SHUTDOWN_FLAGS_NOLOGFLUSH, as linux/ext4.h has them.
        #[expect(unsafe_code, reason = "a request of the kernel that no library has")]
        let result = unsafe {
            let shutdown = rustix::ioctl::Setter::<0x8004_587d, u32>::new(2);
            rustix::ioctl::ioctl(&directory, shutdown)
        };
        result.unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.unmount();
    }
}

#[test]
fn a_power_cut_takes_nothing_that_was_acknowledged() {
    let dir = xtest::tempdir();
    let Some(disk) = Disk::create(dir.path()) else {
        return;
    };
    let state = disk.mount.join("state");
    let mut acknowledged = BTreeSet::new();
    let mut dice = Dice(23);
    let mut next = 1;
    for round in 0..rounds(5) {
        let mut child = Committer::start(&state, next, None, "commit", &[]);
        child.read_acknowledged(1 + dice.below(120), &mut acknowledged);
        // Only what was read before counts: afterwards some calls succeed without doing anything.
        disk.cut();
        child.process.kill().unwrap();
        child.process.wait().unwrap();
        drop(child);
        assert!(disk.unmount() && disk.mount(), "round {round}");
        let store = SledStore::open(&state, options()).unwrap();
        next = check(&store, &acknowledged, next);
    }
    println!("{} commits acknowledged, none lost", acknowledged.len());
}
