//! Everything that can be made without a lock: files, lock tokens and indexes, in a folder of ours.
//!
//! The folder is written under another name and renamed in when it is complete and durable, so a folder
//! with its final name can be believed.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags};

use crate::error::{GitError, io_at};
use crate::forms::Forms;
use crate::ids::RunId;
use crate::index::{self, Direction, Indexes, Stats};
use crate::journal::Observer;
use crate::locks::{branch_token, checkout_tokens};
use crate::outcome::LandError;
use crate::plan::{Change, Entry, Follower, MODE_EXECUTABLE, MODE_LINK, Plan};
use crate::repository::Repo;
use crate::worktree::{Worktree, make_directories, sync_directory};

/// Where the folders of landings lie, below the common directory.
pub(crate) const FOLDER: &str = "workerctl/landing";

/// The first name for a landing of this run that none has yet.
pub(crate) fn free_place(common_dir: &Path, run: &RunId) -> PathBuf {
    let folder = common_dir.join(FOLDER);
    let mut number = 0_u32;
    loop {
        let place = folder.join(format!("{run}-{number}"));
        if !place.exists() {
            return place;
        }
        number += 1;
    }
}

/// Stages what a plan needs; its folder gets its name last.
pub(crate) fn stage(
    repo: &Repo,
    plan: &Plan,
    (forms, indexes): (Option<&Forms>, &Indexes),
    observer: &dyn Observer,
) -> Result<Vec<Stats>, LandError> {
    let folder = plan.common_dir.join(FOLDER);
    let partial = plan.staging.with_extension("partial");
    observer.before("make the staging folder");
    make_directories(&folder, plan.sharing)?;
    // Left by a process that was killed while it staged: no journal knows of it.
    let _ = fs::remove_dir_all(&partial);
    plan.sharing.make_directories(&partial)?;
    let draft = Plan {
        staging: partial.clone(),
        ..plan.clone()
    };
    probe(&partial)?;
    // This one becomes the branch; of the others the inode alone matters.
    let token = write_token(&draft, &branch_token(&draft), &format!("{}\n", plan.to))?;
    token
        .sync_all()
        .map_err(io_at("sync", &branch_token(&draft)))?;
    let mut all = Vec::new();
    for number in 0..draft.checkouts.len() {
        observer.before("stage lock tokens");
        let place = draft.place_of(number);
        plan.sharing.make_directories(&place)?;
        let note = format!(
            "workerctl: run {} lands; `workerctl` recovers it\n",
            plan.run
        );
        for token in checkout_tokens(&draft, number) {
            write_token(&draft, &token, &note)?;
        }
    }
    for follower in draft.followers() {
        refuse_other_file_system(&follower, &partial)?;
        all.push(stage_files(repo, &follower, forms, observer)?);
    }
    for (follower, stats) in draft.followers().zip(&all) {
        observer.before("stage the index");
        index::prepare((&follower, indexes), Direction::Forward, stats, |_| true)?;
    }
    observer.before("sync the staging folder");
    let open = File::open(&partial).map_err(io_at("open", &partial))?;
    sync_tree(&partial, &open)?;
    observer.before("rename the staging folder in");
    fs::rename(&partial, &plan.staging).map_err(io_at("rename", &partial))?;
    sync_directory(&folder)?;
    Ok(all)
}

/// Files were synced one by one; what is left are the names.
fn sync_tree(dir: &Path, open: &File) -> Result<(), GitError> {
    for entry in fs::read_dir(dir).map_err(io_at("list", dir))? {
        let entry = entry.map_err(io_at("list", dir))?;
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            let path = entry.path();
            let open = File::open(&path).map_err(io_at("open", &path))?;
            sync_tree(&path, &open)?;
        }
    }
    open.sync_all().map_err(io_at("sync", dir))
}

/// Not every file system can exchange two files in one step.
fn probe(dir: &Path) -> Result<(), LandError> {
    let (a, b) = (dir.join("probe-a"), dir.join("probe-b"));
    for path in [&a, &b] {
        fs::write(path, "").map_err(io_at("write", path))?;
    }
    let exchanged = rustix::fs::renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE);
    for path in [&a, &b] {
        fs::remove_file(path).map_err(io_at("remove", path))?;
    }
    exchanged.map_err(|e| {
        LandError::refused(
            "no_exchange",
            format!(
                "the file system of `{}` cannot exchange files: {e}",
                dir.display()
            ),
        )
    })
}

