//! The machine, explored: every reachable state with every event, crashes at every commit, random walks.

#[cfg(test)]
#[path = "explore/reach.rs"]
mod reach;
#[cfg(test)]
#[path = "explore/sim.rs"]
mod sim;
#[cfg(test)]
#[path = "explore/walks.rs"]
mod walks;

use std::path::Path;

use workerctl::machine::table;

/// `docs/state-machine.md` says what the code does.
#[test]
fn the_page_is_what_the_code_does() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/state-machine.md");
    let generated = table::markdown();
    if std::env::var_os("WORKERCTL_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &generated).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == generated,
        "docs/state-machine.md is out of date: run `WORKERCTL_BLESS=1 cargo test --test explore`"
    );
}
