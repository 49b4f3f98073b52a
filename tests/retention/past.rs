//! Runs of the past: copies of real ones, written through the store's own interface, with their threads.

use std::fs;
use std::sync::Arc;

use workerctl::machine::Entry;
use workerctl::model::{Outcome, RunId, RunSpec, ThreadId, Timestamp};
use workerctl::protocol::RunSummary;
use workerctl::store::{Batch, OpenOptions, SledStore, Store, Write};

use crate::workspace::Workspace;

pub(crate) const DAY_MS: u64 = 24 * 3_600_000;

/// One real run as it is stored.
pub(crate) struct Sample {
    spec: RunSpec,
    journal: Vec<Entry>,
    summary: RunSummary,
}

/// A run of the past.
#[derive(Debug, Clone)]
pub(crate) struct PastRun {
    pub(crate) run: RunId,
    pub(crate) thread: ThreadId,
    pub(crate) summary: RunSummary,
}

/// The store of a workspace in which no engine runs.
pub(crate) fn store(workspace: &Workspace) -> SledStore {
    SledStore::open(&workspace.state().join("store"), OpenOptions::default()).unwrap()
}

impl Sample {
    /// What a run of this skill leaves.
    pub(crate) fn of(workspace: &Workspace, skill: &str) -> Sample {
        workspace.run(&["run", skill]);
        let newest = workspace.json(&["runs", "-n", "1"]);
        let run: RunId = newest["runs"][0]["run"].as_str().unwrap().parse().unwrap();
        let store = store(workspace);
        Sample {
            spec: store.spec(run).unwrap().unwrap(),
            journal: store.journal(run).unwrap(),
            summary: store.summary(run).unwrap().unwrap(),
        }
    }

    /// The same run so many milliseconds before `now`, changed as `change` says. Newer ids must come later.
    pub(crate) fn before(
        &self,
        now: Timestamp,
        ago_ms: u64,
        change: impl Fn(&mut RunSummary),
    ) -> (PastRun, Vec<Write>) {
        let at = now.minus_millis(ago_ms);
        let random = u128::from(ago_ms).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        let run = RunId::following(None, at, random);
        let moved = |one: Timestamp| at.plus_millis(one.millis_since(self.spec.submitted_at));
        let mut spec = self.spec.clone();
        (spec.run, spec.submitted_at) = (run, at);
        spec.thread = ThreadId::of(run, &spec.skill, at);
        let mut summary = self.summary.clone();
        (summary.run, summary.submitted_at) = (run, at);
        summary.thread = spec.thread.clone();
        summary.started_at = summary.started_at.map(moved);
        summary.finished_at = summary.finished_at.map(moved);
        summary.day = None;
        change(&mut summary);
        let journal = self.journal.iter().cloned();
        let entries = journal.map(|entry| Entry {
            at: moved(entry.at),
            ..entry
        });
        let past = PastRun {
            run,
            thread: spec.thread.clone(),
            summary: summary.clone(),
        };
        let writes = vec![
            Write::Spec(Arc::new(spec)),
            Write::Entries {
                run,
                entries: entries.collect(),
            },
            Write::Finished(Box::new(summary)),
            Write::Closed(run),
        ];
        (past, writes)
    }
}

/// Stores these runs, each with a thread of so many bytes.
pub(crate) fn put(
    workspace: &Workspace,
    runs: Vec<(PastRun, Vec<Write>)>,
    bytes: usize,
) -> Vec<PastRun> {
    let store = store(workspace);
    let mut all = Vec::new();
    let mut writes = Vec::new();
    for (past, of_run) in runs {
        let [log, document] = files(workspace, &past);
        fs::create_dir_all(log.parent().unwrap()).unwrap();
        fs::write(log, "x".repeat(bytes)).unwrap();
        fs::write(document, "{}").unwrap();
        writes.extend(of_run);
        all.push(past);
    }
    store.commit(&Batch { writes }).unwrap();
    all
}

/// The two files of its thread.
pub(crate) fn files(workspace: &Workspace, past: &PastRun) -> [std::path::PathBuf; 2] {
    ["jsonl", "json"].map(|kind| {
        let name = format!("workspace/threads/{}.{kind}", past.thread);
        workspace.root.join(name)
    })
}

/// Whether something of it is there, and that it is there whole or not at all.
pub(crate) fn is_there(workspace: &Workspace, store: &dyn Store, past: &PastRun) -> bool {
    let line = store.summary(past.run).unwrap();
    let is_known = line.is_some();
    assert_eq!(
        store.spec(past.run).unwrap().is_some(),
        is_known,
        "{past:?}"
    );
    assert_eq!(
        !store.journal(past.run).unwrap().is_empty(),
        is_known,
        "{past:?}"
    );
    if is_known {
        assert_eq!(line.as_ref(), Some(&past.summary));
    } else {
        // A thread goes before its run does; never the other way round.
        assert!(
            files(workspace, past).iter().all(|file| !file.exists()),
            "{past:?}"
        );
    }
    is_known
}

/// An outcome that nobody has resolved.
pub(crate) fn unknown(summary: &mut RunSummary) {
    summary.outcome = Some(Outcome::Unknown {
        why: "owner_lost".to_owned(),
    });
}
