//! What a careless person, or a careless skill, does to the files of the program.

use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::workspace::daemon::Daemon;
use crate::workspace::disk::Disk;
use crate::workspace::{PATIENCE, Workspace, eventually};

const SKILLS: &str = r#"
  - {id: good, description: d, run: "true"}
  - {id: slow, description: d, timeout: 3s, run: "until [ -f workspace ]; do rm -rf workspace; touch workspace; done; sleep 60"}
  - {id: lines, description: d, run: "yes | head -c 400000"}
  - {id: number, description: d, run: 'test "{n}" = 99999999999999999999999', interface: {inputs: [{name: n, type: number}]}}
  - {id: bad, description: d, run: "echo because >&2; exit 3"}
"#;

fn pipe(path: &std::path::Path) {
    let made = Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
}

#[test]
fn an_engine_whose_state_was_deleted_acknowledges_nothing_and_says_so() {
    let workspace = Workspace::with_skills(SKILLS);
    let mut daemon = Daemon::start(&workspace);
    std::fs::remove_dir_all(workspace.state()).unwrap();
    let doctor = workspace.run(&["doctor"]).expect_code(1);
    assert!(doctor.stdout.contains("removed or replaced"), "{doctor:?}");
    let done = workspace.run(&["run", "--no-wait", "good"]);
    assert!(done.code != 0 && done.stdout.is_empty(), "{done:?}");
    eventually("the end of the daemon", || (!daemon.lives()).then_some(()));
    let log = daemon.log();
    assert!(log.contains("is gone"), "{log}");
    workspace.run(&["run", "good"]).expect_code(6);
    workspace.run(&["store", "init"]).expect_code(0);
    workspace.run(&["run", "good"]).expect_code(0);
}

#[test]
fn a_skill_that_deletes_the_state_is_not_told_as_done() {
    let workspace = Workspace::with_skills(SKILLS);
    let state = workspace.state().display();
    let skill =
        format!("  - {{id: vandal, description: d, sandbox: off, run: \"rm -rf '{state}'\"}}\n");
    workspace.worker("v", &skill);
    let done = workspace.run(&["run", "v/vandal", "--json"]).expect_code(1);
    assert_eq!(done.refusal(), "state_gone");
}

/// The socket of the engine of a workspace.
fn socket_of(workspace: &Workspace) -> PathBuf {
    let lock = workspace.read(".workerctl/lock").unwrap();
    let lock: serde_json::Value = serde_json::from_str(&lock).unwrap();
    PathBuf::from(lock["socket"].as_str().unwrap())
}

#[test]
fn a_daemon_whose_socket_was_deleted_is_named_with_its_process() {
    let workspace = Workspace::with_skills(SKILLS);
    // Its first look around comes after 30 s.
    let daemon = Daemon::start(&workspace);
    let status = workspace.json(&["status"]);
    std::fs::remove_file(socket_of(&workspace)).unwrap();
    let process = format!("process {}", status["pid"]);
    let no_wait = ["run", "--no-wait", "good"];
    for (command, code) in [(&["drain"][..], 7), (&no_wait, 7), (&["status"], 8)] {
        let told = workspace.run(command).expect_code(code);
        assert!(!told.stderr.contains("in this process"), "{told:?}");
        assert!(told.stderr.contains(&process), "{told:?}");
        assert!(!told.stderr.contains("starts one"), "{told:?}");
        assert!(
            !told.stderr.contains("`workerctl daemon drain`"),
            "{told:?}"
        );
    }
    daemon.stop();
}

#[test]
fn a_socket_that_was_removed_is_bound_again() {
    let workspace = Workspace::with_skills(SKILLS);
    // It looks around twice in a watchdog's time.
    let daemon = Daemon::start_with(&workspace, &[("WATCHDOG_USEC", "2000000")]);
    let pid = workspace.json(&["status"])["pid"].clone();
    let socket = socket_of(&workspace);
    std::fs::remove_file(&socket).unwrap();
    std::fs::write(&socket, "in the way").unwrap();
    eventually("the loss in the log", || {
        daemon.log().contains("no command reaches").then_some(())
    });
    let directory = socket.parent().unwrap();
    for lost in [1, 2] {
        std::fs::remove_dir_all(directory).unwrap();
        eventually("the socket is there again", || {
            let bound = daemon.log().matches("it was bound again").count();
            (bound == lost).then_some(())
        });
        assert_eq!(workspace.json(&["status"])["pid"], pid);
        assert_eq!(workspace.run(&["run", "good"]).code, 0);
    }
    daemon.stop();
    assert!(!socket.exists());
}

