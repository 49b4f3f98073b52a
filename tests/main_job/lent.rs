//! What a run's tree has beside its base: caches that `keep` leaves in it, what `local` takes from the checkout,
//! and what a run is told that lacked something.

use std::os::unix::fs::symlink;

use serde_json::Value;

use crate::workspace::Workspace;
use crate::workspace::daemon::Daemon;
use crate::workspace::gate::Gate;

const SKILLS: &str = r#"
  - id: builds
    description: d
    mutating: true
    keep: [target/]
    run: "mkdir -p target other.d; echo x >> target/cache; echo x > other.d/x; wc -l < target/cache > built.txt"
  - {id: keeps-tracked, description: d, mutating: true, keep: [docs], run: "echo x > out.md"}
  - id: lent
    description: d
    mutating: true
    local: [.env, settings/, {path: models/, link: true}]
    run: "cat .env settings/a settings/deep/b models/m > out.md && git status --porcelain > seen.txt"
  - {id: changes-file, description: d, mutating: true, local: .env, run: "echo more >> .env; echo x > out.md"}
  - {id: removes, description: d, mutating: true, local: settings, run: "rm -r settings/deep; echo x > out.md"}
  - {id: absent, description: d, mutating: true, local: [missing/a], run: "echo x > out.md"}
  - {id: large, description: d, mutating: true, local: [.env, models/], run: "echo x > out.md"}
  - {id: leads-out, description: d, mutating: true, local: [leads], run: "cat leads > out.md"}
  - {id: passes-out, description: d, mutating: true, local: [away/secret], run: "cat away/secret > out.md"}
  - {id: leads-in, description: d, mutating: true, local: [alias], run: "cat alias > out.md"}
  - {id: link-out, description: d, mutating: true, local: [{path: leads, link: true}], run: "cat leads > out.md"}
  - {id: piped, description: d, mutating: true, local: [pipe], run: "echo x > out.md"}
  - {id: lacks, description: d, mutating: true, run: "cat .env 'odd, one/x' models/m > out.md"}
  - id: check-lacks
    description: d
    mutating: true
    run: "echo x > out.md"
    verification: [{command: "test -e models/m"}]
"#;

const IGNORED: &str =
    "/target/\n/other.d/\n.env\n/settings/\n/models/\n/leads\n/away\n/alias\n/pipe\n/odd*/\n";

fn workspace() -> Workspace {
    let workspace = Workspace::new();
    workspace.write("docs/a.md", "a\n");
    workspace.furnish(SKILLS);
    let ignored = workspace.read(".gitignore").unwrap() + IGNORED;
    workspace.write(".gitignore", &ignored);
    workspace.commit_all("ignore");
    workspace.write(".env", "env\n");
    workspace.write("settings/a", "a\n");
    workspace.write("settings/deep/b", "b\n");
    workspace.write("models/m", "m\n");
    workspace
}

/// Runs a skill that fails; answers its run. No checkout and no branch has changed.
fn failed(workspace: &Workspace, skill: &str, code: &str, exit: i32) -> Value {
    let tip = workspace.git(&["rev-parse", "HEAD"]);
    let before = workspace.tree();
    let detail = workspace.run(&["run", skill, "--json"]).expect_code(exit);
    let detail = detail.value();
    let failure = &detail["summary"]["outcome"]["failure"];
    assert_eq!(failure["code"], code, "{failure}");
    assert_eq!(workspace.tree(), before, "{skill}");
    assert_eq!(workspace.git(&["rev-parse", "HEAD"]), tip, "{skill}");
    detail
}

#[track_caller]
fn said(detail: &Value, told: &[&str]) {
    let failure = &detail["summary"]["outcome"]["failure"];
    let message = failure["message"].as_str().unwrap();
    for told in told {
        assert!(message.contains(told), "{message}");
    }
}

#[test]
fn a_cache_stays_for_the_next_run_of_its_worker_and_for_no_other() {
    let workspace = workspace();
    workspace.worker("v", SKILLS);
    workspace.commit_all("another worker");
    let lines = |skill: &str| {
        let detail = workspace.json(&["run", skill]);
        assert!(workspace.root.join("target").symlink_metadata().is_err());
        let warnings = detail["warnings"].to_string();
        assert!(warnings.contains("`other.d/`"), "{warnings}");
        assert!(!warnings.contains("target"), "{warnings}");
        workspace.read("built.txt").unwrap().trim().to_owned()
    };
    assert_eq!(lines("w/builds"), "1");
    assert_eq!(lines("w/builds"), "2");
    assert_eq!(lines("v/builds"), "1");
    assert_eq!(lines("w/builds"), "3");

    let detail = failed(&workspace, "w/keeps-tracked", "keep", 6);
    said(&detail, &["`docs`", "tracks `docs/a.md`", "out of `keep`"]);
}

