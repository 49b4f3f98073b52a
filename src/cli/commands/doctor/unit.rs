//! The service that is installed, and where it keeps runs.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::engine::kept_elsewhere;
use super::{Finding, State};
use crate::cli::globals::{Site, may_be_workspace};
use crate::cli::session::Session;

/// Name of what is found here.
const NAME: &str = "unit";

/// Where units of this program would lie.
const DIRECTORIES: [&str; 4] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
];

/// Where the service manager of the system makes what `StateDirectory=` names.
const STATE_ROOT: &str = "/var/lib";

/// Where systemd notes the users whose services run without a session.
const LINGERING: &str = "/var/lib/systemd/linger";

/// Bytes of a unit that are read.
const UNIT_BYTES_MAX: u64 = 64 * 1024;

/// The service of this program, as the user who asks has it: their own, else the system's.
pub(super) fn installed(session: &Session<'_>, site: Option<&Site>) -> Vec<Finding> {
    if !Path::new("/run/systemd/system").is_dir() {
        return vec![Finding::new(NAME, State::Good, "systemd does not run here")];
    }
    let user = session.asked_by().unwrap_or_default();
    let lingering = Path::new(LINGERING).join(user);
    if let Some(found) = of_user(session.environment, &lingering) {
        return found;
    }
    let mut of_system = DIRECTORIES.iter();
    match of_system.find_map(|place| in_directory(place.as_ref())) {
        Some(unit) => judged(site, &unit, Path::new(DIRECTORIES[0])),
        None => vec![
            Finding::new(NAME, State::Hint, "no `workerctl` service is installed")
                .hint("`workerctl daemon install` writes one"),
        ],
    }
}

/// The service of a user, where they have written or enabled one; what a package brings for all counts for nobody.
/// `lingering` is there where their services run without a session.
fn of_user(environment: &BTreeMap<String, String>, lingering: &Path) -> Option<Vec<Finding>> {
    let directory = Path::new(environment.get("HOME")?).join(".config/systemd/user");
    let enabled = linked(&directory, "workerctl.service");
    let unit = in_directory(&directory).or_else(|| enabled.clone())?;
    let mut findings = vec![Finding::new(NAME, State::Good, unit.display().to_string())];
    if enabled.is_none() {
        findings.push(not_enabled(
            &unit,
            "systemctl --user enable --now workerctl",
        ));
    }
    if !lingering.exists() {
        let text = "your services end when you log out, and do not start with the machine";
        let hint = "`loginctl enable-linger` lets them run without a session";
        findings.push(Finding::new(NAME, State::Hint, text).hint(hint));
    }
    Some(findings)
}

fn in_directory(directory: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(directory).ok()?.filter_map(Result::ok);
    entries.map(|entry| entry.path()).find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("workerctl") && name.ends_with(".service")
    })
}

/// The link by which a unit is enabled.
fn linked(directory: &Path, unit: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(directory).ok()?.filter_map(Result::ok);
    let mut links = entries
        .filter(|entry| entry.file_name().to_string_lossy().ends_with(".wants"))
        .map(|entry| entry.path().join(unit));
    links.find(|link| fs::symlink_metadata(link).is_ok())
}

fn not_enabled(unit: &Path, command: &str) -> Finding {
    let text = format!(
        "{} is not enabled: it does not start by itself",
        unit.display()
    );
    Finding::new(NAME, State::Hint, text).hint(&format!("`{command}`"))
}

/// A service of the system: what it serves and whether it is enabled, and for this workspace where it keeps runs.
fn judged(site: Option<&Site>, unit: &Path, enabling: &Path) -> Vec<Finding> {
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
    let name = unit.file_name().unwrap_or_default().to_string_lossy();
    let socket = name.replace(".service", ".socket");
    let is_enabled = [&*name, &socket]
        .iter()
        .any(|unit| linked(enabling, unit).is_some());
    let mut findings = vec![
        service
            .without_workspace(&shown, is_enabled)
            .or_else(|| site.and_then(|site| service.elsewhere(site, &shown)))
            .unwrap_or_else(|| Finding::new(NAME, State::Good, shown.clone())),
    ];
    if findings[0].state == State::Good && !is_enabled {
        let command = format!(
            "sudo systemctl enable --now {}",
            name.replace(".service", "")
        );
        findings.push(not_enabled(unit, &command));
    }
    let own = std::env::current_exe().ok();
    findings.extend(own.and_then(|own| service.of_another_program(&shown, &own)));
    findings
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
    program: Option<String>,
    user: Option<String>,
    workspace: Option<String>,
    state_dir: Option<String>,
}

