//! Runs over the protocol: long ones, many at once, cancelled ones, beside a daemon and without one.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::mcp::client::{Client, text_of};
use crate::workspace::daemon::Daemon;
use crate::workspace::gate::Gate;
use crate::workspace::{Workspace, eventually};

const SKILLS: &str = "
  - id: gated
    description: d
    run: |
      echo before; GATE; echo after
  - {id: quick, description: d, run: 'echo quick'}
  - id: changes
    description: d
    mutating: true
    run: |
      GATE; echo x > f.txt
";

fn workspace(config: &str) -> (Workspace, Gate) {
    let workspace = Workspace::new();
    let gate = Gate::new(&workspace, "gate");
    workspace.write("workerctl.yaml", config);
    workspace.furnish(&SKILLS.replace("GATE", &Gate::text("gate")));
    (workspace, gate)
}

fn call(client: &mut Client, skill: &str, meta: &Value) -> u64 {
    let arguments = json!({"skill": skill});
    client.request(
        "tools/call",
        &json!({"name": "use_skill", "arguments": arguments, "_meta": meta}),
    )
}

fn told(client: &mut Client, run: &str) -> String {
    client.text("get_run", &json!({"run": run}))
}

/// The engine of a server is held while one of its runs goes on, and nobody watches files for it.
#[test]
fn what_changes_while_a_run_goes_on_is_what_runs_next() {
    let (workspace, mut gate) = workspace("");
    let skills = SKILLS.replace("GATE", &Gate::text("gate"));
    let mut client = Client::connect(&workspace);
    let under_way = call(&mut client, "gated", &json!({}));
    gate.reached();
    let head = workspace.git(&["rev-parse", "HEAD"]);
    // What is offered as a skill that changes nothing does not run as one that does: this client cannot ask.
    let changed = skills
        .replace("echo quick", "echo another")
        .replace("mutating: true", "mutating: false")
        .replace("id: changes", "id: changes\n    approval_required: true");
    workspace.worker(
        "w",
        &format!("{changed}\n  - {{id: fresh, description: d, run: 'echo fresh'}}\n"),
    );
    client.hears_of_changes();
    for (skill, expected) in [("quick", "another"), ("fresh", "fresh")] {
        let done = client.text("use_skill", &json!({"skill": skill}));
        assert_eq!(done, expected);
    }
    let waits = client.call("use_skill", &json!({"skill": "changes"}));
    let phase = &waits["structuredContent"]["phase"];
    assert_eq!(phase, "awaiting_approval", "{waits}");
    assert_eq!(workspace.git(&["rev-parse", "HEAD"]), head);
    let run = waits["structuredContent"]["run"].as_str().unwrap();
    client.text("cancel_run", &json!({"run": run}));
    gate.pass();
    let answer = client.answer(under_way);
    assert_eq!(text_of(&answer["result"]), "before\nafter", "{answer}");
    client.finish();
}

#[test]
fn a_client_that_leaves_ends_no_engine_of_another_command() {
    let (workspace, mut gate) = workspace("drain_grace: 1s\n");
    let hosting = workspace.start(&mut workspace.workerctl(&["run", "w/gated"]));
    let (run, _) = gate.reached();
    let mut client = Client::connect(&workspace);
    let listed = client.text("list_runs", &json!({}));
    assert!(listed.contains(&run), "{listed}");
    assert!(client.leave().success());
    let status = workspace.json(&["status"]);
    assert_eq!(
        (&status["host"], &status["condition"]),
        (&json!("in_process"), &json!("ready")),
        "{status}"
    );
    workspace.run(&["run", "w/quick"]).expect_code(0);
    gate.pass();
    hosting.end().expect_code(0);
}

