//! Tables: columns that fit the terminal, plain and complete where no terminal shows them.

use super::super::io::Stream;
use super::line::{BOLD, Line};

/// Columns between two columns.
const GAP: usize = 2;

/// Narrowest that a column is cut to before another one is left out.
const CUT_MIN: usize = 10;

/// One column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    title: &'static str,
    right: bool,
    cut: bool,
    optional: bool,
}

impl Column {
    /// A column that is always shown in full, such as an id.
    pub(crate) const fn new(title: &'static str) -> Column {
        Column {
            title,
            right: false,
            cut: false,
            optional: false,
        }
    }

    /// May be cut where space is short.
    #[must_use]
    pub(crate) const fn cut(mut self) -> Column {
        self.cut = true;
        self
    }

    /// May be left out where cutting is not enough; the last one goes first.
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
        let natural: Vec<usize> = (0..self.columns.len()).map(|at| self.natural(at)).collect();
        let widths = match width {
            Some(width) => fit(&self.columns, &natural, width),
            None => natural.into_iter().map(Some).collect(),
        };
        let header = self
            .titles
            .iter()
            .map(|title| Line::of(BOLD, title))
            .collect();
        std::iter::once(&header)
            .chain(&self.rows)
            .map(|cells| self.compose(cells, &widths))
            .collect()
    }

    fn natural(&self, at: usize) -> usize {
        let title = self.titles.get(at).map_or(0, |title| title.chars().count());
        self.rows
            .iter()
            .filter_map(|row| row.get(at))
            .map(Line::width)
            .chain([title])
            .max()
            .unwrap_or(0)
    }

    fn compose(&self, cells: &[Line], widths: &[Option<usize>]) -> Line {
        let shown: Vec<(usize, usize)> = widths
            .iter()
            .enumerate()
            .filter_map(|(at, width)| Some((at, (*width)?)))
            .collect();
        let mut line = Line::new();
        let mut owed = 0;
        for (at, width) in shown {
            let cell = cells.get(at).cloned().unwrap_or_default().cut(width);
            let padding = width.saturating_sub(cell.width());
            let right = self.columns.get(at).is_some_and(|column| column.right);
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

/// Widths of the columns within `width`; `None`: left out.
fn fit(columns: &[Column], natural: &[usize], width: usize) -> Vec<Option<usize>> {
    let mut widths: Vec<Option<usize>> = natural.iter().copied().map(Some).collect();
    loop {
        let shown = widths.iter().flatten().count();
        let total: usize = widths.iter().flatten().sum::<usize>() + GAP * shown.saturating_sub(1);
        let Some(over) = total.checked_sub(width).filter(|over| *over > 0) else {
            return widths;
        };
        let widest = columns
            .iter()
            .zip(&mut widths)
            .filter(|(column, _)| column.cut)
            .filter_map(|(_, width)| width.as_mut())
            .filter(|width| **width > CUT_MIN)
            .max();
        if let Some(widest) = widest {
            // Column by column, so that two wide ones share the loss.
            *widest -= 1.min(over);
            continue;
        }
        let last = columns
            .iter()
            .zip(&mut widths)
            .rfind(|(column, width)| column.optional && width.is_some());
        match last {
            Some((_, width)) => {
                *width = None;
                // What is left may have room again.
                for ((column, natural), width) in columns.iter().zip(natural).zip(&mut widths) {
                    if column.cut && width.is_some() {
                        *width = Some(*natural);
                    }
                }
            }
            None => return widths,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::render::line::GOOD;

    fn sample() -> Table {
        let mut table = Table::new(&[
            Column::new("RUN"),
            Column::new("SKILL").cut(),
            Column::new("OUTCOME").cut(),
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
        insta::assert_snapshot!(shown(Some(40)), @r#"
        RUN       SKILL       OUTCOME       TOOK
        8v2k3m1q  repo-stew…  succeeded     4.2s
        9w3k3m1z  日本語-wo…  failed (e…  3m 10s
        0a0b0c0d  a\x1b[2Jb                  9ms
        "#);
        insta::assert_snapshot!(shown(Some(80)), @r#"
        RUN       SKILL                                OUTCOME             TOOK  COMMIT
        8v2k3m1q  repo-steward/weekly-changes          succeeded           4.2s  3f2a1bc
        9w3k3m1z  日本語-worker/とても長い名前のスキ…  failed (execute)  3m 10s
        0a0b0c0d  a\x1b[2Jb                                                 9ms
        "#);
        insta::assert_snapshot!(shown(Some(200)), @r#"
        RUN       SKILL                                 OUTCOME             TOOK  COMMIT
        8v2k3m1q  repo-steward/weekly-changes           succeeded           4.2s  3f2a1bc
        9w3k3m1z  日本語-worker/とても長い名前のスキル  failed (execute)  3m 10s
        0a0b0c0d  a\x1b[2Jb                                                  9ms
        "#);
        for width in 1..120 {
            let widest = shown(Some(width))
                .lines()
                .map(|l| Line::from(l).width())
                .max();
            assert!(widest.unwrap() <= width.max(32), "{width}: {widest:?}");
        }
    }

    #[test]
    fn a_piped_table_is_complete() {
        insta::assert_snapshot!(shown(None), @r#"
        RUN       SKILL                                 OUTCOME             TOOK  COMMIT
        8v2k3m1q  repo-steward/weekly-changes           succeeded           4.2s  3f2a1bc
        9w3k3m1z  日本語-worker/とても長い名前のスキル  failed (execute)  3m 10s
        0a0b0c0d  a\x1b[2Jb                                                  9ms
        "#);
    }
}
