use super::*;

/// A run that does everything to files, on a tree that was dirty before.
fn rough_run(bed: &Bed) {
    bed.write("a.txt", "changed\n");
    fs::remove_file(bed.at("b.txt")).unwrap();
    fs::remove_dir_all(bed.at("dir")).unwrap();
    symlink("/etc", bed.at("dir")).unwrap();
    bed.write("out/deep/x", "x\n");
    bed.write("mine.txt", "overwritten\n");
    fs::remove_file(bed.at("dirty.txt")).unwrap();
}

fn dirty_bed() -> Bed {
    let bed = Bed::with_commit();
    bed.write("dirty.txt", "committed\n");
    bed.write("tool.sh", "#!/bin/sh\n");
    fs::set_permissions(bed.at("tool.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    bed.commit_all("second");
    bed.write("dirty.txt", "staged\n");
    bed.git(&["add", "dirty.txt"]);
    bed.write("dirty.txt", "dirty\n");
    bed.write("mine.txt", "untracked\n");
    fs::set_permissions(bed.at("mine.txt"), fs::Permissions::from_mode(0o600)).unwrap();
    bed
}

#[test]
fn everything_goes_back() {
    let bed = dirty_bed();
    let (before, status) = (files(&bed.path()), bed.status());
    let baseline = bed.baseline();
    rough_run(&bed);
    fs::set_permissions(bed.at("tool.sh"), fs::Permissions::from_mode(0o644)).unwrap();
    let result = bed.result(&baseline);
    let restored = bed.restore(&baseline, Some(&result));
    assert!(restored.is_complete(), "{restored:?}");
    assert_eq!(files(&bed.path()), before);
    assert_eq!(bed.status(), status);
    assert_eq!(bed.git(&["show", ":dirty.txt"]), "staged");
    let patch = diff(&bed.path(), &run(), 1 << 20).unwrap().unwrap();
    assert!(
        patch.text.contains("+changed") && !patch.truncated,
        "{}",
        patch.text
    );
    assert!(diff(&bed.path(), &run(), 100).unwrap().unwrap().truncated);
    bed.fsck();
}

#[test]
fn restoring_again_after_any_part_of_it_is_the_same() {
    for recorded in [true, false] {
        for done in 0..6 {
            let bed = dirty_bed();
            let before = files(&bed.path());
            let baseline = bed.baseline();
            rough_run(&bed);
            let result = bed.result(&baseline);
            let whole = bed.restore(&baseline, Some(&result));
            assert_eq!(files(&bed.path()), before);
            // The state as if the restore had been killed after `done` of its paths.
            rough_run(&bed);
            let mut parts: Vec<Box<dyn Fn()>> = vec![
                Box::new(|| fs::remove_dir_all(bed.at("out")).unwrap()),
                Box::new(|| fs::remove_file(bed.at("dir")).unwrap()),
                Box::new(|| bed.write("a.txt", "a\n")),
                Box::new(|| bed.write("b.txt", "b\n")),
                Box::new(|| bed.write("dir/c.txt", "c\n")),
            ];
            parts.truncate(done);
            for part in &parts {
                part();
            }
            bed.write(&format!(".workerctl-{RUN}.tmp"), "torn");
            let again = bed.restore(&baseline, recorded.then_some(&result));
            if recorded || done < 4 {
                let _ = fs::remove_file(bed.at(&format!(".workerctl-{RUN}.tmp")));
            }
            assert!(again.is_complete(), "{again:?}");
            assert_eq!(again.put_back, whole.put_back);
            let mut now = files(&bed.path());
            now.retain(|f| !f.0.to_string_lossy().ends_with(".tmp"));
            assert_eq!(now, before, "{recorded} {done}");
            bed.restore(&baseline, recorded.then_some(&result));
        }
    }
}

#[test]
fn what_was_edited_since_is_left() {
    let bed = Bed::with_commit();
    let baseline = bed.baseline();
    bed.write("a.txt", "run\n");
    bed.write("b.txt", "run\n");
    bed.write("new.txt", "run\n");
    let result = bed.result(&baseline);
    bed.write("a.txt", "user\n");
    fs::remove_file(bed.at("new.txt")).unwrap();
    symlink("/etc/passwd", bed.at("new.txt")).unwrap();
    let restored = bed.restore(&baseline, Some(&result));
    assert_eq!(restored.edited_since, [path("new.txt"), path("a.txt")]);
    assert_eq!(restored.put_back, [path("b.txt")]);
    assert_eq!(bed.read("a.txt"), "user\n");
    assert!(bed.at("new.txt").is_symlink());
}

#[test]
fn no_link_is_followed() {
    let bed = Bed::with_commit();
    let outside = bed.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("c.txt"), "skill\n").unwrap();
    let baseline = bed.baseline();
    bed.write("dir/c.txt", "skill\n");
    let result = bed.result(&baseline);
    fs::remove_dir_all(bed.at("dir")).unwrap();
    symlink(&outside, bed.at("dir")).unwrap();
    let restored = bed.restore(&baseline, Some(&result));
    assert_eq!(restored.put_back, []);
    assert_eq!(restored.edited_since, [path("dir/c.txt")]);
    assert_eq!(
        fs::read_to_string(outside.join("c.txt")).unwrap(),
        "skill\n"
    );
}

#[test]
fn a_fifo_in_the_place_of_a_file_stops_nothing() {
    let bed = Bed::with_commit();
    let baseline = bed.baseline();
    fs::remove_file(bed.at("a.txt")).unwrap();
    let made = Command::new("mkfifo")
        .arg(bed.at("a.txt"))
        .status()
        .unwrap();
    assert!(made.success());
    let result = bed.result(&baseline);
    assert_eq!(result.changes[0].change.kind, ChangeKind::Deleted);
    let restored = bed.restore(&baseline, Some(&result));
    assert!(restored.is_complete(), "{restored:?}");
    assert_eq!(bed.read("a.txt"), "a\n");
}

#[test]
fn commits_and_staging_of_the_skill_are_taken_back() {
    let bed = Bed::with_commit();
    let before = bed.git(&["rev-parse", "HEAD"]);
    let baseline = bed.baseline();
    bed.write("a.txt", "skill\n");
    bed.write("new.txt", "skill\n");
    bed.commit_all("skill");
    bed.write("b.txt", "skill\n");
    bed.git(&["add", "b.txt"]);
    let result = bed.result(&baseline);
    let restored = bed.restore(&baseline, Some(&result));
    assert!(
        restored.branch_reset && restored.is_complete(),
        "{restored:?}"
    );
    assert_eq!(bed.git(&["rev-parse", "HEAD"]), before);
    assert_eq!(bed.status(), "");
    assert!(bed.restore(&baseline, Some(&result)).branch_reset);
    bed.fsck();
}

#[test]
fn the_first_commit_of_a_skill_is_taken_back() {
    let bed = Bed::new();
    let baseline = bed.baseline();
    bed.write("a.txt", "skill\n");
    bed.commit_all("skill");
    let result = bed.result(&baseline);
    let restored = bed.restore(&baseline, Some(&result));
    assert!(restored.is_complete(), "{restored:?}");
    assert_eq!(bed.status(), "");
    assert!(!bed.try_git(&["rev-parse", "--verify", "-q", "HEAD"]).0);
    assert!(!bed.at("a.txt").exists());
}

#[test]
fn a_branch_that_somebody_else_moved_stays() {
    let bed = Bed::with_commit();
    let baseline = bed.baseline();
    bed.write("a.txt", "skill\n");
    bed.write("b.txt", "skill\n");
    bed.git(&["commit", "-q", "-m", "skill", "a.txt"]);
    let result = bed.result(&baseline);
    bed.git(&["commit", "-q", "--allow-empty", "-m", "user"]);
    let restored = bed.restore(&baseline, Some(&result));
    assert!(!restored.branch_reset && restored.branch_kept.is_some());
    assert_eq!(restored.put_back, [path("b.txt")]);
    assert_eq!(restored.failed[0].0, path("a.txt"));
    assert_eq!(bed.status(), "");
    assert_eq!(bed.log()[0], "user");
}

#[test]
fn line_ends_come_back_exactly() {
    let bed = Bed::new();
    bed.git(&["config", "core.autocrlf", "true"]);
    bed.write("clean.txt", "one\r\ntwo\r\n");
    bed.write("mixed.txt", "one\r\ntwo\r\n");
    bed.commit_all("first");
    bed.write("mixed.txt", "one\r\ntwo\nthree\r\n");
    bed.write("plain.txt", "lf\n");
    let before = files(&bed.path());
    let baseline = bed.baseline();
    for name in ["clean.txt", "mixed.txt", "plain.txt"] {
        bed.write(name, "run\r\n");
    }
    let result = bed.result(&baseline);
    let restored = bed.restore(&baseline, Some(&result));
    assert!(restored.is_complete(), "{restored:?}");
    assert_eq!(files(&bed.path()), before);
}

#[test]
fn old_runs_are_found_by_their_id() {
    let bed = Bed::with_commit();
    bed.baseline();
    let at = run().accepted_at_s();
    assert_eq!(expired_refs(&bed.path(), at).unwrap(), []);
    assert_eq!(expired_refs(&bed.path(), at + 1).unwrap(), [run()]);
    bed.git(&["pack-refs", "--all"]);
    assert_eq!(expired_refs(&bed.path(), at + 1).unwrap(), [run()]);
    drop_refs(&bed.path(), &run()).unwrap();
    assert_eq!(expired_refs(&bed.path(), at + 1).unwrap(), []);
}

#[test]
fn a_restore_that_cannot_begin_names_the_paths_that_are_left() {
    for recorded in [true, false] {
        let bed = dirty_bed();
        let baseline = bed.baseline();
        bed.write("a.txt", "changed\n");
        bed.write("out/x", "x\n");
        let result = bed.result(&baseline);
        let kept = bed
            .path()
            .join(".git/refs/workerctl/runs")
            .join(run().as_str());
        fs::remove_dir_all(&kept).unwrap();
        fs::write(&kept, "in the way").unwrap();
        let failed = restore(
            &bed.path(),
            &baseline,
            recorded.then_some(&result),
            &none(),
            &Limits::default(),
        )
        .unwrap_err();
        let paths: Vec<String> = failed.paths.iter().map(ToString::to_string).collect();
        assert_eq!(paths, ["a.txt", "out/x"], "recorded: {recorded}");
        assert!(!failed.source.is_out_of_space());
        assert_eq!(bed.read("a.txt"), "changed\n");
        fs::remove_file(&kept).unwrap();
        let again = bed.restore(&baseline, recorded.then_some(&result));
        assert!(again.is_complete(), "{again:?}");
        assert_eq!(bed.read("a.txt"), "a\n");
    }
}
