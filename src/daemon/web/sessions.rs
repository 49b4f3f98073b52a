//! Who is logged in: sessions by the digests of their tokens, a bounded number of them.

use std::collections::BTreeMap;

use super::codes::{Door, Grant};
use super::secret::Digest;
use crate::model::{Timestamp, WEB_GROUPS_MAX, WebSession};

/// How long a session lasts.
pub(super) const LIFETIME_MS: u64 = 12 * 3_600_000;
/// Sessions of one user; one more ends the oldest.
const OF_USER_MAX: usize = 16;
/// Sessions of all users.
const ALL_MAX: usize = 512;

/// Both clocks. A session ends by the one that is further, so that none can be set back to prolong it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    pub(super) wall: Timestamp,
    pub(super) monotonic_ms: u64,
}

#[derive(Debug)]
struct Held {
    session: WebSession,
    /// When it ends by the monotonic clock.
    until_ms: u64,
    /// Whether it ends with its door, and is stored nowhere.
    with_door: bool,
}

impl Held {
    fn of(session: WebSession, now: Now) -> Held {
        let left = session.expires_at.millis_since(now.wall).min(LIFETIME_MS);
        Held {
            session,
            until_ms: now.monotonic_ms.saturating_add(left),
            with_door: false,
        }
    }

    fn is_over(&self, now: Now) -> bool {
        now.wall >= self.session.expires_at || now.monotonic_ms >= self.until_ms
    }
}

/// All sessions.
#[derive(Debug, Default)]
pub(super) struct Sessions(BTreeMap<Digest, Held>);

impl Sessions {
    /// Takes over what was stored, expired ones too: the next login drops them from the store.
    pub(super) fn load(&mut self, stored: Vec<WebSession>, now: Now) {
        for session in stored {
            if let Some(digest) = Digest::parse(&session.token_digest) {
                self.0.insert(digest, Held::of(session, now));
            }
        }
    }

    /// Begins a session; with it those that end in its favour. `None`: too many users are logged in.
    pub(super) fn begin(
        &mut self,
        token: Digest,
        grant: &Grant,
        now: Now,
    ) -> Option<(WebSession, Vec<String>)> {
        let mut ended = self.take(|held| held.is_over(now));
        let of_user = self.0.iter();
        let mut of_user: Vec<(Timestamp, Digest)> = of_user
            .filter(|(_, held)| held.session.uid == grant.uid)
            .map(|(digest, held)| (held.session.begun_at, *digest))
            .collect();
        of_user.sort_unstable();
        let surplus = (of_user.len() + 1).saturating_sub(OF_USER_MAX);
        for (_, oldest) in of_user.into_iter().take(surplus) {
            self.0.remove(&oldest);
            ended.push(oldest.hex());
        }
        if self.0.len() >= ALL_MAX {
            return None;
        }
        let mut groups = grant.groups.clone();
        groups.truncate(WEB_GROUPS_MAX);
        let session = WebSession {
            token_digest: token.hex(),
            uid: grant.uid,
            groups,
            read_only: grant.read_only,
            port: grant.door.port,
            begun_at: now.wall,
            expires_at: now.wall.plus_millis(LIFETIME_MS),
        };
        let held = Held {
            with_door: !grant.door.stays,
            ..Held::of(session.clone(), now)
        };
        self.0.insert(token, held);
        Some((session, ended))
    }

    /// The session of a token, where it has not ended and began at this door.
    pub(super) fn find(&self, token: Digest, door: Door, now: Now) -> Option<&WebSession> {
        let held = self.0.get(&token).filter(|held| !held.is_over(now))?;
        let is_of_door = held.session.port == door.port && held.with_door != door.stays;
        is_of_door.then_some(&held.session)
    }

    /// Ends one; whether there was one.
    pub(super) fn end(&mut self, token: Digest) -> bool {
        self.0.remove(&token).is_some()
    }

    /// Ends those that end with their door.
    pub(super) fn end_with_door(&mut self) {
        self.take(|held| held.with_door);
    }

    /// Ends those of this user, or all; the digests of their tokens.
    pub(super) fn end_of(&mut self, uid: Option<u32>) -> Vec<String> {
        self.take(|held| uid.is_none_or(|uid| held.session.uid == uid))
    }

    fn take(&mut self, which: impl Fn(&Held) -> bool) -> Vec<String> {
        let mut taken = Vec::new();
        self.0.retain(|digest, held| {
            let goes = which(held);
            if goes {
                taken.push(digest.hex());
            }
            !goes
        });
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(wall: u64, monotonic_ms: u64) -> Now {
        Now {
            wall: Timestamp::from_millis(wall.cast_signed()),
            monotonic_ms,
        }
    }

    const STAYS: Door = Door {
        port: 8_930,
        stays: true,
    };

    fn grant(uid: u32) -> Grant {
        Grant {
            uid,
            groups: (0..1_000).collect(),
            read_only: true,
            door: STAYS,
        }
    }

    #[test]
    fn a_session_ends_by_either_clock_and_no_restart_prolongs_it() {
        let token = Digest::of("t");
        let mut sessions = Sessions::default();
        let (session, ended) = sessions.begin(token, &grant(1), now(1_000, 0)).unwrap();
        assert!(ended.is_empty() && session.read_only);
        assert_eq!(session.groups.len(), WEB_GROUPS_MAX);
        let last = LIFETIME_MS - 1;
        assert!(
            sessions
                .find(token, STAYS, now(1_000 + last, last))
                .is_some()
        );
        assert!(
            sessions
                .find(token, STAYS, now(1_001 + last, last))
                .is_none()
        );
        // The wall's clock was set back.
        assert!(sessions.find(token, STAYS, now(0, LIFETIME_MS)).is_none());
        let mut restarted = Sessions::default();
        restarted.load(vec![session.clone()], now(1_000 + last, 7));
        assert!(restarted.find(token, STAYS, now(1_000 + last, 7)).is_some());
        assert!(restarted.find(token, STAYS, now(1_000, 8)).is_none());
        restarted.load(vec![session], now(0, 0));
        assert!(restarted.find(token, STAYS, now(0, LIFETIME_MS)).is_none());
    }

    #[test]
    fn there_are_only_so_many_and_nobody_ends_those_of_others() {
        let mut sessions = Sessions::default();
        let mut begin = |token: &str, uid, at| {
            sessions
                .begin(Digest::of(token), &grant(uid), now(at, at))
                .map(|(_, ended)| ended)
        };
        assert_eq!(begin("kept", 1, 0), Some(vec![]));
        for number in 0..OF_USER_MAX as u64 {
            assert_eq!(begin(&format!("{number}"), 2, number), Some(vec![]));
        }
        let oldest = Digest::of("0").hex();
        assert_eq!(begin("one more", 2, 99), Some(vec![oldest]));
        for uid in 3..1_000 {
            begin(&format!("of {uid}"), uid, 99);
        }
        assert_eq!(begin("too many", 5_000, 99), None);
        // Those that are over make room.
        let after = LIFETIME_MS + 50;
        assert_eq!(begin("later", 5_000, after).unwrap().len(), OF_USER_MAX);
        assert!(
            sessions
                .find(Digest::of("kept"), STAYS, now(after, after))
                .is_none()
        );
        assert_eq!(sessions.end_of(Some(5_000)).len(), 1);
        assert!(!sessions.end(Digest::of("later")));
        assert!(!sessions.end_of(None).is_empty() && sessions.0.is_empty());
    }
}
