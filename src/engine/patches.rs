//! What a run changed, as a patch.

use std::path::Path;

use super::view::Shown;
use crate::git;
use crate::model::{Diagnostic, Kind};

/// Largest patch that is answered, in bytes.
const DIFF_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The patch of a run's commit, or of what is kept of a run that was put back.
///
/// # Errors
/// Nothing is kept, or the repository cannot be read.
pub(super) fn patch(shown: &Shown) -> Result<String, Diagnostic> {
    let failed = |error: &dyn std::error::Error| {
        let message = crate::model::diagnostic::chain(error);
        Diagnostic::new(Kind::Internal, "diff", message)
    };
    let cwd = Path::new(&shown.spec.cwd);
    let id: git::RunId = shown
        .spec
        .run
        .to_string()
        .parse()
        .map_err(|error: git::NameError| failed(&error))?;
    let parsed = |oid: &String| oid.parse().map_err(|error: git::NameError| failed(&error));
    let of_commits = || match shown.summary.newest_commit() {
        Some(last) => {
            let first = shown.summary.commits_made.newest.first().unwrap_or(last);
            let (first, last) = (parsed(first)?, parsed(last)?);
            git::diff_of_commits(cwd, &first, &last, DIFF_BYTES_MAX).map_err(|error| failed(&error))
        }
        None => Ok(None),
    };
    let patch = if shown.summary.commit.is_some() {
        of_commits()?
    } else {
        match git::diff(cwd, &id, DIFF_BYTES_MAX).map_err(|error| failed(&error))? {
            None => of_commits()?,
            kept => kept,
        }
    };
    let Some(patch) = patch else {
        return Err(Diagnostic::new(
            Kind::NotFound,
            "nothing_kept",
            format!("nothing that {} changed is kept", shown.spec.run.short()),
        ));
    };
    let note = if patch.truncated {
        "\n(cut: the patch is larger than 4 MiB)\n"
    } else {
        ""
    };
    Ok(patch.text + note)
}
