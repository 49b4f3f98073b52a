//! Questions that clients put to their users, by the state that clients hand back with the answer.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::http::token::random;

/// How long an answer is accepted.
const LIFETIME: Duration = Duration::from_mins(10);

/// Most questions without an answer. The oldest is dropped for a new one, so that a client cannot fill the memory.
const PENDING_MAX: usize = 1_000;

/// Shared by all connections, because a client may answer on another one.
static PENDING: LazyLock<Mutex<Pending>> = LazyLock::new(Mutex::default);

/// Returns the state of a new question about the run with this digest.
pub(super) fn state_of_question(digest: &str) -> String {
    let mut pending = PENDING.lock().unwrap_or_else(PoisonError::into_inner);
    pending.add(digest, tokio::time::Instant::now())
}

/// Returns the digest that a question was about, once: `None` for a state that is unknown, used or expired.
pub(super) fn take(state: &str) -> Option<String> {
    let mut pending = PENDING.lock().unwrap_or_else(PoisonError::into_inner);
    pending.take(state, tokio::time::Instant::now())
}

#[derive(Default)]
struct Pending(HashMap<String, (String, Instant)>);

impl Pending {
    fn add(&mut self, digest: &str, now: Instant) -> String {
        self.0.retain(|_, (_, asked_at)| now - *asked_at < LIFETIME);
        if self.0.len() >= PENDING_MAX {
            let oldest = self.0.iter().min_by_key(|(_, (_, asked_at))| *asked_at);
            if let Some(oldest) = oldest.map(|(state, _)| state.clone()) {
                self.0.remove(&oldest);
            }
        }
        let state = random();
        self.0.insert(state.clone(), (digest.to_owned(), now));
        state
    }

    fn take(&mut self, state: &str, now: Instant) -> Option<String> {
        let (digest, asked_at) = self.0.remove(state)?;
        (now - asked_at < LIFETIME).then_some(digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_counts_once_and_for_ten_minutes() {
        let (mut pending, now) = (Pending::default(), tokio::time::Instant::now());
        let state = pending.add("d", now);
        assert_eq!(pending.take(&state, now).as_deref(), Some("d"));
        assert_eq!(pending.take(&state, now), None);
        let state = pending.add("d", now);
        assert_eq!(pending.take(&state, now + LIFETIME), None);
    }

    #[test]
    fn the_oldest_question_gives_way() {
        let (mut pending, now) = (Pending::default(), tokio::time::Instant::now());
        let oldest = pending.add("d", now);
        for _ in 0..PENDING_MAX {
            pending.add("d", now + Duration::from_secs(1));
        }
        assert_eq!(pending.0.len(), PENDING_MAX);
        assert_eq!(pending.take(&oldest, now), None);
    }
}
