//! Where requests and slots become runs that may be accepted.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::definitions::Definitions;
use super::request::Submission;
use super::spending::Sources;
use super::submission::{self, Ready, SubmissionContext};
use super::syntax::Syntax;
use super::view::View;
use super::{following, live, lookup, refusals, rendering, secrets};
use crate::catalog::Catalog;
use crate::clock::Clock;
use crate::model::config::CONFIG_FILE;
use crate::model::schedule::{Occurrence, Overlap, Schedule};
use crate::model::spec::{Parent, ScheduledSlot};
use crate::model::{Diagnostic, Kind, Notify, RunId, RunSpec, Severity, Timestamp, Zone};
use crate::protocol::SubmitRequest;
use crate::store::lock::WORKSPACE_FOLDER;
use crate::store::{Store, places};

/// How a person's run of a schedule differs from one of its slots.
#[derive(Debug, Clone, Default)]
pub(super) struct TriggerOptions {
    /// Who asks.
    pub(super) by: Option<String>,
    /// Instead of the schedule's own.
    pub(super) overlap: Option<Overlap>,
    /// Whether its end counts neither as a success of the schedule nor as a failure.
    pub(super) uncounted: bool,
}

/// Makes runs of requests, by the current definitions.
pub(super) struct RunFactory {
    pub(super) store: Arc<dyn Store>,
    pub(super) view: Arc<View>,
    pub(super) definitions: Arc<Definitions>,
    pub(super) workspace: PathBuf,
    pub(super) state_dir: PathBuf,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) newest: Mutex<Option<RunId>>,
    pub(super) syntax: Syntax,
}

/// What a run is made for, besides its request.
#[derive(Clone, Copy, Default)]
pub(super) struct Origin<'a> {
    /// The run that it repeats.
    pub(super) retry_of: Option<RunId>,
    /// The slot, with its zone.
    pub(super) due: Option<(&'a ScheduledSlot, Zone)>,
    /// What its schedule says of notifications.
    pub(super) notify: Option<&'a Notify>,
    /// The run that starts it, and what that one was accepted as.
    pub(super) parent: Option<(&'a Parent, &'a RunSpec)>,
}

impl RunFactory {
    /// Returns an id whose time is that of the submission, because queries by time compare ids.
    fn next_run(&self, now: Timestamp) -> Result<RunId, Diagnostic> {
        let mut random = [0u8; 16];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
            .map_err(|error| Diagnostic::new(Kind::Internal, "random", error.to_string()))?;
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let run = RunId::following(*newest, now, u128::from_be_bytes(random));
        *newest = Some(run);
        Ok(run)
    }

    /// Binds, renders and freezes, by `catalog` alone: one submission never mixes two versions of the definitions.
    pub(super) fn ready(
        &self,
        catalog: &Catalog,
        request: &SubmitRequest,
        origin: Origin<'_>,
    ) -> Result<Ready, Diagnostic> {
        refuse_unknown_config(catalog)?;
        let config = &catalog.config;
        for directory in [&config.threads_dir, &config.metrics_dir] {
            places::below(&self.workspace, directory)?;
        }
        let skill = lookup::find_skill(catalog, &request.skill)?;
        let now = self.clock.now();
        let around = SubmissionContext {
            catalog,
            config,
            workspace: &self.workspace,
            state_dir: &self.state_dir,
            environment: &self.environment,
            now,
            retry_of: origin.retry_of,
            due: origin.due,
            notify: origin.notify,
            parent: origin.parent,
            syntax: &self.syntax,
        };
        submission::ready(&skill, request, self.next_run(now)?, &around)
    }

    /// A run that may be accepted; values of its sensitive inputs are kept beside the store.
    pub(super) fn submission(
        &self,
        catalog: &Catalog,
        request: &SubmitRequest,
        origin: Origin<'_>,
    ) -> Result<Submission, Diagnostic> {
        let ready = self.ready(catalog, request, origin)?;
        if request
            .digest
            .as_ref()
            .is_some_and(|asked| *asked != rendering::digest(&ready))
        {
            return Err(refusals::changed(&request.skill));
        }
        self.admit(catalog, &request.skill)?;
        let run = ready.spec.run;
        secrets::keep(&self.state_dir, run, &ready.spec.sensitive, &ready.secrets)?;
        Ok(Submission {
            needs: live::needs(&ready.spec),
            spec: Arc::new(ready.spec),
            key: request.key.as_ref().map(|key| key_of(request, key)),
        })
    }
}

