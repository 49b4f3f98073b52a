//! Bugs that `.ci/planted` plants: each fits the tree, its test is there, and the page tells of it.

use std::collections::BTreeSet;

use crate::Violations;
use crate::source::{root, rust_files};

const ENTRIES: &str = ".ci/planted.txt";
const PAGE: &str = "docs/dev/reliability.md";
const HEADING: &str = "\n## Planted bugs\n";

/// One change of an entry, with the line in which it begins.
struct Change {
    line: usize,
    file: String,
    old: String,
    new: String,
}

#[derive(Default)]
struct Entries {
    changes: Vec<Change>,
    /// As `.ci/planted --table` prints them, each with its line.
    rows: Vec<(usize, String)>,
    tests: Vec<(usize, String)>,
}

/// The format is told at the head of the file.
fn entries(violations: &mut Violations) -> Entries {
    let text = std::fs::read_to_string(root().join(ENTRIES)).unwrap();
    let (mut found, mut file, mut user) = (Entries::default(), "", "");
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        if line == "--- old" {
            let old = up_to("--- new", &mut lines);
            let new = up_to("---", &mut lines);
            let (line, file) = (at + 1, file.to_owned());
            found.changes.push(Change {
                line,
                file,
                old,
                new,
            });
        } else if let Some(said) = line.strip_prefix("user: ") {
            user = said;
        } else if let Some(named) = line.strip_prefix("file: ") {
            file = named;
        } else if let Some(named) = line.strip_prefix("test: ") {
            let tests: Vec<&str> = named.split(" | ").skip(1).collect();
            let shown: Vec<String> = tests.iter().map(|test| format!("`{test}`")).collect();
            let row = format!("| {user} | {} |", shown.join(", "));
            found.rows.push((at + 1, row));
            let tests = tests.into_iter().map(|test| (at + 1, test.to_owned()));
            found.tests.extend(tests);
        } else if !(line.is_empty() || ["# ", "; ", "needs: "].iter().any(|p| line.starts_with(p)))
        {
            violations.add(ENTRIES, at + 1, "is not understood");
        }
    }
    found
}

fn up_to<'a>(end: &str, lines: &mut impl Iterator<Item = (usize, &'a str)>) -> String {
    let part: Vec<&str> = lines
        .map(|(_, line)| line)
        .take_while(|line| *line != end)
        .collect();
    part.join("\n")
}

/// A list of bugs and the tests that find them is only worth something while each of them could still be made.
#[test]
fn every_planted_bug_fits_the_tree_and_stands_in_the_page() {
    let mut violations = Violations::default();
    let entries = entries(&mut violations);
    for change in &entries.changes {
        let text = std::fs::read_to_string(root().join(&change.file)).unwrap_or_default();
        let count = text.matches(&change.old).count();
        if count != 1 || change.old == change.new {
            let what = format!("its old text stands {count} times in `{}`", change.file);
            violations.add(ENTRIES, change.line, what);
        }
    }
    let tests: BTreeSet<&str> = rust_files()
        .iter()
        .flat_map(|file| file.all.windows(2))
        .filter(|pair| pair[0].text == "fn")
        .map(|pair| pair[1].text.as_str())
        .collect();
    for (line, test) in &entries.tests {
        if !tests.contains(test.as_str()) {
            violations.add(ENTRIES, *line, format_args!("there is no test `{test}`"));
        }
    }
    let page = std::fs::read_to_string(root().join(PAGE)).unwrap();
    let (_, section) = page.split_once(HEADING).unwrap();
    let section = section.split("\n## ").next().unwrap_or(section);
    for (line, row) in &entries.rows {
        if !section.lines().any(|said| said == row) {
            let what = "is not in docs/dev/reliability.md, or says something else there: `.ci/planted --table`";
            violations.add(ENTRIES, *line, what);
        }
    }
    // Beside the head of the table and the line below it.
    let rows = section.lines().filter(|line| line.starts_with('|')).count();
    if rows != entries.rows.len() + 2 {
        violations.add(PAGE, 1, "tells of planted bugs that are not there");
    }
    assert!(
        entries.rows.len() >= 30,
        "{} bugs are too few",
        entries.rows.len()
    );
    violations.none();
}
