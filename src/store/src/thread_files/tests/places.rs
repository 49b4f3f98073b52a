//! Places in logs that are too long to be read through.

use super::*;
use crate::protocol::LogLine;

/// Lines of output in the long log: some megabytes of records.
const LINES: u64 = 30_000;

/// A log of one event a thousand lines of output, of which one in ten is of standard error.
fn long() -> (Place, u64) {
    let place = place();
    let mut writer = place.writer(Masker::none());
    writer.entries(&place.entries[..2], 1).unwrap();
    let ballast = "x".repeat(150);
    for number in 0..LINES {
        let source = match number % 10 {
            9 => Source::Stderr,
            _ => Source::Stdout,
        };
        let text = format!("number {number} {ballast}\n");
        writer.output(AT, 1, source, text.as_bytes());
    }
    // Longer than what is searched through at once.
    let endless = vec![b'y'; 700_000];
    writer.output(AT, 1, Source::Stdout, &endless);
    writer.end_output(AT, 1, Source::Stdout);
    writer.output(AT, 1, Source::Stdout, b"last\n");
    writer.flush().unwrap();
    let lines = place.verified();
    (place, lines)
}

fn reader(place: &Place) -> LogReader {
    LogReader::open(&place.dir, &place.spec.thread)
        .unwrap()
        .unwrap()
}

const ALL: Wants<'static> = &|_| true;

#[test]
fn any_line_of_a_long_log_is_found_and_they_are_counted() {
    let (place, lines) = long();
    let mut counted = reader(&place);
    counted.skip_to_end().unwrap();
    assert_eq!(counted.line(), lines);
    assert_eq!(counted.page(1).unwrap().lines, []);
    for line in (0..lines).step_by(1_009).chain(lines - 9..lines) {
        let mut reader = reader(&place);
        reader.skip_to(line).unwrap();
        assert_eq!(reader.line(), line);
        assert_eq!(reader.page(1).unwrap().lines[0].line, line);
    }
    let mut beyond = reader(&place);
    beyond.skip_to(u64::MAX).unwrap();
    assert_eq!(beyond.line(), lines);
}

#[test]
fn the_last_lines_that_are_wanted_are_found_from_the_end() {
    let (place, lines) = long();
    let last = |count: usize, wants: Wants<'_>| -> Vec<LogLine> {
        let mut reader = reader(&place);
        reader.skip_to_last(count, wants).unwrap();
        let mut found = Vec::new();
        loop {
            let page = reader.select(10_000, wants).unwrap();
            found.extend(page.lines);
            if !page.more {
                return found;
            }
        }
    };
    assert_eq!(last(0, ALL), []);
    assert_eq!(last(1, ALL)[0].text, "last");
    let numbers = |found: &[LogLine]| found.iter().map(|line| line.line).collect::<Vec<_>>();
    let expected: Vec<u64> = (lines - 20_000..lines).collect();
    assert_eq!(numbers(&last(20_000, ALL)), expected);
    assert_eq!(last(usize::MAX, ALL).len() as u64, lines);
    let of_stderr: Wants<'_> = &|line| line.stream == LogStream::Stderr;
    let found = last(2_000, of_stderr);
    assert_eq!(found.len(), 2_000);
    assert!(
        found[0].text.starts_with("number 10009 "),
        "{}",
        found[0].text
    );
    // There are no more than these.
    assert_eq!(last(2_000_000, of_stderr).len() as u64, LINES / 10);
    assert_eq!(last(3, &|line| line.text.contains("number 17 ")).len(), 1);
    assert_eq!(last(3, &|_| false), []);
}

#[test]
fn damage_hides_no_lines_but_its_own() {
    let (place, lines) = long();
    let whole = std::fs::read(place.log()).unwrap();
    let mut damaged = whole.clone();
    // The search meets the middle first.
    let middle = whole.len() / 2;
    damaged[middle..middle + 2_000].fill(b'#');
    damaged.truncate(whole.len() - 3);
    std::fs::write(place.log(), &damaged).unwrap();
    let mut reader = reader(&place);
    reader.skip_to(lines - 10).unwrap();
    let page = reader.page(100).unwrap();
    // The last line has lost its end.
    let numbers: Vec<u64> = page.lines.iter().map(|line| line.line).collect();
    assert_eq!(numbers, (lines - 10..lines - 1).collect::<Vec<_>>());
    reader.skip_to_last(3, ALL).unwrap();
    assert_eq!(reader.line(), lines - 4);
    // Pages go on where the one before ended, also behind what has lost the ends of its lines.
    let mut numbers: Vec<u64> = Vec::new();
    loop {
        let mut reader = super::places::reader(&place);
        reader
            .skip_to(numbers.last().map_or(0, |last| last + 1))
            .unwrap();
        let page = reader.page(1_000).unwrap();
        numbers.extend(page.lines.iter().map(|line| line.line));
        assert_eq!(Some(reader.line()), numbers.last().map(|last| last + 1));
        if !page.more {
            break;
        }
    }
    let lost = lines - 1 - numbers.len() as u64;
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    assert!((5..12).contains(&lost), "{lost}");
    // A file that is no log at all has lines as well.
    std::fs::write(place.log(), vec![b'\n'; 600_000]).unwrap();
    let mut reader = super::places::reader(&place);
    reader.skip_to_last(2, ALL).unwrap();
    assert_eq!(reader.page(9).unwrap().lines.len(), 2);
}
