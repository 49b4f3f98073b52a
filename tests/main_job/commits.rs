//! What a run commits, what it puts back, and what it never touches.

use std::os::unix::fs::MetadataExt;

use serde_json::Value;

use crate::workspace::Workspace;

const SKILLS: &str = r#"
  - id: note
    description: d
    mutating: true
    interface:
      inputs: [{name: text, type: string, default: "a note"}]
      outputs: [{name: note, type: markdown, destination: "workspace/notes/{run}.md"}]
    run: "printf '# %s\n' {text} > {note}"
    verification: [{command: "test -s {note}"}]
    hooks:
      post_commit: ["cat >> \"$HOME/committed\"; echo >> \"$HOME/committed\""]
  - id: havoc
    description: d
    mutating: true
    run: |
      echo changed >> tracked.txt
      rm gone.txt
      chmod +x plain.sh
      mkdir -p new/deep && echo new > new/deep/file
      ln -s tracked.txt link
    verification: [{command: "false", description: "never"}]
  - id: blocked
    description: d
    mutating: true
    run: "echo changed >> tracked.txt; echo new > new.txt"
    hooks: {post_tools: ["cat > \"$HOME/told\"; echo no >&2; exit 2"]}
  - id: warned
    description: d
    mutating: true
    run: "echo changed >> tracked.txt"
    hooks: {post_tools: ["exit 1"]}
  - {id: touch-tracked, description: d, mutating: true, run: "echo changed >> tracked.txt"}
  - {id: idle, description: d, mutating: true, run: "true"}
  - id: commits
    description: d
    mutating: true
    interface:
      inputs: [{name: end, type: string, pattern: "[a-z ]*", default: "true"}]
      outputs: [{name: made, type: git_commit}]
    run: |
      git commit -q --allow-empty -m one
      echo two >> tracked.txt; git commit -qam two
      case {end} in left*) echo left > left.txt;; fail*) exit 3;; esac
"#;

fn workspace() -> Workspace {
    let workspace = Workspace::with_skills(SKILLS);
    workspace.write("gone.txt", "still here\n");
    workspace.write("plain.sh", "#!/bin/sh\n");
    workspace.commit_all("more");
    workspace
}

fn summary(done: &Value) -> &Value {
    &done["summary"]
}

#[test]
fn a_mutating_run_ends_in_exactly_one_commit_of_its_own_change() {
    let workspace = workspace();
    let before = workspace.git(&["rev-parse", "HEAD"]);
    let done = workspace.run(&["run", "note", "-i", "text=It's $(so) \"done\"", "--json"]);
    let detail = done.expect_code(0).value();
    let run = summary(&detail)["run"].as_str().unwrap();
    let commit = summary(&detail)["commit"].as_str().unwrap();
    assert_eq!(workspace.git(&["rev-parse", "HEAD"]).trim(), commit);
    assert_eq!(workspace.git(&["rev-parse", "HEAD~1"]), before);
    assert_eq!(workspace.committed_runs(), [run]);
    let path = format!("workspace/notes/{run}.md");
    assert_eq!(
        workspace
            .git(&["show", "--name-only", "--format=", "HEAD"])
            .trim(),
        path
    );
    let text = workspace.git(&["show", &format!("HEAD:{path}")]);
    assert_eq!(text, "# It's $(so) \"done\"\n");
    assert_eq!(workspace.git(&["status", "--porcelain"]), "");
    workspace.git(&["fsck", "--strict"]);

    // The hook was told once, after the commit.
    let told = std::fs::read_to_string(workspace.home.join("committed")).unwrap();
    let told: Value = serde_json::from_str(told.trim()).unwrap();
    assert_eq!(told["commit"], *commit);
    assert_eq!(told["run_id"], *run);
    workspace.expect_no_process();
}

