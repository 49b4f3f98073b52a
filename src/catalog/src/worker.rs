//! What a worker sets for all its skills.

use std::collections::BTreeMap;

use super::agent_program::{self, DeclaredProgram};
use super::approval;
use super::budgets;
use super::checks::{self, Verification};
use super::context;
use super::env::{Env, env};
use super::executor::Named;
use super::keys::{
    AFTER_ERROR, AFTER_EXECUTION, COMMIT, EXECUTION, HOOK_NAMES, STATE_MACHINE, Table,
};
use super::limits;
use super::notify;
use super::open::Root;
use super::rate_limit::{self, OnRateLimit};
use super::report::Report;
use super::restrict;
use super::sandbox;
use super::settings;
use super::skill::placement::PLACED;
use super::texts::{PendingText, TextKind};
use super::view::View;
use super::{Options, identity::Identity, isolation};
use crate::bounds::{ATTEMPTS_MAX, BACKOFF_INITIAL_MS};
use crate::model::definition::{HookText, Input, Mode, Shell, Unavailable};
use crate::model::spec::{RateLimitWait, Retry};
use crate::model::{Config, Notify, Place, ResourceLimits};

/// A setting and how far it reaches.
#[derive(Debug, Clone)]
pub(crate) enum Setting {
    /// Nothing is set.
    Absent,
    /// `retry` of the worker.
    Own(Retry),
    /// `retry_attempts` or `max_retries` of HQ files.
    Inherited(Retry, Place),
}

/// What a worker sets for all its skills.
#[derive(Debug)]
pub(crate) struct WorkerPart<'a> {
    pub(crate) id: String,
    pub(crate) root: &'a Root,
    /// Relative to the workspace.
    pub(crate) directory: &'a str,
    pub(crate) options: Options<'a>,
    /// The whole text of its file, for digests.
    pub(crate) text: &'a str,
    pub(crate) mode: Mode,
    pub(crate) scheduled: bool,
    /// Where it says that it is scheduled, when no schedule stands at its own level.
    pub(crate) schedule_missing: Option<Place>,
    pub(crate) model: Option<String>,
    pub(crate) program: DeclaredProgram,
    pub(crate) unavailable: Vec<Unavailable>,
    pub(crate) texts: Vec<PendingText<'a>>,
    pub(crate) verification: Verification<'a>,
    pub(crate) post_tools: Vec<HookText>,
    pub(crate) post_commit: Vec<HookText>,
    pub(crate) notify: Notify,
    /// Files that commands of `notify` name.
    pub(crate) depends: Vec<String>,
    pub(crate) commit_message: Option<String>,
    pub(crate) retry: Setting,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) max_runtime_ms: Option<u64>,
    pub(crate) limits: ResourceLimits,
    pub(crate) budget: budgets::DeclaredBudget,
    pub(crate) context: Vec<String>,
    pub(crate) cwd: String,
    /// Where the values of `branch`, `push` and `cwd` are written.
    pub(crate) places: BTreeMap<String, Place>,
    pub(crate) shell: Shell,
    pub(crate) env: Env,
    pub(crate) placement: isolation::Placement,
    pub(crate) approval: approval::DeclaredApproval,
    pub(crate) on_rate_limit: Option<RateLimitWait>,
    pub(crate) sandbox: Option<sandbox::DeclaredSandbox>,
    /// Inputs of each skill: the placeholders of the id of the template.
    pub(crate) placeholders: Vec<Input>,
    pub(crate) config: &'a Config,
}

/// Where a worker stands and what it is read with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorkerContext<'a> {
    pub(crate) root: &'a Root,
    pub(crate) directory: &'a str,
    pub(crate) options: Options<'a>,
    pub(crate) config: &'a Config,
    pub(crate) text: &'a str,
}

