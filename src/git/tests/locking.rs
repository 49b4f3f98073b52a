use super::*;

#[test]
fn a_lease_names_its_holder_and_ends_with_it() {
    let bed = Bed::with_commit();
    let facts = locate(&bed.path()).unwrap();
    let held = RepositoryLease::acquire(&facts, "/srv/state").unwrap();
    let refused = RepositoryLease::acquire(&facts, "/srv/other").unwrap_err();
    assert_eq!(refused.code(), "locked");
    assert!(refused.to_string().contains("/srv/state"), "{refused}");
    drop(held);
    RepositoryLease::acquire(&facts, "/srv/other").unwrap();
    assert_eq!(bed.status(), "", "the lock file is not in the work tree");
}

#[test]
fn what_an_engine_with_the_same_pid_left_stands_in_nobodys_way() {
    let bed = Bed::with_commit();
    let pid = std::process::id();
    for n in 0..2_000 {
        fs::write(bed.at(&format!(".git/workerctl-tmp-{pid}-{n}")), "").unwrap();
    }
    bed.run(|bed| bed.write("a.txt", "run\n"));
    assert_eq!(bed.log().len(), 2);
    let _lease = RepositoryLease::acquire(&locate(&bed.path()).unwrap(), "x").unwrap();
    let names = fs::read_dir(bed.at(".git")).unwrap();
    let left = names.filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with("workerctl-tmp-")
    });
    assert_eq!(left.count(), 0);
}

#[test]
fn a_packed_branch_is_moved() {
    let bed = Bed::with_commit();
    bed.git(&["switch", "-q", "-c", "feature/x"]);
    bed.git(&["pack-refs", "--all", "--prune"]);
    bed.run(|bed| bed.write("a.txt", "run\n"));
    assert_eq!(bed.log(), ["the run's work", "first"]);
    assert_eq!(bed.status(), "");
}

#[test]
fn a_held_index_is_reported_and_can_be_refreshed_later() {
    let bed = Bed::with_commit();
    let baseline = bed.baseline();
    bed.write("a.txt", "run\n");
    let result = bed.result(&baseline);
    let commit = bed.prepared(&baseline, &result);
    fs::write(bed.at(".git/index.lock"), "").unwrap();
    let moved = bed.moved(&commit);
    assert!(
        matches!(
            moved,
            Moved::Done {
                index: IndexRefresh::Skipped { .. }
            }
        ),
        "{moved:?}"
    );
    assert_eq!(
        fs::read(bed.at(".git/index.lock")).unwrap(),
        b"",
        "foreign, so left"
    );
    fs::remove_file(bed.at(".git/index.lock")).unwrap();
    let refreshed = refresh_index(&bed.path(), &commit).unwrap();
    assert_eq!(refreshed, IndexRefresh::Done { left: Vec::new() });
    assert_eq!(bed.status(), "");
}

#[test]
fn a_held_branch_moves_nothing() {
    let bed = Bed::with_commit();
    let baseline = bed.baseline();
    bed.write("a.txt", "run\n");
    let result = bed.result(&baseline);
    let commit = bed.prepared(&baseline, &result);
    let lock = bed.at(".git/refs/heads/main.lock");
    fs::write(&lock, "").unwrap();
    let moved = move_ref(&bed.path(), &commit, &ada(), 0, 0, "x");
    assert_eq!(moved.unwrap_err().code(), "locked");
    assert_eq!(bed.log().len(), 1);
    let gone = Holder {
        boot_id: "gone".into(),
        ..Holder::this_process("")
    };
    let note = format!(
        "workerctl pid={} start=1 boot={} owner=\n",
        gone.pid, gone.boot_id
    );
    fs::write(&lock, note).unwrap();
    assert!(
        matches!(bed.moved(&commit), Moved::Done { .. }),
        "our own stale lock is cleared"
    );
}

#[test]
fn two_hundred_runs_of_two_threads_are_two_hundred_commits() {
    let bed = Bed::with_commit();
    let root = bed.path();
    std::thread::scope(|scope| {
        for worker in 0..2 {
            let root = &root;
            scope.spawn(move || {
                for n in 0..100 {
                    one_leased_run(root, worker, n);
                }
            });
        }
    });
    assert_eq!(bed.log().len(), 201);
    let ids = bed.git(&["log", "--format=%(trailers:key=Run-Id,valueonly)"]);
    let ids: std::collections::BTreeSet<_> = ids.lines().filter(|l| !l.is_empty()).collect();
    assert_eq!(ids.len(), 200);
    assert_eq!(bed.status(), "");
    bed.fsck();
}

fn one_leased_run(root: &Path, worker: u32, n: u32) {
    let run: RunId = format!("01JC{worker:011}{n:011}").parse().unwrap();
    let facts = locate(root).unwrap();
    let _lease = loop {
        match RepositoryLease::acquire(&facts, "test") {
            Ok(lease) => break lease,
            Err(e) => assert_eq!(e.code(), "locked"),
        }
        std::thread::yield_now();
    };
    let (limits, exclusions) = (Limits::default(), none());
    let baseline = baseline(root, &exclusions, &limits, &run, Deadline::NONE).unwrap();
    fs::write(root.join(format!("w{worker}.txt")), format!("{n}\n")).unwrap();
    let result = result_tree(root, &baseline, &exclusions, &limits, &[]).unwrap();
    let attribution = attribute(&baseline, &result, None).unwrap();
    let request = CommitRequest {
        refname: baseline.head.refname(),
        baseline: &baseline,
        result: &result,
        paths: &attribution.commit_paths,
        message: &message(&run),
        author: &ada(),
        time_s: 0,
        offset_min: 0,
    };
    let Prepared::Commit(commit) = prepare_commit(root, &request, Deadline::NONE).unwrap() else {
        panic!("there is something to commit");
    };
    let moved = move_ref(root, &commit, &ada(), 0, 0, "run").unwrap();
    assert!(matches!(moved, Moved::Done { .. }));
    drop_refs(root, &run).unwrap();
}
