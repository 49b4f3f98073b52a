//! Values of sensitive inputs, outside of everything that is kept: one file a run, readable by its
//! owner only, removed when the run is over.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::files::{
    Durability, FileError, TEMPORARY_SUFFIX, create_private_directory, open_regular,
    remove_if_there, sync_directory, write_atomically,
};
use crate::model::{RunId, SecretText};

/// Version of the file.
pub const SECRETS_VERSION: u32 = 1;

/// Most bytes of one file: everything that a request may hold, several times over.
pub const SECRETS_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// What one run is given and nobody else may see. `Debug` shows names only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets {
    /// Variables of the commands that hold sensitive inputs, with their values.
    pub environment: Vec<(String, SecretText)>,
    /// Absolute paths of the files that commands are given, with their content.
    pub files: Vec<(String, SecretText)>,
    /// Values to mask wherever they appear.
    pub values: Vec<SecretText>,
}

/// The file, and nothing else that secrets are written to.
#[derive(Serialize, Deserialize)]
struct Content<'a> {
    /// [`SECRETS_VERSION`] of the writer.
    version: u32,
    #[serde(borrow)]
    environment: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    #[serde(borrow)]
    files: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    #[serde(borrow)]
    values: Vec<Cow<'a, str>>,
}

impl<'a> Content<'a> {
    fn of(secrets: &'a Secrets) -> Content<'a> {
        let pairs = |pairs: &'a [(String, SecretText)]| {
            let pairs = pairs.iter();
            pairs
                .map(|(name, value)| (name.as_str().into(), value.expose().into()))
                .collect()
        };
        Content {
            version: SECRETS_VERSION,
            environment: pairs(&secrets.environment),
            files: pairs(&secrets.files),
            values: secrets
                .values
                .iter()
                .map(|one| one.expose().into())
                .collect(),
        }
    }

    fn secrets(self) -> Secrets {
        let pairs = |pairs: Vec<(Cow<'a, str>, Cow<'a, str>)>| {
            let pairs = pairs.into_iter();
            pairs
                .map(|(name, value)| (name.into_owned(), SecretText::new(value)))
                .collect()
        };
        Secrets {
            environment: pairs(self.environment),
            files: pairs(self.files),
            values: self.values.into_iter().map(SecretText::new).collect(),
        }
    }
}

impl Secrets {
    /// Whether there is nothing to keep.
    pub fn is_empty(&self) -> bool {
        self.environment.is_empty() && self.files.is_empty() && self.values.is_empty()
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |pairs: &[(String, SecretText)]| -> Vec<String> {
            pairs.iter().map(|(name, _)| name.clone()).collect()
        };
        f.debug_struct("Secrets")
            .field("environment", &names(&self.environment))
            .field("files", &names(&self.files))
            .field("values", &format_args!("{} values", self.values.len()))
            .finish_non_exhaustive()
    }
}

/// Why secrets cannot be read or written. No message holds a part of them.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    /// The file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// There is more than is kept.
    #[error("sensitive and large inputs take {bytes} bytes; at most {SECRETS_BYTES_MAX} are kept")]
    TooLarge {
        /// Bytes of the file that was not written.
        bytes: u64,
    },
    /// The file is not what was written.
    #[error("`{}` does not hold secrets: it is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// A later version wrote it.
    #[error("`{}` has version {found}; this program reads up to {SECRETS_VERSION}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
}

/// The directory of secrets within a state directory.
#[derive(Debug, Clone)]
pub struct SecretFiles {
    directory: PathBuf,
}

impl SecretFiles {
    /// Secrets within `state`.
    pub fn of_state(state: &Path) -> SecretFiles {
        SecretFiles {
            directory: state.join("secrets"),
        }
    }

    /// Writes the secrets of a run, durable on return.
    pub fn write(&self, run: RunId, secrets: &Secrets) -> Result<(), SecretsError> {
        let path = self.path(run);
        let json = serde_json::to_vec(&Content::of(secrets))
            .map_err(|_| SecretsError::Damaged { path: path.clone() })?;
        let bytes = json.len() as u64;
        if bytes > SECRETS_BYTES_MAX {
            return Err(SecretsError::TooLarge { bytes });
        }
        if create_private_directory(&self.directory)? {
            sync_directory(self.directory.parent().unwrap_or(Path::new(".")))?;
        }
        write_atomically(&path, &json, 0o600, Durability::Power)?;
        Ok(())
    }

