//! The life of the service under a real systemd: installed as `docs/installation.md` says, started by its
//! socket, killed, hung, failed, drained, stopped.
//!
//! A systemd of its own is booted over the machine's programs; see `systemd_boot/guest.rs`. That needs
//! root, namespaces, overlayfs, a cgroup2 tree and systemd below /usr; without them it is skipped.

mod callers;
mod guest;
mod installed;
mod models;
mod of_user;
mod package;
mod packaged;
mod page;
use crate::server;
mod skills;
use crate::workspace;

use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use guest::Guest;
use installed::{ACTIVATED, Installed, LISTING, SERVICE, SOCKET, STATE, USER, WORKSPACE};
use workspace::{Workspace, eventually};

const SKILLS: &str = r#"
  - {id: read, description: d, run: "echo read"}
  - {id: note, description: d, mutating: true, run: 'echo "$WORKERCTL_RUN" >> tracked.txt'}
  - {id: program, description: d, run: "touch /usr/local/share/open/by-skill"}
  - {id: state, description: d, run: "touch /var/lib/workerctl/by-skill"}
  - id: credential
    description: d
    env: [{name: STRIPE_KEY, credential: stripe-key}]
    run: printf '%s' "$STRIPE_KEY" > /var/lib/workerctl/key
  - id: children
    description: d
    run: |
      for _ in 1 2 3; do setsid sleep 100000 & echo $!; done > /var/lib/workerctl/children.new
      mv /var/lib/workerctl/children.new /var/lib/workerctl/children
      wait
  - id: gated
    description: d
    mutating: true
    run: |
      echo "$WORKERCTL_RUN" >> tracked.txt
      touch /var/lib/workerctl/reached
      until [ -e /var/lib/workerctl/pass ]; do sleep 0.1; done
"#;

#[test]
fn the_service_lives_as_its_units_say() {
    let workspace = Workspace::with_skills(SKILLS);
    // What runs when the daemon is asked to stop is cut off after a moment, where nothing else is set.
    let told = "/var/lib/workerctl/told";
    let tell = format!("cat > {told}.new && mv {told}.new {told}");
    let config = format!("drain_grace: 1s\nnotify: {{on_failure: '{tell}'}}\n");
    workspace.write("workerctl.yaml", &config);
    skills::furnish(&workspace);
    workspace.commit_all("configuration");
    let Some(guest) = Guest::boot(&workspace) else {
        return;
    };
    skills::install_agent(&guest);
    let mut installed = Installed::new(&guest, &workspace);
    the_first_connection_starts_it(&mut installed);
    skills_write_where_they_may(&mut installed);
    every_skill_works(&installed);
    a_kill_is_survived(&mut installed);
    a_reload_reads_definitions_again(&mut installed);
    page::is_served_by_the_service(&installed);
    what_takes_too_long_is_cut_off_and_repeated(&mut installed);
    what_runs_may_end_before_a_stop(&mut installed);
    a_second_request_to_stop_waits_for_nothing(&mut installed);
    a_hung_daemon_is_replaced(&installed);
    a_failure_is_tried_again_and_a_mistake_is_not(&installed);
    the_socket_goes_with_its_unit(&installed);
    without_the_socket_unit_it_opens_its_own(&mut installed);
    installed.expect_heard();
    of_user::every_skill_works_for_a_user(&guest);
    guest.halt();
}

#[test]
fn the_services_user_is_heard_beside_a_run_and_no_command_of_it() {
    let workspace = Workspace::without_sandbox(&(SKILLS.to_owned() + &callers::skills()));
    if let Some(guest) = Guest::boot(&workspace) {
        callers::are_heard(&guest, &workspace);
        guest.halt();
    }
}

#[test]
fn a_package_is_installed_upgraded_and_removed() {
    let workspace = Workspace::without_sandbox(SKILLS);
    // What is submitted beside a run has to wait.
    workspace.write("workerctl.yaml", "max_parallel: 1\n");
    workspace.commit_all("configuration");
    if let Some(guest) = Guest::boot(&workspace) {
        packaged::lives_from_install_to_purge(&guest, &workspace);
        guest.halt();
    }
}

