//! What the API tells of slots, schedules and skills: pages, calendars, what comes next.

use crate::workspace;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use workerctl::model::Timestamp;
use workerctl::model::schedule::{ScheduleState, SlotRow, SlotStatus};
use workerctl::store::{Batch, OpenOptions, SledStore, Store, Write};
use workspace::daemon::{self, Daemon};
use workspace::{Workspace, eventually};

const HOUR_MS: u64 = 3_600_000;

/// Schedules that are not due by themselves while a test goes on.
const SKILLS: &str = r#"
  - {id: good, description: tidies up, run: "true", schedule: {cron: "0 0 29 2 *"}}
  - {id: bad, description: d, run: "false", schedule: {cron: "0 0 29 2 *"}}
  - {id: never, description: d, run: "true"}
"#;

/// The body of an answer, and the address of the next page.
fn ask(workspace: &Workspace, path: &str) -> (Value, Option<String>) {
    let answer = daemon::get(workspace, path);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"));
    let link = head.lines().find_map(|line| {
        line.strip_prefix("link: <")?
            .strip_suffix(">; rel=\"next\"")
    });
    (value, link.map(str::to_owned))
}

fn get(workspace: &Workspace, path: &str) -> Value {
    ask(workspace, path).0
}

/// All items of a list, page by page.
fn paged(workspace: &Workspace, path: &str) -> Vec<Value> {
    let (mut all, mut next) = (Vec::new(), Some(path.to_owned()));
    while let Some(path) = next {
        let (page, following) = ask(workspace, &path);
        all.extend(page.as_array().unwrap().clone());
        next = following;
        assert!(all.len() < 1_000, "the pages have no end");
    }
    all
}

fn texts(list: &[Value], key: &str) -> Vec<String> {
    let text = |one: &Value| one[key].as_str().unwrap_or("-").to_owned();
    list.iter().map(text).collect()
}

/// Sums of what stands in all cells.
fn sums(calendar: &Value, key: &str) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for cell in calendar["cells"].as_array().unwrap() {
        for (name, count) in cell[key].as_object().unwrap() {
            *sums.entry(name.clone()).or_default() += count.as_u64().unwrap();
        }
    }
    sums
}

fn due(calendar: &Value) -> u64 {
    let cells = calendar["cells"].as_array().unwrap().iter();
    cells.map(|cell| cell["due"].as_u64().unwrap()).sum()
}

/// Rows of schedules whose definitions have gone, as an earlier engine left them.
fn leave(workspace: &Workspace, schedules: &[(&str, Vec<SlotRow>)]) {
    let place = workspace.state().join("store");
    let store = SledStore::open(&place, OpenOptions::default()).unwrap();
    let mut writes = Vec::new();
    for (id, rows) in schedules {
        let cursor = rows.iter().map(|row| row.to).max().unwrap();
        let mut state = ScheduleState::new("d".to_owned(), cursor);
        state.closed = Some(cursor);
        state.rows = rows.len() as u64;
        writes.push(Write::Schedule {
            id: (*id).to_owned(),
            state: Box::new(state),
        });
        let slot = |row: &SlotRow| Write::Slot {
            schedule: (*id).to_owned(),
            row: row.clone(),
        };
        writes.extend(rows.iter().map(slot));
    }
    store.commit(&Batch { writes }).unwrap();
}

fn now() -> Timestamp {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap())
}

fn hours_ago(hours: u64) -> Timestamp {
    now().minus_millis(hours * HOUR_MS)
}

fn row(at: Timestamp, status: SlotStatus) -> SlotRow {
    SlotRow::one(at, status, at)
}

fn stretch(from: Timestamp, hours: u64, status: SlotStatus) -> SlotRow {
    SlotRow {
        to: from.plus_millis(hours * HOUR_MS),
        count: Some(hours + 1),
        ..row(from, status)
    }
}

/// A workspace with a first store.
fn bed(skills: &str) -> Workspace {
    let workspace = Workspace::with_skills(skills);
    Daemon::start(&workspace).stop();
    workspace
}

