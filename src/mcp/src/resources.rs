//! Files of skills and threads of runs as resources: `skill://<skill>/<path>` and `thread://<run>`.

use std::borrow::Cow;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rmcp::ErrorData;
use rmcp::model::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate,
};
use serde_json::json;

use super::engines::Engines;
use super::finding::{Found, find, shown};
use super::loading::{cut, hand_out};
use super::page;
use super::skills::{Entry, PEOPLE_ONLY, Skills, What};
use super::{answer, cursor, kinds, threads};
use crate::catalog::RootSkill;
use crate::catalog::roots::Form;
use crate::catalog::roots::files::{self, FileList, SkillDirectory, SupportingFile};
use crate::catalog::roots::loaded::LoadedSkill;
use crate::catalog::roots::worker_page::WorkerPage;
use crate::model::Kind;
use crate::model::legible::{legible, legible_lines};

/// Skills whose files stand on one page.
const PAGE: usize = 100;

/// Bytes of files that are looked into for one page, to tell what is text.
const LOOKED_AT_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Longest address that is repeated as it was asked for.
const ADDRESS_BYTES_MAX: usize = 2_048;

/// What stands in percent form in one part of an address: all that RFC 3986 does not call unreserved.
const OUTSIDE_OF_SEGMENTS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The same in several parts.
const OUTSIDE_OF_PATHS: &AsciiSet = &OUTSIDE_OF_SEGMENTS.remove(b'/');

/// The file that every skill has.
const OWN: &str = "SKILL.md";

/// One page: the files of some skills, and on the last one the threads of the newest runs.
pub(super) fn list(
    skills: &Skills,
    engines: &Arc<Engines>,
    cursor: Option<&str>,
) -> Result<ListResourcesResult, ErrorData> {
    let (page, next) = cursor::page("resources", cursor, skills.for_models(), PAGE)?;
    let mut looking = LOOKED_AT_BYTES_MAX;
    let mut found: Vec<Resource> = page
        .into_iter()
        .flat_map(|one| of_skill(skills, one, &mut looking))
        .collect();
    if next.is_none() {
        found.extend(of_runs(engines));
    }
    let mut result = ListResourcesResult::with_all_items(found);
    result.next_cursor = next;
    Ok(result)
}

fn of_skill(skills: &Skills, entry: &Entry, looking: &mut u64) -> Vec<Resource> {
    let beside = SkillPart::of(skills, entry);
    let listed = beside.list();
    let description = if listed.cut {
        format!("{} {}", entry.description(), cut())
    } else {
        entry.description().to_owned()
    };
    let own = Resource::new(uri(&entry.name, OWN), entry.name.clone())
        .with_description(description)
        .with_mime_type("text/markdown");
    let mut found = vec![own];
    for file in listed.files.iter().filter(|file| file.refused.is_none()) {
        let mut one = Resource::new(
            uri(&entry.name, &file.path),
            format!("{}/{}", entry.name, legible(&file.path)),
        );
        one.mime_type = beside.kind(file, looking).map(str::to_owned);
        one.size = file.bytes;
        let said = file.description.as_deref();
        one.description = said.map(|said| legible_lines(said).into_owned());
        found.push(one);
    }
    found
}

/// What lies beside a skill: only what is there to be loaded; a skill that cannot be read has its own file at most.
enum SkillPart<'s> {
    Nothing,
    OfRoot(&'s RootSkill, Box<LoadedSkill>, SkillDirectory),
    OfWorker(WorkerPage<'s>),
}

impl SkillPart<'_> {
    fn of<'s>(skills: &'s Skills, entry: &'s Entry) -> SkillPart<'s> {
        match &entry.what {
            What::Root(skill) if skill.form == Form::Directory => {
                match (skill.load(), files::directory(skill)) {
                    (Ok(loaded), Ok(open)) => SkillPart::OfRoot(skill, Box::new(loaded), open),
                    _ => SkillPart::Nothing,
                }
            }
            What::Root(_) => SkillPart::Nothing,
            What::Worker(_, skill) => WorkerPage::of(&skills.catalog.root, skill)
                .map_or(SkillPart::Nothing, SkillPart::OfWorker),
        }
    }

    fn list(&self) -> FileList {
        let listed = match self {
            SkillPart::Nothing => return FileList::default(),
            SkillPart::OfRoot(skill, loaded, _) => files::list(skill, &loaded.keys),
            SkillPart::OfWorker(page) => page.files(),
        };
        listed.unwrap_or_default()
    }

    /// The type of a file; `None` where that takes to look into more than `looking` bytes of files.
    fn kind(&self, file: &SupportingFile, looking: &mut u64) -> Option<&'static str> {
        if let Some(kind) = kinds::binary(&file.path) {
            return Some(kind);
        }
        *looking = looking.checked_sub(file.bytes?)?;
        let bytes = match self {
            SkillPart::Nothing => return None,
            SkillPart::OfRoot(_, _, open) => open.read(&file.path),
            SkillPart::OfWorker(page) => page.file(&file.path),
        };
        Some(kinds::of(&file.path, &bytes.ok()?))
    }
}

