//! Runs that work in the checkout itself, beside the real git.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what prepares a test fails by panicking"
)]

mod refused;
mod rig;

use std::fs;
use std::os::unix::fs::symlink;

use rig::{Checkout, Ran, git, hash_of, path_of};
use workerctl_trees::{HeadState, InPlace, Start};

#[test]
fn only_declared_paths_are_the_runs_and_its_tree_is_what_git_makes() {
    let checkout = Checkout::new(&["out/new.md", "report.md"], &["docs/**"]);
    checkout.write("other.txt", "a person's edit\n");
    checkout.git(&["add", "other.txt"]);
    let objects = checkout.git(&["count-objects"]);
    let ran = checkout.run(|| {
        checkout.write("out/new.md", "new\n");
        checkout.write("report.md", "changed\n");
        checkout.write("docs/deep/new/c.md", "c\n");
        checkout.write("docs/x.log", "ignored\n");
        fs::remove_file(checkout.at("docs/a.md")).unwrap();
        checkout.chmod("docs/deep/b.md", 0o755);
        symlink("a.md", checkout.at("docs/link")).unwrap();
        checkout.write("lib/c.rs", "not looked at\n");
        checkout.write("beside.txt", "not looked at\n");
    });
    let own = [
        "docs/a.md",
        "docs/deep/b.md",
        "docs/deep/new/c.md",
        "docs/link",
        "out/new.md",
        "report.md",
    ];
    assert_eq!(ran.paths(), own);
    assert_eq!(
        checkout.git(&["count-objects"]),
        objects,
        "nothing is written into the repository"
    );
    let tree = ran.result.tree.as_str();
    let link = git(
        &ran.held.git_dir(),
        &["cat-file", "-p", &format!("{tree}:docs/link")],
    );
    assert_eq!(link, "a.md");
    assert_eq!(tree, checkout.tree_with(&own));
}

#[test]
fn what_a_failed_run_changed_is_put_back_and_nothing_else() {
    let checkout = Checkout::new(&["out/sub/new.md", "report.md"], &["docs"]);
    fs::create_dir(checkout.at("out")).unwrap();
    let mut ran = checkout.run(|| {
        checkout.write("out/sub/new.md", "new\n");
        checkout.write("report.md", "changed\n");
        checkout.write("docs/more/d.md", "d\n");
        fs::remove_dir_all(checkout.at("docs/deep")).unwrap();
        fs::remove_file(checkout.at("docs/a.md")).unwrap();
        symlink("/etc", checkout.at("docs/a.md")).unwrap();
        checkout.chmod("report.md", 0o755);
        checkout.git(&["add", "report.md", "docs/more/d.md"]);
        checkout.write("lib/c.rs", "stays\n");
    });
    ran.put_back_all();
    assert_eq!(checkout.status(), " M lib/c.rs");
    assert!(checkout.at("out").is_dir() && !checkout.at("out/sub").exists());
    assert!(!checkout.at("docs/more").exists());
    assert_eq!(ran.put_back().put_back, 0, "repeating it changes nothing");
    assert!(!checkout.at(".git/workerctl-in-place").exists());
}

#[test]
fn a_directory_in_the_place_of_a_file_and_the_other_way_round_are_put_back() {
    let checkout = Checkout::new(&["report.md"], &["docs", "report.md"]);
    let mut ran = checkout.run(|| {
        fs::remove_dir_all(checkout.at("docs")).unwrap();
        checkout.write("docs", "a file\n");
        fs::remove_file(checkout.at("report.md")).unwrap();
        checkout.write("report.md/in/x", "x\n");
    });
    let own = [
        "docs",
        "docs/a.md",
        "docs/deep/b.md",
        "report.md",
        "report.md/in/x",
    ];
    assert_eq!(ran.paths(), own);
    assert_eq!(
        ran.result.tree.as_str(),
        checkout.tree_with(&["docs", "report.md"])
    );
    ran.put_back_all();
    assert_eq!(checkout.status(), "");
}

