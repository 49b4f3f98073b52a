//! The logs of runs: whether they are what was written, in which colours they are shown, and what becomes of a
//! line that its skill rewrites.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::workspace::daemon::Daemon;
use crate::workspace::gate::Gate;
use crate::workspace::{Done, Workspace, eventually, skip};

const SKILLS: &str = r#"
  - {id: talk, description: d, run: "echo one; echo two; echo three"}
  - {id: fails, description: d, run: "printf 'so \\033[31mred\\033[0m\\n' >&2; exit 3"}
  - {id: colours, description: d, run: "printf 'a \\033[1;31mred\\n'; printf '\\033]0;title\\007\\033[2Jx\\n'; echo plain"}
  - {id: bar, description: d, run: "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); printf '\\r%060d' $i; done; printf '\\rdone\\r\\n'; echo after"}
"#;

/// A workspace with one run of `talk`, and the path of its log.
fn talked() -> (Workspace, PathBuf) {
    let workspace = Workspace::with_skills(SKILLS);
    let log = log_of(&workspace, "talk");
    (workspace, log)
}

fn log_of(workspace: &Workspace, skill: &str) -> PathBuf {
    let detail = workspace.json(&["run", skill]);
    detail["log_path"].as_str().unwrap().into()
}

/// The log without its first line that holds `text`, or with another in its place.
fn edited(log: &str, text: &str, with: Option<&str>) -> String {
    let at = log.lines().position(|line| line.contains(text)).unwrap();
    let mut lines: Vec<String> = log.lines().map(str::to_owned).collect();
    match with {
        Some(with) => lines[at] = lines[at].replace(text, with),
        None => drop(lines.remove(at)),
    }
    lines.join("\n") + "\n"
}

fn summary_of(log: &Path) -> PathBuf {
    log.with_extension("json")
}

/// Asserts that every command that tells of threads tells of this damage.
fn expect_told(workspace: &Workspace, log: &Path, damage: &str) {
    let thread = log.file_stem().unwrap().to_str().unwrap();
    let named = format!("{thread}: {damage}");
    for (arguments, code) in [
        (&["threads", "verify"][..], 1),
        (&["threads", "verify", "latest"], 1),
        (&["threads", "verify", "--all"], 1),
        (&["doctor"], 1),
        (&["store", "verify"], 1),
    ] {
        let done = workspace.run(arguments).expect_code(code);
        assert!(done.stdout.contains(&named), "{arguments:?}: {done:?}");
        assert!(done.stdout.contains("1 damaged"), "{arguments:?}: {done:?}");
    }
    let shown = workspace.run(&["threads", "show"]).expect_code(0);
    assert!(
        shown.stdout.contains(&format!("damaged: {damage}")),
        "{shown:?}"
    );
    let logs = workspace.run(&["logs"]).expect_code(0);
    let warning = format!("warning: this log is damaged or was modified: {damage}");
    assert!(logs.stderr.contains(&warning), "{logs:?}");
}

#[test]
fn a_log_that_was_changed_is_found_by_every_command_that_tells_of_threads() {
    let (workspace, log) = talked();
    let whole = fs::read_to_string(&log).unwrap();
    let count = whole.lines().count();
    for arguments in [
        &["threads", "verify"][..],
        &["doctor"],
        &["store", "verify"],
    ] {
        let done = workspace.run(arguments).expect_code(0);
        assert!(done.stdout.contains("1 thread verified\n"), "{done:?}");
    }
    assert_eq!(workspace.run(&["logs"]).expect_code(0).stderr, "");

    let at = whole
        .lines()
        .position(|line| line.contains("\"two\""))
        .unwrap();
    fs::write(&log, edited(&whole, "\"two\"", Some("\"2\""))).unwrap();
    let next = at + 1;
    let told = format!("line {next} does not match the hash of line {at}");
    expect_told(&workspace, &log, &told);

    fs::write(&log, edited(&whole, "\"two\"", None)).unwrap();
    let told = format!("found line {next} instead of line {at}");
    expect_told(&workspace, &log, &told);

    // The last two lines, up to the end of a line.
    let kept: Vec<&str> = whole.split_inclusive('\n').take(count - 2).collect();
    fs::write(&log, kept.concat()).unwrap();
    let told = format!(
        "its log is cut off: {} of {count} lines are there",
        count - 2
    );
    expect_told(&workspace, &log, &told);

    fs::write(&log, &whole[..whole.len() - 5]).unwrap();
    let told = format!(
        "its log is cut off: {} of {count} lines are there",
        count - 1
    );
    expect_told(&workspace, &log, &told);

    fs::write(&log, format!("{whole}more")).unwrap();
    let done = workspace.run(&["threads", "verify"]).expect_code(1);
    assert!(done.stdout.contains("in the middle of a line"), "{done:?}");

    fs::write(&log, "").unwrap();
    let told = format!("its log is cut off: 0 of {count} lines are there");
    expect_told(&workspace, &log, &told);

    fs::remove_file(&log).unwrap();
    expect_told(&workspace, &log, "its log is missing");
    symlink("/etc/hostname", &log).unwrap();
    let done = workspace.run(&["threads", "verify"]).expect_code(1);
    assert!(done.stdout.contains("is a link"), "{done:?}");
    fs::remove_file(&log).unwrap();

    fs::write(&log, &whole).unwrap();
    workspace.run(&["threads", "verify"]).expect_code(0);
}

