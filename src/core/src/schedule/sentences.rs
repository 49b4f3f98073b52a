//! What each policy of a schedule will do, in plain sentences.

use super::planned::Planned;
use super::words::{joined, span as period};
use crate::model::Timestamp;
use crate::model::schedule::{AfterWhen, CatchUpMode, Overlap, Policy, Sentence, Trigger};

/// Most dates that are listed one by one.
const DATES_MAX: usize = 10;

/// What is known beside the definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts {
    /// Attempts of its skill before a run of it has failed.
    pub attempts: Option<u32>,
    /// Failures since its last success.
    pub failures: u32,
}

/// Every policy of a schedule that has something to say.
pub fn sentences(planned: &Planned, facts: Facts) -> Vec<Sentence> {
    let policy = &planned.policy;
    let timed = planned.trigger.is_timed();
    let all = [
        ("trigger", event(&planned.trigger)),
        ("skill", planned.blocked.as_deref().map(blocked)),
        ("pause", pause(planned)),
        ("overlap", Some(overlap(policy.overlap).to_owned())),
        ("catch_up", timed.then(|| catch_up(policy))),
        ("jitter", jitter(policy.jitter_ms)),
        ("blackout", blackout(policy)),
        (
            "start",
            edge(planned, policy.start, "Nothing is due before"),
        ),
        ("end", edge(planned, policy.end, "Nothing is due after")),
        ("max_actions", max_actions(policy, planned.actions)),
        ("retry", facts.attempts.map(retry)),
        ("pause_on_failure", pause_on_failure(policy, facts)),
        ("expected_within", Some(expected(policy, timed))),
        ("on_missed", on_missed(policy)),
    ];
    let told = all.into_iter();
    let sentence = |about: &str, says| Sentence {
        key: about.to_owned(),
        text: says,
    };
    told.filter_map(|(about, says)| says.map(|says| sentence(about, says)))
        .collect()
}

fn blocked(why: &str) -> String {
    format!("Nothing of it runs as the definitions are now: {why}.")
}

fn event(trigger: &Trigger) -> Option<String> {
    Some(match trigger {
        Trigger::Cron { .. } | Trigger::Every { .. } | Trigger::At { .. } => return None,
        Trigger::Reboot => {
            "It is due once after each start of the machine, when the daemon starts.".to_owned()
        }
        Trigger::After { skill, when } => {
            let ends = match when {
                AfterWhen::Succeeded => "has succeeded",
                AfterWhen::Failed => "has ended without success",
                AfterWhen::Always => "has ended, however it went",
            };
            format!("It is due each time a run of {skill} {ends}.")
        }
        Trigger::Watch { paths, settle_ms } => format!(
            "It is due when {} has changed and nothing more does for {}.",
            joined(paths),
            span(*settle_ms)
        ),
        Trigger::OnCommit { branch } => {
            format!("It is due when the branch `{branch}` has got new commits.")
        }
    })
}

fn pause(planned: &Planned) -> Option<String> {
    let pause = planned.pause.as_ref()?;
    Some(format!(
        "It has been paused since {} by {}: {}. What is due meanwhile does not run, and is not caught up; \
         `workerctl schedule resume {}` lets it go on.",
        pause.at.rfc3339_in(planned.zone),
        pause.by,
        pause.reason,
        planned.id
    ))
}

const fn overlap(overlap: Overlap) -> &'static str {
    match overlap {
        Overlap::Skip => "A slot is left out while an earlier run of this schedule has not ended.",
        Overlap::BufferOne => {
            "While an earlier run of this schedule has not ended, one slot waits for its end; more are left out."
        }
        Overlap::BufferAll => {
            "While an earlier run of this schedule has not ended, slots wait and run in their order."
        }
        Overlap::CancelOther => {
            "An earlier run of this schedule that has not ended is cancelled; the new one starts once that is dead and put back."
        }
        Overlap::AllowAll => "A run starts in parallel to earlier runs of this schedule.",
    }
}

