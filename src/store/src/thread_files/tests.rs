use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::machine::Entry;
use crate::model::{RunSpec, Timestamp};
use crate::protocol::LogStream;
use crate::thread::line::{Source, verify};
use crate::thread::mask::Masker;
use crate::thread::rebuild::rebuild;

#[path = "../../../core/src/thread/samples.rs"]
mod samples;

struct Place {
    root: xtest::TempDir,
    dir: Arc<Directory>,
    spec: RunSpec,
    entries: Vec<Entry>,
}

fn place() -> Place {
    let root = xtest::tempdir();
    let dir = Arc::new(Directory::open(root.path(), "workspace/threads").unwrap());
    let spec = samples::spec();
    let entries = samples::succeeded(&spec);
    Place {
        root,
        dir,
        spec,
        entries,
    }
}

impl Place {
    fn writer(&self, masker: Masker) -> ThreadWriter {
        ThreadWriter::open(&self.dir, &self.spec, masker, self.spec.submitted_at).unwrap()
    }

    fn log(&self) -> PathBuf {
        self.dir.paths(&self.spec.thread).log.into()
    }

    fn verified(&self) -> u64 {
        verify(
            self.spec.thread.as_str(),
            &std::fs::read(self.log()).unwrap(),
        )
        .unwrap()
    }
}

const AT: Timestamp = Timestamp::from_millis(1_795_000_000_500);