#[test]
fn a_failing_check_puts_everything_back() {
    let workspace = workspace();
    let (before, index) = (workspace.tree(), workspace.git(&["ls-files", "-s"]));
    let done = workspace.run(&["run", "havoc", "--json"]).expect_code(5);
    let detail = done.value();
    assert_eq!(detail["not_restored"], serde_json::json!([]));
    assert_eq!(workspace.tree(), before);
    assert!(!workspace.root.join("new").exists());
    assert!(workspace.root.join("link").symlink_metadata().is_err());
    assert_eq!(workspace.git(&["ls-files", "-s"]), index);
    assert_eq!(workspace.git(&["status", "--porcelain"]), "");
    assert!(workspace.committed_runs().is_empty());
    let run = summary(&detail)["run"].as_str().unwrap();
    let kept = workspace.run(&["diff", run]).expect_code(0).stdout;
    assert!(kept.contains("new/deep/file"), "{kept}");
}

#[test]
fn a_hook_that_blocks_puts_everything_back_and_one_that_fails_warns() {
    let workspace = workspace();
    let before = workspace.tree();
    let done = workspace.run(&["run", "blocked", "--json"]).expect_code(1);
    let detail = done.value();
    let failure = &summary(&detail)["outcome"]["failure"];
    assert_eq!(failure["code"], "hook_blocked", "{failure}");
    assert_eq!(workspace.tree(), before);
    let told = std::fs::read_to_string(workspace.home.join("told")).unwrap();
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["hook_event_name"], "PostToolUse");
    assert_eq!(told["mutating"], true);
    // Who asked, as the kernel knows them; no client's conversation did.
    let owner = std::fs::metadata(&workspace.home).unwrap().uid();
    assert_eq!(told["user_id"], owner);
    assert_eq!(told["chat_id"], Value::Null);

    let detail = workspace
        .run(&["run", "warned", "--json"])
        .expect_code(0)
        .value();
    assert_ne!(detail["warnings"], serde_json::json!([]), "{detail}");
    assert_eq!(workspace.committed_runs().len(), 1);
}

#[test]
fn a_hook_that_cannot_be_executed_blocks() {
    let workspace = Workspace::with_skills(
        "
  - {id: missing, description: d, mutating: true, run: 'echo x > x', hooks: {post_tools: ['no-such-program']}}
  - {id: plain, description: d, mutating: true, run: 'echo x > x', hooks: {post_tools: ['/etc/hostname']}}
  - {id: crashes, description: d, mutating: true, run: 'echo x > x', hooks: {post_tools: ['kill -9 $$']}}
",
    );
    for skill in ["missing", "plain", "crashes"] {
        let done = workspace
            .run(&["run", skill, "--json"])
            .expect_code(1)
            .value();
        let failure = &summary(&done)["outcome"]["failure"];
        assert_eq!(failure["code"], "hook_blocked", "{skill}: {failure}");
    }
    assert_eq!(workspace.committed_runs().len(), 0);
}

#[test]
fn what_a_person_has_staged_and_changed_stays_as_it_is() {
    let workspace = workspace();
    workspace.write("staged.txt", "staged\n");
    workspace.git(&["add", "staged.txt"]);
    workspace.write("staged.txt", "staged, then changed\n");
    workspace.write("gone.txt", "changed, not staged\n");
    workspace.write("untracked.txt", "mine\n");
    let look = || {
        (
            workspace.git(&["diff", "--cached"]),
            workspace.git(&["diff"]),
            workspace.git(&["status", "--porcelain"]),
        )
    };
    let before = look();
    workspace.run(&["run", "note"]).expect_code(0);
    assert_eq!(look(), before);
    workspace.run(&["run", "blocked"]).expect_code(1);
    assert_eq!(look(), before);
    let named = workspace.git(&["show", "--name-only", "--format=", "HEAD"]);
    assert!(named.trim().starts_with("workspace/notes/"), "{named}");
}

