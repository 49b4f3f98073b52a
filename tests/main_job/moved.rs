//! A workspace that is moved with all that it holds.

use crate::workspace::Workspace;

const SKILLS: &str = r"
  - {id: says, description: d, run: 'echo said', interface: {outputs: [{name: r, destination: out/r.txt}]}}
  - {id: changes, description: d, mutating: true, run: 'echo more >> tracked.txt'}
";

#[test]
fn a_workspace_that_was_moved_has_its_threads_logs_and_outputs() {
    let mut workspace = Workspace::with_skills(SKILLS);
    let run = |workspace: &Workspace, skill: &str| {
        let run = workspace.json(&["run", skill]);
        run["summary"]["run"].as_str().unwrap().to_owned()
    };
    let (says, changes) = (run(&workspace, "says"), run(&workspace, "changes"));
    workspace
        .run(&["threads", "verify", "--all"])
        .expect_code(0);
    let diff = workspace.run(&["diff", &changes]).expect_code(0).stdout;
    assert!(diff.contains("+more"), "{diff}");

    let place = workspace.root.with_file_name("elsewhere");
    std::fs::rename(&workspace.root, &place).unwrap();
    workspace.root.clone_from(&place);
    workspace
        .run(&["threads", "verify", "--all"])
        .expect_code(0);
    let logged = workspace.run(&["logs", &says]).expect_code(0);
    assert!(logged.stdout.contains("said"), "{logged:?}");
    assert_eq!(
        workspace.run(&["diff", &changes]).expect_code(0).stdout,
        diff
    );
    let shown = workspace.json(&["show", &says]);
    for path in ["log_path", "thread_path"] {
        let path = shown[path].as_str().unwrap();
        assert!(path.starts_with(place.to_str().unwrap()), "{path}");
        assert!(std::path::Path::new(path).exists(), "{path}");
    }
    let doctor = workspace.run(&["doctor"]);
    assert!(!doctor.stdout.contains("damaged"), "{doctor:?}");
    // It goes on there.
    run(&workspace, "changes");
    workspace
        .run(&["threads", "verify", "--all"])
        .expect_code(0);
    assert_eq!(workspace.committed_runs().len(), 2);
}
