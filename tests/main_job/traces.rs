//! What skills, checks and hooks do with git stays in the tree of their run.

use serde_json::Value;

use crate::workspace::Workspace;

const SKILLS: &str = r#"
  - {id: good, description: d, mutating: true, run: "echo $WORKERCTL_RUN > good.txt"}
  - {id: stages, description: d, mutating: true, run: "git add -A; exit 1"}
  - {id: stashes, description: d, mutating: true, run: "echo s >> tracked.txt; git stash -q; exit 1"}
  - {id: configures, description: d, mutating: true, run: "git config core.bare true; touch .git/hooks/pre-commit; exit 1"}
  - {id: merges, description: d, mutating: true, run: "git merge -q --no-ff --no-commit other"}
  - {id: switches, description: d, mutating: true, run: "git switch -q -c elsewhere; echo e > e.txt"}
  - {id: resets, description: d, mutating: true, run: "git commit -q --amend -m other; echo e > e.txt"}
  - {id: commits, description: d, mutating: true, run: "git commit -q --allow-empty -m 'a commit'; exit 1"}
  - {id: removes-git, description: d, mutating: true, run: "echo x > new.txt; rm -rf .git"}
  - {id: removes-objects, description: d, mutating: true, run: "echo x > new.txt; rm -rf .git/objects"}
  - {id: removes-everything, description: d, mutating: true, run: "rm -rf .git * .[!.]*; mkfifo pipe; mkdir shut; touch shut/x; chmod 0 shut; exit 1"}
  - id: hook-writes
    description: d
    mutating: true
    run: "echo run >> tracked.txt"
    hooks: {post_tools: ["echo w > hookfile; echo no >&2; exit 2"]}
  - id: hook-edits
    description: d
    mutating: true
    run: "echo run >> tracked.txt"
    hooks: {post_tools: ["echo hook >> tracked.txt"]}
  - id: hook-commits
    description: d
    mutating: true
    run: "echo run >> tracked.txt"
    hooks: {post_tools: ["git add -A; git commit -qm byhook"]}
  - id: hook-switches
    description: d
    mutating: true
    run: "echo run >> tracked.txt"
    hooks: {post_tools: ["git checkout -q -b hb"]}
  - id: check-commits
    description: d
    mutating: true
    run: "echo run >> tracked.txt"
    verification: [{command: "git commit -q --allow-empty -m bycheck"}]
  - id: grafts
    description: d
    mutating: true
    run: |
      base=$(git rev-parse HEAD)
      orphan=$(git commit-tree -m orphan "HEAD^{tree}")
      mkdir -p .git/info && echo "$orphan $base" > .git/info/grafts
      git update-ref refs/heads/main "$orphan"
  - id: check-writes
    description: d
    mutating: true
    run: "echo run >> tracked.txt"
    verification: [{command: "echo c > left"}]
  - id: check-fails
    description: d
    mutating: true
    run: "echo run >> tracked.txt"
    verification: [{command: "echo c > left; exit 1"}]
"#;

/// A person has something staged, and something else in the file.
fn workspace() -> Workspace {
    let workspace = Workspace::with_skills(SKILLS);
    workspace.git(&["switch", "-q", "-c", "other"]);
    workspace.write("other.txt", "other\n");
    workspace.commit_all("other");
    workspace.git(&["switch", "-q", "-"]);
    workspace.write("mine.txt", "staged\n");
    workspace.git(&["add", "mine.txt"]);
    workspace.write("mine.txt", "later\n");
    workspace
}

/// Runs a skill that fails with a code and leaves everything as it was.
fn untouched(skill: &str, code: &str) -> Value {
    let workspace = workspace();
    let look = || {
        (
            workspace.git(&["ls-files", "-s"]),
            workspace.git(&["status", "--porcelain"]),
            workspace.git(&["for-each-ref", "refs/heads", "refs/stash"]),
            workspace.git(&["symbolic-ref", "HEAD"]),
            workspace.git(&["config", "--list", "--local"]),
        )
    };
    let (tree, before) = (workspace.tree(), look());
    let mut detail = Value::Null;
    // The second one begins from what the first one left.
    for _ in 0..2 {
        let done = workspace.run(&["run", skill, "--json"]);
        assert_ne!(done.code, 0, "{skill}");
        detail = done.value();
        let failure = &detail["summary"]["outcome"]["failure"];
        assert_eq!(failure["code"], code, "{skill}: {failure}");
        assert_eq!(look(), before, "{skill}");
        assert_eq!(workspace.tree(), tree, "{skill}");
    }
    assert!(!workspace.root.join(".git/MERGE_HEAD").exists());
    workspace.run(&["run", "good"]).expect_code(0);
    workspace.git(&["fsck", "--strict"]);
    detail
}

