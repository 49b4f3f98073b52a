//! `skills:` in its many forms, together with the files that stand beside the worker.

use std::collections::HashMap;

use super::keys::not_a_list;
use super::open::{Refusal, Root};
use super::report::Report;
use super::run::join;
use super::skill_file::{SkillFile, stem_of};
use super::source::whole_file;
use super::tree::Data;
use super::view::View;
use crate::model::Place;

/// Skills of one worker.
const SKILLS_MAX: usize = 2_000;

/// A skill that is listed or was found, before its keys are read.
#[derive(Debug)]
pub(crate) struct Item<'a> {
    /// Its id.
    pub(crate) id: String,
    /// Keys in worker.yaml.
    pub(crate) inline: Option<View<'a>>,
    /// Its own file.
    pub(crate) file: FileOf<'a>,
    /// Where it is listed, else its file.
    pub(crate) place: Place,
    /// Whether worker.yaml names it.
    pub(crate) listed: bool,
}

/// Whether a skill has a file of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FileOf<'a> {
    /// It needs none.
    None,
    /// It is read.
    Read(&'a SkillFile),
    /// It is named and not there; index of the refusal in [`Files::missing`].
    Missing(usize),
    /// It is there and broken; its problems are reported with it.
    Broken,
}

/// The skill files of a worker.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// Read files by path.
    pub(crate) read: HashMap<String, Option<SkillFile>>,
    /// Named files that are not there.
    pub(crate) missing: Vec<(String, Refusal)>,
    /// Every path that was looked at, for reloads.
    pub(crate) depends: Vec<String>,
}

impl Files {
    /// Reads the files that stand in `skills/` and those that worker.yaml names elsewhere.
    pub(crate) fn read(
        skills: Option<View<'_>>,
        found: &[String],
        directory: &str,
        root: &Root,
        report: &mut Report,
    ) -> Files {
        let mut files = Files::default();
        for path in found {
            let file = load(root, path, report);
            files.read.insert(path.clone(), file);
        }
        for item in skills.into_iter().flat_map(|skills| items_of(skills).0) {
            let Some((_, path)) = named_path(item, directory) else {
                continue;
            };
            if files.read.contains_key(&path) || files.depends.contains(&path) {
                continue;
            }
            files.depends.push(path.clone());
            match root.find_file(&path) {
                Ok(_) => {
                    let file = load(root, &path, report);
                    files.read.insert(path, file);
                }
                Err(refusal) => files.missing.push((path, refusal)),
            }
        }
        files
    }

    fn of<'a>(&'a self, path: &str) -> FileOf<'a> {
        match self.read.get(path) {
            Some(Some(file)) => FileOf::Read(file),
            Some(None) => FileOf::Broken,
            None => self
                .missing
                .iter()
                .position(|(missing, _)| missing == path)
                .map_or(FileOf::None, FileOf::Missing),
        }
    }
}

fn load(root: &Root, path: &str, report: &mut Report) -> Option<SkillFile> {
    report.set_skill(Some(stem_of(path)));
    let file = root
        .source(path, report)
        .and_then(|source| super::skill_file::read(source, report));
    report.set_skill(None);
    file
}

/// Items of `skills` and whether they stand in a map.
fn items_of(skills: View<'_>) -> (Vec<View<'_>>, bool) {
    match skills.data() {
        Data::Map(_) => (
            skills
                .get("installed")
                .map(|installed| installed.items().collect())
                .unwrap_or_default(),
            true,
        ),
        _ => (skills.items().collect(), false),
    }
}

/// Key and workspace path of a file that an item names.
fn named_path<'a>(item: View<'a>, directory: &str) -> Option<(View<'a>, String)> {
    let view = match item.data() {
        Data::Map(_) => ["file", "path"]
            .into_iter()
            .find_map(|key| item.written(key))?,
        Data::Text(text) if text.contains('/') || is_markdown(text) => item,
        _ => return None,
    };
    Some((view, join(directory, &view.scalar_text()?)?))
}

