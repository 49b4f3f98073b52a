//! People of the machine who log in to the web page, and those who may not.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::roles::{Bed, NOBODY, Person, STRANGER};
use crate::workspace::eventually;

const READER: Person = Person::new(54_002, &[]);
const OF_GROUP: Person = Person::new(54_003, &[54_100]);

const LISTEN: &str = "web: {listen: '127.0.0.1:0'}\n";

/// The status and the body of an answer of the page's door.
fn ask(port: u16, method: &str, path: &str, token: &str, body: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    (status, serde_json::from_str(body).unwrap_or_default())
}

/// The address and the token of somebody who logs in.
fn log_in(bed: &Bed, who: Person) -> (u16, String) {
    let done = bed.run(who, &["web", "--json", "--no-open"]).expect_code(0);
    let told: Value = serde_json::from_str(&done.stdout).unwrap();
    let (address, code) = told["login"]
        .as_str()
        .unwrap()
        .split_once("#login=")
        .unwrap();
    let port = address
        .trim_start_matches("http://127.0.0.1:")
        .trim_end_matches('/');
    let port = port.parse().unwrap();
    let body = serde_json::json!({ "code": code }).to_string();
    let (status, login) = ask(port, "POST", "/v1/web/login", "", &body);
    assert_eq!(status, 200, "{login}");
    (port, login["token"].as_str().unwrap().to_owned())
}

#[test]
fn a_session_has_the_role_of_its_user_for_as_long_as_they_have_it() {
    let access = "access: {admin: {groups: [54100]}, read: {users: [54002]}}\n";
    let Some(bed) = Bed::new(&format!("{LISTEN}{access}")) else {
        return;
    };
    let daemon = bed.daemon();
    let ((port, reader), (_, of_group)) = (log_in(&bed, READER), log_in(&bed, OF_GROUP));
    let role = |token: &str| {
        let (status, session) = ask(port, "GET", "/v1/web/session", token, "");
        if status == 200 {
            session["role"].as_str().unwrap().to_owned()
        } else {
            format!("{status} {}", session["code"].as_str().unwrap())
        }
    };
    let submit = |token: &str| ask(port, "POST", "/v1/runs", token, r#"{"skill": "say"}"#).0;
    assert_eq!(
        (role(&reader), role(&of_group)),
        ("read".into(), "admin".into())
    );
    assert_eq!((submit(&reader), submit(&of_group)), (403, 201));
    // What was refused has become no run.
    let runs = bed
        .workspace
        .run(&["runs", "--json", "--socket", bed.socket().to_str().unwrap()]);
    assert_eq!(runs.value()["runs"].as_array().unwrap().len(), 1);
    // Whoever has no role gets no further than at the socket.
    assert_ne!(bed.run(STRANGER, &["web", "--json", "--no-open"]).code, 0);
    for (access, expected) in [
        (
            "access: {admin: {users: [54002]}}\n",
            ["admin", "401 login"],
        ),
        ("", ["401 login", "401 login"]),
        (access, ["read", "admin"]),
    ] {
        bed.configure(&format!("{LISTEN}{access}"));
        let told = eventually("the roles have changed", || {
            let roles = [role(&reader), role(&of_group)];
            (roles == expected).then_some(roles)
        });
        assert_eq!(told, expected);
    }
    // Each ends what is their own; root ends all.
    let ended = |who: Person| {
        let done = bed.run(who, &["web", "--logout", "--json"]).expect_code(0);
        done.value()["session_count"].as_u64().unwrap()
    };
    assert_eq!(ended(READER), 1);
    assert_eq!(
        (role(&reader), role(&of_group)),
        ("401 login".into(), "admin".into())
    );
    log_in(&bed, READER);
    assert_eq!(ended(Person::new(0, &[])), 2);
    assert_eq!(role(&of_group), "401 login");
    daemon.stop();
}

#[test]
fn who_may_read_may_hold_the_page_open_and_gets_no_more_by_it() {
    let Some(bed) = Bed::new("access: {read: {users: [54002, nobody]}}\n") else {
        return;
    };
    let daemon = bed.daemon();
    let socket = bed.socket();
    // Over the socket, since a command that holds it open does not end.
    let mut held = READER.does(|| {
        let mut stream = std::os::unix::net::UnixStream::connect(&socket).unwrap();
        let request = "POST /v1/web/open HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}";
        stream.write_all(request.as_bytes()).unwrap();
        stream
    });
    let mut told = String::new();
    while !told.contains("\n\n") {
        let mut piece = [0; 1_024];
        let count = held.read(&mut piece).unwrap();
        assert!(count > 0, "{told}");
        told.push_str(std::str::from_utf8(&piece[..count]).unwrap());
    }
    // Whose daemon may listen anywhere listens for others where they may.
    let (is_refused, refused) = READER.does(|| {
        let mut stream = std::os::unix::net::UnixStream::connect(&socket).unwrap();
        let request =
            "POST /v1/web/open HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\n{\"port\":80}";
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        (answer.contains("400 Bad Request"), answer)
    });
    assert!(is_refused && refused.contains("bad_port"), "{refused}");
    let opened = told.split_once("data: ").unwrap().1.lines().next().unwrap();
    let opened: Value = serde_json::from_str(opened).unwrap();
    let port = u16::try_from(opened["port"].as_u64().unwrap()).unwrap();
    for (who, expected) in [(Person::new(NOBODY, &[]), 403), (Person::new(0, &[]), 201)] {
        let body = who.does(|| {
            let mut stream = std::os::unix::net::UnixStream::connect(&socket).unwrap();
            let request = "POST /v1/web/codes HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}";
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer.split_once("\r\n\r\n").unwrap().1.to_owned()
        });
        let code: Value = serde_json::from_str(&body).unwrap();
        let body = serde_json::json!({ "code": code["code"] }).to_string();
        let (status, login) = ask(port, "POST", "/v1/web/login", "", &body);
        assert_eq!(status, 200, "{login}");
        let token = login["token"].as_str().unwrap();
        let (status, _) = ask(port, "POST", "/v1/runs", token, r#"{"skill": "say"}"#);
        assert_eq!(status, expected, "{login}");
    }
    drop(held);
    eventually("the page is not served any more", || {
        TcpStream::connect(("127.0.0.1", port)).err()
    });
    daemon.stop();
}