fn message(detail: &Value) -> &str {
    detail["summary"]["outcome"]["failure"]["message"]
        .as_str()
        .unwrap()
}

#[test]
fn what_a_failed_skill_does_with_git_stays_in_its_tree() {
    for skill in ["stages", "commits", "stashes", "configures"] {
        untouched(skill, "exit_code");
    }
    let detail = untouched("merges", "operation");
    assert!(message(&detail).contains("left a merge under way"));
    let detail = untouched("switches", "head_moved");
    assert!(message(&detail).contains("refs/heads/elsewhere"));
    untouched("resets", "history_rewritten");
    untouched("grafts", "history_rewritten");
}

#[test]
fn what_checks_and_hooks_change_fails_the_run() {
    for (skill, code, named) in [
        ("hook-writes", "hook_changed_result", "`hookfile`"),
        ("hook-edits", "hook_changed_result", "`tracked.txt`"),
        ("check-writes", "check_changed_result", "`left`"),
        ("check-fails", "check_failed", "exit code 1"),
    ] {
        let detail = untouched(skill, code);
        assert!(message(&detail).contains(named), "{}", message(&detail));
    }
}

#[test]
fn a_run_that_destroys_its_tree_destroys_nothing_else() {
    untouched("removes-git", "repository_damaged");
    untouched("removes-everything", "exit_code");
    // What its own repository lacks is in the real one.
    let workspace = workspace();
    workspace.run(&["run", "removes-objects"]).expect_code(0);
    assert_eq!(workspace.git(&["show", "HEAD:new.txt"]), "x\n");
    workspace.git(&["fsck", "--strict"]);
}

#[test]
fn what_checks_and_hooks_do_with_git_is_no_part_of_the_result() {
    for skill in ["hook-commits", "hook-switches", "check-commits"] {
        let workspace = workspace();
        workspace.run(&["run", skill]).expect_code(0);
        assert_eq!(workspace.committed_runs().len(), 1, "{skill}");
        assert_eq!(workspace.git(&["log", "--format=%s"]).lines().count(), 2);
        assert_eq!(
            workspace.git(&["diff", "--cached", "--name-only"]),
            "mine.txt\n"
        );
        assert_eq!(
            workspace.git(&["symbolic-ref", "HEAD"]).trim(),
            "refs/heads/main"
        );
    }
}

/// No commit has outputs that git ignores; checks saw them. A large output has no digest.
#[test]
fn an_output_that_a_hook_changes_after_the_checks_is_not_published() {
    let skill = |id: &str, run: &str, hook: &str| {
        format!(
            "  - id: {id}\n    description: d\n    mutating: true\n    \
             interface: {{outputs: [{{name: o, type: file, destination: ign/o}}]}}\n    \
             run: 'mkdir -p ign; {run}'\n    verification: [{{command: 'test -s {{o}}'}}]\n    \
             hooks: {{post_tools: ['{hook}']}}\n"
        )
    };
    let workspace = Workspace::with_skills(
        &[
            skill("small", "echo good > {o}", "echo evil > ign/o"),
            skill("removed", "echo good > {o}", "rm ign/o; exit 2"),
            skill(
                "large",
                "truncate -s 65M {o}",
                "printf evil | dd of=ign/o conv=notrunc",
            ),
            skill("read", "echo good > {o}", "grep good ign/o"),
        ]
        .concat(),
    );
    workspace.write(".gitignore", "ign/\n");
    workspace.commit_all("ignored");
    for name in ["small", "removed", "large"] {
        let detail = workspace.run(&["run", name, "--json"]).value();
        let failure = &detail["summary"]["outcome"]["failure"];
        assert_eq!(failure["code"], "hook_changed_result", "{name}: {detail}");
        assert!(message(&detail).contains("`ign/o`"), "{}", message(&detail));
        assert_eq!(workspace.read("ign/o"), None, "{name}");
    }
    workspace.run(&["run", "read"]).expect_code(0);
    assert_eq!(workspace.read("ign/o").as_deref(), Some("good\n"));
}
