//! What the files of a repository are, and what a run makes of them.

use std::os::unix::fs::PermissionsExt;

use crate::repository_states::row::Ends::{Fails, Keeps, Lands, Refused, WithNothing};
use crate::repository_states::row::{Row, check, row, sh, workspace};
use crate::workspace::Workspace;

const OUT: &[&str] = &["out.md"];
const TRACKED: &[&str] = &["tracked.txt"];

/// Makes programs of git's that show themselves and fail.
fn hostile(workspace: &Workspace) -> bool {
    let text = "#!/bin/sh\ntouch \"$HOME/hook-ran\"\nexit 1\n";
    let hooks = workspace.root.join(".git/hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    let names = [
        "pre-commit",
        "prepare-commit-msg",
        "commit-msg",
        "post-commit",
        "post-checkout",
        "post-merge",
        "post-index-change",
        "reference-transaction",
        "update",
    ];
    for name in names {
        let path = hooks.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let monitor = hooks.join("pre-commit");
    let gpg = workspace.home.join("gpg");
    std::fs::copy(&monitor, &gpg).unwrap();
    sh(
        workspace,
        &format!(
            "git config core.fsmonitor {}; git config commit.gpgsign true; git config gpg.program {}",
            monitor.display(),
            gpg.display()
        ),
    )
}

const SUBMODULE: &str = "git init -q ../other; echo inner > ../other/inner.txt; git -C ../other add -A; \
    git -C ../other commit -q -m inner; \
    git -c protocol.file.allow=always submodule add -q ../other sub; git commit -q -m submodule; ";

macro_rules! with_submodule {
    ($text:literal) => {
        |w| sh(w, &format!("{SUBMODULE}{}", $text))
    };
}

const OTHERS: &[Row] = &[
    row(
        "a submodule",
        "write",
        with_submodule!(""),
        Lands("main", OUT),
    ),
    row(
        "a submodule with changes",
        "write",
        with_submodule!("echo dirty > sub/inner.txt; echo new > sub/new"),
        Lands("main", OUT),
    ),
    row(
        "a submodule that the run writes into",
        "in-submodule",
        with_submodule!(""),
        // To git it is not checked out there, and whatever lies in its place is nobody's.
        WithNothing,
    ),
    row(
        "a submodule that the run moves",
        "moves-submodule",
        with_submodule!(
            "git -C ../other commit -q --allow-empty -m next; git -C ../other rev-parse HEAD > moved; git add moved; git commit -q -m moved; git submodule deinit -q -f sub"
        ),
        Lands("main", &["sub"]),
    ),
    row(
        "a submodule that the run removes",
        "removes-submodule",
        with_submodule!("git submodule deinit -q -f sub"),
        Lands("main", &[".gitmodules", "sub"]),
    ),
    row(
        "a submodule that the run would commit in",
        "at-submodule",
        with_submodule!(""),
        Refused("cwd_in_submodule"),
    ),
    row(
        "a repository inside",
        "write",
        |w| sh(w, "git init -q inner; echo x > inner/x"),
        Lands("main", OUT),
    ),
    row(
        "a repository inside that the run makes",
        "nested",
        |_| true,
        Fails("record", "nested_repository"),
    ),
    row(
        "a repository inside that is in the way of one that the run makes",
        "nested",
        |w| sh(w, "git init -q inner; echo mine > inner/x"),
        Fails("record", "nested_repository"),
    ),
];

const HIDDEN: &[Row] = &[
    row(
        "a sparse checkout without the path",
        "edit",
        |w| {
            sh(
                w,
                "git sparse-checkout set --no-cone /workers/ /workerctl.yaml",
            )
        },
        Lands("main", TRACKED),
    ),
    row(
        "a sparse checkout in cones",
        "below",
        |w| sh(w, "git sparse-checkout set --cone workers"),
        Lands("main", &["dir/new.txt"]),
    ),
    row(
        "a sparse checkout with the path",
        "edit",
        |w| {
            sh(
                w,
                "git sparse-checkout set --no-cone /workers/ /workerctl.yaml /tracked.txt",
            )
        },
        Lands("main", TRACKED),
    ),
    row(
        "a path with skip-worktree, changed",
        "edit",
        |w| {
            sh(
                w,
                "git update-index --skip-worktree tracked.txt; echo mine > tracked.txt",
            )
        },
        Fails("land", "checkout_dirty"),
    ),
    row(
        "a path with skip-worktree, as committed",
        "edit",
        |w| sh(w, "git update-index --skip-worktree tracked.txt"),
        Lands("main", TRACKED),
    ),
    row(
        "a path with assume-unchanged, changed",
        "edit",
        |w| {
            sh(
                w,
                "git update-index --assume-unchanged tracked.txt; echo mine > tracked.txt",
            )
        },
        Fails("land", "checkout_dirty"),
    ),
    row(
        "another path with assume-unchanged, changed",
        "write",
        |w| {
            sh(
                w,
                "git update-index --assume-unchanged tracked.txt; echo mine > tracked.txt",
            )
        },
        Lands("main", OUT),
    ),
    row(
        "a path that is to be added",
        "write",
        |w| sh(w, "echo out > out.md; git add -N out.md"),
        Fails("land", "checkout_dirty"),
    ),
    row(
        "an ignored output alone",
        "ignored",
        |w| sh(w, "echo ignored/ >> .gitignore; git commit -qam ignore"),
        Keeps("ignored/r.md"),
    ),
    row(
        "an ignored output beside a result",
        "both",
        |w| sh(w, "echo ignored/ >> .gitignore; git commit -qam ignore"),
        Lands("main", OUT),
    ),
    row(
        "a result that is ignored",
        "write",
        |w| sh(w, "echo out.md >> .gitignore; git commit -qam ignore"),
        WithNothing,
    ),
];

const FORMS: &[Row] = &[
    row(
        "line ends by attributes",
        "returns",
        |w| {
            sh(
                w,
                "echo '*.md text eol=crlf' > .gitattributes; git add -A; git commit -q -m x",
            )
        },
        Lands("main", OUT),
    ),
    row(
        "line ends by core.autocrlf",
        "returns",
        |w| sh(w, "git config core.autocrlf true"),
        Lands("main", OUT),
    ),
    row(
        "line ends by core.autocrlf=input",
        "returns",
        |w| sh(w, "git config core.autocrlf input"),
        Lands("main", OUT),
    ),
    row(
        "a changed file with other line ends",
        "edit",
        |w| {
            sh(
                w,
                "git config core.autocrlf true; rm tracked.txt; git checkout tracked.txt; \
                 sed 's/$/ mine/' tracked.txt > t; mv t tracked.txt",
            )
        },
        Fails("land", "checkout_dirty"),
    ),
    row(
        "a file as git wrote it with other line ends",
        "edit",
        |w| {
            sh(
                w,
                "git config core.autocrlf true; rm tracked.txt; git checkout tracked.txt",
            )
        },
        Lands("main", TRACKED),
    ),
    row(
        "a filter on a path of the base",
        "write",
        |w| {
            sh(
                w,
                "echo '*.bin filter=lfs' > .gitattributes; echo x > a.bin; git add -A; git commit -q -m x",
            )
        },
        Fails("prepare", "filtered"),
    ),
    row(
        "a filter on a path of the base, stored contents being enough",
        "stored",
        |w| {
            sh(
                w,
                "echo '*.bin filter=lfs' > .gitattributes; echo x > a.bin; git add -A; git commit -q -m x",
            )
        },
        Lands("main", OUT),
    ),
    row(
        "a filter on no path of the base",
        "write",
        |w| {
            sh(
                w,
                "echo '*.bin filter=lfs' > .gitattributes; git add -A; git commit -q -m x",
            )
        },
        Lands("main", OUT),
    ),
    row(
        "a filter on a path of the result",
        "large",
        |w| {
            sh(
                w,
                "echo '*.bin filter=lfs' > .gitattributes; git add -A; git commit -q -m x",
            )
        },
        Fails("record", "filtered"),
    ),
    row(
        "a filter on a path of the result, stored contents being enough",
        "large-stored",
        |w| {
            sh(
                w,
                "echo '*.bin filter=lfs' > .gitattributes; git add -A; git commit -q -m x",
            )
        },
        Fails("record", "filtered"),
    ),
    row(
        "an encoding of the work tree",
        "write",
        |w| {
            sh(
                w,
                "echo '*.u working-tree-encoding=UTF-16' > .gitattributes; \
                 printf 'a' | iconv -t UTF-16 > a.u; git add -A; git commit -q -m x",
            )
        },
        Fails("prepare", "filtered"),
    ),
    row(
        "an encoding of the work tree, stored contents being enough",
        "stored",
        |w| {
            sh(
                w,
                "echo '*.u working-tree-encoding=UTF-16' > .gitattributes; \
                 printf 'a' | iconv -t UTF-16 > a.u; git add -A; git commit -q -m x",
            )
        },
        Lands("main", OUT),
    ),
    row(
        "modes and links",
        "forms",
        |_| true,
        Lands("main", &["link", "tool.sh", "tracked.txt"]),
    ),
    row(
        "modes, where the file system has none",
        "edit",
        |w| sh(w, "git config core.fileMode false; chmod +x tracked.txt"),
        Lands("main", TRACKED),
    ),
    row(
        "a name in other case",
        "case",
        |_| true,
        Lands("main", &["Tracked.txt", "tracked.txt"]),
    ),
    row(
        "a name in other case, where case does not matter",
        "case",
        |w| sh(w, "git config core.ignorecase true"),
        Lands("main", &["Tracked.txt", "tracked.txt"]),
    ),
    row(
        "two names that differ in case, where case does not matter",
        "case-too",
        |w| sh(w, "git config core.ignorecase true"),
        Fails("record", "case_collision"),
    ),
    row(
        "a huge file",
        "huge",
        |_| true,
        Lands("main", &["huge.bin"]),
    ),
    row(
        "a file that is written as it was",
        "idle",
        |_| true,
        WithNothing,
    ),
];

const PROGRAMS: &[Row] = &[
    row(
        "hooks, a monitor and signing that fail",
        "write",
        hostile,
        Lands("main", OUT),
    ),
    row(
        "no author",
        "write",
        |w| {
            sh(
                w,
                "git config --global --unset user.name; git config user.useConfigOnly true",
            )
        },
        Refused("author_unset"),
    ),
    row(
        "an author with a line end",
        "write",
        |w| sh(w, "git config user.name \"$(printf 'Ada\\nparent 0')\""),
        Refused("author_invalid"),
    ),
    row(
        "settings of a directory",
        "write",
        |w| {
            sh(
                w,
                "git config --global includeIf.gitdir:**/repository/.git.path ~/included; \
                 git config --file ~/included user.name Included",
            )
        },
        Lands("main", OUT),
    ),
];

#[test]
fn repositories_inside_are_left_alone() {
    check(OTHERS);
}

#[test]
fn a_run_in_a_repository_inside_commits_there_and_nowhere_else() {
    let workspace = workspace();
    sh(
        &workspace,
        "git init -q inner; cd inner; git commit -q --allow-empty -m inner",
    );
    let look = |at: &str, words: &[&str]| {
        let said = workspace.git(&[&["-C", at], words].concat());
        said.trim().to_owned()
    };
    let refs = || look(".", &["for-each-ref"]) + &look(".", &["ls-files", "-s"]);
    let (outer, before) = (refs(), look("inner", &["rev-parse", "main"]));
    let run = workspace.json(&["run", "in-inner"]);
    assert_eq!(refs(), outer);
    let tip = look("inner", &["rev-parse", "main"]);
    assert_eq!(run["summary"]["commit"], *tip);
    assert_eq!(look("inner", &["rev-parse", "main~1"]), before);
    assert_eq!(look("inner", &["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(look("inner", &["status", "--porcelain"]), "");
    assert_eq!(workspace.read("inner/out.md").unwrap(), "out\n");
    look("inner", &["fsck"]);
}

#[test]
fn whatever_git_hides_or_ignores() {
    check(HIDDEN);
}

#[test]
fn whatever_form_the_files_have() {
    check(FORMS);
}

#[test]
fn programs_that_git_would_start_are_not_started() {
    check(PROGRAMS);
}
