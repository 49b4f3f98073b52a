//! `toolsets` of workerctl.yaml.

use super::models::{MODELS, accepted, cells, configured, first, of_worker, problem};
use super::*;
use crate::model::agent::McpTransport;

#[test]
fn tool_sets_are_read_in_full() {
    let config = accepted(
        "toolsets:\n  files: {builtin: [read_file, grep], read_only: [grep]}\n  static-analysis:\n    commands:\n      lint: {run: [./scripts/lint, --json], description: Lints one file, schema: {type: object, properties: {path: {type: string}}}, timeout: 5m}\n      count: {run: 'wc -l | sort', description: counts}\n    read_only: lint\n  tracker:\n    mcp: {command: [tracker-mcp, --stdio], env: [TRACKER_TOKEN], start: 3s, call: 6s}\n    read_only: [list_issues]\n  remote:\n    mcp: {url: 'https://x.example/mcp', key: env:TRACKER_TOKEN}\n",
    );
    assert_eq!(config.toolsets["files"].builtin, ["read_file", "grep"]);
    let set = &config.toolsets["static-analysis"];
    let lint = &set.commands[0];
    assert_eq!((lint.name.as_str(), lint.timeout_ms), ("lint", 300_000));
    assert_eq!(lint.argv, ["./scripts/lint", "--json"]);
    assert_eq!(lint.schema["properties"]["path"]["type"], "string");
    let count = &set.commands[1];
    assert_eq!(count.argv, ["/bin/sh", "-c", "wc -l | sort"]);
    assert_eq!(
        (count.timeout_ms, &count.schema["type"]),
        (120_000, &"object".into())
    );
    assert_eq!(set.read_only, ["lint"]);
    let stdio = config.toolsets["tracker"].mcp.as_ref().unwrap();
    assert_eq!((stdio.start_ms, stdio.call_ms), (3_000, 6_000));
    let transport = McpTransport::Stdio {
        argv: vec!["tracker-mcp".to_owned(), "--stdio".to_owned()],
        env: vec!["TRACKER_TOKEN".to_owned()],
    };
    assert_eq!(stdio.transport, transport);
    let http = config.toolsets["remote"].mcp.as_ref().unwrap();
    assert_eq!((http.start_ms, http.call_ms), (30_000, 60_000));
    let transport = McpTransport::Http {
        url: "https://x.example/mcp".to_owned(),
        key: Some("env:TRACKER_TOKEN".parse().unwrap()),
    };
    assert_eq!(http.transport, transport);
    assert_eq!(config.origins["toolsets.tracker"], "workerctl.yaml:8");
}

/// A tool set, or behind `+` further keys of a command of one; the code, and a part of the hint.
const NO_TOOLSETS: &str = "{}                                                          | missing-key      | `builtin`
[bash]                                                      | wrong-type       |
builtin: [raed_file]                                        | unknown-value    | did you mean `read_file`?
builtin: [rm]                                               | unknown-value    | `submit_output`
tools: [bash]                                               | key-refused      | `builtin`
commands: [x]                                               | wrong-type       |
commands: {bash: {run: x, description: d}}                  | name-invalid     | built-in
commands: {a.b: {run: x, description: d}}                   | name-invalid     |
commands: {a: {run: x}}                                     | missing-key      | `description
commands: {a: {description: d}}                             | missing-key      | `run
commands: {a: {run: [], description: d}}                    | blank            |
commands: {a: {run: '', description: d}}                    | blank            |
+env: [X]                                                   | key-refused      |
+timeout: 0s                                                | duration-invalid |
+schema: {type: string}                                     | input-schema     | `type: object`
+schema: {type: 5}                                          | input-schema     |
+schema: {type: object, properties: {a: {$ref: 'http://x'}}} | input-schema    |
+schema: text                                               | wrong-type       |
mcp: x                                                      | wrong-type       |
mcp: {call: 5s}                                             | missing-key      | `url`
mcp: {command: [x], url: http://x}                          | missing-key      | `url`
mcp: {command: x}                                           | wrong-type       | a list
mcp: {command: ['']}                                        | blank            |
mcp: {command: [x], env: {A: b}}                            | wrong-type       |
mcp: {command: [x], env: [LD_PRELOAD]}                      | env-name         |
mcp: {command: [x], key: env:K}                             | key-refused      | `command`
mcp: {command: [x], call: 0s}                               | duration-invalid |
mcp: {url: http://x, env: [K]}                              | key-refused      | `url`
mcp: {url: 'http://u:sk-ant-1@x'}                           | server-address   |
mcp: {url: http://x, key: sk-ant-1}                         | key-literal      |";

#[test]
fn what_is_no_tool_set_is_refused_with_its_place() {
    for row in NO_TOOLSETS.lines() {
        let [lines, code, hint] = cells(row);
        let tool = |keys| format!("commands: {{lint: {{run: x, description: d, {keys}}}}}");
        let set = lines.strip_prefix('+').map_or(lines.to_owned(), tool);
        let catalog = configured(&format!("toolsets:\n  a:\n    {set}\n"));
        let found = problem(&catalog, code);
        assert_eq!(found.severity, ERROR, "{row}");
        assert!(
            (2..=3).contains(&found.place.line),
            "{row}: {}",
            found.place
        );
        let said = format!(
            "{}: {}",
            found.message,
            found.hint.as_deref().unwrap_or_default()
        );
        assert!(said.contains(hint), "{row}: {said}");
        assert!(catalog.config.toolsets.is_empty(), "{row}");
        let messages = show(&catalog.problems);
        assert!(!messages.contains("sk-ant"), "{messages}");
        assert!(!messages.contains("input_schema"), "{messages}");
    }
    let many = (0..65).fold(String::new(), |all, n| {
        all + &format!("  t{n}: {{builtin: bash}}\n")
    });
    let found = problem(&configured(&format!("toolsets:\n{many}")), "too-many");
    assert_eq!(found.place.line, 2);
}

#[test]
fn what_a_tool_set_or_a_skill_names_and_is_not_there_is_told() {
    let catalog = configured("toolsets:\n  a: {builtin: [grep, bash], read_only: [gerp]}\n");
    let found = problem(&catalog, "read-only-unknown");
    assert_eq!((found.severity, found.place.line), (WARNING, 2));
    assert_eq!(found.hint.as_deref(), Some("did you mean `grep`?"));
    assert!(catalog.config.toolsets.contains_key("a"));
    accepted("toolsets: {a: {mcp: {command: [x]}, read_only: [whatever]}}\n");
    let sets = format!("{MODELS}toolsets: {{files: {{builtin: [grep]}}}}\n");
    let skill = "  - {id: a, description: d, instructions: i, toolsets: [files, flies]}\n";
    let catalog = of_worker(&sets, "", skill);
    assert_eq!(codes(&catalog), ["toolset-unknown"]);
    let found = problem(&catalog, "toolset-unknown");
    assert_eq!((found.severity, found.place.line), (WARNING, 3));
    assert!(found.message.contains("`flies`"), "{}", found.message);
    assert!(first(&catalog).is_available());
}
