//! Schemas, and calls that do not fit them.

use serde_json::{Value, json};

use super::Rig;
use crate::tools::BuiltIn;

#[test]
fn every_tool_has_a_schema_that_names_its_arguments() {
    let names = BuiltIn::ALL.map(|tool| tool.spec().name);
    assert_eq!(
        names,
        [
            "read_file",
            "write_file",
            "edit_file",
            "list_directory",
            "glob",
            "grep",
            "bash",
            "loadSkillFile",
            "submit_output",
            "list_skills",
            "use_skill"
        ]
    );
    for tool in BuiltIn::ALL {
        let spec = tool.spec();
        assert!(spec.description.len() > 40);
        assert_eq!(spec.schema["type"], "object");
        assert_eq!(spec.schema["additionalProperties"], false);
        let properties = spec.schema["properties"].as_object().unwrap();
        for required in spec.schema["required"].as_array().unwrap() {
            assert!(properties.contains_key(required.as_str().unwrap()));
        }
        assert!(
            properties
                .values()
                .all(|one| one["description"].is_string())
        );
    }
    let bash = BuiltIn::Bash.spec().schema;
    assert_eq!(bash["required"], json!(["command"]));
    assert_eq!(bash["properties"]["timeout_seconds"]["type"], "integer");
}

#[test]
fn tools_are_found_by_their_names_and_by_others() {
    for tool in BuiltIn::ALL {
        assert_eq!(BuiltIn::parse(tool.name()), Some(tool));
        assert_eq!(BuiltIn::parse_alias(tool.name()), Some(tool));
        let kept = serde_json::to_value(tool).unwrap();
        assert_eq!(kept, tool.name());
    }
    for (alias, name) in [
        ("Read", "read_file"),
        ("Write", "write_file"),
        ("Edit", "edit_file"),
        ("MultiEdit", "edit_file"),
        ("LS", "list_directory"),
        ("Glob", "glob"),
        ("Grep", "grep"),
        ("Bash", "bash"),
        ("Shell", "bash"),
    ] {
        assert_eq!(BuiltIn::parse_alias(alias).unwrap().name(), name);
        assert_eq!(BuiltIn::parse(alias), None);
    }
    assert_eq!(BuiltIn::parse_alias("WebFetch"), None);
}

#[test]
fn wrong_arguments_are_replies_that_say_what_is_right() {
    let read = "read_file takes {path, offset?, limit?}";
    check(
        BuiltIn::ReadFile,
        read,
        &[
            (json!(null), "the arguments are no object"),
            (json!(["a"]), "the arguments are no object"),
            (json!({}), "`path` is missing"),
            (json!({"path": null}), "`path` is missing"),
            (json!({"path": 1}), "`path` has to be a string"),
            (
                json!({"path": "a", "offset": 0}),
                "`offset` has to be a whole number from 1",
            ),
            (json!({"path": "a", "offset": -1}), "`offset` has to be"),
            (json!({"path": "a", "limit": "9"}), "`limit` has to be"),
            (json!({"path": "a", "limit": 1.5}), "`limit` has to be"),
            (json!({"path": "a", "lines": 3}), "`lines` is unknown"),
        ],
    );
    check(
        BuiltIn::WriteFile,
        "write_file takes {path, content}",
        &[
            (json!({"path": "a"}), "`content` is missing"),
            (
                json!({"path": "a", "content": {}}),
                "`content` has to be a string",
            ),
        ],
    );
}

#[test]
fn wrong_arguments_of_other_tools_too() {
    let edit = "edit_file takes {path, old_text, new_text, replace_all?}";
    let all = json!({"path": "a", "old_text": "a", "new_text": "b", "replace_all": "yes"});
    check(
        BuiltIn::EditFile,
        edit,
        &[
            (
                json!({"path": "a", "new_text": ""}),
                "`old_text` is missing",
            ),
            (
                json!({"path": "a", "old_text": "a"}),
                "`new_text` is missing",
            ),
            (all, "`replace_all` has to be true or false"),
        ],
    );
    let list = "list_directory takes {path?}";
    check(
        BuiltIn::ListDirectory,
        list,
        &[(json!({"dir": "a"}), "`dir` is unknown")],
    );
    let glob = "glob takes {pattern, path?}";
    check(
        BuiltIn::Glob,
        glob,
        &[(json!({"path": "a"}), "`pattern` is missing")],
    );
    let grep = "grep takes {pattern, path?, glob?, ignore_case?, context?}";
    let context = json!({"pattern": "a", "context": 21});
    check(
        BuiltIn::Grep,
        grep,
        &[(context, "a whole number from 0 to 20")],
    );
    let bash = json!({"command": "ls"});
    check(
        BuiltIn::Bash,
        "is no file tool",
        &[(bash, "bash is no file tool")],
    );
}

#[track_caller]
fn check(tool: BuiltIn, shape: &str, rows: &[(Value, &str)]) {
    let rig = Rig::new();
    for (arguments, problem) in rows {
        rig.fails(tool, arguments.clone(), problem);
        rig.fails(tool, arguments.clone(), shape);
    }
}

#[test]
fn wrong_patterns_are_replies_that_say_what_is_wrong() {
    let rig = Rig::new();
    for (tool, arguments, problem) in [
        (
            BuiltIn::Glob,
            json!({"pattern": "/etc/*"}),
            "a pattern is relative",
        ),
        (
            BuiltIn::Glob,
            json!({"pattern": "a/../../*"}),
            "has no `..`",
        ),
        (
            BuiltIn::Glob,
            json!({"pattern": "a{b"}),
            "`pattern` is not usable",
        ),
        (
            BuiltIn::Grep,
            json!({"pattern": "a("}),
            "`pattern` is not usable",
        ),
        (
            BuiltIn::Grep,
            json!({"pattern": "a", "glob": "[a"}),
            "`glob` is not usable",
        ),
        (
            BuiltIn::Grep,
            json!({"pattern": "a{100}{100}{100}{100}"}),
            "`pattern` is not usable",
        ),
    ] {
        rig.fails(tool, arguments, problem);
    }
}

#[test]
fn what_is_left_out_may_be_null() {
    let rig = Rig::new();
    rig.file("a", "text");
    let arguments = json!({"path": "a", "offset": null, "limit": null});
    assert_eq!(rig.works(BuiltIn::ReadFile, arguments), "text");
}

#[test]
fn errors_that_quote_the_call_are_bounded() {
    let rig = Rig::new();
    let long = "ä".repeat(100_000);
    for arguments in [json!({"path": &long}), json!({"path": "a", &long: 1})] {
        let reply = rig.call(BuiltIn::ReadFile, arguments);
        assert!(reply.is_error && reply.content.len() <= 64 * 1024 + 1024);
    }
}
