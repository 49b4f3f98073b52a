//! The service that is installed, and where it keeps runs.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::{Finding, State, kept_elsewhere};
use crate::cli::globals::Site;

/// Where units of this program would lie.
const DIRECTORIES: [&str; 4] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
];

/// Where the service manager of the system makes what `StateDirectory=` names.
const STATE_ROOT: &str = "/var/lib";

/// Bytes of a unit that are read.
const UNIT_BYTES_MAX: u64 = 64 * 1024;

/// Looks for a service of this program.
pub(super) fn installed(site: &Site) -> Finding {
    if !Path::new("/run/systemd/system").is_dir() {
        return Finding::new("unit", State::Good, "systemd does not run here");
    }
    let own = site
        .environment
        .get("HOME")
        .map(|home| PathBuf::from(home).join(".config/systemd/user"));
    let of_system = DIRECTORIES
        .iter()
        .find_map(|place| in_directory(place.as_ref()));
    match (of_system, own.and_then(|place| in_directory(&place))) {
        (Some(unit), _) => judged(site, &unit),
        (None, Some(unit)) => Finding::new("unit", State::Good, unit.display().to_string()),
        (None, None) => Finding::new("unit", State::Hint, "no `workerctl` service is installed")
            .hint("`workerctl unit install` writes one"),
    }
}

fn in_directory(directory: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(directory).ok()?.filter_map(Result::ok);
    entries.map(|entry| entry.path()).find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("workerctl") && name.ends_with(".service")
    })
}

/// A service of the system, and whether it keeps the runs of this workspace elsewhere.
fn judged(site: &Site, unit: &Path) -> Finding {
    let shown = unit.display().to_string();
    let mut text = read(unit);
    let changes = fs::read_dir(format!("{shown}.d")).into_iter().flatten();
    let mut changes: Vec<PathBuf> = changes.filter_map(Result::ok).map(|e| e.path()).collect();
    changes.sort();
    for change in changes {
        text.push('\n');
        text.push_str(&read(&change));
    }
    let service = Service::read(&text);
    let elsewhere = service
        .state_dir
        .filter(|_| {
            service
                .workspace
                .is_some_and(|served| same(&served, &site.workspace))
        })
        .and_then(|place| kept_elsewhere(site, &format!("{shown}:"), &place));
    match elsewhere {
        Some(found) => Finding {
            name: "unit",
            ..found
        },
        None => Finding::new("unit", State::Good, shown),
    }
}

fn read(path: &Path) -> String {
    let mut text = String::new();
    let opened = fs::File::open(path);
    // What cannot be read says nothing.
    let _ = opened.and_then(|file| file.take(UNIT_BYTES_MAX).read_to_string(&mut text));
    text
}

fn same(served: &str, workspace: &Path) -> bool {
    let served = Path::new(served);
    served
        .canonicalize()
        .unwrap_or_else(|_| served.to_path_buf())
        == workspace
}

/// What a unit says of places. Specifiers and lists are not understood, and then nothing is said.
#[derive(Debug, Default, PartialEq, Eq)]
struct Service {
    workspace: Option<String>,
    state_dir: Option<String>,
}

impl Service {
    /// Later settings replace earlier ones.
    fn read(text: &str) -> Service {
        let (mut directory, mut below, mut asked, mut workspace) = (None, None, None, None);
        for line in text.lines() {
            let Some((key, value)) = line.trim().split_once('=') else {
                continue;
            };
            let value = value.trim().trim_matches('"');
            match (key.trim(), value.split_once('=')) {
                ("WorkingDirectory", _) => directory = plain(value),
                ("StateDirectory", _) => below = plain(value),
                ("Environment", Some(("WORKERCTL_WORKSPACE", value))) => workspace = plain(value),
                ("Environment", Some(("WORKERCTL_STATE_DIR", value))) => asked = plain(value),
                _ => {}
            }
        }
        let made = below.map(|name| format!("{STATE_ROOT}/{name}"));
        Service {
            workspace: workspace.or(directory),
            state_dir: asked.or(made),
        }
    }
}

fn plain(value: &str) -> Option<String> {
    let is_plain = !value.is_empty() && !value.contains(['%', ' ', ':', '"', '\'']);
    is_plain.then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_unit_that_comes_with_the_program_is_understood() {
        let text = include_str!("../../../../systemd/workerctl.service");
        let service = Service::read(text);
        assert_eq!(service.workspace.as_deref(), Some("/srv/workerctl"));
        assert_eq!(service.state_dir.as_deref(), Some("/var/lib/workerctl"));
        let changed =
            format!("{text}\n[Service]\nEnvironment=\"WORKERCTL_STATE_DIR=/data/state\"\n");
        assert_eq!(
            Service::read(&changed).state_dir.as_deref(),
            Some("/data/state")
        );
        let unclear = "[Service]\nStateDirectory=workerctl/%i\nWorkingDirectory=~\n";
        assert_eq!(Service::read(unclear).state_dir, None);
    }

    #[test]
    fn a_service_that_keeps_runs_elsewhere_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let unit = root.join("workerctl.service");
        let site = |state_dir: &str| Site {
            workspace: root.clone(),
            state_dir: PathBuf::from(state_dir),
            socket: None,
            environment: BTreeMap::new(),
        };
        let text = "[Service]\nWorkingDirectory=/elsewhere\nStateDirectory=workerctl\n";
        fs::write(&unit, text).unwrap();
        assert_eq!(in_directory(&root), Some(unit.clone()));
        assert_eq!(judged(&site("/s"), &unit).state, State::Good);
        fs::create_dir(root.join("workerctl.service.d")).unwrap();
        let change = format!("[Service]\nWorkingDirectory={}\n", root.display());
        fs::write(root.join("workerctl.service.d/override.conf"), change).unwrap();
        let found = judged(&site("/s"), &unit);
        assert_eq!(found.state, State::Care);
        assert!(
            found.message.contains("/var/lib/workerctl"),
            "{}",
            found.message
        );
        assert!(found.hints[0].contains("WORKERCTL_STATE_DIR=/var/lib/workerctl"));
        assert_eq!(
            judged(&site("/var/lib/workerctl"), &unit).state,
            State::Good
        );
    }
}
