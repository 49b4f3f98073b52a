//! Who is let in.

use std::os::unix::fs::PermissionsExt;

use crate::mcp_http::host::{Host, start, workspace};
use crate::mcp_http::session::{KINDS, Session, initialize};
use crate::mcp_http::wire::{Answer, Place};

fn hello() -> Vec<u8> {
    initialize("2025-11-25").to_string().into_bytes()
}

#[test]
fn tcp_wants_the_token() {
    let host = Host::start("");
    let token = &host.token;
    assert_eq!(token.len(), 64);
    let mode = host
        .workspace
        .state()
        .join("mcp-token")
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    for (given, challenge) in [
        (String::new(), "bearer realm=\"workerctl\""),
        (
            format!("\nAuthorization: Basic {token}"),
            "bearer realm=\"workerctl\"",
        ),
        (
            "\nAuthorization: Bearer".to_owned(),
            "bearer realm=\"workerctl\"",
        ),
        (
            format!("\nAuthorization: Bearer {}", &token[1..]),
            "invalid_token",
        ),
        (format!("\nAuthorization: Bearer {token}0"), "invalid_token"),
        (
            "\nAuthorization: Bearer wrong-guess-0123456789".to_owned(),
            "invalid_token",
        ),
    ] {
        let answer = host.tcp.open("POST", &format!("{KINDS}{given}"), &hello());
        assert_eq!(answer.status, 401, "{given}");
        let told = answer.header("www-authenticate").unwrap_or_default();
        assert!(told.contains(challenge), "{given}: {told}");
    }
    let two = format!("{KINDS}\nAuthorization: Bearer {token}\nAuthorization: Bearer x");
    assert_eq!(host.tcp.open("POST", &two, &hello()).status, 401);
    assert_eq!(
        host.tcp
            .open("GET", "Accept: text/event-stream", b"")
            .status,
        401
    );
    let small = format!("{KINDS}\nauthorization: bearer {token}");
    assert_eq!(host.tcp.open("POST", &small, &hello()).status, 200);
    // Its permissions are what the socket asks for.
    assert_eq!(host.socket.open("POST", KINDS, &hello()).status, 200);
    let log = host.daemon.log();
    assert!(
        !log.contains(token.as_str()) && !log.contains("wrong-guess"),
        "{log}"
    );
    host.daemon.stop();
}

#[test]
fn nothing_else_is_served_over_tcp() {
    let host = Host::start("");
    for path in ["/v1/version", "/v1/status", "/", "/mcp/", "/mcp/x"] {
        let head = format!(
            "GET {path} HTTP/1.1\nHost: localhost\nAuthorization: Bearer {}",
            host.token
        );
        let answer = Answer::read(host.tcp.send(&head, b""));
        assert_eq!(answer.status, 404, "{path}");
    }
    let head = "GET /v1/version HTTP/1.1\nHost: localhost";
    assert_eq!(Answer::read(host.socket.send(head, b"")).status, 200);
}

#[test]
fn pages_and_foreign_names_are_refused() {
    let host = Host::start(", origins: ['http://localhost:6274']");
    let known = format!("{KINDS}\nAuthorization: Bearer {}", host.token);
    for named in [
        "evil.example",
        "evil.example:8931",
        "localhost.evil.example",
        "10.0.0.1",
        "",
    ] {
        let answer = host
            .tcp
            .open("POST", &format!("Host: {named}\n{known}"), &hello());
        assert_eq!(answer.status, 403, "{named}");
    }
    for named in ["localhost", "localhost:1", "127.0.0.1:80", "[::1]:80"] {
        let answer = host
            .tcp
            .open("POST", &format!("Host: {named}\n{known}"), &hello());
        assert_eq!(answer.status, 200, "{named}");
    }
    for place in [&host.tcp, &host.socket] {
        for origin in [
            "null",
            "http://evil.example",
            "http://localhost",
            "http://localhost:62740",
        ] {
            let answer = place.open("POST", &format!("{known}\nOrigin: {origin}"), &hello());
            assert_eq!(answer.status, 403, "{origin}");
            assert_eq!(answer.header("access-control-allow-origin"), None);
        }
    }
    let page = "Origin: http://localhost:6274";
    let answer = host.tcp.open("POST", &format!("{known}\n{page}"), &hello());
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.header("access-control-allow-origin"),
        Some("http://localhost:6274")
    );
    assert_eq!(
        host.tcp
            .open("POST", &format!("{KINDS}\n{page}"), &hello())
            .status,
        401
    );
    // Browsers ask first, without a token.
    let asked = format!("{page}\nAccess-Control-Request-Method: POST");
    let answer = host.tcp.open("OPTIONS", &asked, b"");
    assert_eq!(answer.status, 204);
    assert!(
        answer
            .header("access-control-allow-headers")
            .unwrap()
            .contains("authorization")
    );
    let foreign = "Origin: http://evil.example\nAccess-Control-Request-Method: POST";
    assert_eq!(host.tcp.open("OPTIONS", foreign, b"").status, 403);
    assert_eq!(host.tcp.open("OPTIONS", "", b"").status, 401);
}

