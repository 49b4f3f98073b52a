//! What a skill sets for itself, and what it takes over from its worker.

use super::Builder;
use crate::approval;
use crate::checks::{self, Verification};
use crate::env::{Env, env};
use crate::executor::NO_EXECUTOR;
use crate::input_schema;
use crate::interface::{self, Interface};
use crate::limits;
use crate::model::definition::{Input, RunText, Shell, Unavailable, WakeText};
use crate::model::sandbox::{Level, Sandbox};
use crate::model::spec::{Approving, OnCrash, RateLimitWait, Retry};
use crate::model::{Place, ResourceLimits};
use crate::rate_limit::{self, OnRateLimit};
use crate::report::Report;
use crate::restrict;
use crate::sandbox;
use crate::settings::{self, Hooks};
use crate::texts::TextKind;
use crate::view::View;
use crate::worker::{Setting, commit_message};

impl<'a> Builder<'a, '_> {
    pub(super) fn interface(&mut self, report: &mut Report) -> Interface<'a> {
        let errors = report.errors();
        let mut found = self
            .layers
            .get("interface")
            .map(|view| interface::read(view, report))
            .unwrap_or_default();
        self.incomplete |= report.errors() > errors;
        self.texts.append(&mut found.texts);
        self.add_placeholders(&mut found.inputs, report);
        found
    }

    /// What the placeholders of the worker's id stand for are inputs of each of its skills.
    fn add_placeholders(&self, inputs: &mut Vec<Input>, report: &mut Report) {
        let declared = !inputs.is_empty();
        for placeholder in &self.worker.placeholders {
            let name = &placeholder.name;
            if !inputs.iter().any(|own| own.name == *name) {
                inputs.push(placeholder.clone());
            } else if placeholder.default.is_some() {
                report.error(
                    "instances-input",
                    self.place_of_input(name),
                    format!("`{name}` is an input, and a placeholder of the worker's id"),
                    "rename the input: the placeholder is one of itself",
                );
            }
        }
        let schema = self.layers.get("input_schema");
        let schema = schema.filter(|_| !declared && !inputs.is_empty());
        if let Some(schema) = schema.filter(|_| self.layers.get("run").is_none()) {
            report.error(
                "instances-input",
                schema.key_place(),
                "`input_schema` cannot describe the placeholders of the worker's id".to_owned(),
                "declare inputs in `interface: {inputs: […]}` instead",
            );
        }
    }

    fn place_of_input(&self, name: &str) -> Place {
        let inputs = self
            .layers
            .get("interface")
            .and_then(|view| view.get("inputs"));
        let mut names = inputs
            .into_iter()
            .flat_map(|list| list.items())
            .filter_map(|item| item.get("name"));
        let found = names.find(|view| view.scalar_text().as_deref() == Some(name));
        found.map_or_else(|| self.place(), |view| view.place())
    }

    pub(super) fn verification(&mut self, report: &mut Report) -> Verification<'a> {
        let mut found = self
            .layers
            .get("verification")
            .map(|view| checks::read(view, report))
            .unwrap_or_default();
        if let Some(view) = self.layers.get("human_checkpoints") {
            found.after.extend(checks::checkpoints(view, report));
        }
        if let Some(view) = self.layers.written("approval_required") {
            found.approval_required |= checks::approval(view, report);
        }
        self.texts.append(&mut found.texts);
        found
    }

    pub(super) fn on_rate_limit(&self, report: &mut Report) -> Option<RateLimitWait> {
        let own = self.layers.get("on_rate_limit");
        let own = own.filter(|view| !view.is_null());
        own.and_then(|view| rate_limit::read(view, report))
            .map_or(self.worker.on_rate_limit, OnRateLimit::wait)
    }

    pub(super) fn wake(&mut self, report: &mut Report) -> Option<WakeText> {
        let view = self.layers.get("wake")?;
        settings::wake(view, &mut self.texts, report)
    }

    /// The walls of its commands, `None` where it is to have none.
    pub(super) fn sandbox(&mut self, may_control: bool, report: &mut Report) -> Option<Sandbox> {
        let of_workspace = &self.worker.config.sandbox;
        let outer = self.worker.sandbox.as_ref();
        let around = outer.map_or(of_workspace.clone(), |outer| outer.clone().sandbox());
        let asked = match self.layers.get("sandbox") {
            None => outer.cloned(),
            Some(view) => {
                let own = sandbox::read(view, &self.worker.config.workers, report);
                if own.is_none() {
                    self.unavailable.push(restrict::sandbox(view, report));
                }
                own.map(|own| own.within(&around, report))
            }
        };
        let mut walls = asked.map_or(around, sandbox::DeclaredSandbox::sandbox);
        // The engine listens on one.
        walls.unix_sockets |= may_control;
        Some(walls).filter(|walls| walls.level != Level::Off)
    }

    /// Where no model of ours executes instructions, whoever is given them does what they say: nobody could be asked
    /// before.
    pub(super) fn hold_instructions(&mut self, asks: bool) {
        let asks = asks || self.worker.verification.approval_required;
        let mut reasons = self.unavailable.iter();
        if asks && reasons.any(|one| one.code == NO_EXECUTOR) {
            self.unavailable.push(Unavailable {
                code: "approval-required".to_owned(),
                reason: "its runs need approval, but it has no `run` to approve".to_owned(),
            });
        }
    }

    /// How a person is asked, where the skill or its worker says that one has to approve.
    pub(super) fn approval(
        &self,
        asks: bool,
        lands: bool,
        report: &mut Report,
    ) -> Option<Approving> {
        let written = self.layers.get("approval");
        let before = report.errors();
        let own = written.map(|view| (approval::read(view, report), view));
        let asks = asks || self.worker.verification.approval_required;
        if let Some((_, view)) = own.filter(|_| !asks && report.errors() == before) {
            report.warning(
                "approval-unasked",
                view.key_place(),
                "`approval` has no effect: no approval is required".to_owned(),
                "add `approval_required: true`",
            );
        }
        if let Some((_, view)) = own.filter(|(own, _)| !lands && own.is_before_landing()) {
            report.warning(
                "approval-before-execution",
                view.key_place(),
                "its runs have no result that lands, so approval is requested before execution"
                    .to_owned(),
                "write `before: execution`; only a mutating skill has a result that lands",
            );
        }
        let asked = own.map(|(own, _)| own).unwrap_or_default();
        let asked = asked.or(self.worker.approval);
        asks.then(|| asked.resolve(lands, &self.worker.config.approval))
    }

    /// Checks `input_schema`, and warns of keys that only skills with instructions use.
    pub(super) fn check_input_schema(&self, run: &RunText, report: &mut Report) {
        if *run == RunText::Instructions {
            if let Some(schema) = self.layers.get("input_schema") {
                // An error rejects the skill.
                input_schema::read(schema, report);
            }
            return;
        }
        for (key, hint) in [
            (
                "input_schema",
                "declare the inputs in `interface: {inputs: […]}`",
            ),
            (
                "max_iterations",
                "remove it, or limit the command with `timeout`",
            ),
        ] {
            if let Some(view) = self.layers.written(key) {
                report.warning(
                    "instructions-only",
                    view.key_place(),
                    format!(
                        "`{key}` has no effect: the skill has a command instead of instructions"
                    ),
                    hint,
                );
            }
        }
    }

    pub(super) fn hooks(&mut self, mutating: bool, report: &mut Report) -> Hooks<'a> {
        let written = self.layers.get("hooks");
        let mut found = written
            .map(|view| settings::hooks(view, report))
            .unwrap_or_default();
        if let Some(view) = written.filter(|_| !mutating && !found.texts.is_empty()) {
            report.warning(
                "hooks-unfired",
                view.key_place(),
                "`hooks` has no effect: only runs of mutating skills fire them".to_owned(),
                "add `mutating: true` if the skill changes the repository; for notifications about its runs, set `notify` in its worker",
            );
        }
        self.texts.append(&mut found.texts);
        found
    }

    pub(super) fn flag(&self, key: &str, report: &mut Report) -> Option<bool> {
        self.layers.get(key).and_then(|view| view.flag(key, report))
    }

    pub(super) fn millis(
        &self,
        key: &str,
        inherited: Option<u64>,
        report: &mut Report,
    ) -> Option<u64> {
        if let Some(view) = self.layers.written(key).filter(View::is_left_empty) {
            let hint = format!("write `{key}: 15m`, or remove the key");
            let message = format!("`{key}` has no value");
            report.error("blank", view.key_place(), message, &hint);
        }
        match self.layers.get(key) {
            Some(view) => view.millis(key, report),
            None => inherited,
        }
    }

    pub(super) fn limits(&self, report: &mut Report) -> ResourceLimits {
        let own = self.layers.get("limits");
        let own = own.map(|view| limits::read(view, report));
        own.unwrap_or_default().within(self.worker.limits)
    }

    /// A skill's own `retry` counts before its worker's, and that before what HQ files set. None of
    /// them applies to a mutating skill unless repeating it does no harm, nor to one of which the definition
    /// says that it does.
    pub(super) fn retry(
        &self,
        mutating: bool,
        idempotent: Option<bool>,
        report: &mut Report,
    ) -> Retry {
        let own = self.layers.get("retry");
        let (retry, place) = match (own, &self.worker.retry) {
            (Some(view), _) => match settings::retry(view, report) {
                Some(retry) => (retry, view.key_place()),
                None => return Retry::ONCE,
            },
            (None, Setting::Absent) => return Retry::ONCE,
            (None, Setting::Own(retry)) => (retry.clone(), self.place()),
            (None, Setting::Inherited(retry, place)) => (retry.clone(), place.clone()),
        };
        if retry.max_attempts == 1 || idempotent.unwrap_or(!mutating) {
            return retry;
        }
        let why = if idempotent.is_some() {
            "is not idempotent"
        } else {
            "is mutating"
        };
        let message = format!("`retry` does not apply: `{}` {why}", self.item.id);
        let hint = "write `idempotent: true` if it can be repeated without harm";
        if own.is_some() {
            report.warning("retry-not-applied", place, message, hint);
        } else {
            report.note("retry-not-applied", place, message, hint);
        }
        Retry::ONCE
    }

    pub(super) fn on_crash(&self, report: &mut Report) -> OnCrash {
        let Some(view) = self.layers.get("on_crash") else {
            return OnCrash::default();
        };
        match view.text("on_crash", report).as_deref() {
            Some("restore") => OnCrash::Restore,
            Some("verify") | None => OnCrash::Verify,
            Some(other) => {
                report.error(
                    "unknown-value",
                    view.place(),
                    format!("`on_crash: {other}` is not known"),
                    "write `verify` or `restore`",
                );
                OnCrash::Verify
            }
        }
    }

    pub(super) fn cwd(&self, report: &mut Report) -> String {
        self.layers
            .get("cwd")
            .and_then(|view| settings::inner_path(view, "cwd", report))
            .unwrap_or_else(|| self.worker.cwd.clone())
    }

    pub(super) fn shell(&self, report: &mut Report) -> Shell {
        self.layers
            .get("shell")
            .and_then(|view| settings::shell(view, report))
            .unwrap_or(self.worker.shell)
    }

    pub(super) fn env(&self, report: &mut Report) -> Env {
        let mut found = self.worker.env.clone();
        if let Some(view) = self.layers.get("env") {
            found.extend(env(view, report));
        }
        found
    }

    pub(super) fn commit_message(&mut self, report: &mut Report) -> Option<String> {
        let Some(view) = self.layers.get("commit") else {
            return self.worker.commit_message.clone();
        };
        let (message, text) = commit_message(view, report)?;
        self.texts
            .retain(|text| text.kind != TextKind::CommitMessage);
        self.texts.push(text);
        Some(message)
    }
}