#[test]
fn a_summary_that_is_not_the_one_of_the_journal_is_found() {
    let (workspace, log) = talked();
    let summary = summary_of(&log);
    let whole = fs::read_to_string(&summary).unwrap();
    let mut other: Value = serde_json::from_str(&whole).unwrap();
    other["run"]["outcome"] = serde_json::json!({"kind": "cancelled"});
    fs::write(&summary, other.to_string()).unwrap();
    let done = workspace.run(&["threads", "verify"]).expect_code(1);
    let told = "its summary says `cancelled`, the journal `succeeded`";
    assert!(done.stdout.contains(told), "{done:?}");
    fs::write(&summary, "").unwrap();
    let done = workspace.run(&["threads", "verify"]).expect_code(1);
    assert!(
        done.stdout.contains("its summary cannot be read"),
        "{done:?}"
    );
    fs::remove_file(&summary).unwrap();
    let done = workspace.run(&["threads", "verify"]).expect_code(1);
    assert!(done.stdout.contains("its summary is missing"), "{done:?}");
}

#[test]
fn threads_of_older_versions_are_verified_as_far_as_that_is_possible() {
    let (workspace, log) = talked();
    let summary = summary_of(&log);
    let mut older: Value = serde_json::from_str(&fs::read_to_string(&summary).unwrap()).unwrap();
    older["run"].as_object_mut().unwrap().remove("log");
    fs::write(&summary, older.to_string()).unwrap();
    let done = workspace.run(&["threads", "verify"]).expect_code(0);
    let told = "1 thread verified, 1 without a recorded end";
    assert!(done.stdout.contains(told), "{done:?}");
    let shown = workspace.run(&["threads", "show"]).expect_code(0);
    assert!(
        shown.stdout.contains("where it ended is not recorded"),
        "{shown:?}"
    );
    // The events that are missing at its end are known from the journal.
    let whole = fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    fs::write(&log, lines[..lines.len() - 1].concat()).unwrap();
    let done = workspace.run(&["threads", "verify"]).expect_code(1);
    assert!(done.stdout.contains("events are there"), "{done:?}");
}

#[test]
fn a_thread_is_verified_as_json_and_one_that_is_not_there_is_3() {
    let (workspace, log) = talked();
    let verified = workspace.json(&["threads", "verify"]);
    assert_eq!(verified["verified_count"], 1);
    assert_eq!(verified["threads"][0]["state"], "verified", "{verified}");
    let lines = fs::read_to_string(&log).unwrap().lines().count();
    assert_eq!(verified["threads"][0]["lines"], lines);
    workspace
        .run(&["threads", "verify", "nosuchrun"])
        .expect_code(3);
    workspace
        .run(&["threads", "show", "nosuchrun"])
        .expect_code(3);
    fs::remove_file(&log).unwrap();
    let done = workspace
        .run(&["threads", "verify", "--json"])
        .expect_code(1);
    assert_eq!(done.value()["damaged_count"], 1, "{done:?}");
    assert_eq!(done.value()["threads"][0]["damage"], "its log is missing");
}

#[test]
fn a_thread_is_shown_as_a_person_reads_it() {
    let (workspace, _) = talked();
    let shown = workspace
        .run(&["threads", "show", "latest"])
        .expect_code(0)
        .stdout;
    for told in [
        "w/talk ended without an error",
        "state      completed",
        "lines, verified\n",
    ] {
        assert!(shown.contains(told), "{shown}");
    }
    let json = workspace.json(&["threads", "show"]);
    assert_eq!(json["check"]["state"], "verified");
    assert_eq!(json["summary"]["worker"]["skill"], "talk");
}

