//! `push`: a landed result reaches a remote, or the run says why not; the commit stays either way.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::workspace::Workspace;

const SKILLS: &str = r#"
  - {id: change, description: d, mutating: true, push: true, run: "echo changed >> tracked.txt"}
  - id: told
    description: d
    mutating: true
    push: origin
    run: "echo changed >> tracked.txt"
    hooks: {post_commit: ["echo told >> \"$HOME/told\"", "exit 4"]}
  - {id: agent, description: d, mutating: true, push: true, run: 'test -z "$SSH_AUTH_SOCK"; echo x > "out$SSH_AUTH_SOCK"', hooks: {post_commit: ['test -z "$SSH_AUTH_SOCK"']}}
  - {id: mirrored, description: d, mutating: true, push: mirror, run: "echo changed >> tracked.txt"}
"#;

/// A workspace whose `origin` is a bare repository beside it.
fn workspace() -> Workspace {
    let workspace = Workspace::with_skills(SKILLS);
    workspace.write("workerctl.yaml", "land_wait: 1s\n");
    workspace.commit_all("configuration");
    workspace.git(&["init", "-q", "--bare", "../remote.git"]);
    workspace.git(&["remote", "add", "origin", "../remote.git"]);
    workspace
}

fn remote(workspace: &Workspace, arguments: &[&str]) -> String {
    workspace.git(&[&["-C", "../remote.git"], arguments].concat())
}

