//! The tools `use_skill`, `get_run` and `cancel_run`.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{
    CallToolResponse, CallToolResult, ContentBlock, JsonObject, ProgressNotificationParam,
};
use rmcp::service::{RequestContext, RoleServer};
use tokio::sync::mpsc;
use tokio::time::{interval_at, sleep_until};

use super::answer::{self, apart};
use super::asking::{self, Answer, Given};
use super::engines::Engines;
use super::finding::{Found, alternatives, find, shown};
use super::page::Unreadable;
use super::results::{self, Told};
use super::skills::{PEOPLE_ONLY, Skills, What, held_to_tools};
use crate::model::{Diagnostic, Kind, McpMutating, Phase, RunId};
use crate::protocol::{CancelRequest, RunSummary, SubmitRequest, WatchEvent};

/// How often a client is told that a run goes on.
const PROGRESS: Duration = Duration::from_secs(5);

/// What calls that run skills work with.
#[derive(Clone)]
pub(super) struct Running {
    pub(super) engines: Arc<Engines>,
    /// Whether the client has left: what is cancelled then goes on.
    pub(super) ended: Arc<AtomicBool>,
    /// Who asks, for people.
    pub(super) by: String,
    /// Which of its connections asks.
    pub(super) chat_id: Arc<str>,
}

/// What a client asks to run.
pub(super) struct Wanted {
    /// The skill's name.
    pub(super) skill: String,
    pub(super) input: JsonObject,
    /// What the client says of the question that it was to ask.
    pub(super) given: Given,
}

/// Runs a skill and waits for it for a while; one that changes things after a question, where that is how it is set.
pub(super) async fn use_skill(
    running: Running,
    skills: Arc<Skills>,
    wanted: Wanted,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let settings = &skills.catalog.config.mcp;
    let wait = Duration::from_millis(settings.wait_ms);
    let allowed = settings.mutating == McpMutating::Allow;
    let (may_change, not_allowed) = (skills.may_change, skills.not_allowed());
    let Wanted {
        skill,
        input,
        given,
    } = wanted;
    let ready = move || {
        prepare(&skills, &skill, input).map_err(|why| {
            let mut refused = results::error(why);
            // Beside the contract's words.
            if matches!(find(&skills, &skill), Found::Unknown) {
                let listed = ContentBlock::text("`list_skills` lists the skills that there are.");
                refused.content.push(listed);
            }
            Box::new(refused)
        })
    };
    let ready = apart(ready).await?;
    let mut request = match ready {
        Ok(ready) => ready,
        Err(refused) => return Ok((*refused).into()),
    };
    // Whether it changes things is the engine's word: a daemon reads definitions for itself, and may have read one that has
    // changed since, or not yet. The digest holds the run to what was looked at.
    let rendered = if allowed {
        None
    } else {
        let (engines, asked) = (Arc::clone(&running.engines), request.clone());
        let rendered = apart(move || engines.ask(|control| control.render(&asked))).await?;
        // What is refused is submitted too, for only then the engine counts it. No run has an empty digest.
        let digest = rendered.as_ref().map(|rendered| rendered.digest.clone());
        request.digest = Some(digest.unwrap_or_default());
        rendered.ok()
    };
    if let Some(rendered) = rendered.filter(|rendered| rendered.mutating) {
        if !may_change {
            let why = format!("Skill '{}' is not run: {not_allowed}", rendered.skill);
            return Ok(results::error(why).into());
        }
        let mut told = Progress::new(&context);
        let mut ticks = tokio::time::interval(PROGRESS);
        let asked = asking::ask(&rendered, given, &context);
        tokio::pin!(asked);
        let answer = loop {
            tokio::select! {
                answer = &mut asked => break answer,
                // A client may give up a call of which it hears nothing.
                _ = ticks.tick() => told.say("waiting for a person's answer".to_owned()).await,
            }
        };
        match answer {
            Answer::Yes(digest) => request.digest = Some(digest),
            Answer::No(why) => {
                let why = format!("Skill '{}' is not run: {why}", rendered.skill);
                return Ok(results::error(why).into());
            }
            Answer::Pending(pending) => return Ok((*pending).into()),
        }
    }
    request.by = Some(running.by.clone());
    request.chat_id = Some(running.chat_id.to_string());
    let engines = Arc::clone(&running.engines);
    let submitted = apart(move || engines.ask(|control| control.submit(&request))).await?;
    let result = match submitted {
        Ok(submitted) => follow(running, submitted.run, wait, context).await?,
        Err(refused) => results::error(refusal(&refused)),
    };
    Ok(result.into())
}

