//! What the person does: edits, and the commands of git that people use every day.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::person::checks::marks_in;
use crate::workspace::{Dice, Workspace};

/// Files of the person's own.
pub(crate) const FILES: u64 = 8;

/// How often a command of git is tried while a lock is in its way.
const TRIES: usize = 300;

/// The person.
pub(crate) struct Person<'w> {
    workspace: &'w Workspace,
    dice: Dice,
    /// All marks that were written, and those that the person has removed on purpose.
    pub(crate) written: BTreeSet<String>,
    pub(crate) removed: BTreeSet<String>,
    /// The messages of all commits, and of those that the person has taken off again.
    pub(crate) commits: BTreeSet<String>,
    pub(crate) dropped: BTreeSet<String>,
    /// What `HEAD` holds.
    pub(crate) head: String,
    pub(crate) edits: usize,
    pub(crate) actions: usize,
    /// How often git was tried again.
    pub(crate) again: usize,
    /// How often each action was done.
    pub(crate) done: BTreeMap<&'static str, usize>,
    /// What was done in turn, for who reads of a failure.
    pub(crate) trail: Vec<String>,
    /// Another work tree, while there is one.
    pub(crate) linked: Option<PathBuf>,
    serial: usize,
}

impl<'w> Person<'w> {
    /// A person whose repository has a remote, to which a colleague pushes.
    pub(crate) fn new(workspace: &'w Workspace, dice: Dice) -> Person<'w> {
        workspace.git(&["clone", "-q", "--bare", ".", "../origin.git"]);
        workspace.git(&["remote", "add", "origin", "../origin.git"]);
        workspace.git(&["clone", "-q", "../origin.git", "../colleague"]);
        Person {
            workspace,
            dice,
            written: BTreeSet::new(),
            removed: BTreeSet::new(),
            commits: BTreeSet::new(),
            dropped: BTreeSet::new(),
            head: workspace.read(".git/HEAD").unwrap(),
            edits: 0,
            actions: 0,
            again: 0,
            done: BTreeMap::new(),
            trail: Vec::new(),
            linked: None,
            serial: 0,
        }
    }

    /// Does one thing.
    pub(crate) fn act(&mut self) {
        let head = self.workspace.read(".git/HEAD");
        assert_eq!(head.as_ref(), Some(&self.head), "`HEAD` was moved");
        self.actions += 1;
        let (name, did) = match self.dice.below(100) {
            0..48 => ("edit", self.edit()),
            48..52 => ("delete", self.delete()),
            52..68 => ("commit", self.commit()),
            68..71 => ("switch -c", self.branch_off()),
            71..79 => ("switch", self.switch()),
            79..83 => ("stash", self.stash()),
            83..88 => ("stash pop", self.pop()),
            88..90 => ("rebase", self.rebase()),
            90..94 => ("pull", self.pull()),
            94..95 => ("gc", self.git(&["gc", "-q", "--prune=now"]).is_ok()),
            95..98 => ("worktree", self.work_tree()),
            _ => ("reset --hard", self.reset()),
        };
        *self.done.entry(name).or_default() += usize::from(did);
        self.trail
            .push(format!("{name} in {}: {did}", self.head.trim()));
        self.head = self.workspace.read(".git/HEAD").unwrap();
    }

    fn next(&mut self, kind: &str) -> String {
        self.serial += 1;
        format!("{kind}{}", self.serial)
    }

    /// Runs git in the repository; a lock that is in its way for moments is waited for.
    fn git(&mut self, arguments: &[&str]) -> Result<String, String> {
        let root = self.workspace.root.clone();
        self.git_in(&root, arguments)
    }

    fn git_in(&mut self, at: &Path, arguments: &[&str]) -> Result<String, String> {
        let mut said = Err(String::new());
        for nth in 1..=TRIES {
            said = self.git_once(at, arguments);
            let Err(text) = &said else { return said };
            self.trail.push(format!("  git {arguments:?}: {text}"));
            let locked = [".lock': File exists", "cannot lock ref", "unable to lock"];
            if !locked.iter().any(|one| text.contains(one)) {
                return said;
            }
            self.again += 1;
            if nth % 10 == 0 {
                // Ends what a daemon has left that was killed.
                self.workspace.run(&["status"]);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("git {arguments:?} stays locked: {said:?}");
    }

    fn git_once(&self, at: &Path, arguments: &[&str]) -> Result<String, String> {
        let mut command = self.workspace.program("git");
        command
            .args(arguments)
            .current_dir(at)
            .env("GIT_EDITOR", "true");
        let done = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if done.status.success() {
            return Ok(text(&done.stdout));
        }
        Err(text(&done.stderr) + &text(&done.stdout))
    }

    fn is_clean(&mut self) -> bool {
        self.git(&["status", "--porcelain"])
            .is_ok_and(|text| text.is_empty())
    }

    fn is_on_main(&self) -> bool {
        self.head == "ref: refs/heads/main\n"
    }

    fn some_file(&mut self) -> String {
        match self.dice.below(FILES + 3) {
            own if own < FILES => format!("person-{own}.txt"),
            0..=9 => "shared.txt".to_owned(),
            _ => self.next("notes/note-") + ".md",
        }
    }

    fn edit(&mut self) -> bool {
        let mark = self.next("mark-P");
        let path = self.some_file();
        let mut root = &self.workspace.root;
        if let Some(linked) = &self.linked
            && self.dice.below(3) == 0
        {
            root = linked;
        }
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let file = OpenOptions::new().append(true).create(true).open(&path);
        writeln!(file.unwrap(), "{mark}").unwrap();
        self.trail.push(format!("  {mark} in {}", path.display()));
        self.written.insert(mark);
        self.edits += 1;
        true
    }

    fn delete(&mut self) -> bool {
        let path = self
            .workspace
            .root
            .join(format!("person-{}.txt", self.dice.below(FILES)));
        // Taken away first, so that what is read is what goes.
        let away = self.workspace.home.join("away");
        if fs::rename(path, &away).is_err() {
            return false;
        }
        self.removed
            .extend(marks_in(&fs::read_to_string(&away).unwrap()));
        true
    }

    fn commit(&mut self) -> bool {
        let root = self.workspace.root.clone();
        self.commit_in(&root)
    }

    fn commit_in(&mut self, at: &Path) -> bool {
        let message = self.next("person ");
        let added = self.dice.below(3) == 0 || self.git_in(at, &["add", "-A"]).is_ok();
        let done = self.git_in(at, &["commit", "-q", "-a", "-m", &message]);
        if done.is_ok() {
            self.commits.insert(message);
        }
        added && done.is_ok()
    }

    fn branch_off(&mut self) -> bool {
        let name = self.next("own-");
        self.git(&["switch", "-q", "-c", &name]).is_ok()
    }

    fn switch(&mut self) -> bool {
        let listed = self.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads"]);
        let mut names: Vec<String> = listed.unwrap().lines().map(str::to_owned).collect();
        // Half of all ways lead to main.
        let to_main = self.dice.below(2) == 0;
        names.retain(|name| (name == "main") == to_main);
        if names.is_empty() || !self.is_clean() && !self.commit() {
            return false;
        }
        let nth = self.dice.below(u64::try_from(names.len()).unwrap());
        let name = names.swap_remove(usize::try_from(nth).unwrap());
        let done = self.git(&["switch", "-q", &name]).is_ok();
        let root = self.workspace.root.clone();
        done && self.follow(&root)
    }

    /// A branch that moves between git's looks at it leaves the old files, as when anybody else moves it: git
    /// guards against nobody.
    fn follow(&mut self, at: &Path) -> bool {
        while self.git_in(at, &["diff", "--cached", "--quiet"]).is_err() {
            *self.done.entry("made to follow").or_default() += 1;
            let restored = [
                "restore",
                "--source=HEAD",
                "--staged",
                "--worktree",
                "--",
                ".",
            ];
            self.git_in(at, &restored).unwrap();
        }
        true
    }

    fn stash(&mut self) -> bool {
        let line: &[&str] = match self.dice.below(2) {
            0 => &["stash", "-q"],
            _ => &["stash", "-q", "-u"],
        };
        self.git(line).is_ok()
    }

    fn pop(&mut self) -> bool {
        let done = self.git(&["stash", "pop", "-q"]);
        let root = self.workspace.root.clone();
        let is_resolved = done.is_err() && self.resolve(&root);
        // Untracked files that are in the way stay in the stash alone.
        let is_whole = |said: &String| !said.contains("could not restore untracked");
        if is_resolved && done.as_ref().is_err_and(is_whole) {
            self.git(&["stash", "drop", "-q"]).unwrap();
            return true;
        }
        done.is_ok()
    }

    /// Keeps both sides of each conflict; false: there was none.
    fn resolve(&mut self, at: &Path) -> bool {
        let listed = self.git_in(at, &["diff", "--name-only", "--diff-filter=U"]);
        let listed = listed.unwrap();
        for name in listed.lines() {
            if let Ok(text) = fs::read_to_string(at.join(name)) {
                let signs = ["<<<<<<<", "|||||||", "=======", ">>>>>>>"];
                let is_text = |line: &&str| !signs.iter().any(|sign| line.starts_with(sign));
                let lines: Vec<&str> = text.lines().filter(is_text).collect();
                fs::write(at.join(name), lines.join("\n") + "\n").unwrap();
            }
            self.git_in(at, &["add", "-A", "--", name]).unwrap();
        }
        !listed.is_empty()
    }

    fn rebase(&mut self) -> bool {
        if self.is_on_main() || !self.is_clean() && !self.commit() {
            return false;
        }
        let root = self.workspace.root.clone();
        let done = self.git_once(&root, &["rebase", "-q", "main"]);
        if root.join(".git/rebase-merge").exists() {
            self.git(&["rebase", "--abort"]).unwrap();
        }
        done.is_ok()
    }

    /// The colleague pushes, and the person pulls and pushes.
    fn pull(&mut self) -> bool {
        let colleague = self.workspace.root.with_file_name("colleague");
        let mark = self.next("mark-C");
        self.git_in(&colleague, &["fetch", "-q"]).unwrap();
        self.git_in(&colleague, &["reset", "-q", "--hard", "origin/main"])
            .unwrap();
        let file = colleague.join("colleague.txt");
        let text = fs::read_to_string(&file).unwrap();
        fs::write(file, format!("{text}{mark}\n")).unwrap();
        self.git_in(&colleague, &["commit", "-q", "-a", "-m", "colleague"])
            .unwrap();
        self.git_in(&colleague, &["push", "-q"]).unwrap();
        if !self.is_on_main() || !self.is_clean() {
            return false;
        }
        let root = self.workspace.root.clone();
        let done = self.git_once(
            &root,
            &["pull", "-q", "--no-rebase", "--no-edit", "origin", "main"],
        );
        if let Err(said) = &done {
            if self.resolve(&root) {
                self.git(&["commit", "-q", "--no-edit"]).unwrap();
            } else if root.join(".git/MERGE_HEAD").exists() {
                self.git(&["merge", "--abort"]).unwrap();
            } else {
                *self.done.entry("pull refused").or_default() += 1;
                let begun = said.contains("but expected");
                return begun && self.follow(&root);
            }
        }
        self.git(&["push", "-q", "origin", "main"]).is_ok()
    }

    /// Makes another work tree, or ends the one that there is.
    fn work_tree(&mut self) -> bool {
        let Some(linked) = self.linked.clone() else {
            let at = self.workspace.root.with_file_name("linked");
            let place = at.to_str().unwrap();
            let name = self.next("own-");
            let done = if self.is_on_main() {
                self.git(&["worktree", "add", "-q", "-b", &name, place])
            } else {
                self.git(&["worktree", "add", "-q", place, "main"])
            };
            if done.is_err() {
                return false;
            }
            self.linked = Some(at.clone());
            return self.follow(&at);
        };
        self.commit_in(&linked);
        let place = linked.to_str().unwrap();
        let clean = self.git_in(&linked, &["status", "--porcelain"]);
        if !clean.is_ok_and(|text| text.is_empty()) {
            return false;
        }
        let done = if self.dice.below(2) == 0 {
            self.git(&["worktree", "remove", place]).is_ok()
        } else {
            fs::rename(&linked, self.workspace.home.join(self.serial.to_string())).unwrap();
            self.git(&["worktree", "prune"]).is_ok()
        };
        if !linked.exists() {
            self.linked = None;
        }
        done
    }

    /// Takes a commit of their own off a branch of their own.
    fn reset(&mut self) -> bool {
        let subject = self.git(&["log", "-1", "--format=%s"]).unwrap();
        let subject = subject.trim().to_owned();
        if self.is_on_main() || !self.commits.contains(&subject) {
            return false;
        }
        // An untracked file goes too where the older commit has one.
        self.git(&["add", "-A"]).unwrap();
        let shown = self.git(&["show", "-m", "HEAD"]).unwrap();
        let text = shown + &self.git(&["diff", "HEAD"]).unwrap();
        let added = text.lines().filter(|line| line.starts_with('+'));
        self.removed.extend(added.flat_map(marks_in));
        self.dropped.insert(subject);
        self.git(&["reset", "-q", "--hard", "HEAD~1"]).is_ok()
    }
}
