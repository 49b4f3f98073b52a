//! Intake: a request and a definition become a frozen specification, or are refused with nothing stored.

pub(super) mod agent;
pub(super) mod destinations;
mod message;
mod plan;
mod target;
pub(super) mod texts;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use destinations::stdout_output;
use texts::{Rendered, definition_error, hooks};

use super::effects::push::push_command;
use super::model_keys;
use super::names::{self, Builtins};
use super::secrets;
use super::syntax::{self, Syntax};
use super::walls::Grounds;
use crate::catalog::definition_paths::without_links;
use crate::catalog::{Catalog, NO_EXECUTOR};
use crate::inputs::{self, Bound, RawInputs};
use crate::model::agent::{CONFIGURE_A_MODEL, has_model_client};
use crate::model::definition::{RunText, Skill};
use crate::model::sandbox::Sandbox;
use crate::model::spec::{
    HookSpec, Parent, SPEC_VERSION, ScheduledSlot, outputs_placeholder, tree_placeholder,
};
use crate::model::{
    Config, Diagnostic, Kind, Notify, RunId, RunSpec, SkillRef, ThreadId, Timestamp, Value, Zone,
};
use crate::process;
use crate::protocol::SubmitRequest;
use crate::store::secrets::Secrets;
use crate::template::{Names, Use};

/// The variable that tells every command of a scheduled run its slot.
const SCHEDULED_AT: &str = "WORKERCTL_SCHEDULED_AT";

/// The variable that tells every command of a run which run it follows.
const AFTER_RUN: &str = "WORKERCTL_AFTER_RUN";

/// The variable that tells every command of a run with a tree where people work.
const CHECKOUT: &str = "WORKERCTL_CHECKOUT";

/// A request that may be accepted.
pub(super) struct Ready {
    /// The frozen specification.
    pub spec: RunSpec,
    /// Values of sensitive inputs; empty where there are none.
    pub secrets: Secrets,
    /// Every placeholder of the command, for `render`.
    pub uses: Vec<Use>,
    /// The command's text as written, where it is shell text.
    pub written: Option<String>,
}

/// What a submission needs to know of the engine.
pub(super) struct SubmissionContext<'a> {
    /// The definitions.
    pub catalog: &'a Catalog,
    /// Their configuration.
    pub config: &'a Config,
    /// Absolute path of the workspace.
    pub workspace: &'a Path,
    /// Absolute path of the state directory.
    pub state_dir: &'a Path,
    /// The engine's environment.
    pub environment: &'a BTreeMap<String, String>,
    /// The present.
    pub now: Timestamp,
    /// The run that this one repeats.
    pub retry_of: Option<RunId>,
    /// The slot that it is made for, with its zone: date and time are those of the slot.
    pub due: Option<(&'a ScheduledSlot, Zone)>,
    /// What its schedule says of notifications.
    pub notify: Option<&'a Notify>,
    /// The run that starts it, and what that one was accepted as.
    pub parent: Option<(&'a Parent, &'a RunSpec)>,
    /// Who asks shells whether they can read a text.
    pub syntax: &'a Syntax,
}

/// Binds, renders and freezes; refused here means that nothing was stored.
pub(super) fn ready(
    skill: &Skill,
    request: &SubmitRequest,
    run: RunId,
    around: &SubmissionContext<'_>,
) -> Result<Ready, Diagnostic> {
    refuse_unavailable(skill)?;
    message::check(skill, request.message.as_deref())?;
    let given = RawInputs {
        pairs: request.input.clone(),
        json: request.inputs.clone(),
    };
    let (bound, input) = if let Some((bound, input)) = agent::of_schema(skill, &given)? {
        (bound, Some(input))
    } else {
        let bound = inputs::bind(&skill.inputs, &given);
        (bound.map_err(|found| inputs::refusal(&found))?, None)
    };
    agent::check_tools(skill, around.config)?;
    let names = names::names(skill).map_err(|found| definition_error(skill, &found))?;
    let submission = Submitting {
        skill,
        around,
        names: &names,
        bound: &bound,
        input: input.as_ref(),
    };
    submission.freeze(request, run)
}