/// Finds out whether a skill may run; otherwise why not. What its input or its tools lack,
/// the engine says.
fn prepare(skills: &Skills, name: &str, input: JsonObject) -> Result<SubmitRequest, String> {
    let entry = match find(skills, name) {
        Found::Skill(entry) => entry,
        Found::Unknown => return Err(format!("Skill '{}' not found", shown(name))),
        Found::Ambiguous(names) => {
            let (name, names) = (shown(name), alternatives(&names));
            return Err(format!(
                "Skill '{name}' belongs to several workers: use one of {names}"
            ));
        }
        Found::Broken(problems) => {
            let why = Unreadable::of(&problems).message();
            return Err(format!("Skill '{}' cannot be used: {why}", shown(name)));
        }
    };
    let cannot = |why: &str| format!("Skill '{}' cannot be used: {why}", entry.name);
    let not_run = |why: &str| format!("Skill '{}' is not run: {why}", entry.name);
    if let Some(why) = skills.standing(&entry).reason() {
        return Err(cannot(&why));
    }
    let (address, mutating) = match &entry.what {
        What::Worker(_, skill) => (&skill.address, skill.mutating),
        What::Root(skill) => {
            let loaded = skill.hand_out(skills.trust());
            let keys = loaded
                .map_err(|why| cannot(&Unreadable::from(why).message()))?
                .keys;
            if !keys.model_invocable {
                return Err(cannot(PEOPLE_ONLY));
            }
            (&skill.run_address(), keys.mutating)
        }
    };
    if mutating && !skills.may_change {
        return Err(not_run(skills.not_allowed()));
    }
    if let Some(why) = entry.unusable() {
        return Err(cannot(&why));
    }
    if let Some(lack) = entry.lack() {
        let name = &entry.name;
        let instead = match entry.withheld() {
            Some(_) => String::new(),
            None => format!(". `skill` with `name: {name}` gives its instructions"),
        };
        return Err(not_run(&format!("{lack}{instead}.")));
    }
    if let What::Worker(_, skill) = &entry.what
        && let Some(why) = held_to_tools(skill)
    {
        return Err(not_run(&why));
    }
    let request = SubmitRequest {
        skill: address.to_string(),
        inputs: Some(input),
        ..SubmitRequest::default()
    };
    Ok(request)
}

/// What the engine says, in the contract's words where it has some.
fn refusal(refused: &Diagnostic) -> String {
    match refused.kind {
        Kind::Usage => {
            let all = if refused.details.is_empty() {
                refused.message.clone()
            } else {
                refused.details.join("; ")
            };
            // Of a schema the engine says it in these words already.
            let all = all.strip_prefix("Invalid input: ").unwrap_or(&all);
            format!("Invalid input: {all}")
        }
        _ => answer::told(refused),
    }
}

/// Waits for a run, telling how it goes; a call that is cancelled cancels it.
async fn follow(
    running: Running,
    run: RunId,
    wait: Duration,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    let mut changes = watch(&running, run);
    let started = tokio::time::Instant::now();
    let mut told = Progress::new(&context);
    let mut ticks = interval_at(started + PROGRESS, PROGRESS);
    let mut phase = Phase::Queued;
    loop {
        tokio::select! {
            () = context.ct.cancelled() => {
                if !running.ended.load(Ordering::Acquire) {
                    cancelled(&running, run).await;
                }
                return Err(ErrorData::internal_error("the call was cancelled", None));
            }
            () = sleep_until(started + wait) => break,
            change = changes.recv() => match change {
                Some(summary) => {
                    // A person may take days.
                    let ended = matches!(
                        summary.phase,
                        Phase::Finished | Phase::AwaitingApproval
                    );
                    if phase != summary.phase {
                        phase = summary.phase;
                        told.say(phase.name().to_owned()).await;
                    }
                    if ended {
                        break;
                    }
                }
                None => break,
            },
            _ = ticks.tick() => {
                told.say(format!("{phase}, {} s", started.elapsed().as_secs())).await;
            }
        }
    }
    let told = run_of(running, run.to_string()).await?;
    Ok(told.map_or_else(
        |refused| results::error(answer::told(&refused)),
        Told::structured,
    ))
}

