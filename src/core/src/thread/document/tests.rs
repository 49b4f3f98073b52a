use super::*;
use crate::machine::{CancelKind, Event, Run};
use crate::model::evidence::{RestoreReport, Verdict};
use crate::thread::metrics::metrics_line;
use crate::thread::project::{ThreadPaths, detail, summary};
use crate::thread::samples::{self, journal};

fn git() -> GitFacts {
    GitFacts {
        branch: Some("main".into()),
        remote_url: Some("https://me:token@host.example/x.git".into()),
        ..GitFacts::default()
    }
}

fn told(spec: &RunSpec, events: Vec<Event>) -> Value {
    document(spec, &journal(events), &git(), None, &Masker::none())
}

fn up_to_execution(spec: &RunSpec) -> Vec<Event> {
    vec![
        samples::submitted(spec),
        samples::admitted(),
        samples::validated(),
        samples::prepared(),
    ]
}

#[test]
fn a_success_fills_the_schema() {
    let spec = samples::spec();
    let entries = samples::succeeded(&spec);
    let value = document(&spec, &entries, &git(), None, &Masker::none());
    assert_eq!(value["thread_id"], spec.thread.as_str());
    assert_eq!(value["worker"]["state"], "completed");
    assert_eq!(value["worker"]["error"], Value::Null);
    assert_eq!(value["cwd"], "sub");
    assert_eq!(value["git"]["remote_url"], "https://host.example/x.git");
    assert_eq!(
        value["conversation_summary"],
        "repo-steward/weekly-report succeeded, 1 check passed, commit 0123456789, in 10.0s."
    );
    assert_eq!(value["files_touched"], json!(["reports/r.md", "x.txt"]));
    assert_eq!(value["next_steps"], json!([]));
    assert_eq!(value["run"]["attempts"][0]["failure"]["code"], "exit_code");
    assert_eq!(
        value["run"]["attempts"][1]["checks"][0]["output"],
        "checked\n"
    );
    assert_eq!(value["run"]["hooks"][0]["command"], "notify");
    assert_eq!(value["run"]["timings"]["phases_ms"]["queued"], 1_000);
    assert_eq!(value["run"]["timings"]["duration_ms"], 10_000);
    let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 14);
}

#[test]
fn an_unverified_success_says_so() {
    let mut spec = samples::spec();
    spec.plan.verifies = false;
    spec.plan.mutating = false;
    let mut events = up_to_execution(&spec);
    events.extend([samples::executed(1, 0), samples::recorded(1), Event::Saved]);
    let value = told(&spec, events);
    let sentence = value["conversation_summary"].as_str().unwrap();
    assert!(sentence.contains("unverified"), "{sentence}");
    assert_eq!(value["run"]["unverified"], true);
    assert!(
        value["next_steps"][0]
            .as_str()
            .unwrap()
            .contains("workerctl show")
    );
}

#[test]
fn a_failed_check_says_how_to_look() {
    let mut spec = samples::spec();
    spec.plan.retry.max_attempts = 1;
    let mut events = up_to_execution(&spec);
    let report = RestoreReport {
        put_back: 1,
        edited_since: vec!["x.txt".into()],
        ..RestoreReport::default()
    };
    events.extend([
        samples::executed(1, 0),
        samples::recorded(1),
        samples::checked(1, Verdict::Failed),
        Event::Restored { report },
        Event::Saved,
    ]);
    let value = told(&spec, events);
    assert_eq!(value["worker"]["state"], "error");
    let steps = value["next_steps"].to_string();
    for wanted in [
        "test -s reports/r.md",
        "workerctl logs",
        "workerctl diff",
        "workerctl retry",
        "put back by hand: x.txt: edited since",
    ] {
        assert!(steps.contains(wanted), "{steps}");
    }
}

