use super::*;
use tokio::sync::mpsc;
use workerctl::daemon::{
    Announcer, HostSignal, Hosted, connect, dial as dial_engine, serve_daemon,
};
use workerctl::engine::{Engine, EngineOptions, Host};
use workerctl::model::Kind;
use workerctl::protocol::Control;

fn hosting(workspace: &Path) -> ConnectOptions {
    std::fs::create_dir_all(workspace.join("workers")).expect("made");
    ConnectOptions {
        mode: ConnectMode::RunningElseHosted,
        ..options(workspace, None)
    }
}

#[test]
fn a_command_hosts_the_engine_and_others_find_it_while_it_lives() {
    let workspace = xtest::tempdir();
    let options = hosting(workspace.path());
    let hosted = connect(&options).expect("hosted");
    let here = hosted.status().expect("a status");
    assert_eq!(
        (here.host.as_str(), here.condition.as_str()),
        ("in_process", "ready")
    );
    let found = dial_engine(&options).expect("found");
    assert_eq!(found.status().expect("a status").pid, here.pid);
    let through_lock = ConnectOptions {
        state_dir: workspace.path().join("elsewhere"),
        ..options.clone()
    };
    assert_eq!(
        dial_engine(&through_lock).expect("found").socket(),
        found.socket()
    );
    let second = connect(&options).expect("connected");
    assert_eq!(second.status().expect("a status").pid, here.pid);
    drop(second);
    assert!(found.status().is_ok(), "a client that leaves ends nothing");
    let socket = found.socket().to_path_buf();
    drop(hosted);
    assert!(!socket.exists());
    assert_eq!(
        dial_engine(&options)
            .err()
            .map(|error| error.code)
            .as_deref(),
        Some("no_engine")
    );
    drop(connect(&options).expect("the state can be taken again"));
}

#[test]
fn commands_that_start_at_once_share_one_engine() {
    let workspace = xtest::tempdir();
    let options = hosting(workspace.path());
    let all = std::sync::Barrier::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let connected = connect(&options);
                let answered = connected.as_ref().ok().map(|control| control.status());
                // Nobody leaves before everyone was served.
                all.wait();
                assert!(
                    matches!(answered, Some(Ok(_))),
                    "{answered:?} {:?}",
                    connected.err()
                );
            });
        }
    });
}

#[test]
fn an_engine_has_ended_when_it_is_drained_and_not_before() {
    let workspace = xtest::tempdir();
    let options = hosting(workspace.path());
    let start = || {
        Engine::start(EngineOptions {
            workspace: options.workspace.clone(),
            state_dir: options.state_dir.clone(),
            socket: None,
            host: Host::InProcess,
            environment: BTreeMap::new(),
        })
    };
    let engine = start().expect("started");
    let control = engine.control();
    assert!(control.status().is_ok());
    assert!(!engine.has_ended());
    assert_eq!(control.drain(), Ok(()));
    // The answer comes from the loop's last moment; its end follows by itself.
    while !engine.has_ended() {
        std::thread::yield_now();
    }
    let refused = control.drain().map_err(|refused| refused.kind);
    assert_eq!(
        refused,
        Err(Kind::Unreachable),
        "it answers, and says that it has ended"
    );
    assert_eq!(engine.join(), Ok(()));
    drop(control);
    let again = start().expect("its locks went with it");
    assert_eq!(again.control().drain(), Ok(()));
    assert_eq!(again.join(), Ok(()));
}

#[test]
fn a_daemon_around_the_real_engine_is_drained_by_a_client() {
    let workspace = xtest::tempdir();
    let options = hosting(workspace.path());
    let socket = workspace.path().join("state/run/workerctl.sock");
    let mut endpoint = Endpoint::bind(&socket).expect("bound");
    let engine = EngineOptions {
        workspace: options.workspace.clone(),
        state_dir: options.state_dir.clone(),
        socket: Some(socket),
        host: Host::Daemon,
        environment: BTreeMap::new(),
    };
    let (signals, arriving) = mpsc::channel::<HostSignal>(1);
    let served = workspace.path().to_path_buf();
    let daemon = std::thread::spawn(move || {
        let start = Box::new(move || {
            Engine::start(engine).map(|engine| Arc::new(engine) as Arc<dyn Hosted>)
        });
        serve_daemon(
            &mut endpoint,
            served,
            Announcer::told_to(None, |_| {}),
            arriving,
            start,
        )
    });
    let there = connect(&options).expect("connected, after its start where need be");
    assert_eq!(there.status().expect("a status").host, "daemon");
    assert!(there.reload().is_ok());
    assert_eq!(there.drain(), Ok(()));
    assert_eq!(daemon.join().expect("no panic"), Ok(()));
    drop(signals);
}
