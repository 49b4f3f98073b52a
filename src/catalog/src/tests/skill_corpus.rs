//! Real skills, where they are there to be read, and every short damage to them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::open::Root;
use super::super::report::Report;
use super::super::roots::order::SkillRoot;
use super::super::roots::scan::{Candidate, Form, search};
use super::super::roots::{Definition, of_bytes};
use super::corpus::corpus;
use crate::model::{Dialect, Problem, Scope, Severity};

/// One real skill with what reading it said.
struct Real {
    candidate: Candidate,
    bytes: Vec<u8>,
    loaded: Option<Definition>,
    problems: Vec<Problem>,
}

fn directories_with_skills(path: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(path).expect("readable").flatten() {
        let path = entry.path();
        if path.is_dir() {
            if path.join("SKILL.md").is_file() {
                found.push(path.clone());
            }
            directories_with_skills(&path, found);
        }
    }
}

fn candidate(directory: &Path, dialect: Dialect) -> Candidate {
    let parent = directory.parent().expect("a parent");
    let root = SkillRoot {
        label: "corpus".to_owned(),
        directory: parent.to_owned(),
        shown: "corpus".to_owned(),
        scope: Scope::Extra,
        dialect,
        trusted: true,
        error_line: None,
    };
    let stem = directory.file_name().unwrap().to_str().unwrap().to_owned();
    Candidate {
        root: Arc::new(root),
        base: Arc::new(Root::open(parent).unwrap()),
        inner: format!("{stem}/SKILL.md"),
        shown: directory.join("SKILL.md").to_string_lossy().into_owned(),
        stem,
        form: Form::Directory,
        stamp: None,
    }
}

fn read(candidate: &Candidate, bytes: Vec<u8>) -> (Option<Definition>, Vec<Problem>) {
    let mut report = Report::default();
    let loaded = of_bytes(candidate, bytes, &mut report);
    let place = super::super::source::whole_file("x");
    (loaded, report.finish(place))
}

fn all(part: &str, dialect: Dialect) -> Option<Vec<Real>> {
    let corpus = corpus()?;
    let mut found = Vec::new();
    directories_with_skills(&corpus.join(part), &mut found);
    found.sort();
    let real = found.into_iter().map(|directory| {
        let candidate = candidate(&directory, dialect);
        let bytes = std::fs::read(directory.join("SKILL.md")).unwrap();
        let (loaded, problems) = read(&candidate, bytes.clone());
        Real {
            candidate,
            bytes,
            loaded,
            problems,
        }
    });
    Some(real.collect())
}

fn print_counts(what: &str, real: &[Real]) {
    let mut counts: BTreeMap<(String, &str), usize> = BTreeMap::new();
    for one in real {
        let kind = if one.loaded.is_some() {
            "loaded"
        } else {
            "refused"
        };
        let mut codes: Vec<&str> = one.problems.iter().map(|p| p.code.as_str()).collect();
        codes.sort_unstable();
        codes.dedup();
        for code in codes {
            *counts.entry((code.to_owned(), kind)).or_default() += 1;
        }
    }
    let loaded = real.iter().filter(|one| one.loaded.is_some()).count();
    println!("{what}: {loaded} of {} load", real.len());
    for ((code, kind), count) in counts {
        println!("  {code:<28} {kind:<8} {count}");
    }
}

#[test]
fn real_skills_load_or_are_refused_by_a_rule() {
    for dialect in Dialect::ALL {
        let Some(real) = all("skills", dialect) else {
            return;
        };
        print_counts(&format!("skills as {}", dialect.name()), &real);
        for one in &real {
            let why = super::show(&one.problems);
            let worst = one.problems.iter().map(|problem| problem.severity).max();
            match &one.loaded {
                Some(_) => assert_ne!(
                    worst,
                    Some(Severity::Error),
                    "{}\n{why}",
                    one.candidate.shown
                ),
                None => assert!(
                    worst >= Some(Severity::Warning),
                    "{}\n{why}",
                    one.candidate.shown
                ),
            }
        }
    }
}

