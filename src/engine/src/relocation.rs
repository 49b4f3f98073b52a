//! A run whose workspace was moved since: its paths, where they are now.

use std::path::{Path, PathBuf};

use crate::model::RunSpec;

/// Returns the specification with the workspace's present place in its paths.
///
/// A store belongs to one workspace, so a run in it that names another place was accepted before the workspace was
/// moved, or copied together with its store.
pub(super) fn relocated(mut spec: RunSpec, workspace: &Path) -> RunSpec {
    let former = PathBuf::from(&spec.workspace);
    if former == workspace || is_same(&former, workspace) {
        return spec;
    }
    let place = |path: &str| {
        let now = moved(Path::new(path), &former, workspace);
        now.map_or_else(|| path.to_owned(), |now| now.to_string_lossy().into_owned())
    };
    spec.cwd = place(&spec.cwd);
    spec.repository = spec.repository.as_deref().map(place);
    if let Some(tree) = &mut spec.tree {
        tree.workdir = place(&tree.workdir);
    }
    spec.workspace = workspace.to_string_lossy().into_owned();
    spec
}

fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    real(one).is_some_and(|one| Some(one) == real(other))
}

/// A path in the workspace, or of a directory that the workspace lies in and was moved with.
fn moved(path: &Path, former: &Path, workspace: &Path) -> Option<PathBuf> {
    if let Ok(below) = path.strip_prefix(former) {
        return Some(workspace.join(below));
    }
    let from = former.ancestors().find(|above| path.starts_with(above))?;
    let (inner, outer) = (
        former.strip_prefix(from).ok()?,
        path.strip_prefix(from).ok()?,
    );
    if !workspace.ends_with(inner) {
        return None;
    }
    let above = workspace.ancestors().nth(inner.components().count())?;
    let now = above.join(outer);
    now.exists().then_some(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_follow_the_workspace_and_what_it_was_moved_with() {
        let directory = xtest::tempdir();
        let root = directory.path();
        let workspace = root.join("new/repository/sub");
        std::fs::create_dir_all(workspace.join("x")).unwrap();
        std::fs::create_dir_all(root.join("new/repository/.git")).unwrap();
        let former = Path::new("/old/repository/sub");
        for (path, expected) in [
            ("/old/repository/sub", Some("new/repository/sub")),
            ("/old/repository/sub/x", Some("new/repository/sub/x")),
            ("/old/repository", Some("new/repository")),
            ("/old/repository/.git", Some("new/repository/.git")),
            ("/old/repository/gone", None),
            ("/elsewhere/.git", None),
        ] {
            let found = moved(Path::new(path), former, &workspace);
            assert_eq!(found, expected.map(|path| root.join(path)), "{path}");
        }
    }
}
