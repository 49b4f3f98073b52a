//! Symbolic links on the way to a grant. A run that can make one would choose what a later run is granted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::super::hidden::Mounts;
use super::{Grounds, real};
use crate::catalog::Catalog;
use crate::catalog::definition_paths::{grant_path, without_links};
use crate::git;
use crate::model::sandbox::Sandbox;

impl Grounds<'_> {
    /// Refuses a grant with these links on the way if a run can make one of them.
    pub(super) fn refuse_links(
        &self,
        key: &str,
        text: &str,
        links: &[PathBuf],
        mounts: &Mounts,
    ) -> Result<(), String> {
        let home = self.environment.get("HOME").map(Path::new);
        match changeable_link(self.catalog, home, links, mounts) {
            None => Ok(()),
            Some(link) => Err(refusal(key, text, link)),
        }
    }
}

/// Returns why a run of a skill with this sandbox is refused, if a grant passes a link that a run can make.
pub fn grant_through_link(
    catalog: &Catalog,
    environment: &BTreeMap<String, String>,
    sandbox: &Sandbox,
) -> Option<String> {
    let home = environment.get("HOME").map(Path::new);
    let mounts = Mounts::read();
    let write = sandbox.write.iter().map(|text| ("write", text));
    let reads = sandbox.reads.iter().flatten().map(|text| ("reads", text));
    write.chain(reads).find_map(|(key, text)| {
        let (_, links) = without_links(&grant_path(&catalog.root, home, text));
        let link = changeable_link(catalog, home, &links, &mounts)?;
        Some(refusal(key, text, link))
    })
}

fn refusal(key: &str, text: &str, link: &Path) -> String {
    let link = link.display();
    format!("`{key}: {text}` passes the symbolic link `{link}`, which a run can replace")
}

/// Returns the first of these links that lies where results land or a run may write.
fn changeable_link<'l>(
    catalog: &Catalog,
    home: Option<&Path>,
    links: &'l [PathBuf],
    mounts: &Mounts,
) -> Option<&'l Path> {
    if links.is_empty() {
        return None;
    }
    let roots = changeable_roots(catalog, home);
    let lies_below = |name: &PathBuf| roots.iter().any(|root| name.starts_with(root));
    let is_changeable = |link: &&PathBuf| mounts.names_of((*link).clone()).iter().any(lies_below);
    links.iter().find(is_changeable).map(PathBuf::as_path)
}

/// Returns the workspace, the checkouts of all repositories in which skills work, and all grants to write.
fn changeable_roots(catalog: &Catalog, home: Option<&Path>) -> BTreeSet<PathBuf> {
    let mut directories = BTreeSet::from([catalog.root.clone()]);
    let mut roots = BTreeSet::from([real(&catalog.root)]);
    for skill in catalog.workers.iter().flat_map(|worker| &worker.skills) {
        directories.insert(catalog.root.join(&skill.cwd));
        let grants = skill.sandbox.iter().flat_map(|sandbox| &sandbox.write);
        roots.extend(grants.map(|text| real(&grant_path(&catalog.root, home, text))));
    }
    let checkouts = directories.iter().flat_map(|path| git::checkouts(path));
    roots.extend(checkouts.map(|checkout| checkout.workdir));
    roots
}
