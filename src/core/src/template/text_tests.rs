//! Paths and messages.

use super::{
    Kind, MessageTemplate, Name, Names, PathTemplate, RenderProblem, Scope, Value, Values,
};
use serde_json::{Map, Value as Json, json};

fn names() -> Names {
    let input = |name, kind| Name::new(Scope::Input, name, kind);
    let mut secret = input("key", Kind::Text);
    secret.secret = true;
    let declared = vec![
        input("x", Kind::Text),
        input("n", Kind::Integer),
        input("ratio", Kind::Number),
        input("on", Kind::Boolean),
        input("list", Kind::List),
        input("folder", Kind::Path),
        input("unset", Kind::Text),
        input("customer-id", Kind::Text),
        secret,
        Name::new(Scope::Output, "report", Kind::OutputFile),
    ];
    Names::new(declared, "worker", "weekly-report").unwrap()
}

fn values() -> Values {
    let mut values = Values::new();
    values
        .set(Scope::Input, "x", Value::text("a {n} {{n}} <&>\"'"))
        .set(Scope::Input, "n", Value::text("5"))
        .set(Scope::Input, "ratio", Value::text("0.0000001"))
        .set(Scope::Input, "on", Value::boolean(false))
        .set(
            Scope::Input,
            "list",
            Value::List(vec!["p".into(), "q".into()]),
        )
        .set(Scope::Input, "folder", Value::text("a/b"))
        .set(Scope::Input, "customer-id", Value::text("c-1"))
        .set(Scope::Output, "report", Value::text("/w/r.md"))
        .set(Scope::Builtin, "date", Value::text("2026-11-20"))
        .set(Scope::Builtin, "skill", Value::text("weekly-report"));
    values
}

fn fields() -> Map<String, Json> {
    let Json::Object(fields) = json!({"commit": {"id": "abc"}, "files": ["a.md"]}) else {
        unreachable!("an object")
    };
    fields
}

fn message(text: &str) -> String {
    let template = MessageTemplate::compile(text, &names(), &fields())
        .unwrap_or_else(|p| panic!("{text}: {p:#?}"))
        .template;
    template
        .render(&values(), &fields())
        .unwrap_or_else(|p| panic!("{text}: {p}"))
}

fn path(text: &str) -> Result<String, RenderProblem> {
    PathTemplate::compile(text, &names())
        .unwrap_or_else(|p| panic!("{text}: {p:#?}"))
        .template
        .render(&values())
}

fn codes(text: &str) -> Vec<&'static str> {
    MessageTemplate::compile(text, &names(), &fields())
        .unwrap_err()
        .iter()
        .map(|p| p.code)
        .collect()
}

#[test]
fn both_forms_are_filled_in_once() {
    let x = "a {n} {{n}} <&>\"'";
    assert_eq!(message("{x} {{x}} {{{x}}}"), format!("{x} {x} {x}"));
    assert_eq!(
        message("{n}-{date}: {output} {{output}} {{outputs.report}}"),
        "5-2026-11-20: /w/r.md /w/r.md /w/r.md"
    );
    assert_eq!(
        message("{{#if on}}yes{{else}}{n} no{{/if}} {{#each list}}[{{this}}]{{/each}}"),
        "5 no [p][q]"
    );
    assert_eq!(
        message("{{commit.id}} {{json list}} {{default unset \"d\"}} {{default x \"d\"}}"),
        format!("abc [\"p\",\"q\"] d {x}")
    );
    assert_eq!(
        message("{{ratio}} {ratio} {{n}} {{on}} {{customer-id}} {customer-id}"),
        "0.0000001 0.0000001 5 false c-1 c-1"
    );
    assert_eq!(
        message("\\{x} \\\\{n} {{n}} \\\\{n} \\{n}"),
        "{x} \\5 5 \\5 {n}"
    );
    assert_eq!(
        message("{unset}|{{unset}}|{{#if unset}}a{{/if}}|{list.json}|{list.lines}"),
        "|||[\"p\",\"q\"]|p\nq"
    );
    assert_eq!(
        message("{other} {a,b} { } ${x} {{!-- {x} {{n}} --}}{{n}}"),
        "{other} {a,b} { } ${x} 5"
    );
    assert_eq!(message("a\\{{n}} {n}"), "a{{n}} 5");
}