/// Every skill of a worker: those listed in their order, then those only found.
pub(crate) fn collect<'a>(
    skills: Option<View<'a>>,
    files: &'a Files,
    found: &[String],
    directory: &str,
    report: &mut Report,
) -> Vec<Item<'a>> {
    let mut items = Vec::new();
    let mut used: Vec<String> = Vec::new();
    if let Some(skills) = skills {
        let (views, map) = items_of(skills);
        if map && skills.get("installed").is_none() {
            not_a_list(skills, "skills", "id", report);
        } else if map {
            report.warning(
                "skills-as-map",
                skills.key_place(),
                "`skills` is a map: `installed` is taken as the list of skills".to_owned(),
                "write `skills:` as a list",
            );
        } else if !matches!(skills.data(), Data::List(_)) {
            skills.wrong_type("skills", "a list", report);
        }
        if views.len() > SKILLS_MAX {
            let message = format!("more than {SKILLS_MAX} skills");
            report.error("too-many", skills.place(), message, "divide the worker");
            return items;
        }
        for view in views {
            if let Some((item, path)) = listed(view, files, directory, report) {
                used.extend(path);
                items.push(item);
            }
        }
    }
    let others = found.iter().filter(|path| !used.contains(path));
    items.extend(others.map(|path| unlisted(path, files)));
    items
}

fn listed<'a>(
    view: View<'a>,
    files: &'a Files,
    directory: &str,
    report: &mut Report,
) -> Option<(Item<'a>, Option<String>)> {
    let inline = match view.data() {
        Data::Map(_) => Some(view),
        Data::Null | Data::List(_) => {
            view.wrong_type("skills", "a map with `id`, or the id alone", report);
            return None;
        }
        Data::Bool(_) | Data::Number(_) | Data::Text(_) => None,
    };
    let named = named_path(view, directory);
    let own = |key: &str, report: &mut Report| match inline {
        Some(map) => map
            .written(key)
            .and_then(|value| value.filled_text(key, report)),
        None => None,
    };
    check_paths(inline, directory, report)?;
    let stem = named.as_ref().map(|(_, path)| stem_of(path).to_owned());
    let plain = if inline.is_none() && named.is_none() {
        view.filled_text("skills", report)
    } else {
        None
    };
    let id = own("id", report)
        .or_else(|| own("name", report))
        .or(plain)
        .or_else(|| stem.clone());
    let Some(id) = id else {
        let message = "a skill has neither `id` nor `name` nor `file`".to_owned();
        report.error("missing-key", view.place(), message, "add `id`");
        return None;
    };
    let path = named.map(|(_, path)| path).or_else(|| {
        let beside = [
            format!("{directory}/skills/{id}.md"),
            format!("{directory}/skills/{id}/SKILL.md"),
        ];
        let has_own = inline.is_some_and(|map| map.get("run").is_some());
        beside
            .into_iter()
            .find(|path| !has_own && files.read.contains_key(path))
    });
    let file = path.as_deref().map_or(FileOf::None, |path| files.of(path));
    let is_missing = matches!(file, FileOf::Missing(_));
    if let Some(stem) = stem.filter(|stem| !is_missing && !stem.eq_ignore_ascii_case(&id)) {
        report.warning(
            "skill-id-mismatch",
            view.place(),
            format!("the skill is `{id}`, its file is named after `{stem}`"),
            &format!("rename the file, or write `id: {stem}`"),
        );
    }
    let item = Item {
        id,
        inline,
        file,
        place: view.place(),
        listed: true,
    };
    Some((item, path))
}

/// Rejects an item whose file leads out of the workspace.
fn check_paths(inline: Option<View<'_>>, directory: &str, report: &mut Report) -> Option<()> {
    for key in ["file", "path"] {
        let Some(value) = inline.and_then(|map| map.get(key)).filter(|v| !v.is_null()) else {
            continue;
        };
        let path = value.filled_text(key, report)?;
        if join(directory, &path).is_none() {
            let message = format!(
                "`{key}: {}` leads out of the workspace",
                path.escape_debug()
            );
            let hint = "write a path relative to worker.yaml";
            report.error("path-outside", value.place(), message, hint);
            return None;
        }
    }
    Some(())
}

fn is_markdown(path: &str) -> bool {
    std::path::Path::new(path)
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("md"))
}

fn unlisted<'a>(path: &str, files: &'a Files) -> Item<'a> {
    let file = files.of(path);
    let written = match file {
        FileOf::Read(file) => file.keys().and_then(|keys| {
            ["id", "name"]
                .into_iter()
                .find_map(|key| keys.get(key)?.scalar_text())
                .filter(|id| !id.trim().is_empty())
        }),
        FileOf::None | FileOf::Missing(_) | FileOf::Broken => None,
    };
    let place = match file {
        FileOf::Read(file) => file.place(),
        FileOf::None | FileOf::Missing(_) | FileOf::Broken => whole_file(path),
    };
    Item {
        id: written.unwrap_or_else(|| stem_of(path).to_owned()),
        inline: None,
        file,
        place,
        listed: false,
    }
}
