//! Caches that stay from run to run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rustix::fs::FileType;
use serde::{Deserialize, Serialize};
use workerctl_landing::ids::RepoPath;

use crate::error::{TreeError, io_at};
use crate::known::Manifest;

/// File beside the work tree with the types of the kept entries, as JSON.
const TYPES: &str = "kept.json";

/// The type of a kept entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Directory,
    File,
}

/// The entries of `keep:`, as paths from the root of the tree.
#[derive(Debug, Default)]
pub(crate) struct Keep {
    paths: Vec<Vec<u8>>,
    /// The type of each entry that has to have one: it ends with a slash, or an earlier run found it.
    kinds: BTreeMap<Vec<u8>, Kind>,
}

impl Keep {
    /// Reads the entries, and the types that were recorded in the directory of the tree.
    pub(crate) fn read(entries: &[String], dir: &Path) -> Result<Self, TreeError> {
        let mut keep = Self::default();
        let recorded = recorded_kinds(dir);
        for entry in entries {
            let path = RepoPath::literal(entry.trim_matches('/'));
            let path = path.map_err(|_| TreeError::KeepPath(entry.clone()))?;
            let kind = if entry.ends_with('/') {
                Some(Kind::Directory)
            } else {
                recorded.get(&path.to_string()).copied()
            };
            let path = path.as_bytes().to_vec();
            keep.kinds.extend(kind.map(|kind| (path.clone(), kind)));
            keep.paths.push(path);
        }
        Ok(keep)
    }

    /// Returns true if something of this type may stay at this path. A run can replace a kept directory by a link,
    /// which would break or mislead all later runs.
    pub(crate) fn fits(&self, path: &[u8], found: FileType) -> bool {
        if !self.paths.iter().any(|kept| kept == path) {
            return true;
        }
        let kind = match found {
            FileType::Directory => Kind::Directory,
            FileType::RegularFile => Kind::File,
            _ => return false,
        };
        self.kinds.get(path).is_none_or(|wanted| *wanted == kind)
    }

    /// Records the types of the entries that are there, for the next run.
    pub(crate) fn record(&self, dir: &Path, root: &Path) -> Result<(), TreeError> {
        let path = dir.join(TYPES);
        let mut found = BTreeMap::new();
        for kept in &self.paths {
            let Ok(kept) = std::str::from_utf8(kept) else {
                continue;
            };
            match fs::symlink_metadata(root.join(kept)) {
                Ok(meta) if meta.is_dir() => found.insert(kept, Kind::Directory),
                Ok(_) => found.insert(kept, Kind::File),
                Err(_) => None,
            };
        }
        if found.is_empty() && !path.exists() {
            return Ok(());
        }
        let text = serde_json::to_vec(&found).map_err(std::io::Error::other);
        text.and_then(|text| fs::write(&path, text))
            .map_err(io_at("write", &path))
    }

    /// Refuses an entry below which the base has something.
    pub(crate) fn refuse_tracked(&self, manifest: &Manifest) -> Result<(), TreeError> {
        for keep in &self.paths {
            let from = manifest.known.partition_point(|known| known.path < *keep);
            let mut below = keep.clone();
            below.push(b'/');
            let rest = manifest.known.iter().skip(from);
            let mut near = rest.take_while(|known| known.path.starts_with(keep));
            let tracked = near.find(|known| {
                known.base.is_some() && (known.path == *keep || known.path.starts_with(&below))
            });
            if let Some(known) = tracked
                && let Ok(path) = RepoPath::from_bytes(&known.path)
            {
                let keep = String::from_utf8_lossy(keep).into_owned();
                return Err(TreeError::KeptIsTracked { keep, path });
            }
        }
        Ok(())
    }

    /// Whether this path stays, with everything below it.
    pub(crate) fn stays(&self, path: &[u8]) -> bool {
        let within = |keep: &Vec<u8>| {
            let rest = path.strip_prefix(keep.as_slice());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        self.paths.iter().any(within)
    }

    /// Whether something below this directory stays.
    pub(crate) fn is_above(&self, path: &[u8]) -> bool {
        let above = |keep: &Vec<u8>| {
            let rest = keep.strip_prefix(path);
            rest.is_some_and(|rest| rest.starts_with(b"/"))
        };
        self.paths.iter().any(above)
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &[u8]> {
        self.paths.iter().map(Vec::as_slice)
    }
}

/// The recorded types, by path; none if they cannot be read.
fn recorded_kinds(dir: &Path) -> BTreeMap<String, Kind> {
    let text = fs::read(dir.join(TYPES)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}
