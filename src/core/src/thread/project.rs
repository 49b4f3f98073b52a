//! The projection of a journal: everything that lists, `show`, the summary file and metrics tell of a run.

mod acts;
mod approval;
mod attempts;
mod hooks;
mod phases;
mod spent;

use std::collections::BTreeMap;

pub use approval::{PersonAnswer, sandbox_of};
pub use hooks::HookStory;

use crate::machine::{Entry, Event, FoldError, Goal, Run, State};
use crate::model::agent::TurnRecord;
use crate::model::evidence::{CheckRecord, CommitsMade, Execution, OutputState, RestoreReport};
use crate::model::outcome::{Outcome, Phase};
use crate::model::spec::OutputKind;
use crate::model::{RunId, RunSpec, Timestamp, Zone};
use crate::protocol::{AttemptView, AuditEntry, PhaseView, RunDetail, RunSummary, TurnView};

/// Absolute paths of a thread's two files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadPaths {
    /// The summary.
    pub document: String,
    /// The log.
    pub log: String,
}

/// The instants and commits of a run that its state does not hold, folded one event at a time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SummaryBuilder {
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
    worked_ms: u64,
    working_since: Option<Timestamp>,
    commits: CommitsMade,
    /// Those that its end took back, and that may land later.
    taken_back: CommitsMade,
}

impl SummaryBuilder {
    /// For a run of which nothing is known yet.
    pub fn new() -> SummaryBuilder {
        SummaryBuilder::default()
    }

    /// Takes the next entry and the run after it.
    pub fn push(&mut self, entry: &Entry, after: &Run) {
        if matches!(after.state, State::Executing { .. }) {
            self.started_at.get_or_insert(entry.at);
        }
        if after.is_finished() {
            self.finished_at.get_or_insert(entry.at);
        }
        if let Some(since) = self.working_since.take() {
            self.worked_ms += entry.at.millis_since(since);
        }
        let works = self.started_at.is_some() && !after.is_finished() && !phases::waits(after);
        self.working_since = works.then_some(entry.at);
        match &entry.event {
            Event::ResultRecorded { result, .. } => self.commits.clone_from(&result.commits),
            // Where something could not be put back, it may be the branch.
            Event::Restored { report } if report.is_complete() => {
                self.taken_back = std::mem::take(&mut self.commits);
            }
            Event::LandedLater { .. } => self.commits = std::mem::take(&mut self.taken_back),
            _ => {}
        }
    }

    /// When its command first started.
    pub fn started_at(&self) -> Option<Timestamp> {
        self.started_at
    }

    /// Returns the milliseconds that it has worked, without its waits; `None` before its first attempt starts.
    pub fn duration_ms(&self) -> Option<u64> {
        self.started_at.map(|_| self.worked_ms)
    }

    /// Commits that the skill made by itself.
    pub fn commits(&self) -> &CommitsMade {
        &self.commits
    }

    /// When it ended.
    pub fn finished_at(&self) -> Option<Timestamp> {
        self.finished_at
    }

    /// The run's line as of now.
    pub fn build(&self, spec: &RunSpec, run: &Run, waiting_for: Option<String>) -> RunSummary {
        let has_succeeded = run.outcome() == Some(&Outcome::Succeeded);
        let was_denied = matches!(run.outcome(), Some(Outcome::Denied { .. }));
        let zone = spec.zone.parse().unwrap_or(Zone::UTC);
        let parent = spec.parent.as_ref().map(|parent| parent.run);
        RunSummary {
            run: spec.run,
            skill: spec.skill.clone(),
            phase: run.phase(),
            outcome: run.outcome().cloned(),
            unverified: has_succeeded
                && run.facts.resolution.is_none()
                && run.facts.results.is_unverified(),
            nothing_to_do: has_succeeded && run.facts.results.is_nothing_to_do(),
            reconciled: run.facts.reconciled,
            mutating: spec.plan.mutating,
            attempts: run.facts.attempts,
            submitted_at: spec.submitted_at,
            started_at: self.started_at,
            finished_at: self.finished_at,
            duration_ms: self.duration_ms(),
            working_since: self.working_since,
            retry_at: run.backoff().map(|(set, ms)| set.plus_millis(ms)),
            commit: run.facts.commit.clone(),
            commits_made: self.commits.clone(),
            kept_commit: run.kept_commit().map(str::to_owned),
            push_error: None,
            thread: spec.thread.clone(),
            waiting_for,
            retry_of: spec.retry_of,
            spent: spent::spent(spec, run),
            parent: parent.or(spec.submitter_run),
            by_command: parent.is_none() && spec.submitter_run.is_some(),
            schedule: spec.scheduled.as_ref().map(|due| due.schedule.clone()),
            slot: spec.scheduled.as_ref().map(|due| due.slot),
            title: spec.title.clone(),
            by: spec.submitted_by.clone(),
            decided: run.facts.approval.is_some() || was_denied,
            day: self.finished_at.map(|at| at.date_in(zone)),
        }
    }
}

