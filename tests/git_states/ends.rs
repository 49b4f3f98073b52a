//! States that need more than one step to build or to judge.

use std::fs;
use std::os::unix::fs::symlink;

use workerctl::git::{
    AuthorError, CommitRequest, Deadline, Exclusions, Limits, Moved, Policy, Prepared, author,
    baseline, declared_dirty, locate, message_with_trailers, move_ref, preflight, prepare_commit,
    result_tree,
};

use crate::bed::{Bed, RUN, ada, git_in, path, run, submodule};
use crate::runs::{End, one_run, out};

#[test]
fn a_linked_work_tree_commits_to_its_own_branch() {
    let bed = Bed::new();
    let linked = bed.dir.path().join("linked");
    bed.git(&[
        "worktree",
        "add",
        "-q",
        "-b",
        "side",
        linked.to_str().unwrap(),
    ]);
    let main = bed.git(&["rev-parse", "main"]);
    let facts = locate(&linked).unwrap();
    assert_ne!(facts.git_dir, facts.common_dir);
    let end = one_run(
        &linked,
        || fs::write(linked.join("out.md"), "out\n").unwrap(),
        || {},
    );
    assert!(matches!(end, End::Committed(Moved::Done { .. })));
    assert_eq!(bed.git(&["rev-parse", "main"]), main);
    assert_eq!(bed.git(&["rev-parse", "side~1"]), main);
    assert_eq!(
        git_in(&linked, bed.dir.path(), &["status", "--porcelain"]).1,
        ""
    );
    let log = git_in(&linked, bed.dir.path(), &["reflog", "-1", "HEAD"]).1;
    assert!(log.contains("workerctl"), "{log}");
    bed.git(&["fsck", "--no-dangling"]);
}

#[test]
fn a_shallow_clone_gets_one_commit() {
    let bed = Bed::new();
    let url = format!("file://{}", bed.root.display());
    let clone = bed.dir.path().join("clone");
    bed.git(&["clone", "-q", "--depth=1", &url, clone.to_str().unwrap()]);
    let git = |args: &[&str]| git_in(&clone, bed.dir.path(), args);
    assert!(git(&["config", "user.name", "Ada"]).0 && git(&["config", "user.email", "a@b"]).0);
    let end = one_run(
        &clone,
        || fs::write(clone.join("out.md"), "out\n").unwrap(),
        || {},
    );
    assert!(matches!(end, End::Committed(Moved::Done { .. })));
    assert_eq!(git(&["rev-list", "--count", "HEAD"]).1.trim(), "2");
    assert!(git(&["fsck", "--no-dangling"]).0);
}

#[test]
fn a_detached_head_is_moved_where_that_is_allowed() {
    let bed = Bed::new();
    bed.git(&["checkout", "-q", "--detach"]);
    let policy = Policy {
        allow_detached: true,
    };
    assert!(preflight(&bed.root, &policy, None).is_ok());
    let main = bed.git(&["rev-parse", "main"]);
    let (exclusions, limits) = (Exclusions::default(), Limits::default());
    let before = baseline(&bed.root, &exclusions, &limits, &run(), Deadline::NONE).unwrap();
    out(&bed);
    let result = result_tree(&bed.root, &before, &exclusions, &limits, &[]).unwrap();
    let message = message_with_trailers("out", &[("Run-Id", RUN)]);
    let request = CommitRequest {
        refname: before.head.refname(),
        baseline: &before,
        result: &result,
        paths: &[path("out.md")],
        message: &message,
        author: &ada(),
        time_s: 0,
        offset_min: 0,
    };
    let Prepared::Commit(commit) = prepare_commit(&bed.root, &request, Deadline::NONE).unwrap()
    else {
        panic!("there is something to commit");
    };
    bed.git(&["switch", "-q", "main"]);
    let moved = move_ref(&bed.root, &commit, &ada(), 0, 0, "x").unwrap();
    assert_eq!(moved, Moved::BranchSwitched);
    bed.git(&["checkout", "-q", "--detach"]);
    let moved = move_ref(&bed.root, &commit, &ada(), 0, 0, "x").unwrap();
    assert!(matches!(moved, Moved::Done { .. }));
    assert_eq!(bed.git(&["rev-parse", "main"]), main);
    assert_eq!(bed.git(&["rev-parse", "HEAD"]), commit.oid.as_str());
    assert_eq!(bed.git(&["branch", "--show-current"]), "");
}

