//! Notices what is listed otherwise while the definitions stay: trust that is given or taken, and files beside
//! skills that come and go.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::catalog::roots::beside::Surrounding;
use crate::catalog::roots::trust::{Trust, TrustFiles};
use crate::catalog::roots::worker_page::WorkerPage;
use crate::catalog::{Catalog, RootSkill};

/// What the last look saw, by the file of each skill.
pub(super) struct Offered {
    trust: TrustFiles,
    seen: HashMap<Arc<str>, OfferedSkill>,
}

/// What of one skill is told to clients and does not stand in its file.
struct OfferedSkill {
    trust: Trust,
    names: u64,
    /// The record of trust and the stamps of the files that `trust` was found for.
    held: Option<(Vec<u8>, u64)>,
}

impl Offered {
    /// Has seen nothing yet.
    pub(super) fn of(state_dir: &Path) -> Offered {
        Offered {
            trust: TrustFiles::of(state_dir),
            seen: HashMap::new(),
        }
    }

    /// Looks again; whether a skill that was there before is listed otherwise now. Only what trust in a root
    /// does not cover is read, and only where its stamps have changed.
    pub(super) fn look(&mut self, catalog: &Catalog) -> bool {
        let of_roots = catalog
            .root_skills
            .skills
            .iter()
            .map(|skill| (Arc::clone(&skill.place.path), self.of_root(skill)));
        let of_workers = catalog.skills().filter_map(|(_, skill)| {
            let page = WorkerPage::of(&catalog.root, skill)?;
            let seen = OfferedSkill {
                trust: Trust::Root,
                names: page.beside().names,
                held: None,
            };
            Some((Arc::from(skill.file.as_deref()?), seen))
        });
        let fresh: HashMap<Arc<str>, OfferedSkill> = of_roots.chain(of_workers).collect();
        let differs = |(path, now): (&Arc<str>, &OfferedSkill)| {
            let before = self.seen.get(path);
            before.is_some_and(|before| (before.trust, before.names) != (now.trust, now.names))
        };
        let changed = fresh.iter().any(differs);
        self.seen = fresh;
        changed
    }

    fn of_root(&self, skill: &RootSkill) -> OfferedSkill {
        if skill.root.trusted {
            return OfferedSkill {
                trust: Trust::Root,
                names: Surrounding::of(skill, false).names,
                held: None,
            };
        }
        let record = self.trust.record(skill);
        let beside = record.as_ref().map(|_| Surrounding::of(skill, true));
        let beside = beside.unwrap_or_default();
        let held = record.map(|record| (record, beside.stamps));
        let before = self.seen.get(&skill.place.path);
        let same = before.filter(|before| held.is_some() && before.held == held);
        let trust = same.map_or_else(|| self.trust.state(skill), |before| before.trust);
        OfferedSkill {
            trust,
            // Files of what is not handed out are not listed.
            names: if trust.holds() { beside.names } else { 0 },
            held,
        }
    }
}