#[test]
fn a_socket_of_systemd_that_was_removed_is_reported() {
    let workspace = Workspace::with_skills(SKILLS);
    let socket = workspace.home.join("passed.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let mut command = workspace.program("sh");
    let script = "exec 3<&0 0</dev/null; export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$@\"";
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_workerctl"), "-C"]);
    command.arg(&workspace.root).arg("--state-dir");
    command.arg(workspace.state()).arg("daemon");
    command.env("WATCHDOG_USEC", "2000000");
    command.stdin(OwnedFd::from(listener));
    let daemon = Daemon::start_by(&workspace, command);
    std::fs::remove_file(&socket).unwrap();
    eventually("the loss in the log", || {
        let log = daemon.log();
        let is_told = log.contains("no command reaches") && log.contains("restart its socket unit");
        is_told.then_some(())
    });
    assert!(!socket.exists());
    daemon.stop();
}

#[test]
fn a_state_directory_that_cannot_be_used_is_named() {
    let workspace = Workspace::with_skills(SKILLS);
    let file = workspace.home.join("file");
    std::fs::write(&file, "").unwrap();
    for place in [
        file.clone(),
        file.join("below"),
        PathBuf::from("/proc/none"),
    ] {
        for arguments in [&["daemon"][..], &["status"], &["run", "good"]] {
            let mut command = elsewhere(&workspace, arguments);
            command.arg("--state-dir").arg(&place);
            // The socket would lie in the state directory.
            command.env_remove("XDG_RUNTIME_DIR");
            let done = workspace.start(&mut command).end();
            let named = format!("the state directory `{}` cannot be used", place.display());
            assert!(done.stderr.contains(&named), "{done:?}");
            assert!(!done.stderr.contains("socket"), "{done:?}");
            assert!(done.stderr.contains("`--state-dir`"), "{done:?}");
        }
    }
}

/// A daemon that a shell finds by the workspace's lock alone, as one under systemd.
fn daemon_apart(workspace: &Workspace, more: &[(&str, &str)]) -> Daemon {
    let runtime = workspace.home.join("runtime");
    std::fs::create_dir(&runtime).unwrap();
    let runtime = ("RUNTIME_DIRECTORY", runtime.to_str().unwrap());
    Daemon::start_with(workspace, &[more, &[runtime]].concat())
}

/// The program with the state directory that nobody asked for.
pub(crate) fn elsewhere(workspace: &Workspace, arguments: &[&str]) -> Command {
    let mut command = workspace.program(env!("CARGO_BIN_EXE_workerctl"));
    command.args(arguments);
    command
}

#[test]
fn a_workspace_that_was_cleaned_under_a_daemon_is_served_by_nobody_else() {
    let workspace = Workspace::with_skills(SKILLS);
    let mut daemon = daemon_apart(&workspace, &[]);
    workspace.git(&["clean", "-xfdq"]);
    assert_eq!(workspace.read(".workerctl/lock"), None);
    let table: [(&[&str], i32); 6] = [
        (&["daemon"], 8),
        (&["run", "good"], 8),
        (&["status"], 8),
        (&["run", "--no-wait", "good"], 7),
        (&["drain"], 7),
        (&["doctor"], 1),
    ];
    let started =
        table.map(|(arguments, _)| workspace.start(&mut elsewhere(&workspace, arguments)));
    for ((arguments, code), started) in table.into_iter().zip(started) {
        let done = started.end().expect_code(code);
        let told = format!("{}{}", done.stdout, done.stderr);
        assert!(told.contains("locked"), "{arguments:?}: {told}");
        assert!(told.contains("lslocks"), "{arguments:?}: {told}");
        assert!(!told.contains("starts one"), "{arguments:?}: {told}");
        assert!(!told.contains("drain`"), "{arguments:?}: {told}");
    }
    assert!(!workspace.root.join("state").exists());
    assert!(daemon.lives());
    daemon.stop();
}

#[test]
fn a_daemon_writes_the_lock_of_its_workspace_anew_and_is_found_by_it() {
    let workspace = Workspace::with_skills(SKILLS);
    // It looks around twice in a watchdog's time.
    let daemon = daemon_apart(&workspace, &[("WATCHDOG_USEC", "2000000")]);
    let lock = workspace.read(".workerctl/lock");
    assert!(lock.is_some());
    workspace.git(&["clean", "-xfdq"]);
    eventually("the lock is created again", || {
        (workspace.read(".workerctl/lock") == lock).then_some(())
    });
    let status = workspace.start(&mut elsewhere(&workspace, &["status", "--json"]));
    let status = status.end().expect_code(0).value();
    let pid = daemon.pid().as_raw_nonzero().get();
    assert_eq!(status["pid"], pid, "{status}");
    let told = "removed or replaced, for example by `git clean -x`";
    eventually("the log tells of it", || {
        daemon.log().contains(told).then_some(())
    });
    assert_eq!(workspace.git(&["status", "--porcelain"]), "");
    daemon.stop();
}

#[test]
fn how_a_run_ended_is_told_though_its_thread_cannot_be_read() {
    let workspace = Workspace::without_sandbox(SKILLS);
    workspace.run(&["run", "slow"]).expect_code(124);
    std::fs::remove_file(workspace.root.join("workspace")).unwrap();
    let daemon = Daemon::start(&workspace);
    let submitted = workspace.json(&["run", "--no-wait", "slow"]);
    let run = submitted["run"].as_str().unwrap();
    eventually("the thread's loss", || {
        workspace.root.join("workspace").is_file().then_some(())
    });
    workspace.run(&["wait", run]).expect_code(124);
    daemon.stop();
}

#[test]
fn the_bound_of_output_holds_for_what_is_written() {
    let workspace = Workspace::with_skills(SKILLS);
    workspace.write("workerctl.yaml", "output_bytes_max: 65536\n");
    let began = Instant::now();
    let done = workspace.run(&["run", "--json", "lines"]).expect_code(0);
    let took = began.elapsed();
    assert!(took < PATIENCE, "{took:?}");
    let log = done.value()["log_path"].as_str().unwrap().to_owned();
    let written = std::fs::metadata(&log).unwrap().len();
    assert!(written < 6 * 1024 * 1024, "{written}");
    let lines = std::fs::read_to_string(&log).unwrap().lines().count();
    assert!(lines > 32_700, "{lines}");
}

#[test]
fn what_stands_in_place_of_our_files_is_found_out_and_waited_for_by_nobody() {
    let table: [(&str, bool); 6] = [
        (".workerctl/lock", false),
        ("state/scratch", true),
        ("state/live", true),
        ("state/secrets", true),
        ("state/store/witness", true),
        ("state/store/db/conf", true),
    ];
    for (path, as_pipe) in table {
        let workspace = Workspace::with_skills(SKILLS);
        workspace.run(&["run", "good"]).expect_code(0);
        let place = match path.strip_prefix("state/") {
            Some(below) => workspace.state().join(below),
            None => workspace.root.join(path),
        };
        let _ = std::fs::remove_dir_all(&place);
        let _ = std::fs::remove_file(&place);
        if as_pipe {
            pipe(&place);
        } else {
            std::fs::create_dir(&place).unwrap();
        }
        for arguments in [&["doctor"][..], &["runs"], &["run", "good"]] {
            let mut started = workspace.start(&mut workspace.workerctl(arguments));
            assert!(started.ends_within(Duration::from_mins(1)), "{path}");
            let done = started.end();
            assert_ne!(done.code, 0, "{path}: {arguments:?}: {done:?}");
            let hinted = format!("{}{}", done.stdout, done.stderr);
            assert!(hinted.contains("hint:"), "{path}: {arguments:?}: {done:?}");
        }
    }
}

#[test]
fn a_pipe_in_place_of_the_reserve_is_not_waited_for() {
    let workspace = Workspace::with_skills(SKILLS);
    workspace.run(&["run", "good"]).expect_code(0);
    let reserve = workspace.state().join("store/reserve");
    std::fs::remove_file(&reserve).unwrap();
    pipe(&reserve);
    let mut started = workspace.start(&mut workspace.workerctl(&["run", "good"]));
    assert!(started.ends_within(Duration::from_mins(1)));
    started.end().expect_code(0);
}

#[test]
fn a_store_without_its_database_is_no_healthy_one_and_threads_restore_it() {
    let workspace = Workspace::with_skills(SKILLS);
    workspace.run(&["run", "good"]).expect_code(0);
    std::fs::remove_dir_all(workspace.state().join("store/db")).unwrap();
    let doctor = workspace.run(&["doctor"]).expect_code(1);
    assert!(doctor.stdout.contains("database is missing"), "{doctor:?}");
    std::fs::remove_dir_all(workspace.state()).unwrap();
    workspace.run(&["store", "rebuild"]).expect_code(0);
    let runs = workspace.json(&["runs"]);
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "{runs}");
}