/// The class of irregular files, whether its files load, and what is said of each.
const CLASSES: &[(&str, bool, Option<&str>)] = &[
    ("skill-allowed-tools-list", true, None),
    ("skill-bang-command-in-body", true, None),
    ("skill-crlf", true, None),
    ("skill-cron", true, Some("schedule-not-fired")),
    ("skill-description-1024-chars-but-more-bytes", true, None),
    ("skill-description-missing", false, Some("missing-key")),
    (
        "skill-description-over-1024",
        true,
        Some("description-long"),
    ),
    ("skill-double-braces-in-body", true, None),
    ("skill-input_schema", true, None),
    ("skill-name-charset", true, Some("name-unusual")),
    (
        "skill-name-differs-from-directory",
        true,
        Some("name-directory"),
    ),
    ("skill-name-missing", false, Some("missing-key")),
    ("skill-no-frontmatter", false, Some("no-frontmatter")),
    (
        "skill-unterminated-frontmatter",
        false,
        Some("frontmatter-unterminated"),
    ),
];

#[test]
fn every_irregular_file_meets_its_rule() {
    for (class, loads, code) in CLASSES {
        let Some(real) = all(&format!("irregular/{class}"), Dialect::Agent) else {
            return;
        };
        print_counts(class, &real);
        for one in &real {
            let why = super::show(&one.problems);
            let place = &one.candidate.shown;
            assert_eq!(one.loaded.is_some(), *loads, "{class} {place}\n{why}");
            if let Some(code) = code {
                assert!(
                    one.problems.iter().any(|p| p.code == *code),
                    "{class} {place}\n{why}"
                );
            }
        }
    }
    for (class, loaded, refused) in [
        // What is no YAML is repaired once where it is prose, and refused by name otherwise.
        ("skill-bad-yaml", "prose-quoted", "yaml-syntax"),
        // Before a frontmatter may stand a comment, and nothing else.
        (
            "skill-frontmatter-not-at-start",
            "comment-before-frontmatter",
            "no-frontmatter",
        ),
    ] {
        let Some(real) = all(&format!("irregular/{class}"), Dialect::Agent) else {
            return;
        };
        print_counts(class, &real);
        for one in &real {
            let code = if one.loaded.is_some() {
                loaded
            } else {
                refused
            };
            let told = one.problems.iter().any(|p| p.code == code);
            assert!(
                told,
                "{}\n{}",
                one.candidate.shown,
                super::show(&one.problems)
            );
        }
    }
}

/// No prefix and no changed byte of a real frontmatter makes reading fail otherwise than by a problem.
/// `WORKERCTL_TEST_ROUNDS` tries that many in each file.
#[test]
fn damaged_skills_are_refused_and_nothing_else_happens() {
    let rounds: usize = std::env::var("WORKERCTL_TEST_ROUNDS")
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(6);
    let mut real = Vec::new();
    for part in ["skills", "irregular"] {
        let Some(some) = all(part, Dialect::Agent) else {
            return;
        };
        real.extend(some);
    }
    let mut tried = 0;
    for one in &real {
        let head = one.bytes.len().min(1_500);
        for round in 0..rounds {
            // Spread over the frontmatter, at other places in each file.
            let at = (round * head / rounds + one.bytes.len() * 7) % head.max(1);
            let _ = read(&one.candidate, one.bytes[..at].to_vec());
            for byte in [b':', b'[', b'"', b'\t', 0xff, b'&', b'\n', b'-'] {
                let mut damaged = one.bytes.clone();
                damaged[at] = byte;
                let (loaded, problems) = read(&one.candidate, damaged);
                assert!(
                    loaded.is_some() || !problems.is_empty(),
                    "{}",
                    one.candidate.shown
                );
                tried += 1;
            }
        }
    }
    println!("{tried} damaged files");
}

/// All real skills at once, found by searching as roots are.
#[test]
fn a_search_finds_what_lies_in_the_corpus() {
    let Some(corpus) = corpus() else { return };
    let workspace = xtest::tempdir();
    let base = Root::open(workspace.path()).unwrap();
    let roots: Vec<Arc<SkillRoot>> = std::fs::read_dir(corpus.join("skills"))
        .unwrap()
        .flatten()
        .map(|entry| {
            let root = SkillRoot {
                label: entry.path().to_string_lossy().into_owned(),
                directory: entry.path(),
                shown: entry.path().to_string_lossy().into_owned(),
                scope: Scope::Extra,
                dialect: Dialect::Agent,
                trusted: true,
                error_line: None,
            };
            Arc::new(root)
        })
        .collect();
    let scan = search(&base, &roots);
    let mut all = Vec::new();
    directories_with_skills(&corpus.join("skills"), &mut all);
    println!("{} found of {}", scan.candidates.len(), all.len());
    assert!(scan.candidates.len() * 2 > all.len());
}
