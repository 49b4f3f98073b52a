//! The units that come with the program, with the places of one installation in them.

use std::path::{Path, PathBuf};

use crate::model::{Diagnostic, Kind};

/// Name of the service.
pub(super) const SERVICE: &str = "workerctl.service";

/// Name of the unit of its socket.
pub(super) const SOCKET: &str = "workerctl.socket";

const OF_SYSTEM: &str = include_str!("../../../../systemd/workerctl.service");
const OF_USER: &str = include_str!("../../../../systemd/user/workerctl.service");
const OF_SOCKET: &str = include_str!("../../../../systemd/workerctl.socket");

/// Where `StateDirectory=` lies for a service of the system.
const STATE_ROOT: &str = "/var/lib";

/// What differs from one installation to another.
#[derive(Debug, Clone)]
pub(super) struct UnitPaths {
    /// This program.
    pub(super) program: PathBuf,
    /// The workspace, without links.
    pub(super) workspace: PathBuf,
    /// The state directory, where one was asked for.
    pub(super) state_dir: Option<PathBuf>,
    /// Directories of the repository that lie outside of the workspace.
    pub(super) repository: Vec<PathBuf>,
    /// The account of a service of the system; none for one of a user.
    pub(super) account: Option<String>,
}

/// The unit of the service.
pub(super) fn service(places: &UnitPaths) -> Result<String, Diagnostic> {
    let workspace = plain(&places.workspace)?;
    let mut environment = assignment("WORKERCTL_WORKSPACE", workspace);
    let mut written = vec![workspace];
    let mut state = None;
    if let Some(asked) = &places.state_dir {
        let asked = plain(asked)?;
        // Below its own root the service manager makes the directory, with its owner.
        state = places.account.as_ref().and_then(|_| managed(asked));
        if state.is_none() {
            environment.push('\n');
            environment.push_str(&assignment("WORKERCTL_STATE_DIR", asked));
            written.push(asked);
        }
    }
    for directory in &places.repository {
        written.push(plain(directory)?);
    }
    let program = format!("ExecStart={} daemon", quoted(plain(&places.program)?));
    let written: Vec<String> = written.into_iter().map(quoted).collect();
    // This one takes the rest of the line as it stands, and specifiers.
    let directory = format!("WorkingDirectory={}", workspace.replace('%', "%%"));
    let mut changes = vec![
        ("ExecStart=", Some(program)),
        ("Environment=WORKERCTL_WORKSPACE=", Some(environment)),
        ("WorkingDirectory=", Some(directory)),
    ];
    let Some(account) = &places.account else {
        return Ok(changed(OF_USER, &changes));
    };
    changes.push((
        "ReadWritePaths=",
        Some(format!("ReadWritePaths={}", written.join(" "))),
    ));
    changes.push(("User=", Some(format!("User={account}"))));
    changes.push(("Group=", Some(format!("Group={account}"))));
    match (&places.state_dir, state) {
        (None, _) => {}
        (Some(_), Some(name)) => {
            changes.push(("StateDirectory=", Some(format!("StateDirectory={name}"))));
        }
        (Some(_), None) => {
            changes.extend([("StateDirectory=", None), ("StateDirectoryMode=", None)]);
        }
    }
    Ok(changed(OF_SYSTEM, &changes))
}

/// The unit of the socket.
pub(super) fn socket(places: &UnitPaths) -> String {
    let account = places.account.as_deref().unwrap_or_default();
    let changes = [
        ("SocketUser=", Some(format!("SocketUser={account}"))),
        ("SocketGroup=", Some(format!("SocketGroup={account}"))),
    ];
    changed(OF_SOCKET, &changes)
}