#[test]
fn a_place_for_the_state_that_is_full_or_read_only_is_6_and_for_a_daemon_1() {
    let Some(disk) = Disk::create(4) else { return };
    let workspace = Workspace::with_skills(SKILLS);
    let state = disk.path().join("state");
    let refused = |remedy: &str| {
        // A service manager tries again after 1.
        for (arguments, code) in [(&["runs"][..], 6), (&["run", "good"], 6), (&["daemon"], 1)] {
            let mut command = workspace.program(env!("CARGO_BIN_EXE_workerctl"));
            command.arg("-C").arg(&workspace.root);
            command.arg("--state-dir").arg(&state).args(arguments);
            command.env("XDG_RUNTIME_DIR", "/proc");
            let done = workspace.start(&mut command).end().expect_code(code);
            assert!(done.stderr.contains(remedy), "{arguments:?}: {done:?}");
        }
    };
    // What was set aside for a large file that did not fit is free again: small ones take that too.
    for bytes in [8 << 20, 64 << 10, 1 << 10] {
        let fits = |number: u32| {
            let path = disk.path().join(format!("fill-{bytes}-{number}"));
            let written = std::fs::write(&path, vec![1; bytes]);
            written.and_then(|()| std::fs::File::open(path)?.sync_all())
        };
        (0..100_000).find(|number| fits(*number).is_err()).unwrap();
    }
    refused("free some space");
    let path = disk.path().to_str().unwrap();
    let remounted = Command::new("mount")
        .args(["-o", "remount,ro", path])
        .status();
    assert!(remounted.unwrap().success());
    refused("--state-dir");
}

