//! The machine, explored: every reachable state with every event, crashes at every commit, random walks.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "what a test finds wrong fails it at once; the page is a file, and many plans are met by many threads"
)]

mod page;
mod plans;
mod reach;
mod representatives;
mod rules;
mod sim;
mod walks;

use std::path::Path;

use workerctl_core::machine::Event;

use page::EVENTS;
use plans::plans;
use representatives::{queued, representatives};

/// `docs/dev/state-machine.md` says what the code does.
#[test]
fn the_page_is_what_the_code_does() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/dev/state-machine.md");
    let generated = page::markdown();
    if std::env::var_os("WORKERCTL_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &generated).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == generated,
        "docs/dev/state-machine.md is out of date: run `WORKERCTL_BLESS=1 cargo test --test explore`"
    );
}

#[test]
fn every_event_has_a_representative_and_every_name_stands_in_the_table() {
    let run = queued(&plans()[0]);
    let mut names: Vec<&str> = representatives(&run).iter().map(Event::name).collect();
    names.sort_unstable();
    names.dedup();
    let mut table = EVENTS.to_vec();
    table.sort_unstable();
    assert_eq!(names, table);
}
