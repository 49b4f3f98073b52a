//! Real files, where they are there to be read.

use std::path::{Path, PathBuf};

use super::super::frontmatter::{Division, divide};
use super::super::source::Source;
use super::super::{Options, load};
use super::show;

pub(super) fn corpus() -> Option<PathBuf> {
    let corpus = std::env::var_os("WORKERCTL_CORPUS")
        .map(PathBuf::from)
        .or_else(|| Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus")))
        .filter(|path| path.is_dir());
    if corpus.is_none() {
        xtest::skip("there is no corpus of definition files");
    }
    corpus
}

fn directories_with_workers(path: &Path, found: &mut Vec<PathBuf>) {
    if path.join("workers").is_dir() {
        found.push(path.to_path_buf());
    }
    let mut below: Vec<_> = std::fs::read_dir(path)
        .expect("readable")
        .flatten()
        .filter(|entry| entry.path().is_dir() && entry.file_name() != "workers")
        .map(|entry| entry.path())
        .collect();
    below.sort();
    for path in below {
        directories_with_workers(&path, found);
    }
}

#[test]
fn real_workspaces_load_without_a_rejected_worker() {
    let Some(corpus) = corpus() else { return };
    let mut roots = Vec::new();
    for part in ["workspaces", "history"] {
        if corpus.join(part).is_dir() {
            directories_with_workers(&corpus.join(part), &mut roots);
        }
    }
    assert!(!roots.is_empty(), "no workspace in {}", corpus.display());
    let (mut workers, mut skills) = (0, 0);
    for root in roots {
        let catalog = load(&root, Options::default());
        workers += catalog.workers.len();
        skills += catalog.skills().count();
        let errors: Vec<_> = catalog
            .problems
            .iter()
            .filter(|problem| problem.severity == super::ERROR)
            // A history may hold one worker in two directories at once.
            .filter(|problem| problem.code != "worker-duplicate")
            .cloned()
            .collect();
        if std::env::var_os("WORKERCTL_CORPUS_SHOW").is_some() {
            println!("{}\n{}", root.display(), show(&catalog.problems));
        }
        assert!(errors.is_empty(), "{}:\n{}", root.display(), show(&errors));
    }
    println!("{workers} workers with {skills} skills");
}

fn files(path: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(path).expect("readable").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|e| e == "md" || e == "yaml") {
            found.push(path);
        }
    }
}

#[test]
fn every_value_of_real_yaml_has_its_place() {
    let Some(corpus) = corpus() else { return };
    let mut found = Vec::new();
    files(&corpus, &mut found);
    let mut placed = 0;
    for path in found {
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        let source = Source::new("x", text.clone());
        let yaml = match divide(&source) {
            Division::Front { yaml, .. } => &text[yaml],
            _ if path.extension().is_some_and(|e| e == "yaml") => &text,
            _ => continue,
        };
        if let Some(node) = super::places::placed(yaml) {
            super::places::assert_found(&node, yaml);
            placed += 1;
        }
    }
    println!("{placed} files");
}
