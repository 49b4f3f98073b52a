//! One run in one state, and what must come of it.

use std::path::Path;

use workerctl::git::{
    Baseline, CommitRequest, Deadline, Exclusions, IndexRefresh, Limits, Moved, Policy, Prepared,
    ResultTree, attribute, baseline, drop_refs, message_with_trailers, move_ref, preflight,
    prepare_commit, restore, result_tree,
};

use crate::bed::{Bed, RUN, ada, run};

/// What must come of a state.
pub(crate) enum Expect {
    /// `preflight` refuses with this code, and nothing has changed.
    Refused(&'static str),
    /// The run's change is refused with this code and put back, except for the named paths.
    TakenBack(&'static str, &'static [&'static str]),
    /// Exactly one commit, holding exactly these paths.
    Committed(&'static [&'static str]),
    /// No commit, and no complaint.
    Nothing,
}

/// One state: how it is built, what the run does in it, what must come of it.
pub(crate) struct State {
    pub(crate) name: &'static str,
    pub(crate) build: fn(&Bed),
    pub(crate) change: fn(&Bed),
    pub(crate) expect: Expect,
}

/// What became of one run.
pub(crate) enum End {
    Refused(String),
    AttributionRefused(String, Box<Baseline>, Box<ResultTree>),
    Nothing,
    Committed(Moved),
}

pub(crate) fn one_run(root: &Path, change: impl FnOnce(), after_result: impl FnOnce()) -> End {
    let policy = Policy::default();
    if let Err(refusal) = preflight(root, &policy, None) {
        assert!(refusal.hint.is_some(), "{}: no hint", refusal.code);
        return End::Refused(refusal.code);
    }
    let (exclusions, limits) = (Exclusions::default(), Limits::default());
    let before = baseline(root, &exclusions, &limits, &run(), Deadline::NONE).unwrap();
    change();
    let result = result_tree(root, &before, &exclusions, &limits, &[]).unwrap();
    after_result();
    let attribution = match attribute(&before, &result, None) {
        Ok(attribution) => attribution,
        Err(error) => {
            let code = error.code().to_owned();
            return End::AttributionRefused(code, Box::new(before), Box::new(result));
        }
    };
    let message = message_with_trailers("out", &[("Run-Id", RUN)]);
    let request = CommitRequest {
        refname: before.head.refname(),
        baseline: &before,
        result: &result,
        paths: &attribution.commit_paths,
        message: &message,
        author: &ada(),
        time_s: 1_800_000_000,
        offset_min: 0,
    };
    let commit = match prepare_commit(root, &request, Deadline::NONE).unwrap() {
        Prepared::Nothing => {
            drop_refs(root, &run()).unwrap();
            return End::Nothing;
        }
        Prepared::Commit(commit) => commit,
    };
    let moved = move_ref(root, &commit, &ada(), 1_800_000_000, 0, "workerctl").unwrap();
    drop_refs(root, &run()).unwrap();
    End::Committed(moved)
}

pub(crate) fn check(state: &State) {
    let bed = Bed::new();
    (state.build)(&bed);
    let count = |bed: &Bed| {
        bed.try_git(&["rev-list", "--count", "HEAD"])
            .1
            .trim()
            .parse()
            .unwrap_or(0)
    };
    let (before, files, commits): (_, _, usize) = (bed.everything(), bed.files(), count(&bed));
    let end = one_run(&bed.root, || (state.change)(&bed), || {});
    match (&state.expect, end) {
        (Expect::Refused(code), End::Refused(found)) => {
            assert_eq!(found, *code);
            assert_eq!(bed.everything(), before, "something was changed");
        }
        (Expect::TakenBack(code, stays), End::AttributionRefused(found, base, result)) => {
            assert_eq!(found, *code);
            let (exclusions, limits) = (Exclusions::default(), Limits::default());
            let back = restore(&bed.root, &base, Some(&result), &exclusions, &limits).unwrap();
            let failed: Vec<_> = back.failed.iter().map(|(p, _)| p.to_string()).collect();
            assert_eq!(failed, *stays);
            drop_refs(&bed.root, &run()).unwrap();
            if stays.is_empty() {
                assert_eq!(bed.files(), files, "not everything was put back");
            }
            assert_eq!(count(&bed), commits);
            bed.git(&["fsck", "--no-dangling"]);
        }
        (Expect::Committed(paths), End::Committed(moved)) => {
            let clean = IndexRefresh::Done { left: Vec::new() };
            assert_eq!(moved, Moved::Done { index: clean });
            assert_eq!(count(&bed), commits + 1);
            let shown = bed.git(&["show", "--format=", "--name-only", "--no-renames", "HEAD"]);
            assert_eq!(shown.lines().collect::<Vec<_>>(), *paths);
            bed.git(&["fsck", "--no-dangling"]);
        }
        (Expect::Nothing, End::Nothing) => assert_eq!(count(&bed), commits),
        (_, End::Refused(code)) => panic!("refused: {code}"),
        (_, End::AttributionRefused(code, ..)) => panic!("taken back: {code}"),
        (_, End::Nothing) => panic!("nothing to commit"),
        (_, End::Committed(moved)) => panic!("committed: {moved:?}"),
    }
}

pub(crate) fn out(bed: &Bed) {
    bed.write("out.md", "out\n");
}

pub(crate) fn diverge(bed: &Bed) {
    bed.git(&["switch", "-q", "-c", "side", "HEAD~1"]);
    bed.write("a.txt", "side\n");
    bed.commit_all("side");
    bed.git(&["switch", "-q", "main"]);
}

pub(crate) fn check_all(states: Vec<State>) {
    let mut failed = Vec::new();
    let count = states.len();
    for state in states {
        let caught = std::panic::catch_unwind(|| check(&state));
        if caught.is_err() {
            failed.push(state.name);
        }
    }
    assert!(
        failed.is_empty(),
        "{} of {count} states: {failed:?}",
        failed.len()
    );
}
