//! A run that works in the checkout itself: only its declared paths are looked at.
//!
//! They are clean when it starts, so what differs from `HEAD` afterwards is the run's. Its blobs and trees
//! are written into a small repository of ours, never into the real one. Nothing that a run can write is
//! believed: stat data only where they were taken at the start and are old enough.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use git2::Repository;
use rustix::fs::Stat;
use workerctl_landing::IndexSnapshot as Indexed;
use workerctl_landing::ids::{Oid, RepoPath};

use crate::error::{TreeError, git, io_at};
use crate::forms::Rules;
use crate::known::{FileStamp, Item, MODE_LINK, empty_tree, raw};
use crate::look::ChangedPath as Changed;
use crate::model::{HeadState, IgnoredSeen, PathChange, PutBack, ResultProblem, RunResult, Start};
use crate::problems;
use crate::result::tree_of;
use crate::result::{Commits, build_tree, operation, told};
use crate::small;
use crate::tree::write_empty;

mod clean;
mod files;
mod scope;

use files::{Files, PathContent, Replaced, Wanted};
use scope::Scope;

/// Paths that a comparison names.
const DRIFT_MAX: usize = 20;

/// A file that was written at the moment of the look may be written again with the same times.
const RACY_NS: i64 = 20_000_000;

/// What a run that works in the checkout may call its own, and where.
#[derive(Debug, Clone, Copy)]
pub struct InPlaceBase<'a> {
    /// The checkout's work tree.
    pub repository: &'a Path,
    /// The full name of the branch, which is checked out.
    pub target: &'a str,
    /// Declared outputs.
    pub outputs: &'a [RepoPath],
    /// Patterns of paths, as git reads them, relative to `root`.
    pub writes: &'a [String],
    /// The workspace within the work tree.
    pub root: Option<&'a RepoPath>,
    /// What is nobody's, whatever the patterns say.
    pub except: &'a [RepoPath],
}

/// A checkout while a run works in it.
#[derive(Debug)]
pub struct InPlace {
    objects: PathBuf,
    workdir: PathBuf,
    target: String,
    outputs: Vec<RepoPath>,
    writes: Vec<String>,
    root: Option<RepoPath>,
    except: Vec<RepoPath>,
    /// Stat data and entry of what was found clean at the start.
    clean: HashMap<Vec<u8>, (FileStamp, Item)>,
    /// Whether a file of the result may get other line ends; not known after a crash.
    converts: bool,
}

/// What one look at the run's paths found.
struct PathScan {
    changes: BTreeMap<Vec<u8>, Changed>,
    contents: Vec<Vec<u8>>,
    problems: Vec<ResultProblem>,
}

impl InPlace {
    /// Begins: the branch is checked out, nothing is under way, and the run's paths are clean.
    /// `objects` is made anew.
    pub fn start(objects: &Path, base: &InPlaceBase<'_>) -> Result<(Self, Start), TreeError> {
        let mut held = Self::of(objects, base);
        let (rules, index) = held.open()?;
        let repo = rules.repo();
        clean::refuse_elsewhere(repo, base.target)?;
        let tip = match repo.find_reference(base.target) {
            Ok(found) => found.target().map(Oid::from),
            Err(_) => None,
        };
        let tree = tree_of(repo, tip.as_ref())?;
        let scope = held.scope()?;
        held.renew(repo)?;
        let checkout = clean::look(&mut held, &rules, &index, &scope, tree)?;
        let start = Start {
            number: 0,
            base: tip,
            tree: tree.into(),
            target: base.target.to_owned(),
            overlaid: Vec::new(),
            keep: Vec::new(),
            allow_filtered: false,
            checkout: Some(checkout),
        };
        Ok((held, start))
    }

    /// The same checkout again after a crash, from what [`InPlace::start`] answered.
    pub fn again(objects: &Path, base: &InPlaceBase<'_>, start: &Start) -> Result<Self, TreeError> {
        let mut held = Self::of(objects, base);
        held.target.clone_from(&start.target);
        held.renew(held.open()?.0.repo())?;
        Ok(held)
    }

    fn of(objects: &Path, base: &InPlaceBase<'_>) -> Self {
        Self {
            objects: objects.to_owned(),
            workdir: base.repository.to_owned(),
            target: base.target.to_owned(),
            outputs: base.outputs.to_vec(),
            writes: base.writes.to_vec(),
            root: base.root.cloned(),
            except: base.except.to_vec(),
            clean: HashMap::new(),
            converts: true,
        }
    }