#[test]
fn mistakes_are_found_before_a_run() {
    assert_eq!(codes("{{nope}}"), ["handlebars_unknown_name"]);
    assert_eq!(
        codes("{{#if on}}a{{else}}{{nope}}{{/if}}"),
        ["handlebars_unknown_name"]
    );
    assert_eq!(codes("{{nope x}}"), ["handlebars_unknown_name"]);
    assert_eq!(codes("{{inputs.nope}}"), ["handlebars_unknown_name"]);
    assert_eq!(codes("{{log x}}"), ["handlebars_unknown_name"]);
    assert_eq!(codes("{{x"), ["handlebars_syntax"]);
    assert_eq!(codes("{{#if x}}"), ["handlebars_syntax"]);
    assert_eq!(codes("{customr-id}"), ["unknown_name"]);
    assert_eq!(codes("{list}"), ["list_needs_a_word"]);
    assert_eq!(codes("{x.file}"), ["projection_in_text"]);
    assert_eq!(codes("{key}"), ["secret_in_text"]);
    for text in [
        "{attempt}",
        "{builtin.attempt}",
        "{{attempt}}",
        "{{#if builtins.attempt}}x{{/if}}",
    ] {
        assert_eq!(codes(text), ["attempt_in_text"], "{text}");
        assert_eq!(
            PathTemplate::compile(text, &names()).unwrap_err()[0].code,
            "attempt_in_text"
        );
    }
    let quoted = "{{default unset \"attempt\"}}{{!-- attempt --}}";
    assert_eq!(message(quoted), "attempt");
    assert_eq!(
        message("{{builtins.date}} {{skill}}"),
        "2026-11-20 weekly-report"
    );
    assert!(codes("{{key}}").contains(&"secret_in_text"));
    assert_eq!(codes("a\0"), ["nul_byte"]);
    let at =
        &MessageTemplate::compile("one\ntwo {{nope}}", &names(), &fields()).unwrap_err()[0].offset;
    assert!((4..=16).contains(&at.start), "{at:?}");
}

#[test]
fn what_would_end_the_process_is_refused() {
    for text in ["{{> a}}", "{{~> a}}", "{{#> a}}{{/a}}", "{{ # > a }}{{/a}}"] {
        assert_eq!(codes(text), ["handlebars_partial"], "{text}");
    }
    for text in [
        "{{* a}}",
        "{{#* inline \"r\"}}{{/inline}}",
        "{{#*inline \"r\"}}{{> r}}{{/inline}}{{> r}}",
        "{{~#*a}}{{/a}}",
    ] {
        assert_eq!(codes(text)[0], "handlebars_decorator", "{text}");
    }
    let blocks = |n: usize| format!("{}x{}", "{{#if x}}".repeat(n), "{{/if}}".repeat(n));
    assert_eq!(message(&blocks(64)), "x");
    for n in [65, 500, 5000, 16_000] {
        assert!(codes(&blocks(n)).contains(&"handlebars_too_deep"), "{n}");
    }
    assert!(codes(&"{{#each list}}".repeat(3)).contains(&"handlebars_too_deep"));
    assert!(codes(&format!("{{{{n {}", "(".repeat(100_000))).contains(&"handlebars_too_deep"));
    assert!(codes(&format!("{{{{n {}", "[".repeat(100_000))).contains(&"handlebars_too_deep"));
    assert!(codes(&"{{x}}".repeat(2000)).contains(&"too_many_tags"));
    assert!(
        codes(&format!("{}{}", "{{#if x}}", "{{else if x}}".repeat(2000)))
            .contains(&"too_many_tags")
    );
    assert_eq!(codes(&"x".repeat(300_000)), ["text_too_long"]);
    assert_eq!(codes("{{{{raw}}}}a{{{{/raw}}}}")[0], "handlebars_raw_block");
    let template = MessageTemplate::compile(
        "{{#each list}}{{#each ../list}}{{../../x}}{{/each}}{{/each}}",
        &names(),
        &fields(),
    )
    .unwrap()
    .template;
    let mut large = values();
    large
        .set(Scope::Input, "list", Value::List(vec!["y".into(); 1000]))
        .set(Scope::Input, "x", Value::text("z".repeat(1000)));
    assert_eq!(
        template.render(&large, &fields()),
        Err(RenderProblem::TooLong { limit: 262_144 })
    );
    let template = MessageTemplate::compile(&"{x}".repeat(300), &names(), &fields())
        .unwrap()
        .template;
    assert_eq!(
        template.render(&large, &fields()),
        Err(RenderProblem::TooLong { limit: 262_144 })
    );
}

