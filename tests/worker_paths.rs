//! Workers in the directories that `workers.paths` names: they run, land, come to be while a daemon runs, and are not
//! changed unseen.

use crate::workspace;

use workspace::daemon::{self, Daemon};
use workspace::{Workspace, eventually};

const PATHS: &str = "workers: {paths: [core/workers, packages/*/workers]}\n";

/// A workspace with a worker `x` in the package `a`; its script is not committed.
fn workspace(skills: &str) -> Workspace {
    let workspace = Workspace::new();
    workspace.write("workerctl.yaml", PATHS);
    workspace.write(".gitignore", "/workspace/\n/.workerctl/\n");
    worker(&workspace, "packages/a/workers/x", "x", skills);
    workspace.commit_all("begin");
    let script = "echo \"made by $WORKERCTL_SKILL\" > made.txt\n";
    workspace.write("packages/a/workers/x/make.sh", script);
    workspace
}

fn worker(workspace: &Workspace, directory: &str, id: &str, skills: &str) {
    let text = format!("worker: {{id: {id}, name: {id}}}\nskills:\n{skills}");
    workspace.write(&format!("{directory}/worker.yaml"), &text);
}

const MAKE: &str =
    "  - {id: make, description: d, mutating: true, run: {script: make.sh, interpreter: sh}}\n";

#[test]
fn a_run_of_a_worker_in_a_package_lands() {
    let workspace = workspace(MAKE);
    workspace.run(&["check"]).expect_code(0);
    workspace.run(&["run", "x/make"]).expect_code(0);
    assert_eq!(workspace.committed_runs().len(), 1);
    assert_eq!(workspace.git(&["show", "HEAD:made.txt"]), "made by make\n");
    // What was laid over the tree is no part of it.
    let landed = workspace.git(&["show", "--format=", "--name-only", "HEAD"]);
    assert_eq!(landed, "made.txt\n");
}

#[test]
fn a_daemon_sees_a_worker_in_a_new_package_and_another_list_of_paths() {
    let workspace = workspace(MAKE);
    let daemon = Daemon::start(&workspace);
    let known =
        |id: &str| daemon::get(&workspace, "/v1/workers").contains(&format!("\"id\":\"{id}\""));
    assert!(known("x") && !known("y") && !known("z"));
    worker(&workspace, "packages/b/workers/y", "y", MAKE);
    workspace.write("packages/b/workers/y/make.sh", "echo y > y.txt\n");
    eventually("the new package is read", || known("y").then_some(()));
    workspace.run(&["run", "y/make"]).expect_code(0);
    assert_eq!(workspace.git(&["show", "HEAD:y.txt"]), "y\n");
    worker(&workspace, "more/z", "z", MAKE);
    workspace.configure("workers: {paths: [more]}\n");
    eventually("other paths are read", || {
        (known("z") && !known("x")).then_some(())
    });
    daemon.stop();
}

#[test]
fn a_run_does_not_change_definitions_wherever_they_are() {
    let skills = [
        (
            "new",
            "mkdir -p packages/b/workers/y && echo > packages/b/workers/y/worker.yaml",
        ),
        ("linked", "ln -s ../lib packages/c"),
        ("behind", "echo >> lib/workers/l/worker.yaml"),
        (
            "registry",
            "mkdir -p workers && echo > workers/registry.yaml",
        ),
        (
            "plain",
            "mkdir -p workers/w/skills && echo x > workers/w/skills/a.md && echo x > packages/README.md",
        ),
    ];
    let skills: Vec<String> = skills
        .iter()
        .map(|(id, run)| {
            format!("  - {{id: {id}, description: d, mutating: true, run: '{run}'}}\n")
        })
        .collect();
    let workspace = workspace(&skills.concat());
    worker(&workspace, "lib/workers/l", "l", MAKE);
    std::os::unix::fs::symlink("../lib", workspace.root.join("packages/l")).unwrap();
    workspace.commit_all("a package that is a link");
    for (id, path) in [
        ("new", "packages/b/workers/y/worker.yaml"),
        ("linked", "packages/c"),
        ("behind", "lib/workers/l/worker.yaml"),
        ("registry", "workers/registry.yaml"),
    ] {
        let done = workspace.run(&["run", &format!("x/{id}")]).expect_code(1);
        assert!(done.stdout.contains(path), "{id}: {done:?}");
        assert!(workspace.committed_runs().is_empty(), "{id}");
    }
    // Where no workers are read, nothing is a definition.
    workspace.run(&["run", "x/plain"]).expect_code(0);
}

#[test]
fn what_is_granted_to_write_holds_no_workers() {
    let workspace = workspace(MAKE);
    for (grant, refused) in [
        ("packages", true),
        ("packages/b", true),
        ("core/workers/data", true),
        ("packages/b/data", false),
    ] {
        let skills =
            format!("  - {{id: s, description: d, run: 'true', sandbox: {{write: [{grant}]}}}}\n");
        worker(&workspace, "core/workers/g", "g", &skills);
        std::fs::create_dir_all(workspace.root.join(grant)).unwrap();
        let checked = workspace.run(&["check"]);
        assert_eq!(
            checked.code,
            if refused { 4 } else { 0 },
            "{grant}: {checked:?}"
        );
        assert_eq!(
            checked.stdout.contains("sandbox-grant"),
            refused,
            "{checked:?}"
        );
    }
}

#[test]
fn new_workers_are_put_where_workers_are_read() {
    let workspace = workspace(MAKE);
    workspace.run(&["new", "worker", "fresh"]).expect_code(0);
    assert!(workspace.read("core/workers/fresh/worker.yaml").is_some());
    workspace.write("jobs", "5 4 * * * true\n");
    let import = ["schedule", "import-crontab", "jobs", "--worker", "jobs"];
    workspace.run(&import).expect_code(0);
    assert!(workspace.read("core/workers/jobs/worker.yaml").is_some());
    workspace.run(&["init"]).expect_code(0);
    assert!(workspace.read("core/workers/README.md").is_some());
    assert!(workspace.read("workers/README.md").is_none());
    let shown = workspace.run(&["config"]).expect_code(0).stdout;
    assert!(
        shown.contains("core/workers, packages/*/workers"),
        "{shown}"
    );
    workspace.write(
        "workerctl.yaml",
        "workers: {paths: ['packages/*/workers']}\n",
    );
    let refused = workspace
        .run(&["new", "worker", "more", "--json"])
        .expect_code(4);
    assert_eq!(refused.refusal(), "no_directory_of_workers");
}