    /// Says anew what is nobody's: other runs write into the checkout meanwhile.
    pub fn leave_out(&mut self, except: Vec<RepoPath>) {
        self.except = except;
    }

    /// The checkout's work tree.
    pub fn path(&self) -> &Path {
        &self.workdir
    }

    /// The small repository, from which the result is imported.
    pub fn git_dir(&self) -> PathBuf {
        self.objects.clone()
    }

    fn scope(&self) -> Result<Scope, TreeError> {
        Scope::of(&InPlaceBase {
            repository: &self.workdir,
            target: &self.target,
            outputs: &self.outputs,
            writes: &self.writes,
            root: self.root.as_ref(),
            except: &self.except,
        })
    }

    /// The checkout's rules and index as they are now. A handle caches references and settings, so none
    /// outlives a call. Of the index it has only what tells attributes.
    fn open(&self) -> Result<(Rules, Indexed), TreeError> {
        let repo = crate::real::Real::open(&self.workdir)?.repo;
        let index = Indexed::read(&repo.path().join("index"))?;
        let attributes = index.index.attributes();
        attributes
            .and_then(|mut attributes| repo.set_index(&mut attributes))
            .map_err(git("read the index"))?;
        Ok((Rules::of(repo, true)?, index))
    }

    /// Makes the small repository anew: a run may have written in it.
    fn renew(&self, repo: &Repository) -> Result<(), TreeError> {
        let fail = io_at("remove", &self.objects);
        match fs::symlink_metadata(&self.objects) {
            Ok(found) if found.is_dir() => fs::remove_dir_all(&self.objects).map_err(&fail)?,
            Ok(_) => fs::remove_file(&self.objects).map_err(&fail)?,
            Err(_) => {}
        }
        small::build_borrowing(&self.objects, &repo.commondir().join("objects"))
    }

    /// What the run changed, against `HEAD` as it is now, and the start from which the run would have had
    /// that base; blobs and trees are in the small repository afterwards.
    pub fn result(&mut self, start: &Start) -> Result<(RunResult, Start), TreeError> {
        let (rules, _) = self.open()?;
        let repo = rules.repo();
        self.renew(repo)?;
        let small = small::open(&self.objects)?;
        let mut commits = Commits::read(repo, start)?;
        let mut compared = start.clone();
        if let HeadState::OnTarget { commit } = &commits.head {
            compared.tree = tree_of(repo, commit.as_ref())?.into();
            compared.base.clone_from(commit);
        }
        let former = raw(&compared.tree);
        let scope = self.scope()?;
        if commits.is_unrelated && former != empty_tree() {
            // Whoever rewrote the branch, such as a person who amends a commit: the result stands on it where
            // the run's own paths are what the run began with.
            let began = scope.tracked(repo, raw(&start.tree))?;
            commits.is_unrelated = began.items != scope.tracked(repo, former)?.items;
        }
        let found = self.look(&rules, &scope, start, former)?;
        let mut refusals: Vec<ResultProblem> = operation(repo.path()).into_iter().collect();
        refusals.extend(found.problems);
        let fail = git("write a blob into the run's repository");
        for content in &found.contents {
            small.blob(content).map_err(&fail)?;
        }
        let mut tree = former;
        if !found.changes.is_empty() {
            let changes: Vec<(&[u8], Option<Item>)> = found
                .changes
                .iter()
                .map(|(path, seen)| (path.as_slice(), seen.new))
                .collect();
            let base = (former != empty_tree()).then_some(former);
            tree = match build_tree(&small, base, &changes)? {
                Some(tree) => tree,
                None => write_empty(&small)?,
            };
        }
        self.converts = false;
        for path in found.changes.keys() {
            self.converts |= rules.converts(path)?;
        }
        let result = RunResult {
            head: commits.head,
            commits_made: commits.made,
            commits_count: commits.count,
            tree: tree.into(),
            changes: told(&found.changes)?,
            ignored: IgnoredSeen::default(),
            problems: refusals,
            is_unrelated: commits.is_unrelated,
        };
        Ok((result, compared))
    }

    /// The paths, at most 20, that no longer are as `result` found them. `start` is what it was compared with.
    pub fn drift(&mut self, start: &Start, result: &RunResult) -> Result<Vec<RepoPath>, TreeError> {
        let (rules, _) = self.open()?;
        let found = self.look(&rules, &self.scope()?, start, raw(&start.tree))?;
        let now = told(&found.changes)?;
        let before: BTreeMap<_, _> = result.changes.iter().map(|c| (&c.path, &c.new)).collect();
        let after: BTreeMap<_, _> = now.iter().map(|c| (&c.path, &c.new)).collect();
        let paths: BTreeSet<_> = before.keys().chain(after.keys()).copied().collect();
        let differing = paths
            .into_iter()
            .filter(|path| before.get(path) != after.get(path));
        Ok(differing.take(DRIFT_MAX).cloned().collect())
    }

