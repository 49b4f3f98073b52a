//! The units as systemd itself judges them; where it is not installed, that is said.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "what prepares a test fails by panicking"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Highest exposure that the system unit may have, in tenths of systemd's scale from 0 to 10.
const EXPOSURE_MAX: &str = "25";

fn source(unit: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("systemd")
        .join(unit);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A copy of the units in which the program exists, since `verify` looks for it.
fn installed() -> (xtest::TempDir, impl Fn(&str) -> PathBuf) {
    let directory = xtest::tempdir();
    let root = directory.path().to_path_buf();
    std::fs::create_dir(root.join("user")).expect("made");
    for unit in [
        "workerctl.service",
        "workerctl.socket",
        "user/workerctl.service",
    ] {
        let text = source(unit).replace("/usr/local/bin/workerctl", "/bin/true");
        std::fs::write(root.join(unit), text).expect("written");
    }
    (directory, move |unit: &str| root.join(unit))
}

fn analyze(arguments: &[&str], units: &[PathBuf]) -> Option<Output> {
    let run = xtest::tempdir();
    let output = Command::new("systemd-analyze")
        .args(arguments)
        .args(units)
        .env("XDG_RUNTIME_DIR", run.path())
        .env("SYSTEMD_COLORS", "0")
        .output();
    match output {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            xtest::skip("systemd-analyze is not installed");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn systemd_finds_nothing_wrong_with_the_units() {
    let (_directory, unit) = installed();
    let system = [unit("workerctl.service"), unit("workerctl.socket")];
    let user = [unit("user/workerctl.service")];
    for (arguments, units) in [
        (vec!["verify", "--man=no"], system.as_slice()),
        (vec!["--user", "verify", "--man=no"], user.as_slice()),
    ] {
        let Some(output) = analyze(&arguments, units) else {
            return;
        };
        let said = [output.stdout, output.stderr].concat();
        assert!(
            output.status.success() && said.is_empty(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&said)
        );
    }
}

#[test]
fn the_system_unit_is_hardened() {
    let (_directory, unit) = installed();
    let Some(output) = analyze(
        &[
            "security",
            "--offline=true",
            "--no-pager",
            &format!("--threshold={EXPOSURE_MAX}"),
        ],
        &[unit("workerctl.service")],
    ) else {
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{}", said.lines().last().unwrap_or_default());
    assert!(output.status.success(), "{said}");
}

/// Runs the real program in a home of its own.
fn workerctl(home: &Path, workspace: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_workerctl"))
        .env_clear()
        .env("HOME", home)
        .arg("-C")
        .arg(workspace)
        .args(arguments)
        .output()
        .expect("the program runs")
}

#[test]
fn printed_units_hold_for_systemd_whatever_the_workspace_is_called() {
    let directory = xtest::tempdir();
    let root = directory.path().canonicalize().expect("a path");
    for name in ["plain", "two words", "100%h", "\"quoted\" $HOME \\x"] {
        let workspace = root.join(name);
        std::fs::create_dir_all(workspace.join("workers")).expect("made");
        let state = workspace.join("kept here");
        let state = ["--state-dir", state.to_str().expect("text")];
        for (options, file, managers) in [
            (
                &["--run-as", "robot"][..],
                "workerctl.service",
                &["verify"][..],
            ),
            (&["--socket-unit"], "workerctl.socket", &["verify"]),
            (&["--user"], "workerctl.service", &["--user", "verify"]),
        ] {
            let asked = [&["unit", "print"], options, &state].concat();
            let printed = workerctl(&root, &workspace, &asked);
            assert!(printed.status.success(), "{printed:?}");
            // It lies below /tmp, which the unit of the system hides.
            let warned = String::from_utf8_lossy(&printed.stderr).contains("PrivateTmp=yes");
            assert_eq!(warned, !options.contains(&"--user"), "{printed:?}");
            let units = root.join("units");
            std::fs::create_dir_all(&units).expect("made");
            std::fs::write(units.join(file), &printed.stdout).expect("written");
            let command = [managers, &["--man=no"]].concat();
            let Some(verified) = analyze(&command, &[units.join(file)]) else {
                return;
            };
            let said = [verified.stdout, verified.stderr].concat();
            assert!(
                verified.status.success() && said.is_empty(),
                "{name}: {options:?}: {}\n{}",
                String::from_utf8_lossy(&said),
                String::from_utf8_lossy(&printed.stdout)
            );
        }
    }
}

#[test]
fn a_unit_that_somebody_changed_is_replaced_only_when_asked() {
    let directory = xtest::tempdir();
    let root = directory.path().canonicalize().expect("a path");
    std::fs::create_dir(root.join("workers")).expect("made");
    let unit = root.join(".config/systemd/user/workerctl.service");
    let install = |options: &[&str]| {
        let asked = [&["unit", "install", "--user"], options].concat();
        let done = workerctl(&root, &root, &asked);
        let told = [done.stdout, done.stderr].concat();
        (
            done.status.code(),
            String::from_utf8_lossy(&told).into_owned(),
        )
    };
    let read = || std::fs::read_to_string(&unit).expect("a unit");
    let (code, told) = install(&[]);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("written") && told.contains("systemctl --user daemon-reload"));
    let first = read();
    let place = format!("WorkingDirectory={}\n", root.display());
    assert!(first.contains(&place), "{first}");
    assert!(install(&[]).1.contains("kept"));

    let changed = first.replace("WatchdogSec=60s", "WatchdogSec=10min");
    std::fs::write(&unit, &changed).expect("written");
    let (code, told) = install(&[]);
    assert_eq!(code, Some(8), "{told}");
    assert!(told.contains("--force"), "{told}");
    assert_eq!(read(), changed);
    assert_eq!(install(&["--force"]).0, Some(0));
    assert_eq!(read(), first);
    // What is below /tmp would not be seen by a service of the system; nothing is written for it.
    let refused = workerctl(&root, &root, &["unit", "install"]);
    assert_eq!(refused.status.code(), Some(6), "{refused:?}");
}

#[test]
fn the_units_keep_what_the_daemon_relies_on() {
    for unit in ["workerctl.service", "user/workerctl.service"] {
        let text = source(unit);
        for line in [
            "Type=notify",
            "NotifyAccess=main",
            "KillMode=mixed",
            "Restart=on-failure",
            "OOMPolicy=continue",
            "UMask=0077",
            "ExecReload=/bin/kill -HUP $MAINPID",
            "RestartPreventExitStatus=2 3 4 6",
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "{unit} lacks `{line}`"
            );
        }
        let seconds = |name: &str| -> u64 {
            let value = text
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
                .unwrap_or_else(|| panic!("{unit} lacks {name}"));
            value.trim_end_matches('s').parse().expect("seconds")
        };
        let drain_grace_s = workerctl::model::Config::default().drain_grace_ms / 1_000;
        assert!(seconds("TimeoutStopSec") > drain_grace_s, "{unit}");
        // The daemon feeds it every 30 s at the slowest.
        assert!(seconds("WatchdogSec") >= 60, "{unit}");
    }
    let system = source("workerctl.service");
    for line in [
        "RuntimeDirectoryPreserve=restart",
        "StateDirectoryMode=0700",
        "User=workerctl",
    ] {
        assert!(
            system.lines().any(|found| found == line),
            "the system unit lacks `{line}`"
        );
    }
    let socket = source("workerctl.socket");
    let place = socket
        .lines()
        .find_map(|line| line.strip_prefix("ListenStream="))
        .expect("a place");
    assert!(
        !place.starts_with("/run/workerctl/"),
        "the runtime directory goes with the service and would take the socket along"
    );
    assert!(socket.lines().any(|line| line == "SocketMode=0600"));
}