fn the_first_connection_starts_it(installed: &mut Installed<'_>) {
    installed.install(&["--socket-unit"]);
    installed.systemctl(&["enable", "--now", SOCKET]);
    assert_eq!(installed.property(SOCKET, "SubState"), "listening");
    assert_eq!(installed.property(SERVICE, "ActiveState"), "inactive");
    let private = (0o600, USER.to_owned());
    assert_eq!(installed.mode_and_owner(ACTIVATED), private);

    let done = installed.workerctl(&["status", "--json"]).expect_code(0);
    assert_eq!(done.value()["condition"], "ready", "{done:?}");
    let states = ["ActiveState", "SubState", "Type", "NotifyAccess"];
    let found = states.map(|name| installed.property(SERVICE, name));
    assert_eq!(found, ["active", "running", "notify", "main"]);
    eventually("it tells systemd what it does", || {
        let text = installed.property(SERVICE, "StatusText");
        // What is due next stands behind it.
        text.starts_with("0 running, 0 queued").then_some(())
    });
    let private = (0o700, USER.to_owned());
    assert_eq!(installed.mode_and_owner(STATE), private);
    assert_eq!(installed.mode_and_owner("/run/workerctl"), private);
}

fn skills_write_where_they_may(installed: &mut Installed<'_>) {
    let (run, code, log) = installed.complete("note");
    assert_eq!(code, 0, "{log}");
    assert!(installed.committed().contains(&run), "{log}");

    // Its mode would let everybody write there.
    let open = "/usr/local/share/open";
    installed
        .guest
        .expect(&["install", "-d", "-m", "0777", open]);
    let (_, code, log) = installed.complete("program");
    assert_ne!(code, 0, "{log}");
    assert!(log.contains("Read-only file system"), "{log}");
    assert!(!installed.guest.path(open).join("by-skill").exists());
    // The service tells somebody, with what its unit lets it do.
    let told = installed.await_file("told");
    assert!(told.contains("\"skill\":\"program\""), "{told}");

    let (_, code, log) = installed.complete("state");
    assert_eq!(code, 0, "{log}");
    installed.await_file("by-skill");
}

/// `LoadCredential=` takes names that no variable can have.
fn a_credential_reaches_its_skill(installed: &Installed<'_>) {
    let run = || installed.workerctl(&["run", "w/credential"]);
    let missing = run().expect_code(6);
    assert!(
        missing.stderr.contains("LoadCredential=stripe-key:"),
        "{missing:?}"
    );
    let source = "/etc/workerctl/stripe-key";
    installed
        .guest
        .expect(&["install", "-d", "-m", "0700", "/etc/workerctl"]);
    installed.guest.write(source, "sk_live_of_root\n");
    installed.settings(&format!("LoadCredential=stripe-key:{source}\n"));
    installed.systemctl(&["restart", SERVICE]);
    run().expect_code(0);
    let key = installed.guest.path(STATE).join("key");
    assert_eq!(std::fs::read_to_string(key).unwrap(), "sk_live_of_root");
}

/// The examples, and outputs of every type, with the `PATH` that the documentation tells of.
fn every_skill_works(installed: &Installed<'_>) {
    let service = skills::Service {
        workerctl: &|arguments| installed.workerctl(arguments),
        workspace: &installed.guest.path(WORKSPACE),
        folder: &format!("{WORKSPACE}/workers"),
    };
    service.run_all();
    service.expect_documented_path();
    assert_eq!(service.failing_in_engine(), []);
    installed.settings("Environment=PATH=/opt/tools:/usr/bin:/bin\n");
    installed.systemctl(&["restart", SERVICE]);
    assert_eq!(service.path(), "/opt/tools:/usr/bin:/bin");
    a_credential_reaches_its_skill(installed);
    let drop_in = "/etc/systemd/system/workerctl.service.d/private.conf";
    service.containers_come_with_the_drop_in(|text| {
        installed.guest.write(drop_in, text);
        installed.systemctl(&["daemon-reload"]);
        installed.systemctl(&["restart", SERVICE]);
    });
    std::fs::remove_file(installed.guest.path(drop_in)).ok();
    the_daemon_says_what_its_unit_forbids(installed, &service);
    // A refused call may be got over without a word: with this it kills whoever makes it.
    installed.settings("SystemCallErrorNumber=kill\n");
    installed.systemctl(&["restart", SERVICE]);
    let unharmed = installed.main_process();
    service.run_all();
    assert_eq!(installed.main_process(), unharmed);
    models::execute_instructions(installed);
    installed.settings("");
    installed.systemctl(&["restart", SERVICE]);
}

