//! What becomes of slots: overlaps, missed ones, hours in which nothing is due, bounds.

use super::moment::{self, Edge};
use super::values::{contradiction, one_of, shown, word};
use crate::bounds::{CONCURRENT_MAX, COUNT_MAX};
use crate::keys::{BLACKOUT, CATCH_UP};
use crate::model::schedule::{CatchUp, CatchUpMode, Overlap, Policy, Trigger};
use crate::model::{Notify, Timestamp, Zone};
use crate::notify;
use crate::report::Report;
use crate::texts::PendingText;
use crate::tree::Data;
use crate::view::View;

/// Hours or dates that may be listed.
const BLOCKED_MAX: usize = 1_000;

const MODES: [(&str, CatchUpMode); 3] = [
    ("last", CatchUpMode::Last),
    ("all", CatchUpMode::All),
    ("none", CatchUpMode::None),
];

/// Reads the policies of a schedule that is a map. Where a value is refused, an error is told and the
/// result does not count.
pub(super) fn read<'a>(
    map: View<'a>,
    zone: Zone,
    blocked_hours: &[u8],
    texts: &mut Vec<PendingText<'a>>,
    report: &mut Report,
) -> Policy {
    let count = |key: &str, report: &mut Report| {
        map.written(key)
            .and_then(|view| view.whole(key, 1..=COUNT_MAX, report))
    };
    let mut policy = Policy {
        overlap: overlap(map, report),
        catch_up: map
            .written("catch_up")
            .and_then(|view| catch_up(view, report))
            .unwrap_or_default(),
        jitter_ms: millis(map, "jitter", report).unwrap_or(0),
        max_actions: count("max_actions", report),
        pause_on_failure: pause_on_failure(map, report),
        expected_within_ms: millis(map, "expected_within", report),
        notify: notify(map, texts, report),
        ..Policy::default()
    };
    blackout(map, blocked_hours, &mut policy, report);
    bounds(map, zone, &mut policy, report);
    policy
}

/// `on_missed` stands beside `notify` or in it.
fn notify<'a>(map: View<'a>, texts: &mut Vec<PendingText<'a>>, report: &mut Report) -> Notify {
    let mut notify = map
        .written("notify")
        .map(|view| notify::notify(view, texts, report))
        .unwrap_or_default();
    let foreground = map
        .written("notify")
        .and_then(|view| view.written("foreground"));
    if let Some(view) = foreground {
        let message =
            "`foreground` has no effect at a schedule: no client follows its runs".to_owned();
        let hint = "set it in the worker or in workerctl.yaml";
        report.warning("schedule-policy", view.key_place(), message, hint);
    }
    let Some(view) = map.written("on_missed") else {
        return notify;
    };
    if notify.on_missed.is_some() {
        let message = "`on_missed` and `notify` both set a notification".to_owned();
        contradiction(view, message, "keep the one in `notify`", report);
    }
    notify.on_missed = notify::channel(view, "on_missed", texts, report);
    notify
}

fn millis(map: View<'_>, key: &str, report: &mut Report) -> Option<u64> {
    map.written(key)?.millis(key, report)
}

/// What other schedulers have besides `cancel_other`; how long the other run is left is one setting for all.
const TERMINATE_OTHER: &str = "terminate_other";

fn named_overlap(view: View<'_>, report: &mut Report) -> Option<Overlap> {
    if view.scalar_text().as_deref() == Some(TERMINATE_OTHER) {
        report.note(
            "schedule-overlap",
            view.place(),
            format!("`{TERMINATE_OTHER}` is read as `cancel_other`"),
            "write `cancel_other`; with `grace: 0s` in workerctl.yaml the other run is killed at once",
        );
        return Some(Overlap::CancelOther);
    }
    let words = Overlap::ALL.map(|one| (one.name(), one));
    word(view, "overlap", &words, report)
}