#[test]
fn a_directory_that_is_no_workspace_stays_as_it_is() {
    let workspace = Workspace::with_skills(SKILLS);
    let empty = xtest::tempdir();
    let place = empty.path().to_str().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = workspace.program(env!("CARGO_BIN_EXE_workerctl"));
        command.args(["-C", place]).args(arguments);
        workspace.start(&mut command).end()
    };
    for arguments in [
        &["status"][..],
        &["runs"],
        &["run", "good"],
        &["check"],
        &["daemon"],
        &["store", "info"],
    ] {
        let done = run(arguments).expect_code(3);
        assert!(done.stderr.contains("workerctl init"), "{done:?}");
    }
    let told = run(&["doctor", "--json"]).expect_code(1).value();
    let findings = told["findings"].as_array().unwrap();
    let names: Vec<_> = findings.iter().map(|one| &one["name"]).collect();
    assert_eq!(names[..2], ["workspace", "zones"], "{told}");
    assert_eq!(findings[0]["state"], "error", "{told}");
    let hint = findings[0]["hints"][0].as_str().unwrap();
    assert!(hint.contains("workerctl init"), "{told}");
    assert_eq!(std::fs::read_dir(empty.path()).unwrap().count(), 0);
}

#[test]
fn a_second_daemon_leaves_nothing_where_it_is_refused() {
    let workspace = Workspace::with_skills(SKILLS);
    let daemon = Daemon::start(&workspace);
    let other = workspace.root.join("../other-state");
    let mut command = workspace.program(env!("CARGO_BIN_EXE_workerctl"));
    command
        .arg("-C")
        .arg(&workspace.root)
        .arg("--state-dir")
        .arg(&other)
        .arg("daemon");
    workspace.start(&mut command).end().expect_code(8);
    assert!(!other.exists());
    daemon.stop();
    let taken = workspace.root.join("../taken");
    std::fs::create_dir(&taken).unwrap();
    let refused = workspace.run(&["--socket", taken.to_str().unwrap(), "daemon"]);
    let refused = refused.expect_code(8);
    assert!(refused.stderr.contains("not a socket"), "{refused:?}");
    assert!(!workspace.root.join("../taken.lock").exists());
}

