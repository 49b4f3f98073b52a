//! Where runs work: what is refused there by name, and what of git in a run's tree is respected.

use std::fs;

use rustix::fs::{FlockOperation, flock};
use serde_json::Value;

use crate::workspace::daemon::Daemon;
use crate::workspace::gate::Gate;
use crate::workspace::{Workspace, eventually};

/// One that works in the checkout, and one that publishes into it.
fn in_place() -> Workspace {
    let skills = r#"
  - id: works
    description: d
    mutating: true
    isolation: in_place
    idempotent: false
    writes: [docs]
    run: |
      echo changed > docs/a.md; GATE
  - id: publishes
    description: d
    interface: {outputs: [{name: r, type: markdown, destination: "docs/published.md"}]}
    run: "echo '# r' > {r}"
"#;
    let workspace = Workspace::new();
    workspace.write("docs/a.md", "as committed\n");
    workspace.write("docs/b.md", "as committed\n");
    workspace.furnish(&skills.replace("GATE", &Gate::text("gate")));
    workspace
}

fn changed(workspace: &Workspace, commit: &str) -> String {
    let shown = workspace.git(&["show", "--name-status", "--format=", commit]);
    shown.trim().to_owned()
}

/// Why a run waits, as soon as it says so.
fn waits_for(workspace: &Workspace, run: &str) -> String {
    eventually("it says why it waits", || {
        let summary = workspace.show(run)["summary"].clone();
        summary["waiting_for"].as_str().map(str::to_owned)
    })
}

#[test]
fn a_skill_that_is_not_mutating_asks_in_vain_for_a_tree_and_is_told() {
    let skill =
        "  - {id: reads, description: d, isolation: worktree, run: \"echo mine > tracked.txt\"}\n";
    let workspace = Workspace::with_skills(skill);
    let checked = workspace.run(&["check"]).expect_code(4).stdout;
    for told in [
        "isolation-not-mutating",
        "worker.yaml:",
        "would not keep it from there",
        "`mutating: true`",
    ] {
        assert!(checked.contains(told), "{checked}");
    }
    assert_ne!(workspace.run(&["run", "reads"]).code, 0);
    assert_eq!(workspace.read("tracked.txt").unwrap(), "as committed\n");
}

