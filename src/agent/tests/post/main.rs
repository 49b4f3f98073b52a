//! Messages to a web server that misbehaves in each way that there is.
#![expect(
    clippy::unwrap_used,
    reason = "what a test cannot set up fails it at once"
)]

#[path = "../web/mod.rs"]
mod web;

use std::time::Duration;

use web::{Act, WebServer};
use workerctl_agent::{Client, ClientSettings, POST_DEADLINE, Post, PostError, Posted, Stop};

const PATH: &str = "/services/T0SECRET/B%20SECRET?token=SECRETTOO";

fn client() -> Client {
    let settings = ClientSettings {
        proxy_from_environment: false,
        ..ClientSettings::default()
    };
    Client::new(settings).unwrap()
}

fn message(url: String) -> Post {
    Post {
        url,
        hides_host: true,
        headers: vec![("title", "w/s failed".to_owned())],
        body: "words".to_owned(),
        deadline: POST_DEADLINE,
    }
}

fn posted(act: Act) -> Result<Posted, PostError> {
    let server = WebServer::start(vec![act]);
    let result = client().post(&message(server.url() + PATH), &Stop::new());
    assert_eq!(server.came().len(), 1, "it is sent once");
    result
}

#[test]
fn a_message_is_sent_as_it_is_and_taken_by_any_success() {
    let server = WebServer::start(vec![Act::Answer(202, Vec::new(), "ok".to_owned())]);
    let taken = client().post(&message(server.url() + PATH), &Stop::new());
    let text = "ok".to_owned();
    assert_eq!(taken, Ok(Posted { status: 202, text }));
    let came = server.came().remove(0);
    assert_eq!(came.line, format!("POST {PATH}"));
    assert_eq!(
        (came.body.as_str(), came.headers["title"].as_str()),
        ("words", "w/s failed")
    );
}

#[test]
fn everything_else_is_a_failure_with_a_plain_reason() {
    let refused = |act| posted(act).unwrap_err().to_string();
    assert_eq!(refused(Act::status(500)), "status 500");
    let no = Act::Answer(404, Vec::new(), "no_service\n".to_owned());
    assert_eq!(refused(no), "status 404: no_service");
    let page = vec![("content-type", "text/html; charset=utf-8".to_owned())];
    assert_eq!(
        refused(Act::Answer(502, page, "<html>".to_owned())),
        "status 502"
    );
    assert_eq!(refused(Act::Close), "the connection broke before an answer");
    let to = vec![("location", "http://127.0.0.1:9/elsewhere".to_owned())];
    for status in [301, 307] {
        let why = refused(Act::Answer(status, to.clone(), String::new()));
        assert!(why.contains("which is not followed"), "{why}");
    }
    let closed = WebServer::start(vec![Act::Close]).url();
    let error = client().post(&message(closed), &Stop::new()).unwrap_err();
    assert!(matches!(error, PostError::Connect(_)), "{error}");
}

#[test]
fn a_wait_is_taken_from_the_answer() {
    for (value, expect) in [("120", Some(Duration::from_mins(2))), ("soon", None)] {
        let headers = vec![("retry-after", value.to_owned())];
        let error = posted(Act::Answer(429, headers, String::new())).unwrap_err();
        let PostError::Refused { retry_after, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(retry_after, expect);
    }
}

#[test]
fn an_answer_without_end_is_cut_and_its_status_counts() {
    for act in [Act::Flood, Act::Stammer] {
        let taken = posted(act(200)).unwrap();
        assert_eq!(taken.status, 200);
        assert!(taken.text.len() < 400, "{}", taken.text);
        let refused = posted(act(503)).unwrap_err().to_string();
        assert!(refused.starts_with("status 503: xxx"), "{refused}");
    }
}

#[test]
fn a_server_that_hangs_is_left_at_the_deadline_or_when_it_is_stopped() {
    let server = WebServer::start(vec![Act::Hang]);
    let client = client();
    let mut post = message(server.url());
    post.deadline = Duration::from_millis(50);
    let left = client.post(&post, &Stop::new());
    assert_eq!(left, Err(PostError::Timeout(post.deadline)));
    post.deadline = POST_DEADLINE;
    let stop = Stop::new();
    std::thread::scope(|scope| {
        let hanging = scope.spawn(|| client.post(&post, &stop));
        server.wait_for(2);
        // Another one is not held up by it.
        server.follow(vec![Act::status(200)]);
        assert!(client.post(&post, &Stop::new()).is_ok());
        stop.stop();
        assert_eq!(hanging.join().unwrap(), Err(PostError::Stopped));
    });
}

#[test]
fn nothing_of_the_address_is_repeated_though_the_server_does() {
    for status in [200, 404] {
        let said = format!("{:?}", posted(Act::Echo(status)));
        assert!(said.contains("nothing at"), "{said}");
        for secret in ["SECRET", "services", "token"] {
            assert!(!said.contains(secret), "{said}");
        }
    }
    for url in ["not an address", "https:///x"] {
        let error = client().post(&message(url.to_owned()), &Stop::new());
        let said = error.unwrap_err().to_string();
        assert!(!said.contains(url), "{said}");
    }
    let nowhere = "http://nowhere.invalid/SECRET".to_owned();
    let error = client().post(&message(nowhere), &Stop::new()).unwrap_err();
    assert!(!error.to_string().contains("nowhere.invalid"), "{error}");
}
