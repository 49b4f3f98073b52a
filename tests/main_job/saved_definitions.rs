//! Results that change what a definition names that was saved while they were made.

use crate::workspace::Workspace;
use crate::workspace::daemon::Daemon;
use crate::workspace::gate::Gate;

/// Changes the script as soon as the definition is saved that names it, so that no engine has read that yet.
const RUN: &str = "until grep -q tool.sh \"$WORKERCTL_CHECKOUT/workers/n/worker.yaml\" 2> /dev/null; do sleep 0.005; done; echo changed > scripts/tool.sh";

fn changes_what_is_saved_meanwhile(workspace: &Workspace) {
    let mut gate = Gate::new(workspace, "g");
    let mut command = workspace.workerctl(&["run", "waits", "--json"]);
    let run = workspace.start(&mut command);
    gate.reached();
    gate.pass();
    workspace.worker(
        "n",
        "  - {id: a, description: d, sandbox: off, run: sh scripts/tool.sh}\n",
    );
    let detail = run.end().value();
    let failure = &detail["summary"]["outcome"]["failure"];
    assert_eq!(failure["code"], "definitions_changed", "{detail}");
}

#[test]
fn a_definition_that_is_saved_during_a_run_protects_its_script() {
    for has_daemon in [false, true] {
        let run = format!("{}; {RUN}", Gate::text("g"));
        let workspace = Workspace::with_skills(&format!(
            "  - {{id: waits, description: d, mutating: true, sandbox: required, run: '{run}'}}\n"
        ));
        workspace.write("scripts/tool.sh", "echo tool\n");
        workspace.commit_all("a script");
        let daemon = has_daemon.then(|| Daemon::start(&workspace));
        changes_what_is_saved_meanwhile(&workspace);
        daemon.into_iter().for_each(Daemon::stop);
    }
}