/// Refuses a skill that asks for more than there is.
pub(super) fn refuse_unavailable(skill: &Skill) -> Result<(), Diagnostic> {
    let Some(first) = skill.unavailable.first() else {
        return Ok(());
    };
    let mut refused = Diagnostic::new(
        Kind::Blocked,
        "unavailable",
        format!("`{}` is unavailable: {}", skill.address, first.reason),
    )
    .hint(format!("its definition is {}", skill.place));
    if first.code == NO_EXECUTOR && has_model_client() {
        refused = refused
            .hint(CONFIGURE_A_MODEL)
            .hint("or give the skill a command: `run`");
    }
    // The message has the first one.
    let others = skill.unavailable.iter().skip(1);
    refused.details = others.map(|one| one.reason.clone()).collect();
    Err(refused)
}

struct Submitting<'a> {
    skill: &'a Skill,
    around: &'a SubmissionContext<'a>,
    names: &'a Names,
    bound: &'a Bound,
    /// The input where a JSON Schema describes it.
    input: Option<&'a serde_json::Value>,
}

impl Submitting<'_> {
    #[expect(
        clippy::too_many_lines,
        reason = "one literal that names every field of the specification"
    )]
    fn freeze(&self, request: &SubmitRequest, run: RunId) -> Result<Ready, Diagnostic> {
        let (skill, around) = (self.skill, self.around);
        let workspace = around.workspace.to_string_lossy().into_owned();
        let cwd = self.cwd()?;
        // A run that another one started works where that one does.
        let parent_tree = around.parent.and_then(|(_, spec)| spec.tree.as_ref());
        let is_child = around.parent.is_some();
        let repository = if skill.mutating && !is_child || parent_tree.is_some() {
            Some(self.repository(&cwd)?)
        } else {
            None
        };
        // Known only when the run starts, so a placeholder stands for it until then.
        let placed = |path: &str| match &repository {
            Some(found) => match Path::new(path).strip_prefix(&found.workdir) {
                Ok(rest) => Path::new(&tree_placeholder(run)).join(rest),
                Err(_) => PathBuf::from(path),
            },
            None => PathBuf::from(path),
        };
        let in_place = |path: &str| {
            let placed = placed(path).to_string_lossy().into_owned();
            placed
                .strip_suffix('/')
                .map_or(placed.clone(), str::to_owned)
        };
        let real_workspace = self.workspace_root().to_string_lossy().into_owned();
        let named_workspace = match &repository {
            Some(_) => in_place(&real_workspace),
            None => workspace.clone(),
        };
        let configured = around.config.timezone.parse();
        let (at, zone) = match around.due {
            Some((due, zone)) => (due.slot, zone),
            None => (
                request.not_before.unwrap_or(around.now).max(around.now),
                configured.unwrap_or(Zone::UTC),
            ),
        };
        let run_text = run.to_string();
        let (date, time) = (at.date_in(zone), at.time_in(zone));
        let builtins = Builtins {
            date: &date,
            time: &time,
            scheduled_at: &at.rfc3339_in(zone),
            worker: &skill.address.worker,
            skill: &skill.address.skill,
            run: &run_text,
            workspace: &named_workspace,
            cwd: &in_place(&cwd),
        };
        let mut values = names::values(self.bound, &skill.inputs, &builtins);
        let outputs = self.outputs(&values, &date)?;
        // Written to a directory of the run and moved to their destinations when it succeeds.
        let is_staged = repository.is_none() && outputs.iter().any(|output| output.path.is_some());
        let named_outputs = if is_staged {
            outputs_placeholder(run)
        } else {
            named_workspace.clone()
        };
        names::add_outputs(&mut values, &outputs, &named_outputs);
        self.add_files(&mut values, run);

        let mut rendered = Rendered::default();
        let mut requires = Vec::new();
        let (program, named) = self.program(&values, &mut rendered, &mut requires, &in_place)?;
        let command_uses = rendered.uses.clone();
        let pre_checks = self.checks(&skill.pre_checks, &values, &mut rendered)?;
        let checks = self.checks(&skill.checks, &values, &mut rendered)?;
        let wake = self.wake(&values, &mut rendered)?;
        let (mut environment, secrets) = self.environment(&values, &rendered)?;
        // What a command takes for today is what `{date}` says.
        environment.push(("TZ".to_owned(), zone.name().to_owned()));
        let is_due = around.due.is_some() || request.not_before.is_some();
        if is_due && environment.iter().all(|(name, _)| name != SCHEDULED_AT) {
            environment.push((SCHEDULED_AT.to_owned(), at.rfc3339_in(zone)));
        }
        environment.extend(self.plain_variables()?);
        if let Some(run) = around.due.and_then(|(due, _)| due.after) {
            environment.push((AFTER_RUN.to_owned(), run.to_string()));
        }
        let stdout_to = stdout_output(skill, &outputs, named);
        let tree = match (&repository, parent_tree) {
            (_, Some(tree)) => Some(tree.clone()),
            (Some(found), None) => Some(self.tree(found, &outputs)?),
            (None, None) => None,
        };
        if tree.is_some() {
            environment.push((CHECKOUT.to_owned(), real_workspace.clone()));
        }
        let input_paths = self.input_paths();
        let looks = !requires.is_empty() || !input_paths.is_empty();
        let plan = self.plan(&outputs, looks, is_staged);
        let spec = RunSpec {
            version: SPEC_VERSION,
            run,
            thread: ThreadId::of(run, &skill.address, around.now),
            skill: SkillRef::clone(&skill.address),
            title: skill.name.clone(),
            definition_digest: skill.digest.clone(),
            submitted_at: around.now,
            zone: zone.name().to_owned(),
            workspace: if tree.is_some() {
                real_workspace
            } else {
                workspace
            },
            cwd,
            repository: repository
                .map(|found| found.common_dir)
                .filter(|_| !is_child),
            tree,
            inputs: self.bound.masked(),
            sensitive: self.bound.secrets.clone(),
            message: request.message.clone(),
            program,
            requires,
            environment,
            env_names: skill.env.clone(),
            secrets: skill.secrets.clone(),
            outputs,
            stdout_to,
            input_paths,
            pre_checks,
            wake,
            checks,
            hooks: hooks(&skill.hooks),
            post_commit: self.post_commit(),
            parent: around.parent.map(|(link, _)| link.clone()),
            plan,
            timeout_ms: Some(skill.timeout_ms.unwrap_or(around.config.timeout_ms)),
            limits: Some(skill.limits),
            commit_message: self.commit_message(&values)?,
            commit_author: around.config.commit_author.clone(),
            threads_dir: around.config.threads_dir.clone(),
            retry_of: around.retry_of,
            scheduled: around.due.map(|(due, _)| due.clone()),
            not_before: request.not_before,
            may_control: skill.may_control,
            sandbox: self.sandbox()?,
            submitted_by: request.by.clone().unwrap_or_else(|| "unknown".to_owned()),
            user_id: request.user_id,
            submitter_run: request.caller_run,
            chat_id: request.chat_id.clone(),
            foreground: self.is_foreground(request),
            notify_after: self.notify(|notify| notify.after).unwrap_or_default(),
        };
        syntax::refuse_broken(around.syntax, skill, &spec)?;
        let written = match &skill.run {
            RunText::Shell(text) => Some(text.clone()),
            RunText::Argv(_) | RunText::Script { .. } | RunText::Instructions => None,
        };
        Ok(Ready {
            spec,
            secrets,
            uses: command_uses,
            written,
        })
    }

    /// Returns the nearest value of a key of `notify`: that of the schedule, of the worker, or of the configuration.
    fn notify<T>(&self, value: impl Fn(&Notify) -> Option<T>) -> Option<T> {
        let mut workers = self.around.catalog.workers.iter();
        let worker = workers.find(|worker| worker.id == self.skill.address.worker);
        let levels = [
            self.around.notify,
            worker.map(|worker| &worker.notify),
            Some(&self.around.config.notify),
        ];
        levels.into_iter().flatten().find_map(value)
    }

    /// Returns true if a person follows the run to its end and `notify` has no other wish. A client leaves a run that
    /// waits for approval.
    fn is_foreground(&self, request: &SubmitRequest) -> bool {
        request.foreground
            && request.caller_run.is_none()
            && self.skill.approval.is_none()
            && !self.notify(|notify| notify.foreground).unwrap_or(false)
    }

    fn cwd(&self) -> Result<String, Diagnostic> {
        let cwd = match self.skill.cwd.as_str() {
            "" | "." => self.around.workspace.to_owned(),
            relative => self.around.workspace.join(relative),
        };
        let refused = |why: String| {
            Diagnostic::new(
                Kind::Definition,
                "cwd",
                format!("`cwd: {}` {why}", self.skill.cwd),
            )
            .hint("name a directory inside the workspace")
        };
        let real = std::fs::canonicalize(&cwd).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                let message = format!("`cwd: {}`: there is no such directory", self.skill.cwd);
                Diagnostic::new(Kind::Blocked, "cwd", message).hint(
                    "create the directory, or correct `cwd`, which is relative to the workspace",
                )
            }
            _ => refused(error.to_string()),
        })?;
        let root = std::fs::canonicalize(self.around.workspace)
            .map_err(|error| refused(error.to_string()))?;
        if !real.is_dir() {
            return Err(refused("is not a directory".to_owned()));
        }
        if !real.starts_with(&root) {
            return Err(refused("leads out of the workspace".to_owned()));
        }
        // A run could have landed a link, so that this one would work in another repository of the workspace.
        let path = root.join(&self.skill.cwd);
        if real != path {
            let (_, links) = without_links(&path);
            let link = links.iter().find_map(|link| link.strip_prefix(&root).ok());
            let link = link.unwrap_or(Path::new(&self.skill.cwd)).display();
            let why = format!("passes the symbolic link `{link}`, which a run can replace");
            return Err(refused(why).hint("name the path that the link leads to"));
        }
        Ok(real.to_string_lossy().into_owned())
    }

    /// The hooks that follow the landing, after the push.
    fn post_commit(&self) -> Vec<HookSpec> {
        let remote = self.skill.push.as_ref();
        let push = remote
            .filter(|_| self.skill.mutating)
            .map(|remote| HookSpec {
                program: push_command(remote),
                timeout_ms: self.around.config.push_timeout_ms,
            });
        push.into_iter()
            .chain(hooks(&self.skill.post_commit))
            .collect()
    }

    /// Whether the checkout is compared instead, because the kernel keeps nothing from its commands.
    fn is_compared(&self) -> bool {
        !self.skill.mutating && self.skill.sandbox.is_some() && !process::walls_stand()
    }

    /// The walls of its commands; what is never granted is refused here already.
    fn sandbox(&self) -> Result<Option<Sandbox>, Diagnostic> {
        let Some(sandbox) = &self.skill.sandbox else {
            return Ok(None);
        };
        let mut keys = model_keys::files(self.around.config, self.around.environment);
        keys.extend(secrets::files(self.skill, self.around.environment));
        let grounds = Grounds {
            workspace: self.around.workspace,
            state_dir: self.around.state_dir,
            trees: None,
            repository: &[],
            keys: &keys,
            environment: self.around.environment,
            catalog: self.around.catalog,
        };
        let abi = process::landlock_abi();
        if let Some(lacking) = grounds.lacking(sandbox, abi) {
            let message = format!(
                "`sandbox: {}` is not supported by this kernel (Landlock ABI {abi}; it needs {})",
                lacking.key, lacking.abi
            );
            let refused = Diagnostic::new(Kind::Blocked, "sandbox", message);
            let linux = lacking.linux;
            return Err(refused.hint(format!(
                "use Linux {linux} or later with Landlock enabled: docs/reference/sandbox.md"
            )));
        }
        match grounds.check(sandbox) {
            Ok(()) => Ok(Some(sandbox.clone())),
            Err(why) => Err(Diagnostic::new(Kind::Definition, "sandbox_grant", why)
                .hint(format!("its definition is {}", self.skill.place))
                .hint("grant another directory, such as `/srv/backup`, or take the line out")),
        }
    }

    fn input_paths(&self) -> Vec<String> {
        self.skill
            .inputs
            .iter()
            .filter(|input| input.kind == crate::model::definition::InputKind::Path)
            .filter_map(|input| match self.bound.values.get(&input.name) {
                Some(Value::Text(path)) => Some(path.clone()),
                _ => None,
            })
            .collect()
    }
}
