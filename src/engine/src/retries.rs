//! Runs that repeat another one, or that its commands started: made, and found again.

use std::ops::ControlFlow;

use super::control::EngineControl;
use super::schedules::summary_of;
use super::view::RunSnapshot;
use crate::model::{Diagnostic, Kind, RunId, Value};
use crate::protocol::{AuditEntry, RunDetail, RunSummary, SignedRequest, SubmitRequest, Submitted};

/// How many of the newest runs are searched for those that repeat a run or were started by it.
const LOOKED_MAX: usize = 2_000;

impl EngineControl {
    /// Accepts a new run with the same inputs and the present definition.
    pub(super) fn repeat(
        &self,
        shown: &RunSnapshot,
        request: &SignedRequest,
    ) -> Result<Submitted, Diagnostic> {
        let (spec, short) = (&shown.spec, shown.spec.run.short());
        if !spec.sensitive.is_empty() {
            let names = spec.sensitive.join(", ");
            let message = format!("{short} had sensitive inputs, which are not kept: {names}");
            let refused = Diagnostic::new(Kind::Usage, "sensitive_inputs", message);
            return Err(refused.hint(format!(
                "run `workerctl run {}` with its inputs",
                spec.skill
            )));
        }
        let set = spec
            .inputs
            .iter()
            .filter(|(_, value)| !matches!(value, Value::Unset));
        let inputs = set.map(|(name, value)| (name.clone(), value.to_json()));
        let by = request.by.clone();
        let request = SubmitRequest {
            skill: spec.skill.to_string(),
            inputs: Some(inputs.collect()),
            message: spec.message.clone(),
            by: by.or_else(|| Some(format!("retry of {short}"))),
            ..SubmitRequest::default()
        };
        self.accept(&request, Some(spec.run))
    }

    /// Completes what other runs tell of a run: who repeated it, what its commands started, and the skill that started it.
    pub(super) fn complete(&self, detail: &mut RunDetail) -> Result<(), Diagnostic> {
        let (run, store) = (detail.summary.run, self.store.as_ref());
        let (mut retried, children) = (Vec::new(), &mut detail.children);
        let mut take = |newer: &RunSummary| {
            retried.extend((newer.retry_of == Some(run)).then_some(newer.run));
            children.extend((newer.parent == Some(run)).then_some(newer.run));
        };
        for shown in self.view.runs() {
            take(&shown.summary);
        }
        let mut looked = 0;
        store.summaries(None, &mut |summary| {
            looked += 1;
            if summary.run <= run || looked > LOOKED_MAX {
                return ControlFlow::Break(());
            }
            take(&summary);
            ControlFlow::Continue(())
        })?;
        for found in [&mut retried, children] {
            found.sort_unstable();
            found.dedup();
        }
        for retried in retried {
            detail.audit.extend(self.act(retried)?);
        }
        if let Some(parent) = detail.summary.parent {
            let parent = summary_of(&self.view, store, parent)?;
            detail.parent_skill = parent.map(|parent| parent.skill);
        }
        Ok(())
    }

    fn act(&self, retried: RunId) -> Result<Option<AuditEntry>, Diagnostic> {
        let spec = match self.view.run(retried) {
            Some(shown) => Some(shown.spec.as_ref().clone()),
            None => self.store.spec(retried)?,
        };
        Ok(spec.map(|spec| AuditEntry {
            at: spec.submitted_at,
            action: "retried".to_owned(),
            by: Some(spec.submitted_by),
            note: None,
            run: Some(retried),
        }))
    }
}
