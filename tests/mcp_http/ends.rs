//! The end of the daemon.

use std::time::Instant;

use rustix::process::Signal;
use serde_json::json;

use crate::mcp_http::host::{Host, start};
use crate::mcp_http::session::Session;
use crate::mcp_http::wire::SOON;

#[test]
fn the_end_of_the_daemon_ends_every_stream() {
    let host = Host::start("");
    let sessions: Vec<Session> = (0..4)
        .map(|number| {
            let place = if number % 2 == 0 {
                &host.tcp
            } else {
                &host.socket
            };
            Session::begin(&host, place, "2025-11-25")
        })
        .collect();
    let streams: Vec<_> = sessions.iter().map(Session::listen).collect();
    let began = Instant::now();
    host.daemon.stop();
    for mut stream in streams {
        assert!(stream.next().is_none());
    }
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

#[test]
fn a_call_is_answered_before_the_daemon_ends() {
    let mut host = Host::start("");
    let session = Session::over_tcp(&host);
    let call = json!({"name": "use_skill", "arguments": {"skill": "gated"}});
    let (id, answer) = session.request("tools/call", &call);
    host.gate.reached();
    host.daemon.signal(Signal::TERM);
    host.daemon.wait_for_notice("STOPPING=1");
    // It has told that it ends, and a moment later accepts nothing any more.
    crate::workspace::eventually("a run to be refused", || {
        let answer = session.call("use_skill", &json!({"skill": "hello"}));
        (answer["is_error"] == true).then_some(())
    });
    host.gate.pass();
    let mut events = answer.events();
    let mut last = None;
    while let Some(event) = events.next() {
        last = Some(event.message)
            .filter(|message| message["id"] == id)
            .or(last);
    }
    let said = last.unwrap();
    assert_eq!(
        said["result"]["structuredContent"]["content"], "before\nafter",
        "{said}"
    );
    host.daemon.ended();
}

#[test]
fn a_session_does_not_outlive_its_daemon_and_the_token_does() {
    let mut host = Host::start("");
    let session = Session::begin(&host, &host.socket, "2025-11-25");
    let token = host.token.clone();
    let kept =
        |host: &Host| std::fs::read_to_string(host.workspace.state().join("mcp-token")).unwrap();
    host.daemon.signal(Signal::TERM);
    let next = {
        let Host {
            daemon, workspace, ..
        } = &mut host;
        daemon.wait_for_notice("STOPPING=1");
        // Ends by itself; the next one begins when it has.
        crate::workspace::eventually("the end", || (!daemon.lives()).then_some(()));
        start(workspace)
    };
    assert_eq!(session.status(), 404, "clients start again then");
    assert_eq!(kept(&host).trim(), token);
    next.stop();
}