/// Reads what a worker sets for its skills; errors are reported and reject the worker.
pub(crate) fn read<'a>(
    root: View<'a>,
    identity: &Identity,
    around: WorkerContext<'a>,
    report: &mut Report,
) -> WorkerPart<'a> {
    let written = |key: &str| root.written(key);
    let execution = map_of(root, "execution", &EXECUTION, report);
    let state_machine = map_of(root, "state_machine", &STATE_MACHINE, report);
    let in_execution = |key: &str| execution.and_then(|map| map.written(key));
    report_state_machine(state_machine, report);
    let Modes {
        mode,
        scheduled,
        schedule_missing,
    } = mode(root, execution, report);
    let own = |key: &str| written(key).or_else(|| in_execution(key));
    let removed = [written("isolation"), in_execution("isolation")];
    for view in removed.into_iter().flatten() {
        isolation::report_isolation(view, report);
    }
    let program = program(root, around.config, report);
    let mut part = WorkerPart {
        id: identity.id.clone(),
        root: around.root,
        directory: around.directory,
        options: around.options,
        text: around.text,
        mode,
        scheduled,
        schedule_missing,
        model: in_execution("model").and_then(|view| model(view, around.config, &program, report)),
        program,
        unavailable: Vec::new(),
        sandbox: None,
        texts: Vec::new(),
        verification: written("verification")
            .map(|view| checks::read(view, report))
            .unwrap_or_default(),
        post_tools: around.config.post_tools_hooks.clone(),
        post_commit: around.config.post_commit_hooks.clone(),
        notify: Notify::default(),
        commit_message: None,
        retry: retry(own("retry"), execution, state_machine, report),
        timeout_ms: own("timeout").and_then(|view| view.millis("timeout", report)),
        max_runtime_ms: own("max_runtime").and_then(|view| view.millis("max_runtime", report)),
        limits: limits_of(root, around.config, report),
        budget: budget(root, report),
        context: context::read(root, around.config, report),
        places: places(root),
        cwd: written("cwd")
            .and_then(|view| settings::inner_path(view, "cwd", report))
            .unwrap_or_else(|| ".".to_owned()),
        shell: written("shell")
            .and_then(|view| settings::shell(view, report))
            .unwrap_or_default(),
        env: written("env")
            .map(|view| env(view, report))
            .unwrap_or_default(),
        placement: isolation::read(written, around.config, report),
        approval: written("approval")
            .map(|view| approval::read(view, report))
            .unwrap_or_default(),
        on_rate_limit: written("on_rate_limit")
            .and_then(|view| rate_limit::read(view, report))
            .map_or(around.config.on_rate_limit, OnRateLimit::wait),
        depends: Vec::new(),
        placeholders: identity.placeholders.clone(),
        config: around.config,
    };
    add_sandbox(own("sandbox"), &mut part, report);
    if identity.template {
        part.unavailable.push(is_template(identity));
    }
    add_texts(root, &mut part, report);
    part
}

fn add_sandbox(view: Option<View<'_>>, part: &mut WorkerPart<'_>, report: &mut Report) {
    let Some(view) = view else {
        return;
    };
    let config = part.config;
    let asked = sandbox::read(view, &config.workers, report);
    part.sandbox = asked.map(|asked| asked.within(&config.sandbox, report));
    if part.sandbox.is_none() {
        part.unavailable.push(restrict::sandbox(view, report));
    }
}

/// Where values are written that only the environment can refuse.
fn places(root: View<'_>) -> BTreeMap<String, Place> {
    let place = |key: &&str| Some(((*key).to_owned(), root.written(key)?.place()));
    PLACED.iter().filter_map(place).collect()
}

fn is_template(identity: &Identity) -> Unavailable {
    Unavailable {
        code: "template".to_owned(),
        reason: format!("the worker's id `{}` holds a placeholder", identity.id),
    }
}

/// The alias that counts for skills which name none.
fn model(
    view: View<'_>,
    config: &Config,
    program: &DeclaredProgram,
    report: &mut Report,
) -> Option<String> {
    let alias = view.text("model", report)?;
    let named = Named {
        model: Some((alias.clone(), view.place())),
        toolsets: Vec::new(),
    };
    if !program.names_program() {
        named.report_missing(config, report);
    }
    Some(alias)
}

