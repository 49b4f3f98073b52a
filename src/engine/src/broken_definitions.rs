//! Files of secrets that definitions with errors name. They stay hidden although the definition is not in force:
//! otherwise a typing error would let every run read them.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::model_keys::expanded;
use crate::catalog::Catalog;
use crate::model::Severity;
use crate::model::config::CONFIG_FILE;

/// Names of files that define a worker.
const WORKER_FILES: [&str; 2] = ["worker.yaml", "worker.yml"];

/// Directories that are searched below that of a worker.
const DEPTH_MAX: usize = 5;

/// Files of one worker that are read.
const FILES_MAX: usize = 1_000;

/// Bytes of one file that are read.
const BYTES_MAX: u64 = 1024 * 1024;

/// Returns the absolute paths after `file:` in the text of every definition that has an error, and of the files next to
/// it: a worker that cannot be read has skills that were not looked at.
pub(super) fn named_files(
    catalog: &Catalog,
    environment: &BTreeMap<String, String>,
) -> Vec<PathBuf> {
    let errors = catalog.problems.iter();
    let errors = errors.filter(|problem| problem.severity == Severity::Error);
    let paths: BTreeSet<&str> = errors.map(|problem| &*problem.place.path).collect();
    let mut files = Vec::new();
    for path in paths {
        let path = catalog.root.join(path);
        match directory_of_worker(&path, &catalog.root) {
            Some(directory) => collect(&directory, DEPTH_MAX, &mut files),
            None => files.push(path),
        }
    }
    files.sort();
    files.dedup();
    let texts = files.iter().filter_map(|path| text_of(path));
    let found: Vec<String> = texts.flat_map(|text| paths_in(&text)).collect();
    found
        .iter()
        .map(|path| expanded(path, environment))
        .collect()
}

/// Returns the directory of the worker that a file belongs to; `None`: it belongs to none, as `workerctl.yaml`.
fn directory_of_worker(path: &Path, root: &Path) -> Option<PathBuf> {
    if path == root.join(CONFIG_FILE) {
        return None;
    }
    let mut above = path.ancestors().skip(1).take_while(|one| *one != root);
    let is_worker = |directory: &&Path| {
        let mut names = WORKER_FILES.iter();
        names.any(|name| directory.join(name).symlink_metadata().is_ok())
    };
    above.find(is_worker).map(Path::to_owned)
}

fn collect(directory: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if files.len() >= FILES_MAX {
            return;
        }
        if path.is_dir() && depth > 0 {
            collect(&path, depth - 1, files);
        } else if path
            .extension()
            .is_some_and(|end| ["yaml", "yml", "md"].iter().any(|one| end == *one))
        {
            files.push(path);
        }
    }
}

fn text_of(path: &Path) -> Option<String> {
    let found = std::fs::metadata(path).ok()?;
    let is_readable = found.is_file() && found.len() <= BYTES_MAX;
    let bytes = is_readable.then(|| std::fs::read(path).ok()).flatten()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns absolute paths, and those below `~/`, that are the value of a key that ends in `file`, as in
/// `secret: {file: ~/key}`, `key: file:/key` and `"token_file": "/a token"`; also on the next line, and behind an anchor,
/// a tag or the mark of a block.
fn paths_in(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, key) in text.match_indices("file") {
        let rest = text[at + key.len()..].trim_start_matches(['"', '\'', ' ', '\t']);
        let Some(mut rest) = rest.strip_prefix(':').map(str::trim_start) else {
            continue;
        };
        while rest.starts_with(['&', '!', '>', '|']) {
            let after = rest.find(char::is_whitespace).unwrap_or(rest.len());
            rest = rest[after..].trim_start();
        }
        let quote = rest
            .chars()
            .next()
            .filter(|first| ['"', '\''].contains(first));
        let rest = quote.map_or(rest, |quote| rest.trim_start_matches(quote));
        let ends = |c: char| match quote {
            Some(quote) => c == quote || c == '\n',
            None => c.is_whitespace() || matches!(c, ',' | '}' | ']' | '"' | '\''),
        };
        let path = rest.split(ends).next().unwrap_or_default();
        if path.starts_with('/') || path.starts_with("~/") {
            found.push(path.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_in_text_that_no_reader_understands() {
        let text = "env: [{name: A, secret: {file: ~/a}}, \"unclosed\nkey: file:/b\ntoken_file: '/c d'\nfile: rel\nfile: >-\n  /e\n{\"file\": \"/f/g\"}\nfile : &x /h\nfile:\n  ~/i\nrun: /bin/j\n";
        let expected = ["~/a", "/b", "/c d", "/e", "/f/g", "/h", "~/i"];
        assert_eq!(paths_in(text), expected);
    }
}
