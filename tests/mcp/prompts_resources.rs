//! Skills as prompts; their files, and threads of runs, as resources.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use workerctl::model::legible::hex;

use crate::mcp::client::{Client, page};
use crate::workspace::Workspace;

fn workspace() -> Workspace {
    let workspace =
        Workspace::with_skills("  - {id: quick, description: says it, run: 'echo quick'}\n");
    workspace.write(
        ".claude/skills/git/SKILL.md",
        &page("git", "Git workflow", "# Git"),
    );
    workspace.write(".claude/skills/git/ref/a b.md", "notes");
    let people =
        "---\nname: private\ndescription: p\ndisable-model-invocation: true\n---\n\nFor people.\n";
    workspace.write(".claude/skills/private/SKILL.md", people);
    let model = "---\nname: inner\ndescription: i\nuser-invocable: false\n---\n\nFor models.\n";
    workspace.write(".claude/skills/inner/SKILL.md", model);
    workspace
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect()
}

#[test]
fn skills_are_prompts_for_people() {
    let workspace = workspace();
    let mut client = Client::connect(&workspace);
    let listed = client.result("prompts/list", &json!({}));
    assert_eq!(names(&listed["prompts"]), ["git", "private", "quick"]);
    let got = client.result(
        "prompts/get",
        &json!({"name": "Git", "arguments": {"arguments": "now"}}),
    );
    let message = &got["messages"][0];
    assert_eq!(message["role"], "user");
    let text = message["content"]["text"].as_str().unwrap();
    assert!(
        text.starts_with("Loading: git\nBase directory: ")
            && text.ends_with("\n\nArguments:\narguments: now"),
        "{text}"
    );
    for unknown in ["nope", "inner", "../x"] {
        let answer = client.ask("prompts/get", &json!({"name": unknown}));
        assert_eq!(answer["error"]["code"], -32_602, "{answer}");
    }
    let answer = client.ask("prompts/list", &json!({"cursor": "elsewhere"}));
    assert_eq!(answer["error"]["code"], -32_602, "{answer}");
}

#[test]
fn many_prompts_come_in_pages() {
    let workspace = Workspace::new();
    workspace.write("workerctl.yaml", "");
    for n in 0..510 {
        workspace.write(
            &format!(".claude/skills/s{n:03}/SKILL.md"),
            &page(&format!("s{n:03}"), "d", "x"),
        );
    }
    let mut client = Client::connect(&workspace);
    let first = client.result("prompts/list", &json!({}));
    assert_eq!(names(&first["prompts"]).len(), 500);
    let next = client.result("prompts/list", &json!({"cursor": first["nextCursor"]}));
    assert_eq!(names(&next["prompts"]).len(), 10);
    assert!(next.get("nextCursor").is_none(), "{next}");
    let (mut cursor, mut count) = (json!({}), 0);
    loop {
        let listed = client.result("resources/list", &cursor);
        count += names(&listed["resources"]).len();
        match listed.get("nextCursor") {
            Some(next) => cursor = json!({"cursor": next}),
            None => break,
        }
    }
    assert_eq!(count, 510);
}

#[test]
fn the_skills_extension_gives_digests_of_what_can_be_read() {
    let workspace = workspace();
    workspace.write(
        ".claude/skills/raw name/SKILL.md",
        &page("raw name", "d", "x"),
    );
    let mut client = Client::start(&workspace);
    let capabilities = client.initialize("2025-11-25")["capabilities"].clone();
    let extension = &capabilities["extensions"]["io.modelcontextprotocol/skills"];
    assert!(extension.is_object(), "{capabilities}");
    let listed = client.result("skills/list", &json!({}));
    let uris: Vec<&str> = listed["skills"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["uri"].as_str().unwrap())
        .collect();
    // Those for people, those of workers and those whose names an address cannot hold are left out.
    assert_eq!(uris, ["skill://git/SKILL.md", "skill://inner/SKILL.md"]);
    let git = client.result("skills/get", &json!({"uri": "skill://git/SKILL.md"}));
    let skill = &git["skill"];
    assert_eq!(
        skill["frontmatter"],
        json!({"name": "git", "description": "Git workflow"})
    );
    for file in skill["resources"].as_array().unwrap() {
        let read = client.result("resources/read", &json!({"uri": file["uri"]}));
        let text = read["contents"][0]["text"].as_str().unwrap();
        let digest = hex(&Sha256::digest(text.as_bytes()));
        assert_eq!(file["digest"], format!("sha256:{digest}"));
        assert_eq!(file["size"], text.len());
    }
    assert_eq!(skill["resources"].as_array().unwrap().len(), 2);
    for unknown in [
        "skill://nope/SKILL.md",
        "skill://private/SKILL.md",
        "skill://GIT/SKILL.md",
    ] {
        let answer = client.ask("skills/get", &json!({"uri": unknown}));
        assert_eq!(answer["error"]["code"], -32_602, "{answer}");
    }
    // What is no text is described as it lies there.
    std::fs::write(workspace.root.join(".claude/skills/git/logo.png"), [0xff]).unwrap();
    let git = client.result("skills/get", &json!({"uri": "skill://git/SKILL.md"}));
    let files = git["skill"]["resources"].as_array().unwrap();
    let logo = files
        .iter()
        .find(|file| file["uri"] == "skill://git/logo.png")
        .unwrap();
    let digest = hex(&Sha256::digest([0xff]));
    assert_eq!(logo["digest"], format!("sha256:{digest}"), "{logo}");
    // One that cannot be read has no manifest.
    let large = vec![b'x'; 1024 * 1024 + 1];
    std::fs::write(workspace.root.join(".claude/skills/git/large"), large).unwrap();
    let git = client.result("skills/get", &json!({"uri": "skill://git/SKILL.md"}));
    assert_eq!(git["skill"]["resources"], "dynamic");
}