#[test]
fn a_mask_that_hides_files_from_their_owner_does_not_keep_us_from_ours() {
    let workspace = Workspace::with_skills(SKILLS);
    for mask in ["777", "277"] {
        let program = env!("CARGO_BIN_EXE_workerctl");
        let text = format!("umask {mask}; exec \"$0\" \"$@\"");
        let mut command = workspace.program("sh");
        command
            .args(["-c", &text, program, "-C"])
            .arg(&workspace.root);
        command.arg("--state-dir").arg(workspace.state());
        command.args(["run", "good"]);
        workspace.start(&mut command).end().expect_code(0);
    }
    let store = std::fs::metadata(workspace.state().join("store")).unwrap();
    assert_eq!(store.permissions().mode() & 0o777, 0o700);
}

#[test]
fn what_is_asked_for_wrongly_is_told_once_and_with_what_helps() {
    let workspace = Workspace::with_skills(SKILLS);
    let unknown = workspace.run(&["runs", "--worker", "ww"]).expect_code(3);
    assert!(unknown.stderr.contains("did you mean `w`"), "{unknown:?}");
    workspace.run(&["runs", "--worker", "w"]).expect_code(0);
    workspace
        .run(&["runs", "--since", "1h", "--until", "2h"])
        .expect_code(2);
    let named = workspace.run(&["run", "a/b/c"]).expect_code(3);
    assert_eq!(named.stderr.matches("hint:").count(), 1, "{named:?}");
    let many_digits = ["run", "number", "-i", "n=99999999999999999999999"];
    workspace.run(&many_digits).expect_code(0);
    let mut command = workspace.workerctl(&["run", "good"]);
    command.env("XDG_RUNTIME_DIR", "/proc");
    workspace.start(&mut command).end().expect_code(0);
    let quiet = workspace.run(&["run", "-q", "bad"]).expect_code(1);
    assert!(quiet.stderr.contains("exit"), "{quiet:?}");
    let option = ["run", "good", "--param", "a=x"];
    let option = workspace.run(&option).expect_code(2).stderr;
    assert!(option.contains("inputs are given as `a=x`"), "{option}");
    assert!(!option.contains("as a value"), "{option}");
    let since = ["runs", "--since", "yesterday"];
    let since = workspace.run(&since).expect_code(2).stderr;
    assert!(
        since.contains("`--since yesterday` cannot be read"),
        "{since}"
    );
    let mut missing = elsewhere(&workspace, &["-C", "nowhere", "check"]);
    let missing = workspace.start(&mut missing).end().expect_code(3).stderr;
    assert!(missing.contains("there is no such directory"), "{missing}");
    assert!(missing.contains("hint: `-C` takes"), "{missing}");
    workspace.write("twice.json", r#"{"a":"x","a":"y"}"#);
    let twice = workspace
        .run(&["run", "good", "--inputs-json", "twice.json"])
        .expect_code(2);
    assert!(twice.stderr.contains("`a` is given twice"), "{twice:?}");
}
