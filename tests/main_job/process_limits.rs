//! Limits and signals that the program was started with: a full file is an error, and commands begin as anywhere.

use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Resource, Rlimit, Signal, getrlimit, prlimit, setrlimit};

use crate::workspace::api::Api;
use crate::workspace::daemon::Daemon;
use crate::workspace::gate::Gate;
use crate::workspace::{Workspace, eventually};

const SKILLS: &str = r#"
  - {id: signals, description: d, run: "grep SigIgn /proc/self/status > $HOME/signals"}
  - {id: read, description: d, run: "true"}
  - {id: gated, description: d, mutating: true, run: 'echo x >> tracked.txt; GATE'}
  - {id: full, description: d, run: "exec head -c 4000000 /dev/zero > $HOME/full"}
  - id: commits
    description: d
    mutating: true
    run: "ulimit -S -f unlimited; head -c 4000000 /dev/urandom > large.bin"
  - {id: logs, description: d, run: "yes 0123456789012345678901234567890123456789012345678901234567890123456789 | head -c 4000000"}
  - id: noisy
    description: d
    interface: {outputs: [{name: text, type: file, destination: "out/noisy.txt"}]}
    run: "echo new > {text}; yes 0123456789012345678901234567890123456789012345678901234567890123456789 | head -c 4000000"
  - id: prints
    description: d
    interface: {outputs: [{name: text, type: file, destination: "out/text.txt"}]}
    run: "yes 0123456789012345678901234567890123456789012345678901234567890123456789 | head -c 4000000"
"#;

/// Soft limit on the size of a file in these tests.
const FILE_BYTES: u64 = 3 * 1024 * 1024;

/// Signals 32 and 33, which nobody but the C library can set, and which it sets itself.
const OF_C_LIBRARY: u64 = 3 << 31;

fn workspace() -> Workspace {
    Workspace::with_skills(&SKILLS.replace("GATE", &Gate::text("gate")))
}

fn soft(bytes: u64) -> Rlimit {
    Rlimit {
        current: Some(bytes),
        ..getrlimit(Resource::Fsize)
    }
}

/// The real program under the limit.
fn limited(workspace: &Workspace, arguments: &[&str]) -> Command {
    let mut command = workspace.workerctl(arguments);
    #[expect(unsafe_code, reason = "one system call between fork and exec")]
    // SAFETY: it allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(|| setrlimit(Resource::Fsize, soft(FILE_BYTES)).map_err(Into::into));
    }
    command
}

/// The real program, started by a shell that ignores these signals.
fn ignoring(workspace: &Workspace, signals: &str, arguments: &[&str]) -> Command {
    let program = workspace.workerctl(arguments);
    let mut command = workspace.program("sh");
    command.arg("-c");
    command.arg(format!("trap '' {signals}; exec \"$0\" \"$@\""));
    command.arg(program.get_program()).args(program.get_args());
    command
}

#[test]
fn a_command_ignores_no_signal_however_the_program_was_started() {
    let workspace = workspace();
    let signals = "HUP INT QUIT PIPE ALRM USR1 USR2 CHLD XCPU XFSZ";
    for started in [
        workspace.workerctl(&["run", "signals"]),
        ignoring(&workspace, signals, &["run", "signals"]),
    ] {
        let mut started = started;
        let done = workspace.start(&mut started).end();
        assert_eq!(done.code, 0, "{done:?}");
        let seen = std::fs::read_to_string(workspace.home.join("signals")).unwrap();
        let (_, mask) = seen.trim().split_once('\t').unwrap();
        let ignored = u64::from_str_radix(mask, 16).unwrap();
        assert_eq!(ignored & !OF_C_LIBRARY, 0, "{mask}");
    }
}

#[test]
fn the_limit_of_open_files_is_named_with_its_number() {
    let workspace = workspace();
    workspace.run(&["run", "read"]).expect_code(0);
    let mut named = 0;
    for limit in 16..128 {
        let script = format!("ulimit -n {limit}; exec \"$@\"");
        let mut command = workspace.program("sh");
        command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_workerctl")]);
        command.arg("--state-dir").arg(workspace.state());
        let done = workspace.start(command.args(["run", "read"])).end();
        if done.code == 0 {
            break;
        }
        let told = format!("{}{}", done.stdout, done.stderr);
        // Where a definition cannot be read, there is no such skill.
        if !told.contains("(os error 24)") || told.contains("panicked") {
            continue;
        }
        assert!(told.contains("limit of open files of process "), "{told}");
        assert!(told.contains(&format!(", {limit}, is reached")), "{told}");
        assert!(told.contains("`ulimit -n`") && told.contains("`LimitNOFILE=`"));
        assert!(!told.contains("writable"), "{told}");
        named += 1;
    }
    assert!(named > 0);
}

#[test]
fn a_run_that_nohup_started_goes_on_when_its_terminal_has_gone() {
    let workspace = workspace();
    let mut gate = Gate::new(&workspace, "gate");
    let mut command = ignoring(&workspace, "HUP", &["run", "gated"]);
    let started = workspace.start(&mut command);
    gate.reached();
    started.signal(Signal::HUP);
    gate.pass();
    let done = started.end();
    assert_eq!(done.code, 0, "{done:?}");
}

