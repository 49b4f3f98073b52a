//! Many turns at once, in a process of their own, because its memory is measured.
#![expect(
    clippy::unwrap_used,
    reason = "what a test cannot set up fails it at once"
)]

#[path = "../turns/rig.rs"]
#[expect(dead_code, reason = "only a part is used here")]
mod rig;
#[path = "../server/mod.rs"]
#[expect(dead_code, reason = "only a part is used here")]
mod server;

use std::sync::Barrier;

use workerctl_agent::Stop;

use crate::rig::{DIALECTS, StillPace, client, model, request};
use crate::server::ModelServer;
use crate::server::script::Say;

const TURNS: usize = 100;
/// What all of them may take, the server's side and 100 threads included. Measured: 13 MB.
const GROWTH_MAX_KB: usize = 32 * 1024;

fn resident_kb() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or_default()
}

#[test]
fn a_hundred_turns_at_once_are_small() {
    // All begin, and none can end before all have begun.
    let say = Say::text("a").and("b").and("c").gated();
    let server = ModelServer::start(vec![say.into()]);
    let client = client(&StillPace::new());
    let one_more = Barrier::new(TURNS + 1);
    std::thread::scope(|scope| {
        let before = resident_kb();
        for turn in 0..TURNS {
            let (server, client, one_more) = (&server, &client, &one_more);
            scope.spawn(move || {
                let model = model(DIALECTS[turn % DIALECTS.len()], server);
                one_more.wait();
                let turn = client
                    .turn(&model, &request(), &mut |_| {}, &Stop::new())
                    .unwrap();
                assert_eq!((turn.text.as_str(), turn.tries), ("abc", 1));
            });
        }
        one_more.wait();
        server.wait_for_requests(TURNS);
        let grown = resident_kb().saturating_sub(before);
        println!("{TURNS} turns at once: {grown} KB");
        server.let_through(TURNS * 20);
        assert!(grown < GROWTH_MAX_KB, "{grown} KB");
    });
    assert_eq!(server.requests().len(), TURNS);
}
