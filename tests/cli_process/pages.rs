//! Examples of the pages are definitions that `check` takes, recipes that work, and names of commands that exist.

#[path = "cookbook.rs"]
mod cookbook;
#[path = "names.rs"]
mod names;

use super::*;

/// Returns the fenced blocks of a language on reference pages of definitions.
fn examples(language: &str) -> Vec<String> {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference");
    let pages = [
        "worker",
        "skill",
        "inputs-outputs",
        "checks-retries",
        "sandbox",
    ];
    let fence = format!("\n```{language}\n");
    let blocks = pages.into_iter().flat_map(|page| {
        let text = std::fs::read_to_string(format!("{docs}/{page}.md")).unwrap();
        let blocks = text.split(&fence).skip(1);
        let blocks = blocks.map(|block| block.split("\n```").next().unwrap().to_owned());
        blocks.collect::<Vec<_>>()
    });
    blocks.collect()
}

/// A worker whose skill has these keys, and what they name.
fn worker_with(keys: &str) -> String {
    let of_worker = ["notify:", "schedule:"]
        .iter()
        .any(|key| keys.starts_with(key));
    let indented = |by: usize| {
        let lines = keys.lines().map(|line| format!("{:by$}{line}\n", ""));
        lines.collect::<String>()
    };
    let interface = if keys.starts_with("inputs:") || keys.starts_with("outputs:") {
        format!("    interface:\n{}", indented(6))
    } else {
        let inputs = "{name: weeks, type: number, integer: true}";
        let outputs = "{name: report, type: markdown, destination: r.md}";
        format!("    interface: {{inputs: [{inputs}], outputs: [{outputs}]}}\n")
    };
    let is_interface = interface.lines().count() > 1;
    let mut skill =
        format!("  - id: weekly-report\n    description: d\n    mutating: true\n{interface}");
    if !is_interface && !of_worker {
        skill.push_str(&indented(4));
    }
    if !keys.starts_with("run:") {
        skill.push_str("    run: date\n");
    }
    let others = "  - {id: broken-links, description: d, run: date}\n  - {id: publish, description: d, run: date}\n";
    let above = if of_worker { keys } else { "" };
    format!("worker: {{id: w, description: d}}\n{above}\nskills:\n{skill}{others}")
}

/// The example, or each of several that begin with the same key.
fn apart(example: &str) -> Vec<String> {
    let Some(rest) = example.strip_prefix("run:") else {
        return vec![example.to_owned()];
    };
    rest.split("\nrun:")
        .map(|one| format!("run:{one}"))
        .collect()
}

#[test]
fn examples_of_definitions_are_taken() {
    let mut count = 0;
    for example in examples("yaml").iter().flat_map(|example| apart(example)) {
        count += 1;
        if example.starts_with("# workerctl.yaml\n") {
            expect_valid("workerctl.yaml", &example);
            continue;
        }
        let text = if example.starts_with("worker:") {
            example
        } else {
            worker_with(&example)
        };
        expect_valid("workers/w/worker.yaml", &text);
    }
    for example in examples("markdown") {
        count += 1;
        expect_valid("workers/w/skills/broken-links.md", &example);
    }
    assert!(count > 10, "only {count} examples were found");
}

/// Asserts that a file is a definition without errors.
fn expect_valid(path: &str, text: &str) {
    let place = Place::new();
    let root = place.workspace();
    let file = root.join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::create_dir_all(root.join("workers/w/skills")).unwrap();
    if !path.ends_with("worker.yaml") {
        // The configuration lists instances of a template.
        let (id, skills) = match path {
            "workerctl.yaml" => (
                "cfo-{company}",
                "skills: [{id: a, description: d, run: date}]\n",
            ),
            _ => ("w", ""),
        };
        let text = format!("worker: {{id: \"{id}\", description: d}}\n{skills}");
        std::fs::write(root.join("workers/w/worker.yaml"), text).unwrap();
    }
    for script in ["workers/w/report.py", "workers/w/skills/broken-links.sh"] {
        std::fs::write(root.join(script), "#!/bin/sh\n").unwrap();
    }
    std::fs::write(file, text).unwrap();
    let checked = place.output(&["check", "--json"]);
    let found: serde_json::Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!(found["error_count"], 0, "{text}\n{found}");
    assert!(found["skill_count"].as_u64() > Some(0), "{text}\n{found}");
}
