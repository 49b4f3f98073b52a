//! Destinations that several skills can have: names that are invented, and what `check` says.

use serde_json::Value;

use crate::workspace::Workspace;

/// A skill `mrr` whose output goes to this destination.
fn reporting(destination: &str) -> String {
    format!(
        "  - id: mrr\n    description: d\n    run: echo {{worker}}\n    interface:\n      outputs: [{{name: report, type: markdown, destination: \"{destination}\"}}]\n"
    )
}

/// What `check` says of shared destinations: place and message.
fn shared(workspace: &Workspace) -> Vec<(String, String)> {
    let checked = workspace.run(&["check", "--json"]).value();
    let problems = checked["problems"].as_array().unwrap().iter();
    let shared = problems.filter(|problem| problem["code"] == "destination-shared");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    shared
        .map(|problem| {
            let place = &problem["place"];
            let place = format!("{}:{}", text(&place["path"]), place["line"]);
            (place, text(&problem["message"]))
        })
        .collect()
}

#[test]
fn instances_and_workers_never_share_a_file_with_an_invented_name() {
    let workspace = Workspace::new();
    workspace.furnish(&reporting("reports/"));
    workspace.write(
        "workers/cfo/worker.yaml",
        &format!(
            "worker: {{id: \"cfo-{{company}}\", name: n}}\nskills:\n{}",
            reporting("reports/")
        ),
    );
    workspace.write(
        "workerctl.yaml",
        "instances: {\"cfo-{company}\": [{company: acme}, {company: globex}]}\n",
    );
    assert_eq!(shared(&workspace), []);
    for worker in ["cfo-acme", "cfo-globex", "w"] {
        let address = format!("{worker}/mrr");
        let run = workspace.json(&["run", &address]);
        let path = run["outputs"][0]["path"].as_str().unwrap();
        assert!(path.ends_with(&format!("-{worker}-mrr.md")), "{run}");
    }
    let mut reports: Vec<String> = std::fs::read_dir(workspace.root.join("reports"))
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    reports.sort();
    assert_eq!(reports, ["cfo-acme\n", "cfo-globex\n", "w\n"]);
}

#[test]
fn check_names_skills_that_can_overwrite_each_others_output() {
    let of_two = |one: &str, other: &str| {
        let workspace = Workspace::new();
        workspace.worker("a", &reporting(one));
        workspace.worker("b", &reporting(other));
        workspace.run(&["check"]).expect_code(0);
        shared(&workspace)
    };
    for (one, other) in [
        ("r/log.md", "r/log.md"),
        ("r/{date}.md", "./r/{date}.md"),
        ("r/{skill}.md", "r/{{skill}}.md"),
        ("r/{date}.md", "r/2026-11-26.md"),
        ("r/", "r/{date}-a-mrr.md"),
    ] {
        let found = of_two(one, other);
        let [(place, message)] = found.as_slice() else {
            panic!("{one} {other}: {found:?}");
        };
        assert_eq!(place, "workers/b/worker.yaml:8", "{message}");
        assert!(
            message.contains("`a/mrr` (workers/a/worker.yaml:8:"),
            "{message}"
        );
    }
    for (one, other) in [
        ("r/{worker}.md", "r/{worker}.md"),
        ("r/{date}-a.md", "r/{date}-b.md"),
        ("r/{run}.md", "r/{run}.md"),
        ("r/{date}.md", "r/{time}.md"),
    ] {
        assert_eq!(of_two(one, other), [], "{one} {other}");
    }
}

#[test]
fn check_names_instances_whose_destination_lacks_their_value() {
    let workspace = Workspace::new();
    workspace.write(
        "workerctl.yaml",
        "instances: {\"cfo-{company}\": [{company: acme}, {company: globex}]}\n",
    );
    for (destination, count) in [("r/{date}.md", 1), ("r/{company}-{date}.md", 0)] {
        workspace.write(
            "workers/cfo/worker.yaml",
            &format!(
                "worker: {{id: \"cfo-{{company}}\", name: n}}\nskills:\n{}",
                reporting(destination)
            ),
        );
        let found = shared(&workspace);
        assert_eq!(found.len(), count, "{found:?}");
        let names = |(_, message): &(String, String)| {
            message.contains("`cfo-globex/mrr`") && message.contains("`cfo-acme/mrr`")
        };
        assert!(found.iter().all(names), "{found:?}");
    }
}

/// No run of such a skill could be accepted, so the definition is rejected.
#[test]
fn two_outputs_of_one_skill_with_one_path_are_an_error() {
    for (outputs, code) in [
        (
            "{name: x, type: json, destination: r/}, {name: y, type: json, destination: ./r/}",
            4,
        ),
        (
            "{name: x, destination: r/x}, {name: y, destination: r/x}",
            4,
        ),
        (
            "{name: x, type: json, destination: r/}, {name: y, type: markdown, destination: r/}",
            0,
        ),
    ] {
        let skill = format!(
            "  - {{id: a, description: d, run: \"true\", interface: {{outputs: [{outputs}]}}}}\n"
        );
        let workspace = Workspace::with_skills(&skill);
        workspace.run(&["check"]).expect_code(code);
        assert_eq!(
            shared(&workspace).len(),
            usize::from(code != 0),
            "{outputs}"
        );
    }
}

#[test]
fn the_example_workers_and_what_new_writes_share_no_file() {
    let workspace = Workspace::new();
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/workers");
    let copied = workspace
        .program("cp")
        .args(["-r", examples, "workers"])
        .status();
    assert!(copied.unwrap().success());
    for worker in ["one", "two"] {
        workspace.run(&["new", "worker", worker]).expect_code(0);
        let new = ["new", "skill", worker, "report"];
        workspace.run(&new).expect_code(0);
    }
    assert_eq!(shared(&workspace), []);
}
