//! `docs/dev/state-machine.md`, generated from the code: what the machine does, not what it was meant to do.

use std::collections::{BTreeMap, BTreeSet};

use workerctl_core::machine::{
    Action, AfterRestore, AfterSave, Event, Goal, HookVerdict, Run, State,
};
use workerctl_core::model::evidence::{Ended, Verdict};
use workerctl_core::model::outcome::Outcome;
use workerctl_core::model::spec::Plan;

use crate::plans::{all_plans, is_complete};
use crate::representatives::explore;

/// Names of the states in the order of a run.
const STATES: [&str; 15] = [
    "queued",
    "validating",
    "awaiting_approval",
    "preparing",
    "executing",
    "recording",
    "verifying",
    "backing_off",
    "post_hook",
    "saving",
    "committing",
    "publishing",
    "announcing",
    "restoring",
    "finished",
];

/// Names of the events in the order of a run.
pub(crate) const EVENTS: [&str; 46] = [
    "submitted",
    "admitted",
    "validated",
    "validation_failed",
    "prepared",
    "preparation_failed",
    "request_sent",
    "turn_taken",
    "turn_failed",
    "tools_finished",
    "child_started",
    "child_ended",
    "execution_finished",
    "result_recorded",
    "recording_failed",
    "checks_finished",
    "backoff_elapsed",
    "hook_finished",
    "saved",
    "save_failed",
    "held",
    "approved",
    "denied",
    "approval_expired",
    "commit_prepared",
    "nothing_to_commit",
    "nothing_to_do",
    "commit_overtaken",
    "target_moved",
    "conflicted",
    "landing_waiting",
    "landing_stopped",
    "landed_in",
    "committed",
    "commit_failed",
    "post_commit_hook_finished",
    "restored",
    "cancel_requested",
    "runtime_exhausted",
    "interrupted",
    "owner_lost",
    "given_up",
    "resolved",
    "landed_later",
    "discarded",
    "closed",
];

/// Positions of the typical plans that together lead to everything on the page. `.ci/explore` compares the page with
/// what all of them lead to.
const SUFFICIENT: [usize; 14] = [3, 17, 22, 36, 37, 48, 86, 102, 142, 148, 162, 169, 172, 198];

type Labels = BTreeSet<String>;

/// What was seen while exploring.
#[derive(Debug, Default)]
struct Seen {
    /// (state, event) to the names of the next states.
    next: BTreeMap<(&'static str, &'static str), BTreeSet<&'static str>>,
    /// (state, event) pairs that some variant of the event or the state is refused for.
    refused: BTreeSet<(&'static str, &'static str)>,
    /// (kind of plan, state) to what follows, for a crash, a request to cancel, a limit of time.
    crash: BTreeMap<(&'static str, &'static str), Labels>,
    cancel: BTreeMap<&'static str, Labels>,
    limit: BTreeMap<&'static str, Labels>,
    runtime: BTreeMap<&'static str, Labels>,
    actions: BTreeMap<&'static str, BTreeSet<&'static str>>,
}

/// The kinds of plan that a crash is answered differently for.
const KINDS: [&str; 4] = [
    "non-mutating",
    "non-mutating, once",
    "mutating, idempotent",
    "mutating",
];

fn kind(plan: &Plan) -> &'static str {
    match (plan.mutating, plan.is_repeatable()) {
        (false, true) => KINDS[0],
        (false, false) => KINDS[1],
        (true, true) => KINDS[2],
        (true, false) => KINDS[3],
    }
}

/// Whether the event is what the executor reports when the step's own limit of time is reached.
fn is_limit(event: &Event, state: &State) -> bool {
    match event {
        Event::ValidationFailed { .. }
        | Event::PreparationFailed { .. }
        | Event::CommitFailed { .. }
        | Event::ApprovalExpired => true,
        Event::ExecutionFinished { execution, .. } => matches!(
            execution.ended,
            Ended::TimedOut | Ended::LimitReached { .. }
        ),
        Event::ChecksFinished {
            checks, failure, ..
        } => failure.is_none() && checks.iter().any(|check| check.verdict == Verdict::Failed),
        Event::HookFinished { verdict, .. } | Event::PostCommitHookFinished { verdict, .. } => {
            matches!(verdict, HookVerdict::Warned { .. })
        }
        Event::Restored { report } => {
            !report.is_complete() && matches!(state, State::Restoring { .. })
        }
        _ => false,
    }
}

