//! Bytes in and out.

use super::*;

/// Counts without keeping.
#[derive(Default)]
struct Counted {
    bytes: u64,
    longest: usize,
}

impl OutputSink for Counted {
    fn line(&mut self, _: Stream, bytes: &[u8], _: bool) {
        self.bytes += bytes.len() as u64;
        self.longest = self.longest.max(bytes.len());
    }
}

#[test]
fn both_streams_arrive_apart() {
    let (finished, kept) = run_kept(&sh("echo a; echo b >&2; printf c; printf d >&2"));
    assert_eq!(kept.stdout(), "a\nc\n");
    assert_eq!(kept.stderr(), "b\nd\n");
    assert_eq!(
        (
            finished.stdout_bytes,
            finished.stderr_bytes,
            finished.dropped_bytes
        ),
        (3, 3, 0)
    );
}

#[test]
fn any_byte_passes() {
    let (_, kept) = run_kept(&sh(r"printf '\000\001\377\376\r\033[2J\n\n\200'"));
    assert_eq!(
        kept.bytes(Stream::Stdout),
        b"\0\x01\xff\xfe\r\x1b[2J\n\n\x80\n"
    );
}

#[test]
fn a_flood_is_read_to_its_end_and_not_kept() {
    let mut command = argv(&["head", "-c", "100000000", "/dev/zero"]);
    command.limits.output_bytes_max = 1_000_000;
    let mut sink = Counted::default();
    let finished = run(&command, &never(), &mut sink).unwrap();
    assert_eq!(finished.status, ExitStatus::Exited(0));
    assert_eq!(finished.stdout_bytes, 100_000_000);
    assert_eq!(finished.dropped_bytes, 99_000_000);
    assert_eq!((sink.bytes, sink.longest), (1_000_000, 64 * 1024));
}

#[test]
fn a_line_without_end_comes_in_pieces() {
    let mut command = sh("head -c 10000000 /dev/zero | tr '\\000' x");
    command.limits.output_bytes_max = 20_000_000;
    let (finished, kept) = run_kept(&command);
    assert_eq!(
        (finished.stdout_bytes, finished.dropped_bytes),
        (10_000_000, 0)
    );
    let (last, others) = kept.pieces.split_last().unwrap();
    assert!(
        others
            .iter()
            .all(|(_, bytes, more)| bytes.len() == 64 * 1024 && *more)
    );
    assert!(!last.2);
    assert_eq!(kept.bytes(Stream::Stdout).len(), 10_000_001);
}

#[test]
fn a_full_stream_does_not_hide_the_other() {
    let mut command = sh("head -c 1000000 /dev/zero; echo reason >&2");
    command.limits.output_bytes_max = 1000;
    let (finished, kept) = run_kept(&command);
    assert_eq!(kept.stderr(), "reason\n");
    assert_eq!(finished.dropped_bytes, 999_000);
    assert!(
        kept.pieces
            .iter()
            .any(|(stream, _, more)| *stream == Stream::Stdout && *more)
    );
}

#[test]
fn a_grandchild_that_holds_the_pipes_does_not_hold_up_the_end() {
    let sleeper = Sleeper::new();
    let begun = Instant::now();
    let (finished, kept) = run_kept(&sh(&sleeper.text("S & echo done")));
    assert!(begun.elapsed() < LONG / 2);
    assert_eq!(kept.stdout(), "done\n");
    assert_eq!(finished.survivors_ended, 1);
    assert_eq!(sleeper.alive(), [0; 0]);
}

#[test]
fn what_a_grandchild_writes_within_the_drain_time_is_read() {
    let mut command = sh("(sleep 0.05; echo late) & exit 0");
    command.limits.drain = LONG;
    let (finished, kept) = run_kept(&command);
    assert_eq!(kept.stdout(), "late\n");
    assert_eq!(finished.survivors_ended, 0);
}

#[test]
fn a_command_may_close_its_streams_and_live_on() {
    let dir = xtest::tempdir();
    let mut command = sh("exec >&- 2>&- <&-; sleep 0.1; touch lived; exit 4");
    command.cwd = dir.path().to_owned();
    let (finished, _) = run_kept(&command);
    assert_eq!(finished.status, ExitStatus::Exited(4));
    assert!(dir.path().join("lived").exists());
}

#[test]
fn input_goes_in_while_output_comes_out() {
    let bytes: Vec<u8> = (0..1_000_000_u32)
        .flat_map(|n| (n % 251).to_le_bytes())
        .collect();
    let mut command = argv(&["cat"]);
    command.stdin = Stdin::Bytes(bytes.clone());
    let mut copy = xtest::tempdir().path().to_owned();
    std::fs::create_dir_all(&copy).unwrap();
    copy.push("out");
    command.stdout_file = Some(copy.clone());
    let (finished, _) = run_kept(&command);
    assert_eq!(finished.status, ExitStatus::Exited(0));
    assert_eq!(std::fs::read(&copy).unwrap(), bytes);
    std::fs::remove_dir_all(copy.parent().unwrap()).unwrap();
}

#[test]
fn input_that_nobody_reads_does_no_harm() {
    let mut command = sh("exec <&-; echo done");
    command.stdin = Stdin::Bytes(vec![b'x'; 1_000_000]);
    assert_eq!(run_kept(&command).1.stdout(), "done\n");
    let mut command = sh("echo done");
    command.stdin = Stdin::Bytes(vec![b'x'; 1_000_000]);
    assert_eq!(run_kept(&command).1.stdout(), "done\n");
    let mut command = argv(&["cat"]);
    command.stdin = Stdin::Bytes(Vec::new());
    assert_eq!(run_kept(&command).0.status, ExitStatus::Exited(0));
}

#[test]
fn the_output_file_is_exact_whatever_the_sink_is_shown() {
    let dir = xtest::tempdir();
    let path = dir.path().join("out");
    let mut command = sh(r"printf 'a\r\n\377'; head -c 500000 /dev/zero; echo no >&2");
    command.stdout_file = Some(path.clone());
    command.limits.output_bytes_max = 10;
    let (finished, kept) = run_kept(&command);
    let mut want = b"a\r\n\xff".to_vec();
    want.resize(500_004, 0);
    assert_eq!(std::fs::read(&path).unwrap(), want);
    assert!(finished.stdout_file_error.is_none());
    assert_eq!(kept.stderr(), "no\n");

    let error = run(&command, &never(), &mut Kept::new()).unwrap_err();
    assert!(
        matches!(error, SpawnError::Io { .. }),
        "an existing file is never written: {error:?}"
    );
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(dir.path().join("elsewhere"), &link).unwrap();
    command.stdout_file = Some(link);
    assert!(run(&command, &never(), &mut Kept::new()).is_err());
    assert!(!dir.path().join("elsewhere").exists());
}

#[test]
fn an_output_file_past_its_bound_is_reported() {
    let dir = xtest::tempdir();
    let mut command = sh("echo 12345; echo 67890");
    command.stdout_file = Some(dir.path().join("out"));
    command.limits.stdout_file_bytes_max = 8;
    let (finished, kept) = run_kept(&command);
    let error = finished.stdout_file_error.unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::FileTooLarge);
    assert_eq!(kept.stdout(), "12345\n67890\n");
}

#[test]
fn a_command_that_does_not_start_leaves_no_output_file() {
    let dir = xtest::tempdir();
    let mut command = argv(&["/no/such/program"]);
    command.stdout_file = Some(dir.path().join("out"));
    assert!(run(&command, &never(), &mut Kept::new()).is_err());
    assert!(!dir.path().join("out").exists());
}
