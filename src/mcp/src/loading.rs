//! The tools that hand skills and their files out: `skill`, `loadSkill`, `loadSkillFile`, `list_skills`.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

use super::finding::{Found, alternatives, find, listed_beside, shown};
use super::page::{self, Unreadable};
use super::skills::{Entry, PEOPLE_ONLY, Skills, What};
use super::{answer, input_schema};
use crate::catalog::roots::files::{self, FileList, SupportingFile};
use crate::catalog::roots::loaded::LoadedSkill;
use crate::catalog::roots::trust::TrustFiles;
use crate::catalog::roots::worker_page::{self, WorkerPage};
use crate::catalog::{Conditions, RootSkill};
use crate::model::Skill;
use crate::model::diagnostic::chain;
use crate::model::legible::{legible, legible_lines};

/// Skills that one answer of `list_skills` holds.
const LISTED_MAX: usize = 1_000;

/// Bytes of skills in one answer of `list_skills`: agents cut what is longer than about 10,000.
const LISTED_BYTES_MAX: usize = 8 * 1024;

/// The tool `skill`.
pub(super) fn skill(skills: &Skills, trust: &TrustFiles, name: &str) -> CallToolResult {
    let missing = || answer::plain(not_found(skills, name));
    let entry = match find(skills, name) {
        Found::Skill(entry) => entry,
        Found::Unknown => return missing(),
        Found::Ambiguous(names) => {
            let text = format!(
                "Skill '{}' belongs to several workers.\n\nUse one of: {}",
                shown(name),
                alternatives(&names)
            );
            return answer::plain(text);
        }
        Found::Broken(problems) => {
            return answer::plain(unusable(name, &Unreadable::of(&problems).message()));
        }
    };
    match page::hand_out(skills, trust, &entry) {
        Ok(page) if !page.model_invocable => answer::plain(unusable(name, PEOPLE_ONLY)),
        Ok(page) => answer::plain(loading(&entry, &page)),
        Err(Unreadable::Gone) => missing(),
        Err(why) => answer::plain(unusable(name, &why.message())),
    }
}

/// What a skill that is handed out looks like.
pub(super) fn loading(entry: &Entry, page: &page::Page) -> String {
    let name = match &entry.what {
        What::Worker(..) => &entry.name,
        What::Root(skill) => &legible(&skill.name).into_owned(),
    };
    format!(
        "Loading: {name}\nBase directory: {}\n\n{}",
        page.directory, page.text
    )
}

fn not_found(skills: &Skills, name: &str) -> String {
    let (name, listed) = (shown(name), listed_beside(skills, name));
    let dashes = listed.dashes;
    if listed.is_empty {
        return format!("Skill '{name}' not found.\n\n{dashes}");
    }
    format!(
        "Skill '{name}' not found.\n\nAvailable skills:\n{dashes}\n\nUse the exact skill name (case-insensitive) to load a skill."
    )
}

fn unusable(name: &str, why: &str) -> String {
    format!(
        "Skill '{}' cannot be loaded: {}.",
        shown(name),
        legible_lines(why)
    )
}

/// A skill that is handed out, read at that moment.
pub(super) enum Handed {
    OfWorker(Arc<Skill>),
    OfRoot(Arc<RootSkill>, Box<LoadedSkill>),
}

/// A skill that may be handed out; otherwise what to say.
fn handed_out(skills: &Skills, trust: &TrustFiles, name: &str) -> Result<(Entry, Handed), String> {
    let entry = match find(skills, name) {
        Found::Skill(entry) => entry,
        Found::Unknown => return Err(format!("Skill '{}' not found", shown(name))),
        Found::Ambiguous(names) => {
            return Err(format!(
                "Skill '{}' belongs to several workers: use one of {}",
                shown(name),
                alternatives(&names)
            ));
        }
        Found::Broken(problems) => {
            return Err(unusable(name, &Unreadable::of(&problems).message()));
        }
    };
    let handed = hand_out(trust, &entry).map_err(|why| unusable(name, &why))?;
    Ok((entry, handed))
}

