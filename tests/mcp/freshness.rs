//! A change of a definition reaches the client as soon as it is made, not with the next look.

use std::fs::OpenOptions;
use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::mcp::client::{Client, page};
use crate::workspace::Workspace;

/// Definitions are looked at every 30 s anyway; what takes that long was not noticed.
const BEFORE_THE_NEXT_LOOK: Duration = Duration::from_secs(20);

fn load(client: &mut Client, name: &str) -> String {
    client.text("skill", &json!({"name": name}))
}

/// What `change` does is told, and what is then handed out for `name` comes to begin with `expected`.
fn seen(client: &mut Client, change: impl FnOnce(), name: &str, expected: &str) {
    let begun = Instant::now();
    change();
    let method = "notifications/tools/list_changed";
    client.message(method, |message| message["method"] == method);
    loop {
        let listed = client.tool("skill")["description"]
            .as_str()
            .unwrap()
            .contains(&format!("<name>{name}</name>"));
        let text = load(client, name);
        let taken = begun.elapsed();
        assert!(taken < BEFORE_THE_NEXT_LOOK, "{name}: {text}");
        if text.contains(expected) && listed == expected.starts_with("Loading") {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn files_that_change_come_and_go_are_seen_before_the_next_look() {
    let workspace = Workspace::new();
    workspace.write("workerctl.yaml", "");
    let path = ".claude/skills/git/SKILL.md";
    workspace.write(path, &page("git", "before", "x"));
    let mut client = Client::connect(&workspace);
    assert!(load(&mut client, "git").starts_with("Loading: git\n"));
    let absent = |name: &str| format!("Skill '{name}' not found.");

    let renamed = page("other", "after", "x");
    seen(
        &mut client,
        || workspace.write(path, &renamed),
        "other",
        "Loading: other\n",
    );
    let added = page("fresh", "d", "x");
    seen(
        &mut client,
        || workspace.write(".claude/skills/fresh/SKILL.md", &added),
        "fresh",
        "Loading: fresh\n",
    );
    let file = workspace.root.join(path);
    seen(
        &mut client,
        || std::fs::remove_file(file).unwrap(),
        "other",
        &absent("other"),
    );
    let directory = workspace.root.join(".claude/skills/fresh");
    let moved = workspace.root.join("elsewhere");
    seen(
        &mut client,
        || std::fs::rename(directory, moved).unwrap(),
        "fresh",
        &absent("fresh"),
    );
    assert!(client.leave().success());
}

#[test]
fn roots_that_come_to_be_are_seen_before_the_next_look() {
    let workspace = Workspace::new();
    let named = workspace.home.join("named/below");
    workspace.write("workerctl.yaml", "");
    let mut client = Client::connect(&workspace);
    assert!(load(&mut client, "none").starts_with("Skill 'none' not found."));
    // In the workspace, at home, and one that the configuration names.
    seen(
        &mut client,
        || workspace.write(".agents/skills/one/SKILL.md", &page("one", "d", "x")),
        "one",
        "Loading: one\n",
    );
    let at_home = workspace.home.join(".claude/skills/two");
    seen(
        &mut client,
        || {
            std::fs::create_dir_all(&at_home).unwrap();
            std::fs::write(at_home.join("SKILL.md"), page("two", "d", "x")).unwrap();
        },
        "two",
        "Loading: two\n",
    );
    let roots = format!("skills: {{roots: ['{}']}}\n", named.display());
    seen(
        &mut client,
        || {
            workspace.write("workerctl.yaml", &roots);
            std::fs::create_dir_all(named.join("three")).unwrap();
            std::fs::write(named.join("three/SKILL.md"), page("three", "d", "x")).unwrap();
        },
        "three",
        "Loading: three\n",
    );
    assert!(client.leave().success());
}

/// What `change` does is told to the client, and then is listed, or not.
fn told(
    client: &mut Client,
    change: impl FnOnce(),
    listed: impl Fn(&mut Client) -> bool,
    expected: bool,
) {
    assert_eq!(listed(client), !expected);
    change();
    // A file that is written anew may be seen empty first.
    loop {
        client.hears_of_changes();
        if listed(client) == expected {
            return;
        }
    }
}

#[test]
fn trust_that_is_given_taken_or_lost_is_told() {
    let workspace = Workspace::new();
    workspace.write(
        "workerctl.yaml",
        "mcp: {refresh: 100ms}\nskills: {untrusted: [.claude]}\n",
    );
    workspace.write(".claude/skills/a/SKILL.md", &page("a", "One", "x"));
    let near = ".claude/skills/a/near.md";
    workspace.write(near, "near");
    let mut client = Client::connect(&workspace);
    let listed = |client: &mut Client| {
        let description = client.tool("skill")["description"].to_string();
        description.contains("<name>a</name>")
    };
    let run = |verb: &str| assert_eq!(workspace.run(&["skill", verb, "a"]).code, 0);
    told(&mut client, || run("trust"), listed, true);
    told(&mut client, || workspace.write(near, "new"), listed, false);
    told(&mut client, || run("trust"), listed, true);
    told(&mut client, || run("distrust"), listed, false);
    assert!(client.leave().success());
}

#[test]
fn files_that_come_and_go_beside_a_skill_are_told() {
    let workspace = Workspace::new();
    workspace.worker("w", "  - {id: b, file: skills/b/SKILL.md}\n");
    workspace.write(".claude/skills/a/SKILL.md", &page("a", "One", "x"));
    workspace.write("workers/w/skills/b/SKILL.md", &page("b", "Two", "x"));
    let mut client = Client::connect(&workspace);
    for (directory, name) in [(".claude/skills/a", "a"), ("workers/w/skills/b", "b")] {
        let path = format!("{directory}/deep/more.md");
        let listed = |client: &mut Client| {
            let resources = client.result("resources/list", &json!({})).to_string();
            resources.contains(&format!("\"skill://{name}/deep/more.md\""))
        };
        told(&mut client, || workspace.write(&path, "x"), listed, true);
        let file = workspace.root.join(&path);
        let removed = || std::fs::remove_file(file).unwrap();
        told(&mut client, removed, listed, false);
    }
    assert!(client.leave().success());
}

#[test]
fn a_change_that_no_notice_tells_is_found_by_the_next_look() {
    // mcp-skill-tool.md: "Automatically refreshed every 30 seconds", here every second.
    let workspace = Workspace::new();
    workspace.write("workerctl.yaml", "mcp: {refresh: 1s}\n");
    let path = ".claude/skills/git/SKILL.md";
    workspace.write(path, &page("git", "before", "x"));
    // A file is told when whoever writes it closes it: this one stays open until all is seen.
    let modified = 2;
    assert_eq!(workerctl::catalog::watch::changes().bits() & modified, 0);
    let place = workspace.root.join(path);
    let mut file = OpenOptions::new().write(true).open(place).unwrap();
    let mut client = Client::connect(&workspace);
    assert!(
        client.tool("skill")["description"]
            .to_string()
            .contains("before")
    );
    file.write_all(page("git", "behind", "x").as_bytes())
        .unwrap();
    client.hears_of_changes();
    assert!(
        client.tool("skill")["description"]
            .to_string()
            .contains("behind")
    );
    drop(file);
    assert!(client.leave().success());
}
