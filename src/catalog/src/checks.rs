//! `verification`: a list of checks, or a map of what happens before and after execution.

use super::folded_text;
use super::keys::{CHECK, VERIFICATION, report_unknown};
use super::report::Report;
use super::texts::{PendingText, TextKind};
use super::tree::Data;
use super::view::View;
use crate::bounds::CHECK_TIMEOUT_MS;
use crate::model::definition::CheckText;

/// Checks of one list.
const CHECKS_MAX: usize = 200;

/// What a `verification` asks for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Verification<'a> {
    /// Checks before anything is touched.
    pub(crate) before: Vec<CheckText>,
    /// Checks after execution.
    pub(crate) after: Vec<CheckText>,
    /// Whether a person must approve.
    pub(crate) approval_required: bool,
    /// Commands of the checks.
    pub(crate) texts: Vec<PendingText<'a>>,
}

/// Reads a `verification` in either form.
pub(crate) fn read<'a>(view: View<'a>, report: &mut Report) -> Verification<'a> {
    let mut found = Verification::default();
    match view.data() {
        Data::Null => {}
        Data::List(_) => found.after = list(view, TextKind::Check, &mut found.texts, report),
        Data::Map(_) => {
            report_unknown(view, &VERIFICATION, report);
            if let Some(before) = view.get("pre_execute") {
                found.before = list(before, TextKind::PreCheck, &mut found.texts, report);
            }
            if let Some(after) = view.get("post_execute") {
                found.after = list(after, TextKind::Check, &mut found.texts, report);
            }
            if let Some(people) = view.get("human_checkpoints") {
                found.after.extend(checkpoints(people, report));
            }
            if let Some(flag) = view.get("approval_required") {
                found.approval_required = approval(flag, report);
            }
        }
        Data::Bool(_) | Data::Number(_) | Data::Text(_) => {
            view.wrong_type("verification", "a list of checks", report);
        }
    }
    found
}

/// Reads `approval_required`; anything but true or false is an error, never a `false`.
pub(crate) fn approval(view: View<'_>, report: &mut Report) -> bool {
    restricting_flag(view, "approval_required", report).unwrap_or(true)
}

/// A flag that restricts what may run: malformed, it rejects what it stands in.
pub(crate) fn restricting_flag(view: View<'_>, key: &str, report: &mut Report) -> Option<bool> {
    if let Data::Bool(value) = view.data() {
        return Some(*value);
    }
    report.error(
        "restriction-malformed",
        view.place(),
        format!("`{key}` must be `true` or `false`, not {}", view.kind()),
        &format!("write `{key}: true` or `{key}: false`"),
    );
    None
}

/// Points at which a person looks: recorded as not run, never as passed.
pub(crate) fn checkpoints(view: View<'_>, report: &mut Report) -> Vec<CheckText> {
    if view.is_null() {
        return Vec::new();
    }
    if !matches!(view.data(), Data::List(_)) {
        view.wrong_type("human_checkpoints", "a list of texts", report);
    }
    view.items()
        .filter_map(|item| {
            let text = item.filled_text("human_checkpoints", report)?;
            Some(for_people(item, &text))
        })
        .collect()
}

fn list<'a>(
    view: View<'a>,
    kind: TextKind,
    texts: &mut Vec<PendingText<'a>>,
    report: &mut Report,
) -> Vec<CheckText> {
    match view.data() {
        Data::Null => return Vec::new(),
        Data::List(items) if items.len() <= CHECKS_MAX => {}
        Data::List(_) => {
            let message = format!("more than {CHECKS_MAX} checks");
            report.error(
                "too-many",
                view.place(),
                message,
                "call a script that checks",
            );
            return Vec::new();
        }
        _ => {
            view.wrong_type("verification", "a list of checks", report);
            return Vec::new();
        }
    }
    view.items()
        .filter_map(|item| match item.data() {
            Data::Text(text) if !text.trim().is_empty() => Some(manual(item, text, report)),
            Data::Map(_) => check(item, kind, texts, report),
            _ => {
                item.wrong_type("verification", "a map with `command`, or prose", report);
                None
            }
        })
        .collect()
}

fn check<'a>(
    item: View<'a>,
    kind: TextKind,
    texts: &mut Vec<PendingText<'a>>,
    report: &mut Report,
) -> Option<CheckText> {
    if let Some(text) = prose_with_colon(item) {
        report.warning(
            "prose-quoted",
            item.place(),
            "the sentence is read as a map because of its colon".to_owned(),
            &format!("quote it: `\"{text}\"`"),
        );
        return Some(manual(item, &text, report));
    }
    let before = report.errors();
    report_unknown(item, &CHECK, report);
    let is_misspelt = report.errors() > before;
    let mut text_of = |key: &str| item.written(key).map(|view| view.filled_text(key, report));
    let (name, description) = (text_of("check").or(text_of("name")), text_of("description"));
    let command = text_of("command");
    let must_pass = item.get("must_pass").map_or(Some(true), |view| {
        restricting_flag(view, "must_pass", report)
    });
    let timeout_ms = item
        .written("timeout")
        .map_or(Some(CHECK_TIMEOUT_MS), |view| {
            view.millis("timeout", report)
        });
    report_condition(item, report);
    let label = description.flatten().or(name.flatten());
    let Some(command) = command else {
        if is_misspelt {
            return None;
        }
        let Some(label) = label else {
            let message = "a check says neither what it runs nor what it verifies".to_owned();
            report.error(
                "check-empty",
                item.place(),
                message,
                "add `command: COMMAND`",
            );
            return None;
        };
        return Some(manual(item, &label, report));
    };
    let command = command?;
    let place = item.place();
    if let Some(view) = item.get("command") {
        folded_text::report(view, report);
        texts.push(PendingText {
            kind,
            text: command.clone(),
            view,
        });
    }
    Some(CheckText {
        description: label.unwrap_or_else(|| command.clone()),
        command: Some(command),
        must_pass: must_pass?,
        timeout_ms: timeout_ms?,
        place,
    })
}

/// A sentence such as `PRD includes: a problem statement`, which YAML takes for a map.
fn prose_with_colon(item: View<'_>) -> Option<String> {
    let mut entries = item.entries();
    let (key, value) = entries.next()?;
    let alone = entries.next().is_none();
    let prose = alone && key.contains(' ') && !CHECK.has(key);
    prose.then(|| format!("{key}: {}", value.scalar_text().unwrap_or_default()))
}

/// A condition is honoured only where its meaning is certain; a check whose condition is not
/// understood always runs, because leaving it out would protect less than was asked for.
/// `exists` always holds: declared outputs are verified to exist before any check.
fn report_condition(item: View<'_>, report: &mut Report) {
    let Some(view) = item.written("when") else {
        return;
    };
    let text = view.scalar_text().unwrap_or_default();
    if !matches!(text.as_str(), "always" | "exists") {
        report.warning(
            "when-not-evaluated",
            view.place(),
            format!("`when: {text}` is not evaluated, the check always runs"),
            "only `always` and `exists` are evaluated: test the condition in the command",
        );
    }
}

fn manual(item: View<'_>, text: &str, report: &mut Report) -> CheckText {
    report.note(
        "check-manual",
        item.place(),
        "a check without `command` is a task for a person: it is recorded as not run".to_owned(),
        "write `command: COMMAND` to run it",
    );
    for_people(item, text)
}

fn for_people(item: View<'_>, text: &str) -> CheckText {
    CheckText {
        description: text.trim().to_owned(),
        command: None,
        must_pass: false,
        timeout_ms: CHECK_TIMEOUT_MS,
        place: item.place(),
    }
}
