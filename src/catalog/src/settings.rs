//! Settings that a worker, a skill and the configuration share: hooks, retry, environment, directory, zone.

use super::folded_text;
use super::keys::{BACKOFF, HOOK, HOOKS, RETRY, WAKE, report_unknown};
use super::report::Report;
use super::texts::{PendingText, TextKind, refuse_foreign};
use super::tree::Data;
use super::view::View;
use crate::bounds::{ATTEMPTS_MAX, BACKOFF_INITIAL_MS, CHECK_TIMEOUT_MS, HOOK_TIMEOUT_MS};
use crate::model::definition::{HookText, Shell, WakeText};
use crate::model::spec::Retry;
use crate::model::{Zone, zone};

/// Hooks of one kind.
const HOOKS_MAX: usize = 50;

/// Hooks as read, with their texts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hooks<'a> {
    /// Hooks that may block.
    pub(crate) post_tools: Vec<HookText>,
    /// Hooks after the commit.
    pub(crate) post_commit: Vec<HookText>,
    /// Their commands.
    pub(crate) texts: Vec<PendingText<'a>>,
}

/// Reads a `hooks` map.
pub(crate) fn hooks<'a>(view: View<'a>, report: &mut Report) -> Hooks<'a> {
    let mut found = Hooks::default();
    if view.is_null() {
        return found;
    }
    if !HOOKS.is_map(
        view,
        "hooks",
        "a map with `post_tools` or `post_commit`",
        report,
    ) {
        return found;
    }
    if let Some(list) = view.get("post_tools") {
        found.post_tools = hook_list(list, "post_tools", &mut found.texts, report);
    }
    if let Some(list) = view.get("post_commit") {
        found.post_commit = hook_list(list, "post_commit", &mut found.texts, report);
    }
    found
}

fn hook_list<'a>(
    view: View<'a>,
    key: &str,
    texts: &mut Vec<PendingText<'a>>,
    report: &mut Report,
) -> Vec<HookText> {
    match view.data() {
        Data::Null => Vec::new(),
        Data::List(items) if items.len() > HOOKS_MAX => {
            let message = format!("more than {HOOKS_MAX} hooks");
            report.error("too-many", view.place(), message, "call one script");
            Vec::new()
        }
        Data::List(_) => view
            .items()
            .filter_map(|item| hook(item, key, texts, report))
            .collect(),
        _ => hook(view, key, texts, report).into_iter().collect(),
    }
}

/// Reads `wake`: a command, or a map with `command`. What cannot be read is an error: without its gate the skill would
/// run each time.
pub(crate) fn wake<'a>(
    view: View<'a>,
    texts: &mut Vec<PendingText<'a>>,
    report: &mut Report,
) -> Option<WakeText> {
    let (command, timeout) = match view.data() {
        Data::Map(_) if view.get("command").is_some() => {
            report_unknown(view, &WAKE, report);
            (view.get("command")?, view.written("timeout"))
        }
        Data::Map(_) | Data::Null | Data::List(_) | Data::Bool(_) | Data::Number(_) => {
            view.wrong_type("wake", "a command or a map with `command`", report);
            return None;
        }
        Data::Text(_) => (view, None),
    };
    let timeout_ms = match timeout {
        Some(timeout) => timeout.millis("timeout", report)?,
        None => CHECK_TIMEOUT_MS,
    };
    let text = command.filled_text("wake", report)?;
    folded_text::report(command, report);
    texts.push(PendingText {
        kind: TextKind::PreCheck,
        text: text.clone(),
        view: command,
    });
    Some(WakeText {
        command: text,
        timeout_ms,
    })
}

/// Reads one hook: a command, or a map with `command`.
fn hook<'a>(
    view: View<'a>,
    key: &str,
    texts: &mut Vec<PendingText<'a>>,
    report: &mut Report,
) -> Option<HookText> {
    match view.data() {
        Data::Text(_) => hook_of(view, None, key, texts, report),
        Data::Map(_) if view.get("command").is_some() => {
            report_unknown(view, &HOOK, report);
            hook_of(
                view.get("command")?,
                view.get("timeout"),
                key,
                texts,
                report,
            )
        }
        _ => {
            view.wrong_type(key, "a command or a map with `command`", report);
            None
        }
    }
}

