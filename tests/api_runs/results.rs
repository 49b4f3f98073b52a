//! What a run left: paths, patches, files of outputs, its thread.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::api_runs::Api;
use crate::workspace::daemon::Daemon;
use crate::workspace::gate::Gate;
use crate::workspace::{Workspace, eventually};

const SKILLS: &str = r##"
  - id: change
    description: changes paths in every way
    mutating: true
    interface:
      outputs:
        - {name: report, type: markdown, destination: reports/q.md}
        - {name: raw, type: file, destination: ignored/raw.bin}
        - {name: made, type: git_commit}
    run: |
      echo more >> grown.txt
      git mv moved.txt sub/renamed.txt
      rm gone.txt
      printf "\0\1\2" > bytes.bin
      printf "# Report\n" > {report}
      printf "secret\n" > {raw}
  - id: held
    description: waits for a person with what it wrote
    mutating: true
    approval_required: true
    interface:
      outputs:
        - {name: report, type: markdown, destination: reports/held.md}
        - {name: raw, type: file, destination: ignored/held.bin}
    run: 'echo "# Held" > {report}; echo held > {raw}; git add -A; git -c user.name=x -c user.email=x@y commit -qm own; echo x > later.txt'
  - id: lazy
    description: writes nothing
    interface: {outputs: [{name: never, type: file, destination: reports/never.md}]}
    run: ': {never}'
"##;

fn bed() -> (Workspace, Daemon, Api, String) {
    let workspace = Workspace::without_sandbox(SKILLS);
    let ignored = workspace.read(".gitignore").unwrap();
    workspace.write(".gitignore", &format!("{ignored}/ignored/\n"));
    workspace.write("grown.txt", "one\n");
    workspace.write("gone.txt", "one\ntwo\n");
    let lines: Vec<String> = (0..40).map(|line| format!("line {line}\n")).collect();
    workspace.write("moved.txt", &lines.concat());
    workspace.write("sub/kept.txt", "x\n");
    workspace.commit_all("what is there");
    let daemon = Daemon::start(&workspace);
    let api = Api::of(&workspace);
    let run = workspace.submit(&["w/change"]);
    let (code, detail) = workspace.wait(&run);
    assert_eq!(code, 0, "{detail:#}");
    (workspace, daemon, api, run)
}

#[test]
fn the_paths_that_a_run_changed_and_the_patch_of_each_are_given() {
    let (_workspace, daemon, api, run) = bed();
    let get = |rest: &str| api.get(&format!("/v1/runs/{run}{rest}"));
    let changes = get("/changes");
    let change = |path: &str, status: &str, lines: [Value; 2]| {
        let [added, removed] = lines;
        let mut change = json!({
            "path": path, "status": status, "added": added, "removed": removed, "binary": false,
            "protected": false
        });
        for (side, absent) in [("old_mode", "added"), ("mode", "deleted")] {
            if status != absent {
                change[side] = "100644".into();
            }
        }
        change
    };
    let mut binary = change("bytes.bin", "added", [Value::Null, Value::Null]);
    binary["binary"] = true.into();
    let mut renamed = change("sub/renamed.txt", "renamed", [0.into(), 0.into()]);
    renamed["from"] = "moved.txt".into();
    let expected = json!([
        binary,
        change("gone.txt", "deleted", [0.into(), 2.into()]),
        change("grown.txt", "modified", [1.into(), 0.into()]),
        change("reports/q.md", "added", [1.into(), 0.into()]),
        renamed
    ]);
    assert_eq!(changes.value(), expected);
    assert_eq!(changes.header("workerctl-paths"), Some("5"));

    let diff = |path: &str| get(&format!("/diff?path={path}"));
    let one = diff("grown.txt").text();
    assert!(
        one.contains("+more") && one.matches("diff --git").count() == 1,
        "{one}"
    );
    let below = diff("sub/").text();
    assert!(below.contains("rename from moved.txt"), "{below}");
    assert_eq!(diff("moved.txt").text(), below);
    assert!(get("/diff").text().contains("gone.txt"));
    assert_eq!(
        diff("sub/kept.txt").refusal(),
        (404, "path_unchanged".to_owned())
    );
    for outside in ["%2Fetc%2Fpasswd", "..%2Fx", "", "a%00b"] {
        assert_eq!(
            diff(outside).refusal(),
            (400, "bad_path".to_owned()),
            "{outside}"
        );
    }
    daemon.stop();
}

