//! The web page under the units: served, logged in to, and there again after a kill.

use serde_json::{Value, json};

use crate::systemd_boot::guest::Guest;
use crate::systemd_boot::installed::{Installed, SERVICE, WORKSPACE};
use crate::workspace::eventually;

/// The answer to a request that is sent to a port inside.
fn ask(guest: &Guest<'_>, port: u16, request: &str) -> String {
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && printf '%s' \"$0\" >&3 && cat <&3");
    guest.run(&["bash", "-c", &script, request]).stdout
}

fn get(path: &str, port: u16, more: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{more}\r\n")
}

/// The page is answered at this port, sooner or later.
pub(crate) fn is_there(guest: &Guest<'_>, port: u16) {
    eventually("the page is served", || {
        let page = ask(guest, port, &get("/", port, ""));
        (page.starts_with("HTTP/1.1 200 ") && page.contains("/main.js\"")).then_some(())
    });
}

/// Adds to a configuration that the page is served at this port.
pub(crate) fn configured(former: &str, port: u16) -> String {
    format!("{former}\nweb: {{listen: '127.0.0.1:{port}'}}\n")
}

pub(crate) fn is_served_by_the_service(installed: &Installed<'_>) {
    let (guest, port) = (installed.guest, 8_930);
    let configuration = format!("{WORKSPACE}/workerctl.yaml");
    let former = guest.expect(&["cat", &configuration]);
    guest.write(&configuration, &configured(&former, port));
    installed.systemctl(&["restart", SERVICE]);
    is_there(guest, port);
    let told = installed.workerctl(&["--json", "web", "--no-open"]).value();
    let (_, code) = told["login"]
        .as_str()
        .unwrap()
        .split_once("#login=")
        .unwrap();
    let body = json!({ "code": code }).to_string();
    let login = format!(
        "POST /v1/web/login HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = ask(guest, port, &login);
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let login: Value = serde_json::from_str(body).unwrap();
    let token = format!(
        "Authorization: Bearer {}\r\n",
        login["token"].as_str().unwrap()
    );
    let is_logged_in = || {
        let answer = ask(guest, port, &get("/v1/status", port, &token));
        answer.starts_with("HTTP/1.1 200 ")
    };
    assert!(is_logged_in());
    // The session is one after a kill too: its port is the configuration's.
    let former = installed.main_process();
    installed.signal("KILL");
    installed.await_other_than(former);
    is_there(guest, port);
    assert!(is_logged_in());
}
