//! Runs that merge or rebase, and whose branch lacks files of the workers that the checkout has.

use crate::workspace::Workspace;

/// Skills of the worker `w` on the branch `bot`, which exists as the first commit left it.
fn workspace(run: &str) -> Workspace {
    let skill = format!(
        "  - id: sync\n    description: d\n    mutating: true\n    branch: bot\n    run: |\n      set -e\n{run}"
    );
    let workspace = Workspace::with_skills(&skill);
    workspace.git(&["branch", "bot"]);
    workspace
}

/// Another worker, a change and a removal that `bot` does not have.
fn advance(workspace: &Workspace) {
    let other = "worker: {id: other, name: o, type: OpsWorker}\nskills: [{id: x, description: x, run: echo x}]\n";
    workspace.write("workers/other/worker.yaml", other);
    workspace.write("workers/w/notes.txt", "of main\n");
    workspace.write("tracked.txt", "of main\n");
    workspace.commit_all("main adds a worker");
}

fn differing(workspace: &Workspace) -> String {
    let named = workspace.git(&["diff", "--name-status", "main", "bot"]);
    named.trim().to_owned()
}

#[test]
fn a_merge_in_a_run_lands_with_all_files_that_it_brings() {
    let workspace = workspace("      git merge -q --no-edit main\n      date +%s%N > deps.txt\n");
    advance(&workspace);
    for _ in 0..2 {
        workspace.run(&["run", "sync"]).expect_code(0);
        assert_eq!(differing(&workspace), "A\tdeps.txt");
        workspace.git(&["merge-base", "--is-ancestor", "main", "bot"]);
        advance_again(&workspace);
    }
    assert_eq!(workspace.git(&["status", "--porcelain"]), "");
}

fn advance_again(workspace: &Workspace) {
    workspace.git(&["rm", "-q", "-r", "--ignore-unmatch", "workers/other"]);
    workspace.commit_all("main removes it");
}

#[test]
fn a_run_that_only_merges_lands_the_merge() {
    let workspace = workspace("      git merge -q --no-ff --no-edit main\n");
    advance(&workspace);
    workspace.run(&["run", "sync"]).expect_code(0);
    assert_eq!(differing(&workspace), "");
    workspace.git(&["merge-base", "--is-ancestor", "main", "bot"]);
}

#[test]
fn a_run_may_rebase_its_own_commits() {
    let text = "      echo own > own.txt; git add own.txt; git commit -q -m own\n      git rebase -q main\n";
    let workspace = workspace(text);
    advance(&workspace);
    workspace.run(&["run", "sync"]).expect_code(0);
    assert_eq!(differing(&workspace), "A\town.txt");
    workspace.git(&["merge-base", "--is-ancestor", "main", "bot"]);
}

/// What is in the checkout and not committed does not reach the branch, whatever the run does with git.
#[test]
fn uncommitted_files_of_workers_never_reach_a_branch() {
    let workspace = workspace(
        "      git merge -q --no-edit main\n      git add -A; git commit -q --allow-empty -m all\n      echo x > out.txt\n",
    );
    advance(&workspace);
    workspace.write(
        "workers/draft/worker.yaml",
        "worker: {id: draft, name: d, type: OpsWorker}\n",
    );
    workspace.write("workers/w/notes.txt", "edited\n");
    workspace.run(&["run", "sync"]).expect_code(0);
    assert_eq!(differing(&workspace), "A\tout.txt");
    assert_eq!(workspace.read("workers/w/notes.txt").unwrap(), "edited\n");
}

#[test]
fn a_merge_that_brings_another_definition_than_the_checkout_has_is_refused() {
    let workspace = workspace("      git merge -q --no-edit evil\n");
    workspace.git(&["checkout", "-q", "-b", "evil"]);
    let path = "workers/w/worker.yaml";
    let text = workspace
        .read(path)
        .unwrap()
        .replace("sandbox: {write: [~/]}", "sandbox: off");
    workspace.write(path, &text);
    workspace.commit_all("evil");
    workspace.git(&["checkout", "-q", "main"]);
    let refused = workspace.run(&["run", "sync"]).expect_code(1);
    assert!(
        refused.stdout.contains("definitions_changed")
            || refused.stderr.contains("definitions_changed"),
        "{refused:?}"
    );
}

