//! Values on their way into the environment.

use super::names;
use std::collections::BTreeMap;
use workerctl::template::{
    Dialect, Scope, ShellText, Value, ValueProblem, Values, dash_refusals, environment,
};

#[test]
fn values_that_cannot_be_handed_over_are_refused() {
    let with = |text: &str| {
        let mut values = Values::new();
        values.set(Scope::Input, "x", Value::text(text));
        environment(&names(), &values, &[])
    };
    for text in ["a\0b", "\0"] {
        assert_eq!(
            with(text).unwrap_err(),
            [ValueProblem::Nul { field: "x".into() }]
        );
    }
    for bytes in [65_537, 131_073, 3_000_000] {
        let want = ValueProblem::TooLarge {
            field: "x".into(),
            bytes,
            limit: 65_536,
        };
        assert_eq!(with(&"x".repeat(bytes)).unwrap_err()[0], want);
    }
    let mut values = Values::new();
    values.set(
        Scope::Input,
        "list",
        Value::List(vec!["y".repeat(60_000); 9]),
    );
    let refused = environment(&names(), &values, &[]).unwrap_err();
    assert!(matches!(
        refused[0],
        ValueProblem::TooLargeTogether {
            bytes: 540_000,
            limit: 524_288,
            ..
        }
    ));
    values.set(
        Scope::Input,
        "list",
        Value::List(vec!["a".into(), "b\0".into()]),
    );
    let refused = environment(&names(), &values, &[]).unwrap_err();
    assert_eq!(
        refused,
        [ValueProblem::Nul {
            field: "list[1]".into()
        }]
    );
    values.set(Scope::Input, "list", Value::List(vec![String::new(); 5000]));
    let refused = environment(&names(), &values, &[]).unwrap_err();
    assert_eq!(
        refused,
        [ValueProblem::TooManyItems {
            field: "list".into(),
            count: 5000,
            limit: 4096
        }]
    );
    let mut values = Values::new();
    values.set(Scope::Input, "n", Value::text("08"));
    assert!(matches!(
        environment(&names(), &values, &[]).unwrap_err()[0],
        ValueProblem::NotCanonical { .. }
    ));
}

#[test]
fn every_name_has_its_variable() {
    let mut values = Values::new();
    values
        .set(
            Scope::Input,
            "list",
            Value::List(vec!["a\"b".into(), "c".into()]),
        )
        .set(Scope::Input, "x", Value::text("a\nb"))
        .set(Scope::Input, "n", Value::text("5"))
        .set(Scope::Input, "source", Value::text("-rf"))
        .set(Scope::Builtin, "date", Value::text("2026-11-20"))
        .set_file(Scope::Input, "x", "/scratch/x");
    let template = ShellText::compile(
        "f {list.json} {list.lines} {x.json} {x.file} {n.json} {y.json}",
        &names(),
        Dialect::Sh,
    )
    .unwrap()
    .template;
    let variables: BTreeMap<_, _> = environment(&names(), &values, template.uses())
        .unwrap()
        .into_iter()
        .collect();
    let want = [
        ("WORKERCTL_ATTEMPT", ""),
        ("WORKERCTL_CWD", ""),
        ("WORKERCTL_DATE", "2026-11-20"),
        ("WORKERCTL_INPUT_list_0", "a\"b"),
        ("WORKERCTL_INPUT_list_1", "c"),
        ("WORKERCTL_INPUT_list_COUNT", "2"),
        ("WORKERCTL_INPUT_list_JSON", "[\"a\\\"b\",\"c\"]"),
        ("WORKERCTL_INPUT_list_LINES", "a\"b\nc"),
        ("WORKERCTL_INPUT_missing", ""),
        ("WORKERCTL_INPUT_n", "5"),
        ("WORKERCTL_INPUT_n_JSON", "5"),
        ("WORKERCTL_INPUT_none_COUNT", "0"),
        ("WORKERCTL_INPUT_source", "./-rf"),
        ("WORKERCTL_INPUT_x", "a\nb"),
        ("WORKERCTL_INPUT_x_FILE", "/scratch/x"),
        ("WORKERCTL_INPUT_x_JSON", "\"a\\nb\""),
        ("WORKERCTL_INPUT_y", ""),
        ("WORKERCTL_INPUT_y_JSON", "null"),
        ("WORKERCTL_OUTPUT_report", ""),
        ("WORKERCTL_RUN", ""),
        ("WORKERCTL_SCHEDULED_AT", ""),
        ("WORKERCTL_SKILL", ""),
        ("WORKERCTL_TIME", ""),
        ("WORKERCTL_WORKER", ""),
        ("WORKERCTL_WORKSPACE", ""),
    ];
    let got: Vec<_> = variables
        .iter()
        .map(|(n, v)| (n.as_str(), v.as_str()))
        .collect();
    assert_eq!(got, want);
    let missing = ShellText::compile("f {y.file}", &names(), Dialect::Sh)
        .unwrap()
        .template;
    let refused = environment(&names(), &values, missing.uses()).unwrap_err();
    assert_eq!(refused, [ValueProblem::NoFile { field: "y".into() }]);
}

#[test]
fn a_large_value_may_be_used_as_a_file() {
    let mut values = Values::new();
    values
        .set(Scope::Input, "x", Value::text("x".repeat(100_000)))
        .set_file(Scope::Input, "x", "/scratch/x");
    let template = ShellText::compile("f {x.file}", &names(), Dialect::Sh)
        .unwrap()
        .template;
    let variables = environment(&names(), &values, template.uses()).unwrap();
    assert!(
        variables
            .iter()
            .all(|(name, _)| name != "WORKERCTL_INPUT_x")
    );
    let both = ShellText::compile("f {x.file} {x}", &names(), Dialect::Sh)
        .unwrap()
        .template;
    assert!(environment(&names(), &values, both.uses()).is_err());
}

#[test]
fn a_value_that_would_be_an_option_is_refused_where_it_would_be_one() {
    let mut values = Values::new();
    values
        .set(Scope::Input, "x", Value::text("-rf"))
        .set(Scope::Input, "y", Value::text("fine"))
        .set(
            Scope::Input,
            "list",
            Value::List(vec!["a".into(), "--b".into()]),
        );
    let refused = |text: &str| {
        let template = ShellText::compile(text, &names(), Dialect::Sh)
            .unwrap()
            .template;
        dash_refusals(template.dash_guards(), &values)
    };
    let dash = |field: &str| ValueProblem::Dash {
        field: field.into(),
    };
    assert_eq!(
        refused("f {x} {x} {y}; f {list}"),
        [dash("x"), dash("list[1]")]
    );
    assert_eq!(
        refused("f -- {x} {list}; f --a={x} {y}; git commit -m {x}; printf %s {x}"),
        []
    );
}
