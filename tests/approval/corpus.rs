//! Real workers that ask for approval, where they are there to be read: each is available with a command, and one is
//! run to its approved end.

use std::path::{Path, PathBuf};

use crate::approval::{asked, ended, outcome};
use crate::workspace::daemon::Daemon;
use crate::workspace::observed::files_below;
use crate::workspace::{Workspace, skip};

/// Their own skills are instructions; this one stands in for what a model would do.
const STAND_IN: &str =
    "\nskills:\n  - {id: stand-in, description: d, mutating: true, run: 'echo done > own.txt'}\n";

fn corpus() -> Option<PathBuf> {
    let named = std::env::var_os("WORKERCTL_CORPUS").map(PathBuf::from);
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus");
    Some(named.unwrap_or_else(beside)).filter(|path| path.is_dir())
}

/// Real definitions of workers that ask for approval, each with a skill that has a command.
fn definitions(corpus: &Path) -> Vec<String> {
    let files = files_below(&corpus.join("workspaces"), &|_| true);
    let named = files.iter().filter(|path| path.ends_with("worker.yaml"));
    let texts = named.filter_map(|path| std::fs::read_to_string(path).ok());
    let asking = texts.filter(|text| text.contains("\n  approval_required: true"));
    let with_skills = asking.filter(|text| text.contains("\nskills:\n  - "));
    with_skills
        .map(|text| text.replacen("\nskills:\n", STAND_IN, 1))
        .collect()
}

#[test]
fn real_workers_that_ask_are_available_and_one_is_run_to_its_approved_end() {
    let Some(corpus) = corpus() else {
        skip("neither WORKERCTL_CORPUS nor ../shared/corpus is a directory");
        return;
    };
    let definitions = definitions(&corpus);
    assert!(
        !definitions.is_empty(),
        "no worker asks in {}",
        corpus.display()
    );
    let workspace = Workspace::with_skills("  - {id: s, description: d, run: 'true'}\n");
    let mut available = 0;
    for text in &definitions {
        workspace.write("workers/real/worker.yaml", text);
        let workers = workspace.json(&["workers"]);
        let skills = workers["workers"].as_array().unwrap().iter();
        let mut skills = skills.flat_map(|worker| worker["skills"].as_array().unwrap());
        let found = skills.find(|skill| skill["skill"].as_str().unwrap().ends_with("/stand-in"));
        let found = found.unwrap_or_else(|| panic!("{workers}\nof\n{text}"));
        // A worker whose id holds a placeholder is never run.
        let why = found["unavailable"].to_string();
        assert!(why == "[]" || why.contains("placeholder"), "{why}\n{text}");
        available += usize::from(why == "[]");
    }
    println!(
        "{available} of {} real workers that ask are available",
        definitions.len()
    );
    assert!(available > definitions.len() / 2);
    // The checks of others call what no test can bring along.
    let mut without_commands = definitions.iter().filter(|text| !text.contains("command:"));
    let one = without_commands.next().unwrap();
    workspace.write("workers/real/worker.yaml", one);
    workspace.commit_all("a real worker");
    let daemon = Daemon::start(&workspace);
    let run = asked(&workspace, &["stand-in"]);
    workspace.run(&["approve", &run]).expect_code(0);
    assert_eq!(outcome(&ended(&workspace, &run)), "succeeded");
    assert_eq!(workspace.read("own.txt").as_deref(), Some("done\n"));
    daemon.stop();
}
