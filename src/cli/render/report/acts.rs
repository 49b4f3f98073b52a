//! Who did what about a run, beside what is shown in places of its own, and the runs that are linked to it.

use super::field;
use crate::cli::io::Stream;
use crate::protocol::{AuditEntry, RunDetail};

/// Most runs that are listed as started by a run.
const CHILDREN_SHOWN_MAX: usize = 20;

pub(super) fn show(out: &mut Stream<'_>, acts: &[AuditEntry]) {
    let has_its_place = ["submitted", "approved", "denied"];
    for act in acts {
        if has_its_place.contains(&act.action.as_str()) {
            continue;
        }
        let by = act
            .by
            .as_deref()
            .map_or("by an unknown user".to_owned(), |by| format!("by {by}"));
        let note = act.note.as_ref().map(|note| format!(": {note}"));
        let run = act.run.map(|run| format!(", as {run}"));
        let value = [Some(by), run, note]
            .into_iter()
            .flatten()
            .collect::<String>();
        field(out, &act.action, &value);
    }
}

/// Prints the run that started it, and the runs that it started.
pub(super) fn relatives(out: &mut Stream<'_>, detail: &RunDetail) {
    if let Some(parent) = detail.summary.parent {
        let skill = detail.parent_skill.as_ref();
        let skill = skill.map_or_else(String::new, |skill| format!(" ({skill})"));
        field(out, "started by", &format!("run {parent}{skill}"));
    }
    let shown = detail.children.iter().take(CHILDREN_SHOWN_MAX);
    let mut shown: Vec<String> = shown.map(ToString::to_string).collect();
    if let more @ 1.. = detail.children.len().saturating_sub(CHILDREN_SHOWN_MAX) {
        shown.push(format!("and {more} more"));
    }
    field(out, "started runs", &shown.join(", "));
}
