//! Webhooks and mails of `notify`, by a real daemon and a web server on the loopback device that plays every failure.

use crate::web_server as web;
use crate::workspace;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;
use web::{Act, Came, WebServer};
use workspace::daemon::Daemon;
use workspace::{Workspace, eventually};

const SKILLS: &str = r"
  - {id: fickle, description: d, run: 'test -e ../good'}
  - {id: other, description: d, run: 'test -e ../good'}
  - {id: fine, description: d, run: 'true'}
";

/// Path and query of every address here.
const SECRET: &str = "/hooks/T0PSECRET?token=ALSOSECRET";

/// A workspace that tells failures and recoveries in this form; the address is in the variable `HOOK`.
fn workspace(form: &str) -> Workspace {
    let workspace = Workspace::with_skills(SKILLS);
    let channel = format!("{{webhook: env:HOOK, form: {form}}}");
    workspace.write(
        "workerctl.yaml",
        &format!("notify: {{on_failure: {channel}, on_recovery: {channel}}}\n"),
    );
    workspace
}

fn daemon(workspace: &Workspace, server: &WebServer) -> Daemon {
    let address = server.url() + SECRET;
    // Whatever is logged anywhere, of libraries too.
    let more = [("HOOK", address.as_str()), ("WORKERCTL_LOG", "trace")];
    Daemon::start_with(workspace, &more)
}

fn run(workspace: &Workspace, skill: &str) -> String {
    let run = workspace.submit(&[skill]);
    workspace.wait(&run);
    run
}

fn undelivered(workspace: &Workspace) -> Vec<Value> {
    workspace.json(&["status"])["undelivered"]
        .as_array()
        .unwrap()
        .clone()
}

/// Waits until nothing is left to be told.
fn all_delivered(workspace: &Workspace) {
    eventually("everything is delivered", || {
        undelivered(workspace).is_empty().then_some(())
    });
}

/// Waits until so many tries were in vain, and answers how the last ended.
fn in_vain(workspace: &Workspace, tries: u64) -> String {
    eventually("a try in vain", || {
        let shown = undelivered(workspace).first()?.clone();
        let count = shown["attempt_count"].as_u64().unwrap();
        (count >= tries).then(|| shown["message"].as_str().unwrap().to_owned())
    })
}

/// Has everything tried again at once, as somebody does who repaired something.
fn try_again(workspace: &Workspace) {
    workspace.run(&["reload"]).expect_code(0);
}

/// Fails where a piece of the address stands in a file of the state, of threads or of logs.
fn assert_secret(workspace: &Workspace, more: &[&str]) {
    let mut looked_at = 0;
    let roots = [
        workspace.state().to_owned(),
        workspace.root.join("workspace"),
        workspace.root.join(".workerctl"),
    ];
    for root in roots.iter().filter(|root| root.exists()) {
        for path in workspace::observed::files_below(root, &|_: &Path| true) {
            let bytes = std::fs::read(&path).unwrap();
            looked_at += 1;
            for secret in ["T0PSECRET", "ALSOSECRET"] {
                let found = xtest::contains(&bytes, secret.as_bytes());
                assert!(!found, "{secret} is in {}", path.display());
            }
        }
    }
    assert!(looked_at > 3, "there is no state at {roots:?}");
    for text in more {
        assert!(!text.contains("SECRET"), "{text}");
    }
}

fn told(came: &Came) -> Value {
    serde_json::from_str(&came.body).unwrap()
}

