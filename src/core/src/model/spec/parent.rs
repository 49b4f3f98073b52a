//! Runs that other runs started.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Program, RunSpec};
use crate::model::agent::{Budget, Money};
use crate::model::{RunId, SkillRef};

/// The run that started another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// Which.
    pub run: RunId,
    /// In which of its attempts.
    pub attempt: u32,
    /// The run in whose tree all of them work, where there is one.
    pub tree_of: RunId,
    /// Whether the skill is a mutating one: what it changes is part of the one commit of that run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mutating: bool,
    /// The skills that led to it, the first one first.
    pub ancestors: Vec<SkillRef>,
}

impl RunSpec {
    /// Whether what it does may change the repository: in a commit of its own, or in that of the run that started it.
    pub fn may_change(&self) -> bool {
        self.plan.mutating || self.parent.as_ref().is_some_and(|parent| parent.mutating)
    }

    /// Bounds it by what the run has left that starts it.
    pub fn bound_by(&mut self, budget: Budget, left: Duration) {
        let left = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        self.timeout_ms = Some(self.timeout_ms.map_or(left, |own| own.min(left)));
        if let Program::Agent(agent) = &mut self.program {
            let own = agent.budget;
            let least = |own: Option<u64>, outer: Option<u64>| match (own, outer) {
                (Some(own), Some(outer)) => Some(own.min(outer)),
                (own, outer) => own.or(outer),
            };
            let money = least(
                own.money.map(|money| money.0),
                budget.money.map(|money| money.0),
            );
            let turns = least(own.turns.map(u64::from), budget.turns.map(u64::from));
            agent.budget = Budget {
                tokens: least(own.tokens, budget.tokens),
                money: money.map(Money),
                turns: turns.map(|turns| u32::try_from(turns).unwrap_or(u32::MAX)),
            };
        }
    }
}
