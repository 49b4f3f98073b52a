//! A conversation from its task to its end.

use serde_json::json;

use super::server::script::{Reply, Say};
use super::workspace::daemon::Daemon;
use super::{Rig, call, changing, failure, outcome, reading, text};

const MRR: &str = r"
  - id: mrr
    name: MRR Report
    description: Current MRR
    interface: {outputs: [{type: console}]}
    verification: []
    mutating: false
    instructions: Tell the MRR.
";

#[test]
fn a_skill_without_a_command_is_answered_by_its_model() {
    let rig = Rig::new(MRR, vec![text("The MRR is 42.")]);
    let done = rig.run(&["mrr"]).expect_code(0);
    assert!(done.stderr.contains("The MRR is 42."), "{done:?}");
    assert!(done.stdout.contains("unverified"), "{done:?}");
    let seen = rig.server.requests();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].body["system"][0]["text"], "Tell the MRR.");
}

#[test]
fn a_mutating_skill_works_in_its_tree_and_lands_as_one_commit() {
    let skill = r#"
  - id: monthly-report
    name: Monthly Report
    description: Generate monthly financial report
    instructions: Write the report.
    interface:
      inputs: [{name: month, type: string, required: true}]
      outputs: [{name: report, type: markdown, destination: "workspace/reports/finance/{month}-report.md"}]
    verification:
      - command: "test -f workspace/reports/finance/{month}-report.md"
    mutating: true
"#;
    let script = vec![
        call("read_file", &json!({"path": "tracked.txt"})),
        call(
            "bash",
            &json!({"command": "echo $WORKERCTL_INPUT_month; pwd"}),
        ),
        call(
            "submit_output",
            &json!({"name": "report", "content": "# January\n"}),
        ),
        text("Done."),
    ];
    let rig = Rig::new(skill, script);
    let shown = rig.ran(&["monthly-report", "-i", "month=2026-01"]);
    assert_eq!(
        shown["summary"]["outcome"]["kind"], "succeeded",
        "{shown:#}"
    );
    assert_eq!(shown["summary"]["unverified"], false);
    let committed = rig
        .workspace
        .git(&["show", "HEAD:workspace/reports/finance/2026-01-report.md"]);
    assert_eq!(committed, "# January\n");
    assert_eq!(rig.workspace.committed_runs().len(), 1);
    assert_eq!(rig.results(1), ["as committed\n"]);
    let second = &rig.results(2)[1];
    assert!(second.starts_with("2026-01\n"), "{second}");
}

#[test]
fn another_attempt_is_told_why_the_one_before_failed() {
    let more = "    idempotent: true\n    retry: {max_attempts: 2, backoff: 1ms, on: [verification]}\n    verification: [{check: whole, command: grep -q whole report.md}]\n";
    let submit = |text: &str| call("submit_output", &json!({"name": "report", "content": text}));
    let script = vec![
        submit("half\n"),
        text("Done."),
        call("list_directory", &json!({})),
        submit("whole\n"),
        text("Done."),
    ];
    let rig = Rig::new(&changing(more), script);
    let shown = rig.ran(&["change"]);
    assert_eq!(outcome(&shown)["kind"], "succeeded", "{shown:#}");
    assert_eq!(rig.asked(), 5);
    let first = |n: usize| super::text_of(&rig.server.requests()[n].body["messages"][0]["content"]);
    assert!(!first(0).contains("The previous attempt failed"));
    let task = first(2);
    assert!(task.contains("The previous attempt failed"), "{task}");
    assert!(task.contains("whole"), "{task}");
    // It begins anew: in a tree without the report.
    assert!(
        !rig.results(3)[0].contains("report.md"),
        "{:?}",
        rig.results(3)
    );
    assert_eq!(rig.workspace.git(&["show", "HEAD:report.md"]), "whole\n");
}

const REPORT: &str =
    "    interface: {outputs: [{name: report, type: markdown, destination: report.md}]}\n";