#[test]
fn a_path_that_a_person_has_changed_is_waited_for_and_never_overwritten() {
    let workspace = workspace();
    workspace.write("workerctl.yaml", "land_wait: 1s\n");
    workspace.write("tracked.txt", "a person's work\n");
    let done = workspace
        .run(&["run", "touch-tracked", "--json"])
        .expect_code(1);
    let detail = done.value();
    let failure = &summary(&detail)["outcome"]["failure"];
    assert_eq!(
        (&failure["step"], &failure["code"]),
        (&"land".into(), &"checkout_dirty".into()),
        "{failure}"
    );
    let said = failure["message"].as_str().unwrap();
    assert!(
        said.contains("`tracked.txt`") && said.contains("the commit is kept"),
        "{said}"
    );
    assert_eq!(workspace.read("tracked.txt").unwrap(), "a person's work\n");
    assert!(workspace.committed_runs().is_empty());
    let run = summary(&detail)["run"].as_str().unwrap();
    let patch = workspace.run(&["diff", run]).expect_code(0).stdout;
    assert!(patch.contains("tracked.txt"), "{patch}");
}

#[test]
fn nothing_changed_is_no_commit() {
    let workspace = workspace();
    let head = workspace.git(&["rev-parse", "HEAD"]);
    let detail = workspace
        .run(&["run", "idle", "--json"])
        .expect_code(0)
        .value();
    assert!(summary(&detail)["commit"].is_null());
    assert_eq!(
        detail["results"]["commit"]["is"], "skipped",
        "{}",
        detail["results"]
    );
    assert_eq!(workspace.git(&["rev-parse", "HEAD"]), head);
}

#[test]
fn commits_that_a_skill_makes_itself_are_found_everywhere() {
    let workspace = workspace();
    let before = workspace.git(&["rev-parse", "HEAD"]);
    let detail = workspace.json(&["run", "commits"]);
    let made = workspace.git(&["rev-list", "--reverse", &format!("{}..HEAD", before.trim())]);
    let made: Vec<&str> = made.lines().collect();
    assert_eq!(made.len(), 2);
    let expected = serde_json::json!({"count": 2, "newest": made});
    let run = summary(&detail)["run"].as_str().unwrap();
    assert_eq!(summary(&detail)["commit"], made[1]);
    assert_eq!(summary(&detail)["commits_made"], expected, "{detail}");
    assert_eq!(detail["outputs"][0]["commits"], expected["newest"]);
    assert_eq!(
        workspace.json(&["runs"])["runs"][0]["commits_made"],
        expected
    );

    let thread = std::fs::read_to_string(detail["thread_path"].as_str().unwrap()).unwrap();
    let thread: Value = serde_json::from_str(&thread).unwrap();
    assert_eq!(thread["git"]["commits_made"], expected["newest"]);
    assert_eq!(thread["git"]["current_commit"], made[1]);
    assert_eq!(thread["run"]["commits_made"], expected);
    assert_eq!(thread["run"]["outputs"][0]["commits"], expected["newest"]);

    let shown = workspace.run(&["show", run]).stdout;
    for commit in &made {
        let line = format!("{commit}  by the skill itself");
        assert!(shown.contains(&line), "{shown}");
    }
    assert!(workspace.run(&["runs"]).stdout.contains(&made[1][..7]));
    let patch = workspace.run(&["diff", run]).expect_code(0).stdout;
    assert!(patch.contains("+two"), "{patch}");
    // Once nothing else is kept of the run, its commits still are.
    let refs = workspace.git(&["for-each-ref", "--format=%(refname)", "refs/workerctl"]);
    for kept in refs.lines() {
        workspace.git(&["update-ref", "-d", kept]);
    }
    assert_eq!(workspace.run(&["diff", run]).expect_code(0).stdout, patch);
}

