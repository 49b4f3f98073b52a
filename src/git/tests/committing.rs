use super::*;

#[test]
fn a_clean_tree_writes_no_object() {
    let bed = Bed::with_commit();
    let before = bed.git(&["count-objects"]);
    let baseline = bed.baseline();
    assert_eq!(before, bed.git(&["count-objects"]));
    assert!(baseline.dirty.is_empty());
    assert_eq!(
        baseline.tree.as_str(),
        bed.git(&["rev-parse", "HEAD^{tree}"])
    );
    assert_eq!(drop_refs(&bed.path(), &run()).unwrap(), 1);
    assert_eq!(drop_refs(&bed.path(), &run()).unwrap(), 0);
}

#[test]
fn a_run_is_one_commit_and_leaves_a_clean_tree() {
    let bed = Bed::with_commit();
    let commit = bed.run(|bed| {
        bed.write("a.txt", "changed\n");
        bed.write("new/deep/file.md", "new\n");
        fs::remove_file(bed.at("b.txt")).unwrap();
        symlink("a.txt", bed.at("link")).unwrap();
        fs::set_permissions(bed.at("dir/c.txt"), fs::Permissions::from_mode(0o755)).unwrap();
    });
    assert_eq!(bed.log(), ["the run's work", "first"]);
    assert_eq!(bed.status(), "");
    assert_eq!(bed.git(&["rev-parse", "main"]), commit.oid.as_str());
    let listed = bed.git(&["ls-tree", "-r", "HEAD"]);
    assert!(listed.contains("120000 blob"), "{listed}");
    assert!(listed.contains("100755 blob"), "{listed}");
    assert!(!listed.contains("b.txt"), "{listed}");
    let found = bed.git(&["log", "-1", "--format=%(trailers:key=Run-Id,valueonly)"]);
    assert_eq!(found, RUN);
    assert!(bed.git(&["reflog", "-1"]).contains("workerctl: run"));
    assert!(
        bed.git(&["reflog", "-1", "main"])
            .contains("workerctl: run")
    );
    assert_eq!(
        bed.git(&["log", "-1", "--format=%an %ae %ai"]),
        "Ada ada@example.com 2027-01-15 09:00:00 +0100"
    );
}

#[test]
fn files_become_directories_and_the_other_way_round() {
    let bed = Bed::with_commit();
    bed.run(|bed| {
        fs::remove_file(bed.at("a.txt")).unwrap();
        bed.write("a.txt/inner", "i\n");
        fs::remove_dir_all(bed.at("dir")).unwrap();
        bed.write("dir", "now a file\n");
    });
    assert_eq!(bed.status(), "");
    assert_eq!(bed.git(&["ls-files"]), "a.txt/inner\nb.txt\ndir");
}

#[test]
fn the_same_run_gives_the_same_commit() {
    let bed = Bed::with_commit();
    let baseline = bed.baseline();
    bed.write("a.txt", "changed\n");
    let result = bed.result(&baseline);
    let first = bed.prepared(&baseline, &result);
    assert_eq!(bed.prepared(&baseline, &result), first);
    bed.moved(&first);
    assert_eq!(bed.prepare(&baseline, &result).unwrap(), Prepared::Nothing);
}

#[test]
fn what_the_user_staged_stays_staged_and_out_of_the_commit() {
    let bed = Bed::with_commit();
    bed.write("a.txt", "mine, staged\n");
    bed.git(&["add", "a.txt"]);
    bed.write("a.txt", "mine, more\n");
    bed.write("mine.txt", "untracked\n");
    bed.write("added.txt", "added\n");
    bed.git(&["add", "added.txt"]);
    let before = bed.status();
    bed.run(|bed| bed.write("b.txt", "the run's\n"));
    assert_eq!(bed.status(), before);
    assert_eq!(bed.git(&["show", ":a.txt"]), "mine, staged");
    assert_eq!(
        bed.git(&["show", "--format=", "--name-only", "HEAD"]),
        "b.txt"
    );
}

#[test]
fn a_path_that_the_user_stages_meanwhile_keeps_what_they_staged() {
    let bed = Bed::with_commit();
    let baseline = bed.baseline();
    bed.write("a.txt", "the run's\n");
    let result = bed.result(&baseline);
    let commit = bed.prepared(&baseline, &result);
    bed.write("a.txt", "the user's\n");
    bed.git(&["add", "a.txt"]);
    let left = IndexRefresh::Done {
        left: vec![path("a.txt")],
    };
    assert_eq!(bed.moved(&commit), Moved::Done { index: left });
    assert_eq!(bed.git(&["show", ":a.txt"]), "the user's");
    assert_eq!(bed.git(&["show", "HEAD:a.txt"]), "the run's");
}

#[test]
fn an_edit_right_after_the_commit_is_seen_by_git() {
    let bed = Bed::with_commit();
    let baseline = bed.baseline();
    bed.write("a.txt", "run\n");
    let result = bed.result(&baseline);
    let commit = bed.prepared(&baseline, &result);
    bed.moved(&commit);
    bed.write("a.txt", "usr\n");
    assert_eq!(bed.status(), " M a.txt");
}

