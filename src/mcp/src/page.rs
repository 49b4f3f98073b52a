//! What a skill says, read at the moment in which it is handed out.

use std::fmt::Write;

use super::skills::{self, Entry, Skills, What};
use crate::catalog::roots::loaded::{LoadedSkill, Withheld};
use crate::catalog::roots::trust::{Trust, TrustFiles};
use crate::catalog::roots::worker_page::WorkerPage;
use crate::catalog::{Conditions, RootSkill};
use crate::model::definition::RunText;
use crate::model::{Problem, Skill};

/// A skill's text.
pub(super) struct Page {
    /// Its whole file.
    pub(super) text: String,
    /// What follows its frontmatter.
    pub(super) body: String,
    /// Its directory, absolute.
    pub(super) directory: String,
    /// What it does, as the text says it.
    pub(super) description: String,
    /// Whether a model may start it by itself.
    pub(super) model_invocable: bool,
}

/// Why a skill that was found is not handed out.
#[derive(Debug)]
pub(super) enum Unreadable {
    /// Its file is gone.
    Gone,
    /// The system refuses.
    Inaccessible(String),
    /// It is no skill any more.
    Malformed(String),
    /// It breaks the contract of its root.
    Invalid(Vec<crate::catalog::dialect::wave::Violation>),
    /// What it holds is not trusted.
    Untrusted(Trust),
    /// It lacks something, or asks for what is not there.
    Unavailable(String),
}

impl From<Withheld> for Unreadable {
    fn from(withheld: Withheld) -> Unreadable {
        match withheld {
            Withheld::Rejected(problems) => Unreadable::of(&problems),
            Withheld::Invalid(violations) => Unreadable::Invalid(violations),
            Withheld::Untrusted(state) => Unreadable::Untrusted(state),
        }
    }
}

impl Unreadable {
    /// For people.
    pub(super) fn message(&self) -> String {
        match self {
            Unreadable::Gone => "its file is gone".to_owned(),
            Unreadable::Inaccessible(why)
            | Unreadable::Malformed(why)
            | Unreadable::Unavailable(why) => why.clone(),
            Unreadable::Invalid(violations) => {
                let errors: Vec<&str> = violations.iter().map(|one| one.error.as_str()).collect();
                errors.join("; ")
            }
            Unreadable::Untrusted(state) => state.reason().unwrap_or_default().into_owned(),
        }
    }

    /// What the problems of a file that cannot be used come to.
    pub(super) fn of(problems: &[Problem]) -> Unreadable {
        let worst = problems.iter().map(|one| one.severity).max();
        let of_weight = problems.iter().filter(|one| Some(one.severity) == worst);
        let said: Vec<String> = of_weight
            .clone()
            .map(|one| format!("{}: {}", one.place, one.message))
            .collect();
        let code = of_weight
            .map(|one| one.code.as_str())
            .next()
            .unwrap_or_default();
        match code {
            "file-missing" | "directory-unreadable" => Unreadable::Gone,
            "file-unreadable" | "link-outside" | "not-a-file" => {
                Unreadable::Inaccessible(said.join("; "))
            }
            _ => Unreadable::Malformed(said.join("; ")),
        }
    }
}

/// Reads a skill anew for somebody who will follow it: trust covers exactly the text that is handed out.
pub(super) fn hand_out(
    skills: &Skills,
    trust: &TrustFiles,
    entry: &Entry,
) -> Result<Page, Unreadable> {
    let withheld = || entry.withheld().map(str::to_owned);
    if let Some(why) = entry.unusable().or_else(withheld) {
        return Err(Unreadable::Unavailable(why));
    }
    match &entry.what {
        What::Root(skill) => Ok(of_root(skill, skill.hand_out(trust)?)),
        What::Worker(_, skill) => of_worker(skills, skill),
    }
}

fn of_root(skill: &RootSkill, loaded: LoadedSkill) -> Page {
    Page {
        text: loaded.text,
        body: loaded.body,
        directory: skill.directory().to_string_lossy().into_owned(),
        description: loaded.keys.description,
        model_invocable: loaded.keys.model_invocable,
    }
}

/// Reads a worker's skill anew.
pub(super) fn of_worker(skills: &Skills, skill: &Skill) -> Result<Page, Unreadable> {
    let Some(page) = WorkerPage::of(&skills.catalog.root, skill) else {
        let changes = skill.mutating && !skills.may_change;
        let not_run = changes.then(|| skills.not_allowed().to_owned());
        let text = written_out(
            skill,
            not_run.or_else(|| skills::not_run(skill, &skills.catalog.config)),
        );
        return Ok(as_page(
            skill,
            (text.clone(), text),
            skill.directory.clone(),
        ));
    };
    let path = page.path();
    match page.read() {
        Ok(text) => {
            let directory = path.parent().unwrap_or(&path).to_string_lossy();
            Ok(as_page(
                skill,
                (text.whole, text.body),
                directory.into_owned(),
            ))
        }
        Err(_) if !path.exists() => Err(Unreadable::Gone),
        Err(why) => Err(Unreadable::Inaccessible(why)),
    }
}

fn as_page(skill: &Skill, (text, body): (String, String), directory: String) -> Page {
    Page {
        text,
        body,
        directory,
        description: skill.description.clone(),
        model_invocable: Conditions::of(skill).model_invocable,
    }
}

/// A skill that has no file of its own, as a page; with the reason where `use_skill` does not run it.
fn written_out(skill: &Skill, not_run: Option<String>) -> String {
    // JSON's texts are YAML's too.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let mut text = format!(
        "---\nname: {}\ndescription: {}\n---\n\n# {}\n",
        quoted(&skill.address.skill),
        quoted(&skill.description),
        skill.name
    );
    if let Some(instructions) = &skill.instructions {
        // Writing into a string cannot fail.
        let _ = write!(
            text,
            "\n{}\n",
            instructions.trim_end().trim_start_matches('\n')
        );
    }
    if skill.run != RunText::Instructions {
        let told = not_run.map_or_else(
            || format!("Run it with `use_skill`, `skill: {}`.", skill.address),
            |why| format!("`use_skill` does not run it: {why}."),
        );
        let _ = write!(text, "\n{told}\n");
    }
    for input in &skill.inputs {
        let need = match (&input.default, input.required) {
            (Some(default), _) if !input.sensitive => format!(", default {default}"),
            (_, true) => ", required".to_owned(),
            _ => String::new(),
        };
        let said = input.description.as_deref().unwrap_or_default();
        let _ = write!(
            text,
            "\n- `{}` ({}{need}) {said}",
            input.name,
            input.kind.name()
        );
    }
    text.trim_end().to_owned() + "\n"
}