/// Whether somebody has asked to end the run in this state already.
fn is_ending(state: &State) -> bool {
    match state {
        State::Validating { ending }
        | State::Preparing { ending }
        | State::Executing { ending, .. }
        | State::Recording { ending, .. }
        | State::Verifying { ending, .. }
        | State::PostHook { ending, .. } => ending.is_some(),
        State::Saving { cancelled, .. } | State::Publishing { cancelled, .. } => *cancelled,
        State::Queued
        | State::AwaitingApproval { .. }
        | State::BackingOff { .. }
        | State::Committing { .. }
        | State::Announcing { .. }
        | State::Restoring { .. }
        | State::Finished { .. } => false,
    }
}

fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Failed { failure } => format!("failed({}, {})", failure.step, failure.code),
        Outcome::Unknown { why } => format!("unknown({why})"),
        other => other.name().to_owned(),
    }
}

fn after_restore(then: &AfterRestore) -> String {
    match then {
        AfterRestore::Retry { .. } => "retry".to_owned(),
        AfterRestore::Requeue => "queued".to_owned(),
        AfterRestore::Finish(end) => outcome(end),
    }
}

/// The state with what is already decided about its end.
pub(crate) fn label(state: &State) -> String {
    let then = match state {
        State::Saving { cancelled, next } => match next {
            _ if *cancelled => Some("ending".to_owned()),
            AfterSave::Commit => Some("commit".to_owned()),
            AfterSave::Finish(end) => Some(outcome(end)),
        },
        State::Restoring { then } => Some(after_restore(then)),
        State::Finished { outcome: end, .. } => Some(outcome(end)),
        other if is_ending(other) => Some("ending".to_owned()),
        State::Recording { goal, .. } => Some(match goal {
            Goal::Verify { reconciling: false } => "verify".to_owned(),
            Goal::Verify { reconciling: true } => "reconcile".to_owned(),
            Goal::Restore(then) => after_restore(then),
        }),
        _ => None,
    };
    match then {
        Some(then) => format!("`{}` → {then}", state.name()),
        None => format!("`{}`", state.name()),
    }
}

fn is_typical(plan: &Plan) -> bool {
    let parts = [plan.validates, plan.prepares, plan.verifies];
    let omitted = parts.iter().filter(|part| !**part).count();
    omitted != 2 && (plan.hooks == 0) == (plan.post_commit_hooks == 0)
}

fn look() -> Seen {
    let mut seen = Seen::default();
    // Every pair of choices stands here; `reach` meets every combination.
    let plans = all_plans();
    for (at, plan) in plans.iter().filter(|plan| is_typical(plan)).enumerate() {
        if !is_complete() && !SUFFICIENT.contains(&at) {
            continue;
        }
        explore(plan, &mut |run, event, next| seen.take(run, event, next));
    }
    seen
}

impl Seen {
    fn take(&mut self, run: &Run, event: &Event, next: Option<&Run>) {
        let (state, name) = (run.state.name(), event.name());
        let action = run.next_action().as_ref().map_or("–", Action::name);
        self.actions.entry(state).or_default().insert(action);
        let Some(next) = next else {
            self.refused.insert((state, name));
            return;
        };
        let nexts = self.next.entry((state, name)).or_default();
        nexts.insert(next.state.name());
        if is_ending(&run.state) {
            return;
        }
        // Where several answers lie behind one state, the table names each once.
        let answer = || {
            if run.state == next.state {
                "again".to_owned()
            } else {
                label(&next.state)
            }
        };
        match event {
            Event::OwnerLost => {
                let key = (kind(&run.plan), state);
                self.crash.entry(key).or_default().insert(answer());
            }
            Event::CancelRequested { .. } => {
                self.cancel.entry(state).or_default().insert(answer());
            }
            Event::RuntimeExhausted => {
                self.runtime.entry(state).or_default().insert(answer());
            }
            limit if is_limit(limit, &run.state) => {
                self.limit.entry(state).or_default().insert(answer());
            }
            _ => {}
        }
    }
}

