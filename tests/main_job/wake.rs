//! The wake gate: a command that decides before anything executes whether there is anything to do.

use serde_json::Value;

use crate::workspace::Workspace;
use crate::workspace::daemon::Daemon;
use crate::workspace::eventually;
use crate::workspace::ledger::rows;

/// A skill `s` whose command tells the home directory what it was given; `more` are further keys of it.
fn skill(more: &str) -> String {
    format!(
        "
  - id: s
    description: d
    run: 'printf %s \"$WORKERCTL_WAKE\" > \"$HOME/seen\"'
{more}"
    )
}

fn seen(workspace: &Workspace) -> Option<String> {
    std::fs::read_to_string(workspace.home.join("seen")).ok()
}

fn failure(workspace: &Workspace) -> Value {
    let done = workspace.run(&["run", "s", "--json"]).expect_code(1);
    assert_eq!(seen(workspace), None);
    done.value()["summary"]["outcome"]["failure"].clone()
}

#[test]
fn nothing_is_executed_where_the_gate_finds_nothing_to_do() {
    let hooks = "    hooks: {post_tools: ['echo hook > \"$HOME/seen\"'], post_commit: ['echo hook > \"$HOME/seen\"']}\n";
    for more in [
        "",
        "    verification: [{command: 'false'}]\n",
        &format!("    mutating: true\n{hooks}"),
    ] {
        // Blanks are nothing, and so is what is said on standard error.
        let gate = "    wake: 'printf \"\\n \\t\\n\"; echo looked >&2'\n";
        let workspace = Workspace::with_skills(&skill(&format!("{gate}{more}")));
        let before = workspace.git(&["rev-parse", "HEAD"]);
        let done = workspace.run(&["run", "s"]).expect_code(0);
        assert!(done.stdout.contains("nothing to do"), "{done:?}");
        for told in [&done.stdout, &done.stderr] {
            assert!(
                !told.contains("unverified") && !told.contains("warning"),
                "{done:?}"
            );
        }
        assert_eq!(seen(&workspace), None);
        assert_eq!(workspace.git(&["rev-parse", "HEAD"]), before);
        let shown = workspace.json(&["show", "latest"]);
        let summary = &shown["summary"];
        assert_eq!(summary["outcome"]["kind"], "succeeded");
        assert_eq!(
            (&summary["nothing_to_do"], &summary["unverified"]),
            (&true.into(), &false.into())
        );
        for step in ["execution", "verification", "hook", "save", "commit"] {
            let result = &shown["results"][step];
            assert_eq!(
                (&result["is"], &result["why"]),
                (&"skipped".into(), &"nothing_to_do".into()),
                "{step}"
            );
        }
        for line in [
            &["runs"][..],
            &["runs", "--outcome", "nothing_to_do"],
            &["show", "latest"],
        ] {
            let told = workspace.run(line).expect_code(0).stdout;
            assert!(told.contains("nothing to do"), "{told}");
            assert!(!told.contains("unverified"), "{told}");
        }
        // Its thread is whole, and holds what the gate said.
        let logs = workspace
            .run(&["logs", "latest", "--stream", "check"])
            .expect_code(0);
        assert!(logs.stdout.contains("looked"), "{logs:?}");
        workspace.run(&["threads", "verify"]).expect_code(0);
        let path = shown["thread_path"].as_str().unwrap();
        let thread = std::fs::read_to_string(path).unwrap();
        assert!(thread.contains("w/s had nothing to do."), "{thread}");
    }
}

#[test]
fn what_the_gate_finds_is_given_to_commands() {
    let more = r#"
    interface: {inputs: [{name: box, type: string, default: inbox}]}
    wake: 'echo noise >&2; echo "{box}: 3 mails"; echo and more'
    verification: [{command: 'test "$WORKERCTL_WAKE" = "$(cat "$HOME/seen")"'}]
"#;
    let workspace = Workspace::with_skills(&skill(more));
    workspace
        .run(&["run", "s", "-i", "box=spam"])
        .expect_code(0);
    assert_eq!(seen(&workspace).unwrap(), "spam: 3 mails\nand more");
    let shown = workspace.json(&["show", "latest"]);
    assert_eq!(shown["summary"]["nothing_to_do"], Value::Null, "{shown:#}");
    assert_eq!(shown["results"]["verification"]["is"], "passed");
    let rendered = workspace.run(&["render", "s"]).expect_code(0);
    assert!(rendered.stdout.contains("3 mails"), "{rendered:?}");
}

