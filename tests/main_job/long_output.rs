//! Output up to and beyond `output_bytes_max`: its beginning and its end are in the log.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use crate::workspace::api::Api;
use crate::workspace::daemon::Daemon;
use crate::workspace::gate::Gate;
use crate::workspace::{PATIENCE, Workspace, eventually, skip};

const SKILLS: &str = r#"
  - {id: short, description: d, run: "yes | head -c 65536"}
  - {id: fails, description: d, run: "{ seq 1 50000; echo the cause; } >&2; exit 3"}
  - id: checked
    description: d
    run: "true"
    verification: [{command: "seq 1 50000; echo the cause; false", must_pass: true}]
  - id: hooked
    description: d
    mutating: true
    run: "echo x >> tracked.txt"
    hooks: {post_tools: ["seq 1 50000 >&2; echo the cause >&2; exit 2"]}
  - {id: twice, description: d, run: 'GATE; seq 1 50000; echo before; GATE; seq 1 50000; echo behind'}
  - {id: gated, description: d, run: 'seq 1 50000; echo before; GATE; seq 1 50000; echo behind'}
"#;

/// Bytes of `seq 1 50000`.
const FLOOD: u64 = 288_894;

fn workspace() -> Workspace {
    let workspace = Workspace::with_skills(&SKILLS.replace("GATE", &Gate::text("gate")));
    workspace.write("workerctl.yaml", "output_bytes_max: 65536\n");
    workspace.commit_all("a small bound");
    workspace
}

/// Texts of a stream of the last run.
fn texts(workspace: &Workspace, stream: &str) -> Vec<String> {
    let done = workspace.run(&["logs", "--stream", stream, "--json"]);
    let lines = done.expect_code(0).stdout;
    let text = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        value["text"].as_str().unwrap().to_owned()
    };
    lines.lines().map(text).collect()
}

#[test]
fn output_of_exactly_the_bound_is_in_the_log_to_its_last_line() {
    let workspace = workspace();
    workspace.run(&["run", "short"]).expect_code(0);
    assert_eq!(texts(&workspace, "stdout"), vec!["y"; 32_768]);
    let shown = workspace.json(&["show", "latest"]);
    assert_eq!(shown["attempts"][0]["execution"]["dropped_bytes"], 0);
    workspace.run(&["threads", "verify"]).expect_code(0);
}

#[test]
fn the_last_line_of_a_flood_is_in_the_log_and_is_the_reason_of_the_failure() {
    let workspace = workspace();
    for (skill, stream) in [
        ("fails", "stderr"),
        ("checked", "check"),
        ("hooked", "check"),
    ] {
        let done = workspace.run(&["run", skill]);
        assert_ne!(done.code, 0, "{skill}");
        assert!(done.stderr.contains("the cause"), "{skill}: {done:?}");
        let shown = workspace.run(&["show", "latest"]).expect_code(0);
        assert!(shown.stdout.contains("the cause"), "{skill}: {shown:?}");
        let texts = texts(&workspace, stream);
        assert_eq!(texts[0], "1", "{skill}");
        let last = texts.iter().rposition(|text| text == "the cause");
        assert_eq!(texts[last.unwrap() - 1], "50000", "{skill}");
        let marks = texts.iter().filter(|text| text.contains("omitted here"));
        assert_eq!(marks.count(), 1, "{skill}");
        let kept: usize = texts.iter().map(|text| text.len() + 1).sum();
        assert!((60_000..66_000).contains(&kept), "{skill}: {kept}");
        let tail = workspace.run(&["logs", "--tail", "1", "--stream", stream]);
        assert!(tail.stdout.contains("the cause"), "{skill}: {tail:?}");
    }
    workspace.run(&["threads", "verify"]).expect_code(0);
}