fn overlap(map: View<'_>, report: &mut Report) -> Overlap {
    let named = map.written("overlap");
    let overlap = named
        .and_then(|view| named_overlap(view, report))
        .unwrap_or_default();
    let Some(view) = map.written("max_concurrent") else {
        return overlap;
    };
    if named.is_some() {
        let message = "`max_concurrent` and `overlap` both say what happens at once".to_owned();
        contradiction(view, message, "keep `overlap`", report);
    }
    match view.whole("max_concurrent", 1..=CONCURRENT_MAX, report) {
        None | Some(1) => overlap,
        Some(most) => {
            report.note(
                "schedule-concurrent",
                view.place(),
                format!(
                    "`max_concurrent: {most}` is read as `overlap: allow_all`: \
                     only `max_parallel` of the configuration bounds it"
                ),
                "write `overlap: allow_all`, or `max_concurrent: 1` for one run at a time",
            );
            Overlap::AllowAll
        }
    }
}

fn catch_up(view: View<'_>, report: &mut Report) -> Option<CatchUp> {
    let mut catch_up = CatchUp::default();
    if matches!(view.data(), Data::Text(_)) {
        catch_up.mode = word(view, "catch_up", &MODES, report)?;
        return Some(catch_up);
    }
    let expected = "`last`, `all`, `none`, or a map with `mode` and `window`";
    if !CATCH_UP.is_map(view, "catch_up", expected, report) {
        return None;
    }
    if let Some(mode) = view.written("mode") {
        catch_up.mode = word(mode, "mode", &MODES, report)?;
    }
    if let Some(window) = view.written("window") {
        catch_up.window_ms = window.millis("window", report)?;
        if catch_up.mode == CatchUpMode::None {
            let message = "`window` bounds what is caught up, and `mode: none` catches up nothing";
            contradiction(window, message.to_owned(), "remove one of them", report);
        }
    }
    Some(catch_up)
}

/// A number of failures; `true` is the first.
fn pause_on_failure(map: View<'_>, report: &mut Report) -> Option<u32> {
    let view = map.written("pause_on_failure")?;
    if let Data::Bool(pause) = view.data() {
        return pause.then_some(1);
    }
    let failures = view.whole("pause_on_failure", 1..=COUNT_MAX, report)?;
    u32::try_from(failures).ok()
}

fn blackout(map: View<'_>, blocked_hours: &[u8], policy: &mut Policy, report: &mut Report) {
    let block = map.written("blackout").filter(|view| {
        let expected = "a map with `hours` and `dates`";
        BLACKOUT.is_map(*view, "blackout", expected, report)
    });
    let own = block.and_then(|view| view.written("hours"));
    let listed = match (own, map.written("blocked_hours")) {
        (Some(_), Some(again)) => {
            let message = "`blackout.hours` and `blocked_hours` mean the same".to_owned();
            contradiction(again, message, "keep `blackout`", report);
            own
        }
        (own, other) => own.or(other),
    };
    policy.blocked_hours = match listed {
        Some(view) => hours(view, report),
        None => blocked_hours.to_vec(),
    };
    if let Some(view) = block.and_then(|view| view.written("dates")) {
        policy.blocked_dates = dates(view, report);
    }
}

/// Reads hours: `[2, 3]`, `"22-5"`, or a list of both; sorted, each once.
pub(crate) fn hours(view: View<'_>, report: &mut Report) -> Vec<u8> {
    let mut blocked = [false; 24];
    for item in listed(view, "hours", report) {
        let Some(text) = item.text("hours", report) else {
            continue;
        };
        let parts: Option<Vec<(u8, u8)>> = text.split(',').map(hour_range).collect();
        let Some(ranges) = parts else {
            report.error(
                "schedule-hours",
                item.place(),
                format!(
                    "`{}` is not an hour from 0 to 23, nor a range",
                    shown(&text)
                ),
                "write hours as `[2, 3]` or `\"22-5\"`, both ends included",
            );
            continue;
        };
        for (from, to) in ranges {
            let length = (to + 24 - from) % 24;
            for offset in 0..=length {
                blocked[usize::from((from + offset) % 24)] = true;
            }
        }
    }
    if blocked.iter().all(|hour| *hour) {
        let message = "every hour of the day is blocked: it would never be due".to_owned();
        contradiction(
            view,
            message,
            "leave an hour, or write `enabled: false`",
            report,
        );
    }
    (0_u8..24)
        .filter(|hour| blocked[usize::from(*hour)])
        .collect()
}

