use std::fmt::Write;
use std::io::Read;

use flate2::read::GzDecoder;
use sha2::{Digest, Sha256};

use super::{DIGEST, INDEX, VENDORED, asset, names};

/// What all files may come to, as a browser reads them and as they are sent.
const BYTES_MAX: usize = 100 * 1024;
const COMPRESSED_BYTES_MAX: usize = 40 * 1024;

fn unpacked(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let packed = asset(name).unwrap().bytes;
    GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn what_a_browser_is_sent_is_small() {
    let (mut raw, mut sent) = (INDEX.len(), INDEX.len());
    for name in names() {
        raw += unpacked(name).len();
        sent += asset(name).unwrap().bytes.len();
    }
    assert!(raw < BYTES_MAX, "{raw} bytes");
    assert!(sent < COMPRESSED_BYTES_MAX, "{sent} bytes compressed");
}

#[test]
fn the_page_names_files_of_its_digest_and_nothing_else() {
    assert_eq!(DIGEST.len(), 16);
    assert!(!INDEX.contains("{{"), "{INDEX}");
    let mut named = 0;
    for part in INDEX
        .split(['"', '\''])
        .filter(|part| part.starts_with('/'))
    {
        let name = part.strip_prefix(&format!("/assets/{DIGEST}/"));
        let name = name.unwrap_or_else(|| panic!("`{part}` has another address"));
        assert!(asset(name).is_some(), "{name} is not there");
        named += 1;
    }
    assert!(named >= 2, "{INDEX}");
    assert!(!INDEX.contains("http"), "nothing comes from elsewhere");
    assert!(asset("index.html").is_none() && asset("../src/lib.rs").is_none());
}

#[test]
fn files_of_others_are_as_they_were_published() {
    let licences = include_str!("../LICENSES.md");
    for file in VENDORED {
        let digest = Sha256::digest(unpacked(file.file));
        let mut text = String::new();
        for byte in digest {
            write!(text, "{byte:02x}").unwrap();
        }
        assert_eq!(text, file.sha256, "{}", file.file);
        assert!(licences.contains(file.version), "{}", file.version);
        for licence in file.licence.split(" AND ") {
            assert!(licences.contains(licence), "{licence}");
        }
    }
}
