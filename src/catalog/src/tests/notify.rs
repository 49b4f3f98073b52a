//! Ways of telling people, in workerctl.yaml, workers and schedules.

use super::models::{cells, problem};
use super::*;
use crate::model::channel::WebhookForm;
use crate::model::{Channel, Config};

fn configured(channel: &str) -> (Config, crate::Catalog) {
    let text = format!("notify:\n  on_failure: {channel}\n");
    let catalog = Workspace::new(&[("workerctl.yaml", &text), ("tell", "")]).load();
    (catalog.config.clone(), catalog)
}

#[test]
fn each_way_is_read_with_what_belongs_to_it() {
    for (written, shown) in [
        ("./tell", "./tell"),
        ("{command: ./tell, timeout: 5s}", "./tell"),
        ("{webhook: env:HOOK}", "webhook env:HOOK as json"),
        (
            "{webhook: 'file:~/hook', form: ntfy}",
            "webhook file:~/hook as ntfy",
        ),
        (
            "{webhook: 'http://127.0.0.1:80/SECRET', form: healthchecks}",
            "webhook http://127.0.0.1/... as healthchecks",
        ),
        ("{sendmail: root}", "mail to root"),
        ("{sendmail: [a@b.org, c@d.org]}", "mail to a@b.org, c@d.org"),
    ] {
        let (config, catalog) = configured(written);
        let found = config.notify.on_failure.as_ref().map(Channel::to_string);
        assert_eq!(found.as_deref(), Some(shown), "{}", show(&catalog.problems));
        assert_eq!(
            catalog.count(ERROR) + catalog.count(WARNING),
            0,
            "{written}"
        );
    }
    assert_eq!(
        WebhookForm::ALL.map(WebhookForm::name),
        ["json", "slack", "ntfy", "healthchecks"]
    );
}

/// A way of telling that is none; the code, and a part of the hint.
const NONE: &str = "{}                                                | notify-form    | `sendmail`
{command: a, webhook: env:A}                      | notify-form    | keep one
{webhook: env:A, sendmail: root}                  | notify-form    | keep one
{form: slack}                                     | notify-form    | `sendmail`
{command: a, form: slack}                         | notify-form    | add `webhook`
{webhook: env:A, timeout: 9s}                     | notify-form    | add `command`
ops@example.org                                   | notify-form    | write `on_failure: {sendmail: ops@example.org}`
mailto:ops@example.org                            | notify-form    | write `on_failure: {sendmail: ops@example.org}`
https://h/SECRET                                  | notify-form    | {webhook: URL}
{mail: root}                                      | key-refused    | did you mean `sendmail`?
{webhook: env:A, form: teams}                     | unknown-value  | `healthchecks`
{webhook: env:A, form: slak}                      | unknown-value  | did you mean `slack`?
{webook: 'https://h/SECRET'}                      | key-refused    | did you mean `webhook`?
{webhook: SECRET}                                 | server-address | `env:NAME`
{webhook: 'ftp://h/SECRET'}                       | server-address | `https://host/path`
{webhook: 'https://u:SECRET@h/'}                  | server-address |
{webhook: 'vault:SECRET'}                         | server-address |
{webhook: [SECRET]}                               | server-address |
{sendmail: []}                                    | mail-address   | 1 to 20
{sendmail: nobody at home}                        | mail-address   | `name@host`
{sendmail: \"a@b\\nBcc: c@d\"}                    | mail-address   |
{sendmail: [root, '/rm']}                         | mail-address   |
{sendmail: 'Ada <ada@b.org>'}                     | mail-address   | without a name
{command: ''}                                     | blank          |";

#[test]
fn what_is_none_is_told_with_its_place_and_its_secret_is_not() {
    for line in NONE.lines() {
        let [written, code, hint] = cells(line);
        let (config, catalog) = configured(written);
        assert_eq!(config.notify.on_failure, None, "{line}");
        let found = problem(&catalog, code);
        assert_eq!((found.severity, found.place.line), (ERROR, 2), "{line}");
        let told = found.hint.clone().unwrap_or_default();
        assert!(told.contains(hint), "{line}: {told}");
        for problem in &catalog.problems {
            let shown = format!("{problem:?} {:?}", catalog.source_line(problem));
            assert!(!shown.contains("SECRET"), "{line}: {shown}");
        }
    }
}

#[test]
fn a_threshold_is_failures_in_a_row_or_among_the_last_runs() {
    let after = |written: &str| {
        let text = format!("notify:\n  after: {written}\n");
        let catalog = Workspace::new(&[("workerctl.yaml", &text)]).load();
        let read = catalog.config.notify.after.map(|after| after.to_string());
        (read, catalog)
    };
    for (written, expected) in [
        ("1", "1"),
        ("3", "3"),
        ("'3'", "3"),
        ("2 of 5", "2 of 5"),
        ("3 of 3", "3"),
        ("100 of 100", "100"),
    ] {
        let (read, catalog) = after(written);
        assert_eq!(read.as_deref(), Some(expected), "{written}");
        assert!(catalog.problems.is_empty(), "{}", show(&catalog.problems));
    }
    for (written, code, told) in [
        ("0", "out-of-range", "at least one failure"),
        ("0 of 5", "out-of-range", "at least one failure"),
        ("101", "out-of-range", "more than 100 runs"),
        ("2 of 101", "out-of-range", "more than 100 runs"),
        (
            "5 of 2",
            "out-of-range",
            "more failures than there are runs",
        ),
        ("2.5", "out-of-range", "neither a number"),
        ("-1", "out-of-range", "neither a number"),
        ("2/5", "out-of-range", "neither a number"),
        ("[2, 5]", "wrong-type", "`2 of 5`"),
        ("true", "wrong-type", "`2 of 5`"),
    ] {
        let (read, catalog) = after(written);
        let found = problem(&catalog, code);
        let place = (found.place.line, found.place.column);
        assert_eq!((read, place), (None, (2, 10)), "{written}");
        assert!(found.message.contains(told), "{}", found.message);
        assert!(
            found
                .hint
                .as_ref()
                .is_some_and(|hint| hint.contains("2 of 5`"))
        );
    }
}

#[test]
fn no_line_with_an_address_is_shown_whatever_else_is_wrong_with_it() {
    for written in [
        "{webhook: 'https://h/SECRET', frm: slack}",
        "{webhook: 'https://h/SECRET', form: x}",
        "{webhook: 'https://h/SECRET'",
        "{webhook: https://h/SECRET: x}",
        "{command: x, webhook: 'https://h/SECRET', x: y}",
    ] {
        let (_, catalog) = configured(written);
        assert!(catalog.has_errors(), "{written}");
        for problem in &catalog.problems {
            let shown = format!("{problem:?} {:?}", catalog.source_line(problem));
            assert!(!shown.contains("SECRET"), "{written}: {shown}");
        }
    }
    let (_, catalog) = configured("{webhook: 'https://h/SECRET'}");
    assert_eq!(problem(&catalog, "webhook-literal").severity, NOTE);
}