fn trigger(workspace: &Workspace, schedule: &str) {
    workspace
        .run(&["schedule", "trigger", schedule])
        .expect_code(0);
    eventually("the run ends", || {
        let slots = get(workspace, &format!("/v1/slots?schedule={schedule}&limit=1"));
        slots[0]["outcome"].as_str().map(drop)
    });
}

#[test]
fn slots_of_all_schedules_come_newest_first_and_page_by_page() {
    let workspace = bed(SKILLS);
    let odd = |hours: u64| row(hours_ago(hours * 2 + 1), SlotStatus::Missed);
    let even = |hours: u64| row(hours_ago(hours * 2), SlotStatus::SkippedOverlap);
    leave(
        &workspace,
        &[
            ("old/a", (1..=20).map(odd).collect()),
            ("old/b", (1..=20).map(even).collect()),
            // It ends between those, and begins before all of them.
            (
                "old/c",
                vec![stretch(hours_ago(90), 80, SlotStatus::Paused)],
            ),
        ],
    );
    let daemon = Daemon::start(&workspace);
    trigger(&workspace, "w/good");
    trigger(&workspace, "w/bad");
    let all = paged(&workspace, "/v1/slots?limit=7");
    assert_eq!(all.len(), 43);
    assert!(texts(&all, "to").is_sorted_by(|newer, older| newer >= older));
    let schedules = texts(&all, "schedule");
    assert_eq!(schedules[..3], ["w/bad", "w/good", "old/b"]);
    let paused = schedules.iter().position(|id| id == "old/c").unwrap();
    assert!((8..13).contains(&paused), "{paused}");
    // As the command lists them.
    let listed = workspace.json(&["schedule", "slots", "-n", "10000"]);
    assert_eq!(listed["slots"].as_array().unwrap(), &all);
    let of_one = paged(&workspace, "/v1/slots?schedule=old/a&limit=3");
    assert_eq!(of_one.len(), 20);
    // Between two instants.
    let (since, until) = (hours_ago(12).millis(), hours_ago(5).millis());
    let path = format!("/v1/slots?limit=2&since_ms={since}&until_ms={until}");
    let between = paged(&workspace, &path);
    let within = |row: &&Value| {
        let to = Timestamp::parse(row["to"].as_str().unwrap()).unwrap();
        (since..until).contains(&to.millis())
    };
    let wanted: Vec<&Value> = all.iter().filter(within).collect();
    assert_eq!(between.iter().collect::<Vec<_>>(), wanted);
    assert!(wanted.len() > 6);
    // SlotStatuses and outcomes, any of which fits.
    let chosen = paged(&workspace, "/v1/slots?limit=5&status=missed,failed");
    assert_eq!(chosen.len(), 21);
    assert_eq!(chosen[0]["outcome"], "failed");
    assert_eq!(paged(&workspace, "/v1/slots?status=succeeded").len(), 1);
    let wrong = get(&workspace, "/v1/slots?status=missed,lucky");
    assert_eq!(wrong["code"], "status");
    assert_eq!(get(&workspace, "/v1/slots?before=x")["code"], "before");
    daemon.stop();
}

#[test]
fn what_is_looked_at_for_one_page_is_bounded_and_the_next_goes_on() {
    let workspace = bed(SKILLS);
    let minutes = |ago: u64| now().minus_millis(ago * 60_000);
    let mut rows: Vec<SlotRow> = (1..7_000)
        .map(|ago| row(minutes(ago), SlotStatus::Missed))
        .collect();
    rows.push(row(minutes(7_100), SlotStatus::Paused));
    leave(&workspace, &[("old/a", rows)]);
    let daemon = Daemon::start(&workspace);
    let (page, next) = ask(&workspace, "/v1/slots?status=paused");
    assert_eq!(page, json!([]));
    let (page, next) = ask(&workspace, &next.unwrap());
    assert_eq!(page[0]["status"], "paused");
    assert_eq!(next, None);
    daemon.stop();
}

