//! The file by which the processes of a run are found again after a crash of the engine.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::OFlags;

use super::owner::Owner;
use super::{procfs, tag};

/// First line of a live file; a reader knows no other version yet.
const HEADING: &str = "workerctl live 1";

/// A live file is a handful of short lines.
const FILE_BYTES_MAX: u64 = 4096;

/// Names the first process of an attempt for as long as the machine stays up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveRecord {
    /// The run; the first version had it in the file's name only.
    pub run: Option<String>,
    /// Process id, also the id of its process group.
    pub pid: u32,
    /// Field 22 of `/proc/<pid>/stat`: start time in clock ticks since boot.
    pub start_time: u64,
    /// `/proc/sys/kernel/random/boot_id`: process ids of another boot mean nothing.
    pub boot_id: String,
    /// The attempt, counted from 1.
    pub attempt: u32,
    /// The mark that all processes of the command carry, if it could be set.
    pub tag: Option<u64>,
    /// The mark of the engine itself, which processes carry that were forked before they were
    /// marked with `tag`.
    pub engine_tag: Option<u64>,
    /// Process id and start time of the engine itself.
    pub engine: Option<(u32, u64)>,
    /// Device and inode of the file that the record was written to; known of a record that was read.
    pub file: Option<(u64, u64)>,
}

impl LiveRecord {
    pub(super) fn of(pid: u32, owner: &Owner, tag: Option<u64>) -> io::Result<Self> {
        let process = procfs::stat(pid)
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("no process {pid}")))?;
        let boot_id = procfs::boot_id()?;
        Ok(Self {
            run: Some(owner.run.clone()),
            pid,
            start_time: process.start,
            boot_id,
            attempt: owner.attempt,
            tag,
            engine_tag: tag::own(),
            engine: own_identity(),
            file: None,
        })
    }

    /// The content of a live file.
    pub fn encode(&self) -> String {
        let Self {
            run,
            pid,
            start_time,
            boot_id,
            attempt,
            tag,
            engine_tag,
            engine,
            file,
        } = self;
        let mut text = format!(
            "{HEADING}\npid {pid}\nstart_time {start_time}\nboot_id {boot_id}\nattempt {attempt}\n"
        );
        if let Some(run) = run {
            let _ = writeln!(text, "run {run}");
        }
        if let Some(tag) = tag {
            let _ = writeln!(text, "tag {tag}");
        }
        if let Some(tag) = engine_tag {
            let _ = writeln!(text, "engine_tag {tag}");
        }
        if let Some((pid, start_time)) = engine {
            let _ = writeln!(text, "engine_pid {pid}\nengine_start_time {start_time}");
        }
        if let Some((device, inode)) = file {
            let _ = writeln!(text, "device {device}\ninode {inode}");
        }
        // Last: a record is written over the former one in place, and without this line it counts as torn.
        text.push_str("end\n");
        text
    }

    /// Reads the content of a live file. `None`: it is torn, or of another version; such files
    /// are written without sync, so a power cut may leave anything, but then the processes are
    /// gone as well.
    pub fn decode(text: &str) -> Option<Self> {
        let (body, _) = text
            .strip_prefix(HEADING)?
            .strip_prefix('\n')?
            .split_once("end\n")?;
        let field = |name: &str| {
            body.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
        };
        let number = |name: &str| field(name).map(str::parse::<u64>).transpose().ok();
        let engine_pid = number("engine_pid")?.and_then(|pid| u32::try_from(pid).ok());
        Some(Self {
            run: field("run").map(str::to_owned),
            pid: field("pid")?.parse().ok().filter(|pid| *pid > 1)?,
            start_time: field("start_time")?.parse().ok()?,
            boot_id: field("boot_id")?.to_owned(),
            attempt: field("attempt")?.parse().ok()?,
            tag: number("tag")?,
            engine_tag: number("engine_tag")?,
            engine: engine_pid.zip(number("engine_start_time")?),
            file: number("device")?.zip(number("inode")?),
        })
    }

    /// Writes the record to `path` over what is there, without sync. What is left there of a
    /// longer record stands behind the last line and is not read: emptying the file first would
    /// make some file systems (ext4) start writing to the disk when it is closed.
    ///
    /// # Errors
    /// The file cannot be written, or is a symbolic link.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let flags = OFlags::NOFOLLOW.bits().cast_signed();
        let file: File = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(flags)
            .open(path)?;
        self.write_over(&file)
    }

    /// As [`LiveRecord::write`], into a file that is open already.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_over(&self, file: &File) -> io::Result<()> {
        let written = Self {
            file: Some(place_of(&file.metadata()?)),
            ..self.clone()
        };
        file.write_all_at(written.encode().as_bytes(), 0)
    }

    /// Whether the record lies in the file that it was written to. In a copy of that file it names processes that
    /// may be another engine's.
    pub fn is_original(&self, path: &Path) -> bool {
        let found = fs::symlink_metadata(path)
            .map(|found| place_of(&found))
            .ok();
        self.file.is_none() || self.file == found
    }

    /// Whether the engine that wrote it lives: then the processes that it names are nobody's orphans.
    pub fn engine_lives(&self) -> bool {
        let lives = |(pid, start_time)| {
            procfs::stat(pid).is_some_and(|found| found.start == start_time && !found.is_zombie())
        };
        procfs::boot_id().is_ok_and(|boot| boot == self.boot_id) && self.engine.is_some_and(lives)
    }

    /// Reads the record at `path`; `None` if there is no file or no readable record in it.
    ///
    /// # Errors
    /// The file exists and cannot be read.
    pub fn read(path: &Path) -> io::Result<Option<Self>> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(std::str::from_utf8(&bytes).ok().and_then(Self::decode))
    }
}