/// The agent program of its skills: its own `agent`, what HQ names in `cli`, else the configuration's.
fn program(root: View<'_>, config: &Config, report: &mut Report) -> DeclaredProgram {
    let of_hq = root.written("cli").map(agent_program::of_hq);
    let outer = DeclaredProgram::of(config.program.as_deref());
    let outer = of_hq.unwrap_or_default().within(&outer);
    DeclaredProgram::read_within(root.written("agent"), &outer, report)
}

fn budget(root: View<'_>, report: &mut Report) -> budgets::DeclaredBudget {
    let written = root
        .written("budget")
        .map(|view| budgets::read(view, report));
    written.unwrap_or_default()
}

fn limits_of(root: View<'_>, config: &Config, report: &mut Report) -> ResourceLimits {
    let own = root
        .written("limits")
        .map(|view| limits::read(view, report));
    own.unwrap_or_default().within(config.limits)
}

fn add_texts<'a>(root: View<'a>, part: &mut WorkerPart<'a>, report: &mut Report) {
    part.texts.append(&mut part.verification.texts);
    if let Some(view) = root.written("hooks") {
        let hooks = settings::hooks(view, report);
        part.post_tools.extend(hooks.post_tools);
        part.post_commit.extend(hooks.post_commit);
        part.texts.extend(hooks.texts);
    }
    if let Some(view) = root.written("notify") {
        let mut commands = Vec::new();
        part.notify = notify::notify(view, &mut commands, report);
        part.depends = notify::report_missing(&commands, part.root, report);
        part.texts.extend(commands);
    }
    if let Some(view) = root.written("commit")
        && let Some((message, text)) = commit_message(view, report)
    {
        part.commit_message = Some(message);
        part.texts.push(text);
    }
}

/// Reads `commit: {message}`.
pub(crate) fn commit_message<'a>(
    view: View<'a>,
    report: &mut Report,
) -> Option<(String, PendingText<'a>)> {
    if !COMMIT.is_map(view, "commit", "a map with `message`", report) {
        return None;
    }
    let message_view = view.written("message")?;
    let message = message_view.filled_text("message", report)?;
    let text = PendingText {
        kind: TextKind::CommitMessage,
        text: message.clone(),
        view: message_view,
    };
    Some((message, text))
}

fn map_of<'a>(root: View<'a>, key: &str, known: &Table, report: &mut Report) -> Option<View<'a>> {
    root.written(key)
        .filter(|view| known.is_map(*view, key, "a map", report))
}

struct Modes {
    mode: Mode,
    scheduled: bool,
    schedule_missing: Option<Place>,
}

fn mode(root: View<'_>, execution: Option<View<'_>>, report: &mut Report) -> Modes {
    let schedules = [
        root.written("schedule"),
        root.written("cron"),
        execution.and_then(|map| map.written("schedule")),
    ];
    let has_schedule = schedules.into_iter().flatten().next().is_some();
    let Some(view) = execution.and_then(|map| map.written("mode")) else {
        let mode = if has_schedule {
            Mode::Scheduled
        } else {
            Mode::OnDemand
        };
        return Modes {
            mode,
            scheduled: has_schedule,
            schedule_missing: None,
        };
    };
    let text = view.text("mode", report).unwrap_or_default();
    let (mode, usual) = match text.trim().to_lowercase().replace(['-', ' '], "_").as_str() {
        "on_demand" => (Mode::OnDemand, "on_demand"),
        "scheduled" => (Mode::Scheduled, "scheduled"),
        "event_triggered" => (Mode::EventTriggered, "event_triggered"),
        _ => {
            report.error(
                "mode-unknown",
                view.place(),
                format!("`mode: {text}` is not known"),
                "write `on_demand`, `scheduled` or `event_triggered`",
            );
            return Modes {
                mode: Mode::OnDemand,
                scheduled: has_schedule,
                schedule_missing: None,
            };
        }
    };
    if text != usual {
        report.note(
            "mode-spelling",
            view.place(),
            format!("`mode: {text}` is read as `{usual}`"),
            &format!("write `mode: {usual}`"),
        );
    }
    if mode == Mode::EventTriggered && !has_schedule {
        report.warning(
            "event-not-fired",
            view.place(),
            "no event triggers this worker, because none is declared".to_owned(),
            "write `schedule:` with `after`, `watch` or `on_commit`, at the worker or at a skill, or start it with `workerctl run`",
        );
    }
    Modes {
        mode,
        scheduled: has_schedule,
        schedule_missing: (mode == Mode::Scheduled && !has_schedule).then(|| view.place()),
    }
}

