//! What checks, hooks and git's own operations leave of a run that fails: nothing, or it is named.

use serde_json::Value;

use crate::workspace::Workspace;

const SKILLS: &str = r#"
  - {id: stages, description: d, mutating: true, run: "git add -A; exit 1"}
  - {id: merges, description: d, mutating: true, run: "git merge -q --no-ff --no-commit other"}
  - {id: commits, description: d, mutating: true, run: "git commit -q --allow-empty -m 'a commit'; exit 1"}
  - {id: removes-git, description: d, mutating: true, run: "rm -rf .git"}
  - {id: removes-objects, description: d, mutating: true, run: "rm -rf .git/objects"}
  - id: hook-removes-git
    description: d
    mutating: true
    run: "echo run > new.txt"
    hooks: {post_tools: ["rm -rf .git"]}
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
  - id: hook-stages
    description: d
    mutating: true
    run: "echo run >> tracked.txt"
    hooks: {post_tools: ["git add mine.txt"]}
  - id: check-commits
    description: d
    mutating: true
    run: "echo run >> tracked.txt"
    verification: [{command: "git commit -q --allow-empty -m bycheck"}]
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
fn taken_back(skill: &str, code: &str) -> Value {
    let workspace = workspace();
    if skill == "merges" {
        // Git begins no merge while something is staged.
        workspace.git(&["reset", "-q", "mine.txt"]);
    }
    let look = || {
        (
            workspace.git(&["ls-files", "-s"]),
            workspace.git(&["status", "--porcelain"]),
            workspace.git(&["for-each-ref", "refs/heads/main"]),
            workspace.git(&["symbolic-ref", "HEAD"]),
        )
    };
    let (tree, before) = (workspace.tree(), look());
    let done = workspace.run(&["run", skill, "--json"]);
    assert_ne!(done.code, 0, "{skill}");
    let detail = done.value();
    let failure = &detail["summary"]["outcome"]["failure"];
    assert_eq!(failure["code"], code, "{skill}: {failure}");
    assert_eq!(
        detail["not_restored"],
        serde_json::json!([]),
        "{skill}: {detail}"
    );
    assert_eq!(look(), before, "{skill}");
    assert_eq!(workspace.tree(), tree, "{skill}");
    assert!(!workspace.root.join(".git/MERGE_HEAD").exists());
    // The next one may begin.
    let again = workspace.run(&["run", skill, "--json"]).value();
    assert_eq!(again["summary"]["outcome"]["failure"]["code"], code);
    detail
}

fn message(detail: &Value) -> &str {
    detail["summary"]["outcome"]["failure"]["message"]
        .as_str()
        .unwrap()
}

#[test]
fn what_a_skill_staged_or_merged_is_taken_back() {
    taken_back("stages", "exit_code");
    let detail = taken_back("merges", "merge_in_progress");
    assert!(message(&detail).contains("finish or abort it in the skill"));
}

#[test]
fn commits_that_are_taken_off_are_named_with_how_to_get_them_back() {
    let detail = taken_back("commits", "exit_code");
    let warnings = detail["warnings"].to_string();
    for part in ["a commit", "taken off `main`", "git branch rescue"] {
        assert!(warnings.contains(part), "{warnings}");
    }
}

#[test]
fn what_a_hook_changes_fails_the_run_and_is_taken_back() {
    for (skill, named) in [
        ("hook-writes", "`hookfile`"),
        ("hook-edits", "`tracked.txt`"),
        ("hook-commits", "`refs/heads/main` is at"),
        ("hook-stages", "staged of `mine.txt`"),
    ] {
        let detail = taken_back(skill, "hook_changed_result");
        assert!(message(&detail).contains(named), "{}", message(&detail));
    }
    let workspace = workspace();
    let detail = workspace.run(&["run", "hook-switches", "--json"]).value();
    assert!(message(&detail).contains("refs/heads/hb"), "{detail}");
    let warnings = detail["warnings"].to_string();
    assert!(warnings.contains("git switch hb"), "{warnings}");
    assert_eq!(
        workspace.git(&["symbolic-ref", "HEAD"]).trim(),
        "refs/heads/main"
    );
}

#[test]
fn a_run_that_removes_its_repository_says_so() {
    let workspace = workspace();
    for skill in ["removes-git", "removes-objects", "hook-removes-git"] {
        let aside = workspace.home.join("aside");
        let copied = workspace
            .program("cp")
            .args(["-a", ".git"])
            .arg(&aside)
            .status();
        assert!(copied.unwrap().success());
        // Another repository further up must not be taken for it.
        let above = workspace.root.parent().unwrap().join(".git");
        git2::Repository::init(workspace.root.parent().unwrap()).unwrap();
        let detail = workspace.run(&["run", skill, "--json"]).value();
        let failure = &detail["summary"]["outcome"]["failure"];
        let code = match skill {
            "hook-removes-git" => "hook_changed_result",
            _ => "repository_gone",
        };
        assert_eq!(failure["code"], code, "{skill}: {failure}");
        assert!(
            message(&detail).contains("get the repository back"),
            "{skill}: {failure}"
        );
        assert_ne!(detail["not_restored"], serde_json::json!([]));
        assert_eq!(std::fs::read_dir(above.join("refs")).unwrap().count(), 2);
        std::fs::remove_dir_all(&above).unwrap();
        let _ = std::fs::remove_dir_all(workspace.root.join(".git"));
        std::fs::rename(&aside, workspace.root.join(".git")).unwrap();
    }
}

#[test]
fn what_a_check_changes_is_taken_back_too() {
    taken_back("check-commits", "check_changed_result");
    taken_back("check-fails", "check_failed");
}
