//! Where runs work: what is refused by name, what earlier versions stored, and what of git in a run's tree is respected.

use std::fs;
use std::sync::Arc;

use serde_json::{Value, json};
use workerctl::machine::Event;
use workerctl::model::{RunId, ThreadId};
use workerctl::store::{Batch, OpenOptions, SledStore, Store, Write};

use crate::workspace::daemon::Daemon;
use crate::workspace::gate::Gate;
use crate::workspace::{Workspace, eventually};

/// A skill that changes a file and stands still at a gate.
fn gated() -> Workspace {
    let skill =
        "  - {id: works, description: d, mutating: true, run: 'echo changed > docs/a.md; GATE'}\n";
    let workspace = Workspace::new();
    workspace.write("docs/a.md", "as committed\n");
    workspace.furnish(&skill.replace("GATE", &Gate::text("gate")));
    workspace
}

/// A copy of a run as versions stored it that could run in the checkout itself, with the first events of its journal.
fn store_older(
    workspace: &Workspace,
    run: &str,
    number: u64,
    is_over: impl Fn(&Event) -> bool,
) -> String {
    let place = workspace.state().join("store");
    let store = SledStore::open(&place, OpenOptions::default()).unwrap();
    let original: RunId = run.parse().unwrap();
    let mut spec = store.spec(original).unwrap().unwrap();
    let at = spec.submitted_at.minus_millis(60_000 - number);
    spec.run = RunId::following(None, at, u128::from(number));
    spec.thread = ThreadId::of(spec.run, &spec.skill, at);
    let run = spec.run;
    let mut spec = serde_json::to_value(spec).unwrap();
    spec["tree"]["in_place"] = json!({"writes": ["docs"]});
    let spec = serde_json::from_value(spec).unwrap();
    let journal = store.journal(original).unwrap();
    let count = journal.iter().position(|entry| is_over(&entry.event));
    let entries = journal[..count.unwrap_or(journal.len())].to_vec();
    let mut writes = vec![Write::Spec(Arc::new(spec)), Write::Entries { run, entries }];
    if count.is_none() {
        let mut summary = store.summary(original).unwrap().unwrap();
        (summary.run, summary.day) = (run, None);
        writes.extend([Write::Finished(Box::new(summary)), Write::Closed(run)]);
    }
    store.commit(&Batch { writes }).unwrap();
    run.to_string()
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
        "would not change that",
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
fn a_run_that_waits_to_land_says_so() {
    let workspace = gated();
    let mut gate = Gate::new(&workspace, "gate");
    let daemon = Daemon::start(&workspace);
    let run = workspace.submit(&["works"]);
    gate.reached();
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
fn a_skill_that_asks_for_the_checkout_is_refused_and_told_what_to_use_instead() {
    let skill = "  - {id: asks, description: d, mutating: true, isolation: in_place, writes: [docs], run: 'echo mine > tracked.txt'}\n";
    let workspace = Workspace::with_skills(skill);
    let checked = workspace.run(&["check"]).expect_code(4).stdout;
    for told in [
        "worker.yaml:",
        "`isolation: in_place` was removed: every mutating run works in a worktree of its own",
        "`keep`",
        "`local`",
        "`destination`",
        "`writes` was removed",
    ] {
        assert!(checked.contains(told), "{told}: {checked}");
    }
    workspace.run(&["run", "asks"]).expect_code(4);
    assert_eq!(workspace.read("tracked.txt").unwrap(), "as committed\n");
}

#[test]
fn a_stored_run_that_worked_in_the_checkout_ends_as_unknown_and_nothing_is_done() {
    let skill =
        "  - {id: works, description: d, mutating: true, run: 'echo changed > tracked.txt'}\n";
    let workspace = Workspace::with_skills(skill);
    let run = workspace.json(&["run", "works"])["summary"]["run"].clone();
    workspace.git(&["revert", "--no-edit", "HEAD"]);
    let run = run.as_str().unwrap();
    let ended = store_older(&workspace, run, 1, |_| false);
    let running = store_older(&workspace, run, 2, |event| {
        matches!(event, Event::ExecutionFinished { .. })
    });
    let queued = store_older(&workspace, run, 3, |event| {
        matches!(event, Event::Admitted { .. })
    });
    // What the run had done there, and a person after it.
    workspace.write("tracked.txt", "changed\nand edited\n");
    let tip = workspace.git(&["rev-parse", "HEAD"]);

    let daemon = Daemon::start(&workspace);
    for run in [&running, &queued] {
        let (code, detail) = workspace.wait(run);
        assert_eq!(code, 9, "{detail}");
        let outcome = json!({"kind": "unknown", "why": "older_version"});
        assert_eq!(detail["summary"]["outcome"], outcome, "{detail}");
    }
    let left = workspace.read("tracked.txt");
    assert_eq!(left.as_deref(), Some("changed\nand edited\n"));
    assert_eq!(workspace.git(&["rev-parse", "HEAD"]), tip);
    // Runs that had ended are shown as before.
    let patch = workspace.run(&["diff", &ended]).expect_code(0).stdout;
    assert!(patch.contains("+changed"), "{patch}");
    let detail = workspace.json(&["show", &ended]);
    assert_eq!(
        detail["summary"]["outcome"]["kind"], "succeeded",
        "{detail}"
    );
    let listed = workspace.json(&["runs"])["runs"].to_string();
    for run in [&ended, &running, &queued] {
        assert!(listed.contains(run.as_str()), "{listed}");
    }
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
        told.contains("1 path that git ignores is not part of the result: `out.md`"),
        "{told}"
    );
}
