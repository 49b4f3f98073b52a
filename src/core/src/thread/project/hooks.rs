//! What became of hooks.

use crate::machine::{Entry, Event, HookVerdict};
use crate::model::Timestamp;

/// What became of one hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookStory {
    /// Whether it follows the commit.
    pub post_commit: bool,
    /// Its place from 0.
    pub index: u32,
    /// What it said.
    pub verdict: HookVerdict,
    /// When it ended.
    pub at: Timestamp,
    /// The level of the walls that its command had.
    pub sandbox_level: Option<u32>,
}

impl HookStory {
    /// What an entry says of a hook, where it is about one.
    pub(super) fn of(entry: &Entry) -> Option<HookStory> {
        let post_commit = matches!(entry.event, Event::PostCommitHookFinished { .. });
        let (Event::HookFinished {
            index,
            verdict,
            sandbox_level,
        }
        | Event::PostCommitHookFinished {
            index,
            verdict,
            sandbox_level,
        }) = &entry.event
        else {
            return None;
        };
        Some(HookStory {
            post_commit,
            index: *index,
            verdict: verdict.clone(),
            at: entry.at,
            sandbox_level: *sandbox_level,
        })
    }
}
