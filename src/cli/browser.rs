//! The person's browser, opened with a secret that nobody else on the machine may see.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::process::launch;

/// Whether there is a screen that a browser could be shown on.
pub(crate) fn has_screen(environment: &BTreeMap<String, String>) -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| environment.get(*name).is_some_and(|set| !set.is_empty()))
}

/// Opens an address in the browser. Every user of the machine sees the arguments of programs, so the browser is given a
/// file that leads on: in the state directory, which commands of runs cannot read within walls; where that is somebody
/// else's, in the directory that is the person's own.
///
/// # Errors
/// There is no such directory, or nothing that opens files.
pub(crate) fn open(
    address: &str,
    state_dir: &Path,
    environment: &BTreeMap<String, String>,
) -> io::Result<()> {
    let user = rustix::process::geteuid().as_raw();
    let is_own = fs::metadata(state_dir).is_ok_and(|found| found.uid() == user);
    let of_person = environment
        .get("XDG_RUNTIME_DIR")
        .filter(|set| !set.is_empty());
    let directory = match of_person {
        _ if is_own => state_dir,
        Some(directory) => Path::new(directory),
        None => return Err(io::Error::other("`XDG_RUNTIME_DIR` is not set")),
    };
    let file = leading_to(address, directory)?;
    launch("xdg-open", file.as_os_str())
}

/// A page that leads to an address. It stays, since nobody knows when the browser has read it; the next one replaces it.
fn leading_to(address: &str, directory: &Path) -> io::Result<PathBuf> {
    let path = directory.join("web.html");
    let fresh = directory.join(format!(".web.html.{}", std::process::id()));
    let text = format!(
        "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
         <meta http-equiv=\"refresh\" content=\"0; url={address}\"><title>workerctl</title>\n"
    );
    // A command that was killed, and had the same number, may have left one.
    let _ = fs::remove_file(&fresh);
    let written = fs::File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&fresh)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&fresh, &path));
    if written.is_err() {
        // It may not be there at all.
        let _ = fs::remove_file(&fresh);
    }
    written.map(|()| path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_leads_to_the_page_is_for_its_person_alone() {
        let directory = xtest::tempdir();
        for code in ["one", "two"] {
            let address = format!("http://127.0.0.1:1/#login={code}");
            let path = leading_to(&address, directory.path()).unwrap();
            assert!(fs::read_to_string(&path).unwrap().contains(&address));
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        assert!(leading_to("x", &directory.path().join("absent")).is_err());
        let absent = directory.path().join("absent");
        assert!(open("x", &absent, &BTreeMap::new()).is_err());
    }
}
