//! Outputs, attempts and the examples that `init` writes.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;

use crate::workspace::Workspace;

const SKILLS: &str = r#"
  - id: printed
    description: d
    interface: {outputs: [{name: r, type: markdown, destination: "workspace/reports/r.md"}]}
    run: "echo '# printed'"
  - id: not-json
    description: d
    interface: {outputs: [{name: r, type: json, destination: "workspace/reports/r.json"}]}
    run: "echo '{not json'"
  - id: not-written
    description: d
    interface: {outputs: [{name: r, type: file, destination: "workspace/reports/r.bin"}]}
    run: "test -n {r}"
  - id: third-time
    description: d
    retry: {max_attempts: 3, backoff: {initial: 1ms}}
    run: |
      echo "[$WORKERCTL_LAST_FAILURE]" >> "$HOME/attempts"
      test "$(wc -l < "$HOME/attempts")" -ge 3
  - id: once
    description: d
    mutating: true
    retry: {max_attempts: 3, backoff: {initial: 1ms}}
    run: "echo x >> \"$HOME/once\"; exit 1"
  - id: reading-once
    description: d
    idempotent: false
    retry: {max_attempts: 3, backoff: {initial: 1ms}}
    run: "echo x >> \"$HOME/reading-once\"; exit 1"
  - id: again
    description: d
    mutating: true
    idempotent: true
    retry: {max_attempts: 3, backoff: {initial: 1ms}}
    run: |
      echo x >> "$HOME/again"; echo x >> tracked.txt
      test "$(wc -l < "$HOME/again")" -ge 2
"#;

#[test]
fn what_is_printed_becomes_the_one_output() {
    let workspace = Workspace::with_skills(SKILLS);
    workspace.run(&["run", "printed"]).expect_code(0);
    assert_eq!(
        workspace.read("workspace/reports/r.md").unwrap(),
        "# printed\n"
    );
    assert!(workspace.committed_runs().is_empty());
}

#[test]
fn outputs_that_are_not_what_they_were_declared_fail() {
    let workspace = Workspace::with_skills(SKILLS);
    workspace.write("workspace/reports/r.bin", "of an earlier time\n");
    workspace.commit_all("an earlier output");
    for skill in ["not-json", "not-written"] {
        let done = workspace.run(&["run", skill, "--json"]).expect_code(5);
        assert_eq!(
            done.value()["summary"]["outcome"]["failure"]["step"],
            "verify"
        );
    }
}

#[test]
fn a_further_attempt_is_told_why_the_last_one_failed() {
    let workspace = Workspace::with_skills(SKILLS);
    let detail = workspace
        .run(&["run", "third-time", "--json"])
        .expect_code(0)
        .value();
    assert_eq!(detail["summary"]["attempts"], 3);
    let told = fs::read_to_string(workspace.home.join("attempts")).unwrap();
    let told: Vec<&str> = told.lines().collect();
    assert_eq!(told[0], "[]");
    assert!(told[1].len() > 4 && told[2].len() > 4, "{told:?}");
}

#[test]
fn a_skill_that_may_not_be_repeated_is_tried_once() {
    let workspace = Workspace::with_skills(SKILLS);
    for skill in ["once", "reading-once"] {
        workspace.run(&["run", skill]).expect_code(1);
        let tried = fs::read_to_string(workspace.home.join(skill)).unwrap();
        assert_eq!(tried, "x\n", "{skill}");
    }
    workspace.run(&["run", "again"]).expect_code(0);
    assert_eq!(
        fs::read_to_string(workspace.home.join("again")).unwrap(),
        "x\nx\n"
    );
    // The tree was put back before the second attempt.
    assert_eq!(workspace.read("tracked.txt").unwrap(), "as committed\nx\n");
}

#[test]
fn the_examples_run_from_the_first_minute() {
    let workspace = Workspace::new();
    workspace.run(&["init"]).expect_code(0);
    workspace.commit_all("workers");
    let head = || workspace.git(&["rev-parse", "HEAD"]);
    let before = head();
    let detail = workspace
        .run(&["run", "weekly-changes", "--json"])
        .expect_code(0)
        .value();
    let report = detail["outputs"][0]["path"].as_str().unwrap().to_owned();
    assert!(workspace.read(&report).unwrap().starts_with("# Changes"));
    assert_ne!(head(), before);
    assert_eq!(workspace.git(&["status", "--porcelain"]), "");

    // The machine's disks may be as full as they like.
    let watching = ["run", "host-watch/disk-report", "-i", "limit=100"];
    let before = head();
    workspace.run(&watching).expect_code(0);
    assert_eq!(head(), before);
    workspace.expect_no_process();
}

