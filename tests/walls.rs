//! Walls around the commands of real runs: what is theirs, what is granted, and what the kernel refuses.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::panic,
    reason = "what prepares a test fails by panicking, and says when it skips"
)]

#[expect(dead_code, reason = "shared with other tests, which use more of it")]
mod workspace;

use serde_json::Value;
use workspace::daemon::Daemon;
use workspace::{Workspace, skip};

/// Whether the kernel has what it takes; says so where it has not.
fn walls_or_skip() -> bool {
    let stand = workerctl::process::walls_stand();
    if !stand {
        skip("the kernel has no Landlock that is a wall");
    }
    stand
}

/// A workspace with a home that holds a key, and skills whose `run` is one of these texts.
fn bed(skills: &str) -> Workspace {
    let workspace = Workspace::with_skills(skills);
    for (path, text) in [(".ssh/id", "key\n"), (".cache/kept", "as it was\n")] {
        let path = workspace.home.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    workspace
}

/// Runs a skill and answers the run in full.
fn run(workspace: &Workspace, skill: &str) -> Value {
    workspace.run(&["run", skill, "--json"]).value()
}

fn outcome(detail: &Value) -> &str {
    detail["summary"]["outcome"]["kind"].as_str().unwrap()
}

/// What a command of either kind tries; `S` is the state directory, `C` the checkout.
const ATTEMPTS: [&str; 30] = [
    "echo x > $C/new",
    "echo x >> $C/tracked.txt",
    "rm $C/tracked.txt",
    "mv $C/tracked.txt $TMPDIR/",
    "ln $C/tracked.txt $TMPDIR/hard && echo x >> $TMPDIR/hard",
    "ln -s $C/tracked.txt $TMPDIR/soft && echo x >> $TMPDIR/soft",
    "cd $C && echo x >> tracked.txt",
    "git -C $C config user.name Evil",
    "git -C $C commit -q --allow-empty -m evil",
    "git -C $C stash",
    "git -C $C update-ref refs/heads/main HEAD",
    "echo x > $C/.git/hooks/post-commit",
    "echo /tmp > $C/.git/objects/info/alternates",
    "echo x >> $C/workers/w/worker.yaml",
    "echo x > $C/workerctl.yaml",
    "echo x > $C/.workerctl/lock",
    "echo x >> $(ls -d $C/workspace/threads/*.jsonl | head -1)",
    "echo x > $S/evil",
    "ls $S",
    "cat $S/store/id",
    "cat $S/lock",
    "rm -r $S/scratch",
    "mv $TMPDIR $S/elsewhere",
    "cat $HOME/.ssh/id",
    "ls $HOME/.ssh",
    "echo x > $HOME/.cache/kept",
    "echo x > $HOME/.profile",
    "kill -0 $PPID",
    "readlink /proc/$PPID/cwd",
    "cat /proc/$PPID/environ",
];

#[test]
fn nothing_that_either_kind_of_skill_tries_succeeds() {
    if !walls_or_skip() {
        return;
    }
    let skill = |kind: &str, keys: &str, nth: usize| {
        let text = format!("C=$HOME/../repository S=$HOME/../state; {}", ATTEMPTS[nth]);
        let text = serde_json::to_string(&text).unwrap();
        format!("  - {{id: {kind}-{nth}, description: d, {keys}sandbox: required, run: {text}}}\n")
    };
    let numbers = || 0..ATTEMPTS.len();
    let mut skills: Vec<String> = numbers().map(|nth| skill("read", "", nth)).collect();
    skills.extend(numbers().map(|nth| skill("write", "mutating: true, ", nth)));
    let workspace = bed(&skills.concat());
    let daemon = Daemon::start(&workspace);
    run(&workspace, "read-0");
    let before = (workspace.tree(), workspace.git(&["log", "--format=%H %an"]));
    let mut succeeded = Vec::new();
    for kind in ["read", "write"] {
        for (nth, attempt) in ATTEMPTS.iter().enumerate() {
            let detail = run(&workspace, &format!("{kind}-{nth}"));
            if outcome(&detail) != "failed" {
                succeeded.push(format!(
                    "{kind}: {attempt}: {}",
                    detail["summary"]["outcome"]
                ));
            }
            let level = &detail["attempts"][0]["execution"]["sandbox_level"];
            assert_eq!(level, 1, "{attempt}: {detail}");
        }
    }
    assert!(succeeded.is_empty(), "{succeeded:#?}");
    let after = (workspace.tree(), workspace.git(&["log", "--format=%H %an"]));
    assert_eq!(before, after);
    let config = std::fs::read_to_string(workspace.home.join(".gitconfig")).unwrap();
    assert!(!config.contains("Evil"));
    daemon.stop();
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
    verification: [{command: 'test -s own.txt && touch "$TMPDIR/checked"'}]
    hooks: {post_tools: ['cat > "$TMPDIR/told"']}
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
fn what_leads_to_the_engines_own_is_refused_before_anything_starts() {
    let workspace = bed(r"
  - {id: above, description: d, sandbox: {write: [/]}, run: 'true'}
  - {id: state, description: d, sandbox: {write: [~/../state]}, run: 'true'}
  - {id: reads, description: d, sandbox: {reads: [~/link]}, run: 'true'}
  - {id: linked, description: d, sandbox: {write: [~/git]}, run: 'true'}
");
    std::os::unix::fs::symlink(workspace.state(), workspace.home.join("link")).unwrap();
    std::os::unix::fs::symlink(workspace.root.join(".git"), workspace.home.join("git")).unwrap();
    let daemon = Daemon::start(&workspace);
    for skill in ["above", "reads", "linked"] {
        let refused = workspace.run(&["run", skill, "--json"]).expect_code(4);
        assert_eq!(refused.refusal(), "sandbox_grant", "{skill}");
        assert!(refused.stderr.contains("never granted"), "{refused:?}");
    }
    workspace.run(&["check"]).expect_code(4);
    daemon.stop();
}

/// Without walls the same attempts do what they say: so it is the walls that refuse them.
#[test]
fn without_walls_the_list_says_what_succeeds() {
    let mut refused = Vec::new();
    for attempt in ATTEMPTS {
        let text = format!("C=$HOME/../repository S=$HOME/../state; {attempt}");
        let text = serde_json::to_string(&text).unwrap();
        let workspace = bed(&format!("  - {{id: s, description: d, run: {text}}}\n"));
        if outcome(&run(&workspace, "s")) != "succeeded" {
            refused.push(attempt);
        }
    }
    let count = ATTEMPTS.len() - refused.len();
    println!(
        "{count} of {} succeed without walls; refused: {refused:#?}",
        ATTEMPTS.len()
    );
    assert_eq!(count, ATTEMPTS.len(), "{refused:#?}");
}
