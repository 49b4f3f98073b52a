//! Objects of a run's own repository enter the real one as one pack.
//!
//! Loose objects could be pruned between their writing and the reference that keeps them. A pack with a
//! `.keep` beside it is left alone by every `gc`, so that one comes first and goes last.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use git2::{Repository, RepositoryOpenFlags};

use crate::bounds::beyond_bounds;
use crate::connected::missing_parent;
use crate::derived::remove_derived;
use crate::differences::differences;
use crate::error::{GitError, git, git_write, io_at};
use crate::ids::{Oid, RunId};
use crate::journal::Observer;
use crate::objects;
use crate::open::open;
use crate::outcome::LandError;
use crate::plan::MODE_COMMIT;
use crate::repository::Repo;
use crate::sharing::Sharing;
use crate::worktree::{make_directories, sync_directory};

/// How often a reference is set that a `git` beside us gets in the way of.
const TRIES: u32 = 20;

/// What to import, and from where.
#[derive(Debug, Clone, Copy)]
pub struct Import<'a> {
    /// A directory of the real repository.
    pub repository: &'a Path,
    /// The git directory of the run's own repository, which sees the real one's objects.
    pub source: &'a Path,
    /// The run.
    pub run: &'a RunId,
    /// Commits that the real repository keeps, on which the others are made.
    pub hide: &'a [&'a Oid],
    /// The commit that is imported with everything below it.
    pub commit: &'a Oid,
}

/// The reference that keeps the commit of a run.
pub fn kept_reference(run: &RunId) -> String {
    format!("refs/workerctl/runs/{run}/commit")
}

/// Imports a commit with everything that it needs, and keeps it under a reference of the run.
///
/// May be killed at any point, and repeated: what an earlier call left is used or replaced.
pub fn import(request: &Import<'_>, observer: &dyn Observer) -> Result<(), LandError> {
    let repo = Repo::find(request.repository)?;
    let common = &repo.common_dir;
    let place = common.join(format!("workerctl/import-{}", request.run));
    observer.before("make the pack");
    let _ = fs::remove_dir_all(&place);
    let sharing = repo.sharing()?;
    sharing.make_directories(&place)?;
    let name = write_pack(request, &repo, (&place, sharing)).inspect_err(|_| {
        // What is left is replaced by the next call, but there need not be one.
        let _ = fs::remove_dir_all(&place);
    })?;
    let mut keep = None;
    if let Some(name) = &name {
        let packs = common.join("objects/pack");
        make_directories(&packs, sharing)?;
        keep = Some(move_in(
            (&place, sharing),
            &packs,
            name,
            request.run,
            observer,
        )?);
    }
    set_reference(common, (&place, sharing), request, observer)?;
    // Until here the keep file protected the pack from `git gc`, which deletes what no reference leads to. It goes
    // only after the reference is there.
    if let Some(keep) = keep.filter(|keep| is_ours(keep, request.run)) {
        observer.before("remove the keep file");
        fs::remove_file(&keep).map_err(io_at("remove", &keep))?;
    }
    observer.before("clear the import folder");
    fs::remove_dir_all(&place).map_err(io_at("remove", &place))?;
    Ok(())
}

/// Writes the pack and its index; `None` where the real repository has everything already.
fn write_pack(
    request: &Import<'_>,
    real: &Repo,
    (place, sharing): (&Path, Sharing),
) -> Result<Option<String>, LandError> {
    let flags = RepositoryOpenFlags::NO_SEARCH;
    remove_derived(request.source).map_err(LandError::Source)?;
    let source = open(request.source, flags, "open the run's repository");
    let source = source.map_err(LandError::Source)?;
    let fail = |error| LandError::Source(git("collect the run's objects")(error));
    let mut pack = source.packbuilder().map_err(fail)?;
    let known = real.inner.odb().map_err(fail)?;
    if let Some(what) = beyond_bounds(&source, &known, request.commit.raw()).map_err(fail)? {
        return Err(LandError::refused("too_large", what));
    }
    let commits = new_commits(&source, request).map_err(fail)?;
    let missing = missing_parent(&source, real, &commits, request.hide);
    if let Some(parent) = missing.map_err(LandError::Source)? {
        let message = format!(
            "a commit of the skill has the parent {parent}, which is neither a new commit nor part of the history that the run started from"
        );
        return Err(LandError::refused("missing_parent", message));
    }
    let (objects, refused) = new_objects(&source, &commits).map_err(fail)?;
    if let Some(path) = refused {
        let message = format!(
            "a commit of the skill names `{path}`, which git itself refuses to have in a tree"
        );
        return Err(LandError::refused("bad_path", message));
    }
    if let Some(why) = objects::first_problem(&source, &objects).map_err(fail)? {
        let message = format!("a commit of the skill has {why}, which other repositories refuse");
        return Err(LandError::refused("bad_object", message));
    }
    let named = objects::run_named_by_others(&source, &real.inner, &objects, request.run);
    if let Some(other) = named.map_err(fail)? {
        let message = format!(
            "a commit of the skill has the trailer `Run-Id: {}`, which names another run; remove it from the message (`git cherry-pick` and `git rebase` copy trailers)",
            other.escape_debug()
        );
        return Err(LandError::refused("foreign_run_id", message));
    }
    for oid in objects {
        pack.insert_object(oid, None).map_err(fail)?;
    }
    if pack.object_count() == 0 {
        return Ok(None);
    }
    pack.write(place, 0o444)
        .map_err(git_write("write a pack in", place))?;
    let name = pack.name().map_err(fail)?.map(str::to_owned);
    let name = name.ok_or_else(|| fail(git2::Error::from_str("the pack has no name")))?;
    for end in ["pack", "idx"] {
        let path = place.join(format!("pack-{name}.{end}"));
        let open = File::open(&path).map_err(io_at("open", &path))?;
        sharing
            .adjust_file(&open)
            .and_then(|()| open.sync_all())
            .map_err(io_at("sync", &path))?;
    }
    Ok(Some(name))
}