#[test]
fn a_lost_owner_is_reconciled_or_unknown_and_said_so() {
    let mut spec = samples::spec();
    spec.plan.idempotent = false;
    let mut events = up_to_execution(&spec);
    events.extend([Event::OwnerLost, samples::recorded(1)]);
    let (mut good, mut bad) = (events.clone(), events);
    good.extend([
        samples::checked(1, Verdict::Passed),
        Event::HookFinished {
            index: 0,
            verdict: crate::machine::HookVerdict::Passed,
            sandbox_level: None,
        },
        Event::Saved,
        Event::NothingToCommit,
    ]);
    let value = told(&spec, good);
    let sentence = value["conversation_summary"].as_str().unwrap();
    assert!(sentence.contains("reconciled") && sentence.contains("nothing was committed"));
    assert_eq!(value["run"]["attempts"][0]["failure"], Value::Null);

    let report = RestoreReport::default();
    bad.extend([
        samples::checked(1, Verdict::Failed),
        Event::Restored { report },
        Event::Saved,
    ]);
    let value = told(&spec, bad);
    assert!(
        value["next_steps"][0]
            .as_str()
            .unwrap()
            .contains("workerctl resolve")
    );
    assert!(value["run"]["attempts"][0]["failure"].is_object());
}

#[test]
fn while_it_runs_it_is_no_success_and_no_error() {
    let spec = samples::spec();
    let value = told(&spec, up_to_execution(&spec));
    assert_eq!(value["worker"]["state"], "executing");
    assert_eq!(value["run"]["outcome"], Value::Null);
    assert_eq!(
        value["conversation_summary"],
        "repo-steward/weekly-report is executing."
    );
}

#[test]
fn secrets_and_control_characters_stay_out_of_the_file() {
    let mut spec = samples::spec();
    spec.title = "report \u{1b}[31m \u{202e} swordfish".into();
    let masker = Masker::new([("S", &b"swordfish"[..])]).unwrap();
    let value = document(&spec, &samples::succeeded(&spec), &git(), None, &masker);
    let text = document_text(&value);
    assert!(!text.contains("swordfish") && text.contains("***"));
    assert!(!text.contains(|c: char| c == '\u{202e}' || (c.is_control() && c != '\n')));
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
}

#[test]
fn a_journal_that_does_not_fold_is_told_of_nevertheless() {
    let spec = samples::spec();
    let mut entries = samples::succeeded(&spec);
    entries.remove(4);
    let value = document(&spec, &entries, &git(), None, &Masker::none());
    assert_eq!(value["run"]["outcome"]["why"], "journal");
    assert!(
        value["run"]["warnings"][0]
            .as_str()
            .unwrap()
            .contains("cannot be read further")
    );
    let paths = ThreadPaths {
        document: "d".into(),
        log: "l".into(),
    };
    assert!(detail(&spec, &[], &paths).summary.outcome.is_some());
}

#[test]
fn every_prefix_of_a_journal_has_a_summary_a_detail_and_metrics() {
    let spec = samples::spec();
    let entries = samples::succeeded(&spec);
    let paths = ThreadPaths {
        document: "d".into(),
        log: "l".into(),
    };
    for end in 1..=entries.len() {
        let run = Run::fold(&entries[..end]).unwrap();
        let line = summary(&spec, &run, &entries[..end]);
        assert_eq!(line.phase, run.phase());
        let full = detail(&spec, &entries[..end], &paths);
        assert_eq!((full.summary, full.timeline.len()), (line, end));
    }
    let line = metrics_line(&spec, &entries);
    assert_eq!(
        (line.attempts, line.output_bytes, line.total_ms),
        (2, 30, 14_000)
    );
    assert_eq!((line.execution_ms, line.backoff_ms), (2_000, 1_000));
    assert_eq!(line.outcome, "succeeded");
}

#[test]
fn a_cancelled_run_names_who_ended_its_attempt() {
    let spec = samples::spec();
    let mut events = up_to_execution(&spec);
    events.extend([
        Event::CancelRequested {
            kind: CancelKind::Graceful,
            by: "me".into(),
        },
        samples::executed(1, 143),
    ]);
    let value = told(&spec, events);
    assert_eq!(value["run"]["attempts"][0]["failure"]["code"], "cancelled");
    assert_eq!(value["worker"]["state"], "error");
    assert_eq!(value["worker"]["completed_at"], Value::Null);
}

#[test]
fn addresses_lose_their_credentials_only() {
    for (url, shown) in [
        ("git@github.com:a/b.git", "git@github.com:a/b.git"),
        ("https://github.com/a@b/c", "https://github.com/a@b/c"),
        ("ssh://git@host/x", "ssh://host/x"),
    ] {
        assert_eq!(without_credentials(url), shown);
    }
}
