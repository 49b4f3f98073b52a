//! Properties of everything that can be reached, with what happened on the way.

use std::collections::{HashMap, HashSet, VecDeque};

use workerctl_core::machine::{AfterRestore, Event, Goal, Run, State};
use workerctl_core::model::evidence::Verdict;
use workerctl_core::model::outcome::{Outcome, Results};
use workerctl_core::model::spec::{Gate, Plan};

use crate::plans::plans;
use crate::representatives::{AT, ATTEMPTS_EXPLORED_MAX, due, queued, reduced, representatives};

/// What the properties speak of and the state does not hold.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Past {
    committed: bool,
    /// Whether the newest attempt's checks ended well, on the tip that it is to land on.
    verified: bool,
    /// Whether the owner was lost while a command ran.
    lost: bool,
    /// Whether a command that had to pass has verified the newest attempt.
    proven: bool,
    /// Whether a person has approved it.
    approved: bool,
    /// Whether a rate limit ended the newest attempt before its first turn.
    idle: bool,
}

impl Past {
    fn after(self, run: &Run, event: &Event, next: &Run) -> Past {
        let mut past = self;
        match event {
            Event::Committed { .. } | Event::LandedLater { .. } => past.committed = true,
            Event::Approved { .. } => past.approved = true,
            // What passed on the tip before says nothing of the same change on another one.
            Event::TargetMoved { .. } => past.verified = false,
            Event::ExecutionFinished { .. } => {
                let waits = next.facts.rate_waits > run.facts.rate_waits;
                past.idle = waits && run.facts.turns == 0;
            }
            Event::OwnerLost if matches!(run.state, State::Executing { .. }) => past.lost = true,
            Event::ChecksFinished {
                checks, failure, ..
            } => {
                past.verified = failure.is_none()
                    && !checks.iter().any(|check| check.verdict == Verdict::Failed);
                let mut passed = checks.iter().filter(|c| c.verdict == Verdict::Passed);
                past.proven = passed.any(|c| c.must_pass && c.command.is_some());
            }
            _ => {}
        }
        if next.facts.attempts > run.facts.attempts {
            past.verified = false;
            past.proven = false;
            past.idle = false;
        }
        past
    }
}

fn attempt_of(event: &Event) -> Option<u32> {
    match event {
        Event::ExecutionFinished { attempt, .. }
        | Event::ResultRecorded { attempt, .. }
        | Event::RecordingFailed { attempt, .. }
        | Event::ChecksFinished { attempt, .. }
        | Event::BackoffElapsed { attempt } => Some(*attempt),
        _ => None,
    }
}

/// No run waits for a rate limit longer or more often than it may, and what was done in vain counts against nothing.
fn check_wait(run: &Run, event: &Event, next: &Run) {
    let waits = next.facts.rate_waits - run.facts.rate_waits;
    if waits == 0 {
        return;
    }
    let allowed = run.plan.on_rate_limit.unwrap();
    assert!(waits == 1 && next.facts.rate_waits <= allowed.times);
    assert_eq!(next.facts.failed_attempts, run.facts.failed_attempts);
    assert_eq!(next.facts.crash_attempts, run.facts.crash_attempts);
    let until = next.facts.waits_until.unwrap();
    assert!(until.millis_since(AT) <= allowed.wait_ms, "{event:?}");
    let back = AfterRestore::Requeue;
    let goes_back = match &next.state {
        State::Queued => next.facts.executing_since.is_none(),
        State::Recording { goal, .. } => *goal == Goal::Restore(back),
        _ => false,
    };
    assert!(goes_back, "{:?}", next.state);
}

/// A run with nothing to do has succeeded, and no view takes it for one that nobody verified.
fn check_idle(event: &Event, next: &Run) {
    if matches!(event, Event::NothingToDo { .. }) && next.is_finished() {
        assert_eq!(next.outcome(), Some(&Outcome::Succeeded));
        assert_eq!(next.facts.results, Results::nothing_to_do());
        assert!(!next.facts.results.is_unverified());
    }
}

fn check(past: Past, run: &Run, event: &Event, next: &Run) {
    let plan = &run.plan;
    let told = || format!("{:?} with {event:?} under {plan:?}", run.state);
    let repeatable = plan.is_repeatable();
    if let State::Executing { attempt, .. } = next.state {
        assert_eq!(attempt, next.facts.attempts, "{}", told());
        let begins = !matches!(run.state, State::Executing { attempt: now, .. } if now == attempt);
        if begins {
            assert_eq!(
                attempt,
                run.facts.attempts + 1,
                "an attempt begins twice: {}",
                told()
            );
            let first = attempt == 1 || past.idle;
            assert!(repeatable || first, "repeated: {}", told());
            assert!(
                repeatable || !past.lost,
                "repeated after a crash: {}",
                told()
            );
        }
    }
    if matches!(event, Event::CommitPrepared { .. }) {
        assert!(
            past.verified || !plan.verifies,
            "committed unverified: {}",
            told()
        );
        assert!(plan.mutating, "{}", told());
    }
    if matches!(event, Event::Committed { .. } | Event::LandedLater { .. }) {
        assert!(!past.committed, "committed twice: {}", told());
        assert!(
            past.approved || !plan.asks_before(Gate::Landing),
            "{}",
            told()
        );
    }
    if plan.asks_before(Gate::Execution) {
        let touches = next.facts.touched || next.facts.attempts > 0;
        assert!(past.approved || !touches, "{}", told());
    }
    if matches!(event, Event::CancelRequested { .. }) {
        let waits = matches!(run.state, State::Publishing { .. });
        assert!(waits || run.phase().name() != "committing", "{}", told());
    }
    if let State::Finished { closed, .. } = &run.state {
        let fine = match event {
            Event::Resolved { .. } => true,
            Event::LandedLater { .. } | Event::Discarded { .. } => run.kept_commit().is_some(),
            Event::Closed | Event::OwnerLost => !closed,
            _ => false,
        };
        assert!(fine && next.is_finished(), "{}", told());
    }
    if let Some(attempt) = attempt_of(event) {
        let due = match run.state {
            State::BackingOff { attempt, .. } => attempt,
            _ => run.facts.attempts,
        };
        assert_eq!(attempt, due, "a late result: {}", told());
    }
    // Who gives a run up knows its journal and not what came of it.
    let ends = next.is_finished() && !run.is_finished();
    let succeeds = next.outcome().is_some_and(|end| *end == Outcome::Succeeded);
    if ends && succeeds && past.lost && !repeatable && plan.proves.is_some() {
        assert!(past.proven, "done without proof after a crash: {}", told());
    }
    if past.committed && ends && !matches!(event, Event::GivenUp { .. }) {
        assert_eq!(next.outcome().unwrap().name(), "succeeded", "{}", told());
    }
}

