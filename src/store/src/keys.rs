//! Keys of the one tree: a byte for the kind, then what sorts within it.
//!
//! All records of one run lie side by side, so that a commit touches few pages.

use sha2::{Digest, Sha256};

use crate::model::{RunId, SkillRef, Timestamp};
use crate::protocol::Counted;

/// Version of the store.
pub(super) const VERSION: &[u8] = b"v";
/// How many batches were committed.
pub(super) const COMMITS: &[u8] = b"c";
/// The last fencing token.
pub(super) const FENCE: &[u8] = b"f";

/// Counts of ended runs by day. The byte alone says that they count every run.
pub(super) const COUNTS: u8 = b'g';
/// Counts of ended runs by hour. The byte alone says that hours, and all runs of a day together, count every run.
pub(super) const RUN_HOURS: u8 = b'u';
/// Runs that are not closed.
pub(super) const ACTIVE: u8 = b'a';
/// Lines of finished runs.
pub(super) const DONE: u8 = b'd';
/// Counts of slots by half hours. The byte alone says that they count every row, and that of each skill the newest run
/// is known.
pub(super) const HOURS: u8 = b'h';
/// Idempotency keys.
pub(super) const KEY: u8 = b'k';
/// The newest run of each skill that has ended.
pub(super) const NEWEST: u8 = b'l';
/// What is to be told of schedules and skills.
pub(super) const NOTICES: u8 = b'n';
/// Branches whose last push failed.
pub(super) const FAILED_PUSH: u8 = b'p';
/// Specifications and journals.
pub(super) const RUN: u8 = b'r';
/// What is remembered of schedules.
pub(super) const SCHEDULE: u8 = b's';
/// Rows of the ledger of slots.
pub(super) const SLOT: u8 = b't';
/// Sessions of the web page.
pub(super) const WEB_SESSION: u8 = b'w';

/// Bytes of a day: `2026-11-25`.
const DAY_BYTES: usize = 10;

/// Bytes of an hour: `2026-11-25T05`.
pub(super) const HOUR_BYTES: usize = 13;

const SPEC: u8 = 0;
const ENTRIES: u8 = 1;

/// Keys from the first up to, not including, the second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyRange {
    /// The first key.
    pub(super) from: Vec<u8>,
    /// The key after the last.
    pub(super) to: Vec<u8>,
}

impl KeyRange {
    /// All keys of one kind.
    pub(super) fn kind(kind: u8) -> KeyRange {
        KeyRange {
            from: vec![kind],
            to: vec![kind + 1],
        }
    }

    /// Keys of one kind whose run is older than `before`.
    pub(super) fn runs_before(kind: u8, before: Option<RunId>) -> KeyRange {
        let mut range = KeyRange::kind(kind);
        if let Some(run) = before {
            range.to = of_run(kind, run);
        }
        range
    }

    /// The rows of one schedule whose first slot is before an instant.
    pub(super) fn ledger(schedule: &str, before: Option<Timestamp>) -> KeyRange {
        let from = of_ledger(schedule);
        let mut to = from.clone();
        to.extend_from_slice(&[u8::MAX; 9]);
        if let Some(before) = before {
            to = slot(schedule, before);
        }
        KeyRange { from, to }
    }

    /// The counts of a day or an hour whose subjects begin so.
    pub(super) fn counts(at: &str, of: &str) -> KeyRange {
        let from = counts(at, of);
        let mut to = from.clone();
        to.push(u8::MAX);
        KeyRange { from, to }
    }

    /// The counts of the days or hours before this one.
    pub(super) fn counts_before(at: &str) -> KeyRange {
        let to = counts(at, "");
        let mut from = to.clone();
        from.truncate(1);
        // The byte alone is no counts.
        from.push(0);
        KeyRange { from, to }
    }

    /// All that is kept under a run: its specification and its journal.
    pub(super) fn run(run: RunId) -> KeyRange {
        let from = of_run(RUN, run);
        let mut to = from.clone();
        to.push(u8::MAX);
        KeyRange { from, to }
    }

    /// The journal of one run.
    pub(super) fn journal(run: RunId) -> KeyRange {
        let mut from = of_run(RUN, run);
        let mut to = from.clone();
        from.push(ENTRIES);
        to.push(ENTRIES + 1);
        KeyRange { from, to }
    }
}

