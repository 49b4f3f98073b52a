//! The life of the Debian package on a machine: installed, used, upgraded under load, removed, purged, back again.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::systemd_boot::guest::Guest;
use crate::systemd_boot::installed::{Installed, SERVICE, STATE, USER, WORKSPACE};
use crate::systemd_boot::of_user;
use crate::systemd_boot::package::Package;
use crate::workspace::{Workspace, skip};

/// Where dpkg keeps what is installed.
const DPKG: &str = "/var/lib/dpkg";
const PROGRAM: &str = "/usr/bin/workerctl";

/// Goes through it, where the machine has dpkg.
pub(crate) fn lives_from_install_to_purge(guest: &Guest<'_>, source: &Workspace) {
    for tool in [
        "/usr/bin/dpkg",
        "/usr/bin/dpkg-deb",
        "/usr/bin/deb-systemd-invoke",
    ] {
        if !Path::new(tool).exists() {
            skip(&format!("there is no {tool}"));
            return;
        }
    }
    let place = xtest::tempdir();
    let package = Package::stage(place.path());
    prepare_dpkg(guest, &package);
    let mut installed = Installed::by_package(guest);

    it_is_installed(&installed, &package);
    it_serves_what_is_cloned(&mut installed, source);
    an_upgrade_loses_and_repeats_no_run(&mut installed, &package);
    of_user::the_unit_of_the_package_works(guest);
    an_upgrade_whose_daemon_does_not_start_says_so(&installed);
    what_people_have_outlives_it(&installed);
    a_workspace_that_is_there_is_served_at_once(&installed);
}

/// An empty database, but for what the package needs: programs are the machine's.
fn prepare_dpkg(guest: &Guest<'_>, package: &Package) {
    for directory in ["info", "updates", "triggers"] {
        fs::create_dir_all(guest.path(&format!("{DPKG}/{directory}"))).unwrap();
    }
    // Images of containers forbid packages to start services.
    guest.expect(&["rm", "-f", "/usr/sbin/policy-rc.d"]);
    // dpkg tells of a dependency without a list of its files.
    let all = package.dependencies();
    let names: BTreeSet<&str> = all.iter().filter_map(|one| one.split(' ').next()).collect();
    for name in &names {
        guest.write(&format!("{DPKG}/info/{name}.list"), "");
    }
    let stanza = |name: &str| {
        let rest = "Maintainer: m\nArchitecture: all\nVersion: 999\nDescription: d";
        format!("Package: {name}\nStatus: install ok installed\n{rest}\n\n")
    };
    let status: String = names.into_iter().map(stanza).collect();
    guest.write(&format!("{DPKG}/status"), &status);
}

/// Has the guest see a package; answers where.
fn handed(guest: &Guest<'_>, package: &Path) -> String {
    let inside = "/tmp/workerctl.deb";
    fs::copy(package, guest.path(inside)).unwrap();
    inside.to_owned()
}

fn dpkg(guest: &Guest<'_>, arguments: &[&str]) -> String {
    let done = guest.run(&[&["dpkg"], arguments].concat());
    assert_eq!(done.code, 0, "{arguments:?}: {done:?}");
    // The account and the link that enables are told of, and directories that others have files in.
    let expected = [
        "Creating ",
        "Created symlink ",
        "dpkg: warning: while removing workerctl, ",
    ];
    let is_expected = |line: &&str| expected.iter().any(|start| line.starts_with(start));
    let complaint = done.stderr.lines().find(|line| !is_expected(line));
    assert_eq!(complaint, None, "{arguments:?}");
    done.stdout
}

fn it_is_installed(installed: &Installed<'_>, package: &Package) {
    let guest = installed.guest;
    let said = dpkg(guest, &["-i", &handed(guest, &package.build(1))]);
    assert!(
        said.contains("there is no workspace in /srv/workerctl yet"),
        "{said}"
    );
    for (_, path, _) in package.files() {
        assert!(guest.path(&format!("/{path}")).is_file(), "{path}");
    }
    let unit = fs::read_to_string(guest.path("/usr/lib/systemd/system/workerctl.service")).unwrap();
    let shipped = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/systemd/workerctl.service"
    ));
    assert_eq!(
        unit,
        shipped.unwrap().replace("/usr/local/bin/", "/usr/bin/")
    );
    assert_eq!(installed.property(SERVICE, "UnitFileState"), "disabled");
    assert_eq!(installed.property(SERVICE, "ActiveState"), "inactive");
    assert_eq!(installed.mode_and_owner(STATE), (0o700, USER.to_owned()));
    assert_eq!(
        installed.mode_and_owner(WORKSPACE),
        (0o750, USER.to_owned())
    );
    let account = guest.expect(&["getent", "passwd", USER]);
    assert!(
        account
            .trim_end()
            .ends_with(":/var/lib/workerctl:/usr/sbin/nologin"),
        "{account}"
    );
    guest.expect(&[
        "bash",
        "-n",
        "/usr/share/bash-completion/completions/workerctl",
    ]);
    let version = guest.expect(&["workerctl", "version"]);
    assert!(version.contains(env!("CARGO_PKG_VERSION")), "{version}");
    let doctor = guest.run(&["workerctl", "doctor", "--json"]).expect_code(1);
    let findings = doctor.value()["findings"].clone();
    let of = |name: &str| {
        let mut all = findings.as_array().unwrap().iter();
        all.find(|one| one["name"] == name).unwrap().clone()
    };
    assert_eq!(of("workspace")["state"], "error", "{findings}");
    let unit = of("unit");
    let serves = "serves /srv/workerctl, where there is no workspace";
    assert!(
        unit["message"].as_str().unwrap().ends_with(serves),
        "{unit}"
    );
    let clone = "sudo -u workerctl git clone REPOSITORY /srv/workerctl";
    assert!(unit["hints"][0].as_str().unwrap().contains(clone), "{unit}");
}

