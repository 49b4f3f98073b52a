//! The plain values that travel between this room and the rest: object ids, run ids and paths.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Longest accepted path in bytes, the same bound as Linux's `PATH_MAX`.
pub const PATH_BYTES_MAX: usize = 4096;

/// Deepest accepted path in components; it bounds every recursion over trees.
pub const PATH_COMPONENTS_MAX: usize = 256;

/// Why a text is not an object id, a run id or a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Not forty hexadecimal digits.
    #[error("`{0}` is not an object id of forty hexadecimal digits")]
    Oid(String),
    /// Not twenty-six digits or capital letters.
    #[error("`{0}` is not a run id of 26 digits and capital letters")]
    RunId(String),
    /// Not a path inside the work tree.
    #[error("`{path}` is not a path inside the repository: {why}")]
    Path {
        /// The path in its escaped form.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Not a full reference name.
    #[error("`{0}` is not a full reference name")]
    Reference(String),
}

/// The id of a git object: forty lower-case hexadecimal digits (SHA-1).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Oid(String);

impl Oid {
    /// The forty digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id as the git library has it.
    pub fn raw(&self) -> git2::Oid {
        // The constructor has checked the digits, so the all-zero id can never be reached.
        git2::Oid::from_str(&self.0).unwrap_or(git2::Oid::ZERO_SHA1)
    }
}

impl From<git2::Oid> for Oid {
    fn from(raw: git2::Oid) -> Self {
        Self(raw.to_string())
    }
}

impl FromStr for Oid {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        if text.len() == 40 && text.bytes().all(|b| b.is_ascii_hexdigit()) {
            Ok(Self(text.to_ascii_lowercase()))
        } else {
            Err(NameError::Oid(text.escape_default().to_string()))
        }
    }
}

