//! Payloads too large for a record: files that are durable before a record names them.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::files::{
    Durability, FileError, create_private_directory, open_regular, replace, sync_directory,
};
use super::record::{FileRef, PAYLOAD_BYTES_MAX};
use super::sled_open::remove_tree;

/// The directory of payloads within the store's.
pub(super) const PAYLOADS: &str = "payload";

/// A payload on its way into a file.
#[derive(Debug, Clone)]
pub(super) struct Spill {
    /// Where it goes and what it is.
    pub(super) file: FileRef,
    /// Its content.
    pub(super) payload: Vec<u8>,
}

/// Why a payload could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum PayloadError {
    /// It is missing, or not what the record says.
    #[error("payload: {0}")]
    Damaged(String),
    /// Reading failed.
    #[error(transparent)]
    File(#[from] FileError),
}

/// The directory of payloads, one directory a run below it.
#[derive(Debug)]
pub(super) struct PayloadFiles {
    directory: PathBuf,
}

impl PayloadFiles {
    /// Payloads below the store's directory.
    pub(super) fn of(store: &Path) -> PayloadFiles {
        PayloadFiles {
            directory: store.join(PAYLOADS),
        }
    }

    /// Writes all of them, durable against power loss on return; writing one again changes nothing.
    /// Answers how many calls synced something.
    pub(super) fn write(&self, spills: &[Spill]) -> Result<u64, FileError> {
        let mut syncs = 0;
        let mut changed = BTreeSet::new();
        for spill in spills {
            let path = self.directory.join(&spill.file.path);
            let Some(run) = path.parent() else { continue };
            if changed.insert(run.to_owned()) && create_private_directory(run)? {
                changed.insert(self.directory.clone());
            }
            // The content is synced before the file gets its name, and the name with its directory below. So after a
            // power cut the name leads to all of it or to nothing.
            replace(&path, &spill.payload, 0o600, Durability::Power)?;
            syncs += 1;
        }
        for directory in &changed {
            sync_directory(directory)?;
            syncs += 1;
        }
        Ok(syncs)
    }

    /// Removes all of a run, if there are any.
    pub(super) fn remove(&self, run: &str) -> Result<(), FileError> {
        remove_tree(&self.directory.join(run))
    }

    /// Names of all runs that have some.
    pub(super) fn runs(&self) -> Result<Vec<String>, FileError> {
        let entries = fs::read_dir(&self.directory).map_err(FileError::at(&self.directory))?;
        Ok(entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect())
    }

    /// Reads one and checks that it is what the record names.
    pub(super) fn read(&self, file: &FileRef) -> Result<Vec<u8>, PayloadError> {
        let path = self.directory.join(&file.path);
        if !file.is_tame() || file.bytes > PAYLOAD_BYTES_MAX as u64 {
            return Err(PayloadError::Damaged(format!(
                "`{}` with {} bytes is not a valid payload file",
                file.path, file.bytes
            )));
        }
        let mut bytes = Vec::new();
        open_regular(&path)
            .and_then(|opened| opened.take(file.bytes + 1).read_to_end(&mut bytes))
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => {
                    PayloadError::Damaged(format!("`{}` is missing", file.path))
                }
                _ => PayloadError::File(FileError::at(&path)(error)),
            })?;
        match file.mismatch(&bytes) {
            Some(reason) => Err(PayloadError::Damaged(reason)),
            None => Ok(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spill(run: &str, payload: &[u8]) -> Spill {
        Spill {
            file: FileRef::name(run, "spec", payload),
            payload: payload.to_vec(),
        }
    }

    #[test]
    fn what_was_written_is_read_and_damage_is_named() {
        let dir = xtest::tempdir();
        fs::create_dir(dir.path().join("payload")).unwrap();
        let payloads = PayloadFiles::of(dir.path());
        let two = [spill("R1", b"one"), spill("R1", b"two")];
        assert_eq!(
            payloads.write(&two).unwrap(),
            4,
            "two files, two directories"
        );
        assert_eq!(
            payloads.write(&two[..1]).unwrap(),
            2,
            "one file, one directory"
        );
        assert_eq!(payloads.read(&two[1].file).unwrap(), b"two");
        let path = dir.path().join("payload").join(&two[1].file.path);
        fs::write(&path, b"twO").unwrap();
        assert!(matches!(
            payloads.read(&two[1].file),
            Err(PayloadError::Damaged(_))
        ));
        fs::write(&path, b"two more").unwrap();
        assert!(matches!(
            payloads.read(&two[1].file),
            Err(PayloadError::Damaged(_))
        ));
        fs::remove_file(&path).unwrap();
        assert!(matches!(
            payloads.read(&two[1].file),
            Err(PayloadError::Damaged(_))
        ));
    }

    #[test]
    fn a_link_is_not_followed() {
        let dir = xtest::tempdir();
        fs::create_dir_all(dir.path().join("payload/R1")).unwrap();
        let payloads = PayloadFiles::of(dir.path());
        let one = spill("R1", b"one");
        fs::write(dir.path().join("elsewhere"), b"one").unwrap();
        let place = dir.path().join("payload").join(&one.file.path);
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), place).unwrap();
        assert!(matches!(
            payloads.read(&one.file),
            Err(PayloadError::File(_))
        ));
    }
}
