//! Every value has the place at which it stands.

use proptest::prelude::*;

use crate::align::{align, visible_offsets};
use crate::tree::{Data, Node, parse};

pub(super) fn placed(yaml: &str) -> Option<Node> {
    let tree = parse(yaml).ok()?;
    Some(align(yaml, 0, yaml.len(), tree).0)
}

/// Scalars with the text that stands at their place.
fn scalars<'t>(node: &Node, text: &'t str, found: &mut Vec<(String, &'t str)>) {
    match &node.data {
        Data::List(items) => items.iter().for_each(|item| scalars(item, text, found)),
        Data::Map(entries) => {
            for entry in entries {
                scalars(&entry.value, text, found);
            }
        }
        data => found.push((format!("{data:?}"), &text[node.start..node.end])),
    }
}

#[test]
fn every_style_is_found() {
    let yaml = "# comment\n---\n\"a b\": 'it''s'  # c\n? plain\n: multi\n  line # not\n\nempty:\nlist:\n- 1.10\n- - nested\n  - ~\n-\n- k: v\n  l: |+\n    text # kept\n\n    more\n  m: >2\n      indented\n    folded\n\nflow: {a, b: , \"c\":1, d: [x, {y: z}, w: 1], e: null}\nanchor: &x\n  deep: true\nalias: *x\nnull: ~\nend: 0o17\n";
    let node = placed(yaml).expect("yaml");
    let mut found = Vec::new();
    scalars(&node, yaml, &mut found);
    let texts: Vec<_> = found.iter().map(|(_, raw)| *raw).collect();
    assert_eq!(
        texts,
        [
            "'it''s'",
            "multi\n  line",
            "",
            "1.10",
            "nested",
            "~",
            "",
            "v",
            "|+\n    text # kept\n\n    more",
            ">2\n      indented\n    folded",
            "",
            "",
            "1",
            "x",
            "z",
            "1",
            "null",
            "true",
            "",
            "~",
            "0o17",
        ]
    );
    let Data::Map(entries) = &node.data else {
        panic!("a map");
    };
    for entry in entries {
        let at = &yaml[entry.start..];
        let plain = at.trim_start_matches('"');
        assert!(
            plain.starts_with(entry.key.as_str()),
            "{} at {at:.10}",
            entry.key
        );
    }
}

#[test]
fn escapes_are_counted_as_what_they_mean() {
    let raw = r#""a\n \"\u00e4\x41 \\z""#;
    let characters: Vec<_> = visible_offsets(raw)
        .iter()
        .map(|at| &raw[*at..=*at])
        .collect();
    assert_eq!(characters, ["a", "\\", "\\", "\\", "\\", "z"]);
    assert_eq!(visible_offsets("'a''b'"), [1, 2, 4]);
    assert_eq!(visible_offsets("|\n  a\n  b"), [4, 8]);
}

fn value(depth: u32) -> BoxedStrategy<serde_yaml::Value> {
    use serde_yaml::Value;
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i32>().prop_map(|n| Value::Number(n.into())),
        "[a-z:#'\"\\-,{}\\[\\]! \n\u{e4}&*|>%@`]{0,24}".prop_map(Value::String),
    ];
    scalar
        .prop_recursive(depth, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Sequence),
                prop::collection::btree_map("[a-z #:'\"]{1,8}", inner, 0..5).prop_map(|map| {
                    Value::Mapping(
                        map.into_iter()
                            .map(|(k, v)| (Value::String(k), v))
                            .collect(),
                    )
                }),
            ]
        })
        .boxed()
}

pub(super) fn assert_found(node: &Node, text: &str) {
    match &node.data {
        Data::List(items) => items.iter().for_each(|item| assert_found(item, text)),
        Data::Map(entries) => entries.iter().for_each(|e| assert_found(&e.value, text)),
        Data::Text(value) => {
            let raw = &text[node.start..node.end];
            let visible = value.chars().filter(|c| !c.is_ascii_whitespace()).count();
            assert!(!raw.is_empty(), "{value:?} is lost in\n{text}");
            assert_eq!(
                visible_offsets(raw).len(),
                visible,
                "{value:?} is {raw:?} in\n{text}"
            );
        }
        Data::Bool(value) => assert_eq!(value.to_string(), &text[node.start..node.end]),
        Data::Number(_) => assert!(
            text[node.start..node.end].contains(|c: char| c.is_ascii_digit()),
            "{text}"
        ),
        Data::Null => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    /// What a YAML writer writes, whatever style it chooses, is found again value by value.
    #[test]
    fn written_yaml_is_found(value in value(4)) {
        let text = serde_yaml::to_string(&value).expect("yaml");
        if let Some(node) = placed(&text) {
            assert_found(&node, &text);
        }
    }

    #[test]
    fn no_text_panics(text in "[ a-c{}\\[\\]:\\-#&*!|>'\",?~\n\t%@`0-2.]{0,80}") {
        if let Some(node) = placed(&text) {
            let mut found = Vec::new();
            scalars(&node, &text, &mut found);
        }
    }
}
