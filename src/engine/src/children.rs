//! Runs that a model starts: children of its own run, which use its place, its tree and its budget.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use super::inbox::Inbox;
use super::reading;
use super::request::{Answer, ENDED_OPEN, Request};
use super::run_factory::{Origin, RunFactory};
use super::view::{RunSnapshot, View};
use crate::catalog::Conditions;
use crate::machine::{CancelKind, Event};
use crate::model::agent::{Budget, Spent};
use crate::model::definition::Skill;
use crate::model::sandbox::{Level, Sandbox};
use crate::model::spec::Parent;
use crate::model::{Diagnostic, Outcome, RunId, RunSpec, SkillRef};
use crate::protocol::{LogStream, LogsQuery, SubmitRequest};

/// How deep runs may start runs.
pub(super) const DEPTH_MAX: usize = 3;

/// How many one run may start.
pub(super) const CHILDREN_MAX: u32 = 32;

/// How often it is looked whether the parent is being ended.
const LOOK: Duration = Duration::from_millis(100);

/// Bytes of a child's answer that its parent is given: the last of them.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Lines of a child's log that may hold them: none takes less than a byte, with its end.
const ANSWER_LINES_MAX: u32 = 64 * 1024 + 1;

/// What children need of the engine.
pub(super) struct Children {
    pub(super) factory: Arc<RunFactory>,
    pub(super) view: Arc<View>,
    pub(super) inbox: Arc<Inbox>,
}

/// A child that is to be started.
pub(super) struct ChildRequest<'a> {
    /// The parent.
    pub(super) parent: &'a RunSpec,
    /// The attempt of the parent.
    pub(super) attempt: u32,
    /// The skill, as the model names it.
    pub(super) skill: &'a str,
    /// Its input.
    pub(super) input: serde_json::Map<String, serde_json::Value>,
    /// What the parent has left.
    pub(super) budget: Budget,
    /// The time that the parent has left.
    pub(super) left: Duration,
}

/// How a child ended.
pub(super) struct ChildEnd {
    /// Its answer, or why there is none.
    pub(super) answer: Result<String, String>,
    /// What it has spent.
    pub(super) spent: Spent,
    /// The turns that it took.
    pub(super) turns: u32,
    /// How it ended, where it did not succeed.
    pub(super) failed: Option<String>,
}

/// Why a child is not started.
pub(super) enum NotStarted {
    /// For the model to read.
    Refused(String),
    /// Nothing starts any more.
    EngineEnds,
}

impl Children {
    /// Names and descriptions of the skills that a run may start.
    pub(super) fn skills(&self, parent: &RunSpec) -> Vec<(String, String)> {
        let catalog = self.factory.definitions.current();
        let skills = catalog.workers.iter().flat_map(|worker| &worker.skills);
        let may = |skill: &&Arc<Skill>| refusal(parent, skill).is_none();
        let named = skills.filter(may);
        named
            .map(|skill| (skill.address.to_string(), skill.description.clone()))
            .collect()
    }

    /// Starts a child; on return it is durable.
    ///
    /// # Errors
    /// It is not started.
    pub(super) fn start(&self, wanted: &ChildRequest<'_>) -> Result<RunId, NotStarted> {
        let parent = wanted.parent;
        let catalog = self.factory.definitions.current();
        let skill = super::lookup::find_skill(&catalog, wanted.skill)
            .map_err(|refused| NotStarted::Refused(not_found(wanted.skill, &refused)))?;
        if let Some(why) = refusal(parent, &skill) {
            return Err(NotStarted::Refused(why));
        }
        let request = SubmitRequest {
            skill: skill.address.to_string(),
            inputs: Some(wanted.input.clone()),
            by: Some(format!("run {}", parent.run.short())),
            user_id: parent.user_id,
            chat_id: parent.chat_id.clone(),
            ..SubmitRequest::default()
        };
        let mut ancestors = ancestors(parent);
        ancestors.push(parent.skill.clone());
        let link = Parent {
            run: parent.run,
            attempt: wanted.attempt,
            tree_of: parent.parent.as_ref().map_or(parent.run, |up| up.tree_of),
            mutating: skill.mutating,
            ancestors,
        };
        let origin = Origin {
            parent: Some((&link, parent)),
            ..Origin::default()
        };
        let said = |refused: Diagnostic| match refused.code.as_str() {
            "draining" | "ended" | ENDED_OPEN => NotStarted::EngineEnds,
            _ => NotStarted::Refused(refused_text(&refused)),
        };
        let mut submission = self
            .factory
            .submission(&catalog, &request, origin)
            .map_err(said)?;
        let spec = Arc::make_mut(&mut submission.spec);
        spec.bound_by(wanted.budget, wanted.left);
        let run = spec.run;
        let answer = self.ask(Request::Submit(Box::new(submission)));
        match answer.map_err(said)? {
            Answer::Submitted(_) => Ok(run),
            Answer::Run(_) | Answer::Slot(_) | Answer::Done => {
                Err(NotStarted::Refused("it was not accepted".to_owned()))
            }
        }
    }

    /// Waits until a child has ended; ends it once `is_over` says so.
    pub(super) fn wait(&self, run: RunId, left: Duration, is_over: &dyn Fn() -> bool) -> ChildEnd {
        let watching = self.view.watch(run);
        let now_ms = || self.factory.clock.monotonic_ms();
        let left_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        let deadline_ms = now_ms().saturating_add(left_ms);
        let mut asked = false;
        loop {
            if let Some(ended) = self.ended(run) {
                return ended;
            }
            if !asked && (is_over() || now_ms() >= deadline_ms) {
                asked = true;
                let by = "the run that started it".to_owned();
                let kind = CancelKind::Graceful;
                // One that is ending already needs no request.
                let _ = self.ask(Request::Cancel { run, kind, by });
            }
            let gone = self.view.ended().is_some();
            let next = watching
                .as_ref()
                .map(|watching| watching.events.recv_timeout(LOOK));
            match next {
                Some(Ok(_) | Err(RecvTimeoutError::Timeout)) => {}
                Some(Err(RecvTimeoutError::Disconnected)) | None => std::thread::sleep(LOOK),
            }
            if gone {
                return ChildEnd {
                    answer: Err("the engine has ended".to_owned()),
                    spent: Spent::default(),
                    turns: 0,
                    failed: None,
                };
            }
        }
    }

