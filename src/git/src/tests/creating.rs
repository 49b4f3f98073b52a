//! New repositories and their first commit.

use super::*;

fn first(identity: &Identity) -> FirstCommit<'_> {
    FirstCommit {
        identity,
        message: "begin\n",
        time_s: 1_800_000_000,
        offset_min: -90,
    }
}

/// A directory that no repository of ours has touched.
fn empty() -> Bed {
    let bed = Bed {
        dir: xtest::tempdir(),
    };
    fs::create_dir(bed.path()).unwrap();
    bed
}

#[test]
fn a_new_repository_has_a_branch_and_no_hook_that_could_run() {
    let bed = empty();
    bed.write("there-before.txt", "x\n");
    let facts = create_repository(&bed.path()).unwrap();
    assert!(matches!(&facts.head, Head::Unborn { refname } if refname.starts_with("refs/heads/")));
    assert_eq!(bed.status(), "?? there-before.txt");
    // Git runs a hook by its exact name, so a sample is none.
    let hooks: Vec<_> = fs::read_dir(bed.at(".git/hooks"))
        .into_iter()
        .flatten()
        .map(|hook| hook.unwrap().path())
        .filter(|hook| hook.extension().is_none_or(|end| end != "sample"))
        .collect();
    assert_eq!(hooks, Vec::<PathBuf>::new());
    bed.fsck();
}

#[test]
fn nothing_is_made_within_another_repository() {
    let bed = Bed::with_commit();
    let before = files(&bed.at(".git"));
    for dir in ["", "dir"] {
        let error = create_repository(&bed.at(dir)).unwrap_err();
        assert!(
            error.to_string().contains("is in the repository"),
            "{error}"
        );
    }
    assert!(!bed.at("dir/.git").exists());
    assert_eq!(files(&bed.at(".git")), before);

    let bare = xtest::tempdir();
    git2::Repository::init_bare(bare.path()).unwrap();
    assert!(create_repository(bare.path()).is_err());
    assert!(!bare.path().join(".git").exists());
    assert!(create_repository(&bare.path().join("nowhere")).is_err());
}

#[test]
fn the_first_commit_holds_its_paths_and_nothing_else() {
    let bed = empty();
    create_repository(&bed.path()).unwrap();
    bed.write("a.txt", "a\n");
    bed.write("deep/er/run.sh", "#!/bin/sh\n");
    bed.write("other.txt", "o\n");
    fs::set_permissions(bed.at("deep/er/run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("a.txt", bed.at("link")).unwrap();
    let paths = [path("a.txt"), path("deep/er/run.sh"), path("link")];
    let oid = first_commit(&bed.path(), &paths, &first(&ada())).unwrap();
    assert_eq!(bed.git(&["rev-parse", "HEAD"]), oid.as_str());
    assert_eq!(
        bed.git(&["ls-tree", "-r", "--format=%(objectmode) %(path)", "HEAD"]),
        "100644 a.txt\n100755 deep/er/run.sh\n120000 link"
    );
    assert_eq!(
        bed.git(&["log", "--format=%an <%ae> %cn %aI %s"]),
        "Ada <ada@example.com> Ada 2027-01-15T06:30:00-01:30 begin"
    );
    assert_eq!(bed.status(), "?? other.txt");
    assert_eq!(bed.git(&["reflog", "--format=%gs"]), "commit (initial)");
    bed.fsck();

    // A branch that has a commit is nobody's to begin.
    let again = first_commit(&bed.path(), &[path("other.txt")], &first(&ada())).unwrap_err();
    assert!(
        again.to_string().contains("the branch has a commit"),
        "{again}"
    );
    assert_eq!(bed.git(&["rev-parse", "HEAD"]), oid.as_str());
    assert_eq!(bed.status(), "?? other.txt");
}

#[test]
fn what_is_no_file_stops_the_first_commit() {
    let bed = empty();
    create_repository(&bed.path()).unwrap();
    bed.write("a.txt", "a\n");
    bed.write("large.bin", "l\n");
    bed.write(".gitattributes", "*.bin filter=lfs\n");
    fs::create_dir(bed.at("dir")).unwrap();
    for (name, why) in [
        ("missing", "no such file"),
        ("dir", "neither a file"),
        ("large.bin", "no filter is run"),
    ] {
        let error = first_commit(&bed.path(), &[path("a.txt"), path(name)], &first(&ada()));
        let error = error.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        assert!(locate(&bed.path()).unwrap().head.oid().is_none());
    }
    let many: Vec<RepoPath> = (0..=FIRST_COMMIT_PATHS_MAX)
        .map(|n| path(&format!("f{n}")))
        .collect();
    let error = first_commit(&bed.path(), &many, &first(&ada())).unwrap_err();
    assert!(matches!(error, GitError::TooMuch { .. }), "{error}");
}

#[test]
fn a_commit_is_shown_with_its_files() {
    let bed = Bed::with_commit();
    bed.write("a.txt", "a\nmore\n");
    bed.write("new.bin", "n\0\n");
    bed.git(&["rm", "-q", "b.txt"]);
    bed.commit_all("second\n\nWhy: because");
    let tip: Oid = bed.git(&["rev-parse", "HEAD"]).parse().unwrap();
    let show = |oid: &Oid, bytes, files| show_commit(&bed.path(), oid, bytes, files).unwrap();
    let shown = show(&tip, 4_096, 10).unwrap();
    assert_eq!(shown.author, "Ada <ada@example.com>");
    assert_eq!(shown.message, "second\n\nWhy: because\n");
    let file = |path: &str, lines| ShownFile {
        path: path.to_owned(),
        lines,
    };
    let all = [
        file("a.txt", Some((1, 0))),
        file("b.txt", Some((0, 1))),
        file("new.bin", None),
    ];
    assert_eq!(shown.files, all);
    let short = show(&tip, 3, 1).unwrap();
    assert_eq!((short.message.as_str(), short.files_count), ("sec", 3));
    assert_eq!(short.files, all[..1]);
    let first: Oid = bed.git(&["rev-parse", "HEAD~"]).parse().unwrap();
    assert_eq!(show(&first, 4_096, 10).unwrap().files.len(), 3);
    let none: Oid = "1".repeat(40).parse().unwrap();
    assert_eq!(show(&none, 4_096, 10), None);
}
