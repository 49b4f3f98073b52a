//! Logins that failed are answered later, the more so the more there were.

use std::time::Duration;

/// How long the first failed login waits for its answer.
const FIRST_MS: u64 = 50;
/// How long any of them waits at most.
const MOST_MS: u64 = 2_000;
/// After how long without a failed login all of them are forgotten.
const FORGOTTEN_MS: u64 = 60_000;

/// The failed logins of late, whoever made them: a code says nothing of who tries it.
#[derive(Debug, Default)]
pub(super) struct Failures {
    count: u32,
    last_ms: u64,
}

impl Failures {
    /// Counts one; how long its answer waits.
    pub(super) fn add(&mut self, now_ms: u64) -> Duration {
        if now_ms.saturating_sub(self.last_ms) > FORGOTTEN_MS {
            self.count = 0;
        }
        self.last_ms = now_ms;
        self.count = self.count.saturating_add(1);
        // Somebody who guesses does not fill the log.
        if self.count.is_power_of_two() {
            let count = self.count;
            tracing::warn!(
                count,
                "logins to the web UI fail: the codes are already used, expired or invalid"
            );
        }
        let doubled = FIRST_MS << (self.count - 1).min(16);
        Duration::from_millis(doubled.min(MOST_MS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failed_login_waits_longer_up_to_a_bound_and_for_a_while() {
        let mut failures = Failures::default();
        let waits: Vec<_> = (0..8).map(|_| failures.add(1_000).as_millis()).collect();
        assert_eq!(waits, [50, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
        assert_eq!(failures.add(1_000 + FORGOTTEN_MS).as_millis(), 2_000);
        let later = 1_000 + 2 * FORGOTTEN_MS + 1;
        assert_eq!(failures.add(later).as_millis(), 50);
    }
}
