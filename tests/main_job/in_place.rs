//! Runs that work in the checkout itself: what they commit, what they put back, what they leave alone.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use rustix::fs::{FlockOperation, flock};
use serde_json::Value;

use crate::workspace::Workspace;
use crate::workspace::daemon::Daemon;
use crate::workspace::gate::Gate;

const SKILLS: &str = r#"
  - id: report
    description: d
    mutating: true
    parallel: true
    isolation: in_place
    writes: ["docs/**"]
    interface: {outputs: [{name: r, type: markdown, destination: "reports/r.md"}]}
    run: |
      echo '# report' > {r}
      mkdir -p docs/new && echo deep > docs/new/deep.md
      echo changed > docs/a.md; rm docs/gone.md; chmod +x docs/run.sh; printf 'a\r\nb\r\n' > docs/lines.txt
      echo ignored > docs/x.log; echo beside >> beside.txt
  - id: fails
    description: d
    mutating: true
    isolation: in_place
    writes: [docs]
    interface: {outputs: [{name: r, type: markdown, destination: "reports/r.md"}]}
    run: |
      echo '# report' > {r}
      echo changed > docs/a.md; rm docs/gone.md; chmod +x docs/run.sh; git add docs
      echo beside >> beside.txt
    verification: [{command: "false", description: "never"}]
  - id: waits
    description: d
    mutating: true
    parallel: true
    isolation: in_place
    idempotent: false
    writes: [docs/**]
    interface: {outputs: [{name: r, type: markdown, destination: "reports/r.md"}]}
    run: |
      echo '# report' > {r}; echo changed > docs/a.md; GATE
  - id: checked
    description: d
    mutating: true
    isolation: in_place
    interface: {outputs: [{name: r, type: markdown, destination: "reports/r.md"}]}
    run: "echo '# report' > {r}"
    verification: [{command: 'GATE; test ! -e "$HOME/fails"'}]
  - id: retried
    description: d
    mutating: true
    idempotent: true
    isolation: in_place
    retry: {max_attempts: 2, backoff: {initial: 1ms}}
    interface: {outputs: [{name: r, type: markdown, destination: "reports/r.md"}]}
    run: "test ! -e reports/r.md || exit 9; echo '# report' > {r}; test $WORKERCTL_ATTEMPT = 2"
  - id: backs-off
    description: d
    mutating: true
    idempotent: true
    isolation: in_place
    retry: {max_attempts: 2, backoff: {initial: 5s}}
    interface: {outputs: [{name: r, type: markdown, destination: "reports/r.md"}]}
    run: "echo '# report' > {r}; echo x >> $HOME/starts; exit 1"
  - id: once
    description: d
    mutating: true
    isolation: in_place
    idempotent: false
    interface: {outputs: [{name: r, type: markdown, destination: "reports/{run}.md"}]}
    writes: [docs/**]
    run: &run |
      rm docs/gone.md; echo "$WORKERCTL_RUN" >> docs/a.md; sleep 0.03
      mkdir -p docs/new; echo x > docs/gone.md; echo "$WORKERCTL_RUN" > docs/new/now.md; echo '# report' > {r}
    verification: [{command: "sleep 0.02; test -s {r}"}]
    hooks: {post_tools: ["sleep 0.02"]}
  - id: again
    description: d
    mutating: true
    isolation: in_place
    idempotent: true
    interface: {outputs: [{name: r, type: markdown, destination: "reports/{run}.md"}]}
    writes: [docs/**]
    run: *run
    verification: [{command: "sleep 0.02; test -s {r}"}]
  - id: broken
    description: d
    mutating: true
    isolation: in_place
    idempotent: false
    interface: {outputs: [{name: r, type: markdown, destination: "reports/{run}.md"}]}
    writes: [docs/**]
    run: *run
    verification: [{command: "false"}]
  - id: elsewhere
    description: d
    mutating: true
    isolation: in_place
    branch: other
    interface: {outputs: [{name: r, type: markdown, destination: "reports/r.md"}]}
    run: "echo '# report' > {r}"
  - id: commits
    description: d
    mutating: true
    isolation: in_place
    interface: {outputs: [{name: r, type: markdown, destination: "reports/r.md"}]}
    run: "git commit -q --allow-empty -m theirs; echo '# report' > {r}"
  - id: has-to-commit
    description: d
    mutating: true
    parallel: true
    isolation: in_place
    writes: [docs/**]
    interface:
      inputs: [{name: commits, type: boolean, default: false}]
      outputs: [{name: c, type: git_commit}]
    run: 'GATE; test {commits} = false || git commit -q --allow-empty -m "by the skill"'
"#;

pub(crate) fn workspace() -> Workspace {
    let workspace = Workspace::new();
    workspace.write(".gitattributes", "lines.txt text\n");
    for path in [
        "docs/a.md",
        "docs/gone.md",
        "docs/run.sh",
        "beside.txt",
        "other.txt",
    ] {
        workspace.write(path, "as committed\n");
    }
    workspace.furnish(&SKILLS.replace("GATE", &Gate::text("gate")));
    workspace.git(&["branch", "other"]);
    let ignored = workspace.read(".gitignore").unwrap() + "*.log\n";
    workspace.write(".gitignore", &ignored);
    workspace.commit_all("ignore");
    workspace
}

pub(crate) fn summary(done: &Value) -> &Value {
    &done["summary"]
}

/// What git has to tell of the checkout, the workspace's own folders aside.
pub(crate) fn status(workspace: &Workspace) -> String {
    workspace.git(&["status", "--porcelain", "-uall"])
}

fn failed(workspace: &Workspace, skill: &str, code: &str) -> (Value, String) {
    let done = workspace.run(&["run", skill, "--json"]);
    let detail = done.value();
    let failure = &summary(&detail)["outcome"]["failure"];
    let expected = match failure["step"].as_str() {
        Some("prepare") => 6,
        Some("verify") => 5,
        _ => 1,
    };
    assert_eq!(done.code, expected, "{failure}");
    assert_eq!(failure["code"], code, "{failure}");
    let said = failure["message"].as_str().unwrap().to_owned();
    (detail, said)
}

#[test]
fn success_commits_exactly_the_declared_paths_beside_a_persons_work() {
    let workspace = workspace();
    workspace.write("other.txt", "a person's work\n");
    workspace.git(&["add", "other.txt"]);
    workspace.write("draft.txt", "a person's draft\n");
    let before = workspace.git(&["rev-parse", "HEAD"]);
    let detail = workspace
        .run(&["run", "report", "--json"])
        .expect_code(0)
        .value();
    let commit = summary(&detail)["commit"].as_str().unwrap();
    assert_eq!(workspace.git(&["rev-parse", "HEAD"]).trim(), commit);
    assert_eq!(workspace.git(&["rev-parse", "HEAD~1"]), before);
    let named = workspace.git(&["show", "--name-status", "--format=", "HEAD"]);
    let own = "M\tdocs/a.md\nD\tdocs/gone.md\nA\tdocs/lines.txt\nA\tdocs/new/deep.md\nM\tdocs/run.sh\nA\treports/r.md";
    assert_eq!(named.trim(), own);
    assert_eq!(workspace.git(&["show", "HEAD:docs/lines.txt"]), "a\nb\n");
    let mode = workspace.git(&["ls-tree", "HEAD", "docs/run.sh"]);
    assert!(mode.starts_with("100755"), "{mode}");
    let left = " M beside.txt\nM  other.txt\n?? draft.txt\n";
    assert_eq!(status(&workspace), left);
    assert_eq!(workspace.read("other.txt").unwrap(), "a person's work\n");
    assert_eq!(workspace.read("docs/x.log").unwrap(), "ignored\n");
}

#[test]
fn what_is_not_clean_is_refused_by_name_and_nothing_changes() {
    let workspace = workspace();
    workspace.write("docs/a.md", "a person's work\n");
    workspace.write("reports/r.md", "a person's report\n");
    let before = workspace.tree();
    let (_, said) = failed(&workspace, "report", "not_clean");
    assert!(said.contains("`docs/a.md` is changed"), "{said}");
    assert!(said.contains("`reports/r.md` is there already"), "{said}");
    assert_eq!(workspace.tree(), before);
    assert!(workspace.committed_runs().is_empty());
    // The remedy that is named works.
    workspace.git(&[
        "stash",
        "push",
        "-q",
        "-u",
        "--",
        "docs/a.md",
        "reports/r.md",
    ]);
    workspace.run(&["run", "report"]).expect_code(0);
}

#[test]
fn a_run_that_fails_is_put_back_and_its_change_is_kept() {
    let workspace = workspace();
    let before = status(&workspace);
    let (detail, _) = failed(&workspace, "fails", "check_failed");
    assert_eq!(status(&workspace), format!("{before} M beside.txt\n"));
    assert_eq!(workspace.read("docs/a.md").unwrap(), "as committed\n");
    assert!(!workspace.root.join("reports").exists());
    let mode = fs::metadata(workspace.root.join("docs/run.sh"))
        .unwrap()
        .permissions();
    assert_eq!(mode.mode() & 0o100, 0);
    let run = summary(&detail)["run"].as_str().unwrap();
    let told = workspace.run(&["show", run]).expect_code(0).stdout;
    assert!(told.contains("not landed: `workerctl diff "), "{told}");
    let patch = workspace.run(&["diff", run]).expect_code(0).stdout;
    assert!(
        patch.contains("+# report") && patch.contains("docs/gone.md"),
        "{patch}"
    );
    assert!(!patch.contains("beside.txt"), "{patch}");
    assert!(workspace.committed_runs().is_empty());
}

#[test]
fn a_path_that_was_edited_meanwhile_stays_and_is_named() {
    let workspace = workspace();
    let mut gate = Gate::new(&workspace, "gate");
    fs::write(workspace.home.join("fails"), "").unwrap();
    let daemon = Daemon::start(&workspace);
    let run = workspace.submit(&["checked"]);
    gate.reached();
    workspace.write("reports/r.md", "a person's words\n");
    gate.pass();
    let (code, detail) = workspace.wait(&run);
    assert_eq!(code, 5, "{detail}");
    assert_eq!(
        workspace.read("reports/r.md").unwrap(),
        "a person's words\n"
    );
    assert!(
        detail.to_string().contains("1 paths could not be put back"),
        "{detail}"
    );
    let shown = workspace.run(&["show", &run]).expect_code(0).stdout;
    assert!(shown.contains("reports/r.md"), "{shown}");
    daemon.stop();
}

#[test]
fn an_attempt_begins_from_a_clean_state() {
    let workspace = workspace();
    let detail = workspace
        .run(&["run", "retried", "--json"])
        .expect_code(0)
        .value();
    assert_eq!(summary(&detail)["attempts"], 2, "{detail}");
    assert_eq!(status(&workspace), "");
    assert_eq!(workspace.committed_runs().len(), 1);
}

#[test]
fn a_run_lands_on_what_a_person_committed_meanwhile() {
    for skill in ["waits", "checked"] {
        let workspace = workspace();
        let mut gate = Gate::new(&workspace, "gate");
        let daemon = Daemon::start(&workspace);
        let run = workspace.submit(&[skill]);
        gate.reached();
        workspace.write("other.txt", "a person's work\n");
        workspace.git(&["commit", "-qm", "a person's", "other.txt"]);
        let theirs = workspace.git(&["rev-parse", "HEAD"]);
        gate.pass();
        if skill == "checked" {
            // What lands is checked on the commit that it lands on.
            gate.reached();
            gate.pass();
        }
        let (code, detail) = workspace.wait(&run);
        assert_eq!(code, 0, "{detail}");
        assert_eq!(workspace.git(&["rev-parse", "HEAD~1"]), theirs, "{skill}");
        let named = workspace.git(&["show", "--name-only", "--format=", "HEAD"]);
        assert!(
            !named.contains("other.txt") && named.contains("reports/r.md"),
            "{named}"
        );
        assert_eq!(status(&workspace), "");
        daemon.stop();
    }
}

#[test]
fn commits_that_the_skill_made_stay_where_they_are() {
    let workspace = workspace();
    let detail = workspace
        .run(&["run", "commits", "--json"])
        .expect_code(0)
        .value();
    let subjects = workspace.git(&["log", "-2", "--format=%s"]);
    assert_eq!(subjects.lines().nth(1), Some("theirs"));
    assert_eq!(summary(&detail)["commits_made"]["count"], 1, "{detail}");
}

#[test]
fn another_branch_than_the_one_checked_out_is_refused_by_name() {
    let workspace = workspace();
    let (_, said) = failed(&workspace, "elsewhere", "other_branch");
    assert!(
        said.contains("`in_place` works on the branch that is checked out"),
        "{said}"
    );
    assert!(
        said.contains("`main`") && said.contains("`other`"),
        "{said}"
    );
    workspace.git(&["switch", "-q", "other"]);
    workspace.run(&["run", "elsewhere"]).expect_code(0);
}

#[test]
fn a_link_in_the_way_is_refused_and_not_followed() {
    let workspace = workspace();
    let outside = workspace.home.join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, workspace.root.join("reports")).unwrap();
    let detail = workspace.run(&["run", "checked", "--json"]);
    assert_ne!(detail.code, 0, "{detail:?}");
    assert!(detail.stdout.contains("reports"), "{detail:?}");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn one_run_at_a_time_works_in_a_checkout() {
    let workspace = workspace();
    workspace.write("workerctl.yaml", "land_wait: 1s\n");
    workspace.commit_all("a short wait");
    let lock = workspace.root.join(".git/workerctl-in-place.lock");
    fs::write(
        &lock,
        "workerctl pid=1 start=1 boot=x owner=/another/engine pid_ns=\n",
    )
    .unwrap();
    let held = fs::File::open(&lock).unwrap();
    flock(&held, FlockOperation::LockExclusive).unwrap();
    let (_, said) = failed(&workspace, "report", "busy");
    assert!(said.contains("/another/engine"), "{said}");
    assert_eq!(status(&workspace), "");
    drop(held);
    workspace.run(&["run", "report"]).expect_code(0);
}

#[test]
fn a_run_that_cannot_land_is_put_back_and_its_commit_is_kept() {
    let workspace = workspace();
    workspace.write("workerctl.yaml", "land_wait: 1s\n");
    workspace.commit_all("a short wait");
    let mut gate = Gate::new(&workspace, "gate");
    let daemon = Daemon::start(&workspace);
    let run = workspace.submit(&["checked"]);
    gate.reached();
    let lock = workspace.root.join(".git/index.lock");
    fs::write(&lock, "").unwrap();
    gate.pass();
    let (code, detail) = workspace.wait(&run);
    assert_eq!(code, 1, "{detail}");
    assert_eq!(
        summary(&detail)["outcome"]["failure"]["step"],
        "land",
        "{detail}"
    );
    fs::remove_file(&lock).unwrap();
    assert_eq!(status(&workspace), "");
    assert!(!workspace.root.join("reports").exists());
    let kept = workspace.git(&[
        "log",
        "-1",
        "--format=%(trailers:key=Run-Id,valueonly)",
        &format!("refs/workerctl/runs/{run}/commit"),
    ]);
    assert_eq!(kept.trim(), run);
    assert!(workspace.committed_runs().is_empty());
    daemon.stop();
}

#[test]
fn parallel_lets_no_second_run_into_a_checkout() {
    let workspace = workspace();
    let mut gate = Gate::new(&workspace, "gate");
    let daemon = Daemon::start(&workspace);
    let first = workspace.submit(&["waits"]);
    gate.reached();
    let second = workspace.submit(&["report"]);
    assert_eq!(summary(&workspace.show(&second))["phase"], "queued");
    gate.pass();
    for run in [&first, &second] {
        let (code, detail) = workspace.wait(run);
        assert_eq!(code, 0, "{detail}");
    }
    assert_eq!(workspace.committed_runs(), [second, first]);
    daemon.stop();
}

#[test]
fn a_commit_of_a_person_is_no_evidence_of_a_run_in_the_checkout() {
    let workspace = workspace();
    let mut gate = Gate::new(&workspace, "gate");
    let daemon = Daemon::start(&workspace);
    for (skill, is_proved) in [("commits=false", false), ("commits=true", true)] {
        let run = workspace.submit(&["w/has-to-commit", "-i", skill]);
        gate.reached();
        workspace.git(&["commit", "-q", "--allow-empty", "-m", "a person's"]);
        let theirs = workspace.git(&["rev-parse", "HEAD"]);
        gate.pass();
        let (code, _) = workspace.wait(&run);
        assert_eq!(code == 0, is_proved, "{run}");
        let detail = workspace.json(&["show", &run]);
        let made = &detail["summary"]["commits_made"];
        assert_eq!(
            made["count"].as_u64().unwrap_or(0),
            u64::from(is_proved),
            "{made}"
        );
        assert!(!made.to_string().contains(theirs.trim()), "{made}");
        // It stays all the same.
        let log = workspace.git(&["log", "--format=%H", "main"]);
        assert!(log.contains(theirs.trim()), "{log}");
    }
    daemon.stop();
}
