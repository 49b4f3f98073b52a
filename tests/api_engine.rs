//! The HTTP API of a real daemon with a real engine behind it.

use crate::workspace;

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};
use workspace::api::Api;
use workspace::daemon::Daemon;
use workspace::gate::Gate;
use workspace::{PATIENCE, Workspace, eventually};

const SKILLS: &str = r"
  - id: gated
    description: d
    interface: {inputs: [{name: n, type: number, default: 1}]}
    run: 'echo before; GATE; echo after'
  - {id: broken, description: d, run: [1, {a: b}]}
";

fn bed() -> (Workspace, Gate, Daemon, Api) {
    let workspace = Workspace::with_skills(&SKILLS.replace("GATE", &Gate::text("gate")));
    let gate = Gate::new(&workspace, "gate");
    let daemon = Daemon::start(&workspace);
    let api = Api::of(&workspace);
    (workspace, gate, daemon, api)
}

#[test]
fn a_key_makes_one_run_and_its_events_are_told_until_its_end() {
    let (workspace, mut gate, daemon, api) = bed();
    let body = json!({"skill": "w/gated", "inputs": {"n": 7}}).to_string();
    let submit = || api.ask("POST", "/v1/runs", "Idempotency-Key: k 1\r\n", &body);
    let (first, second) = (submit(), submit());
    assert_eq!(
        (first.status, first.value()["existing"].clone()),
        (201, json!(false))
    );
    assert_eq!(second.value()["existing"], true);
    assert!(
        second.status == 200 || second.status == 201,
        "{}",
        second.text()
    );
    let run = first.value()["run"].as_str().unwrap().to_owned();
    assert_eq!(second.value()["run"], *run);
    let other = json!({"skill": "w/gated", "inputs": {"n": 8}}).to_string();
    let reused = api.ask("POST", "/v1/runs", "Idempotency-Key: k 1\r\n", &other);
    assert_eq!(reused.refusal(), (409, "key_reused".to_owned()));

    assert_eq!(gate.reached().0, run);
    let stream = api.send("GET", &format!("/v1/runs/{run}/events"), "", "");
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    lines.find(|line| line.contains("\"before\"")).unwrap();
    gate.pass();
    let told: Vec<String> = lines.collect();
    assert!(
        told.iter().any(|line| line.contains("\"after\"")),
        "{told:?}"
    );
    assert!(told.iter().any(|line| line == "event: end"), "{told:?}");
    let detail = api.ask("GET", &format!("/v1/runs/{run}"), "", "").value();
    assert_eq!(detail["summary"]["outcome"]["kind"], "succeeded");
    assert_eq!(detail["inputs"]["n"], 7);
    assert_eq!(workspace.runs().len(), 1);
    daemon.stop();
}

#[test]
fn refusals_have_one_form() {
    let (workspace, _gate, daemon, api) = bed();
    let submit = |body: Value| api.ask("POST", "/v1/runs", "", &body.to_string()).refusal();
    let status = |refusal: (u16, String)| refusal.0;
    assert_eq!(api.ask("DELETE", "/v1/runs", "", "").refusal().0, 405);
    assert_eq!(api.ask("GET", "/v1/nothing", "", "").refusal().0, 404);
    assert_eq!(
        api.ask("GET", "/v1/runs/zzzzzz", "", "").refusal(),
        (404, "run_not_found".to_owned())
    );
    assert_eq!(status(submit(json!({"skill": "no-such-skill"}))), 404);
    assert_eq!(status(submit(json!({"skill": "w/broken"}))), 422);
    assert_eq!(
        status(submit(json!({"skill": "w/gated", "inputs": {"n": "x"}}))),
        400
    );
    assert_eq!(
        status(submit(json!({"skill": "w/gated", "unknown": 1}))),
        400
    );
    let drained = api.ask("POST", "/v1/drain", "", "{}");
    assert!((200..300).contains(&drained.status), "{}", drained.text());
    daemon.ended();
    assert!(workspace.runs().is_empty());
    workspace.expect_no_process();
}

/// The lists of runs, each by the link of the one before it.
fn pages(api: &Api, first: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut next = Some(first.to_owned());
    while let Some(path) = next {
        let answer = api.ask("GET", &path, "", "");
        let runs = answer.value();
        let ids = runs.as_array().unwrap().iter();
        found.push(
            ids.map(|run| run["run"].as_str().unwrap().to_owned())
                .collect(),
        );
        next = answer.next().map(str::to_owned);
    }
    found
}