    fn look(
        &self,
        rules: &Rules,
        scope: &Scope,
        start: &Start,
        former: git2::Oid,
    ) -> Result<PathScan, TreeError> {
        let repo = rules.repo();
        let files = Files::open(&self.workdir, repo.path(), rules)?;
        let tracked = scope.tracked(repo, former)?;
        let walked = scope.walk(files.root(), rules, &tracked)?;
        let mut found = PathScan {
            changes: BTreeMap::new(),
            contents: Vec::new(),
            problems: walked
                .unreadable
                .iter()
                .map(|path| problems::unreadable(path))
                .collect(),
        };
        let state = start.checkout.clone().unwrap_or_default();
        let new = walked
            .nested
            .iter()
            .filter(|path| !state.nested.contains(path));
        found
            .problems
            .extend(new.map(|path| problems::nested_repository(path.as_bytes())));
        let absent: BTreeSet<&[u8]> = state.absent.iter().map(RepoPath::as_bytes).collect();
        let mut paths: BTreeSet<&[u8]> = walked.files.iter().map(Vec::as_slice).collect();
        paths.extend(
            tracked
                .items
                .keys()
                .chain(&scope.outputs)
                .map(Vec::as_slice),
        );
        for path in paths {
            let old = tracked.items.get(path).copied();
            if old.is_some() && old == self.known(path, files.stat(path)) {
                continue;
            }
            let new = match files.observe(path, old)? {
                PathContent::Item(item, content) => Some((item, content)),
                PathContent::Absent if absent.contains(path) => continue,
                PathContent::Blocked(by) if old.is_some() && !scope.owns(&by) => {
                    found.problems.push(problems::in_the_way(path, &by));
                    continue;
                }
                PathContent::Absent | PathContent::Directory | PathContent::Blocked(_) => None,
                PathContent::Unreadable => {
                    found.problems.push(problems::unreadable(path));
                    continue;
                }
                PathContent::Other => {
                    found.problems.push(problems::not_a_file(path));
                    continue;
                }
            };
            // What is untracked and ignored is left in its place.
            let is_ignored =
                old.is_none() && rules.is_ignored(Path::new(OsStr::from_bytes(path)))?;
            if !is_ignored {
                found.add(rules, path, old, new)?;
            }
        }
        Ok(found)
    }

    /// What a file holds that was found clean at the start and has not been written since.
    fn known(&self, path: &[u8], stat: Option<Stat>) -> Option<Item> {
        let (stamp, item) = self.clean.get(path)?;
        (FileStamp::of(&stat?) == *stamp).then_some(*item)
    }

    /// Gives each changed file the line ends with which git would check it out, as a landing would: the
    /// commit and the file are to be the same. The result is in the repository by then.
    pub fn settle(&mut self, result: &RunResult) -> Result<(), TreeError> {
        if !self.converts {
            return Ok(());
        }
        self.with_files(|repo, files, rules| {
            for change in &result.changes {
                let Some(new) = change.new.as_ref().filter(|new| new.mode != MODE_LINK) else {
                    continue;
                };
                let path = change.path.as_bytes();
                if rules.converts(path)? {
                    let item = item_of(new);
                    let wanted = wanted(repo, rules, path, item)?;
                    if files.bytes(path)? != Some(wanted.bytes.clone()) {
                        files.replace(path, Some(item), Some(&wanted));
                    }
                }
            }
            Ok(())
        })
    }

