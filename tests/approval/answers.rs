//! Each answer has one outcome, the right one.

use crate::approval::{asked, bed, code, ended, outcome, ran};
use crate::workspace::api::Api;
use crate::workspace::daemon::Daemon;
use crate::workspace::eventually;

#[test]
fn of_two_who_answer_at_once_one_is_heard() {
    let workspace = bed();
    let daemon = Daemon::start(&workspace);
    let mut last = String::new();
    for answers in [["approve", "approve"], ["approve", "deny"]] {
        let run = asked(&workspace, &["say"]);
        let note = ["--note", "x"];
        let all = answers.map(|answer| {
            let given = [&[answer, run.as_str()][..], &note].concat();
            workspace.start(&mut workspace.workerctl(&given))
        });
        let mut codes = all.map(|one| one.end().code);
        codes.sort_unstable();
        assert_eq!(codes, [0, 8], "{answers:?}");
        let detail = ended(&workspace, &run);
        let denied = outcome(&detail) == "denied";
        assert_eq!(
            denied,
            detail["approval"]["approved_by"].is_null(),
            "{detail}"
        );
        assert_eq!(
            denied,
            detail["approval"]["denied_by"].is_string(),
            "{detail}"
        );
        last = run;
    }
    let refused = workspace.run(&["approve", &last, "--json"]).expect_code(8);
    assert_eq!(refused.refusal(), "not_awaiting_approval");
    daemon.stop();
}

#[test]
fn what_was_denied_or_cancelled_never_lands() {
    let workspace = bed();
    let daemon = Daemon::start(&workspace);
    let before = workspace.git(&["rev-parse", "HEAD"]);
    for (answer, ends) in [
        (&["deny", "RUN", "--note", "not now"][..], "denied"),
        (&["cancel", "RUN"], "cancelled"),
    ] {
        let run = asked(&workspace, &["change"]);
        let given: Vec<&str> = answer
            .iter()
            .map(|a| if *a == "RUN" { &run } else { *a })
            .collect();
        workspace.run(&given).expect_code(0);
        let detail = ended(&workspace, &run);
        assert_eq!(outcome(&detail), ends);
        workspace.run(&["land", &run]).expect_code(3);
        workspace.run(&["diff", &run]).expect_code(0);
        assert_eq!(workspace.read("own.txt"), None);
    }
    assert_eq!(workspace.git(&["rev-parse", "HEAD"]), before);
    let denied = workspace.json(&["runs", "--outcome", "denied"]);
    let message = denied["runs"][0]["outcome"]["message"].as_str().unwrap();
    assert!(message.ends_with(": not now"), "{message}");
    let run = denied["runs"][0]["run"].as_str().unwrap();
    let (detail, name) = (workspace.show(run), crate::approval::own_name());
    let thread = std::fs::read_to_string(detail["thread_path"].as_str().unwrap()).unwrap();
    let thread: serde_json::Value = serde_json::from_str(&thread).unwrap();
    for kept in [&detail["approval"], &thread["run"]["approval"]] {
        assert_eq!(kept["denied_by"], name.as_str(), "{kept}");
        assert!(!kept["denied_at"].is_null(), "{kept}");
        assert_eq!(kept["note"], "not now");
        assert!(kept["approved_by"].is_null(), "{kept}");
    }
    let shown = workspace.run(&["show", run]).stdout;
    let said = shown
        .lines()
        .find(|line| line.contains("denied") && line.contains(": not now"));
    let by = format!("by {name} at ");
    assert!(shown.contains(&by) && said.is_some(), "{shown}");
    daemon.stop();
}

#[test]
fn a_branch_that_moved_elsewhere_takes_what_was_approved_after_its_checks() {
    let workspace = bed();
    let daemon = Daemon::start(&workspace);
    let run = asked(&workspace, &["change"]);
    workspace.write("tracked.txt", "moved\n");
    workspace.commit_all("elsewhere");
    let moved = workspace.git(&["rev-parse", "HEAD"]);
    workspace.run(&["approve", &run]).expect_code(0);
    assert_eq!(workspace.git(&["rev-parse", "HEAD^"]), moved);
    assert_eq!(workspace.read("own.txt"), Some(format!("{run}\n")));
    assert_eq!(
        workspace.read("ignored/report.md").as_deref(),
        Some("# whole\n")
    );
    let checked = std::fs::read_to_string(workspace.home.join("checked")).unwrap();
    assert_eq!((ran(&workspace), checked.lines().count()), (1, 2));
    daemon.stop();
}

#[test]
fn a_branch_that_ignores_a_part_of_what_was_approved_is_a_conflict() {
    let workspace = bed();
    let daemon = Daemon::start(&workspace);
    let run = asked(&workspace, &["change"]);
    let patterns = workspace.read(".gitignore").unwrap() + "/own.txt\n";
    workspace.write(".gitignore", &patterns);
    workspace.commit_all("own.txt is ignored");
    let before = workspace.git(&["rev-parse", "HEAD"]);
    let approved = workspace.run(&["approve", &run]).expect_code(1);
    let said = approved.stdout + &approved.stderr;
    assert!(said.contains("leave out or change `own.txt`"), "{said}");
    assert_eq!(code(&ended(&workspace, &run)), "conflict");
    assert_eq!(workspace.git(&["rev-parse", "HEAD"]), before);
    daemon.stop();
}

