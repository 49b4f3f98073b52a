//! What a run that follows another takes over from it.

use serde_json::{Map, Value};

use crate::model::definition::Skill;
use crate::model::outcome::Outcome;
use crate::model::spec::OutputKind;
use crate::model::{Diagnostic, RunId};
use crate::store::Store;

/// Gives a skill the outputs of a run that succeeded, for each input of the same name that has no value yet: the
/// path of a file, relative to the workspace, and the id of a commit.
///
/// # Errors
/// The run cannot be read.
pub(super) fn add_outputs(
    store: &dyn Store,
    run: RunId,
    skill: &Skill,
    inputs: &mut Map<String, Value>,
) -> Result<(), Diagnostic> {
    let summary = store.summary(run)?;
    let Some(summary) = summary.filter(|ended| ended.outcome == Some(Outcome::Succeeded)) else {
        return Ok(());
    };
    let Some(spec) = store.spec(run)? else {
        return Ok(());
    };
    for output in &spec.outputs {
        let value = match output.kind {
            OutputKind::GitCommit => summary.newest_commit().cloned(),
            OutputKind::Markdown | OutputKind::Json | OutputKind::File => output.path.clone(),
            OutputKind::Console => None,
        };
        let is_wanted = skill.inputs.iter().any(|input| input.name == output.name);
        if let Some(value) = value.filter(|_| is_wanted && !inputs.contains_key(&output.name)) {
            inputs.insert(output.name.clone(), value.into());
        }
    }
    Ok(())
}