fn joined(labels: Option<&Labels>) -> String {
    match labels {
        None => "–".to_owned(),
        Some(labels) => labels.iter().cloned().collect::<Vec<_>>().join("<br>"),
    }
}

/// The whole page.
pub(crate) fn markdown() -> String {
    let seen = look();
    let mut page = String::from(
        "# The state machine of a run\n\n\
         Generated from `src/core/src/machine/` by `WORKERCTL_BLESS=1 cargo test --test explore`; a test compares it.\n\
         Every state that a typical plan of each kind can reach was met with every kind of event.\n\n",
    );
    page.push_str("## The way of a run\n\n```mermaid\nstateDiagram-v2\n    [*] --> queued\n");
    page.push_str(&diagram(&seen));
    page.push_str("    finished --> [*]\n```\n\n");
    page.push_str(
        "## Actions\n\nThe one effect that each state asks for; it is derived, never stored.\n\n\
         | state | action |\n|---|---|\n",
    );
    for state in STATES {
        let actions: Vec<&str> = seen
            .actions
            .get(state)
            .into_iter()
            .flatten()
            .copied()
            .collect();
        page.push_str(&format_row(&[format!("`{state}`"), actions.join(", ")]));
    }
    page.push_str(&endings(&seen));
    page.push_str(&pairs(&seen));
    page
}

fn format_row(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

fn diagram(seen: &Seen) -> String {
    let mut edges: BTreeMap<(usize, usize), Vec<&str>> = BTreeMap::new();
    let place = |name: &str| STATES.iter().position(|state| *state == name).unwrap_or(0);
    for event in EVENTS {
        for state in STATES {
            for next in seen.next.get(&(state, event)).into_iter().flatten() {
                if *next != state {
                    let edge = edges.entry((place(state), place(next))).or_default();
                    edge.push(event);
                }
            }
        }
    }
    let lines: Vec<String> = edges
        .into_iter()
        .map(|((from, to), events)| {
            let events = events.join(", ");
            format!("    {} --> {}: {events}\n", STATES[from], STATES[to])
        })
        .collect();
    lines.concat()
}

fn endings(seen: &Seen) -> String {
    let mut text = String::from(
        "\n## Crash, cancel, limits\n\n\
         *again*: the same action once more. `x` → y: the state `x`, on the way to y. *ending*: its\n\
         processes are being stopped. –: refused. *non-mutating, `once`*: the definition says `idempotent: false`.\n\
         A run that must not be repeated is reconciled if its whole change can be shown to be complete.\n\n\
         | state | owner lost, non-mutating | non-mutating, `once` | mutating and idempotent | mutating | cancel | its own limit | `max_runtime` |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for state in STATES {
        let mut cells = vec![format!("`{state}`")];
        cells.extend(KINDS.map(|kind| joined(seen.crash.get(&(kind, state)))));
        cells.push(joined(seen.cancel.get(state)));
        cells.push(joined(seen.limit.get(state)));
        cells.push(joined(seen.runtime.get(state)));
        text.push_str(&format_row(&cells));
    }
    text
}

fn pairs(seen: &Seen) -> String {
    let mut text = String::from(
        "\n## Every state with every event\n\n\
         *conditional*: refused for another attempt or hook than the one that is due, or while the run is\n\
         being ended, or once its end is decided.\n",
    );
    for state in STATES {
        let start = format!("\n### `{state}`\n\n| event | next |\n|---|---|\n");
        text.push_str(&start);
        let mut refused = Vec::new();
        for event in EVENTS {
            let Some(nexts) = seen.next.get(&(state, event)) else {
                refused.push(format!("`{event}`"));
                continue;
            };
            let mut nexts: Vec<String> = STATES
                .iter()
                .filter(|name| nexts.contains(*name))
                .map(|name| format!("`{name}`"))
                .collect();
            if seen.refused.contains(&(state, event)) {
                nexts.push("*conditional*".to_owned());
            }
            text.push_str(&format_row(&[format!("`{event}`"), nexts.join(", ")]));
        }
        text.push_str("\nRefused: ");
        text.push_str(&refused.join(", "));
        text.push_str(".\n");
    }
    text
}
