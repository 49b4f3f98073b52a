//! File systems of their own: one whose power can be cut, one that is small.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::skip;

/// How often a disk is unmounted that is in use, every 50 ms.
const UNMOUNT_TRIES: u32 = 100;

/// An ext4 file system on a loop device; unmounted in the end.
pub(crate) struct Disk {
    image: PathBuf,
    mount: PathBuf,
    _directory: xtest::TempDir,
}

impl Disk {
    /// A fresh file system; `None`, and said so, where none can be had.
    pub(crate) fn create(mebibytes: u64) -> Option<Disk> {
        if !rustix::process::geteuid().is_root() {
            skip("mounting needs root");
            return None;
        }
        let directory = xtest::tempdir();
        let disk = Disk {
            image: directory.path().join("image"),
            mount: directory.path().join("mount"),
            _directory: directory,
        };
        fs::create_dir(&disk.mount).unwrap();
        File::create(&disk.image)
            .unwrap()
            .set_len(mebibytes << 20)
            .unwrap();
        let image = disk.image.to_str().unwrap();
        if !tool("mkfs.ext4", &["-q", "-m", "0", image]) || !disk.mount() {
            skip("no ext4 on a loop device can be had");
            return None;
        }
        Some(disk)
    }

    /// Where it is mounted.
    pub(crate) fn path(&self) -> &Path {
        &self.mount
    }

    /// Mounts it, which replays its journal.
    pub(crate) fn mount(&self) -> bool {
        let (image, mount) = (self.image.to_str().unwrap(), self.mount.to_str().unwrap());
        tool("mount", &["-o", "loop", image, mount])
    }

    /// Unmounts it. A process that another test is just starting holds copies of our descriptors until
    /// it executes its program, so a disk that is in use is tried again.
    pub(crate) fn unmount(&self) -> bool {
        (0..UNMOUNT_TRIES).any(|again| {
            if again > 0 {
                std::thread::sleep(Duration::from_millis(50));
            }
            tool("umount", &[self.mount.to_str().unwrap()])
        })
    }

    /// Nothing reaches the disk from here on, the journal included.
    pub(crate) fn cut(&self) {
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

/// A small file system in memory; unmounted in the end.
pub(crate) struct Small(xtest::TempDir);

impl Small {
    /// A fresh file system; `None`, and said so, where none can be had.
    pub(crate) fn create(mebibytes: u64) -> Option<Small> {
        if !rustix::process::geteuid().is_root() {
            skip("mounting needs root");
            return None;
        }
        let directory = xtest::tempdir();
        let (size, mount) = (format!("size={mebibytes}m"), directory.path());
        let mount = mount.to_str().unwrap();
        if !tool("mount", &["-t", "tmpfs", "-o", &size, "tmpfs", mount]) {
            skip("no tmpfs can be mounted");
            return None;
        }
        Some(Small(directory))
    }

    /// Where it is mounted.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Takes all space that is left.
    pub(crate) fn fill(&self) {
        let path = self.path().join("filler");
        let mut filler = File::options()
            .append(true)
            .create(true)
            .open(path)
            .unwrap();
        let block = [1; 4_096];
        while filler.write_all(&block).is_ok() {}
    }

    /// Nothing can be written from now on. The kernel frees what the rules of a sandbox held a moment after the last
    /// process of it, and until then the file system is in use.
    pub(crate) fn read_only(&self) {
        let mount = self.path().to_str().unwrap();
        let done = (0..UNMOUNT_TRIES).any(|_| {
            let done = tool("mount", &["-o", "remount,ro", mount]);
            if !done {
                std::thread::sleep(Duration::from_millis(50));
            }
            done
        });
        assert!(done);
    }

    /// Leaves no inode for another file.
    pub(crate) fn take_inodes(&self) {
        let disk = rustix::fs::statvfs(self.path()).unwrap();
        self.limit_inodes(disk.f_files - disk.f_ffree);
    }

    /// Allows so many inodes.
    pub(crate) fn limit_inodes(&self, count: u64) {
        let options = format!("remount,nr_inodes={count}");
        let mount = self.path().to_str().unwrap();
        assert!(tool("mount", &["-o", &options, mount]));
    }

    /// Gives the space back.
    pub(crate) fn free(&self) {
        fs::remove_file(self.path().join("filler")).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        tool("umount", &[self.path().to_str().unwrap()]);
    }
}

/// Runs a program and answers whether it succeeded; what it says is shown when it did not.
fn tool(program: &str, arguments: &[&str]) -> bool {
    match Command::new(program).args(arguments).output() {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            println!("{program} {arguments:?}: {said}");
            false
        }
        Err(error) => {
            println!("{program}: {error}");
            false
        }
    }
}
