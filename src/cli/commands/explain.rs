//! `explain CODE`

use serde_json::json;

use crate::cli::exit::Exit;
use crate::cli::render::line::{BOLD, DIM, Line};
use crate::cli::session::Session;
use crate::cli::suggest;
use crate::model::{Diagnostic, Kind};

/// A page with its path.
macro_rules! page {
    ($path:literal) => {
        ($path, include_str!(concat!("../../../", $path)))
    };
}

/// Pages that name codes. The entry of a code is its row in a table, or else the lines that name it.
const PAGES: [(&str, &str); 11] = [
    page!("docs/reference/problems.md"),
    page!("docs/operations.md"),
    page!("docs/at-most-once.md"),
    page!("docs/landing.md"),
    page!("docs/troubleshooting.md"),
    page!("docs/reference/checks-retries.md"),
    page!("docs/reference/inputs-outputs.md"),
    page!("docs/reference/models-agents.md"),
    page!("docs/reference/sandbox.md"),
    page!("docs/reference/schedule.md"),
    page!("docs/reference/skill.md"),
];

/// Lines that name a code outside of the first cells of tables, at most.
const LINES_MAX: usize = 3;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Code of a problem or an error, such as `yaml-syntax`
    code: String,
}

/// The row of a code in a table of the documentation.
struct Entry<'a> {
    page: &'a str,
    /// Headings of the other columns, with the text of their cells.
    cells: Vec<(&'a str, &'a str)>,
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let code = args.code.trim_matches(['`', '[', ']']);
    let rows = PAGES
        .iter()
        .flat_map(|(page, text)| entries(page, text, code));
    let mut entries: Vec<Entry<'_>> = rows.collect();
    if entries.is_empty() {
        let lines = PAGES
            .iter()
            .flat_map(|(page, text)| mentions(page, text, code));
        entries.extend(lines.take(LINES_MAX));
    }
    if entries.is_empty() {
        let message = format!("there is no entry for `{code}`");
        let refused = Diagnostic::new(Kind::NotFound, "code_unknown", message);
        let known: Vec<&str> = PAGES.iter().flat_map(|(_, text)| codes(text)).collect();
        let near = suggest::did_you_mean(&suggest::nearest(code, known.into_iter()));
        return Err(match near {
            Some(meant) => refused.hint(meant),
            None => refused.hint("`workerctl check --json` prints the codes of problems"),
        });
    }
    if session.json() {
        let shown: Vec<_> = entries
            .iter()
            .map(|entry| {
                let cells = entry
                    .cells
                    .iter()
                    .map(|(head, text)| ((*head).to_owned(), json!(text)));
                json!({"page": entry.page, "entry": cells.collect::<serde_json::Map<_, _>>()})
            })
            .collect();
        session.print_json(&json!({"code": code, "entries": shown}), "explained");
        return Ok(Exit::Ok);
    }
    let out = &mut session.io.out;
    out.line(Line::of(BOLD, code));
    for entry in entries {
        for (head, text) in entry.cells {
            out.folded(Line::of(DIM, format!("  {head}: ")).text(plain(text)));
        }
        out.line(Line::of(DIM, format!("  see {}", entry.page)));
    }
    Ok(Exit::Ok)
}

/// Returns the rows of a page whose first cell has a code.
fn entries<'a>(page: &'a str, text: &'a str, code: &str) -> Vec<Entry<'a>> {
    let mut heads = Vec::new();
    let mut above = "";
    let mut found = Vec::new();
    for line in text.lines() {
        if line.starts_with("|---") || line.starts_with("| ---") {
            heads = cells(above);
        } else if let Some(first) = cells(line).first()
            && codes_of(first).any(|known| known == code)
        {
            let rest = heads.iter().copied().zip(cells(line)).skip(1);
            found.push(Entry {
                page,
                cells: rest.filter(|(_, text)| !text.is_empty()).collect(),
            });
        }
        above = line;
    }
    found
}

/// Returns the lines of a page that name a code.
fn mentions<'a>(page: &'a str, text: &'a str, code: &str) -> impl Iterator<Item = Entry<'a>> {
    let code = code.to_owned();
    let is_other = |c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-';
    let names = move |line: &&str| {
        // A code also occurs within a longer text in backticks, such as `failed{record, rule_file}`.
        line.contains('`') && line.split(is_other).any(|word| word == code)
    };
    let lines = text.lines().filter(names);
    lines.map(move |line| Entry {
        page,
        cells: vec![(
            "Text",
            line.trim_start_matches("- ").trim_matches('|').trim(),
        )],
    })
}

/// Returns the codes in first cells of tables.
fn codes(text: &str) -> impl Iterator<Item = &str> {
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    rows.flat_map(|line| cells(line).into_iter().take(1))
        .flat_map(codes_of)
}

fn codes_of(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

fn cells(row: &str) -> Vec<&str> {
    let inner = row.strip_prefix('|').and_then(|row| row.strip_suffix('|'));
    inner.map_or_else(Vec::new, |row| row.split(" | ").map(str::trim).collect())
}

/// Returns a text without the targets of its links.
fn plain(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, linked)) = rest.split_once("](") {
        shown.push_str(&before.replacen('[', "", 1));
        rest = linked.split_once(')').map_or("", |(_, after)| after);
    }
    shown + rest
}