#[test]
fn a_log_that_is_being_written_or_was_torn_by_a_crash_is_no_damage() {
    let skill = format!(
        "  - {{id: held, description: d, idempotent: true, run: 'echo begun; {}; echo over'}}\n",
        Gate::text("held").replace('\'', "''")
    );
    let workspace = Workspace::with_skills(&skill);
    let mut gate = Gate::new(&workspace, "held");
    let daemon = Daemon::start(&workspace);
    workspace.run(&["run", "--no-wait", "held"]).expect_code(0);
    let (run, _) = gate.reached();
    let unfinished = |done: Done| {
        assert!(
            done.stdout.contains("1 thread verified, 1 not finished"),
            "{done:?}"
        );
    };
    unfinished(workspace.run(&["threads", "verify"]).expect_code(0));
    workspace.run(&["threads", "show"]).expect_code(0);
    let logs = workspace.run(&["logs"]).expect_code(0);
    assert_eq!(logs.stderr, "", "{logs:?}");
    daemon.kill();

    let shown = workspace.json(&["show"]);
    let log = PathBuf::from(shown["log_path"].as_str().unwrap());
    let mut torn = fs::read(&log).unwrap();
    torn.extend(b"{\"line\":7,\"prev\":\"00");
    fs::write(&log, torn).unwrap();
    unfinished(workspace.run(&["threads", "verify"]).expect_code(0));
    workspace.run(&["store", "verify"]).expect_code(0);
    // Recovery cuts it and goes on.
    let daemon = Daemon::start(&workspace);
    gate.reached();
    gate.pass();
    workspace.run(&["wait", &run]).expect_code(0);
    daemon.stop();
    let done = workspace.run(&["threads", "verify"]).expect_code(0);
    assert!(done.stdout.contains("1 thread verified\n"), "{done:?}");
}

#[test]
fn a_run_that_a_person_settled_is_verified_with_what_was_written_then() {
    let skill = format!(
        "  - {{id: held, description: d, mutating: true, run: 'echo begun; {}'}}\n",
        Gate::text("held").replace('\'', "''")
    );
    let workspace = Workspace::with_skills(&skill);
    let mut gate = Gate::new(&workspace, "held");
    let daemon = Daemon::start(&workspace);
    workspace.run(&["run", "--no-wait", "held"]).expect_code(0);
    let (run, _) = gate.reached();
    daemon.kill();
    let daemon = Daemon::start(&workspace);
    workspace.run(&["wait", &run]).expect_code(9);
    workspace.run(&["threads", "verify"]).expect_code(0);
    let settle = ["resolve", &run, "--as", "failed", "--note", "looked"];
    workspace.run(&settle).expect_code(0);
    eventually("the thread of the run that was settled", || {
        let done = workspace.run(&["threads", "verify"]).expect_code(0);
        done.stdout.contains("1 thread verified\n").then_some(())
    });
    daemon.stop();
}

#[test]
fn a_store_that_is_built_again_tells_which_threads_are_damaged() {
    let (workspace, log) = talked();
    let other = log_of(&workspace, "talk");
    let whole = fs::read_to_string(&log).unwrap();
    fs::write(&log, edited(&whole, "\"two\"", Some("\"2\""))).unwrap();
    fs::remove_dir_all(workspace.state()).unwrap();
    let done = workspace.run(&["store", "rebuild"]).expect_code(0);
    assert!(
        done.stdout.contains("2 threads verified, 1 damaged"),
        "{done:?}"
    );
    let thread = log.file_stem().unwrap().to_str().unwrap();
    assert!(done.stdout.contains(&format!("{thread}: line")), "{done:?}");
    let other = other.file_stem().unwrap().to_str().unwrap();
    assert!(!done.stdout.contains(&format!("{other}:")), "{done:?}");
    // Both runs are there again, and are verified by what is known of them.
    workspace
        .run(&["threads", "verify", "--all"])
        .expect_code(1);
}

#[test]
fn colours_of_a_skill_are_shown_where_they_can_be_and_nothing_else_reaches_a_terminal() {
    let workspace = Workspace::with_skills(SKILLS);
    let log = log_of(&workspace, "colours");
    let stored = fs::read_to_string(&log).unwrap();
    assert!(stored.contains(r"\u001b[1;31mred"), "{stored}");
    let plain = workspace.run(&["logs"]).expect_code(0).stdout;
    assert!(plain.contains("│ a red\n"), "{plain}");
    assert!(plain.contains(r"│ \x1b]0;title\x07\x1b[2Jx"), "{plain}");
    assert!(!plain.contains('\u{1b}'), "{plain}");
    let never = workspace.run(&["logs", "--color", "never"]).expect_code(0);
    assert_eq!(never.stdout, plain);
    let colour = workspace.run(&["logs", "--color", "always"]).expect_code(0);
    let red = "a \u{1b}[1;31mred\u{1b}[0m\n";
    assert!(colour.stdout.contains(red), "{colour:?}");
    assert!(
        colour.stdout.contains(r"\x1b]0;title\x07\x1b[2Jx"),
        "{colour:?}"
    );
    let json = workspace.run(&["logs", "--json"]).expect_code(0).stdout;
    assert!(json.contains(r"\u001b[1;31mred"), "{json}");

    let failed = workspace.run(&["run", "fails"]).expect_code(1);
    let told = format!("{}{}", failed.stdout, failed.stderr);
    assert!(told.contains("so red") && !told.contains("x1b"), "{told}");
}

