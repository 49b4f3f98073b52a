//! Trust in skills of roots that are not trusted as a whole: by the digest of all that a skill holds.
//!
//! One file for each trusted skill in the state directory, named after its path, so that nothing is
//! rewritten that another command may be writing.

mod state;

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::files::{self, FileError};
use super::{Form, RootSkill};
use crate::model::legible::hex;

pub use state::Trust;

/// Directory of trust in the state directory.
const DIRECTORY: &str = "trusted-skills";

/// Version of the files of trust.
const VERSION: u32 = 1;

/// Bytes that one skill may hold to be trusted.
const BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Why trust cannot be given or looked up.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The skill holds more than can be vouched for.
    #[error(
        "the skill holds more than {BYTES_MAX} bytes or {} files",
        files::ENTRIES_MAX
    )]
    TooLarge,
    /// A file of the skill cannot be read, or leads out of it.
    #[error("`{path}`: {why}")]
    Unreadable {
        /// Relative to the skill's directory.
        path: String,
        /// Why.
        why: String,
    },
    /// The skill's directory cannot be read.
    #[error(transparent)]
    Files(#[from] FileError),
    /// The state directory cannot be used.
    #[error("`{}`", path.display())]
    State {
        /// Path of the file of trust.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct Given {
    version: u32,
    path: String,
    digest: String,
}

/// What has been trusted, as the state directory holds it.
#[derive(Debug, Clone)]
pub struct TrustFiles {
    directory: PathBuf,
}

impl TrustFiles {
    /// Of a state directory.
    pub fn of(state_dir: &Path) -> TrustFiles {
        TrustFiles {
            directory: state_dir.join(DIRECTORY),
        }
    }

    /// Whether a skill may be handed out as it is now.
    pub fn state(&self, skill: &RootSkill) -> Trust {
        self.state_of(skill, &[])
    }

    /// The same with what was read from some of its files: nobody can exchange it in between.
    pub(super) fn state_of(&self, skill: &RootSkill, held: &[Held<'_>]) -> Trust {
        if skill.root.trusted {
            return Trust::Root;
        }
        let nobody = || match skill.root.error_line {
            Some(line) => Trust::Unknown { line },
            None => Trust::Missing,
        };
        let Some(found) = self.record(skill) else {
            return nobody();
        };
        let given = serde_json::from_slice::<Given>(&found).ok();
        let Some(given) = given.filter(|given| given.version == VERSION) else {
            return nobody();
        };
        let now = digest_with(skill, held);
        let same = given.path == path_of(skill) && now.is_ok_and(|now| now == given.digest);
        if same { Trust::Content } else { Trust::Changed }
    }

    /// What was written down when somebody trusted it; `None`: nobody did.
    pub fn record(&self, skill: &RootSkill) -> Option<Vec<u8>> {
        std::fs::read(self.file(skill)).ok()
    }

    /// Trusts what a skill holds now; gives its digest.
    pub fn give(&self, skill: &RootSkill) -> Result<String, TrustError> {
        let digest = digest(skill)?;
        let given = Given {
            version: VERSION,
            path: path_of(skill),
            digest: digest.clone(),
        };
        let file = self.file(skill);
        let state = |source| TrustError::State {
            path: file.clone(),
            source,
        };
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)
            .map_err(state)?;
        let fresh = file.with_extension(format!("{}.new", std::process::id()));
        write(&fresh, &given)
            .and_then(|()| std::fs::rename(&fresh, &file))
            .and_then(|()| std::fs::File::open(&self.directory)?.sync_all())
            .map_err(state)?;
        Ok(digest)
    }

    /// Takes trust back; whether there was any.
    pub fn take(&self, skill: &RootSkill) -> Result<bool, TrustError> {
        let file = self.file(skill);
        match std::fs::remove_file(&file) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(TrustError::State { path: file, source }),
        }
    }

    fn file(&self, skill: &RootSkill) -> PathBuf {
        let name = hex(&Sha256::digest(path_of(skill).as_bytes()));
        self.directory.join(format!("{name}.json"))
    }
}

fn write(path: &Path, given: &Given) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(&serde_json::to_vec(given)?)?;
    file.sync_all()
}

fn path_of(skill: &RootSkill) -> String {
    skill.base.join(&skill.inner).to_string_lossy().into_owned()
}

/// SHA-256 over the names and contents of all files of a skill, in hex.
pub fn digest(skill: &RootSkill) -> Result<String, TrustError> {
    digest_with(skill, &[])
}

/// A file of a skill, relative to its directory, with what was read from it.
pub(super) type Held<'a> = (&'a str, &'a [u8]);

/// The digest with what is held in the place of what the files hold now.
fn digest_with(skill: &RootSkill, held: &[Held<'_>]) -> Result<String, TrustError> {
    let root = files::open(skill)?;
    let mut paths = vec![skill.file_name().to_owned()];
    if skill.form == Form::Directory {
        let list = files::found(skill)?;
        if list.cut {
            return Err(TrustError::TooLarge);
        }
        for file in list.files {
            if let Some(why) = file.refused {
                return Err(TrustError::Unreadable {
                    path: file.path,
                    why,
                });
            }
            paths.push(file.path);
        }
    }
    // What no trust covers is not vouched for.
    if let Some((path, _)) = held
        .iter()
        .find(|(path, _)| !paths.iter().any(|p| p == path))
    {
        return Err(TrustError::Unreadable {
            path: (*path).to_owned(),
            why: "it is none of the skill's files".to_owned(),
        });
    }
    let mut whole = Sha256::new();
    let mut total = 0_u64;
    for path in paths {
        let bytes = match held.iter().find(|(known, _)| *known == path) {
            Some((_, bytes)) => bytes.to_vec(),
            None => root.read(&path).map_err(|refusal| TrustError::Unreadable {
                path: path.clone(),
                why: crate::model::diagnostic::chain(&refusal),
            })?,
        };
        total += bytes.len() as u64;
        if total > BYTES_MAX {
            return Err(TrustError::TooLarge);
        }
        whole.update((path.len() as u64).to_le_bytes());
        whole.update(path.as_bytes());
        whole.update((bytes.len() as u64).to_le_bytes());
        whole.update(&bytes);
    }
    Ok(hex(&whole.finalize()))
}