#[test]
fn a_calendar_counts_slots_and_how_their_runs_ended() {
    let workspace = bed(SKILLS);
    // Three days ago no daemon was there for half a day.
    leave(
        &workspace,
        &[
            (
                "old/a",
                vec![stretch(hours_ago(72), 11, SlotStatus::Missed)],
            ),
            ("w/old", vec![row(hours_ago(50), SlotStatus::Paused)]),
        ],
    );
    let daemon = Daemon::start(&workspace);
    for schedule in ["w/good", "w/good", "w/bad"] {
        trigger(&workspace, schedule);
    }
    let counted = |path: &str| {
        let calendar = get(&workspace, path);
        (sums(&calendar, "statuses"), sums(&calendar, "outcomes"))
    };
    let of = |counts: &[(&str, u64)]| -> BTreeMap<String, u64> {
        let owned = counts
            .iter()
            .map(|(name, count)| ((*name).to_owned(), *count));
        owned.collect()
    };
    let ended = of(&[("failed", 1), ("succeeded", 2)]);
    let all = of(&[("missed", 12), ("paused", 1), ("ran", 3)]);
    let own = of(&[("paused", 1), ("ran", 3)]);
    for bucket in ["day", "hour"] {
        let path = format!("/v1/schedules/calendar?bucket={bucket}");
        assert_eq!(counted(&path), (all.clone(), ended.clone()));
        let of_worker = counted(&format!("{path}&worker=w"));
        assert_eq!(of_worker, (own.clone(), ended.clone()));
        let missed = counted(&format!("{path}&schedule=old/a"));
        assert_eq!(missed, (of(&[("missed", 12)]), of(&[])));
        let good = counted(&format!("{path}&schedule=w/good"));
        assert_eq!(good, (of(&[("ran", 2)]), of(&[("succeeded", 2)])));
    }
    for bucket in ["day", "hour"] {
        let path = format!("/v1/stats?by=schedule&bucket={bucket}&schedule=W/good");
        let lines = get(&workspace, &path);
        let lines = lines.as_array().unwrap().iter();
        let runs = lines.map(|line| {
            assert_eq!(line["name"], "w/good");
            line["succeeded_count"].as_u64().unwrap()
        });
        assert_eq!(runs.sum::<u64>(), 2, "{bucket}");
    }
    // Each hour of the stretch has its slot, from the rows as from the counts.
    let of_rows = get(
        &workspace,
        "/v1/schedules/calendar?bucket=hour&schedule=old/a",
    );
    let of_counts = get(&workspace, "/v1/schedules/calendar?bucket=hour&worker=old");
    assert_eq!(of_rows["cells"].as_array().unwrap().len(), 12);
    assert_eq!(of_rows["cells"], of_counts["cells"]);
    // The failure is what a cell shows.
    let today = get(&workspace, "/v1/schedules/calendar?worker=w");
    let cells = today["cells"].as_array().unwrap();
    assert!(
        cells.iter().any(|cell| cell["worst"] == "failed"),
        "{today}"
    );
    assert_eq!(
        (&today["timezone"], &today["bucket"]),
        (&json!("UTC"), &json!("day"))
    );
    let wrong = get(&workspace, "/v1/schedules/calendar?from_ms=0");
    assert_eq!(wrong["code"], "calendar_range");
    let unknown = get(&workspace, "/v1/schedules/calendar?schedule=w/nothing");
    assert_eq!(unknown["code"], "schedule_not_found");
    daemon.stop();
}