#[test]
fn a_value_never_leads_a_path_elsewhere() {
    assert_eq!(
        path("reports/{date}-{skill}.md").unwrap(),
        "reports/2026-11-20-weekly-report.md"
    );
    assert_eq!(
        path("a/{{date}}/{customer-id}-{n}.md").unwrap(),
        "a/2026-11-20/c-1-5.md"
    );
    for (value, safe) in [
        ("../../etc/passwd", false),
        ("..", false),
        (".", false),
        ("/etc/passwd", false),
        ("a/b", false),
        ("a\nb", false),
        ("a\u{7f}", false),
        ("a..b", true),
        ("~", true),
        ("%2e%2e%2f", true),
        ("..;", true),
        ("{date}", true),
        ("$(x)", true),
        ("", true),
    ] {
        let mut values = values();
        values.set(Scope::Input, "x", Value::text(value)).set(
            Scope::Input,
            "list",
            Value::List(vec!["a".into(), value.into()]),
        );
        for text in [
            "r/{x}.md",
            "r/{{x}}.md",
            "r/{{inputs.x}}.md",
            "r/{{#each list}}{{this}}{{/each}}",
            "r/{{lookup list 1}}.md",
        ] {
            let template = PathTemplate::compile(text, &names()).unwrap().template;
            let rendered = template.render(&values);
            assert_eq!(rendered.is_ok(), safe, "{text} {value:?} {rendered:?}");
            if !safe {
                assert!(
                    matches!(rendered, Err(RenderProblem::UnsafeInPath { .. })),
                    "{text}"
                );
            }
        }
    }
    let codes = |text: &str| PathTemplate::compile(text, &names()).unwrap_err()[0].code;
    assert_eq!(codes("r/{x.json}"), "projection_in_text");
    assert_eq!(codes("r/{list}"), "list_needs_a_word");
    assert_eq!(codes("{workspace}/r"), "path_in_destination");
    let template = PathTemplate::compile("{x}/{{n}}", &names())
        .unwrap()
        .template;
    assert_eq!(
        template.uses(),
        [
            (Scope::Input, "x".to_owned()),
            (Scope::Input, "n".to_owned())
        ]
    );
}

#[test]
fn clashes_need_a_scope() {
    let declared = vec![
        Name::new(Scope::Input, "report", Kind::Text),
        Name::new(Scope::Input, "date", Kind::Text),
        Name::new(Scope::Output, "report", Kind::OutputFile),
    ];
    let names = Names::new(declared, "w", "s").unwrap();
    for text in ["{report}", "{date}"] {
        let found = PathTemplate::compile(text, &names).unwrap_err();
        assert_eq!(found[0].code, "ambiguous_name");
        assert!(found[0].hint.contains("{input."), "{}", found[0].hint);
    }
    let template = PathTemplate::compile(
        "{input.report}{input.date}{builtin.date}{output.report}{output}",
        &names,
    )
    .unwrap()
    .template;
    let mut values = Values::new();
    values
        .set(Scope::Input, "report", Value::text("1"))
        .set(Scope::Output, "report", Value::text("2"))
        .set(Scope::Input, "date", Value::text("3"))
        .set(Scope::Builtin, "date", Value::text("4"));
    assert_eq!(template.render(&values).unwrap(), "13422");
}
