//! What a run has spent on a model, and what that said.

use crate::machine::Run;
use crate::model::RunSpec;
use crate::model::agent::TurnRecord;
use crate::model::spec::Program;
use crate::protocol::{SpentView, TurnView};

/// What it has spent so far; `None` where it has a command.
pub(super) fn spent(spec: &RunSpec, run: &Run) -> Option<SpentView> {
    let Program::Agent(_) = spec.program else {
        return None;
    };
    let spent = &run.facts.spent;
    Some(SpentView {
        turns: run.facts.all_turns,
        tokens: spent.tokens,
        money: spent.money.map(|money| money.to_string()),
        unmeasured: spent.unmeasured,
        estimated_tokens: spent.estimated_tokens,
        estimated_money: (!spent.estimated_money.is_zero())
            .then(|| spent.estimated_money.to_string()),
    })
}

/// A turn as people see it.
pub(super) fn turn(attempt: u32, turn: &TurnRecord) -> TurnView {
    let calls = turn.answer.get("calls").and_then(|calls| calls.as_array());
    let names = calls
        .into_iter()
        .flatten()
        .filter_map(|call| call.get("name")?.as_str());
    TurnView {
        attempt,
        turn: turn.number,
        tokens: turn.spent.tokens,
        money: turn.spent.money.map(|money| money.to_string()),
        estimated: turn.spent.unmeasured > 0,
        calls: names.map(str::to_owned).collect(),
    }
}

/// Bytes of an answer that are shown.
const SHOWN_BYTES_MAX: usize = 64 * 1024;

/// What the model said in a turn, where it said anything.
pub(super) fn said(turn: &TurnRecord) -> Option<String> {
    let text = turn.answer.get("text")?.as_str()?.trim();
    let cut = text.floor_char_boundary(text.len().min(SHOWN_BYTES_MAX));
    (!text.is_empty()).then(|| text[..cut].to_owned())
}
