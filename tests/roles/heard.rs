//! Who is heard, and as whom.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::roles::{Bed, NOBODY, Person, STRANGER};
use crate::workspace::{eventually, skip};

const READER: Person = Person::new(54_002, &[]);
const READER_BY_GROUP: Person = Person::new(54_003, &MANY_GROUPS);
/// More than most have; the one that counts is the last.
const MANY_GROUPS: [u32; 100] = {
    let mut groups = [54_300; 100];
    groups[99] = 54_101;
    groups
};
const ADMIN: Person = Person::new(NOBODY, &[54_101, 54_200]);

const ACCESS: &str =
    "access: {admin: {groups: [54200]}, read: {users: [54002], groups: [54101]}}\n";

#[test]
fn without_access_nobody_else_connects_or_is_heard() {
    let Some(bed) = Bed::new("timezone: UTC\n") else {
        return;
    };
    let daemon = bed.daemon();
    let (socket, directory) = (bed.socket(), bed.socket().with_file_name(""));
    assert_eq!((Bed::mode(&socket), Bed::mode(&directory)), (0o600, 0o700));
    let refused = bed.run(STRANGER, &["status", "--json"]).expect_code(7);
    assert_eq!(refused.refusal(), "not_permitted");
    // Files that let them in change nothing.
    for (path, mode) in [(&socket, 0o666), (&directory, 0o755)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let refused = bed.run(STRANGER, &["status", "--json"]).expect_code(2);
    assert_eq!(refused.refusal(), "not_your_engine");
    daemon.stop();
}

#[test]
fn who_may_read_looks_and_changes_nothing() {
    let Some(bed) = Bed::new(ACCESS) else { return };
    let daemon = bed.daemon();
    let run = bed.workspace.submit(&["asks"]);
    for reader in [READER, READER_BY_GROUP] {
        let status = bed.run(reader, &["status", "--json"]).expect_code(0);
        assert_eq!(status.value()["host"], "daemon");
        let shown = bed.run(reader, &["show", &run, "--json"]).expect_code(0);
        assert_eq!(shown.value()["summary"]["run"], run.as_str());
        // Files of threads are their owner's: the engine tells what stands in them, without a false alarm.
        let logs = bed.run(reader, &["logs", &run]).expect_code(0);
        assert!(logs.stdout.contains("submitted"), "{logs:?}");
        assert_eq!(logs.stderr, "");
        for change in [
            &["run", "say"][..],
            &["approve", &run],
            &["cancel", &run],
            &["reload"],
            &["drain"],
        ] {
            let refused = bed.run(reader, &[change, &["--json"]].concat());
            assert_eq!(refused.refusal(), "role", "{change:?}");
            let refused: Value = serde_json::from_str(refused.stderr.trim()).unwrap();
            let error = &refused["error"];
            assert_eq!(error["kind"], "blocked", "{error}");
            let message = error["message"].as_str().unwrap();
            let whole = format!("user `uid {}` has the role `read`", reader.uid);
            assert!(message.starts_with(&whole), "{message}");
            assert!(message.ends_with("needs the role `admin`"), "{message}");
            let hint = error["hints"][0].as_str().unwrap();
            assert!(hint.contains("`access: {admin:"), "{hint}");
        }
    }
    let refused = bed.run(STRANGER, &["status", "--json"]).expect_code(2);
    assert_eq!(refused.refusal(), "not_your_engine");
    daemon.stop();
}

#[test]
fn an_admin_of_a_group_approves_and_is_recorded_by_name() {
    let Some(bed) = Bed::new(ACCESS) else { return };
    let daemon = bed.daemon();
    // Another of their groups may read: the higher role counts.
    let run = bed.run(ADMIN, &["run", "asks", "--json"]).expect_code(6);
    assert!(run.stdout.contains("awaiting_approval"), "{run:?}");
    let waiting = bed.workspace.json(&["runs", "--awaiting"]);
    let run = waiting["runs"][0]["run"].as_str().unwrap().to_owned();
    bed.run(ADMIN, &["approve", &run, "--note", "seen"])
        .expect_code(0);
    let detail = eventually("it is recorded", || {
        let detail = bed.workspace.show(&run);
        detail["approval"]["approved_by"]
            .is_string()
            .then_some(detail)
    });
    assert_eq!(detail["approval"]["approved_by"], "nobody", "{detail}");
    daemon.stop();
}

#[test]
fn a_command_of_a_run_is_refused_before_roles_are_looked_at() {
    let Some(bed) = Bed::new(ACCESS) else { return };
    let setpriv = "setpriv --reuid 54002 --clear-groups true";
    if !bed
        .workspace
        .program("sh")
        .args(["-c", setpriv])
        .status()
        .unwrap()
        .success()
    {
        skip("there is no setpriv");
        return;
    }
    let (program, socket) = (bed.program.display(), bed.socket());
    let asks = format!(
        "  - id: ask\n    description: d\n    run: setpriv --reuid 54002 --clear-groups {program} -C \"$WORKERCTL_WORKSPACE\" --socket {} status --json || true\n",
        socket.display()
    );
    bed.workspace.worker("asking", &asks);
    let daemon = bed.daemon();
    bed.run(READER, &["status"]).expect_code(0);
    let done = bed.workspace.run(&["run", "asking/ask"]).expect_code(0);
    assert!(done.stderr.contains("within_run"), "{done:?}");
    daemon.stop();
}