/// The line of a run whose journal is at hand; `run` is what it folds to.
pub fn summary(spec: &RunSpec, run: &Run, entries: &[Entry]) -> RunSummary {
    let story = Story::of(spec, entries);
    story.summary.build(spec, run, None)
}

/// The run in full.
///
/// A journal that does not fold is told of up to where it does, with the outcome `unknown{journal}`.
pub fn detail(spec: &RunSpec, entries: &[Entry], paths: &ThreadPaths) -> RunDetail {
    Story::of(spec, entries).detail(paths)
}

/// A journal, told.
#[derive(Debug, Clone)]
pub struct Story<'a> {
    /// The specification.
    pub spec: &'a RunSpec,
    /// The run after the last event taken.
    pub run: Run,
    /// Its instants.
    pub summary: SummaryBuilder,
    /// Attempts in order.
    pub attempts: Vec<AttemptView>,
    /// Checks before anything was touched.
    pub pre_checks: Vec<CheckRecord>,
    /// Declared outputs of the newest attempt.
    pub outputs: Vec<OutputState>,
    /// Paths that the newest attempt changed, bounded.
    pub changed: Vec<String>,
    /// How many paths it changed in all.
    pub changed_count: u64,
    /// What could not be put back.
    pub not_restored: RestoreReport,
    /// Hooks in the order in which they ended.
    pub hooks: Vec<HookStory>,
    /// Names and times of the events.
    pub timeline: Vec<(Timestamp, String)>,
    /// Its phases in order.
    pub phases: Vec<PhaseView>,
    /// Who did what about it.
    pub audit: Vec<AuditEntry>,
    /// When its turn first came.
    pub admitted_at: Option<Timestamp>,
    /// When the last event was recorded.
    pub updated_at: Timestamp,
    /// When a person was asked for approval, and what became of it.
    pub answer_of_person: PersonAnswer,
    /// What its model said last.
    pub answer: Option<String>,
    /// Turns of its model.
    pub turns: Vec<TurnView>,
    /// Runs that it started.
    pub children: Vec<RunId>,
    /// Note of the person who settled it.
    pub resolution_note: Option<String>,
    /// Milliseconds spent in each phase.
    phase_ms: BTreeMap<Phase, u64>,
    /// Why the journal does not fold, if it does not.
    broken: Option<FoldError>,
    begun: bool,
}

