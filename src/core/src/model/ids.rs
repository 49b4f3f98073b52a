//! Identifiers, each parsed once and never reused.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::time::Timestamp;

/// How many characters of a run id are shown where space is short.
pub const SHORT_CHARS: usize = 8;

/// Why a text is not an identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Not 26 characters of Crockford's base 32.
    #[error("`{0}` is not a run id: 26 letters and digits are expected")]
    Run(String),
    /// A name that could leave its directory or forge output.
    #[error(
        "`{0}` is not a name: it must not be empty, hold `/`, `\\`, `..` or control characters, or exceed 128 bytes"
    )]
    Name(String),
    /// No `/` between worker and skill, or an empty side.
    #[error("`{0}` is not `worker/skill`")]
    SkillRef(String),
}

/// One invocation of a skill; a ULID, so that ids sort by time of submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(ulid::Ulid);

impl RunId {
    /// Builds the id that follows `newest`: later in time when the clock allows it, greater always.
    pub fn following(newest: Option<RunId>, now: Timestamp, random: u128) -> RunId {
        let fresh = ulid::Ulid::from_parts(now.millis().max(0).unsigned_abs(), random);
        match newest {
            Some(RunId(last)) if last >= fresh => RunId(last.increment().unwrap_or(fresh)),
            _ => RunId(fresh),
        }
    }

    /// Time of submission as the id records it.
    pub fn timestamp(self) -> Timestamp {
        Timestamp::from_millis(i64::try_from(self.0.timestamp_ms()).unwrap_or(i64::MAX))
    }

    /// The lowest id of an instant: all runs that were submitted before it are below.
    pub fn lowest_of(at: Timestamp) -> RunId {
        // An id holds 48 bits of it.
        let millis = at.millis().clamp(0, (1 << 48) - 1);
        RunId(ulid::Ulid::from_parts(millis.unsigned_abs(), 0))
    }

    /// The last 8 characters, lower case, as tables show it.
    pub fn short(self) -> String {
        let full = self.to_string();
        full[full.len() - SHORT_CHARS..].to_ascii_lowercase()
    }

    /// Whether `fragment` is a prefix or suffix of this id, ignoring case.
    pub fn matches(self, fragment: &str) -> bool {
        let wanted = fragment.to_ascii_uppercase();
        let full = self.to_string();
        !wanted.is_empty() && (full.starts_with(&wanted) || full.ends_with(&wanted))
    }

    /// The 16 bytes, big endian, so that store keys sort like ids.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.0.to_be_bytes()
    }

    /// The inverse of [`RunId::to_bytes`].
    pub fn from_bytes(bytes: [u8; 16]) -> RunId {
        RunId(ulid::Ulid(u128::from_be_bytes(bytes)))
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for RunId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<RunId, IdError> {
        ulid::Ulid::from_string(&text.to_ascii_uppercase())
            .map(RunId)
            .map_err(|_| IdError::Run(text.chars().take(64).collect()))
    }
}

impl Serialize for RunId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RunId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<RunId, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl schemars::JsonSchema for RunId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RunId".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "One invocation of a skill; a ULID.",
            "pattern": "^[0-7][0-9A-HJKMNP-TV-Z]{25}$"
        })
    }
}

/// Checks that a worker's or skill's name can be shown and used in a path.
pub fn parse_name(text: &str) -> Result<String, IdError> {
    let refused = text.is_empty()
        || text.len() > 128
        || text.contains(['/', '\\'])
        || text.contains("..")
        || text == "."
        || text.starts_with('-')
        || text.chars().any(char::is_control);
    if refused {
        Err(IdError::Name(text.chars().take(64).collect()))
    } else {
        Ok(text.to_owned())
    }
}

/// The address of a skill: `worker/skill`.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct SkillRef {
    /// Id of the worker that owns the skill.
    pub worker: String,
    /// Id of the skill within its worker.
    pub skill: String,
}

impl fmt::Display for SkillRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.worker, self.skill)
    }
}

impl FromStr for SkillRef {
    type Err = IdError;

    fn from_str(text: &str) -> Result<SkillRef, IdError> {
        let (worker, skill) = text
            .split_once('/')
            .ok_or_else(|| IdError::SkillRef(text.to_owned()))?;
        Ok(SkillRef {
            worker: parse_name(worker)?,
            skill: parse_name(skill)?,
        })
    }
}

/// Name of a run's thread, `T-YYYYMMDD-HHMMSS-<slug>`.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct ThreadId(String);

impl ThreadId {
    /// Builds the id of a run's thread: UTC time of submission and a slug that is safe in file names.
    pub fn of(run: RunId, skill: &SkillRef, submitted: Timestamp) -> ThreadId {
        let full = run.to_string().to_ascii_lowercase();
        let slug = format!(
            "{}-{}-{}",
            slug(&skill.worker),
            slug(&skill.skill),
            &full[20..]
        );
        ThreadId(format!("T-{}-{slug}", submitted.utc_compact()))
    }

    /// The id as text, safe as a file stem.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn slug(name: &str) -> String {
    name.chars()
        .take(48)
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                '-'
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_grow_even_when_the_clock_steps_back() {
        let first = RunId::following(None, Timestamp::from_millis(2_000), 7);
        let second = RunId::following(Some(first), Timestamp::from_millis(1_000), 3);
        assert!(second > first);
        assert_eq!(RunId::from_bytes(second.to_bytes()), second);
    }

    #[test]
    fn fragments_match_at_either_end() {
        let id = RunId::following(None, Timestamp::from_millis(1_700_000_000_000), 42);
        assert!(id.matches(&id.short()));
        assert!(id.matches(&id.to_string()[..5]));
        assert!(!id.matches(""));
        assert_eq!(id.to_string().parse::<RunId>(), Ok(id));
    }

    #[test]
    fn names_cannot_leave_their_directory() {
        for bad in ["", "a/b", "..", "a..b", "a\\b", "a\nb", "-x", "."] {
            assert!(parse_name(bad).is_err(), "{bad:?}");
        }
        assert_eq!(parse_name("weekly report").as_deref(), Ok("weekly report"));
    }

    #[test]
    fn thread_ids_are_file_stems() {
        let at = Timestamp::from_millis(1_795_000_000_000);
        let run = RunId::following(None, at, 1);
        let skill = SkillRef {
            worker: "Über/x".into(),
            skill: "weekly".into(),
        };
        let id = ThreadId::of(run, &skill, at);
        assert!(id.as_str().is_ascii() && !id.as_str().contains('/'), "{id}");
        assert!(id.as_str().starts_with("T-2026"), "{id}");
    }
}
