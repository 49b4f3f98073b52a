//! The handshake, and what a session looks like.

use serde_json::{Value, json};

use crate::mcp::client::{Client, page};
use crate::workspace::Workspace;

fn workspace() -> Workspace {
    let workspace = Workspace::new();
    workspace.write("workerctl.yaml", "mcp: {refresh: 200ms}\n");
    workspace.write(".claude/skills/git/SKILL.md", &page("git", "d", "x"));
    workspace
}

#[test]
fn every_version_of_the_protocol_is_spoken() {
    let workspace = workspace();
    for (asked, answered) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let mut client = Client::start(&workspace);
        let said = client.initialize(asked);
        assert_eq!(said["protocolVersion"], answered);
        assert_eq!(said["serverInfo"]["name"], "workerctl");
        for list in ["tools", "prompts", "resources"] {
            assert_eq!(said["capabilities"][list]["listChanged"], true, "{said}");
        }
        assert!(
            client
                .text("skill", &json!({"name": "git"}))
                .starts_with("Loading: git")
        );
        assert!(client.leave().success());
    }
}

fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

#[test]
fn a_handshake_that_comes_late_is_honoured() {
    let workspace = workspace();
    for first in ["tools/list", "server/discover"] {
        let mut client = Client::start(&workspace);
        client.result(first, &json!({"_meta": meta()}));
        let early = client.ask("tools/list", &json!({}));
        assert_eq!(early["error"]["code"], -32_602, "{early}");
        let said = early["error"]["message"].as_str().unwrap();
        assert!(said.contains("send `initialize` first"), "{said}");
        assert_eq!(
            client.initialize("2025-06-18")["protocolVersion"],
            "2025-06-18"
        );
        let tools = client.result("tools/list", &json!({}));
        assert_eq!(tools["tools"][0]["name"], "skill");
        client.lives();
        // A request that says for itself what it takes has it still.
        let found = client.result("tools/list", &json!({"_meta": meta()}));
        assert_eq!(found["resultType"], "complete", "{found}");
        workspace.write(
            &format!(".claude/skills/{}/SKILL.md", first.replace('/', "-")),
            &page(&first.replace('/', "-"), "d", "x"),
        );
        client.hears_of_changes();
    }
}

#[test]
fn a_batch_may_follow_the_handshake_at_once() {
    let workspace = workspace();
    let mut client = Client::start(&workspace);
    let params = json!({"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": "h", "method": "initialize", "params": params});
    let batch = json!([{"jsonrpc": "2.0", "id": "p", "method": "ping"}]);
    client.write(&format!("{hello}\n{batch}"));
    assert_eq!(client.batch()[0]["id"], "p");
}

#[test]
fn a_beginning_that_says_too_little_is_told_what_is_missing() {
    let workspace = workspace();
    let mut client = Client::start(&workspace);
    let whole = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    for round in 0..2 {
        for member in ["protocolVersion", "capabilities", "clientInfo"] {
            let mut params = whole.clone();
            params.as_object_mut().unwrap().remove(member);
            let answer = client.ask("initialize", &params);
            assert_eq!(answer["error"]["code"], -32_602, "{answer}");
            let expected = format!("Invalid params of `initialize`: `{member}` is missing");
            assert_eq!(answer["error"]["message"], expected);
        }
        let mut params = whole.clone();
        params["clientInfo"] = json!({"name": "t"});
        let answer = client.ask("initialize", &params);
        assert!(
            answer["error"]["message"].to_string().contains("`version`"),
            "{answer}"
        );
        if round == 0 {
            client.initialize("2025-06-18");
        }
    }
    client.lives();
}