#[test]
fn a_destination_that_the_command_wrote_itself_is_not_replaced_by_what_it_printed() {
    let workspace = Workspace::with_skills(
        r"
  - id: own
    description: writes its report and says how far it is
    mutating: true
    interface:
      inputs: [{name: n, type: string, pattern: '[a-z]+', default: own}]
      outputs: [{name: report, type: markdown, destination: 'reports/{n}.md'}]
    run: 'echo text > reports/{n}.md; echo 100 percent'
  - id: silent
    description: writes its report
    mutating: true
    interface:
      inputs: [{name: n, type: string, pattern: '[a-z]+', default: silent}]
      outputs: [{name: report, type: markdown, destination: 'reports/{n}.md'}]
    run: 'echo text > reports/{n}.md'
  - id: printed
    description: prints its report
    mutating: true
    interface: {outputs: [{name: report, type: markdown, destination: reports/own.md}]}
    run: 'echo printed'
",
    );
    let said = workspace.run(&["run", "own"]).expect_code(0);
    let warning =
        "the command wrote `reports/own.md` itself, so that its standard output is only in the log";
    assert!(said.stdout.contains(warning), "{said:?}");
    workspace.run(&["run", "silent"]).expect_code(0);
    for name in ["own", "silent"] {
        assert_eq!(
            workspace.read(&format!("reports/{name}.md")).unwrap(),
            "text\n"
        );
    }
    // What an earlier run left there is replaced.
    workspace.run(&["run", "printed"]).expect_code(0);
    assert_eq!(workspace.read("reports/own.md").unwrap(), "printed\n");
}

#[test]
fn a_hole_in_an_output_takes_no_space_where_it_is_published() {
    let workspace = Workspace::with_skills(
        "
  - id: hole
    description: d
    limits: {written: 1MiB}
    interface: {outputs: [{name: out, type: file, destination: out.bin}]}
    run: 'printf head > {out}; truncate -s 1T {out}; printf tail >> {out}'
",
    );
    workspace.run(&["run", "hole"]).expect_code(0);
    let mut file = fs::File::open(workspace.root.join("out.bin")).unwrap();
    let found = file.metadata().unwrap();
    assert_eq!(found.len(), (1 << 40) + 4);
    assert!(found.blocks() * 512 < 1 << 20, "{}", found.blocks());
    let mut text = String::new();
    file.seek(SeekFrom::End(-4)).unwrap();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(text, "tail");
}

/// Its digest would be computed for hours.
#[test]
fn an_output_of_a_terabyte_that_git_ignores_does_not_wait_for_approval() {
    let workspace = Workspace::with_skills(
        "
  - id: hole
    description: d
    mutating: true
    approval_required: true
    interface: {outputs: [{name: out, type: file, destination: out.bin}]}
    run: 'truncate -s 1T {out}'
",
    );
    let ignored = workspace.read(".gitignore").unwrap() + "/out.bin\n";
    workspace.write(".gitignore", &ignored);
    workspace.git(&["commit", "-qam", "ignored"]);
    let done = workspace.run(&["run", "hole"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stdout.contains("output_not_held"), "{done:?}");
    assert!(done.stdout.contains("can have at most 16 GiB"), "{done:?}");
}

#[test]
fn a_link_to_a_commit_does_not_swallow_outputs() {
    let workspace = Workspace::with_skills(
        "
  - {id: other, description: d, mutating: true, run: 'git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),made; mkdir -p made'}
  - id: own
    description: d
    mutating: true
    interface: {outputs: [{name: out, type: file, destination: made/out.txt}]}
    run: 'git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),made; mkdir -p made; echo x > {out}'
  - id: honest
    description: d
    mutating: true
    interface: {outputs: [{name: out, type: file, destination: made/out.txt}]}
    run: 'echo x > {out}'
",
    );
    for skill in ["other", "own"] {
        let done = workspace
            .run(&["run", skill, "--json"])
            .expect_code(1)
            .value();
        let failure = &done["summary"]["outcome"]["failure"];
        assert_eq!(failure["code"], "submodule", "{failure}");
    }
    workspace.run(&["run", "honest"]).expect_code(0);
    assert_eq!(workspace.git(&["show", "HEAD:made/out.txt"]), "x\n");
}
