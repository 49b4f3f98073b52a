//! Commands about definitions, against real files.

use std::fs;

use crate::cli::fake::{Console, Fake};
use crate::protocol::Probe;

fn alone() -> Console {
    let mut fake = Fake::default();
    fake.daemon = false;
    Console::new(fake)
}

#[test]
fn what_new_writes_passes_check() {
    let console = alone();
    assert_eq!(console.perform(&["new", "worker", "greeter"]).code, 0);
    let left = console.perform(&["check", "--strict"]);
    assert_eq!(left.code, 0, "{left:?}");
    assert!(
        left.err.contains("1 worker and 1 skill: no problems"),
        "{left:?}"
    );

    // A worker without a list finds its skills itself.
    fs::create_dir_all(console.path().join("workers/other")).unwrap();
    let minimal =
        "worker: {id: other, name: Other, description: d}\nexecution: {mode: on_demand}\n";
    fs::write(console.path().join("workers/other/worker.yaml"), minimal).unwrap();
    for line in [
        ["new", "skill", "other", "plain"].as_slice(),
        &["new", "skill", "other", "changing", "--mutating"],
    ] {
        let left = console.perform(line);
        assert_eq!(left.code, 0, "{left:?}");
    }
    let left = console.perform(&["check", "--strict"]);
    assert_eq!(left.code, 0, "{left:?}");
    assert!(
        left.err.contains("2 workers and 3 skills: no problems"),
        "{left:?}"
    );

    let left = console.perform(&["new", "skill", "greeter", "second"]);
    assert_eq!(left.code, 0, "{left:?}");
    let left = console.perform(&["check", "--strict"]);
    assert!(left.err.contains("2 workers and 4 skills"), "{left:?}");
    let left = console.perform(&["new", "skill", "greetr", "x"]);
    assert!(
        left.code == 3 && left.err.contains("did you mean `greeter`?"),
        "{left:?}"
    );
    assert_eq!(console.perform(&["new", "worker", "greeter"]).code, 8);
    assert_eq!(console.perform(&["new", "skill", "other", "plain"]).code, 8);
}

#[test]
fn a_new_skill_for_a_model_says_how_to_configure_one() {
    let console = alone();
    let minimal = "worker: {id: w, name: W, description: d}\nexecution: {mode: on_demand}\n";
    fs::create_dir_all(console.path().join("workers/w")).unwrap();
    fs::write(console.path().join("workers/w/worker.yaml"), minimal).unwrap();
    let left = console.perform(&["new", "skill", "w", "asked", "--agent"]);
    assert_eq!(left.code, 0, "{left:?}");
    for told in [
        "warning: `asked` is unavailable: it has no `run`, and no model is configured",
        "hint: add `models: {default: {provider: anthropic, model: …, key: env:…}}` or `agent: {cli: claude}` to workerctl.yaml",
    ] {
        assert!(left.err.contains(told), "{left:?}");
    }
    let left = console.perform(&["check", "--strict"]);
    assert_eq!(left.code, 0, "{left:?}");
    assert!(left.out.contains("note[no-executor]"), "{left:?}");

    let models = "models: {default: {provider: ollama, model: m}}\n";
    fs::write(console.path().join("workerctl.yaml"), models).unwrap();
    let left = console.perform(&["new", "skill", "w", "changing", "--agent", "--mutating"]);
    assert!(left.code == 0 && !left.err.contains("warning:"), "{left:?}");
    let left = console.perform(&["check", "--strict"]);
    assert!(
        left.err.contains("1 worker and 2 skills: no problems"),
        "{left:?}"
    );
    // What is commented out can be used as it stands.
    for id in ["asked", "changing"] {
        let path = console.path().join(format!("workers/w/skills/{id}.md"));
        let text = fs::read_to_string(&path).unwrap();
        let used = text
            .replace("  # allowed-tools", "  allowed-tools")
            .replace("  # budget", "  budget");
        assert_ne!(used, text);
        fs::write(path, used).unwrap();
    }
    let left = console.perform(&["check", "--strict"]);
    assert!(left.err.contains("no problems"), "{left:?}");
}

