//! Files of skills and threads of runs as resources: `skill://<skill>/<path>` and `thread://<run>`.

use std::borrow::Cow;
use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rmcp::ErrorData;
use rmcp::model::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate,
};
use serde_json::json;

use super::answer;
use super::engines::Engines;
use super::finding::{Found, find, shown};
use super::loading::{hand_out, people_only};
use super::page;
use super::prompts::place_of;
use super::skills::{Entry, Skills, What};
use super::threads;
use crate::catalog::roots::worker_page::WorkerPage;
use crate::catalog::roots::{Form, files};
use crate::model::Kind;

/// Skills whose files stand on one page.
const PAGE: usize = 100;

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
    let from = place_of(cursor)?;
    let usable: Vec<&Entry> = skills.for_models().skip(from).take(PAGE + 1).collect();
    let mut found: Vec<Resource> = usable
        .iter()
        .take(PAGE)
        .flat_map(|one| of_skill(skills, one))
        .collect();
    let more = usable.len() > PAGE;
    if !more {
        found.extend(of_runs(engines));
    }
    let mut result = ListResourcesResult::with_all_items(found);
    result.next_cursor = more.then(|| (from + PAGE).to_string());
    Ok(result)
}

fn of_skill(skills: &Skills, entry: &Entry) -> Vec<Resource> {
    let own = Resource::new(uri(&entry.name, OWN), entry.name.clone())
        .with_description(entry.description())
        .with_mime_type("text/markdown");
    let mut found = vec![own];
    // Only what is there to be loaded; a skill that cannot be read has its own file at most.
    let listed = match &entry.what {
        What::Root(skill) => match (skill.form, skill.load()) {
            (Form::Directory, Ok(loaded)) => files::list(skill, &loaded.keys).ok(),
            _ => None,
        },
        What::Worker(_, skill) => {
            WorkerPage::of(&skills.catalog.root, skill).and_then(|page| page.files().ok())
        }
    };
    let listed = listed.unwrap_or_default();
    for file in listed.files.iter().filter(|file| file.refused.is_none()) {
        let mut one = Resource::new(
            uri(&entry.name, &file.path),
            format!("{}/{}", entry.name, file.path),
        )
        .with_mime_type(mime_type(&file.path));
        one.size = file.bytes;
        one.description.clone_from(&file.description);
        found.push(one);
    }
    found
}

fn of_runs(engines: &Arc<Engines>) -> Vec<Resource> {
    let runs = engines.ask(|control| Ok(threads::newest(control)));
    runs.unwrap_or_else(|error| {
        tracing::warn!(%error, "threads are not listed");
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
        let data = (address.len() <= ADDRESS_BYTES_MAX).then(|| json!({"uri": address}));
        ErrorData::resource_not_found(why, data)
    };
    let (text, kind) = if let Some(run) = address.strip_prefix("thread://") {
        let whole = engines.ask(|control| threads::whole(control, run));
        let text = whole.map_err(|refused| match refused.kind {
            Kind::NotFound | Kind::Usage => missing(answer::told(&refused)),
            _ => answer::internal(&refused),
        })?;
        (text, "text/plain")
    } else if let Some((name, path)) = skill_address(address) {
        let text = of_address(skills, &name, &path).map_err(missing)?;
        (text, mime_type(&path))
    } else {
        return Err(missing(format!(
            "`{}` is no address of ours",
            shown(address)
        )));
    };
    let contents = ResourceContents::text(text, address).with_mime_type(kind);
    Ok(ReadResourceResult::new(vec![contents]))
}

fn of_address(skills: &Skills, name: &str, path: &str) -> Result<String, String> {
    let Found::Skill(entry) = find(skills, name) else {
        return Err(format!("Skill '{}' not found", shown(name)));
    };
    let cannot = |why: String| format!("Skill '{}' cannot be read: {why}", entry.name);
    if let Some(why) = skills.standing(&entry).reason() {
        return Err(cannot(why.to_owned()));
    }
    let trust = skills.trust();
    if path == OWN {
        let page = page::hand_out(skills, trust, &entry).map_err(|why| cannot(why.message()))?;
        if !page.model_invocable {
            return Err(cannot(people_only().to_owned()));
        }
        return Ok(page.text);
    }
    let handed = hand_out(trust, &entry).map_err(cannot)?;
    handed.file_text(skills, trust, path)
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

fn mime_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("md") => "text/markdown",
        Some("json") => "application/json",
        _ => "text/plain",
    }
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