#[test]
fn commits_of_the_skill_stand_beside_the_commit_of_the_run() {
    let workspace = workspace();
    let detail = workspace.json(&["run", "commits", "-i", "end=left"]);
    let own = summary(&detail)["commit"].as_str().unwrap();
    assert_eq!(summary(&detail)["commits_made"]["count"], 2);
    let made = detail["outputs"][0]["commits"].as_array().unwrap();
    assert_eq!((made.len(), &made[2]), (3, &Value::from(own)));
    let run = summary(&detail)["run"].as_str().unwrap();
    let patch = workspace.run(&["diff", run]).expect_code(0).stdout;
    assert!(patch.contains("+two") && patch.contains("+left"), "{patch}");
}

#[test]
fn commits_of_a_skill_that_fails_stay_in_its_tree_and_are_kept() {
    let workspace = workspace();
    let before = workspace.git(&["rev-parse", "HEAD"]);
    let done = workspace.run(&["run", "commits", "-i", "end=fail", "--json"]);
    let detail = done.expect_code(1).value();
    assert_eq!(workspace.git(&["rev-parse", "HEAD"]), before);
    let run = summary(&detail)["run"].as_str().unwrap();
    let kept = format!("refs/workerctl/runs/{run}/commit");
    let log = workspace.git(&["log", "--format=%s", &kept, "--not", "HEAD"]);
    assert_eq!(log.lines().count(), 2, "{log}");
    let thread = std::fs::read_to_string(detail["thread_path"].as_str().unwrap()).unwrap();
    let thread: Value = serde_json::from_str(&thread).unwrap();
    assert_eq!(thread["git"]["commits_made"], serde_json::json!([]));
    assert_eq!(thread["git"]["current_commit"], before.trim());
}

/// A skill can write any object into its repository; others would refuse to fetch such a commit.
#[test]
fn a_commit_that_no_checkout_could_have_is_refused_by_its_path() {
    let text = r#"b=$(echo x | git hash-object -w --stdin); t=$(printf '100644 blob %s\t.GIT\n' "$b" | git mktree); c=$(git commit-tree "$t" -p HEAD -m evil); git update-ref refs/heads/main "$c"; git reset -q --soft HEAD"#;
    let text = serde_json::to_string(text).unwrap();
    let workspace = Workspace::with_skills(&format!(
        "  - {{id: evil, description: d, mutating: true, run: {text}}}\n"
    ));
    let before = workspace.git(&["rev-parse", "HEAD"]);
    let detail = workspace.run(&["run", "evil", "--json"]).value();
    let failure = &detail["summary"]["outcome"]["failure"];
    assert_eq!(failure["code"], "bad_path", "{detail}");
    assert!(failure["message"].as_str().unwrap().contains("`.GIT`"));
    assert_eq!(workspace.git(&["rev-parse", "HEAD"]), before);
    workspace.git(&["fsck", "--strict"]);
}

/// Shell texts that print the id of a tree that `git fsck` calls an error.
const MALFORMED: [(&str, &str); 11] = [
    (
        "a short name of `.git`",
        r"printf '100644 git~1\0%b' $(bytes $b) | tree",
    ),
    (
        "a slash in a name",
        r"printf '100644 a/b\0%b' $(bytes $b) | tree",
    ),
    (
        "a directory as a file",
        r"printf '100644 a\0%b' $(bytes $(git rev-parse 'HEAD^{tree}')) | tree",
    ),
    (
        "a missing object",
        r"printf '100644 a\0%b' $(bytes 1111111111111111111111111111111111111111) | tree",
    ),
    (
        "an empty id",
        r"printf '100644 a\0%b' $(bytes 0000000000000000000000000000000000000000) | tree",
    ),
    (
        "an entry twice",
        r"printf '100644 a\0%b100644 a\0%b' $(bytes $b) $(bytes $b) | tree",
    ),
    (
        "entries out of order",
        r"printf '100644 b\0%b100644 a\0%b' $(bytes $b) $(bytes $b) | tree",
    ),
    (
        "a link as modules",
        r"printf '120000 .gitmodules\0%b' $(bytes $b) | tree",
    ),
    (
        "a directory as modules",
        r"printf '40000 .gitmodules\0%b' $(bytes $(git rev-parse 'HEAD^{tree}')) | tree",
    ),
    (
        "a directory as attributes",
        r"printf '40000 .GitAttributes\0%b' $(bytes $(git rev-parse 'HEAD^{tree}')) | tree",
    ),
    (
        "a submodule as modules",
        r"printf '160000 .gitmodules\0%b' $(bytes $(git rev-parse HEAD)) | tree",
    ),
];

