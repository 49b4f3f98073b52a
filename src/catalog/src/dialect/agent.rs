//! SKILL.md as agent programs read it: the keys of the specification, and those that vendors added.

use super::{Origin, Written};
use crate::checks::restricting_flag;
use crate::model::{Dialect, Place};
use crate::report::Report;
use crate::restrict;
use crate::tree::Data;
use crate::view::View;

/// Keys that are known; those without an evaluation are kept.
pub(crate) const KNOWN: &[&str] = &[
    "name",
    "description",
    "license",
    "compatibility",
    "metadata",
    "allowed-tools",
    "disallowed-tools",
    "version",
    "argument-hint",
    "model",
    "context",
    "agent",
    "hooks",
    "disable-model-invocation",
    "user-invocable",
    "required_tools",
    "preferred_model",
    "max_iterations",
    "input_schema",
    "toolsets",
    "files",
    "tags",
    "author",
    "title",
    "when_to_use",
    "paths",
    "shell",
    "effort",
    "arguments",
    "instructions",
    "cron",
    "schedule",
    "run",
    "mutating",
    "approval_required",
];

/// Known too, and never what a near miss means: `concept` is a key of its own.
const NEVER_MEANT: &[&str] = &["content"];

/// Keys that only workspace skills know.
const WORKSPACE_ONLY: &[&str] = &[
    "allowed_tools",
    "tools",
    "env",
    "packages",
    "opt_in",
    "access",
];

/// Longest name and description in characters.
const NAME_CHARS: usize = 64;
const DESCRIPTION_CHARS: usize = 1_024;

/// The key that restricts and that `key` stands for.
pub(crate) fn restriction(key: &str, dialect: Dialect) -> Option<&'static str> {
    let newer = dialect == Dialect::Workspace && matches!(key, "allowed_tools" | "tools");
    if newer {
        return Some("allowed-tools");
    }
    let known = is_known(key, dialect) && !restrict::KEYS.contains(&key);
    (!known).then(|| restrict::meant(key, KNOWN)).flatten()
}

/// Whether a key needs no remark.
pub(crate) fn is_known(key: &str, dialect: Dialect) -> bool {
    KNOWN.contains(&key)
        || NEVER_MEANT.contains(&key)
        || (dialect == Dialect::Workspace && WORKSPACE_ONLY.contains(&key))
}

/// The name; where it is optional, that of the directory or file. `None` when an error was reported.
pub(crate) fn name(view: View<'_>, origin: Origin<'_>, report: &mut Report) -> Option<String> {
    let Some(value) = view.written("name") else {
        return name_of_directory(view, origin, report);
    };
    let written = value.filled_text("name", report)?.trim().to_owned();
    let Some(name) = escaped(&written, origin.dialect) else {
        report_forbidden(&written, value.place(), origin.stem, report);
        return None;
    };
    if name != written {
        report.warning(
            "name-escaped",
            value.place(),
            format!("a name holds no `/`: `{written}` is called `{name}` here"),
            &format!("write `name: {name}`"),
        );
    }
    // Wave's own rules say the same as an error.
    if origin.dialect != Dialect::Wave {
        remark_name(value, &name, origin.stem, report);
    }
    Some(name)
}

/// The name of a skill that says none.
fn name_of_directory(view: View<'_>, origin: Origin<'_>, report: &mut Report) -> Option<String> {
    let place = view
        .get("name")
        .map_or_else(|| view.place(), |value| value.key_place());
    let stem = origin.stem;
    let hint = format!(
        "write `{}` as a line below the first `---`",
        name_line(stem)
    );
    if !origin.name_optional {
        let message = "the skill has no `name`".to_owned();
        report.error("missing-key", place, message, &hint);
        return None;
    }
    if escaped(stem, origin.dialect).is_none() {
        report_forbidden(stem, place, "my-skill", report);
        return None;
    }
    if origin.dialect != Dialect::Workspace {
        let message = format!("the skill has no `name` and is called `{stem}`, as its directory");
        report.warning("name-missing", place, message, &hint);
    }
    Some(stem.to_owned())
}

fn report_forbidden(name: &str, place: Place, stem: &str, report: &mut Report) {
    let why = if name.chars().any(char::is_control) {
        "holds a control character"
    } else {
        "could be taken for a path"
    };
    report.error(
        "name-forbidden",
        place,
        format!("`name: {}` {why}", name.escape_debug()),
        &format!(
            "use lower-case letters, digits and dashes, such as `{}`",
            name_line(stem)
        ),
    );
}