/// Snapshots of a file system keep inode numbers, not devices.
fn place_of(file: &fs::Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// Process id and start time of this process.
fn own_identity() -> Option<(u32, u64)> {
    static OWN: OnceLock<Option<(u32, u64)>> = OnceLock::new();
    *OWN.get_or_init(|| procfs::stat(std::process::id()).map(|own| own.identity()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(tag: Option<u64>) -> LiveRecord {
        LiveRecord {
            run: tag.map(|tag| format!("R{tag}")),
            pid: 77,
            start_time: 123_456,
            boot_id: "b-1".into(),
            attempt: 3,
            tag,
            engine_tag: tag.map(|tag| tag - 1),
            engine: tag.map(|_| (70, 123_000)),
            file: None,
        }
    }

    #[test]
    fn a_record_comes_back_as_it_was_written() {
        let dir = xtest::tempdir();
        let path = dir.path().join("run");
        assert_eq!(LiveRecord::read(&path).unwrap(), None);
        for tag in [None, Some(u64::MAX), Some(7), None] {
            record(tag).write(&path).unwrap();
            let read = LiveRecord::read(&path).unwrap().unwrap();
            assert_eq!(read.file, Some(place_of(&fs::metadata(&path).unwrap())));
            let unplaced = LiveRecord { file: None, ..read };
            assert_eq!(unplaced, record(tag));
        }
    }

    #[test]
    fn a_copy_is_told_from_the_original_also_with_its_inode() {
        let dir = xtest::tempdir();
        let (path, copy) = (dir.path().join("run"), dir.path().join("copy"));
        record(Some(7)).write(&path).unwrap();
        fs::copy(&path, &copy).unwrap();
        let read = |path: &Path| LiveRecord::read(path).unwrap().unwrap();
        assert!(read(&path).is_original(&path));
        assert!(!read(&copy).is_original(&copy));
        // Moved, as with the directory around it, it is itself.
        let moved = dir.path().join("moved");
        fs::rename(&path, &moved).unwrap();
        let moved_record = read(&moved);
        assert!(moved_record.is_original(&moved));
        let snapshot = LiveRecord {
            file: moved_record.file.map(|(device, inode)| (device + 1, inode)),
            ..moved_record
        };
        assert!(!snapshot.is_original(&moved));
        assert!(record(None).is_original(&moved), "older ones do not say");
    }

    #[test]
    fn an_engine_lives_until_its_process_has_ended() {
        let mut engine = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let owner = Owner {
            run: "R".into(),
            attempt: 1,
        };
        let own = LiveRecord::of(engine.id(), &owner, None).unwrap();
        assert_eq!(own.engine.map(|(pid, _)| pid), Some(std::process::id()));
        assert!(own.engine_lives());
        let of_other = LiveRecord {
            engine: Some((engine.id(), own.start_time)),
            ..own.clone()
        };
        assert!(of_other.engine_lives());
        let earlier = LiveRecord {
            engine: Some((engine.id(), own.start_time - 1)),
            ..own
        };
        assert!(!earlier.engine_lives());
        engine.kill().unwrap();
        let pid = rustix::process::Pid::from_child(&engine);
        let seen = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        rustix::process::waitid(rustix::process::WaitId::Pid(pid), seen).unwrap();
        assert!(!of_other.engine_lives(), "a zombie is no engine");
        engine.wait().unwrap();
        assert!(!of_other.engine_lives());
    }

    #[test]
    fn the_first_version_is_read_for_ever() {
        let frozen = "workerctl live 1\npid 77\nstart_time 123456\nboot_id b-1\nattempt 3\nend\n";
        assert_eq!(LiveRecord::decode(frozen), Some(record(None)));
    }

    #[test]
    fn a_torn_or_foreign_file_is_no_record() {
        let whole = record(Some(9)).encode();
        for length in 0..whole.len() {
            assert_eq!(
                LiveRecord::decode(&whole[..length]),
                None,
                "cut at {length}"
            );
        }
        assert_eq!(LiveRecord::decode(&whole.replace("live 1", "live 2")), None);
        assert_eq!(LiveRecord::decode(&whole.replace("pid 77", "pid 1")), None);
        assert_eq!(LiveRecord::decode(&whole.replace("tag 9", "tag -9")), None);
    }

    #[test]
    fn a_link_is_neither_written_through_nor_read() {
        let dir = xtest::tempdir();
        let target = dir.path().join("target");
        std::fs::write(&target, "precious").unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(record(None).write(&link).is_err());
        assert!(LiveRecord::read(&link).is_err());
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
    }
}
