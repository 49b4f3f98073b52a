//! What makes a schedule due: exactly one of six kinds.

use super::values::{contradiction, one_of, shown, word};
use super::{Around, moment, phrases, traps};
use crate::bounds::SETTLE_MS;
use crate::keys::{AFTER, DST, ON_COMMIT, WATCH, has_near_miss};
use crate::model::isolation::branch_name;
use crate::model::schedule::{AfterWhen, Dst, Fold, Gap, Trigger};
use crate::model::{Place, SkillRef};
use crate::report::Report;
use crate::settings::inner_path;
use crate::tree::Data;
use crate::view::View;
use workerctl_core::schedule::Expression;

/// Keys of a cron expression, all of one meaning.
pub(super) const EXPRESSIONS: &[&str] = &["cron", "schedule"];

/// Keys of the other kinds.
const OTHERS: [&str; 5] = ["every", "at", "after", "watch", "on_commit"];

/// Shortest period, in milliseconds.
const PERIOD_MIN_MS: u64 = 1_000;

/// Where an engine keeps its state unless it is told otherwise.
const STATE: &str = "state";

/// Times, paths that one schedule may name.
const MEMBERS_MAX: usize = 1_000;

/// A trigger, and where the skill of `after` is named.
pub(super) type Found = (Trigger, Option<Place>);

/// Returns true if a key of a schedule says when it is due.
pub(super) fn is_named(map: View<'_>) -> bool {
    map.entries()
        .any(|(key, _)| EXPRESSIONS.contains(&key) || OTHERS.contains(&key))
}