impl Service {
    /// It has nothing to run yet.
    fn without_workspace(&self, unit: &str, is_enabled: bool) -> Option<Finding> {
        let served = self.workspace.as_deref()?;
        if may_be_workspace(Path::new(served)) {
            return None;
        }
        let state = if is_enabled { State::Care } else { State::Hint };
        let text = format!("{unit} serves {served}, where there is no workspace");
        let user = self.user.as_deref().unwrap_or("root");
        let hint = format!(
            "`sudo -u {user} git clone REPOSITORY {served}`, then `sudo systemctl enable --now workerctl`; \
             `workerctl daemon install` makes it serve another one"
        );
        Some(Finding::new(NAME, state, text).hint(&hint))
    }

    /// It serves another workspace, or keeps the runs of this one where commands would not look.
    fn elsewhere(&self, site: &Site, unit: &str) -> Option<Finding> {
        let served = self.workspace.as_deref()?;
        if !same(served, &site.workspace) {
            let text = format!("{unit} serves {served}, not this workspace");
            let hint =
                "`workerctl daemon install --user` installs a user service for this workspace";
            return Some(Finding::new(NAME, State::Hint, text).hint(hint));
        }
        let place = self.state_dir.as_deref()?;
        let found = kept_elsewhere(site, &format!("{unit}:"), place)?;
        Some(Finding {
            name: NAME,
            ..found
        })
    }

    /// An upgrade of one of the two does not reach the other.
    fn of_another_program(&self, unit: &str, own: &Path) -> Option<Finding> {
        let program = self.program.as_deref()?;
        if same(program, own) {
            return None;
        }
        let text = format!("{unit} starts {program}, and this is {}", own.display());
        let hint = "remove the one that you do not use: `workerctl daemon install --force` writes a unit with the program that \
                    it is called by; where a package brings the unit, remove yours";
        Some(Finding::new(NAME, State::Hint, text).hint(hint))
    }