/// Even if the files of the run are sound again: everybody who fetches the branch gets all of its commits.
#[test]
fn a_history_that_others_refuse_to_fetch_does_not_land() {
    for (case, tree) in MALFORMED {
        let text = format!(
            r#"set -e
bytes() {{ echo "$1" | sed 's/../\\x&/g'; }}
tree() {{ git hash-object -t tree -w --literally --stdin; }}
b=$(echo x | git hash-object -w --stdin)
t=$({tree})
c=$(git commit-tree "$t" -p HEAD -m evil)
d=$(git commit-tree HEAD^{{tree}} -p "$c" -m sound)
git update-ref refs/heads/main "$d"
echo more >> tracked.txt
"#
        );
        let text = serde_json::to_string(&text).unwrap();
        let workspace = Workspace::with_skills(&format!(
            "  - {{id: evil, description: d, mutating: true, shell: bash, run: {text}}}\n"
        ));
        let before = workspace.git(&["rev-parse", "HEAD"]);
        let detail = workspace.run(&["run", "evil", "--json"]).value();
        let failure = &detail["summary"]["outcome"]["failure"];
        assert_eq!(failure["code"], "bad_object", "{case}: {detail:#}");
        assert_eq!(workspace.git(&["rev-parse", "HEAD"]), before, "{case}");
        workspace.git(&["fsck", "--strict"]);
        let left = std::fs::read_dir(workspace.root.join(".git/workerctl")).unwrap();
        let names = left.map(|entry| entry.unwrap().file_name());
        let mut names = names.map(|name| name.to_string_lossy().into_owned());
        assert_eq!(
            names.find(|name| name.starts_with("import-")),
            None,
            "{case}"
        );
    }
}

/// Triggers and `land` believe the trailer: a commit that names another run would not count as new, or as that run's.
#[test]
fn a_commit_that_names_another_run_does_not_land() {
    let text = "git commit -q --allow-empty -m x -m \"Run-Id: $(git log -1 --format='%(trailers:key=Run-Id,valueonly)' | head -1)\"";
    let skills = format!(
        "  - {{id: first, description: d, mutating: true, run: 'echo 1 >> tracked.txt'}}\n  - {{id: merges, description: d, mutating: true, run: git merge -q --no-ff -m m topic}}\n  - {{id: sly, description: d, mutating: true, run: {}}}\n",
        serde_json::to_string(text).unwrap()
    );
    let workspace = Workspace::with_skills(&skills);
    workspace.git(&["branch", "topic"]);
    workspace.run(&["run", "first"]).expect_code(0);
    let tip = workspace.git(&["rev-parse", "HEAD"]);
    let detail = workspace.run(&["run", "sly", "--json"]).value();
    let failure = &detail["summary"]["outcome"]["failure"];
    assert_eq!(failure["code"], "foreign_run_id", "{detail:#}");
    assert_eq!(workspace.git(&["rev-parse", "HEAD"]), tip);
    // Commits of other runs that the repository has already may be merged.
    workspace.git(&["branch", "-f", "topic", "main"]);
    workspace.git(&["reset", "-q", "--hard", "HEAD~1"]);
    workspace.run(&["run", "merges"]).expect_code(0);
    assert_eq!(workspace.git(&["merge-base", "HEAD", "topic"]), tip);
}