/// Rejects a worker that is scheduled and has no schedule, at its own level or among its skills.
pub(crate) fn report_schedule_missing(place: Place, report: &mut Report) {
    report.error(
        "schedule-missing",
        place,
        "the worker is scheduled and names no schedule".to_owned(),
        "add `schedule: \"0 9 * * 1-5\"` below `execution`, or write `mode: on_demand`",
    );
}

fn report_state_machine(map: Option<View<'_>>, report: &mut Report) {
    let Some(map) = map else {
        return;
    };
    if let Some(view) = map.written("enabled")
        && view.flag("enabled", report) == Some(false)
    {
        report.note(
            "state-machine-always-on",
            view.place(),
            "the state machine cannot be switched off".to_owned(),
            "remove the key",
        );
    }
    let Some(hooks) = map.written("hooks") else {
        return;
    };
    if !HOOK_NAMES.is_map(
        hooks,
        "hooks",
        "a map with `post_execute` and `on_error`",
        report,
    ) {
        return;
    }
    for (when, known) in [("post_execute", AFTER_EXECUTION), ("on_error", AFTER_ERROR)] {
        let Some(names) = hooks.written(when) else {
            continue;
        };
        for item in names.items() {
            let name = item.scalar_text().unwrap_or_default();
            if !known.contains(&name.as_str()) {
                report.warning(
                    "hook-name-unknown",
                    item.place(),
                    format!("`{name}` is not a name that `{when}` knows, and has no effect"),
                    &format!(
                        "known are {}; commands belong into `hooks: {{post_tools: […]}}`",
                        known.map(|name| format!("`{name}`")).join(" and ")
                    ),
                );
            }
        }
    }
}

fn retry(
    own: Option<View<'_>>,
    execution: Option<View<'_>>,
    state_machine: Option<View<'_>>,
    report: &mut Report,
) -> Setting {
    let count = |map: Option<View<'_>>, key: &str, report: &mut Report| {
        let view = map
            .and_then(|map| map.get(key))
            .filter(|view| !view.is_null())?;
        let retries = view.whole(key, 0..=ATTEMPTS_MAX - 1, report)?;
        Some((u32::try_from(retries).unwrap_or(0), view.place()))
    };
    let attempts = count(execution, "retry_attempts", report);
    let retries = count(state_machine, "max_retries", report);
    if let (Some((first, _)), Some((second, place))) = (&attempts, &retries) {
        let message = format!(
            "`execution.retry_attempts: {first}` and `state_machine.max_retries: {second}` \
             both stand, the first counts"
        );
        let hint = "remove `max_retries`";
        if first == second {
            report.note("retry-two-sources", place.clone(), message, hint);
        } else {
            report.warning("retry-two-sources", place.clone(), message, hint);
        }
    }
    if let Some(view) = own {
        return settings::retry(view, report).map_or(Setting::Absent, Setting::Own);
    }
    match attempts.or(retries) {
        Some((retries, place)) => Setting::Inherited(
            Retry {
                max_attempts: retries.saturating_add(1),
                initial_ms: BACKOFF_INITIAL_MS,
                ..Retry::ONCE
            },
            place,
        ),
        None => Setting::Absent,
    }
}