/// The changes of a run, until it has ended or nobody listens.
fn watch(running: &Running, run: RunId) -> mpsc::Receiver<RunSummary> {
    let (sender, changes) = mpsc::channel(64);
    let engines = Arc::clone(&running.engines);
    // Not waited for: it ends with the run, or at the next sign of life once nobody listens.
    drop(tokio::task::spawn_blocking(move || {
        let Ok(lease) = engines.lease() else { return };
        let watched = lease.watch_changes(run, &mut |event| {
            let heard = match event {
                WatchEvent::Changed(summary) => sender.blocking_send(*summary).is_ok(),
                WatchEvent::Line(_) | WatchEvent::Partial(_) | WatchEvent::Lagged { .. } => {
                    !sender.is_closed()
                }
            };
            if heard {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        if let Err(error) = watched {
            tracing::warn!(%error, %run, "the run cannot be watched any more");
        }
    }));
    changes
}

async fn cancelled(running: &Running, run: RunId) {
    let engines = Arc::clone(&running.engines);
    let by = running.by.clone();
    let asked = apart(move || {
        let request = CancelRequest {
            now: false,
            by: Some(by),
            ..CancelRequest::default()
        };
        engines.ask(|control| control.cancel(&run.to_string(), &request))
    });
    if let Ok(Err(error)) = asked.await {
        tracing::warn!(%error, %run, "the run of a call that was cancelled cannot be cancelled");
    }
}

/// Tells a client that asked for it how a call goes on.
struct Progress<'c> {
    context: &'c RequestContext<RoleServer>,
    steps: f64,
}

impl<'c> Progress<'c> {
    fn new(context: &'c RequestContext<RoleServer>) -> Progress<'c> {
        Progress {
            context,
            steps: 0.0,
        }
    }

    async fn say(&mut self, message: String) {
        let Some(token) = self.context.meta.get_progress_token() else {
            return;
        };
        self.steps += 1.0;
        let params = ProgressNotificationParam::new(token, self.steps).with_message(message);
        if let Err(error) = self.context.peer.notify_progress(params).await {
            tracing::debug!(%error, "progress cannot be reported");
        }
    }
}

async fn run_of(running: Running, run: String) -> Result<Result<Told, Diagnostic>, ErrorData> {
    let engines = running.engines;
    apart(move || engines.ask(|control| results::of_run(control, &run))).await
}

/// The tool `get_run`.
pub(super) async fn get_run(running: Running, run: String) -> Result<CallToolResult, ErrorData> {
    let told = run_of(running, run).await?;
    Ok(told.map_or_else(
        |refused| answer::failure(answer::told(&refused)),
        Told::text,
    ))
}

/// The tool `cancel_run`. Runs of mutating skills end only where clients may start them.
pub(super) async fn cancel_run(
    running: Running,
    run: String,
    now: bool,
    skills: Arc<Skills>,
) -> Result<CallToolResult, ErrorData> {
    let Running { engines, by, .. } = running;
    let done = apart(move || {
        engines.ask(|control| {
            let summary = control.run(&run)?.summary;
            if summary.mutating && !skills.may_change {
                let run = summary.run.short();
                let why = format!(
                    "the run changes things, so clients of this server may not cancel it. A person can: `workerctl cancel {run}`"
                );
                return Err(Diagnostic::new(Kind::Blocked, "not_allowed", why));
            }
            let request = CancelRequest {
                now,
                by: Some(by.clone()),
                ..CancelRequest::default()
            };
            let run = summary.run.to_string();
            match control.cancel(&run, &request) {
                Ok(_) => results::of_cancelled(control, &run),
                Err(refused) => results::of_ended(control, &run).ok_or(refused),
            }
        })
    });
    let told = done.await?;
    Ok(told.map_or_else(
        |refused| answer::failure(answer::told(&refused)),
        Told::text,
    ))
}
