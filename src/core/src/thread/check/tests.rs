use super::*;
use crate::model::RunSpec;
use crate::thread::document::{GitFacts, document};
use crate::thread::line::Source;
use crate::thread::mask::Masker;
use crate::thread::samples;

/// The files of one run that has ended, and its journal.
struct Thread {
    spec: RunSpec,
    lines: Vec<Vec<u8>>,
    summary: SummaryFacts,
    journal: Journal,
}

fn thread(masker: &Masker) -> Thread {
    let spec = samples::spec();
    let entries = samples::succeeded(&spec);
    let (mut chain, mut lines) = (Chain::start(spec.thread.as_str()), Vec::new());
    let mut append = |content| {
        let mut out = Vec::new();
        let at = spec.submitted_at;
        chain.append(at, 1, content, masker, &mut out).unwrap();
        out.pop();
        lines.push(out);
    };
    append(Content::Spec(Box::new(spec.clone())));
    // The last event of a journal, `closed`, is told to no log.
    let told = &entries[..entries.len() - 1];
    for entry in told {
        append(Content::Event(Box::new(entry.clone())));
        append(Content::Output {
            source: Source::Stdout,
            text: "between".to_owned(),
            continued: false,
            lossy: false,
            carriage_returns: 0,
        });
    }
    let document = document(
        &spec,
        told,
        &GitFacts::default(),
        Some(&chain.end()),
        masker,
    );
    let journal = Journal {
        run: spec.run.to_string(),
        outcome: Some("succeeded".to_owned()),
        timeline: entries
            .iter()
            .map(|entry| (entry.at, entry.event.name().to_owned()))
            .collect(),
    };
    Thread {
        summary: serde_json::from_value(document).unwrap(),
        spec,
        lines,
        journal,
    }
}

impl Thread {
    fn check(&self, summary: Option<&SummaryFacts>, journal: Option<&Journal>) -> CheckedThread {
        let name = self.spec.thread.as_str();
        let mut check = ThreadCheck::new(name, summary.cloned(), journal);
        for line in &self.lines {
            check.line(line);
        }
        check.finish(Some(false))
    }

    /// What is said with all that is known, and from the files alone.
    fn damages(&self) -> [Option<String>; 2] {
        [Some(&self.journal), None].map(|journal| self.check(Some(&self.summary), journal).damage)
    }
}

#[test]
fn what_was_written_is_verified_and_old_or_unfinished_threads_as_far_as_they_go() {
    let thread = thread(&Masker::none());
    let state = |summary: Option<&SummaryFacts>, journal: Option<&Journal>| {
        let checked = thread.check(summary, journal);
        assert_eq!((checked.damage, checked.lines), (None, 31));
        checked.state
    };
    let (summary, journal) = (Some(&thread.summary), Some(&thread.journal));
    assert_eq!(state(summary, journal), Soundness::Verified);
    assert_eq!(state(summary, None), Soundness::Verified);
    let mut older = thread.summary.clone();
    older.run.log = None;
    assert_eq!(state(Some(&older), journal), Soundness::EndUnknown);
    assert_eq!(state(Some(&older), None), Soundness::Unfinished);
    let mut open = thread.journal.clone();
    open.timeline.pop();
    assert_eq!(state(None, Some(&open)), Soundness::Unfinished);
    open.timeline.truncate(3);
    assert_eq!(state(summary, Some(&open)), Soundness::Unfinished);
    assert_eq!(state(None, None), Soundness::Unfinished);
}

#[test]
fn every_accident_of_a_log_is_told_with_its_place() {
    type Accident = fn(&mut Vec<Vec<u8>>);
    let table: [(Accident, &str); 8] = [
        (
            |lines| {
                lines[16] = String::from_utf8_lossy(&lines[16])
                    .replace("between", "betwixt")
                    .into_bytes();
            },
            "line 17 does not match the hash of line 16",
        ),
        (
            |lines| drop(lines.remove(5)),
            "found line 6 instead of line 5",
        ),
        (|lines| lines.swap(7, 8), "found line 8 instead of line 7"),
        (
            |lines| lines.truncate(29),
            "its log is cut off: 29 of 31 lines are there",
        ),
        (
            |lines| {
                lines[30] = String::from_utf8_lossy(&lines[30])
                    .replace("between", "betwixt")
                    .into_bytes();
            },
            "line 30 is not the one that was written last",
        ),
        (
            |lines| lines.push(b"appended".to_vec()),
            "line 31 is not a record: expected value at line 1 column 1",
        ),
        (
            |lines| lines.push(lines[30].clone()),
            "found line 30 instead of line 31",
        ),
        (
            |lines| {
                lines[0] = String::from_utf8_lossy(&lines[0])
                    .replacen("\"prev\":\"", "\"prev\":\"0", 1)
                    .into_bytes();
            },
            "line 0 does not match the name of the thread",
        ),
    ];
    for (accident, told) in table {
        let mut thread = thread(&Masker::none());
        accident(&mut thread.lines);
        assert_eq!(thread.damages(), [(); 2].map(|()| Some(told.to_owned())));
    }
    let mut no_text = thread(&Masker::none());
    let at = no_text.lines[4].len() - 5;
    no_text.lines[4][at] = 0xff;
    for damage in no_text.damages() {
        let damage = damage.unwrap();
        assert!(damage.starts_with("line 4 is not a record"), "{damage}");
    }
}