/// A command with its limit.
pub(crate) fn hook_of<'a>(
    command_view: View<'a>,
    timeout: Option<View<'a>>,
    key: &str,
    texts: &mut Vec<PendingText<'a>>,
    report: &mut Report,
) -> Option<HookText> {
    let timeout_ms = match timeout {
        Some(timeout) => timeout.millis("timeout", report)?,
        None => HOOK_TIMEOUT_MS,
    };
    let command = command_view.filled_text(key, report)?;
    if refuse_foreign(command_view, &command, report) {
        return None;
    }
    folded_text::report(command_view, report);
    texts.push(PendingText {
        kind: TextKind::Hook,
        text: command.clone(),
        view: command_view,
    });
    Some(HookText {
        command,
        timeout_ms,
    })
}

/// Reads a `retry` map.
pub(crate) fn retry(view: View<'_>, report: &mut Report) -> Option<Retry> {
    let before = report.errors();
    if !RETRY.is_map(view, "retry", "a map with `max_attempts`", report) {
        return None;
    }
    let mut retry = Retry {
        initial_ms: BACKOFF_INITIAL_MS,
        ..Retry::ONCE
    };
    let Some(attempts) = view.get("max_attempts") else {
        if report.errors() == before {
            report.error(
                "missing-key",
                view.key_place(),
                "`retry` does not say how many attempts to make".to_owned(),
                "add `max_attempts: 3`",
            );
        }
        return None;
    };
    let attempts = attempts.whole("max_attempts", 1..=ATTEMPTS_MAX, report)?;
    retry.max_attempts = u32::try_from(attempts).unwrap_or(1);
    if let Some(wait) = view.written("backoff") {
        backoff(wait, &mut retry, report)?;
    }
    if let Some(on) = view.written("on") {
        retry_on(on, &mut retry, report)?;
    }
    Some(retry)
}

fn backoff(view: View<'_>, retry: &mut Retry, report: &mut Report) -> Option<()> {
    if !matches!(view.data(), Data::Map(_)) {
        retry.initial_ms = view.millis("backoff", report)?;
        return Some(());
    }
    report_unknown(view, &BACKOFF, report);
    if let Some(initial) = view.get("initial") {
        retry.initial_ms = initial.millis("initial", report)?;
    }
    if let Some(max) = view.get("max") {
        retry.max_ms = max.millis("max", report)?;
    }
    if let Some(factor) = view.get("factor") {
        let number = factor.number("factor", report)?;
        if !(1.0..=100.0).contains(&number) {
            let message = "`factor` must be a number from 1 to 100".to_owned();
            report.error("out-of-range", factor.place(), message, "write `factor: 2`");
            return None;
        }
        retry.factor_percent = hundredths(number);
    }
    if retry.max_ms < retry.initial_ms {
        report.warning(
            "backoff-order",
            view.place(),
            "the longest wait is shorter than the first".to_owned(),
            "make `max` at least as long as `initial`",
        );
    }
    Some(())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the caller holds the number between 1 and 100"
)]
fn hundredths(number: f64) -> u32 {
    (number * 100.0).round() as u32
}

fn retry_on(view: View<'_>, retry: &mut Retry, report: &mut Report) -> Option<()> {
    let steps = view.texts("on", report)?;
    (retry.on_execution, retry.on_verification) = (false, false);
    for step in &steps {
        match step.as_str() {
            "execution" => retry.on_execution = true,
            "verification" => retry.on_verification = true,
            other => {
                report.error(
                    "unknown-value",
                    view.place(),
                    format!("`on: {other}` is not a step that can be tried again"),
                    "write `execution`, `verification` or both",
                );
                return None;
            }
        }
    }
    Some(())
}

/// Reads `shell`.
pub(crate) fn shell(view: View<'_>, report: &mut Report) -> Option<Shell> {
    match view.text("shell", report)?.as_str() {
        "sh" | "/bin/sh" => Some(Shell::Sh),
        "bash" | "/bin/bash" | "/usr/bin/bash" => Some(Shell::Bash),
        other => {
            let (message, hint) = if other.trim().contains(char::is_whitespace) {
                (
                    "`shell` names the shell, and this is a command".to_owned(),
                    "write the command as `run`",
                )
            } else {
                let message = format!("`shell: {other}` is not supported");
                (message, "write `sh` or `bash`")
            };
            report.error("unknown-value", view.place(), message, hint);
            None
        }
    }
}

/// Reads a path that must stay inside the workspace, such as `cwd` or a destination.
pub(crate) fn inner_path(view: View<'_>, key: &str, report: &mut Report) -> Option<String> {
    let path = view.filled_text(key, report)?;
    if refuse_foreign(view, &path, report) {
        return None;
    }
    let outside = path.starts_with('/')
        || path.starts_with('~')
        || path.split(['/', '\\']).any(|part| part == "..")
        || path.chars().any(char::is_control);
    let inner = path
        .split('/')
        .any(|part| part.eq_ignore_ascii_case(".git"));
    if outside || inner {
        report.error(
            "path-outside",
            view.place(),
            format!(
                "`{key}: {}` does not stay inside the workspace",
                path.escape_debug()
            ),
            "write a path relative to the workspace, without `..` and outside of `.git`",
        );
        return None;
    }
    Some(path)
}

