//! The login of an agent program, lent to the home of one attempt and taken back where the program has refreshed it.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Most bytes of a login.
const LOGIN_BYTES_MAX: u64 = 1024 * 1024;

/// A login that was lent.
pub(super) struct Lent {
    own: PathBuf,
    copy: PathBuf,
    /// Where the copy lies, without links.
    real_copy: PathBuf,
    content: Vec<u8>,
}

impl Lent {
    /// Copies the login of the engine's user into `home`.
    ///
    /// # Errors
    /// There is none, or it cannot be read or copied: says so, without its content.
    pub(super) fn lend(own_home: Option<&str>, home: &Path, file: &str) -> Result<Lent, String> {
        let own_home = own_home.ok_or("the engine has no `HOME`, so it has no login to lend")?;
        let own = Path::new(own_home).join(file);
        let refused =
            |error: &io::Error| format!("the login `{}` cannot be copied: {error}", own.display());
        let content = read(&own).map_err(|error| refused(&error))?;
        let copy = home.join(file);
        write_new(&copy, &content).map_err(|error| refused(&error))?;
        let real_copy = fs::canonicalize(&copy).map_err(|error| refused(&error))?;
        Ok(Lent {
            own,
            copy,
            real_copy,
            content,
        })
    }

    /// Keeps the login that the program has refreshed. One that somebody else has changed meanwhile stays as it is.
    ///
    /// # Errors
    /// A new one could not be kept: the program may ask for a login the next time.
    pub(super) fn take_back(&self) -> Result<bool, String> {
        // The program may have put a link in its place, to a file that it cannot read itself.
        let is_in_place = fs::canonicalize(&self.copy).is_ok_and(|found| found == self.real_copy);
        let Some(now) = is_in_place.then(|| read(&self.copy)).and_then(Result::ok) else {
            return Ok(false);
        };
        let is_whole =
            serde_json::from_slice::<serde_json::Value>(&now).is_ok_and(|value| value.is_object());
        let unchanged = read(&self.own).is_ok_and(|there| there == self.content);
        if now == self.content || !is_whole || !unchanged {
            return Ok(false);
        }
        let refused = |error: io::Error| {
            format!(
                "the refreshed login `{}` could not be kept: {error}",
                self.own.display()
            )
        };
        let beside = self.own.with_extension("workerctl");
        let _ = fs::remove_file(&beside);
        write_new(&beside, &now)
            .and_then(|()| fs::rename(&beside, &self.own))
            .map_err(refused)?;
        Ok(true)
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let found = fs::metadata(path)?;
    if !found.is_file() || found.len() > LOGIN_BYTES_MAX {
        return Err(io::Error::other("it is no file of at most 1 MiB"));
    }
    fs::read(path)
}

/// Writes a file that only its owner reads.
pub(super) fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    use io::Write;
    if let Some(parent) = path.parent() {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(parent)?;
    }
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(content)?;
    file.sync_all()
}
