//! The bytes of one record: version, form, body, CRC-32 over key and all of these.
//!
//! ```text
//! byte 0        version of the record, 1
//! byte 1        form: 0 = the body is the payload, 1 = the body names a file that holds it
//! bytes 2..n-4  body, JSON
//! last 4 bytes  CRC-32 (IEEE) of the key followed by everything before, little endian
//! ```
//!
//! The key is part of the sum, so that a record found under another key is found out.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::model::legible::hex;

/// Version of a record's bytes.
pub(super) const RECORD_VERSION: u8 = 1;

/// Most bytes of a record. sled keeps up to 16 records a page and moves a page of 128 KiB or more
/// into a file of its own that it never syncs; this bound keeps every page well below.
pub(super) const RECORD_BYTES_MAX: usize = 4_096;

/// Bytes around a body.
const FRAME_BYTES: usize = 6;

/// Most bytes of a body that stays in the record.
pub(super) const INLINE_BYTES_MAX: usize = RECORD_BYTES_MAX - FRAME_BYTES;

/// Most bytes of a payload in a file.
pub(super) const PAYLOAD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Deepest nesting of a payload; what reads it stops at 128.
const NESTING_MAX: usize = 120;

/// Where a payload lies that does not fit into its record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileRef {
    /// Path relative to the directory of payloads: `<run>/<name>`.
    pub(super) path: String,
    /// Its length.
    pub(super) bytes: u64,
    /// SHA-256 of its content in hex.
    pub(super) sha256: String,
}

impl FileRef {
    /// Names `payload`, which `stem` of `run` is about; equal content has equal names, so that
    /// writing it again never changes a file that a record names already.
    pub(super) fn name(run: &str, stem: &str, payload: &[u8]) -> FileRef {
        let sha256 = hex(&Sha256::digest(payload));
        FileRef {
            path: format!("{run}/{stem}-{}.json", &sha256[..16]),
            bytes: payload.len() as u64,
            sha256,
        }
    }

    /// Why `payload` is not what this names.
    pub(super) fn mismatch(&self, payload: &[u8]) -> Option<String> {
        if payload.len() as u64 != self.bytes {
            let found = payload.len();
            return Some(format!(
                "`{}` has {found} bytes instead of {}",
                self.path, self.bytes
            ));
        }
        (hex(&Sha256::digest(payload)) != self.sha256)
            .then(|| format!("`{}` does not have its SHA-256", self.path))
    }

    /// Whether the path is one that this program gives: one directory, one name, nothing else.
    pub(super) fn is_tame(&self) -> bool {
        let tame = |part: &str| {
            !part.is_empty()
                && !part.starts_with('.')
                && part
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.')
        };
        matches!(self.path.split_once('/'), Some((run, name)) if tame(run) && tame(name))
    }
}

/// A record, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Body<'a> {
    /// The payload itself.
    Inline(&'a [u8]),
    /// The payload lies in a file.
    File(FileRef),
}

/// Why bytes are not a record, or a payload not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum RecordError {
    /// Shorter than its frame.
    #[error("a record has {0} bytes")]
    Short(usize),
    /// The sum does not match.
    #[error("a record does not have its checksum")]
    Checksum,
    /// A later version wrote it.
    #[error("a record has version {0}")]
    Newer(u8),
    /// An unknown form.
    #[error("a record has form {0}")]
    Form(u8),
    /// The payload does not parse.
    #[error("a record does not parse: {0}")]
    Parse(String),
    /// The payload nests too deeply or is too long.
    #[error("{0}")]
    Bound(String),
}

/// A record that holds `payload` itself; at most [`INLINE_BYTES_MAX`] bytes are for the caller to keep.
pub(super) fn inline(key: &[u8], payload: &[u8]) -> Vec<u8> {
    framed(key, 0, payload)
}

/// A record that names a file.
pub(super) fn in_file(key: &[u8], file: &FileRef) -> Result<Vec<u8>, RecordError> {
    Ok(framed(key, 1, &to_json(file)?))
}

fn framed(key: &[u8], form: u8, body: &[u8]) -> Vec<u8> {
    let mut record = Vec::with_capacity(body.len() + FRAME_BYTES);
    record.push(RECORD_VERSION);
    record.push(form);
    record.extend_from_slice(body);
    let sum = checksum(key, &record);
    record.extend_from_slice(&sum.to_le_bytes());
    record
}

