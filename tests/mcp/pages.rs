//! Pages of lists, and the cursors that lead from one to the next.

use serde_json::{Value, json};

use crate::mcp::client::{Client, page};
use crate::workspace::{Workspace, eventually};

const LISTS: [(&str, &str); 5] = [
    ("tools/list", "tools"),
    ("prompts/list", "prompts"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
    ("skills/list", "skills"),
];

fn workspace(skills: usize) -> Workspace {
    let workspace = Workspace::new();
    workspace.write("workerctl.yaml", "mcp: {refresh: 100ms}\n");
    for n in 0..skills {
        let name = format!("s{n:03}");
        let text = page(&name, "d", "x");
        workspace.write(&format!(".claude/skills/{name}/SKILL.md"), &text);
    }
    workspace
}

#[test]
fn what_is_no_cursor_of_the_list_is_refused() {
    let workspace = workspace(120);
    let mut client = Client::connect(&workspace);
    let foreign = client.result("resources/list", &json!({}))["nextCursor"].clone();
    assert!(foreign.is_string(), "{foreign}");
    for (method, list) in LISTS {
        for odd in [
            json!("elsewhere"),
            json!("999999"),
            json!(""),
            json!(5),
            json!({"a": 1}),
            json!([]),
            json!(true),
            foreign.clone(),
        ] {
            if method == "resources/list" && odd == foreign {
                continue;
            }
            let answer = client.ask(method, &json!({"cursor": odd}));
            assert_eq!(answer["error"]["code"], -32_602, "{method} {odd}: {answer}");
        }
        let first = client.result(method, &json!({"cursor": null}));
        assert!(first[list].is_array(), "{method}: {first}");
    }
}

#[test]
fn a_skill_that_goes_between_two_pages_takes_none_with_it() {
    let workspace = workspace(60);
    let mut client = Client::connect(&workspace);
    let first = client.result("skills/list", &json!({}));
    let next = json!({"cursor": first["nextCursor"]});
    let names = |page: &Value| -> Vec<String> {
        let all = page["skills"].as_array().unwrap();
        all.iter()
            .map(|one| one["frontmatter"]["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&first).last().unwrap(), "s049");
    let expected: Vec<String> = (50..60).map(|n| format!("s{n:03}")).collect();
    assert_eq!(names(&client.result("skills/list", &next)), expected);
    for gone in ["s003", "s049"] {
        std::fs::remove_dir_all(workspace.root.join(format!(".claude/skills/{gone}"))).unwrap();
    }
    eventually("they are gone", || {
        let first = client.result("skills/list", &json!({}));
        (names(&first).last().unwrap() == "s051").then_some(())
    });
    assert_eq!(names(&client.result("skills/list", &next)), expected);
}
