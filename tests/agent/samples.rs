//! The samples of the worker-skill interface as written, and of the workspace skills what workers can have.

use serde_json::{Value, json};

use super::server::script::Reply;
use super::{Rig, call, text};

const INLINE: &str = include_str!("../samples/definitions/inline.yaml");

const STANDALONE: &str = include_str!("../samples/definitions/standalone.md");

const READ_ONLY: &str = include_str!("../samples/definitions/read-only.yaml");

const MUTATING: &str = include_str!("../samples/definitions/mutating.yaml");

const INSTANCES: &str =
    "instances: {\"cfo-{company}\": [{company: acme}, {company: \"globex & sons\"}]}\n";

/// A workspace with these definitions beside a skill that asks no model.
fn rig(more: &str, files: &[(&str, &str)], script: Vec<Reply>) -> Rig {
    let idle = "  - {id: idle, description: d, run: 'true'}\n";
    let rig = Rig::configured(idle, more, script);
    for (path, text) in files {
        rig.workspace.write(path, text);
    }
    rig.workspace.commit_all("samples");
    rig
}

fn succeeded(shown: &Value) {
    let outcome = &shown["summary"]["outcome"]["kind"];
    assert_eq!(outcome, "succeeded", "{shown:#}");
}

/// What the model was told of its task with its request number `n`.
fn task(rig: &Rig, n: usize) -> String {
    rig.server.requests()[n].body["messages"][0]["content"].to_string()
}

/// The content of the one output of a run.
fn report(rig: &Rig, shown: &Value) -> String {
    let path = shown["outputs"][0]["path"].as_str().unwrap();
    assert!(path.starts_with("workspace/reports/finance/"), "{path}");
    assert!(path.ends_with("-mrr.md"), "{path}");
    rig.workspace.read(path).unwrap()
}