#[test]
fn a_branch_that_changed_the_same_is_a_conflict_and_the_commit_is_kept() {
    let workspace = bed();
    let daemon = Daemon::start(&workspace);
    // One that may be repeated is not: another result was not approved.
    let run = asked(&workspace, &["often"]);
    workspace.write("tracked.txt", "a person's\n");
    workspace.commit_all("the same");
    let approved = workspace.run(&["approve", &run]).expect_code(1);
    let detail = ended(&workspace, &run);
    assert_eq!((code(&detail), ran(&workspace)), ("conflict", 1));
    // `land` would be refused.
    let shown = workspace.run(&["show", &run]).stdout;
    for told in [approved.stdout + &approved.stderr, shown] {
        assert!(told.contains("`tracked.txt`"), "{told}");
        let pick = format!("git cherry-pick refs/workerctl/runs/{run}/commit");
        for remedy in [&pick, "workerctl discard", "workerctl retry"] {
            assert!(told.contains(remedy), "{told}");
        }
        assert!(!told.contains("workerctl land"), "{told}");
    }
    let why = workspace.run(&["why", "often"]).stdout;
    assert!(why.contains("git cherry-pick"), "{why}");
    assert!(!why.contains("workerctl land"), "{why}");
    assert_eq!(detail["summary"]["outcome"]["failure"]["step"], "land");
    assert!(detail["summary"]["kept_commit"].is_string(), "{detail}");
    assert_eq!(
        workspace.read("tracked.txt").as_deref(),
        Some("a person's\n")
    );
    daemon.stop();
}

#[test]
fn the_definition_may_change_and_what_was_accepted_happens() {
    let workspace = bed();
    let daemon = Daemon::start(&workspace);
    let (change, say) = (asked(&workspace, &["change"]), asked(&workspace, &["say"]));
    let worker = workspace.read("workers/w/worker.yaml").unwrap();
    let other = worker
        .replace("hello {who}", "bye {who}")
        .replace("own.txt", "other.txt");
    workspace.write("workers/w/worker.yaml", &other);
    workspace.commit_all("another definition");
    workspace.run(&["reload"]).expect_code(0);
    let done = workspace.run(&["approve", &say]).expect_code(0);
    assert!(done.stderr.contains("hello you"), "{done:?}");
    workspace.run(&["approve", &change]).expect_code(0);
    assert!(workspace.read("own.txt").is_some());
    // A script is what was looked at, or it does not run.
    let script = asked(&workspace, &["script"]);
    workspace.write("workers/w/act.sh", "#!/bin/sh\necho other\n");
    workspace.run(&["approve", &script]).expect_code(1);
    assert_eq!(code(&ended(&workspace, &script)), "script_changed");
    daemon.stop();
}

#[test]
fn nobody_answers_in_time_and_it_counts_as_denied() {
    let workspace = bed();
    let daemon = Daemon::start(&workspace);
    let run = workspace.submit(&["short"]);
    let detail = ended(&workspace, &run);
    assert_eq!(outcome(&detail), "denied");
    let refused = workspace.run(&["approve", &run, "--json"]).expect_code(8);
    assert_eq!(refused.refusal(), "not_awaiting_approval");
    assert_eq!(ran(&workspace), 0);
    daemon.stop();
}

#[test]
fn what_is_not_what_was_looked_at_is_not_approved() {
    let workspace = bed();
    let daemon = Daemon::start(&workspace);
    let run = asked(&workspace, &["change"]);
    let detail = workspace.show(&run);
    let digest = detail["approval"]["digest"].as_str().unwrap();
    for (given, code) in [("00000000", 8), (&digest[..4], 2)] {
        workspace
            .run(&["approve", &run, "--digest", given])
            .expect_code(code);
    }
    // What was put aside is changed between the look and the landing.
    let place = detail["approval"]["outputs_in"].as_str().unwrap();
    std::fs::write(format!("{place}/ignored/report.md"), "# other\n").unwrap();
    workspace
        .run(&["approve", &run, "--digest", &digest[..12]])
        .expect_code(1);
    let detail = ended(&workspace, &run);
    assert_eq!(code(&detail), "approval_changed", "{detail}");
    assert_eq!(workspace.read("own.txt"), None);
    assert_eq!(workspace.read("ignored/report.md"), None);
    daemon.stop();
}

