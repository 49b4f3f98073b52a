use super::*;
use crate::thread::rebuild::{RebuildError, rebuild};
use crate::thread::samples;

fn output(text: &str) -> Content {
    Content::Output {
        source: Source::Stdout,
        text: text.to_owned(),
        continued: false,
        lossy: false,
        carriage_returns: 0,
    }
}

fn log(masker: &Masker) -> (RunSpec, Vec<Entry>, Vec<u8>) {
    let spec = samples::spec();
    let entries = samples::succeeded(&spec);
    let (mut chain, mut out) = (Chain::start(spec.thread.as_str()), Vec::new());
    let at = spec.submitted_at;
    let content = Content::Spec(Box::new(spec.clone()));
    chain.append(at, 0, content, masker, &mut out).unwrap();
    for entry in &entries {
        let content = Content::Event(Box::new(entry.clone()));
        chain
            .append(entry.at, 1, content, masker, &mut out)
            .unwrap();
        chain
            .append(entry.at, 1, output("between the events"), masker, &mut out)
            .unwrap();
    }
    (spec, entries, out)
}

#[test]
fn numbers_may_be_left_out_where_the_line_before_vouches_for_it() {
    let (at, masker) = (Timestamp::default(), Masker::default());
    let (mut chain, mut out) = (Chain::start("T-x"), Vec::new());
    let append = |chain: &mut Chain, text: &str| {
        let mut line = Vec::new();
        chain
            .append(at, 1, output(text), &masker, &mut line)
            .unwrap();
        line.pop();
        line
    };
    let first = append(&mut chain, "first");
    let mut shortened = chain.clone();
    append(&mut chain, "left out");
    let last = append(&mut chain, "last");
    out.extend_from_slice(&first);
    out.push(b'\n');
    shortened.relink(&last, &mut out).unwrap();
    assert_eq!(verify("T-x", &out).unwrap(), 3);
    assert_eq!(shortened.next_line(), chain.next_line());
    // What is only taken away is found.
    let taken = [first.as_slice(), b"\n", last.as_slice(), b"\n"].concat();
    assert!(matches!(
        verify("T-x", &taken),
        Err(RecordError::Number {
            expected: 1,
            found: 2
        })
    ));
    assert!(shortened.relink(&first, &mut out).is_err(), "numbers grow");
    assert!(chain.relink(b"{\"line\":9}", &mut out).is_err());
}

#[test]
fn one_record_is_one_line_of_json_whatever_the_text() {
    let hostile = [
        "\u{1b}]0;title\u{7}",
        "\u{1b}[2J\u{1b}[H",
        "\u{1b}]52;c;aGk=\u{7}",
        "a\rb",
        "abc\u{8}\u{8}\u{8}xyz",
        "{\"line\":0,\"type\":\"event\"}",
        "a\u{2028}b\u{2029}c\u{85}d",
        "\u{fffd}",
        "::add-mask::x",
        "\u{9b}31m\u{202e}txt.exe\u{7f}\u{0}",
        "",
    ];
    let (mut chain, mut out) = (Chain::start("T"), Vec::new());
    let long = "x".repeat(10 * 1024 * 1024);
    for text in hostile.into_iter().chain([long.as_str()]) {
        let before = out.len();
        let at = Timestamp::from_millis(0);
        chain
            .append(at, 1, output(text), &Masker::none(), &mut out)
            .unwrap();
        let line = std::str::from_utf8(&out[before..]).unwrap();
        assert_eq!(line.lines().count(), 1);
        let body = line.strip_suffix('\n').unwrap();
        assert!(!body.contains(|c: char| c.is_control() || ('\u{2028}'..='\u{202e}').contains(&c)));
        let json: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(json["text"].as_str(), Some(text));
    }
    assert_eq!(verify("T", &out), Ok(12));
}

#[test]
fn a_changed_missing_or_foreign_line_is_named() {
    let (spec, _, bytes) = log(&Masker::none());
    let thread = spec.thread.as_str();
    assert_eq!(verify(thread, &bytes), Ok(33));
    assert_eq!(
        verify("T-other", &bytes),
        Err(RecordError::Chain { line: 0 })
    );
    let text = String::from_utf8(bytes).unwrap();
    let edited = text.replacen("between the events", "between the evens", 1);
    assert_eq!(
        verify(thread, edited.as_bytes()),
        Err(RecordError::Chain { line: 3 })
    );
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    lines.remove(5);
    assert_eq!(
        verify(thread, lines.concat().as_bytes()),
        Err(RecordError::Number {
            expected: 5,
            found: 6
        })
    );
}

