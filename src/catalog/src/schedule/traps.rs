//! Cron expressions that are valid and mean something else than most people think.

use super::super::report::Report;
use super::super::view::View;

/// Days of the month by which people try to say which weekday of the month they mean.
const WEEKS: [&str; 4] = ["1-7", "8-14", "15-21", "22-28"];

/// Warns of steps that are longer than their field, and of a week of the month with a weekday.
pub(super) fn report(view: View<'_>, text: &str, seconds: bool, report: &mut Report) {
    let fields: Vec<&str> = text
        .split_ascii_whitespace()
        .skip(usize::from(seconds))
        .collect();
    let [minute, hour, day, _, weekday] = fields[..] else {
        return;
    };
    for (field, length, unit, name) in [(minute, 60, "m", "minute"), (hour, 24, "h", "hour")] {
        let step = field
            .strip_prefix("*/")
            .and_then(|step| step.parse::<u32>().ok());
        if let Some(step) = step.filter(|step| *step >= length) {
            let message = format!(
                "`{field}` matches only {name} 0, because the step exceeds the range of the field"
            );
            let hint = format!("write `every: {step}{unit}` instead of `cron`");
            report.warning("cron-step-long", view.place(), message, &hint);
        }
    }
    let week = WEEKS.iter().zip(1..).find(|(days, _)| **days == day);
    if let Some((_, number)) = week.filter(|_| !weekday.starts_with('*')) {
        let message = format!(
            "it fires on days {day} and also on every weekday `{weekday}`: a match of either field is enough"
        );
        let hint = format!("write `* * {weekday}#{number}` for that weekday of the month");
        report.warning("cron-days-either", view.place(), message, &hint);
    }
}
