//! Which branch a run lands on that no person started, what follows a landing, and what becomes of outputs that are
//! no part of a commit.

use serde_json::{Value, json};

use crate::workspace::Workspace;
use crate::workspace::daemon::Daemon;
use crate::workspace::gate::Gate;
use crate::workspace::ledger::row;

/// Fires `tick`, which says nothing of a branch, as often as `go` has run.
const FOLLOWED: &str = r#"
  - {id: go, description: d, run: "true"}
  - id: tick
    description: d
    mutating: true
    run: "echo $WORKERCTL_RUN >> ticks.txt"
    schedule: {after: w/go}
"#;

/// Runs `go`, and answers how the run ended that followed it.
fn fired(workspace: &Workspace, count: usize) -> Value {
    workspace.run(&["run", "w/go"]).expect_code(0);
    let row = row(workspace, "w/tick", count);
    let run = row["run"].as_str().unwrap_or_else(|| panic!("{row}"));
    workspace.wait_for_event(run, "closed");
    workspace.json(&["show", run])["summary"].clone()
}

fn tip(workspace: &Workspace, branch: &str) -> String {
    let name = format!("refs/heads/{branch}");
    workspace.git(&["rev-parse", &name]).trim().to_owned()
}

#[test]
fn what_is_scheduled_stays_on_the_branch_on_which_it_began() {
    let workspace = Workspace::with_skills(FOLLOWED);
    let daemon = Daemon::start(&workspace);
    let first = fired(&workspace, 1);
    assert_eq!(first["commit"], *tip(&workspace, "main"), "{first}");
    // A crash may leave the note of it empty: it is made again.
    let noted = std::fs::read_dir(workspace.state().join("branches"));
    let noted = noted.unwrap().next().unwrap().unwrap().path();
    std::fs::write(&noted, "").unwrap();
    let again = fired(&workspace, 2);
    assert_eq!(again["commit"], *tip(&workspace, "main"), "{again}");

    workspace.git(&["switch", "-q", "-c", "feature"]);
    let feature = tip(&workspace, "feature");
    let second = fired(&workspace, 3);
    assert_eq!(second["commit"], *tip(&workspace, "main"), "{second}");
    assert_eq!(tip(&workspace, "feature"), feature);
    assert_eq!(workspace.git(&["status", "--porcelain"]), "");
    assert_eq!(workspace.read("ticks.txt").unwrap().lines().count(), 2);
    // A person's own run is for the branch that is checked out.
    let own = workspace.json(&["run", "w/tick"]);
    assert_eq!(own["summary"]["commit"], *tip(&workspace, "feature"));

    daemon.stop();
    let daemon = Daemon::start(&workspace);
    workspace.git(&["branch", "-D", "main"]);
    let third = fired(&workspace, 4);
    let failure = &third["outcome"]["failure"];
    assert_eq!(failure["code"], "branch_missing", "{third}");
    let message = failure["message"].as_str().unwrap();
    for told in ["no branch `main`", "`git branch main`", "`branch: NAME`"] {
        assert!(message.contains(told), "{message}");
    }
    workspace.write("workerctl.yaml", "branch: feature\n");
    workspace.commit_all("name it");
    workspace.json(&["reload"]);
    let fourth = fired(&workspace, 5);
    assert_eq!(fourth["commit"], *tip(&workspace, "feature"), "{fourth}");
    daemon.stop();
}

#[test]
fn what_is_scheduled_lands_on_the_branch_that_the_remote_calls_its_own() {
    let workspace = Workspace::with_skills(FOLLOWED);
    workspace.git(&["branch", "release"]);
    workspace.git(&["update-ref", "refs/remotes/origin/release", "HEAD"]);
    let head = ["refs/remotes/origin/HEAD", "refs/remotes/origin/release"];
    workspace.git(&["symbolic-ref", head[0], head[1]]);
    let main = tip(&workspace, "main");
    let daemon = Daemon::start(&workspace);
    // It is so on a detached `HEAD` too, and needs no note of what was seen.
    for detached in [false, true] {
        if detached {
            workspace.git(&["switch", "-q", "--detach"]);
        }
        let fired = fired(&workspace, 1 + usize::from(detached));
        assert_eq!(fired["commit"], *tip(&workspace, "release"), "{fired}");
        assert_eq!(tip(&workspace, "main"), main);
    }
    assert!(!workspace.state().join("branches").exists());
    daemon.stop();
}

