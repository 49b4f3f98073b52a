//! Schedules that are refused, and what is said of them.

use proptest::prelude::*;

use super::super::{Options, TextChecker, TextFinding, TextKind, load};
use super::schedules::{PATH, ids, of, with};
use super::{ERROR, NOTE, WARNING, Workspace, codes, expect, show};
use crate::model::{Skill, Timestamp, Zone};

/// What is wrong when a text is not refused as expected: the schedule is left out, the skill and a sound
/// schedule beside it are not.
fn mismatch(entry: &str, (code, line, column, hint): (&str, u32, u32, &str)) -> Option<String> {
    let text = format!("schedule:\n  - {entry}\n  - {{id: sound, every: 5m}}");
    let catalog = of(&text);
    let told = catalog.problems.iter().any(|problem| {
        problem.code == code
            && problem.severity == ERROR
            && (problem.place.line, problem.place.column) == (line, column)
            && problem.hint.as_deref().unwrap_or("").contains(hint)
    });
    let rest = ids(&catalog) == ["w/a#sound"]
        && catalog.workers[0].skills.len() == 1
        && catalog.rejected.is_empty();
    (!told || !rest).then(|| format!("{entry}: {code}\n{}\n", show(&catalog.problems)))
}

#[test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn what_cannot_be_read_is_refused_with_its_place() {
    let table = [
        ("0 9 * *", ("schedule-expression", 4, 5, "five fields")),
        (
            "0 0 9 * * *",
            ("schedule-expression", 4, 15, "seconds: true"),
        ),
        ("\"@dayly\"", ("schedule-expression", 4, 6, "@daily")),
        ("\" \"", ("blank", 4, 5, "write a text")),
        ("true", ("wrong-type", 4, 5, "`\"0 9 * * 1-5\"`")),
        ("[1]", ("wrong-type", 4, 5, "write `\"")),
        ("{id: x}", ("schedule-trigger", 4, 5, "`every`")),
        (
            "{every: 5m, at: 2027-01-01T00:00}",
            ("schedule-trigger", 4, 17, "keep one"),
        ),
        (
            "{cron: \"@daily\", watch: x, every: 5m}",
            ("schedule-trigger", 4, 32, "keep one"),
        ),
        (
            "{cron: \"@daily\", schedule: \"@daily\"}",
            ("schedule-policy", 4, 22, "keep `cron`"),
        ),
        ("{every: soon}", ("duration-invalid", 4, 13, "1h30m")),
        ("{every: 900ms}", ("schedule-period", 4, 13, "`1s`")),
        ("{at: tomorrow}", ("schedule-at", 4, 10, "2026-12-24T18:00")),
        (
            "{at: 2027-02-30T10:00}",
            ("schedule-at", 4, 10, "February 2027 has 28 days"),
        ),
        ("{at: 0000-01-01T10:00}", ("schedule-at", 4, 10, "RFC 3339")),
        ("{at: []}", ("blank", 4, 6, "add an item")),
        (
            "{after: {on: failed}}",
            ("missing-key", 4, 6, "worker/skill"),
        ),
        (
            "{after: {skill: a, on: success}}",
            ("unknown-value", 4, 28, "succeeded"),
        ),
        ("{watch: {settle: 2s}}", ("missing-key", 4, 6, "paths")),
        ("{watch: ../other}", ("path-outside", 4, 13, "without `..`")),
        (
            "{watch: {paths: [a, /etc]}}",
            ("path-outside", 4, 25, "relative"),
        ),
        ("{on_commit: {}}", ("missing-key", 4, 6, "branch: main")),
        ("{on_commit: a b}", ("schedule-branch", 4, 17, "`main`")),
        ("{on_commit: HEAD}", ("schedule-branch", 4, 17, "`main`")),
        (
            "{watch: [docs, \":(exclude)x\"]}",
            ("schedule-watch", 4, 20, "such as `docs/"),
        ),
        (
            "{watch: \"!docs/x\"}",
            ("schedule-watch", 4, 13, "exclusions are not supported"),
        ),
        (
            "{watch: [docs, ./workspace/threads/T-?.json]}",
            ("schedule-watch", 4, 20, "after: worker/skill"),
        ),
        (
            "{watch: workspace/metrics}",
            ("schedule-watch", 4, 13, "skills or users write"),
        ),
        (
            "{watch: .workerctl/}",
            ("schedule-watch", 4, 13, "users write"),
        ),
        (
            "{every: 5m, timezone: Europe/Berln}",
            ("timezone-unknown", 4, 27, "`Europe/Berlin`"),
        ),
        (
            "{every: 5m, timezone: berlin}",
            ("timezone-unknown", 4, 27, "`Europe/Berlin`"),
        ),
        ("{every: 5m, id: a/b}", ("schedule-id", 4, 21, "at most 64")),
        (
            "{every: 5m, inputs: [1]}",
            ("wrong-type", 4, 25, "`inputs: {"),
        ),
        (
            "{every: 5m, overlap: skipp}",
            ("unknown-value", 4, 26, "`skip`"),
        ),
        (
            "{every: 5m, overlap: both}",
            ("unknown-value", 4, 26, "`allow_all`"),
        ),
        (
            "{every: 5m, overlap: skip, max_concurrent: 2}",
            ("schedule-policy", 4, 32, "`overlap`"),
        ),
        (
            "{every: 5m, max_concurrent: 0}",
            ("out-of-range", 4, 33, "from 1"),
        ),
        (
            "{every: 5m, catch_up: never}",
            ("unknown-value", 4, 27, "`none`"),
        ),
        (
            "{every: 5m, catch_up: {mode: none, window: 1h}}",
            ("schedule-policy", 4, 40, "one of them"),
        ),
        (
            "{every: 5m, jitter: 5m}",
            ("schedule-jitter", 4, 25, "less than the period"),
        ),
        (
            "{every: 5m, blackout: [2]}",
            ("wrong-type", 4, 27, "`blackout: {hours"),
        ),
        (
            "{every: 5m, blackout: {hours: [24]}}",
            ("schedule-hours", 4, 36, "22-5"),
        ),
        (
            "{every: 5m, blackout: {hours: 22-}}",
            ("schedule-hours", 4, 35, "22-5"),
        ),
        (
            "{every: 5m, blocked_hours: 0-23}",
            ("schedule-policy", 4, 17, "enabled: false"),
        ),
        (
            "{every: 5m, blocked_hours: 1, blackout: {hours: 2}}",
            ("schedule-policy", 4, 17, "`blackout`"),
        ),
        (
            "{every: 5m, blackout: {dates: [2026-02-29]}}",
            ("schedule-date", 4, 36, "YYYY-MM-DD"),
        ),
        (
            "{every: 5m, start: soon}",
            ("schedule-window", 4, 24, "2026-12-24"),
        ),
        (
            "{every: 5m, start: 2026-05-02, end: 2026-05-01}",
            ("schedule-window", 4, 41, "swap"),
        ),
        (
            "{every: 5m, max_actions: 0}",
            ("out-of-range", 4, 30, "from 1"),
        ),
        (
            "{every: 5m, pause_on_failure: 0}",
            ("out-of-range", 4, 35, "from 1"),
        ),
        (
            "{every: 5m, expected_within: 0}",
            ("duration-invalid", 4, 34, "above zero"),
        ),
        (
            "{every: 5m, on_missed: {timeout: 5s}}",
            ("notify-form", 4, 28, "`command`"),
        ),
        (
            "{every: 5m, enabled: maybe}",
            ("wrong-type", 4, 26, "`enabled: true`"),
        ),
        (
            "{every: 5m, seconds: true}",
            ("schedule-policy", 4, 17, "remove `seconds`"),
        ),
        (
            "{after: a, on: failed}",
            ("schedule-policy", 4, 16, "write it inside"),
        ),
        (
            "{every: 5m, dst: {gap: skip}}",
            ("schedule-policy", 4, 17, "remove `dst`"),
        ),
        (
            "{cron: \"@reboot\", dst: {gap: skip}}",
            ("schedule-policy", 4, 23, "remove `dst`"),
        ),
        (
            "{cron: \"@daily\", dst: {gap: jump}}",
            ("unknown-value", 4, 33, "`run_after`"),
        ),
        (
            "{every: 5m, inputs: {n: 9}}",
            ("schedule-inputs", 4, 26, ""),
        ),
        (
            "{every: 5m, inputs: {m: 1}}",
            ("schedule-inputs", 4, 26, ""),
        ),
        (
            "{every: 5m, skill: c}",
            ("schedule-skill-unknown", 4, 24, ""),
        ),
        (
            "{every: 5m, skill: v/a}",
            ("schedule-skill-unknown", 4, 24, "`w/a`"),
        ),
        (
            "{after: x/y}",
            ("schedule-skill-unknown", 4, 13, "workerctl skills"),
        ),
        ("{after: a}", ("schedule-cycle", 4, 13, "remove one")),
    ];
    let wrong: String = table
        .into_iter()
        .filter_map(|(entry, expected)| mismatch(entry, expected))
        .collect();
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn all_problems_of_a_schedule_are_told_at_once() {
    let catalog =
        of("schedule: {timezone: Nowhere, overlap: x, jitter: soon, skill: a, id: \"#\"}");
    let mut found = codes(&catalog);
    found.sort_unstable();
    assert_eq!(
        found,
        [
            "duration-invalid",
            "schedule-id",
            "schedule-trigger",
            "timezone-unknown",
            "unknown-value"
        ]
    );
}

