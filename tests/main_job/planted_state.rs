//! State directories that a commit brings: an engine that opened one would execute what somebody else has recorded.

use std::path::Path;

use crate::workspace::{Done, Workspace};

/// Paths of engines of other workspaces and clones. The state directory of the engine itself lies elsewhere.
const PATHS: [&str; 9] = [
    "state/store/db/conf",
    "b/state/store/db/conf",
    "b/State/STORE/id",
    "b/state/landings/0",
    "b/state/trusted-skills/x",
    "a/b/c/.workerctl/store",
    ".WorkerCtl/x",
    "b/workspace/threads/T-1.jsonl",
    "b/state/store/db/tracked",
];

#[test]
fn no_result_has_a_directory_of_another_engine() {
    let skill = |(nth, path): (usize, &&str)| {
        format!(
            "  - {{id: s{nth}, description: d, mutating: true, run: 'mkdir -p $(dirname {path}); echo x > {path}; git add -f {path}; git commit -qm x'}}\n"
        )
    };
    let skills: String = PATHS.iter().enumerate().map(skill).collect();
    let workspace = Workspace::with_skills(&format!(
        "{skills}  - {{id: fine, description: d, mutating: true, run: 'mkdir -p b/state/machine b/state/store; echo x > b/state/store/index.ts; echo x > b/state/machine/x; echo x > b/store'}}\n"
    ));
    workspace.write("b/state/store/db/tracked", "1\n");
    workspace.commit_all("a store");
    let before = workspace.git(&["rev-parse", "HEAD"]);
    for (nth, path) in PATHS.iter().enumerate() {
        let detail = workspace
            .run(&["run", &format!("s{nth}"), "--json"])
            .value();
        let failure = &detail["summary"]["outcome"]["failure"];
        assert_eq!(failure["code"], "protected_path", "{path}: {detail}");
        assert_eq!(workspace.git(&["rev-parse", "HEAD"]), before, "{path}");
    }
    workspace.run(&["run", "fine"]).expect_code(0);
}

/// Runs the program in a directory, with the state directory at its default place.
fn at(workspace: &Workspace, place: &Path, arguments: &[&str]) -> Done {
    let mut command = workspace.program(env!("CARGO_BIN_EXE_workerctl"));
    command.arg("-C").arg(place).args(arguments);
    workspace.start(&mut command).end()
}

#[test]
fn no_command_opens_a_state_directory_that_git_tracks() {
    let workspace = Workspace::with_skills("  - {id: good, description: d, run: 'true'}\n");
    let definition = workspace.read("workers/w/worker.yaml").unwrap();
    let ungranted = definition.replacen("sandbox: {write: [~/]}\n", "", 1);
    workspace.write("workers/w/worker.yaml", &ungranted);
    // What a run of the attacker recorded lies in the default place of a clone.
    at(&workspace, &workspace.root, &["run", "good"]).expect_code(0);
    workspace.git(&["add", "-f", "state/store"]);
    workspace.commit_all("add files");
    workspace.git(&["clone", "-q", ".", "../clone"]);
    let clone = workspace.root.with_file_name("clone");
    let commands: [&[&str]; 7] = [
        &["run", "good"],
        &["runs"],
        &["daemon"],
        &["store", "verify"],
        &["store", "rebuild"],
        &["store", "init"],
        &["store", "gc"],
    ];
    for arguments in commands {
        let refused = at(&workspace, &clone, arguments).expect_code(6);
        let said = &refused.stderr;
        assert!(said.contains("git tracks `"), "{arguments:?}: {refused:?}");
        assert!(said.contains("git rm -r --cached"), "{refused:?}");
    }
    let refused = at(&workspace, &clone, &["run", "good", "--json"]);
    assert_eq!(refused.refusal(), "state_tracked", "{refused:?}");
    let doctor = at(&workspace, &clone, &["doctor"]).expect_code(1);
    assert!(doctor.stdout.contains("git tracks `"), "{doctor:?}");
    // Another place, or files that git does not track, are used.
    let apart = workspace.home.join("apart");
    let place = apart.to_str().unwrap();
    at(&workspace, &clone, &["--state-dir", place, "run", "good"]).expect_code(0);
    workspace.git(&["rm", "-rq", "--cached", "state"]);
    at(&workspace, &workspace.root, &["run", "good"]).expect_code(0);
}