#[test]
fn a_dirty_path_that_the_run_changes_is_refused() {
    let bed = Bed::with_commit();
    bed.write("a.txt", "mine\n");
    bed.write("new.txt", "mine\n");
    let baseline = bed.baseline();
    let outputs = [path("a.txt"), path("new.txt"), path("b.txt"), path("dir")];
    let obstacles = declared_dirty(&bed.path(), &baseline, &outputs).unwrap();
    assert_eq!(
        obstacles,
        [
            (path("a.txt"), OutputObstacle::Dirty),
            (path("new.txt"), OutputObstacle::Dirty),
            (path("dir"), OutputObstacle::IsDirectory),
        ]
    );
    bed.write("a.txt", "mine and the run's\n");
    bed.write("new.txt", "mine and the run's\n");
    bed.write("b.txt", "the run's\n");
    let result = bed.result(&baseline);
    let refused = attribute(&baseline, &result, None).unwrap_err();
    assert_eq!(
        refused,
        AttributionError::PathWasDirty(vec![path("a.txt"), path("new.txt")])
    );
    let only = attribute(&baseline, &result, Some(&[path("b.txt")])).unwrap();
    assert_eq!(only.commit_paths, [path("b.txt")]);
}

#[test]
fn nothing_changed_is_no_commit() {
    let bed = Bed::with_commit();
    bed.write("a.txt", "mine\n");
    let baseline = bed.baseline();
    let result = bed.result(&baseline);
    assert!(result.changes.is_empty());
    assert_eq!(bed.prepare(&baseline, &result).unwrap(), Prepared::Nothing);
}

#[test]
fn moving_twice_and_after_others_moved() {
    let bed = Bed::with_commit();
    let baseline = bed.baseline();
    bed.write("a.txt", "run\n");
    let result = bed.result(&baseline);
    let commit = bed.prepared(&baseline, &result);
    let find = |oid: Option<&Oid>| {
        find_commit(
            &bed.path(),
            "refs/heads/main",
            oid,
            &run(),
            commit.parent.as_ref(),
        )
        .unwrap()
    };
    assert_eq!(find(Some(&commit.oid)), Found::AtParent);
    assert!(matches!(bed.moved(&commit), Moved::Done { .. }));
    assert!(matches!(bed.moved(&commit), Moved::AlreadyThere { .. }));
    assert_eq!(bed.log().len(), 2);
    let done = Found::Done {
        oid: commit.oid.clone(),
    };
    assert_eq!(find(Some(&commit.oid)), done);
    assert_eq!(find(None), done, "by its trailer");

    bed.git(&["commit", "-q", "--allow-empty", "-m", "later"]);
    let tip: Oid = bed.git(&["rev-parse", "HEAD"]).parse().unwrap();
    assert_eq!(bed.moved(&commit), Moved::TipMoved { tip });
    assert_eq!(find(Some(&commit.oid)), done);

    bed.git(&[
        "reset",
        "-q",
        "--hard",
        commit.parent.as_ref().unwrap().as_str(),
    ]);
    assert_eq!(
        find(Some(&commit.oid)),
        done,
        "the reflog has it: taken back on purpose"
    );

    bed.git(&["switch", "-q", "-c", "other"]);
    bed.git(&["branch", "-q", "-D", "main"]);
    assert_eq!(bed.moved(&commit), Moved::BranchGone);
    assert_eq!(find(Some(&commit.oid)), Found::BranchGone);
    assert!(matches!(
        bed.prepare(&baseline, &result),
        Err(PrepareError::BranchGone(_))
    ));
}

#[test]
fn the_commit_is_built_again_on_a_branch_that_moved() {
    let bed = Bed::with_commit();
    let baseline = bed.baseline();
    bed.write("a.txt", "run\n");
    let result = bed.result(&baseline);
    let stale = bed.prepared(&baseline, &result);
    bed.write("b.txt", "user\n");
    bed.git(&["commit", "-q", "-m", "user", "b.txt"]);
    assert!(matches!(bed.moved(&stale), Moved::TipMoved { .. }));
    let parent = stale.parent.clone();
    let found = find_commit(
        &bed.path(),
        &stale.refname,
        Some(&stale.oid),
        &run(),
        parent.as_ref(),
    );
    assert!(matches!(found.unwrap(), Found::Absent { .. }));
    let again = bed.prepared(&baseline, &result);
    assert!(matches!(bed.moved(&again), Moved::Done { .. }));
    assert_eq!(bed.log(), ["the run's work", "user", "first"]);
    assert_eq!(bed.git(&["show", "HEAD:b.txt"]), "user");
    assert_eq!(bed.status(), "");
    bed.fsck();
}

#[test]
fn a_path_changed_by_the_run_and_by_commits_since_is_a_conflict() {
    let bed = Bed::with_commit();
    let baseline = bed.baseline();
    bed.write("a.txt", "run\n");
    let result = bed.result(&baseline);
    bed.write("a.txt", "user\n");
    bed.git(&["commit", "-q", "-m", "user", "a.txt"]);
    let refused = bed.prepare(&baseline, &result).unwrap_err();
    assert!(matches!(refused, PrepareError::Conflict(paths) if paths == [path("a.txt")]));
}

