//! Commands by other names, and inputs as arguments.

use super::*;

#[test]
fn commands_of_other_programs_are_answered_with_ours() {
    let place = Place::new();
    for (given, ours) in [
        ("ls", "workerctl runs"),
        ("list", "workerctl skills"),
        ("validate", "workerctl check"),
        ("start", "workerctl run SKILL"),
        ("ps", "workerctl status"),
        ("stop", "workerctl daemon drain"),
    ] {
        let refused = place.output(&[given]);
        assert_eq!(refused.status.code(), Some(2), "{given}");
        let told = text(&refused.stderr);
        assert!(told.contains(ours), "{given}: {told}");
    }
}

#[test]
fn inputs_are_arguments_and_earlier_names_of_commands_work() {
    let place = Place::new();
    place.worker(
        "  - id: say\n    description: d\n    run: echo {word} {other}\n    interface:\n      inputs: [{name: word, type: string}, {name: other, type: string}]\n",
    );
    let run = [
        "run",
        "say",
        "word=a b",
        "--dry-run",
        "-i",
        "other=c",
        "--json",
    ];
    let rendered: serde_json::Value = serde_json::from_slice(&place.output(&run).stdout).unwrap();
    assert_eq!(
        rendered["inputs"],
        serde_json::json!({"word": "a b", "other": "c"})
    );
    let missing = place.output(&["run", "say", "word"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("NAME=VALUE"), "{missing:?}");
    for args in [
        &["workers"][..],
        &["worker", "list"],
        &["skills"],
        &["skill"],
        &["model"],
        &["models", "list"],
        &["schedule"],
        &["render", "say", "word=a", "other=b"],
        &["daemon", "unit"],
        &["unit", "print"],
        &["version"],
    ] {
        let done = place.output(args);
        assert_eq!(done.status.code(), Some(0), "{args:?}: {done:?}");
    }
    let versions: serde_json::Value =
        serde_json::from_slice(&place.output(&["--version", "--json"]).stdout).unwrap();
    assert_eq!(versions["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_code_is_explained_from_the_documentation() {
    let place = Place::new();
    let explained = place.output(&["explain", "yaml-syntax"]);
    assert_eq!(explained.status.code(), Some(0));
    let shown = text(&explained.stdout);
    assert!(
        shown.contains("yaml-syntax") && shown.contains("problems.md"),
        "{shown}"
    );
    // Codes of runs are named in the text.
    for code in [
        "recovery_failed",
        "protected_path",
        "rule_file",
        "sandbox_grant",
    ] {
        let explained = place.output(&["explain", code]);
        assert!(
            text(&explained.stdout).contains(".md"),
            "{code}: {explained:?}"
        );
    }
    let unknown = place.output(&["explain", "yaml-sintax"]);
    assert_eq!(unknown.status.code(), Some(3));
    assert!(text(&unknown.stderr).contains("yaml-syntax"), "{unknown:?}");
}

#[test]
fn help_has_groups_and_fits_a_terminal() {
    let place = Place::new();
    let help = place.output(&["--help"]);
    let shown = text(&help.stdout);
    for group in [
        "Getting started:",
        "Runs:",
        "Definitions:",
        "Schedules:",
        "Service:",
        "Maintenance:",
    ] {
        assert!(shown.contains(group), "{shown}");
    }
    assert!(!shown.contains("render"), "{shown}");
    let short = place.output(&["-h"]);
    let wide = text(&short.stdout)
        .lines()
        .find(|line| line.chars().count() > 100);
    assert_eq!(wide, None);
    let run = place.output(&["run", "--help"]);
    let shown = text(&run.stdout);
    assert!(
        shown.contains("Global options: -C DIR") && !shown.contains("WORKERCTL_JSON"),
        "{shown}"
    );
}