    /// Puts back what the run changed, each path to what `HEAD` has there now, while it holds what the run
    /// left. `start` is what the run began from.
    pub fn put_back(&mut self, start: &Start, result: &RunResult) -> Result<PutBack, TreeError> {
        let mut done = PutBack::default();
        let state = start.checkout.clone().unwrap_or_default();
        self.with_files(|repo, files, rules| {
            let head = head_tree(repo).unwrap_or_else(|| raw(&start.tree));
            let head = (head != empty_tree()).then(|| repo.find_tree(head));
            let head = head.transpose().map_err(git("read a tree"))?;
            let mut changes: Vec<(&PathChange, Option<Item>)> = Vec::new();
            for change in &result.changes {
                let is_absent = state.absent.contains(&change.path);
                let entry = head.as_ref().filter(|_| !is_absent);
                let entry = entry.and_then(|tree| tree.get_path(change.path.as_path()).ok());
                let entry = entry.filter(|entry| entry.kind() == Some(git2::ObjectType::Blob));
                changes.push((change, entry.as_ref().map(scope::item)));
            }
            let stays = |dir: &[u8]| state.directories.iter().any(|kept| kept.as_bytes() == dir);
            // What goes makes room for what comes.
            changes.sort_by_key(|(_, item)| item.is_some());
            for (change, item) in &changes {
                put_one(repo, files, rules, (change, *item), &mut done)?;
                if item.is_none() {
                    files.remove_emptied(change.path.as_bytes(), stays);
                }
            }
            for output in &self.outputs {
                files.remove_emptied(output.as_bytes(), stays);
            }
            done.failed.extend(clean::unstage(repo, &changes));
            if done.put_back > 0 {
                files.sync()
            } else {
                Ok(())
            }
        })?;
        Ok(done)
    }

    fn with_files<T>(
        &self,
        act: impl FnOnce(&Repository, &Files<'_>, &Rules) -> Result<T, TreeError>,
    ) -> Result<T, TreeError> {
        let (rules, _) = self.open()?;
        let repo = rules.repo();
        let files = Files::open(&self.workdir, repo.path(), &rules)?;
        act(repo, &files, &rules)
    }
}

impl PathScan {
    fn add(
        &mut self,
        rules: &Rules,
        path: &[u8],
        old: Option<Item>,
        new: Option<(Item, Vec<u8>)>,
    ) -> Result<(), TreeError> {
        let is_same = match (old, &new) {
            (Some(old), Some((new, _))) => old.is_same(*new),
            (None, None) => true,
            _ => false,
        };
        if is_same {
            return Ok(());
        }
        let mut bytes = 0;
        if let Some((item, content)) = &new {
            let is_usable = path
                .split(|b| *b == b'/')
                .all(|name| !problems::is_reserved(name) && std::str::from_utf8(name).is_ok());
            let Some(place) = RepoPath::from_bytes(path).ok().filter(|_| is_usable) else {
                self.problems.push(problems::path_name(path));
                return Ok(());
            };
            if item.mode != MODE_LINK
                && let Some(attribute) = rules.filter_of_result(&place)?
            {
                self.problems.push(problems::filtered(path, attribute));
            }
            bytes = content.len() as u64;
        }
        let new = new.map(|(item, content)| {
            self.contents.push(content);
            item
        });
        self.changes
            .insert(path.to_vec(), Changed { old, new, bytes });
        Ok(())
    }
}

fn put_one(
    repo: &Repository,
    files: &Files<'_>,
    rules: &Rules,
    (change, item): (&PathChange, Option<Item>),
    done: &mut PutBack,
) -> Result<(), TreeError> {
    let path = change.path.as_bytes();
    let left = change.new.as_ref().map(item_of);
    let wanted = item
        .map(|item| wanted(repo, rules, path, item))
        .transpose()?;
    if let Err(error) = files.recover(path, left, wanted.as_ref()) {
        done.failed
            .push((change.path.clone(), files::chain(&error)));
        return Ok(());
    }
    // Where it is as it was, and where the branch has it by now, nothing is to be done.
    let seen = files.observe(path, item.or(left))?;
    if seen.is(item) && !matches!(seen, PathContent::Directory) {
        return Ok(());
    }
    match files.replace(path, left, wanted.as_ref()) {
        Replaced::Done => done.put_back += 1,
        Replaced::Edited => done.edited_since.push(change.path.clone()),
        Replaced::Failed(why) => done.failed.push((change.path.clone(), why)),
    }
    Ok(())
}

/// What a checkout writes for an entry.
fn wanted(repo: &Repository, rules: &Rules, path: &[u8], item: Item) -> Result<Wanted, TreeError> {
    let blob = repo.find_blob(item.oid).map_err(git("read a blob"))?;
    let bytes = blob.content().to_vec();
    let bytes = if item.mode == MODE_LINK {
        bytes
    } else {
        rules.to_work_tree(path, bytes)?
    };
    Ok(Wanted { item, bytes })
}

fn item_of(entry: &crate::model::TreeEntry) -> Item {
    Item {
        oid: raw(&entry.oid),
        mode: entry.mode,
    }
}

fn head_tree(repo: &Repository) -> Option<git2::Oid> {
    let commit = repo.head().ok()?.peel_to_commit().ok()?;
    Some(commit.tree_id())
}