/// The key of a run within a kind that has one record a run.
pub(super) fn of_run(kind: u8, run: RunId) -> Vec<u8> {
    let mut key = Vec::with_capacity(22);
    key.push(kind);
    key.extend_from_slice(&run.to_bytes());
    key
}

/// The key of a specification.
pub(super) fn spec(run: RunId) -> Vec<u8> {
    let mut key = of_run(RUN, run);
    key.push(SPEC);
    key
}

/// The key of consecutive events, by the number of the first.
pub(super) fn entries(run: RunId, first: u32) -> Vec<u8> {
    let mut key = of_run(RUN, run);
    key.push(ENTRIES);
    key.extend_from_slice(&first.to_be_bytes());
    key
}

/// The key of an idempotency key, whose text may be longer than keys should be.
pub(super) fn idempotency(text: &str) -> Vec<u8> {
    let mut key = vec![KEY];
    key.extend_from_slice(&Sha256::digest(text.as_bytes())[..20]);
    key
}

/// The key of what is remembered of a schedule.
pub(super) fn schedule(id: &str) -> Vec<u8> {
    let mut key = vec![SCHEDULE];
    key.extend_from_slice(id.as_bytes());
    key
}

/// The key of what is to be told of a schedule or a skill.
pub(super) fn notices(subject: &str) -> Vec<u8> {
    let mut key = vec![NOTICES];
    key.extend_from_slice(subject.as_bytes());
    key
}

/// The key of a branch whose last push failed.
pub(super) fn failed_push(key: &str) -> Vec<u8> {
    [&[FAILED_PUSH], key.as_bytes()].concat()
}

/// The key of a session of the web page, by the digest of its token.
pub(super) fn web_session(token_digest: &str) -> Vec<u8> {
    [&[WEB_SESSION], token_digest.as_bytes()].concat()
}

/// The key of what is counted of something on a day or in an hour.
pub(super) fn counts(at: &str, of: &str) -> Vec<u8> {
    let kind = if at.len() == HOUR_BYTES {
        RUN_HOURS
    } else {
        COUNTS
    };
    [&[kind], at.as_bytes(), of.as_bytes()].concat()
}

/// The day or hour, and what was counted then, that a key names.
pub(super) fn counts_of(key: &[u8]) -> Option<(&str, Counted)> {
    let (kind, text) = key.split_first()?;
    let bytes = if *kind == RUN_HOURS {
        HOUR_BYTES
    } else {
        DAY_BYTES
    };
    let (at, of) = std::str::from_utf8(text).ok()?.split_at_checked(bytes)?;
    Some((at, Counted::parse(of)?))
}

/// The key of the counts of half a day, of all schedules or of those of a worker; ids hold no NUL.
pub(super) fn hours(worker: &str, half_day: Timestamp) -> Vec<u8> {
    named_at(HOURS, worker, half_day)
}

/// The worker and the half day that such a key names.
pub(super) fn hours_of(key: &[u8]) -> Option<(&str, Timestamp)> {
    slot_of(key)
}

/// The first key behind the counts of a worker.
pub(super) fn after_hours(worker: &str) -> Vec<u8> {
    [&[HOURS], worker.as_bytes(), &[1]].concat()
}

/// The key of a skill's newest run.
pub(super) fn newest(skill: &SkillRef) -> Vec<u8> {
    [&[NEWEST], skill.to_string().as_bytes()].concat()
}

/// The key of a row of the ledger, by its first slot; ids hold no NUL.
pub(super) fn slot(schedule: &str, from: Timestamp) -> Vec<u8> {
    named_at(SLOT, schedule, from)
}

fn named_at(kind: u8, name: &str, at: Timestamp) -> Vec<u8> {
    // Times before 1970 sort before those after it.
    let sorted = at.millis().cast_unsigned() ^ (1 << 63);
    [&[kind], name.as_bytes(), &[0], &sorted.to_be_bytes()].concat()
}

fn of_ledger(schedule: &str) -> Vec<u8> {
    [&[SLOT], schedule.as_bytes(), &[0]].concat()
}