#[test]
fn a_log_that_was_cut_off_is_found_by_the_journal_where_no_end_is_recorded() {
    let mut thread = thread(&Masker::none());
    thread.summary.run.log = None;
    thread.lines.truncate(27);
    let [with_journal, files_alone] = thread.damages();
    let told = "its log is cut off: 13 of 15 events are there";
    assert_eq!(with_journal.as_deref(), Some(told));
    assert_eq!(files_alone.as_deref(), Some(told));
    let checked = thread.check(None, None);
    assert_eq!(checked.state, Soundness::Unfinished);
}

#[test]
fn lines_after_the_end_are_damage_once_the_run_is_closed() {
    let mut thread = thread(&Masker::none());
    let end = thread.summary.run.log.as_mut().unwrap();
    end.lines = 30;
    let mut chain = Chain::start(thread.spec.thread.as_str());
    for line in &thread.lines[..30] {
        chain.read(line).unwrap();
    }
    *end = chain.end();
    let told = "its log goes on after its recorded end: 31 lines, 30 recorded";
    // From the files alone it may be a run that somebody settled, whose engine was lost at that.
    assert_eq!(thread.damages(), [Some(told.to_owned()), None]);
    // Numbers that no log reaches are damage as well.
    thread.summary.run.log.as_mut().unwrap().lines = 0;
    let last = format!("{{\"line\":{},", u64::MAX);
    let text = String::from_utf8_lossy(&thread.lines[30]).replacen("{\"line\":30,", &last, 1);
    thread
        .lines
        .extend([text.clone().into_bytes(), text.into_bytes()]);
    assert!(thread.damages().iter().all(Option::is_some));
}

#[test]
fn a_log_and_a_summary_of_different_runs_are_told_apart() {
    let thread = thread(&Masker::none());
    let mut journal = thread.journal.clone();
    journal.outcome = Some("failed".to_owned());
    let damage = |summary: &SummaryFacts, journal: Option<&Journal>| {
        thread.check(Some(summary), journal).damage
    };
    assert_eq!(
        damage(&thread.summary, Some(&journal)).as_deref(),
        Some("its summary says `succeeded`, the journal `failed`")
    );
    journal = thread.journal.clone();
    journal.timeline[2].0 = Timestamp::from_millis(7);
    let told = damage(&thread.summary, Some(&journal)).unwrap();
    assert_eq!(told, "the event of line 5 is not the one of the journal");
    let mut summary = thread.summary.clone();
    summary.run.timeline[1].event = "resolved".to_owned();
    let told = "the event of line 3 is not the one that the summary names";
    assert_eq!(damage(&summary, None).as_deref(), Some(told));
    summary = SummaryFacts {
        thread_id: "T-other".to_owned(),
        ..thread.summary.clone()
    };
    let told = "its summary is of thread T-other";
    assert_eq!(damage(&summary, None).as_deref(), Some(told));
    assert_eq!(
        thread.check(None, Some(&thread.journal)).damage.as_deref(),
        Some("its summary is missing")
    );
}

#[test]
fn secrets_that_equal_words_of_ours_are_no_damage() {
    let words: [(&str, &[u8]); 4] = [
        ("A", b"submitted"),
        ("B", b"execution_finished"),
        ("C", b"2026-11"),
        ("D", b"succeeded"),
    ];
    let thread = thread(&Masker::new(words).unwrap());
    assert_eq!(thread.damages(), [None, None]);
}

#[test]
fn what_is_missing_or_torn_is_damage_where_it_should_be_there() {
    let thread = thread(&Masker::none());
    let name = thread.spec.thread.as_str();
    let mut open = thread.journal.clone();
    open.timeline.truncate(1);
    let (summary, journal) = (Some(&thread.summary), Some(&thread.journal));
    let table = [
        (summary, journal, None, Some("its log is missing")),
        (summary, None, None, Some("its log is missing")),
        (None, Some(&open), None, None),
        (None, Some(&open), Some(true), None),
        (None, Some(&open), Some(false), None),
        (
            summary,
            journal,
            Some(false),
            Some("its log is cut off: 0 of 31 lines are there"),
        ),
    ];
    for (summary, journal, torn, told) in table {
        let check = ThreadCheck::new(name, summary.cloned(), journal);
        let checked = check.finish(torn);
        assert_eq!(checked.damage.as_deref(), told, "{torn:?}");
    }
    let mut check = ThreadCheck::new(name, Some(thread.summary.clone()), journal);
    for line in &thread.lines {
        check.line(line);
    }
    let checked = check.finish(Some(true));
    let told = "its log ends in the middle of a line";
    assert_eq!(checked.damage.as_deref(), Some(told));
}
