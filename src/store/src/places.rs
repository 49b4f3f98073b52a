//! Where files of ours lie: behind no symbolic link that a checkout, or a skill, may have put there.
//!
//! The way to a state directory outside of the workspace is the machine's business (systemd makes
//! `/var/lib/workerctl` a link for `DynamicUser=`): it is resolved once, and the result is used from then on.
//! Links below the workspace and in the state directory are refused before anything is opened, for a commit
//! can bring them: what an engine cleans or removes would then be somebody else's.

use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::lock::WORKSPACE_FOLDER;
use crate::model::{Diagnostic, Kind};

/// Most links that are followed on the way to a state directory, as by the kernel.
const LINKS_MAX: usize = 40;

/// Directories of a state directory whose entries are looked at as well. Those of others have names that nobody
/// can guess, or are opened without following links.
const LOOKED_INTO: [&str; 5] = ["live", "run", "secrets", "store", "trusted-skills"];

/// Code of the refusal.
pub const LINKED: &str = "linked";

/// The state directory without links on the way to it.
///
/// # Errors
/// A link stands below the workspace on the way to it, in it, or in place of the workspace's folder or in that.
pub fn state_directory(workspace: &Path, asked: &Path) -> Result<PathBuf, Diagnostic> {
    let looked = resolved(workspace, asked).and_then(|found| {
        refuse_around(workspace, &found)?;
        refuse_links_in(&found)?;
        LOOKED_INTO
            .iter()
            .try_for_each(|name| refuse_links_in(&found.join(name)))?;
        Ok(found)
    });
    let found = looked.map_err(|refused| {
        refused
            .hint("to keep runs elsewhere, name that: `--state-dir DIR`, or `WORKERCTL_STATE_DIR`")
    })?;
    let folder = workspace.join(WORKSPACE_FOLDER);
    refuse_link(&folder)?;
    refuse_links_in(&folder)?;
    Ok(found)
}

/// What lies in a state directory must never count as files of the workspace: secrets and the store are there.
fn refuse_around(workspace: &Path, state_dir: &Path) -> Result<(), Diagnostic> {
    if !workspace.starts_with(state_dir) {
        return Ok(());
    }
    let message = format!(
        "the state directory `{}` holds the workspace itself: its files would be taken for the workspace's",
        state_dir.display()
    );
    Err(Diagnostic::new(Kind::Blocked, "state_dir", message))
}

/// A directory below the workspace that holds files of ours, such as that of threads.
///
/// # Errors
/// A link stands on the way to it.
pub fn below(workspace: &Path, relative: &str) -> Result<PathBuf, Diagnostic> {
    resolved(workspace, &workspace.join(relative)).map_err(|refused| {
        refused.hint(
            "`threads.directory` and `metrics.directory` of `workerctl.yaml` name other places",
        )
    })
}

/// Follows links outside of the workspace, and refuses those below it. What is missing is taken as it is written.
fn resolved(workspace: &Path, asked: &Path) -> Result<PathBuf, Diagnostic> {
    let mut rest = parts(asked);
    let mut path = PathBuf::from("/");
    let mut followed = 0;
    while let Some(part) = rest.pop() {
        if part == ".." {
            path.pop();
            continue;
        }
        let next = path.join(part);
        match fs::read_link(&next) {
            Ok(target) if next.starts_with(workspace) => return Err(linked(&next, &target)),
            Ok(target) if followed < LINKS_MAX => {
                followed += 1;
                if target.is_absolute() {
                    path = PathBuf::from("/");
                }
                rest.extend(parts(&target));
            }
            // It is no link, or not there, or cannot be looked at, which whoever uses it tells.
            Ok(_) | Err(_) => path = next,
        }
    }
    Ok(path)
}

/// The names of a path, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    });
    let mut names: Vec<OsString> = names.collect();
    names.reverse();
    names
}