#[test]
fn what_is_taken_from_the_checkout_is_there_hidden_and_never_part_of_the_result() {
    let workspace = workspace();
    let detail = workspace.json(&["run", "lent"]);
    assert_eq!(workspace.read("out.md").unwrap(), "env\na\nb\nm\n");
    let run = detail["summary"]["run"].as_str().unwrap();
    // Git in the run sees its own file, and nothing of the rest.
    assert_eq!(
        workspace.read("seen.txt").unwrap(),
        "?? out.md\n?? seen.txt\n"
    );
    let commit = ["show", "--name-only", "--format=", "HEAD"];
    assert_eq!(workspace.git(&commit), "out.md\nseen.txt\n");
    assert_eq!(workspace.committed_runs(), [run]);
    // What the person changes reaches the next run.
    workspace.write(".env", "other\n");
    std::fs::remove_file(workspace.root.join("settings/a")).unwrap();
    let again = failed(&workspace, "lent", "exit_code", 1);
    said(&again, &["settings/a"]);

    for (skill, path) in [("changes-file", ".env"), ("removes", "settings/deep/b")] {
        let detail = failed(&workspace, skill, "overlay_changed", 1);
        let named = format!("the run changed `{path}`, which was copied from the checkout");
        said(&detail, &[&named, "do not change"]);
    }
}

