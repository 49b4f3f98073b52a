//! A changed configuration that widens rights is put in force by a commit or by a person, and by nothing else.

use serde_json::{Value, json};

use crate::mcp::client::{Client, page, text_of};
use crate::workspace::daemon::Daemon;
use crate::workspace::{Workspace, eventually};

const SKILLS: &str = "  - {id: writes, description: d, mutating: true, run: 'echo x > f.txt'}\n";
const ALLOW: &str = "mcp: {mutating: allow}\n";

fn use_skill(client: &mut Client) -> String {
    text_of(&client.call("use_skill", &json!({"skill": "writes"})))
}

#[test]
fn a_model_that_edits_the_configuration_lifts_no_guard() {
    let workspace = Workspace::with_skills(SKILLS);
    let mut client = Client::connect(&workspace);
    let refused = use_skill(&mut client);
    assert!(
        refused.contains("A user can run it: `workerctl run`"),
        "{refused}"
    );
    for setting in ["mcp:", "mutating", "workerctl.yaml"] {
        assert!(!refused.contains(setting), "{refused}");
    }
    workspace.write("workerctl.yaml", ALLOW);
    // What was written later is seen, so the configuration has been looked at too.
    workspace.write(".claude/skills/later/SKILL.md", &page("later", "d", "x"));
    eventually("the later skill is listed", || {
        let tool = client.tool("skill");
        tool["description"]
            .as_str()?
            .contains("<name>later</name>")
            .then_some(())
    });
    let refused = use_skill(&mut client);
    assert!(refused.contains("A user can run it"), "{refused}");
    assert!(workspace.read("f.txt").is_none());

    workspace.configure("");
    workspace.configure(ALLOW);
    eventually("the committed configuration is in force", || {
        let tool = client.tool("skill");
        tool["description"]
            .as_str()?
            .contains("<name>writes</name>")
            .then_some(())
    });
    assert!(client.leave().success());
}

fn status(workspace: &Workspace) -> Value {
    workspace.json(&["status"])
}

fn until(workspace: &Workspace, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    eventually(what, || {
        Some(status(workspace)).filter(|status| holds(status))
    })
}

#[test]
fn a_daemon_keeps_its_configuration_until_a_wider_one_is_accepted() {
    let workspace = Workspace::with_skills(SKILLS);
    let daemon = Daemon::start(&workspace);
    // What widens nothing is put in force at once.
    workspace.write("workerctl.yaml", "timezone: Europe/Berlin\n");
    until(&workspace, "the zone", |status| {
        status["timezone"] == "Europe/Berlin"
    });

    for wider in [
        "mcp: {mutating: allow}",
        "sandbox: off",
        "access: {admin: {users: [nobody]}}",
        "notify: {on_failure: 'true'}",
        "hooks: {post_commit: ['true']}",
        "web: {listen: '127.0.0.1:0'}",
        "push: origin",
    ] {
        workspace.write("workerctl.yaml", &format!("timezone: UTC\n{wider}\n"));
        let held = until(&workspace, wider, |status| {
            status["config_fallback_reason"].is_string()
        });
        let why = held["config_fallback_reason"].as_str().unwrap();
        let key = wider.split(':').next().unwrap();
        assert!(why.contains(&format!("`{key}` changed")), "{why}");
        assert_eq!(
            held["timezone"], "Europe/Berlin",
            "no part of it is in force"
        );
        workspace.write("workerctl.yaml", "timezone: Europe/Berlin\n");
        until(&workspace, "back", |status| {
            status["config_fallback_reason"].is_null()
        });
    }
    workspace.write("workerctl.yaml", &format!("timezone: UTC\n{ALLOW}"));
    until(&workspace, "held", |status| {
        status["config_fallback_reason"].is_string()
    });
    let shown = workspace.run(&["status"]).expect_code(0).stdout;
    assert!(
        shown.contains("commit it, or run `workerctl daemon reload`"),
        "{shown}"
    );
    let doctor = workspace.run(&["doctor"]).stdout;
    assert!(
        doctor.contains("commit it, or run `workerctl daemon reload`"),
        "{doctor}"
    );
    workspace.run(&["reload"]).expect_code(0);
    let reloaded = status(&workspace);
    assert_eq!(reloaded["timezone"], "UTC");
    assert!(reloaded["config_fallback_reason"].is_null(), "{reloaded}");

    workspace.configure("timezone: Asia/Tokyo\nsandbox: off\n");
    until(&workspace, "the commit", |status| {
        status["timezone"] == "Asia/Tokyo"
    });
    daemon.stop();
}
