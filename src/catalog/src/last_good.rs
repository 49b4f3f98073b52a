//! The workers of the last good definitions.

use std::collections::HashMap;
use std::sync::Arc;

use super::Catalog;
use super::source::directory_of;
use super::unit::Unit;
use crate::model::{Config, Worker};

/// Workers as they were last.
pub(super) struct LastGood<'p> {
    by_directory: HashMap<&'p str, Vec<&'p Arc<Worker>>>,
}

impl<'p> LastGood<'p> {
    pub(super) fn of(previous: Option<&'p Catalog>) -> LastGood<'p> {
        let mut by_directory: HashMap<&str, Vec<&Arc<Worker>>> = HashMap::new();
        for worker in previous.map_or(&[][..], |previous| &previous.workers) {
            let directory = directory_of(&worker.place.path);
            by_directory.entry(directory).or_default().push(worker);
        }
        LastGood { by_directory }
    }

    fn in_directory(&self, unit: &Unit) -> impl Iterator<Item = &'p Arc<Worker>> + use<'p> {
        let found = self.by_directory.get(unit.files.directory.as_str());
        found.cloned().unwrap_or_default().into_iter()
    }

    /// The worker that a unit was: an instance by its id, any other by its directory.
    pub(super) fn of_unit(&self, unit: &Unit) -> Option<&'p Arc<Worker>> {
        self.in_directory(unit).find(|worker| match &unit.instance {
            Some(instance) => worker.instance_of.is_some() && worker.id == instance.id,
            None => worker.instance_of.is_none(),
        })
    }

    /// What was made from a worker whose id can no longer be read.
    pub(super) fn instances_of_broken(
        &self,
        unit: &Unit,
        config: &Config,
    ) -> impl Iterator<Item = &'p Arc<Worker>> {
        let unknown = unit.template.is_none() && unit.instance.is_none();
        let listed = |worker: &&Arc<Worker>| {
            let template = worker.instance_of.as_ref();
            let made = template.and_then(|id| config.instances.get(id));
            made.into_iter().flatten().any(|one| one.id == worker.id)
        };
        self.in_directory(unit)
            .filter(move |_| unknown)
            .filter(listed)
    }
}
