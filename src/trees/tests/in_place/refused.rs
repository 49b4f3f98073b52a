//! What is refused at the start, and what is no part of a result.

use std::fs;
use std::process::Command;

use crate::rig::{Checkout, git, path_of};

#[test]
fn what_is_not_clean_is_refused_by_name() {
    type Disturb<'a> = &'a dyn Fn(&Checkout);
    let cases: [(&[&str], Disturb<'_>, &str); 7] = [
        (
            &[],
            &|c| c.write("docs/a.md", "edited\n"),
            "`docs/a.md` is changed",
        ),
        (
            &[],
            &|c| c.write("docs/new.md", "new\n"),
            "`docs/new.md` is there already",
        ),
        (
            &[],
            &|c| fs::remove_file(c.at("docs/a.md")).unwrap(),
            "`docs/a.md` is deleted",
        ),
        (
            &["out.md"],
            &|c| {
                c.write("out.md", "x\n");
                c.git(&["add", "out.md"]);
            },
            "`out.md` is staged",
        ),
        (
            &["out.md"],
            &|c| c.write("out.md", "x\n"),
            "`out.md` is there already",
        ),
        (
            &["out"],
            &|c| c.write("out/in/x", "x\n"),
            "`out` is there already",
        ),
        (
            &[],
            &|c| {
                c.git(&["rm", "-q", "--cached", "docs/a.md"]);
            },
            "`docs/a.md` is changed in the index",
        ),
    ];
    for (outputs, disturb, said) in cases {
        let checkout = Checkout::new(outputs, &["docs/**"]);
        disturb(&checkout);
        let message = checkout.refused("not_clean");
        assert!(message.contains(said), "{message}");
    }
    let checkout = Checkout::new(&["report.md"], &["docs/**"]);
    checkout.write("other.txt", "dirty\n");
    checkout.write("docs/x.log", "ignored\n");
    checkout.write("untracked.md", "beside\n");
    assert!(checkout.start().is_ok());
}

#[test]
fn the_branch_has_to_be_checked_out_with_nothing_under_way() {
    let checkout = Checkout::new(&["report.md"], &[]);
    checkout.git(&["switch", "-qc", "feature"]);
    let message = checkout.refused("other_branch");
    assert!(
        message.starts_with("`in_place` works on the branch that is checked out: "),
        "{message}"
    );
    assert!(
        message.contains("`feature`") && message.contains("`main`"),
        "{message}"
    );
    checkout.git(&["checkout", "-q", "--detach", "main"]);
    assert!(
        checkout
            .refused("other_branch")
            .contains("`HEAD` is detached")
    );
    checkout.git(&["switch", "-q", "feature"]);
    checkout.write("other.txt", "x\n");
    checkout.commit("x");
    checkout.git(&["switch", "-q", "main"]);
    let ran = checkout.run(|| {
        checkout.git(&["merge", "-q", "--no-commit", "--no-ff", "feature"]);
    });
    assert_eq!(ran.problems(), ["operation"]);
    assert!(checkout.refused("operation").contains("a merge"));
}

#[test]
fn what_lies_in_a_submodule_is_nobodys() {
    let other = Checkout::new(&[], &[]);
    let mut checkout = Checkout::new(&[], &["docs/**"]);
    let url = other.workdir().to_string_lossy().into_owned();
    let add = [
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "-q",
        "add",
        &url,
        "docs/sub",
    ];
    checkout.git(&add);
    checkout.commit("submodule");
    let ran = checkout.run(|| {
        checkout.write("docs/sub/other.txt", "changed\n");
        checkout.write("docs/a.md", "changed\n");
    });
    assert_eq!(ran.paths(), ["docs/a.md"]);
    checkout.git(&["checkout", "-q", "docs/a.md"]);
    checkout.git(&["submodule", "-q", "deinit", "-f", "docs/sub"]);
    let ran = checkout.run(|| checkout.write("docs/sub/new.txt", "new\n"));
    assert_eq!(ran.paths(), Vec::<String>::new());
    checkout.outputs = vec![path_of("docs/sub/out.md")];
    let message = checkout.refused("not_clean");
    assert!(
        message.contains("`docs/sub/out.md` lies in a submodule"),
        "{message}"
    );
}

#[test]
fn what_cannot_be_committed_is_a_problem() {
    let checkout = Checkout::new(&[], &["docs/**"]);
    let ran = checkout.run(|| {
        checkout.write("docs/inner/x.md", "x\n");
        git(&checkout.at("docs/inner"), &["init", "-q"]);
        fs::remove_file(checkout.at("docs/a.md")).unwrap();
        let done = Command::new("mkfifo")
            .arg(checkout.at("docs/a.md"))
            .status();
        assert!(done.unwrap().success());
    });
    assert_eq!(ran.problems(), ["nested_repository", "not_a_file"]);
}
