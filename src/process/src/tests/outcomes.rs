//! How a command ends, and why one does not start.

use super::*;

fn refusal(command: &Command) -> SpawnError {
    run(command, &never(), &mut Kept::new()).unwrap_err()
}

#[test]
fn exit_codes_are_those_of_the_command() {
    for code in [0, 1, 7, 126, 127, 255] {
        let (finished, _) = run_kept(&sh(&format!("exit {code}")));
        assert_eq!(finished.status, ExitStatus::Exited(code));
        assert_eq!(finished.ended, EndCause::ByItself);
        assert_eq!(finished.survivors_ended, 0);
    }
    let (finished, kept) = run_kept(&sh("no-such-program-at-all"));
    assert_eq!(finished.status, ExitStatus::Exited(127));
    assert!(kept.stderr().contains("no-such-program-at-all"));
    assert_eq!(
        run_kept(&sh("/etc/passwd")).0.status,
        ExitStatus::Exited(126)
    );
}

#[test]
fn a_signal_is_told_from_an_exit() {
    for signal in [9, 15, 6, 11] {
        let (finished, _) = run_kept(&sh(&format!("kill -{signal} $$")));
        assert_eq!(finished.status, ExitStatus::Signalled(signal));
        assert_eq!(finished.ended, EndCause::ByItself);
    }
}

#[test]
fn a_time_limit_ends_the_command() {
    let mut command = argv(&["sleep", "1000"]);
    command.limits.timeout = Some(Duration::from_millis(50));
    let (finished, _) = run_kept(&command);
    assert_eq!(finished.ended, EndCause::TimedOut);
    assert_eq!(finished.status, ExitStatus::Signalled(15));
    assert!(finished.duration >= Duration::from_millis(50));
}

#[test]
fn a_command_may_use_its_grace_period() {
    let command = sh("trap 'echo cleaned; exit 3' TERM; echo ready; while :; do sleep 0.01; done");
    let stop = never();
    let mut sink = Kept::stopping("ready", StopKind::Graceful, &stop);
    let finished = run(&command, &stop, &mut sink).unwrap();
    assert_eq!(finished.status, ExitStatus::Exited(3));
    assert_eq!(finished.ended, EndCause::Stopped(StopKind::Graceful));
    assert_eq!(sink.stdout(), "ready\ncleaned\n");
}

#[test]
fn without_grace_there_is_no_term() {
    let mut command = sh("trap 'echo no' TERM; echo ready; while :; do sleep 0.01; done");
    command.limits.grace = Duration::ZERO;
    let stop = never();
    let mut sink = Kept::stopping("ready", StopKind::Graceful, &stop);
    let finished = run(&command, &stop, &mut sink).unwrap();
    assert_eq!(finished.status, ExitStatus::Signalled(9));
    assert_eq!(sink.stdout(), "ready\n");
}

#[test]
fn stopped_before_the_start_nothing_starts() {
    let dir = xtest::tempdir();
    let stop = never();
    stop.stop(StopKind::Graceful);
    let mut command = sh("touch ran");
    command.cwd = dir.path().to_owned();
    command.stdout_file = Some(dir.path().join("out"));
    let error = run(&command, &stop, &mut Kept::new()).unwrap_err();
    assert!(matches!(
        error,
        SpawnError::StoppedBeforeStart {
            kind: StopKind::Graceful
        }
    ));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn one_handle_stops_several_commands_from_another_thread() {
    let stop = never();
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| run(&argv(&["sleep", "1000"]), &stop, &mut Kept::new())))
            .collect();
        stop.stop(StopKind::Graceful);
        for thread in running {
            match thread.join().unwrap() {
                Ok(finished) => assert_eq!(finished.ended, EndCause::Stopped(StopKind::Graceful)),
                Err(error) => assert!(matches!(error, SpawnError::StoppedBeforeStart { .. })),
            }
        }
    });
}

#[test]
fn a_missing_program_is_named() {
    for name in [
        "no-such-program-at-all",
        "/no/such/program",
        "./no-such-file",
    ] {
        let error = refusal(&argv(&[name]));
        assert!(
            matches!(&error, SpawnError::ProgramNotFound { program, .. } if program == name),
            "{error:?}"
        );
        assert!(error.to_string().contains(&format!("`{name}`")));
    }
}