#[test]
fn a_run_that_follows_another_begins_with_its_commit_and_reads_its_outputs() {
    let workspace = Workspace::with_skills(
        r#"
  - id: report
    description: d
    mutating: true
    interface: {outputs: [{name: report, type: markdown, destination: out/report.md}]}
    run: "echo '# new' > {report}; echo beside > beside.txt"
  - id: mail
    description: d
    mutating: true
    interface: {inputs: [{name: report, type: path, required: true}]}
    run: "test {report} = $PWD/out/report.md && cat {report} beside.txt > said.txt && git log -1 --format=%H >> said.txt"
    schedule: {after: w/report}
"#,
    );
    let daemon = Daemon::start(&workspace);
    let first = workspace.submit(&["w/report"]);
    let followed = row(&workspace, "w/mail", 1);
    let mail = followed["run"].as_str().unwrap();
    workspace.wait_for_event(mail, "closed");
    let commit = workspace.json(&["show", &first])["summary"]["commit"].clone();
    let expected = format!("# new\nbeside\n{}\n", commit.as_str().unwrap());
    assert_eq!(workspace.read("said.txt").unwrap(), expected);
    assert_eq!(workspace.committed_runs(), [mail, &first]);
    daemon.stop();
}

#[test]
fn commands_are_told_of_the_checkout_and_what_follows_the_landing_of_the_commit() {
    let workspace = Workspace::with_skills(
        r#"
  - id: tells
    description: d
    mutating: true
    branch: {name: made, create: true}
    run: 'echo "$WORKERCTL_CHECKOUT" > told.txt; test "$WORKERCTL_WORKSPACE" = "$PWD"; test "$PWD" != "$WORKERCTL_CHECKOUT"; test -z "$WORKERCTL_COMMIT$WORKERCTL_BRANCH"'
    verification: [{command: 'test "$WORKERCTL_WORKSPACE" = "$PWD" && test "$PWD" != "$WORKERCTL_CHECKOUT"'}]
    hooks: {post_commit: ['echo "$PWD $WORKERCTL_CHECKOUT $WORKERCTL_COMMIT $WORKERCTL_BRANCH" > "$HOME/told"']}
"#,
    );
    let before = tip(&workspace, "main");
    workspace.json(&["run", "tells"]);
    let (root, made) = (workspace.root.display(), tip(&workspace, "made"));
    let told = workspace.git(&["show", "made:told.txt"]);
    assert_eq!(told, format!("{root}\n"));
    let told = std::fs::read_to_string(workspace.home.join("told")).unwrap();
    assert_eq!(told, format!("{root} {root} {made} made\n"));
    assert_eq!(tip(&workspace, "main"), before);
}

const OUTPUTS: &str = r#"
  - id: ignored
    description: d
    mutating: true
    interface: {outputs: [{name: r, type: markdown, destination: build/deep/r.md}, {name: s, type: markdown, destination: s.md}]}
    run: "echo '# r' > {r}; echo '# s' > {s}; echo x > one.tmp; echo x > two.tmp"
  - id: alone
    description: d
    mutating: true
    interface: {outputs: [{name: r, type: markdown, destination: build/deep/r.md}]}
    run: "echo '# r' > {r}; echo x > build/other"
  - id: blocked
    description: d
    mutating: true
    interface: {outputs: [{name: r, type: markdown, destination: build/deep/r.md}]}
    run: "echo '# r' > {r}; false"
  - id: gated
    description: d
    mutating: true
    interface: {outputs: [{name: r, type: markdown, destination: build/deep/r.md}, {name: s, type: markdown, destination: s.md}]}
    run: 'GATE; echo new > {r}; echo new > {s}'
  - id: inner
    description: d
    mutating: true
    interface: {outputs: [{name: r, type: markdown, destination: inner/r.md}]}
    run: "echo '# r' > {r}"
  - id: outer
    description: d
    mutating: true
    cwd: inner
    interface: {outputs: [{name: r, type: markdown, destination: r.md}]}
    run: "echo '# r' > {r}"
  - {id: lends, description: d, mutating: true, cwd: inner, local: [.env], run: "echo x > x.txt"}
  - {id: keeps, description: d, mutating: true, cwd: inner, keep: [build/], run: "echo x > x.txt"}