fn catch_up(policy: &Policy) -> String {
    let window = span(policy.catch_up.window_ms);
    match policy.catch_up.mode {
        CatchUpMode::Last => format!(
            "When no daemon ran at its slots, the last of them runs later, within {window}; the earlier ones do not."
        ),
        CatchUpMode::All => format!(
            "When no daemon ran at its slots, all of them run later, in their order, each within {window}."
        ),
        CatchUpMode::None => "A slot at which no daemon ran does not run later.".to_owned(),
    }
}

fn jitter(millis: u64) -> Option<String> {
    (millis > 0).then(|| {
        format!(
            "A run starts up to {} after its slot, by as much for the same slot always.",
            span(millis)
        )
    })
}

fn blackout(policy: &Policy) -> Option<String> {
    let mut parts = Vec::new();
    if !policy.blocked_hours.is_empty() {
        parts.push(format!("in the hours {}", hours(&policy.blocked_hours)));
    }
    let dates = &policy.blocked_dates;
    match dates.as_slice() {
        [] => {}
        [_, ..] if dates.len() > DATES_MAX => parts.push(format!("on {} dates", dates.len())),
        some => parts.push(format!("on {}", joined(some))),
    }
    let blocked = (!parts.is_empty()).then(|| parts.join(" and "))?;
    Some(format!(
        "What is due {blocked} does not run, and is not caught up."
    ))
}

/// `1 hour`, where a period would be `hour`.
fn span(millis: u64) -> String {
    let text = period(millis);
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        text
    } else {
        format!("1 {text}")
    }
}

/// `02:00 to 04:59 and 22:00 to 22:59`.
fn hours(blocked: &[u8]) -> String {
    let mut sorted = blocked.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut stretches: Vec<(u8, u8)> = Vec::new();
    for hour in sorted {
        match stretches.last_mut() {
            Some((_, to)) if *to + 1 == hour => *to = hour,
            _ => stretches.push((hour, hour)),
        }
    }
    let shown = stretches
        .iter()
        .map(|(from, to)| format!("{from:02}:00 to {to:02}:59"));
    joined(&shown.collect::<Vec<_>>())
}

fn edge(planned: &Planned, at: Option<Timestamp>, says: &str) -> Option<String> {
    at.map(|at| format!("{says} {}.", at.rfc3339_in(planned.zone)))
}

fn max_actions(policy: &Policy, used: u64) -> Option<String> {
    let most = policy.max_actions?;
    let left = most.saturating_sub(used);
    let times = match most {
        1 => "once".to_owned(),
        some => format!("{some} times"),
    };
    Some(format!("It runs {times} in all: {used} used, {left} left."))
}

fn retry(attempts: u32) -> String {
    match attempts {
        0 | 1 => "Its skill makes one attempt: if that fails, the run has failed.".to_owned(),
        some => format!(
            "Its skill makes up to {some} attempts before the run, and with it the slot, counts as failed."
        ),
    }
}

fn pause_on_failure(policy: &Policy, facts: Facts) -> Option<String> {
    let most = policy.pause_on_failure?;
    let so_far = match facts.failures {
        0 => String::new(),
        some => format!(" So far: {some}."),
    };
    Some(if most == 1 {
        format!("It pauses after a failure, until a person resumes it.{so_far}")
    } else {
        format!("It pauses after {most} failures in a row, until a person resumes it.{so_far}")
    })
}

fn expected(policy: &Policy, timed: bool) -> String {
    match (policy.expected_within_ms, timed) {
        (_, false) => "It is expected at no time, and so never overdue.".to_owned(),
        (Some(millis), true) => format!(
            "It is overdue when it has not succeeded within {} of a slot.",
            span(millis)
        ),
        (None, true) => {
            "It is overdue when it has not succeeded an hour after the slot that follows."
                .to_owned()
        }
    }
}

fn on_missed(policy: &Policy) -> Option<String> {
    let channel = policy.notify.on_missed.as_ref()?;
    Some(match channel.command() {
        Some(hook) => format!(
            "When it is overdue, a notification is sent by `{}`.",
            hook.command
        ),
        None => format!("When it is overdue, a notification is sent: {channel}."),
    })
}

