//! What holds for every declaration and every value.

use proptest::prelude::*;

use super::*;

fn any_kind() -> impl Strategy<Value = InputKind> {
    prop::sample::select(vec![
        InputKind::String,
        InputKind::Number,
        InputKind::Boolean,
        InputKind::Array,
        InputKind::Date,
        InputKind::Path,
    ])
}

fn any_input() -> impl Strategy<Value = Input> {
    (
        any_kind(),
        prop::option::of(any_kind()),
        prop::option::of(".{0,20}"),
        prop::option::of(any::<f64>()),
        prop::option::of(0_u64..9),
        any::<[bool; 3]>(),
        prop::option::of(any_json()),
    )
        .prop_map(
            |(kind, items, pattern, limit, length, flags, default)| Input {
                items,
                pattern,
                min: limit,
                max_length: length,
                integer: flags[0],
                required: flags[1],
                sensitive: flags[2],
                default,
                ..input(kind)
            },
        )
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        any::<String>().prop_map(Json::from),
    ];
    leaf.prop_recursive(2, 8, 4, |inner| {
        prop::collection::vec(inner, 0..4).prop_map(Json::from)
    })
}

proptest! {
    #[test]
    fn nothing_panics(input in any_input(), value in any::<String>(), json in any_json()) {
        let _ = bind(std::slice::from_ref(&input), &texts(&[&value]));
        let _ = bind(std::slice::from_ref(&input), &texts(&[&value, "["]));
        let _ = bind(std::slice::from_ref(&input), &member(json));
        let _ = check_declaration(&input);
    }

    /// What was bound once is bound to the same value again: retrying a run needs this.
    #[test]
    fn canonical_values_stay(kind in any_kind(), value in "[-+0-9a-z./ \\[\\]\",]{0,24}") {
        let input = input(kind);
        if let Ok(first) = bind(std::slice::from_ref(&input), &texts(&[&value])) {
            let again = member(match &first.values["x"] {
                Value::Number(digits) => Json::from(digits.clone()),
                other => other.to_json(),
            });
            prop_assert_eq!(bind(&[input], &again), Ok(first));
        }
    }

    #[test]
    fn strings_arrive_byte_for_byte(value in "[^\\x00]*") {
        let bound = bind(&[input(InputKind::String)], &texts(&[&value])).unwrap();
        prop_assert_eq!(&bound.values["x"], &Value::Text(value));
    }

    #[test]
    fn accepted_paths_stay_inside(value in "[a./\\\\~git-]{1,16}") {
        if let Ok(Value::Text(path)) = bind_x(&input(InputKind::Path), &texts(&[&value])) {
            prop_assert!(!path.starts_with('/'));
            prop_assert!(path.split('/').all(|name| name != ".." && !name.is_empty()));
            prop_assert!(path.split('/').all(|name| name != ".git"));
        }
    }
}
