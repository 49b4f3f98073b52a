//! Exit codes: one table, one total function.

use crate::model::{Kind, Outcome, Step};

/// How a command ends, as scripts and service managers see it; documented in `docs/reference/exit-codes.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Exit {
    /// Done, and as it should be.
    Ok,
    /// The run failed, or the program did.
    Failed,
    /// The command line is wrong.
    Usage,
    /// Nothing of that name.
    NotFound,
    /// A definition or the configuration is wrong.
    InvalidDefinition,
    /// The run did its work and a check did not pass.
    VerificationFailed,
    /// It may not start now.
    Blocked,
    /// No engine answers.
    Unreachable,
    /// Someone else holds it, or it is too late.
    Conflict,
    /// What happened, or whether anything did, cannot be told.
    Unknown,
    /// A limit of time was reached.
    TimedOut,
    /// Ended because a person said so.
    Interrupted,
}

/// What an exit code is derived from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ending<'a> {
    /// A run has ended.
    Outcome(&'a Outcome),
    /// The request was refused or failed.
    Refused(Kind),
}

impl Exit {
    /// Every exit, in the order of its code.
    #[cfg(test)]
    pub(crate) const ALL: [Exit; 12] = [
        Exit::Ok,
        Exit::Failed,
        Exit::Usage,
        Exit::NotFound,
        Exit::InvalidDefinition,
        Exit::VerificationFailed,
        Exit::Blocked,
        Exit::Unreachable,
        Exit::Conflict,
        Exit::Unknown,
        Exit::TimedOut,
        Exit::Interrupted,
    ];

    /// The exit that an ending leads to.
    pub(crate) fn of(ending: Ending<'_>) -> Exit {
        match ending {
            Ending::Outcome(Outcome::Succeeded) => Exit::Ok,
            Ending::Outcome(Outcome::Failed { failure }) => match failure.step {
                Step::Verify => Exit::VerificationFailed,
                // Nothing of it has run: what it met would have refused it at its submission.
                Step::Prepare => Exit::Blocked,
                Step::Validate
                | Step::Execute
                | Step::Record
                | Step::Land
                | Step::Hook
                | Step::Save
                | Step::Commit => Exit::Failed,
            },
            Ending::Outcome(Outcome::Cancelled) => Exit::Interrupted,
            Ending::Outcome(Outcome::TimedOut { .. }) => Exit::TimedOut,
            Ending::Outcome(Outcome::Denied { .. }) | Ending::Refused(Kind::Blocked) => {
                Exit::Blocked
            }
            Ending::Outcome(Outcome::Unknown { .. }) | Ending::Refused(Kind::Open) => Exit::Unknown,
            Ending::Refused(Kind::Usage) => Exit::Usage,
            Ending::Refused(Kind::NotFound) => Exit::NotFound,
            Ending::Refused(Kind::Definition) => Exit::InvalidDefinition,
            Ending::Refused(Kind::Unreachable) => Exit::Unreachable,
            Ending::Refused(Kind::Conflict) => Exit::Conflict,
            Ending::Refused(Kind::Internal) => Exit::Failed,
        }
    }

    /// The code that the process ends with.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Exit::Ok => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::NotFound => 3,
            Exit::InvalidDefinition => 4,
            Exit::VerificationFailed => 5,
            Exit::Blocked => 6,
            Exit::Unreachable => 7,
            Exit::Conflict => 8,
            Exit::Unknown => 9,
            Exit::TimedOut => 124,
            Exit::Interrupted => 130,
        }
    }

    /// The name in the documented table.
    #[cfg(test)]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Exit::Ok => "ok",
            Exit::Failed => "failed",
            Exit::Usage => "usage",
            Exit::NotFound => "not found",
            Exit::InvalidDefinition => "invalid definition",
            Exit::VerificationFailed => "verification failed",
            Exit::Blocked => "blocked",
            Exit::Unreachable => "unreachable",
            Exit::Conflict => "conflict or busy",
            Exit::Unknown => "outcome unknown",
            Exit::TimedOut => "timed out",
            Exit::Interrupted => "interrupted",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Failure;

    #[test]
    fn the_documented_table_is_the_one_in_use() {
        let page = include_str!("../../docs/reference/exit-codes.md");
        let documented: Vec<(u8, &str)> = page
            .lines()
            .filter_map(|line| {
                let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
                let code = cells.next()?.parse().ok()?;
                Some((code, cells.next()?))
            })
            .collect();
        let used: Vec<(u8, &str)> = Exit::ALL.map(|exit| (exit.code(), exit.name())).to_vec();
        assert_eq!(documented, used);
    }

    #[test]
    fn every_ending_has_its_code() {
        let failed = |step| Outcome::Failed {
            failure: Failure::new(step, "x", "x"),
        };
        let text = String::new;
        let outcomes = [
            (Outcome::Succeeded, 0),
            (failed(Step::Validate), 1),
            (failed(Step::Execute), 1),
            (failed(Step::Verify), 5),
            (failed(Step::Hook), 1),
            (failed(Step::Commit), 1),
            (Outcome::Cancelled, 130),
            (Outcome::TimedOut { message: text() }, 124),
            (Outcome::Denied { message: text() }, 6),
            (Outcome::Unknown { why: text() }, 9),
        ];
        for (outcome, code) in &outcomes {
            assert_eq!(
                Exit::of(Ending::Outcome(outcome)).code(),
                *code,
                "{outcome:?}"
            );
        }
        let kinds = [
            (Kind::Internal, 1),
            (Kind::Usage, 2),
            (Kind::NotFound, 3),
            (Kind::Definition, 4),
            (Kind::Blocked, 6),
            (Kind::Unreachable, 7),
            (Kind::Conflict, 8),
            (Kind::Open, 9),
        ];
        for (kind, code) in kinds {
            assert_eq!(Exit::of(Ending::Refused(kind)).code(), code, "{kind:?}");
        }
    }
}