#[test]
fn a_daemon_at_its_soft_limit_of_processor_time_ends_in_order() {
    let workspace = workspace();
    let mut daemon = Daemon::start(&workspace);
    daemon.signal(Signal::XCPU);
    eventually("the end of the daemon", || (!daemon.lives()).then_some(()));
    let log = daemon.log();
    assert!(log.contains("limit of processor time"), "{log}");
}

#[test]
fn a_daemon_whose_own_log_cannot_be_written_goes_on() {
    let workspace = workspace();
    let daemon = workspace.workerctl(&["-v", "daemon"]);
    let mut command = workspace.program("sh");
    command.args(["-c", "exec \"$0\" \"$@\" 2> /dev/full"]);
    command.arg(daemon.get_program()).args(daemon.get_args());
    let daemon = Daemon::start_by(&workspace, command);
    let run = workspace.submit(&["read"]);
    assert_eq!(workspace.wait(&run).0, 0);
    daemon.stop();
}

#[test]
fn a_store_at_the_limit_of_file_size_refuses_work_and_goes_on_when_it_is_raised() {
    let workspace = workspace();
    let mut gate = Gate::new(&workspace, "gate");
    let mut daemon = Daemon::start(&workspace);
    let gated = workspace.submit(&["gated"]);
    gate.reached();
    let database = workspace.state().join("store/db/db");
    let bytes = std::fs::metadata(&database).unwrap().len();
    prlimit(Some(daemon.pid()), Resource::Fsize, soft(bytes)).unwrap();
    let api = Api::of(&workspace);
    let mut accepted = Vec::new();
    let refused = eventually("a request is refused for the limit", || {
        let answer = api.post("/v1/runs", r#"{"skill": "read"}"#);
        match answer.status {
            201 => accepted.push(answer.value()["run"].as_str().unwrap().to_owned()),
            // The queue is full, or the limit was reached while it was stored.
            503 | 504 => {}
            _ => return Some(answer),
        }
        None
    });
    assert_eq!(refused.refusal(), (507, "file_size_limit".to_owned()));
    // Meanwhile a run that has ended may have made room for the beginning of another commit.
    let refused = eventually("a command is refused for the limit", || {
        let refused = workspace.run(&["run", "read"]);
        (refused.code != 9).then_some(refused)
    });
    assert_eq!(refused.code, 6, "{refused:?}");
    assert!(refused.stderr.contains("LimitFSIZE="), "{refused:?}");
    assert!(daemon.lives(), "{}", daemon.log());
    assert_eq!(workspace.json(&["status"])["condition"], "file_size_limit");
    // What another worker has under way ends while nothing can be stored.
    gate.pass();
    prlimit(
        Some(daemon.pid()),
        Resource::Fsize,
        getrlimit(Resource::Fsize),
    )
    .unwrap();
    eventually("the daemon takes work again", || {
        (workspace.json(&["status"])["condition"] == "ready").then_some(())
    });
    let (code, detail) = workspace.wait(&gated);
    assert_eq!(code, 0, "{detail:#}");
    workspace.wait_until_idle();
    let runs = workspace.runs();
    for run in accepted {
        assert_eq!(runs[&run]["outcome"]["kind"], "succeeded", "{run}");
    }
    daemon.stop();
    workspace.run(&["store", "verify"]).expect_code(0);
    workspace.run(&["threads", "verify"]).expect_code(0);
}

#[test]
fn a_file_of_a_run_at_the_limit_is_a_named_failure_with_a_remedy_and_ends_nothing_else() {
    let workspace = workspace();
    workspace.write("workerctl.yaml", "output_bytes_max: 2097152\n");
    let skill = format!(
        "  - {{id: gated, description: d, run: '{}'}}\n",
        Gate::text("gate")
    );
    workspace.worker("other", &skill);
    workspace.commit_all("another worker");
    let mut gate = Gate::new(&workspace, "gate");
    let daemon = Daemon::start_by(&workspace, limited(&workspace, &["-v", "daemon"]));
    let gated = workspace.submit(&["other/gated"]);
    gate.reached();
    workspace.write("out/noisy.txt", "old\n");
    workspace.commit_all("old");
    for (skill, code, wanted) in [
        ("w/full", None, "ended by signal 25"),
        ("w/logs", Some("file_size_limit"), ".jsonl"),
        ("w/noisy", Some("file_size_limit"), ".jsonl"),
        (
            "w/prints",
            Some("file_size_limit"),
            "standard output could not be kept",
        ),
        ("w/commits", Some("file_size_limit"), "cannot write a blob"),
    ] {
        let run = workspace.submit(&[skill]);
        let (ended, detail) = workspace.wait(&run);
        assert_ne!(ended, 0, "{skill}: {detail:#}");
        let text = detail["summary"]["outcome"].to_string();
        assert!(text.contains(wanted), "{skill}: {text}");
        assert!(text.contains("LimitFSIZE="), "{skill}: {text}");
        if let Some(code) = code {
            assert!(text.contains(code), "{skill}: {text}");
        }
    }
    // An output of a run that fails is not published.
    assert_eq!(workspace.read("out/noisy.txt").unwrap(), "old\n");
    gate.pass();
    assert_eq!(workspace.wait(&gated).0, 0);
    assert_eq!(workspace.git(&["status", "--porcelain"]), "");
    daemon.stop();
}
