//! Schedules that say the same as another.

use std::collections::HashMap;

use super::kept::saying;
use super::resolve::{Aimed, Resolver};
use crate::model::{Severity, SkillRef};

impl Resolver<'_, '_> {
    /// Two schedules that say the same would run a skill twice each time; the later one is left out.
    pub(super) fn leave_out_twins(&mut self, aimed: &mut [Aimed<'_>]) {
        let mut of_skill: HashMap<&SkillRef, Vec<&mut Aimed<'_>>> = HashMap::new();
        for one in aimed.iter_mut().filter(|one| one.schedule.is_some()) {
            let own = of_skill.entry(&one.skill.address).or_default();
            own.push(one);
        }
        for own in of_skill.into_values().filter(|own| own.len() > 1) {
            self.leave_out_twins_among(own);
        }
    }

    /// Among the schedules of one skill.
    fn leave_out_twins_among(&mut self, own: Vec<&mut Aimed<'_>>) {
        let mut seen: HashMap<String, String> = HashMap::new();
        for one in own {
            let Some(schedule) = &one.schedule else {
                continue;
            };
            let Some(saying) = saying(schedule) else {
                continue;
            };
            if let Some(first) = seen.get(&saying) {
                let message = format!("it says the same as `{first}` and is left out");
                let place = one.draft.place.clone();
                self.tell(
                    one.draft,
                    Severity::Warning,
                    "schedule-twice",
                    &place,
                    (message, "remove one of them"),
                );
                one.is_twin = true;
                one.schedule = None;
            } else {
                seen.insert(saying, schedule.id.to_string());
            }
        }
    }
}
