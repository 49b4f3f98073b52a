//! One state: how it is built, which skill runs in it, and how that ends.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::workspace::{Workspace, skip};

/// How a run in a state ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ends {
    /// With one commit of these paths on this branch.
    Lands(&'static str, &'static [&'static str]),
    /// Well, with nothing to commit.
    WithNothing,
    /// Well, with this ignored output in the checkout and nothing to commit.
    Keeps(&'static str),
    /// Failed in this step with this code; nothing has changed.
    Fails(&'static str, &'static str),
    /// Not begun, with this code; nothing has changed.
    Refused(&'static str),
}

/// A state.
pub(crate) struct Row {
    name: &'static str,
    skill: &'static str,
    /// Builds it; answers false, with its reason printed, where it cannot be built here.
    build: fn(&Workspace) -> bool,
    /// The workspace, from the repository that every row begins with.
    at: &'static str,
    ends: Ends,
}

/// A state that can be built everywhere, by shell text, in the repository itself.
pub(crate) const fn row(
    name: &'static str,
    skill: &'static str,
    build: fn(&Workspace) -> bool,
    ends: Ends,
) -> Row {
    Row {
        name,
        skill,
        build,
        at: ".",
        ends,
    }
}

impl Row {
    /// The same with the workspace elsewhere.
    pub(crate) const fn at(self, at: &'static str) -> Row {
        Row { at, ..self }
    }
}

const STATUS: &str = "git status --porcelain -uall";

const SKILLS: &str = r#"
  - {id: write, description: d, mutating: true, run: "echo out > out.md"}
  - {id: edit, description: d, mutating: true, run: "echo more >> tracked.txt"}
  - {id: remove, description: d, mutating: true, run: "rm tracked.txt"}
  - {id: stored, description: d, mutating: true, filtered: stored, run: "echo out > out.md"}
  - {id: on-main, description: d, mutating: true, branch: main, run: "echo out > out.md"}
  - {id: on-side, description: d, mutating: true, branch: side, run: "echo out > out.md"}
  - {id: on-missing, description: d, mutating: true, branch: missing, run: "echo out > out.md"}
  - {id: makes, description: d, mutating: true, branch: {name: made, create: true}, run: "echo out > out.md"}
  - {id: makes-below, description: d, mutating: true, branch: {name: main/below, create: true}, run: "echo out > out.md"}
  - {id: makes-above, description: d, mutating: true, branch: {name: team, create: true}, run: "echo out > out.md"}
  - {id: large, description: d, mutating: true, run: "echo large > large.bin"}
  - {id: large-stored, description: d, mutating: true, filtered: stored, run: "echo large > large.bin"}
  - {id: returns, description: d, mutating: true, run: "printf 'one\\r\\ntwo\\r\\n' > out.md"}
  - {id: case, description: d, mutating: true, run: "mv tracked.txt Tracked.txt"}
  - {id: case-too, description: d, mutating: true, run: "echo other > TRACKED.TXT"}
  - {id: below, description: d, mutating: true, run: "mkdir -p dir; echo new > dir/new.txt"}
  - {id: idle, description: d, mutating: true, run: "cat tracked.txt > copy; cp copy tracked.txt; rm copy"}
  - {id: forms, description: d, mutating: true, run: "echo x > tool.sh; chmod +x tool.sh; ln -s ../outside link; chmod +x tracked.txt"}
  - {id: huge, description: d, mutating: true, run: "head -c 48M /dev/zero > huge.bin"}
  - {id: nested, description: d, mutating: true, run: "git init -q inner; echo x > inner/x"}
  - {id: in-submodule, description: d, mutating: true, run: "mkdir -p sub; echo run > sub/inner.txt"}
  - {id: moves-submodule, description: d, mutating: true, run: "git update-index --cacheinfo 160000,$(cat moved),sub"}
  - {id: removes-submodule, description: d, mutating: true, sandbox: off, run: "git rm -q sub"}
  - {id: at-submodule, description: d, mutating: true, cwd: sub, run: "echo out > out.md"}
  - {id: in-inner, description: d, mutating: true, cwd: inner, run: "echo out > out.md"}
  - {id: switches, description: d, mutating: true, run: "git switch -q -c elsewhere; echo out > out.md"}
  - {id: unmerged, description: d, mutating: true, run: "git merge -q side || true"}
  - id: meddles
    description: d
    mutating: true
    run: |
      git config core.bare true; git config core.bare false; git config user.name Eve
      mkdir -p .git/hooks; printf '#!/bin/sh\ntouch "$HOME/hook-ran"\n' > .git/hooks/post-index-change
      chmod +x .git/hooks/post-index-change; git stash pop; git sparse-checkout set nothing
      git sparse-checkout disable; git tag meddled; git update-index --skip-worktree tracked.txt
      git branch -D side; echo out > out.md
  - id: ignored
    description: d
    mutating: true
    interface: {outputs: [{name: r, type: markdown, destination: "ignored/r.md"}]}
    run: "echo '# r' > {r}"
  - id: both
    description: d
    mutating: true
    interface: {outputs: [{name: r, type: markdown, destination: "ignored/r.md"}]}
    run: "echo '# r' > {r}; echo out > out.md"
"#;

/// Runs a shell text in the repository; it must succeed.
pub(crate) fn sh(workspace: &Workspace, text: &str) -> bool {
    let text = format!("set -e\n{text}");
    let done = workspace
        .program("sh")
        .env("GIT_EDITOR", "true")
        .args(["-c", &text])
        .output()
        .unwrap();
    assert!(done.status.success(), "{text}: {done:?}");
    true
}

/// As `sh`, where it may be that this git cannot do it.
pub(crate) fn sh_if_possible(workspace: &Workspace, probe: &str, text: &str) -> bool {
    let probed = workspace.program("sh").args(["-c", probe]).output();
    if !probed.is_ok_and(|done| done.status.success()) {
        skip(&format!("`{probe}` does not work here"));
        return false;
    }
    sh(workspace, text)
}

/// Begins the repository anew, as `git init` does with these options.
pub(crate) fn begin_anew(options: &str) -> String {
    format!("rm -rf .git; git init -q {options} .; git add -A; git commit -q -m begin")
}

/// What a run that does not land must leave as it is.
#[derive(Debug, PartialEq, Eq)]
struct Seen(BTreeMap<String, String>);

impl Seen {
    fn git(workspace: &Workspace, at: &Path, arguments: &[&str]) -> String {
        let mut command = workspace.program("git");
        // Neither hooks nor a monitor of the state run, and looking changes nothing.
        command.args([
            "-c",
            "core.fsmonitor=false",
            "-c",
            "core.hooksPath=/dev/null",
        ]);
        command.args(arguments).current_dir(at);
        let done = command.env("GIT_OPTIONAL_LOCKS", "0").output().unwrap();
        String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
    }

    fn of(workspace: &Workspace, at: &Path) -> Seen {
        let mut all = BTreeMap::new();
        for arguments in [
            &["ls-files", "-s", "-v"][..],
            &["status", "--porcelain", "-uall"],
            &["config", "--list", "--local"],
            &["symbolic-ref", "HEAD"],
            &["stash", "list"],
        ] {
            let said = Seen::git(workspace, at, arguments);
            all.insert(format!("git {}", arguments.join(" ")), said);
        }
        let form = "--format=%(refname) %(objectname) %(symref)";
        for line in Seen::git(workspace, at, &["for-each-ref", form]).lines() {
            let (name, rest) = line.split_once(' ').unwrap();
            if !name.starts_with("refs/workerctl/") {
                all.insert(name.to_owned(), rest.trim().to_owned());
            }
        }
        let git_dir = PathBuf::from(Seen::git(
            workspace,
            at,
            &["rev-parse", "--absolute-git-dir"],
        ));
        files(at, at, &mut all);
        if git_dir.is_absolute() {
            // Locks, and what git has under way; the rest of it is told above.
            for entry in fs::read_dir(&git_dir).unwrap().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                if entry.path().is_file() && name != "index" && !name.starts_with("workerctl") {
                    all.insert(format!("in .git: {name}"), content(&entry.path()));
                }
            }
        }
        Seen(all)
    }

    /// What is different afterwards.
    fn differences(&self, after: &Seen) -> Vec<String> {
        let keys = self.0.keys().chain(after.0.keys());
        let mut all: Vec<_> = keys
            .filter(|key| self.0.get(*key) != after.0.get(*key))
            .map(|key| {
                let (old, new) = (self.0.get(key), after.0.get(key));
                format!("{key}: {old:?} -> {new:?}")
            })
            .collect();
        all.sort();
        all.dedup();
        all
    }
}

fn content(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    if bytes.len() > 4_096 {
        return format!("{} bytes, {}", bytes.len(), bytes[bytes.len() / 2]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// All files below a directory but for those of git and of the engine, with mode and content.
fn files(root: &Path, directory: &Path, all: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        let inner = path.strip_prefix(root).unwrap();
        let own = [
            ".git",
            ".workerctl",
            "workspace/threads",
            "workspace/metrics",
        ];
        if own.iter().any(|own| inner == Path::new(own)) {
            continue;
        }
        let kind = entry.file_type().unwrap();
        let told = if kind.is_symlink() {
            format!("-> {}", fs::read_link(&path).unwrap().display())
        } else if kind.is_file() {
            let mode = entry.metadata().unwrap().permissions().mode();
            format!("{mode:o} {}", content(&path))
        } else {
            if kind.is_dir() && inner != Path::new("workspace") {
                files(root, &path, all);
            }
            continue;
        };
        all.insert(inner.display().to_string(), told);
    }
}

/// What became of a run: how it ended, in the words of the table, and the run.
fn ended(workspace: &Workspace, at: &Path, skill: &str) -> (String, Value) {
    let mut command = workspace.program(env!("CARGO_BIN_EXE_workerctl"));
    command
        .arg("-C")
        .arg(at)
        .arg("--state-dir")
        .arg(workspace.state());
    command.args(["run", skill, "--json"]).current_dir(at);
    let done = workspace.start(&mut command).end();
    let Ok(detail) = serde_json::from_str::<Value>(&done.stdout) else {
        let last = done.stderr.lines().last().unwrap_or_default();
        let told: Value = serde_json::from_str(last).unwrap_or_else(|_| panic!("{done:?}"));
        let code = told["error"]["code"].as_str().unwrap_or_default();
        return (format!("Refused({code:?})"), told);
    };
    let outcome = &detail["summary"]["outcome"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let how = match text(&outcome["kind"]).as_str() {
        "succeeded" => "Succeeded".to_owned(),
        "failed" => {
            let failure = &outcome["failure"];
            format!(
                "Fails({:?}, {:?})",
                text(&failure["step"]),
                text(&failure["code"])
            )
        }
        other => format!("Ended({other:?})"),
    };
    (how, detail)
}

/// The repository that every state begins with.
pub(crate) fn workspace() -> Workspace {
    let workspace = Workspace::new();
    workspace.write("workerctl.yaml", "land_wait: 300ms\n");
    workspace.write("dir/c.txt", "c\n");
    workspace.furnish(SKILLS);
    workspace
}

/// What is wrong with how a run in this state ended.
fn problems(row: &Row) -> Vec<String> {
    let workspace = workspace();
    if !(row.build)(&workspace) {
        return Vec::new();
    }
    let at = workspace.root.join(row.at).canonicalize().unwrap();
    let before = Seen::of(&workspace, &at);
    let (how, detail) = ended(&workspace, &at, row.skill);
    let after = Seen::of(&workspace, &at);
    let differences = before.differences(&after);
    let mut wrong = Vec::new();
    match row.ends {
        Ends::Lands(branch, paths) => {
            if how == "Succeeded" {
                wrong.extend(landed(&workspace, &at, (branch, paths), &before, &detail));
                wrong.extend(beside(&differences, branch, paths));
                wrong.extend(status(branch, paths, &before, &after));
            }
        }
        Ends::Keeps(path) => {
            let own = format!("{path}: None -> ");
            let (kept, more): (Vec<_>, Vec<_>) = differences
                .into_iter()
                .partition(|one| one.starts_with(&own));
            wrong.extend(more);
            if kept.is_empty() {
                wrong.push(format!("`{path}` is not there"));
            }
        }
        Ends::WithNothing | Ends::Fails(..) | Ends::Refused(_) => wrong.extend(differences),
    }
    let expected = match row.ends {
        Ends::Lands(..) | Ends::WithNothing | Ends::Keeps(_) => "Succeeded".to_owned(),
        Ends::Fails(step, code) => format!("Fails({step:?}, {code:?})"),
        Ends::Refused(code) => format!("Refused({code:?})"),
    };
    if how != expected {
        let outcome = &detail["summary"]["outcome"]["failure"];
        let told = if outcome.is_null() {
            &detail["error"]
        } else {
            outcome
        };
        wrong.insert(0, format!("{how} where {expected} is expected: {told}"));
    }
    if workspace.home.join("hook-ran").exists() {
        wrong.push("a hook ran".to_owned());
    }
    wrong
}

/// What is wrong with the branch after a run that succeeded.
fn landed(
    workspace: &Workspace,
    at: &Path,
    (branch, paths): (&str, &[&str]),
    before: &Seen,
    detail: &Value,
) -> Vec<String> {
    let git = |arguments: &[&str]| Seen::git(workspace, at, arguments);
    let mut wrong = Vec::new();
    let full = format!("refs/heads/{branch}");
    let commit = detail["summary"]["commit"].as_str().unwrap_or_default();
    let tip = git(&["rev-parse", &full]);
    if tip != commit || commit.is_empty() {
        wrong.push(format!("`{branch}` is at {tip:?}, the run says {commit:?}"));
    }
    let parents = git(&["log", "-1", "--format=%P", &full]);
    let is_unborn = before.0["git symbolic-ref HEAD"] == full;
    // One that is made begins where the branch is that is checked out.
    let base = (!is_unborn)
        .then(|| before.0.get("refs/heads/main"))
        .flatten();
    let tip_before = before.0.get(&full).or(base).map_or("", String::as_str);
    if parents != tip_before {
        wrong.push(format!(
            "its parents are {parents:?}, the branch was at {tip_before:?}"
        ));
    }
    let empty = git(&["hash-object", "-t", "tree", "/dev/null"]);
    let from = if parents.is_empty() { &empty } else { &parents };
    let changed = git(&[
        "diff-tree",
        "-r",
        "--no-renames",
        "--name-only",
        from,
        &full,
    ]);
    if changed.lines().collect::<Vec<_>>() != paths {
        wrong.push(format!("the commit changes {changed:?}"));
    }
    let run = git(&[
        "log",
        "-1",
        "--format=%(trailers:key=Run-Id,valueonly)",
        &full,
    ]);
    if detail["summary"]["run"] != *run {
        wrong.push(format!("the commit is of the run {run:?}"));
    }
    let fsck = git(&["fsck", "--no-dangling"]);
    if !fsck.is_empty() {
        wrong.push(format!("git fsck: {fsck}"));
    }
    wrong
}

/// What has changed beside the branch and the paths of the commit.
fn beside(differences: &[String], branch: &str, paths: &[&str]) -> Vec<String> {
    let allowed = |line: &&String| {
        let named = |path: &str| line.starts_with(&format!("{path}: "));
        let told_apart = ["git ls-files -s -v", STATUS, "ignored/r.md"];
        let is_told = told_apart.iter().any(|name| named(name));
        let of_commit = |path: &&str| named(path) || named(path.rsplit('/').next().unwrap());
        is_told || paths.iter().any(of_commit) || named(&format!("refs/heads/{branch}"))
    };
    let wrong = differences.iter().filter(|line| !allowed(line));
    wrong.cloned().collect()
}

/// What is wrong with the state of the checkout: the paths of a commit on its branch are clean, and all others
/// as they were.
fn status(branch: &str, paths: &[&str], before: &Seen, after: &Seen) -> Vec<String> {
    let is_checked_out = before.0["git symbolic-ref HEAD"] == format!("refs/heads/{branch}");
    let is_of_commit = |line: &str| is_checked_out && paths.iter().any(|path| line.ends_with(path));
    let expected: Vec<&str> = before.0[STATUS]
        .lines()
        .filter(|line| !is_of_commit(line))
        .collect();
    let found: Vec<&str> = after.0[STATUS].lines().collect();
    let wrong =
        (found != expected).then(|| format!("status: {found:?} where {expected:?} is expected"));
    wrong.into_iter().collect()
}

/// Asserts that runs in all of these states end as the table says.
pub(crate) fn check(rows: &[Row]) {
    let mut wrong = Vec::new();
    for row in rows {
        let name = row.name;
        let found = problems(row);
        wrong.extend(
            found
                .iter()
                .map(|one| format!("{name} ({}): {one}", row.skill)),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("{} states", rows.len());
}
