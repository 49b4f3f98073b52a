//! What a command gets from us, and what not.

use super::*;

#[test]
fn a_command_sees_exactly_the_given_environment() {
    let mut command = argv(&["env"]);
    command.env = vec![
        ("PATH".to_owned(), "/usr/bin:/bin".to_owned()),
        ("A".to_owned(), "1".to_owned()),
        ("A".to_owned(), "2".to_owned()),
    ];
    let (_, kept) = run_kept(&command);
    let stdout = kept.stdout();
    let mut lines: Vec<&str> = stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["A=2", "PATH=/usr/bin:/bin"]);
}

#[test]
fn a_command_has_the_standard_descriptors_only() {
    // Files and pipes of ours that are open meanwhile must not show up.
    let _file = std::fs::File::open("/dev/null").unwrap();
    let _stop = never();
    for stdin in [Stdin::Null, Stdin::Bytes(b"x".to_vec())] {
        let mut command = sh("ls -l /proc/self/fd; ls /proc/$$/fd");
        command.stdin = stdin;
        close_inherited_on_exec().unwrap();
        let (_, kept) = run_kept(&command);
        let stdout = kept.stdout();
        let shells: Vec<&str> = stdout.lines().filter(|line| line.len() < 4).collect();
        assert_eq!(shells, ["0", "1", "2"], "{stdout}");
    }
}

#[test]
fn a_command_starts_with_default_signals_and_an_empty_mask() {
    let (_, kept) = run_kept(&argv(&["grep", "^Sig", "/proc/self/status"]));
    let stdout = kept.stdout();
    let value = |name: &str| {
        let line = stdout
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap()
    };
    assert_eq!(value("SigBlk:"), 0);
    let pipe = 1 << 12;
    assert_eq!(
        value("SigIgn:") & pipe,
        0,
        "SIGPIPE ends a writer, as everywhere"
    );
}

#[test]
fn a_command_leads_its_own_process_group() {
    let (_, kept) = run_kept(&sh("echo $$; cut -d' ' -f5 /proc/$$/stat"));
    let pid = kept.pid.to_string();
    assert_eq!(kept.stdout(), format!("{pid}\n{pid}\n"));
}

#[test]
fn the_directory_is_the_commands_own() {
    let dir = xtest::tempdir();
    let mut command = sh("pwd -P");
    command.cwd = dir.path().canonicalize().unwrap();
    assert_eq!(
        run_kept(&command).1.stdout().trim_end(),
        command.cwd.to_str().unwrap()
    );
}