/// As `docs/installation.md` goes on; nothing of the unit is edited.
fn it_serves_what_is_cloned(installed: &mut Installed<'_>, source: &Workspace) {
    installed.clone_workspace(source);
    let doctor = installed.workerctl(&["doctor"]).stdout;
    assert!(
        doctor.contains("workerctl.service is not enabled"),
        "{doctor}"
    );
    installed.systemctl(&["enable", "--now", SERVICE]);
    assert_eq!(installed.property(SERVICE, "ActiveState"), "active");
    let (run, code, log) = installed.complete("note");
    assert_eq!(code, 0, "{log}");
    assert!(installed.committed().contains(&run), "{log}");
    let doctor = installed.workerctl(&["doctor"]).expect_code(0);
    assert!(!doctor.stdout.contains("not enabled"), "{doctor:?}");
}

fn an_upgrade_loses_and_repeats_no_run(installed: &mut Installed<'_>, package: &Package) {
    let former = installed.main_process();
    let guest = installed.guest;
    let mut runs = vec![installed.submit("gated")];
    installed.await_file("reached");
    for _ in 0..4 {
        runs.push(installed.submit("note"));
    }
    let status = installed.workerctl(&["status", "--json"]).value();
    assert_eq!(
        (&status["running"], &status["queued"]),
        (&1.into(), &4.into()),
        "{status}"
    );

    let upgrade = guest.start(&["dpkg", "-i", &handed(guest, &package.build(2))]);
    // The new program is there, and the former one lets its run end.
    installed.await_draining();
    assert_eq!(installed.main_process(), former);
    let program = fs::read_link(guest.path(&format!("/proc/{former}/exe"))).unwrap();
    assert_eq!(program, PathBuf::from(format!("{PROGRAM} (deleted)")));
    guest.write(&format!("{STATE}/pass"), "");
    let upgraded = upgrade.end().expect_code(0);
    assert_eq!(upgraded.stderr, "");
    let version = guest.expect(&[
        "dpkg-query",
        "-W",
        "-f",
        "${Version} ${db:Status-Status}",
        "workerctl",
    ]);
    assert!(version.ends_with("-2 installed"), "{version}");
    assert_eq!(installed.property(SERVICE, "ActiveState"), "active");
    assert_ne!(installed.main_process(), former);

    for run in &runs {
        installed.workerctl(&["wait", run]).expect_code(0);
    }
    let tracked = fs::read_to_string(guest.path(&format!("{WORKSPACE}/tracked.txt"))).unwrap();
    let committed = installed.committed();
    for run in &runs {
        assert_eq!(tracked.matches(run.as_str()).count(), 1, "{run}: {tracked}");
        let commits = committed.iter().filter(|one| *one == run).count();
        assert_eq!(commits, 1, "{run}: {committed:?}");
    }
    installed.expect_all_known();
}

fn an_upgrade_whose_daemon_does_not_start_says_so(installed: &Installed<'_>) {
    installed.settings("Environment=WORKERCTL_LOG_FORMAT=none\n");
    let done = installed.guest.run(&["dpkg", "-i", "/tmp/workerctl.deb"]);
    let done = done.expect_code(0);
    let told = "workerctl.service does not start: `systemctl status workerctl` says why";
    assert!(done.stderr.contains(told), "{done:?}");
    installed.settings("");
    installed.systemctl(&["reset-failed", SERVICE]);
    installed.systemctl(&["start", SERVICE]);
    installed.expect_all_known();
}

fn what_people_have_outlives_it(installed: &Installed<'_>) {
    let guest = installed.guest;
    let before = kept(guest);
    for option in ["-r", "-P"] {
        dpkg(guest, &[option, "workerctl"]);
        assert_eq!(installed.property(SERVICE, "LoadState"), "not-found");
        assert!(!guest.path(PROGRAM).exists());
        assert_eq!(kept(guest), before, "{option}");
    }
    installed.expect_ended_in_order();
    let link = "/etc/systemd/system/multi-user.target.wants/workerctl.service";
    assert!(
        fs::symlink_metadata(guest.path(link)).is_err(),
        "it leads nowhere"
    );
    guest.expect(&["id", USER]);
}

/// What must stay: the branch, the store, its files.
fn kept(guest: &Guest<'_>) -> (String, Vec<String>) {
    let commit = guest.run_as(USER, &["git", "-C", WORKSPACE, "rev-parse", "HEAD"]);
    let store = guest.expect(&["find", &format!("{STATE}/store"), "-type", "f"]);
    assert!(!store.is_empty());
    let mut files: Vec<String> = store.lines().map(str::to_owned).collect();
    files.sort();
    (commit.expect_code(0).stdout, files)
}

fn a_workspace_that_is_there_is_served_at_once(installed: &Installed<'_>) {
    let said = dpkg(installed.guest, &["-i", "/tmp/workerctl.deb"]);
    assert!(!said.contains("no workspace"), "{said}");
    assert_eq!(installed.property(SERVICE, "UnitFileState"), "enabled");
    assert_eq!(installed.property(SERVICE, "ActiveState"), "active");
    installed.expect_all_known();
}
