//! Plans that stand for all of them: what differs decides nothing else.

use workerctl_core::model::spec::{Approving, Gate, OnCrash, Plan, RateLimitWait, Retry};

/// `cargo test` explores one plan of this many. `.ci/explore` explores all of them, which takes minutes.
const SAMPLED: usize = 32;

/// Returns plans of all kinds that the machine tells apart: a sample, or each with `WORKERCTL_ALL_PLANS`.
pub(crate) fn plans() -> Vec<Plan> {
    let all = all_plans();
    if is_complete() {
        return all;
    }
    // Neighbours differ in one property, so a plain step would leave out combinations.
    let is_sampled = |at: &usize| ((at * 2_654_435_761) >> 7).is_multiple_of(SAMPLED);
    let sample = all.iter().enumerate().filter(|(at, _)| is_sampled(at));
    sample.map(|(_, plan)| plan.clone()).collect()
}

/// Returns true if every plan is explored, as for a new page.
pub(crate) fn is_complete() -> bool {
    ["WORKERCTL_ALL_PLANS", "WORKERCTL_BLESS"]
        .iter()
        .any(|name| std::env::var_os(name).is_some())
}

pub(crate) fn all_plans() -> Vec<Plan> {
    let mut plans = Vec::new();
    for bits in 0..4096u32 {
        let bit = |place: u32| bits & (1 << place) != 0;
        let (mutating, idempotent, once) = (bit(0), bit(5), bit(9));
        let repeatable = idempotent || !(mutating || once);
        // Hooks mean nothing to a run that changes nothing, `once` nothing where it is so anyway, and neither
        // `on_crash` nor proof to one that is repeated.
        let (restores, verifies) = (bit(1), bit(8));
        let proves = match (bit(10), bit(11)) {
            (false, false) if verifies || repeatable || restores => Some(verifies),
            (true, false) if !repeatable && !restores => Some(false),
            (false, true) if !repeatable && !restores => None,
            _ => continue,
        };
        let without_sense = !mutating && (bit(2) || bit(3)) || once && (mutating || idempotent);
        if without_sense || repeatable && restores {
            continue;
        }
        let retry = if bit(4) {
            Retry {
                max_attempts: 2,
                initial_ms: 500,
                ..Retry::ONCE
            }
        } else {
            Retry::ONCE
        };
        plans.push(Plan {
            mutating,
            idempotent,
            once,
            validates: bit(6),
            prepares: bit(7),
            verifies,
            proves,
            on_crash: if restores {
                OnCrash::Restore
            } else {
                OnCrash::Verify
            },
            retry,
            hooks: if bit(2) { 2 } else { 0 },
            post_commit_hooks: if bit(3) { 2 } else { 0 },
            begins_anew: !mutating && bit(6),
            restores_outputs: false,
            max_runtime_ms: bit(4).then_some(60_000),
            approval: None,
            on_rate_limit: None,
        });
    }
    // Hooks and what happens after a crash do not meet the approval: it is asked for before or after them. Whoever
    // asks for it validates.
    let is_simple = |plan: &&Plan| {
        let simple_retry = plan.retry.max_attempts == 1 || plan.idempotent;
        let no_hooks = plan.hooks + plan.post_commit_hooks == 0;
        let begins = plan.validates && plan.prepares;
        no_hooks && begins && simple_retry && plan.on_crash == OnCrash::Verify
    };
    let asking: Vec<Plan> = plans.iter().filter(is_simple).flat_map(asking).collect();
    plans.extend(asking);
    // Where it waits decides the same of each of these.
    let waits = |plan: &&Plan| plan.approval.is_none() && is_simple(plan);
    let waiting: Vec<Plan> = plans.iter().filter(waits).map(waiting).collect();
    plans.extend(waiting);
    // What precedes the first attempt decides nothing about the next one.
    let has_outputs = |plan: &&Plan| {
        let asks = plan.approval.is_some() || plan.on_rate_limit.is_some();
        !plan.mutating && plan.prepares && !plan.validates && !asks
    };
    let restoring: Vec<Plan> = plans.iter().filter(has_outputs).map(restoring).collect();
    plans.extend(restoring);
    plans
}

/// Returns the plan with outputs in a directory of the run.
fn restoring(plan: &Plan) -> Plan {
    Plan {
        restores_outputs: true,
        ..plan.clone()
    }
}

/// The same plan, where it waits for the end of a rate limit.
fn waiting(plan: &Plan) -> Plan {
    Plan {
        on_rate_limit: Some(RateLimitWait {
            wait_ms: 60_000,
            times: 1,
        }),
        ..plan.clone()
    }
}

/// The same plan, where a person is asked.
fn asking(plan: &Plan) -> Vec<Plan> {
    let mut gates = vec![Gate::Execution];
    gates.extend(plan.mutating.then_some(Gate::Landing));
    let asking = gates.into_iter().map(|before| Plan {
        approval: Some(Approving {
            before,
            expires_ms: 60_000,
        }),
        ..plan.clone()
    });
    asking.collect()
}
