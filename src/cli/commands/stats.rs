//! `stats`

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cli::exit::Exit;
use crate::cli::render::line::Line;
use crate::cli::render::table::{Column, Table};
use crate::cli::render::times;
use crate::cli::session::{Accept, Session, zone_of};
use crate::model::agent::{Money, Tokens};
use crate::model::duration::show_millis;
use crate::model::{Diagnostic, Outcome, Timestamp};
use crate::protocol::{Control, RunSummary, RunsQuery};

/// Runs that are asked for at once.
const PAGE: u32 = 1_000;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only of this worker
    #[arg(long, value_name = "WORKER")]
    worker: Option<String>,
    /// Only of this skill: `skill` or `worker/skill`
    #[arg(long)]
    skill: Option<String>,
    /// Only runs submitted since then: `7d`, `2026-11-20`
    #[arg(long, value_name = "WHEN", default_value = "30d")]
    since: String,
    /// One line for each worker instead of each skill
    #[arg(long)]
    by_worker: bool,
}

/// What the runs of one skill or worker came to.
#[derive(Debug, Default, Serialize)]
struct Stats {
    name: String,
    /// Runs that have ended, those that other runs started included.
    runs: u32,
    succeeded: u32,
    /// Of these, those that a check proved.
    verified: u32,
    tokens: Tokens,
    /// Where the model has prices.
    money: Option<String>,
    /// Half of the runs took at most so long, from their start.
    p50_ms: u64,
    /// Nine of ten.
    p90_ms: u64,
    #[serde(skip)]
    spent: Option<Money>,
    #[serde(skip)]
    took_ms: Vec<u64>,
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let control = session.connect(Accept::RunningElseHosted)?;
    let zone = zone_of(control.as_ref())?;
    let since = times::parse_instant(&args.since, session.clock.now(), zone)?;
    let stats = counted(control.as_ref(), args, since)?;
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

fn counted(control: &dyn Control, args: &Args, since: Timestamp) -> Result<Vec<Stats>, Diagnostic> {
    let mut query = RunsQuery {
        worker: args.worker.clone(),
        skill: args.skill.clone(),
        since_ms: Some(since.millis()),
        limit: PAGE,
        ..RunsQuery::default()
    };
    let mut all: BTreeMap<String, Stats> = BTreeMap::new();
    loop {
        let page = control.runs(&query)?;
        for run in &page {
            let name = if args.by_worker {
                run.skill.worker.clone()
            } else {
                run.skill.to_string()
            };
            all.entry(name).or_default().take(run);
        }
        match page.last() {
            Some(last) if page.len() >= PAGE as usize => query.before = Some(last.run),
            _ => break,
        }
    }
    let named = all.into_iter().filter(|(_, stats)| stats.runs > 0);
    Ok(named.map(|(name, stats)| stats.finished(name)).collect())
}

impl Stats {
    fn take(&mut self, run: &RunSummary) {
        let (Some(outcome), Some(ended)) = (&run.outcome, run.finished_at) else {
            return;
        };
        self.runs += 1;
        if *outcome == Outcome::Succeeded {
            self.succeeded += 1;
            self.verified += u32::from(!run.unverified && !run.nothing_to_do);
        }
        if let Some(spent) = run.spent.as_ref().filter(|_| run.parent.is_none()) {
            self.tokens = self.tokens.plus(spent.tokens);
            let money = spent.money.as_deref().and_then(Money::parse);
            self.spent = money.map_or(self.spent, |money| {
                Some(self.spent.unwrap_or_default().plus(money))
            });
        }
        let began = run.started_at.unwrap_or(run.submitted_at);
        self.took_ms.push(ended.millis_since(began));
    }

    fn finished(mut self, name: String) -> Stats {
        self.took_ms.sort_unstable();
        // The nearest rank: the least time that so many of the runs did not exceed.
        let at = |percent: usize| {
            let rank = (self.took_ms.len() * percent).div_ceil(100).max(1);
            self.took_ms.get(rank - 1).copied().unwrap_or(0)
        };
        Stats {
            p50_ms: at(50),
            p90_ms: at(90),
            money: self.spent.map(|money| money.to_string()),
            name,
            ..self
        }
    }
}

fn table(stats: &[Stats]) -> Table {
    let mut table = Table::new(&[
        Column::new("OF"),
        Column::new("RUNS").right(),
        Column::new("SUCCEEDED").right(),
        Column::new("VERIFIED").right(),
        Column::new("P50").right().optional(),
        Column::new("P90").right().optional(),
        Column::new("TOKENS").right().optional(),
        Column::new("MONEY").right().optional(),
    ]);
    let share =
        |part: u32, of: u32| format!("{part} ({}%)", u64::from(part) * 100 / u64::from(of.max(1)));
    for one in stats {
        let tokens = match one.tokens.sum() {
            0 => String::new(),
            tokens => tokens.to_string(),
        };
        table.row(
            [
                one.name.clone(),
                one.runs.to_string(),
                share(one.succeeded, one.runs),
                share(one.verified, one.runs),
                show_millis(one.p50_ms),
                show_millis(one.p90_ms),
                tokens,
                one.money.clone().unwrap_or_default(),
            ]
            .map(Line::from)
            .to_vec(),
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use super::Stats;

    #[test]
    fn percentiles_are_times_that_runs_took() {
        for (took, p50, p90) in [
            (vec![7], 7, 7),
            (vec![1, 2], 1, 2),
            ((1..=10).collect(), 5, 9),
            ((1..=100).rev().collect(), 50, 90),
        ] {
            let stats = Stats {
                took_ms: took,
                ..Stats::default()
            };
            let stats = stats.finished("w/s".to_owned());
            assert_eq!((stats.p50_ms, stats.p90_ms), (p50, p90));
        }
    }
}