#[test]
fn whoever_waits_is_told_and_so_is_who_it_waited_for_in_vain() {
    let workspace = bed();
    let told = r#"notify: {on_approval: 'cat >> "$HOME/told"'}"#;
    workspace.write("workerctl.yaml", told);
    let daemon = Daemon::start(&workspace);
    let run = asked(&workspace, &["say"]);
    let events = |count: usize| {
        eventually("notices", || {
            let text = std::fs::read_to_string(workspace.home.join("told")).unwrap_or_default();
            let lines: Vec<serde_json::Value> = text
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok())
                .collect();
            (lines.len() == count).then_some(lines)
        })
    };
    let first = events(1).remove(0);
    assert_eq!(first["hook_event_name"], "ApprovalRequested");
    assert_eq!(first["run"], run.as_str());
    assert!(first["expected_by"].is_string(), "{first}");
    let short = workspace.submit(&["short"]);
    ended(&workspace, &short);
    let names: Vec<_> = events(3)
        .iter()
        .map(|one| one["hook_event_name"].clone())
        .collect();
    assert_eq!(names[1..], ["ApprovalRequested", "ApprovalExpired"]);
    daemon.stop();
}

#[test]
fn a_command_of_a_run_asks_the_engine_nothing_and_approves_nothing() {
    let program = env!("CARGO_BIN_EXE_workerctl");
    // Out of its group, its session and its environment, and after its parent has gone.
    let asks = |id: &str, more: &str| {
        format!(
            "  - id: {id}\n    description: d\n    {more}interface: {{inputs: [{{name: other, type: string}}]}}\n    run: |\n      {program} -C \"$WORKERCTL_WORKSPACE\" --state-dir \"$HOME/../state\" status || echo \"plain $?\"\n      (setsid env -i HOME=\"$HOME\" PATH=\"$PATH\" sh -c '{program} -C \"$1\" --state-dir \"$HOME/../state\" approve \"$2\" -q; echo \"approve $?\"' sh \"$WORKERCTL_WORKSPACE\" {{other}} & wait) || true\n",
        )
    };
    let skills = asks("plain", "") + &asks("meant", "workerctl: true\n    ");
    let workspace = bed();
    workspace.worker("asking", &skills);
    workspace.commit_all("those that ask");
    let daemon = Daemon::start(&workspace);
    let waiting = asked(&workspace, &["say"]);
    let run = format!("other={waiting}");
    for (skill, told) in [("plain", "plain 6"), ("meant", "ready")] {
        let done = workspace
            .run(&["run", &format!("asking/{skill}"), "-i", &run])
            .expect_code(0);
        let said = format!("{}{}", done.stdout, done.stderr);
        assert!(said.contains(told), "{said}");
        assert!(said.contains("approve 6"), "{said}");
        assert_eq!(
            workspace.show(&waiting)["summary"]["phase"],
            "awaiting_approval"
        );
    }
    workspace.run(&["approve", &waiting]).expect_code(0);
    daemon.stop();
}

#[test]
fn different_inputs_are_shown_in_different_words() {
    let workspace = bed();
    let daemon = Daemon::start(&workspace);
    let mut seen = std::collections::HashSet::new();
    for value in [
        "a\nb",
        "a\\nb",
        "a\tb",
        "a\\tb",
        "a\u{ad}b",
        "a\\u{ad}b",
        "a\\xadb",
        "ab",
        "a\u{3164}b",
        "a\u{115f}b",
        "a\u{fe0f}b",
    ] {
        let run = asked(&workspace, &["say", "-i", &format!("who={value}")]);
        let shown = workspace.run(&["show", &run]).expect_code(0).stdout;
        let line = shown.lines().find(|line| line.contains("who = "));
        let line = line.unwrap().to_owned();
        assert!(line.is_ascii(), "{line:?}");
        assert!(seen.insert(line.clone()), "{value:?} is shown as {line}");
    }
    daemon.stop();
}

/// The latest run may be another one than the person looked at.
#[test]
fn a_decision_names_its_run_by_its_id() {
    let workspace = bed();
    let daemon = Daemon::start(&workspace);
    let run = asked(&workspace, &["say"]);
    for decision in [
        &["approve", "latest"][..],
        &["deny", "latest", "--note", "x"],
        &["resolve", "latest", "--as", "failed", "--note", "x"],
        &["land", "latest"],
        &["discard", "latest"],
    ] {
        let refused = workspace
            .run(&[decision, &["--json"]].concat())
            .expect_code(2);
        assert_eq!(refused.refusal(), "run_not_named", "{refused:?}");
        let short = run[run.len() - 8..].to_lowercase();
        assert!(refused.stderr.contains(&short), "{run}: {refused:?}");
    }
    let digest = workspace.show(&run)["approval"]["digest"].clone();
    for (operation, body) in [
        ("approve", serde_json::json!({"digest": digest})),
        ("deny", serde_json::json!({"note": "x"})),
        ("discard", serde_json::json!({})),
    ] {
        let path = format!("/v1/runs/latest/{operation}");
        let refused = Api::of(&workspace).post(&path, &body.to_string());
        assert_eq!(refused.refusal(), (400, "run_not_named".to_owned()));
    }
    let phase = workspace.show("latest")["summary"]["phase"].clone();
    assert_eq!(phase, "awaiting_approval");
    daemon.stop();
}