    /// Later settings replace earlier ones.
    fn read(text: &str) -> Service {
        let (mut directory, mut below, mut asked, mut workspace) = (None, None, None, None);
        let (mut program, mut user) = (None, None);
        for line in text.lines() {
            let Some((key, value)) = line.trim().split_once('=') else {
                continue;
            };
            let value = value.trim().trim_matches('"');
            match (key.trim(), value.split_once('=')) {
                ("WorkingDirectory", _) => directory = plain(value),
                ("StateDirectory", _) => below = plain(value),
                ("User", _) => user = plain(value),
                ("ExecStart", _) => program = value.split(' ').next().and_then(plain),
                ("Environment", Some(("WORKERCTL_WORKSPACE", value))) => workspace = plain(value),
                ("Environment", Some(("WORKERCTL_STATE_DIR", value))) => asked = plain(value),
                _ => {}
            }
        }
        let made = below.map(|name| format!("{STATE_ROOT}/{name}"));
        Service {
            program,
            user,
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

    /// A unit, with the directory that it is enabled in.
    struct Place(xtest::TempDir);

    impl Place {
        fn new(text: &str) -> Place {
            let place = Place(xtest::tempdir());
            fs::create_dir(place.root().join("workers")).unwrap();
            fs::write(
                place.unit(),
                text.replace("ROOT", &place.root().to_string_lossy()),
            )
            .unwrap();
            place
        }

        fn root(&self) -> PathBuf {
            self.0.path().canonicalize().unwrap()
        }

        fn unit(&self) -> PathBuf {
            self.root().join("workerctl.service")
        }

        fn enable(&self) {
            let wants = self.root().join("multi-user.target.wants");
            fs::create_dir(&wants).unwrap();
            std::os::unix::fs::symlink("nowhere", wants.join("workerctl.service")).unwrap();
        }

        fn found(&self, state_dir: &str) -> Vec<(State, String, Vec<String>)> {
            let site = Site {
                workspace: self.root(),
                state_dir: PathBuf::from(state_dir),
                socket: None,
                environment: BTreeMap::new(),
            };
            let found = judged(Some(&site), &self.unit(), &self.root()).into_iter();
            found
                .map(|one| (one.state, one.message, one.hints))
                .collect()
        }
    }

    #[test]
    fn a_service_that_keeps_runs_elsewhere_is_told() {
        let place = Place::new("[Service]\nWorkingDirectory=/\nStateDirectory=workerctl\n");
        place.enable();
        assert_eq!(in_directory(&place.root()), Some(place.unit()));
        let change = format!("[Service]\nWorkingDirectory={}\n", place.root().display());
        fs::create_dir(place.root().join("workerctl.service.d")).unwrap();
        fs::write(
            place.root().join("workerctl.service.d/override.conf"),
            change,
        )
        .unwrap();
        let found = place.found("/s");
        assert_eq!((found.len(), found[0].0), (1, State::Care), "{found:?}");
        assert!(found[0].1.contains("/var/lib/workerctl"), "{found:?}");
        assert!(found[0].2[0].contains("WORKERCTL_STATE_DIR=/var/lib/workerctl"));
        let found = place.found("/var/lib/workerctl");
        assert_eq!((found.len(), found[0].0), (1, State::Good), "{found:?}");
    }

    #[test]
    fn a_service_that_serves_nothing_here_says_what_to_do() {
        let place = Place::new("[Service]\nUser=workerctl\nWorkingDirectory=/nowhere\n");
        let found = place.found("/s");
        assert_eq!((found.len(), found[0].0), (1, State::Hint), "{found:?}");
        assert!(
            found[0]
                .1
                .ends_with("serves /nowhere, where there is no workspace")
        );
        let clone = "`sudo -u workerctl git clone REPOSITORY /nowhere`, then `sudo systemctl enable --now workerctl`";
        assert!(found[0].2[0].starts_with(clone), "{found:?}");
        place.enable();
        assert_eq!(place.found("/s")[0].0, State::Care);

        let other = Place::new("[Service]\n");
        let place = Place::new(&format!(
            "[Service]\nWorkingDirectory={}\n",
            other.root().display()
        ));
        let found = place.found("/s");
        assert!(found[0].1.ends_with("not this workspace"), "{found:?}");
        assert!(found[0].2[0].contains("daemon install --user"), "{found:?}");
    }

    #[test]
    fn a_service_that_is_not_enabled_or_of_another_program_is_told() {
        let place =
            Place::new("[Service]\nWorkingDirectory=ROOT\nExecStart=/opt/workerctl daemon\n");
        let found = place.found("/s");
        let states: Vec<State> = found.iter().map(|one| one.0).collect();
        assert_eq!(states, [State::Good, State::Hint, State::Hint], "{found:?}");
        assert!(
            found[1]
                .1
                .ends_with("is not enabled: it does not start by itself")
        );
        assert_eq!(found[1].2, ["`sudo systemctl enable --now workerctl`"]);
        assert!(
            found[2].1.contains("starts /opt/workerctl, and this is "),
            "{found:?}"
        );
        place.enable();
        assert_eq!(place.found("/s").len(), 2);
    }

    #[test]
    fn a_service_of_a_user_needs_lingering() {
        let home = xtest::tempdir();
        let place = home.path().to_str().unwrap().to_owned();
        let environment = BTreeMap::from([("HOME".to_owned(), place)]);
        let lingering = home.path().join("ada");
        let told = || {
            let found = of_user(&environment, &lingering).unwrap_or_default();
            let messages = found.into_iter().map(|one| one.message);
            messages.collect::<Vec<_>>()
        };
        assert!(told().is_empty());
        let units = home.path().join(".config/systemd/user");
        fs::create_dir_all(&units).unwrap();
        fs::write(units.join("workerctl.service"), "").unwrap();
        let found = told();
        assert!(
            found[1].contains("not enabled") && found[2].contains("log out"),
            "{found:?}"
        );
        fs::create_dir(units.join("default.target.wants")).unwrap();
        std::os::unix::fs::symlink("x", units.join("default.target.wants/workerctl.service"))
            .unwrap();
        assert_eq!(told().len(), 2);
        fs::write(&lingering, "").unwrap();
        assert_eq!(told().len(), 1);
    }
}