/// `5` or `22-5`; the range may cross midnight.
fn hour_range(text: &str) -> Option<(u8, u8)> {
    let hour = |text: &str| {
        let text = text.trim();
        let digits = (1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        text.parse().ok().filter(|hour: &u8| digits && *hour < 24)
    };
    match text.split_once('-') {
        Some((from, to)) => Some((hour(from)?, hour(to)?)),
        None => hour(text).map(|hour| (hour, hour)),
    }
}

fn dates(view: View<'_>, report: &mut Report) -> Vec<String> {
    let mut dates = Vec::new();
    for item in listed(view, "dates", report) {
        let Some(text) = item.text("dates", report) else {
            continue;
        };
        let text = text.trim();
        if moment::date(text).is_none() {
            report.error(
                "schedule-date",
                item.place(),
                format!("`{}` is not a date that exists", shown(text)),
                "write `YYYY-MM-DD`, such as `2026-12-24`",
            );
        } else if !dates.iter().any(|known| known == text) {
            dates.push(text.to_owned());
        }
    }
    dates
}

/// The items of a list, or the one value.
fn listed<'a>(view: View<'a>, what: &str, report: &mut Report) -> Vec<View<'a>> {
    match view.data() {
        Data::List(items) if items.len() > BLOCKED_MAX => {
            let message = format!("more than {BLOCKED_MAX} items of `{what}`");
            report.error("too-many", view.place(), message, "take ranges");
            Vec::new()
        }
        Data::List(_) => view.items().collect(),
        _ => vec![view],
    }
}

fn bounds(map: View<'_>, zone: Zone, policy: &mut Policy, report: &mut Report) {
    policy.start = bound(map, "start", zone, Edge::First, report);
    policy.end = bound(map, "end", zone, Edge::Last, report);
    let reversed = matches!((policy.start, policy.end), (Some(start), Some(end)) if end < start);
    if let Some(view) = one_of(map, &["end"], report).filter(|_| reversed) {
        report.error(
            "schedule-window",
            view.place(),
            "`end` is before `start`: it would never be due".to_owned(),
            "swap them",
        );
    }
}

fn bound(
    map: View<'_>,
    key: &str,
    zone: Zone,
    edge: Edge,
    report: &mut Report,
) -> Option<Timestamp> {
    let view = map.written(key)?;
    let text = view.filled_text(key, report)?;
    let instant = moment::instant(text.trim(), zone, edge);
    if instant.is_none() {
        report.error(
            "schedule-window",
            view.place(),
            format!("`{key}: {}` is not a time", shown(&text)),
            &moment::impossible_date(text.trim()).unwrap_or_else(|| {
                "write `2026-12-24T18:00:00+01:00`, or a date or time of the schedule's zone"
                    .to_owned()
            }),
        );
    }
    instant
}

/// What the policies and the trigger say against each other.
pub(super) fn agree(map: View<'_>, policy: &Policy, trigger: &Trigger, report: &mut Report) {
    if let (Trigger::Every { period_ms }, Some(view)) = (trigger, map.written("jitter"))
        && policy.jitter_ms >= *period_ms
    {
        report.error(
            "schedule-jitter",
            view.place(),
            "`jitter` is not shorter than the period of `every`".to_owned(),
            "write less than the period, or leave it out",
        );
    }
    for key in ["expected_within", "on_missed"] {
        if let Some(view) = map.written(key).filter(|_| !trigger.is_timed()) {
            report.warning(
                "schedule-useless",
                view.key_place(),
                format!("`{key}` has no effect: the schedule does not follow the clock"),
                "remove it",
            );
        }
    }
}