"#;

fn with_outputs() -> Workspace {
    let workspace = Workspace::with_skills(&OUTPUTS.replace("GATE", &Gate::text("g")));
    let ignored = workspace.read(".gitignore").unwrap() + "/build/\n*.tmp\n";
    workspace.write(".gitignore", &ignored);
    workspace.commit_all("ignore");
    workspace
}

#[test]
fn an_output_that_git_ignores_comes_into_the_checkout_and_the_rest_is_counted() {
    let workspace = with_outputs();
    workspace.write("build/deep/r.md", "old\n");
    workspace.write("build/mine", "a person's\n");
    let old = std::fs::File::open(workspace.root.join("build/deep/r.md")).unwrap();
    workspace.run(&["run", "blocked"]).expect_code(1);
    assert_eq!(workspace.read("build/deep/r.md").unwrap(), "old\n");

    let detail = workspace.json(&["run", "ignored"]);
    assert_eq!(workspace.read("build/deep/r.md").unwrap(), "# r\n");
    assert_eq!(workspace.read("build/mine").unwrap(), "a person's\n");
    // By rename: who reads the former one reads it to its end.
    assert_eq!(std::io::read_to_string(old).unwrap(), "old\n");
    let commit = ["show", "--name-only", "--format=", "HEAD"];
    assert_eq!(workspace.git(&commit), "s.md\n");
    let note = "2 paths that git ignores are not part of the result: `one.tmp`, `two.tmp`; list them in `keep` to keep them for the next run";
    assert_eq!(detail["warnings"], json!([note]));
    assert!(workspace.read("one.tmp").is_none());

    let detail = workspace.json(&["run", "alone"]);
    assert_eq!(detail["summary"]["commit"], Value::Null);
    let note = "1 path that git ignores is not part of the result: `build/`; list it in `keep` to keep it for the next run";
    assert_eq!(detail["warnings"], json!([note]));
}

#[test]
fn an_ignored_output_whose_place_is_taken_is_named_and_the_commit_stays() {
    let workspace = with_outputs();
    workspace.write("build/deep", "a person's\n");
    let detail = workspace.json(&["run", "ignored"]);
    assert_eq!(detail["summary"]["commit"], *tip(&workspace, "main"));
    let warnings = detail["warnings"].to_string();
    assert!(warnings.contains("build/deep/r.md"), "{warnings}");
    assert_eq!(workspace.read("build/deep").unwrap(), "a person's\n");
}

#[test]
fn an_ignored_output_is_not_kept_with_a_commit_that_lands_later_and_the_reply_says_so() {
    let workspace = with_outputs();
    workspace.write("workerctl.yaml", "land_wait: 1s\n");
    workspace.commit_all("configuration");
    workspace.write("s.md", "a person's\n");
    let detail = workspace.run(&["run", "ignored", "--json"]).expect_code(1);
    let run = detail.value()["summary"]["run"].clone();
    assert!(workspace.read("build/deep/r.md").is_none());
    std::fs::remove_file(workspace.root.join("s.md")).unwrap();
    let landed = workspace.json(&["land", run.as_str().unwrap()]);
    let note = "`build/deep/r.md` is ignored by git and was not kept";
    assert_eq!(landed["notes"], json!([note]));
    assert_eq!(workspace.read("s.md").unwrap(), "# s\n");
    assert!(workspace.read("build/deep/r.md").is_none());
}

