//! The files of the web page, compressed and in the program: nothing is read from disk, and nothing is fetched from
//! elsewhere.
//!
//! Files are named by one digest over all of them, so that a browser keeps them for ever and never mixes two versions.

/// Digest of all files.
pub const DIGEST: &str = include_str!(concat!(env!("OUT_DIR"), "/digest"));

/// The page, which names files of this digest.
pub const INDEX: &str = include_str!(concat!(env!("OUT_DIR"), "/index.html"));

/// Name, media type and length of each file, in the order in which they follow each other.
const TABLE: &str = include_str!(concat!(env!("OUT_DIR"), "/table"));

/// All files in a row.
static FILES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/files"));

/// A file that the page names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asset {
    /// Its bytes, compressed with gzip.
    pub bytes: &'static [u8],
    /// Its media type.
    pub content_type: &'static str,
}

/// A file of others that is part of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vendored {
    /// Its name among the files of the page.
    pub file: &'static str,
    /// What it is called where it comes from.
    pub name: &'static str,
    /// Which version it is.
    pub version: &'static str,
    /// Under which terms it may be used; their texts are in `LICENSES.md`.
    pub licence: &'static str,
    /// Its SHA-256, as it was published.
    pub sha256: &'static str,
}

/// All files of others.
pub const VENDORED: [Vendored; 1] = [Vendored {
    file: "preact.js",
    name: "htm/preact/standalone.module.js, with Preact and its hooks in it",
    version: "htm 3.1.1",
    licence: "Apache-2.0 AND MIT",
    sha256: "72284e8e9079c87817145df1110f74e8a2aa040b2fc384922e18dfcb46fc1fd7",
}];

/// The file of that name; the page itself is none.
pub fn asset(name: &str) -> Option<Asset> {
    all()
        .find(|(known, _)| *known == name)
        .map(|(_, asset)| asset)
}

/// The names of all files.
pub fn names() -> impl Iterator<Item = &'static str> {
    all().map(|(name, _)| name)
}

fn all() -> impl Iterator<Item = (&'static str, Asset)> {
    let mut rest = FILES;
    TABLE.lines().filter_map(move |line| {
        let mut fields = line.split('\t');
        let (name, content_type) = (fields.next()?, fields.next()?);
        let bytes;
        (bytes, rest) = rest.split_at_checked(fields.next()?.parse().ok()?)?;
        Some((
            name,
            Asset {
                bytes,
                content_type,
            },
        ))
    })
}

#[cfg(test)]
mod tests;