/// That a branch had a commit before the run is no proof that the run has landed it.
#[test]
fn a_merged_commit_that_a_user_had_taken_off_the_branch_lands() {
    for merge in ["--ff-only", "--no-ff --no-edit"] {
        let workspace = workspace(&format!("      git merge -q {merge} feature\n"));
        workspace.git(&["checkout", "-q", "-b", "feature"]);
        workspace.write("new.txt", "n\n");
        workspace.commit_all("feature");
        workspace.git(&["checkout", "-q", "bot"]);
        workspace.git(&["merge", "-q", "--ff-only", "feature"]);
        workspace.git(&["reset", "-q", "--hard", "main"]);
        workspace.git(&["checkout", "-q", "main"]);
        workspace.run(&["run", "sync"]).expect_code(0);
        workspace.git(&["merge-base", "--is-ancestor", "feature", "bot"]);
    }
}

const SCRIPT: &str = "  - id: scripted\n    description: d\n    mutating: true\n    branch: bot\n    \
                      run: {script: bin/go.sh, interpreter: sh}\n";

#[test]
fn a_script_that_the_branch_does_not_have_runs_from_a_copy_with_a_warning() {
    let workspace = Workspace::with_skills(SCRIPT);
    workspace.git(&["branch", "bot"]);
    workspace.write("workers/w/bin/lib.sh", "word=from-lib\n");
    workspace.write(
        "workers/w/bin/go.sh",
        ". \"$(dirname \"$0\")/lib.sh\"; echo \"$word\" > out.txt; ls workers/w > seen.txt\n",
    );
    // Uncommitted, committed elsewhere, and with another version on the branch.
    for (round, commits) in [false, true].into_iter().enumerate() {
        if commits {
            workspace.commit_all("scripts");
        }
        let done = workspace.run(&["run", "scripted"]).expect_code(0);
        let said = done.stdout + &done.stderr;
        if round == 0 {
            assert!(
                said.contains("a copy outside of the worktree was executed"),
                "{said}"
            );
        }
        assert_eq!(workspace.git(&["show", "bot:out.txt"]), "from-lib\n");
        assert_eq!(workspace.git(&["show", "bot:seen.txt"]), "worker.yaml\n");
        workspace.git(&["branch", "-f", "bot", "bot~1"]);
    }
    // Once the branch has it, it runs from the tree.
    workspace.git(&["branch", "-f", "bot", "main"]);
    let done = workspace.run(&["run", "scripted"]).expect_code(0);
    let said = done.stdout + &done.stderr;
    assert!(!said.contains("a copy outside"), "{said}");
    assert_eq!(
        workspace.git(&["show", "bot:seen.txt"]),
        "bin\nworker.yaml\n"
    );
}

#[test]
fn a_script_next_to_large_files_runs_and_next_to_very_many_it_does_not() {
    let workspace = Workspace::with_skills(SCRIPT);
    workspace.git(&["branch", "bot"]);
    workspace.write("workers/w/bin/go.sh", "true\n");
    let large = std::fs::File::create(workspace.root.join("workers/w/bin/large")).unwrap();
    large.set_len(1 << 40).unwrap();
    workspace.run(&["run", "scripted"]).expect_code(0);
    for nth in 0..20_000 {
        let path = format!("workers/w/bin/{nth}");
        std::fs::File::create(workspace.root.join(path)).unwrap();
    }
    let refused = workspace.run(&["run", "scripted"]).expect_code(1);
    let said = refused.stdout + &refused.stderr;
    assert!(
        said.contains("more than 20000 files lie next to it"),
        "{said}"
    );
}
