//! The tool `Skill`, as Wave's contract words it.

use rmcp::model::CallToolResult;
use serde_json::{Value, json};

use super::answer;
use super::finding::{self, Found, alternatives, find, shown};
use super::page::{self, Unreadable};
use super::skills::{Entry, PEOPLE_ONLY, Skills, What};
use crate::catalog::dialect::wave;
use crate::catalog::roots::trust::TrustFiles;
use crate::model::legible::{legible, legible_lines};

/// What is said of a name that no skill can have, instead of how to create it.
const NO_NAME: &str =
    "A skill's name is not blank and holds no `/`, `\\`, `..` or control characters";

/// What went wrong, in the words of the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Category {
    NotFound,
    /// Several have the name: none was found by it alone.
    Ambiguous,
    Invalid,
    Inaccessible,
    Malformed,
}

impl Category {
    const fn name(self) -> &'static str {
        match self {
            Category::NotFound | Category::Ambiguous => "skill_not_found",
            Category::Invalid => "skill_invalid",
            Category::Inaccessible => "skill_inaccessible",
            Category::Malformed => "skill_malformed",
        }
    }
}

/// Hands a skill out.
pub(super) fn invoke(skills: &Skills, trust: &TrustFiles, name: &str) -> CallToolResult {
    let refuse = |category, error: &str, suggestions: &[String]| {
        refusal(skills, name, category, error, suggestions)
    };
    let entry = match find(skills, name) {
        Found::Skill(entry) => entry,
        Found::Unknown => return refuse(Category::NotFound, "not found", &creation(name)),
        Found::Ambiguous(names) => {
            let error = format!(
                "several workers have it; name one of {}",
                alternatives(&names)
            );
            return refuse(Category::Ambiguous, &error, &names);
        }
        Found::Broken(problems) => {
            let hints: Vec<String> = problems.iter().filter_map(|one| one.hint.clone()).collect();
            let why = Unreadable::of(&problems);
            return refuse(category_of(&why), &why.message(), &hints);
        }
    };
    match page::hand_out(skills, trust, &entry) {
        Ok(page) if !page.model_invocable => {
            let why = PEOPLE_ONLY;
            refuse(Category::Inaccessible, why, &[])
        }
        Ok(page) => success(skills, &entry, &page),
        Err(Unreadable::Gone) => refuse(Category::NotFound, "not found", &creation(name)),
        Err(Unreadable::Invalid(violations)) => {
            let text = wave::invalid_text(&entry.name, &violations);
            let fixes: Vec<String> = violations.iter().map(|one| one.fix.clone()).collect();
            let error = Unreadable::Invalid(violations).message();
            told(skills, name, Category::Invalid, text, &error, &fixes)
        }
        Err(why) => refuse(category_of(&why), &why.message(), &[]),
    }
}

fn category_of(why: &Unreadable) -> Category {
    match why {
        Unreadable::Gone => Category::NotFound,
        Unreadable::Inaccessible(_) | Unreadable::Untrusted(_) | Unreadable::Unavailable(_) => {
            Category::Inaccessible
        }
        Unreadable::Malformed(_) => Category::Malformed,
        Unreadable::Invalid(_) => Category::Invalid,
    }
}

fn creation(name: &str) -> Vec<String> {
    if !finding::may_be_a_name(name) {
        return vec![NO_NAME.to_owned()];
    }
    vec![
        format!("Create directory ~/.wave/skills/{}/", shown(name)),
        "Add SKILL.md file with proper YAML frontmatter".to_owned(),
    ]
}

fn success(skills: &Skills, entry: &Entry, page: &page::Page) -> CallToolResult {
    let kind = if entry.is_personal(&skills.catalog.root) {
        "personal"
    } else {
        "project"
    };
    let name = match &entry.what {
        What::Worker(..) => &entry.name,
        What::Root(skill) => &legible(&skill.name).into_owned(),
    };
    let text = format!(
        "Skill: {name} (Type: {kind})\nPath: {}\n\n{}",
        page.directory, page.text
    );
    let result = json!({
        "success": true,
        "content": text,
        "shortResult": format!("{name}: {}", answer::brief(&legible_lines(&page.description))),
    });
    answer::structured(text, result, false)
}

fn refusal(
    skills: &Skills,
    name: &str,
    category: Category,
    error: &str,
    suggestions: &[String],
) -> CallToolResult {
    let available = &finding::listed_beside(skills, name).dashes;
    let (shown, error) = (shown(name), &*legible_lines(error));
    let text = if category == Category::NotFound && !finding::may_be_a_name(name) {
        format!("Skill '{shown}' not found.\n\nAvailable skills:\n{available}\n\n{NO_NAME}")
    } else if category == Category::NotFound {
        let mark = "\u{0}";
        wave::not_found_text(&shown, [(mark, "")]).replace(&format!("- {mark}: "), available)
    } else {
        format!("Error invoking skill '{shown}': {error}\n\nAvailable skills:\n{available}")
    };
    told(skills, name, category, text, error, suggestions)
}

fn told(
    skills: &Skills,
    name: &str,
    category: Category,
    text: String,
    error: &str,
    suggestions: &[String],
) -> CallToolResult {
    let gone = match find(skills, name) {
        Found::Skill(entry) => Some(entry.name),
        _ => None,
    };
    let name = shown(name);
    let message = match category {
        Category::NotFound => format!("Skill '{name}' not found"),
        _ => error.to_owned(),
    };
    let mut size = 0;
    let names: Vec<&str> = skills
        .for_models()
        .map(|one| one.name.as_str())
        .filter(|name| gone.as_deref() != Some(*name))
        .take_while(|name| {
            size += name.len() + 4;
            size <= skills.list_bytes()
        })
        .collect();
    let mut details = json!({
        "type": category.name(),
        "skillName": name,
        "message": message,
        "availableSkills": names,
    });
    if !suggestions.is_empty() {
        details["suggestions"] = json!(suggestions);
    }
    let result: Value = json!({
        "success": false,
        "content": text,
        "error": message,
        "errorDetails": details,
    });
    answer::structured(text, result, true)
}