#[test]
fn days_of_a_calendar_begin_in_the_zone_of_the_workspace() {
    let workspace = Workspace::with_skills(SKILLS);
    workspace.write("workerctl.yaml", "timezone: Asia/Kolkata\n");
    Daemon::start(&workspace).stop();
    // Half past six in the evening of UTC is midnight there, while no summer time is known.
    let midnight = |day: &str| Timestamp::parse(&format!("{day}T18:30:00Z")).unwrap();
    let today = hours_ago(24 * 5).rfc3339()[..10].to_owned();
    let at = midnight(&today);
    let rows = vec![
        row(at.just_before(), SlotStatus::Missed),
        row(at, SlotStatus::Paused),
    ];
    leave(&workspace, &[("old/a", rows)]);
    let daemon = Daemon::start(&workspace);
    for scope in ["worker=old", "schedule=old/a"] {
        let calendar = get(&workspace, &format!("/v1/schedules/calendar?{scope}"));
        let cells = calendar["cells"].as_array().unwrap();
        assert_eq!(cells.len(), 2, "{calendar}");
        assert_eq!(cells[1]["at"], at.rfc3339());
        assert_eq!(cells[1]["statuses"], json!({"paused": 1}));
        assert_eq!(cells[0]["statuses"], json!({"missed": 1}));
    }
    daemon.stop();
}

const TIMED: &str = r#"
  - id: s
    description: d
    run: "true"
    schedule:
      - {id: hourly, cron: "0 * * * *"}
      - {id: blocked, cron: "30 * * * *", blackout: {hours: "1-23"}}
      - {id: few, cron: "15 * * * *", max_actions: 2}
"#;

#[test]
fn slots_to_come_are_counted_but_for_those_that_do_not_run() {
    let workspace = Workspace::with_skills(TIMED);
    let daemon = Daemon::start(&workspace);
    let (from, to) = (now().millis(), now().plus_millis(240 * HOUR_MS).millis());
    let path = format!("/v1/schedules/calendar?bucket=hour&from_ms={from}&to_ms={to}");
    let calendar = || get(&workspace, &path);
    let all = calendar();
    assert_eq!(all["incomplete"], false);
    assert_eq!(all["due_known_until"], all["to"]);
    let of_few = get(&workspace, &format!("{path}&schedule=w/s%23few"));
    // One of them may come while the test goes on.
    let few = due(&of_few);
    assert!((1..=2).contains(&few), "{few}");
    // Once a day.
    let blocked = due(&get(&workspace, &format!("{path}&schedule=w/s%23blocked")));
    assert!((10..=11).contains(&blocked), "{blocked}");
    // The last hour is told whole.
    let hourly = due(&all) - few - blocked;
    assert!((239..=242).contains(&hourly), "{hourly}");
    let pause = ["schedule", "pause", "w/s#hourly", "--reason", "a holiday"];
    workspace.run(&pause).expect_code(0);
    assert!(due(&calendar()) <= 2 + blocked);
    workspace
        .run(&["schedule", "resume", "w/s#hourly"])
        .expect_code(0);
    assert!(due(&calendar()) + 3 >= due(&all));
    assert_eq!(due(&get(&workspace, &format!("{path}&worker=x"))), 0);
    daemon.stop();
}

#[test]
fn more_slots_to_come_than_are_counted_are_told_as_such() {
    let each_second: Vec<String> = (0..60)
        .map(|second| format!("{{id: n{second}, cron: \"{second} * * * * *\", seconds: true}}"))
        .collect();
    let skills = format!(
        "  - {{id: s, description: d, run: 'true', schedule: [{}]}}\n",
        each_second.join(", ")
    );
    let workspace = Workspace::with_skills(&skills);
    let daemon = Daemon::start(&workspace);
    let to = now().plus_millis(48 * HOUR_MS).millis();
    let calendar = get(
        &workspace,
        &format!("/v1/schedules/calendar?bucket=hour&to_ms={to}"),
    );
    assert_eq!(calendar["incomplete"], true);
    let known = Timestamp::parse(calendar["due_known_until"].as_str().unwrap()).unwrap();
    // One slot each second.
    let seconds = known.millis_since(now()) / 1_000;
    assert!((19_000..=20_000).contains(&seconds), "{seconds}");
    daemon.stop();
}

