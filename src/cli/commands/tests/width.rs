//! Commands on terminals that are narrow.

use crate::cli::fake::{Console, Fake, detail, run_id};
use crate::cli::render::line::Line;
use crate::model::Timestamp;
use crate::model::schedule::SlotStatus;
use crate::protocol::{ScheduleView, SlotView};

const WORKER: &str = "keeper-of-everything-that-has-a-long-name";
const SKILL: &str = "changes-of-the-week-for-everybody";

fn slot() -> SlotView {
    let due = Timestamp::from_millis(1_795_000_000_000);
    serde_json::from_value(serde_json::json!({
        "schedule": format!("{WORKER}/{SKILL}"), "from": due, "to": due.plus_millis(60_000), "count": 2,
        "status": SlotStatus::BlockedHours, "run": run_id(), "at": due, "reason": null, "timezone": "Europe/Berlin",
    }))
    .unwrap()
}

fn schedule() -> ScheduleView {
    let due = Timestamp::from_millis(1_795_000_000_000);
    let view = serde_json::json!({
        "schedule": format!("{WORKER}/{SKILL}#every-working-day-in-the-morning"), "skill": format!("{WORKER}/{SKILL}"),
        "when": "at 09:30 on days 1 and 15 of the month, and also on Monday to Friday in January and March, America/Argentina/ComodRivadavia",
        "timezone": "America/Argentina/ComodRivadavia", "defined_at": "workers/w/worker.yaml:1:1", "observed": false,
        "next": due, "waiting": [], "paused": null, "overlap": "buffer_one", "known": true, "last": null,
        "succeeded_at": null, "failure_count": 2, "expected_by": null, "overdue": false, "fallback_reason": null, "restored": null,
        "actions": 0, "totals": {},
        "plan": {
            "trigger": {"on": "every", "period_ms": 900_000}, "anchor": due, "cursor": due, "attempts": 1, "blocked": null,
            "policy": {
                "overlap": "buffer_one", "jitter_ms": 2_700_000, "max_actions": 100, "pause_on_failure": 3,
                "catch_up": {"mode": "all", "window_ms": 172_800_000},
            },
        },
    });
    serde_json::from_value(view).unwrap()
}

/// What has to be there on every terminal: no titles of columns, nothing that differs from call to call.
fn words(text: &str) -> Vec<&str> {
    let is_kept = |word: &&str| {
        let is_title = word.chars().all(|c| c.is_ascii_uppercase());
        let is_bar = word.chars().all(|c| c == '#');
        !is_title && !is_bar && !word.chars().any(|c| c.is_ascii_digit())
    };
    text.split_whitespace().filter(is_kept).collect()
}

#[test]
fn nothing_is_cut_or_left_out_without_a_mark_at_80_and_60_columns() {
    let mut run = detail();
    run.summary.skill = format!("{WORKER}/{SKILL}").parse().unwrap();
    run.summary.kept_commit = run.summary.commit.take();
    let mut fake = Fake::of(run);
    fake.daemon = false;
    fake.slots = vec![slot()];
    fake.schedules = vec![schedule()];
    let mut console = Console::new(fake);
    assert_eq!(console.perform(&["new", "worker", WORKER]).code, 0);
    assert_eq!(console.perform(&["new", "skill", WORKER, SKILL]).code, 0);
    let name = format!("{WORKER}/{SKILL}");
    let id = schedule().id;
    for (line, named) in [
        (["runs"].as_slice(), name.as_str()),
        (&["skills"], &name),
        (&["workers"], WORKER),
        (&["schedule", "slots"], &name),
        (&["schedule", "list"], &name),
        (&["schedule", "explain", &id], &id),
        (&["schedule", "next"], &name),
        (&["schedule", "simulate", "--to", "+1d"], &name),
        (&["threads"], &run_id().short()),
        (&["config"], "land_wait"),
        (&["status"], "queued runs start"),
        (&["doctor"], "workspace"),
    ] {
        console.terminal = false;
        let piped = console.perform(line);
        let all = format!("{}{}", piped.out, piped.err);
        for width in [80, 60] {
            (console.terminal, console.width) = (true, width);
            let left = console.perform(line);
            let told = format!("{}{}", left.out, left.err);
            assert!(told.contains(named), "{line:?} {width}:\n{told}");
            assert!(
                !told.contains('…') || all.contains('…'),
                "{line:?} {width}:\n{told}"
            );
            for shown in told.lines() {
                let fits =
                    Line::from(shown).width() <= width || shown.trim().split(' ').count() == 1;
                assert!(fits, "{line:?} {width}: {shown}\n{told}");
            }
            let is_marked = told.contains("not shown, because the terminal is");
            for word in words(&piped.out).into_iter().filter(|_| !is_marked) {
                assert!(told.contains(word), "{line:?} {width}: {word}\n{told}");
            }
        }
    }
}
