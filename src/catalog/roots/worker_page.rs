//! The file of a worker's skill, where it has one of its own.

use crate::catalog::Catalog;
use crate::catalog::open::Root;
use crate::model::{Skill, diagnostic};

/// The whole file of a skill that stands in a file of its own; `None`: it stands in worker.yaml.
pub fn worker_page(catalog: &Catalog, skill: &Skill) -> Result<Option<String>, String> {
    let path = &*skill.place.path;
    let own = std::path::Path::new(path)
        .extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("md"));
    if !own {
        return Ok(None);
    }
    let root = Root::open(&catalog.root).map_err(|error| error.to_string())?;
    let bytes = root
        .read(path)
        .map_err(|refusal| diagnostic::chain(&refusal))?;
    String::from_utf8(bytes)
        .map(Some)
        .map_err(|_| format!("`{path}` is not UTF-8"))
}