#[test]
fn what_a_killed_engine_has_logged_beyond_the_bound_stays_in_the_log() {
    let workspace = workspace();
    let mut gate = Gate::new(&workspace, "gate");
    let daemon = Daemon::start(&workspace);
    let run = workspace.submit(&["gated"]);
    gate.reached();
    eventually("the line before the gate", || {
        let texts = texts(&workspace, "stdout");
        (texts.last()? == "before").then_some(())
    });
    daemon.kill();
    let daemon = Daemon::start(&workspace);
    assert_eq!(gate.reached(), (run.clone(), 2));
    gate.pass();
    assert_eq!(workspace.wait(&run).0, 0);
    let texts = texts(&workspace, "stdout");
    let before = texts.iter().filter(|text| *text == "before");
    assert_eq!(before.count(), 1, "of the attempt that was lost");
    assert_eq!(texts.last().unwrap(), "behind");
    workspace.run(&["threads", "verify"]).expect_code(0);
    daemon.stop();
}

/// Reads until the text arrives; false if the stream ends before.
fn reads(stream: &mut UnixStream, read: &mut Vec<u8>, wanted: &str) -> bool {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // Signs of life arrive all the time.
    let until = Instant::now() + PATIENCE;
    let mut buffer = vec![0; 64 * 1024];
    // What has been searched is not searched again: a flood arrives in thousands of parts.
    let mut searched = 0;
    while !xtest::contains(&read[searched..], wanted.as_bytes()) {
        searched = read.len().saturating_sub(wanted.len());
        let count = stream.read(&mut buffer).unwrap();
        if count == 0 {
            return false;
        }
        assert!(Instant::now() < until, "`{wanted}` did not arrive");
        read.extend_from_slice(&buffer[..count]);
    }
    true
}

/// Follows a run without reading anything until the backlog of the stream is full. Returns the run, or `None` if the
/// daemon has disconnected this reader, as it does after 10 s in which nothing is read.
fn follow_late(workspace: &Workspace, gate: &mut Gate) -> Option<String> {
    let run = workspace.submit(&["twice"]);
    gate.reached();
    let mut stream = Api::of(workspace).send("GET", &format!("/v1/runs/{run}/events"), "", "");
    let mut read = Vec::new();
    assert!(reads(&mut stream, &mut read, "event: changed"));
    gate.pass();
    gate.reached();
    // Nothing follows these lines.
    eventually("the line before the gate", || {
        let texts = texts(workspace, "stdout");
        (texts.last()? == "before").then_some(())
    });
    let is_followed = reads(&mut stream, &mut read, "\"text\":\"before\"");
    gate.pass();
    let is_followed = is_followed && reads(&mut stream, &mut read, "\"text\":\"behind\"");
    assert_eq!(workspace.wait(&run).0, 0);
    is_followed.then_some(run)
}

#[test]
fn lines_beyond_the_bound_are_followed_live_and_the_whole_run_has_its_end() {
    let workspace = workspace();
    let mut gate = Gate::new(&workspace, "gate");
    let daemon = Daemon::start(&workspace);
    let Some(run) = (0..5).find_map(|_| follow_late(&workspace, &mut gate)) else {
        return skip("the machine needs more than 10 s for 100,000 lines");
    };
    let api = Api::of(&workspace);
    let shown = workspace.json(&["show", &run]);
    let execution = &shown["attempts"][0]["execution"];
    let all = 2 * FLOOD + 14;
    assert_eq!(execution["stdout_bytes"], all);
    let dropped = execution["dropped_bytes"].as_u64().unwrap();
    assert!((all - 65_536..all - 65_000).contains(&dropped), "{dropped}");
    let page = api.get(&format!("/v1/runs/{run}/logs?tail=1&stream=stdout"));
    assert!(page.text().contains("\"behind\""), "{}", page.text());
    let raw = api.get(&format!("/v1/runs/{run}/logs/raw?stream=stdout"));
    assert!(raw.text().ends_with("50000\nbehind\n"));
    assert!(raw.text().contains("omitted here"));
    daemon.stop();
}
