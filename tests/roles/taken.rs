//! Roles that are taken back, and names that a caller gives itself.

use std::io::Read;

use crate::roles::{Bed, NOBODY, Person};
use crate::workspace::api::Api;

const READER: Person = Person::new(54_041, &[]);
const ADMIN: Person = Person::new(NOBODY, &[]);

#[test]
fn a_stream_on_the_socket_ends_with_the_role_of_its_reader() {
    let Some(bed) = Bed::new("access: {read: {users: [54041]}}\n") else {
        return;
    };
    let daemon = bed.daemon();
    let run = bed.workspace.submit(&["asks"]);
    let (path, api) = (format!("/v1/runs/{run}/events"), Api::of(&bed.workspace));
    let streams = READER.does(|| ["/v1/events", &path].map(|path| api.send("GET", path, "", "")));
    let heads = streams.map(|mut stream| {
        let mut head = vec![0; 4_096];
        let length = stream.read(&mut head).unwrap();
        head.truncate(length);
        (stream, String::from_utf8(head).unwrap())
    });
    bed.configure("");
    bed.workspace.run(&["reload"]).expect_code(0);
    let other = bed.workspace.submit(&["say"]);
    bed.workspace.wait(&other);
    bed.workspace.run(&["cancel", &run]).expect_code(0);
    for (mut stream, head) in heads {
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        // It ends although its client does not leave. Signs of life would keep a read of everything waiting.
        let mut rest = String::new();
        let mut piece = [0; 4_096];
        loop {
            let length = stream.read(&mut piece).unwrap();
            rest.push_str(std::str::from_utf8(&piece[..length]).unwrap());
            let told = [&other, "cancelled"].map(|what| rest.contains(what));
            assert_eq!(told, [false, false], "{rest}");
            if length == 0 {
                break;
            }
        }
    }
    daemon.stop();
}

#[test]
fn another_user_is_recorded_by_the_name_that_the_kernel_gives() {
    let Some(bed) = Bed::new("access: {admin: {users: [65534]}}\n") else {
        return;
    };
    let daemon = bed.daemon();
    let api = Api::of(&bed.workspace);
    let body = r#"{"skill": "asks", "by": "root"}"#;
    let submitted = ADMIN.does(|| api.post("/v1/runs", body).value());
    let run = submitted["run"].as_str().unwrap();
    ADMIN.does(|| {
        api.post(&format!("/v1/runs/{run}/cancel"), r#"{"by": "root"}"#)
            .value()
    });
    let (_, detail) = bed.workspace.wait(run);
    assert_eq!(detail["submitted_by"], "nobody", "{detail}");
    for act in detail["audit"].as_array().unwrap() {
        assert_eq!(act["by"], "nobody", "{detail}");
    }
    daemon.stop();
}
