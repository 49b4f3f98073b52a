//! The units as systemd itself judges them; where it is not installed, that is said.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "what prepares a test fails by panicking and says when it is skipped"
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
fn installed() -> (tempfile::TempDir, impl Fn(&str) -> PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
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
    let run = tempfile::tempdir().expect("a directory");
    let output = Command::new("systemd-analyze")
        .args(arguments)
        .args(units)
        .env("XDG_RUNTIME_DIR", run.path())
        .env("SYSTEMD_COLORS", "0")
        .output();
    match output {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("SKIPPED: systemd-analyze is not installed");
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
