use super::*;

/// A person has ignored things: by a rule, by a rule that hides itself, and by `info/exclude`.
fn ignoring() -> Bed {
    let bed = Bed::with_commit();
    bed.write(".gitignore", "*.log\n/built/\n");
    bed.commit_all("rules");
    bed.write("mine.txt", "untracked\n");
    bed.write("old.log", "old\n");
    bed.write("built/x", "x\n");
    bed.write("own/.gitignore", "*\n");
    bed.write("own/y", "y\n");
    bed.write(".git/info/exclude", "/excluded\n");
    bed.write("excluded", "z\n");
    bed
}

#[test]
fn what_a_run_hides_by_its_own_rules_is_the_runs() {
    let changes: [fn(&Bed); 4] = [
        |bed| {
            bed.write("hid", "x\n");
            bed.write("many/hid", "x\n");
            bed.write(".gitignore", "*.log\n/built/\nhid\n/mine.txt\n/own2/\n");
            bed.write("own2/deep/y", "y\n");
        },
        |bed| {
            bed.write("hid", "x\n");
            bed.write(".gitignore", "*\n");
            bed.git(&["commit", "-q", "-am", "hidden"]);
        },
        |bed| {
            bed.write("venv/.gitignore", "*\n");
            bed.write("venv/bin/python", "x\n");
        },
        |bed| {
            bed.write("hid", "x\n");
            bed.write(".git/info/exclude", "/excluded\n/hid\n");
        },
    ];
    for (nr, change) in changes.iter().enumerate() {
        let bed = ignoring();
        let before = files(&bed.path());
        let baseline = bed.baseline();
        change(&bed);
        bed.write("new.log", "ignored before as well\n");
        bed.write("built/new", "ignored before as well\n");
        let result = bed.result(&baseline);
        for _ in 0..2 {
            let restored = bed.restore(&baseline, Some(&result));
            assert!(restored.is_complete(), "{nr}: {restored:?}");
            let mut now = files(&bed.path());
            now.retain(|(path, ..)| !path.ends_with("new.log") && !path.ends_with("built/new"));
            assert_eq!(now, before, "{nr}");
        }
        assert_eq!(bed.read("new.log"), "ignored before as well\n");
    }
}

#[test]
fn what_a_run_hides_is_not_committed() {
    let bed = ignoring();
    let baseline = bed.baseline();
    bed.write("hid", "x\n");
    bed.write(".gitignore", "*.log\n/built/\n/hid\n/mine.txt\n");
    let result = bed.result(&baseline);
    let attributed = attribute(&baseline, &result, None).unwrap();
    assert_eq!(attributed.commit_paths, [path(".gitignore")]);
    assert_eq!(result.changes.len(), 2);
    let unchanged = check_unchanged(&bed.path(), &baseline, &result, &none(), &Limits::default());
    assert!(unchanged.unwrap().is_none());
}

#[test]
fn caches_that_ignore_themselves_are_no_change_of_a_check() {
    let bed = ignoring();
    let baseline = bed.baseline();
    bed.write("a.txt", "run\n");
    let result = bed.result(&baseline);
    bed.write(".cache/.gitignore", "*\n");
    bed.write(".cache/x", "x\n");
    let (exclusions, limits) = (none(), Limits::default());
    let drift = check_unchanged(&bed.path(), &baseline, &result, &exclusions, &limits);
    assert!(drift.unwrap().is_none());
    bed.write("b.txt", "check\n");
    let drift = check_unchanged(&bed.path(), &baseline, &result, &exclusions, &limits);
    assert_eq!(drift.unwrap().paths, [path("b.txt")]);
}

#[test]
fn what_is_hidden_in_masses_is_left_and_named() {
    let bed = ignoring();
    let baseline = bed.baseline();
    bed.write("packages/.gitignore", "*\n");
    for n in 0..1_100 {
        bed.write(&format!("packages/{n}"), "x\n");
    }
    bed.write("a.txt", "run\n");
    let result = bed.result(&baseline);
    let attributed = attribute(&baseline, &result, None).unwrap();
    assert_eq!(attributed.commit_paths, [path("a.txt")]);
    let restored = bed.restore(&baseline, Some(&result));
    let left: Vec<_> = restored.failed.iter().map(|(p, _)| p.to_string()).collect();
    assert_eq!(left, ["packages"]);
    assert_eq!(restored.put_back, [path("a.txt")]);
}
