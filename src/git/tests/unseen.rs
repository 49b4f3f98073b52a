use super::*;

fn mode(bed: &Bed, path: &str) -> u32 {
    let meta = fs::metadata(bed.at(path)).unwrap();
    meta.permissions().mode() & 0o777
}

fn chmod(bed: &Bed, path: &str, mode: u32) {
    fs::set_permissions(bed.at(path), fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn edits_that_git_is_told_not_to_look_at_come_back() {
    let changes: [fn(&Bed); 4] = [
        |bed| bed.write("a.txt", "run\n"),
        |bed| fs::remove_file(bed.at("a.txt")).unwrap(),
        |bed| {
            fs::remove_file(bed.at("a.txt")).unwrap();
            fs::create_dir(bed.at("a.txt")).unwrap();
        },
        |bed| {
            fs::remove_file(bed.at("a.txt")).unwrap();
            symlink("b.txt", bed.at("a.txt")).unwrap();
        },
    ];
    for flag in ["--skip-worktree", "--assume-unchanged"] {
        for edited in [true, false] {
            for (nr, change) in changes.iter().enumerate() {
                let bed = Bed::with_commit();
                bed.git(&["update-index", flag, "a.txt"]);
                if edited {
                    bed.write("a.txt", "mine\n");
                }
                let entries = bed.git(&["ls-files", "-s", "-v"]);
                let before = files(&bed.path());
                let baseline = bed.baseline();
                change(&bed);
                let result = bed.result(&baseline);
                let touched: Vec<_> = result
                    .changes
                    .iter()
                    .map(|c| c.change.path.clone())
                    .collect();
                assert_eq!(touched, [path("a.txt")], "{flag} {edited} {nr}");
                let refused = attribute(&baseline, &result, None).is_err();
                assert_eq!(refused, edited, "{flag} {nr}");
                for _ in 0..2 {
                    let restored = bed.restore(&baseline, Some(&result));
                    assert!(restored.is_complete(), "{flag} {edited} {nr}: {restored:?}");
                    assert_eq!(files(&bed.path()), before, "{flag} {edited} {nr}");
                }
                assert_eq!(bed.git(&["ls-files", "-s", "-v"]), entries);
            }
        }
    }
}

#[test]
fn what_a_sparse_checkout_leaves_out_is_no_change() {
    let bed = Bed::with_commit();
    bed.git(&["sparse-checkout", "set", "--no-cone", "/a.txt"]);
    let baseline = bed.baseline();
    assert!(baseline.unneeded.is_empty() && baseline.dirty.is_empty());
    assert!(bed.result(&baseline).changes.is_empty());
}

#[test]
fn a_private_file_is_private_again() {
    let bed = Bed::with_commit();
    for name in ["a.txt", "b.txt", "dir/c.txt"] {
        chmod(&bed, name, 0o600);
    }
    bed.write("open.txt", "open\n");
    bed.write("tool.sh", "#!/bin/sh\n");
    chmod(&bed, "open.txt", 0o640);
    chmod(&bed, "tool.sh", 0o700);
    bed.commit_all("more");
    let before = files(&bed.path());
    let baseline = bed.baseline();
    chmod(&bed, "a.txt", 0o777);
    fs::remove_file(bed.at("b.txt")).unwrap();
    bed.write("b.txt", "x\n");
    fs::remove_file(bed.at("dir/c.txt")).unwrap();
    bed.write("open.txt", "x\n");
    chmod(&bed, "open.txt", 0o666);
    chmod(&bed, "tool.sh", 0o644);
    let result = bed.result(&baseline);
    let restored = bed.restore(&baseline, Some(&result));
    assert!(restored.is_complete(), "{restored:?}");
    assert_eq!(files(&bed.path()), before);
    assert_eq!(
        (mode(&bed, "b.txt"), mode(&bed, "open.txt")),
        (0o600, 0o640)
    );
}

#[test]
fn directories_that_are_too_deep_are_named() {
    let bed = Bed::with_commit();
    let deep = |top: &str| format!("{top}/d b/{}", vec!["x"; 120].join("/"));
    fs::create_dir_all(bed.at(&deep("dir"))).unwrap();
    let refused = baseline(
        &bed.path(),
        &none(),
        &Limits::default(),
        &run(),
        Deadline::NONE,
    )
    .unwrap_err();
    assert_eq!(refused.code(), "too_deep");
    assert!(refused.to_string().contains("`dir/d b`"), "{refused}");
    assert!(refused.hint().unwrap().contains("/dir/d b/"));

    fs::remove_dir_all(bed.at("dir/d b")).unwrap();
    let before = files(&bed.path());
    let baseline = bed.baseline();
    fs::create_dir_all(bed.at(&deep("dir"))).unwrap();
    fs::create_dir_all(bed.at(&deep("new[1]"))).unwrap();
    bed.write("a.txt", "run\n");
    bed.write("out/x", "x\n");
    let result = bed.result(&baseline);
    let refused = attribute(&baseline, &result, None).unwrap_err();
    assert_eq!(refused.code(), "too_deep");
    for recorded in [true, false] {
        let restored = bed.restore(&baseline, recorded.then_some(&result));
        let mut left: Vec<_> = restored.failed.iter().map(|(p, _)| p.to_string()).collect();
        left.sort();
        assert_eq!(left, ["dir/d b", "new[1]"]);
        assert_eq!(files(&bed.path()), before);
    }
}