/// Reads a skill for a model; otherwise why it is not handed out.
pub(super) fn hand_out(trust: &TrustFiles, entry: &Entry) -> Result<Handed, String> {
    let withheld = || entry.withheld().map(str::to_owned);
    if let Some(why) = entry.unusable().or_else(withheld) {
        return Err(why);
    }
    let skill = match &entry.what {
        What::Root(skill) => skill,
        What::Worker(_, skill) if !Conditions::of(skill).model_invocable => {
            return Err(PEOPLE_ONLY.to_owned());
        }
        What::Worker(_, skill) => return Ok(Handed::OfWorker(Arc::clone(skill))),
    };
    match skill.hand_out(trust) {
        Err(why) => Err(Unreadable::from(why).message()),
        Ok(loaded) if !loaded.keys.model_invocable => Err(PEOPLE_ONLY.to_owned()),
        Ok(loaded) => Ok(Handed::OfRoot(Arc::clone(skill), Box::new(loaded))),
    }
}

impl Handed {
    /// A file beside it.
    pub(super) fn file(
        &self,
        skills: &Skills,
        trust: &TrustFiles,
        path: &str,
    ) -> Result<Vec<u8>, String> {
        let path = &self.real_path(skills, path);
        let read = match self {
            Handed::OfRoot(skill, loaded) => skill.hand_out_file(loaded, path, trust),
            Handed::OfWorker(skill) => WorkerPage::of(&skills.catalog.root, skill)
                .ok_or("the skill is defined in worker.yaml and has no files")?
                .file(path),
        };
        read.map_err(|error| legible_lines(&chain(&error)).into_owned())
    }

    /// The path of a file that may be listed with what is hidden in it escaped.
    fn real_path<'p>(&self, skills: &Skills, path: &'p str) -> Cow<'p, str> {
        if !path.contains('\\') {
            return path.into();
        }
        let listed = match self {
            Handed::OfRoot(skill, loaded) => files::list(skill, &loaded.keys).ok(),
            Handed::OfWorker(skill) => {
                let page = WorkerPage::of(&skills.catalog.root, skill);
                page.and_then(|page| page.files().ok())
            }
        };
        let all = listed.into_iter().flat_map(|listed| listed.files);
        let found = all.map(|file| file.path).find(|one| legible(one) == path);
        found.map_or(path.into(), Cow::Owned)
    }

    /// The same as text.
    fn file_text(&self, skills: &Skills, trust: &TrustFiles, path: &str) -> Result<String, String> {
        String::from_utf8(self.file(skills, trust, path)?).map_err(|_| {
            format!(
                "`{}` is not text; it is at `{}`",
                shown(path),
                self.directory(skills).join(path).display()
            )
        })
    }

    fn directory(&self, skills: &Skills) -> PathBuf {
        match self {
            Handed::OfRoot(skill, _) => skill.directory(),
            Handed::OfWorker(skill) => WorkerPage::of(&skills.catalog.root, skill)
                .and_then(|page| page.path().parent().map(PathBuf::from))
                .unwrap_or_default(),
        }
    }
}

/// The tool `loadSkill`: what a skill says, with the files that can be loaded.
pub(super) fn load_skill(skills: &Skills, trust: &TrustFiles, name: &str) -> CallToolResult {
    let (listed, mut data) = match handed_out(skills, trust, name) {
        Err(why) => return answer::failure(why),
        Ok((entry, Handed::OfWorker(skill))) => match page::of_worker(skills, &skill) {
            Ok(page) => {
                let own = WorkerPage::of(&skills.catalog.root, &skill);
                let listed = own.and_then(|own| own.files().ok()).unwrap_or_default();
                let data = json!({
                    "name": entry.name,
                    "description": entry.description(),
                    "toolsets": worker_page::toolsets(&skill),
                    "files": described(&listed),
                    "content": page.body,
                });
                (listed, data)
            }
            Err(why) => return answer::failure(unusable(name, &why.message())),
        },
        Ok((_, Handed::OfRoot(skill, loaded))) => {
            let description = legible_lines(&loaded.keys.description);
            let listed = files::list(&skill, &loaded.keys).unwrap_or_default();
            let data = json!({
                "name": legible(&skill.name),
                "description": description,
                "toolsets": loaded.keys.toolsets,
                "files": described(&listed),
                "content": loaded.body,
            });
            (listed, data)
        }
    };
    if listed.cut {
        data["cut"] = json!(true);
    }
    let mut result = answer::success(data.to_string());
    if listed.cut {
        result.content.push(ContentBlock::text(cut()));
    }
    result
}