/// The schedule and the first slot that the key of a row names.
pub(super) fn slot_of(key: &[u8]) -> Option<(&str, Timestamp)> {
    let (id, sorted) = key.get(1..)?.split_last_chunk::<8>()?;
    let id = std::str::from_utf8(id.strip_suffix(&[0])?).ok()?;
    let millis = (u64::from_be_bytes(*sorted) ^ (1 << 63)).cast_signed();
    Some((id, Timestamp::from_millis(millis)))
}

/// The run that a key of a run names.
pub(super) fn run_of(key: &[u8]) -> Option<RunId> {
    let bytes: [u8; 16] = key.get(1..17)?.try_into().ok()?;
    Some(RunId::from_bytes(bytes))
}

/// What a key stands for, for messages and checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Version of the store.
    Version,
    /// Number of commits.
    Commits,
    /// The last fencing token.
    Fence,
    /// A run that is not closed.
    Active(RunId),
    /// The line of a finished run.
    Done(RunId),
    /// An idempotency key.
    Key,
    /// A specification.
    Spec(RunId),
    /// Events of a run.
    Entries(RunId),
    /// What is remembered of a schedule.
    Schedule,
    /// A row of the ledger, by its first slot.
    Slot(Timestamp),
    /// What is to be told of a schedule or a skill.
    Notices,
    /// Counts of a day or an hour; without one, that they count every run.
    Counts,
    /// Counts of half a day; without one, that they count every row.
    Hours,
    /// The newest run of a skill.
    Newest,
    /// A branch whose last push failed.
    FailedPush,
    /// A session of the web page.
    WebSession,
}

impl Kind {
    /// Reads a key; `None` when this version writes no such key.
    pub(super) fn of(key: &[u8]) -> Option<Kind> {
        match (key.first()?, key.len()) {
            (b'v', 1) => Some(Kind::Version),
            (b'c', 1) => Some(Kind::Commits),
            (b'f', 1) => Some(Kind::Fence),
            (&ACTIVE, 17) => run_of(key).map(Kind::Active),
            (&DONE, 17) => run_of(key).map(Kind::Done),
            (&KEY, 21) => Some(Kind::Key),
            (&RUN, 18) if key[17] == SPEC => run_of(key).map(Kind::Spec),
            (&SCHEDULE, 2..) => Some(Kind::Schedule),
            (&COUNTS | &RUN_HOURS, 1) => Some(Kind::Counts),
            (&COUNTS | &RUN_HOURS, 2..) => counts_of(key).map(|_| Kind::Counts),
            (&HOURS, 1) => Some(Kind::Hours),
            (&HOURS, 10..) => hours_of(key).map(|_| Kind::Hours),
            (&NEWEST, 2..) => Some(Kind::Newest),
            (&NOTICES, 2..) => Some(Kind::Notices),
            (&FAILED_PUSH, 2..) => Some(Kind::FailedPush),
            (&WEB_SESSION, 2..) => Some(Kind::WebSession),
            (&SLOT, 10..) => slot_of(key).map(|(_, from)| Kind::Slot(from)),
            (&RUN, 22) if key[17] == ENTRIES => run_of(key).map(Kind::Entries),
            _ => None,
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Kind::Version => f.write_str("the version"),
            Kind::Commits => f.write_str("the number of commits"),
            Kind::Fence => f.write_str("the fencing token"),
            Kind::Active(run) => write!(f, "the marker of active run {run}"),
            Kind::Done(run) => write!(f, "the line of finished run {run}"),
            Kind::Key => f.write_str("an idempotency key"),
            Kind::Spec(run) => write!(f, "the specification of run {run}"),
            Kind::Entries(run) => write!(f, "the journal of run {run}"),
            Kind::Schedule => f.write_str("the state of a schedule"),
            Kind::Notices => f.write_str("the notices of a schedule or a skill"),
            Kind::Counts => f.write_str("the counts of a day or an hour"),
            Kind::Hours => f.write_str("the counts of slots"),
            Kind::Newest => f.write_str("the newest run of a skill"),
            Kind::FailedPush => f.write_str("a branch whose last push failed"),
            Kind::WebSession => f.write_str("a session of the web page"),
            Kind::Slot(from) => write!(f, "the slot {}", from.rfc3339()),
        }
    }
}
