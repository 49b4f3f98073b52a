//! The witness: how many commits are durable, told by a file that sled knows nothing of.
//!
//! sled takes the first damaged record of its log for the torn end of an interrupted write and drops
//! everything after it without a word. Each batch therefore counts itself inside sled, and after each
//! sync the same count is written here, without a sync of its own: on disk the witness is never ahead
//! of what is durable, so a store that holds fewer commits than its witness says has lost some.
//!
//! The file is one line of text, `workerctl-store <version> commits <count> <crc32>`. Every version
//! keeps `workerctl-store <version> ` at its beginning, so that older programs can tell.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use super::STORE_VERSION;
use super::files::{
    Durability, FileError, SAFELY, must_be_regular, open_regular, remove_if_there, write_atomically,
};

/// Its name in the store's directory.
pub(super) const NAME: &str = "witness";
const TITLE: &str = "workerctl-store";

/// Most bytes that are read of it.
const BYTES_MAX: usize = 256;

/// What a witness says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    /// There is none.
    Nothing,
    /// It is damaged.
    Damaged,
    /// A later version wrote it.
    Newer(u32),
    /// So many commits are durable.
    Commits(u64),
}

/// The open witness.
#[derive(Debug)]
pub(super) struct Witness {
    file: File,
}

impl Witness {
    /// Reads what the witness of a store says.
    pub(super) fn read(store: &Path) -> Result<Said, FileError> {
        let path = store.join(NAME);
        let mut bytes = vec![0; BYTES_MAX];
        let length = match open_regular(&path).and_then(|file| file.read_at(&mut bytes, 0)) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Said::Nothing),
            Err(error) => return Err(FileError::at(&path)(error)),
        };
        bytes.truncate(length);
        Ok(parse(&bytes))
    }

    /// Creates it anew, durable.
    pub(super) fn create(store: &Path, commits: u64) -> Result<(), FileError> {
        let line = line(commits);
        write_atomically(&store.join(NAME), line.as_bytes(), 0o600, Durability::Power)?;
        Ok(())
    }

    /// Removes it with the store that it told of.
    pub(super) fn remove(store: &Path) -> Result<(), FileError> {
        remove_if_there(&store.join(NAME)).map(drop)
    }

    /// Opens it for writing.
    pub(super) fn open(store: &Path) -> Result<Witness, FileError> {
        let path = store.join(NAME);
        let file = File::options()
            .write(true)
            .custom_flags(SAFELY.bits().cast_signed())
            .open(&path)
            .and_then(must_be_regular)
            .map_err(FileError::at(&path))?;
        Ok(Witness { file })
    }

    /// Tells that so many commits are durable. Overwrites in place and does not sync.
    pub(super) fn tell(&self, commits: u64) -> io::Result<()> {
        self.file.write_all_at(line(commits).as_bytes(), 0)
    }
}

fn line(commits: u64) -> String {
    let text = format!("{TITLE} {STORE_VERSION} commits {commits:020}");
    let sum = crc32fast::hash(text.as_bytes());
    format!("{text} {sum:08x}\n")
}

fn parse(bytes: &[u8]) -> Said {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Said::Damaged;
    };
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let [TITLE, version, rest @ ..] = words.as_slice() else {
        return Said::Damaged;
    };
    match version.parse::<u32>() {
        Ok(version) if version > STORE_VERSION => return Said::Newer(version),
        Ok(_) => {}
        Err(_) => return Said::Damaged,
    }
    let ["commits", count, _sum] = rest else {
        return Said::Damaged;
    };
    match count.parse::<u64>() {
        Ok(commits) if line(commits) == text => Said::Commits(commits),
        _ => Said::Damaged,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_it_was_told() {
        let dir = xtest::tempdir();
        assert_eq!(Witness::read(dir.path()).unwrap(), Said::Nothing);
        Witness::create(dir.path(), 0).unwrap();
        let witness = Witness::open(dir.path()).unwrap();
        for commits in [0, 7, u64::MAX] {
            witness.tell(commits).unwrap();
            assert_eq!(Witness::read(dir.path()).unwrap(), Said::Commits(commits));
        }
    }

    #[test]
    fn damage_and_later_versions_are_told_apart() {
        assert_eq!(parse(line(5).as_bytes()), Said::Commits(5));
        assert_eq!(
            parse(line(5).replace("05 ", "06 ").as_bytes()),
            Said::Damaged
        );
        assert_eq!(parse(b"workerctl-store 2 something else"), Said::Newer(2));
        for bad in [
            "",
            "x",
            "workerctl-store",
            "workerctl-store x",
            "workerctl-store 1 commits 5",
        ] {
            assert_eq!(parse(bad.as_bytes()), Said::Damaged, "{bad}");
        }
    }
}
