//! Scripts run from the bytes that were accepted, and find the files next to them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::workspace::Workspace;
use crate::workspace::daemon::Daemon;

const SKILLS: &str = "  - {id: asks, description: d, approval_required: true, run: {script: bin/go.sh}}
  - {id: changes, description: d, mutating: true, approval_required: true, retry: {max_attempts: 3, backoff: 10ms}, run: {script: bin/go.sh, interpreter: sh}}
";

/// A program of the same user that replaces the script all the time, in the checkout and in every tree. It leaves the
/// copies that execute alone, because no file is safe from other programs of its user.
struct Swapper<'a> {
    root: &'a Path,
    trees: PathBuf,
    ended: &'a AtomicBool,
}

impl Swapper<'_> {
    fn run(&self) {
        while !self.ended.load(Ordering::Relaxed) {
            let mut scripts = vec![self.root.join("workers/w/bin/go.sh")];
            below(&self.trees, 7, &mut scripts);
            for script in scripts.iter().filter(|path| path.exists()) {
                for text in ["echo other >> \"$HOME/out\"\n", GOOD] {
                    let next = self.root.with_file_name("next");
                    fs::write(&next, format!("#!/bin/sh\n{text}")).unwrap();
                    fs::set_permissions(&next, fs::Permissions::from_mode(0o755)).unwrap();
                    let _ = fs::rename(&next, script);
                }
            }
        }
    }
}

fn write_script(workspace: &Workspace, path: &str, text: &str) {
    workspace.write(path, text);
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(workspace.root.join(path), mode).unwrap();
}

fn below(directory: &Path, levels: u32, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.ends_with("workers/w/bin/go.sh") {
            found.push(path);
        } else if levels > 0 && path.is_dir() && !path.is_symlink() {
            below(&path, levels - 1, found);
        }
    }
}

const GOOD: &str = "echo good >> \"$HOME/out\"; test \"$WORKERCTL_ATTEMPT\" = 3\n";

#[test]
fn a_script_that_is_exchanged_after_its_approval_never_runs() {
    let workspace = Workspace::with_skills(SKILLS);
    let worker = workspace.read("workers/w/worker.yaml").unwrap();
    let worker = worker.replacen(
        "sandbox: {write: [~/]}\n",
        "sandbox: off\napproval: {before: execution}\n",
        1,
    );
    workspace.write("workers/w/worker.yaml", &worker);
    write_script(
        &workspace,
        "workers/w/bin/go.sh",
        &format!("#!/bin/sh\n{GOOD}"),
    );
    workspace.commit_all("script");
    let daemon = Daemon::start(&workspace);
    let skills = ["asks", "changes"].repeat(20);
    let asked: Vec<String> = skills
        .iter()
        .map(|skill| workspace.submit(&[skill]))
        .collect();
    for run in &asked {
        workspace.until_phase(run, "awaiting_approval");
    }
    let ended = AtomicBool::new(false);
    let swapper = Swapper {
        root: &workspace.root,
        trees: workspace.state().join("trees"),
        ended: &ended,
    };
    std::thread::scope(|scope| {
        scope.spawn(|| swapper.run());
        for run in &asked {
            workspace.run(&["approve", run]);
        }
        ended.store(true, Ordering::Relaxed);
    });
    daemon.stop();
    let said = fs::read_to_string(workspace.home.join("out")).unwrap();
    assert!(said.lines().all(|line| line == "good"), "{said}");
}

#[test]
fn a_script_finds_what_lies_next_to_it_and_above_it() {
    let text = "here=$PWD\nset -e\ncd \"$(dirname \"$0\")/..\"\n. ./lib/common.sh\n. ./bin/near.sh\n\
                cat \"$(dirname \"$(readlink -f \"$0\")\")/../../../top.txt\" > /dev/null\n";
    let skills = "  - {id: reads, description: d, run: {script: bin/reads.sh, interpreter: sh}}
  - {id: changes, description: d, mutating: true, run: {script: bin/changes.sh, interpreter: sh}}
  - {id: fresh, description: d, mutating: true, run: {script: bin/fresh.sh, interpreter: sh}}
";
    let workspace = Workspace::with_skills(skills);
    for (path, text) in [
        ("workers/w/lib/common.sh", "common=1\n".to_owned()),
        ("workers/w/bin/near.sh", "near=2\n".to_owned()),
        ("top.txt", "top\n".to_owned()),
        (
            "workers/w/bin/reads.sh",
            format!("{text}git log --oneline > /dev/null\necho \"$common$near\"\n"),
        ),
        (
            "workers/w/bin/changes.sh",
            format!(
                "{text}cd ../..; test -z \"$(git status --porcelain)\"; echo \"$common$near\" > made.txt; git add -A\n"
            ),
        ),
    ] {
        workspace.write(path, &text);
    }
    workspace.commit_all("scripts");
    let read = workspace.run(&["run", "reads"]).expect_code(0);
    assert!(read.stderr.contains("12"), "{read:?}");
    workspace.run(&["run", "changes"]).expect_code(0);
    let changed = workspace.git(&["show", "--name-only", "--format=", "HEAD"]);
    assert_eq!(changed, "made.txt\n");
    assert_eq!(workspace.read("made.txt").unwrap(), "12\n");
    // Uncommitted, it runs from the checkout, next to which it can write nothing.
    workspace.write(
        "workers/w/bin/fresh.sh",
        &format!("{text}! git status 2> /dev/null\necho \"$common$near\" > \"$here/fresh.txt\"\n"),
    );
    workspace.run(&["run", "fresh"]).expect_code(0);
    assert_eq!(workspace.read("fresh.txt").unwrap(), "12\n");
}

/// An approval is for the bytes, also across a restart of the engine.
#[test]
fn an_approved_script_runs_as_it_was_approved_after_a_restart() {
    let workspace = Workspace::with_skills(SKILLS);
    let path = "workers/w/bin/go.sh";
    write_script(&workspace, path, "#!/bin/sh\necho approved\n");
    workspace.commit_all("script");
    let daemon = Daemon::start(&workspace);
    let asked = workspace.run(&["run", "asks", "--json"]).value();
    let run = asked["summary"]["run"].as_str().unwrap().to_owned();
    daemon.stop();
    write_script(&workspace, path, "#!/bin/sh\necho other\n");
    let daemon = Daemon::start(&workspace);
    let refused = workspace.run(&["approve", &run]).expect_code(1);
    let said = refused.stdout + &refused.stderr;
    assert!(
        said.contains("script_changed") && !said.contains("other"),
        "{said}"
    );
    daemon.stop();
}