fn of_runs(engines: &Arc<Engines>) -> Vec<Resource> {
    let runs = engines.ask(|control| Ok(threads::newest(control)));
    runs.unwrap_or_else(|error| {
        // Without a workspace there are none, and nothing is wrong.
        if error.kind != Kind::NotFound {
            tracing::warn!(%error, "threads are not listed");
        }
        Vec::new()
    })
    .into_iter()
    .map(|(run, said)| {
        Resource::new(format!("thread://{run}"), format!("thread {run}"))
            .with_description(said)
            .with_mime_type("text/plain")
    })
    .collect()
}

/// The forms of the addresses.
pub(super) fn templates() -> ListResourceTemplatesResult {
    ListResourceTemplatesResult::with_all_items(vec![
        ResourceTemplate::new("skill://{skill}/{+path}", "skill-file")
            .with_description("A file of a skill; its own is SKILL.md"),
        ResourceTemplate::new("thread://{run}", "thread")
            .with_description("The log of a run")
            .with_mime_type("text/plain"),
    ])
}

/// What an address leads to.
pub(super) fn read(
    skills: &Skills,
    engines: &Arc<Engines>,
    address: &str,
) -> Result<ReadResourceResult, ErrorData> {
    let missing = |why: String| {
        // The address as it was asked for, which the protocol recommends.
        let why = legible_lines(&why).into_owned();
        let data = (address.len() <= ADDRESS_BYTES_MAX).then(|| json!({"uri": address}));
        ErrorData::resource_not_found(why, data)
    };
    let contents = if let Some(run) = address.strip_prefix("thread://") {
        let whole = engines.ask(|control| threads::whole(control, run));
        let text = whole.map_err(|refused| match refused.kind {
            Kind::NotFound | Kind::Usage => missing(answer::told(&refused)),
            _ => answer::internal(&refused),
        })?;
        ResourceContents::text(text, address)
    } else if let Some((name, path)) = skill_address(address) {
        let bytes = of_address(skills, &name, &path).map_err(missing)?;
        contents(address, &path, bytes)
    } else {
        return Err(missing(format!(
            "`{}` is not a resource of this server",
            shown(address)
        )));
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

/// A file as text, or in base 64 where it is none.
fn contents(address: &str, path: &str, bytes: Vec<u8>) -> ResourceContents {
    let kind = kinds::of(path, &bytes);
    let binary = |bytes: &[u8]| ResourceContents::blob(BASE64_STANDARD.encode(bytes), address);
    let contents = match kinds::binary(path) {
        Some(_) => binary(&bytes),
        None => String::from_utf8(bytes).map_or_else(
            |error| binary(error.as_bytes()),
            |text| ResourceContents::text(text, address),
        ),
    };
    contents.with_mime_type(kind)
}

fn of_address(skills: &Skills, name: &str, path: &str) -> Result<Vec<u8>, String> {
    let Found::Skill(entry) = find(skills, name) else {
        return Err(format!("Skill '{}' not found", shown(name)));
    };
    let cannot = |why: String| format!("Skill '{}' cannot be read: {why}", entry.name);
    if let Some(why) = skills.standing(&entry).reason() {
        return Err(cannot(why.into_owned()));
    }
    let trust = skills.trust();
    if path == OWN {
        let page = page::hand_out(skills, trust, &entry).map_err(|why| cannot(why.message()))?;
        if !page.model_invocable {
            return Err(cannot(PEOPLE_ONLY.to_owned()));
        }
        return Ok(page.text.into_bytes());
    }
    let handed = hand_out(trust, &entry).map_err(cannot)?;
    handed.file(skills, trust, path)
}

fn skill_address(address: &str) -> Option<(String, String)> {
    let (name, path) = address.strip_prefix("skill://")?.split_once('/')?;
    Some((decoded(name)?, decoded(path)?))
}

/// The address of a file of a skill.
pub(super) fn uri(name: &str, path: &str) -> String {
    let name = utf8_percent_encode(name, OUTSIDE_OF_SEGMENTS);
    let path = utf8_percent_encode(path, OUTSIDE_OF_PATHS);
    format!("skill://{name}/{path}")
}

fn decoded(text: &str) -> Option<String> {
    let text = percent_decode_str(text).decode_utf8();
    text.ok().map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_hold_any_name() {
        for (name, path) in [
            ("git", "SKILL.md"),
            ("é b:c%", "a b/ü.md"),
            ("~/.claude:x", "a%2Fb"),
        ] {
            let address = uri(name, path);
            assert!(address.is_ascii(), "{address}");
            let expected = Some((name.to_owned(), path.to_owned()));
            assert_eq!(skill_address(&address), expected, "{address}");
        }
        for odd in ["skill://git", "skill://%ff/x", "file:///etc/passwd"] {
            assert_eq!(skill_address(odd), None, "{odd}");
        }
    }
}