#[test]
fn files_of_outputs_are_those_of_the_run_or_said_to_be_others() {
    let (workspace, daemon, api, run) = bed();
    let get = |rest: &str| api.get(&format!("/v1/runs/{run}{rest}"));
    let thread = get("/thread").value();
    assert_eq!(thread["worker"]["skill"], "change", "{thread}");

    let commit = api.detail(&run)["summary"]["commit"].clone();
    let source = format!("commit {}", commit.as_str().unwrap());
    // What stands at its destination is another file by now.
    workspace.write("reports/q.md", "# Mine\n");
    let report = get("/outputs/report");
    assert_eq!((report.status, report.text().as_str()), (200, "# Report\n"));
    assert_eq!(report.header("workerctl-source"), Some(&*source));
    assert_eq!(
        report.header("content-type"),
        Some("application/octet-stream")
    );
    assert_eq!(report.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(report.header("cache-control"), Some("no-store"));
    assert_eq!(report.header("content-length"), Some("9"));
    let disposition = report.header("content-disposition").unwrap();
    assert!(
        disposition.starts_with("attachment; filename=\"q.md\""),
        "{disposition}"
    );

    let raw = || get("/outputs/raw");
    assert_eq!(raw().text(), "secret\n");
    assert_eq!(raw().header("workerctl-source"), Some("destination"));
    assert_eq!(raw().header("workerctl-changed"), Some("false"));
    workspace.write("ignored/raw.bin", "Secret\n");
    assert_eq!(raw().header("workerctl-changed"), Some("true"));
    std::fs::remove_file(workspace.root.join("ignored/raw.bin")).unwrap();
    assert_eq!(raw().refusal(), (404, "output_gone".to_owned()));
    let outside = workspace.home.join("key");
    std::fs::write(&outside, "secret\n").unwrap();
    symlink(&outside, workspace.root.join("ignored/raw.bin")).unwrap();
    assert_eq!(raw().refusal(), (404, "output_gone".to_owned()));

    let code = |name: &str| get(&format!("/outputs/{name}")).refusal();
    assert_eq!(code("made"), (404, "output_no_file".to_owned()));
    assert_eq!(code("..%2F..%2Fetc"), (404, "no_such_output".to_owned()));
    assert_eq!(code("%0a"), (400, "bad_text".to_owned()));
    // What another run has left there is not this one's.
    workspace.write("reports/never.md", "x\n");
    let lazy = workspace.submit(&["w/lazy"]);
    workspace.wait(&lazy);
    let never = api.get(&format!("/v1/runs/{lazy}/outputs/never"));
    assert_eq!(never.refusal(), (404, "output_not_written".to_owned()));
    daemon.stop();
}

#[test]
fn a_run_that_changed_nothing_or_has_not_ended_says_so() {
    let skills = "
  - id: say
    description: says something
    interface: {outputs: [{name: text, type: console}]}
    run: 'echo said'
";
    let workspace = Workspace::with_skills(skills);
    let daemon = Daemon::start(&workspace);
    let api = Api::of(&workspace);
    let run = workspace.submit(&["w/say"]);
    assert_eq!(workspace.wait(&run).0, 0);
    let code = |rest: &str| api.get(&format!("/v1/runs/{run}{rest}")).refusal();
    for rest in ["/changes", "/diff", "/diff?path=x"] {
        assert_eq!(code(rest), (404, "nothing_kept".to_owned()), "{rest}");
    }
    assert_eq!(code("/outputs/text"), (404, "output_no_file".to_owned()));
    let thread = std::path::PathBuf::from(api.detail(&run)["thread_path"].as_str().unwrap());
    std::fs::remove_file(&thread).unwrap();
    assert_eq!(code("/thread"), (404, "no_thread_yet".to_owned()));
    std::fs::write(&thread, "{").unwrap();
    assert_eq!(code("/thread"), (500, "thread_unreadable".to_owned()));
    daemon.stop();
}

#[test]
fn what_a_run_changed_is_that_of_no_earlier_attempt_and_a_commit_that_is_gone_is_named() {
    let gate = Gate::text("g");
    let skill = "{id: redo, description: d, mutating: true, idempotent: true";
    let workspace = Workspace::with_skills(&format!(
        "\n  - {skill}, run: '{gate}; echo more >> tracked.txt'}}\n"
    ));
    for text in ["one\n", "one\ntwo\n"] {
        workspace.write("tracked.txt", text);
        workspace.write("beside.txt", text);
        workspace.commit_all("of a person");
    }
    let mut gate = Gate::new(&workspace, "g");
    let daemon = Daemon::start(&workspace);
    let api = Api::of(&workspace);
    let run = workspace.submit(&["w/redo"]);
    let changes = || api.get(&format!("/v1/runs/{run}/changes"));
    let told = |code: &str| assert_eq!(changes().refusal(), (404, code.to_owned()));
    assert_eq!(gate.reached().1, 1);
    told("nothing_kept");
    workspace.write("tracked.txt", "a person's\n");
    gate.pass();
    // It waits to land, and what it changed is taken back then.
    eventually("its result is kept", || {
        (changes().status == 200).then_some(())
    });
    workspace.git(&["reset", "-q", "--hard", "HEAD~1"]);
    assert_eq!(gate.reached().1, 2);
    told("nothing_kept");
    gate.pass();
    let (code, detail) = workspace.wait(&run);
    assert_eq!(code, 0, "{detail:#}");
    let paths = changes().value();
    let paths: Vec<_> = paths
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["path"])
        .collect();
    assert_eq!(paths, ["tracked.txt"]);
    workspace.git(&["reset", "-q", "--hard", "HEAD~1"]);
    workspace.git(&["reflog", "expire", "--expire=now", "--all"]);
    workspace.git(&["gc", "-q", "--prune=now"]);
    told("commit_gone");
    daemon.stop();
}

#[test]
fn what_waits_for_a_person_is_given_from_where_it_waits() {
    let (workspace, daemon, api, _) = bed();
    let run = workspace.submit(&["w/held"]);
    workspace.until_phase(&run, "awaiting_approval");
    let get = |rest: &str| api.get(&format!("/v1/runs/{run}{rest}"));
    let report = get("/outputs/report");
    assert_eq!(report.text(), "# Held\n");
    let source = report.header("workerctl-source").unwrap();
    assert!(source.starts_with("commit "), "{source}");
    let raw = get("/outputs/raw");
    assert_eq!(
        (raw.text().as_str(), raw.header("workerctl-source")),
        ("held\n", Some("held"))
    );
    assert_eq!(workspace.read("ignored/held.bin"), None);
    // What its skill has committed itself is part of it.
    let changes = get("/changes").value();
    let changes = changes.as_array().unwrap().iter();
    let paths: Vec<&str> = changes.map(|one| one["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["later.txt", "reports/held.md"]);
    assert!(get("/diff?path=reports").text().contains("+# Held"));
    workspace.run(&["cancel", &run]).expect_code(0);
    daemon.stop();
}