/// What this command's own process could do does not count.
fn the_daemon_says_what_its_unit_forbids(installed: &Installed<'_>, service: &skills::Service<'_>) {
    let forbidden = |settings: &str| {
        installed.settings(settings);
        installed.systemctl(&["restart", SERVICE]);
        service.failing_in_engine()
    };
    let read_only = forbidden("ReadWritePaths=\nReadWritePaths=-/srv/workerctl/.workerctl/lock\n");
    let messages: Vec<_> = read_only
        .iter()
        .map(|(message, _)| message.as_str())
        .collect();
    assert_eq!(messages.len(), 2, "{read_only:?}");
    assert!(messages[0].starts_with("outputs cannot be written in /srv/workerctl: "));
    assert!(messages[1].starts_with("commits cannot be written to /srv/workerctl/.git: "));
    let line = "add `ReadWritePaths=/srv/workerctl";
    assert!(
        read_only.iter().all(|(_, hint)| hint.contains(line)),
        "{read_only:?}"
    );

    let filtered = forbidden("SystemCallFilter=~pidfd_open\n");
    let start = "commands cannot be started and marked in /srv/workerctl: ";
    assert!(
        filtered.len() == 1 && filtered[0].0.starts_with(start),
        "{filtered:?}"
    );
    assert!(
        filtered[0].1.contains("`SystemCallFilter=`"),
        "{filtered:?}"
    );
}

fn a_kill_is_survived(installed: &mut Installed<'_>) {
    installed.submit("children");
    let children = installed.await_file("children");
    assert_eq!(living(installed, &children), 3);
    // The service cannot see processes of root, and knows all the same that this one is no command of the run.
    let root = installed.workerctl_as("root", &["--socket", ACTIVATED, "status"]);
    root.expect_code(0);
    let former = installed.main_process();
    let over = AtomicBool::new(false);
    let socket = installed.guest.path(ACTIVATED);
    std::thread::scope(|scope| {
        let connecting = scope.spawn(|| {
            let mut connections = 0;
            while !over.load(Ordering::Relaxed) {
                UnixStream::connect(&socket).unwrap();
                connections += 1;
                std::thread::sleep(Duration::from_millis(10));
            }
            connections
        });
        installed.signal("KILL");
        // A command that comes now waits for the next daemon.
        installed.submit("read");
        installed.await_other_than(former);
        over.store(true, Ordering::Relaxed);
        let connections: u32 = connecting.join().unwrap();
        println!("{connections} connections while it was killed and started again, none refused");
    });
    assert_eq!(installed.restarts(), 1);
    assert_eq!(living(installed, &children), 0);
    installed.await_log("status=9/KILL");
    installed.expect_all_known();
}

/// How many of these processes live.
fn living(installed: &Installed<'_>, processes: &str) -> usize {
    let lives = |process: &&str| {
        let path = installed.guest.path(&format!("/proc/{process}/stat"));
        let stat = std::fs::read_to_string(path).unwrap_or_default();
        // Behind the name: its state, where Z is one that is dead.
        let state = stat.rsplit(") ").next().unwrap_or_default();
        !state.is_empty() && !state.starts_with(['Z', 'X'])
    };
    processes.split_whitespace().filter(lives).count()
}