/// The remote takes nothing from now on.
fn refuse(workspace: &Workspace) {
    let hook = workspace.root.join("../remote.git/hooks/pre-receive");
    std::fs::write(&hook, "#!/bin/sh\necho not today >&2\nexit 1\n").unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A run that succeeded: its commit, which the branch has, and what it warns of.
fn succeeded(workspace: &Workspace, skill: &str) -> (Value, Vec<String>) {
    let detail = workspace.json(&["run", skill]);
    let commit = workspace.git(&["rev-parse", "main"]);
    assert_eq!(detail["summary"]["commit"], *commit.trim(), "{detail}");
    assert_eq!(workspace.git(&["status", "--porcelain"]), "");
    let warnings = detail["warnings"].as_array().unwrap().iter();
    let warnings = warnings.map(|one| one.as_str().unwrap().to_owned());
    let warnings = warnings.collect();
    (detail, warnings)
}

#[test]
fn a_landed_result_is_pushed() {
    let workspace = workspace();
    let (detail, warnings) = succeeded(&workspace, "change");
    assert!(warnings.is_empty(), "{warnings:?}");
    let tip = remote(&workspace, &["rev-parse", "main"]);
    assert_eq!(detail["summary"]["commit"], *tip.trim());
}

#[test]
fn a_remote_that_refuses_is_named_and_the_commit_stays() {
    let workspace = workspace();
    succeeded(&workspace, "change");
    let before = remote(&workspace, &["rev-parse", "main"]);
    refuse(&workspace);
    let (detail, warnings) = succeeded(&workspace, "told");
    let [pushed, hook] = warnings.as_slice() else {
        panic!("{warnings:?}");
    };
    for told in [
        "`main` was not pushed to `origin`",
        "[remote rejected]",
        "(pre-receive hook declined)",
    ] {
        assert!(pushed.contains(told), "{pushed}");
    }
    // Hooks of the person count from one, and run though nothing was pushed.
    assert_eq!(hook, "post-commit hook 2: exit code 4");
    assert!(workspace.home.join("told").exists());
    assert_eq!(remote(&workspace, &["rev-parse", "main"]), before);

    let run = detail["summary"]["run"].as_str().unwrap();
    let shown = workspace.run(&["show", run]).stdout;
    let (_, why) = pushed.split_once(": ").unwrap();
    assert!(shown.contains(why), "{shown}");
    let logged = workspace.run(&["logs", run]).stdout;
    assert!(logged.contains("not today"), "{logged}");
    let thread = std::fs::read_to_string(detail["thread_path"].as_str().unwrap()).unwrap();
    let thread: Value = serde_json::from_str(&thread).unwrap();
    let told = thread.to_string();
    assert!(told.contains("pre-receive hook declined"), "{told}");
    workspace.run(&["threads", "verify", run]).expect_code(0);

    // What the message says helps, once the remote takes it.
    std::fs::remove_file(workspace.root.join("../remote.git/hooks/pre-receive")).unwrap();
    workspace.git(&["push", "-q", "origin", "main"]);
    assert_ne!(remote(&workspace, &["rev-parse", "main"]), before);
}

#[test]
fn a_remote_that_is_ahead_or_gone_is_named_and_the_commit_stays() {
    let workspace = workspace();
    succeeded(&workspace, "change");
    workspace.git(&["clone", "-q", "../remote.git", "../other"]);
    workspace.git(&["-C", "../other", "commit", "-q", "--allow-empty", "-m", "x"]);
    workspace.git(&["-C", "../other", "push", "-q"]);
    let ahead = remote(&workspace, &["rev-parse", "main"]);
    let (_, warnings) = succeeded(&workspace, "change");
    assert!(warnings[0].contains("! [rejected]"), "{warnings:?}");
    assert!(warnings[0].contains("fetch first"), "{warnings:?}");
    assert_eq!(remote(&workspace, &["rev-parse", "main"]), ahead);

    workspace.git(&["remote", "set-url", "origin", "../nowhere.git"]);
    let (_, warnings) = succeeded(&workspace, "change");
    let told = "`main` was not pushed to `origin`: exit code 128: fatal: ";
    assert!(warnings[0].starts_with(told), "{warnings:?}");
    assert!(warnings[0].contains("nowhere.git"), "{warnings:?}");
}

#[test]
fn a_name_that_is_no_remote_is_refused_before_anything_runs() {
    let workspace = workspace();
    let before = workspace.git(&["rev-parse", "HEAD"]);
    for command in ["run", "render"] {
        let done = workspace.run(&[command, "mirrored"]).expect_code(6);
        for told in [
            "there is no remote `mirror`, which `push` names",
            "`git remote add mirror URL`",
            "`origin`",
        ] {
            assert!(done.stderr.contains(told), "{done:?}");
        }
    }
    let refused = workspace.run(&["run", "mirrored", "--json"]);
    assert_eq!(refused.expect_code(6).refusal(), "remote_missing");
    assert_eq!(workspace.json(&["runs"])["runs"], json!([]));
    assert_eq!(workspace.git(&["rev-parse", "HEAD"]), before);
    workspace.git(&["remote", "add", "mirror", "../remote.git"]);
    succeeded(&workspace, "mirrored");
}

#[test]
fn a_kept_commit_that_lands_later_is_not_pushed_and_the_reply_says_so() {
    let workspace = workspace();
    workspace.git(&["push", "-q", "origin", "main"]);
    let before = remote(&workspace, &["rev-parse", "main"]);
    workspace.write("tracked.txt", "a person's\n");
    let detail = workspace.run(&["run", "told", "--json"]).expect_code(1);
    let detail = detail.value();
    let run = detail["summary"]["run"].as_str().unwrap();
    workspace.git(&["checkout", "-q", "tracked.txt"]);
    let landed = workspace.json(&["land", run]);
    assert_eq!(
        landed["notes"],
        json!([
            "`main` was not pushed to `origin`: `git push origin main`",
            "its 2 `post_commit` hooks were not run"
        ])
    );
    assert_eq!(remote(&workspace, &["rev-parse", "main"]), before);
    workspace.git(&["push", "-q", "origin", "main"]);
    assert_eq!(
        remote(&workspace, &["rev-parse", "main"]).trim(),
        landed["commit"]
    );
}

#[test]
fn a_push_reaches_its_remote_with_the_persons_agent_and_asks_nobody() {
    let workspace = workspace();
    let ssh = workspace.home.join("ssh");
    let text = r#"#!/bin/sh
echo "$SSH_AUTH_SOCK $SSH_ASKPASS $SSH_ASKPASS_REQUIRE" > "$HOME/asked"
for last; do :; done
exec sh -c "$last"
"#;
    std::fs::write(&ssh, text).unwrap();
    std::fs::set_permissions(&ssh, std::fs::Permissions::from_mode(0o755)).unwrap();
    let place = workspace.root.with_file_name("remote.git");
    let url = format!("ssh://host{}", place.display());
    workspace.git(&["remote", "set-url", "origin", &url]);
    workspace.git(&["config", "ssh.variant", "simple"]);
    let mut command = workspace.workerctl(&["run", "agent", "--json"]);
    command.env("GIT_SSH", &ssh).env("SSH_AUTH_SOCK", "/agent");
    let detail = workspace.start(&mut command).end().expect_code(0).value();
    assert_eq!(detail["warnings"], json!([]));
    let tip = remote(&workspace, &["rev-parse", "main"]);
    assert_eq!(detail["summary"]["commit"], *tip.trim());
    assert_eq!(workspace.git(&["show", "main:out"]), "x\n");
    let asked = std::fs::read_to_string(workspace.home.join("asked")).unwrap();
    assert_eq!(asked, "/agent false force\n");
}