#[test]
fn an_edit_of_the_same_size_with_the_same_time_is_found() {
    let checkout = Checkout::new(&["report.md"], &[]);
    let time = fs::metadata(checkout.at("report.md"))
        .unwrap()
        .modified()
        .unwrap();
    let ran = checkout.run(|| {
        checkout.write("report.md", "REPORT.md\n");
        let file = fs::File::options()
            .write(true)
            .open(checkout.at("report.md"))
            .unwrap();
        file.set_modified(time).unwrap();
    });
    assert_eq!(ran.paths(), ["report.md"]);
}

#[test]
fn a_path_that_was_edited_since_stays_and_is_named() {
    let checkout = Checkout::new(&["report.md", "new.md"], &["docs/**"]);
    let mut ran = checkout.run(|| {
        checkout.write("report.md", "of the run\n");
        checkout.write("new.md", "of the run\n");
        checkout.write("docs/a.md", "of the run\n");
        fs::remove_file(checkout.at("docs/deep/b.md")).unwrap();
    });
    checkout.write("report.md", "of a person\n");
    checkout.write("docs/deep/b.md", "of a person\n");
    checkout.chmod("new.md", 0o755);
    let mut edited = ["docs/deep/b.md", "new.md", "report.md"]
        .map(path_of)
        .to_vec();
    assert_eq!(ran.held.drift(&ran.start, &ran.result).unwrap(), edited);
    let mut done = ran.put_back();
    done.edited_since.sort();
    edited.sort();
    assert_eq!(done.edited_since, edited);
    assert_eq!((done.put_back, done.failed), (1, vec![]));
    assert_eq!(checkout.read("report.md"), "of a person\n");
    assert_eq!(checkout.read("docs/deep/b.md"), "of a person\n");
    assert_eq!(checkout.read("docs/a.md"), "docs/a.md\n");
}

#[test]
fn after_a_crash_the_same_change_is_found_and_put_back() {
    let checkout = Checkout::new(&["out/new.md"], &["docs/**"]);
    let ran = checkout.run(|| {
        checkout.write("out/new.md", "new\n");
        checkout.write("docs/a.md", "changed\n");
    });
    let stored = serde_json::to_string(&ran.start).unwrap();
    let start: Start = serde_json::from_str(&stored).unwrap();
    let workdir = checkout.workdir();
    let mut held = InPlace::again(&checkout.objects(), &checkout.base(&workdir), &start).unwrap();
    let (result, compared) = held.result(&start).unwrap();
    assert_eq!(result, ran.result);
    Ran {
        held,
        start,
        result,
        compared,
    }
    .put_back_all();
    assert_eq!(checkout.status(), "");
    assert!(!checkout.at("out").exists());
}

#[test]
fn a_replacement_that_was_killed_half_way_loses_no_edit() {
    let checkout = Checkout::new(&["report.md"], &[]);
    let mut ran = checkout.run(|| checkout.write("report.md", "of the run\n"));
    // Killed right after the exchange, which had taken an edit out.
    let staging = checkout.at(".git/workerctl-in-place");
    fs::create_dir(&staging).unwrap();
    let slot = staging.join(hash_of(&checkout.workdir(), "report.md"));
    fs::write(&slot, "of a person\n").unwrap();
    checkout.write("report.md", "report.md\n");
    let done = ran.put_back();
    assert_eq!(done.edited_since, [path_of("report.md")]);
    assert_eq!(checkout.read("report.md"), "of a person\n");
    // Killed while it wrote what is to come in.
    checkout.write("report.md", "of the run\n");
    fs::create_dir_all(&staging).unwrap();
    fs::write(&slot, "rep").unwrap();
    ran.put_back_all();
    assert_eq!(checkout.status(), "");
    assert!(!staging.exists());
}

