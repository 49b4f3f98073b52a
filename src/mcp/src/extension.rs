//! The Skills extension of the protocol: skills of roots with the digests of their files.
//!
//! Its addresses are those of the resources. A name that an address cannot hold as it is has none there.

use rmcp::ErrorData;
use rmcp::model::{
    GetSkillResult, ListSkillsResult, Skill, SkillFrontmatter, SkillResource, SkillResources,
};

use super::cursor;
use super::finding::shown;
use super::resources::uri;
use super::skills::{Entry, Skills, What};
use crate::catalog::RootSkill;
use crate::catalog::roots::loaded::LoadedSkill;
use crate::catalog::roots::trust::TrustFiles;
use crate::catalog::roots::{Form, files};
use crate::model::legible::legible_lines;

/// Skills of one page.
const PAGE: usize = 50;

/// Files and bytes of one skill that are digested; a larger one has no manifest.
const FILES_MAX: usize = 200;
const BYTES_MAX: u64 = 8 * 1024 * 1024;

/// The file that every skill has.
const OWN: &str = "SKILL.md";

/// One page of skills.
pub(super) fn list(
    skills: &Skills,
    trust: &TrustFiles,
    cursor: Option<&str>,
) -> Result<ListSkillsResult, ErrorData> {
    let addressed = skills.for_models().filter(|entry| may_be_addressed(entry));
    let (page, next) = cursor::page("skills", cursor, addressed, PAGE)?;
    let described = page.into_iter().filter_map(|entry| described(entry, trust));
    let mut result = ListSkillsResult::with_all_items(described.collect());
    result.next_cursor = next;
    Ok(result)
}

/// The skill whose file has this address.
pub(super) fn get(
    skills: &Skills,
    trust: &TrustFiles,
    address: &str,
) -> Result<GetSkillResult, ErrorData> {
    let name = address
        .strip_prefix("skill://")
        .and_then(|rest| rest.strip_suffix("/SKILL.md"));
    let entry = name.and_then(|name| skills.named(&name.to_lowercase()));
    entry
        .filter(|entry| may_be_addressed(entry) && uri(&entry.name, OWN) == address)
        .filter(|entry| skills.is_for_models(entry))
        .and_then(|entry| described(entry, trust))
        .map(GetSkillResult::new)
        .ok_or_else(|| {
            let why = format!("no skill has the address `{}`", shown(address));
            ErrorData::invalid_params(why, None)
        })
}

fn may_be_addressed(entry: &Entry) -> bool {
    let own = matches!(&entry.what, What::Root(skill) if skill.form == Form::Directory);
    own && uri(&entry.name, OWN) == format!("skill://{}/{OWN}", entry.name)
}

/// The skill as the extension describes it; `None` where it may not be handed out any more.
fn described(entry: &Entry, trust: &TrustFiles) -> Option<Skill> {
    let What::Root(skill) = &entry.what else {
        return None;
    };
    let loaded = skill
        .hand_out(trust)
        .ok()
        .filter(|loaded| loaded.keys.name == entry.name)?;
    let mut frontmatter =
        SkillFrontmatter::new(&entry.name, legible_lines(&loaded.keys.description));
    for (key, value) in &loaded.keys.written {
        if !matches!(key.as_str(), "name" | "description") {
            frontmatter = frontmatter.with_field(key, value.clone());
        }
    }
    let resources =
        manifest(entry, skill, &loaded).map_or(SkillResources::Dynamic, SkillResources::Files);
    Some(Skill::new(uri(&entry.name, OWN), frontmatter, resources))
}

/// Every file of a skill; `None` where one cannot be handed out as a resource, or they are too large.
fn manifest(entry: &Entry, skill: &RootSkill, loaded: &LoadedSkill) -> Option<Vec<SkillResource>> {
    let listed = files::list(skill, &loaded.keys).ok()?;
    let bytes: u64 = listed.files.iter().filter_map(|file| file.bytes).sum();
    if listed.cut || listed.files.len() > FILES_MAX || bytes > BYTES_MAX {
        return None;
    }
    let mut found = vec![SkillResource::from_bytes(
        uri(&entry.name, OWN),
        loaded.text.as_bytes(),
    )];
    for file in &listed.files {
        let bytes = files::read(skill, &loaded.keys, &file.path).ok()?;
        found.push(SkillResource::from_bytes(
            uri(&entry.name, &file.path),
            &bytes,
        ));
    }
    Some(found)
}