#[cfg(test)]
mod tests {
    use crate::model::Zone;

    use super::*;
    use crate::model::schedule::{CatchUp, Pause};

    fn planned(trigger: Trigger, policy: Policy) -> Planned {
        Planned {
            id: "w/s".to_owned(),
            skill: "w/s".to_owned(),
            trigger,
            policy,
            zone: Zone::compiled_in("Europe/Berlin").unwrap(),
            anchor: Timestamp::from_millis(0),
            actions: 3,
            pause: None,
            blocked: None,
        }
    }

    fn told(planned: &Planned, facts: Facts) -> Vec<String> {
        let sentences = sentences(planned, facts).into_iter();
        sentences
            .map(|one| format!("{}: {}", one.key, one.text))
            .collect()
    }

    #[test]
    fn every_policy_says_what_it_will_do() {
        let at = |text| Timestamp::parse(text);
        let policy = Policy {
            overlap: Overlap::BufferOne,
            catch_up: CatchUp {
                mode: CatchUpMode::All,
                window_ms: 90 * 60_000,
            },
            jitter_ms: 60_000,
            blocked_hours: vec![23, 22, 2],
            blocked_dates: vec!["2026-12-25".to_owned()],
            start: at("2026-01-01T00:00:00Z"),
            max_actions: Some(10),
            pause_on_failure: Some(3),
            expected_within_ms: Some(7_200_000),
            ..Policy::default()
        };
        let mut every = planned(Trigger::Every { period_ms: 60_000 }, policy);
        every.pause = Some(Pause {
            reason: "a move".to_owned(),
            by: "ada".to_owned(),
            at: Timestamp::parse("2026-07-01T10:00:00Z").unwrap(),
        });
        let facts = Facts {
            attempts: Some(3),
            failures: 2,
        };
        let told = told(&every, facts);
        let says = |what: &str| {
            assert!(
                told.iter().any(|line| line.contains(what)),
                "{what}: {told:#?}"
            );
        };
        says("pause: It has been paused since 2026-07-01T12:00:00+02:00 by ada: a move.");
        says("overlap: While an earlier run of this schedule has not ended, one slot waits");
        says(
            "catch_up: When no daemon ran at its slots, all of them run later, in their order, each within 1 hour 30 minutes.",
        );
        says("jitter: A run starts up to 1 minute after its slot");
        says(
            "blackout: What is due in the hours 02:00 to 02:59 and 22:00 to 23:59 and on 2026-12-25 does not run",
        );
        says("start: Nothing is due before 2026-01-01T01:00:00+01:00.");
        says("max_actions: It runs 10 times in all: 3 used, 7 left.");
        says("retry: Its skill makes up to 3 attempts");
        says(
            "pause_on_failure: It pauses after 3 failures in a row, until a person resumes it. So far: 2.",
        );
        says("expected_within: It is overdue when it has not succeeded within 2 hours of a slot.");
    }

    #[test]
    fn events_say_what_makes_them_due() {
        let first =
            |trigger| told(&planned(trigger, Policy::default()), Facts::default())[0].clone();
        let after = |when| Trigger::After {
            skill: Box::new("w/other".parse().unwrap()),
            when,
        };
        assert!(
            first(after(AfterWhen::Failed)).contains("a run of w/other has ended without success")
        );
        assert!(first(after(AfterWhen::Always)).contains("has ended, however it went"));
        assert!(first(Trigger::Reboot).contains("each start of the machine"));
        let watch = Trigger::Watch {
            paths: vec!["docs/".to_owned(), "a.md".to_owned()],
            settle_ms: 2_000,
        };
        assert!(first(watch).contains("docs/ and a.md"));
        let commit = Trigger::OnCommit {
            branch: "main".to_owned(),
        };
        let told = told(&planned(commit, Policy::default()), Facts::default());
        assert!(told[0].contains("`main` has got new commits"));
        assert!(!told.iter().any(|line| line.starts_with("catch_up")));
    }
}