#[test]
fn programs_are_found_in_the_commands_own_path_and_directory() {
    let dir = xtest::tempdir();
    let script = |name: &str, text: &str, mode: u32| {
        use std::os::unix::fs::PermissionsExt;
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    script("tool-of-mine", "#!/bin/sh\necho found $0 $1\n", 0o755);
    script("no-mode", "#!/bin/sh\n", 0o644);
    script("no-heading", "echo no\n", 0o755);
    script("no-interpreter", "#!/no/such/interpreter\n", 0o755);
    let command = |words: &[&str]| {
        let mut command = argv(words);
        command.cwd = dir.path().to_owned();
        command.env = vec![("PATH".to_owned(), format!("/bin:{}", dir.path().display()))];
        command
    };
    let found = dir.path().join("tool-of-mine");
    let want = format!("found {} x\n", found.display());
    assert_eq!(run_kept(&command(&["tool-of-mine", "x"])).1.stdout(), want);
    assert!(
        run_kept(&command(&["./tool-of-mine", "x"]))
            .1
            .stdout()
            .contains("tool-of-mine x")
    );
    for name in ["no-mode", "./no-mode", "./no-heading", "/"] {
        let error = refusal(&command(&[name]));
        assert!(
            matches!(error, SpawnError::ProgramNotExecutable { .. }),
            "{name}: {error:?}"
        );
    }
    let error = refusal(&command(&["./no-interpreter"]));
    assert!(error.to_string().contains("interpreter"), "{error}");
}

#[test]
fn a_directory_that_cannot_be_entered_is_named() {
    for path in ["/no/such/directory", "/etc/passwd"] {
        let mut command = argv(&["true"]);
        command.cwd = PathBuf::from(path);
        let error = refusal(&command);
        assert!(
            matches!(&error, SpawnError::WorkingDirectory { path: named, .. } if named.as_os_str() == path),
            "{error:?}"
        );
    }
}

#[test]
fn too_long_arguments_and_variables_are_typed() {
    let long = "x".repeat(ARGUMENT_BYTES_MAX + 1);
    let error = refusal(&argv(&["true", &long]));
    assert!(
        matches!(
            error,
            SpawnError::ArgumentTooLong {
                longest_bytes: 131_072,
                ..
            }
        ),
        "{error:?}"
    );
    assert!(run_kept(&argv(&["true", &long[1..]])).0.status == ExitStatus::Exited(0));
    let mut command = argv(&["true"]);
    command.env.push(("LONG".to_owned(), long.clone()));
    assert!(matches!(
        refusal(&command),
        SpawnError::ArgumentTooLong { .. }
    ));
    let error = refusal(&sh(&format!(": {long}")));
    assert!(
        matches!(error, SpawnError::ArgumentTooLong { .. }),
        "{error:?}"
    );
}

#[test]
fn a_long_shell_text_goes_through_a_private_file() {
    let scratch = xtest::tempdir();
    let padding = "# padding\n".repeat(20_000);
    let mut command = sh(&format!("{padding}stat -c %a \"$0\"; echo end\n"));
    command.scratch = Some(scratch.path().to_owned());
    let (finished, kept) = run_kept(&command);
    assert_eq!(finished.status, ExitStatus::Exited(0));
    assert_eq!(kept.stdout(), "600\nend\n");
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
}

#[test]
fn what_cannot_be_a_command_is_malformed() {
    let mut bad_name = argv(&["true"]);
    bad_name.env.push(("A=B".to_owned(), String::new()));
    let mut nul = argv(&["true"]);
    nul.env.push(("A".to_owned(), "b\0c".to_owned()));
    for command in [
        argv(&[]),
        argv(&[""]),
        argv(&["true", "a\0b"]),
        sh("echo a\0b"),
        bad_name,
        nul,
    ] {
        let error = refusal(&command);
        assert!(matches!(error, SpawnError::Malformed { .. }), "{error:?}");
    }
}

#[test]
fn secrets_stay_out_of_debug_output() {
    let mut command = argv(&["true"]);
    command.env.push(("KEY".to_owned(), "canary".to_owned()));
    command.stdin = Stdin::Bytes(b"canary".to_vec());
    assert!(!format!("{command:?}").contains("canary"));
}

#[test]
fn listeners_of_a_stop_are_told_before_a_command_notices_it() {
    let handle = StopHandle::new();
    let bell = handle.wakes(None).unwrap().try_clone_to_owned().unwrap();
    let (asked, seen) = (
        handle.clone(),
        std::sync::Arc::new(std::sync::Mutex::new(None)),
    );
    let told = std::sync::Arc::clone(&seen);
    handle.when_asked(Box::new(move || {
        let mut bells = [rustix::event::PollFd::new(
            &bell,
            rustix::event::PollFlags::IN,
        )];
        let at_once = rustix::event::Timespec::default();
        let rung = rustix::event::poll(&mut bells, Some(&at_once)).unwrap();
        *told.lock().unwrap() = Some((rung, asked.requested()));
    }));
    handle.stop(StopKind::Graceful);
    assert_eq!(*seen.lock().unwrap(), Some((0, None)));
}