#[test]
fn a_streak_is_told_once_and_its_end_once_in_each_form() {
    for form in ["json", "slack", "ntfy", "healthchecks"] {
        let server = WebServer::start(vec![Act::status(200)]);
        let workspace = workspace(form);
        let daemon = daemon(&workspace, &server);
        let first = run(&workspace, "fickle");
        server.wait_for(1);
        run(&workspace, "fickle");
        workspace.write("../good", "");
        run(&workspace, "fickle");
        let came = server.wait_for(2);
        run(&workspace, "fickle");
        daemon.stop();
        assert_eq!(server.came().len(), 2, "{form}");
        let (failed, recovered) = (&came[0], &came[1]);
        let shows = format!("More: workerctl show {first}");
        let plain = format!("POST {SECRET}");
        match form {
            "json" => {
                let event = told(failed);
                assert_eq!(event["hook_event_name"], "RunFailed");
                assert_eq!(
                    (&event["run"], &event["test"]),
                    (&first.as_str().into(), &false.into())
                );
                let text = event["text"].as_str().unwrap();
                assert!(
                    text.starts_with("w/fickle failed\n1 failure since "),
                    "{text}"
                );
                assert!(text.contains(&shows) && text.contains("\nWhy: "), "{text}");
                let text = told(recovered)["text"].as_str().unwrap().to_owned();
                assert!(
                    text.contains(", after 2 failures in a row since "),
                    "{text}"
                );
            }
            "slack" => {
                let text = told(failed)["text"].as_str().unwrap().to_owned();
                assert!(text.starts_with("*w/fickle failed*\n1 failure"), "{text}");
            }
            "ntfy" => {
                let header = |name: &str| failed.headers[name].as_str();
                assert_eq!(header("title"), "w/fickle failed");
                assert_eq!((header("priority"), header("tags")), ("high", "warning"));
                assert!(failed.body.contains(&shows), "{}", failed.body);
                assert_eq!(recovered.headers["tags"], "white_check_mark");
            }
            _ => {
                assert_eq!(failed.line, "POST /hooks/T0PSECRET/fail?token=ALSOSECRET");
                assert_eq!(recovered.line, plain);
                assert!(
                    failed.body.starts_with("w/fickle failed\n"),
                    "{}",
                    failed.body
                );
            }
        }
        if form != "healthchecks" {
            assert_eq!(failed.line, plain);
        }
        assert_secret(&workspace, &[]);
    }
}

#[test]
fn every_failure_of_a_server_is_told_again_until_it_takes_the_notice() {
    let to = vec![("location", "http://127.0.0.1:9/elsewhere".to_owned())];
    let wait = vec![("retry-after", "1800".to_owned())];
    let script = vec![
        Act::status(500),
        Act::Close,
        Act::Answer(302, to, String::new()),
        Act::Echo(404),
        Act::Flood(503),
        Act::Answer(429, wait, "slow down".to_owned()),
        Act::Stammer(200),
    ];
    let expect = [
        "status 500",
        "the connection broke",
        "redirected (status 302)",
        "status 404: nothing at",
        "status 503: xxxx",
        "status 429: slow down",
    ];
    let server = WebServer::start(script);
    let workspace = workspace("slack");
    let daemon = daemon(&workspace, &server);
    run(&workspace, "fickle");
    for (tries, why) in (1..).zip(expect) {
        let said = in_vain(&workspace, tries);
        assert!(
            said.starts_with("webhook env:HOOK: ") && said.contains(why),
            "{said}"
        );
        if tries < 6 {
            try_again(&workspace);
        }
    }
    // The server asked for half an hour; the own wait is an hour by then, and the longer one counts.
    let shown = undelivered(&workspace).remove(0);
    let at = |text: &str| workerctl::model::Timestamp::parse(text).unwrap();
    let next = at(shown["next_attempt_at"].as_str().unwrap());
    let left = next.millis_since(at(shown["at"].as_str().unwrap()));
    assert!(left >= 3_600_000, "{shown}");
    let doctor = workspace.run(&["doctor"]).expect_code(1);
    assert!(doctor.stdout.contains("notify test"), "{doctor:?}");
    try_again(&workspace);
    all_delivered(&workspace);
    assert_eq!(server.came().len(), 7);
    let log = daemon.log();
    daemon.stop();
    assert_secret(&workspace, &[&log, &doctor.stdout, &doctor.stderr]);
}

#[test]
fn what_an_address_is_not_is_told_without_it_and_a_mended_one_is_used() {
    let server = WebServer::start(vec![Act::status(200)]);
    let workspace = workspace("json");
    let channel = "{webhook: 'file:~/hook'}";
    workspace.write(
        "workerctl.yaml",
        &format!("notify: {{on_failure: {channel}}}\n"),
    );
    let daemon = Daemon::start(&workspace);
    run(&workspace, "fickle");
    let said = in_vain(&workspace, 1);
    assert!(
        said.starts_with("webhook file:~/hook: `file:~/hook` cannot be read"),
        "{said}"
    );
    let hook = workspace.home.join("hook");
    let mut tries = 1;
    for (content, why) in [
        ("ftp://SECRET/x", "neither `https://` nor `http://`"),
        ("https://u:SECRET@h/", "a user or a password"),
        ("SECRET words", "no address"),
        ("http://127.0.0.1:9/SECRET", "no connection"),
    ] {
        std::fs::write(&hook, content).unwrap();
        try_again(&workspace);
        tries += 1;
        let said = in_vain(&workspace, tries);
        assert!(said.contains(why) && !said.contains("SECRET"), "{said}");
    }
    std::fs::write(&hook, server.url() + SECRET + "\n").unwrap();
    try_again(&workspace);
    server.wait_for(1);
    all_delivered(&workspace);
    let log = daemon.log();
    daemon.stop();
    assert_secret(&workspace, &[&log]);
}

