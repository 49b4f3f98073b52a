//! Tables: columns that fit the terminal, plain and complete where no terminal shows them.

use super::super::io::Stream;
use super::line::{BOLD, DIM, Line};

/// Columns between two columns.
const GAP: usize = 2;

/// Narrowest that a column of words is made before another one is left out.
const WORDS_MIN: usize = 16;

/// Columns that the values of a row are indented by where they stand one below the other.
const INDENT: usize = 2;

/// One column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    title: &'static str,
    right: bool,
    words: bool,
    optional: bool,
}

impl Column {
    /// A column that is always shown in full, such as an id.
    pub(crate) const fn new(title: &'static str) -> Column {
        Column {
            title,
            right: false,
            words: false,
            optional: false,
        }
    }

    /// Holds words, and takes several lines where space is short.
    #[must_use]
    pub(crate) const fn words(mut self) -> Column {
        self.words = true;
        self
    }

    /// May be left out where breaking lines is not enough; the last one goes first, and a line says so.
    #[must_use]
    pub(crate) const fn optional(mut self) -> Column {
        self.optional = true;
        self
    }

    /// For numbers.
    #[must_use]
    pub(crate) const fn right(mut self) -> Column {
        self.right = true;
        self
    }
}

/// Rows under a header.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    titles: Vec<String>,
    rows: Vec<Vec<Line>>,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(columns: &[Column]) -> Table {
        Table {
            columns: columns.to_vec(),
            titles: columns
                .iter()
                .map(|column| column.title.to_owned())
                .collect(),
            rows: Vec::new(),
        }
    }

    /// Replaces a title, such as by one that names the zone of its times.
    pub(crate) fn retitle(&mut self, title: &str, by: &str) {
        for (column, shown) in self.columns.iter().zip(&mut self.titles) {
            if column.title == title {
                by.clone_into(shown);
            }
        }
    }

    /// Adds a row; missing cells are empty.
    pub(crate) fn row(&mut self, cells: Vec<Line>) {
        self.rows
            .push(cells.into_iter().map(Line::on_one_column_each).collect());
    }

    /// Writes header and rows, fitted to `width` where one is given.
    pub(crate) fn print(&self, out: &mut Stream<'_>, width: Option<usize>) {
        for line in self.lines(width) {
            out.line(line);
        }
    }

    fn lines(&self, width: Option<usize>) -> Vec<Line> {
        let all: Vec<usize> = (0..self.columns.len()).collect();
        let natural: Vec<usize> = all.iter().map(|at| self.widest(*at, Line::width)).collect();
        let Some(width) = width else {
            return self.composed(&natural.into_iter().map(Some).collect::<Vec<_>>());
        };
        let word = |at: &usize| self.widest(*at, Line::longest_word);
        let least: Vec<usize> = all.iter().map(word).collect();
        let Some(widths) = fit(&self.columns, &natural, &least, width) else {
            return self.stacked(width);
        };
        let mut lines = self.composed(&widths);
        let titles = self.titles.iter().zip(&widths);
        let omitted: Vec<&str> = titles
            .filter(|(_, width)| width.is_none())
            .map(|(title, _)| title.as_str())
            .collect();
        if !omitted.is_empty() {
            let text = format!(
                "not shown, because the terminal is too narrow: {}",
                omitted.join(", ")
            );
            lines.extend(Line::of(DIM, text).wrapped(width, INDENT));
        }
        lines
    }

    /// Header and rows.
    fn composed(&self, widths: &[Option<usize>]) -> Vec<Line> {
        let header = self
            .titles
            .iter()
            .map(|title| Line::of(BOLD, title))
            .collect();
        std::iter::once(&header)
            .chain(&self.rows)
            .flat_map(|cells| self.compose(cells, widths))
            .collect()
    }

    /// The values of each row one below the other: nothing fits beside anything.
    fn stacked(&self, width: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        for cells in &self.rows {
            for (at, (title, cell)) in self.titles.iter().zip(cells).enumerate() {
                let line = match at {
                    0 => cell.clone(),
                    _ if cell.width() == 0 => continue,
                    _ => Line::from(" ".repeat(INDENT))
                        .styled(BOLD, format!("{title}: "))
                        .then(cell.clone()),
                };
                lines.extend(line.wrapped(width, 2 * INDENT));
            }
        }
        lines
    }

    /// The largest measure of a column's title and cells.
    fn widest(&self, at: usize, measure: impl Fn(&Line) -> usize) -> usize {
        let title = self
            .titles
            .get(at)
            .map(|title| measure(&title.as_str().into()));
        let cells = self.rows.iter().filter_map(|row| row.get(at));
        cells.map(&measure).chain(title).max().unwrap_or(0)
    }

    /// The lines of one row.
    fn compose(&self, cells: &[Line], widths: &[Option<usize>]) -> Vec<Line> {
        let shown = widths.iter().enumerate();
        let shown = shown.filter_map(|(at, width)| Some((at, (*width)?)));
        let shown: Vec<(usize, usize, Vec<Line>)> = shown
            .map(|(at, width)| {
                let cell = cells.get(at).cloned().unwrap_or_default();
                (at, width, cell.wrapped(width, 0))
            })
            .collect();
        let height = shown.iter().map(|(_, _, lines)| lines.len()).max();
        (0..height.unwrap_or(0))
            .map(|nth| self.beside(&shown, nth))
            .collect()
    }

    /// The lines with this number of all cells of a row.
    fn beside(&self, shown: &[(usize, usize, Vec<Line>)], nth: usize) -> Line {
        let mut line = Line::new();
        let mut owed = 0;
        for (at, width, lines) in shown {
            let cell = lines.get(nth).cloned().unwrap_or_default();
            let padding = width.saturating_sub(cell.width());
            let right = self.columns.get(*at).is_some_and(|column| column.right);
            let before = owed + if right { padding } else { 0 };
            // Blanks are paid only when something follows: no line ends in blanks.
            if cell.width() > 0 {
                line = line.text(" ".repeat(before)).then(cell);
                owed = GAP + if right { 0 } else { padding };
            } else {
                owed += width + GAP;
            }
        }
        line
    }
}