#[test]
fn a_log_gives_back_specification_and_journal() {
    let (spec, entries, bytes) = log(&Masker::none());
    let thread = spec.thread.as_str();
    let rebuilt = rebuild(thread, &bytes).unwrap();
    assert_eq!((&rebuilt.spec, &rebuilt.entries), (&spec, &entries));
    assert_eq!((rebuilt.damage, rebuilt.until), (None, entries[15].at));

    let torn = rebuild(thread, &bytes[..bytes.len() - 300]).unwrap();
    assert!(torn.damage.is_some() && entries.starts_with(&torn.entries));
    let first = bytes.iter().position(|byte| *byte == b'\n').unwrap();
    assert_eq!(rebuild(thread, &bytes[..=first]), Err(RebuildError::Empty));
    assert_eq!(
        rebuild(thread, &bytes[first + 1..]),
        Err(RebuildError::Headless)
    );
    let newer = String::from_utf8(bytes).unwrap();
    let newer = newer.replacen("\"version\":1,\"spec\"", "\"version\":2,\"spec\"", 1);
    assert!(matches!(
        rebuild(thread, newer.as_bytes()),
        Err(RebuildError::Newer(RecordError::Newer(2)))
    ));
}

#[test]
fn a_log_with_an_event_lost_is_told_up_to_there() {
    let (spec, entries, bytes) = log(&Masker::none());
    let text = String::from_utf8(bytes).unwrap();
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    lines.remove(9);
    let rebuilt = rebuild(spec.thread.as_str(), lines.concat().as_bytes()).unwrap();
    assert_eq!(rebuilt.entries, entries[..4]);
    assert!(rebuilt.damage.is_some());
}

#[test]
fn secrets_equal_to_our_words_hide_nothing_of_ours() {
    let words: [(&str, &[u8]); 4] = [
        ("A", b"submitted"),
        ("B", b"execution_finished"),
        ("C", b"between"),
        ("D", b"git log"),
    ];
    let masker = Masker::new(words).unwrap();
    let (_, entries, bytes) = log(&masker);
    let text = String::from_utf8(bytes.clone()).unwrap();
    assert!(!text.contains("git log") && !text.contains("between the"));
    let spec = samples::spec();
    let rebuilt = rebuild(spec.thread.as_str(), &bytes).unwrap();
    assert_eq!(rebuilt.entries.len(), entries.len());
    assert_eq!(rebuilt.damage, None);
}

#[test]
fn records_are_shown_as_lines() {
    let (spec, _, bytes) = log(&Masker::none());
    let mut chain = Chain::start(spec.thread.as_str());
    let shown: Vec<String> = bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| chain.read(line).unwrap().to_log_line().text)
        .collect();
    assert_eq!(shown[1], "submitted");
    assert_eq!(
        shown[9],
        "execution_finished: attempt 1, exit code 3 after 900ms"
    );
    assert_eq!(shown[10], "between the events");
}

#[test]
fn no_bytes_make_the_reader_panic() {
    let (_, _, bytes) = log(&Masker::none());
    let mut state = 1u64;
    for _ in 0..2_000 {
        let mut broken = bytes[..2_000].to_vec();
        for _ in 0..3 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let at = usize::try_from(state % 2_000).unwrap();
            broken[at] = u8::try_from(state >> 56).unwrap();
        }
        let _ = verify("T", &broken);
        let _ = rebuild("T", &broken);
    }
}

#[test]
fn a_line_of_an_earlier_version_says_how_often_it_was_rewritten() {
    let (at, masker) = (Timestamp::default(), Masker::default());
    let (mut chain, mut line) = (Chain::start("T-x"), Vec::new());
    let content = Content::Output {
        source: Source::Stdout,
        text: "100 %".to_owned(),
        continued: false,
        lossy: false,
        carriage_returns: 7,
    };
    chain.append(at, 1, content, &masker, &mut line).unwrap();
    let line = String::from_utf8(line).unwrap();
    let earlier = line.replace("carriage_returns", "rewrites");
    assert_ne!(line, earlier);
    let read = read_loose(earlier.trim_end().as_bytes(), 0).unwrap();
    assert!(
        matches!(
            read.content,
            Content::Output {
                carriage_returns: 7,
                ..
            }
        ),
        "{read:?}"
    );
}