#[test]
fn a_link_is_never_followed() {
    let outside = tempfile::tempdir().unwrap();
    let checkout = Checkout::new(&["linked/out.md"], &["docs/*.md", "docs/deep/**"]);
    symlink(outside.path(), checkout.at("linked")).unwrap();
    let message = checkout.refused("not_clean");
    assert!(
        message.contains("`linked/out.md` lies behind a link"),
        "{message}"
    );
    fs::remove_file(checkout.at("linked")).unwrap();

    let mut ran = checkout.run(|| {
        fs::remove_dir_all(checkout.at("docs/deep")).unwrap();
        symlink(outside.path(), checkout.at("docs/deep")).unwrap();
        symlink(outside.path(), checkout.at("linked")).unwrap();
        fs::write(outside.path().join("b.md"), "outside\n").unwrap();
        fs::write(outside.path().join("out.md"), "outside\n").unwrap();
    });
    assert_eq!(ran.problems(), ["in_the_way"]);
    ran.put_back();
    for name in ["b.md", "out.md"] {
        assert_eq!(
            fs::read_to_string(outside.path().join(name)).unwrap(),
            "outside\n"
        );
    }
}

#[test]
fn line_ends_are_stored_as_git_stores_them_and_written_as_it_checks_out() {
    for (attributes, wrote, file) in [
        ("*.md text\n", "a\r\nb\r\n", "a\nb\n"),
        ("*.md text eol=crlf\n", "a\nb\n", "a\r\nb\r\n"),
        ("*.md -text\n", "a\r\nb\n", "a\r\nb\n"),
    ] {
        let checkout = Checkout::new(&["report.md", "new.md"], &[]);
        checkout.write(".gitattributes", attributes);
        checkout.commit("attributes");
        fs::remove_file(checkout.at("report.md")).unwrap();
        checkout.git(&["checkout", "--", "report.md"]);
        let committed = checkout.read("report.md");
        let mut ran = checkout.run(|| {
            checkout.write("new.md", wrote);
            checkout.write("report.md", wrote);
        });
        assert_eq!(ran.paths(), ["new.md", "report.md"]);
        assert_eq!(
            ran.result.tree.as_str(),
            checkout.tree_with(&["new.md", "report.md"])
        );
        ran.held.settle(&ran.result).unwrap();
        assert_eq!(checkout.read("new.md"), file, "{attributes}");
        assert_eq!(ran.held.drift(&ran.start, &ran.result).unwrap(), []);
        ran.put_back_all();
        assert_eq!(checkout.read("report.md"), committed, "{attributes}");
        assert_eq!(checkout.status(), "");
    }
    let checkout = Checkout::new(&["report.md"], &[]);
    checkout.write(".gitattributes", "*.md working-tree-encoding=UTF-16\n");
    checkout.git(&["add", ".gitattributes"]);
    checkout.git(&["commit", "-qm", "attributes"]);
    let message = checkout.refused("filtered");
    assert!(
        message.contains("`report.md` has the attribute `working-tree-encoding`"),
        "{message}"
    );
}

#[test]
fn commits_made_meanwhile_stay_and_the_result_stands_on_them() {
    let checkout = Checkout::new(&["report.md"], &["docs/**"]);
    let mut ran = checkout.run(|| {
        checkout.write("other.txt", "committed meanwhile\n");
        checkout.write("docs/a.md", "committed by the skill\n");
        checkout.git(&["commit", "-qm", "meanwhile", "other.txt", "docs/a.md"]);
        checkout.write("report.md", "of the run\n");
    });
    assert_eq!(ran.paths(), ["report.md"]);
    assert_eq!(ran.result.commits_count, 1);
    assert_eq!(ran.result.tree.as_str(), checkout.tree_with(&["report.md"]));
    let stands = ran.compared.clone();
    assert_eq!(
        stands.base.as_ref().unwrap().as_str(),
        checkout.git(&["rev-parse", "HEAD"])
    );
    assert_eq!(ran.held.drift(&stands, &ran.result).unwrap(), []);
    ran.put_back_all();
    assert_eq!(checkout.status(), "");
    assert_eq!(checkout.read("docs/a.md"), "committed by the skill\n");
}

