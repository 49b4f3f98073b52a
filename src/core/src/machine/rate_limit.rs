//! An attempt that a rate limit ended: the run may wait in the queue for the end of the limit.

use super::state::Run;
use crate::model::Timestamp;
use crate::model::evidence::Ended;

impl Run {
    /// Whether the run goes back into the queue instead of failing; what is to be known of that is noted. The attempt
    /// counts against nothing: nobody could have done better.
    pub(super) fn waits_for_rate_limit(&mut self, at: Timestamp, ended: &Ended) -> bool {
        let (
            Some(allowed),
            Ended::Failed {
                until: Some(until), ..
            },
        ) = (self.plan.on_rate_limit, ended)
        else {
            return false;
        };
        // Before its first turn nothing was done that a second attempt could do twice.
        let safe = self.plan.is_repeatable() || self.facts.turns == 0;
        if !safe
            || self.facts.rate_waits >= allowed.times
            || until.millis_since(at) > allowed.wait_ms
        {
            return false;
        }
        self.facts.rate_waits = self.facts.rate_waits.saturating_add(1);
        self.facts.waits_until = Some(*until);
        self.leave_conversation();
        true
    }
}
