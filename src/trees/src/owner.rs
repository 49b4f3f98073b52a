//! `owner.json`: the worker and repository that a tree belongs to.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{TreeError, io_at};
use crate::model::Owner;

/// The owner of a tree, in its own file next to the work tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OwnerRecord {
    pub(crate) worker: String,
    pub(crate) repository: PathBuf,
    name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    rights: String,
}

impl OwnerRecord {
    pub(crate) fn new(owner: &Owner<'_>) -> OwnerRecord {
        OwnerRecord {
            worker: owner.worker.to_owned(),
            repository: owner.repository.to_owned(),
            name: owner.name.to_owned(),
            rights: owner.rights.to_owned(),
        }
    }

    /// Returns an owner that equals none, so that no run takes the tree.
    pub(crate) fn retired() -> OwnerRecord {
        OwnerRecord {
            worker: String::new(),
            repository: PathBuf::new(),
            name: String::new(),
            rights: "retired".to_owned(),
        }
    }

    pub(crate) fn is_of(&self, owner: &Owner<'_>) -> bool {
        *self == OwnerRecord::new(owner)
    }

    /// Reads the owner of the tree in `dir`; `None` if the tree has none, or if the file is damaged, in which case
    /// the tree is made anew for its next owner.
    pub(crate) fn read(dir: &Path) -> Result<Option<OwnerRecord>, TreeError> {
        let path = dir.join("owner.json");
        match fs::read(&path) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(io_at("read", &path)(error)),
        }
    }

    /// Writes the record by renaming a new file, so that a kill leaves no half of it. It is not synced, since a
    /// damaged one is harmless.
    pub(crate) fn write(&self, dir: &Path) -> Result<(), TreeError> {
        let text = serde_json::to_vec(self).unwrap_or_default();
        let (new, path) = (dir.join("owner.new"), dir.join("owner.json"));
        let written = fs::File::create(&new).and_then(|mut file| file.write_all(&text));
        written.map_err(io_at("write", &new))?;
        fs::rename(&new, &path).map_err(io_at("write", &path))
    }
}