fn refuse_other_file_system(follower: &Follower<'_>, staging: &Path) -> Result<(), LandError> {
    let device = |path: &Path| -> Result<u64, GitError> {
        Ok(fs::metadata(path).map_err(io_at("look at", path))?.dev())
    };
    if device(follower.workdir)? == device(staging)? {
        return Ok(());
    }
    Err(LandError::refused(
        "other_file_system",
        format!(
            "`{}` is on another file system than `{}`",
            follower.workdir.display(),
            staging.display()
        ),
    ))
}

/// A lock gets the mode that git gives its own files here, for a repository that a group shares.
fn write_token(plan: &Plan, path: &Path, text: &str) -> Result<File, GitError> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(io_at("create", path))?;
    let head = plan.common_dir.join("HEAD");
    let mode = fs::metadata(&head).map_err(io_at("look at", &head))?.mode();
    let mode = Permissions::from_mode(plan.sharing.mode(mode & 0o777, false));
    file.write_all(text.as_bytes())
        .and_then(|()| file.set_permissions(mode))
        .map_err(io_at("write", path))?;
    Ok(file)
}

fn stage_files(
    repo: &Repo,
    follower: &Follower<'_>,
    forms: Option<&Forms>,
    observer: &dyn Observer,
) -> Result<Stats, LandError> {
    let worktree = Worktree::open(follower.workdir, repo.follows_modes())?;
    let umask = umask();
    let mut stats = Stats::new();
    for (number, change) in follower.file_changes() {
        let (Some(new), Some(forms)) = (&change.new, forms) else {
            continue;
        };
        let bytes = forms.bytes(repo, &follower.plan.to, &change.path, new)?;
        let (slot, ours) = (follower.slot(number), follower.ours(number));
        observer.before("stage a file");
        let mode = permissions(repo, &worktree, (change, new), umask)?;
        write_file(&slot, new, &bytes, mode).map_err(io_at("write", &slot))?;
        observer.before("link a file");
        fs::hard_link(&slot, &ours).map_err(io_at("link", &slot))?;
        let stat = rustix::fs::lstat(&ours).map_err(io_at("look at", &ours))?;
        stats.insert(number, stat);
    }
    Ok(stats)
}

/// The bits of the file in its place with the executable bit set right, else those that the umask leaves.
fn permissions(
    repo: &Repo,
    worktree: &Worktree,
    (change, new): (&Change, &Entry),
    umask: u32,
) -> Result<u32, GitError> {
    let present = match &change.old {
        Some(old) if old.mode != MODE_LINK => worktree.stat(&change.path)?,
        _ => None,
    };
    let is_executable = new.mode == MODE_EXECUTABLE;
    Ok(match present.map(|stat| stat.st_mode & 0o777) {
        Some(bits) if !repo.follows_modes() => bits,
        Some(bits) if is_executable => bits | ((bits & 0o444) >> 2),
        Some(bits) => bits & !0o111,
        None if is_executable => 0o777 & !umask,
        None => 0o666 & !umask,
    })
}

fn write_file(path: &Path, entry: &Entry, bytes: &[u8], mode: u32) -> io::Result<()> {
    if entry.mode == MODE_LINK {
        return std::os::unix::fs::symlink(std::ffi::OsStr::from_bytes(bytes), path);
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    file.sync_all()
}

/// The umask of this process, which can only be read without changing it from `/proc`.
fn umask() -> u32 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("Umask:"));
    let value = line.and_then(|v| u32::from_str_radix(v.trim(), 8).ok());
    value.unwrap_or(0o022)
}

/// Removes the staging folder of a landing that has ended.
pub fn clear(plan: &Plan) -> Result<(), LandError> {
    match fs::remove_dir_all(&plan.staging) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(io_at("remove", &plan.staging)(e).into())
        }
        _ => Ok(()),
    }
}