/// The line that gives a skill the name of its directory.
fn name_line(stem: &str) -> String {
    if is_usual(stem) {
        return format!("name: {stem}");
    }
    format!("name: {}", serde_json::Value::from(stem))
}

/// A name as it is looked up: `team/x` is `team-x`, for a look-up takes no separators. `None`: it could be taken
/// for a path.
fn escaped(name: &str, dialect: Dialect) -> Option<String> {
    if name.contains('\\') || name.contains("..") || name.chars().any(char::is_control) {
        return None;
    }
    let grouped =
        |part: &str| dialect != Dialect::Wave && !part.is_empty() && !part.starts_with('.');
    (!name.contains('/') || name.split('/').all(grouped)).then(|| name.replace('/', "-"))
}

fn remark_name(value: View<'_>, name: &str, stem: &str, report: &mut Report) {
    if name != stem {
        report.warning(
            "name-directory",
            value.place(),
            format!("the skill is `{name}`, its directory or file `{stem}`"),
            "give both the same name",
        );
    }
    if !is_usual(name) {
        report.warning(
            "name-unusual",
            value.place(),
            format!("`name: {}` is not usual", name.escape_debug()),
            "use at most 64 lower-case letters, digits and single dashes within",
        );
    }
}

/// Whether a name is one of the specification: lower-case letters, digits, single dashes within.
pub(crate) fn is_usual(name: &str) -> bool {
    let sign = |c: char| c == '-' || (c.is_alphanumeric() && !c.is_uppercase());
    !name.is_empty()
        && name.chars().count() <= NAME_CHARS
        && name.chars().all(sign)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

/// The description; `None` when an error was reported.
pub(crate) fn description(view: View<'_>, dialect: Dialect, report: &mut Report) -> Option<String> {
    let Some(value) = view.written("description") else {
        report.error(
            "missing-key",
            view.get("description")
                .map_or_else(|| view.place(), |value| value.key_place()),
            "the skill has no `description`".to_owned(),
            "say in a sentence or two what it does and when to use it",
        );
        return None;
    };
    let text = value.filled_text("description", report)?.trim().to_owned();
    let characters = text.chars().count();
    if characters > DESCRIPTION_CHARS && dialect != Dialect::Wave {
        report.warning(
            "description-long",
            value.place(),
            format!("the description has {characters} characters"),
            &format!("keep it within {DESCRIPTION_CHARS}"),
        );
    }
    Some(text)
}

/// Who may start a skill, and what it may do.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a key of its own that a skill may have"
)]
pub(crate) struct Restrictions {
    pub(crate) model_invocable: bool,
    pub(crate) user_invocable: bool,
    pub(crate) mutating: bool,
    pub(crate) approval_required: bool,
}

/// Reads who may start a skill; of two that are written the stricter holds.
pub(crate) fn restrictions(written: &Written<'_>, report: &mut Report) -> Restrictions {
    let mut flags = |key: &str| -> Vec<bool> {
        let all = written.all(key);
        all.into_iter()
            .filter_map(|view| flag(view, key, report))
            .collect()
    };
    Restrictions {
        model_invocable: !flags("disable-model-invocation").contains(&true),
        user_invocable: !flags("user-invocable").contains(&false),
        mutating: flags("mutating").contains(&true),
        approval_required: flags("approval_required").contains(&true),
    }
}

/// A flag that restricts; the words for it that older YAML knows, and those in quotes, are read as what they say.
fn flag(view: View<'_>, key: &str, report: &mut Report) -> Option<bool> {
    let word = match view.data() {
        Data::Text(text) => text.trim(),
        _ => "",
    };
    let value = match word.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => true,
        "false" | "no" | "off" => false,
        _ => return restricting_flag(view, key, report),
    };
    report.warning(
        "flag-as-text",
        view.place(),
        format!("`{key}: {word}` is a text and is read as `{value}`"),
        &format!("write `{key}: {value}`, without quotes"),
    );
    Some(value)
}

/// Says of keys that make things happen elsewhere that they do not here.
pub(crate) fn report_not_evaluated(view: View<'_>, report: &mut Report) {
    if let Some(value) = view.written("run") {
        report.warning(
            "run-outside-worker",
            value.key_place(),
            "`run` is not executed: only skills of workers run commands".to_owned(),
            "put the skill below `workers/<worker>/skills/`",
        );
    }
    for key in ["cron", "schedule"] {
        if let Some(value) = view.written(key) {
            report.warning(
                "schedule-not-fired",
                value.key_place(),
                format!("`{key}` has no effect: only skills of workers can be scheduled"),
                "put the skill below `workers/<worker>/skills/`",
            );
        }
    }
}