fn a_reload_reads_definitions_again(installed: &mut Installed<'_>) {
    let former = installed.main_process();
    let added = "worker: {id: added, name: added, type: OpsWorker}\nskills:\n  \
                 - {id: late, description: d, run: \"echo late\"}\n";
    let place = format!("{WORKSPACE}/workers/added/worker.yaml");
    installed.guest.write(&place, added);
    let owned = format!("{WORKSPACE}/workers");
    installed
        .guest
        .expect(&["chown", "-R", "workerctl:workerctl", &owned]);
    installed.systemctl(&["reload", SERVICE]);
    installed.await_log("definitions were read again workers=8");
    assert_eq!(installed.main_process(), former);
    installed.await_property("SubState", "running");
    let (_, code, log) = installed.complete("late");
    assert_eq!(code, 0, "{log}");
}

/// A run that may be repeated goes on with the next daemon.
fn what_takes_too_long_is_cut_off_and_repeated(installed: &mut Installed<'_>) {
    // The attempt that began after the kill.
    let children = installed.await_file("children");
    installed.systemctl(&["stop", SERVICE]);
    installed.expect_stopped();
    assert_eq!(living(installed, &children), 0);

    // Asking starts the service again, and the run with it.
    installed.workerctl(&["status"]).expect_code(0);
    let children = installed.await_file("children");
    assert_eq!(living(installed, &children), 3);
    let status = installed.workerctl(&["status", "--json"]).value();
    let run = status["active"][0]["run"].as_str().unwrap();
    installed
        .workerctl(&["cancel", "--now", run])
        .expect_code(0);
    assert_ne!(installed.workerctl(&["wait", run]).code, 0);
    assert_eq!(living(installed, &children), 0);
}

fn what_runs_may_end_before_a_stop(installed: &mut Installed<'_>) {
    // The default leaves what runs a minute; systemd is asked for the time.
    let configuration = format!("{WORKSPACE}/workerctl.yaml");
    installed.guest.write(&configuration, "");
    installed.settings("TimeoutStopSec=5s\n");
    installed.systemctl(&["restart", SERVICE]);
    let run = installed.submit("gated");
    installed.await_file("reached");
    installed.systemctl(&["stop", "--no-block", SERVICE]);
    installed.await_draining();
    let end = Instant::now() + Duration::from_secs(7);
    while Instant::now() < end {
        assert_eq!(installed.property(SERVICE, "SubState"), "stop-sigterm");
        std::thread::sleep(Duration::from_millis(200));
    }
    installed.guest.write(&format!("{STATE}/pass"), "");
    installed.expect_stopped();
    assert!(installed.committed().contains(&run));
    assert_eq!(installed.workerctl(&["wait", &run]).code, 0);
}

fn a_second_request_to_stop_waits_for_nothing(installed: &mut Installed<'_>) {
    let run = installed.submit("children");
    let children = installed.await_file("children");
    installed.systemctl(&["stop", "--no-block", SERVICE]);
    installed.await_draining();
    installed.signal("TERM");
    installed.expect_stopped();
    assert_eq!(living(installed, &children), 0);
    let listed = installed
        .workerctl(&["show", &run, "--json"])
        .expect_code(0);
    let outcome = &listed.value()["summary"]["outcome"]["kind"];
    assert_eq!(outcome, "cancelled", "{listed:?}");
    installed.settings("");
}

fn a_hung_daemon_is_replaced(installed: &Installed<'_>) {
    installed.settings("WatchdogSec=3s\nRestartSec=200ms\n");
    installed.systemctl(&["restart", SERVICE]);
    let (former, restarts) = (installed.main_process(), installed.restarts());
    installed.signal("STOP");
    installed.await_other_than(former);
    assert!(installed.restarts() > restarts);
    installed.await_log("status=6/ABRT");
    installed.await_log("result 'watchdog'");
    installed.expect_all_known();
    installed.settings("");
}