/// Reads the trigger of a schedule that is a map.
pub(super) fn of_map(map: View<'_>, around: Around<'_>, report: &mut Report) -> Option<Found> {
    let expression = one_of(map, EXPRESSIONS, report);
    let others = OTHERS
        .into_iter()
        .filter_map(|key| Some((key, map.written(key)?)));
    let mut kinds: Vec<(&str, View<'_>)> = expression
        .map(|view| ("cron", view))
        .into_iter()
        .chain(others)
        .collect();
    if let [_, (_, second), ..] = kinds.as_slice() {
        let names: Vec<String> = kinds.iter().map(|(key, _)| format!("`{key}`")).collect();
        report.error(
            "schedule-trigger",
            second.key_place(),
            format!(
                "{} are given, and a schedule has only one of them",
                names.join(" and ")
            ),
            "keep one of them, or list two schedules",
        );
        return None;
    }
    let seconds = map
        .written("seconds")
        .and_then(|view| view.flag("seconds", report));
    let dst = map.written("dst").and_then(|view| dst(view, report));
    let Some((kind, view)) = kinds.pop() else {
        report.error(
            "schedule-trigger",
            map.key_place(),
            "the schedule does not say when it is due".to_owned(),
            "add one of `cron`, `every`, `at`, `after`, `watch` and `on_commit`",
        );
        return None;
    };
    let found = match kind {
        "cron" => (cron(view, seconds == Some(true), dst, report)?, None),
        "every" => (every(view, report)?, None),
        "at" => (at(view, dst, report)?, None),
        "after" => {
            // As an unknown key beside `after` it would be passed over, and every success would count.
            if let Some(on) = map.written("on") {
                let message =
                    "`on` is next to `after`, but selects outcomes of that run".to_owned();
                let hint = "write it inside: `after: {skill: worker/skill, on: failed}`";
                contradiction(on, message, hint, report);
                return None;
            }
            after(view, around, report)?
        }
        "watch" => (watch(view, around, report)?, None),
        _ => (on_commit(view, report)?, None),
    };
    report_useless(map, &found.0, report);
    Some(found)
}

/// `seconds` and `dst` where they cannot mean anything.
fn report_useless(map: View<'_>, trigger: &Trigger, report: &mut Report) {
    let cron = matches!(trigger, Trigger::Cron { .. });
    let by_clock = cron || matches!(trigger, Trigger::At { .. });
    if let Some(view) = map.written("seconds").filter(|_| !cron) {
        let message = "`seconds` is about a cron expression, and there is none".to_owned();
        contradiction(view, message, "remove `seconds`", report);
    }
    if let Some(view) = map.written("dst").filter(|_| !by_clock) {
        let message =
            "`dst` applies only to `cron` and `at`: other schedules do not follow the clock"
                .to_owned();
        contradiction(view, message, "remove `dst`", report);
    }
}

/// Reads a cron expression or one of its nicknames.
pub(super) fn cron(
    view: View<'_>,
    seconds: bool,
    dst: Option<Dst>,
    report: &mut Report,
) -> Option<Trigger> {
    let text = view.filled_text("cron", report)?;
    if text.trim().eq_ignore_ascii_case("@reboot") {
        return Some(Trigger::Reboot);
    }
    expression(view, &text, seconds, report).then(|| Trigger::Cron {
        expression: text.trim().into(),
        seconds,
        dst,
    })
}

/// Whether a cron expression can be read; says what is wrong with it.
fn expression(view: View<'_>, text: &str, seconds: bool, report: &mut Report) -> bool {
    match Expression::parse(text, seconds) {
        Ok(_) => {
            traps::report(view, text, seconds, report);
            true
        }
        Err(error) => {
            let place = view.place_within(error.at.start);
            let form = phrases::form(text).map(|form| format!("write {form}"));
            let hint = form.as_ref().unwrap_or(&error.hint);
            report.error("schedule-expression", place, error.message, hint);
            false
        }
    }
}

fn dst(view: View<'_>, report: &mut Report) -> Option<Dst> {
    if !DST.is_map(view, "dst", "a map with `gap` and `fold`", report) {
        return None;
    }
    let gaps = [("run_after", Gap::RunAfter), ("skip", Gap::Skip)];
    let folds = [
        ("first", Fold::First),
        ("second", Fold::Second),
        ("both", Fold::Both),
    ];
    let gap = view
        .written("gap")
        .map(|view| word(view, "gap", &gaps, report));
    let fold = view
        .written("fold")
        .map(|view| word(view, "fold", &folds, report));
    Some(Dst {
        gap: gap.unwrap_or(Some(Gap::RunAfter))?,
        fold: fold.unwrap_or(Some(Fold::First))?,
    })
}

fn every(view: View<'_>, report: &mut Report) -> Option<Trigger> {
    let period_ms = view.millis("every", report)?;
    if period_ms < PERIOD_MIN_MS {
        report.error(
            "schedule-period",
            view.place(),
            "`every` is shorter than a second".to_owned(),
            "write at least `1s`",
        );
        return None;
    }
    Some(Trigger::Every { period_ms })
}

fn at(view: View<'_>, dst: Option<Dst>, report: &mut Report) -> Option<Trigger> {
    let items = members(view, "at", report)?;
    let times: Vec<String> = items
        .iter()
        .filter_map(|item| {
            let text = item.filled_text("at", report)?;
            let text = text.trim();
            if !moment::is_time(text) {
                let hint =
                    "write a time of the schedule's zone, such as `2026-12-24T18:00`, or RFC 3339";
                let hint = match moment::impossible_date(text) {
                    Some(reason) => reason,
                    None if moment::date(text).is_some() => {
                        format!("add the time: `at: {text}T09:00`")
                    }
                    None => moment::daily(text).unwrap_or_else(|| hint.to_owned()),
                };
                let message = format!("`at: {}` is not a time", shown(text));
                report.error("schedule-at", item.place(), message, &hint);
                return None;
            }
            Some(text.replacen(' ', "T", 1))
        })
        .collect();
    (times.len() == items.len()).then_some(Trigger::At { times, dst })
}

/// The items of a list, or the one value; reports an empty list and one that is too long.
fn members<'a>(view: View<'a>, what: &str, report: &mut Report) -> Option<Vec<View<'a>>> {
    match view.data() {
        Data::List(items) if items.is_empty() => {
            let message = format!("`{what}` lists nothing");
            report.error(
                "blank",
                view.key_place(),
                message,
                "add an item or remove the key",
            );
            None
        }
        Data::List(items) if items.len() > MEMBERS_MAX => {
            let message = format!("more than {MEMBERS_MAX} items of `{what}`");
            report.error("too-many", view.place(), message, "divide the schedule");
            None
        }
        Data::List(_) => Some(view.items().collect()),
        _ => Some(vec![view]),
    }
}

