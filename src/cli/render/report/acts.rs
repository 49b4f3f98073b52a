//! Who did what about a run, beside what is shown in places of its own.

use super::field;
use crate::cli::io::Stream;
use crate::protocol::ActView;

pub(super) fn show(out: &mut Stream<'_>, acts: &[ActView]) {
    let has_its_place = ["submitted", "approved", "denied"];
    for act in acts {
        if has_its_place.contains(&act.act.as_str()) {
            continue;
        }
        let by = act
            .by
            .as_deref()
            .map_or("by somebody".to_owned(), |by| format!("by {by}"));
        let note = act.note.as_ref().map(|note| format!(": {note}"));
        let run = act.run.map(|run| format!(", as {run}"));
        let value = [Some(by), run, note]
            .into_iter()
            .flatten()
            .collect::<String>();
        field(out, &act.act, &value);
    }
}
