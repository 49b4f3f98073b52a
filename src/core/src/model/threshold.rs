//! How many of the last runs must have failed before people are notified.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Most runs that are looked at.
pub const RUNS_MAX: u8 = 100;

/// So many failures among the last so many ended runs: `2 of 5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Threshold {
    /// Failures, 1 or more.
    failures: u8,
    /// Runs, from `failures` to [`RUNS_MAX`].
    runs: u8,
}

impl Default for Threshold {
    fn default() -> Threshold {
        Threshold::EACH
    }
}

impl Threshold {
    /// The first failure.
    pub const EACH: Threshold = Threshold {
        failures: 1,
        runs: 1,
    };

    /// Returns true if the first failure reaches it.
    pub fn is_each(&self) -> bool {
        *self == Threshold::EACH
    }

    /// How many of the last runs count.
    pub fn runs(self) -> usize {
        usize::from(self.runs)
    }

    /// Returns true if these runs, the newest last, have enough failures.
    pub fn is_reached(self, failed: impl DoubleEndedIterator<Item = bool>) -> bool {
        let failures = failed.rev().take(self.runs()).filter(|failed| *failed);
        failures.count() >= usize::from(self.failures)
    }

    /// Successes in a row after which no earlier failure can count towards it again.
    pub fn successes(self) -> usize {
        self.runs().saturating_sub(usize::from(self.failures)) + 1
    }
}

/// Why a text is no threshold, as the end of a sentence about it.
pub type ThresholdError = &'static str;

impl FromStr for Threshold {
    type Err = ThresholdError;

    /// `2 of 5`, or `3` for three failures in a row.
    fn from_str(text: &str) -> Result<Threshold, ThresholdError> {
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let (failures, runs) = text.split_once(" of ").unwrap_or((text, text));
        match (number(failures), number(runs)) {
            (Some(0), Some(_)) => Err("needs at least one failure"),
            (Some(_), Some(runs)) if runs > u64::from(RUNS_MAX) => {
                Err("looks at more than 100 runs")
            }
            (Some(failures), Some(runs)) if failures > runs => {
                Err("needs more failures than there are runs")
            }
            (Some(failures), Some(runs)) => Ok(Threshold {
                failures: u8::try_from(failures).unwrap_or(RUNS_MAX),
                runs: u8::try_from(runs).unwrap_or(RUNS_MAX),
            }),
            _ => Err("is neither a number of failures nor `N of M`"),
        }
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Threshold { failures, runs } if failures == runs => write!(f, "{failures}"),
            Threshold { failures, runs } => write!(f, "{failures} of {runs}"),
        }
    }
}
