//! What messages and debug output never tell.

use serde_json::json;

use super::*;

#[test]
fn messages_cannot_steer_a_terminal() {
    let hostile = "\u{1b}]0;x\u{7}\r\n\u{202e}";
    let given = RawInputs {
        pairs: vec![
            (hostile.to_owned(), String::new()),
            ("x".to_owned(), hostile.to_owned()),
        ],
        json: None,
    };
    for problem in bind(&[input(InputKind::Number)], &given).unwrap_err() {
        let line = problem.line();
        assert!(!line.chars().any(char::is_control), "{line:?}");
        assert!(!line.contains('\u{202e}'), "{line:?}");
    }
}

const SECRET: &str = "hunter2-hunter2";

#[test]
fn secrets_are_never_quoted() {
    let kinds = [
        InputKind::String,
        InputKind::Number,
        InputKind::Boolean,
        InputKind::Array,
        InputKind::Date,
        InputKind::Path,
    ];
    let suffixes = ["", "\0", "/../x", "\n", "/.git"];
    for kind in kinds {
        let secret = Input {
            sensitive: true,
            allowed: vec![],
            pattern: Some("nothing".to_owned()),
            max_length: Some(1),
            items: (kind == InputKind::Array).then_some(InputKind::Number),
            ..input(kind)
        };
        let enumerated = Input {
            allowed: vec![format!("{SECRET}x")],
            ..input(InputKind::String)
        };
        let enumerated = Input {
            sensitive: true,
            ..enumerated
        };
        let defaulted = Input {
            default: Some(json!(SECRET)),
            ..secret.clone()
        };
        for suffix in suffixes {
            let value = format!("{SECRET}{suffix}");
            let list = format!("[\"{SECRET}\"]");
            for given in [
                texts(&[&value]),
                texts(&[&list, &value]),
                member(json!(value)),
                member(json!([value])),
                member(json!({ value: 1 })),
                RawInputs::default(),
            ] {
                for declared in [&secret, &enumerated, &defaulted] {
                    if let Err(problems) = bind(std::slice::from_ref(declared), &given) {
                        let text = format!("{problems:?} {:?}", refusal(&problems));
                        assert!(!text.contains(SECRET), "{text}");
                    }
                }
            }
        }
    }
}

#[test]
fn bound_secrets_are_masked_in_debug_output() {
    let secret = Input {
        sensitive: true,
        ..input(InputKind::String)
    };
    let bound = bind(std::slice::from_ref(&secret), &texts(&[SECRET])).unwrap();
    assert_eq!(bound.values["x"], Value::Text(SECRET.to_owned()));
    assert_eq!(bound.secrets, ["x"]);
    assert!(!format!("{bound:?}").contains(SECRET));
    assert_eq!(bound.masked()["x"], Value::Text(MASK.to_owned()));
    let unset = bind(&[secret], &RawInputs::default()).unwrap();
    assert_eq!(unset.masked()["x"], Value::Unset);
    assert!(unset.secrets.is_empty());
}
