//! Frozen records of each released version: they load for ever.
//!
//! A sample is a text file: lines of `key record` in hex, as they lie in sled. What they mean stands
//! in `expected.json` beside them. A change of the encoding adds a directory and leaves this one.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use super::sample_runs::{admitted, at, batch, entry, recorded, run, spec, submitted, summary};
use crate::batch::plan;
use crate::keyed::first_rows;
use crate::machine::{Entry, Event, Run};
use crate::model::RunSpec;
use crate::model::legible::hex;
use crate::protocol::RunSummary;
use crate::table::Rows;
use crate::{Batch, MemoryStore, Store, Write};

#[derive(serde::Serialize, serde::Deserialize)]
struct Expected {
    spec: RunSpec,
    journal: Vec<Entry>,
    summary: RunSummary,
}

fn expected() -> Expected {
    Expected {
        spec: spec(1, 40),
        journal: vec![
            submitted(1),
            admitted(1, 1),
            entry(
                1,
                2,
                Event::Validated {
                    checks: Vec::new(),
                    wake: None,
                },
            ),
            recorded_event(),
        ],
        summary: summary(1),
    }
}

/// Larger than a record.
fn recorded_event() -> Entry {
    let baseline = serde_json::json!({"head": "x".repeat(5_000), "dirty": [1, 2.5, null]});
    entry(1, 3, Event::Prepared { baseline })
}

fn batches() -> [Batch; 2] {
    let Expected {
        spec,
        journal,
        summary,
    } = expected();
    [
        batch(vec![
            Write::Spec(Arc::new(spec)),
            Write::Entries {
                run: run(1),
                entries: journal,
            },
        ]),
        batch(vec![
            Write::Finished(Box::new(summary)),
            Write::Key {
                key: "weekly 48".to_owned(),
                run: run(1),
                at: at(1),
            },
        ]),
    ]
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/samples/v1")
}

/// The records and payloads that this version writes, as a sample has them.
fn written() -> (String, Vec<(String, Vec<u8>)>) {
    let empty = MemoryStore::new();
    let mut rows: Rows = first_rows();
    let mut payloads = Vec::new();
    for batch in batches() {
        let planned = plan(empty.table(), &batch).unwrap();
        rows.extend(planned.rows);
        for spill in planned.spills {
            payloads.push((spill.file.path, spill.payload));
        }
    }
    let mut text = String::new();
    for (key, value) in rows {
        writeln!(text, "{} {}", hex(&key), hex(&value.unwrap())).unwrap();
    }
    (text, payloads)
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

/// Run once for a new version: `cargo test --lib store -- --ignored a_sample_is_written`.
#[test]
#[ignore = "writes the sample of a version that does not have one yet"]
fn a_sample_is_written() {
    let (records, payloads) = written();
    assert!(
        !directory().exists(),
        "a frozen sample is never written again"
    );
    std::fs::create_dir_all(directory()).unwrap();
    std::fs::write(directory().join("records.hex"), records).unwrap();
    for (path, payload) in payloads {
        let name = path.replace('/', "_");
        std::fs::write(directory().join(name), payload).unwrap();
    }
    let json = serde_json::to_string_pretty(&expected()).unwrap();
    std::fs::write(directory().join("expected.json"), json + "\n").unwrap();
}

#[test]
fn records_of_version_1_load() {
    let store = MemoryStore::new();
    let text = std::fs::read_to_string(directory().join("records.hex")).unwrap();
    let rows = text.lines().map(|line| {
        let (key, value) = line.split_once(' ').unwrap();
        (unhex(key), unhex(value))
    });
    let payload = |path: &str| std::fs::read(directory().join(path.replace('/', "_"))).unwrap();
    store.load(rows, payload);
    let json = std::fs::read_to_string(directory().join("expected.json")).unwrap();
    let expected: Expected = serde_json::from_str(&json).unwrap();
    assert_eq!(store.spec(run(1)).unwrap(), Some(expected.spec));
    let journal = store.journal(run(1)).unwrap();
    assert_eq!(journal, expected.journal);
    Run::fold(&journal).unwrap();
    assert_eq!(store.summary(run(1)).unwrap(), Some(expected.summary));
    assert_eq!(store.active().unwrap(), [run(1)]);
    assert_eq!(store.key("weekly 48").unwrap(), Some((run(1), at(1))));
}

#[test]
fn version_1_is_written_as_it_always_was() {
    if std::env::var_os("WORKERCTL_BLESS").is_some() {
        let (records, payloads) = written();
        std::fs::write(directory().join("records.hex"), records).unwrap();
        for (path, payload) in payloads {
            std::fs::write(directory().join(path.replace('/', "_")), payload).unwrap();
        }
    }
    let frozen = std::fs::read_to_string(directory().join("records.hex")).unwrap();
    let (records, payloads) = written();
    // Counts and newest runs came later; a program that knows none passes over them.
    let later = ["67", "68", "6c", "75"];
    let is_frozen = |line: &&str| !later.iter().any(|kind| line.starts_with(kind));
    let records: Vec<&str> = records.lines().filter(is_frozen).collect();
    assert_eq!(records, frozen.lines().collect::<Vec<_>>());
    for (path, payload) in payloads {
        let name = path.replace('/', "_");
        assert_eq!(std::fs::read(directory().join(name)).unwrap(), payload);
    }
    assert!(recorded(1, 0, 1).seq == 0);
}
