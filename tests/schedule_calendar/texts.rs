//! Texts that nobody thought of, and what is said of those that are refused.

use proptest::prelude::*;
use workerctl::model::Zone;
use workerctl::schedule::{Dst, Expression, Recurrence, words};

use crate::{at, rounds};

fn read(text: &str, seconds: bool) -> Result<(), TestCaseError> {
    match Expression::parse(text, seconds) {
        Ok(expression) => {
            prop_assert_eq!(expression.to_string(), text);
            prop_assert_eq!(
                &Expression::parse(&expression.to_string(), seconds),
                &Ok(expression.clone())
            );
            let recurrence = Recurrence::cron(
                expression,
                Zone::compiled_in("Europe/Berlin").unwrap(),
                None,
            );
            let next = recurrence.next_after(at("2026-11-21"));
            prop_assert!(next.is_some_and(|next| next > at("2026-11-21")));
            prop_assert!(!words(&recurrence).is_empty());
        }
        Err(why) => {
            prop_assert!(
                text.get(why.at.clone()).is_some(),
                "{:?} in {:?}",
                why,
                text
            );
            prop_assert!(!why.message.is_empty() && !why.hint.is_empty());
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        u32::try_from(rounds().map_or(400, |rounds| rounds * 20)).unwrap_or(u32::MAX)
    ))]

    #[test]
    fn no_text_panics(text in any::<String>(), seconds in any::<bool>()) {
        read(&text, seconds)?;
    }

    #[test]
    fn no_text_of_its_characters_panics(text in "[0-9*/,#LW?@a-z \t-]{0,40}", seconds in any::<bool>()) {
        read(&text, seconds)?;
    }

    #[test]
    fn no_likely_expression_panics(
        fields in prop::collection::vec("[*]|[*]/[0-9]{1,2}|[0-9]{1,2}|[0-9](,|-|/)[0-9]{1,2}|[0-9]{1,2}[LW]|L|LW|L-[0-9]|[0-7]#[0-6]|(?i:mon|FRI|jan|Ma[yr])|é|[?]", 5..=6),
        seconds in any::<bool>(),
    ) {
        read(&fields.join(" "), seconds)?;
        read(&format!("\t{}  ", fields.join("  \t")), seconds)?;
    }

    #[test]
    fn no_moment_panics(text in "[0-9TZ:+ .-]{0,30}") {
        if let Ok(one) = Recurrence::at(&[text], Zone::compiled_in("Europe/Berlin").unwrap(), Dst::FIXED_TIME) {
            prop_assert!(one.next_after(at("1899-01-01")).is_some());
        }
    }
}

