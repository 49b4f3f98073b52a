//! What a page asks of the API, where there is much of everything: how long its answers take against the smallest one,
//! how soon it hears of a change, and what many that listen cost the engine.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use workerctl::clock::{Clock, SystemClock};
use workerctl::model::{RunId, Timestamp};
use workerctl::protocol::{Control, RunsQuery, SubmitRequest};

use crate::Scale;
use crate::history;
use crate::idle::resident_kb;
use crate::limits::{median, median_of};
use crate::report::{Report, Target};
use crate::schedules::write_worker;
use crate::throughput::round;
use crate::workspace::{PATIENCE, Workspace};

/// Runs on one page of a list.
const PAGE: &str = "limit=50";

/// Clients that listen at once.
const LISTENERS: usize = 20;

/// Schedules of one worker, as they are written.
const OF_WORKER: usize = 100;

/// Time between two changes that a listener hears of.
const APART: Duration = Duration::from_millis(120);

/// A schedule that has been due on each day of a year.
const OF_A_YEAR: &str = "w100/s0#job-10000";

pub(crate) fn measure(scale: Scale, report: &mut Report) {
    let workspace = history::filled(scale.history_runs);
    let schedules = scale.schedules / 10;
    for worker in 0..schedules.div_ceil(OF_WORKER) {
        write_worker(&workspace, 100 + worker, true);
    }
    history::fill_year(&workspace, OF_A_YEAR);
    let daemon = workspace.daemon();
    let control = workspace.dial();
    wait_in_the_queue(&control, scale.history_runs / 10);
    let much = format!(
        "{} finished runs, {} queued, {schedules} schedules",
        scale.history_runs,
        scale.history_runs / 10
    );
    answers(scale, &workspace, &control, &much, report);
    hearing(scale, &workspace, &control, report);
    daemon.end();
    listening(scale, report);
}

/// Runs that wait for a later day.
fn wait_in_the_queue(control: &dyn Control, runs: u64) {
    let later = Timestamp::parse("2999-01-01T00:00:00Z");
    std::thread::scope(|scope| {
        for client in 0..8 {
            scope.spawn(move || {
                for number in (client..runs).step_by(8) {
                    let request = SubmitRequest {
                        skill: format!("w{}/go", number % 8),
                        not_before: later,
                        ..SubmitRequest::default()
                    };
                    control.submit(&request).unwrap();
                }
            });
        }
    });
}

fn answers(
    scale: Scale,
    workspace: &Workspace,
    control: &dyn Control,
    much: &str,
    report: &mut Report,
) {
    let seconds = |path: &str| {
        median_of(scale.samples.min(30), || {
            let answer = get(workspace, path);
            assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        })
    };
    let version = seconds("/v1/version");
    let first = seconds(&format!("/v1/runs?{PAGE}"));
    let oldest = oldest(scale, control);
    let deep = seconds(&format!("/v1/runs?{PAGE}&before={oldest}"));
    report.add(
        "page, runs at the oldest against the newest",
        deep / first,
        "",
        Target::AtMost(2.0),
        &format!("{:.0} us against {:.0} us; {much}", deep * 1e6, first * 1e6),
    );
    for filter in [
        "outcome=failed",
        "text=nowhere",
        "by=nobody",
        "schedule=w1/go%23x",
        "skill=w1/go",
        "until_ms=1000",
        "since_ms=1&outcome=unverified",
    ] {
        let filtered = seconds(&format!("/v1/runs?{PAGE}&{filter}"));
        report.add(
            &format!("page, runs by `{filter}` against the newest"),
            filtered / first,
            "",
            Target::AtMost(10.0),
            &format!("{:.0} us", filtered * 1e6),
        );
    }
    let year_ago = SystemClock::default().now().minus_millis(365 * 86_400_000);
    let calendar = format!(
        "/v1/schedules/calendar?bucket=day&from_ms={}",
        year_ago.millis()
    );
    let counts = format!("/v1/stats?bucket=day&from={}", &year_ago.rfc3339()[..10]);
    for (what, path) in [
        ("counts of a year", &*format!("{counts}&by=all")),
        (
            "counts of a year, one skill",
            &*format!("{counts}&skill=w1/go"),
        ),
        ("a calendar of a year", &calendar),
        (
            "a calendar of a year, one schedule",
            &format!("{calendar}&schedule={}", OF_A_YEAR.replace('#', "%23")),
        ),
    ] {
        let answered = seconds(path);
        report.add(
            &format!("page, {what} against the version"),
            answered / version,
            "",
            Target::AtMost(20.0),
            &format!("{:.0} us against {:.0} us", answered * 1e6, version * 1e6),
        );
    }
}