#[test]
fn a_head_that_was_moved_is_told_and_the_files_are_still_put_back() {
    let checkout = Checkout::new(&["report.md"], &[]);
    let mut ran = checkout.run(|| {
        checkout.write("report.md", "of the run\n");
        checkout.git(&["switch", "-qc", "elsewhere"]);
    });
    let found = "refs/heads/elsewhere".into();
    assert_eq!(ran.result.head, HeadState::Moved { found });
    ran.put_back_all();
    assert_eq!(checkout.status(), "");
}

#[test]
fn an_ignored_output_is_left_where_it_is() {
    let checkout = Checkout::new(&["build/run.log", "report.md"], &[]);
    checkout.write("build/run.log", "of an earlier run\n");
    let mut ran = checkout.run(|| {
        checkout.write("build/run.log", "of this run\n");
        checkout.write("report.md", "of the run\n");
    });
    assert_eq!(ran.paths(), ["report.md"]);
    ran.put_back_all();
    assert_eq!(checkout.read("build/run.log"), "of this run\n");
}

#[test]
fn patterns_are_relative_to_the_workspace_and_our_folders_are_nobodys() {
    let mut checkout = Checkout::new(&[], &["data/*.json", "**/*.rs"]);
    checkout.root = Some(path_of("lib"));
    checkout.except = vec![path_of("lib/threads")];
    let ran = checkout.run(|| {
        for path in [
            "lib/data/x.json",
            "data/x.json",
            "lib/deep/er/d.rs",
            "d.rs",
            "lib/threads/t.rs",
            "lib/c.txt",
        ] {
            checkout.write(path, "written\n");
        }
    });
    assert_eq!(ran.paths(), ["lib/data/x.json", "lib/deep/er/d.rs"]);
}

#[test]
fn a_linked_work_tree_is_a_checkout_of_its_own() {
    let main = Checkout::new(&[], &[]);
    let mut linked = Checkout::new(&["report.md"], &["docs/**"]);
    fs::remove_dir_all(linked.workdir()).unwrap();
    let place = linked.workdir().to_string_lossy().into_owned();
    main.git(&["worktree", "add", "-q", "-b", "side", &place]);
    linked.target = "refs/heads/side".to_owned();
    let mut ran = linked.run(|| {
        linked.write("report.md", "of the run\n");
        linked.git(&["add", "report.md"]);
        main.write("report.md", "of another checkout\n");
    });
    assert_eq!(ran.paths(), ["report.md"]);
    ran.put_back_all();
    assert_eq!(linked.status(), "");
    assert_eq!(main.read("report.md"), "of another checkout\n");
}

#[test]
fn a_sparse_checkout_and_a_branch_without_commits_work() {
    let checkout = Checkout::new(&["report.md"], &["docs/**"]);
    checkout.git(&["sparse-checkout", "set", "--no-cone", "/*", "!/docs/deep/"]);
    assert!(!checkout.at("docs/deep/b.md").exists());
    let mut ran = checkout.run(|| checkout.write("docs/a.md", "changed\n"));
    assert_eq!(ran.paths(), ["docs/a.md"]);
    ran.put_back_all();
    assert_eq!(checkout.status(), "");
    assert!(!checkout.at("docs/deep").exists());

    let unborn = Checkout::new(&["out.md"], &[]);
    fs::remove_dir_all(unborn.at(".git")).unwrap();
    unborn.git(&["init", "-q", "-b", "main"]);
    let mut ran = unborn.run(|| unborn.write("out.md", "first\n"));
    assert_eq!(ran.paths(), ["out.md"]);
    assert_eq!(ran.start.base, None);
    ran.put_back_all();
    assert!(!unborn.at("out.md").exists());
}
