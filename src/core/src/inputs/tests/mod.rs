//! Data-driven tests of binding: types here, limits, secrets and properties in their own files.

mod limits;
mod properties;
mod secrets;

use serde_json::json;

use super::*;

fn input(kind: InputKind) -> Input {
    Input {
        name: "x".to_owned(),
        kind,
        required: false,
        default: None,
        description: None,
        allowed: Vec::new(),
        pattern: None,
        min: None,
        max: None,
        integer: false,
        min_length: None,
        max_length: None,
        items: None,
        sensitive: false,
        allow_dash: false,
    }
}

fn with(kind: InputKind, change: impl FnOnce(&mut Input)) -> Input {
    let mut changed = input(kind);
    change(&mut changed);
    changed
}

fn texts(values: &[&str]) -> RawInputs {
    RawInputs {
        pairs: values
            .iter()
            .map(|value| ("x".to_owned(), (*value).to_owned()))
            .collect(),
        json: None,
    }
}

fn member(value: Json) -> RawInputs {
    let mut map = serde_json::Map::new();
    map.insert("x".to_owned(), value);
    RawInputs {
        pairs: Vec::new(),
        json: Some(map),
    }
}

fn bind_x(input: &Input, given: &RawInputs) -> Result<Value, Vec<Code>> {
    bind(std::slice::from_ref(input), given)
        .map(|bound| bound.values["x"].clone())
        .map_err(|problems| problems.iter().map(|p| p.code).collect())
}

#[expect(clippy::unnecessary_wraps, reason = "tables compare it with refusals")]
fn text(value: &str) -> Result<Value, Vec<Code>> {
    Ok(Value::Text(value.to_owned()))
}

#[expect(clippy::unnecessary_wraps, reason = "tables compare it with refusals")]
fn number(value: &str) -> Result<Value, Vec<Code>> {
    Ok(Value::Number(value.to_owned()))
}

#[expect(clippy::unnecessary_wraps, reason = "tables compare it with refusals")]
fn items(values: &[&str]) -> Result<Value, Vec<Code>> {
    Ok(Value::List(
        values.iter().map(|v| (*v).to_owned()).collect(),
    ))
}

fn refused(code: Code) -> Result<Value, Vec<Code>> {
    Err(vec![code])
}

#[test]
fn text_of_a_command_line_becomes_a_value_of_the_declared_type() {
    use InputKind::{Boolean, Date, Number, Path, String};
    let table = [
        (String, "", text("")),
        (String, " a b\n", text(" a b\n")),
        (String, "@/etc/passwd", text("@/etc/passwd")),
        (String, "null", text("null")),
        (String, "1e3", text("1e3")),
        (String, "yes", text("yes")),
        (String, "2026-01-01", text("2026-01-01")),
        (String, "$(touch CANARY)", text("$(touch CANARY)")),
        (String, "a\0b", refused(Code::Nul)),
        (Number, "6.0", number("6")),
        (Number, "08", number("8")),
        (Number, "1e3", refused(Code::WrongType)),
        (Number, "NaN", refused(Code::WrongType)),
        (Number, "", refused(Code::WrongType)),
        (Number, "6\0", refused(Code::Nul)),
        (Boolean, "true", Ok(Value::Boolean(true))),
        (Boolean, "false", Ok(Value::Boolean(false))),
        (Boolean, "yes", refused(Code::WrongType)),
        (Boolean, "True", refused(Code::WrongType)),
        (Boolean, "", refused(Code::WrongType)),
        (Boolean, "\0", refused(Code::Nul)),
        (Date, "2024-02-29", Ok(Value::Date("2024-02-29".to_owned()))),
        (Date, "2026-02-29", refused(Code::WrongType)),
        (Date, "2026-13-01", refused(Code::WrongType)),
        (Date, "0000-01-01", refused(Code::WrongType)),
        (Date, "2026-1-1", refused(Code::WrongType)),
        (Date, "+026-01-01", refused(Code::WrongType)),
        (Date, "today", refused(Code::WrongType)),
        (Date, "2026-01-01T00:00:00Z", refused(Code::WrongType)),
        (Date, "2026-01-0é", refused(Code::WrongType)),
        (Path, "./a//b/", text("a/b")),
        (Path, "../../etc/passwd", refused(Code::BadPath)),
        (Path, ".GIT/config", refused(Code::BadPath)),
        (Path, "a\nb", refused(Code::BadPath)),
        (Path, "a\0b", refused(Code::Nul)),
        (Path, "", refused(Code::BadPath)),
    ];
    for (kind, given, expected) in table {
        let bound = bind_x(&input(kind), &texts(&[given]));
        assert_eq!(bound, expected, "{} {given:?}", kind.name());
    }
}

#[test]
fn json_is_taken_where_its_meaning_is_certain() {
    use InputKind::{Boolean, Date, Number, Path, String};
    let table = [
        (String, json!("a"), text("a")),
        (String, json!(2026), text("2026")),
        (String, json!(1.1), refused(Code::WrongType)),
        (String, json!(true), refused(Code::WrongType)),
        (String, json!(["a"]), refused(Code::WrongType)),
        (String, json!({"a": 1}), refused(Code::WrongType)),
        (String, json!(null), Ok(Value::Unset)),
        (String, json!("a\u{0}b"), refused(Code::Nul)),
        (Number, json!(6), number("6")),
        (Number, json!(6.0), number("6")),
        (Number, json!(-0.5), number("-0.5")),
        (Number, json!("6"), number("6")),
        (Number, json!(u64::MAX), number("18446744073709551615")),
        (Number, json!(1e300), refused(Code::WrongType)),
        (Number, json!(true), refused(Code::WrongType)),
        (Boolean, json!(false), Ok(Value::Boolean(false))),
        (Boolean, json!("true"), Ok(Value::Boolean(true))),
        (Boolean, json!(1), refused(Code::WrongType)),
        (
            Date,
            json!("2026-01-31"),
            Ok(Value::Date("2026-01-31".to_owned())),
        ),
        (Date, json!(2026), refused(Code::WrongType)),
        (Path, json!("a/b"), text("a/b")),
        (Path, json!(7), refused(Code::WrongType)),
    ];
    for (kind, given, expected) in table {
        let label = format!("{} {given}", kind.name());
        assert_eq!(bind_x(&input(kind), &member(given)), expected, "{label}");
    }
}

