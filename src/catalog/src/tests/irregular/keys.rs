//! Keys whose values are irregular.

use super::{AGENTS, CLAUDE, Irregular, WORKSPACE, accepted, rejected};

/// Keys that restrict: what is not understood never allows more.
pub(super) const RESTRICTIONS: &[Irregular] = &[
    accepted(
        CLAUDE,
        "---\nname: a\ndescription: One\nallowed-tools:\n---\nDo it.\n",
        "a, tools []",
        (
            "tools-empty",
            "no tool is allowed",
            "remove the line to allow all",
        ),
    ),
    accepted(
        AGENTS,
        "---\nname: a\ndescription: One\nallowed-tools: ''\n---\nDo it.\n",
        "a, tools []",
        (
            "tools-empty",
            "no tool is allowed",
            "`allowed-tools: [Read, Grep]`",
        ),
    ),
    accepted(
        AGENTS,
        "---\nname: a\ndescription: One\nallowed-tools:\n  Read: true\n  Write: false\n  Bash: ['git add:*', ls]\n---\nDo it.\n",
        "a, tools [Read, Bash(git add:*), Bash(ls)]",
        (
            "tools-as-map",
            "read as a list",
            "allowed-tools: [\"Read\",\"Bash(git add:*)\",\"Bash(ls)\"]",
        ),
    ),
    accepted(
        CLAUDE,
        "---\nname: a\ndescription: One\nallowed-tools: {Bash: git}\n---\nDo it.\n",
        "a, tools []",
        (
            "tools-as-map",
            "no tool is allowed",
            "write a list, such as",
        ),
    ),
    accepted(
        CLAUDE,
        "---\nname: a\ndescription: One\nallowed-tools: {Bash: true, 'Bash(rm:*)': false}\n---\nDo it.\n",
        "a, tools []",
        (
            "tools-as-map",
            "no tool is allowed",
            "write a list, such as",
        ),
    ),
    accepted(
        CLAUDE,
        "---\nname: a\ndescription: One\nallowed-tools: {Bash: ['ls), Write(']}\n---\nDo it.\n",
        "a, tools []",
        (
            "tools-as-map",
            "no tool is allowed",
            "write a list, such as",
        ),
    ),
    accepted(
        CLAUDE,
        "---\nname: a\ndescription: One\ndisable-model-invocation: \"false\"\n---\nDo it.\n",
        "a",
        (
            "flag-as-text",
            "read as `false`",
            "`disable-model-invocation: false`",
        ),
    ),
    accepted(
        AGENTS,
        "---\nname: a\ndescription: One\nuser-invocable: No\n---\nDo it.\n",
        "a, not for people",
        ("flag-as-text", "read as `false`", "`user-invocable: false`"),
    ),
    accepted(
        CLAUDE,
        "---\nname: a\ndescription: One\ndisable_model_invocation: 'True'\n---\nDo it.\n",
        "a, not for models",
        (
            "flag-as-text",
            "read as `true`",
            "`disable-model-invocation: true`",
        ),
    ),
    accepted(
        WORKSPACE,
        "---\nname: a\ndescription: One\nmutating: yes\napproval_required: \"true\"\n---\nDo it.\n",
        "a, mutating, after approval",
        (
            "flag-as-text",
            "read as `true`",
            "`approval_required: true`",
        ),
    ),
    rejected(
        AGENTS,
        "---\nname: a\ndescription: One\nuser-invocable: perhaps\n---\nDo it.\n",
        (
            "restriction-malformed",
            "`true` or `false`",
            "write `user-invocable: true`",
        ),
    ),
    rejected(
        AGENTS,
        "---\nname: a\ndescription: One\nallowed-tools: [1]\n---\nDo it.\n",
        (
            "restriction-malformed",
            "a list of texts",
            "write `allowed-tools: [Read",
        ),
    ),
];

