//! What a power cut leaves of a run's own repository: the run repeats its skill or is unknown, the message is of the
//! tree, and the next run makes it anew. What is torn in the real repository is named as that.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::workspace::Workspace;
use crate::workspace::daemon::Daemon;
use crate::workspace::gate::Obstacle;
use crate::workspace::observed::files_below;

/// The skills stop their engine where it records what they left.
fn workspace() -> (Workspace, Obstacle) {
    let workspace = Workspace::new();
    let obstacle = Obstacle::configuration(&workspace);
    let stop = obstacle.text();
    let run = "echo own >> tracked.txt; git commit -qam own; echo more > new.txt";
    let once = format!("test -e $HOME/stopped || {{ touch $HOME/stopped; {stop}; }}");
    workspace.furnish(&format!(
        "
  - {{id: once, description: d, mutating: true, run: \"{run}; {once}\"}}
  - {{id: again, description: d, mutating: true, idempotent: true, run: \"{run}; {once}\"}}
  - {{id: next, description: d, mutating: true, run: \"git log -1; echo next > next.txt\"}}
"
    ));
    (workspace, obstacle)
}

/// Ends the engine after the command of a run has ended, tears something, and starts the next one.
fn torn(
    skill: &str,
    tear: impl FnOnce(&Workspace, &Path),
) -> (Workspace, Daemon, String, (i32, Value)) {
    let (workspace, obstacle) = workspace();
    let daemon = Daemon::start(&workspace);
    let run = workspace.submit(&[skill]);
    // What is recorded first is read with git's configuration.
    workspace.wait_for_phase(&run, "verifying");
    daemon.kill();
    obstacle.remove();
    let tree = workspace.state().join("trees/1/repository/.git");
    assert!(tree.is_dir());
    tear(&workspace, &tree);
    let daemon = Daemon::start(&workspace);
    let ended = workspace.wait(&run);
    (workspace, daemon, run, ended)
}

fn zero(file: &Path) {
    let bytes = fs::metadata(file).unwrap().len();
    let _ = fs::remove_file(file);
    fs::write(file, vec![0; usize::try_from(bytes).unwrap()]).unwrap();
}

fn truncate(file: &Path) {
    let bytes = fs::read(file).unwrap();
    let _ = fs::remove_file(file);
    fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
}

fn empty(file: &Path) {
    let _ = fs::remove_file(file);
    fs::write(file, "").unwrap();
}

fn objects(git_dir: &Path) -> Vec<PathBuf> {
    let found = files_below(&git_dir.join("objects"), &|_| true);
    let info = git_dir.join("objects/info");
    found
        .into_iter()
        .filter(|file| !file.starts_with(&info))
        .collect()
}

fn pack(workspace: &Workspace, git_dir: &Path) {
    // The engine may have been killed while it put this file back.
    let alternates = git_dir.join("objects/info/alternates");
    let objects = workspace.root.join(".git/objects");
    fs::write(alternates, format!("{}\n", objects.display())).unwrap();
    let packed = workspace
        .program("git")
        .arg("--git-dir")
        .arg(git_dir)
        .args(["repack", "-adlq"])
        .output()
        .unwrap();
    assert!(packed.status.success(), "{packed:?}");
}

type Tear = fn(&Workspace, &Path);

/// What a run cannot be told from afterwards.
const LOST: [(&str, Tear); 8] = [
    ("loose objects without their content", |_, git| {
        each_object(git, empty);
    }),
    ("loose objects of zeros", |_, git| each_object(git, zero)),
    ("loose objects cut off", |_, git| each_object(git, truncate)),
    ("loose objects that are gone", |_, git| {
        each_object(git, |file| fs::remove_file(file).unwrap());
    }),
    ("a pack and its index of zeros", |w, git| {
        pack(w, git);
        each_object(git, zero);
    }),
    ("an index of a pack cut off", |w, git| {
        pack(w, git);
        each_object(git, |file| {
            if file.extension().is_some_and(|end| end == "idx") {
                truncate(file);
            }
        });
    }),
    ("a `HEAD` of zeros", |_, git| zero(&git.join("HEAD"))),
    ("a branch without its content", |_, git| {
        empty(&git.join("refs/heads/main"));
    }),
];

fn each_object(git: &Path, damage: impl Fn(&Path)) {
    for file in objects(git) {
        damage(&file);
    }
}

#[test]
fn a_run_whose_tree_is_torn_is_unknown_and_the_next_one_has_a_new_tree() {
    for (what, tear) in LOST {
        let (workspace, daemon, run, (code, detail)) = torn("once", tear);
        assert_eq!(code, 9, "{what}: {detail}");
        assert_eq!(
            detail["summary"]["outcome"]["why"], "tree_lost",
            "{what}: {detail}"
        );
        let said = detail.to_string();
        assert!(said.contains("the next run recreates"), "{what}: {said}");
        assert!(
            !said.contains("git fsck") && !said.contains("seems to be damaged"),
            "{what}: {said}"
        );
        assert_eq!(workspace.git(&["status", "--porcelain"]), "");
        assert!(workspace.committed_runs().is_empty());
        workspace.git(&["fsck", "--strict"]);
        let (code, detail) = workspace.wait(&workspace.submit(&["next"]));
        assert_eq!(code, 0, "{what}: {detail}");
        workspace
            .run(&["resolve", &run, "--as", "failed", "--note", "torn"])
            .expect_code(0);
        daemon.stop();
    }
}

#[test]
fn a_skill_that_may_be_repeated_is_when_its_tree_is_torn() {
    for (what, tear) in LOST {
        let (workspace, daemon, run, (code, detail)) = torn("again", tear);
        assert_eq!(code, 0, "{what}: {detail}");
        assert_eq!(detail["summary"]["attempts"], 2, "{what}: {detail}");
        assert_eq!(workspace.committed_runs(), [run], "{what}");
        assert_eq!(workspace.read("new.txt").unwrap(), "more\n");
        assert_eq!(
            workspace.read("tracked.txt").unwrap(),
            "as committed\nown\n"
        );
        workspace.git(&["fsck", "--strict"]);
        daemon.stop();
    }
}

#[test]
fn what_is_made_again_from_the_files_of_a_torn_tree_is_not_lost() {
    let table: [(&str, Tear); 3] = [
        (
            "an object of the result that was being written",
            |w, git| {
                let name = w
                    .program("git")
                    .args(["hash-object", "--stdin"])
                    .stdin(std::process::Stdio::piped())
                    .stdout(std::process::Stdio::piped())
                    .spawn();
                let mut hash = name.unwrap();
                std::io::Write::write_all(hash.stdin.as_mut().unwrap(), b"more\n").unwrap();
                let name = String::from_utf8(hash.wait_with_output().unwrap().stdout).unwrap();
                let (fan, rest) = name.trim().split_at(2);
                fs::create_dir_all(git.join("objects").join(fan)).unwrap();
                fs::write(git.join("objects").join(fan).join(rest), "").unwrap();
            },
        ),
        ("an index of zeros", |_, git| zero(&git.join("index"))),
        ("settings of zeros", |_, git| zero(&git.join("config"))),
    ];
    for (what, tear) in table {
        let (workspace, daemon, run, (code, detail)) = torn("once", tear);
        assert_eq!(code, 0, "{what}: {detail}");
        assert_eq!(workspace.committed_runs(), [run], "{what}");
        assert_eq!(workspace.read("new.txt").unwrap(), "more\n");
        workspace.git(&["fsck", "--strict"]);
        daemon.stop();
    }
}

#[test]
fn a_torn_object_of_the_repository_itself_is_named_as_that() {
    let (workspace, daemon, _, (code, detail)) = torn("once", |workspace, _| {
        let tree = workspace.git(&["rev-parse", "HEAD^{tree}"]);
        let (fan, rest) = tree.trim().split_at(2);
        zero(&workspace.root.join(".git/objects").join(fan).join(rest));
    });
    assert_ne!(code, 0, "{detail}");
    let message = detail["summary"]["outcome"]["failure"]["message"]
        .as_str()
        .unwrap_or_default();
    let objects = workspace.root.join(".git/objects");
    assert!(
        message.contains(&*objects.to_string_lossy()) && message.contains("git fsck"),
        "{detail}"
    );
    daemon.stop();
}
