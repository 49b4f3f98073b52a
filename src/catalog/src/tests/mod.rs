//! Definitions as people write them, and what the loader says.

mod agent_programs;
mod budgets;
pub(super) mod contract;
mod converting;
mod corpus;
mod dialect_rows;
mod dialects;
mod executors;
mod fallback_schedules;
mod hints;
mod hostile;
mod instances;
mod irregular;
mod isolation;
mod isolation_problems;
mod key_levels;
mod limits;
mod mistakes;
mod models;
mod notify;
mod other_systems;
pub(crate) mod pages;
mod places;
mod protected_files;
pub(crate) mod read_keys;
mod reloading;
mod remedies;
mod roots;
mod roots_hostile;
mod roots_trust;
mod sandbox;
mod schedule_catalog;
mod schedule_never;
mod schedule_problems;
mod schedules;
mod skill_contracts;
mod skill_corpus;
mod skill_keys;
mod skills;
mod toolsets;
mod worker_paths;
mod worker_settings;
mod workers;

use std::fmt::Write;
use std::path::Path;

use super::{Catalog, Options, load};
use crate::model::{Problem, Severity};

/// A workspace in a directory of its own.
struct Workspace {
    directory: xtest::TempDir,
}

impl Workspace {
    fn new(files: &[(&str, &str)]) -> Workspace {
        let workspace = Workspace {
            directory: xtest::tempdir(),
        };
        for (path, text) in files {
            workspace.write(path, text.as_bytes());
        }
        workspace
    }

    /// A workspace with one worker.
    fn of_worker(yaml: &str) -> Workspace {
        Workspace::new(&[("workers/w/worker.yaml", yaml)])
    }

    /// A workspace with one worker `w` and one file in its `skills/`.
    fn of_skill(name: &str, text: &str) -> Workspace {
        Workspace::new(&[
            ("workers/w/worker.yaml", "worker: {id: w}\n"),
            (&format!("workers/w/skills/{name}"), text),
        ])
    }

    fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        std::fs::write(path, bytes).expect("a file");
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn load(&self) -> Catalog {
        load(self.path(), Options::default())
    }

    /// Loads it with the skills of a home directory, which is `home/` in it.
    fn load_with_home(&self) -> Catalog {
        let home = self.path().join("home");
        let options = Options {
            home: Some(&home),
            ..Options::default()
        };
        load(self.path(), options)
    }
}

/// One expected problem: code, severity, line, column, and a part of the hint; of a value of the wrong type, also of
/// the message, since its hint is an example.
type Expected<'a> = (&'a str, Severity, u32, u32, &'a str);

const NOTE: Severity = Severity::Note;
const WARNING: Severity = Severity::Warning;
const ERROR: Severity = Severity::Error;

#[track_caller]
fn expect(catalog: &Catalog, path: &str, expected: &Expected<'_>) {
    let (code, severity, line, column, hint) = *expected;
    let found = catalog.problems.iter().any(|problem| {
        problem.code == code
            && problem.severity == severity
            && &*problem.place.path == path
            && (problem.place.line, problem.place.column) == (line, column)
            && (problem.hint.as_deref().unwrap_or("").contains(hint)
                || code == "wrong-type" && problem.message.contains(hint))
    });
    assert!(
        found,
        "expected {expected:?} in {path}, found:\n{}",
        show(&catalog.problems)
    );
}

fn show(problems: &[Problem]) -> String {
    let mut text = String::new();
    for problem in problems {
        let hint = problem.hint.as_deref().unwrap_or("-");
        let Problem {
            severity,
            code,
            place,
            message,
            ..
        } = problem;
        writeln!(text, "{severity:?} {code} {place}: {message} | {hint}").expect("a string");
    }
    text
}

fn codes(catalog: &Catalog) -> Vec<&str> {
    catalog.problems.iter().map(|p| p.code.as_str()).collect()
}

/// Checks one worker.yaml and gives the catalog for more.
#[track_caller]
fn check_worker(yaml: &str, expected: Expected<'_>) -> Catalog {
    let catalog = Workspace::of_worker(yaml).load();
    expect(&catalog, "workers/w/worker.yaml", &expected);
    catalog
}

/// Checks one skill file and gives the catalog for more.
#[track_caller]
fn check_skill(name: &str, text: &str, expected: Expected<'_>) -> Catalog {
    let catalog = Workspace::of_skill(name, text).load();
    expect(&catalog, &format!("workers/w/skills/{name}"), &expected);
    catalog
}

/// A YAML text as JSON, read as the loader reads it.
pub(super) fn yaml_to_json(text: &str) -> serde_json::Value {
    use super::{document, report::Report, source::Source, view::View};
    let source = Source::new("x.yaml", text.to_owned());
    let length = text.len();
    let document = document::read(source, 0..length, &mut Report::default()).expect("yaml");
    View::root(&document.source, &document.root).json()
}
