//! `agent`: which program executes instructions, at which level.

use super::models::{first, of_worker, problem};
use super::*;
use crate::model::agent::AgentProgram;

fn program(config: &str, worker: &str, keys: &str) -> Option<AgentProgram> {
    let skill = format!("  - {{id: a, description: d, instructions: i{keys}}}\n");
    let catalog = of_worker(config, worker, &skill);
    assert_eq!(codes(&catalog), [""; 0], "{}", show(&catalog.problems));
    let skill = first(&catalog);
    assert!(skill.is_available());
    skill.agent.program.as_deref().cloned()
}

#[test]
fn each_key_of_the_inner_level_counts_unless_it_names_another_program() {
    let config = "agent: {cli: claude, login: host, silence: 1m}\n";
    let worker = "agent: {model: opus, args: [--x]}\n";
    let found = program(config, worker, ", agent: {model: haiku}").unwrap();
    assert_eq!(
        (found.cli.as_str(), found.binary.as_str()),
        ("claude", "claude")
    );
    assert_eq!(found.model.as_deref(), Some("haiku"));
    assert_eq!((found.lends_login, found.silence_ms), (true, 60_000));
    assert_eq!(found.args, ["--x"]);
    let other = program(config, worker, ", agent: {cli: codex}").unwrap();
    assert_eq!(
        (other.cli.as_str(), other.model, other.lends_login),
        ("codex", None, false)
    );
    assert!(other.args.is_empty());
    let models = format!("{config}models: {{default: {{provider: ollama, model: m}}}}\n");
    assert_eq!(program(&models, "", ", agent: {cli: none}"), None);
    // The kind of a subagent, as other agents have it there, says nothing of a program.
    assert_eq!(
        program(config, "", ", agent: Explore").unwrap().cli,
        "claude"
    );
}

#[test]
fn what_hq_names_is_the_program_and_its_model() {
    let hq = "cli: {binary: /opt/homebrew/bin/codex, commands: [codex exec]}\nexecution: {model: gpt-5.4}\n";
    let found = program("", hq, "").unwrap();
    assert_eq!(
        (found.cli.as_str(), found.binary.as_str()),
        ("codex", "codex")
    );
    assert_eq!(found.model.as_deref(), Some("gpt-5.4"));
    let own = program("", &format!("{hq}agent: {{cli: gemini}}\n"), "").unwrap();
    assert_eq!(own.cli, "gemini");
    // An alias of `models` means nothing to a program.
    let models =
        "models: {default: {provider: ollama, model: m}, fast: {provider: ollama, model: m}}\n";
    let aliased = program(models, "agent: {cli: claude}\n", ", model: fast").unwrap();
    assert_eq!(aliased.model, None);
    // A tool that is no agent is kept as data.
    assert_eq!(program(models, "cli: {binary: gh}\n", ""), None);
}

#[test]
fn what_cannot_be_meant_is_an_error_with_a_remedy() {
    for (agent, code, hint) in [
        ("{cli: claud}", "unknown-value", "did you mean `claude`?"),
        ("{login: host}", "missing-key", "add `cli: claude`"),
        ("{cli: generic}", "missing-key", "add `binary:"),
        (
            "{cli: claude, binary: bin/claude}",
            "path-relative",
            "an absolute path",
        ),
        (
            "{cli: claude, key: sk-ant-literal}",
            "key-literal",
            "environment",
        ),
        (
            "{cli: claude, silence: 1ms}",
            "value-range",
            "at least `1s`",
        ),
        ("{cli: claude, alowed: [x]}", "key-refused", ""),
        (
            "{cli: generic, binary: x, result: answer}",
            "value-invalid",
            "/usage/input_tokens",
        ),
        (
            "{cli: claude, env: {WORKERCTL_RUN: x}}",
            "name-invalid",
            "reserved for the engine",
        ),
    ] {
        let skill = format!("  - {{id: a, description: d, instructions: i, agent: {agent}}}\n");
        let catalog = of_worker("", "", &skill);
        let told = problem(&catalog, code);
        assert_eq!(told.severity, ERROR, "{agent}");
        assert!(told.hint.unwrap_or_default().contains(hint), "{agent}");
        assert!(!told.message.contains("sk-ant"), "{agent}");
    }
}
