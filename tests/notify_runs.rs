//! What `notify` says about the runs themselves, and which runs it says nothing about, by a real daemon.

use crate::web_server as web;
use crate::workspace;

use serde_json::{Value, json};
use web::{Act, WebServer};
use workspace::daemon::Daemon;
use workspace::{Started, Workspace, eventually};

const SKILLS: &str = r#"
  - id: silent
    description: fails and writes to standard output only
    env: [TOKEN]
    run: 'seq 1 8; printf "\033[31m%s\033[0m is wrong\n\n" "$TOKEN"; exit 3'
  - {id: loud, description: d, run: 'echo printed; echo wrong >&2; exit 3'}
  - {id: fickle, description: d, run: 'test -e "$HOME/good"'}
  - id: tick
    description: d
    run: exit 3
    schedule: {id: nightly, after: w/other, notify: {after: 1}}
  - {id: other, description: d, run: 'true'}
  - {id: slow, description: d, run: 'until test -e "$HOME/open"; do sleep 0.05; done; exit 3'}
  - id: change
    description: changes a file
    mutating: true
    push: origin
    run: 'echo changed > own.txt; echo printed; test -e "$HOME/good"'
"#;

/// A workspace that sends failures and recoveries to the address in the variable `HOOK`.
fn workspace(form: &str, more: &str) -> Workspace {
    workspace_with(form, "1", more)
}

/// The same that is notified after so many failures.
fn workspace_with(form: &str, after: &str, more: &str) -> Workspace {
    let workspace = Workspace::with_skills(SKILLS);
    let origin = workspace.home.join("origin.git");
    let origin = origin.to_str().unwrap();
    workspace.git(&["init", "-q", "--bare", origin]);
    workspace.git(&["remote", "add", "origin", origin]);
    let channel = format!("{{webhook: env:HOOK, form: {form}}}");
    workspace.configure(&format!(
        "notify: {{on_failure: {channel}, on_recovery: {channel}, after: {after}}}\n{more}"
    ));
    workspace
}

fn daemon(workspace: &Workspace, server: &WebServer) -> Daemon {
    let hook = server.url();
    let more = [("HOOK", hook.as_str()), ("TOKEN", "s3cr3t-value")];
    Daemon::start_with(workspace, &more)
}

fn run(workspace: &Workspace, skill: &str) -> String {
    let run = workspace.submit(&[skill]);
    workspace.wait(&run);
    run
}

/// A command of `workerctl` in a terminal; `None` without `script`, which makes one.
fn in_terminal(workspace: &Workspace, arguments: &[&str]) -> Option<Started> {
    let probe = workspace.program("script").arg("--version").output();
    if probe.is_err() {
        workspace::skip("`script` is not installed: no terminal");
        return None;
    }
    let command = format!("{:?}", workspace.workerctl(arguments));
    // Without the variables, which `script` inherits.
    let at = command.find(env!("CARGO_BIN_EXE_workerctl")).unwrap();
    let command = format!("exec \"{}", &command[at..]);
    let mut terminal = workspace.program("script");
    terminal.args(["-qefc", &command, "/dev/null"]);
    Some(workspace.start(&mut terminal))
}

/// The events that have arrived, once there are so many.
fn events(server: &WebServer, count: usize) -> Vec<Value> {
    let came = server.wait_for(count);
    let event = |came: &web::Came| serde_json::from_str(&came.body).unwrap();
    came.iter().map(event).collect()
}

#[test]
fn the_last_lines_of_standard_output_are_quoted_if_standard_error_is_empty() {
    let server = WebServer::start(vec![Act::status(200)]);
    let workspace = workspace("json", "");
    let daemon = daemon(&workspace, &server);
    run(&workspace, "silent");
    let silent = events(&server, 1).remove(0);
    run(&workspace, "loud");
    let loud = events(&server, 2).remove(1);
    daemon.stop();
    let last = silent["output"].as_array().unwrap();
    assert_eq!(last[..4], ["5", "6", "7", "8"]);
    let masked = last[4].as_str().unwrap();
    assert!(masked.ends_with(" is wrong"), "{silent}");
    assert!(
        !silent.to_string().contains("s3cr3t") && !masked.contains('\u{1b}'),
        "{silent}"
    );
    let text = silent["text"].as_str().unwrap();
    assert!(text.contains("\nLast output:\n  5\n  6\n"), "{text}");
    assert_eq!(loud["output"], json!([]));
    let text = loud["text"].as_str().unwrap();
    assert!(
        text.contains("wrong") && !text.contains("printed"),
        "{text}"
    );
    // No page, no branch, and no link that would not work.
    for key in ["branch", "push_branch", "commit", "kept_commit", "url"] {
        assert_eq!(loud.get(key), Some(&Value::Null), "{key}");
    }
    assert!(!text.contains("Page: "), "{text}");
}

