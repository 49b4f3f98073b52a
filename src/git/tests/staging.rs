use super::*;

/// The index with its stages, for before and after.
fn index(bed: &Bed) -> String {
    bed.git(&["ls-files", "-s", "-v"])
}

/// A person has something staged, something else in the file, a new file, one announced, one removed.
fn staged_bed() -> Bed {
    let bed = Bed::with_commit();
    bed.write("a.txt", "staged\n");
    bed.git(&["add", "a.txt"]);
    bed.write("a.txt", "later\n");
    bed.write("u.txt", "u\n");
    bed.write("announced.txt", "announced\n");
    bed.git(&["add", "-N", "announced.txt"]);
    bed.git(&["rm", "-q", "--cached", "dir/c.txt"]);
    bed
}

#[test]
fn what_a_failed_run_staged_goes_and_what_a_person_staged_returns() {
    let changes: [fn(&Bed); 4] = [
        |bed| drop(bed.git(&["add", "-A"])),
        |bed| drop(bed.git(&["rm", "-q", "--cached", "b.txt"])),
        |bed| drop(bed.git(&["reset", "-q", "--hard"])),
        |bed| {
            bed.write("b.txt", "run\n");
            bed.git(&["add", "b.txt", "a.txt"]);
            bed.git(&["commit", "-q", "-m", "skill"]);
            bed.git(&["gc", "-q", "--prune=now"]);
        },
    ];
    for (nr, change) in changes.iter().enumerate() {
        for recorded in [true, false] {
            let bed = staged_bed();
            let (before, status, entries) = (files(&bed.path()), bed.status(), index(&bed));
            let baseline = bed.baseline();
            let commits = bed.log().len();
            change(&bed);
            let result = bed.result(&baseline);
            if !recorded && bed.log().len() != commits {
                continue;
            }
            let restored = bed.restore(&baseline, recorded.then_some(&result));
            assert!(restored.is_complete(), "{nr}: {restored:?}");
            assert_eq!(files(&bed.path()), before, "{nr}");
            assert_eq!(bed.status(), status, "{nr}");
            assert_eq!(index(&bed), entries, "{nr}");
            assert_eq!(bed.git(&["show", ":a.txt"]), "staged");
            let again = bed.restore(&baseline, recorded.then_some(&result));
            assert!(again.is_complete(), "{nr}: {again:?}");
            assert_eq!(index(&bed), entries, "{nr}");
            bed.fsck();
        }
    }
}

#[test]
fn what_a_person_stages_after_the_run_stays_and_is_named() {
    let bed = staged_bed();
    let baseline = bed.baseline();
    bed.git(&["add", "-A"]);
    let result = bed.result(&baseline);
    bed.write("a.txt", "newer\n");
    bed.git(&["add", "a.txt"]);
    let restored = bed.restore(&baseline, Some(&result));
    let left = vec![path("a.txt")];
    assert_eq!(restored.index, IndexRefresh::Done { left });
    assert_eq!(bed.git(&["show", ":a.txt"]), "newer");
    assert!(bed.status().contains("?? u.txt"), "{}", bed.status());
}

#[test]
fn what_a_merge_staged_goes_with_its_conflicts() {
    let bed = Bed::with_commit();
    bed.git(&["switch", "-q", "-c", "side"]);
    bed.write("a.txt", "side\n");
    bed.write("b.txt", "side\n");
    bed.commit_all("side");
    bed.git(&["switch", "-q", "main"]);
    bed.write("a.txt", "main\n");
    bed.commit_all("main");
    let (before, entries) = (files(&bed.path()), index(&bed));
    let baseline = bed.baseline();
    assert!(!bed.try_git(&["merge", "side"]).0);
    let result = bed.result(&baseline);
    let restored = bed.restore(&baseline, Some(&result));
    assert!(restored.is_complete(), "{restored:?}");
    assert_eq!((files(&bed.path()), index(&bed)), (before, entries));
}

#[test]
fn after_success_nothing_is_staged_but_what_a_person_had_staged() {
    let bed = staged_bed();
    let baseline = bed.baseline();
    bed.write("new.txt", "one\n");
    bed.git(&["add", "new.txt"]);
    bed.write("new.txt", "two\n");
    bed.git(&["rm", "-q", "--cached", "b.txt"]);
    bed.git(&["add", "a.txt", "u.txt"]);
    let result = bed.result(&baseline);
    let commit = bed.prepared(&baseline, &result);
    bed.moved(&commit);
    for _ in 0..2 {
        let settled = settle_index(&bed.path(), &baseline, &result).unwrap();
        assert_eq!(settled, IndexRefresh::Done { left: Vec::new() });
        let status = bed.status();
        let expected = "D  dir/c.txt\nMM a.txt\n A announced.txt\n?? dir/\n?? u.txt";
        let sorted = |text: &str| {
            let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&status), sorted(expected));
        assert_eq!(bed.git(&["show", ":a.txt"]), "staged");
    }
    bed.fsck();
}