#[test]
fn the_example_for_a_model_is_listed_with_what_it_lacks() {
    let console = alone();
    console.perform(&["init"]);
    let left = console.perform(&["check", "--strict"]);
    assert_eq!(left.code, 0, "{left:?}");
    let skills = console.perform(&["skills"]).out;
    let line = skills.lines().find(|line| line.contains("weekly-news"));
    assert!(line.unwrap().contains("unavailable"), "{skills}");
    let readme = fs::read_to_string(console.path().join("workers/README.md")).unwrap();
    let (_, yaml) = readme.split_once("```yaml\n").unwrap();
    let (lines, _) = yaml.split_once("```").unwrap();
    assert_eq!(lines.lines().count(), 2, "{lines}");
    let config = console.path().join("workerctl.yaml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(config, text + lines).unwrap();
    let skills = console.perform(&["skills"]).out;
    assert!(!skills.contains("unavailable"), "{skills}");
}

#[test]
fn init_writes_what_is_missing_and_overwrites_nothing() {
    let console = alone();
    let root = console.path();
    fs::write(root.join(".gitignore"), "/state\n").unwrap();
    let left = console.perform(&["init"]);
    assert_eq!(left.code, 0, "{left:?}");
    assert_eq!(
        fs::read_to_string(root.join(".gitignore")).unwrap(),
        "/state\n"
    );
    assert!(
        left.err
            .contains("lacks `/workspace/threads/`, `/workspace/metrics/`, `/.workerctl/`"),
        "{left:?}"
    );
    assert!(root.join("workers/repo-steward/worker.yaml").is_file());
    fs::write(root.join("workers/README.md"), "mine").unwrap();
    let again = console.perform(&["init", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&again.out).unwrap();
    assert_eq!(told["written"], serde_json::json!([]));
    assert_eq!(
        fs::read_to_string(root.join("workers/README.md")).unwrap(),
        "mine"
    );

    let elsewhere = console.perform(&["init", "--bare", "sub/new"]);
    assert_eq!(elsewhere.code, 0, "{elsewhere:?}");
    let left = console.perform(&["config", "-C", "sub/new"]);
    assert_eq!(left.code, 0, "{left:?}");
}

#[test]
fn the_annotated_configuration_holds_the_defaults() {
    let console = alone();
    console.perform(&["init", "--bare"]);
    let path = console.path().join("workerctl.yaml");
    let before = console.perform(&["config"]).out;
    // Without the signs every line that is YAML stands for itself.
    let text = fs::read_to_string(&path).unwrap();
    let uncommented: String = text
        .lines()
        .filter_map(|line| line.strip_prefix("# "))
        .filter(|line| {
            let key = line.trim_start().split(':').next().unwrap_or_default();
            !key.is_empty()
                && key.chars().all(|c| c.is_ascii_lowercase() || c == '_')
                && line.contains(':')
        })
        .collect::<Vec<_>>()
        .join("\n");
    fs::write(&path, &uncommented).unwrap();
    let left = console.perform(&["config"]);
    assert!(
        left.code == 0 && left.err.is_empty(),
        "{uncommented}\n{left:?}"
    );
    let values = |text: &str| {
        text.lines()
            .filter(|line| {
                [
                    "timeout",
                    "grace",
                    "drain",
                    "queue",
                    "output",
                    "max_",
                    "commit.message",
                    "push",
                    "land_wait",
                    "trees",
                ]
                .iter()
                .any(|key| line.starts_with(key))
            })
            .map(|line| {
                line.split("  ")
                    .map(str::trim)
                    .filter(|part| !part.is_empty())
                    .take(2)
                    .collect::<Vec<_>>()
                    .join("=")
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(values(&left.out), values(&before));
}

#[test]
fn check_shows_the_line_and_exits_4() {
    let console = alone();
    fs::create_dir(console.path().join("workers/w")).unwrap();
    let yaml = "worker: {id: w, name: W, description: d}\nexecution: {mode: sometimes}\n";
    fs::write(console.path().join("workers/w/worker.yaml"), yaml).unwrap();
    let left = console.perform(&["check"]);
    assert_eq!(left.code, 4, "{left:?}");
    assert!(
        left.out.contains("--> workers/w/worker.yaml:2:"),
        "{left:?}"
    );
    assert!(
        left.out.contains("2 | execution: {mode: sometimes}"),
        "{left:?}"
    );
    assert!(left.err.contains("1 error"), "{left:?}");
    let found: serde_json::Value =
        serde_json::from_str(&console.perform(&["check", "--json"]).out).unwrap();
    assert_eq!(
        (&found["valid"], &found["error_count"]),
        (&false.into(), &1.into())
    );
    assert_eq!(console.perform(&["check", "workers/w"]).code, 4);
    fs::create_dir(console.path().join("workers/v")).unwrap();
    assert_eq!(console.perform(&["check", "workers/v"]).code, 0);
    assert_eq!(console.perform(&["check", "workers/nowhere"]).code, 3);
    assert_eq!(console.perform(&["check", "/"]).code, 2);
}

#[test]
fn definitions_are_listed_without_an_engine() {
    let console = alone();
    console.perform(&["new", "worker", "greeter"]);
    assert!(console.perform(&["skills"]).out.contains("greeter/hello"));
    let left = console.perform(&["workers", "show", "greeter"]);
    assert!(
        left.out.contains("in   name: string = \"world\""),
        "{left:?}"
    );
    let left = console.perform(&["workers", "show", "greter"]);
    assert!(
        left.code == 3 && left.err.contains("did you mean `greeter`?"),
        "{left:?}"
    );
    assert_eq!(console.perform(&["skills", "--worker", "nobody"]).code, 3);
}

#[test]
fn doctor_names_what_is_missing() {
    let console = alone();
    console.perform(&["new", "worker", "greeter"]);
    let left = console.perform(&["doctor", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&left.out).unwrap();
    let state = |name: &str| {
        let found = told["findings"]
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["name"] == name);
        found.map(|one| one["state"].as_str().unwrap().to_owned())
    };
    assert_eq!(state("definitions").as_deref(), Some("ok"), "{told}");
    assert_eq!(state("engine").as_deref(), Some("hint"), "{told}");
    assert_eq!(state("store").as_deref(), Some("ok"), "{told}");
    // Nothing here needs a repository.
    assert_eq!(state("git").as_deref(), Some("hint"), "{told}");
    fs::write(
        console.path().join("workers/greeter/worker.yaml"),
        "worker: [",
    )
    .unwrap();
    let left = console.perform(&["doctor"]);
    assert!(
        left.code == 1 && left.out.contains("✗ definitions"),
        "{left:?}"
    );
}

#[test]
fn doctor_shows_what_the_daemon_says_of_what_skills_need() {
    let probe = |what: &str, works, message: &str, hints: &[&str]| Probe {
        subject: what.to_owned(),
        ok: works,
        message: message.to_owned(),
        hints: hints.iter().map(|hint| (*hint).to_owned()).collect(),
    };
    let mut fake = Fake::default();
    fake.probes = vec![
        probe("state", true, "the state can be written in /s", &[]),
        probe(
            "output",
            false,
            "outputs cannot be written in /w: Read-only file system",
            &["`ProtectSystem=` of the unit makes it read-only"],
        ),
    ];
    let left = Console::new(fake).perform(&["doctor"]);
    assert_eq!(left.code, 1, "{left:?}");
    for line in [
        "✓ in engine   the state can be written in /s\n",
        "✗ in engine   outputs cannot be written in /w: Read-only file system\n              hint: `ProtectSystem=` of",
    ] {
        assert!(left.out.contains(line), "{left:?}");
    }
}

#[test]
fn schemas_and_stores_are_told() {
    let console = alone();
    for of in ["worker", "skill", "config"] {
        let left = console.perform(&["schema", of]);
        let schema: serde_json::Value = serde_json::from_str(&left.out).unwrap();
        assert!(schema.is_object(), "{of}");
    }
    let left = console.perform(&["store", "info", "--json"]);
    let info: serde_json::Value = serde_json::from_str(&left.out).unwrap();
    assert_eq!(info["in_use"], false);
    assert_eq!(console.perform(&["store", "verify"]).code, 1);
    assert_eq!(console.perform(&["store", "rebuild"]).code, 3);
}

#[test]
fn init_writes_into_the_directory_that_is_asked_for() {
    let console = alone();
    let place = console.path().join("else where");
    let asked = place.display().to_string();
    let left = console.perform(&["-C", &asked, "init", "--bare", "--no-git"]);
    assert_eq!(left.code, 0, "{left:?}");
    assert!(place.join("workerctl.yaml").is_file(), "{left:?}");
    assert!(!console.path().join("workerctl.yaml").exists());
    let left = console.perform(&["-C", &asked, "init", "inner", "--bare", "--no-git"]);
    assert!(place.join("inner/workerctl.yaml").is_file(), "{left:?}");
}
