//! Which skills models execute, with which model, and what they are given.

use super::models::{MODELS, first, of_worker, problem};
use super::*;

#[test]
fn instructions_are_available_where_a_model_executes_them() {
    let fast = "models: {fast: {provider: ollama, model: m}}\n";
    for (config, keys, reason) in [
        ("", "", Some("it has no `run`, and no model is configured")),
        (
            "",
            ", model: fast",
            Some("it has no `run`, and no model is configured"),
        ),
        (fast, ", preferred_model: fast", None),
        (fast, ", model: fast", None),
        (fast, ", model: fast, approval_required: true", None),
        (
            fast,
            ", model: slow",
            Some("neither its model `slow` nor `default` is configured"),
        ),
        (
            fast,
            "",
            Some("names no model, and no `default` is configured"),
        ),
        (MODELS, "", None),
        (MODELS, ", model: other", None),
        (MODELS, ", mutating: true, approval_required: true", None),
    ] {
        let skill = format!("  - {{id: a, description: d, instructions: i{keys}}}\n");
        let catalog = of_worker(config, "", &skill);
        let found = &first(&catalog).unavailable;
        let reasons: Vec<&str> = found.iter().map(|one| one.reason.as_str()).collect();
        let Some(reason) = reason else {
            assert!(reasons.is_empty(), "{config}{keys}: {reasons:?}");
            continue;
        };
        assert!(reasons[0].contains(reason), "{reasons:?}");
        let told = problem(&catalog, "no-executor");
        assert_eq!((told.severity, told.place.line), (NOTE, 3));
        assert!(told.message.contains(reason), "{}", told.message);
        let hint = told.hint.unwrap();
        assert!(
            hint.contains("models: {default:") && hint.contains("`run`"),
            "{hint}"
        );
    }
    // A command needs none.
    let catalog = of_worker("", "", "  - {id: a, description: d, run: x, model: fast}\n");
    assert!(
        first(&catalog).is_available(),
        "{}",
        show(&catalog.problems)
    );
}

#[test]
fn an_unknown_alias_is_told_where_the_default_counts_for_it() {
    let skill = "  - {id: a, description: d, instructions: i, preferred_model: daer}\n";
    let catalog = of_worker(MODELS, "", skill);
    let found = problem(&catalog, "model-unknown");
    assert_eq!((found.severity, found.place.line), (WARNING, 3));
    assert_eq!(
        found.message,
        "`daer` is no configured model: `default` is used"
    );
    assert_eq!(found.hint.as_deref(), Some("did you mean `dear`?"));
    assert!(first(&catalog).is_available());
    assert_eq!(first(&catalog).agent.model.as_deref(), Some("daer"));
    let catalog = of_worker(
        MODELS,
        "execution: {model: opus}\n",
        "  - {id: a, description: d, instructions: i, max_iterations: 7}\n",
    );
    let found = problem(&catalog, "model-unknown");
    assert_eq!((found.place.line, found.skill), (2, None));
    let agent = &first(&catalog).agent;
    assert_eq!(
        (agent.model.as_deref(), agent.max_iterations),
        (Some("opus"), Some(7))
    );
    for (value, code) in [
        ("0", "out-of-range"),
        ("1001", "out-of-range"),
        ("x", "wrong-type"),
    ] {
        let skill =
            format!("  - {{id: a, description: d, instructions: i, max_iterations: {value}}}\n");
        let found = problem(&of_worker(MODELS, "", &skill), code);
        assert_eq!((found.severity, found.place.line), (ERROR, 3), "{value}");
    }
}

#[test]
fn models_are_given_single_files_of_the_context() {
    let context = "context:\n  base: [./docs/a.md, docs/, 'b/*.md', /etc/passwd, ../x, .git/config, '{company}.md', b.md]\n  dynamic: [{pattern: c.md, when: exists}, {pattern: d.md, when: stale}, b.md, {pattern: '*.toml'}]\n";
    let skill = "  - {id: a, description: d, instructions: i}\n";
    let catalog = of_worker(MODELS, context, skill);
    assert_eq!(first(&catalog).agent.context, ["docs/a.md", "b.md", "c.md"]);
    let told = |code: &str| {
        catalog
            .problems
            .iter()
            .filter(|one| one.code == code)
            .count()
    };
    assert_eq!(
        (told("context-not-read"), told("when-not-evaluated")),
        (7, 1),
        "{}",
        show(&catalog.problems)
    );
    let found = problem(&catalog, "context-not-read");
    assert_eq!((found.severity, found.place.line), (NOTE, 3));
    let catalog = of_worker("", context, skill);
    assert!(!codes(&catalog).contains(&"context-not-read"));
    let catalog = of_worker(MODELS, "context: {base: a.md, dynamic: null}\n", skill);
    assert_eq!(first(&catalog).agent.context, ["a.md"]);
}

#[test]
fn workspace_skills_are_executed_and_those_of_other_roots_are_read() {
    let page = |keys: &str| format!("---\nname: {keys}\ndescription: d\n---\n\nDo.\n");
    let workspace = Workspace::new(&[
        (
            "workspace/skills/own.md",
            &page("own\npreferred_model: fats\ntoolsets: [none]"),
        ),
        (
            ".claude/skills/theirs/SKILL.md",
            &page("theirs\npreferred_model: fats\ntoolsets: [none]"),
        ),
    ]);
    let lacks = |catalog: &Catalog| -> Vec<Option<String>> {
        let names = ["own", "theirs"].into_iter();
        let found = names.map(|name| catalog.root_skills.find(name).unwrap());
        found.map(|skill| skill.lack().map(str::to_owned)).collect()
    };
    let read = Some("skills of this root are read, not executed".to_owned());
    let catalog = workspace.load();
    let none = Some("it has no `run`, and no model is configured".to_owned());
    assert_eq!(lacks(&catalog), [none, read.clone()]);
    assert!(!codes(&catalog).contains(&"model-unknown"));
    workspace.write("workerctl.yaml", MODELS.as_bytes());
    // The file of the skill is the same, and what is said of it is not.
    let catalog = super::super::reload(&catalog, Options::default());
    assert_eq!(lacks(&catalog), [None, read]);
    let path = "workspace/skills/own.md";
    expect(
        &catalog,
        path,
        &("model-unknown", WARNING, 3, 18, "`models`"),
    );
    expect(
        &catalog,
        path,
        &("toolset-unknown", WARNING, 4, 12, "`toolsets`"),
    );
    assert_eq!(codes(&catalog), ["model-unknown", "toolset-unknown"]);
}

#[test]
fn a_command_that_is_misspelled_is_no_task_of_a_model() {
    for key in ["rnu", "ru"] {
        let skill = format!("  - {{id: a, description: d, mutating: true, {key}: rm old}}\n");
        let catalog = of_worker(MODELS, "", &skill);
        let found = problem(&catalog, "key-misspelled");
        assert_eq!(found.severity, ERROR, "{found:?}");
        assert!(
            found
                .message
                .contains("without `run` a model would execute `a`"),
            "{found:?}"
        );
    }
}
