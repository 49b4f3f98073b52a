//! Schedules that only their place tells apart.

use std::collections::HashMap;

use super::resolve::{Resolver, TargetedDraft};
use crate::model::{Severity, SkillRef};

impl Resolver<'_, '_> {
    /// Told once for each list, at the second of those that have no id.
    pub(super) fn report_unnamed(&mut self, targets: &[TargetedDraft<'_>]) {
        let mut lists: HashMap<(&SkillRef, bool, &str), usize> = HashMap::new();
        for one in targets.iter().filter(|one| one.draft.id.is_none()) {
            let is_own = one.draft.skill.is_some();
            let list = (&one.skill.address, is_own, &*one.draft.worker);
            let count = lists.entry(list).or_default();
            *count += 1;
            if *count == 2 {
                self.report_by_place(one);
            }
        }
    }

    fn report_by_place(&mut self, one: &TargetedDraft<'_>) {
        let message = format!(
            "its id `{}` depends on its position among schedules without an `id`: if they are reordered, it takes over the history and the pause of another one",
            one.id
        );
        let hint = "give each of them an `id`";
        let place = one.draft.place.clone();
        self.tell(
            one.draft,
            Severity::Note,
            "schedule-unnamed",
            &place,
            (message, hint),
        );
    }
}