#[test]
fn what_is_written_is_read_back_and_can_be_followed() {
    let place = place();
    let mut writer = place.writer(Masker::none());
    writer.entries(&place.entries[..4], 1).unwrap();
    let lines = writer.output(AT, 1, Source::Stdout, b"one\ntwo\nthr");
    assert_eq!(lines.len(), 2);
    writer.output(AT, 1, Source::Stderr, b"oops\xff\n");
    writer.flush().unwrap();

    let mut reader = LogReader::open(&place.dir, &place.spec.thread)
        .unwrap()
        .unwrap();
    let page = reader.page(6).unwrap();
    assert!(page.more && page.lines.len() == 6);
    assert_eq!(page.lines[5], lines[0]);
    let page = reader.page(100).unwrap();
    assert!(!page.more);
    assert_eq!(page.lines[1].text, "oops\u{fffd}");
    assert_eq!(page.lines[1].stream, LogStream::Stderr);

    writer.output(AT, 1, Source::Stdout, b"ee");
    writer.end_output(AT, 1, Source::Stdout);
    writer.sync().unwrap();
    assert!(!writer.is_unsynced());
    let page = reader.page(100).unwrap();
    assert_eq!(page.lines.len(), 1);
    assert_eq!(
        (page.lines[0].text.as_str(), page.lines[0].line),
        ("three", 8)
    );

    let mut again = LogReader::open(&place.dir, &place.spec.thread)
        .unwrap()
        .unwrap();
    again.skip_to(8).unwrap();
    assert_eq!(again.page(9).unwrap().lines, page.lines);
    assert_eq!(place.verified(), 9);
    let mode = std::fs::metadata(place.log()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_log_torn_anywhere_is_continued_and_gives_back_the_run() {
    let place = place();
    let mut writer = place.writer(Masker::none());
    writer.entries(&place.entries, 1).unwrap();
    writer.output(AT, 1, Source::Check, b"hello\n");
    writer.sync().unwrap();
    drop(writer);
    let whole = std::fs::read(place.log()).unwrap();
    for cut in (0..whole.len()).step_by(61) {
        let mut torn = whole[..cut].to_vec();
        if cut % 2 == 0 {
            torn.extend([0; 40]);
        }
        std::fs::write(place.log(), &torn).unwrap();
        let mut writer = place.writer(Masker::none());
        assert!(writer.damage().is_none(), "{cut}");
        writer.entries(&place.entries, 1).unwrap();
        writer.flush().unwrap();
        let bytes = std::fs::read(place.log()).unwrap();
        let rebuilt = rebuild(place.spec.thread.as_str(), &bytes).unwrap();
        assert_eq!(
            (&rebuilt.spec, &rebuilt.entries),
            (&place.spec, &place.entries)
        );
        assert_eq!(rebuilt.damage, None, "{cut}");
    }
}

#[test]
fn damage_further_up_is_named_and_nothing_after_it_is_thrown_away() {
    let place = place();
    let mut writer = place.writer(Masker::none());
    writer.entries(&place.entries, 1).unwrap();
    writer.flush().unwrap();
    drop(writer);
    let text = std::fs::read_to_string(place.log()).unwrap();
    std::fs::write(place.log(), text.replacen("validated", "VALIDATED", 1)).unwrap();
    let mut writer = place.writer(Masker::none());
    assert!(writer.damage().is_some());
    assert_eq!(writer.next_seq(), 16);
    writer.output(AT, 1, Source::Stdout, b"more\n");
    writer.flush().unwrap();
    let after = std::fs::read_to_string(place.log()).unwrap();
    assert_eq!(after.lines().count(), 18);
}

#[test]
fn a_secret_reaches_no_file_however_it_arrives() {
    let place = place();
    let secret = "hunter2-hunter2";
    let mut writer = place.writer(Masker::new([("S", secret.as_bytes())]).unwrap());
    for byte in format!("x {secret} y\n{secret}").bytes() {
        writer.output(AT, 1, Source::Stdout, &[byte]);
    }
    writer.end_output(AT, 1, Source::Stdout);
    let mut entry = place.entries[4].clone();
    entry.seq = 0;
    if let crate::machine::Event::ExecutionFinished { execution, .. } = &mut entry.event {
        execution.stderr_tail = format!("token {secret}");
    }
    writer.entries(&[entry], 1).unwrap();
    writer.sync().unwrap();
    let text = std::fs::read_to_string(place.log()).unwrap();
    assert!(!text.contains("hunter2"), "{text}");
    assert_eq!(text.matches("***").count(), 3);
}

#[test]
fn a_full_disk_is_an_error_and_the_log_goes_on_afterwards() {
    let place = place();
    let mut writer = place.writer(Masker::none());
    writer.entries(&place.entries[..2], 1).unwrap();
    writer.sync().unwrap();
    // `/dev/full` answers every write with ENOSPC.
    let full = File::options().write(true).open("/dev/full").unwrap();
    let good = writer.exchange_file(full);
    writer.entries(&place.entries[2..3], 1).unwrap();
    assert!(matches!(
        writer.flush(),
        Err(FileError::Full { .. } | FileError::Io { .. })
    ));
    let chunk = [&[b'x'; 1_000][..], b"\n"].concat();
    for _ in 0..2_000 {
        writer.output(AT, 1, Source::Stdout, &chunk);
        let _ = writer.flush();
    }
    assert!(writer.lost_lines() > 0);
    writer.exchange_file(good);
    writer.flush().unwrap();
    writer.output(AT, 1, Source::Stdout, b"back\n");
    writer.sync().unwrap();
    assert!(place.verified() > 500);
    let text = std::fs::read_to_string(place.log()).unwrap();
    assert!(text.contains("\"type\":\"gap\"") && text.contains("\"back\""));
}

#[test]
fn links_and_pipes_are_refused() {
    let place = place();
    let elsewhere = place.root.path().join("elsewhere");
    std::fs::write(&elsewhere, "mine").unwrap();
    symlink(&elsewhere, place.log()).unwrap();
    let opened = ThreadWriter::open(
        &place.dir,
        &place.spec,
        Masker::none(),
        place.spec.submitted_at,
    );
    assert!(matches!(opened, Err(FileError::Foreign { .. })));
    assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "mine");

    std::fs::remove_file(place.log()).unwrap();
    rustix::fs::mkfifoat(CWD, place.log(), Mode::from_raw_mode(0o600)).unwrap();
    let opened = LogReader::open(&place.dir, &place.spec.thread);
    assert!(matches!(opened, Err(FileError::Foreign { .. })));

    symlink("/tmp", place.root.path().join("out")).unwrap();
    for bad in ["out/threads", "../x", "/tmp/x"] {
        assert!(Directory::open(place.root.path(), bad).is_err(), "{bad}");
    }
}

#[test]
fn the_summary_is_replaced_and_the_directory_ignored() {
    let place = place();
    place.dir.ensure_ignored().unwrap();
    place.dir.ensure_ignored().unwrap();
    let ignore = place.dir.path().join(".gitignore");
    assert_eq!(std::fs::read_to_string(ignore).unwrap(), "*\n");
    for text in ["{}\n", "{\"longer\": 1}\n", "{}\n"] {
        write_document(&place.dir, &place.spec.thread, text).unwrap();
        let path = place.dir.paths(&place.spec.thread).document;
        assert_eq!(std::fs::read_to_string(path).unwrap(), text);
    }
    assert_eq!(std::fs::read_dir(place.dir.path()).unwrap().count(), 2);
}

#[test]
fn a_directory_that_was_moved_away_is_made_anew() {
    let root = xtest::tempdir();
    let directories = Directories::new(root.path());
    let first = directories.get("a/b").unwrap();
    assert!(Arc::ptr_eq(&first, &directories.get("a/b").unwrap()));
    std::fs::rename(root.path().join("a"), root.path().join("kept")).unwrap();
    let second = directories.get("a/b").unwrap();
    second
        .replace("x", b"x", Mode::from_raw_mode(0o600))
        .unwrap();
    assert!(root.path().join("a/b/x").exists());
    std::fs::remove_dir_all(root.path().join("a/b")).unwrap();
    symlink(root.path(), root.path().join("a/b")).unwrap();
    assert!(matches!(
        directories.get("a/b"),
        Err(FileError::Foreign { .. })
    ));
}

#[test]
fn the_first_runs_of_a_workspace_may_come_at_once() {
    for _ in 0..50 {
        let place = xtest::tempdir();
        let directory = Directory::open(place.path(), "threads").unwrap();
        let together = std::sync::Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    together.wait();
                    directory.ensure_ignored().unwrap();
                });
            }
        });
        let written = std::fs::read(place.path().join("threads/.gitignore")).unwrap();
        assert_eq!(written, b"*\n");
    }
}

