//! Output beyond its bound: the middle is omitted, and all else stays what it was.

use super::*;
use crate::protocol::LogLine;
use crate::thread::line::OutputSize;

impl Place {
    fn bounded(&self, bytes: u64, masker: Masker) -> ThreadWriter {
        self.writer(masker).with_output_bytes_max(bytes)
    }

    fn lines(&self) -> Vec<LogLine> {
        let mut reader = LogReader::open(&self.dir, &self.spec.thread)
            .unwrap()
            .unwrap();
        reader.page(usize::MAX).unwrap().lines
    }

    fn texts(&self, stream: LogStream) -> Vec<String> {
        let lines = self.lines().into_iter();
        let lines = lines.filter(|line| line.stream == stream);
        lines.map(|line| line.text).collect()
    }

    fn copy(&self) -> PathBuf {
        self.dir
            .path()
            .join(copy_name(&log_name(&self.spec.thread)))
    }
}

/// A line of ten bytes.
fn line(number: u64) -> String {
    format!("{number:09}\n")
}

#[test]
fn output_of_exactly_the_bound_is_kept_whole_however_short_its_lines_are() {
    for text in [line(7), "\n".to_owned(), "y\n".to_owned()] {
        let place = place();
        let mut writer = place.bounded(3_000, Masker::none());
        let count = 3_000 / text.len();
        writer.output(AT, 1, Source::Stdout, text.repeat(count).as_bytes());
        let (_, omitted) = writer.end_output(AT, 1, Source::Stdout);
        writer.flush().unwrap();
        assert_eq!(omitted, OutputSize::default());
        let wanted = vec![text.trim_end().to_owned(); count];
        assert_eq!(place.texts(LogStream::Stdout), wanted);
    }
}

#[test]
fn the_beginning_and_the_end_of_long_output_stay_with_one_mark_between_them() {
    let place = place();
    let mut writer = place.bounded(1_000, Masker::none());
    writer.entries(&place.entries[..2], 1).unwrap();
    let mut longest = 0;
    for number in 0..5_000 {
        let told = writer.output(AT, 1, Source::Stdout, line(number).as_bytes());
        assert_eq!(told.len(), 1, "each line is told while it is written");
        if number % 500 == 250 {
            writer.output(
                AT,
                1,
                Source::Stderr,
                format!("beside {number}\n").as_bytes(),
            );
        }
        if number == 2_500 {
            writer.entries(&place.entries[2..4], 1).unwrap();
        }
        longest = longest.max(std::fs::metadata(place.log()).unwrap().len());
    }
    let (_, omitted) = writer.end_output(AT, 1, Source::Stdout);
    let (_, beside) = writer.end_output(AT, 1, Source::Stderr);
    writer.flush().unwrap();
    assert_eq!((omitted.bytes, omitted.lines), (49_000, 4_900));
    assert_eq!(beside, OutputSize::default());
    assert!(longest < 100_000, "the log is bounded meanwhile: {longest}");

    let shown = |number: u64| line(number).trim_end().to_owned();
    let stdout = place.texts(LogStream::Stdout);
    assert_eq!(stdout.len(), 101);
    assert_eq!(stdout[..50], (0..50).map(shown).collect::<Vec<_>>());
    assert_eq!(stdout[51..], (4_950..5_000).map(shown).collect::<Vec<_>>());
    assert!(
        stdout[50].starts_with("[4900 lines, 49000 bytes omitted here"),
        "{}",
        stdout[50]
    );
    assert_eq!(place.texts(LogStream::Stderr).len(), 10);
    let lines = place.lines();
    assert!(lines.is_sorted_by_key(|line| line.line));
    assert_eq!(place.verified(), lines.last().unwrap().line + 1);
    assert!(!place.copy().exists());

    // The next command has a bound of its own, and another engine goes on.
    writer.output(AT, 2, Source::Stdout, line(1).repeat(100).as_bytes());
    writer.end_output(AT, 2, Source::Stdout);
    drop(writer);
    std::fs::write(place.copy(), "a crash left it").unwrap();
    let mut writer = place.writer(Masker::none());
    assert_eq!((writer.next_seq(), writer.damage()), (4, None));
    assert!(!place.copy().exists());
    writer.entries(&place.entries, 2).unwrap();
    writer.flush().unwrap();
    let log = std::fs::read(place.log()).unwrap();
    let rebuilt = rebuild(place.spec.thread.as_str(), &log).unwrap();
    assert_eq!(
        (rebuilt.entries, rebuilt.damage),
        (place.entries.clone(), None)
    );
}