#[test]
fn the_newest_version_needs_no_handshake() {
    let workspace = workspace();
    let mut client = Client::start(&workspace);
    let meta = meta();
    let found = client.result("server/discover", &json!({"_meta": meta}));
    let versions = found["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&Value::from("2026-07-28")), "{found}");
    let tools = client.result("tools/list", &json!({"_meta": meta}));
    assert_eq!(tools["tools"][0]["name"], "skill");
    // News of changes come to whoever listens.
    let wanted = json!({"toolsListChanged": true});
    let id = client.request(
        "subscriptions/listen",
        &json!({"_meta": meta, "notifications": wanted}),
    );
    client.message("acknowledgement", |one| {
        one["method"] == "notifications/subscriptions/acknowledged"
    });
    workspace.write(".claude/skills/more/SKILL.md", &page("more", "d", "x"));
    let news = client.message("news", |one| {
        one["method"] == "notifications/tools/list_changed"
    });
    assert!(
        news["params"]["_meta"]
            .to_string()
            .contains(&id.to_string()),
        "{news}"
    );
}

#[test]
fn the_handshake_does_not_wait_for_the_definitions() {
    let workspace = workspace();
    // A root in which looking takes for ever would be a hang: a pipe that nobody writes is passed over.
    let pipe = workspace.root.join(".claude/skills/pipe");
    std::fs::create_dir_all(&pipe).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        pipe.join("SKILL.md"),
        rustix::fs::FileType::Fifo,
        mode,
        0,
    )
    .unwrap();
    let mut client = Client::start(&workspace);
    client.initialize("2025-06-18");
    assert!(
        client
            .text("skill", &json!({"name": "git"}))
            .starts_with("Loading: git")
    );
}

#[test]
fn batches_are_answered_together_in_the_version_that_has_them() {
    let workspace = workspace();
    let mut client = Client::start(&workspace);
    client.initialize("2025-03-26");
    let call = |id: u64, name: &str| {
        let params = json!({"name": "skill", "arguments": {"name": name}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    let note = json!({"jsonrpc": "2.0", "method": "notifications/none"});
    client.send(&json!([call(71, "git"), note, 5, call(72, "nope"), {"jsonrpc": "2.0", "id": "x", "method": "ping"}]));
    let answers = client.batch();
    assert_eq!(answers.len(), 4, "{answers:?}");
    for id in [json!(71), json!(72), json!("x"), json!(null)] {
        assert_eq!(
            answers.iter().filter(|one| one["id"] == id).count(),
            1,
            "{answers:?}"
        );
    }
    client.send(&json!([note]));
    client.send(&json!([]));
    let refused = client.message("refusal", |one| one["error"]["code"].is_i64());
    assert_eq!(refused["error"]["code"], -32_600, "{refused}");
    client.lives();
}

#[test]
fn what_was_asked_before_the_input_ended_is_answered() {
    let workspace = workspace();
    let mut client = Client::connect(&workspace);
    let arguments = json!({"name": "skill", "arguments": {"name": "git"}});
    let calls: Vec<u64> = (0..20)
        .map(|_| client.request("tools/call", &arguments))
        .collect();
    client.finish();
    for call in calls {
        let answer = client.answer(call);
        assert!(answer["result"]["content"].is_array(), "{answer}");
    }
    assert!(client.ended().success());
    // Whoever leaves before the first word has asked for nothing.
    assert!(Client::start(&workspace).leave().success());
}

#[test]
fn all_tools_are_there() {
    let workspace = workspace();
    let mut client = Client::connect(&workspace);
    let listed = client.result("tools/list", &json!({}));
    let tools = listed["tools"].as_array().unwrap();
    let names: Vec<&str> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    let expected = [
        "skill",
        "Skill",
        "loadSkill",
        "loadSkillFile",
        "list_skills",
        "use_skill",
        "list_runs",
        "get_run",
        "read_thread",
        "cancel_run",
    ];
    assert_eq!(names, expected);
    let loaded = |tool: &&Value| tool["_meta"]["anthropic/alwaysLoad"] == true;
    let always: Vec<&Value> = tools
        .iter()
        .filter(loaded)
        .map(|tool| &tool["name"])
        .collect();
    assert_eq!(always, ["skill", "list_skills"]);
    for tool in tools {
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{tool}");
        let page = include_str!("../../docs/reference/mcp.md");
        assert!(
            page.contains(&format!("| `{}`", tool["name"].as_str().unwrap())),
            "{tool}"
        );
    }
}
