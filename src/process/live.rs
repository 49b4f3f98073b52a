//! The file by which the processes of a run are found again after a crash of the engine.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use super::{Owner, procfs, tag};

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
        Some(Self {
            run: field("run").map(str::to_owned),
            pid: field("pid")?.parse().ok().filter(|pid| *pid > 1)?,
            start_time: field("start_time")?.parse().ok()?,
            boot_id: field("boot_id")?.to_owned(),
            attempt: field("attempt")?.parse().ok()?,
            tag: field("tag").map(str::parse).transpose().ok()?,
            engine_tag: field("engine_tag").map(str::parse).transpose().ok()?,
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
        file.write_all_at(self.encode().as_bytes(), 0)
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
        }
    }

    #[test]
    fn a_record_comes_back_as_it_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run");
        assert_eq!(LiveRecord::read(&path).unwrap(), None);
        for tag in [None, Some(u64::MAX), Some(7), None] {
            record(tag).write(&path).unwrap();
            assert_eq!(LiveRecord::read(&path).unwrap(), Some(record(tag)));
        }
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
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        std::fs::write(&target, "precious").unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(record(None).write(&link).is_err());
        assert!(LiveRecord::read(&link).is_err());
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
    }
}
