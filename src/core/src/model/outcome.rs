//! Where a run is, how it ended, and the five results beside its outcome.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a run is.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Accepted and waiting for its turn.
    Queued,
    /// Looking, touching nothing.
    Validating,
    /// Waiting for a person's approval.
    AwaitingApproval,
    /// Recording the baseline.
    Preparing,
    /// The skill's command is running.
    Executing,
    /// Recording the result and running the checks.
    Verifying,
    /// Waiting before the next attempt.
    BackingOff,
    /// Running the hooks that may block.
    PostHook,
    /// Writing the thread.
    Saving,
    /// Building and publishing the commit.
    Committing,
    /// Putting back what the run changed.
    Restoring,
    /// Ended.
    Finished,
}

impl Phase {
    /// Every phase, in the order of a run.
    pub const ALL: [Phase; 12] = [
        Phase::Queued,
        Phase::Validating,
        Phase::AwaitingApproval,
        Phase::Preparing,
        Phase::Executing,
        Phase::Verifying,
        Phase::BackingOff,
        Phase::PostHook,
        Phase::Saving,
        Phase::Committing,
        Phase::Restoring,
        Phase::Finished,
    ];

    /// The phase's name in every interface.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Queued => "queued",
            Phase::Validating => "validating",
            Phase::AwaitingApproval => "awaiting_approval",
            Phase::Preparing => "preparing",
            Phase::Executing => "executing",
            Phase::Verifying => "verifying",
            Phase::BackingOff => "backing_off",
            Phase::PostHook => "post_hook",
            Phase::Saving => "saving",
            Phase::Committing => "committing",
            Phase::Restoring => "restoring",
            Phase::Finished => "finished",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One part of a run's work.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Looking before anything is touched.
    Validate,
    /// The place where it works, and its base.
    Prepare,
    /// The skill's command.
    Execute,
    /// What the command left.
    Record,
    /// Outputs and checks.
    Verify,
    /// Hooks that may block.
    Hook,
    /// The thread.
    Save,
    /// The commit.
    Commit,
    /// The branch, and the checkouts that have it.
    Land,
}

impl Step {
    /// The step's name in every interface.
    pub const fn name(self) -> &'static str {
        match self {
            Step::Validate => "validate",
            Step::Prepare => "prepare",
            Step::Execute => "execute",
            Step::Record => "record",
            Step::Verify => "verify",
            Step::Hook => "hook",
            Step::Save => "save",
            Step::Commit => "commit",
            Step::Land => "land",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which step failed and why.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Failure {
    /// The step.
    pub step: Step,
    /// Stable code, lower case with underscores.
    pub code: String,
    /// A lower-case fragment for people.
    pub message: String,
}

impl Failure {
    /// A failure of `step`.
    pub fn new(step: Step, code: &str, message: impl Into<String>) -> Failure {
        Failure {
            step,
            code: code.to_owned(),
            message: message.into(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed ({}): {}", self.step, self.code, self.message)
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    /// Everything that was promised holds, as far as it was verified.
    Succeeded,
    /// A step failed; what the run had changed was put back.
    Failed {
        /// Which step and why.
        failure: Failure,
    },
    /// Ended on request.
    Cancelled,
    /// A limit of time was reached.
    TimedOut {
        /// Which limit, for people.
        message: String,
    },
    /// A person or a rule refused it.
    Denied {
        /// Why, for people.
        message: String,
    },
    /// What happened cannot be told; a person settles it.
    Unknown {
        /// Stable code.
        why: String,
    },
}

impl Outcome {
    /// Names of those that somebody has to look at: who cancelled or denied a run knows of it.
    pub const FAILURES: [&str; 3] = ["failed", "timed_out", "unknown"];

    /// Names of all.
    pub const NAMES: [&str; 6] = [
        "succeeded",
        "failed",
        "cancelled",
        "timed_out",
        "denied",
        "unknown",
    ];

    /// The outcome's name in every interface.
    pub const fn name(&self) -> &'static str {
        match self {
            Outcome::Succeeded => "succeeded",
            Outcome::Failed { .. } => "failed",
            Outcome::Cancelled => "cancelled",
            Outcome::TimedOut { .. } => "timed_out",
            Outcome::Denied { .. } => "denied",
            Outcome::Unknown { .. } => "unknown",
        }
    }

    /// One line for people beyond the name, where there is more to say.
    pub fn detail(&self) -> Option<String> {
        match self {
            Outcome::Succeeded | Outcome::Cancelled => None,
            Outcome::Failed { failure } => Some(failure.to_string()),
            Outcome::TimedOut { message } | Outcome::Denied { message } => Some(message.clone()),
            Outcome::Unknown { why } => Some(why.clone()),
        }
    }
}

/// What became of one step, kept apart from the outcome.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum StepResult {
    /// Not reached yet.
    #[default]
    Pending,
    /// Done and found right.
    Passed,
    /// Done and found wrong.
    Failed {
        /// For people.
        message: String,
    },
    /// Not done.
    Skipped {
        /// Stable code.
        why: String,
    },
    /// Cannot be told.
    Unknown {
        /// Stable code.
        why: String,
    },
}

impl StepResult {
    /// A step that was not done.
    pub fn skipped(why: &str) -> StepResult {
        StepResult::Skipped {
            why: why.to_owned(),
        }
    }

    /// The result's name in every interface.
    pub const fn name(&self) -> &'static str {
        match self {
            StepResult::Pending => "pending",
            StepResult::Passed => "passed",
            StepResult::Failed { .. } => "failed",
            StepResult::Skipped { .. } => "skipped",
            StepResult::Unknown { .. } => "unknown",
        }
    }
}

/// The five results of a run.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Results {
    /// The skill's command.
    pub execution: StepResult,
    /// Outputs and checks; `skipped` is shown as *unverified*.
    pub verification: StepResult,
    /// Hooks that may block.
    pub hook: StepResult,
    /// The thread.
    pub save: StepResult,
    /// The commit.
    pub commit: StepResult,
}

/// Why no step was done: the wake gate found nothing to do.
const NOTHING_TO_DO: &str = "nothing_to_do";

impl Results {
    /// Those of a run whose wake gate found nothing to do.
    pub fn nothing_to_do() -> Results {
        let skipped = || StepResult::skipped(NOTHING_TO_DO);
        Results {
            execution: skipped(),
            verification: skipped(),
            hook: skipped(),
            save: skipped(),
            commit: skipped(),
        }
    }

    /// Whether its wake gate found nothing to do.
    pub fn is_nothing_to_do(&self) -> bool {
        matches!(&self.execution, StepResult::Skipped { why } if why == NOTHING_TO_DO)
    }

    /// Whether a finished run was never verified, though there was something to verify.
    pub fn is_unverified(&self) -> bool {
        let verified = matches!(
            self.verification,
            StepResult::Passed | StepResult::Failed { .. }
        );
        !verified && !self.is_nothing_to_do()
    }
}
