use super::*;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;

use workerctl::daemon::routes;

/// A user that owns nothing here.
const NOBODY: u32 = 65_534;

/// Runs as another user when the variable says where to connect; nothing otherwise.
#[test]
fn probe_of_another_user() {
    let Ok(socket) = std::env::var("WORKERCTL_TEST_PROBE") else {
        return;
    };
    for route in routes() {
        let mut stream = dial(Path::new(&socket));
        let path = route.path.replace("{run}", "ABC");
        let request = format!(
            "{} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{{}}",
            route.method
        );
        let _ = stream.write_all(request.as_bytes());
        let answer = Answer::read(&mut stream);
        assert!(
            answer.status == 403 || answer.status == 0,
            "{}: {answer:?}",
            route.id
        );
    }
    println!("refused by all {}", routes().len());
}

#[test]
fn another_user_is_refused_by_every_operation_even_where_the_files_would_let_him_in() {
    if !rustix::process::geteuid().is_root() {
        xtest::skip("only root can become another user");
        return;
    }
    let directory = xtest::tempdir();
    let open = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("set");
    };
    open(directory.path(), 0o755);
    let socket = directory.path().join("s.sock");
    let listener = UnixListener::bind(&socket).expect("bound");
    open(&socket, 0o666);
    let probe = directory.path().join("probe");
    std::fs::copy(std::env::current_exe().expect("this test"), &probe).expect("copied");
    open(&probe, 0o755);
    let identity = Identity::of_process(directory.path(), Host::Daemon);
    let server = Server::start(listener, identity, Limits::default(), None).expect("served");
    let engine = Scripted::new();
    server.open(Arc::clone(&engine) as _);
    let output = std::process::Command::new(&probe)
        .args(["--exact", "peers::probe_of_another_user", "--nocapture"])
        .env("WORKERCTL_TEST_PROBE", &socket)
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .expect("started");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("refused by all"),
        "{output:?}"
    );
    assert!(engine.submitted.lock().expect("a lock").is_empty());
    assert_eq!(engine.drains.load(std::sync::atomic::Ordering::SeqCst), 0);
}

/// Listens as another user when the variable says where, until its standard input ends.
#[test]
fn listener_of_another_user() {
    if let Some(socket) = std::env::var_os("WORKERCTL_TEST_LISTEN") {
        let _listener = UnixListener::bind(socket).expect("bound");
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
    }
}

#[test]
fn an_engine_of_another_user_is_not_believed() {
    if !rustix::process::geteuid().is_root() {
        xtest::skip("only root can become another user");
        return;
    }
    // Root's client meets a listener that a child opened as somebody else.
    let directory = xtest::tempdir();
    let playground = directory.path().join("theirs");
    std::fs::create_dir(&playground).expect("made");
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755))
        .expect("set");
    std::os::unix::fs::chown(&playground, Some(NOBODY), Some(NOBODY)).expect("given");
    let socket = playground.join("s.sock");
    let probe = directory.path().join("probe");
    std::fs::copy(std::env::current_exe().expect("this test"), &probe).expect("copied");
    let mut theirs = std::process::Command::new(&probe)
        .args(["--exact", "peers::listener_of_another_user", "--nocapture"])
        .env("WORKERCTL_TEST_LISTEN", &socket)
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("started");
    while !socket.exists() && theirs.try_wait().expect("a child").is_none() {
        std::thread::yield_now();
    }
    let workspace = xtest::tempdir();
    let refused = loop {
        let refused = workerctl::daemon::dial(&options(workspace.path(), Some(&socket)))
            .expect_err("foreign");
        // Between `bind` and `listen` nobody listens yet.
        if refused.code != "no_engine" {
            break refused;
        }
    };
    assert_eq!(refused.code, "foreign_engine", "{refused:?}");
    drop(theirs.stdin.take());
    theirs.wait().expect("ended");
}
