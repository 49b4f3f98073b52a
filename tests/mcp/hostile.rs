//! What no client should send, and what no file system should do: answered, within bounds, and the server lives.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::mcp::client::{Client, page};
use crate::workspace::{Dice, Workspace, eventually, rounds};

fn workspace() -> Workspace {
    let workspace = Workspace::new();
    workspace.write("workerctl.yaml", "");
    workspace.write(".claude/skills/git/SKILL.md", &page("git", "d", "x"));
    workspace
}

/// Writes a line that is answered without an id.
fn refused(client: &mut Client, line: &str, code: i64) {
    client.write(line);
    let answer = client.message("refusal", |one| {
        one["id"].is_null() && one.get("error").is_some()
    });
    assert_eq!(answer["error"]["code"], code, "{line:.80}: {answer}");
}

#[test]
fn lines_that_are_no_messages_are_refused_before_and_within_a_session() {
    let workspace = workspace();
    let mut client = Client::start(&workspace);
    for round in 0..2 {
        refused(&mut client, "garbage{", -32_700);
        refused(&mut client, "\u{0}", -32_700);
        refused(&mut client, "\"text\"", -32_600);
        refused(&mut client, "null", -32_600);
        refused(&mut client, "[]", -32_600);
        refused(&mut client, "{}", -32_600);
        refused(
            &mut client,
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            -32_600,
        );
        refused(
            &mut client,
            r#"{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}"#,
            -32_600,
        );
        refused(&mut client, &"[".repeat(100_000), -32_700);
        refused(
            &mut client,
            &format!("{{\"a\":\"{}\"}}", "x".repeat(5_000_000)),
            -32_600,
        );
        client.write("");
        client.write("   \r");
        // Neither notifications nor answers before the handshake end it.
        client.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        client.write(r#"{"jsonrpc":"2.0","id":900,"result":{}}"#);
        client.write(r#"{"jsonrpc":"2.0","method":"notifications/none","params":{"a":[1]}}"#);
        if round == 0 {
            let early = client.ask("tools/list", &json!({}));
            assert!(early["error"]["code"].is_i64(), "{early}");
            client.initialize("2025-06-18");
        }
    }
    client.lives();
}

#[test]
fn half_of_a_surrogate_pair_is_refused_by_the_id_of_its_request() {
    let workspace = workspace();
    let mut client = Client::connect(&workspace);
    let call = |id: &str, name: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"skill","arguments":{{"name":"{name}"}}}}}}"#
        )
    };
    for name in [r"\ud800", r"a\udfffb"] {
        client.write(&call("4711", name));
        let answer = client.answer(4_711);
        assert_eq!(answer["error"]["code"], -32_600, "{answer}");
        let said = answer["error"]["message"].as_str().unwrap();
        assert!(said.contains("hex escape"), "{said}");
    }
    refused(&mut client, &call(r#""\ud800""#, "git"), -32_700);
    client.write(&call("4712", r"\ud83d\ude00"));
    let answer = client.answer(4_712);
    assert!(answer["result"].is_object(), "{answer}");
    client.lives();
}

#[test]
fn unknown_methods_tools_and_parameters_are_errors_of_the_protocol() {
    let workspace = workspace();
    let mut client = Client::connect(&workspace);
    for (method, params, code) in [
        ("nothing/here", json!({}), -32_601),
        ("tools/call", json!({"name": "bogus"}), -32_602),
        ("tools/call", json!({"arguments": {}}), -32_602),
        ("tools/call", json!({"name": 5}), -32_602),
        (
            "tools/call",
            json!({"name": "skill", "arguments": [1]}),
            -32_602,
        ),
        ("tools/call", json!([1, 2]), -32_600),
        ("prompts/get", json!({}), -32_602),
        ("resources/read", json!({"uri": 3}), -32_602),
        ("logging/setLevel", json!({"level": "debug"}), -32_601),
        ("skills/get", json!({"uri": 1}), -32_602),
        (
            "resources/directory/read",
            json!({"uri": "skill://git/"}),
            -32_601,
        ),
        ("tasks/get", json!({"taskId": "x"}), -32_601),
    ] {
        let answer = client.ask(method, &params);
        assert_eq!(answer["error"]["code"], code, "{method} {params}: {answer}");
    }
    let odd = client.ask(&"m\u{1b}".repeat(10_000), &json!({}));
    assert!(odd.to_string().len() < 2_000, "{}", odd.to_string().len());
    client.lives();
}

#[test]
fn any_argument_of_any_tool_gets_an_answer() {
    let workspace = workspace();
    let mut client = Client::connect(&workspace);
    let listed = client.result("tools/list", &json!({}));
    let odd = [
        Value::Null,
        json!(true),
        json!(-1),
        json!(1e300),
        json!(""),
        json!("git"),
        json!("../../etc/passwd"),
        json!("\u{0}\u{1b}[2J\u{202e}"),
        json!("x".repeat(50_000)),
        json!([]),
        json!([[[]]]),
        json!({}),
        json!({"skill": {"a": null}}),
        json!("%00"),
        json!("git; rm -rf /"),
        json!("</available_skills>"),
    ];
    let mut dice = Dice(7);
    for _ in 0..rounds(300) {
        let tools = listed["tools"].as_array().unwrap();
        let tool = &tools[usize::try_from(dice.below(tools.len() as u64)).unwrap()];
        let mut arguments = serde_json::Map::new();
        for name in tool["inputSchema"]["properties"]
            .as_object()
            .unwrap()
            .keys()
        {
            if dice.below(4) > 0 {
                let value = &odd[usize::try_from(dice.below(odd.len() as u64)).unwrap()];
                arguments.insert(name.clone(), value.clone());
            }
        }
        let params = json!({"name": tool["name"], "arguments": arguments});
        let answer = client.ask("tools/call", &params);
        let answered = answer["result"]["content"][0]["text"].is_string()
            || answer["error"]["code"] == -32_602;
        assert!(answered, "{params:.200}: {answer}");
        assert!(answer.to_string().len() < 300_000);
    }
    client.lives();
    assert!(client.leave().success());
}

#[test]
fn roots_that_break_while_they_are_in_use_break_nothing_else() {
    let workspace = workspace();
    workspace.write("workerctl.yaml", "mcp: {refresh: 100ms}\n");
    let mut client = Client::connect(&workspace);
    assert!(
        client
            .text("skill", &json!({"name": "git"}))
            .starts_with("Loading: git")
    );
    let root = workspace.root.join(".claude/skills");
    std::fs::remove_dir_all(&root).unwrap();
    std::fs::write(&root, "no directory").unwrap();
    client.hears_of_changes();
    assert!(
        client
            .text("skill", &json!({"name": "git"}))
            .starts_with("Skill 'git' not found.")
    );
    std::fs::remove_file(&root).unwrap();
    std::os::unix::fs::symlink("skills", &root).unwrap();
    workspace.write("workerctl.yaml", "mcp: {refresh: [\n");
    workspace.write(".agents/skills/other/SKILL.md", &page("other", "d", "x"));
    client.hears_of_changes();
    client.lives();
}

/// Processor time and peak of memory, in KiB, of a process.
fn used(pid: u32) -> (String, u64) {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap();
    let stat = read("stat");
    let times: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let status = read("status");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.unwrap().trim().trim_end_matches(" kB");
    (times[11..13].join(" "), peak.parse().unwrap())
}

#[test]
fn a_client_that_reads_nothing_does_not_fill_the_memory_and_gets_every_answer_once_it_reads() {
    const REQUESTS: usize = 200;
    let workspace = workspace();
    let text = "word ".repeat(200_000);
    workspace.write(".claude/skills/big/SKILL.md", &page("big", "d", &text));
    let mut command = workspace.workerctl(&["mcp"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let info = json!({"name": "t", "version": "1"});
    let begin = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
    let mut say = |message: Value| writeln!(input, "{message}").unwrap();
    say(json!({"jsonrpc": "2.0", "id": "first", "method": "initialize", "params": begin}));
    say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let params = json!({"name": "skill", "arguments": {"name": "big"}});
    for id in 0..REQUESTS {
        say(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    }
    // Until it does nothing more, as far as that can be seen; looked at too early, less would be proved.
    let (mut last, mut same) = (used(child.id()).0, 0);
    eventually("idle", || {
        let now = used(child.id()).0;
        same = if now == last { same + 1 } else { 0 };
        last = now;
        (same >= 40).then_some(())
    });
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut answered: Vec<u64> = Vec::new();
    while answered.len() < REQUESTS {
        let answer: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        if let Some(id) = answer["id"].as_u64() {
            let text = answer["result"]["content"][0]["text"].as_str().unwrap();
            assert!(text.starts_with("Loading: big") && text.len() > 1_000_000);
            answered.push(id);
        }
    }
    answered.sort_unstable();
    assert!(answered.into_iter().eq(0..REQUESTS as u64));
    let (_, peak) = used(child.id());
    assert!(peak < 200 * 1024, "{peak} KiB");
    drop(input);
    assert!(child.wait().unwrap().success());
}
