//! The tools that hand skills and their files out: `skill`, `loadSkill`, `loadSkillFile`, `list_skills`.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

use super::answer;
use super::finding::{Found, find, shown};
use super::page::{self, Unreadable};
use super::skills::{Entry, Skills, Standing, What};
use crate::catalog::roots::files;

/// Skills that one answer of `list_skills` holds.
const LISTED_MAX: usize = 1_000;

/// The tool `skill`.
pub(super) fn skill(skills: &Skills, name: &str) -> CallToolResult {
    let missing = || answer::plain(not_found(skills, name));
    let entry = match find(skills, name) {
        Found::Skill(entry) => entry,
        Found::Unknown => return missing(),
        Found::Ambiguous(names) => {
            let text = format!(
                "Skill '{}' belongs to several workers.\n\nUse one of: {}",
                shown(name),
                names.join(", ")
            );
            return answer::plain(text);
        }
        Found::Broken(problems) => {
            return answer::plain(unusable(name, &Unreadable::of(&problems).message()));
        }
    };
    let standing = skills.standing(&entry);
    if let (Standing::Untrusted | Standing::PeopleOnly, Some(why)) = (standing, standing.reason()) {
        return answer::plain(unusable(name, why));
    }
    match page::read(skills, &entry) {
        Ok(page) => answer::plain(loading(&entry, &page)),
        Err(Unreadable::Gone) => missing(),
        Err(why) => answer::plain(unusable(name, &why.message())),
    }
}

/// What a skill that is handed out looks like.
pub(super) fn loading(entry: &Entry, page: &page::Page) -> String {
    let name = match &entry.what {
        What::Worker(..) => &entry.name,
        What::Root(skill) => &skill.name,
    };
    format!(
        "Loading: {name}\nBase directory: {}\n\n{}",
        page.directory, page.text
    )
}

fn not_found(skills: &Skills, name: &str) -> String {
    format!(
        "Skill '{}' not found.\n\nAvailable skills:\n{}\n\nUse the exact skill name (case-insensitive) to load a skill.",
        shown(name),
        skills.listed().dashes
    )
}

fn unusable(name: &str, why: &str) -> String {
    format!("Skill '{}' cannot be loaded: {why}.", shown(name))
}

/// A skill of a root that may be handed out; otherwise what to say.
fn handed_out(skills: &Skills, name: &str) -> Result<Entry, String> {
    let entry = match find(skills, name) {
        Found::Skill(entry) => entry,
        Found::Unknown => return Err(format!("Skill '{}' not found", shown(name))),
        Found::Ambiguous(names) => {
            return Err(format!(
                "Skill '{}' belongs to several workers: use one of {}",
                shown(name),
                names.join(", ")
            ));
        }
        Found::Broken(problems) => {
            return Err(unusable(name, &Unreadable::of(&problems).message()));
        }
    };
    match skills.standing(&entry).reason() {
        Some(why) => Err(unusable(name, why)),
        None => Ok(entry),
    }
}

/// The tool `loadSkill`: what a skill says, with the files that can be loaded.
pub(super) fn load_skill(skills: &Skills, name: &str) -> CallToolResult {
    let entry = match handed_out(skills, name) {
        Ok(entry) => entry,
        Err(why) => return answer::failure(why),
    };
    let data = match &entry.what {
        What::Worker(_, skill) => match page::read(skills, &entry) {
            Ok(page) => json!({
                "name": entry.name, "description": skill.description, "toolsets": [], "files": [],
                "content": page.text,
            }),
            Err(why) => return answer::failure(unusable(name, &why.message())),
        },
        What::Root(skill) => match skill.load() {
            Err(problems) => {
                return answer::failure(unusable(name, &Unreadable::of(&problems).message()));
            }
            Ok(loaded) => {
                let listed = files::list(skill, &loaded.keys).unwrap_or_default();
                let described = |file: &files::SupportingFile| {
                    let said = file.description.clone();
                    let size = file
                        .bytes
                        .map_or(String::new(), |bytes| format!("{bytes} bytes"));
                    json!({"path": file.path, "description": said.unwrap_or(size)})
                };
                let readable = listed.files.iter().filter(|file| file.refused.is_none());
                json!({
                    "name": skill.name,
                    "description": loaded.keys.description,
                    "toolsets": loaded.keys.toolsets,
                    "files": readable.map(described).collect::<Vec<Value>>(),
                    "content": loaded.body,
                })
            }
        },
    };
    answer::structured(data.to_string(), data, false)
}

