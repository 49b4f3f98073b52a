//! Results with paths of the engine itself, which it would take for its own once they have landed in the checkout.

use std::path::Path;

use crate::workspace::Workspace;

/// Ways in which a run brings a path of the engine into its commits; ignored paths are added by force.
const WAYS: [(&str, &str); 9] = [
    (
        "state",
        "mkdir -p state/landings; echo x > state/landings/0; git add -f state; git commit -q -m a",
    ),
    (
        "state, another case",
        "mkdir -p State/landings; echo x > State/landings/0; git add -f State; git commit -q -m a",
    ),
    (
        "state, staged only",
        "mkdir -p state/x; echo x > state/x/y; git add -f state; git commit -q -m a; echo y > z",
    ),
    (
        "a renamed file",
        "mkdir -p state; git mv tracked.txt state/tracked.txt; git commit -q -m a",
    ),
    (
        "a link in the place of the state directory",
        "ln -s /tmp state; git add -f state; git commit -q -m a",
    ),
    (
        "a repository in the place of the state directory",
        "b=$(git rev-parse HEAD); git update-index --add --cacheinfo 160000,$b,state; git commit -q -m a; mkdir -p state",
    ),
    (
        "private directory",
        "mkdir -p .workerctl; echo x > .workerctl/x; git add -f .workerctl; git commit -q -m a",
    ),
    (
        "threads",
        "mkdir -p workspace/threads; echo '{}' > workspace/threads/T-1.json; git add -f workspace; git commit -q -m a",
    ),
    (
        "a link above threads and metrics",
        "rm -rf workspace; ln -s /tmp workspace; git add -f workspace; git commit -q -m a",
    ),
];

#[test]
fn no_result_changes_a_directory_of_the_engine() {
    let skill = |(nth, (_, run)): (usize, &(&str, &str))| {
        format!("  - {{id: s{nth}, description: d, mutating: true, run: \"{run}\"}}\n")
    };
    let skills: Vec<String> = WAYS.iter().enumerate().map(skill).collect();
    let workspace = Workspace::with_skills(&skills.concat());
    let definition = workspace.read("workers/w/worker.yaml").unwrap();
    let ungranted = definition.replacen("sandbox: {write: [~/]}\n", "", 1);
    assert_ne!(definition, ungranted);
    workspace.write("workers/w/worker.yaml", &ungranted);
    workspace.commit_all("no grants");
    let before = workspace.git(&["rev-parse", "HEAD"]);
    for (nth, (way, _)) in WAYS.iter().enumerate() {
        // The state directory lies in the workspace, as by default.
        let mut command = workspace.program(env!("CARGO_BIN_EXE_workerctl"));
        command.arg("-C").arg(&workspace.root);
        command.args(["run", "--json", &format!("s{nth}")]);
        let done = workspace.start(&mut command).end();
        let shown = done.value();
        let failure = &shown["summary"]["outcome"]["failure"];
        let code = failure["code"].as_str().unwrap_or_default();
        assert_eq!(code, "protected_path", "{way}: {shown:#}");
        assert_eq!(workspace.git(&["rev-parse", "HEAD"]), before, "{way}");
    }
    assert!(!workspace.root.join("state/landings/0").exists());
    assert!(!Path::new(&workspace.root).join("state").is_symlink());
    assert_eq!(workspace.git(&["status", "--porcelain"]), "");
}