#[test]
fn a_progress_bar_leaves_its_last_form_and_room_for_what_follows() {
    let workspace = Workspace::with_skills(SKILLS);
    // Far more than the bytes of output that are kept of one command.
    let log = log_of(&workspace, "bar");
    assert!(fs::metadata(&log).unwrap().len() < 64 * 1024);
    let shown = workspace
        .run(&["logs", "--stream", "stdout", "--json"])
        .expect_code(0);
    let lines: Vec<Value> = shown
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let texts: Vec<&str> = lines
        .iter()
        .map(|line| line["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["done", "after"]);
    assert_eq!(lines[0]["carriage_returns"], 300_001);
    assert_eq!(lines[1].get("carriage_returns"), None);
}

#[test]
fn a_progress_bar_moves_on_a_terminal_while_its_skill_runs() {
    let skills = "  - {id: bar, description: d, run: 'n=0; until [ -e \"$HOME/seen\" ]; do n=$((n+1)); printf \"\\rstep-%s\" $n; sleep 0.05; done; printf \"\\rover\\n\"'}\n";
    for follower in [&["run", "bar"][..], &["logs", "--follow"]] {
        let workspace = Workspace::with_skills(skills);
        let daemon = Daemon::start(&workspace);
        if follower[0] == "logs" {
            workspace.run(&["run", "--no-wait", "bar"]).expect_code(0);
        }
        let screen = workspace.home.join("screen");
        let inner = format!("{:?}", workspace.workerctl(follower));
        // A terminal for one command; what it shows is in a file at once.
        let mut terminal = workspace.program("script");
        terminal.args(["-qefc", &in_shell(&inner)]).arg(&screen);
        terminal.env("TERM", "xterm");
        let Ok(probe) = workspace.program("script").arg("--version").output() else {
            return skip("`script` is not installed: no terminal");
        };
        assert!(probe.status.success());
        let started = workspace.start(&mut terminal);
        let shown = || String::from_utf8_lossy(&fs::read(&screen).unwrap_or_default()).into_owned();
        eventually("a form that is not the last one", || {
            shown().contains("step-").then_some(())
        });
        fs::write(workspace.home.join("seen"), "").unwrap();
        started.end().expect_code(0);
        let shown = shown();
        let last = shown.lines().find(|line| line.contains("over")).unwrap();
        let last = last.rsplit("\u{1b}[2K").next().unwrap();
        assert!(!last.contains("step-"), "{last:?}");
        daemon.stop();
    }
}

/// The command as `Debug` prints it, without the variables that it sets: `script` inherits those.
fn in_shell(command: &str) -> String {
    let at = command.find(env!("CARGO_BIN_EXE_workerctl")).unwrap();
    format!("exec \"{}", &command[at..])
}

#[test]
fn doctor_verifies_the_newest_threads_and_says_how_many_there_are() {
    let (workspace, log) = talked();
    let directory = log.parent().unwrap();
    for number in 0..19 {
        // Newer than any of ours, and not begun.
        fs::write(directory.join(format!("T-9000010{number:02}.jsonl")), "").unwrap();
    }
    fs::write(directory.join("T-1999.jsonl"), "damaged\n").unwrap();
    let doctor = workspace.run(&["doctor"]).expect_code(0);
    let told = "20 threads verified, the newest of 21, 19 not finished";
    assert!(doctor.stdout.contains(told), "{doctor:?}");
    let newest = workspace.run(&["threads", "verify"]).expect_code(0);
    assert!(newest.stdout.contains(told), "{newest:?}");
    let all = workspace
        .run(&["threads", "verify", "--all"])
        .expect_code(1);
    assert!(
        all.stdout.contains("T-1999: line 0 is not a record"),
        "{all:?}"
    );
    // A place that is taken by something else is told too.
    fs::remove_dir_all(directory).unwrap();
    fs::write(directory, "").unwrap();
    let all = workspace
        .run(&["threads", "verify", "--all"])
        .expect_code(1);
    assert!(
        all.stdout.contains("is a link or no regular file"),
        "{all:?}"
    );
}