/// The tool `loadSkillFile`: a file beside a skill.
pub(super) fn load_file(skills: &Skills, name: &str, path: &str) -> CallToolResult {
    let entry = match handed_out(skills, name) {
        Ok(entry) => entry,
        Err(why) => return answer::failure(why),
    };
    match file_text(&entry, path) {
        Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
        Err(why) => answer::failure(format!(
            "File of skill '{}' cannot be loaded: {why}",
            entry.name
        )),
    }
}

/// A file beside a skill, as text.
pub(super) fn file_text(entry: &Entry, path: &str) -> Result<String, String> {
    let What::Root(skill) = &entry.what else {
        return Err("the skill of a worker has no files to load".to_owned());
    };
    let loaded = skill
        .load()
        .map_err(|problems| Unreadable::of(&problems).message())?;
    let bytes = files::read(skill, &loaded.keys, path)
        .map_err(|error| crate::model::diagnostic::chain(&error))?;
    String::from_utf8(bytes).map_err(|_| {
        let place = skill.directory().join(path);
        format!(
            "`{}` is not text; it lies at `{}`",
            shown(path),
            place.display()
        )
    })
}

/// What `list_skills` was asked.
pub(super) struct Query<'a> {
    /// Words that name or description hold, case aside.
    pub(super) words: &'a str,
    /// Skills to leave out at the beginning.
    pub(super) offset: usize,
    /// Whether mutating skills may be run.
    pub(super) mutating: bool,
}

/// The tool `list_skills`.
pub(super) fn list_skills(skills: &Skills, query: &Query<'_>) -> CallToolResult {
    let wanted = query.words.to_lowercase();
    let words: Vec<&str> = wanted.split_whitespace().collect();
    let matches = |entry: &&Entry| {
        let text = format!("{}\n{}", entry.name, entry.description()).to_lowercase();
        words.iter().all(|word| text.contains(word))
    };
    let all: Vec<&Entry> = skills.entries.iter().filter(matches).collect();
    let page = all.iter().skip(query.offset).take(LISTED_MAX);
    let listed: Vec<Value> = page
        .map(|entry| listed(skills, entry, query.mutating))
        .collect();
    let next = query.offset.saturating_add(listed.len());
    let text = Value::from(listed.clone()).to_string();
    let mut data = json!({"skills": listed, "total": all.len()});
    if next < all.len() {
        data["next_offset"] = json!(next);
    }
    let mut result = answer::structured(text, data, false);
    if next < all.len() {
        let more = format!(
            "{} more: call again with `offset: {next}`",
            all.len() - next
        );
        result.content.push(ContentBlock::text(more));
    }
    result
}

fn listed(skills: &Skills, entry: &Entry, mutating: bool) -> Value {
    let mut one = json!({
        "name": entry.name,
        "description": entry.description(),
        "source": entry.source(),
    });
    let why = match &entry.what {
        What::Root(_) => skills.standing(entry).reason().map(str::to_owned),
        What::Worker(_, skill) if !skill.is_available() => Some(
            skill
                .unavailable
                .iter()
                .map(|one| one.reason.as_str())
                .collect::<Vec<_>>()
                .join("; "),
        ),
        What::Worker(_, skill) if skill.mutating && !mutating => {
            Some(super::running::NOT_ALLOWED.to_owned())
        }
        What::Worker(worker, _) if worker.template => Some("its worker is a template".to_owned()),
        What::Worker(..) => None,
    };
    if let What::Worker(_, skill) = &entry.what {
        one["mutating"] = json!(skill.mutating);
        let inputs = skill.inputs.iter().map(|input| {
            json!({"name": input.name, "type": input.kind.name(), "required": input.required,
                   "description": input.description})
        });
        one["inputs"] = inputs.collect();
    }
    if let Some(why) = why {
        one["unavailable"] = json!(why);
    }
    one
}
