//! Numbers of limits and prices, exactly as they are written.

use std::ops::RangeInclusive;

use super::report::Report;
use super::tree::Data;
use super::view::View;
use crate::model::agent::Money;

/// Reads a whole number; `500_000` too, which YAML takes for text.
pub(crate) fn whole(
    view: View<'_>,
    key: &str,
    bounds: RangeInclusive<u64>,
    report: &mut Report,
) -> Option<u64> {
    if let Data::Text(text) = view.data()
        && let Ok(number) = text.trim().replace('_', "").parse()
        && bounds.contains(&number)
    {
        return Some(number);
    }
    view.whole(key, bounds, report)
}

/// As [`whole`], of numbers with 32 bits.
pub(crate) fn small(view: View<'_>, key: &str, max: u32, report: &mut Report) -> Option<u32> {
    let number = whole(view, key, 1..=u64::from(max), report)?;
    u32::try_from(number).ok()
}

/// A number with digits behind the point, in millionths. Read from the text: `0.1` has no exact binary form.
fn millionths(view: View<'_>) -> Option<u64> {
    let is_scalar = matches!(view.data(), Data::Number(_) | Data::Text(_));
    let text = view.scalar_text().filter(|_| is_scalar)?;
    Money::parse(&text.replace('_', "")).map(|money| money.0)
}

/// Reads an amount of money.
pub(crate) fn money(view: View<'_>, key: &str, report: &mut Report) -> Option<Money> {
    let found = millionths(view).map(Money);
    if found.is_none() {
        report.error(
            "money-invalid",
            view.place(),
            format!("`{key}` is not an amount of money"),
            "write an amount such as `2.50`, with at most six digits behind the point",
        );
    }
    found
}

/// Reads an amount of money that limits something: nothing could be done with none.
pub(crate) fn money_limit(view: View<'_>, key: &str, report: &mut Report) -> Option<Money> {
    let found = money(view, key, report)?;
    if found > Money(0) {
        return Some(found);
    }
    report.error(
        "out-of-range",
        view.place(),
        format!("`{key}` must be more than zero"),
        "write an amount such as `2.50`, or remove the key",
    );
    None
}

/// Reads a number from 0 to `max` with at most three digits behind the point, in thousandths.
pub(crate) fn thousandths(view: View<'_>, key: &str, max: u32, report: &mut Report) -> Option<u32> {
    let found = millionths(view).filter(|found| found % 1_000 == 0);
    let found = found.and_then(|found| u32::try_from(found / 1_000).ok());
    let found = found.filter(|found| *found <= max * 1_000);
    if found.is_none() {
        report.error(
            "out-of-range",
            view.place(),
            format!("`{key}` must be a number from 0 to {max}, with at most three digits behind the point"),
            "write a number such as `0.2`",
        );
    }
    found
}

/// Whether a text can name something of the configuration: letters, digits, `_`, `-` and what else `more` has.
pub(crate) fn is_name(text: &str, more: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c) || more.contains(c);
    (1..=64).contains(&text.len()) && text.chars().all(fits)
}
