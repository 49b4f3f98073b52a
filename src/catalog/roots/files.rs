//! Files beside a skill: listed and read, never outside of its directory.

use std::path::Path;

use super::{Form, RootSkill};
use crate::catalog::dialect::Keys;
use crate::catalog::dialect::toolset::loadable;
use crate::catalog::open::{Refusal, Root};

/// Entries of one skill's directory that are looked at.
pub const ENTRIES_MAX: usize = 2_000;

/// Directories that may lie between a skill and its file.
const DEPTH_MAX: usize = 16;

/// A file beside a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupportingFile {
    /// Relative to the skill's directory.
    pub path: String,
    /// Its size; `None` where it cannot be read.
    pub bytes: Option<u64>,
    /// What the skill says of it.
    pub description: Option<String>,
    /// Why it cannot be read; `None`: it can.
    pub refused: Option<String>,
}

/// The files beside a skill.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileList {
    /// Sorted by path.
    pub files: Vec<SupportingFile>,
    /// Whether there are more than are looked at.
    pub cut: bool,
}

/// Why a file of a skill is not read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The path is none that may be loaded.
    #[error("`{path}` {why}")]
    Path {
        /// As given.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The skill lists its files, and this is none of them.
    #[error("`{path}` is not listed under `files`")]
    NotListed {
        /// As given.
        path: String,
    },
    /// A skill that is one file has none beside it.
    #[error("the skill is a file of its own and has no files beside it")]
    NoDirectory,
    /// The directory of the skill is not there any more.
    #[error("the skill's directory cannot be opened")]
    Directory(#[source] std::io::Error),
    /// The file is not there, leads out of the skill, is no file, is too large, or cannot be read.
    #[error("{0}")]
    Refused(String),
}

/// The files that may be loaded: those that the skill lists, else all that lie beside it.
pub fn list(skill: &RootSkill, keys: &Keys) -> Result<FileList, FileError> {
    let Some(listed) = &keys.files else {
        return found(skill);
    };
    if skill.form != Form::Directory {
        return Ok(FileList::default());
    }
    let root = open(skill)?;
    let mut files: Vec<SupportingFile> = listed
        .iter()
        .map(|file| {
            let size = size(&root, &file.path);
            SupportingFile {
                path: file.path.clone(),
                bytes: size.as_ref().ok().copied(),
                description: Some(file.description.clone()),
                refused: size.err(),
            }
        })
        .collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(FileList { files, cut: false })
}

/// Everything that lies beside a skill, whether listed or not.
pub fn found(skill: &RootSkill) -> Result<FileList, FileError> {
    if skill.form != Form::Directory {
        return Ok(FileList::default());
    }
    let root = open(skill)?;
    let own = skill.inner.rsplit('/').next().unwrap_or_default();
    let mut walk = Walk {
        root: &root,
        entries: 0,
        list: FileList::default(),
    };
    walk.directory("", 0);
    let mut list = walk.list;
    list.files.retain(|file| file.path != own);
    list.files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(list)
}

/// Reads one file: listed where the skill lists files, inside of its directory, of at most 1 MiB.
pub fn read(skill: &RootSkill, keys: &Keys, path: &str) -> Result<Vec<u8>, FileError> {
    loadable(path).map_err(|why| FileError::Path {
        path: path.to_owned(),
        why,
    })?;
    if let Some(listed) = &keys.files
        && !listed.iter().any(|file| file.path == path)
    {
        return Err(FileError::NotListed {
            path: path.to_owned(),
        });
    }
    if skill.form != Form::Directory {
        return Err(FileError::NoDirectory);
    }
    let refused = |refusal: Refusal| FileError::Refused(crate::model::diagnostic::chain(&refusal));
    open(skill)?.read(path).map_err(refused)
}

/// Opens the skill's directory where it was found, and nowhere else.
pub(super) fn open(skill: &RootSkill) -> Result<Root, FileError> {
    let directory = skill.directory();
    let root = Root::open(&directory).map_err(FileError::Directory)?;
    if root.path() == directory {
        Ok(root)
    } else {
        let moved = std::io::Error::from(std::io::ErrorKind::NotFound);
        Err(FileError::Directory(moved))
    }
}

fn size(root: &Root, path: &str) -> Result<u64, String> {
    root.find_file(path)
        .map_err(|refusal| crate::model::diagnostic::chain(&refusal))?;
    std::fs::metadata(root.path().join(path))
        .map(|metadata| metadata.len())
        .map_err(|error| error.to_string())
}

struct Walk<'r> {
    root: &'r Root,
    entries: usize,
    list: FileList,
}

impl Walk<'_> {
    fn directory(&mut self, below: &str, depth: usize) {
        if depth > DEPTH_MAX {
            self.list.cut = true;
            return;
        }
        let Ok(entries) = std::fs::read_dir(self.root.path().join(below)) else {
            return self.refused(below, "the directory cannot be read".to_owned());
        };
        for entry in entries.flatten() {
            self.entries += 1;
            if self.entries > ENTRIES_MAX {
                self.list.cut = true;
                return;
            }
            let name = entry.file_name();
            let path = Path::new(below).join(&name);
            let Some(path) = path.to_str() else {
                self.refused(&path.to_string_lossy(), "its name is not UTF-8".to_owned());
                continue;
            };
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_directory && !matches!(name.to_str(), Some(".git" | "node_modules")) {
                self.directory(path, depth + 1);
            } else if !is_directory {
                match size(self.root, path) {
                    Ok(bytes) => self.list.files.push(SupportingFile {
                        path: path.to_owned(),
                        bytes: Some(bytes),
                        description: None,
                        refused: None,
                    }),
                    Err(why) => self.refused(path, why),
                }
            }
        }
    }

    fn refused(&mut self, path: &str, why: String) {
        self.list.files.push(SupportingFile {
            path: path.to_owned(),
            bytes: None,
            description: None,
            refused: Some(why),
        });
    }
}