/// What is no YAML as it stands.
pub(super) const SYNTAX: &[Irregular] = &[
    accepted(
        CLAUDE,
        "---\nname: a\ndescription: \"Use when user says \"do it\" now\"\n---\nDo it.\n",
        "a",
        (
            "prose-quoted",
            "not valid",
            r#"description: "Use when user says \"do it\" now"`"#,
        ),
    ),
    accepted(
        AGENTS,
        "---\nname: a\ndescription: 'Use it when it's asked for'\n---\nDo it.\n",
        "a",
        ("prose-quoted", "not valid", "'Use it when it''s asked for'"),
    ),
    accepted(
        AGENTS,
        "---\nname: a\ndescription: \"Do it\" or \"do that\": both\n---\nDo it.\n",
        "a",
        ("prose-quoted", "not valid", r#""\"Do it\" or"#),
    ),
    accepted(
        AGENTS,
        "---\nname: a\ndescription: One\nglobs: **/*.x\n---\nDo it.\n",
        "a",
        ("prose-quoted", "not valid", "globs: \"**/*.x\""),
    ),
    accepted(
        CLAUDE,
        "---\nglobs: **/*.ts,**/*.tsx\nname: a\ndescription: One\n---\nDo it.\n",
        "a",
        ("prose-quoted", "not valid", "globs: \"**/*.ts,**/*.tsx\""),
    ),
    accepted(
        CLAUDE,
        "---\nname: a\ndescription: One\nglobs: [**/*.ts, **/*.{js,x}]\n---\nDo it.\n",
        "a",
        (
            "prose-quoted",
            "not valid",
            "globs: [\"**/*.ts\", \"**/*.{js,x}\"]",
        ),
    ),
    accepted(
        CLAUDE,
        "---\nname: a\ndescription: One\nglobs:\n  - src/*.ts\n  - **/*.tsx\n---\nDo it.\n",
        "a",
        ("prose-quoted", "not valid", "- \"**/*.tsx\""),
    ),
    rejected(
        CLAUDE,
        "---\nname: a\ndescription: One\nallowed-tools:\n  - *\n---\nDo it.\n",
        ("yaml-syntax", "begins with `*`", "in double quotes"),
    ),
    rejected(
        CLAUDE,
        "---\nname: a\ndescription: One\nallowed-tools: Bash(git: x)\n---\nDo it.\n",
        (
            "yaml-syntax",
            "contains a colon",
            "the value of `allowed-tools` in double quotes",
        ),
    ),
    rejected(
        CLAUDE,
        "---\nname: a: b\ndescription: One\n---\nDo it.\n",
        (
            "yaml-syntax",
            "contains a colon",
            "the value of `name` in double quotes",
        ),
    ),
    rejected(
        AGENTS,
        "---\nname: a\ndescription: One\nmetadata:\n\tauthor: me\n---\nDo it.\n",
        ("yaml-syntax", "a tab is used", "indent with spaces"),
    ),
    rejected(
        AGENTS,
        "---\nname: a\ndescription: \"One\nlicense: MIT\n---\nDo it.\n",
        ("yaml-syntax", "never closed", "close it"),
    ),
    rejected(
        AGENTS,
        "---\nname: a\ndescription: One\ntags: [a, b\nlicense: MIT\n---\nDo it.\n",
        ("yaml-syntax", "never closed", "close it with `]`"),
    ),
    rejected(
        AGENTS,
        "---\nname: a\ndescription: One\nlicense MIT\n---\nDo it.\n",
        (
            "yaml-syntax",
            "colon is missing after `license`",
            "write `license: …`",
        ),
    ),
    rejected(
        AGENTS,
        "---\nname: a\n  description: One\n---\nDo it.\n",
        ("yaml-syntax", "indented too far", "in the column of `name`"),
    ),
    rejected(
        AGENTS,
        "---\n  name: a\ndescription: One\n---\nDo it.\n",
        ("yaml-syntax", "begin in the column", "same column"),
    ),
    rejected(
        AGENTS,
        "---\nname: a\ndescription: \"see C:\\dir\"\n---\nDo it.\n",
        ("yaml-syntax", "a backslash", "two backslashes"),
    ),
    rejected(
        AGENTS,
        "---\nname: a\ndescription: One\nauthor: @me\n---\nDo it.\n",
        (
            "yaml-syntax",
            "a sign that needs them",
            "the value of `author` in double quotes",
        ),
    ),
    rejected(
        AGENTS,
        "---\nname: a\ndescription: One\ndescription: Two\n---\nDo it.\n",
        ("duplicate-key", "appears twice", "keep one"),
    ),
];