#[test]
fn an_id_that_is_under_way_is_not_taken_by_another_request() {
    let (workspace, mut gate) = workspace("");
    let mut client = Client::connect(&workspace);
    let id = call(&mut client, "gated", &json!({}));
    gate.reached();
    client.send(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
    let refused = client.message("refusal", |one| one["id"].is_null());
    assert_eq!(refused["error"]["code"], -32_600, "{refused}");
    gate.pass();
    let answer = client.answer(id);
    assert_eq!(text_of(&answer["result"]), "before\nafter", "{answer}");
    client.send(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
    assert!(client.answer(id)["result"].is_object(), "it is free again");
    client.finish();
}

#[test]
fn a_long_run_is_answered_with_its_id_and_can_be_followed() {
    let (workspace, mut gate) = workspace("mcp: {wait: 200ms}\n");
    let mut client = Client::connect(&workspace);
    let started = client.call("use_skill", &json!({"skill": "gated"}));
    let said = &started["structuredContent"];
    assert_eq!(said["is_error"], false, "{said}");
    let run = said["run"].as_str().unwrap().to_owned();
    assert!(
        text_of(&started).contains("`get_run` returns its result"),
        "{started}"
    );
    gate.reached();
    let going = told(&mut client, &run);
    assert!(
        going.starts_with(&format!("Run {run} of w/gated goes on (executing)")),
        "{going}"
    );
    let so_far = client.call("read_thread", &json!({"run": run[20..]}));
    let more = so_far["content"][1]["text"].as_str().unwrap();
    assert!(
        more.starts_with("the run continues (executing): call again"),
        "{more}"
    );
    let next = more
        .split_once("`from: ")
        .unwrap()
        .1
        .split('`')
        .next()
        .unwrap();
    let next: u64 = next.parse().unwrap();
    gate.pass();
    let ended = eventually("end", || {
        Some(told(&mut client, &run)).filter(|said| !said.contains("goes on"))
    });
    assert_eq!(
        ended,
        format!("Run {run} of w/gated: succeeded\n\nbefore\nafter")
    );
    let thread = client.text("read_thread", &json!({"run": run}));
    assert!(
        thread.contains(" out   before\n") && thread.contains("submitted"),
        "{thread}"
    );
    let rest = client.call("read_thread", &json!({"run": run, "from": next}));
    assert_eq!(text_of(&so_far) + &text_of(&rest), thread);
    assert_eq!(rest["content"].as_array().unwrap().len(), 1, "{rest}");
    let part = client.call("read_thread", &json!({"run": run, "from": 1, "limit": 1}));
    assert!(
        part["content"][1]
            .to_string()
            .contains("call again with `from: 2`"),
        "{part}"
    );
    assert!(part.get("structuredContent").is_none(), "{part}");
}

#[test]
fn runs_are_listed_and_a_bad_id_leads_to_the_list() {
    let (workspace, _gate) = workspace("");
    let mut client = Client::connect(&workspace);
    let ran = client.call("use_skill", &json!({"skill": "quick"}));
    let run = ran["structuredContent"]["run"].as_str().unwrap();
    // A model has no command line.
    for tool in ["get_run", "read_thread", "cancel_run"] {
        let unknown = client.call(tool, &json!({"run": "nothing"}));
        assert_eq!(unknown["isError"], true, "{unknown}");
        let said = text_of(&unknown);
        assert!(
            said.contains("`list_runs` lists runs") && !said.contains("workerctl"),
            "{said}"
        );
    }
    let listed = client.text("list_runs", &json!({"skill": "quick"}));
    assert!(
        listed.starts_with(&format!("{run} w/quick succeeded, submitted 20")),
        "{listed}"
    );
    assert_eq!(
        client.text("list_runs", &json!({"state": "failed"})),
        "There are no such runs."
    );
    let refused = client.call("list_runs", &json!({"state": "nonsense"}));
    assert!(
        text_of(&refused).contains("is no outcome and no phase"),
        "{refused}"
    );
}

#[test]
fn progress_is_told_while_a_run_goes_on() {
    let (workspace, mut gate) = workspace("");
    let mut client = Client::connect(&workspace);
    let id = call(&mut client, "gated", &json!({"progressToken": "p1"}));
    let first = client.message("progress", |one| one["method"] == "notifications/progress");
    assert_eq!(first["params"]["progressToken"], "p1", "{first}");
    gate.reached();
    gate.pass();
    let answer = client.answer(id);
    assert_eq!(
        answer["result"]["structuredContent"]["content"], "before\nafter",
        "{answer}"
    );
}

#[test]
fn cancelling_a_call_cancels_its_run() {
    let (workspace, mut gate) = workspace("");
    let daemon = Daemon::start(&workspace);
    let mut client = Client::connect(&workspace);
    let id = call(&mut client, "gated", &json!({}));
    gate.reached();
    let params = json!({"requestId": id, "reason": "enough"});
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    eventually("cancelled", || {
        let runs = workspace.json(&["runs"]);
        runs["runs"][0]["outcome"]
            .to_string()
            .contains("cancelled")
            .then_some(())
    });
    client.lives();
    assert!(client.leave().success());
    daemon.stop();
}

#[test]
fn a_client_that_leaves_cancels_nothing() {
    let (workspace, mut gate) = workspace("");
    let daemon = Daemon::start(&workspace);
    let mut client = Client::connect(&workspace);
    call(&mut client, "gated", &json!({}));
    gate.reached();
    assert!(client.leave().success());
    gate.pass();
    eventually("success", || {
        let runs = workspace.json(&["runs"]);
        runs["runs"][0]["outcome"]
            .to_string()
            .contains("succeeded")
            .then_some(())
    });
    daemon.stop();
}

#[test]
fn without_a_daemon_a_run_comes_to_its_end_before_the_server_does() {
    let (workspace, mut gate) = workspace("");
    for told in [false, true] {
        let mut client = Client::connect(&workspace);
        call(&mut client, "gated", &json!({}));
        gate.reached();
        if told {
            client.signal(Signal::TERM);
            gate.pass();
            assert!(client.ended().success());
        } else {
            let leaving = std::thread::spawn(move || client.leave());
            gate.pass();
            assert!(leaving.join().unwrap().success());
        }
        let runs = workspace.json(&["runs"]);
        assert!(
            runs["runs"][0]["outcome"].to_string().contains("succeeded"),
            "{runs}"
        );
    }
}

#[test]
fn runs_are_cancelled_on_request_and_mutating_ones_only_where_allowed() {
    let (workspace, mut gate) = workspace("mcp: {wait: 100ms}\n");
    let daemon = Daemon::start(&workspace);
    let mut client = Client::connect(&workspace);
    let started = client.call("use_skill", &json!({"skill": "gated"}));
    gate.reached();
    let run = started["structuredContent"]["run"].clone();
    let told = client.call("cancel_run", &json!({"run": run, "now": true}));
    let run = run.as_str().unwrap();
    assert!(
        text_of(&told).starts_with(&format!("Run {run} of w/gated")),
        "{told}"
    );
    eventually("end", || {
        let said = client.text("get_run", &json!({"run": run}));
        said.starts_with(&format!("Run {run} of w/gated: cancelled"))
            .then_some(())
    });
    let again = client.call("cancel_run", &json!({"run": run}));
    let expected =
        format!("Run {run} of w/gated has ended (cancelled). `get_run` gives its result.");
    assert_eq!(
        (text_of(&again), &again["isError"]),
        (expected, &json!(true)),
        "{again}"
    );
    let other = workspace
        .run(&["run", "--no-wait", "changes"])
        .expect_code(0);
    let other = other.stdout.trim().to_owned();
    gate.reached();
    let refused = client.call("cancel_run", &json!({"run": other}));
    assert!(
        text_of(&refused).contains("A person can: `workerctl cancel"),
        "{refused}"
    );
    gate.pass();
    workspace.run(&["wait", &other]).expect_code(0);
    assert!(
        client
            .refusal("cancel_run", &json!({"run": other, "now": "yes"}))
            .contains("expected boolean")
    );
    daemon.stop();
}

#[test]
fn sixty_four_calls_at_once_are_all_answered() {
    let (workspace, _gate) = workspace("max_parallel: 8\n");
    workspace.write(
        ".claude/skills/git/SKILL.md",
        "---\nname: git\ndescription: d\n---\n\nx\n",
    );
    let mut client = Client::connect(&workspace);
    let calls: Vec<(u64, &str)> = (0..64)
        .map(|n| match n % 4 {
            0 => (call(&mut client, "quick", &json!({})), "quick"),
            1 => (
                client.request(
                    "tools/call",
                    &json!({"name": "skill", "arguments": {"name": "git"}}),
                ),
                "Loading: git",
            ),
            2 => (
                client.request("tools/call", &json!({"name": "list_skills"})),
                "4 in all",
            ),
            _ => (
                client.request(
                    "tools/call",
                    &json!({"name": "Skill", "arguments": {"skill_name": "git"}}),
                ),
                "Skill: git",
            ),
        })
        .collect();
    for (id, expected) in calls {
        let answer = client.answer(id);
        assert!(text_of(&answer["result"]).starts_with(expected), "{answer}");
    }
    assert!(client.leave().success());
}

#[test]
fn an_engine_in_the_server_is_given_back_when_nobody_needs_it() {
    let (workspace, _gate) = workspace("");
    let mut client = Client::connect(&workspace);
    assert_eq!(
        client.text("use_skill", &json!({"skill": "quick"})),
        "quick"
    );
    // A daemon can start while the client keeps its server, which uses the daemon then.
    let daemon = eventually("the workspace is free", || {
        let status = workspace.run(&["status", "--json"]);
        (status.code != 0
            || status.value()["host"] != "in_process"
            || status.value()["pid"] != client.pid())
        .then(|| Daemon::start(&workspace))
    });
    assert_eq!(
        client.text("use_skill", &json!({"skill": "quick"})),
        "quick"
    );
    daemon.stop();
    assert_eq!(
        client.text("use_skill", &json!({"skill": "quick"})),
        "quick"
    );
}

#[test]
fn nothing_runs_by_defaults_while_the_configuration_is_broken() {
    let (workspace, _gate) = workspace("timezone: Mars/Olympus\n");
    let mut client = Client::connect(&workspace);
    let refused = client.call("use_skill", &json!({"skill": "quick"}));
    let said = refused.to_string();
    assert!(said.contains("no valid configuration is known"), "{said}");
    assert!(said.contains("repair `workerctl.yaml`"), "{said}");
    client.finish();
    assert!(!workspace.root.join("workspace/threads").exists());
}