#[test]
fn an_ignored_output_that_is_all_there_is_to_give_fails_the_run_where_it_cannot_be_put() {
    let workspace = with_outputs();
    workspace.write("build/deep", "a person's\n");
    let alone = workspace.run(&["run", "alone", "--json"]).expect_code(1);
    let mut gate = Gate::new(&workspace, "g");
    let daemon = Daemon::start(&workspace);
    let run = workspace.submit(&["w/gated"]);
    gate.reached();
    // The branch gets the same content meanwhile, so that nothing of the run lands.
    workspace.write("s.md", "new\n");
    workspace.commit_all("the same");
    gate.pass();
    let (code, landed_in) = workspace.wait(&run);
    assert_eq!(code, 1);
    for detail in [alone.value(), landed_in] {
        let failure = &detail["summary"]["outcome"]["failure"];
        assert_eq!(failure["code"], "output_not_published", "{detail}");
        let message = failure["message"].as_str().unwrap();
        assert!(message.contains("build/deep/r.md"), "{message}");
    }
    assert_eq!(workspace.read("build/deep").unwrap(), "a person's\n");
    daemon.stop();
}

#[test]
fn paths_of_another_repository_are_refused_by_name_and_nothing_changes() {
    let workspace = with_outputs();
    workspace.write(".env", "x\n");
    workspace.git(&["init", "-q", "inner"]);
    workspace.git(&["-C", "inner", "commit", "-q", "--allow-empty", "-m", "x"]);
    let before = workspace.tree();
    for (skill, code, told) in [
        (
            "inner",
            "output_in_other_repository",
            "the output `inner/r.md` is in the repository",
        ),
        (
            "outer",
            "output_in_other_repository",
            "the output `r.md` is outside of the repository",
        ),
        (
            "lends",
            "path_in_other_repository",
            "`local: .env` is outside of the repository",
        ),
        (
            "keeps",
            "path_in_other_repository",
            "`keep: build` is outside of the repository",
        ),
    ] {
        let done = workspace.run(&["run", skill]).expect_code(4);
        assert!(done.stderr.contains(told), "{done:?}");
        assert!(done.stderr.contains("hint: "), "{done:?}");
        let refused = workspace.run(&["run", skill, "--json"]);
        assert_eq!(refused.expect_code(4).refusal(), code);
    }
    assert_eq!(workspace.tree(), before);
    // Where git ignores the other repository, the output is put there beside the landing.
    workspace.write(".git/info/exclude", "/inner/\n");
    workspace.json(&["run", "inner"]);
    assert_eq!(workspace.read("inner/r.md").unwrap(), "# r\n");
    assert_eq!(
        tip(&workspace, "main"),
        workspace.git(&["rev-parse", "HEAD"]).trim()
    );
}

#[test]
fn a_new_file_below_what_has_become_a_file_or_link_is_a_conflict() {
    let stop = Gate::text("g");
    let workspace = Workspace::with_skills(&format!(
        "  - {{id: below, description: d, mutating: true, run: '{stop}; mkdir -p docs; echo x > docs/q'}}\n  - {{id: above, description: d, mutating: true, run: '{stop}; echo x > fresh'}}\n"
    ));
    let rows = [
        ("below", "git rm -rq docs; echo x > docs"),
        ("below", "git rm -rq docs; ln -s tracked.txt docs"),
        ("above", "mkdir fresh; echo x > fresh/x"),
    ];
    let mut gate = Gate::new(&workspace, "g");
    for (skill, change) in rows {
        workspace.write("docs/a", "x\n");
        workspace.commit_all("a directory");
        let mut command = workspace.workerctl(&["run", skill, "--json"]);
        let run = workspace.start(&mut command);
        gate.reached();
        let mut shell = workspace.program("sh");
        workspace.start(shell.arg("-c").arg(change)).end();
        workspace.commit_all("something else");
        let moved = workspace.git(&["rev-parse", "HEAD"]);
        gate.pass();
        let detail = run.end().value();
        let summary = &detail["summary"];
        let code = &summary["outcome"]["failure"]["code"];
        assert_eq!(code, "conflict", "{change}: {detail}");
        assert!(summary["kept_commit"].is_string(), "{detail}");
        assert_eq!(workspace.git(&["rev-parse", "HEAD"]), moved);
        workspace.git(&["rm", "-rq", "--ignore-unmatch", "docs", "fresh"]);
        workspace.commit_all("begin again");
    }
}
