//! `stats`

use crate::cli::exit::Exit;
use crate::cli::render::line::Line;
use crate::cli::render::table::{Column, Table};
use crate::cli::render::times;
use crate::cli::session::{Accept, Session, zone_of};
use crate::model::Diagnostic;
use crate::model::duration::show_millis;
use crate::protocol::{StatsBy, StatsLine, StatsQuery};

/// Columns of the longest bar.
const BAR_COLUMNS: u64 = 20;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only this worker
    #[arg(long, value_name = "WORKER")]
    worker: Option<String>,
    /// Only this skill: `skill` or `worker/skill`
    #[arg(long)]
    skill: Option<String>,
    /// Only this schedule
    #[arg(long, value_name = "ID")]
    schedule: Option<String>,
    /// Days from this one on: `7d`, `2026-11-20`
    #[arg(long, value_name = "WHEN", default_value = "30d")]
    since: String,
    /// Days up to this one
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    /// Group by
    #[arg(long, value_enum, default_value = "skill")]
    by: By,
}

/// What a line is of.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum By {
    Skill,
    Worker,
    Schedule,
    Day,
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let control = session.connect(Accept::RunningElseHosted)?;
    let zone = zone_of(control.as_ref())?;
    let now = session.clock.now();
    let day = |option: &str, when: &str| {
        times::parse_instant(option, when, now, zone).map(|at| at.date_in(zone))
    };
    let query = StatsQuery {
        from: Some(day("--since", &args.since)?),
        to: args
            .until
            .as_deref()
            .map(|when| day("--until", when))
            .transpose()?,
        by: match args.by {
            By::Skill => StatsBy::Skill,
            By::Worker => StatsBy::Worker,
            By::Schedule => StatsBy::Schedule,
            By::Day => StatsBy::Day,
        },
        bucket: None,
        worker: args.worker.clone(),
        skill: args.skill.clone(),
        schedule: args.schedule.clone(),
    };
    let stats = control.stats(&query)?;
    if session.json() {
        session.print_json(&stats, "stats");
    } else if stats.is_empty() {
        session.io.err.line("no runs have ended since then");
    } else {
        let width = session.io.table_width();
        table(&stats).print(&mut session.io.out, width);
    }
    Ok(Exit::Ok)
}

fn table(stats: &[StatsLine]) -> Table {
    let mut columns = vec![
        Column::new("NAME"),
        Column::new("RUNS").right(),
        Column::new("").optional(),
        Column::new("SUCCEEDED").right(),
        Column::new("VERIFIED").right(),
        Column::new("P50").right().optional(),
        Column::new("P95").right().optional(),
        Column::new("WAITED P95").right().optional(),
    ];
    let of_models = stats.iter().any(|one| one.tokens.sum() > 0);
    if of_models {
        columns.push(Column::new("TOKENS").right().optional());
        columns.push(Column::new("MONEY").right().optional());
    }
    let mut table = Table::new(&columns);
    let most = stats.iter().map(|one| one.run_count).max().unwrap_or(0);
    for one in stats {
        let share = |part: u32| {
            let percent = u64::from(part) * 100 / u64::from(one.run_count.max(1));
            format!("{part} ({percent}%)")
        };
        let span = |millis: Option<u64>| millis.map(show_millis).unwrap_or_default();
        let mut cells = vec![
            one.name.clone(),
            one.run_count.to_string(),
            bar(one, most),
            share(one.succeeded_count),
            share(one.verified_count),
            span(one.p50_ms),
            span(one.p95_ms),
            span(one.waited_p95_ms),
        ];
        if of_models {
            cells.push(one.tokens.sum().to_string());
            // As of a measurement that is not exact.
            let about = one.estimated_money.as_ref().map_or("", |_| "~");
            let money = one.money.as_ref();
            cells.push(money.map_or_else(String::new, |money| format!("{about}{money}")));
        }
        table.row(cells.into_iter().map(Line::from).collect());
    }
    table
}

/// A bar as long as there are runs, in which those that did not succeed have a sign of their own; at least one column
/// of each kind that there is.
fn bar(of: &StatsLine, most: u32) -> String {
    let columns = |count: u32| {
        let part = u64::from(count) * BAR_COLUMNS / u64::from(most.max(1));
        usize::try_from(part)
            .unwrap_or(0)
            .max(usize::from(count > 0))
    };
    let others = of.run_count.saturating_sub(of.succeeded_count);
    format!(
        "{}{}",
        "█".repeat(columns(of.succeeded_count)),
        "░".repeat(columns(others))
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::DayCounts;

    #[test]
    fn a_bar_shows_how_many_did_not_succeed() {
        let line = |run_count, succeeded_count| StatsLine {
            run_count,
            succeeded_count,
            ..StatsLine::of("w/s".to_owned(), &DayCounts::default())
        };
        for (runs, succeeded, shown) in [
            (100, 100, "████████████████████"),
            (100, 75, "███████████████░░░░░"),
            (50, 49, "█████████░"),
            (1, 1, "█"),
            (1, 0, "░"),
        ] {
            assert_eq!(bar(&line(runs, succeeded), 100), shown);
        }
    }
}
