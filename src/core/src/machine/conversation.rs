//! Conversations with a model: what is learnt while an attempt goes on.

use super::event::Event;
use super::state::{Run, State};
use crate::model::agent::Spent;
use crate::model::outcome::{Failure, StepResult};

impl Run {
    /// What was paid is recorded, also while the conversation is being ended.
    pub(super) fn in_conversation(&mut self, event: &Event, due: u32) -> Option<()> {
        match event {
            Event::TurnTaken { attempt, turn }
                if *attempt == due && turn.number == self.facts.turns.saturating_add(1) =>
            {
                self.facts.turns = turn.number;
                // It has got further than the engine that was lost: not so where each attempt begins anew, and
                // would be paid for without end.
                if self.plan.keeps_turns() {
                    self.facts.crash_attempts = 0;
                }
                self.facts.all_turns = self.facts.all_turns.saturating_add(1);
                self.facts.in_flight = None;
                self.facts.spent = self.facts.spent.plus(turn.spent);
            }
            Event::RequestSent { attempt, spent } if *attempt == due => {
                self.facts.in_flight = (*spent != Spent::default()).then_some(*spent);
            }
            Event::TurnFailed { attempt, spent, .. } if *attempt == due => {
                self.facts.in_flight = None;
                self.facts.spent = self.facts.spent.plus(*spent);
            }
            Event::ChildStarted { attempt, .. } if *attempt == due => {
                self.facts.children = self.facts.children.saturating_add(1);
            }
            Event::ChildEnded {
                attempt,
                run,
                turns,
                spent,
                failed,
            } if *attempt == due => {
                if let Some(how) = failed {
                    self.warn(format!(
                        "run {}, which it started, ended as {how}",
                        run.short()
                    ));
                }
                self.facts.all_turns = self.facts.all_turns.saturating_add(*turns);
                self.facts.spent = self.facts.spent.plus(*spent);
            }
            Event::ToolsFinished { attempt, turn, .. }
                if *attempt == due && *turn == self.facts.turns => {}
            _ => return None,
        }
        Some(())
    }

    /// Returns true if the next attempt continues the conversation of one that was lost or had to wait.
    pub const fn continues_conversation(&self) -> bool {
        self.plan.keeps_turns() && self.facts.turns > 0
    }

    /// Counts a request of which nothing will be learnt any more: its engine was lost, or its attempt is over.
    pub(super) fn settle_request(&mut self, event: &Event) {
        let is_open = matches!(self.state, State::Executing { .. }) && *event != Event::OwnerLost;
        if let Some(spent) = self.facts.in_flight.take_if(|_| !is_open) {
            self.facts.spent = self.facts.spent.plus(spent);
        }
    }

    /// The next attempt goes on with the turns that were taken, unless it begins anew.
    pub(super) const fn leave_conversation(&mut self) {
        if !self.plan.keeps_turns() {
            self.facts.turns = 0;
        }
    }

    /// A limit ended the conversation, and checks say that its work is not done, or nothing does say that it is.
    pub(super) fn left_unfinished(&mut self, failure: Option<Failure>) {
        self.facts.results.verification = match failure {
            Some(failure) => StepResult::Failed {
                message: failure.message,
            },
            None => StepResult::skipped("nothing_must_pass"),
        };
    }
}
