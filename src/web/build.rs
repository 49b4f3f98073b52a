//! Compresses the files of the page, and works out the digest that is part of their addresses.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

/// The page itself, which is served at addresses of its own and names the digest.
const INDEX: &str = "index.html";

/// What is served as it was published.
const VENDORED: &str = "preact.js";

/// Letters of the digest: enough that no two versions share an address.
const DIGEST_LETTERS: usize = 16;

// Nothing is told to Cargo, which therefore runs this whenever a file of the package has changed.
fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let files = files(&root.join("assets"))?;
    let digest = digest(&files)?;
    // One line for each file, and all of them in a row: what is built stands in the sources, and this is data alone.
    let (mut table, mut all) = (String::new(), Vec::new());
    for (name, path) in &files {
        let bytes = fs::read(path)?;
        if name == INDEX {
            let page = String::from_utf8(bytes)?.replace("{{digest}}", &digest);
            fs::write(out.join(INDEX), page)?;
            continue;
        }
        let kind = content_type(name).ok_or_else(|| format!("{name}: no type is known for it"))?;
        let bytes = if name == VENDORED {
            bytes
        } else {
            squeezed(&String::from_utf8(bytes)?).into_bytes()
        };
        let packed = compressed(&bytes)?;
        writeln!(table, "{name}\t{kind}\t{}", packed.len())?;
        all.extend(packed);
    }
    fs::write(out.join("digest"), digest)?;
    fs::write(out.join("table"), table)?;
    fs::write(out.join("files"), all)?;
    Ok(())
}

/// Every file by its name, in the order of names, so that the same files always have the same digest.
fn files(directory: &Path) -> Result<Vec<(String, PathBuf)>, Box<dyn Error>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().into_string();
        let name = name.map_err(|name| format!("{}: no name for a file", name.display()))?;
        found.push((name, entry.path()));
    }
    found.sort();
    Ok(found)
}

fn digest(files: &[(String, PathBuf)]) -> Result<String, Box<dyn Error>> {
    let mut all = Sha256::new();
    for (name, path) in files {
        let bytes = fs::read(path)?;
        all.update(format!("{name}\0{}\0", bytes.len()));
        all.update(&bytes);
    }
    let mut text = String::new();
    for byte in all.finalize() {
        write!(text, "{byte:02x}")?;
    }
    text.truncate(DIGEST_LETTERS);
    Ok(text)
}

/// A file of ours without indentation, empty lines and lines that are comments. Line by line: no text of the page may
/// depend on how its lines begin or end.
fn squeezed(text: &str) -> String {
    let is_comment =
        |line: &str| line.starts_with("// ") || (line.starts_with("/*") && line.ends_with("*/"));
    let lines = text.lines().map(str::trim);
    let kept: Vec<&str> = lines
        .filter(|line| !line.is_empty() && !is_comment(line))
        .collect();
    kept.join("\n")
}

fn compressed(bytes: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

fn content_type(name: &str) -> Option<&'static str> {
    match name.rsplit_once('.')?.1 {
        "js" => Some("text/javascript; charset=utf-8"),
        "css" => Some("text/css; charset=utf-8"),
        "svg" => Some("image/svg+xml"),
        _ => None,
    }
}
