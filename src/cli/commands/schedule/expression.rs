//! `schedule next|explain`: expressions and their due times

use chrono_tz::Tz;

use crate::cli::exit::Exit;
use crate::cli::io::Stream;
use crate::cli::render::line::{BOLD, CARE, Line};
use crate::cli::session::Session;
use crate::model::{Diagnostic, Kind, Timestamp};
use crate::schedule::{Expression, Recurrence, dst_warnings, words};

/// How far ahead changes of the clock are told, in milliseconds: two years.
const WARNED_MS: u64 = 2 * 366 * 24 * 3_600_000;

/// Most due times that are listed at once.
const NEXT_MAX: usize = 10_000;

/// A cron expression that stands in no definition.
#[derive(Debug, clap::Args)]
pub(super) struct Bare {
    /// The expression in quotes: `"0 9 * * 1-5"`, or a nickname such as `@daily`
    expression: String,
    /// IANA zone of its times
    #[arg(short = 'z', long, value_name = "ZONE", default_value = "UTC")]
    timezone: String,
    /// Whether its first field is seconds
    #[arg(long)]
    seconds: bool,
    /// How many due times
    #[arg(short = 'n', long, default_value_t = 5)]
    count: usize,
}

/// Reads an expression and its zone, with the place of what is wrong.
fn read(bare: &Bare) -> Result<(Recurrence, Tz), Diagnostic> {
    let zone: Tz = bare.timezone.parse().map_err(|_| {
        Diagnostic::new(
            Kind::Usage,
            "timezone_unknown",
            format!("`{}` is no time zone", bare.timezone),
        )
        .hint("write an IANA name such as `Europe/Berlin`")
    })?;
    let expression = Expression::parse(&bare.expression, bare.seconds).map_err(|error| {
        let place = error.at.start + 1;
        let message = format!("`{}`, column {place}: {}", bare.expression, error.message);
        Diagnostic::new(Kind::Usage, "schedule_expression", message).hint(error.hint)
    })?;
    Ok((Recurrence::cron(expression, zone, None), zone))
}

fn fires(recurrence: &Recurrence, from: Timestamp, count: usize) -> Vec<Timestamp> {
    std::iter::successors(recurrence.next_after(from), |last| {
        recurrence.next_after(*last)
    })
    .take(count.min(NEXT_MAX))
    .collect()
}

pub(super) fn next(session: &mut Session<'_>, bare: &Bare) -> Result<Exit, Diagnostic> {
    let (recurrence, zone) = read(bare)?;
    let fires = fires(&recurrence, session.clock.now(), bare.count);
    if session.json() {
        session.print_json(&fires, "next");
    } else {
        for at in fires {
            session.io.out.line(at.rfc3339_in(zone));
        }
    }
    Ok(Exit::Ok)
}

pub(super) fn explain(session: &mut Session<'_>, bare: &Bare) -> Result<Exit, Diagnostic> {
    let (recurrence, zone) = read(bare)?;
    let now = session.clock.now();
    let fires = fires(&recurrence, now, bare.count);
    let warnings = dst_warnings(&recurrence, now, now.plus_millis(WARNED_MS));
    if session.json() {
        let explained = serde_json::json!({
            "words": words(&recurrence), "next": fires, "clock_changes": warnings,
        });
        session.print_json(&explained, "explained");
        return Ok(Exit::Ok);
    }
    let out: &mut Stream<'_> = &mut session.io.out;
    out.line(Line::of(BOLD, words(&recurrence)));
    for at in fires {
        out.line(Line::from("  ").text(at.rfc3339_in(zone)));
    }
    for warning in warnings {
        out.line(Line::of(CARE, format!("  {}  ", warning.date)).text(warning.what));
    }
    Ok(Exit::Ok)
}
