//! Schedules that say the same as another.

use std::collections::HashMap;
use std::sync::Arc;

use super::kept::say_the_same;
use super::resolve::{Resolver, TargetedDraft};
use crate::model::schedule::Schedule;
use crate::model::{Severity, SkillRef};

impl<'a> Resolver<'a, '_> {
    /// Two that no key tells apart, an `id` neither, are one that was written twice; the later one is left out.
    pub(super) fn leave_out_repeated(&mut self, targets: &mut [TargetedDraft<'a>]) {
        let mut of_skill: HashMap<&SkillRef, Vec<&mut TargetedDraft<'a>>> = HashMap::new();
        let unnamed = targets.iter_mut().filter(|one| one.draft.id.is_none());
        for one in unnamed.filter(|one| one.schedule.is_some()) {
            let own = of_skill.entry(&one.skill.address).or_default();
            own.push(one);
        }
        for own in of_skill.into_values().filter(|own| own.len() > 1) {
            self.leave_out_repeated_among(own);
        }
    }

    /// Among the schedules of one skill.
    fn leave_out_repeated_among(&mut self, own: Vec<&mut TargetedDraft<'a>>) {
        let mut seen: Vec<Arc<Schedule>> = Vec::with_capacity(own.len());
        for one in own {
            let Some(schedule) = one.schedule.take() else {
                continue;
            };
            let Some(first) = seen.iter().find(|first| say_the_same(first, &schedule)) else {
                one.schedule = Some(schedule.clone());
                seen.push(schedule);
                continue;
            };
            let message = format!("it is a duplicate of `{}` and is ignored", first.id);
            let place = one.draft.place.clone();
            let hint = "remove one of them, or give each an `id`";
            let problem = (message, hint);
            self.tell(
                one.draft,
                Severity::Warning,
                "schedule-twice",
                &place,
                problem,
            );
            one.is_repeated = true;
        }
    }
}