/// A run that is older than all but some.
fn oldest(scale: Scale, control: &dyn Control) -> RunId {
    let one = RunsQuery {
        limit: 1,
        outcome: Some("succeeded".to_owned()),
        ..RunsQuery::default()
    };
    let newest = control.runs(&one).unwrap()[0].submitted_at;
    let ago = (scale.history_runs - 100) * history::APART_MS;
    let older = RunsQuery {
        until_ms: Some(newest.minus_millis(ago).millis()),
        ..one
    };
    control.runs(&older).unwrap()[0].run
}

/// How soon a client that listens hears of a run that was accepted.
fn hearing(scale: Scale, workspace: &Workspace, control: &dyn Control, report: &mut Report) {
    let round_trip = median_of(scale.samples.min(50), || {
        drop(Listener::open(workspace, false));
    });
    let listener = Listener::open(workspace, true);
    let mut late: Vec<f64> = Vec::new();
    for _ in 0..scale.samples * 5 {
        // A reader is told something ten times a second; what comes faster waits for that, and is not measured here.
        std::thread::sleep(APART);
        let request = SubmitRequest {
            skill: "w1/go".to_owned(),
            not_before: Timestamp::parse("2999-01-01T00:00:00Z"),
            ..SubmitRequest::default()
        };
        let run = control.submit(&request).unwrap().run.to_string();
        let durable = Instant::now();
        late.push(
            listener
                .heard_of(&run)
                .saturating_duration_since(durable)
                .as_secs_f64(),
        );
    }
    late.sort_by(f64::total_cmp);
    let p99 = late[(late.len() * 99).div_ceil(100) - 1];
    report.add(
        "page, from a commit to the client that listens, p99",
        p99 / round_trip,
        "x round trip",
        Target::AtMost(5.0),
        &format!(
            "{:.0} us, half of them {:.0} us, against {:.0} us",
            p99 * 1e6,
            late[late.len() / 2] * 1e6,
            round_trip * 1e6
        ),
    );
}

/// What many that listen cost.
fn listening(scale: Scale, report: &mut Report) {
    let workspace = Workspace::of_trivial_skills(2);
    let daemon = workspace.daemon();
    let control = workspace.dial();
    round(&control, 2, scale.runs.min(100));
    let resident = || resident_kb(daemon.pid());
    let (mut with, mut without, mut grown) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        let before = resident();
        without.push(round(&control, 2, scale.runs));
        // What it grows by for the runs themselves is not the page's.
        let of_runs = resident() - before;
        let before = resident();
        let all: Vec<Listener> = (0..LISTENERS)
            .map(|_| Listener::open(&workspace, false))
            .collect();
        with.push(round(&control, 2, scale.runs));
        grown.push(resident() - before - of_runs);
        drop(all);
    }
    let (with, without) = (median(with), median(without));
    report.add(
        &format!("page, runs a second with {LISTENERS} that listen against none"),
        with / without,
        "",
        Target::AtLeast(0.95, 1.0),
        &format!("{with:.0}/s against {without:.0}/s"),
    );
    report.add(
        "page, memory of a page",
        median(grown) / 1024.0 / LISTENERS as f64,
        " MiB",
        Target::AtMost(1.0),
        &format!("{LISTENERS} of them while {} runs end", scale.runs),
    );
    daemon.end();
}

fn ask(workspace: &Workspace, path: &str) -> UnixStream {
    let mut stream = UnixStream::connect(workspace.socket()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    stream
}

fn get(workspace: &Workspace, path: &str) -> String {
    let mut answer = String::new();
    ask(workspace, path).read_to_string(&mut answer).unwrap();
    answer
}

/// A client that reads the stream of changes.
struct Listener {
    heard: Receiver<(Instant, String)>,
    stream: UnixStream,
}

impl Listener {
    /// Listens from the first event on; keeps what it hears for whoever asks, or only reads it.
    fn open(workspace: &Workspace, keeps: bool) -> Listener {
        let stream = ask(workspace, "/v1/events");
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        for line in lines.by_ref() {
            if line.unwrap() == "event: hello" {
                break;
            }
        }
        let (tell, heard) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if keeps && line.starts_with("data: {\"run\"") {
                    let _ = tell.send((Instant::now(), line));
                }
            }
        });
        Listener { heard, stream }
    }

    /// When a run was told of.
    fn heard_of(&self, run: &str) -> Instant {
        loop {
            let (at, line) = self.heard.recv_timeout(PATIENCE).unwrap();
            if line.contains(run) {
                return at;
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}