#[test]
fn of_much_the_last_is_given() {
    let more = "    wake: 'i=0; while [ $i -lt 4000 ]; do echo \"näht $i\"; i=$((i+1)); done'\n";
    let workspace = Workspace::with_skills(&skill(more));
    workspace.run(&["run", "s"]).expect_code(0);
    let seen = seen(&workspace).unwrap();
    assert!(
        seen.len() <= 8 * 1024 && seen.len() > 8 * 1024 - 4,
        "{}",
        seen.len()
    );
    assert!(seen.ends_with("näht 3999"), "{seen}");
    assert!(!seen.contains("näht 10\n"), "{seen}");
}

#[test]
fn what_the_gate_says_is_masked() {
    let more = "    env: [TOKEN]\n    wake: 'echo \"token $TOKEN\"'\n";
    let workspace = Workspace::with_skills(&skill(more));
    let mut command = workspace.workerctl(&["run", "s"]);
    command.env("TOKEN", "a-secret-of-some-length");
    workspace.start(&mut command).end().expect_code(0);
    let seen = seen(&workspace).unwrap();
    assert!(
        seen.starts_with("token ") && !seen.contains("a-secret"),
        "{seen}"
    );
}

#[test]
fn a_gate_that_fails_fails_the_run() {
    for (gate, told) in [
        ("echo found; echo broken >&2; exit 3", "exit code 3: broken"),
        ("kill -9 $$", "signal"),
        ("exec /no/such/program", "exit code 127"),
    ] {
        let workspace = Workspace::with_skills(&skill(&format!("    wake: '{gate}'\n")));
        let failure = failure(&workspace);
        assert_eq!(
            (&failure["step"], &failure["code"]),
            (&"validate".into(), &"wake_failed".into())
        );
        let message = failure["message"].as_str().unwrap();
        assert!(message.contains(told), "{message}");
    }
}

#[test]
fn a_gate_that_takes_too_long_fails_the_run() {
    let gate = "    wake: {command: 'echo found; exec sleep 1000', timeout: 100ms}\n";
    let workspace = Workspace::with_skills(&skill(gate));
    let failure = failure(&workspace);
    assert_eq!(
        (&failure["step"], &failure["code"]),
        (&"validate".into(), &"wake_failed".into())
    );
    assert!(
        failure["message"].as_str().unwrap().contains("time limit"),
        "{failure}"
    );
}

/// A run that waits for a person is looked at again when it begins; its gate may have marked as seen what it found.
#[test]
fn a_gate_is_asked_once() {
    let more =
        "    approval_required: true\n    wake: 'echo x >> \"$HOME/asked\"; cat \"$HOME/asked\"'\n";
    let workspace = Workspace::with_skills(&skill(more));
    workspace.run(&["run", "s"]).expect_code(6);
    let run = workspace.show("latest")["summary"]["run"].clone();
    let approve = ["approve", run.as_str().unwrap()];
    workspace.run(&approve).expect_code(0);
    assert_eq!(seen(&workspace).unwrap(), "x");
    let asked = std::fs::read_to_string(workspace.home.join("asked")).unwrap();
    assert_eq!(asked, "x\n");
}

#[test]
fn a_gate_that_cannot_be_read_rejects_its_skill() {
    for gate in [
        "[a]",
        "{timeout: 3s}",
        "''",
        "{command: 'true', timeout: soon}",
        "'echo \"'",
    ] {
        let workspace = Workspace::with_skills(&skill(&format!("    wake: {gate}\n")));
        let done = workspace.run(&["check"]);
        assert_eq!(done.code, 4, "{gate}: {done:?}");
        workspace.run(&["run", "s"]).expect_code(4);
        assert_eq!(seen(&workspace), None);
    }
}

#[test]
fn rows_of_a_schedule_say_that_there_was_nothing_to_do() {
    let more = "    schedule: {every: 1s}\n    wake: 'true'\n";
    let workspace = Workspace::with_skills(&skill(more));
    let daemon = Daemon::start(&workspace);
    let row = eventually("a run that has ended", || {
        rows(&workspace, "w/s")
            .into_iter()
            .find(|row| !row["outcome"].is_null())
    });
    assert_eq!(
        (&row["outcome"], &row["nothing_to_do"]),
        (&"succeeded".into(), &true.into())
    );
    assert_eq!(row["started_at"], Value::Null, "{row}");
    for line in [["schedule", "slots"], ["schedule", "list"]] {
        let told = eventually("the words", || {
            let told = workspace.run(&line).expect_code(0).stdout;
            told.contains("nothing to do").then_some(told)
        });
        assert!(!told.contains("unverified"), "{told}");
    }
    daemon.stop();
    assert_eq!(seen(&workspace), None);
}
