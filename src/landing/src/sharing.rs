//! Permissions of what is made below a git directory, as `core.sharedRepository` wants them.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use git2::{Config, ErrorCode};
use serde::{Deserialize, Serialize};

use crate::error::{GitError, git, io_at};

/// The name of the setting.
const SETTING: &str = "core.sharedRepository";

/// What the group may do by `group` or `true`.
const GROUP: u32 = 0o660;
/// What everybody may do by `all`, `world` or `everybody`.
const EVERYBODY: u32 = 0o664;

/// Who may work with a repository, as `core.sharedRepository` says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// Whoever the umask lets.
    #[default]
    Umask,
    /// At least these permissions are given.
    AtLeast(u32),
    /// Exactly these permissions are given, whatever the umask is.
    Exactly(u32),
}

impl Sharing {
    /// Reads the setting.
    ///
    /// # Errors
    /// Its value is none that git knows.
    pub fn read(config: &Config) -> Result<Self, GitError> {
        let entry = match config.get_entry("core.sharedrepository") {
            Err(e) if e.code() == ErrorCode::NotFound => return Ok(Self::Umask),
            found => found.map_err(git("read the configuration"))?,
        };
        let value = entry.value().map_err(git("read the configuration"))?;
        // A name alone, without `=`, is true.
        Self::parse(if entry.has_value() { value } else { "group" })
    }

    fn parse(value: &str) -> Result<Self, GitError> {
        let refused = |why: String| {
            let name = SETTING.to_owned();
            Err(GitError::Setting { name, why })
        };
        match value {
            "umask" => return Ok(Self::Umask),
            "group" => return Ok(Self::AtLeast(GROUP)),
            "all" | "world" | "everybody" => return Ok(Self::AtLeast(EVERYBODY)),
            _ => {}
        }
        match u32::from_str_radix(value, 8) {
            Ok(0) => Ok(Self::Umask),
            Ok(1) => Ok(Self::AtLeast(GROUP)),
            Ok(2) => Ok(Self::AtLeast(EVERYBODY)),
            Ok(mode) if mode & 0o600 == 0o600 => Ok(Self::Exactly(mode & 0o666)),
            Ok(_) => refused(format!("is `{value}`, which takes the owner's permissions")),
            Err(_) => match Config::parse_bool(value) {
                Ok(true) => Ok(Self::AtLeast(GROUP)),
                Ok(false) => Ok(Self::Umask),
                Err(_) => refused(format!("is `{value}`, which git does not know")),
            },
        }
    }

    /// Returns the mode of a file or directory that was made with `mode`, as git's `calc_shared_perm` has it.
    pub(crate) fn mode(self, mode: u32, is_directory: bool) -> u32 {
        let (Self::AtLeast(given) | Self::Exactly(given)) = self else {
            return mode;
        };
        let mut given = given;
        if mode & 0o200 == 0 {
            given &= !0o222;
        }
        if mode & 0o100 != 0 {
            given |= (given & 0o444) >> 2;
        }
        let mut shared = match self {
            Self::Exactly(_) => mode & !0o777 | given,
            Self::AtLeast(_) | Self::Umask => mode | given,
        };
        if is_directory {
            shared |= (shared & 0o444) >> 2;
            if shared & 0o060 != 0 {
                shared |= 0o2000;
            }
        }
        shared
    }

    /// Gives a file or directory that was just made its mode.
    ///
    /// # Errors
    /// It cannot be set.
    pub fn adjust(self, path: &Path) -> Result<(), GitError> {
        if self == Self::Umask {
            return Ok(());
        }
        let found = fs::symlink_metadata(path).map_err(io_at("look at", path))?;
        let (mode, wanted) = self.modes(&found);
        if found.is_symlink() || mode == wanted {
            return Ok(());
        }
        fs::set_permissions(path, Permissions::from_mode(wanted))
            .map_err(io_at("set the mode of", path))
    }

    /// Does the same for a file that is open.
    ///
    /// # Errors
    /// The mode cannot be set.
    pub fn adjust_file(self, file: &File) -> io::Result<()> {
        if self == Self::Umask {
            return Ok(());
        }
        let (mode, wanted) = self.modes(&file.metadata()?);
        if mode == wanted {
            return Ok(());
        }
        file.set_permissions(Permissions::from_mode(wanted))
    }

    fn modes(self, found: &fs::Metadata) -> (u32, u32) {
        let mode = found.mode() & 0o7777;
        (mode, self.mode(mode, found.is_dir()))
    }

    /// Makes the directories down to `dir` that are missing; none of them is synced.
    ///
    /// # Errors
    /// One cannot be made.
    pub fn make_directories(self, dir: &Path) -> Result<(), GitError> {
        self.make_each(dir, &|_| Ok(()))
    }

    /// Makes the directories down to `dir` and calls `made` with each one that is new.
    pub(crate) fn make_each(
        self,
        dir: &Path,
        made: &dyn Fn(&Path) -> Result<(), GitError>,
    ) -> Result<(), GitError> {
        if dir.is_dir() {
            return Ok(());
        }
        if let Some(above) = dir.parent() {
            self.make_each(above, made)?;
        }
        match fs::create_dir(dir) {
            Ok(()) => self.adjust(dir)?,
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(io_at("make the directory", dir)(e)),
        }
        made(dir)
    }

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )]
    pub(crate) fn is_umask(&self) -> bool {
        *self == Self::Umask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_git_reads_them() {
        let table = [
            ("umask", Some(Sharing::Umask)),
            ("false", Some(Sharing::Umask)),
            ("0", Some(Sharing::Umask)),
            ("group", Some(Sharing::AtLeast(0o660))),
            ("true", Some(Sharing::AtLeast(0o660))),
            ("1", Some(Sharing::AtLeast(0o660))),
            ("all", Some(Sharing::AtLeast(0o664))),
            ("world", Some(Sharing::AtLeast(0o664))),
            ("2", Some(Sharing::AtLeast(0o664))),
            ("0640", Some(Sharing::Exactly(0o640))),
            ("0777", Some(Sharing::Exactly(0o666))),
            ("0060", None),
            ("friends", None),
        ];
        for (value, wanted) in table {
            assert_eq!(Sharing::parse(value).ok(), wanted, "{value}");
        }
    }
}