#[test]
fn no_command_of_a_skill_reads_the_file_of_an_address() {
    if !workerctl::process::walls_stand() {
        return workspace::skip("the kernel has no Landlock that is a wall");
    }
    let skills = "\n  - {id: peek, description: d, run: 'cat ../home/plain; cat ../home/hook'}\n";
    let workspace = Workspace::with_skills(skills);
    let worker = workspace.read("workers/w/worker.yaml").unwrap();
    // The grant of the whole home directory means what is secret in it too.
    let worker = worker.replacen("sandbox: {write: [~/]}\n", "", 1);
    let notify = "notify: {on_failure: {webhook: 'file:~/hook'}}\n";
    workspace.write("workers/w/worker.yaml", &(worker + notify));
    workspace.write("../home/hook", "http://127.0.0.1:9/T0PSECRET");
    workspace.write("../home/plain", "plain words");
    let daemon = Daemon::start(&workspace);
    let run = run(&workspace, "peek");
    let logs = workspace.run(&["logs", &run]).stdout;
    daemon.stop();
    assert!(logs.contains("plain words"), "{logs}");
    assert_secret(&workspace, &[&logs]);
}

#[test]
fn an_address_that_is_written_is_shown_by_its_host_alone() {
    let server = WebServer::start(vec![Act::Echo(500)]);
    let workspace = workspace("json");
    let written = format!(
        "notify: {{on_failure: {{webhook: '{}{SECRET}', form: slack}}}}\n",
        server.url()
    );
    workspace.write("workerctl.yaml", &written);
    let daemon = Daemon::start(&workspace);
    run(&workspace, "fickle");
    let said = in_vain(&workspace, 1);
    assert!(
        said.contains(&format!("webhook {}/...: status 500", server.url())),
        "{said}"
    );
    let mut shown = vec![daemon.log(), said];
    for arguments in [
        &["check"][..],
        &["config"],
        &["config", "--json"],
        &["status"],
        &["doctor"],
        &["notify", "test"],
        &["workers", "w", "--json"],
        &["-vv", "check", "--json"],
    ] {
        let done = workspace.run(arguments);
        shown.extend([done.stdout, done.stderr]);
    }
    assert!(
        shown.iter().any(|text| text.contains("webhook-literal")),
        "{shown:?}"
    );
    let config = workspace.json(&["config"]).to_string();
    assert!(
        config.contains(&format!("{}/...", server.url())),
        "{config}"
    );
    let texts: Vec<&str> = shown.iter().map(String::as_str).collect();
    daemon.stop();
    assert_secret(&workspace, &texts);
}

#[test]
fn a_server_that_hangs_holds_up_neither_runs_nor_other_notices_nor_the_end_of_the_daemon() {
    let server = WebServer::start(vec![Act::Hang]);
    let workspace = workspace("json");
    let daemon = daemon(&workspace, &server);
    run(&workspace, "fickle");
    server.wait_for(1);
    // While it hangs: runs go on, and others are told.
    server.follow(vec![Act::status(200)]);
    run(&workspace, "fine");
    run(&workspace, "other");
    let came = server.wait_for(2);
    assert_eq!(told(&came[1])["skill"], "other");
    assert!(undelivered(&workspace).is_empty(), "it still hangs");
    // What was stopped is told by the next.
    daemon.stop();
    assert_eq!(server.came().len(), 2);
    let next = self::daemon(&workspace, &server);
    let came = server.wait_for(3);
    assert_eq!(told(&came[2])["skill"], "fickle");
    next.stop();
}

#[test]
fn nothing_is_lost_over_kills_and_nothing_is_told_twice_but_what_a_kill_cut_off() {
    let server = WebServer::start(vec![Act::status(500)]);
    let workspace = workspace("json");
    let mut running = daemon(&workspace, &server);
    run(&workspace, "fickle");
    // Between tries: the next engine tries at once.
    in_vain(&workspace, 1);
    running.kill();
    server.follow(vec![Act::Hang]);
    running = daemon(&workspace, &server);
    server.wait_for(2);
    // During a try: whether it arrived, nobody knows.
    running.kill();
    server.follow(vec![Act::status(200)]);
    running = daemon(&workspace, &server);
    server.wait_for(3);
    all_delivered(&workspace);
    // Once that is stored, a kill changes nothing any more.
    running.kill();
    let last = daemon(&workspace, &server);
    workspace.write("../good", "");
    run(&workspace, "fickle");
    let came = server.wait_for(4);
    last.stop();
    assert_eq!(server.came().len(), 4);
    let events: Vec<String> = came
        .iter()
        .map(|came| told(came)["hook_event_name"].to_string())
        .collect();
    assert_eq!(
        events[..3],
        ["\"RunFailed\"", "\"RunFailed\"", "\"RunFailed\""]
    );
    assert_eq!(events[3], "\"RunRecovered\"");
    assert_eq!(told(&came[0])["run"], told(&came[2])["run"]);
}

