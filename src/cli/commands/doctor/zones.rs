//! By which rules of time zones schedules are due.

use std::collections::BTreeSet;

use super::{Finding, State};
use crate::clock::zones;
use crate::model::zone::version_compiled_in;
use crate::model::{Timestamp, Zone};

/// How far ahead rules are compared, in days.
const DAYS_AHEAD: u64 = 400;
const DAY_MS: u64 = 86_400_000;

/// Which data hold, how old they are, and which of the zones that are used they have wrong.
pub(super) fn zones(used: &BTreeSet<String>, now: Timestamp) -> Finding {
    let ours = version_compiled_in();
    let data = zones::data();
    let Some(directory) = data.directory else {
        let text =
            format!("{ours}, built into workerctl, because the machine has no time zone data");
        return Finding::new("zones", State::Hint, text)
            .hint("to receive updates, install the package `tzdata`");
    };
    let version = data.version.as_deref();
    let of = format!(
        "{} of {}",
        version.unwrap_or("unknown"),
        directory.display()
    );
    let since = data.since.map(|at| at.date_in(Zone::UTC));
    let text = since.map_or_else(|| of.clone(), |since| format!("{of}, written on {since}"));
    if version.is_none_or(|version| version >= ours) {
        return Finding::new("zones", State::Good, text);
    }
    let mut lines = vec![format!("{text}; workerctl was built with {ours}")];
    lines.extend(used.iter().filter_map(|zone| differs(zone, now)));
    let state = match lines.len() {
        1 => State::Hint,
        _ => State::Care,
    };
    Finding::new("zones", state, lines.join("\n"))
        .hint("update the package `tzdata`; a daemon that runs notices it")
}

/// From when on the machine's rules of a zone are others than newer ones.
fn differs(name: &str, now: Timestamp) -> Option<String> {
    let (theirs, ours) = (name.parse::<Zone>().ok()?, Zone::compiled_in(name)?);
    let wrong_by = |at: Timestamp| at.offset_minutes_in(theirs) - at.offset_minutes_in(ours);
    let mut days = (0..DAYS_AHEAD).map(|days| now.plus_millis(days * DAY_MS));
    let at = days.find(|at| wrong_by(*at) != 0)?;
    let minutes = wrong_by(at).abs();
    let day = at.date_in(ours);
    Some(format!(
        "{name} is {minutes} minutes off by the machine's on {day}"
    ))
}