#[test]
fn a_log_is_checked_while_it_is_written_without_a_false_alarm() {
    let place = place();
    let name = place.spec.thread.as_str();
    let mut writer = place.writer(Masker::none());
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..3_000 {
                let text = format!("line {number} {}\n", "x".repeat(number));
                writer.output(AT, 1, Source::Stdout, text.as_bytes());
                writer.flush().unwrap();
            }
            over.store(true, std::sync::atomic::Ordering::Release);
        });
        let mut lines = 0;
        while !over.load(std::sync::atomic::Ordering::Acquire) {
            let checked = check_thread(Some(&place.dir), name, None).unwrap();
            assert_eq!(checked.damage, None);
            assert!(checked.lines >= lines);
            lines = checked.lines;
        }
    });
    let end = writer.end().unwrap();
    assert_eq!(end.lines, place.verified());
}

#[test]
fn a_line_without_end_is_damage_and_is_not_held_in_memory() {
    let place = place();
    let name = place.spec.thread.as_str();
    drop(place.writer(Masker::none()));
    let mut log = std::fs::read(place.log()).unwrap();
    log.resize(log.len() + RECORD_BYTES_MAX + 1, b'x');
    log.push(b'\n');
    std::fs::write(place.log(), &log).unwrap();
    let checked = check_thread(Some(&place.dir), name, None).unwrap();
    let told = "line 1 is too long for a record";
    assert_eq!(checked.damage.as_deref(), Some(told));
    let elsewhere = Directory::existing(place.root.path(), "workspace/elsewhere").unwrap();
    assert!(elsewhere.is_none() && !place.root.path().join("workspace/elsewhere").exists());
    assert_eq!(threads_in(&place.dir).unwrap(), [name.to_owned()].into());
}

mod bound;
mod places;