fn refuse_links_in(directory: &Path) -> Result<(), Diagnostic> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries {
        if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
            refuse_link(&entry.path())?;
        }
    }
    Ok(())
}

fn refuse_link(path: &Path) -> Result<(), Diagnostic> {
    match fs::read_link(path) {
        Ok(target) => Err(linked(path, &target)),
        Err(_) => Ok(()),
    }
}

fn linked(link: &Path, target: &Path) -> Diagnostic {
    let (link, target) = (link.display(), target.display());
    let message = format!(
        "`{link}` is a symbolic link to `{target}`: workerctl does not open or remove its files through a symbolic link"
    );
    Diagnostic::new(Kind::Blocked, LINKED, message).hint(format!(
        "remove the link (with `git rm` if it is committed): `rm '{link}'` does not affect its target"
    ))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A workspace, and a directory beside it.
    fn bed() -> (xtest::TempDir, PathBuf, PathBuf) {
        let dir = xtest::tempdir();
        let root = dir.path().canonicalize().unwrap();
        let (workspace, outside) = (root.join("ws"), root.join("out"));
        fs::create_dir(&workspace).unwrap();
        fs::create_dir(&outside).unwrap();
        (dir, workspace, outside)
    }

    #[test]
    fn a_link_outside_of_the_workspace_is_followed_once() {
        let (_dir, workspace, outside) = bed();
        fs::create_dir_all(outside.join("private/workerctl")).unwrap();
        symlink("private/workerctl", outside.join("workerctl")).unwrap();
        symlink(&outside, workspace.with_file_name("lib")).unwrap();
        let real = outside.join("private/workerctl");
        for asked in [
            outside.join("workerctl"),
            workspace.with_file_name("lib/./workerctl"),
            workspace.join("../lib/private/../workerctl"),
        ] {
            assert_eq!(state_directory(&workspace, &asked), Ok(real.clone()));
        }
        let missing = workspace.with_file_name("lib/none/below");
        let found = state_directory(&workspace, &missing);
        assert_eq!(found, Ok(outside.join("none/below")));
        symlink("loop", outside.join("loop")).unwrap();
        let found = state_directory(&workspace, &outside.join("loop"));
        assert_eq!(found, Ok(outside.join("loop")));
    }

    #[test]
    fn a_link_below_the_workspace_is_refused_from_wherever_it_is_reached() {
        let (_dir, workspace, outside) = bed();
        symlink(&outside, workspace.join("state")).unwrap();
        symlink(workspace.join("state"), outside.join("around")).unwrap();
        let asked = [
            workspace.join("state"),
            workspace.join("state/deeper"),
            workspace.join("none/../state"),
            outside.join("around"),
        ];
        for asked in asked {
            let refused = state_directory(&workspace, &asked).unwrap_err();
            assert_eq!(
                (refused.kind, refused.code.as_str()),
                (Kind::Blocked, LINKED)
            );
            let link = workspace.join("state").display().to_string();
            assert!(refused.message.contains(&link), "{refused:?}");
        }
        assert_eq!(below(&workspace, "state/threads").unwrap_err().code, LINKED);
        let threads = below(&workspace, "workspace/threads");
        assert_eq!(threads, Ok(workspace.join("workspace/threads")));
    }

    #[test]
    fn a_link_in_a_state_directory_is_refused_wherever_that_lies() {
        for place in ["ws/state", "out"] {
            for name in [
                "live",
                "store",
                "store/witness",
                "live/0",
                ".gitignore",
                "mcp-token",
            ] {
                let (dir, workspace, _) = bed();
                let state = dir.path().canonicalize().unwrap().join(place);
                let link = state.join(name);
                fs::create_dir_all(link.parent().unwrap()).unwrap();
                assert_eq!(state_directory(&workspace, &state), Ok(state.clone()));
                symlink("/nowhere", &link).unwrap();
                let refused = state_directory(&workspace, &state).unwrap_err();
                assert!(refused.message.contains(name), "{refused:?}");
            }
        }
    }
}