impl<'a> Story<'a> {
    /// A run of which nothing is told yet.
    pub fn new(spec: &'a RunSpec) -> Story<'a> {
        Story {
            spec,
            run: Run {
                plan: spec.plan.clone(),
                state: State::Queued,
                facts: crate::machine::Facts::default(),
            },
            summary: SummaryBuilder::new(),
            attempts: Vec::new(),
            pre_checks: Vec::new(),
            outputs: Vec::new(),
            changed: Vec::new(),
            changed_count: 0,
            not_restored: RestoreReport::default(),
            hooks: Vec::new(),
            timeline: Vec::new(),
            phases: Vec::new(),
            audit: Vec::new(),
            admitted_at: None,
            updated_at: spec.submitted_at,
            answer_of_person: PersonAnswer::default(),
            answer: None,
            turns: Vec::new(),
            children: Vec::new(),
            resolution_note: None,
            phase_ms: BTreeMap::new(),
            broken: None,
            begun: false,
        }
    }

    /// The whole journal.
    pub fn of(spec: &'a RunSpec, entries: &[Entry]) -> Story<'a> {
        let mut story = Story::new(spec);
        story.extend(entries);
        if !story.begun && story.broken.is_none() {
            story.breaks(FoldError::Empty);
        }
        story
    }

    /// Takes further entries.
    pub fn extend(&mut self, entries: &[Entry]) {
        for entry in entries {
            self.push(entry);
        }
    }

    /// Takes the next entry; after one that does not fold nothing is taken any more.
    pub fn push(&mut self, entry: &Entry) {
        if self.broken.is_some() {
            return;
        }
        let next = if self.begun {
            self.run
                .apply(entry.at, &entry.event)
                .map_err(|source| FoldError::Illegal {
                    seq: entry.seq,
                    source,
                })
        } else {
            Run::submitted(&entry.event)
        };
        let after = match next {
            Ok(after) => after,
            Err(error) => return self.breaks(error),
        };
        if self.begun {
            *self.phase_ms.entry(self.run.phase()).or_default() +=
                entry.at.millis_since(self.updated_at);
        }
        self.begun = true;
        self.timeline
            .push((entry.at, entry.event.name().to_owned()));
        self.updated_at = entry.at;
        self.summary.push(entry, &after);
        self.answer_of_person.push(entry, &after);
        let before = std::mem::replace(&mut self.run, after);
        phases::push(&mut self.phases, entry, &self.run);
        self.audit.extend(acts::of(entry, self.spec));
        self.take(&before, entry);
    }

    fn breaks(&mut self, error: FoldError) {
        let closed = true;
        let why = "journal".to_owned();
        let outcome = Outcome::Unknown { why };
        self.run
            .facts
            .warnings
            .push(format!("the journal cannot be read further: {error}"));
        self.run.state = State::Finished { outcome, closed };
        self.broken = Some(error);
    }

    fn turn_taken(&mut self, attempt: u32, turn: &TurnRecord) {
        self.answer = spent::said(turn).or(self.answer.take());
        self.turns.push(spent::turn(attempt, turn));
    }

    fn execution_finished(&mut self, before: &Run, execution: &Execution) {
        let failure = self.why_ended(before, &execution.ended);
        if let Some(attempt) = self.attempts.last_mut() {
            attempt.execution = Some(execution.clone());
            attempt.failure = failure;
        }
    }

    fn take(&mut self, before: &Run, entry: &Entry) {
        match &entry.event {
            Event::Admitted { .. } => {
                self.admitted_at.get_or_insert(entry.at);
            }
            Event::Validated { checks, .. }
            | Event::NothingToDo { checks }
            | Event::ValidationFailed { checks, .. } => {
                self.pre_checks.clone_from(checks);
            }
            Event::ExecutionFinished { execution, .. } => {
                self.execution_finished(before, execution);
            }
            Event::OwnerLost => self.owner_lost(before),
            Event::ChildStarted { run, .. } => self.children.push(*run),
            Event::TurnTaken { attempt, turn } => self.turn_taken(*attempt, turn),
            Event::ResultRecorded { result, .. } => {
                self.outputs.clone_from(&result.outputs);
                self.changed.clone_from(&result.changed);
                self.changed_count = result.changed_count;
            }
            Event::RecordingFailed { failure, .. } => {
                if let Some(attempt) = self.attempts.last_mut() {
                    attempt.failure.get_or_insert_with(|| failure.clone());
                }
            }
            Event::ChecksFinished {
                checks, failure, ..
            } => {
                self.checked(before, checks, failure.as_ref());
            }
            Event::HookFinished { .. } | Event::PostCommitHookFinished { .. } => {
                self.hooks.extend(HookStory::of(entry));
            }
            Event::Restored { report } => self.not_restored.clone_from(report),
            Event::Committed { oid, .. } | Event::LandedLater { oid, .. } => self.committed(oid),
            Event::Resolved { note, .. } => self.resolution_note = Some(note.clone()),
            Event::Submitted { .. }
            | Event::Prepared { .. }
            | Event::PreparationFailed { .. }
            | Event::RequestSent { .. }
            | Event::TurnFailed { .. }
            | Event::ToolsFinished { .. }
            | Event::ChildEnded { .. }
            | Event::BackoffElapsed { .. }
            | Event::Saved
            | Event::SaveFailed { .. }
            | Event::CommitPrepared { .. }
            | Event::Held { .. }
            | Event::Approved { .. }
            | Event::Denied { .. }
            | Event::ApprovalExpired
            | Event::NothingToCommit
            | Event::CommitOvertaken
            | Event::TargetMoved { .. }
            | Event::Conflicted { .. }
            | Event::LandingWaiting { .. }
            | Event::LandingStopped
            | Event::LandedIn { .. }
            | Event::CommitFailed { .. }
            | Event::CancelRequested { .. }
            | Event::RuntimeExhausted
            | Event::Interrupted
            | Event::GivenUp { .. }
            | Event::Discarded { .. }
            | Event::Closed => {}
        }
        self.begin_attempt(before, entry.at);
    }

    fn committed(&mut self, oid: &str) {
        for (output, promised) in self.outputs.iter_mut().zip(&self.spec.outputs) {
            let is_known = output.commits.iter().any(|known| known == oid);
            if promised.kind == OutputKind::GitCommit && !is_known {
                output.commits.push(oid.to_owned());
            }
        }
    }

    /// Milliseconds spent in a phase so far.
    pub fn phase_ms(&self, phase: Phase) -> u64 {
        self.phase_ms.get(&phase).copied().unwrap_or(0)
    }

    /// How the run ended, once it has; a run that is being put back or saved knows already how it will.
    pub fn coming_outcome(&self) -> Option<&Outcome> {
        use crate::machine::{AfterRestore, AfterSave};
        match &self.run.state {
            State::Finished { outcome, .. }
            | State::Saving {
                next: AfterSave::Finish(outcome),
                ..
            }
            | State::Restoring {
                then: AfterRestore::Finish(outcome),
            }
            | State::Recording {
                goal: Goal::Restore(AfterRestore::Finish(outcome)),
                ..
            } => Some(outcome),
            _ => None,
        }
    }

    /// Paths that were not put back, each with the reason.
    pub fn not_restored_lines(&self) -> Vec<String> {
        let edited = self.not_restored.edited_since.iter();
        edited
            .map(|path| format!("{path}: edited since"))
            .chain(self.not_restored.failed.iter().cloned())
            .collect()
    }

    /// Inputs as JSON, secrets masked as the specification holds them.
    pub fn inputs(&self) -> BTreeMap<String, serde_json::Value> {
        self.spec
            .inputs
            .iter()
            .map(|(name, value)| (name.clone(), value.to_json()))
            .collect()
    }

    /// The run in full.
    pub fn detail(&self, paths: &ThreadPaths) -> RunDetail {
        RunDetail {
            summary: self.summary.build(self.spec, &self.run, None),
            title: self.spec.title.clone(),
            results: self.run.facts.results.clone(),
            inputs: self.inputs(),
            message: self.spec.message.clone(),
            answer: self.answer.clone(),
            turns: self.turns.clone(),
            children: self.children.clone(),
            parent_skill: None,
            attempts: self.attempts.clone(),
            pre_checks: self.pre_checks.clone(),
            outputs: self.outputs.clone(),
            changed: self.changed.clone(),
            changed_count: self.changed_count,
            protected_changes: Vec::new(),
            not_restored: self.not_restored_lines(),
            warnings: self.run.facts.warnings.clone(),
            thread_path: paths.document.clone(),
            log_path: paths.log.clone(),
            timeline: self.timeline.clone(),
            phases: self.phases.clone(),
            audit: self.audit.clone(),
            definition_digest: self.spec.definition_digest.clone(),
            submitted_by: self.spec.submitted_by.clone(),
            approval: self.approval(),
            branch: self.spec.tree.as_ref().map(|tree| tree.branch().to_owned()),
            push: self.spec.tree.as_ref().and_then(|tree| tree.push.clone()),
        }
    }
}