#[test]
fn every_run_is_in_one_of_the_linked_lists_whenever_it_was_submitted() {
    let (workspace, mut gate, daemon, api) = bed();
    let body = json!({"skill": "w/gated"}).to_string();
    let submit = |_| {
        let run = api.ask("POST", "/v1/runs", "", &body).value()["run"].clone();
        run.as_str().unwrap().to_owned()
    };
    let mut submitted: Vec<String> = (0..7).map(submit).collect();
    submitted.sort();
    submitted.reverse();
    let listed = || {
        let pages = pages(&api, "/v1/runs?limit=3&worker=w");
        assert!(pages.iter().all(|page| page.len() <= 3), "{pages:?}");
        pages.concat()
    };
    assert_eq!(listed(), submitted);
    for passed in 1..=submitted.len() {
        gate.reached();
        // Some have ended now, and the others have not.
        assert_eq!(listed(), submitted);
        // Of two that stand at the gate either may go on.
        gate.pass();
        eventually("as many runs have succeeded", || {
            let runs = workspace.runs();
            let ended = runs
                .values()
                .filter(|run| run["outcome"]["kind"] == "succeeded");
            (ended.count() == passed).then_some(())
        });
    }
    assert_eq!(listed(), submitted);
    daemon.stop();
}

#[test]
fn runs_are_found_by_schedule_person_and_text_and_a_long_search_says_where_it_goes_on() {
    let (workspace, gate, daemon, api) = bed();
    let submit = |by: &str| {
        let body = json!({"skill": "w/gated", "by": by, "inputs": {"n": 7}}).to_string();
        let run = api.ask("POST", "/v1/runs", "", &body).value()["run"].clone();
        run.as_str().unwrap().to_owned()
    };
    let (ada, bob) = (submit("cli Ada"), submit("cli Bob"));
    let found = |query: &str| pages(&api, &format!("/v1/runs?{query}")).concat();
    assert_eq!(found("by=ada"), [ada.as_str()]);
    assert_eq!(found("text=GATED"), [bob.as_str(), &ada]);
    assert_eq!(found(&format!("text={}", &bob[20..])), [bob.as_str()]);
    assert_eq!(found("outcome=active,failed&schedule=w/gated%23x"), [""; 0]);
    let at = api.ask("GET", &format!("/v1/runs/{bob}"), "", "").value();
    let summary = &at["summary"];
    assert_eq!(
        (&summary["by"], &summary["title"]),
        (&json!("cli Bob"), &json!("gated"))
    );
    // Of two runs of one millisecond both are before the next one.
    let until = chrono_millis(summary["submitted_at"].as_str().unwrap());
    assert_eq!(
        found(&format!("until_ms={}", until + 1)),
        [bob.as_str(), &ada]
    );
    assert!(!found(&format!("until_ms={until}")).contains(&bob));
    // More than are looked at for one answer, none of which is wanted.
    for _ in 0..2_020 {
        submit("cli Eve");
    }
    let first = api.ask("GET", "/v1/runs?by=bob&limit=1", "", "");
    assert_eq!((first.value(), first.next().is_some()), (json!([]), true));
    assert_eq!(found("by=bob&limit=1"), [bob.as_str()]);
    let listed = workspace.json(&["runs", "--skill", "w/gated", "--limit", "10000"]);
    assert_eq!(listed["runs"].as_array().unwrap().len(), 2_022);
    daemon.kill();
    drop(gate);
}

fn chrono_millis(text: &str) -> i64 {
    chrono::DateTime::parse_from_rfc3339(text)
        .unwrap()
        .timestamp_millis()
}

#[test]
fn stats_are_told_by_day_and_by_hour_too() {
    let (workspace, mut gate, daemon, api) = bed();
    let run = workspace.submit(&["w/gated"]);
    gate.reached();
    gate.pass();
    assert_eq!(workspace.wait(&run).0, 0);
    let lines = |query: &str| {
        let answer = api
            .ask("GET", &format!("/v1/stats?{query}"), "", "")
            .value();
        let lines = answer.as_array().unwrap().clone();
        lines
            .iter()
            .map(|line| {
                (
                    line["name"].clone(),
                    line["at"].clone(),
                    line["run_count"].clone(),
                )
            })
            .collect::<Vec<_>>()
    };
    let ended = api.ask("GET", &format!("/v1/runs/{run}"), "", "").value()["summary"].clone();
    let hour = format!("{}:00:00Z", &ended["finished_at"].as_str().unwrap()[..13]);
    for (query, name, at) in [
        ("by=all", "all", json!(null)),
        ("by=all&bucket=day", "all", ended["day"].clone()),
        ("by=skill&bucket=day", "w/gated", ended["day"].clone()),
        ("by=skill&bucket=hour", "w/gated", json!(hour)),
        ("by=worker&worker=w&bucket=hour", "w", json!(hour)),
        ("by=all&bucket=hour", "all", json!(hour)),
        (
            "by=day&skill=w/gated",
            ended["day"].as_str().unwrap(),
            json!(null),
        ),
    ] {
        assert_eq!(lines(query), [(json!(name), at, json!(1))], "{query}");
    }
    assert_eq!(lines("by=all&skill=w/gate"), []);
    // It ran for no schedule.
    assert_eq!(lines("by=schedule&bucket=hour"), []);
    daemon.stop();
}