#[test]
fn lists_are_json_or_repeated_names() {
    let plain = input(InputKind::Array);
    let of_texts = [
        (&["a"][..], items(&["a"])),
        (&["a,b"], items(&["a,b"])),
        (&["a", " b "], items(&["a", " b "])),
        (&[r#"["a", "b"]"#], items(&["a", "b"])),
        (&[r#" ["a"] "#, "c"], items(&["a", "c"])),
        (&["[]"], items(&[])),
        (&[r#"[""]"#], items(&[""])),
        (&["[1, 2]"], items(&["1", "2"])),
        (&["["], refused(Code::WrongType)),
        (&["[a]"], refused(Code::WrongType)),
        (&[""], refused(Code::WrongType)),
        (&["a", ""], refused(Code::WrongType)),
        (&["[[1]]"], refused(Code::WrongType)),
        (&["[null]"], refused(Code::WrongType)),
        (&["[1.5]"], refused(Code::WrongType)),
        (&[r#"["a\u0000"]"#], refused(Code::Nul)),
    ];
    for (given, expected) in of_texts {
        assert_eq!(bind_x(&plain, &texts(given)), expected, "{given:?}");
    }
    let numbers = Input {
        items: Some(InputKind::Number),
        ..plain.clone()
    };
    assert_eq!(
        bind_x(&numbers, &member(json!([1.0, "08"]))),
        items(&["1", "8"])
    );
    assert_eq!(
        bind_x(&numbers, &texts(&["3", "x"])),
        refused(Code::WrongType)
    );
    assert_eq!(bind_x(&plain, &member(json!([]))), items(&[]));
    assert_eq!(
        bind_x(&plain, &member(json!("a"))),
        refused(Code::WrongType)
    );
    let many = vec!["a"; ITEMS_MAX + 1];
    assert_eq!(bind_x(&plain, &texts(&many)), refused(Code::TooLarge));
    let too_many = vec!["a"; GIVEN_MAX + 1];
    assert_eq!(bind_x(&plain, &texts(&too_many)), refused(Code::TooLarge));
}

#[test]
fn all_problems_are_told_at_once_with_their_remedies() {
    let named = |name: &str, kind: InputKind| Input {
        name: name.to_owned(),
        ..input(kind)
    };
    let inputs = [
        Input {
            required: true,
            description: Some("whose report".to_owned()),
            ..named("owner", InputKind::String)
        },
        named("weeks", InputKind::Number),
        named("fast", InputKind::Boolean),
        named("tags", InputKind::Array),
        Input {
            allowed: vec!["red".to_owned(), "green".to_owned()],
            ..named("colour", InputKind::String)
        },
    ];
    let pairs = [
        ("weeks", "1e3"),
        ("fast", "yes"),
        ("fast", "no"),
        ("tags", "["),
        ("colour", "gren"),
        ("Week", "2"),
        ("zzz", "3"),
        ("zzz", "4"),
    ];
    let given = RawInputs {
        pairs: pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).to_vec(),
        json: serde_json::from_str(r#"{"tags": ["a"]}"#).unwrap(),
    };
    let problems = bind(&inputs, &given).unwrap_err();
    let lines: Vec<String> = problems.iter().map(InputProblem::line).collect();
    let expected = [
        "input `owner`: a value is required (give it as `-i owner=…`: whose report)",
        "input `weeks`: expected a number, got `1e3`: exponents are not read (write all digits: `1000`, not `1e3`)",
        "input `fast`: given 2 times, and it takes one value (only an input of type `array` may be repeated)",
        "input `tags`: given both as `name=value` and in the JSON object",
        "input `colour`: `gren` is none of the allowed values (did you mean `green`? allowed: `red`, `green`)",
        "input `Week`: no such input is declared (did you mean `weeks`?)",
        "input `zzz`: no such input is declared (it takes `owner`, `weeks`, `fast`, `tags`, `colour`)",
    ];
    assert_eq!(lines, expected);
    let diagnostic = refusal(&problems);
    assert_eq!(diagnostic.code, "inputs_refused");
    assert_eq!(diagnostic.message, "7 problems with the inputs");
    assert_eq!(diagnostic.details, lines);
    let alone = refusal(&problems[1..2]);
    assert_eq!(alone.hints, ["write all digits: `1000`, not `1e3`"]);
    assert!(alone.details.is_empty());
}

#[test]
fn a_flood_of_problems_is_bounded() {
    let numbers = Input {
        items: Some(InputKind::Number),
        ..input(InputKind::Array)
    };
    let problems = bind(&[numbers], &texts(&vec!["x"; 900])).unwrap_err();
    assert_eq!(problems.len(), PROBLEMS_PER_INPUT_MAX);
    assert!(problems[9].message.ends_with("and 890 more problems"));
    let pairs = (0..500).map(|i| (format!("n{i}"), String::new())).collect();
    let problems = bind(&[], &RawInputs { pairs, json: None }).unwrap_err();
    assert_eq!(problems.len(), UNKNOWN_MAX);
    assert!(problems[19].message.ends_with("nor are 480 more"));
    assert_eq!(
        problems[0].hint.as_deref(),
        Some("this skill takes no inputs")
    );
}