#[test]
fn commits_of_the_skill_are_listed_and_kept() {
    let bed = Bed::with_commit();
    let baseline = bed.baseline();
    bed.write("a.txt", "skill\n");
    bed.git(&["commit", "-q", "-a", "-m", "skill"]);
    bed.write("b.txt", "left over\n");
    let result = bed.result(&baseline);
    let tip: Oid = bed.git(&["rev-parse", "HEAD"]).parse().unwrap();
    assert_eq!(result.commits_made, [tip]);
    let attribution = attribute(&baseline, &result, None).unwrap();
    assert_eq!(attribution.commit_paths, [path("b.txt")]);
    assert_eq!(attribution.committed_paths, [path("a.txt")]);
    bed.moved(&bed.prepared(&baseline, &result));
    assert_eq!(bed.log(), ["the run's work", "skill", "first"]);
    assert_eq!(bed.status(), "");
}

#[test]
fn a_skill_that_switches_or_rewrites_is_refused() {
    let bed = Bed::with_commit();
    bed.git(&["commit", "-q", "--allow-empty", "-m", "second"]);
    let baseline = bed.baseline();
    bed.git(&["commit", "-q", "--amend", "--allow-empty", "-m", "amended"]);
    let result = bed.result(&baseline);
    let refused = attribute(&baseline, &result, None).unwrap_err();
    assert_eq!(refused.code(), "branch_rewritten");
    assert!(bed.restore(&baseline, Some(&result)).branch_reset);
    assert_eq!(bed.log()[0], "second");
    drop_refs(&bed.path(), &run()).unwrap();

    let baseline = bed.baseline();
    bed.git(&["switch", "-q", "-c", "elsewhere"]);
    let result = bed.result(&baseline);
    let refused = attribute(&baseline, &result, None).unwrap_err();
    assert_eq!(refused.code(), "branch_switched");
    assert!(bed.restore(&baseline, Some(&result)).branch_reset);
    assert_eq!(bed.git(&["branch", "--show-current"]), "main");
}

#[test]
fn a_check_that_changes_the_result_is_noticed() {
    let bed = Bed::with_commit();
    let baseline = bed.baseline();
    bed.write("a.txt", "run\n");
    let result = bed.result(&baseline);
    let check = || {
        let limits = Limits::default();
        check_unchanged(&bed.path(), &baseline, &result, &none(), &limits).unwrap()
    };
    assert!(check().is_none());
    bed.write("a.txt", "check\n");
    bed.write("junk", "check\n");
    assert_eq!(check().paths, [path("a.txt"), path("junk")]);
}

#[test]
fn exclusions_are_never_part_of_anything() {
    let bed = Bed::with_commit();
    let exclusions = Exclusions::new([path("state"), path("dir/c.txt")]);
    let limits = Limits::default();
    bed.write("state/db", "1");
    let baseline = baseline(&bed.path(), &exclusions, &limits, &run(), Deadline::NONE).unwrap();
    assert!(baseline.dirty.is_empty());
    bed.write("state/db", "2");
    bed.write("dir/c.txt", "another run's\n");
    bed.write("a.txt", "run\n");
    let result = result_tree(&bed.path(), &baseline, &exclusions, &limits, &[]).unwrap();
    let changed: Vec<_> = result
        .changes
        .iter()
        .map(|c| c.change.path.clone())
        .collect();
    assert_eq!(changed, [path("a.txt")]);
    bed.moved(&bed.prepared(&baseline, &result));
    assert_eq!(
        bed.status(),
        "M dir/c.txt\n?? state/".replacen("M ", " M ", 1)
    );
}

#[test]
fn limits_refuse_with_what_was_found() {
    let bed = Bed::with_commit();
    let limits = Limits {
        untracked_file_bytes_max: 4,
        baseline_bytes_max: 100,
        untracked_files_max: 2,
        ..Limits::default()
    };
    let record = || baseline(&bed.path(), &none(), &limits, &run(), Deadline::NONE);
    bed.write("big", "more than four");
    let large = record().unwrap();
    assert_eq!(large.unkept[0].path, path("big"));
    bed.write("big", "now changed...");
    let result = bed.result(&large);
    assert!(!result.changes[0].restorable);
    assert!(attribute(&large, &result, None).is_err());
    assert_eq!(bed.restore(&large, Some(&result)).failed[0].0, path("big"));
    bed.write("x", "");
    bed.write("y", "");
    assert_eq!(record().unwrap_err().code(), "too_much_uncommitted");
    fs::remove_file(bed.at("x")).unwrap();
    bed.write("y", &"y".repeat(200));
    assert!(record().unwrap_err().hint().unwrap().contains(".gitignore"));
}

#[test]
fn names_that_are_not_utf8_are_committed() {
    use std::os::unix::ffi::OsStrExt;
    let bed = Bed::with_commit();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9 %.txt");
    bed.run(|bed| fs::write(bed.path().join(name), "x").unwrap());
    assert_eq!(bed.status(), "");
}
