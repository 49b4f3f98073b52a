//! Two engines at once.

use crate::child::Committer;
use crate::rig::rounds;

#[test]
fn of_two_that_open_at_once_exactly_one_wins() {
    let dir = xtest::tempdir();
    for round in 0..rounds(8) {
        // In the first round they also race to create it.
        let start = || Committer::start(dir.path(), 1, Some(0), "hold", &[]);
        let mut two = [start(), start()];
        let mut words: Vec<String> = two
            .iter_mut()
            .map(|child| child.next_word().unwrap().0)
            .collect();
        words.sort();
        assert_eq!(words, ["busy", "open"], "round {round}");
        for child in &mut two {
            drop(child.process.stdin.take());
            child.process.wait().unwrap();
        }
    }
}
