use super::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use tokio::sync::mpsc;
use workerctl::daemon::{Announcer, HostSignal, Hosted, connect, serve_daemon};
use workerctl::engine::{Heartbeat, Watched};
use workerctl::model::{Diagnostic, Kind};
use workerctl::protocol::Control;

/// The double as an engine that a daemon hosts.
struct Engine {
    double: Arc<Scripted>,
    loop_lag_ms: Arc<AtomicU64>,
    gone: Arc<AtomicBool>,
    told: Told,
    /// How often it was asked what schedules wait for.
    asked: Arc<AtomicU64>,
    end: Result<(), Diagnostic>,
}

/// What the daemon wants to be done once its engine has ended.
type Told = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

impl Hosted for Engine {
    fn control(&self) -> Arc<dyn Control> {
        Arc::clone(&self.double) as _
    }

    fn heartbeat(&self) -> Heartbeat {
        Heartbeat {
            loop_lag_ms: self.loop_lag_ms.load(Ordering::SeqCst),
            committing_for_ms: None,
        }
    }

    fn rescan(&self) -> Result<bool, Diagnostic> {
        self.double.rescans.fetch_add(1, Ordering::SeqCst);
        Ok(true)
    }

    fn watched(&self) -> Vec<Watched> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Vec::new()
    }

    fn has_ended(&self) -> bool {
        self.gone.load(Ordering::SeqCst)
    }

    fn on_end(&self, told: Box<dyn FnOnce() + Send>) {
        *self.told.lock().expect("a lock") = Some(told);
    }

    fn join(self: Arc<Self>) -> Result<(), Diagnostic> {
        self.end.clone()
    }
}

/// A daemon around the double.
struct Daemon {
    double: Arc<Scripted>,
    loop_lag_ms: Arc<AtomicU64>,
    gone: Arc<AtomicBool>,
    told: Told,
    asked: Arc<AtomicU64>,
    heard: Arc<Mutex<Vec<String>>>,
    signals: mpsc::Sender<HostSignal>,
    ended: JoinHandle<Result<(), Diagnostic>>,
    socket: PathBuf,
    workspace: xtest::TempDir,
}

impl Daemon {
    fn start(watchdog: Option<Duration>, end: Result<(), Diagnostic>) -> Daemon {
        let workspace = xtest::tempdir();
        std::fs::create_dir(workspace.path().join("workers")).expect("made");
        let socket = workspace.path().join("run/s.sock");
        let double = Scripted::new();
        let loop_lag_ms = Arc::new(AtomicU64::new(0));
        let gone = Arc::new(AtomicBool::new(false));
        let told = Told::default();
        let asked = Arc::new(AtomicU64::new(0));
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (signals, arriving) = mpsc::channel(8);
        let mut endpoint = Endpoint::bind(&socket).expect("bound");
        let announcer = {
            let heard = Arc::clone(&heard);
            Announcer::told_to(watchdog, move |line| {
                heard.lock().expect("a lock").push(line);
            })
        };
        let engine = Engine {
            double: Arc::clone(&double),
            loop_lag_ms: Arc::clone(&loop_lag_ms),
            gone: Arc::clone(&gone),
            told: Arc::clone(&told),
            asked: Arc::clone(&asked),
            end,
        };
        let served = workspace.path().to_path_buf();
        let ended = std::thread::spawn(move || {
            let start = Box::new(move || Ok(Arc::new(engine) as Arc<dyn Hosted>));
            serve_daemon(&mut endpoint, served, announcer, arriving, start)
        });
        let daemon = Daemon {
            double,
            loop_lag_ms,
            gone,
            told,
            asked,
            heard,
            signals,
            ended,
            socket,
            workspace,
        };
        daemon.await_heard("READY=1", 1);
        daemon
    }

    fn count(&self, wanted: &str) -> usize {
        let heard = self.heard.lock().expect("a lock");
        heard.iter().filter(|line| line.starts_with(wanted)).count()
    }

    fn await_heard(&self, wanted: &str, times: usize) {
        wait_until(wanted, || self.count(wanted) >= times);
    }

    fn signal(&self, signal: HostSignal) {
        self.signals.blocking_send(signal).expect("heard");
    }