#[test]
fn the_inline_sample_runs_for_each_company() {
    let script = vec![text("# MRR\n\n42"), text("# MRR\n\n7")];
    let rig = rig(INSTANCES, &[("workers/cfo/worker.yaml", INLINE)], script);
    let checked = rig.workspace.run(&["check"]).expect_code(0);
    // The one with blanks in its name is told.
    assert_eq!(checked.stdout.matches("warning[").count(), 1, "{checked:?}");
    let acme = rig.ran(&["cfo-acme/mrr"]);
    succeeded(&acme);
    assert_eq!(acme["summary"]["unverified"], false);
    assert_eq!(acme["inputs"]["company"], "acme", "{acme:#}");
    assert_eq!(report(&rig, &acme), "# MRR\n\n42\n");
    let told = task(&rig, 0);
    assert!(
        told.contains("cfo-acme/mrr") && told.contains(r#"\"company\": \"acme\""#),
        "{told}"
    );
    assert!(told.contains("Output file exists"), "{told}");
    assert!(told.contains("MRR Report"), "{told}");
    let other = rig.ran(&["cfo-globex & sons/mrr", "-i", "months=3"]);
    succeeded(&other);
    assert_eq!(report(&rig, &other), "# MRR\n\n7\n");
    assert!(
        task(&rig, 1).contains(r#"\"months\": 3"#),
        "{}",
        task(&rig, 1)
    );
    assert_eq!(rig.workspace.committed_runs().len(), 0);
}

#[test]
fn an_instance_cannot_be_given_another_value_and_the_template_never_runs() {
    let rig = rig(
        INSTANCES,
        &[("workers/cfo/worker.yaml", INLINE)],
        Vec::new(),
    );
    let refused = rig
        .run(&["cfo-acme/mrr", "-i", "company=initech"])
        .expect_code(2);
    assert!(refused.stderr.contains("company"), "{refused:?}");
    rig.run(&["cfo-acme/mrr", "--dry-run", "-i", "company=acme"])
        .expect_code(0);
    let template = rig.run(&["cfo-{company}/mrr"]).expect_code(6);
    assert!(
        template.stderr.contains("holds a placeholder"),
        "{template:?}"
    );
    let workers = rig.workspace.json(&["workers"]);
    let listed: Vec<(&str, bool)> = workers["workers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["id"].as_str().unwrap(), one["template"] == true))
        .collect();
    let expected = [
        ("cfo-acme", false),
        ("cfo-globex & sons", false),
        ("cfo-{company}", true),
        ("w", false),
    ];
    assert_eq!(listed, expected);
    let skills = rig.workspace.run(&["skills"]).expect_code(0).stdout;
    assert!(skills.contains("cfo-acme/mrr"), "{skills}");
    let config = rig.workspace.run(&["config"]).expect_code(0).stdout;
    assert!(config.contains("instances.cfo-{company}"), "{config}");
    assert_eq!(rig.server.requests().len(), 0);
}

#[test]
fn the_value_of_an_instance_stands_in_every_text() {
    let yaml = r#"worker: {id: "cfo-{company}"}
skills:
  - id: note
    description: A note
    mutating: true
    schedule: "@yearly"
    interface: {outputs: [{name: note, type: file, destination: "notes/{company}.txt"}]}
    run: printf '%s %s\n' {company} "$WORKERCTL_INPUT_company" > {note}
    verification: [{command: "grep -qxF -e {company}' '{company} {note}"}]
    commit: {message: "note for {{company}}"}
"#;
    let files = [("workers/cfo/worker.yaml", yaml)];
    let rig = rig(INSTANCES, &files, Vec::new());
    succeeded(&rig.ran(&["cfo-globex & sons/note"]));
    let git = |arguments: &[&str]| rig.workspace.git(arguments);
    let committed = git(&["show", "HEAD:notes/globex & sons.txt"]);
    assert_eq!(committed, "globex & sons globex & sons\n");
    let subject = git(&["log", "-1", "--format=%s"]);
    assert_eq!(subject.trim_end(), "note for globex & sons");
    let schedules = rig
        .workspace
        .run(&["schedule", "list"])
        .expect_code(0)
        .stdout;
    for id in ["cfo-acme/note", "cfo-globex & sons/note"] {
        assert!(schedules.contains(id), "{schedules}");
    }
}

#[test]
fn the_standalone_sample_runs() {
    let files = [
        ("workers/cfo/worker.yaml", "worker: {id: cfo}\n"),
        ("workers/cfo/skills/mrr.md", STANDALONE),
    ];
    let rig = rig("", &files, vec![text("# MRR\n\n42")]);
    let shown = rig.ran(&["cfo/mrr"]);
    succeeded(&shown);
    assert_eq!(report(&rig, &shown), "# MRR\n\n42\n");
    let system = rig.server.requests()[0].body["system"][0]["text"].to_string();
    assert!(
        system.contains("Instructions for executing this skill..."),
        "{system}"
    );
}

#[test]
fn the_read_only_sample_prints_its_answer() {
    let yaml = format!("worker: {{id: cfo}}\n{READ_ONLY}");
    let files = [("workers/cfo/worker.yaml", yaml.as_str())];
    let rig = rig("", &files, vec![text("The MRR is 42.")]);
    let done = rig.run(&["cfo/mrr"]).expect_code(0);
    assert!(done.stderr.contains("The MRR is 42."), "{done:?}");
    assert!(done.stdout.contains("unverified"), "{done:?}");
}

#[test]
fn the_file_generating_sample_lands_as_one_commit() {
    let yaml = format!("worker: {{id: \"cfo-{{company}}\"}}\n{MUTATING}");
    let content = json!({"name": "report", "content": "# January\n"});
    let script = vec![call("submit_output", &content), text("Done.")];
    let files = [("workers/cfo/worker.yaml", yaml.as_str())];
    let rig = rig(INSTANCES, &files, script);
    rig.run(&["cfo-acme/monthly-report"]).expect_code(2);
    let shown = rig.ran(&["cfo-acme/monthly-report", "-i", "month=2026-01"]);
    succeeded(&shown);
    let path = "HEAD:workspace/reports/finance/2026-01-report.md";
    assert_eq!(rig.workspace.git(&["show", path]), "# January\n");
    assert_eq!(rig.workspace.committed_runs().len(), 1);
}

#[test]
fn a_report_that_is_not_written_fails_its_check() {
    let yaml = format!("worker: {{id: cfo}}\n{MUTATING}");
    let files = [("workers/cfo/worker.yaml", yaml.as_str())];
    let rig = rig("", &files, vec![text("")]);
    let shown = rig.ran(&["cfo/monthly-report", "-i", "month=2026-01"]);
    assert_eq!(shown["summary"]["outcome"]["kind"], "failed", "{shown:#}");
    assert_eq!(rig.workspace.committed_runs().len(), 0);
}

/// `mkdir -p …/test`, `SKILL.md`, list, use; with the layouts that workers have.
#[test]
fn the_verification_of_workspace_skills_holds_for_skills_of_workers() {
    let page = "---\ndescription: Test skill\n---\n\nSay hello to the user.\n";
    let files = [
        ("workers/greeter/worker.yaml", "worker: {id: greeter}\n"),
        ("workers/greeter/skills/test/SKILL.md", page),
        ("workers/greeter/skills/flat.md", page),
        ("workers/greeter/skills/README.md", "# For people\n"),
        (
            "workers/greeter/skills/empty.md",
            "---\ndescription: Nothing\n---\n",
        ),
        (
            "workers/greeter/skills/needy.md",
            "---\ndescription: Needs a tool\nrequired_tools: [telescope]\n---\n\nLook.\n",
        ),
        (
            "workers/greeter/skills/aliased.md",
            "---\ndescription: Names a model\npreferred_model: fast\n---\n\nSay hello.\n",
        ),
    ];
    let script = vec![text("Hello!"), text("Hello, flat!"), text("Hello, fast!")];
    let rig = rig("", &files, script);
    let skills = rig.workspace.run(&["skills"]).expect_code(0).stdout;
    for name in [
        "greeter/test",
        "greeter/flat",
        "greeter/needy",
        "greeter/aliased",
    ] {
        assert!(skills.contains(name), "{name}: {skills}");
    }
    assert!(!skills.contains("greeter/empty"), "{skills}");
    let check = rig.workspace.run(&["check"]).expect_code(6).stdout;
    assert!(check.contains("empty-instructions"), "{check}");
    for (name, says) in [
        ("greeter/test", "Hello!"),
        ("greeter/flat", "Hello, flat!"),
        ("greeter/aliased", "`fast` is not configured"),
    ] {
        let done = rig.run(&[name]).expect_code(0);
        assert!(done.stderr.contains(says), "{name}: {done:?}");
    }
    let needy = rig.run(&["greeter/needy"]);
    assert!(
        needy
            .stderr
            .contains("Skill requires tool 'telescope' which is not available"),
        "{needy:?}"
    );
    assert_eq!(rig.server.requests().len(), 3);
}

#[test]
fn what_new_writes_for_a_model_runs() {
    for mutating in [false, true] {
        let script = vec![
            call(
                "submit_output",
                &json!({"name": "report", "content": "# Fresh one\n\nText.\n"}),
            ),
            text("Done."),
            text("Nothing."),
        ];
        let files = [("workers/v/worker.yaml", "worker: {id: v}\n")];
        let rig = rig("", &files, script);
        let mut line = vec!["new", "skill", "v", "fresh-one", "--agent"];
        line.extend(mutating.then_some("--mutating"));
        rig.workspace.run(&line).expect_code(0);
        rig.workspace.commit_all("a skill");
        let shown = rig.ran(&["fresh-one"]);
        succeeded(&shown);
        assert_eq!(shown["summary"]["unverified"], false);
        assert_eq!(rig.workspace.committed_runs().len(), usize::from(mutating));
        // What the check does not find fails the run.
        let shown = rig.ran(&["fresh-one"]);
        assert_eq!(shown["summary"]["outcome"]["kind"], "failed", "{shown:#}");
    }
}

#[test]
fn the_example_writes_its_news_with_commits_that_are_there() {
    let good = "# News of 2026-05-04\n\nOne thing.\n\n- You can begin (HASH)\n";
    let submit = |text: &str| call("submit_output", &json!({"name": "news", "content": text}));
    let bad = good.replace("HASH", "abcdef0123");
    let rig = rig("", &[], Vec::new());
    let head = rig.workspace.git(&["rev-parse", "--short", "HEAD"]);
    rig.workspace.run(&["init"]).expect_code(0);
    rig.workspace.commit_all("examples");
    let rendered = rig.workspace.json(&["render", "weekly-news"]);
    let path = rendered["outputs"][0][1].as_str().unwrap().to_owned();
    let day = path.trim_start_matches("workspace/reports/");
    let day = day.trim_end_matches("-news.md");
    let dated = |text: &str| text.replace("2026-05-04", day);
    let log = json!({"command": "git log --no-merges --format=%h"});
    rig.server.follow(vec![
        call("bash", &log),
        submit(&dated(&good.replace("HASH", head.trim()))),
        text("Done."),
        submit(&dated(&bad)),
        text("Done."),
    ]);
    let first = rig.ran(&["weekly-news"]);
    succeeded(&first);
    let run = first["summary"]["run"].as_str().unwrap();
    let shown = rig.workspace.run(&["show", run]).expect_code(0).stdout;
    assert!(shown.contains("answered in 3 turns"), "{shown}");
    assert_eq!(shown.matches("turn_taken").count(), 3, "{shown}");
    let logs = rig.workspace.run(&["logs", run]).expect_code(0).stdout;
    let called = |line: &str| line.contains("tool") && line.contains("bash {\"command\":\"git log");
    assert!(logs.lines().any(called), "{logs}");
    assert!(logs.contains("Done."), "{logs}");
    assert!(
        rig.results(1)[0].contains(head.trim()),
        "{:?}",
        rig.results(1)
    );
    let shown = rig.ran(&["weekly-news"]);
    assert_eq!(shown["summary"]["outcome"]["kind"], "failed", "{shown:#}");
}
