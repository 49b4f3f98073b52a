//! The turns of a run's model.

use super::super::line::{DIM, Line, PLAIN};
use crate::cli::io::Stream;
use crate::protocol::TurnView;

/// Turns that are shown.
const TURNS_MAX: usize = 50;

/// What each turn of its model took.
pub(super) fn show(out: &mut Stream<'_>, turns: &[TurnView]) {
    let hidden = turns.len().saturating_sub(TURNS_MAX);
    if hidden > 0 {
        out.line(Line::of(
            DIM,
            format!("    … {hidden} turns before; `--json` has all"),
        ));
    }
    for turn in turns.iter().skip(hidden) {
        let money = turn.money.as_ref().map(|money| format!(", money {money}"));
        let calls = match turn.calls.as_slice() {
            [] => String::new(),
            calls => format!("  {}", calls.join(", ")),
        };
        let estimated = if turn.estimated { " (estimated)" } else { "" };
        let text = format!(
            "{} tokens{}{estimated}{calls}",
            turn.tokens.sum(),
            money.unwrap_or_default()
        );
        out.folded(Line::of(DIM, format!("    {:>4}  ", turn.turn)).output(PLAIN, &text));
    }
}