#[test]
fn what_the_user_edits_after_the_end_stays_theirs() {
    let bed = Bed::new();
    let end = one_run(
        &bed.root,
        || out(&bed),
        || bed.write("out.md", "the user's\n"),
    );
    assert!(matches!(end, End::Committed(Moved::Done { .. })));
    assert_eq!(bed.git(&["show", "HEAD:out.md"]), "out");
    assert_eq!(bed.git(&["status", "--porcelain"]), " M out.md");
}

#[test]
fn crlf_is_committed_as_git_would() {
    let bed = Bed::new();
    bed.write(".gitattributes", "*.md text eol=crlf\n");
    bed.commit_all("attributes");
    let end = one_run(&bed.root, || bed.write("out.md", "one\r\ntwo\r\n"), || {});
    assert!(matches!(end, End::Committed(Moved::Done { .. })));
    assert_eq!(bed.git(&["cat-file", "-p", "HEAD:out.md"]), "one\ntwo");
    assert_eq!(bed.git(&["status", "--porcelain"]), "");
}

#[test]
fn outputs_that_cannot_be_committed_are_named_before_anything_is_spent() {
    let bed = Bed::new();
    submodule(&bed);
    bed.write(".gitignore", "ignored/\n");
    bed.write(".gitattributes", "*.bin filter=lfs\n");
    bed.commit_all("rules");
    symlink("/etc", bed.at("away")).unwrap();
    bed.git(&["init", "-q", "inside"]);
    bed.write("inside/x", "x");
    let (exclusions, limits) = (Exclusions::default(), Limits::default());
    let before = baseline(&bed.root, &exclusions, &limits, &run(), Deadline::NONE).unwrap();
    let outputs = [
        "ignored/r.md",
        "x.bin",
        "away/r.md",
        "sub/r.md",
        "inside/r.md",
        "fine/r.md",
    ];
    let obstacles = declared_dirty(&bed.root, &before, &outputs.map(path)).unwrap();
    let named: Vec<_> = obstacles
        .iter()
        .map(|(p, o)| format!("{p} {}", serde_json::to_string(o).unwrap()))
        .collect();
    assert_eq!(
        named,
        [
            "ignored/r.md \"ignored\"",
            "x.bin \"filtered\"",
            "away/r.md \"blocked\"",
            "sub/r.md \"in_other_repository\"",
            "inside/r.md \"in_other_repository\"",
        ]
    );
    bed.write("ignored/r.md", "r");
    let outputs = outputs.map(path);
    let result = result_tree(&bed.root, &before, &exclusions, &limits, &outputs).unwrap();
    assert_eq!(result.ignored_outputs, [path("ignored/r.md")]);
}

#[test]
fn authors_are_checked() {
    let bed = Bed::new();
    assert_eq!(author(&bed.root, None).unwrap(), ada());
    let configured = author(&bed.root, Some("Bot <bot@example.com>")).unwrap();
    assert_eq!(configured.name, "Bot");
    for bad in [
        "Bot",
        "Bot <>",
        " <a@b>",
        "Bot <a<b@c>",
        "A\nB <a@b>",
        "Bot <a@b> x",
        "... <a@b>",
    ] {
        let refused = author(&bed.root, Some(bad));
        assert!(
            matches!(refused, Err(AuthorError::Invalid { .. })),
            "{bad:?}: {refused:?}"
        );
    }
    bed.git(&["config", "--unset", "user.email"]);
    let unset = author(&bed.root, None).unwrap_err();
    assert!(
        unset
            .hint()
            .unwrap()
            .contains("git config --global user.email")
    );
}
