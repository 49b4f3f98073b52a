use super::*;

/// `main` and `side` differ in `a.txt`; `side` has one more commit that does not.
fn forked() -> Bed {
    let bed = Bed::with_commit();
    bed.git(&["switch", "-q", "-c", "side"]);
    bed.write("b.txt", "side\n");
    bed.commit_all("easy");
    bed.write("a.txt", "side\n");
    bed.commit_all("hard");
    bed.git(&["switch", "-q", "main"]);
    bed.write("a.txt", "main\n");
    bed.commit_all("main");
    bed
}

/// What the directory of the repository says of operations.
fn under_way(bed: &Bed) -> Vec<String> {
    let mut found: Vec<String> = fs::read_dir(bed.at(".git"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| {
            let heads = name.ends_with("_HEAD") && name != "ORIG_HEAD";
            let of_merge = name.starts_with("MERGE_") || name == "AUTO_MERGE";
            let directory = name.starts_with("rebase-") || name == "sequencer";
            heads || of_merge || directory || name.starts_with("BISECT_")
        })
        .collect();
    found.sort();
    found
}

/// Begins something and says by which code it is refused.
type Begun = (fn(&Bed), &'static str);

const BEGUN: [Begun; 7] = [
    (
        |bed| drop(bed.git(&["merge", "-q", "--no-ff", "--no-commit", "side~1"])),
        "merge_in_progress",
    ),
    (|bed| drop(bed.try_git(&["merge", "side"])), "unmerged"),
    (|bed| drop(bed.try_git(&["rebase", "side"])), "unmerged"),
    (
        |bed| drop(bed.try_git(&["rebase", "--exec", "exit 1", "HEAD~1"])),
        "rebase_in_progress",
    ),
    (
        |bed| drop(bed.try_git(&["cherry-pick", "side~1", "side"])),
        "unmerged",
    ),
    (
        |bed| {
            bed.git(&["revert", "--no-commit", "HEAD"]);
        },
        "revert_in_progress",
    ),
    (
        |bed| {
            bed.git(&["bisect", "start", "HEAD", "HEAD~1"]);
        },
        "bisect_in_progress",
    ),
];

#[test]
fn what_a_run_leaves_under_way_is_no_result_and_ends_with_the_restore() {
    for (nr, (begin, code)) in BEGUN.iter().enumerate() {
        let bed = forked();
        bed.write("mine.txt", "mine\n");
        let (before, status) = (files(&bed.path()), bed.status());
        let heads = bed.git(&["for-each-ref"]);
        let baseline = bed.baseline();
        begin(&bed);
        assert!(!under_way(&bed).is_empty(), "{nr}");
        let result = bed.result(&baseline);
        let refused = attribute(&baseline, &result, None).unwrap_err();
        assert_eq!(refused.code(), *code, "{nr}");
        for _ in 0..2 {
            let restored = bed.restore(&baseline, Some(&result));
            assert!(restored.is_complete(), "{nr}: {restored:?}");
            assert_eq!(under_way(&bed), Vec::<String>::new(), "{nr}");
            assert_eq!(files(&bed.path()), before, "{nr}");
            assert_eq!(bed.status(), status, "{nr}");
            assert_eq!(bed.git(&["branch", "--show-current"]), "main", "{nr}");
        }
        drop_refs(&bed.path(), &run()).unwrap();
        assert_eq!(bed.git(&["for-each-ref"]), heads, "{nr}");
        preflight(&bed.path(), &Policy::default(), None).unwrap();
        bed.fsck();
    }
}

#[test]
fn what_somebody_begins_after_the_run_is_left_and_named() {
    let bed = forked();
    let baseline = bed.baseline();
    bed.write("b.txt", "run\n");
    let result = bed.result(&baseline);
    fs::write(bed.at("b.txt"), "b\n").unwrap();
    bed.git(&["merge", "-q", "--no-ff", "--no-commit", "side~1"]);
    let restored = bed.restore(&baseline, Some(&result));
    let left = restored.operation_left.unwrap();
    assert!(left.contains("a merge is under way") && left.contains("--abort"));
    assert!(bed.at(".git/MERGE_HEAD").exists());

    let bed = forked();
    let baseline = bed.baseline();
    bed.git(&["merge", "-q", "--no-ff", "--no-commit", "side~1"]);
    let result = bed.result(&baseline);
    bed.git(&["merge", "--abort"]);
    assert!(!bed.try_git(&["merge", "side"]).0);
    let restored = bed.restore(&baseline, Some(&result));
    assert!(restored.operation_left.is_some(), "{restored:?}");
    assert!(bed.at(".git/MERGE_HEAD").exists());
}

#[test]
fn commits_and_branches_of_somebody_are_named_when_a_run_is_put_back() {
    let bed = Bed::with_commit();
    let baseline = bed.baseline();
    bed.write("a.txt", "mine\n");
    bed.git(&["commit", "-q", "-am", "a person's commit"]);
    bed.git(&["commit", "-q", "--allow-empty", "-m", "another"]);
    let tip = bed.git(&["rev-parse", "HEAD"]);
    let result = bed.result(&baseline);
    for _ in 0..2 {
        let restored = bed.restore(&baseline, Some(&result));
        assert!(restored.branch_reset, "{restored:?}");
        let [note] = &restored.notes[..] else {
            panic!("{restored:?}");
        };
        for part in ["2 commits", "`main`", "a person's commit", "another"] {
            assert!(note.contains(part), "{note}");
        }
        let rescue = note
            .split('`')
            .rfind(|part| part.starts_with("git "))
            .unwrap();
        let args: Vec<&str> = rescue.split(' ').skip(1).collect();
        bed.git(&["reflog", "expire", "--expire=now", "--all"]);
        bed.git(&["gc", "-q", "--prune=now"]);
        bed.git(&args);
        assert_eq!(bed.git(&["rev-parse", "rescue"]), tip);
        bed.git(&["branch", "-q", "-D", "rescue"]);
    }

    let bed = Bed::with_commit();
    let baseline = bed.baseline();
    bed.git(&["checkout", "-q", "-b", "feature"]);
    let result = bed.result(&baseline);
    let restored = bed.restore(&baseline, Some(&result));
    assert!(restored.is_complete(), "{restored:?}");
    assert!(
        restored.notes[0].contains("`git switch feature`"),
        "{restored:?}"
    );
    assert_eq!(bed.git(&["branch", "--show-current"]), "main");
}