    /// Reads the secrets of a run; `None` when it has none, or no longer.
    pub fn read(&self, run: RunId) -> Result<Option<Secrets>, SecretsError> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let path = self.path(run);
        let mut json = Vec::new();
        let read = open_regular(&path)
            .and_then(|file| file.take(SECRETS_BYTES_MAX + 1).read_to_end(&mut json));
        match read {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(FileError::at(&path)(error).into()),
            Ok(_) if json.len() as u64 > SECRETS_BYTES_MAX => {
                return Err(SecretsError::Damaged { path });
            }
            Ok(_) => {}
        }
        let Ok(Versioned { version }) = serde_json::from_slice(&json) else {
            return Err(SecretsError::Damaged { path });
        };
        if version > SECRETS_VERSION {
            return Err(SecretsError::Newer {
                path,
                found: version,
            });
        }
        match serde_json::from_slice::<Content<'_>>(&json) {
            Ok(content) => Ok(Some(content.secrets())),
            Err(_) => Err(SecretsError::Damaged { path }),
        }
    }

    /// Removes the secrets of a run; answers whether there were any. Not synced: after a power cut
    /// they may be there again, for [`SecretFiles::runs`] to find.
    pub fn remove(&self, run: RunId) -> Result<bool, SecretsError> {
        Ok(remove_if_there(&self.path(run))?)
    }

    /// Runs that have secrets.
    pub fn runs(&self) -> Result<Vec<RunId>, SecretsError> {
        let mut runs: Vec<RunId> = self
            .names()?
            .iter()
            .filter_map(|name| run_of(name))
            .collect();
        runs.sort_unstable();
        Ok(runs)
    }

    /// Removes the secrets of every run that `is_over`, and what writers that were killed have left.
    /// Answers how many files that were. Nobody may be writing.
    pub fn sweep(&self, is_over: impl Fn(RunId) -> bool) -> Result<usize, SecretsError> {
        let mut removed = 0;
        for name in self.names()? {
            let goes = match run_of(&name) {
                Some(run) => is_over(run),
                None => name.ends_with(TEMPORARY_SUFFIX),
            };
            if goes && remove_if_there(&self.directory.join(name))? {
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Names in the directory, as far as they are text; ours are.
    fn names(&self) -> Result<Vec<String>, SecretsError> {
        let entries = match std::fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(FileError::at(&self.directory)(error).into()),
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(FileError::at(&self.directory))?.file_name();
            names.extend(name.into_string());
        }
        Ok(names)
    }

    fn path(&self, run: RunId) -> PathBuf {
        self.directory.join(format!("{run}.json"))
    }
}

fn run_of(name: &str) -> Option<RunId> {
    name.strip_suffix(".json")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::tests::sample_runs::run;

    fn secrets() -> Secrets {
        let pair = |name: &str| (name.to_owned(), SecretText::new("s3cret"));
        Secrets {
            environment: vec![pair("WORKERCTL_INPUT_TOKEN")],
            files: vec![pair("/state/scratch/1/inputs/token")],
            values: vec![SecretText::new("s3cret")],
        }
    }

    #[test]
    fn they_are_kept_for_their_owner_until_removed() {
        let dir = xtest::tempdir();
        let files = SecretFiles::of_state(dir.path());
        assert_eq!(files.read(run(1)).unwrap(), None);
        assert!(files.runs().unwrap().is_empty());
        files.write(run(1), &secrets()).unwrap();
        assert_eq!(files.read(run(1)).unwrap(), Some(secrets()));
        assert_eq!(files.runs().unwrap(), [run(1)]);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&files.path(run(1))), 0o600);
        assert_eq!(mode(&files.directory), 0o700);
        assert!(files.remove(run(1)).unwrap());
        assert!(!files.remove(run(1)).unwrap());
        assert_eq!(files.read(run(1)).unwrap(), None);
    }

    #[test]
    fn nothing_shows_them() {
        let dir = xtest::tempdir();
        let files = SecretFiles::of_state(dir.path());
        files.write(run(1), &secrets()).unwrap();
        let shown = format!("{:?}", secrets());
        assert!(shown.contains("WORKERCTL_INPUT_TOKEN") && shown.contains("1 values"));
        assert!(!shown.contains("s3cret"), "{shown}");
        for damage in [
            "{\"version\":1,\"values\":\"s3cret\"}",
            "s3cret",
            "{\"version\":9}",
        ] {
            std::fs::write(files.path(run(1)), damage).unwrap();
            let error = files.read(run(1)).unwrap_err();
            assert!(!format!("{error:?} {error}").contains("s3cret"));
        }
    }

    #[test]
    fn what_is_over_is_swept_with_what_killed_writers_left() {
        let dir = xtest::tempdir();
        let files = SecretFiles::of_state(dir.path());
        assert_eq!(files.sweep(|_| true).unwrap(), 0);
        for number in 1..=3 {
            files.write(run(number), &secrets()).unwrap();
        }
        let part = files.directory.join(format!(".{}.json.1-0.tmp", run(2)));
        std::fs::write(&part, "s3cret").unwrap();
        std::fs::write(files.directory.join("a-note"), "not ours").unwrap();
        assert_eq!(files.sweep(|one| one != run(2)).unwrap(), 3);
        assert_eq!(files.runs().unwrap(), [run(2)]);
        assert!(!part.exists() && files.directory.join("a-note").exists());
    }

    #[test]
    fn more_than_is_kept_is_refused_and_nothing_is_left() {
        let dir = xtest::tempdir();
        let files = SecretFiles::of_state(dir.path());
        let large = Secrets {
            values: vec![SecretText::new(
                "x".repeat(usize::try_from(SECRETS_BYTES_MAX).unwrap()),
            )],
            ..Secrets::default()
        };
        let error = files.write(run(1), &large).unwrap_err();
        assert!(matches!(error, SecretsError::TooLarge { .. }), "{error}");
        assert!(files.runs().unwrap().is_empty());
    }
}