/// Keys of a run are apart from those of users, and of other runs: it cannot answer their requests beforehand. No key that
/// a user gives has a line feed.
fn key_of(request: &SubmitRequest, key: &str) -> String {
    match request.caller_run {
        Some(run) => format!("{run}\n{key}"),
        None => key.to_owned(),
    }
}

impl RunFactory {
    /// Refuses a run of a skill whose budget of the day is spent.
    fn admit(&self, catalog: &Catalog, skill: &str) -> Result<(), Diagnostic> {
        let skill = lookup::find_skill(catalog, skill)?;
        let around: Sources<'_> = (self.view.as_ref(), self.store.as_ref(), self.clock.now());
        self.view.spending.admit(&skill, &catalog.config, around)
    }

    /// Why a run of a skill would be refused until midnight.
    pub(super) fn budget_spent(
        &self,
        catalog: &Catalog,
        skill: &str,
    ) -> Result<Option<String>, Diagnostic> {
        match self.admit(catalog, skill) {
            Ok(()) => Ok(None),
            Err(refused) if refused.code == "budget_spent" => {
                let hints = refused.hints.iter().map(|hint| format!("; {hint}"));
                Ok(Some(
                    std::iter::once(refused.message).chain(hints).collect(),
                ))
            }
            Err(refused) => Err(refused),
        }
    }
}

/// Refuses while the configuration is broken and no good one is known: bounds, hooks and zone may stand in it.
pub(super) fn refuse_unknown_config(catalog: &Catalog) -> Result<(), Diagnostic> {
    if catalog.config_is_known {
        return Ok(());
    }
    let mut broken = catalog.problems.iter().filter(|problem| {
        problem.severity == Severity::Error && *problem.place.path == *CONFIG_FILE
    });
    let message = match broken.next() {
        Some(first) => format!("{}: {}", first.place, first.message),
        None => format!("`{CONFIG_FILE}` cannot be read"),
    };
    let message = format!(
        "{message}; no valid configuration is known, and runs do not fall back to the defaults"
    );
    Err(
        Diagnostic::new(Kind::Definition, "config_unknown", message).hint(format!(
            "repair `{CONFIG_FILE}`; `workerctl check` shows all that is wrong with it"
        )),
    )
}

impl RunFactory {
    /// Where the engine itself writes: changes there never trigger a schedule.
    pub(super) fn written_by_engine(&self) -> Vec<PathBuf> {
        let config = &self.definitions.current().config;
        vec![
            self.state_dir.clone(),
            self.workspace.join(&config.threads_dir),
            self.workspace.join(&config.metrics_dir),
            self.workspace.join(WORKSPACE_FOLDER),
        ]
    }

    /// Makes the run of a slot.
    pub(super) fn due(
        &self,
        schedule: &Schedule,
        due: Occurrence,
        options: &TriggerOptions,
    ) -> Result<Submission, Diagnostic> {
        let catalog = self.definitions.current();
        let mut inputs = schedule.inputs.as_ref().clone();
        if let Some(run) = due.after {
            let skill = lookup::find_skill(&catalog, &schedule.skill.to_string())?;
            following::add_outputs(self.store.as_ref(), run, &skill, &mut inputs)?;
        }
        let by = options.by.as_ref();
        let request = SubmitRequest {
            skill: schedule.skill.to_string(),
            inputs: Some(inputs),
            by: Some(by.map_or_else(
                || format!("schedule {}", schedule.id),
                |by| format!("{by}, schedule {}", schedule.id),
            )),
            ..SubmitRequest::default()
        };
        let overlap = options.overlap.unwrap_or(schedule.policy.overlap);
        let due = ScheduledSlot {
            schedule: schedule.id.to_string(),
            slot: due.at,
            beside: overlap == Overlap::AllowAll,
            after: due.after,
            uncounted: options.uncounted,
        };
        let zone = schedule.timezone.parse().unwrap_or(Zone::UTC);
        let origin = Origin {
            due: Some((&due, zone)),
            notify: Some(&schedule.policy.notify),
            ..Origin::default()
        };
        self.submission(&catalog, &request, origin)
    }
}