/// Takes a record apart.
pub(super) fn open<'a>(key: &[u8], record: &'a [u8]) -> Result<Body<'a>, RecordError> {
    let short = RecordError::Short(record.len());
    let Some((head, sum)) = record.split_last_chunk::<4>() else {
        return Err(short);
    };
    let [version, form, body @ ..] = head else {
        return Err(short);
    };
    if checksum(key, head) != u32::from_le_bytes(*sum) {
        return Err(RecordError::Checksum);
    }
    if *version > RECORD_VERSION {
        return Err(RecordError::Newer(*version));
    }
    match form {
        0 => Ok(Body::Inline(body)),
        1 => Ok(Body::File(from_json(body)?)),
        other => Err(RecordError::Form(*other)),
    }
}

/// A payload as JSON, within every bound that reading it back has.
pub(super) fn to_json<T: Serialize>(value: &T) -> Result<Vec<u8>, RecordError> {
    let json = serde_json::to_vec(value).map_err(|e| RecordError::Parse(e.to_string()))?;
    if json.len() > PAYLOAD_BYTES_MAX {
        return Err(RecordError::Bound(format!(
            "a payload of {} bytes exceeds {PAYLOAD_BYTES_MAX}",
            json.len()
        )));
    }
    if nesting(&json) > NESTING_MAX {
        return Err(RecordError::Bound(format!(
            "a payload nests deeper than {NESTING_MAX}"
        )));
    }
    Ok(json)
}

/// Reads a payload.
pub(super) fn from_json<T: DeserializeOwned>(payload: &[u8]) -> Result<T, RecordError> {
    serde_json::from_slice(payload).map_err(|e| RecordError::Parse(e.to_string()))
}

fn checksum(key: &[u8], record: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(key);
    sum.update(record);
    sum.finalize()
}

/// Deepest nesting of lists and objects in valid JSON.
fn nesting(json: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0_usize);
    let (mut quoted, mut escaped) = (false, false);
    for byte in json {
        match (quoted, escaped, byte) {
            (true, true, _) => escaped = false,
            (true, false, b'\\') => escaped = true,
            (_, false, b'"') => quoted = !quoted,
            (false, _, b'[' | b'{') => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            (false, _, b']' | b'}') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_bound_to_its_key() {
        let record = inline(b"k1", b"{}");
        assert_eq!(open(b"k1", &record), Ok(Body::Inline(b"{}")));
        assert_eq!(open(b"k2", &record), Err(RecordError::Checksum));
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let record = inline(b"key", br#"{"a":[1,2,3]}"#);
        for bit in 0..record.len() * 8 {
            let mut damaged = record.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(open(b"key", &damaged).is_err(), "bit {bit}");
        }
        for end in 0..record.len() {
            assert!(open(b"key", &record[..end]).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn later_versions_and_forms_are_named() {
        let mut newer = vec![RECORD_VERSION + 1, 0, b'1'];
        newer.extend(checksum(b"k", &newer).to_le_bytes());
        assert_eq!(open(b"k", &newer), Err(RecordError::Newer(2)));
        let other = framed(b"k", 7, b"1");
        assert_eq!(open(b"k", &other), Err(RecordError::Form(7)));
    }

    #[test]
    fn what_could_not_be_read_back_is_not_written() {
        let deep = (0..200).fold(serde_json::json!(1), |inner, _| serde_json::json!([inner]));
        assert!(matches!(to_json(&deep), Err(RecordError::Bound(_))));
        assert_eq!(nesting(br#"{"a":"[[[\"{","b":[[]]}"#), 3);
    }

    #[test]
    fn only_paths_of_ours_are_opened() {
        let of = |path: &str| FileRef {
            path: path.to_owned(),
            bytes: 0,
            sha256: String::new(),
        };
        assert!(FileRef::name("01J", "spec", b"x").is_tame());
        for bad in [
            "",
            "a",
            "/etc/passwd",
            "../x",
            "a/../b",
            "a/.b",
            "a/b/c",
            "a/",
        ] {
            assert!(!of(bad).is_tame(), "{bad}");
        }
    }
}
