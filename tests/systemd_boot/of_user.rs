//! The service of one user, under a service manager of that user.

use crate::systemd_boot::guest::Guest;
use crate::systemd_boot::page;
use crate::systemd_boot::skills::Service;
use crate::workspace::{Done, eventually};

const USER: &str = "ada";
const HOME: &str = "/home/ada";
const RUNTIME: &str = "/run/user/1000";
/// What systemd would unquote, split or expand, if the unit did not escape it.
const WORKSPACE: &str = "/home/ada/work \"space\" 100%h";
const SERVICE: &str = "workerctl.service";

/// What logind and PAM would start for a user who lingers.
const MANAGER: &str = "[Service]\nType=notify\nUser=ada\nDelegate=pids memory cpu\nKillMode=mixed\n\
    RuntimeDirectory=user/1000\nRuntimeDirectoryMode=0700\n\
    Environment=XDG_RUNTIME_DIR=/run/user/1000\nExecStart=/usr/lib/systemd/systemd --user\n";

/// Installs the service of a user and runs every skill in it.
pub(crate) fn every_skill_works_for_a_user(guest: &Guest<'_>) {
    begin(guest, WORKSPACE);
    let run = |arguments: &[&str]| as_user(guest, arguments);
    let systemctl = |arguments: &[&str]| {
        run(&[&["systemctl", "--user"], arguments].concat())
            .expect_code(0)
            .stdout
    };
    let workerctl =
        |arguments: &[&str]| run(&[&["workerctl", "-C", WORKSPACE], arguments].concat());
    let next = workerctl(&["unit", "install", "--user"]).expect_code(0);
    assert!(
        next.stdout.contains("systemctl --user daemon-reload"),
        "{next:?}"
    );
    systemctl(&["daemon-reload"]);
    systemctl(&["enable", "--now", "workerctl"]);
    let show = |name: &str| systemctl(&["show", "--value", "-p", name, SERVICE]);
    assert_eq!(show("WorkingDirectory").trim_end(), WORKSPACE);
    let service = Service {
        workerctl: &workerctl,
        workspace: &guest.path(WORKSPACE),
        folder: "/etc/systemd/system",
    };
    let status = workerctl(&["status", "--json"]).expect_code(0).value();
    assert_eq!(status["host"], "daemon", "{status}");
    service.run_all();
    service.expect_documented_path();
    assert_eq!(service.failing_in_engine(), []);
    service.containers_come_with_the_drop_in(|text| {
        let place = format!("{HOME}/.config/systemd/user/workerctl.service.d");
        run(&["mkdir", "-p", &place]).expect_code(0);
        guest.write(&format!("{place}/private.conf"), text);
        systemctl(&["daemon-reload"]);
        systemctl(&["restart", "workerctl"]);
    });
    let configuration = format!("{WORKSPACE}/workerctl.yaml");
    let former = guest.expect(&["cat", &configuration]);
    guest.write(&configuration, &page::configured(&former, 8_931));
    systemctl(&["restart", "workerctl"]);
    page::is_there(guest, 8_931);
    systemctl(&["stop", SERVICE]);
    eventually("it has ended in order", || {
        let ended = [show("ActiveState"), show("Result"), show("ExecMainStatus")];
        (ended.map(|value| value.trim().to_owned()) == ["inactive", "success", "0"]).then_some(())
    });
    guest.expect(&["systemctl", "stop", "user-manager"]);
}

/// Makes the user, with a workspace of theirs and a service manager that runs.
fn begin(guest: &Guest<'_>, workspace: &str) {
    guest.expect(&["useradd", "--uid", "1000", "--home-dir", HOME, USER]);
    guest.expect(&["install", "-d", "-o", USER, "-g", USER, HOME]);
    guest.write("/etc/systemd/system/user-manager.service", MANAGER);
    guest.expect(&["systemctl", "daemon-reload"]);
    guest.expect(&["systemctl", "start", "user-manager"]);
    as_user(guest, &["git", "clone", "-q", "/tmp/source", workspace]).expect_code(0);
    for (key, value) in [("user.name", "Ada"), ("user.email", "ada@example.com")] {
        as_user(guest, &["git", "-C", workspace, "config", key, value]).expect_code(0);
    }
}

/// Has a user start the unit that a package brings for all users; it serves `~/workerctl`, and nothing is written for it.
pub(crate) fn the_unit_of_the_package_works(guest: &Guest<'_>) {
    let workspace = format!("{HOME}/workerctl");
    begin(guest, &workspace);
    let run = |arguments: &[&str]| as_user(guest, arguments).expect_code(0);
    run(&["systemctl", "--user", "enable", "--now", "workerctl"]);
    let workerctl =
        |arguments: &[&str]| run(&[&["workerctl", "-C", &workspace], arguments].concat());
    assert_eq!(workerctl(&["status", "--json"]).value()["host"], "daemon");
    workerctl(&["run", "note"]);
    let doctor = workerctl(&["doctor"]).stdout;
    assert!(doctor.contains("`loginctl enable-linger`"), "{doctor}");
    run(&["systemctl", "--user", "disable", "--now", "workerctl"]);
    guest.expect(&["systemctl", "stop", "user-manager"]);
}

fn as_user(guest: &Guest<'_>, arguments: &[&str]) -> Done {
    let home = format!("HOME={HOME}");
    let runtime = format!("XDG_RUNTIME_DIR={RUNTIME}");
    guest.run_as(USER, &[&["env", &home, &runtime], arguments].concat())
}
