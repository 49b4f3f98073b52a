//! Commands against an engine that says what a test wants.

mod definitions;
mod width;

use crate::cli::fake::{Console, Fake, failed_detail, log_line, run_id};
use crate::cli::interrupts::Interrupt;
use crate::model::{Diagnostic, Kind, Outcome};
use crate::protocol::LogStream;

fn console() -> Console {
    Console::new(Fake::default())
}

#[test]
fn run_waits_shows_and_ends_with_the_code_of_the_outcome() {
    let mut fake = Fake::default();
    fake.lines = vec![log_line(0, LogStream::Stdout, "hello\u{1b}[2J")];
    let console = Console::new(fake);
    let left = console.perform(&[
        "run",
        "weekly-changes",
        "--input",
        "weeks=2",
        "-i",
        "weeks=3",
    ]);
    assert_eq!(left.code, 0, "{left:?}");
    assert!(
        left.out
            .starts_with("✓ repo-steward/weekly-changes succeeded in 4.2s  run "),
        "{left:?}"
    );
    xtest::assert_text!(left.err.replace(&run_id().short(), "RUN"), @r"
    run RUN  T-20261118-110640-repo-steward-weekly-changes-zevfqf
    queued
    executing
      │ hello\x1b[2J
    ");
    xtest::assert_text!(console.asked()[0], @r#"submit {"skill":"weekly-changes","input":[["weeks","2"],["weeks","3"]],"inputs":null,"key":"once","by":"ada"}"#);

    let left = Console::new(Fake::of(failed_detail())).perform(&["run", "x", "--quiet"]);
    assert_eq!(
        (left.code, left.out.lines().count(), left.err.as_str()),
        (
            5,
            1,
            "  verify failed (check_failed): the report is not empty\n  not restored  a/b: permission denied\n"
        ),
        "{left:?}"
    );
}

#[test]
fn a_submission_of_which_nothing_is_known_can_be_repeated_with_its_key() {
    let mut fake = Fake::default();
    fake.refusal = Some(
        Diagnostic::new(Kind::Open, "answer_lost", "whether this was done is open")
            .hint("a hint for programs"),
    );
    let console = Console::new(fake);
    let left = console.perform(&["run", "weekly-changes", "--key", "mine", "--no-wait"]);
    assert_eq!((left.code, left.out.as_str()), (9, ""));
    xtest::assert_text!(left.err, @r"
    error: whether this was done is open
    hint: `workerctl runs` shows whether the run was accepted
    hint: you can safely repeat the command with `--key mine`: it does not start a second run
    ");
    // Each submission has a key of its own, unless one was given.
    let keys: Vec<String> = (0..2)
        .map(|_| {
            let left = console.perform(&["run", "weekly-changes"]);
            assert_eq!(left.code, 9, "{left:?}");
            let (_, rest) = left.err.split_once("--key once-").unwrap();
            rest.split_once('`').unwrap().0.to_owned()
        })
        .collect();
    assert!(keys[0] != keys[1] && keys[0].len() == 16, "{keys:?}");
    let left = console.perform(&["retry", "latest"]);
    assert_eq!(left.code, 9);
    xtest::assert_text!(left.err, @r"
    error: whether this was done is open
    hint: `workerctl runs` shows whether the run was accepted
    ");
}

#[test]
fn who_waits_on_a_full_disk_is_told_once() {
    let mut fake = Fake::default();
    fake.condition = "disk_full";
    let console = Console::new(fake);
    let left = console.perform(&["run", "weekly-changes"]);
    assert_eq!(left.err.matches("the disk is full").count(), 1, "{left:?}");
    for quiet in ["--quiet", "--json"] {
        let left = console.perform(&["run", "weekly-changes", quiet]);
        assert_eq!((left.code, left.err.as_str()), (0, ""), "{left:?}");
    }
}

#[test]
fn run_without_waiting_prints_the_id_alone() {
    let left = console().perform(&["run", "weekly-changes", "--no-wait"]);
    assert_eq!(
        (left.out, left.err, left.code),
        (format!("{}\n", run_id()), String::new(), 0)
    );
    let mut alone = Fake::default();
    alone.daemon = false;
    let left = Console::new(alone).perform(&["run", "weekly-changes", "--no-wait"]);
    xtest::assert_text!(left.err, @r"
    error: no engine runs
    hint: without `--no-wait` the run is done in this process
    ");
    assert_eq!((left.out.as_str(), left.code), ("", 7));
}

#[test]
fn inputs_are_read_as_one_json_object() {
    let mut console = console();
    console.input = br#"{"weeks": 2, "at": 5}"#.to_vec();
    assert_eq!(console.perform(&["run", "x", "--inputs-json", "-"]).code, 0);
    assert!(
        console.asked()[0].contains(r#""inputs":{"weeks":2,"at":5}"#),
        "{:?}",
        console.asked()
    );
    for (text, code) in [("[1]", "not a JSON object"), ("{", "EOF"), ("", "EOF")] {
        console.input = text.as_bytes().to_vec();
        let left = console.perform(&["run", "x", "--inputs-json", "-"]);
        assert!(left.code == 2 && left.err.contains(code), "{left:?}");
    }
    let left = console.perform(&["run", "x", "--inputs-json", "nowhere.json"]);
    assert!(
        left.code == 2 && left.err.contains("`nowhere.json`"),
        "{left:?}"
    );
    console.input = vec![b' '; 5 * 1024 * 1024];
    let left = console.perform(&["run", "x", "--inputs-json", "-"]);
    assert!(left.code == 2 && left.err.contains("more than"), "{left:?}");
}

#[test]
fn what_was_probably_meant_is_offered() {
    let mut fake = Fake::default();
    fake.refusal = Some(Diagnostic::new(
        Kind::NotFound,
        "skill_unknown",
        "no skill is called `weekly-chnages`",
    ));
    let console = Console::new(fake);
    let left = console.perform(&["run", "weekly-chnages"]);
    assert_eq!(left.code, 3);
    xtest::assert_text!(left.err, @r"
    error: no skill is called `weekly-chnages`
    hint: did you mean `repo-steward/weekly-changes`?
    ");
    let left = console.perform(&["run", "weekly-chnages", "--json"]);
    let error: serde_json::Value = serde_json::from_str(&left.err).unwrap();
    assert_eq!(error["error"]["code"], "skill_unknown");
    assert_eq!(error["error"]["exit_code"], 3);
    assert_eq!(left.out, "");
}

#[test]
fn the_first_interrupt_cancels_the_second_ends_the_third_leaves() {
    let cancelled = || {
        let mut detail = failed_detail();
        detail.summary.outcome = Some(Outcome::Cancelled);
        detail
    };
    let with = |signals: Vec<Interrupt>, daemon: bool| {
        let mut fake = Fake::of(cancelled());
        fake.daemon = daemon;
        fake.signals = signals;
        let console = Console::new(fake);
        let left = console.perform(&["run", "x"]);
        let cancels: Vec<String> = console
            .asked()
            .into_iter()
            .filter(|asked| asked.starts_with("cancel"))
            .collect();
        (left, cancels)
    };
    let (left, cancels) = with(vec![Interrupt::Interrupted], true);
    assert_eq!(cancels, ["cancel now=false"]);
    assert_eq!(left.code, 130);
    assert!(
        left.err
            .contains("interrupt again to end its processes at once"),
        "{left:?}"
    );
    assert!(left.out.contains("cancelled"), "{left:?}");

    for count in [2, 3] {
        let (left, cancels) = with(vec![Interrupt::Interrupted; count], true);
        assert_eq!(cancels, ["cancel now=false", "cancel now=true"]);
        assert_eq!(left.code, 130);
        let told = left.err.contains("it is being cancelled: `workerctl wait");
        assert_eq!(told, count == 3, "{left:?}");
    }
    let (left, _) = with(vec![Interrupt::Interrupted; 3], false);
    assert!(
        left.err.contains("the next engine recovers the run"),
        "{left:?}"
    );
}

#[test]
fn a_client_that_is_ended_cancels_nothing_unless_the_engine_goes_with_it() {
    for (daemon, cancels) in [(true, 0), (false, 1)] {
        let mut fake = Fake::of(failed_detail());
        fake.detail.get_mut().unwrap().summary.outcome = Some(Outcome::Cancelled);
        fake.signals = vec![Interrupt::Terminated];
        fake.daemon = daemon;
        let console = Console::new(fake);
        assert_eq!(console.perform(&["run", "x"]).code, 130);
        let asked = console.asked();
        assert_eq!(
            asked.iter().filter(|one| one.starts_with("cancel")).count(),
            cancels
        );
    }
}

#[test]
fn an_interrupt_between_the_request_and_the_waiting_cancels_too() {
    for line in [["run", "x"], ["retry", "latest"]] {
        let mut fake = Fake::of(failed_detail());
        fake.detail.get_mut().unwrap().summary.outcome = Some(Outcome::Cancelled);
        fake.early = Some(Interrupt::Interrupted);
        let console = Console::new(fake);
        assert_eq!(console.perform(&line).code, 130);
        assert!(console.asked().contains(&"cancel now=false".to_owned()));
    }
}

#[test]
fn a_success_in_spite_of_ctrl_c_is_a_success() {
    let mut fake = Fake::default();
    fake.signals = vec![Interrupt::Interrupted];
    assert_eq!(Console::new(fake).perform(&["run", "x"]).code, 0);
}

#[test]
fn an_existing_run_of_the_same_key_is_told() {
    let left = console().perform(&["run", "x", "--key", "k"]);
    assert!(
        left.err
            .contains("an earlier request with this key had made the run"),
        "{left:?}"
    );
}

#[test]
fn lists_are_tables_for_people_and_objects_for_programs() {
    let console = console();
    let short = run_id().short();
    let left = console.perform(&[
        "runs",
        "--since",
        "2h",
        "--until",
        "2026-11-19",
        "--outcome",
        "failed",
        "-n",
        "5",
    ]);
    xtest::assert_text!(left.out.replace(&short, "RRRRRRRR"), @r"
    RUN       SKILL                        OUTCOME    SUBMITTED (Europe/Berlin)  TOOK  COMMIT
    RRRRRRRR  repo-steward/weekly-changes  succeeded  2026-11-18 12:06:40        4.2s  3f2a1bc4d
    ");
    xtest::assert_text!(console.asked().last().unwrap(), @r#"runs {"worker":null,"skill":null,"outcome":"failed","schedule":null,"by":null,"text":null,"since_ms":1794992800000,"until_ms":1795042800000,"before":null,"limit":5}"#);
    for command in ["runs", "threads", "workers", "skills"] {
        let left = console.perform(&[command, "--json"]);
        let value: serde_json::Value = serde_json::from_str(&left.out).unwrap();
        assert_eq!(value["json_version"], 1, "{command}");
        assert_eq!(
            value[command].as_array().map(Vec::len),
            Some(1),
            "{command}: {value}"
        );
        assert!(
            !left.out.contains('\u{1b}') && left.err.is_empty(),
            "{left:?}"
        );
    }
    let runs: serde_json::Value =
        serde_json::from_str(&console.perform(&["runs", "--json"]).out).unwrap();
    assert_eq!(runs["runs"][0]["submitted_at"], "2026-11-18T11:06:40.000Z");
    assert_eq!(runs["runs"][0]["run"], run_id().to_string());
    xtest::assert_text!(console.perform(&["workers"]).out, @r"
    WORKER        SKILLS  TYPE       STATE  DESCRIPTION
    repo-steward       1  OpsWorker  ok     Reports on\x1b[2J this repository
    ");
    xtest::assert_text!(console.perform(&["skills"]).out, @r"
    SKILL                        INPUTS  ENDS IN  DESCRIPTION
    repo-steward/weekly-changes          commit   What changed …
    ");
}

#[test]
fn a_bad_instant_is_a_usage_error() {
    let left = console().perform(&["runs", "--since", "yesterday"]);
    assert_eq!(left.code, 2);
    xtest::assert_text!(left.err, @r"
    error: `--since yesterday` cannot be read
    hint: give a duration (`2h`, `3d`), a date (`2026-11-20`) or a time (`2026-11-20T09:00`, `2026-11-20T09:00:00Z`)
    ");
}

#[test]
fn runs_are_found_by_parts_and_as_the_latest() {
    let console = console();
    for name in ["latest", &run_id().short(), &run_id().to_string()] {
        let left = console.perform(&["show", name]);
        assert!(
            left.code == 0 && left.out.contains("Weekly changes"),
            "{left:?}"
        );
    }
    let left = console.perform(&["show", "zzzz"]);
    assert_eq!(left.code, 3);
    xtest::assert_text!(left.err, @r"
    error: no run is called `zzzz`
    hint: `workerctl runs` lists them; any unique beginning or end of an id will do
    ");
    let shown: serde_json::Value =
        serde_json::from_str(&console.perform(&["show", "--json"]).out).unwrap();
    assert_eq!(shown["summary"]["run"], run_id().to_string());
}

#[test]
fn logs_are_filtered_and_nothing_is_lost() {
    let mut fake = Fake::default();
    fake.lines = vec![
        log_line(0, LogStream::Event, "submitted"),
        log_line(1, LogStream::Stdout, "one\u{1b}]0;x\u{7}"),
        log_line(2, LogStream::Stderr, "two\rthree"),
        log_line(3, LogStream::Check, "four"),
        log_line(4, LogStream::Stdout, "five"),
    ];
    let console = Console::new(fake);
    xtest::assert_text!(console.perform(&["logs"]).out, @r"
    12:06:40.000 event │ submitted
    12:06:41.000 out   │ one\x1b]0;x\x07
    12:06:42.000 err   │ two\rthree
    12:06:43.000 check │ four
    12:06:44.000 out   │ five
    ");
    let texts = |line: &[&str]| {
        let left = console.perform(line);
        assert_eq!(left.code, 0, "{left:?}");
        left.out
            .lines()
            .map(|l| l.rsplit("│ ").next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        texts(&["logs", "--stream", "check", "--stream", "event"]),
        ["submitted", "four"]
    );
    assert_eq!(texts(&["logs", "--tail", "2"]), ["four", "five"]);
    assert_eq!(texts(&["logs", "--tail", "0"]), [""; 0]);
    assert_eq!(
        texts(&["logs", "--since", "2026-11-18T12:06:43"]),
        ["four", "five"]
    );
    assert_eq!(texts(&["logs", "--attempt", "2"]), [""; 0]);
    assert_eq!(texts(&["logs", "--follow"]).len(), 5);
    assert_eq!(texts(&["logs", "--follow", "--tail", "1"]), ["five"]);
    let left = console.perform(&["logs", "--json"]);
    assert_eq!(left.out.lines().count(), 5);
    for line in left.out.lines() {
        let _: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(!line.chars().any(char::is_control), "{line:?}");
    }
}

#[test]
fn a_patch_is_shown_safely_and_handed_on_exactly() {
    let mut console = console();
    assert!(console.perform(&["diff"]).out.ends_with("+b\u{1b}[2J\r\n"));
    console.terminal = true;
    assert!(console.perform(&["diff"]).out.ends_with("+b␛[2J␍\n"));
}

#[test]
fn waiting_ends_with_the_run_the_time_or_the_lack_of_an_engine() {
    let left = console().perform(&["wait", "latest"]);
    assert_eq!(left.code, 0, "{left:?}");
    let mut detail = failed_detail();
    detail.summary.outcome = None;
    let mut alone = Fake::of(detail);
    alone.daemon = false;
    let left = Console::new(alone).perform(&["wait", "latest"]);
    assert_eq!(left.code, 7, "{left:?}");
}

#[test]
fn requests_reach_the_engine_and_are_confirmed() {
    let (console, short) = (console(), run_id().short());
    for (line, told) in [
        (vec!["cancel", "latest", "--now"], "cancel now=true"),
        (
            vec!["resolve", &short, "--as", "failed", "--note", "looked"],
            "resolve failed looked",
        ),
        (vec!["drain"], "drain"),
        (vec!["daemon"], "serve"),
        (vec!["render", "x"], "render x"),
    ] {
        let left = console.perform(&line);
        assert_eq!(left.code, 0, "{left:?}");
        assert_eq!(console.asked().last().unwrap(), told);
    }
    xtest::assert_text!(console.perform(&["reload"]).err, @r"1 worker and 2 skills; 3 files read again; 0 errors, 0 warnings");
    xtest::assert_text!(console.perform(&["run", "x", "--dry-run"]).out, @r#"
    repo-steward/weekly-changes  mutating: ends in a commit
      in  /w
      command
        │ /bin/sh
        │ -c
        │ echo one
        │ echo "$A"
      environment
        A=x\x1b[2J
        TOKEN  secret, passed on
      outputs
        report  workspace/r.md
      checks
        not empty
          $ test -s workspace/r.md
      commit message
        │ weekly-changes: Weekly changes
      note: nothing is run
    "#);
    assert_eq!(console.perform(&["retry", "latest"]).code, 0);
}

#[test]
fn status_counts_and_lists() {
    let console = console();
    let left = console.perform(&["status"]);
    xtest::assert_text!(left.out.replace(&run_id().short(), "RRRRRRRR"), @r"
    ready  daemon, process 1  version 0.1.0, up 1m 1s
    workspace  /w
    state      /w/state
    runs       0 running, 1 queued, at most 2 at once
    catalog    1 worker and 1 skill, 0 errors and 1 warning
    zone       Europe/Berlin
    store      2 commits, 3 syncs

    RUN       SKILL                        OUTCOME                    SUBMITTED (Europe/Berlin)  TOOK  COMMIT
    RRRRRRRR  repo-steward/weekly-changes  queued for the repository  2026-11-18 12:06:40
    ");
    let status: serde_json::Value =
        serde_json::from_str(&console.perform(&["status", "--json"]).out).unwrap();
    assert_eq!(
        (&status["running"], &status["queued"]),
        (&0.into(), &1.into())
    );
    assert_eq!(status["json_version"], 1);
}

#[test]
fn versions_and_completions_need_no_workspace() {
    let console = console();
    std::fs::remove_dir(console.path().join("workers")).unwrap();
    let versions: serde_json::Value =
        serde_json::from_str(&console.perform(&["version", "--json"]).out).unwrap();
    for name in ["version", "protocol", "store", "machine"] {
        assert!(!versions[name].is_null(), "{name}");
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(
            console
                .perform(&["completions", shell])
                .out
                .contains("workerctl")
        );
    }
    let left = console.perform(&["runs"]);
    assert!(
        left.code == 3 && left.err.contains("workerctl init"),
        "{left:?}"
    );
}