/// What is said where not all files beside a skill are listed.
pub(super) fn cut() -> String {
    format!(
        "Not all files are listed: the directory has more than {} entries.",
        files::ENTRIES_MAX
    )
}

/// The files that can be loaded, with what is said of them, or else their size.
fn described(list: &FileList) -> Value {
    let described = |file: &SupportingFile| {
        let said = file.description.clone();
        let size = file
            .bytes
            .map_or(String::new(), |bytes| format!("{bytes} bytes"));
        let said = said.unwrap_or(size);
        json!({"path": legible(&file.path), "description": legible_lines(&said)})
    };
    let readable = list.files.iter().filter(|file| file.refused.is_none());
    readable.map(described).collect()
}

/// The tool `loadSkillFile`: a file beside a skill.
pub(super) fn load_file(
    skills: &Skills,
    trust: &TrustFiles,
    name: &str,
    path: &str,
) -> CallToolResult {
    let (entry, handed) = match handed_out(skills, trust, name) {
        Ok(found) => found,
        Err(why) => return answer::failure(why),
    };
    match handed.file_text(skills, trust, path) {
        Ok(text) => answer::success(text),
        Err(why) => answer::failure(format!(
            "File of skill '{}' cannot be loaded: {why}",
            entry.name
        )),
    }
}

/// What `list_skills` was asked.
pub(super) struct Query<'a> {
    /// Words that name or description hold, case aside.
    pub(super) words: &'a str,
    /// Skills to leave out at the beginning.
    pub(super) offset: usize,
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
    let rest = all.get(query.offset..).unwrap_or_default();
    let (listed, shortened) = one_answer(skills, rest);
    let next = query.offset.saturating_add(listed.len());
    let rest = all.len().saturating_sub(next);
    let mut said = match rest {
        0 => format!("{} in all.", all.len()),
        _ => format!(
            "{rest} more of {}: call again with `offset: {next}`, or with a `query`.",
            all.len()
        ),
    };
    if shortened {
        said.push_str(" Long descriptions are shortened here; a `query` that finds fewer skills, or `skill`, gives them in full.");
    }
    // Before the list, which may be cut by whoever reads it; and Gemini CLI refuses an answer that begins with a JSON list.
    let mut result = answer::success(said);
    let list = Value::from(listed).to_string();
    result.content.push(ContentBlock::text(list));
    result
}

/// As many skills as fit into one answer; and whether descriptions are shortened, so that more of them do.
fn one_answer(skills: &Skills, rest: &[&Entry]) -> (Vec<Value>, bool) {
    let rest = rest.get(..LISTED_MAX).unwrap_or(rest);
    let within = |brief: bool| {
        let mut size = 0_usize;
        let mut found: Vec<Value> = Vec::new();
        for entry in rest {
            let one = listed(skills, entry, brief);
            size += one.to_string().len() + 1;
            // One at least, so that whoever reads on comes to an end.
            if size > LISTED_BYTES_MAX && !found.is_empty() {
                break;
            }
            found.push(one);
        }
        (found, size <= LISTED_BYTES_MAX)
    };
    let (complete, fits) = within(false);
    if fits {
        return (complete, false);
    }
    let (found, _) = within(true);
    let long = |entry: &&Entry| answer::is_long(entry.description());
    let shortened = rest.iter().take(found.len()).any(long);
    (found, shortened)
}

fn listed(skills: &Skills, entry: &Entry, brief: bool) -> Value {
    let description = entry.description();
    let description = if brief {
        answer::brief(description)
    } else {
        description.into()
    };
    let mut one = json!({
        "name": entry.name,
        "description": description,
        "source": entry.source(),
    });
    one["mutating"] = json!(entry.is_mutating());
    if let Some(input) = input_schema::of(skills, entry) {
        one["input_schema"] = input;
    }
    if let Some(why) = skills.unavailable(entry) {
        one["unavailable"] = json!(why);
    }
    one
}
