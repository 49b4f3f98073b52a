//! Files beside a skill: listed and read, never outside of its directory.

use std::path::Path;

use super::scan::is_passed_over;
use super::trust::Trust;
use super::{Form, RootSkill};
use crate::dialect::Keys;
use crate::dialect::toolset::{ListedFile, loadable};
use crate::open::{Refusal, Root};
use crate::source::directory_of;

/// Entries of one skill's directory that are looked at.
pub const ENTRIES_MAX: usize = 2_000;

/// Directories that may lie between a skill and its file.
pub(super) const DEPTH_MAX: usize = 16;

/// Refuses what lies in a directory that is passed over: trust in a skill does not cover it.
pub(super) fn covered(path: &str) -> Result<(), &'static str> {
    if directory_of(path).split('/').any(is_passed_over) {
        return Err("is in `.git` or `node_modules`, of which nothing is read");
    }
    Ok(())
}

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
    /// In the order in which the skill lists them; where it lists none, sorted by path.
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
    #[error("the skill is a single file and has no other files")]
    NoDirectory,
    /// What the skill holds is not trusted with exactly what was read.
    #[error("{}", .0.reason().unwrap_or_default())]
    Untrusted(Trust),
    /// The directory of the skill is not there any more.
    #[error("the skill's directory cannot be opened")]
    Directory(#[source] std::io::Error),
    /// The file is not there, leads out of the skill, is no file, is too large, or cannot be read.
    #[error("{0}")]
    Refused(String),
}

/// The files that may be loaded: those that the skill lists, else all that lie beside it.
pub fn list(skill: &RootSkill, keys: &Keys) -> Result<FileList, FileError> {
    list_of(skill, keys.files.as_deref())
}

/// The same where the skill's list is known.
pub(super) fn list_of(
    skill: &RootSkill,
    listed: Option<&[ListedFile]>,
) -> Result<FileList, FileError> {
    let Some(listed) = listed else {
        return found(skill);
    };
    if skill.form != Form::Directory {
        return Ok(FileList::default());
    }
    let root = open(skill)?;
    let files = listed
        .iter()
        .map(|file| {
            let size = covered(&file.path)
                .map_err(|why| format!("`{}` {why}", file.path))
                .and_then(|()| size(&root, &file.path));
            SupportingFile {
                path: file.path.clone(),
                bytes: size.as_ref().ok().copied(),
                description: Some(file.description.clone()),
                refused: size.err(),
            }
        })
        .collect();
    Ok(FileList { files, cut: false })
}

/// Everything that lies beside a skill, whether listed or not.
pub fn found(skill: &RootSkill) -> Result<FileList, FileError> {
    if skill.form != Form::Directory {
        return Ok(FileList::default());
    }
    let root = open(skill)?;
    let own = skill.file_name();
    let mut walk = SkillFileWalk {
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
    read_of(skill, keys.files.as_deref(), path)
}

/// The same where the skill's list is known.
pub(super) fn read_of(
    skill: &RootSkill,
    listed: Option<&[ListedFile]>,
    path: &str,
) -> Result<Vec<u8>, FileError> {
    let plain = loadable(path).and_then(|()| covered(path));
    plain.map_err(|why| FileError::Path {
        path: path.to_owned(),
        why,
    })?;
    if let Some(listed) = listed
        && !listed.iter().any(|file| file.path == path)
    {
        return Err(FileError::NotListed {
            path: path.to_owned(),
        });
    }
    if skill.form != Form::Directory {
        return Err(FileError::NoDirectory);
    }
    directory(skill)?.read(path)
}

/// The open directory of a skill.
#[derive(Debug)]
pub struct SkillDirectory(Root);

/// Opens the directory of a skill, to read all that lies beside it.
pub fn directory(skill: &RootSkill) -> Result<SkillDirectory, FileError> {
    open(skill).map(SkillDirectory)
}

impl SkillDirectory {
    /// Reads one file of it, of at most 1 MiB.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, FileError> {
        self.0.read(path).map_err(|refusal| refused(&refusal))
    }
}

fn refused(refusal: &Refusal) -> FileError {
    FileError::Refused(crate::model::diagnostic::chain(refusal))
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

struct SkillFileWalk<'r> {
    root: &'r Root,
    entries: usize,
    list: FileList,
}

impl SkillFileWalk<'_> {
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
            if is_directory {
                if !name.to_str().is_some_and(is_passed_over) {
                    self.directory(path, depth + 1);
                }
            } else {
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
