//! `workerctl web`, and where the page is served.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdout, Stdio};

use rustix::process::{Signal, kill_process};
use serde_json::Value;

use crate::web::host::Host;
use crate::web::wire::Request;
use crate::workspace::daemon::Daemon;
use crate::workspace::{PATIENCE, Workspace, eventually, pid_of, wait_for};

/// A command that holds the page open.
struct Holder {
    child: Child,
    told: Value,
    /// Kept open, so that nothing it prints fails.
    _stdout: BufReader<ChildStdout>,
}

impl Holder {
    fn start(workspace: &Workspace, more: &[&str], variables: &[(&str, &str)]) -> Holder {
        let mut command = workspace.workerctl(&[&["--json", "web"], more].concat());
        command.envs(variables.iter().copied());
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        // One document on however many lines.
        let told = loop {
            assert!(stdout.read_line(&mut text).unwrap() > 0, "it ended: {text}");
            if let Ok(told) = serde_json::from_str(&text) {
                break told;
            }
        };
        Holder {
            child,
            told,
            _stdout: stdout,
        }
    }

    fn port(&self) -> u16 {
        let address = self.told["address"].as_str().unwrap();
        let port = address.strip_prefix("http://127.0.0.1:").unwrap();
        port.trim_end_matches('/').parse().unwrap()
    }

    fn code(&self) -> &str {
        let login = self.told["login"].as_str().unwrap();
        login.split_once("#login=").unwrap().1
    }

    fn interrupt(mut self) -> i32 {
        kill_process(pid_of(&self.child), Signal::INT).unwrap();
        self.end()
    }

    fn end(&mut self) -> i32 {
        let status = wait_for(&mut self.child, PATIENCE).unwrap();
        status.code().unwrap_or(-1)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_closed(port: u16) {
    eventually("the page is not served any more", || {
        std::net::TcpStream::connect(("127.0.0.1", port)).err()
    });
}

#[test]
fn the_page_is_served_while_somebody_holds_it_open() {
    let workspace =
        Workspace::with_skills("\n  - {id: hello, description: d, run: 'echo hello'}\n");
    let daemon = Daemon::start(&workspace);
    let first = Holder::start(&workspace, &[], &[]);
    let port = first.port();
    assert_eq!(first.told["persistent"], false);
    let body = serde_json::json!({"code": first.code()}).to_string();
    let login = Request::post("/v1/web/login", &body).ask(port).value();
    let token = login["token"].as_str().unwrap();
    assert_eq!(
        Request::get("/v1/status").token(token).ask(port).status,
        200
    );
    // Another one shares it, and it stays until both have left.
    let second = Holder::start(
        &workspace,
        &["--read-only", "--port", &port.to_string()],
        &[],
    );
    assert_eq!(second.port(), port);
    let other = workspace.run(&["--json", "web", "--port", "1024"]);
    assert_eq!(
        (other.code, other.refusal().as_str()),
        (8, "web_port"),
        "{other:?}"
    );
    assert_eq!(first.interrupt(), 0);
    assert_eq!(
        Request::get("/v1/status").token(token).ask(port).status,
        200
    );
    // A command that was killed leaves it too.
    let mut second = second;
    second.child.kill().unwrap();
    second.child.wait().unwrap();
    is_closed(port);
    // Anybody may have had the port meanwhile, and what an open page sends to it: the session is none any more.
    let mut third = Holder::start(&workspace, &["--port", &port.to_string()], &[]);
    assert_eq!(third.port(), port);
    assert_eq!(
        Request::get("/v1/status").token(token).ask(port).status,
        401
    );
    daemon.stop();
    assert_eq!(third.end(), 7);
    is_closed(port);
}

#[test]
fn without_a_daemon_there_is_no_page() {
    let workspace =
        Workspace::with_skills("\n  - {id: hello, description: d, run: 'echo hello'}\n");
    let done = workspace.run(&["web"]).expect_code(7);
    assert!(done.stderr.contains("`workerctl daemon`"), "{done:?}");
    let done = workspace.run(&["web", "--logout"]).expect_code(7);
    assert!(done.stderr.contains("`workerctl daemon`"), "{done:?}");
    let daemon = Daemon::start(&workspace);
    // Without a word in the configuration nothing is listened at.
    assert!(
        !daemon.log().contains("is served over TCP"),
        "{}",
        daemon.log()
    );
    daemon.stop();
}

#[test]
fn a_browser_is_given_a_file_and_no_secret() {
    let host = Host::start("");
    let programs = host.workspace.home.join("programs");
    std::fs::create_dir(&programs).unwrap();
    let opener = programs.join("xdg-open");
    let seen = host.workspace.home.join("seen");
    let script = format!(
        "#!/bin/sh\necho \"$*\" > {0}.new\nmv {0}.new {0}\n",
        seen.display()
    );
    std::fs::write(&opener, script).unwrap();
    std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = host.workspace.workerctl(&["web"]);
    let path = std::env::var("PATH").unwrap();
    command
        .env("PATH", format!("{}:{path}", programs.display()))
        .env("DISPLAY", ":0");
    let done = host.workspace.start(&mut command).end().expect_code(0);
    let login = done.stdout.trim();
    let given = eventually("the browser is opened", || {
        std::fs::read_to_string(&seen).ok()
    });
    let file = given.trim();
    assert!(
        !given.contains("login") && file.ends_with("/web.html"),
        "{given}"
    );
    // Commands of runs cannot read it there.
    assert!(file.starts_with(host.workspace.state().to_str().unwrap()));
    assert_eq!(
        std::fs::metadata(file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert!(std::fs::read_to_string(file).unwrap().contains(login));
    host.daemon.stop();
}

#[test]
fn an_address_that_others_reach_is_refused_by_name() {
    let workspace =
        Workspace::with_skills("\n  - {id: hello, description: d, run: 'echo hello'}\n");
    for (web, wanted) in [
        (
            "{listen: '0.0.0.0:8930'}",
            "could be reached by other machines",
        ),
        (
            "{listen: '[::]:8930'}",
            "could be reached by other machines",
        ),
        (
            "{listen: '192.168.1.5:8930'}",
            "ssh -L 8930:127.0.0.1:8930 HOST",
        ),
        ("{listen: localhost}", "is no address with a port"),
        ("{read_only: maybe}", "read_only"),
        ("{read_olny: true}", "did you mean `read_only`?"),
        ("8930", "a map such as `{listen: 127.0.0.1:8930}`"),
    ] {
        workspace.write("workerctl.yaml", &format!("web: {web}\n"));
        let done = workspace.run(&["check"]).expect_code(4);
        let told = format!("{}{}", done.stdout, done.stderr);
        assert!(told.contains(wanted), "{web}: {told}");
    }
    workspace.write(
        "workerctl.yaml",
        "web: {listen: '127.0.0.1:8930', read_only: true}\n",
    );
    workspace.run(&["check"]).expect_code(0);
    let config = workspace.run(&["config"]).expect_code(0).stdout;
    assert!(
        config.contains("web.listen") && config.contains("127.0.0.1:8930"),
        "{config}"
    );
    // A port that somebody else has keeps nothing from running.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    workspace.write("workerctl.yaml", &format!("web: {{listen: '{address}'}}\n"));
    let daemon = Daemon::start(&workspace);
    workspace.run(&["status"]).expect_code(0);
    let told = daemon.log();
    for part in [
        "the web page is not served",
        "another port with `web: {listen: …}` in workerctl.yaml",
    ] {
        assert!(told.contains(part), "{told}");
    }
    daemon.stop();
}
