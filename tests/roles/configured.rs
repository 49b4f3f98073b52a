//! `access` of workerctl.yaml: what it may say, and when it holds.

use crate::roles::{Bed, Person};
use crate::workspace::Workspace;

const ONE: Person = Person::new(54_011, &[]);
const OTHER: Person = Person::new(54_012, &[]);

#[test]
fn what_is_wrong_is_refused_with_its_place_and_a_remedy() {
    let workspace = Workspace::with_skills(crate::roles::SKILLS);
    for (text, code, line, column) in [
        (
            "access:\n  read: {users: [no-such-user]}",
            "access-unknown",
            2,
            18,
        ),
        (
            "access:\n  admin: {groups: [no-such-group]}",
            "access-unknown",
            2,
            20,
        ),
        (
            "access:\n  admin: {users: [\"54011\"]}",
            "access-unknown",
            2,
            19,
        ),
        ("access: [root]", "wrong-type", 1, 9),
        ("access:\n  read: root", "wrong-type", 2, 9),
        ("access:\n  read: {users: root}", "wrong-type", 2, 17),
        ("access:\n  read: {users: [true]}", "wrong-type", 2, 18),
        ("access:\n  read: {users: [-1]}", "out-of-range", 2, 18),
        (
            "access:\n  read: {groups: [4294967295]}",
            "out-of-range",
            2,
            19,
        ),
        (
            "access:\n  admin: {users: [0]}\n  read: {users: [root]}",
            "access-twice",
            3,
            18,
        ),
        (
            "access:\n  read: {groups: [7]}\n  admin: {groups: [7]}",
            "access-twice",
            2,
            19,
        ),
        ("access:\n  raed: {users: [7]}", "key-misspelled", 2, 3),
        ("access:\n  read: {user: [7]}", "key-misspelled", 2, 10),
        ("access:\n  owner: {users: [7]}", "unknown-key", 2, 3),
    ] {
        workspace.write("workerctl.yaml", text);
        let checked = workspace.run(&["check", "--json"]);
        let told = checked.value();
        let problem = &told["problems"][0];
        assert_eq!(problem["code"], code, "{text}: {told}");
        let place = &problem["place"];
        assert_eq!(
            (&place["line"], &place["column"]),
            (&line.into(), &column.into()),
            "{text}"
        );
        let is_error = problem["severity"] == "error";
        assert_eq!(checked.code, if is_error { 4 } else { 0 }, "{text}: {told}");
        let is_warning = matches!(code, "unknown-key" | "access-unknown");
        assert_eq!(is_error, !is_warning, "{text}");
        assert!(
            problem["hint"].is_string() || code == "unknown-key",
            "{told}"
        );
    }
}

#[test]
fn a_list_has_its_bound() {
    let workspace = Workspace::with_skills(crate::roles::SKILLS);
    let many: Vec<String> = (1..=257).map(|id: u32| id.to_string()).collect();
    let many = format!("access: {{read: {{users: [{}]}}}}", many.join(", "));
    workspace.write("workerctl.yaml", &many);
    let told = workspace.run(&["check", "--json"]).expect_code(4).value();
    assert_eq!(told["problems"][0]["code"], "too-many");
}

#[test]
fn config_shows_names_with_their_numbers_and_where_they_stand() {
    let workspace = Workspace::with_skills(crate::roles::SKILLS);
    workspace.write(
        "workerctl.yaml",
        "access:\n  admin: {users: [nobody, 54011]}\n",
    );
    let shown = workspace.run(&["config"]).expect_code(0).stdout;
    assert!(shown.contains("nobody (65534), 54011"), "{shown}");
    let told = workspace.json(&["config"]);
    let values = told["values"].as_array().unwrap();
    let value = |key: &str| values.iter().find(|one| one["key"] == key).unwrap();
    let users = value("access.admin.users");
    assert_eq!(
        users["value"][0],
        serde_json::json!({"name": "nobody", "id": 65_534})
    );
    assert_eq!(users["origin"], "workerctl.yaml:2");
    assert_eq!(value("access.read.groups")["origin"], "default");
}

#[test]
fn a_reload_gives_takes_and_keeps_roles_and_the_modes_follow() {
    let Some(bed) = Bed::new("") else { return };
    let daemon = bed.daemon();
    let heard = |who: Person| bed.run(who, &["status", "--json"]).code == 0;
    let modes = || {
        (
            Bed::mode(&bed.socket()),
            Bed::mode(bed.socket().parent().unwrap()),
        )
    };
    let reload = |access: &str| {
        bed.configure(access);
        bed.workspace.run(&["reload"]).expect_code(0);
    };
    assert_eq!(
        (heard(ONE), heard(OTHER), modes()),
        (false, false, (0o600, 0o700))
    );
    reload("access: {read: {users: [54011]}}\n");
    assert_eq!(
        (heard(ONE), heard(OTHER), modes()),
        (true, false, (0o666, 0o711))
    );
    reload("access: {read: {users: [54012]}}\n");
    assert_eq!((heard(ONE), heard(OTHER)), (false, true));
    // A configuration that is not sound changes nothing.
    reload("access: {admin: {users: [54011, -1]}}\n");
    assert_eq!(
        (heard(ONE), heard(OTHER), modes()),
        (false, true, (0o666, 0o711))
    );
    // Who is not there has no role, and the others have theirs.
    reload("access: {admin: {users: [54012, no-such-user]}}\n");
    bed.run(OTHER, &["run", "say"]).expect_code(0);
    reload("");
    assert_eq!(
        (heard(ONE), heard(OTHER), modes()),
        (false, false, (0o600, 0o700))
    );
    daemon.stop();
}

#[test]
fn a_daemon_that_starts_with_a_broken_configuration_lets_nobody_in() {
    let Some(bed) = Bed::new("access: {admin: {users: [54011, -1]}}\n") else {
        return;
    };
    let daemon = bed.daemon();
    let refused = bed.run(ONE, &["status", "--json"]).expect_code(7);
    assert_eq!(refused.refusal(), "not_permitted");
    assert_eq!(Bed::mode(&bed.socket()), 0o600);
    bed.configure("access: {read: {users: [54011]}}\n");
    bed.workspace.run(&["reload"]).expect_code(0);
    bed.run(ONE, &["status"]).expect_code(0);
    daemon.stop();
}