/// Reads the author of commits.
pub(crate) fn author(view: View<'_>, report: &mut Report) -> Option<String> {
    let text = view.filled_text("author", report)?;
    let shape = text
        .strip_suffix('>')
        .and_then(|text| text.split_once('<'))
        .is_some_and(|(name, mail)| {
            !name.trim().is_empty()
                && mail.contains('@')
                && !mail.contains(['<', '>', ' '])
                && !text.contains(['\n', '\r'])
                && !name.contains(['<', '>'])
        });
    if shape {
        return Some(text);
    }
    report.error(
        "author-invalid",
        view.place(),
        format!(
            "`author: {}` is not a name with a mail address",
            text.escape_debug()
        ),
        "write `author: \"Repo Steward <steward@example.org>\"`",
    );
    None
}

/// Common abbreviations and cities that are no IANA names, or stand for several zones, with a zone that is often meant.
const ZONES: [(&str, &str); 32] = [
    ("pst", "America/Los_Angeles"),
    ("pdt", "America/Los_Angeles"),
    ("pt", "America/Los_Angeles"),
    ("est", "America/New_York"),
    ("edt", "America/New_York"),
    ("et", "America/New_York"),
    ("cst", "America/Chicago"),
    ("cdt", "America/Chicago"),
    ("mst", "America/Denver"),
    ("mdt", "America/Denver"),
    ("cet", "Europe/Berlin"),
    ("cest", "Europe/Berlin"),
    ("mez", "Europe/Berlin"),
    ("bst", "Europe/London"),
    ("ist", "Asia/Kolkata"),
    ("jst", "Asia/Tokyo"),
    ("kst", "Asia/Seoul"),
    ("aest", "Australia/Sydney"),
    ("munich", "Europe/Berlin"),
    ("frankfurt", "Europe/Berlin"),
    ("hamburg", "Europe/Berlin"),
    ("geneva", "Europe/Zurich"),
    ("barcelona", "Europe/Madrid"),
    ("milan", "Europe/Rome"),
    ("san_francisco", "America/Los_Angeles"),
    ("seattle", "America/Los_Angeles"),
    ("washington", "America/New_York"),
    ("boston", "America/New_York"),
    ("dallas", "America/Chicago"),
    ("beijing", "Asia/Shanghai"),
    ("delhi", "Asia/Kolkata"),
    ("mumbai", "Asia/Kolkata"),
];

/// Reads the name of a zone.
pub(crate) fn timezone(view: View<'_>, report: &mut Report) -> Option<String> {
    let text = view.filled_text("timezone", report)?;
    if text.parse::<Zone>().is_ok() {
        return Some(text);
    }
    let wanted = text.to_lowercase().replace(' ', "_");
    let last = |name: &'static str| name.rsplit('/').next().unwrap_or(name);
    let city = wanted.rsplit('/').next().unwrap_or(&wanted);
    let of_abbreviation = ZONES.iter().find(|(short, _)| *short == city);
    let of_city = zone::names().find(|name| last(name).eq_ignore_ascii_case(city));
    // An abbreviation is never close to another one, and few letters make another city: both may be far apart.
    let distance_max = 1.max(city.len() / 4);
    let near = zone::names()
        .filter(|name| name.contains('/'))
        .map(|name| (strsim::osa_distance(&wanted, &name.to_lowercase()), name))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= distance_max)
        .map(|(_, name)| name);
    let of_abbreviation = of_abbreviation.map(|(_, name)| *name);
    let is_offset = ["gmt", "utc"].iter().any(|prefix| {
        let rest = city.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.starts_with(['+', '-']))
    });
    // `Etc/GMT+2` is two hours behind UTC.
    let named = of_city.or(near).filter(|_| !is_offset);
    let hint = of_abbreviation.or(named).map_or_else(
        || {
            "write an IANA name such as `Europe/Berlin` or `UTC`: a zone has the name of one city in it; \
             `timedatectl list-timezones` lists all"
                .to_owned()
        },
        |name| format!("did you mean `{name}`?"),
    );
    let message = format!("`timezone: {}` is not a known zone", text.escape_debug());
    report.error("timezone-unknown", view.place(), message, &hint);
    None
}
