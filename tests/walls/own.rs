//! What a run may touch, and what is recorded of it.

use serde_json::Value;

use crate::walls::{bed, containers_or_skip, furnish, outcome, run, walls_or_skip};
use crate::workspace::Workspace;
use crate::workspace::daemon::Daemon;

/// Each check with a command and each hook says which walls it had.
fn levels_are_recorded(detail: &Value, skill: &str) {
    let thread = std::fs::read_to_string(detail["thread_path"].as_str().unwrap()).unwrap();
    let thread: Value = serde_json::from_str(&thread).unwrap();
    let checks = [
        &detail["pre_checks"],
        &detail["attempts"][0]["checks"],
        &thread["run"]["attempts"][0]["checks"],
    ];
    let checks = checks.into_iter().filter_map(Value::as_array).flatten();
    let commands: Vec<&Value> = checks
        .filter(|check| check["command"].is_string())
        .collect();
    let hooks = thread["run"]["hooks"].as_array().unwrap();
    assert!(
        commands.iter().all(|check| check["sandbox_level"] == 1),
        "{commands:?}"
    );
    assert!(
        hooks.iter().all(|hook| hook["sandbox_level"] == 1),
        "{hooks:?}"
    );
    if skill == "change" {
        assert_eq!((commands.len(), hooks.len()), (3, 2), "{thread}");
    }
}

#[test]
fn what_is_its_own_is_written_and_published() {
    if !walls_or_skip() {
        return;
    }
    let workspace = bed(r##"
  - id: report
    description: writes its report where it is told, and temporary files
    sandbox: required
    interface: {outputs: [{name: r, type: markdown, destination: "reports/r.md"}]}
    run: 'date > "$TMPDIR/t" && git -C "$WORKERCTL_WORKSPACE" log --oneline > /dev/null && cat tracked.txt > /dev/null && echo "# line" >> {r}'
    verification: [{command: 'grep -q line {r}'}]
  - id: printed
    description: prints its report
    sandbox: required
    interface: {outputs: [{name: r, type: markdown, destination: "reports/p.md"}]}
    run: 'echo "# printed"'
  - id: broken
    description: fails its check
    sandbox: required
    interface: {outputs: [{name: r, type: markdown, destination: "reports/r.md"}]}
    run: 'echo "# broken" > {r}'
    verification: [{command: 'false'}]
  - id: change
    description: changes its tree, with git
    mutating: true
    sandbox: required
    run: 'echo x > own.txt && git add own.txt && git commit -q -m own && echo y >> tracked.txt && ls . > /dev/null'
    verification: {pre_execute: [{command: 'true'}], post_execute: [{command: 'test -s own.txt && touch "$TMPDIR/checked"'}]}
    hooks: {post_tools: ['cat > "$TMPDIR/told"'], post_commit: ['true']}
  - id: granted
    description: writes what it is granted
    sandbox: {level: required, write: [~/.cache, exports]}
    run: 'echo x > "$HOME/.cache/kept" && echo x > exports/e && echo own >> "$HOME/.cache/new"'
"##);
    workspace.write("exports/kept", "");
    workspace.commit_all("exports");
    let daemon = Daemon::start(&workspace);
    for skill in ["report", "printed", "change", "granted"] {
        let detail = run(&workspace, skill);
        assert_eq!(outcome(&detail), "succeeded", "{skill}: {detail}");
        levels_are_recorded(&detail, skill);
    }
    assert_eq!(workspace.read("reports/r.md").as_deref(), Some("# line\n"));
    assert_eq!(
        workspace.read("reports/p.md").as_deref(),
        Some("# printed\n")
    );
    assert_eq!(workspace.read("own.txt").as_deref(), Some("x\n"));
    assert_eq!(workspace.read("exports/e").as_deref(), Some("x\n"));
    // What is there is added to; what failed leaves it as it was.
    assert_eq!(outcome(&run(&workspace, "report")), "succeeded");
    assert_eq!(outcome(&run(&workspace, "broken")), "failed");
    assert_eq!(
        workspace.read("reports/r.md").as_deref(),
        Some("# line\n# line\n")
    );
    let left = std::fs::read_dir(workspace.state().join("outputs"))
        .unwrap()
        .count();
    assert_eq!(left, 0);
    let shown = workspace.run(&["show", "latest"]).stdout;
    assert!(shown.contains("sandbox level 1"), "{shown}");
    daemon.stop();
}

#[test]
fn git_finds_its_settings_where_little_else_may_be_read() {
    if !walls_or_skip() {
        return;
    }
    let workspace = bed(r#"
  - id: narrow
    description: commits, and reads little besides its tree
    mutating: true
    sandbox: {level: required, reads: [/usr, /bin, /lib, /lib64, /etc]}
    run: 'test "$(git config narrow.it)" = global && ! cat "$HOME/.cache/kept" && ! cat "$HOME/.config/git/credentials" && echo x > narrow.txt && git add narrow.txt && git commit -q -m narrow'
"#);
    for (path, text) in [
        (".config/git/config", "[narrow]\n    it = global\n"),
        (".config/git/credentials", "https://key@example\n"),
    ] {
        let path = workspace.home.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let detail = run(&workspace, "narrow");
    assert_eq!(outcome(&detail), "succeeded", "{detail}");
}

/// `/` is the default, which shows no temporary files of others; `/tmp` shows them, but they cannot be changed.
#[test]
fn a_container_shows_temporary_files_only_if_they_are_granted() {
    let outside = std::path::Path::new("/var/tmp");
    if !containers_or_skip() || !outside.is_dir() {
        return;
    }
    let probe = tempfile::NamedTempFile::new_in("/tmp").unwrap();
    let probe = probe.path().display();
    let workspace = Workspace::below(outside);
    furnish(
        &workspace,
        &format!(
            "  - {{id: all, description: d, sandbox: {{level: private, reads: [/]}}, run: 'test ! -e {probe} && echo x > /tmp/x'}}\n  \
               - {{id: named, description: d, sandbox: {{level: private, reads: [/, /tmp]}}, run: 'test -e {probe} && ! touch /tmp/x'}}\n"
        ),
    );
    for skill in ["all", "named"] {
        let detail = run(&workspace, skill);
        assert_eq!(outcome(&detail), "succeeded", "{skill}: {detail}");
    }
}
