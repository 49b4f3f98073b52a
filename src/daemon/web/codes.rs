//! Codes that log in once, soon, and as the user who asked for them.

use super::secret::Digest;

/// How long a code can be used.
pub(super) const LIFETIME_MS: u64 = 60_000;
/// Codes of one user; one more drops the oldest.
const OF_USER_MAX: usize = 8;
/// Codes of all users.
const ALL_MAX: usize = 256;

/// Where the page is served, and for how long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Door {
    /// Its port; 0 where it is not served.
    pub(crate) port: u16,
    /// Whether the configuration holds it open. Else its sessions end with it: anybody may take its port then.
    pub(crate) stays: bool,
}

/// Who logs in with a code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant {
    /// The user who asked for it.
    pub(crate) uid: u32,
    /// Their groups.
    pub(crate) groups: Vec<u32>,
    /// Whether the session may change nothing.
    pub(crate) read_only: bool,
    /// Where the page is served.
    pub(crate) door: Door,
}

/// Codes that nobody has used yet, oldest first.
#[derive(Debug, Default)]
pub(super) struct Codes(Vec<(Digest, Grant, u64)>);

impl Codes {
    /// Keeps a code; false where too many users have one.
    pub(super) fn add(&mut self, code: Digest, grant: Grant, now_ms: u64) -> bool {
        self.expire(now_ms);
        let of_user = |(_, other, _): &(Digest, Grant, u64)| other.uid == grant.uid;
        if self.0.iter().filter(|one| of_user(one)).count() >= OF_USER_MAX
            && let Some(oldest) = self.0.iter().position(of_user)
        {
            self.0.remove(oldest);
        }
        if self.0.len() >= ALL_MAX {
            return false;
        }
        self.0
            .push((code, grant, now_ms.saturating_add(LIFETIME_MS)));
        true
    }

    /// Uses a code, which is gone then.
    pub(super) fn redeem(&mut self, code: Digest, now_ms: u64) -> Option<Grant> {
        self.expire(now_ms);
        let at = self.0.iter().position(|(known, _, _)| *known == code)?;
        Some(self.0.remove(at).1)
    }

    /// Drops the codes of this user, or all.
    pub(super) fn drop_of(&mut self, uid: Option<u32>) {
        self.0
            .retain(|(_, grant, _)| uid.is_some_and(|uid| grant.uid != uid));
    }

    fn expire(&mut self, now_ms: u64) {
        self.0.retain(|(_, _, until_ms)| now_ms < *until_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(uid: u32) -> Grant {
        Grant {
            uid,
            groups: vec![uid],
            read_only: false,
            door: Door::default(),
        }
    }

    #[test]
    fn a_code_works_once_and_for_a_minute() {
        let mut codes = Codes::default();
        let (first, second) = (Digest::of("a"), Digest::of("b"));
        assert!(codes.add(first, grant(1), 0) && codes.add(second, grant(2), 0));
        assert_eq!(codes.redeem(Digest::of("c"), 1), None);
        assert_eq!(codes.redeem(first, LIFETIME_MS - 1), Some(grant(1)));
        assert_eq!(codes.redeem(first, LIFETIME_MS - 1), None);
        assert_eq!(codes.redeem(second, LIFETIME_MS), None);
    }

    #[test]
    fn nobody_takes_the_codes_of_others() {
        let mut codes = Codes::default();
        assert!(codes.add(Digest::of("kept"), grant(1), 0));
        for number in 0..1_000 {
            codes.add(Digest::of(&format!("{number}")), grant(2), 0);
        }
        assert_eq!(codes.0.len(), 1 + OF_USER_MAX);
        assert!(codes.redeem(Digest::of("999"), 0).is_some());
        for uid in 3..1_000 {
            codes.add(Digest::of(&format!("of {uid}")), grant(uid), 0);
        }
        assert_eq!(codes.0.len(), ALL_MAX);
        assert!(codes.redeem(Digest::of("kept"), 0).is_some());
        codes.drop_of(Some(3));
        assert_eq!(codes.redeem(Digest::of("of 3"), 0), None);
        codes.drop_of(None);
        assert!(codes.0.is_empty());
    }
}
