//! A stop from another thread, in each phase of a turn. The server's side has no end and the deadlines are
//! long, so that a turn which returns was stopped.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, SystemTime};

use workerctl_agent::{Client, Model, Pace, Stop, SystemPace, TurnError};

use crate::rig::{
    DIALECTS, StillPace, client, holds_no_secret, model, model_at, request, settings,
};
use crate::server::ModelServer;
use crate::server::script::{End, Reply, Say};

/// A turn that is stopped by another thread when `when` returns.
fn stopped(client: &Client, model: &Model, when: impl FnOnce() + Send) -> TurnError {
    let stop = Stop::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            when();
            stop.stop();
        });
        let error = client
            .turn(model, &request(), &mut |_| {}, &stop)
            .unwrap_err();
        holds_no_secret(&error);
        assert_eq!(error.code(), "stopped");
        error
    })
}

#[test]
fn before_it_begins() {
    let server = ModelServer::start(vec![Say::text("x").into()]);
    for dialect in DIALECTS {
        let stop = Stop::new();
        stop.stop();
        let turn = client(&StillPace::new()).turn(
            &model(dialect, &server),
            &request(),
            &mut |_| {},
            &stop,
        );
        assert_eq!(turn.unwrap_err().code(), "stopped");
    }
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn while_it_connects() {
    for dialect in DIALECTS {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let model = model_at(
            dialect,
            &format!("https://{}", listener.local_addr().unwrap()),
        );
        // The connection stays open and never gets an answer to its handshake.
        let mut open = None;
        stopped(&client(&StillPace::new()), &model, || {
            open = Some(listener.accept().unwrap());
        });
    }
}

#[test]
fn before_the_head_of_the_answer() {
    for dialect in DIALECTS {
        let server = ModelServer::start(vec![Reply::Nothing]);
        stopped(&client(&StillPace::new()), &model(dialect, &server), || {
            server.wait_for_requests(1);
        });
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn in_the_middle_of_the_stream() {
    for dialect in DIALECTS {
        let say = Say::text("a")
            .and("b")
            .and("c")
            .and("d")
            .end(End::Silent(4));
        let server = ModelServer::start(vec![say.into()]);
        let (told, first) = mpsc::channel();
        let stop = Stop::new();
        std::thread::scope(|scope| {
            let pulled = &stop;
            scope.spawn(move || {
                first.recv().unwrap();
                pulled.stop();
            });
            let mut on_delta = |_| _ = told.send(());
            let turn = client(&StillPace::new()).turn(
                &model(dialect, &server),
                &request(),
                &mut on_delta,
                &stop,
            );
            assert_eq!(turn.unwrap_err().code(), "stopped", "{dialect:?}");
        });
    }
}

/// Also where the whole answer has come already: whoever pulled the switch does not get a turn.
#[test]
fn by_the_consumer_itself() {
    for dialect in DIALECTS {
        let server = ModelServer::start(vec![Say::text("a").and("b").into()]);
        let stop = Stop::new();
        let turn = client(&StillPace::new()).turn(
            &model(dialect, &server),
            &request(),
            &mut |_| stop.stop(),
            &stop,
        );
        assert_eq!(turn.unwrap_err().code(), "stopped");
    }
}

/// The body of a failure that does not end.
#[test]
fn while_a_failure_is_read() {
    for dialect in DIALECTS {
        let reply = Reply::Frames {
            frames: vec!["<".into()],
            end: End::Silent(1),
        };
        let server = ModelServer::start(vec![reply]);
        stopped(&client(&StillPace::new()), &model(dialect, &server), || {
            server.wait_for_requests(1);
        });
    }
}

/// Waits on the machine's clock, and tells when it begins to.
struct Told(mpsc::SyncSender<()>);

impl Pace for Told {
    fn now(&self) -> SystemTime {
        SystemPace.now()
    }

    fn wait(&self, span: Duration, stop: &Stop) -> bool {
        self.0.send(()).unwrap();
        SystemPace.wait(span, stop)
    }

    fn jitter(&self) -> f64 {
        SystemPace.jitter()
    }
}

#[test]
fn between_two_tries() {
    for dialect in DIALECTS {
        let server = ModelServer::start(vec![Reply::status_with(429, "retry-after", "59")]);
        let (told, waits) = mpsc::sync_channel(1);
        let client = Client::with_pace(settings(), Arc::new(Told(told))).unwrap();
        let error = stopped(&client, &model(dialect, &server), move || {
            waits.recv().unwrap();
        });
        assert_eq!(error.tries, 1);
        assert_eq!(server.requests().len(), 1);
    }
}
