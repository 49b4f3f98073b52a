//! What a schedule's future follows from, as every interface shows it.

use serde::{Deserialize, Serialize};

use crate::model::Timestamp;
use crate::model::schedule::{Policy, Trigger};

/// The current definition of a schedule, and its stored state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SchedulePlan {
    /// What makes it due.
    pub trigger: Trigger,
    /// What becomes of its slots.
    pub policy: Policy,
    /// Since when it counts, the origin of `every`; absent: no daemon has taken note of it.
    pub anchor: Option<Timestamp>,
    /// Every slot up to here is decided; absent as above.
    pub cursor: Option<Timestamp>,
    /// How many attempts its skill makes before a run of it has failed; absent where the skill is not there.
    pub attempts: Option<u32>,
    /// Why its skill cannot run as the definitions are now, so that no slot of it runs; absent: it can.
    #[serde(default)]
    pub blocked: Option<String>,
}