#[test]
fn files_that_are_no_text_are_read_in_base_64() {
    let workspace = workspace();
    let git = workspace.root.join(".claude/skills/git");
    std::fs::write(git.join("bin.dat"), [0xff, 0x00, 0x01]).unwrap();
    std::fs::write(git.join("logo.png"), "text").unwrap();
    std::fs::write(git.join("odd.md"), [0xfe]).unwrap();
    let mut client = Client::connect(&workspace);
    let listed = client.result("resources/list", &json!({}));
    for (path, kind, blob) in [
        ("bin.dat", "application/octet-stream", "/wAB"),
        ("logo.png", "image/png", "dGV4dA=="),
        ("odd.md", "application/octet-stream", "/g=="),
        ("ref/a%20b.md", "text/markdown", ""),
    ] {
        let uri = format!("skill://git/{path}");
        let all = listed["resources"].as_array().unwrap();
        let one = all.iter().find(|one| one["uri"] == uri).unwrap();
        assert_eq!(one["mimeType"], kind, "{one}");
        let read = client.result("resources/read", &json!({"uri": uri}));
        let contents = &read["contents"][0];
        assert_eq!(contents["mimeType"], kind, "{contents}");
        if blob.is_empty() {
            assert_eq!(contents["text"], "notes", "{contents}");
        } else {
            assert_eq!(contents["blob"], blob, "{contents}");
        }
    }
}

#[test]
fn arguments_of_prompts_are_those_of_the_interface() {
    let inputs = "interface: {inputs: [{name: who, type: string, required: true, description: Whom to greet}, {name: how, type: string, default: loud}]}";
    let workspace = Workspace::with_skills(&format!(
        "  - {{id: hello, description: d, run: 'echo {{who}} {{how}}', {inputs}}}\n"
    ));
    let mut client = Client::connect(&workspace);
    let listed = client.result("prompts/list", &json!({}));
    let expected = json!([
        {"name": "who", "description": "Whom to greet", "required": true},
        {"name": "how", "required": false},
    ]);
    assert_eq!(listed["prompts"][0]["arguments"], expected, "{listed}");
}

#[test]
fn files_and_threads_are_resources() {
    let workspace = workspace();
    workspace.write("secret", "SECRET");
    let mut client = Client::connect(&workspace);
    let ran = client.call("use_skill", &json!({"skill": "quick"}));
    let run = ran["structuredContent"]["run"].as_str().unwrap().to_owned();
    let listed = client.result("resources/list", &json!({}));
    let uris: Vec<&str> = listed["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["uri"].as_str().unwrap())
        .collect();
    let thread = format!("thread://{run}");
    let expected = [
        "skill://git/SKILL.md",
        "skill://git/ref/a%20b.md",
        "skill://inner/SKILL.md",
        "skill://quick/SKILL.md",
        &thread,
    ];
    assert_eq!(uris, expected);
    let mut read = |uri: &str| client.ask("resources/read", &json!({"uri": uri}));
    let text = |answer: &Value| {
        answer["result"]["contents"][0]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(text(&read("skill://git/ref/a%20b.md")), "notes");
    assert_eq!(
        text(&read("skill://GIT/SKILL.md")),
        page("git", "Git workflow", "# Git")
    );
    assert!(text(&read(&thread)).contains(" out   quick\n"));
    for missing in [
        "skill://git/..%2F..%2F..%2Fsecret",
        "skill://git/../../../secret",
        "skill://git//etc/hostname",
        "skill://nope/SKILL.md",
        "skill://private/SKILL.md",
        "thread://nothing",
        "file:///etc/hostname",
        "",
    ] {
        let answer = read(missing);
        assert_eq!(answer["error"]["code"], -32_002, "{missing}: {answer}");
        assert_eq!(answer["error"]["data"]["uri"], missing, "{answer}");
        assert!(!answer.to_string().contains("SECRET"));
    }
    let templates = client.result("resources/templates/list", &json!({}));
    assert_eq!(
        templates["resourceTemplates"][1]["uriTemplate"],
        "thread://{run}"
    );
}
