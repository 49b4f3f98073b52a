//! Makes the files of the page small, and works out the digest that is part of their addresses.

use std::collections::BTreeSet;
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

const CSS: &str = "text/css; charset=utf-8";

/// What is served as it was published.
const VENDORED: &str = "preact.js";

/// Our modules, each of which names those before it and no other. They are sent as one, named as the last: so they are
/// compressed together, and need no lists of each other's names.
const MODULES: [&str; 3] = ["base.js", "run.js", "main.js"];

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
        let text = || fs::read_to_string(path);
        let bytes = match name.as_str() {
            INDEX => {
                fs::write(out.join(INDEX), text()?.replace("{{digest}}", &digest))?;
                continue;
            }
            name if Some(&name) == MODULES.last() => minifier::js::minify(&bundled(&files)?)?
                .to_string()
                .into_bytes(),
            name if MODULES.contains(&name) => continue,
            VENDORED => fs::read(path)?,
            name if content_type(name) == Some(CSS) => {
                minifier::css::minify(&without_comments(&text()?))?
                    .to_string()
                    .into_bytes()
            }
            _ => fs::read(path)?,
        };
        let kind = content_type(name).ok_or_else(|| format!("{name}: no type is known for it"))?;
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

/// Our modules as one: what they import of each other is there already.
fn bundled(files: &[(String, PathBuf)]) -> Result<String, Box<dyn Error>> {
    let (mut all, mut known, mut in_row) = (String::new(), BTreeSet::new(), false);
    for module in MODULES {
        let (_, path) = files
            .iter()
            .find(|(name, _)| name == module)
            .ok_or_else(|| format!("{module} is not there"))?;
        let text = without_comments(&fs::read_to_string(path)?);
        // `import {…} from './NAME.js';`, over some lines, at the beginning.
        let mut rest = text.as_str();
        while let Some(from) = rest.strip_prefix("import ") {
            let (import, behind) = from
                .split_once(";\n")
                .ok_or_else(|| format!("{module}: an import does not end"))?;
            if import.contains(VENDORED) {
                writeln!(all, "import {import};")?;
            }
            rest = behind;
        }
        for line in rest.lines().filter(|line| !line.starts_with("export {")) {
            let line = line.strip_prefix("export ").unwrap_or(line);
            if let Some(name) = declared(line)
                && !known.insert(name.to_owned())
            {
                return Err(
                    format!("{module}: `{name}` has its name from an earlier module").into(),
                );
            }
            // Declarations in a row are one: it is shorter, and says the same.
            let next = line.strip_prefix("const ");
            match next.filter(|_| in_row && all.ends_with(";\n")) {
                Some(next) => {
                    all.truncate(all.len() - 2);
                    writeln!(all, ",\n{next}")?;
                }
                None => writeln!(all, "{line}")?,
            }
            if !line.starts_with([' ', '}', ']', ')']) {
                in_row = next.is_some();
            }
        }
    }
    Ok(all)
}

/// The name that a line of a module declares for all of it; lines within something are indented.
fn declared(line: &str) -> Option<&str> {
    let kinds = ["const ", "let ", "function ", "async function ", "class "];
    let named = kinds.iter().find_map(|kind| line.strip_prefix(kind))?;
    let end = named.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
    (end > 0).then(|| &named[..end])
}

/// A text without empty lines and lines that are comments.
fn without_comments(text: &str) -> String {
    let is_comment =
        |line: &str| line.starts_with("// ") || (line.starts_with("/*") && line.ends_with("*/"));
    let mut kept = String::new();
    for line in text.lines() {
        if !line.trim().is_empty() && !is_comment(line.trim()) {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

fn compressed(bytes: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

fn content_type(name: &str) -> Option<&'static str> {
    match name.rsplit_once('.')?.1 {
        "js" => Some("text/javascript; charset=utf-8"),
        "css" => Some(CSS),
        "svg" => Some("image/svg+xml"),
        _ => None,
    }
}