#[test]
fn what_comes_next_is_told_as_the_command_prints_it() {
    let workspace = Workspace::with_skills(TIMED);
    let daemon = Daemon::start(&workspace);
    let after = now().plus_millis(48 * HOUR_MS);
    let at = after.rfc3339();
    for id in [None, Some("w/s#hourly"), Some("w/s#few")] {
        let mut line = vec!["schedule", "next", "-n", "3", "--after", &at];
        line.extend(id);
        let printed = workspace.json(&line);
        let named = id.map(|id| format!("&schedule={}", id.replace('#', "%23")));
        let path = format!(
            "/v1/schedules/next?count=3&after_ms={}{}",
            after.millis(),
            named.unwrap_or_default()
        );
        let told = get(&workspace, &path);
        assert_eq!(
            told["next"].as_array().unwrap().len(),
            if id == Some("w/s#few") { 2 } else { 3 }
        );
        for (key, value) in told.as_object().unwrap() {
            assert_eq!(printed[key], *value, "{key}");
        }
    }
    let line = ["schedule", "explain", "w/s#blocked", "--after", &at];
    let printed = workspace.json(&line);
    let path = format!(
        "/v1/schedules/explain?schedule=w/s%23blocked&at_ms={}",
        after.millis()
    );
    let told = get(&workspace, &path);
    assert!(told["policies"].as_array().unwrap().len() > 3, "{told}");
    for (key, value) in told.as_object().unwrap() {
        assert_eq!(
            printed["explained"].get(key).unwrap_or(&printed[key]),
            value,
            "{key}"
        );
    }
    let unknown = get(&workspace, "/v1/schedules/explain?schedule=w/nothing");
    assert_eq!(unknown["code"], "schedule_not_found");
    daemon.stop();
}

#[test]
fn skills_are_listed_with_their_newest_run_and_next_slot() {
    let workspace = Workspace::with_skills(SKILLS);
    workspace.worker("x", "  - {id: other, description: of X, run: 'true'}\n");
    workspace.worker("broken", "  - {id: s, description: d, run: [1, {a: b}]}\n");
    let daemon = Daemon::start(&workspace);
    trigger(&workspace, "w/bad");
    trigger(&workspace, "w/good");
    trigger(&workspace, "w/good");
    let all = paged(&workspace, "/v1/skills?limit=2");
    let names = texts(&all, "qualified");
    let known = |name: &str| all.iter().find(|skill| skill["qualified"] == name).unwrap();
    assert!(names.is_sorted(), "{names:?}");
    assert!(names.iter().any(|name| name == "x/other"), "{names:?}");
    let newest = get(&workspace, "/v1/runs?skill=w/good&limit=1");
    assert_eq!(known("w/good")["last"], newest[0]);
    assert_eq!(known("w/good")["next"]["schedule"], "w/good");
    assert_eq!(known("w/bad")["last"]["outcome"]["kind"], "failed");
    assert_eq!(known("w/never")["last"], Value::Null);
    assert_eq!(known("w/never")["next"], Value::Null);
    assert_eq!(
        texts(&paged(&workspace, "/v1/skills?worker=x"), "skill"),
        ["x/other"]
    );
    assert_eq!(
        texts(&paged(&workspace, "/v1/skills?text=TIDIES"), "skill"),
        ["w/good"]
    );
    // What an engine finds that starts anew is the same.
    let before = paged(&workspace, "/v1/skills");
    daemon.stop();
    let daemon = Daemon::start(&workspace);
    assert_eq!(paged(&workspace, "/v1/skills"), before);
    let problems = get(&workspace, "/v1/problems");
    let line = ["check", "--json"];
    let checked = workspace.run(&line);
    let checked: Value = serde_json::from_str(&checked.stdout).unwrap();
    assert!(!problems.as_array().unwrap().is_empty());
    assert_eq!(checked["problems"], problems);
    let probes = get(&workspace, "/v1/doctor");
    assert!(
        probes
            .as_array()
            .unwrap()
            .iter()
            .all(|probe| probe["ok"].is_boolean())
    );
    daemon.stop();
}
