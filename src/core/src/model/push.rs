//! Branches whose last push failed.

use serde::{Deserialize, Serialize};

use super::ids::{RunId, SkillRef};
use super::schedule::cut;
use super::time::Timestamp;

/// Default limit of one push, in milliseconds.
pub const PUSH_TIMEOUT_MS: u64 = 5 * 60 * 1_000;

/// Runs that a [`FailedPush`] names; the oldest are left out if there are more.
const RUNS_MAX: usize = 20;

/// Bytes of a message that are kept.
const MESSAGE_BYTES_MAX: usize = 400;

/// Minutes until the next try after so many failures; the last value applies to all further ones.
const RETRY_MINUTES: [u64; 5] = [1, 2, 5, 15, 60];

/// A branch whose last push failed, because the remote refused it or could not be reached.
///
/// It is stored until a later push of the branch succeeds, so that the failure stays visible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FailedPush {
    /// Absolute path of the working tree of the repository.
    pub repository: String,
    /// Name of the remote.
    pub remote: String,
    /// Short name of the branch.
    pub branch: String,
    /// The newest landed commit that was not pushed, in hex.
    pub commit: String,
    /// The newest runs whose commits were not pushed, oldest first, at most 20.
    pub runs: Vec<RunId>,
    /// The skill of the newest run.
    pub skill: SkillRef,
    /// The schedule of that run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// When the first push failed.
    pub since: Timestamp,
    /// Number of failed pushes since then.
    #[serde(rename = "attempt_count", alias = "try_count")]
    pub tries: u32,
    /// When a daemon tries again; `None` if the push was cancelled. Then only the next result, a reload or a restart of the
    /// daemon tries again.
    #[serde(default, alias = "next_try", skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Timestamp>,
    /// Why the last push failed.
    pub message: String,
    /// Whether a notification of the failure was due.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub notified: bool,
}

impl FailedPush {
    /// Returns the key of the record, which is unique for a branch of a repository at a remote.
    pub fn key(&self) -> String {
        FailedPush::key_of(&self.repository, &self.remote, &self.branch)
    }

    /// Returns the key of the record of a branch.
    pub fn key_of(repository: &str, remote: &str, branch: &str) -> String {
        format!("{repository}\0{remote}\0{branch}")
    }

    /// Describes a failure in a sentence; [`FailedPush::failed`] takes it back.
    pub fn describe(remote: &str, branch: &str, why: &str) -> String {
        format!("`{branch}` was not pushed to `{remote}`: {why}")
    }

    /// Records one more failure. A push that was cancelled is not tried again by itself.
    pub fn failed(&mut self, message: &str, cancelled: bool, now: Timestamp) {
        let prefix = FailedPush::describe(&self.remote, &self.branch, "");
        let message = message.strip_prefix(&prefix).unwrap_or(message);
        let minutes = RETRY_MINUTES
            .get(self.tries as usize)
            .or(RETRY_MINUTES.last());
        self.tries = self.tries.saturating_add(1);
        let wait_ms = minutes.map_or(0, |minutes| minutes * 60_000);
        self.next_attempt_at = (!cancelled).then(|| now.plus_millis(wait_ms));
        cut(message, MESSAGE_BYTES_MAX).clone_into(&mut self.message);
    }

    /// Adds the run of a newer commit.
    pub fn add(&mut self, run: RunId) {
        self.runs.retain(|known| *known != run);
        self.runs.push(run);
        if self.runs.len() > RUNS_MAX {
            self.runs.remove(0);
        }
    }

    /// Returns what a user can do.
    pub fn hint(&self) -> String {
        let FailedPush {
            repository,
            remote,
            branch,
            ..
        } = self;
        // As `git push` names a remote branch with commits that the local one lacks.
        let has_moved = ["fetch first", "non-fast-forward"]
            .iter()
            .any(|words| self.message.contains(words));
        if has_moved {
            format!(
                "the remote has other commits: run `git pull --rebase {remote} {branch} && git push {remote} {branch}` in {repository}"
            )
        } else {
            format!("`git push {remote} {branch}` in {repository} shows the whole error")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_an_hour_and_a_cancelled_push_waits_for_the_next_result() {
        let now = Timestamp::from_millis(1_800_000_000_000);
        let mut push = FailedPush {
            repository: "/r".to_owned(),
            remote: "origin".to_owned(),
            branch: "main".to_owned(),
            commit: "c".to_owned(),
            runs: Vec::new(),
            skill: "w/s".parse().unwrap(),
            schedule: None,
            since: now,
            tries: 0,
            next_attempt_at: None,
            message: String::new(),
            notified: false,
        };
        let mut waits = Vec::new();
        for _ in 0..7 {
            push.failed("! [rejected] main -> main (fetch first)", false, now);
            waits.push(push.next_attempt_at.unwrap().millis_since(now) / 60_000);
        }
        assert_eq!(waits, [1, 2, 5, 15, 60, 60, 60]);
        assert!(push.hint().contains("git pull --rebase origin main"));
        push.failed(&"x".repeat(10_000), true, now);
        assert_eq!((push.next_attempt_at, push.tries), (None, 8));
        assert_eq!(push.message.len(), MESSAGE_BYTES_MAX);
        for number in 0..30 {
            push.add(RunId::following(None, now, number));
        }
        assert_eq!(push.runs.len(), RUNS_MAX);
    }
}
