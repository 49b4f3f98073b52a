//! `git gc` and its parts beside us.

use std::cell::Cell;

use super::*;

/// Tidies the repository as a person may at any time.
fn tidied(bed: &Bed, command: &str) {
    for line in command.split(';') {
        let args: Vec<&str> = line.split_whitespace().collect();
        // What it makes of what is half written is its own affair.
        let _ = bed.try_git(&args);
    }
}

const PRUNE: &str = "prune --expire=now";
const ALL: &str = "reflog expire --expire=now --all; repack -adq; gc -q --prune=now";

/// Does a step once for each of its looks at the deadline, and prunes at that look.
fn pruned_at_each_look(prepared: impl Fn() -> Bed, step: impl Fn(&Bed, Deadline<'_>)) {
    for look in 0.. {
        let bed = prepared();
        let looks = Cell::new(0);
        let tidies = || {
            if looks.replace(looks.get() + 1) == look {
                tidied(&bed, PRUNE);
            }
            false
        };
        step(&bed, Deadline::when(&tidies));
        bed.fsck();
        if looks.get() <= look {
            assert!(look > 3, "{look} looks");
            return;
        }
    }
}

fn dirty() -> Bed {
    let bed = Bed::with_commit();
    bed.write("new/x.txt", "x\n");
    bed.write("a.txt", "edited\n");
    bed
}

#[test]
fn a_prune_while_a_baseline_is_recorded_takes_nothing_of_it() {
    pruned_at_each_look(dirty, |bed, deadline| {
        let limits = Limits::default();
        let taken = baseline(&bed.path(), &none(), &limits, &run(), deadline).unwrap();
        tidied(bed, PRUNE);
        bed.git(&["cat-file", "-e", taken.tree.as_str()]);
    });
}

#[test]
fn a_prune_while_a_commit_is_built_takes_nothing_of_it() {
    pruned_at_each_look(Bed::with_commit, |bed, deadline| {
        let baseline = bed.baseline();
        bed.write("new/x.txt", "x\n");
        bed.write("a.txt", "changed\n");
        let result = bed.result(&baseline);
        let commit = match bed.prepare_until(&baseline, &result, deadline).unwrap() {
            Prepared::Commit(commit) => commit,
            Prepared::Nothing => panic!("there is something to commit"),
        };
        tidied(bed, PRUNE);
        bed.moved(&commit);
        drop_refs(&bed.path(), &run()).unwrap();
        assert_eq!(bed.status(), "");
    });
}

#[test]
fn what_was_recorded_outlives_housekeeping_at_every_step() {
    let bed = dirty();
    let housekeeping = || {
        tidied(&bed, "pack-refs --all");
        tidied(&bed, ALL);
    };
    let baseline = bed.baseline();
    housekeeping();
    bed.write("a.txt", "the run's\n");
    bed.git(&["commit", "-q", "-m", "the skill's", "--allow-empty"]);
    bed.result(&baseline);
    housekeeping();
    // A further record takes the place of one whose reference is packed.
    bed.write("a.txt", "the run's again\n");
    let result = bed.result(&baseline);
    housekeeping();
    let restored = bed.restore(&baseline, Some(&result));
    assert!(restored.is_complete(), "{restored:?}");
    assert_eq!(bed.read("a.txt"), "edited\n");
    housekeeping();
    assert!(diff(&bed.path(), &run(), 10_000).unwrap().is_some());
    bed.fsck();
}

#[test]
fn of_many_commits_the_newest_are_listed_and_all_are_counted() {
    let bed = Bed::with_commit();
    let baseline = bed.baseline();
    for _ in 0..COMMITS_LISTED_MAX + 3 {
        bed.git(&["commit", "-q", "--allow-empty", "-m", "one"]);
    }
    let result = bed.result(&baseline);
    let tip: Oid = bed.git(&["rev-parse", "HEAD"]).parse().unwrap();
    assert_eq!(result.count_made(), COMMITS_LISTED_MAX + 3);
    assert_eq!(result.commits_made.len(), COMMITS_LISTED_MAX);
    assert_eq!(result.commits_made.last(), Some(&tip));
}

#[test]
fn what_a_prune_deletes_that_began_before_there_was_a_reference_is_given_back() {
    let bed = dirty();
    let baseline = bed.baseline();
    let loose = |oid: &str| bed.at(".git/objects").join(&oid[..2]).join(&oid[2..]);
    // It unlinks what its look for references, before ours was there, did not reach.
    let objects = bed.git(&[
        "rev-list",
        "--objects",
        "--no-object-names",
        "main..refs/workerctl/runs/01JC0000000000000000000000/baseline",
    ]);
    assert!(objects.lines().count() >= 4, "{objects}");
    let unlink = |objects: &str| {
        for oid in objects.lines() {
            fs::remove_file(loose(oid)).unwrap();
        }
    };
    unlink(&objects);
    bed.write("a.txt", "the run's\n");
    let result = bed.result(&baseline);
    bed.fsck();
    unlink(&objects);
    let restored = bed.restore(&baseline, Some(&result));
    assert!(restored.is_complete(), "{restored:?}");
    assert_eq!(bed.read("a.txt"), "edited\n");
    bed.fsck();
    // The last reference is missed by such a prune too, when the run itself has nothing more to do.
    let discarded = bed.git(&[
        "rev-parse",
        "refs/workerctl/runs/01JC0000000000000000000000/discarded",
    ]);
    fs::remove_file(loose(&discarded)).unwrap();
    assert!(diff(&bed.path(), &run(), 10_000).unwrap().is_some());
    fs::remove_file(loose(&discarded)).unwrap();
    bed.baseline();
    bed.fsck();
    drop_refs(&bed.path(), &run()).unwrap();
    assert!(!bed.at(".git/workerctl-held").exists());
}