fn after(view: View<'_>, around: Around<'_>, report: &mut Report) -> Option<Found> {
    let (name, when) = match view.data() {
        Data::Text(_) => (view, AfterWhen::Succeeded),
        _ if AFTER.is_map(
            view,
            "after",
            "a skill or a map with `skill` and `on`",
            report,
        ) =>
        {
            let ends = [
                ("succeeded", AfterWhen::Succeeded),
                ("failed", AfterWhen::Failed),
                ("always", AfterWhen::Always),
            ];
            let on = view.written("on").map(|on| word(on, "on", &ends, report));
            let name = required(
                view,
                "skill",
                "add the skill that it follows: `skill: worker/skill`",
                report,
            )?;
            (name, on.unwrap_or(Some(AfterWhen::Succeeded))?)
        }
        _ => return None,
    };
    let text = name.filled_text("skill", report)?;
    let (worker, skill) = text
        .trim()
        .split_once('/')
        .unwrap_or((around.worker, text.trim()));
    let skill = Box::new(SkillRef {
        worker: worker.to_string(),
        skill: skill.to_owned(),
    });
    Some((Trigger::After { skill, when }, Some(name.place())))
}

fn required<'a>(map: View<'a>, key: &str, hint: &str, report: &mut Report) -> Option<View<'a>> {
    let view = map.written(key);
    if view.is_none() && !has_near_miss(map, key) {
        let message = format!("`{key}` is missing");
        report.error("missing-key", map.key_place(), message, hint);
    }
    view
}

fn watch(view: View<'_>, around: Around<'_>, report: &mut Report) -> Option<Trigger> {
    let (listed, settle) = match view.data() {
        Data::Text(_) | Data::List(_) => (view, None),
        _ if WATCH.is_map(
            view,
            "watch",
            "paths or a map with `paths` and `settle`",
            report,
        ) =>
        {
            let settle = view
                .written("settle")
                .map(|settle| settle.millis("settle", report));
            let paths = required(view, "paths", "add `paths: [docs/]`", report)?;
            (paths, settle)
        }
        _ => return None,
    };
    let items = members(listed, "paths", report)?;
    let paths: Vec<String> = items
        .iter()
        .filter_map(|item| pattern(*item, around, report))
        .collect();
    let complete = paths.len() == items.len();
    let settle_ms = settle.unwrap_or(Some(SETTLE_MS))?;
    complete.then_some(Trigger::Watch { paths, settle_ms })
}

/// A pattern inside the workspace; git's magic words are none.
fn pattern(view: View<'_>, around: Around<'_>, report: &mut Report) -> Option<String> {
    let path = inner_path(view, "paths", report)?;
    if path.starts_with([':', '!']) {
        report.error(
            "schedule-watch",
            view.place(),
            format!("`{}` is no pattern of paths", shown(&path)),
            "write a path or a pattern such as `docs/*.md`; exclusions are not supported",
        );
        return None;
    }
    let written = &around.plain.written;
    if let Some(own) = written.iter().find(|own| lies_in(&path, own)) {
        report.error(
            "schedule-watch",
            view.place(),
            format!("`{own}` is written by the engine: changes there never trigger a schedule"),
            "watch files that skills or users write; to follow the runs of a skill, use `after: worker/skill`",
        );
        return None;
    }
    if lies_in(&path, STATE) {
        report.warning(
            "schedule-watch",
            view.place(),
            format!(
                "`{STATE}` is the default state directory, in which no change makes a schedule due"
            ),
            "watch another directory, or keep the state elsewhere with `--state-dir`",
        );
    }
    Some(path)
}

/// Whether a pattern names nothing but what lies in a directory.
fn lies_in(pattern: &str, directory: &str) -> bool {
    fn parts(path: &str) -> impl Iterator<Item = &str> {
        path.split('/').filter(|part| !matches!(*part, "" | "."))
    }
    let mut named = parts(pattern);
    parts(directory).all(|part| named.next() == Some(part))
}

fn on_commit(view: View<'_>, report: &mut Report) -> Option<Trigger> {
    let named = match view.data() {
        Data::Map(_) => {
            ON_COMMIT.is_map(view, "on_commit", "a branch or a map with `branch`", report);
            required(view, "branch", "add `branch: main`", report)?
        }
        _ => view,
    };
    let text = named.filled_text("branch", report)?;
    match branch_name(text.trim()) {
        Ok(branch) => Some(Trigger::OnCommit {
            branch: branch.to_owned(),
        }),
        Err(why) => {
            report.error(
                "schedule-branch",
                named.place(),
                format!("`{}` cannot be the name of a branch: {why}", shown(&text)),
                "write its short name, such as `main`",
            );
            None
        }
    }
}