/// The commits that the real repository does not keep.
fn new_commits(source: &Repository, request: &Import<'_>) -> Result<Vec<git2::Oid>, git2::Error> {
    let mut walk = source.revwalk()?;
    walk.push(request.commit.raw())?;
    for kept in request.hide {
        walk.hide(kept.raw())?;
    }
    walk.collect()
}

/// The commits, and what each holds beyond its first parent: the rest came with that one, or is in the real
/// repository. To walk all trees of what it keeps would take long where it holds many. Answers besides a path that no
/// checkout could have, if there is one: a skill can write any object, and others would refuse to fetch it.
fn new_objects(
    source: &Repository,
    commits: &[git2::Oid],
) -> Result<(Vec<git2::Oid>, Option<String>), git2::Error> {
    let (mut found, mut refused) = (Vec::new(), None);
    for oid in commits {
        let commit = source.find_commit(*oid)?;
        let former = commit.parents().next().map(|parent| parent.tree_id());
        found.push(commit.id());
        if former != Some(commit.tree_id()) {
            found.push(commit.tree_id());
        }
        differences(
            source,
            former,
            Some(commit.tree_id()),
            &mut |path, _, new| {
                if new.is_some() && refused.is_none() && !is_fit_for_a_tree(path) {
                    refused = Some(String::from_utf8_lossy(path).escape_debug().to_string());
                }
                found.extend(
                    new.filter(|(_, mode)| *mode != MODE_COMMIT)
                        .map(|(oid, _)| oid),
                );
            },
        )?;
    }
    Ok((found, refused))
}

fn is_fit_for_a_tree(path: &[u8]) -> bool {
    let fit =
        |part: &[u8]| !matches!(part, b"" | b"." | b"..") && !part.eq_ignore_ascii_case(b".git");
    path.split(|byte| *byte == b'/').all(fit)
}

fn note(run: &RunId) -> String {
    format!("workerctl: import of run {run}\n")
}

fn is_ours(keep: &Path, run: &RunId) -> bool {
    fs::read_to_string(keep).is_ok_and(|text| text == note(run))
}

/// Gives the pack its place, the index last, because git finds packs by it.
fn move_in(
    (place, sharing): (&Path, Sharing),
    packs: &Path,
    name: &str,
    run: &RunId,
    observer: &dyn Observer,
) -> Result<PathBuf, GitError> {
    let keep = packs.join(format!("pack-{name}.keep"));
    observer.before("write the keep file");
    let written = place.join("keep");
    write_synced(&written, &note(run), sharing)?;
    // By link, so that a person's own `.keep` of this pack stays theirs.
    match fs::hard_link(&written, &keep) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
            return Err(io_at("create", &keep)(e));
        }
        _ => {}
    }
    if packs.join(format!("pack-{name}.idx")).exists()
        && packs.join(format!("pack-{name}.pack")).exists()
    {
        return Ok(keep);
    }
    for end in ["pack", "idx"] {
        let file = format!("pack-{name}.{end}");
        observer.before(&format!("rename the {end} in"));
        let from = place.join(&file);
        let to = packs.join(&file);
        fs::rename(&from, &to).map_err(io_at("write", &to))?;
    }
    observer.before("sync the packs");
    sync_directory(packs)?;
    Ok(keep)
}

/// `git pack-refs`, and with it `git gc`, removes directories of references that are empty for a moment: between
/// our making one and putting the file there, and after it has packed what we put there.
fn set_reference(
    common: &Path,
    (place, sharing): (&Path, Sharing),
    request: &Import<'_>,
    observer: &dyn Observer,
) -> Result<(), GitError> {
    for _ in 1..TRIES {
        match set_reference_once(common, (place, sharing), request, observer) {
            Err(GitError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            done => return done,
        }
    }
    set_reference_once(common, (place, sharing), request, observer)
}

/// Written here rather than by the git library, which renames before it syncs.
fn set_reference_once(
    common: &Path,
    (place, sharing): (&Path, Sharing),
    request: &Import<'_>,
    observer: &dyn Observer,
) -> Result<(), GitError> {
    let path = common.join(kept_reference(request.run));
    let Some(dir) = path.parent() else {
        return Ok(());
    };
    let written = place.join("reference");
    write_synced(&written, &format!("{}\n", request.commit), sharing)?;
    make_directories(dir, sharing)?;
    observer.before("set the reference");
    fs::rename(&written, &path).map_err(io_at("write", &path))?;
    sync_directory(dir)
}

fn write_synced(path: &Path, text: &str, sharing: Sharing) -> Result<(), GitError> {
    let _ = fs::remove_file(path);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(io_at("create", path))?;
    file.write_all(text.as_bytes())
        .and_then(|()| sharing.adjust_file(&file))
        .and_then(|()| file.sync_all())
        .map_err(io_at("write", path))
}
