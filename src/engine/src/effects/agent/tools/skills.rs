//! Other skills that a model starts.

use workerctl_agent::tools::BuiltIn;

use super::{Left, Tools};
use crate::children::{CHILDREN_MAX, ChildRequest, NotStarted};
use crate::machine::Event;

impl Tools<'_> {
    pub(super) fn list_skills(&self, arguments: &serde_json::Value) -> Result<String, String> {
        BuiltIn::ListSkills.check(arguments)?;
        let skills = self.performer.children()?.skills(&self.work.spec);
        let listed: Vec<serde_json::Value> = skills
            .into_iter()
            .map(
                |(name, description)| serde_json::json!({"name": name, "description": description}),
            )
            .collect();
        serde_json::to_string_pretty(&listed).map_err(|error| error.to_string())
    }

    /// Starts a child and waits for it; it is ended with its parent.
    pub(super) fn use_skill(
        &self,
        arguments: &serde_json::Value,
        left: Left,
    ) -> Result<String, String> {
        let arguments = BuiltIn::UseSkill.check(arguments)?;
        let input = arguments
            .get("input")
            .and_then(serde_json::Value::as_object);
        let skill = arguments.get("skill").and_then(serde_json::Value::as_str);
        if self.children.get() >= CHILDREN_MAX {
            return Err(format!("a run starts at most {CHILDREN_MAX} others"));
        }
        let children = self.performer.children()?;
        let started = children.start(&ChildRequest {
            parent: &self.work.spec,
            attempt: self.attempt,
            skill: skill.unwrap_or_default(),
            input: input.cloned().unwrap_or_default(),
            budget: left.budget,
            left: left.time,
        });
        let run = match started {
            Ok(run) => run,
            Err(NotStarted::Refused(why)) => return Err(why),
            Err(NotStarted::EngineEnds) => {
                // The run is interrupted when the engine has waited long enough, and goes on with the next one.
                self.stop.wait(left.time);
                return Err("the engine is ending".to_owned());
            }
        };
        self.children.set(self.children.get() + 1);
        let (inbox, attempt) = (&self.performer.parts.inbox, self.attempt);
        inbox.note(
            self.work.spec.run,
            vec![Event::ChildStarted { attempt, run }],
        );
        let ended = children.wait(run, left.time, &|| self.stop.is_stopped());
        let (before, turns) = self.spent.get();
        self.spent
            .set((before.plus(ended.spent), turns.saturating_add(ended.turns)));
        let event = Event::ChildEnded {
            attempt,
            run,
            turns: ended.turns,
            spent: ended.spent,
            failed: ended.failed,
        };
        // Durable, so that budgets of the day have it before the next request. If it is not recorded the engine is ending, and
        // the next one counts it.
        _ = inbox.record(self.work.spec.run, vec![event]);
        ended.answer
    }
}
