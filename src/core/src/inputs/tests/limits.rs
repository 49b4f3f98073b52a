//! Limits that a definition sets, defaults, and definitions that contradict themselves.

use serde_json::json;

use super::*;

#[test]
fn every_declared_limit_is_held() {
    let weeks = with(InputKind::Number, |i| {
        (i.min, i.max, i.integer) = (Some(1.0), Some(52.0), true);
    });
    let slug = with(InputKind::String, |i| {
        i.pattern = Some("[a-z]+|[0-9]{2}".to_owned());
        (i.min_length, i.max_length) = (Some(2), Some(4));
    });
    let colour = with(InputKind::String, |i| {
        i.allowed = vec!["red".to_owned(), "green".to_owned()];
    });
    let sizes = with(InputKind::Number, |i| {
        i.allowed = vec!["1.0".to_owned(), "2".to_owned()];
    });
    let integer = with(InputKind::Number, |i| i.integer = true);
    let widest = "9".repeat(18);
    let too_wide = "9".repeat(19);
    let too_large = "x".repeat(rules::VALUE_BYTES_MAX + 1);
    let table = [
        (&weeks, "1", number("1")),
        (&weeks, "52.0", number("52")),
        (&weeks, "0", refused(Code::OutOfRange)),
        (&weeks, "52.5", Err(vec![Code::OutOfRange, Code::WrongType])),
        (&weeks, "1.5", refused(Code::WrongType)),
        (&slug, "ab", text("ab")),
        (&slug, "12", text("12")),
        (&slug, "ab\n", refused(Code::PatternMismatch)),
        (&slug, "x", refused(Code::OutOfRange)),
        (
            &slug,
            "12345",
            Err(vec![Code::PatternMismatch, Code::OutOfRange]),
        ),
        (&colour, "red", text("red")),
        (&colour, "gren", refused(Code::NotAllowed)),
        (&sizes, "1", number("1")),
        (&sizes, "2.0", number("2")),
        (&sizes, "3", refused(Code::NotAllowed)),
        (&integer, &widest, number(&widest)),
        (&integer, &too_wide, refused(Code::OutOfRange)),
        (&slug, &too_large, refused(Code::TooLarge)),
    ];
    for (input, given, expected) in table {
        assert_eq!(bind_x(input, &texts(&[given])), expected, "{given:.40?}");
    }
}

#[test]
fn limits_of_lists_count_items_and_judge_each() {
    let pair = with(InputKind::Array, |i| {
        (i.min_length, i.max_length) = (Some(2), Some(2));
        i.pattern = Some("[a-z]".to_owned());
    });
    let table = [
        (&["a", "b"][..], items(&["a", "b"])),
        (&["a"], refused(Code::OutOfRange)),
        (&["a", "b", "c"], refused(Code::OutOfRange)),
        (&["a", "B"], refused(Code::PatternMismatch)),
    ];
    for (given, expected) in table {
        assert_eq!(bind_x(&pair, &texts(given)), expected, "{given:?}");
    }
}

#[test]
fn defaults_are_filled_in_and_checked() {
    let weeks = |default: Json, required: bool| {
        with(InputKind::Number, |i| {
            (i.default, i.required, i.max) = (Some(default), required, Some(9.0));
        })
    };
    let nothing = RawInputs::default();
    let null = member(json!(null));
    let table = [
        (weeks(json!(1), false), &nothing, number("1")),
        (weeks(json!(1), true), &null, number("1")),
        (weeks(json!(1), true), &texts(&["2"]), number("2")),
        (
            weeks(json!(10), false),
            &nothing,
            refused(Code::BadDefinition),
        ),
        (weeks(json!(null), true), &nothing, refused(Code::Missing)),
        (weeks(json!(null), true), &null, refused(Code::Missing)),
        (input(InputKind::Number), &nothing, Ok(Value::Unset)),
    ];
    for (input, given, expected) in table {
        assert_eq!(bind_x(&input, given), expected, "{input:?}");
    }
}

#[test]
fn a_declaration_that_contradicts_itself_is_told_at_load() {
    let patterns = [
        "(".to_owned(),
        "a)|(b".to_owned(),
        "(?x) a # b".to_owned(),
        r"(a)\1".to_owned(),
        r"\w{1000}{1000}".to_owned(),
        "(".repeat(100) + &")".repeat(100),
        "a".repeat(5_000),
    ];
    let mut table: Vec<Input> = patterns
        .into_iter()
        .map(|pattern| with(InputKind::String, |i| i.pattern = Some(pattern)))
        .collect();
    table.extend([
        with(InputKind::String, |i| i.min = Some(1.0)),
        with(InputKind::String, |i| {
            (i.min_length, i.max_length) = (Some(3), Some(2));
        }),
        with(InputKind::String, |i| i.default = Some(json!(1.5))),
        with(InputKind::Array, |i| i.items = Some(InputKind::Array)),
        with(InputKind::Number, |i| {
            (i.min, i.max) = (Some(2.0), Some(1.0));
        }),
        with(InputKind::Number, |i| i.min = Some(f64::NAN)),
        with(InputKind::Number, |i| i.allowed = vec!["x".to_owned()]),
    ]);
    for declaration in table {
        let problems = check_declaration(&declaration);
        let codes: Vec<Code> = problems.iter().map(|p| p.code).collect();
        assert_eq!(codes, [Code::BadDefinition], "{problems:?}");
        let bound = bind_x(&declaration, &RawInputs::default());
        assert_eq!(bound, refused(Code::BadDefinition), "{problems:?}");
    }
    let required = with(InputKind::String, |i| i.required = true);
    assert_eq!(check_declaration(&required), [], "a value is still to come");
}
