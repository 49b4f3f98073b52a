//! One schedule: a text, or a map of keys.

use std::sync::Arc;

use super::values::shown;
use super::{Around, Draft, Inputs, OwnId, Read, SchedulePlaces, policy, trigger};
use crate::keys::{SCHEDULE, not_a_list, report_unknown};
use crate::model::{Place, Zone};
use crate::report::Report;
use crate::settings;
use crate::texts::PendingText;
use crate::tree::Data;
use crate::view::View;

/// Longest id in characters.
const ID_CHARS: usize = 64;

/// Reads a schedule and the texts in it that another room looks at. What it says is absent, or does not
/// count, when an error was reported.
pub(super) fn read<'a>(
    view: View<'a>,
    around: Around<'_>,
    report: &mut Report,
) -> (Draft, Vec<PendingText<'a>>) {
    let mut draft = Draft {
        worker: Arc::clone(around.worker),
        skill: around.skill.map(Arc::clone),
        target: None,
        id: None,
        place: view.key_place(),
        read: None,
    };
    let mut texts = Vec::new();
    draft.read = match view.data() {
        Data::Map(_) if is_named_list(view) => {
            not_a_list(view, "schedule", "id", report);
            None
        }
        Data::Map(_) => {
            let before = report.errors();
            report_unknown(view, &SCHEDULE, report);
            if report.errors() > before && !trigger::is_named(view) {
                // The key that says when it is due is one of those that are refused.
                return (draft, texts);
            }
            draft.id = view.written("id").and_then(|view| id(view, report));
            draft.target = target(view, around, report).map(Box::new);
            of_map(view, around, &mut texts, report)
        }
        Data::Text(_) | Data::Number(_) => of_text(view, around, report),
        Data::Null | Data::Bool(_) | Data::List(_) => {
            let expected = "a cron expression such as `0 9 * * 1-5`, or a map of keys";
            view.wrong_type("schedule", expected, report);
            None
        }
    };
    (draft, texts)
}

/// Returns true for a map of schedules by names of the user's own.
fn is_named_list(view: View<'_>) -> bool {
    let mut entries = view.entries().peekable();
    let is_named =
        |(key, value): (&str, View<'_>)| !SCHEDULE.has(key) && matches!(value.data(), Data::Map(_));
    entries.peek().is_some() && entries.all(is_named)
}

fn of_text(view: View<'_>, around: Around<'_>, report: &mut Report) -> Option<Read> {
    let trigger = trigger::cron(view, false, None, report)?;
    Some(Read {
        trigger: Arc::new(trigger),
        timezone: Arc::clone(around.timezone?),
        inputs: Arc::clone(&around.plain.inputs),
        policy: Arc::clone(&around.plain.policy),
        disabled: false,
        places: None,
    })
}

fn of_map<'a>(
    map: View<'a>,
    around: Around<'_>,
    texts: &mut Vec<PendingText<'a>>,
    report: &mut Report,
) -> Option<Read> {
    let own_zone = map.written("timezone");
    let timezone = match own_zone {
        Some(view) => settings::timezone(view, report).map(Arc::from),
        None => around.timezone.map(Arc::clone),
    };
    // Without its zone the other keys are read all the same: all problems are told at once.
    let zone = timezone
        .as_deref()
        .and_then(|name| name.parse().ok())
        .unwrap_or(Zone::UTC);
    let found = trigger::of_map(map, around, report);
    let blocked_hours = &around.plain.policy.blocked_hours;
    let policy = policy::read(map, zone, blocked_hours, texts, report);
    let (inputs, input_places) = inputs(map, report);
    let enabled = map
        .written("enabled")
        .and_then(|view| view.flag("enabled", report));
    let (trigger, after) = found?;
    policy::agree(map, &policy, &trigger, report);
    let places = SchedulePlaces {
        after,
        blackout: ["blackout", "blocked_hours"]
            .into_iter()
            .find_map(|key| Some(map.written(key)?.key_place())),
        inputs: input_places,
    };
    Some(Read {
        trigger: Arc::new(trigger),
        timezone: timezone?,
        inputs: shared(inputs, &around.plain.inputs),
        policy: shared(policy, &around.plain.policy),
        disabled: enabled == Some(false),
        places: (places != SchedulePlaces::default()).then(|| Box::new(places)),
    })
}

/// What is there already, where it is the same.
fn shared<T: PartialEq>(read: T, known: &Arc<T>) -> Arc<T> {
    if read == **known {
        Arc::clone(known)
    } else {
        Arc::new(read)
    }
}

fn inputs(map: View<'_>, report: &mut Report) -> (Inputs, Vec<(String, Place)>) {
    let mut found = (Inputs::new(), Vec::new());
    let Some(view) = map.written("inputs") else {
        return found;
    };
    if !matches!(view.data(), Data::Map(_)) {
        view.wrong_type("inputs", "a map of names and values", report);
        return found;
    }
    for (name, value) in view.entries() {
        found.0.insert(name.to_owned(), value.json());
        found.1.push((name.to_owned(), value.key_place()));
    }
    found
}

fn id(view: View<'_>, report: &mut Report) -> Option<OwnId> {
    let text = view.filled_text("id", report)?;
    let fits = text.chars().count() <= ID_CHARS
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    if !fits {
        report.error(
            "schedule-id",
            view.place(),
            format!("`id: {}` cannot name a schedule", shown(&text)),
            "use letters, digits, dashes, `_` and `.`, at most 64",
        );
        return None;
    }
    let place = view.place();
    Some(OwnId {
        name: text.into(),
        line: place.line,
        column: place.column,
    })
}

/// The skill that it names: at the worker's level any, among the keys of a skill only that one.
fn target(map: View<'_>, around: Around<'_>, report: &mut Report) -> Option<(String, Place)> {
    let view = map.written("skill")?;
    let text = view.filled_text("skill", report)?;
    let text = text.trim();
    let Some(own) = around.skill else {
        return Some((text.to_owned(), view.place()));
    };
    let same = text.eq_ignore_ascii_case(own.as_ref())
        || text.eq_ignore_ascii_case(&format!("{}/{own}", around.worker));
    if !same {
        report.error(
            "schedule-skill",
            view.place(),
            format!(
                "a schedule of the skill `{own}` cannot run `{}`",
                shown(text)
            ),
            "remove `skill`, or move the schedule to the top of worker.yaml",
        );
    }
    None
}