/// The text, whether seconds are on, the code, what is pointed at, and a word of the remedy.
const REFUSED: [(&str, bool, &str, &str, &str); 35] = [
    ("", false, "cron-too-few-fields", "", "five fields"),
    ("  ", false, "cron-too-few-fields", "  ", "five fields"),
    (
        " 0 9 * * ",
        false,
        "cron-too-few-fields",
        "0 9 * *",
        "five fields",
    ),
    (
        "0 9 * * 1",
        true,
        "cron-too-few-fields",
        "0 9 * * 1",
        "six fields: second",
    ),
    (
        "0 0 9 * * 1",
        false,
        "cron-too-many-fields",
        "1",
        "`seconds: true`",
    ),
    (
        "0 0 9 * * 1 2026",
        false,
        "cron-too-many-fields",
        "1 2026",
        "`seconds: true`",
    ),
    (
        "0 0 9 * * 1 2026",
        true,
        "cron-too-many-fields",
        "2026",
        "a year",
    ),
    (
        "TZ=UTC 0 9 * * 1",
        false,
        "cron-assignment",
        "TZ=UTC",
        "zone",
    ),
    ("60 * * * *", false, "cron-out-of-range", "60", "0 to 59"),
    (
        "0 9 1,99999999999 * *",
        false,
        "cron-out-of-range",
        "99999999999",
        "1 to 31",
    ),
    ("0 9 * * 8", false, "cron-out-of-range", "8", "0 to 7"),
    (
        "0 22-2 * * *",
        false,
        "cron-range-wraps",
        "22-2",
        "`22-23,0-2`",
    ),
    (
        "0 22-2/2 * * *",
        false,
        "cron-range-wraps",
        "22-2",
        "`22,0,2`",
    ),
    (
        "0 9 * * FRI-MON",
        false,
        "cron-range-wraps",
        "FRI-MON",
        "`5-7,0-1`",
    ),
    ("0 9 * * 5-0", false, "cron-range-wraps", "5-0", "`5-7`"),
    ("0 9 * * 7-2", false, "cron-range-wraps", "7-2", "`0-2`"),
    ("*/0 * * * *", false, "cron-zero-step", "0", "1 or more"),
    ("*/ * * * *", false, "cron-step-unreadable", "/", "`*/15`"),
    (
        "1-5/2/2 * * * *",
        false,
        "cron-step-unreadable",
        "/2/2",
        "number",
    ),
    ("0,,5 * * * *", false, "cron-empty-item", ",,", "comma"),
    ("0, * * * *", false, "cron-empty-item", ",", "comma"),
    (
        "0 9 * jna *",
        false,
        "cron-name-unknown",
        "jna",
        "`January`",
    ),
    (
        "0 9 * * wendesday",
        false,
        "cron-name-unknown",
        "wendesday",
        "`Wednesday`",
    ),
    (
        "0 9 * * tues",
        false,
        "cron-name-unknown",
        "tues",
        "`Tuesday`",
    ),
    ("mon 9 * * *", false, "cron-name-unknown", "mon", "0 to 59"),
    ("0 -5 * * *", false, "cron-unreadable", "", "0 to 23"),
    ("0 ? * * *", false, "cron-unreadable", "?", "0 to 23"),
    ("0 9 1.5 * *", false, "cron-unreadable", "1.5", "1 to 31"),
    (
        "L 9 * * *",
        false,
        "cron-special-misplaced",
        "L",
        "fields of days",
    ),
    ("0 9 * * L", false, "cron-special-misplaced", "L", "`5L`"),
    (
        "0 9 5#2 * *",
        false,
        "cron-special-misplaced",
        "5#2",
        "day of the week",
    ),
    (
        "0 9 1-5W * *",
        false,
        "cron-special-misplaced",
        "1-5W",
        "of its own",
    ),
    ("0 9 * * 5#6", false, "cron-out-of-range", "6", "1 to 5"),
    (
        "0 9 30 2 *",
        false,
        "cron-never-fires",
        "0 9 30 2 *",
        "February",
    ),
    (
        "@dialy",
        false,
        "cron-nickname-unknown",
        "@dialy",
        "`@daily`",
    ),
];

#[test]
fn refusals_name_the_place_and_the_remedy() {
    for (text, seconds, code, place, remedy) in REFUSED {
        let why = Expression::parse(text, seconds).unwrap_err();
        assert_eq!(why.code, code, "{text}: {why}");
        assert_eq!(&text[why.at.clone()], place, "{text}: {why}");
        assert!(why.hint.contains(remedy), "{text}: {}", why.hint);
    }
    let long = format!("0 9 * * 1{}", ",1".repeat(600));
    assert_eq!(
        Expression::parse(&long, false).unwrap_err().code,
        "cron-too-long"
    );
}

#[test]
fn blanks_do_not_matter() {
    let plain = Expression::parse("0 9 * * 1", false).unwrap();
    let blank = Expression::parse(" \t0  9\t* *   1\n", false).unwrap();
    assert_eq!(blank.to_string(), " \t0  9\t* *   1\n");
    let next =
        |expression| Recurrence::cron(expression, Zone::UTC, None).next_after(at("2026-01-01"));
    assert_eq!(next(plain), next(blank));
}