    fn end(self) -> Result<(), Diagnostic> {
        let ended = self.ended.join().expect("no panic");
        assert!(!self.socket.exists(), "the socket is removed at the end");
        ended
    }
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "{what} did not happen"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_daemon_lives_and_ends_in_order() {
    let daemon = Daemon::start(None, Ok(()));
    daemon.await_heard("STATUS=2 running, 1 queued", 1);
    assert_eq!(daemon.count("WATCHDOG=1"), 0, "nobody asked for it");
    daemon.signal(HostSignal::Reload);
    daemon.await_heard("RELOADING=1", 1);
    daemon.await_heard("READY=1", 2);
    wait_until("a reload", || {
        daemon.double.reloads.load(Ordering::SeqCst) > 0
    });
    daemon.signal(HostSignal::Stop);
    daemon.await_heard("STOPPING=1", 1);
    let heard = Arc::clone(&daemon.heard);
    assert_eq!(daemon.end(), Ok(()));
    assert_eq!(heard.lock().expect("a lock")[0], "STATUS=recovering");
}

#[test]
fn a_second_request_to_stop_ends_what_runs() {
    let daemon = Daemon::start(None, Ok(()));
    daemon.double.drain.shut();
    daemon.signal(HostSignal::Stop);
    wait_until("draining", || {
        daemon.double.drains.load(Ordering::SeqCst) == 1
    });
    daemon.await_heard("EXTEND_TIMEOUT_USEC=30000000", 1);
    daemon.signal(HostSignal::Stop);
    let double = Arc::clone(&daemon.double);
    assert_eq!(daemon.end(), Ok(()));
    assert!(double.cancelled.lock().expect("a lock")[0].now);
}

#[test]
fn a_client_can_drain_the_daemon_and_is_told_so() {
    let daemon = Daemon::start(None, Ok(()));
    let there =
        connect(&options(daemon.workspace.path(), Some(&daemon.socket))).expect("connected");
    assert_eq!(there.drain(), Ok(()));
    assert_eq!(daemon.end(), Ok(()));
}

#[test]
fn an_engine_that_ends_by_itself_ends_the_daemon_with_its_reason() {
    let broken = Diagnostic::new(Kind::Internal, "store_broken", "the store could not write");
    let daemon = Daemon::start(None, Err(broken.clone()));
    let there =
        connect(&options(daemon.workspace.path(), Some(&daemon.socket))).expect("connected");
    // Only now: whoever asks first ends the daemon, which asks too.
    *daemon.double.ended.lock().expect("a lock") = true;
    assert_eq!(there.status().expect_err("ended").kind, Kind::Unreachable);
    assert_eq!(daemon.end(), Err(broken));
}

#[test]
fn an_engine_that_ends_while_nobody_asks_is_missed_at_the_next_tick() {
    let broken = Diagnostic::new(Kind::Internal, "store_broken", "the store could not write");
    let daemon = Daemon::start(Some(Duration::from_millis(20)), Err(broken.clone()));
    daemon.await_heard("WATCHDOG=1", 2);
    daemon.gone.store(true, Ordering::SeqCst);
    assert_eq!(daemon.end(), Err(broken));
}

#[test]
fn an_engine_that_ends_while_nobody_asks_takes_the_daemon_with_it() {
    let broken = Diagnostic::new(Kind::Internal, "store_broken", "the store could not write");
    let daemon = Daemon::start(None, Err(broken.clone()));
    // The next tick, at which it would be missed, is half a minute away and never comes.
    let told = daemon.told.lock().expect("a lock").take();
    told.expect("the daemon wants to be told")();
    assert_eq!(daemon.end(), Err(broken));
}

#[test]
fn the_watchdog_is_fed_only_while_the_loop_turns() {
    let daemon = Daemon::start(Some(Duration::from_millis(20)), Ok(()));
    daemon.await_heard("WATCHDOG=1", 3);
    daemon.loop_lag_ms.store(50_000, Ordering::SeqCst);
    // One may have been on its way; then the ticks go on without it.
    let status = daemon.count("STATUS=2 running");
    daemon.await_heard("STATUS=2 running", status + 2);
    let fed = daemon.count("WATCHDOG=1");
    let status = daemon.count("STATUS=2 running");
    daemon.await_heard("STATUS=2 running", status + 5);
    assert_eq!(daemon.count("WATCHDOG=1"), fed);
    daemon.signal(HostSignal::Stop);
    assert_eq!(daemon.end(), Ok(()));
}

#[test]
fn changed_definitions_are_read_again_and_other_files_are_not_minded() {
    let daemon = Daemon::start(None, Ok(()));
    let workspace = daemon.workspace.path().to_path_buf();
    std::fs::write(workspace.join("report.md"), "x").expect("written");
    std::fs::create_dir(workspace.join("workers/new")).expect("made");
    wait_until("the first rescan", || {
        daemon.double.rescans.load(Ordering::SeqCst) == 1
    });
    let deep = workspace.join("workers/new/worker.yaml");
    wait_until("the second rescan", || {
        // The watch on a new directory begins a moment after the directory.
        std::fs::write(&deep, "worker: {}").expect("written");
        std::thread::sleep(Duration::from_millis(400));
        daemon.double.rescans.load(Ordering::SeqCst) >= 2
    });
    daemon.signal(HostSignal::Stop);
    assert_eq!(daemon.end(), Ok(()));
}

/// Without being told, the daemon would ask every 30 s.
#[test]
fn what_schedules_wait_for_is_watched_anew_once_a_client_has_had_definitions_read() {
    let daemon = Daemon::start(None, Ok(()));
    wait_until("the first rescan", || {
        daemon.double.rescans.load(Ordering::SeqCst) > 0
    });
    let there =
        connect(&options(daemon.workspace.path(), Some(&daemon.socket))).expect("connected");
    let began = Instant::now();
    for _ in 0..5 {
        let before = daemon.asked.load(Ordering::SeqCst);
        there.reload().expect("read again");
        wait_until("a look at what is watched", || {
            daemon.asked.load(Ordering::SeqCst) > before
        });
    }
    assert!(began.elapsed() < Duration::from_mins(1));
    daemon.signal(HostSignal::Stop);
    assert_eq!(daemon.end(), Ok(()));
}

#[test]
fn an_engine_that_does_not_start_is_told_and_nothing_is_left() {
    let directory = xtest::tempdir();
    let socket = directory.path().join("s.sock");
    let mut endpoint = Endpoint::bind(&socket).expect("bound");
    let (_signals, arriving) = mpsc::channel(1);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hear = Arc::clone(&heard);
    let refused = serve_daemon(
        &mut endpoint,
        directory.path().to_path_buf(),
        Announcer::told_to(None, move |line| hear.lock().expect("a lock").push(line)),
        arriving,
        Box::new(|| {
            Err(Diagnostic::new(
                Kind::Conflict,
                "locked",
                "another engine runs",
            ))
        }),
    );
    assert_eq!(refused.expect_err("not started").code, "locked");
    assert!(
        !heard
            .lock()
            .expect("a lock")
            .iter()
            .any(|line| line == "READY=1")
    );
    drop(endpoint);
    assert!(!socket.exists());
}