#[test]
fn a_mutating_run_is_named_with_its_branch_its_push_and_its_commit() {
    let server = WebServer::start(vec![Act::status(200)]);
    let workspace = workspace("json", "");
    let daemon = daemon(&workspace, &server);
    run(&workspace, "change");
    std::fs::write(workspace.home.join("good"), "").unwrap();
    run(&workspace, "change");
    let events = events(&server, 2);
    daemon.stop();
    let [failed, recovered] = &events[..] else {
        panic!("{events:?}");
    };
    for event in [failed, recovered] {
        assert_eq!(
            (&event["branch"], &event["push_branch"]),
            (&json!("main"), &json!("origin/main"))
        );
        let text = event["text"].as_str().unwrap();
        assert!(
            text.contains("\nBranch: main (push: origin/main)\n"),
            "{text}"
        );
    }
    assert_eq!(failed["commit"], Value::Null);
    assert_eq!(failed["output"], json!(["printed"]));
    let tip = workspace.git(&["rev-parse", "main"]);
    assert_eq!(recovered["commit"], tip.trim());
    assert_eq!(recovered["output"], json!([]));
    let text = recovered["text"].as_str().unwrap();
    assert!(
        text.contains(&format!("\nCommit: {}\n", tip.trim())),
        "{text}"
    );
}

#[test]
fn each_form_links_to_the_page_of_the_run() {
    let free = crate::workspace::listen_on_quiet_port();
    let address = free.local_addr().unwrap();
    drop(free);
    for form in ["json", "slack", "ntfy", "healthchecks"] {
        let server = WebServer::start(vec![Act::status(200)]);
        let workspace = workspace(form, &format!("web: {{listen: '{address}'}}\n"));
        let daemon = daemon(&workspace, &server);
        let failed = run(&workspace, "silent");
        let came = server.wait_for(1).remove(0);
        daemon.stop();
        let page = format!("http://{address}/runs/{failed}");
        assert!(
            came.body.contains(&format!("Page: {page}")),
            "{}",
            came.body
        );
        assert!(came.body.contains("Last output:"), "{}", came.body);
        match form {
            "json" => assert!(
                came.body.contains(&format!("\"url\":\"{page}\"")),
                "{}",
                came.body
            ),
            "ntfy" => assert_eq!(came.headers["click"], page),
            _ => {}
        }
    }
}

#[test]
fn a_run_that_a_person_follows_to_its_end_is_not_notified_and_no_part_of_a_streak() {
    let server = WebServer::start(vec![Act::status(200)]);
    let workspace = workspace("json", "");
    let daemon = daemon(&workspace, &server);
    let foreground = |code| {
        let followed = in_terminal(&workspace, &["run", "fickle"]);
        followed.map(|followed| followed.end().expect_code(code))
    };
    if foreground(1).is_none() {
        return;
    }
    // Follows its run to the end as well, but shows it in no terminal.
    let background = |code| {
        workspace.run(&["run", "fickle"]).expect_code(code);
    };
    background(1);
    assert_eq!(events(&server, 1)[0]["failure_count"], 1);
    std::fs::write(workspace.home.join("good"), "").unwrap();
    foreground(0);
    std::fs::remove_file(workspace.home.join("good")).unwrap();
    background(1);
    std::fs::write(workspace.home.join("good"), "").unwrap();
    background(0);
    let recovered = events(&server, 2).remove(1);
    assert_eq!(
        (&recovered["hook_event_name"], &recovered["failure_count"]),
        (&json!("RunRecovered"), &json!(2))
    );
    daemon.stop();
}

