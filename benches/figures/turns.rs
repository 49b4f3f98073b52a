//! What turns with a model cost beside the model: against what they cannot do without, a commit and exchanges with the
//! same server. And what conversations take of memory.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use workerctl::protocol::{Control, RunsQuery};

use crate::Scale;
use crate::idle::resident_kb;
use crate::limits::{median, wait_until};
use crate::report::{Report, Target};
use crate::server::ModelServer;
use crate::server::script::{End, Reply, Say};
use crate::workspace::{PATIENCE, Workspace, submit};

/// Turns of the long conversation beyond those of the short one.
const TURNS: usize = 40;

/// Conversations at once.
const RUNS: u64 = 100;

/// Exchanges with the server that a turn may take beside its commit.
const EXCHANGES: f64 = 3.0;

pub(crate) fn measure(scale: Scale, report: &mut Report) {
    one_turn(scale, report);
    many_at_once(report);
}

fn workspace(server: &ModelServer) -> Workspace {
    let workspace = Workspace::new(8);
    let config = format!(
        "max_parallel: 128\ndrain_grace: 1s\nmodels:\n  default: {{provider: anthropic, model: m, base_url: \"{}\"}}\n",
        server.url()
    );
    workspace.write("workerctl.yaml", &config);
    for worker in 0..8 {
        workspace.worker(
            &format!("w{worker}"),
            "  - {id: talk, name: Talk, description: d, instructions: Talk., max_iterations: 100}\n  - {id: go, name: Go, description: d, run: [\"true\"]}\n",
        );
    }
    workspace
}

fn one_turn(scale: Scale, report: &mut Report) {
    let server = ModelServer::start(vec![done()]);
    let workspace = workspace(&server);
    let engine = workspace.engine();
    let control = engine.control.as_ref();
    let (mut turns, mut commits, mut exchanges) = (Vec::new(), Vec::new(), Vec::new());
    server.follow(calling());
    talk(control, 0);
    // What the middle one of its turns sends: the conversation so far.
    let body = server.requests()[TURNS / 2].body.to_string();
    for round in 0..scale.samples.min(30) as u64 {
        server.follow(vec![done()]);
        let short = talk(control, round);
        server.follow(calling());
        let long = talk(control, round);
        turns.push((long - short) / TURNS as f64);
        server.follow(vec![done()]);
        exchanges.push(bare_exchange(&server.url(), &body));
        let asked = Instant::now();
        let run = submit(control, round, "go");
        commits.push(asked.elapsed().as_secs_f64());
        control
            .watch_changes(run, &mut |_| ControlFlow::Continue(()))
            .unwrap();
    }
    let failed = RunsQuery {
        outcome: Some("failed".to_owned()),
        ..RunsQuery::default()
    };
    assert_eq!(
        control.runs(&failed).unwrap().len(),
        0,
        "every run succeeds"
    );
    engine.end();
    let (turn, commit, exchange) = (median(turns), median(commits), median(exchanges));
    report.add(
        "turns, one with its tool against a commit and three bare exchanges",
        turn / (commit + EXCHANGES * exchange),
        "x",
        Target::AtMost(1.0),
        &format!(
            "{:.2} ms, a commit {:.2} ms, an exchange {:.2} ms",
            turn * 1e3,
            commit * 1e3,
            exchange * 1e3
        ),
    );
}

/// Turns that each call a tool, and one that ends them.
fn calling() -> Vec<Reply> {
    let mut script: Vec<Reply> = vec![Say::nothing().call("list_skills", "{}").into(); TURNS];
    script.push(done());
    script
}

fn done() -> Reply {
    Say::text("done").into()
}

/// Seconds from the request to the run's end.
fn talk(control: &dyn Control, number: u64) -> f64 {
    let asked = Instant::now();
    let run = submit(control, number, "talk");
    control
        .watch_changes(run, &mut |_| ControlFlow::Continue(()))
        .unwrap();
    asked.elapsed().as_secs_f64()
}

/// Seconds of one exchange over a connection that stands.
fn bare_exchange(url: &str, body: &str) -> f64 {
    let address = url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    let request = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut exchange = || {
        let asked = Instant::now();
        stream.write_all(request.as_bytes()).unwrap();
        let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
        while !answer.ends_with(b"\r\n0\r\n\r\n") {
            let length = stream.read(&mut piece).unwrap();
            assert!(length > 0, "the server closed the connection");
            answer.extend_from_slice(&piece[..length]);
        }
        asked.elapsed().as_secs_f64()
    };
    exchange();
    exchange()
}

fn many_at_once(report: &mut Report) {
    let server = ModelServer::start(vec![done()]);
    let workspace = workspace(&server);
    let daemon = workspace.daemon();
    let control = workspace.dial();
    let run = submit(&control, 0, "go");
    control
        .watch_changes(run, &mut |_| ControlFlow::Continue(()))
        .unwrap();
    let before = resident_kb(daemon.pid());
    server.follow(vec![
        Say::text("It begins.")
            .and("and")
            .end(End::Silent(2))
            .into(),
    ]);
    for number in 0..RUNS {
        submit(&control, number, "talk");
    }
    server.wait_for_requests(usize::try_from(RUNS).unwrap());
    wait_until("the conversations to begin", PATIENCE, || {
        std::thread::sleep(Duration::from_millis(20));
        u64::from(control.status().unwrap().running) == RUNS
    });
    let resident = resident_kb(daemon.pid());
    report.add(
        &format!("turns, memory of {RUNS} conversations at once"),
        (resident - before) / 1024.0,
        " MiB",
        Target::AtMost(60.0),
        &format!("{:.1} MiB in all", resident / 1024.0),
    );
    daemon.end();
}
