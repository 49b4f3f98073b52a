//! How commands of others find the engine, and what they are told where they do not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::Value;

use crate::roles::{Bed, Person, STRANGER};
use crate::workspace::daemon::Daemon;
use crate::workspace::gate::Gate;

const READER: Person = Person::new(54_021, &[]);
const ACCESS: &str = "access: {read: {users: [54021]}}\n";

#[test]
fn the_path_of_the_workspace_is_all_that_others_need() {
    let Some(bed) = Bed::new(ACCESS) else { return };
    let daemon = Daemon::start(&bed.workspace);
    let lock: Value =
        serde_json::from_str(&bed.workspace.read(".workerctl/lock").unwrap()).unwrap();
    let socket = PathBuf::from(lock["socket"].as_str().unwrap());
    assert!(socket.starts_with("/tmp/workerctl-0"), "{socket:?}");
    let directory = socket.parent().unwrap();
    assert_eq!((Bed::mode(&socket), Bed::mode(directory)), (0o666, 0o711));
    // Nothing of the engine's own can be read or written by them.
    for private in [
        bed.workspace.state(),
        &bed.workspace.root.join(".workerctl"),
    ] {
        assert_eq!(Bed::mode(private), 0o700, "{}", private.display());
    }
    bed.run_anywhere(READER, &["status"]).expect_code(0);
    let refused = bed.run_anywhere(STRANGER, &["status", "--json"]);
    assert_eq!(refused.expect_code(2).refusal(), "not_your_engine");
    // Its own user finds it as ever.
    bed.workspace.run(&["status"]).expect_code(0);
    daemon.stop();
    let _ = fs::remove_file(socket.with_extension("sock.lock"));
}

#[test]
fn a_command_runs_no_engine_where_its_user_may_not_write() {
    let Some(bed) = Bed::new(ACCESS) else { return };
    for arguments in [
        &["run", "say", "--json"][..],
        &["runs", "--json"],
        &["status", "--json"],
    ] {
        let refused = bed.run_anywhere(READER, arguments).expect_code(7);
        assert_eq!(refused.refusal(), "no_engine", "{arguments:?}");
        for said in [
            "you have no write permission there",
            "`root` can start one",
            "--socket",
        ] {
            assert!(refused.stderr.contains(said), "{said}: {refused:?}");
        }
    }
    for made in [".workerctl", "state"] {
        assert!(!bed.workspace.root.join(made).exists(), "{made}");
    }
    // One that cannot be reached is told in the same words.
    fs::create_dir(bed.workspace.root.join("state")).unwrap();
    let private = fs::Permissions::from_mode(0o700);
    fs::set_permissions(bed.workspace.root.join("state"), private).unwrap();
    let refused = bed
        .run_anywhere(READER, &["run", "say", "--json"])
        .expect_code(7);
    assert_eq!(refused.refusal(), "not_permitted");
    assert!(
        refused.stderr.contains("`root` can start one"),
        "{refused:?}"
    );
}

#[test]
fn an_engine_inside_a_command_is_not_opened_to_others() {
    let Some(bed) = Bed::new(ACCESS) else { return };
    let holds = format!(
        "  - id: holds\n    description: d\n    run: |\n      {}\n",
        Gate::text("g")
    );
    bed.workspace.worker("holding", &holds);
    let mut gate = Gate::new(&bed.workspace, "g");
    let socket = bed.socket();
    let mut command = bed.workspace.workerctl(&["run", "holding/holds"]);
    command.arg("--socket").arg(&socket);
    let hosting = bed.workspace.start(&mut command);
    gate.reached();
    assert_eq!(Bed::mode(&socket), 0o600);
    bed.run(READER, &["status"]).expect_code(7);
    gate.pass();
    hosting.end().expect_code(0);
}

#[test]
fn a_directory_that_keeps_them_out_is_named_by_the_log_and_by_doctor() {
    let Some(bed) = Bed::new(ACCESS) else { return };
    let directory = bed.program.with_file_name("closed");
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
    let daemon = bed.daemon_at(&directory.join("s.sock"));
    let closed = format!("they may not enter `{}`", directory.display());
    let remedy = format!("chmod o+x {}", directory.display());
    let log = daemon.log();
    assert!(log.contains(&closed) && log.contains(&remedy), "{log}");
    // It is not ours, so it stays as it is.
    assert_eq!(Bed::mode(&directory), 0o700);
    let found = || {
        let told = bed.workspace.run(&["doctor", "--json"]).value();
        let all = told["findings"].as_array().unwrap().clone();
        let mut all = all.into_iter();
        let is_it = |one: &Value| {
            one["message"]
                .as_str()
                .unwrap()
                .contains("named in `access`")
        };
        all.find(is_it).unwrap()
    };
    let told = found();
    assert_eq!(told["state"], "error", "{told}");
    let hint = told["hints"][0].as_str().unwrap();
    assert!(
        hint.contains(&remedy) && hint.contains("RuntimeDirectoryMode=0755"),
        "{hint}"
    );
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o711)).unwrap();
    assert_eq!(found()["state"], "ok");
    daemon.stop();
}