#[test]
fn a_run_that_a_person_follows_is_notified_if_that_is_configured() {
    let server = WebServer::start(vec![Act::status(200)]);
    let workspace = workspace("json", "");
    let worker = workspace.read("workers/w/worker.yaml").unwrap();
    let own = format!("{worker}notify: {{foreground: true}}\n");
    workspace.write("workers/w/worker.yaml", &own);
    let daemon = daemon(&workspace, &server);
    let Some(followed) = in_terminal(&workspace, &["run", "loud"]) else {
        return;
    };
    followed.end().expect_code(1);
    assert_eq!(events(&server, 1)[0]["skill"], "loud");
    daemon.stop();
}

#[test]
fn a_run_whose_terminal_was_closed_is_notified() {
    let server = WebServer::start(vec![Act::status(200)]);
    let workspace = workspace("json", "");
    let daemon = daemon(&workspace, &server);
    let Some(followed) = in_terminal(&workspace, &["run", "slow"]) else {
        return;
    };
    eventually("it runs", || {
        let active = workspace.json(&["status"])["active"].clone();
        (active[0]["phase"] == "executing").then_some(())
    });
    drop(followed);
    eventually("the daemon knows that the client has left", || {
        daemon
            .log()
            .contains("its client disconnected")
            .then_some(())
    });
    std::fs::write(workspace.home.join("open"), "").unwrap();
    assert_eq!(events(&server, 1)[0]["skill"], "slow");
    daemon.stop();
}

#[test]
fn a_flapping_skill_is_notified_once_and_a_restart_forgets_nothing() {
    let server = WebServer::start(vec![Act::status(200)]);
    let workspace = workspace_with("json", "2 of 3", "");
    let mut running = daemon(&workspace, &server);
    let good = workspace.home.join("good");
    let fickle = |runs: &str| {
        let mut newest = String::new();
        for outcome in runs.chars() {
            match outcome {
                'F' => drop(std::fs::remove_file(&good)),
                _ => std::fs::write(&good, "").unwrap(),
            }
            newest = run(&workspace, "fickle");
        }
        newest
    };
    fickle("F");
    running.kill();
    running = daemon(&workspace, &server);
    let second = fickle("SF");
    let failed = events(&server, 1).remove(0);
    assert_eq!(
        (
            &failed["run"],
            &failed["failure_count"],
            &failed["run_count"]
        ),
        (&json!(second), &json!(2), &json!(3))
    );
    let text = failed["text"].as_str().unwrap();
    assert!(
        text.starts_with("w/fickle failed\n2 failures in 3 runs since "),
        "{text}"
    );
    fickle("SFSF");
    running.kill();
    running = daemon(&workspace, &server);
    let last = fickle("SSS");
    // Nothing but these two: what came between would be before the recovery.
    let recovered = events(&server, 2).remove(1);
    assert_eq!(
        (
            &recovered["hook_event_name"],
            &recovered["failure_count"],
            &recovered["run_count"]
        ),
        (&json!("RunRecovered"), &json!(4), &json!(7))
    );
    assert!(recovered["run"].as_str().unwrap() < last.as_str());
    running.stop();
    assert_eq!(server.came().len(), 2);
}

#[test]
fn the_nearest_threshold_applies() {
    let server = WebServer::start(vec![Act::status(200)]);
    let workspace = workspace_with("json", "100", "");
    let worker = workspace.read("workers/w/worker.yaml").unwrap();
    let own = format!("{worker}notify: {{after: 2}}\n");
    workspace.write("workers/w/worker.yaml", &own);
    let daemon = daemon(&workspace, &server);
    // Of the worker.
    run(&workspace, "loud");
    let second = run(&workspace, "loud");
    assert_eq!(events(&server, 1)[0]["run"], second);
    // Of the schedule.
    let made = workspace.json(&["schedule", "trigger", "w/tick#nightly"]);
    let event = events(&server, 2).remove(1);
    assert_eq!(
        (&event["run"], &event["failure_count"]),
        (&made["run"], &json!(1))
    );
    // Of the configuration.
    workspace.write("workers/w/worker.yaml", &worker);
    workspace.run(&["reload"]).expect_code(0);
    run(&workspace, "silent");
    run(&workspace, "silent");
    daemon.stop();
    assert_eq!(server.came().len(), 2);
}
