//! Whether a loose object is whole, found out without the git library: it reads one that is cut off without end.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use flate2::read::ZlibDecoder;
use sha1::{Digest, Sha1};

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 64 * 1024;

/// Largest object that is unpacked, in bytes: more than that of the largest file of a result, with its header.
const OBJECT_BYTES_MAX: usize = 513 << 20;

/// Whether a file holds the object whose id it is named after.
pub fn is_whole_object(file: &Path, oid: git2::Oid) -> bool {
    let Ok(file) = File::open(file) else {
        return false;
    };
    let mut content = ZlibDecoder::new(BufReader::new(file));
    let mut sum = Sha1::new();
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut left = OBJECT_BYTES_MAX;
    while left > 0 {
        match content.read(&mut buffer) {
            Ok(0) => return sum.finalize()[..] == *oid.as_bytes(),
            Ok(count) => {
                left = left.saturating_sub(count);
                sum.update(buffer.get(..count).unwrap_or_default());
            }
            Err(_) => return false,
        }
    }
    false
}