#[test]
fn a_reader_goes_on_in_the_log_that_takes_the_place_of_its_own() {
    let place = place();
    let mut writer = place.bounded(1_000, Masker::none());
    writer.output(AT, 1, Source::Stdout, line(0).repeat(60).as_bytes());
    writer.flush().unwrap();
    let mut reader = LogReader::open(&place.dir, &place.spec.thread)
        .unwrap()
        .unwrap();
    assert_eq!(reader.page(100).unwrap().lines.len(), 61);
    assert!(!reader.is_replaced());
    writer.output(AT, 1, Source::Stdout, line(1).repeat(1_000).as_bytes());
    writer.end_output(AT, 1, Source::Stdout);
    assert!(reader.is_replaced());
    let numbers: Vec<u64> = place.lines().iter().map(|line| line.line).collect();
    // Any number may be asked for, one that is left out too.
    for from in 0..1_062 {
        let mut reader = LogReader::open(&place.dir, &place.spec.thread)
            .unwrap()
            .unwrap();
        reader.skip_to(from).unwrap();
        let next = numbers.iter().find(|number| **number >= from);
        let read = reader.page(1).unwrap().lines;
        assert_eq!(read.first().map(|line| line.line), next.copied(), "{from}");
    }
}

#[test]
fn no_part_of_a_secret_stands_at_the_cut() {
    let secret = "begin-of-it\nmiddle-of-it\nend-of-it";
    for bound in (100..200).step_by(9) {
        let place = place();
        let masker = Masker::new([("KEY", secret.as_bytes())]).unwrap();
        let mut writer = place.bounded(bound, masker);
        for number in 0..40 {
            let text = format!("{number}{secret}{number}\n");
            for part in text.as_bytes().chunks(7) {
                writer.output(AT, 1, Source::Stderr, part);
            }
        }
        let (_, omitted) = writer.end_output(AT, 1, Source::Stderr);
        writer.flush().unwrap();
        assert!(omitted.lines > 0);
        let log = std::fs::read_to_string(place.log()).unwrap();
        assert!(!log.contains("-of-it"), "{bound}: {log}");
        place.verified();
    }
}

#[test]
fn what_one_line_writes_without_end_is_bounded_and_a_progress_bar_is_one_line() {
    let place = place();
    let mut writer = place.bounded(1024 * 1024, Masker::none());
    let long = vec![b'x'; 64 * 1024];
    for _ in 0..100 {
        writer.output(AT, 1, Source::Check, &long);
        writer.output(AT, 1, Source::Stdout, format!("\r{:>9000}", 1).as_bytes());
        let bytes = std::fs::metadata(place.log()).unwrap().len();
        assert!(bytes < 4 * 1024 * 1024, "{bytes}");
    }
    let (_, omitted) = writer.end_output(AT, 1, Source::Check);
    let kept = 100 * 64 * 1024 - omitted.bytes;
    assert!((900 * 1024..=1024 * 1024).contains(&kept), "{kept}");
    let (_, omitted) = writer.end_output(AT, 1, Source::Stdout);
    assert_eq!(omitted, OutputSize::default());
    writer.flush().unwrap();
    place.verified();
}

#[test]
fn where_the_log_cannot_be_written_again_it_stays_bounded_and_says_what_is_lost() {
    let place = place();
    let mut writer = place.bounded(1_000, Masker::none());
    std::fs::create_dir(place.copy()).unwrap();
    for number in 0..5_000 {
        let told = writer.output(AT, 1, Source::Stdout, line(number).as_bytes());
        assert_eq!(told[0].text, line(number).trim_end(), "it is evidence");
    }
    writer.flush().unwrap();
    assert_eq!(place.texts(LogStream::Stdout).len(), 200);
    std::fs::remove_dir(place.copy()).unwrap();
    for number in 5_000..6_500 {
        writer.output(AT, 1, Source::Stdout, line(number).as_bytes());
    }
    writer.end_output(AT, 1, Source::Stdout);
    writer.flush().unwrap();
    let stdout = place.texts(LogStream::Stdout);
    assert_eq!(stdout.last().unwrap(), line(6_499).trim_end());
    let log = std::fs::read_to_string(place.log()).unwrap();
    assert!(log.contains("\"type\":\"gap\""));
    place.verified();
}
