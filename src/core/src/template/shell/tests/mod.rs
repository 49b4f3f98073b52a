//! Every row of the rules: what a placeholder becomes, or why it is refused.

mod commands;
mod contexts;
mod traps;

use super::{Dialect, ShellText};
use crate::template::names::{Kind, Name, Names, Scope};
use crate::template::problem::Severity;
use std::collections::BTreeMap;

fn names() -> Names {
    let input = |name, kind| Name::new(Scope::Input, name, kind);
    let mut secret = input("key", Kind::Text);
    secret.secret = true;
    let mut branch = input("branch", Kind::Text);
    branch.pattern = Some("^[a-z][a-z0-9/-]*$".to_owned());
    let mut dashed = input("flags", Kind::Text);
    dashed.allow_dash = true;
    let declared = vec![
        input("x", Kind::Text),
        input("n", Kind::Integer),
        input("ratio", Kind::Number),
        input("yes", Kind::Boolean),
        input("mode", Kind::Enumeration),
        input("list", Kind::List),
        input("day", Kind::Date),
        input("source", Kind::Path),
        input("customer", Kind::Text),
        secret,
        branch,
        dashed,
        Name::new(Scope::Output, "report", Kind::OutputFile),
        Name::new(Scope::Output, "extra", Kind::OutputFile),
    ];
    Names::new(declared, "repo-steward", "weekly-report").unwrap()
}

/// The reference of `x`.
const R: &str = "${WORKERCTL_INPUT_x}";

/// Checks that `text` is accepted and becomes `want`, in which `@` is the reference of `x`.
fn becomes(dialect: Dialect, text: &str, want: &str) {
    let mut lengths = BTreeMap::new();
    lengths.insert((Scope::Input, "list".to_owned()), 2);
    let compiled = ShellText::compile(text, &names(), dialect)
        .unwrap_or_else(|p| panic!("{dialect:?} {text}\n{p:#?}"));
    assert_eq!(
        compiled.template.render(&lengths),
        want.replace('@', R),
        "{dialect:?} {text}"
    );
}

fn both(text: &str, want: &str) {
    becomes(Dialect::Sh, text, want);
    becomes(Dialect::Bash, text, want);
}

fn codes(dialect: Dialect, text: &str, least: Severity) -> Vec<&'static str> {
    let found = match ShellText::compile(text, &names(), dialect) {
        Ok(compiled) => compiled.notes,
        Err(problems) => problems,
    };
    let mut codes: Vec<_> = found
        .iter()
        .filter(|p| p.severity >= least)
        .map(|p| p.code)
        .collect();
    codes.dedup();
    codes
}

fn refused(dialect: Dialect, text: &str, code: &str) {
    assert_eq!(
        codes(dialect, text, Severity::Error),
        [code],
        "{dialect:?} {text}"
    );
}

fn refused_by_both(text: &str, code: &str) {
    refused(Dialect::Sh, text, code);
    refused(Dialect::Bash, text, code);
}
