//! Verifies loose objects without the git library, which reads a compressed stream that is cut off in an endless loop.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use flate2::{Decompress, FlushDecompress, Status};
use sha1::{Digest, Sha1};

/// Bytes that are read or unpacked at once.
const BUFFER_BYTES: usize = 64 * 1024;

/// Largest object that is unpacked, in bytes: more than that of the largest file of a result, with its header.
const OBJECT_BYTES_MAX: u64 = 513 << 20;

/// The header of a loose object is shorter than this, in bytes. The git library reads as many.
const HEADER_BYTES_MAX: usize = 64;

/// Returns true if a file is the complete loose object whose id is `oid`.
pub fn is_whole_object(file: &Path, oid: git2::Oid) -> bool {
    loose_length(file, oid, OBJECT_BYTES_MAX).is_some()
}

/// Returns the unpacked length of a loose object, in bytes; `None` unless the file is exactly this object and at most
/// `most` bytes long when it is unpacked.
pub(crate) fn loose_length(file: &Path, oid: git2::Oid, most: u64) -> Option<u64> {
    let mut input = BufReader::with_capacity(BUFFER_BYTES, File::open(file).ok()?);
    let (mut sum, mut head) = (Sha1::new(), Vec::new());
    let length = inflate(&mut input, most, &mut |bytes| {
        sum.update(bytes);
        let missing = HEADER_BYTES_MAX - head.len();
        head.extend(bytes.iter().take(missing));
    })?;
    let is_at_end = input.fill_buf().ok()?.is_empty();
    let is_named_so = sum.finalize()[..] == *oid.as_bytes();
    (is_at_end && is_named_so && content_length(&head, length).is_some()).then_some(length)
}

/// The header is `KIND SPACE LENGTH NUL`, and `LENGTH` must be that of what follows.
fn content_length(head: &[u8], length: u64) -> Option<u64> {
    let end = head.iter().position(|byte| *byte == 0)?;
    let text = std::str::from_utf8(head.get(..end)?).ok()?;
    let (kind, declared) = text.split_once(' ')?;
    let actual = length.checked_sub(u64::try_from(end).ok()? + 1)?;
    let is_sound = ["blob", "tree", "commit", "tag"].contains(&kind);
    (is_sound && declared == actual.to_string()).then_some(actual)
}

/// Unpacks one zlib stream and returns its unpacked length; `None` unless the stream is complete and at most `most`
/// bytes long when it is unpacked. Reads nothing behind the stream.
pub(crate) fn inflate(
    input: &mut impl BufRead,
    most: u64,
    sink: &mut dyn FnMut(&[u8]),
) -> Option<u64> {
    let mut stream = Decompress::new(true);
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let packed = input.fill_buf().ok()?;
        let (read, written) = (stream.total_in(), stream.total_out());
        let status = stream.decompress(packed, &mut buffer, FlushDecompress::None);
        let read = usize::try_from(stream.total_in() - read).ok()?;
        let written = usize::try_from(stream.total_out() - written).ok()?;
        input.consume(read);
        sink(buffer.get(..written)?);
        let is_stuck = read == 0 && written == 0;
        match status.ok()? {
            _ if stream.total_out() > most => return None,
            Status::StreamEnd => return Some(stream.total_out()),
            Status::Ok | Status::BufError if is_stuck => return None,
            Status::Ok | Status::BufError => {}
        }
    }
}
