//! Instructions that the service has a model execute, with what its unit lets it do.

use std::fs::{self, File};
use std::os::fd::AsFd;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::systemd_boot::guest::Guest;
use crate::systemd_boot::installed::{Installed, SERVICE, WORKSPACE};
use crate::systemd_boot::server::ModelServer;
use crate::systemd_boot::server::script::{Reply, Say};

/// What the credential holds.
const KEY: &str = "sk-of-the-service-0f1e2d3c";

/// A mutating skill, and one that changes nothing.
pub(crate) const SKILLS: &str = "
  - {id: think, description: changes a file, mutating: true, instructions: Change it., verification: [{command: grep -q model thought.txt}]}
  - {id: look, description: reads, instructions: Read it.}
";

/// A refused call of the kernel would kill the service here.
pub(crate) fn execute_instructions(installed: &Installed<'_>) {
    let guest = installed.guest;
    let source = "/etc/workerctl/model-key";
    guest.write(source, KEY);
    installed.settings(&format!(
        "SystemCallErrorNumber=kill\nLoadCredential=model-key:{source}\n"
    ));
    let server = within(guest, vec![text("ok")]);
    let path = guest.path(WORKSPACE).join("workerctl.yaml");
    let before = fs::read_to_string(&path).unwrap();
    let model = format!(
        "models:\n  default: {{provider: anthropic, model: m, base_url: '{}', key: 'credential:model-key'}}\n",
        server.url()
    );
    fs::write(&path, format!("{before}{model}")).unwrap();
    installed.systemctl(&["restart", SERVICE]);
    let tested = installed.workerctl(&["models", "test"]).expect_code(0);
    assert!(tested.stdout.contains("answers as m"), "{tested:?}");

    server.follow(vec![
        call(
            "write_file",
            r#"{"path": "thought.txt", "content": "by a model\n"}"#,
        ),
        call(
            "bash",
            r#"{"command": "cat thought.txt; echo x > /srv/workerctl/stray"}"#,
        ),
        call("grep", r#"{"pattern": "model"}"#),
        text("done"),
    ]);
    let done = installed
        .workerctl(&["run", "minds/think", "--json"])
        .expect_code(0);
    let shown = done.value();
    assert_eq!(
        shown["attempts"][0]["execution"]["sandbox_level"], 1,
        "{shown}"
    );
    assert!(shown["summary"]["commit"].is_string(), "{shown}");
    let results = server.requests().pop().unwrap().body.to_string();
    assert!(results.contains("thought.txt:1:by a model"), "{results}");
    assert!(!guest.path(WORKSPACE).join("stray").exists());

    server.follow(vec![
        call(
            "bash",
            r#"{"command": "cat tracked.txt; echo x > tracked.txt"}"#,
        ),
        call("read_file", r#"{"path": "/var/lib/workerctl/store/id"}"#),
        text("done"),
    ]);
    installed.workerctl(&["run", "minds/look"]).expect_code(0);
    let results = server.requests().pop().unwrap().body.to_string();
    assert!(results.contains("Permission denied"), "{results}");

    for entry in fs::read_dir(guest.path(WORKSPACE).join("workspace/threads"))
        .unwrap()
        .flatten()
    {
        let text = fs::read(entry.path()).unwrap_or_default();
        let found = xtest::contains(&text, KEY.as_bytes());
        assert!(!found, "the key is in {}", entry.path().display());
    }
    fs::write(&path, before).unwrap();
    installed.settings("");
    installed.systemctl(&["restart", SERVICE]);
}

/// A model server that the guest can reach: it listens in its network.
fn within(guest: &Guest<'_>, script: Vec<Reply>) -> ModelServer {
    let network = File::open(guest.network()).unwrap();
    let thread = std::thread::spawn(move || {
        move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        ModelServer::start(script)
    });
    thread.join().unwrap()
}

fn call(name: &str, arguments: &str) -> Reply {
    Say::nothing().call(name, arguments).into()
}

fn text(text: &str) -> Reply {
    Say::text(text).into()
}