#[test]
fn keys_that_are_not_known_are_told() {
    let catalog =
        of("schedule:\n  every: 5m\n  overlapp: skip\n  colour: red\n  catch_up: {windw: 1h}");
    for expected in [
        ("key-misspelled", ERROR, 5, 3, "`overlap`"),
        ("unknown-key", NOTE, 6, 3, ""),
        ("key-misspelled", ERROR, 7, 14, "`window`"),
    ] {
        expect(&catalog, PATH, &expected);
    }
    assert!(catalog.schedules.is_empty());
}

#[test]
fn a_policy_without_effect_is_told() {
    let catalog = of("schedule: {watch: docs/, expected_within: 2h}");
    let expected: super::Expected<'_> = ("schedule-useless", WARNING, 3, 26, "remove");
    expect(&catalog, PATH, &expected);
    assert_eq!(catalog.schedules.len(), 1);
}

#[test]
fn what_lies_in_the_past_is_told() {
    let text = "schedule:\n  - {at: [2026-01-01T10:00, 2026-03-01T10:00]}\n  - {at: [2026-01-01T10:00, 2027-01-01T10:00]}\n  - {every: 5m, end: 2026-03-01}";
    let workspace = Workspace::of_worker(&with(text));
    let options = Options {
        now: Timestamp::parse("2026-06-01T00:00:00Z"),
        ..Options::default()
    };
    let catalog = load(workspace.path(), options);
    expect(
        &catalog,
        PATH,
        &("schedule-past", super::WARNING, 4, 5, "the year"),
    );
    expect(
        &catalog,
        PATH,
        &("schedule-past", super::WARNING, 6, 5, "the year"),
    );
    let count = codes(&catalog)
        .iter()
        .filter(|code| **code == "schedule-past")
        .count();
    assert_eq!((count, catalog.schedules.len()), (2, 3));
    assert!(!codes(&workspace.load()).contains(&"schedule-past"));
}

