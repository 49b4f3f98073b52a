//! What a person wants of a skill without inputs, in words.

use crate::model::definition::{RunText, Skill};
use crate::model::{Diagnostic, Kind};

/// Most bytes of it, as of a value.
const BYTES_MAX: usize = 64 * 1024;

/// Refuses a text for a skill that is given values instead, and one that says nothing.
pub(super) fn check(skill: &Skill, message: Option<&str>) -> Result<(), Diagnostic> {
    let Some(message) = message else {
        return Ok(());
    };
    let refused = |why: String| Diagnostic::new(Kind::Usage, "message", why);
    let address = &skill.address;
    if skill.run != RunText::Instructions {
        let why = format!("`{address}` runs a command, which takes no message");
        let inputs = hint_of_inputs(skill);
        return Err(refused(why)
            .hint(inputs.unwrap_or_else(|| "it has no inputs: run it without `-m`".to_owned())));
    }
    if let Some(hint) = hint_of_inputs(skill) {
        let why = format!("`{address}` takes its task as inputs, not as a message");
        return Err(refused(why).hint(hint));
    }
    let schema = skill.kept.get("input_schema");
    if schema.is_some_and(|schema| !schema.is_null()) {
        let why =
            format!("`{address}` takes its task as `input_schema` describes it, not as a message");
        return Err(refused(why).hint(format!(
            "give it with `-i NAME=VALUE` or `--inputs-json FILE`; `workerctl skill show {address}` shows the schema"
        )));
    }
    if message.trim().is_empty() {
        return Err(refused("the message is blank".to_owned()));
    }
    if message.len() > BYTES_MAX {
        let why = format!("the message has more than {BYTES_MAX} bytes");
        return Err(refused(why).hint("name a file in it that the skill reads"));
    }
    Ok(())
}

/// How the inputs are given, where it declares any.
fn hint_of_inputs(skill: &Skill) -> Option<String> {
    let names: Vec<&str> = skill.inputs.iter().map(|one| one.name.as_str()).collect();
    let first = names.first()?;
    let all = names.join("`, `");
    Some(format!(
        "give its inputs, as in `-i {first}=VALUE`; it has `{all}`"
    ))
}