/// The lines that begin so replaced, or left out.
fn changed(unit: &str, changes: &[(&str, Option<String>)]) -> String {
    let mut text = String::with_capacity(unit.len());
    for line in unit.lines() {
        let change = changes.iter().find(|(start, _)| line.starts_with(start));
        let line = match change {
            Some((_, None)) => continue,
            Some((_, Some(new))) => new,
            None => line,
        };
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// The name for `StateDirectory=` where a path is one that it can make and that needs no quotes.
fn managed(path: &str) -> Option<&str> {
    let name = Path::new(path).strip_prefix(STATE_ROOT).ok()?.to_str()?;
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    (!name.is_empty() && name.bytes().all(safe)).then_some(name)
}

/// A path as a unit can hold it at all.
fn plain(path: &Path) -> Result<&str, Diagnostic> {
    let text = path.to_str().filter(|text| {
        // One line of UTF-8; blanks at its end are cut off, and a backslash there goes on with the next line.
        !text.chars().any(char::is_control) && !text.ends_with(['\\', ' '])
    });
    text.ok_or_else(|| {
        let text = format!(
            "the path `{}` cannot be used in a systemd unit",
            path.display()
        );
        Diagnostic::new(Kind::Usage, "unit_path", text).hint(
            "rename it: no control characters, and neither a blank nor a backslash at its end",
        )
    })
}

/// `Environment=`, which unquotes and knows specifiers.
fn assignment(name: &str, value: &str) -> String {
    let text = format!("{name}={value}");
    format!("Environment={}", quoted(&text))
}

/// A word as systemd unquotes it, without specifiers; quotes only where they are needed.
fn quoted(text: &str) -> String {
    let escaped = text
        .replace('\\', r"\\")
        .replace('"', r#"\""#)
        .replace('%', "%%");
    let plain = |c: char| c.is_alphanumeric() || "/._-=:@+,~%".contains(c);
    if text.chars().all(plain) {
        escaped
    } else {
        format!("\"{escaped}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(account: Option<&str>) -> UnitPaths {
        UnitPaths {
            program: PathBuf::from("/usr/local/bin/workerctl"),
            workspace: PathBuf::from("/srv/workerctl"),
            state_dir: None,
            repository: Vec::new(),
            account: account.map(str::to_owned),
        }
    }

    /// The lines of a unit that the shipped one does not have, and those that it alone has.
    fn difference(unit: &str, shipped: &str) -> (Vec<String>, Vec<String>) {
        let lacking = |of: &str, other: &str| {
            let lines = of
                .lines()
                .filter(|line| !other.lines().any(|one| one == *line));
            lines.map(str::to_owned).collect()
        };
        (lacking(unit, shipped), lacking(shipped, unit))
    }

    #[test]
    fn the_usual_places_give_the_units_that_are_shipped() {
        let usual = places(Some("workerctl"));
        assert_eq!(service(&usual).unwrap(), OF_SYSTEM);
        assert_eq!(socket(&usual), OF_SOCKET);
        let (new, gone) = difference(&service(&places(None)).unwrap(), OF_USER);
        let names = |home: &str| {
            [
                format!("Environment=WORKERCTL_WORKSPACE={home}/workerctl"),
                format!("WorkingDirectory={home}/workerctl"),
            ]
        };
        assert_eq!(new, names("/srv"));
        assert_eq!(gone, names("%h"));
    }

    #[test]
    fn each_place_stands_where_the_unit_names_it() {
        let other = UnitPaths {
            program: PathBuf::from("/opt/worker tools/workerctl"),
            workspace: PathBuf::from("/srv/100% \"ours\"\\x"),
            state_dir: Some(PathBuf::from("/data/state")),
            repository: vec![PathBuf::from("/srv/main repo/.git")],
            account: Some("robot".to_owned()),
        };
        let (new, gone) = difference(&service(&other).unwrap(), OF_SYSTEM);
        assert_eq!(
            new,
            [
                r#"ExecStart="/opt/worker tools/workerctl" daemon"#,
                r#"Environment="WORKERCTL_WORKSPACE=/srv/100%% \"ours\"\\x""#,
                "Environment=WORKERCTL_STATE_DIR=/data/state",
                r#"WorkingDirectory=/srv/100%% "ours"\x"#,
                r#"ReadWritePaths="/srv/100%% \"ours\"\\x" /data/state "/srv/main repo/.git""#,
                "User=robot",
                "Group=robot",
            ]
        );
        assert_eq!(gone.len(), 8, "{gone:?}");
        let managed = UnitPaths {
            state_dir: Some(PathBuf::from("/var/lib/workers/ours")),
            ..other
        };
        let text = service(&managed).unwrap();
        assert!(text.contains("\nStateDirectory=workers/ours\n"), "{text}");
        assert!(!text.contains("WORKERCTL_STATE_DIR"), "{text}");
        for impossible in ["/srv/a\nb", "/srv/a\\", "/srv/a "] {
            let refused = UnitPaths {
                workspace: PathBuf::from(impossible),
                ..places(None)
            };
            assert_eq!(service(&refused).unwrap_err().code, "unit_path");
        }
    }
}