#[test]
fn what_cannot_be_taken_from_the_checkout_is_named_before_the_run() {
    let workspace = workspace();
    let detail = failed(&workspace, "absent", "local", 6);
    said(
        &detail,
        &["missing/a`, which is not there", "out of `local`"],
    );

    let pipe = workspace.root.join("pipe");
    let made = workspace.program("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let detail = workspace.run(&["run", "piped", "--json"]).expect_code(6);
    let told = [
        "`pipe`, which is neither a file nor",
        "{path: pipe, link: true}",
    ];
    said(&detail.value(), &told);
    std::fs::remove_file(pipe).unwrap();

    // Sparse, so that it takes no space.
    let large = std::fs::File::create(workspace.root.join("models/large")).unwrap();
    large.set_len(64 * 1024 * 1024).unwrap();
    let detail = workspace.run(&["run", "large", "--json"]).expect_code(6);
    let detail = detail.value();
    assert_eq!(
        detail["summary"]["outcome"]["failure"]["code"],
        "local_too_large"
    );
    said(
        &detail,
        &[
            "`local` names 65 MiB, of which `models` has 65",
            "at most 64 MiB are copied",
            "`local: [{path: models, link: true}]`",
        ],
    );
    // As a link it is no matter how large it is.
    workspace.json(&["run", "lent"]);
    large.set_len(0).unwrap();

    std::fs::create_dir(workspace.home.join("elsewhere")).unwrap();
    std::fs::write(workspace.home.join("elsewhere/secret"), "secret\n").unwrap();
    symlink(
        workspace.home.join("elsewhere/secret"),
        workspace.root.join("leads"),
    )
    .unwrap();
    symlink(
        workspace.home.join("elsewhere"),
        workspace.root.join("away"),
    )
    .unwrap();
    symlink("settings/deep/b", workspace.root.join("alias")).unwrap();
    for (skill, path) in [("leads-out", "leads"), ("passes-out", "away/secret")] {
        let detail = failed(&workspace, skill, "local_outside", 6);
        let named = format!("`local` names `{path}`, which leads to `");
        said(
            &detail,
            &[&named, "elsewhere/secret", "out of the repository"],
        );
    }
    workspace.json(&["run", "leads-in"]);
    assert_eq!(workspace.read("out.md").unwrap(), "b\n");
    workspace.json(&["run", "link-out"]);
    assert_eq!(workspace.read("out.md").unwrap(), "secret\n");
}

/// The line that a text names, without the quotes around it.
fn line(text: &str) -> &str {
    let (_, rest) = text.split_once("`local: ").unwrap();
    rest.split_once(']').unwrap().0
}

#[test]
fn a_failed_run_names_what_its_tree_lacked_by_a_line_that_works() {
    // Also where the workspace is not the whole repository.
    for inside in ["", "inside/"] {
        let workspace = Workspace::new();
        let write = |path: &str, text: &str| workspace.write(&format!("{inside}{path}"), text);
        let worker = |skills: &str| {
            let head = "worker: {id: w, name: w, type: OpsWorker}\nskills:\n";
            write("workers/w/worker.yaml", &format!("{head}{skills}"));
        };
        write(".gitignore", IGNORED);
        worker(SKILLS);
        write("docs/a.md", "a\n");
        workspace.commit_all("begin");
        write(".env", "env\n");
        write("odd, one/x", "odd\n");
        write("models/m", "m\n");
        write("odd*/x", "no line can name it\n");
        let root = workspace.root.join(inside);
        let run = |skill: &str| {
            let mut command = workspace.program(env!("CARGO_BIN_EXE_workerctl"));
            command.arg("-C").arg(&root).arg("--state-dir");
            command
                .arg(workspace.state())
                .args(["run", skill, "--json"]);
            workspace.start(&mut command).end()
        };
        let expected = "[.env, models/, 'odd, one/'";
        let detail = run("lacks").expect_code(1).value();
        let warning = detail["warnings"][0].as_str().unwrap();
        assert_eq!(line(warning), expected, "{warning}");
        assert!(warning.contains("`keep`"), "{warning}");

        let checked = run("check-lacks").expect_code(5).value();
        said(&checked, &["check `test -e models/m` failed: exit code 1"]);
        let check = &checked["attempts"][0]["checks"][0];
        assert_eq!(line(check["message"].as_str().unwrap()), expected);

        let add = |skill: &str| format!("id: {skill}, description: d, mutating: true,");
        let with = format!("{} local: {expected}],", add("lacks"));
        let followed = SKILLS.replace(&add("lacks"), &with);
        assert_ne!(followed, SKILLS);
        worker(&followed);
        run("lacks").expect_code(0);
        let out = workspace.read(&format!("{inside}out.md")).unwrap();
        assert_eq!(out, "env\nodd\nm\n");
    }
}

#[test]
fn a_run_that_was_cancelled_lacked_nothing() {
    let workspace = Workspace::new();
    workspace.write(".gitignore", IGNORED);
    let waits = Gate::text("g");
    workspace.furnish(&format!(
        "  - {{id: waits, description: d, mutating: true, run: '{waits}'}}\n"
    ));
    workspace.write(".env", "env\n");
    let mut gate = Gate::new(&workspace, "g");
    let daemon = Daemon::start(&workspace);
    let run = workspace.submit(&["waits"]);
    gate.reached();
    workspace.json(&["cancel", &run]);
    let (_, detail) = workspace.wait(&run);
    assert_eq!(
        detail["summary"]["outcome"]["kind"], "cancelled",
        "{detail}"
    );
    assert_eq!(detail["warnings"], serde_json::json!([]));
    daemon.stop();
}

const KEEPS: &str = r#"
  - {id: fills, description: d, mutating: true, keep: [cache/, notes, a/b/], run: "mkdir -p cache a/b; echo c > cache/c; echo n > notes; echo x >> log"}
  - {id: links, description: d, mutating: true, keep: [cache/, notes, a/b/], run: "rm -rf cache a; ln -s /nowhere cache; ln -s /nowhere a; exit 1"}
  - {id: swaps, description: d, mutating: true, keep: [cache/, notes, a/b/], run: "rm -rf cache notes; echo x > cache; mkdir notes; exit 1"}
  - {id: pipes, description: d, mutating: true, keep: [cache/, notes, a/b/], run: "rm -rf cache notes; mkfifo cache; mkfifo notes; exit 1"}
  - {id: locks, description: d, mutating: true, keep: [cache/, notes, a/b/], run: "chmod 000 cache notes; exit 1"}
"#;

#[test]
fn a_run_that_replaces_what_is_kept_breaks_no_later_run() {
    let workspace = Workspace::with_skills(KEEPS);
    workspace.write(".gitignore", "/cache\n/notes\n/a\n");
    workspace.commit_all("ignore");
    workspace.json(&["run", "fills"]);
    for (skill, unkept) in [
        ("links", &["cache"][..]),
        ("swaps", &["cache", "notes"]),
        ("pipes", &["cache", "notes"]),
        ("locks", &[]),
    ] {
        let failed = workspace.run(&["run", skill, "--json"]).expect_code(1);
        let shown = failed.value()["warnings"].to_string();
        for path in unkept {
            assert!(shown.contains(&format!("`{path}` is not kept")), "{shown}");
        }
        for _ in 0..2 {
            let done = workspace.run(&["run", "fills", "--json"]);
            assert_eq!(done.code, 0, "after {skill}: {}", done.stdout);
        }
    }
}

#[test]
fn a_cache_is_shared_only_by_runs_with_the_same_rights() {
    let workspace = Workspace::with_skills(
        r#"
  - {id: plants, description: d, mutating: true, keep: [cache/], run: "mkdir -p cache; echo 'echo planted' > cache/tool.sh; exit 1"}
  - {id: again, description: d, mutating: true, keep: [cache/], run: "cat cache/tool.sh > seen.txt"}
  - {id: free, description: d, mutating: true, keep: [cache/], sandbox: off, run: "test ! -e cache/tool.sh; echo x > ran.txt"}
  - {id: granted, description: d, mutating: true, keep: [cache/], sandbox: {write: [~/given]}, run: "test ! -e cache/tool.sh; echo x > ran2.txt"}
"#,
    );
    std::fs::create_dir(workspace.home.join("given")).unwrap();
    workspace.write(".gitignore", "/cache\n");
    workspace.commit_all("ignore");
    workspace.run(&["run", "plants"]).expect_code(1);
    for skill in ["free", "granted", "again"] {
        let done = workspace.run(&["run", skill, "--json"]);
        assert_eq!(done.code, 0, "{skill}: {}", done.stdout);
    }
}