/// What a stream tells, event by event.
struct Stream(BufReader<UnixStream>);

impl Stream {
    fn open(api: &Api, path: &str, headers: &str) -> Stream {
        let stream = api.send("GET", path, headers, "");
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Stream(BufReader::new(stream))
    }

    /// The next event of this name that fits: its data, and the last id that was told before its end.
    fn until(&mut self, name: &str, fits: impl Fn(&Value) -> bool) -> (Value, Option<String>) {
        let (mut event, mut id, mut line) = (String::new(), None, String::new());
        loop {
            line.clear();
            assert_ne!(
                self.0.read_line(&mut line).unwrap(),
                0,
                "it ended before {name}"
            );
            match line.trim_end().split_once(": ") {
                Some(("id", told)) => id = Some(told.to_owned()),
                Some(("event", told)) => told.clone_into(&mut event),
                Some(("data", data)) if event == name => {
                    let data = serde_json::from_str(data).unwrap();
                    if fits(&data) {
                        return (data, id);
                    }
                }
                _ => {}
            }
        }
    }
}

#[test]
fn one_stream_tells_of_everything_and_goes_on_where_it_was_cut_off() {
    let (workspace, mut gate, daemon, api) = bed();
    let mut stream = Stream::open(&api, "/v1/events", "");
    let (hello, start) = stream.until("hello", |_| true);
    assert_eq!(hello["resumed"], false);
    let run = workspace.submit(&["w/gated"]);
    gate.reached();
    stream.until("run", |told| {
        told["run"] == run.as_str() && told["phase"] == "executing"
    });
    drop(stream);
    gate.pass();
    assert_eq!(workspace.wait(&run).0, 0);
    let after = format!("Last-Event-ID: {}\r\n", start.unwrap());
    let path = format!("/v1/events?runs={run}:1");
    let mut stream = Stream::open(&api, &path, &after);
    assert_eq!(stream.until("hello", |_| true).0["resumed"], true);
    stream.until("run", |told| told["outcome"]["kind"] == "succeeded");
    // Nothing is told before it.
    let mut told = String::new();
    let mut stream = Stream::open(&api, &path, "");
    while !told.starts_with("event: ") {
        told.clear();
        stream.0.read_line(&mut told).unwrap();
    }
    assert_eq!(told, "event: hello\n");
    let (first, _) = stream.until("line", |_| true);
    assert_eq!((&first["run"], &first["line"]), (&json!(run), &json!(1)));
    stream.until("end", |told| told["run"] == run.as_str());
    workspace.run(&["reload"]).expect_code(0);
    stream.until("definitions", |_| true);
    let refused = api.ask("GET", "/v1/events?runs=x", "", "");
    assert_eq!(refused.status, 400, "{}", refused.text());
    // A run that is kept no more hinders nobody.
    let gone = "0".repeat(26);
    let mut both = Stream::open(&api, &format!("/v1/events?runs={gone},{run}"), "");
    let (error, _) = both.until("error", |told| told["run"] == gone.as_str());
    assert_eq!(error["error"]["code"], "run_not_found");
    let mut both = Stream::open(&api, &format!("/v1/events?runs={gone},{run}"), "");
    both.until("end", |told| told["run"] == run.as_str());
    let waits = workspace.submit(&["w/gated"]);
    gate.reached();
    let api_again = Api::of(&workspace);
    let drained = std::thread::spawn(move || api_again.ask("POST", "/v1/drain", "", "{}").status);
    stream.until("status", |told| told["condition"] == "draining");
    gate.pass();
    stream.until("run", |told| {
        told["run"] == waits.as_str() && told["outcome"]["kind"] == "succeeded"
    });
    assert_eq!(drained.join().unwrap(), 204);
    daemon.ended();
}

/// Clients at once that the server lets watch, and more of them one after the other than any bound.
const WATCHERS: usize = 64;
const GENERATIONS: usize = 6;

#[test]
fn watchers_that_leave_a_silent_run_leave_nothing_behind() {
    let (workspace, mut gate, daemon, api) = bed();
    let run = workspace.submit(&["w/gated"]);
    assert_eq!(gate.reached().0, run);
    let path = format!("/v1/runs/{run}/events");
    for _ in 0..GENERATIONS {
        let watching: Vec<UnixStream> = (0..WATCHERS)
            .map(|_| {
                eventually("there is a place for a watcher", || {
                    let stream = api.send("GET", &path, "", "");
                    let mut first = String::new();
                    let mut lines = BufReader::new(stream.try_clone().unwrap());
                    lines.read_line(&mut first).unwrap();
                    first.contains(" 200 ").then_some(stream)
                })
            })
            .collect();
        drop(watching);
    }
    gate.pass();
    assert_eq!(workspace.wait(&run).0, 0);
    daemon.stop();
}
