//! The table of figures.

use crate::limits;

/// What a figure is compared with.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    /// At least so much; better still the second number.
    AtLeast(f64, f64),
    /// At most so much.
    AtMost(f64),
    /// Nothing: it is only told.
    None,
}

struct Row {
    figure: String,
    measured: String,
    target: String,
    verdict: &'static str,
    load: String,
}

/// All figures, in the order in which they were measured.
#[derive(Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
}

impl Report {
    /// Adds a figure. `unit` is written behind numbers, `how` says how it came about.
    pub(crate) fn add(&mut self, figure: &str, value: f64, unit: &str, target: Target, how: &str) {
        let (wanted, verdict) = match target {
            Target::AtLeast(least, aim) if value >= aim => {
                (format!(">= {least}{unit}, aim {aim}"), "aim met")
            }
            Target::AtLeast(least, aim) if value >= least => {
                (format!(">= {least}{unit}, aim {aim}"), "met")
            }
            Target::AtLeast(least, aim) => (format!(">= {least}{unit}, aim {aim}"), "MISSED"),
            Target::AtMost(most) if value <= most => (format!("<= {most}{unit}"), "met"),
            Target::AtMost(most) => (format!("<= {most}{unit}"), "MISSED"),
            Target::None => (String::new(), ""),
        };
        let measured = if how.is_empty() {
            format!("{value:.2}{unit}")
        } else {
            format!("{value:.2}{unit} ({how})")
        };
        let row = Row {
            figure: figure.to_owned(),
            measured,
            target: wanted,
            verdict,
            load: limits::load(),
        };
        eprintln!("  {}: {} {}", row.figure, row.measured, row.verdict);
        self.rows.push(row);
    }

    /// How many figures were missed.
    pub(crate) fn missed(&self) -> usize {
        self.rows
            .iter()
            .filter(|row| row.verdict == "MISSED")
            .count()
    }

    /// Prints the table, as Markdown.
    pub(crate) fn print(&self) {
        println!("| figure | measured | target | verdict | load |");
        println!("|---|---|---|---|---|");
        for Row {
            figure,
            measured,
            target,
            verdict,
            load,
        } in &self.rows
        {
            println!("| {figure} | {measured} | {target} | {verdict} | {load} |");
        }
    }
}
