//! Where requests and due times become runs that may be accepted.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::definitions::Definitions;
use super::intake::{self, Ready, Surroundings};
use super::request::Submission;
use super::syntax::Syntax;
use super::{live, lookup, secrets};
use crate::clock::Clock;
use crate::model::schedule::{Overlap, Schedule};
use crate::model::spec::DueTime;
use crate::model::{Diagnostic, Kind, RunId, Timestamp};
use crate::protocol::SubmitRequest;

/// What becomes of a due time that is to run: a run that may be accepted, or why there is none.
pub(super) trait Prepares: Send + Sync {
    /// Makes the run of a due time; files are read, nothing is stored but secrets.
    fn prepare(&self, schedule: &Schedule, slot: Timestamp) -> Result<Submission, Diagnostic>;
    /// Forgets what was kept for a run that is not accepted.
    fn forget(&self, run: RunId);
}

/// Makes runs of requests, by the definitions in force.
pub(super) struct Desk {
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
    /// The due time, with its zone.
    pub(super) due: Option<(&'a DueTime, chrono_tz::Tz)>,
}

impl Desk {
    fn next_run(&self) -> Result<RunId, Diagnostic> {
        let mut random = [0u8; 16];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
            .map_err(|error| Diagnostic::new(Kind::Internal, "random", error.to_string()))?;
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let run = RunId::following(*newest, self.clock.now(), u128::from_be_bytes(random));
        *newest = Some(run);
        Ok(run)
    }

    /// Binds, renders and freezes.
    pub(super) fn ready(
        &self,
        request: &SubmitRequest,
        origin: Origin<'_>,
    ) -> Result<Ready, Diagnostic> {
        let catalog = self.definitions.current();
        let skill = lookup::find_skill(&catalog, &request.skill)?;
        let around = Surroundings {
            config: &catalog.config,
            workspace: &self.workspace,
            state_dir: &self.state_dir,
            environment: &self.environment,
            now: self.clock.now(),
            retry_of: origin.retry_of,
            due: origin.due,
            syntax: &self.syntax,
        };
        intake::ready(&skill, request, self.next_run()?, &around)
    }

    /// A run that may be accepted; values of its sensitive inputs are kept beside the store.
    pub(super) fn submission(
        &self,
        request: &SubmitRequest,
        origin: Origin<'_>,
    ) -> Result<Submission, Diagnostic> {
        let ready = self.ready(request, origin)?;
        let run = ready.spec.run;
        secrets::keep(&self.state_dir, run, &ready.spec.sensitive, &ready.secrets)?;
        Ok(Submission {
            needs: live::needs(&ready.spec),
            spec: Arc::new(ready.spec),
            key: request.key.clone(),
        })
    }
}

impl Prepares for Desk {
    fn prepare(&self, schedule: &Schedule, slot: Timestamp) -> Result<Submission, Diagnostic> {
        let request = SubmitRequest {
            skill: schedule.skill.to_string(),
            inputs: Some(schedule.inputs.clone()),
            by: Some(format!("schedule {}", schedule.id)),
            ..SubmitRequest::default()
        };
        let due = DueTime {
            schedule: schedule.id.clone(),
            slot,
            beside: schedule.policy.overlap == Overlap::AllowAll,
        };
        let zone = schedule.timezone.parse().unwrap_or(chrono_tz::Tz::UTC);
        let origin = Origin {
            due: Some((&due, zone)),
            ..Origin::default()
        };
        self.submission(&request, origin)
    }

    fn forget(&self, run: RunId) {
        secrets::forget(&self.state_dir, run);
    }
}
