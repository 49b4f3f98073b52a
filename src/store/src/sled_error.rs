//! What failures of the system and of sled mean for a store.

use std::io;
use std::path::Path;

use super::files::FileError;
use super::{Shortage, StoreError};

pub(super) fn corrupt(shown: &str, reason: String) -> StoreError {
    StoreError::Corrupt {
        path: shown.to_owned(),
        reason,
    }
}

pub(super) fn broken(shown: &str, source: io::Error) -> StoreError {
    StoreError::Broken {
        path: shown.to_owned(),
        source,
    }
}

/// What a failure of the system means: no space, damage (a file is shorter than it was), or the end.
pub(super) fn from_io(shown: &str, error: io::Error) -> StoreError {
    if let Some(shortage) = Shortage::of_error(&error, Path::new(shown)) {
        return StoreError::Full {
            path: shown.to_owned(),
            shortage,
        };
    }
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => {
            corrupt(shown, error.to_string())
        }
        _ => broken(shown, error),
    }
}

pub(super) fn from_file(shown: &str, error: FileError) -> StoreError {
    let kind = error.source.kind();
    from_io(shown, io::Error::new(kind, error))
}

pub(super) fn from_sled(shown: &str, error: sled::Error) -> StoreError {
    match error {
        sled::Error::Io(error) => from_io(shown, error),
        other => corrupt(shown, format!("sled: {other}")),
    }
}
