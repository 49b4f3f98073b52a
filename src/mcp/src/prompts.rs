//! Skills as prompts, for people who pick them.

use std::fmt::Write;

use rmcp::ErrorData;
use rmcp::model::{
    GetPromptResult, JsonObject, ListPromptsResult, Prompt, PromptArgument, PromptMessage, Role,
};
use serde_json::Value;

use super::cursor;
use super::finding::{Found, find, shown};
use super::loading::loading;
use super::page;
use super::skills::{Entry, Skills, What};
use crate::model::legible::legible_lines;

/// Prompts of one page.
const PAGE: usize = 500;

/// Bytes of the arguments of a prompt.
const ARGUMENTS_BYTES_MAX: usize = 256 * 1024;

/// One page of prompts.
pub(super) fn list(skills: &Skills, cursor: Option<&str>) -> Result<ListPromptsResult, ErrorData> {
    let (page, next) = cursor::page("prompts", cursor, skills.for_people(), PAGE)?;
    let prompts = page.into_iter().map(prompt).collect();
    let mut result = ListPromptsResult::with_all_items(prompts);
    result.next_cursor = next;
    Ok(result)
}

fn prompt(entry: &Entry) -> Prompt {
    let arguments: Vec<PromptArgument> = match &entry.what {
        What::Worker(_, skill) => skill
            .inputs
            .iter()
            .map(|input| {
                let argument = PromptArgument::new(&input.name).with_required(input.required);
                match &input.description {
                    Some(said) => argument.with_description(legible_lines(said)),
                    None => argument,
                }
            })
            .collect(),
        What::Root(_) => vec![
            PromptArgument::new("arguments")
                .with_description("What the skill is to be applied to")
                .with_required(false),
        ],
    };
    let arguments = (!arguments.is_empty()).then_some(arguments);
    Prompt::new(&entry.name, Some(entry.description()), arguments)
}

/// One skill as the message of a user.
pub(super) fn get(
    skills: &Skills,
    name: &str,
    arguments: Option<JsonObject>,
) -> Result<GetPromptResult, ErrorData> {
    let unknown = || {
        let why = format!(
            "no prompt is named `{}`; `prompts/list` lists them",
            shown(name)
        );
        ErrorData::invalid_params(why, None)
    };
    let Found::Skill(entry) = find(skills, name) else {
        return Err(unknown());
    };
    if !skills.is_for_people(&entry) {
        return Err(unknown());
    }
    let page = page::hand_out(skills, skills.trust(), &entry).map_err(|why| {
        let why = legible_lines(&why.message()).into_owned();
        let why = format!("`{}` cannot be loaded: {why}", shown(name));
        ErrorData::invalid_params(why, None)
    })?;
    let mut text = loading(&entry, &page);
    let given = arguments.unwrap_or_default();
    let size: usize = given
        .iter()
        .map(|(key, value)| key.len() + value.to_string().len())
        .sum();
    if size > ARGUMENTS_BYTES_MAX {
        let why = format!("more than {ARGUMENTS_BYTES_MAX} bytes of arguments");
        return Err(ErrorData::invalid_params(why, None));
    }
    for (at, (key, value)) in given.iter().enumerate() {
        let value = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let head = if at == 0 { "\n\nArguments:\n" } else { "\n" };
        // Writing into a string cannot fail.
        let _ = write!(text, "{head}{key}: {value}");
    }
    let mut result = GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]);
    result.description = Some(entry.description().to_owned());
    Ok(result)
}