#[test]
fn an_ignored_file_that_a_skill_commits_stays_in_the_commit_on_top() {
    let skill = r"
  - id: forces
    description: d
    mutating: true
    run: |
      mkdir -p cache/deep; echo kept > cache/deep/kept.txt; echo not > cache/deep/not.txt
      git add -f cache/deep/kept.txt; git commit -qm forced
      echo then > cache/deep/kept.txt; echo out > out.md
";
    let workspace = Workspace::with_skills(skill);
    let ignored = workspace.read(".gitignore").unwrap() + "cache/\n";
    workspace.write(".gitignore", &ignored);
    workspace.commit_all("ignore");
    let detail = workspace.json(&["run", "forces"]);
    assert_eq!(detail["summary"]["commits_made"]["count"], 1, "{detail}");
    assert_eq!(changed(&workspace, "HEAD~1"), "A\tcache/deep/kept.txt");
    assert_eq!(
        changed(&workspace, "HEAD"),
        "M\tcache/deep/kept.txt\nA\tout.md"
    );
    assert_eq!(workspace.read("cache/deep/kept.txt").unwrap(), "then\n");
    assert!(workspace.read("cache/deep/not.txt").is_none());
    assert_eq!(workspace.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_skill_may_remove_the_directory_that_it_works_in() {
    let skill = "  - {id: tidies, description: d, mutating: true, cwd: old, run: 'rm -r ../old; echo new > ../new.txt'}\n";
    let workspace = Workspace::new();
    workspace.write("old/a.txt", "to go\n");
    workspace.furnish(skill);
    workspace.run(&["run", "tidies"]).expect_code(0);
    assert_eq!(changed(&workspace, "HEAD"), "A\tnew.txt\nD\told/a.txt");
    assert!(!workspace.root.join("old").exists());
}

#[test]
fn a_commit_that_is_amended_while_a_run_works_in_the_checkout_stays_amended() {
    for (path, code) in [("beside.txt", 0), ("docs/b.md", 1)] {
        let workspace = in_place();
        let mut gate = Gate::new(&workspace, "gate");
        let daemon = Daemon::start(&workspace);
        let run = workspace.submit(&["works"]);
        gate.reached();
        workspace.write(path, "a person's work\n");
        workspace.git(&["add", path]);
        workspace.git(&["commit", "-q", "--amend", "-m", "amended", "--", path]);
        let amended = workspace.git(&["rev-parse", "HEAD"]);
        gate.pass();
        let (ended, detail) = workspace.wait(&run);
        assert_eq!(ended, code, "{detail}");
        if code == 0 {
            assert_eq!(workspace.git(&["rev-parse", "HEAD~1"]), amended);
            assert_eq!(changed(&workspace, "HEAD"), "M\tdocs/a.md");
        } else {
            // What the run may write was rewritten with it.
            assert_eq!(workspace.git(&["rev-parse", "HEAD"]), amended);
            let failure = &detail["summary"]["outcome"]["failure"];
            assert_eq!(failure["code"], "history_rewritten", "{failure}");
            let said = failure["message"].as_str().unwrap();
            assert!(said.contains("workerctl retry"), "{said}");
        }
        assert_eq!(workspace.git(&["status", "--porcelain"]), "");
        daemon.stop();
    }
}

#[test]
fn what_another_run_publishes_is_not_taken_for_what_the_run_in_the_checkout_wrote() {
    let workspace = in_place();
    let mut gate = Gate::new(&workspace, "gate");
    let daemon = Daemon::start(&workspace);
    let run = workspace.submit(&["works"]);
    gate.reached();
    workspace.json(&["run", "publishes"]);
    gate.pass();
    let (code, detail) = workspace.wait(&run);
    assert_eq!(code, 0, "{detail}");
    assert_eq!(changed(&workspace, "HEAD"), "M\tdocs/a.md");
    assert_eq!(workspace.read("docs/published.md").unwrap(), "# r\n");
    assert_eq!(
        workspace.git(&["status", "--porcelain"]),
        "?? docs/published.md\n"
    );
    daemon.stop();
}

#[test]
fn a_run_that_waits_for_the_checkout_or_to_land_says_so() {
    let workspace = in_place();
    let mut gate = Gate::new(&workspace, "gate");
    let lock = workspace.root.join(".git/workerctl-in-place.lock");
    fs::write(
        &lock,
        "workerctl pid=1 start=1 boot=x owner=/another/engine pid_ns=\n",
    )
    .unwrap();
    let held = fs::File::open(&lock).unwrap();
    flock(&held, FlockOperation::LockExclusive).unwrap();
    let daemon = Daemon::start(&workspace);
    let run = workspace.submit(&["works"]);
    let reason = waits_for(&workspace, &run);
    assert!(reason.starts_with("the checkout: "), "{reason}");
    assert!(reason.contains("/another/engine"), "{reason}");
    for command in ["runs", "status"] {
        let told = workspace.run(&[command]).stdout;
        assert!(told.contains("waits for the checkout"), "{told}");
    }
    drop(held);
    gate.reached();
    let summary = &workspace.show(&run)["summary"];
    assert_eq!(summary["waiting_for"], Value::Null, "{summary}");
    let lock = workspace.root.join(".git/index.lock");
    fs::write(&lock, "").unwrap();
    gate.pass();
    let reason = waits_for(&workspace, &run);
    assert!(reason.starts_with("its commit to land: "), "{reason}");
    assert!(reason.contains("index.lock` exists"), "{reason}");
    fs::remove_file(&lock).unwrap();
    let (code, detail) = workspace.wait(&run);
    assert_eq!(code, 0, "{detail}");
    assert_eq!(detail["summary"]["waiting_for"], Value::Null);
    daemon.stop();
}

#[test]
fn the_remedy_that_is_told_mends_the_repository() {
    let skill = "  - {id: write, description: d, mutating: true, run: \"echo out > out.md\"}\n  \
        - {id: on-side, description: d, mutating: true, branch: side, run: \"echo out > out.md\"}\n";
    let workspace = Workspace::with_skills(skill);
    let refused = |arguments: &[&str], remedy: &str| {
        let done = workspace.run(arguments);
        assert_ne!(done.code, 0, "{done:?}");
        let told = done.stdout.clone() + &done.stderr;
        assert!(told.contains(remedy), "{told}");
    };
    let git = |file: &str| workspace.root.join(".git").join(file);

    fs::remove_file(git("HEAD")).unwrap();
    let remedy = format!("echo 'ref: refs/heads/main' > '{}'", git("HEAD").display());
    refused(&["run", "write"], &remedy);
    refused(&["doctor"], &remedy);
    let mended = workspace.program("sh").args(["-c", &remedy]).status();
    assert!(mended.unwrap().success());

    let config = fs::read_to_string(git("config")).unwrap();
    fs::write(git("config"), format!("{config}[garbage\n")).unwrap();
    refused(&["run", "write"], "repair the named line");
    refused(&["run", "write"], ".git/config");
    fs::write(git("config"), config).unwrap();
    workspace.json(&["run", "write"]);

    workspace.git(&["symbolic-ref", "refs/heads/side", "refs/heads/main"]);
    let remedy = "git symbolic-ref -d refs/heads/side && git branch side main";
    refused(&["run", "on-side"], remedy);
    let mended = workspace.program("sh").args(["-c", remedy]).status();
    assert!(mended.unwrap().success());
    workspace.git(&["reset", "-q", "--hard", "HEAD~1"]);
    workspace.json(&["run", "on-side"]);
}

#[test]
fn a_result_that_the_person_hides_from_git_is_named() {
    let skill = "  - {id: write, description: d, mutating: true, run: \"echo out > out.md\"}\n";
    let workspace = Workspace::with_skills(skill);
    let exclude = workspace.root.join(".git/info/exclude");
    fs::create_dir_all(exclude.parent().unwrap()).unwrap();
    fs::write(exclude, "out.md\n").unwrap();
    let done = workspace.run(&["run", "write"]).expect_code(0);
    let told = done.stdout + &done.stderr;
    assert!(
        told.contains("1 path that git ignores was not taken over: `out.md`"),
        "{told}"
    );
}
