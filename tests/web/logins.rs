//! Logging in and out, and what somebody who has may do.

use serde_json::json;
use workerctl::daemon::routes;

use crate::web::host::{Host, configure};
use crate::web::wire::{Events, Request};
use crate::workspace::gate::Gate;
use crate::workspace::{Workspace, eventually};

/// The path of a route for a run that is not there, so that whoever may ask is told so, and nothing happens.
fn path_of(path: &str) -> String {
    // A stream of everything would never end.
    let query = if path == "/v1/events" {
        "?runs=none"
    } else {
        ""
    };
    path.replace("{run}", "ZZZZZ").replace("{output}", "o") + query
}

#[test]
fn a_code_logs_in_once_and_its_token_does_what_its_user_may() {
    let host = Host::start("");
    let code = host.code(&[]);
    for wrong in ["", "x", &code[1..], &code.to_uppercase()] {
        let answer = host.log_in(wrong);
        assert_eq!(answer.told(), (401, "login".to_owned()), "{wrong}");
    }
    for body in [
        "{}",
        r#"{"code": 1}"#,
        r#"{"code": "a", "x": 1}"#,
        "[]",
        "x",
    ] {
        let answer = host.ask(&Request::post("/v1/web/login", body));
        assert_eq!(answer.told(), (400, "bad_body".to_owned()), "{body}");
    }
    let login = host.log_in(&code).value();
    assert_eq!(host.log_in(&code).told(), (401, "login".to_owned()));
    let token = login["token"].as_str().unwrap();
    assert_eq!(token.len(), 64);
    let session = host.get("/v1/web/session", token).value();
    for (name, value) in session.as_object().unwrap() {
        assert_eq!(login[name], *value, "{name}");
    }
    let own = workerctl::process::own_name();
    assert_eq!(session["user"], json!(own));
    assert_eq!(
        (&session["role"], &session["read_only"]),
        (&json!("admin"), &json!(false))
    );
    let submit = r#"{"skill": "asks", "by": "somebody else"}"#;
    let submitted = host.post("/v1/runs", token, submit).value();
    let run = submitted["run"].as_str().unwrap();
    let waiting = eventually("the run waits", || {
        let detail = host.get(&format!("/v1/runs/{run}"), token).value();
        Some(detail).filter(|detail| detail["approval"]["digest"].is_string())
    });
    // Who answers is whom the system knows, whatever the request says.
    let body = json!({"digest": waiting["approval"]["digest"], "by": "somebody else"});
    let answer = host.post(&format!("/v1/runs/{run}/approve"), token, &body.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    let again = host.post("/v1/runs", token, submit).value();
    let cancel = format!("/v1/runs/{}/cancel", again["run"].as_str().unwrap());
    let answer = host.post(&cancel, token, r#"{"by": "somebody else"}"#);
    assert_eq!(answer.status, 200, "{answer:?}");
    for run in [run, again["run"].as_str().unwrap()] {
        let detail = host.workspace.json(&["show", run]);
        for act in detail["audit"].as_array().unwrap() {
            assert_eq!(act["by"], json!(own), "{detail}");
        }
    }
    host.daemon.stop();
}

#[test]
fn nobody_asks_anything_without_a_session_but_who_answers() {
    let host = Host::start("");
    let root = host.workspace.root.to_str().unwrap();
    for route in routes() {
        let (method, path) = (route.method.as_str(), path_of(route.path));
        let request = match method {
            "POST" => Request::post(&path, "{}"),
            _ => Request::get(&path),
        };
        let answer = host.ask(&request);
        assert!(!answer.text().contains(root), "{path}: {answer:?}");
        match route.id {
            "version" => assert_eq!(answer.status, 200, "{path}"),
            "web_login" => assert_eq!(answer.status, 400, "{path}"),
            _ => assert_eq!(answer.told(), (401, "login".to_owned()), "{path}"),
        }
        let answer = host.ask(&request.token("x"));
        if route.id != "web_login" {
            assert_eq!(answer.told(), (401, "login".to_owned()), "{path}");
        }
    }
    let version = host.ask(&Request::get("/v1/version")).value();
    assert_eq!(
        (&version["workspace"], &version["pid"]),
        (&json!(""), &json!(null))
    );
    let token = host.token(&[]);
    let version = host.get("/v1/version", &token).value();
    assert_eq!(version["workspace"], json!(root));
    host.daemon.stop();
}

#[test]
fn a_session_that_may_only_read_changes_nothing_by_any_route() {
    let host = Host::start("");
    let (reader, admin) = (host.token(&["--read-only"]), host.token(&[]));
    let session = host.get("/v1/web/session", &reader).value();
    assert_eq!(
        (&session["role"], &session["read_only"]),
        (&json!("read"), &json!(true))
    );
    let mut refused = 0;
    for route in routes() {
        let path = path_of(route.path);
        if route.path.starts_with("/v1/web/") || route.id == "drain" {
            continue;
        }
        let (method, needs) = (route.method.as_str(), route.role.name());
        let ask = |token: &str| match method {
            "POST" => host.post(&path, token, "{}"),
            _ => host.get(&path, token),
        };
        let is_refused = |token: &str| {
            let answer = ask(token);
            answer.status == 403 && answer.code() == "role"
        };
        assert_eq!(is_refused(&reader), needs == "admin", "{path}");
        assert!(!is_refused(&admin), "{path}");
        refused += u32::from(needs == "admin");
    }
    assert!(refused > 10, "{refused}");
    let answer = host.post("/v1/drain", &reader, "{}");
    assert_eq!(answer.told(), (403, "role".to_owned()));
    let answer = host.post("/v1/runs", &reader, r#"{"skill": "hello"}"#);
    assert_eq!(answer.told(), (403, "role".to_owned()));
    // The page opens no doors and gives no codes, whoever asks.
    for path in ["/v1/web/open", "/v1/web/codes", "/v1/web/logout_all"] {
        let answer = host.post(path, &admin, "{}");
        assert_eq!(answer.told(), (404, "asked_elsewhere".to_owned()), "{path}");
    }
    host.daemon.stop();
}

#[test]
fn what_the_configuration_says_holds_for_sessions_that_are_open() {
    let host = Host::start(", read_only: true");
    let token = host.token(&[]);
    let role = || host.get("/v1/web/session", &token).value()["role"].clone();
    assert_eq!(role(), "read");
    for (more, expected) in [("", "admin"), (", read_only: true", "read")] {
        configure(&host.workspace, more);
        host.workspace.run(&["reload"]).expect_code(0);
        assert_eq!(role(), expected, "{more}");
    }
    host.daemon.stop();
}

#[test]
fn a_session_survives_the_death_of_the_daemon_and_no_code_does() {
    let host = Host::start("");
    let (token, gone, code) = (host.token(&[]), host.token(&[]), host.code(&[]));
    let logout = host.post("/v1/web/logout", &gone, "{}");
    assert_eq!(logout.value(), json!({"session_count": 1}));
    let host = host.killed_and_started();
    assert_eq!(host.get("/v1/status", &token).status, 200);
    assert_eq!(
        host.get("/v1/status", &gone).told(),
        (401, "login".to_owned())
    );
    assert_eq!(host.log_in(&code).told(), (401, "login".to_owned()));
    // Nothing on disk logs anybody in.
    for (path, bytes) in host.workspace.tree() {
        let shown = path.display();
        let holds = |secret: &str| xtest::contains(&bytes, secret.as_bytes());
        assert!(!holds(&token) && !holds(&code), "{shown}");
    }
    let mut files = vec![host.workspace.state().to_path_buf()];
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(
                std::fs::read_dir(path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            let found = xtest::contains(&bytes, token.as_bytes());
            assert!(!found, "{}", path.display());
        }
    }
    let (other, told) = (host.token(&[]), host.workspace.json(&["web", "--logout"]));
    assert_eq!(
        told,
        json!({"json_version": told["json_version"], "session_count": 2})
    );
    let host = host.killed_and_started();
    for token in [token, other] {
        assert_eq!(
            host.get("/v1/status", &token).told(),
            (401, "login".to_owned())
        );
    }
    host.daemon.stop();
}

#[test]
fn a_stream_ends_with_the_session_that_reads_it() {
    let skills = format!(
        "\n  - id: gated\n    description: d\n    run: |\n      echo before\n      {}\n",
        Gate::text("gate")
    );
    let workspace = Workspace::with_skills(&skills);
    let mut gate = Gate::new(&workspace, "gate");
    configure(&workspace, "");
    let host = Host::of(workspace);
    let (token, other) = (host.token(&[]), host.token(&[]));
    let submitted = host
        .post("/v1/runs", &token, r#"{"skill": "gated"}"#)
        .value();
    let run = submitted["run"].as_str().unwrap().to_owned();
    gate.reached();
    let follow = |token: &str| {
        let request = Request::get(&format!("/v1/runs/{run}/events")).token(token);
        let mut events = Events::of(request.send(host.port));
        assert!(events.reach("event: "), "it is told");
        events
    };
    let (mut ended, mut stays) = (follow(&token), follow(&other));
    assert_eq!(host.post("/v1/web/logout", &token, "{}").status, 200);
    assert!(
        !ended.reach("event: end"),
        "its stream is over before the run"
    );
    gate.pass();
    assert!(stays.reach("event: end"));
    host.daemon.stop();
    assert!(!stays.reach("event: "), "and nothing after it");
}

#[test]
fn a_command_of_a_run_gets_no_code_even_where_it_may_ask_the_engine() {
    let program = env!("CARGO_BIN_EXE_workerctl");
    let skills = format!(
        "\n  - id: curious\n    description: d\n    workerctl: true\n    run: '{program} web --no-open --json; {program} web --logout; true'\n"
    );
    let host = Host::with_skills("", &skills);
    let token = host.token(&[]);
    let done = host.workspace.run(&["run", "curious"]).expect_code(0);
    let told = format!("{}{}", done.stdout, done.stderr);
    assert_eq!(
        told.matches("is not available to commands of a run")
            .count(),
        2,
        "{told}"
    );
    assert!(!told.contains("#login="), "{told}");
    assert_eq!(host.get("/v1/status", &token).status, 200);
    host.daemon.stop();
}