/// Puts a `sendmail` first in the `PATH` of a daemon, which keeps what it is given.
fn with_sendmail(workspace: &Workspace) -> String {
    let bin = workspace.home.join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let program = bin.join("sendmail");
    let text =
        "#!/bin/sh\necho \"$@\" > ../arguments\ncat > ../mail.part && mv ../mail.part ../mail\n";
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{}:{path}", bin.display())
}

#[test]
fn a_mail_is_handed_to_the_mail_server() {
    let workspace = Workspace::with_skills(SKILLS);
    let config = "notify: {on_failure: {sendmail: [ada@example.org, root]}}\n";
    workspace.write("workerctl.yaml", config);
    let path = with_sendmail(&workspace);
    let daemon = Daemon::start_with(&workspace, &[("PATH", &path)]);
    let failed = run(&workspace, "fickle");
    let mail = eventually("a mail", || workspace.read("../mail"));
    daemon.stop();
    assert_eq!(workspace.read("../arguments").unwrap(), "-t -i\n");
    let (head, body) = mail.split_once("\n\n").unwrap();
    assert!(
        head.starts_with("To: ada@example.org,\n root\nSubject: w/fickle failed\nDate: "),
        "{head}"
    );
    assert!(
        head.contains("\nAuto-Submitted: auto-generated\n"),
        "{head}"
    );
    assert!(
        body.contains(&format!("More: workerctl show {failed}\n")),
        "{body}"
    );
}

#[test]
fn a_test_tells_each_way_what_was_answered_with_and_without_a_daemon() {
    let server = WebServer::start(vec![Act::Answer(200, Vec::new(), "ok".to_owned())]);
    let workspace = Workspace::with_skills(SKILLS);
    let config = "notify:\n  on_failure: {webhook: env:HOOK, form: slack}\n  on_recovery: {webhook: env:HOOK, form: slack}\n  on_missed: 'cat > ../told; exit 3'\n";
    workspace.write("workerctl.yaml", config);
    let address = server.url() + SECRET;
    let ask = |arguments: &[&str]| {
        let mut command = workspace.workerctl(&[&["notify", "test"], arguments].concat());
        workspace.start(command.env("HOOK", &address)).end()
    };
    for hosted in [true, false] {
        let daemon = (!hosted).then(|| daemon(&workspace, &server));
        let done = ask(&[]).expect_code(1);
        let lines: Vec<&str> = done.stdout.lines().collect();
        assert_eq!(
            lines,
            [
                "✓ `on_failure`: webhook env:HOOK as slack: status 200: ok",
                "✗ `on_missed`: cat > ../told; exit 3: exit code 3",
            ],
            "{done:?}"
        );
        let event: Value = serde_json::from_str(&workspace.read("../told").unwrap()).unwrap();
        assert_eq!(
            (&event["test"], &event["hook_event_name"]),
            (&true.into(), &"ScheduleMissed".into())
        );
        let came = server.came();
        let text = told(came.last().unwrap())["text"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(
            text.starts_with("*Test: example/example failed*\nThis is a test"),
            "{text}"
        );
        // Nothing of it is kept.
        assert!(undelivered(&workspace).is_empty());
        if let Some(daemon) = daemon {
            daemon.stop();
        }
    }
    let done = ask(&["--for", "w/fickle", "--event", "recovery"]).expect_code(0);
    assert_eq!(
        done.stdout,
        "✓ `on_recovery`: webhook env:HOOK as slack: status 200: ok\n"
    );
    let text = told(server.came().last().unwrap()).to_string();
    assert!(text.contains("Test: w/fickle succeeded again"), "{text}");
    let nobody = ask(&["--event", "approval"]);
    assert!(
        nobody.stderr.contains("no notification is sent for this"),
        "{nobody:?}"
    );
    let unknown = ask(&["--for", "w/none"]);
    assert!(unknown.stderr.contains("no skill `w/none`"), "{unknown:?}");
    assert_secret(&workspace, &[&done.stderr, &nobody.stderr]);
}
