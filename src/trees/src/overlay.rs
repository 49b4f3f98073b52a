//! What is laid over the base: files of the checkout, read once to know them and once more to copy them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use git2::{ObjectType, Repository};
use rustix::fs::OFlags;
use workerctl_landing::ids::RepoPath;

use crate::error::TreeError;
use crate::known::{Item, MODE_EXECUTABLE, MODE_FILE, MODE_LINK, hash};
use crate::model::Overlay;

/// Where the content of a path comes from.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    File(PathBuf),
    /// A link with this target.
    Link(Vec<u8>),
}

impl Source {
    /// The bytes: a file's content, or a link's target.
    pub(crate) fn read(&self) -> io::Result<Vec<u8>> {
        match self {
            Self::File(path) => {
                let mut bytes = Vec::new();
                open_resolved(path)?.read_to_end(&mut bytes)?;
                Ok(bytes)
            }
            Self::Link(target) => Ok(target.clone()),
        }
    }
}

/// Everything that is laid over, file by file.
#[derive(Debug, Default)]
pub(crate) struct Layer {
    pub(crate) items: BTreeMap<Vec<u8>, Item>,
    pub(crate) sources: BTreeMap<Vec<u8>, Source>,
}

impl Layer {
    pub(crate) fn read(repo: &Repository, overlay: &[Overlay]) -> Result<Self, TreeError> {
        let mut layer = Self::default();
        for one in overlay {
            let fail = |source: io::Error| TreeError::Overlay {
                path: one.path.clone(),
                from: one.from.clone(),
                why: source.to_string(),
            };
            if one.link {
                if !one.optional || one.from.exists() {
                    let target = one.from.as_os_str().as_bytes().to_vec();
                    layer
                        .put(one.path.as_bytes(), Source::Link(target), MODE_LINK)
                        .map_err(fail)?;
                }
                continue;
            }
            match fs::metadata(&one.from) {
                Err(e) if one.optional && e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(fail(e)),
                Ok(found) => {
                    let rules = one.unignored.then_some(repo);
                    layer
                        .add(rules, one.path.as_bytes(), &one.from, &found)
                        .map_err(fail)?;
                }
            }
        }
        Ok(layer)
    }

    fn add(
        &mut self,
        rules: Option<&Repository>,
        path: &[u8],
        from: &Path,
        found: &Metadata,
    ) -> io::Result<()> {
        if found.is_symlink() {
            let target = fs::read_link(from)?.as_os_str().as_bytes().to_vec();
            return self.put(path, Source::Link(target), MODE_LINK);
        }
        if found.is_file() {
            let is_executable = found.permissions().mode() & 0o100 != 0;
            let mode = if is_executable {
                MODE_EXECUTABLE
            } else {
                MODE_FILE
            };
            return self.put(path, Source::File(from.to_owned()), mode);
        }
        if !found.is_dir() {
            return Ok(());
        }
        let directory = open_resolved(from)?;
        for entry in fs::read_dir(descriptor_path(&directory))? {
            let entry = entry?;
            let name = entry.file_name();
            let mut inner = path.to_vec();
            inner.push(b'/');
            inner.extend_from_slice(name.as_bytes());
            // A repository inside is copied without its `.git`.
            if RepoPath::from_bytes(&inner).is_err() {
                continue;
            }
            match entry.path().symlink_metadata() {
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Ok(_) if rules.is_some_and(|repo| is_ignored(repo, &inner)) => {}
                other => self.add(rules, &inner, &from.join(&name), &other?)?,
            }
        }
        Ok(())
    }

    fn put(&mut self, path: &[u8], source: Source, mode: u32) -> io::Result<()> {
        let oid = hash(ObjectType::Blob, &source.read()?);
        self.clear_around(path);
        self.items.insert(path.to_vec(), Item { oid, mode });
        self.sources.insert(path.to_vec(), source);
        Ok(())
    }

    /// Forgets what lies on the way to a path, or below it.
    fn clear_around(&mut self, path: &[u8]) {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        for (end, _) in ends {
            self.forget(&path[..end]);
        }
        let mut below = path.to_vec();
        below.push(b'/');
        let covered: Vec<Vec<u8>> = self
            .items
            .range(below.clone()..)
            .map(|(other, _)| other)
            .take_while(|other| other.starts_with(&below))
            .cloned()
            .collect();
        for other in &covered {
            self.forget(other);
        }
    }

    /// Leaves out what covers a path.
    pub(crate) fn uncover(&mut self, path: &[u8]) {
        self.clear_around(path);
        self.forget(path);
    }

    fn forget(&mut self, path: &[u8]) {
        self.items.remove(path);
        self.sources.remove(path);
    }
}

/// Opens a file or directory at a path without links. Fails if there is a link by now: a run may put one there after
/// the path was found to lead to nothing hidden.
fn open_resolved(path: &Path) -> io::Result<File> {
    // A pipe would keep an open that waits for its other end.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    if fs::read_link(descriptor_path(&file))? == path {
        Ok(file)
    } else {
        Err(io::Error::other(
            "it was replaced while it was copied; start the run again",
        ))
    }
}

fn descriptor_path(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

fn is_ignored(repo: &Repository, path: &[u8]) -> bool {
    // Where the rules cannot be read it is laid over.
    repo.is_path_ignored(Path::new(OsStr::from_bytes(path)))
        .unwrap_or(false)
}

/// How many bytes would be copied for what is laid over; links and what cannot be read count nothing.
pub fn measure<'a>(overlay: impl IntoIterator<Item = &'a Overlay>) -> u64 {
    let copied = overlay.into_iter().filter(|one| !one.link);
    copied
        .map(|one| fs::metadata(&one.from).map_or(0, |found| measure_one(&one.from, &found)))
        .sum()
}

fn measure_one(from: &Path, found: &Metadata) -> u64 {
    if found.is_file() {
        return found.len();
    }
    let Some(listed) = found.is_dir().then(|| fs::read_dir(from).ok()).flatten() else {
        return 0;
    };
    let inner = listed.flatten().filter(|entry| entry.file_name() != ".git");
    inner
        .map(|entry| {
            let found = entry.path().symlink_metadata();
            found.map_or(0, |found| measure_one(&entry.path(), &found))
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A run can replace a directory by a link after it was decided that a copy of it may be made.
    #[test]
    fn nothing_is_copied_through_a_link_that_has_come_on_the_way() {
        let place = xtest::tempdir();
        let root = place.path().canonicalize().unwrap();
        for name in ["granted", "hidden"] {
            fs::create_dir(root.join(name)).unwrap();
            fs::write(root.join(name).join("file"), name).unwrap();
        }
        let file = Source::File(root.join("granted/file"));
        assert_eq!(file.read().unwrap(), b"granted");
        fs::rename(root.join("granted"), root.join("moved")).unwrap();
        symlink("hidden", root.join("granted")).unwrap();
        assert!(file.read().is_err());
        assert!(open_resolved(&root.join("granted")).is_err());
    }
}
