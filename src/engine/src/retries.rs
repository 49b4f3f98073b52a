//! Runs that repeat another one: made, and found again.

use std::ops::ControlFlow;

use super::control::EngineControl;
use super::view::RunSnapshot;
use crate::model::{Diagnostic, Kind, RunId, Value};
use crate::protocol::{ActView, SignedRequest, SubmitRequest, Submitted};

/// How many of the newest runs are looked at for those that repeat a run.
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

    /// Who repeated a run, among the newest runs.
    pub(super) fn repeated(&self, run: RunId) -> Result<Vec<ActView>, Diagnostic> {
        let mut found = Vec::new();
        let live = self.view.runs();
        let live = live.iter().map(|shown| &shown.summary);
        found.extend(
            live.filter(|one| one.retry_of == Some(run))
                .map(|one| one.run),
        );
        let mut looked = 0;
        self.store.summaries(None, &mut |summary| {
            looked += 1;
            if summary.run <= run || looked > LOOKED_MAX {
                return ControlFlow::Break(());
            }
            if summary.retry_of == Some(run) {
                found.push(summary.run);
            }
            ControlFlow::Continue(())
        })?;
        found.sort_unstable();
        found.dedup();
        let acts = found
            .into_iter()
            .filter_map(|retried| self.act(retried).transpose());
        acts.collect()
    }

    fn act(&self, retried: RunId) -> Result<Option<ActView>, Diagnostic> {
        let spec = match self.view.run(retried) {
            Some(shown) => Some(shown.spec.as_ref().clone()),
            None => self.store.spec(retried)?,
        };
        Ok(spec.map(|spec| ActView {
            at: spec.submitted_at,
            act: "retried".to_owned(),
            by: Some(spec.submitted_by),
            note: None,
            run: Some(retried),
        }))
    }
}