#[test]
fn a_token_of_the_services_own_is_taken_from_its_file() {
    let (workspace, gate) = workspace(", token_file: '~/token'");
    let file = workspace.home.join("token");
    let refused = |why: &str| {
        let done = workspace.run(&["daemon"]).expect_code(2);
        assert!(done.stderr.contains(why), "{why}: {done:?}");
        assert!(!done.stderr.contains("0123456789abcdef"), "{done:?}");
    };
    refused("No such file");
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        &file,
        rustix::fs::Mode::from_raw_mode(0o600),
    )
    .unwrap();
    refused("it is no file");
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, "0123456789abcdef\n").unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    refused("others may use it");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&file, Some(65_534), None).unwrap();
        refused("it belongs to another user");
        std::os::unix::fs::chown(&file, Some(0), None).unwrap();
    } else {
        println!("skipped: a token of another user needs root");
    }
    std::fs::write(&file, "short\n").unwrap();
    refused("it holds no token");
    std::fs::write(&file, "0123456789abcdef 0123456789abcdef\n").unwrap();
    refused("it holds no token");
    std::fs::write(&file, "0123456789abcdef\n").unwrap();
    let mut host = Host::of(workspace, gate);
    assert_eq!(host.token, "", "none is made where one is named");
    "0123456789abcdef".clone_into(&mut host.token);
    assert_eq!(Session::over_tcp(&host).status(), 200);
    host.daemon.stop();
}

#[test]
fn a_credential_of_the_unit_is_found() {
    let (workspace, _gate) = workspace(", token_file: '$CREDENTIALS_DIRECTORY/token'");
    let done = workspace.run(&["daemon"]).expect_code(2);
    assert!(done.stderr.contains("LoadCredential"), "{done:?}");
    let directory = workspace.home.join("credentials");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("token"), "0123456789abcdef").unwrap();
    // As systemd shows a file that an access list lets a service read.
    std::fs::set_permissions(directory.join("token"), PermissionsExt::from_mode(0o440)).unwrap();
    let mut command = workspace.workerctl(&["daemon"]);
    command.env("CREDENTIALS_DIRECTORY", &directory);
    crate::workspace::daemon::Daemon::start_by(&workspace, command).stop();
}

#[test]
fn a_port_that_is_taken_ends_the_start() {
    let held = crate::workspace::listen_on_quiet_port();
    let address = held.local_addr().unwrap();
    let (workspace, _gate) = workspace("");
    workspace.write(
        "workerctl.yaml",
        &format!("mcp: {{http: {{listen: '{address}'}}}}\n"),
    );
    let done = workspace.run(&["daemon"]);
    assert_ne!(done.code, 0);
    let told = &done.stderr;
    assert!(
        told.contains(&format!("cannot listen on `{address}`")),
        "{told}"
    );
    assert!(told.contains("another port with"), "{told}");
    drop(held);
    start(&workspace).stop();
}

#[test]
fn settings_are_checked_where_they_are_written() {
    let (workspace, _gate) = workspace("");
    let table = [
        (
            "listen: '0.0.0.0:8931'",
            "could be reached by other machines",
        ),
        (
            "listen: '192.168.1.5:8931'",
            "could be reached by other machines",
        ),
        ("listen: '[::]:8931'", "could be reached by other machines"),
        ("listen: localhost", "is no address with a port"),
        ("listen: 8931", "listen"),
        ("token_file: token", "is not found from here"),
        ("origins: [localhost]", "is no origin"),
        ("origins: ['http://localhost:1/path']", "is no origin"),
        ("sessions: 0", "sessions"),
        ("idle: 25h", "is more than"),
        ("ports: [1]", "ports"),
    ];
    for (written, told) in table {
        workspace.write("workerctl.yaml", &format!("mcp:\n  http:\n    {written}\n"));
        let done = workspace.run(&["check"]);
        let said = format!("{}{}", done.stdout, done.stderr);
        assert!(said.contains(told), "{written}: {said}");
        assert!(said.contains("workerctl.yaml:3:"), "{written}: {said}");
        if !written.starts_with("ports") {
            assert_ne!(done.code, 0, "{written}: {said}");
        }
    }
    // What cannot be read is not served, and said.
    workspace.write("workerctl.yaml", "mcp: {http: {listen: '0.0.0.0:0'}}\n");
    let daemon = start(&workspace);
    let log = daemon.log();
    assert!(log.contains("could be reached by other machines"), "{log}");
    assert!(!log.contains("served over TCP"), "{log}");
    daemon.stop();
    for written in [
        "mcp: 5\n",
        "mcp: {http: 5}\n",
        "mcp: {http: {listen: ''}}\n",
        // With another token than was meant it must not be served.
        "mcp: {http: {listen: '127.0.0.1:0', token_file: here}}\n",
        "mcp: {http: {listen: '127.0.0.1:0', token_file: ''}}\n",
    ] {
        workspace.write("workerctl.yaml", written);
        let daemon = start(&workspace);
        let log = daemon.log();
        assert!(log.contains(" workerctl.yaml:1:"), "{written}: {log}");
        assert!(!log.contains("served over TCP"), "{written}: {log}");
        daemon.stop();
    }
}

#[test]
fn an_address_of_the_newer_kind_is_served_too() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return crate::workspace::skip("there is no IPv6 here");
    }
    let (workspace, _gate) = workspace("");
    workspace.write("workerctl.yaml", "mcp: {http: {listen: '[::1]:0'}}\n");
    let daemon = start(&workspace);
    assert!(
        daemon.log().contains("address=\"[::1]:"),
        "{}",
        daemon.log()
    );
    daemon.stop();
}

#[test]
fn without_the_setting_there_is_no_tcp() {
    let (workspace, _gate) = workspace("");
    workspace.write("workerctl.yaml", "{}\n");
    let daemon = start(&workspace);
    assert!(!daemon.log().contains("TCP"), "{}", daemon.log());
    assert!(!workspace.state().join("mcp-token").exists());
    let socket = Place::Socket(workspace.home.join("mcp.sock"));
    assert_eq!(socket.open("POST", KINDS, &hello()).status, 200);
    daemon.stop();
}