/// Widths of the columns within `width`, where a column that is left out has none; nothing where even the
/// longest words of those that must be shown do not fit.
fn fit(
    columns: &[Column],
    natural: &[usize],
    words: &[usize],
    width: usize,
) -> Option<Vec<Option<usize>>> {
    let mut shown = vec![true; columns.len()];
    loop {
        let mut widths: Vec<Option<usize>> = natural
            .iter()
            .zip(&shown)
            .map(|(natural, shown)| shown.then_some(*natural))
            .collect();
        let count = shown.iter().filter(|shown| **shown).count();
        loop {
            let total: usize =
                widths.iter().flatten().sum::<usize>() + GAP * count.saturating_sub(1);
            if total <= width {
                return Some(widths);
            }
            let narrower = columns
                .iter()
                .zip(words)
                .zip(&mut widths)
                .filter(|((column, _), _)| column.words)
                .filter_map(|((_, word), width)| {
                    let least = WORDS_MIN.max(*word);
                    width.as_mut().filter(|width| **width > least)
                })
                .max();
            match narrower {
                // Column by column, so that two wide ones share the loss.
                Some(widest) => *widest -= 1,
                None => break,
            }
        }
        let last = columns
            .iter()
            .zip(&mut shown)
            .rfind(|(column, shown)| column.optional && **shown);
        *last?.1 = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::render::line::GOOD;

    fn sample() -> Table {
        let mut table = Table::new(&[
            Column::new("RUN"),
            Column::new("SKILL"),
            Column::new("OUTCOME").words(),
            Column::new("TOOK").right().optional(),
            Column::new("COMMIT").optional(),
        ]);
        table.row(vec![
            "8v2k3m1q".into(),
            "repo-steward/weekly-changes".into(),
            Line::of(GOOD, "succeeded"),
            "4.2s".into(),
            "3f2a1bc".into(),
        ]);
        table.row(vec![
            "9w3k3m1z".into(),
            "日本語-worker/とても長い名前のスキル".into(),
            "failed (execute)".into(),
            "3m 10s".into(),
        ]);
        table.row(vec![
            "0a0b0c0d".into(),
            "a\u{1b}[2Jb".into(),
            Line::new(),
            "9ms".into(),
        ]);
        table
    }

    fn shown(width: Option<usize>) -> String {
        let mut text = Vec::new();
        sample().print(&mut Stream::new(&mut text, width.is_some(), false), width);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_table_fits_its_terminal() {
        xtest::assert_text!(shown(Some(40)), @r"
        8v2k3m1q
          SKILL: repo-steward/weekly-changes
          OUTCOME: succeeded
          TOOK: 4.2s
          COMMIT: 3f2a1bc
        9w3k3m1z
          SKILL:
            日本語-worker/とても長い名前のスキル
          OUTCOME: failed (execute)
          TOOK: 3m 10s
        0a0b0c0d
          SKILL: a\x1b[2Jb
          TOOK: 9ms
        ");
        xtest::assert_text!(shown(Some(80)), @r"
        RUN       SKILL                                 OUTCOME             TOOK
        8v2k3m1q  repo-steward/weekly-changes           succeeded           4.2s
        9w3k3m1z  日本語-worker/とても長い名前のスキル  failed (execute)  3m 10s
        0a0b0c0d  a\x1b[2Jb                                                  9ms
        not shown, because the terminal is too narrow: COMMIT
        ");
        xtest::assert_text!(shown(Some(200)), @r"
        RUN       SKILL                                 OUTCOME             TOOK  COMMIT
        8v2k3m1q  repo-steward/weekly-changes           succeeded           4.2s  3f2a1bc
        9w3k3m1z  日本語-worker/とても長い名前のスキル  failed (execute)  3m 10s
        0a0b0c0d  a\x1b[2Jb                                                  9ms
        ");
        for width in 1..120 {
            // A name stays whole, however narrow the terminal is.
            let widest = shown(Some(width))
                .lines()
                .map(|l| Line::from(l).width())
                .max();
            assert!(widest.unwrap() <= width.max(45), "{width}: {widest:?}");
            assert!(!shown(Some(width)).contains('…'));
        }
    }

    #[test]
    fn a_piped_table_is_complete() {
        xtest::assert_text!(shown(None), @r"
        RUN       SKILL                                 OUTCOME             TOOK  COMMIT
        8v2k3m1q  repo-steward/weekly-changes           succeeded           4.2s  3f2a1bc
        9w3k3m1z  日本語-worker/とても長い名前のスキル  failed (execute)  3m 10s
        0a0b0c0d  a\x1b[2Jb                                                  9ms
        ");
    }
}