fn waits(run: &Run) -> bool {
    matches!(
        run.state,
        State::Queued
            | State::AwaitingApproval { .. }
            | State::BackingOff { .. }
            | State::Finished { closed: true, .. }
    )
}

/// Explores one plan and answers how many (state, event) pairs were met.
fn explore(plan: &Plan) -> usize {
    let start = (queued(plan), Past::default());
    let mut places = HashMap::from([(start.clone(), 0)]);
    let mut open = VecDeque::from([start]);
    // For each place those it is reached from; places that are ends.
    let (mut ways, mut ends) = (vec![Vec::new()], Vec::new());
    let mut events: HashMap<(u32, u32), Vec<Event>> = HashMap::new();
    let mut met = 0;
    while let Some((run, past)) = open.pop_front() {
        let from = places[&(run.clone(), past)];
        assert_eq!(run.next_action().is_none(), waits(&run), "{:?}", run.state);
        let events = events
            .entry(due(&run))
            .or_insert_with(|| representatives(&run));
        for event in &*events {
            met += 1;
            // Refusing cannot change the run: `apply` only borrows it.
            let Ok(next) = run.apply(AT, event) else {
                continue;
            };
            check(past, &run, event, &next);
            check_idle(event, &next);
            check_wait(&run, event, &next);
            let past = past.after(&run, event, &next);
            let after = (reduced(next), past);
            if let Some(place) = places.get(&after) {
                ways[*place].push(from);
                continue;
            }
            let place = ways.len();
            ways.push(vec![from]);
            if after.0.is_finished() {
                ends.push(place);
            }
            places.insert(after.clone(), place);
            if after.0.facts.attempts <= ATTEMPTS_EXPLORED_MAX {
                open.push_back(after);
            }
        }
    }
    // From the ends backwards: whatever is not met on the way has no way to an end.
    let mut ended: HashSet<usize> = ends.iter().copied().collect();
    while let Some(place) = ends.pop() {
        for before in &ways[place] {
            if ended.insert(*before) {
                ends.push(*before);
            }
        }
    }
    for ((run, _), place) in &places {
        // Beyond the bound nothing was explored: what lies there is like what lies before it.
        let explored = run.facts.attempts <= ATTEMPTS_EXPLORED_MAX;
        let has_way = !explored || ended.contains(place);
        assert!(has_way, "no way to an end from {:?}", run.state);
    }
    met
}

/// Whether the event is a result or a crash, and nobody's request.
fn is_result_or_crash(event: &Event) -> bool {
    !matches!(
        event,
        Event::CancelRequested { .. }
            | Event::RuntimeExhausted
            | Event::Interrupted
            | Event::GivenUp { .. }
            | Event::Resolved { .. }
            | Event::LandedLater { .. }
            | Event::Discarded { .. }
    )
}

/// The most events that can follow `run`, where a crash that changes nothing does not count; it would
/// not end where a state could come back.
fn longest(run: &Run, known: &mut HashMap<Run, Option<usize>>) -> usize {
    match known.get(run) {
        Some(Some(length)) => return *length,
        Some(None) => panic!("a run can come back to {:?}", run.state),
        None => {}
    }
    known.insert(run.clone(), None);
    let mut length = 0;
    for event in representatives(run)
        .iter()
        .filter(|event| is_result_or_crash(event))
    {
        if let Ok(next) = run.apply(AT, event) {
            let next = reduced(next);
            if next != *run {
                length = length.max(1 + longest(&next, known));
            }
        }
    }
    known.insert(run.clone(), Some(length));
    length
}

#[test]
fn everything_that_can_be_reached_keeps_the_promises() {
    let plans = plans();
    let (some, others) = plans.split_at(plans.len() / 2);
    let met: usize = std::thread::scope(|scope| {
        let halves =
            [some, others].map(|half| scope.spawn(|| half.iter().map(explore).sum::<usize>()));
        halves.map(|half| half.join().unwrap()).iter().sum()
    });
    println!("{met} pairs of state and event under {} plans", plans.len());
    assert!(met > 500_000);
}

#[test]
fn results_and_crashes_alone_always_end_a_run() {
    for plan in plans() {
        let length = longest(&queued(&plan), &mut HashMap::new());
        assert!(length <= 200, "{length} events under {plan:?}");
    }
}
