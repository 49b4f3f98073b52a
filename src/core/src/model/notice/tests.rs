//! Streaks of failures, and how long a notice is tried.

use super::*;
use crate::model::outcome::{Failure, Step};

/// As without `after`.
const EACH: Threshold = Threshold::EACH;

fn failed() -> Outcome {
    Outcome::Failed {
        failure: Failure::new(Step::Execute, "exit", "\"".repeat(4_000)),
    }
}

fn at(minute: u64) -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000).plus_millis(minute * 60_000)
}

fn notices() -> Notices {
    Notices::new("w/s".parse().unwrap(), Some("w/s#nightly".to_owned()))
}

fn told(of: &Notices) -> Vec<News> {
    of.waiting.iter().map(|one| one.news).collect()
}

#[test]
fn the_first_failure_and_the_first_success_after_it_are_told() {
    let run = RunId::following(None, at(0), 1);
    let mut one = notices();
    assert!(!one.ended(run, &Outcome::Succeeded, at(0), EACH));
    assert!(one.is_over());
    assert!(one.ended(run, &failed(), at(1), EACH));
    assert!(one.ended(run, &failed(), at(2), EACH));
    assert!(!one.ended(run, &Outcome::Cancelled, at(3), EACH));
    assert_eq!((told(&one), one.failures), (vec![News::Failed], 2));
    assert!(one.ended(run, &Outcome::Succeeded, at(4), EACH));
    assert_eq!(told(&one), [News::Failed, News::Recovered]);
    assert_eq!(one.waiting[1].failures, 2);
    one.delivered(at(5));
    assert!(!one.is_over() && one.next_attempt_at == Some(at(5)));
    one.delivered(at(6));
    assert!(one.is_over() && one.next_attempt_at.is_none());
}

/// The notices of runs that failed (`F`) or succeeded (`S`), by the number of the run.
fn news(threshold: &str, runs: &str) -> String {
    let run = RunId::following(None, at(0), 1);
    let mut one = notices();
    let mut found = Vec::new();
    for (number, outcome) in (1..).zip(runs.chars()) {
        // As a restart leaves it.
        one = serde_json::from_str(&serde_json::to_string(&one).unwrap()).unwrap();
        let outcome = match outcome {
            'F' => failed(),
            _ => Outcome::Succeeded,
        };
        one.ended(run, &outcome, at(number), threshold.parse().unwrap());
        for notice in one.waiting.drain(..) {
            let (news, since) = (notice.news.key(), notice.failing_since.unwrap());
            let begun = since.millis_since(at(0)) / 60_000;
            let (failures, runs) = (notice.failures, notice.runs);
            found.push(format!("{number} {news} {failures}/{runs} since {begun}"));
        }
    }
    found.join(", ")
}

#[test]
fn a_threshold_is_told_once_when_it_is_reached_and_its_end_once() {
    for (threshold, runs, expected) in [
        (
            "1",
            "SFFS",
            "2 on_failure 1/1 since 2, 4 on_recovery 2/2 since 2",
        ),
        (
            "3",
            "FFSFFFFS",
            "6 on_failure 3/3 since 4, 8 on_recovery 4/4 since 4",
        ),
        ("2 of 5", "FSSSSFSSSS", ""),
        ("2 of 5", "FSSSFS", "5 on_failure 2/5 since 1"),
        // Flapping is told once, until four runs in a row have succeeded.
        (
            "2 of 5",
            "FSFSSFSFSSSFSSSSF",
            "3 on_failure 2/3 since 1, 16 on_recovery 5/12 since 1",
        ),
        ("5 of 5", "FFFFSFFFF", ""),
        ("100 of 100", "FFFF", ""),
    ] {
        assert_eq!(news(threshold, runs), expected, "{threshold}: {runs}");
    }
}

#[test]
fn a_streak_of_an_older_version_was_told_and_its_end_is() {
    let mut one = notices();
    (one.failing_since, one.failures) = (Some(at(0)), 2);
    let stored = serde_json::to_string(&one).unwrap();
    assert!(!stored.contains("recent") && !stored.contains("threshold"));
    let run = RunId::following(None, at(0), 1);
    assert!(one.ended(run, &failed(), at(1), "2 of 5".parse().unwrap()));
    assert!(one.waiting.is_empty());
    assert!(one.ended(run, &Outcome::Succeeded, at(2), EACH));
    assert_eq!((told(&one), one.failures), (vec![News::Recovered], 0));
}

#[test]
fn what_is_missed_below_the_threshold_recovers() {
    let run = RunId::following(None, at(0), 1);
    let mut one = notices();
    let threshold = "3".parse().unwrap();
    one.ended(run, &failed(), at(1), threshold);
    one.missed = true;
    one.ended(run, &Outcome::Succeeded, at(2), threshold);
    assert_eq!(told(&one), [News::Recovered]);
}

#[test]
fn tries_come_less_and_less_often_and_never_end() {
    let mut one = notices();
    one.add(Notice::of(News::Missed, at(0)));
    assert_eq!(one.next_attempt_at, Some(at(0)));
    let mut waits = Vec::new();
    for _ in 0..6 {
        one.undelivered("exit code 1", None, at(0));
        waits.push(one.next_attempt_at.unwrap().millis_since(at(0)) / 60_000);
    }
    assert_eq!((waits, one.tries), (vec![1, 5, 15, 60, 60, 60], 6));
}

#[test]
fn a_wait_that_a_server_asks_for_is_kept_up_to_an_hour() {
    let mut one = notices();
    let wait = |one: &Notices| one.next_attempt_at.unwrap().millis_since(at(0)) / 60_000;
    one.add(Notice::of(News::Missed, at(0)));
    one.undelivered("status 429", Some(20 * 60_000), at(0));
    assert_eq!(wait(&one), 20);
    // More that is to be told waits with it.
    one.add(Notice::of(News::Recovered, at(1)));
    assert_eq!(wait(&one), 20);
    one.undelivered("status 429", Some(u64::MAX), at(0));
    assert_eq!(wait(&one), 60);
    // Never sooner than without.
    one.undelivered("status 503", Some(1), at(0));
    assert_eq!(wait(&one), 15);
    one.delivered(at(20));
    assert_eq!((wait(&one), one.not_before), (20, None));
}

#[test]
fn a_record_with_all_that_it_may_hold_is_small_and_the_oldest_go() {
    let run = RunId::following(None, at(0), 1);
    let mut one = notices();
    one.schedule = Some("x".repeat(256));
    for minute in 0..20 {
        let outcome = if minute % 2 == 0 {
            failed()
        } else {
            Outcome::Succeeded
        };
        one.ended(run, &outcome, at(minute), EACH);
    }
    one.failing_since = Some(at(30));
    one.recent = "F".repeat(100);
    (one.below_threshold, one.missed, one.successes) = (true, true, 1_000);
    one.undelivered(&"\"".repeat(4_000), Some(1), at(30));
    assert_eq!((one.waiting.len(), one.omitted), (WAITING_MAX, 12));
    let length = serde_json::to_string(&one).unwrap().len();
    assert!(length < 4_000, "{length}");
}