#[test]
fn several_schedules_without_ids_are_told_apart_by_their_places_only() {
    let catalog =
        of("schedule:\n  - {every: 5m}\n  - {every: 7m}\n  - {every: 8m}\n  - {every: 9m, id: x}");
    expect(&catalog, PATH, &("schedule-unnamed", NOTE, 5, 5, "`id`"));
    let count = codes(&catalog)
        .iter()
        .filter(|code| **code == "schedule-unnamed")
        .count();
    assert_eq!(count, 1);
}

const EVERYTHING: &str = "worker: {id: w}\nskills:\n  - {id: a, description: d, run: date, schedule: {after: {skill: b, on: always}}}\n  - {id: b, description: d, run: date}\nschedule:\n  - {cron: 0 9 * * 1-5, seconds: false, timezone: Europe/Berlin, dst: {gap: skip, fold: both}, skill: a}\n  - {every: 15m, id: x, skill: w/b, inputs: {n: 1}, overlap: skip, catch_up: {mode: all, window: 1h}}\n  - {at: [2026-12-24T18:00, \"2027-01-01 00:00:30\"], skill: b, jitter: 5s, max_actions: 3}\n  - {watch: {paths: [a, b], settle: 2s}, skill: b, blackout: {hours: [2, \"22-5\"], dates: [2026-12-25]}}\n  - {on_commit: main, skill: b, start: 2026-01-01, end: \"2026-12-31T10:00:00Z\", pause_on_failure: 2}\n  - {cron: '@reboot', skill: b, expected_within: 1h, on_missed: {command: x, timeout: 1s}, enabled: true}\n";

/// Nothing panics, and what is handed out is sound.
fn survives(text: &[u8]) {
    let workspace = Workspace::of_worker("");
    workspace.write(PATH, text);
    let options = Options {
        threads: 1,
        now: Timestamp::parse("2026-06-01T00:00:00Z"),
        ..Options::default()
    };
    let catalog = load(workspace.path(), options);
    let lines = u32::try_from(text.split(|byte| *byte == b'\n').count()).expect("few");
    for problem in &catalog.problems {
        assert!(problem.place.line <= lines, "{problem:?}");
    }
    for (index, schedule) in catalog.schedules.iter().enumerate() {
        let duplicate = catalog.schedules[..index]
            .iter()
            .any(|other| other.id == schedule.id);
        assert!(!duplicate, "{}", schedule.id);
        assert!(schedule.timezone.parse::<Zone>().is_ok(), "{schedule:?}");
        assert!(
            schedule.policy.blocked_hours.iter().all(|hour| *hour < 24),
            "{schedule:?}"
        );
    }
}

