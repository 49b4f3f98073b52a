//! How a repository is stored.

use rustix::process::geteuid;

use crate::repository_states::row::Ends::{Fails, Lands, Refused};
use crate::repository_states::row::{Row, begin_anew, check, row, sh, sh_if_possible};
use crate::workspace::{Workspace, skip};

const OUT: &[&str] = &["out.md"];

const STORED: &[Row] = &[
    row(
        "SHA-256",
        "write",
        |w| sh(w, &begin_anew("--object-format=sha256")),
        Refused("unsupported_format"),
    ),
    row(
        "reftable",
        "write",
        |w| {
            sh_if_possible(
                w,
                "git init -q --ref-format=reftable ../probe",
                &begin_anew("--ref-format=reftable"),
            )
        },
        Refused("unsupported_format"),
    ),
    row(
        "a partial clone",
        "write",
        |w| {
            sh(
                w,
                "git clone -q --bare . ../bare.git; git -C ../bare.git config uploadpack.allowFilter true; \
                 git clone -q --filter=blob:none \"file://$PWD/../bare.git\" ../clone",
            )
        },
        Fails("prepare", "unsupported_format"),
    )
    .at("../clone"),
    row(
        "a shallow clone",
        "write",
        |w| {
            sh(
                w,
                "git commit -q --allow-empty -m second; git clone -q --depth=1 \"file://$PWD\" ../clone",
            )
        },
        Lands("main", OUT),
    )
    .at("../clone"),
    row(
        "objects of another repository",
        "write",
        |w| sh(w, "git clone -q --shared . ../clone"),
        Lands("main", OUT),
    )
    .at("../clone"),
    row(
        "packed objects and references",
        "edit",
        |w| sh(w, "git gc -q --prune=now"),
        Lands("main", &["tracked.txt"]),
    ),
    row(
        "a split index",
        "write",
        |w| sh(w, "git update-index --split-index"),
        Fails("prepare", "unsupported_format"),
    ),
    row(
        "a sparse index",
        "write",
        |w| sh(w, "git sparse-checkout set --cone --sparse-index workers"),
        Fails("prepare", "unsupported_format"),
    ),
    row(
        "settings of the work tree",
        "write",
        |w| sh(w, "git config extensions.worktreeConfig true; git config --worktree x.y z"),
        Lands("main", OUT),
    ),
    row(
        "an extension that nobody knows",
        "write",
        |w| sh(w, "git config core.repositoryformatversion 1; git config extensions.unheard true"),
        Refused("unsupported_format"),
    ),
];

const DAMAGED: &[Row] = &[
    row(
        "a HEAD that is empty",
        "write",
        |w| sh(w, ": > .git/HEAD"),
        Refused("git"),
    ),
    row(
        "a HEAD that is garbage",
        "write",
        |w| sh(w, "echo garbage > .git/HEAD"),
        Refused("git"),
    ),
    row(
        "a HEAD that is missing",
        "write",
        |w| sh(w, "rm .git/HEAD"),
        Refused("head_missing"),
    ),
    row(
        "a branch that is garbage",
        "write",
        |w| sh(w, "echo garbage > .git/refs/heads/main"),
        Refused("git"),
    ),
    row(
        "a branch whose commit is not there",
        "write",
        |w| {
            sh(
                w,
                "echo 1234567890123456789012345678901234567890 > .git/refs/heads/main",
            )
        },
        Fails("prepare", "git"),
    ),
    row(
        "a broken index",
        "write",
        |w| sh(w, "head -c 100 .git/index > i; mv i .git/index"),
        Fails("prepare", "git"),
    ),
    row(
        "settings that are garbage",
        "write",
        |w| sh(w, "echo '[garbage' >> .git/config"),
        Refused("git"),
    ),
];

/// Only who is not root is kept out by modes.
fn kept_out(workspace: &Workspace, text: &str) -> bool {
    if geteuid().is_root() {
        skip("root writes where modes forbid it");
        return false;
    }
    sh(workspace, text)
}

const KEPT_OUT: &[Row] = &[
    row(
        "objects that may not be written",
        "write",
        |w| kept_out(w, "chmod -w .git/objects"),
        Refused("read_only"),
    ),
    row(
        "a git directory that may not be written",
        "write",
        |w| kept_out(w, "chmod -w .git"),
        Refused("read_only"),
    ),
    row(
        "a repository of another user",
        "write",
        |w| {
            if !geteuid().is_root() {
                skip("only root can give a repository to another user");
                return false;
            }
            sh(w, "chown -R 65534 .")
        },
        Refused("other_owner"),
    ),
];

#[test]
fn however_a_repository_is_stored() {
    check(STORED);
}

#[test]
fn what_is_damaged_is_named() {
    check(DAMAGED);
}

#[test]
fn who_may_not_write_is_told() {
    check(KEPT_OUT);
}