#[test]
fn an_answer_of_three_megabytes_is_kept_and_one_of_five_is_refused() {
    let long = "0123456789\n".repeat(300_000);
    let rig = Rig::new(&reading(REPORT), vec![text(&long)]);
    rig.run(&["mrr"]).expect_code(0);
    assert_eq!(rig.workspace.read("report.md").unwrap(), long);
    let rig = Rig::new(
        &reading(REPORT),
        vec![text(&"0123456789\n".repeat(500_000))],
    );
    let shown = rig.fails(&["mrr"]);
    assert_eq!(failure(&shown)["code"], "too_large", "{shown:#}");
    assert_eq!(rig.workspace.read("report.md"), None);
}

#[test]
fn of_too_many_calls_in_one_turn_the_rest_is_refused() {
    let mut say = Say::nothing().usage(100, 20, 0, 0);
    for _ in 0..70 {
        say = say.call("read_file", r#"{"path": "tracked.txt"}"#);
        say = say.call("list_directory", "{}");
    }
    let rig = Rig::new(&reading(""), vec![say.into(), text("Done.")]);
    rig.run(&["mrr"]).expect_code(0);
    let results = super::tools::told(&rig);
    let refused = results
        .iter()
        .filter(|result| result.starts_with("!more than 64 calls"));
    assert_eq!(refused.count(), results.len() - 64);
}

#[test]
fn what_is_said_is_logged_line_by_line() {
    let answer = Say::text("one\ntw")
        .and("o\n")
        .and("thr")
        .and("ee")
        .usage(1, 1, 0, 0);
    let calling = Say::text("zero")
        .call("list_directory", "{}")
        .usage(1, 1, 0, 0);
    let rig = Rig::new(&reading(""), vec![calling.into(), answer.into()]);
    rig.run(&["mrr"]).expect_code(0);
    let logs = rig.logs();
    let said: Vec<&str> = logs
        .lines()
        .filter_map(|line| {
            ["zero", "one", "two", "three"]
                .into_iter()
                .find(|word| line.ends_with(word))
        })
        .collect();
    assert_eq!(said, ["zero", "one", "two", "three"], "{logs}");
}

#[test]
fn runs_talk_to_their_models_at_the_same_time() {
    const RUNS: usize = 6;
    let answer: Reply = Say::text("The MRR ")
        .and("is 42.")
        .usage(1, 1, 0, 0)
        .gated()
        .into();
    let config = format!("max_parallel: {RUNS}\n");
    let rig = Rig::configured(&reading(""), &config, vec![answer]);
    let daemon = Daemon::start(&rig.workspace);
    let submit = |_| rig.workspace.submit(&["mrr"]);
    let runs: Vec<String> = (0..RUNS).map(submit).collect();
    rig.server.wait_for_requests(RUNS);
    rig.server.let_through(1_000);
    for run in &runs {
        assert_eq!(rig.workspace.wait(run).0, 0);
    }
    assert_eq!(rig.asked(), RUNS);
    daemon.stop();
}

/// A journal has a limit of its own, at which the run would be given up.
#[test]
fn arguments_that_nest_too_deep_are_told_to_the_model() {
    let deep = format!("{{\"path\": {}{}}}", "[".repeat(118), "]".repeat(118));
    let rig = Rig::new(
        MRR,
        vec![
            super::Say::nothing().call("read_file", &deep).into(),
            text("Then not."),
        ],
    );
    let shown = rig.ran(&["mrr"]);
    assert_eq!(
        shown["summary"]["outcome"]["kind"], "succeeded",
        "{shown:#}"
    );
    let told = &rig.results(1)[0];
    assert!(told.contains("nest more than 64 deep"), "{told}");
}

#[test]
fn what_a_model_would_be_told_is_shown_before() {
    let rig = Rig::new(MRR, vec![text("never asked")]);
    let shown = rig.workspace.run(&["render", "mrr"]).expect_code(0).stdout;
    for wanted in [
        "Tell the MRR.",
        "default (scripted-1), at most 5 turns",
        "read_file",
    ] {
        assert!(shown.contains(wanted), "{wanted}: {shown}");
    }
    let dry = rig.run(&["mrr", "--dry-run"]).expect_code(0);
    assert!(dry.stdout.contains("Tell the MRR."), "{dry:?}");
    assert_eq!(rig.server.requests().len(), 0);
}
