//! A person's approval: asked for before the command or before the landing, given, refused or expired.

use super::event::Event;
use super::state::{Run, State};
use crate::model::Timestamp;
use crate::model::duration::show_millis;
use crate::model::outcome::{Outcome, StepResult};
use crate::model::spec::Gate;

impl Run {
    /// Goes on once nothing stands against the run: to a person first, where its definition asks for one.
    pub(super) fn begin(&mut self, at: Timestamp) {
        if self.is_unapproved(Gate::Execution) {
            self.ask_for_approval(at);
        } else {
            self.start_preparing(at);
        }
    }

    pub(super) fn ask_for_approval(&mut self, at: Timestamp) {
        let for_ms = self.plan.approval.map_or(0, |asked| asked.expires_ms);
        self.state = State::AwaitingApproval { since: at, for_ms };
    }

    /// Whoever asked for it has its turn in the queue once more. There is nothing to put back: before the command
    /// nothing was touched, and before the landing the result was put aside.
    pub(super) fn in_awaiting_approval(&mut self, event: &Event, for_ms: u64) -> Option<()> {
        match event {
            Event::Approved { approval } => {
                self.facts.approval = Some(approval.clone());
                self.state = State::Queued;
            }
            Event::Denied { by, note } => self.deny(format!("denied by {by}: {note}")),
            Event::ApprovalExpired => self.deny(format!(
                "it was not approved within {} and counts as denied",
                show_millis(for_ms)
            )),
            Event::CancelRequested { .. } => self.save_then_finish(Outcome::Cancelled),
            Event::OwnerLost => {}
            _ => return None,
        }
        Some(())
    }

    fn deny(&mut self, message: String) {
        if self.facts.held.is_some() {
            self.facts.results.commit = StepResult::skipped("denied");
        }
        self.save_then_finish(Outcome::Denied { message });
    }
}