#[test]
fn everything_at_once_is_read() {
    let catalog = Workspace::of_worker(EVERYTHING).load();
    let rest: Vec<_> = catalog
        .problems
        .iter()
        .filter(|problem| problem.severity == ERROR && problem.code != "schedule-inputs")
        .collect();
    assert!(rest.is_empty(), "{}", show(&catalog.problems));
    assert_eq!(catalog.schedules.len(), 6, "{}", show(&catalog.problems));
    for end in (0..EVERYTHING.len()).step_by(7) {
        survives(&EVERYTHING.as_bytes()[..end]);
    }
}

/// Words of schedules, and characters between them.
fn fragment() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(crate::keys::SCHEDULE.names()).prop_map(|key| format!("{key}: ")),
        prop::sample::select(vec![
            "{",
            "}",
            "[",
            "]",
            ", ",
            "\"",
            "\n  ",
            "- ",
            "@daily",
            "0 9 * * *",
            "22-5",
            "2026-02-30",
            "9999-12-31T23:59:59",
            "0000-01-01",
            "2026-03-29T02:30",
            "15m",
            "999d",
            "UTC",
            "Pacific/Apia",
            "-1",
            "255",
            "18446744073709551615",
            "1e9",
            "true",
            "~",
            "a",
            "w/a",
            "\u{e4}",
            "mode: ",
            "hours: ",
        ])
        .prop_map(ToOwned::to_owned),
        "[ -~\u{e4}\u{2028}]{0,4}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_schedule_panics(fragments in prop::collection::vec(fragment(), 0..12)) {
        let text = fragments.concat();
        survives(with(&format!("schedule: {{{text}}}")).as_bytes());
        survives(with(&format!("cron:\n  {text}")).as_bytes());
    }

    #[test]
    fn no_value_of_a_key_panics(
        key in prop::sample::select(crate::keys::SCHEDULE.names()),
        value in "[ -~\u{e4}]{0,20}",
    ) {
        let quoted = value.replace('\'', "''");
        survives(with(&format!("schedule: {{every: 5m, {key}: '{quoted}'}}")).as_bytes());
        survives(with(&format!("schedule: {{{key}: {value}}}")).as_bytes());
    }

    #[test]
    fn no_change_of_a_byte_panics(
        at in 0_usize..EVERYTHING.len(),
        byte in prop_oneof![any::<u8>(), prop::sample::select(b"{}[]:-#'\"@, \n09".to_vec())],
        insert in any::<bool>(),
    ) {
        let mut bytes = EVERYTHING.as_bytes().to_vec();
        if insert { bytes.insert(at, byte) } else { bytes[at] = byte }
        survives(&bytes);
    }
}

/// Finds fault with every hook.
struct NoHooks;

impl TextChecker for NoHooks {
    fn check(&self, _: &Skill, texts: &[(TextKind, &str)]) -> Vec<Vec<TextFinding>> {
        let finding = TextFinding {
            code: "no-hooks".to_owned(),
            severity: ERROR,
            offset: 2,
            message: "a hook".to_owned(),
            hint: None,
        };
        let of = |kind: TextKind| Vec::from_iter((kind == TextKind::Hook).then(|| finding.clone()));
        texts.iter().map(|(kind, _)| of(*kind)).collect()
    }
}

#[test]
fn the_command_that_is_told_is_looked_at() {
    let text = with("schedule: [{every: 5m, on_missed: tell}, {every: 6m}]");
    let options = Options {
        text_checker: Some(&NoHooks),
        ..Options::default()
    };
    let catalog = load(Workspace::of_worker(&text).path(), options);
    expect(&catalog, PATH, &("no-hooks", ERROR, 3, 37, ""));
    assert_eq!(ids(&catalog), ["w/a#2"]);
    assert_eq!(catalog.workers[0].skills.len(), 1);
}

#[test]
fn where_the_engine_may_keep_its_state_is_watched_with_a_warning() {
    let catalog =
        of("schedule:\n  - {watch: state/}\n  - {id: other, watch: [state-of-affairs, workspace]}");
    assert_eq!(catalog.schedules.len(), 2);
    let told: Vec<_> = catalog
        .problems
        .iter()
        .filter(|problem| problem.code == "schedule-watch")
        .collect();
    assert_eq!(told.len(), 1, "{}", show(&catalog.problems));
    assert_eq!(told[0].severity, WARNING);
    assert_eq!((told[0].place.line, told[0].place.column), (4, 13));
    assert!(told[0].hint.as_deref().unwrap().contains("--state-dir"));
}