impl TryFrom<String> for Oid {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<Oid> for String {
    fn from(oid: Oid) -> Self {
        oid.0
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The id of a run as it may stand in a reference name: a ULID, `[0-9A-Z]{26}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(String);

impl RunId {
    /// The twenty-six characters.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// When the run was accepted, in seconds since 1970, as its ULID says; 0 if it says nothing.
    pub fn accepted_at_s(&self) -> i64 {
        let ms = ulid::Ulid::from_string(&self.0).map_or(0, |id| id.timestamp_ms());
        i64::try_from(ms / 1000).unwrap_or(0)
    }
}

impl FromStr for RunId {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let fits = |b: u8| b.is_ascii_digit() || b.is_ascii_uppercase();
        if text.len() == 26 && text.bytes().all(fits) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NameError::RunId(text.escape_default().to_string()))
        }
    }
}

impl TryFrom<String> for RunId {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> Self {
        id.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A path relative to the root of the work tree, as bytes, with `/` between its components.
///
/// Git paths are bytes, JSON is text. The text form (serde, `Display`, `FromStr`) is the path
/// itself where it is valid UTF-8; a byte that is not, a control character and `%` are written
/// as `%XX`. So the text form is reversible, safe on a terminal, and `50%.md` reads `50%25.md`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RepoPath(Vec<u8>);

impl RepoPath {
    /// A path from its bytes: relative, without empty, `.`, `..` or `.git` components.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, NameError> {
        match Self::flaw(bytes) {
            None => Ok(Self(bytes.to_vec())),
            Some(why) => Err(NameError::Path {
                path: escape(bytes),
                why,
            }),
        }
    }

    /// A path from plain text, taken literally: `%` stands for itself.
    pub fn literal(text: &str) -> Result<Self, NameError> {
        Self::from_bytes(text.as_bytes())
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The path for the file system, still relative.
    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    /// Whether this path is `other` or lies below it, compared by components.
    pub fn is_within(&self, other: &RepoPath) -> bool {
        self.0
            .strip_prefix(other.0.as_slice())
            .is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
    }

    /// The components from the root down.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|b| *b == b'/')
    }

    fn flaw(bytes: &[u8]) -> Option<&'static str> {
        if bytes.is_empty() {
            return Some("it is empty");
        }
        if bytes.len() > PATH_BYTES_MAX {
            return Some("it is longer than 4096 bytes");
        }
        if bytes.contains(&0) {
            return Some("it contains a NUL byte");
        }
        let mut count = 0;
        for part in bytes.split(|b| *b == b'/') {
            count += 1;
            if part.is_empty() {
                return Some("it is absolute or has an empty component");
            }
            if part == b"." || part == b".." {
                return Some("it has a `.` or `..` component");
            }
            if part.eq_ignore_ascii_case(b".git") {
                return Some("it leads into `.git`");
            }
        }
        (count > PATH_COMPONENTS_MAX).then_some("it is more than 256 directories deep")
    }
}

impl FromStr for RepoPath {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        match unescape(text) {
            Some(bytes) => Self::from_bytes(&bytes),
            None => Err(NameError::Path {
                path: text.escape_default().to_string(),
                why: "a `%` is not followed by two hexadecimal digits",
            }),
        }
    }
}

impl TryFrom<String> for RepoPath {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<RepoPath> for String {
    fn from(path: RepoPath) -> Self {
        escape(&path.0)
    }
}

impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape(&self.0))
    }
}

/// A full reference name, `HEAD` or `refs/…`, in the form git accepts.
///
/// # Errors
/// Git would refuse it.
pub fn checked_refname(name: &str) -> Result<&str, NameError> {
    let shaped = name == "HEAD" || name.starts_with("refs/");
    if shaped && git2::Reference::is_valid_name(name) {
        Ok(name)
    } else {
        Err(NameError::Reference(name.escape_default().to_string()))
    }
}

/// A path as text: what is no printable character is escaped.
pub fn escape(bytes: &[u8]) -> String {
    use fmt::Write as _;
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c == '%' || c.is_control() {
                let mut utf8 = [0; 4];
                for b in c.encode_utf8(&mut utf8).bytes() {
                    let _ = write!(out, "%{b:02X}");
                }
            } else {
                out.push(c);
            }
        }
        for b in chunk.invalid() {
            let _ = write!(out, "%{b:02X}");
        }
    }
    out
}

fn unescape(text: &str) -> Option<Vec<u8>> {
    let digit = |b: u8| char::from(b).to_digit(16);
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        if b == b'%' {
            let high = digit(bytes.next()?)?;
            let low = digit(bytes.next()?)?;
            out.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            out.push(b);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_survives_json() {
        for bytes in [
            &b"plain/file.md"[..],
            b"50%.md",
            b"caf\xe9/\xff\xfe",
            b"new\nline\x1b[2J",
            "ü/\u{2028}\u{202e}".as_bytes(),
        ] {
            let path = RepoPath::from_bytes(bytes).unwrap();
            let json = serde_json::to_string(&path).unwrap();
            assert_eq!(serde_json::from_str::<RepoPath>(&json).unwrap(), path);
            assert!(!path.to_string().chars().any(char::is_control));
        }
    }

    #[test]
    fn hostile_paths_are_refused() {
        for bad in [
            "",
            "/etc/passwd",
            "//etc",
            "a/../b",
            "..",
            ".",
            "./x",
            "a//b",
            "a/",
            ".git/config",
            ".GIT/config",
            "sub/.git/hooks/pre-commit",
            "a\0b",
        ] {
            assert!(RepoPath::literal(bad).is_err(), "{bad:?}");
        }
        assert!(RepoPath::literal(&"x".repeat(4097)).is_err());
        assert!(RepoPath::literal(&"a/".repeat(400)).is_err());
        assert!("a%2".parse::<RepoPath>().is_err());
        assert!("a%2f..%2fb".parse::<RepoPath>().is_err());
    }

    #[test]
    fn ids_are_strict() {
        assert!("01JC0000000000000000000000".parse::<RunId>().is_ok());
        for bad in [
            "",
            "..",
            "01JC000000000000000000000",
            "01jc0000000000000000000000",
        ] {
            assert!(bad.parse::<RunId>().is_err(), "{bad:?}");
        }
        assert!("-x".parse::<Oid>().is_err());
        for bad in [
            "-x",
            "main",
            "refs/heads/-x/..",
            "refs/heads/a.lock",
            "refs/heads/a b",
        ] {
            assert!(checked_refname(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn prefixes_are_whole_components() {
        let path = |t| RepoPath::literal(t).unwrap();
        assert!(path("root/a").is_within(&path("root")));
        assert!(path("root").is_within(&path("root")));
        assert!(!path("root-evil/a").is_within(&path("root")));
    }
}
