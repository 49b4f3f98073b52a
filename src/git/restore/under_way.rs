//! Ending what git has under way, where it is the run that began it.

use super::super::baseline::ResultTree;
use super::super::error::GitError;
use super::super::operation::Operation;
use super::{Restored, Restoring};

impl Restoring<'_> {
    /// Comes when index, `HEAD` and files are back: until then git's own `--abort` would be of use.
    pub(super) fn operation(&self, result: &ResultTree, restored: &mut Restored) {
        if let Some(stash) = result.operation.as_ref().and_then(|o| o.autostash.as_ref()) {
            restored.notes.push(format!(
                "git had put uncommitted changes aside in {stash}: they are back; `git stash apply {stash}` \
                 would apply them once more"
            ));
        }
        match self.end_operation(result) {
            Ok(None) => {}
            Ok(Some(left)) => {
                restored.operation_left =
                    Some(format!("{} is under way: {}", left.what(), left.remedy()));
            }
            Err(error) => {
                restored.out_of_space |= error.is_out_of_space();
                restored.operation_left = Some(error.to_string());
            }
        }
    }

    /// Answers what was left: begun by somebody else since, or of use as long as `HEAD` is not back.
    fn end_operation(&self, result: &ResultTree) -> Result<Option<Operation>, GitError> {
        let Some(now) = self.handle.operation()? else {
            return Ok(None);
        };
        if result.operation.as_ref() != Some(&now) || !self.head_is_back {
            return Ok(Some(now));
        }
        self.handle.forget_operation()?;
        Ok(None)
    }
}