fn a_failure_is_tried_again_and_a_mistake_is_not(installed: &Installed<'_>) {
    installed.systemctl(&["stop", SERVICE]);
    installed.expect_stopped();
    // Another engine has the workspace.
    installed.guest.write(
        "/etc/systemd/system/other.service",
        "[Service]\nType=notify\nUser=workerctl\nRuntimeDirectory=other\n\
         Environment=WORKERCTL_STATE_DIR=/var/lib/workerctl WORKERCTL_SOCKET=/run/other/s.sock\n\
         ExecStart=/usr/local/bin/workerctl -C /srv/workerctl daemon\n",
    );
    installed.systemctl(&["daemon-reload"]);
    installed.systemctl(&["start", "other"]);
    installed.systemctl(&["reset-failed", SERVICE]);
    installed.systemctl(&["start", "--no-block", SERVICE]);
    eventually("it is tried again", || {
        (installed.restarts() > 0).then_some(())
    });
    installed.await_log("status=8");
    installed.systemctl(&["stop", "other"]);
    installed.await_other_than(0);
    installed.systemctl(&["stop", SERVICE]);

    // A mistake does not get better by trying again.
    installed.settings("Environment=WORKERCTL_LOG_FORMAT=none\n");
    installed.systemctl(&["reset-failed", SERVICE]);
    let start = installed.guest.run(&["systemctl", "start", SERVICE]);
    assert_ne!(start.code, 0, "{start:?}");
    assert_eq!(installed.property(SERVICE, "ActiveState"), "failed");
    assert_eq!(installed.property(SERVICE, "ExecMainStatus"), "2");
    installed.settings("");
    installed.systemctl(&["reset-failed", SERVICE]);
}

fn the_socket_goes_with_its_unit(installed: &Installed<'_>) {
    installed.systemctl(&["start", SERVICE]);
    installed.expect_all_known();
    installed.systemctl(&["stop", SERVICE]);
    installed.expect_stopped();
    assert!(installed.guest.path(ACTIVATED).exists());
    installed.systemctl(&["disable", "--now", SOCKET]);
    assert!(!installed.guest.path(ACTIVATED).exists());
}

fn without_the_socket_unit_it_opens_its_own(installed: &mut Installed<'_>) {
    let own = "/run/workerctl/workerctl.sock";
    installed.systemctl(&["enable", "--now", SERVICE]);
    let private = |mode: u32| (mode, USER.to_owned());
    assert_eq!(installed.mode_and_owner(own), private(0o600));
    assert_eq!(installed.mode_and_owner("/run/workerctl"), private(0o700));
    // Commands find it by themselves, those of root as well; nobody else may ask.
    installed.expect_all_in(installed.workerctl_as(USER, &LISTING));
    installed.expect_all_in(installed.workerctl_as("root", &LISTING));
    let stranger = installed.workerctl_as("nobody", &["--socket", own, "status", "--json"]);
    assert_eq!(stranger.refusal(), "not_permitted");
    others_are_let_in_by_the_line_of_the_manual(installed, own);
    let former = installed.main_process();
    installed.signal("KILL");
    installed.await_other_than(former);
    installed.expect_all_in(installed.workerctl_as(USER, &LISTING));

    // Drained it stays stopped.
    installed.workerctl_as(USER, &["drain"]).expect_code(0);
    installed.expect_stopped();
    assert!(!installed.guest.path("/run/workerctl").exists());
}

fn others_are_let_in_by_the_line_of_the_manual(installed: &Installed<'_>, socket: &str) {
    let configuration = format!("{WORKSPACE}/workerctl.yaml");
    let access = "access: {read: {users: [nobody]}}\n";
    installed.guest.write(&configuration, access);
    installed.settings("RuntimeDirectoryMode=0755\n");
    installed.systemctl(&["restart", SERVICE]);
    let ask = |arguments: &[&str]| {
        installed.workerctl_as("nobody", &[&["--socket", socket], arguments].concat())
    };
    ask(&["status"]).expect_code(0);
    assert_eq!(ask(&["drain", "--json"]).refusal(), "role");
    installed.guest.write(&configuration, "");
    installed.settings("");
    installed.systemctl(&["restart", SERVICE]);
    assert_eq!(ask(&["status", "--json"]).refusal(), "not_permitted");
}