    fn ended(&self, run: RunId) -> Option<ChildEnd> {
        let shown = match self.view.run(run) {
            Some(shown) => shown,
            None => Arc::new(
                reading::stored(self.factory.store.as_ref(), run, &self.factory.workspace)
                    .ok()??,
            ),
        };
        let outcome = shown.run.outcome()?;
        Some(ChildEnd {
            answer: answer(&shown, outcome),
            spent: shown.run.facts.spent,
            turns: shown.run.facts.all_turns,
            failed: (*outcome != Outcome::Succeeded).then(|| outcome.name().to_owned()),
        })
    }

    fn ask(&self, request: Request) -> Result<Answer, Diagnostic> {
        let answer = self.inbox.request(request)?;
        answer
            .recv()
            .unwrap_or_else(|_| Err(super::refusals::ended(true)))
    }
}

fn ancestors(parent: &RunSpec) -> Vec<SkillRef> {
    let link = parent.parent.as_ref();
    link.map(|link| link.ancestors.clone()).unwrap_or_default()
}

/// Why a run may not start this skill.
fn refusal(parent: &RunSpec, skill: &Skill) -> Option<String> {
    let name = &skill.address;
    if let Some(why) = skill.unavailable.first() {
        return Some(format!("Skill '{name}' cannot be used: {}", why.reason));
    }
    if *name == parent.skill || ancestors(parent).contains(name) {
        return Some(format!(
            "Skill '{name}' is already running: a skill cannot start itself or one of its ancestors"
        ));
    }
    if ancestors(parent).len() + 1 >= DEPTH_MAX {
        return Some(format!(
            "runs can start other runs at most {DEPTH_MAX} levels deep"
        ));
    }
    if !Conditions::of(skill).model_invocable {
        return Some(format!("Skill '{name}' is not for models to start"));
    }
    if skill.approval.is_some() {
        return Some(format!(
            "Skill '{name}' needs approval, which cannot be requested during a run"
        ));
    }
    // It works in the tree of the run, where a model can have changed what its commands execute.
    let level = |sandbox: Option<&Sandbox>| sandbox.map_or(Level::Off, |sandbox| sandbox.level);
    if level(skill.sandbox.as_ref()) < level(parent.sandbox.as_ref()) {
        return Some(format!(
            "Skill '{name}' has a weaker sandbox than this run, which may not start it"
        ));
    }
    let may_change = parent.may_change() && parent.tree.is_some();
    if skill.mutating && !may_change {
        return Some(format!(
            "Skill '{name}' is mutating, and this run may not start mutating skills"
        ));
    }
    None
}

fn not_found(name: &str, refused: &Diagnostic) -> String {
    if refused.code == "skill_not_found" {
        return format!("Skill '{name}' not found");
    }
    refused_text(refused)
}

fn refused_text(refused: &Diagnostic) -> String {
    if refused.details.is_empty() {
        return refused.message.clone();
    }
    format!("{}: {}", refused.message, refused.details.join("; "))
}

/// What the parent is told: the last answer of a model or the output of a command, and how it ended.
fn answer(shown: &RunSnapshot, outcome: &Outcome) -> Result<String, String> {
    let text = said(shown);
    let run = shown.spec.run.short();
    match outcome {
        Outcome::Succeeded => {
            let mut told = text;
            let outputs = shown
                .spec
                .outputs
                .iter()
                .filter_map(|output| output.path.as_ref());
            for path in outputs {
                // Writing into a string cannot fail.
                let _ = write!(told, "\n[it wrote `{path}`]");
            }
            if shown.summary.nothing_to_do {
                told.push_str("\n[it had nothing to do]");
            }
            if shown.summary.unverified {
                told.push_str("\n[unverified: nothing checked it]");
            }
            Ok(told)
        }
        other => {
            let why = other.detail().unwrap_or_default();
            Err(format!(
                "run {run} ended as {}: {why}\n{text}",
                other.name()
            ))
        }
    }
}

fn said(shown: &RunSnapshot) -> String {
    let turns = shown.entries.iter().rev();
    let mut texts = turns.filter_map(|entry| match &entry.event {
        Event::TurnTaken { turn, .. } => turn.answer.get("text")?.as_str(),
        _ => None,
    });
    if let Some(text) = texts.find(|text| !text.trim().is_empty()) {
        return last_of(text).to_owned();
    }
    let mut query = LogsQuery {
        tail: Some(ANSWER_LINES_MAX),
        stream: Some(LogStream::Stdout.name().to_owned()),
        ..LogsQuery::default()
    };
    let mut text = String::new();
    while let Ok(page) = reading::page(&shown.spec, &query) {
        for line in &page.lines {
            text.push_str(&line.text);
            text.push_str(if line.continued { "" } else { "\n" });
        }
        text = last_of(&text).to_owned();
        let Some(next) = page.next else { break };
        (query.from, query.tail) = (next, None);
    }
    text.truncate(text.trim_end_matches('\n').len());
    text
}

fn last_of(text: &str) -> &str {
    let from = text.len().saturating_sub(ANSWER_BYTES_MAX);
    &text[text.ceil_char_boundary(from)..]
}
