//! What stands in the tree, and where its pages lead.

use std::collections::BTreeSet;

use crate::Violations;
use crate::source::{files, root, rust_files};

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
}

#[test]
fn nothing_is_left_for_later() {
    const MARKS: [&str; 4] = ["TODO", "FIXME", "XXX", "HACK"];
    let mut violations = Violations::default();
    for file in rust_files() {
        for comment in &file.comments {
            if words(&comment.text).any(|word| MARKS.contains(&word)) {
                violations.add(&file.path, comment.line, comment.text.trim());
            }
        }
    }
    // `workers/` holds a skill that looks for such marks, and the README shows what it finds.
    let others = [
        ".md", ".toml", ".sh", ".yaml", ".yml", ".service", ".socket",
    ];
    for path in files() {
        if path.starts_with("workers/") || !others.iter().any(|end| path.ends_with(end)) {
            continue;
        }
        let text = std::fs::read_to_string(root().join(&path)).unwrap();
        for (at, line) in text.lines().enumerate() {
            if MARKS.iter().any(|mark| line.contains(&format!("{mark}:"))) {
                violations.add(&path, at + 1, line.trim());
            }
        }
    }
    violations.none();
}

#[test]
fn the_tree_names_no_place_outside_it() {
    // Written backwards so that this file does not hold what it looks for.
    let places = [
        "niam/krow/",
        "derahs/krow/",
        "/tw/pmt/",
        "sboj_hsab/pmt/",
        "/oi.setarc",
        "gro.sjmpn",
        "gro.ipyp",
        "gro.gnalog.yxorp",
        "gro.naibed.bed",
        "oi.setarc.citats",
    ]
    .map(|place| place.chars().rev().collect::<String>());
    let mut violations = Violations::default();
    for path in files() {
        let Ok(text) = std::fs::read_to_string(root().join(&path)) else {
            continue;
        };
        let mut source = None;
        for (at, line) in text.lines().enumerate() {
            // Which registry packages come from stands in the lock file, and is the same for all.
            if path == "Cargo.lock" && line.starts_with("source = \"registry+") {
                if *source.get_or_insert(line) != line {
                    violations.add(&path, at + 1, line);
                }
            } else if let Some(place) = places.iter().find(|place| line.contains(place.as_str())) {
                violations.add(&path, at + 1, format_args!("names `{place}`"));
            }
        }
    }
    violations.none();
}

#[test]
fn the_top_level_is_what_the_map_says() {
    const TOP: [&str; 19] = [
        ".ci",
        ".config",
        ".gitattributes",
        ".gitignore",
        "CHANGELOG.md",
        "Cargo.lock",
        "Cargo.toml",
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "README.md",
        "benches",
        "clippy.toml",
        "docs",
        "rustfmt.toml",
        "src",
        "state",
        "systemd",
        "tests",
        "workers",
    ];
    let mut violations = Violations::default();
    for path in files() {
        let top = path.split('/').next().unwrap_or(&path);
        if !TOP.contains(&top) {
            violations.add(&path, 1, "is at the top level, but is not in the map");
        }
    }
    violations.none();
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut violations = Violations::default();
    for path in files().into_iter().filter(|path| path.ends_with(".md")) {
        let text = std::fs::read_to_string(root().join(&path)).unwrap();
        let folder = root().join(&path).parent().unwrap().to_path_buf();
        let mut fenced = false;
        for (at, line) in text.lines().enumerate() {
            fenced ^= line.trim_start().starts_with("```");
            if fenced {
                continue;
            }
            for link in line
                .split("](")
                .skip(1)
                .filter_map(|rest| rest.split(')').next())
            {
                if link.contains("://") || link.starts_with("mailto:") {
                    continue;
                }
                let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
                let target = if file.is_empty() {
                    root().join(&path)
                } else {
                    folder.join(file)
                };
                if !target.exists() {
                    violations.add(&path, at + 1, format_args!("`{link}` leads nowhere"));
                } else if !anchor.is_empty() && !anchors(&target).contains(anchor) {
                    violations.add(
                        &path,
                        at + 1,
                        format_args!("`{link}` names no heading there"),
                    );
                }
            }
        }
    }
    violations.none();
}

/// The anchors of a page's headings, as code hosts make them.
fn anchors(page: &std::path::Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(page).unwrap_or_default();
    text.lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| {
            line.trim_start_matches('#')
                .trim()
                .to_lowercase()
                .chars()
                .filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c))
                .map(|c| if c == ' ' { '-' } else { c })
                .collect()
        })
        .collect()
}

#[test]
fn documented_problem_codes_are_those_of_the_code() {
    let sources: String = files()
        .iter()
        .filter(|path| path.starts_with("src/") && path.ends_with(".rs"))
        .map(|path| std::fs::read_to_string(root().join(path)).unwrap())
        .collect();
    // The catalog writes dashes, the template room underscores; two codes are put together there.
    let exists = |code: &str| {
        let found = |code: &str| sources.contains(&format!("\"{code}\""));
        found(code)
            || found(&code.replace('-', "_"))
            || (code.ends_with("-unsupported") && sources.contains("{key}-unsupported"))
    };
    let page = std::fs::read_to_string(root().join("docs/reference/problems.md")).unwrap();
    let mut violations = Violations::default();
    let mut count = 0;
    for (at, line) in page.lines().enumerate() {
        let Some(cell) = line
            .strip_prefix("| `")
            .and_then(|rest| rest.split(" |").next())
        else {
            continue;
        };
        for code in cell.split(',').map(|code| code.trim().trim_matches('`')) {
            count += 1;
            if !exists(code) {
                violations.add(
                    "docs/reference/problems.md",
                    at + 1,
                    format_args!("nothing reports `{code}`"),
                );
            }
        }
    }
    assert!(count > 100, "only {count} codes were found");
    violations.none();
}

/// A page that says which test shows a promise is only worth something while that test is there.
#[test]
fn every_test_that_a_page_names_exists() {
    const PAGES: [&str; 2] = ["docs/dev/reliability.md", "docs/dev/threat-model.md"];
    let tests: BTreeSet<&str> = rust_files()
        .iter()
        .flat_map(|file| file.all.windows(2))
        .filter(|pair| pair[0].text == "fn")
        .map(|pair| pair[1].text.as_str())
        .collect();
    let mut violations = Violations::default();
    for path in PAGES {
        let page = std::fs::read_to_string(root().join(path)).unwrap();
        let mut count = 0;
        for (at, line) in page.lines().enumerate() {
            // Everything between backquotes that has the form of a test's name.
            for name in line.split('`').skip(1).step_by(2) {
                let is_name = name
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
                if is_name && name.matches('_').count() >= 3 {
                    count += 1;
                    if !tests.contains(name) {
                        violations.add(path, at + 1, format_args!("there is no test `{name}`"));
                    }
                }
            }
        }
        assert!(count > 30, "{path} names only {count} tests");
    }
    violations.none();
}

/// Each row of the threat model's tables has at least one test in its last cell.
#[test]
fn every_row_of_the_threat_model_names_a_test() {
    const PAGE: &str = "docs/dev/threat-model.md";
    let page = std::fs::read_to_string(root().join(PAGE)).unwrap();
    let mut violations = Violations::default();
    let rows = page.lines().enumerate();
    for (at, row) in rows.filter(|(_, line)| line.starts_with("| ") && !line.ends_with("| Test |"))
    {
        let last = row
            .trim_end_matches(" |")
            .rsplit(" | ")
            .next()
            .unwrap_or_default();
        if !(last.starts_with('`') && last.matches('_').count() >= 2) {
            violations.add(PAGE, at + 1, format_args!("the row names no test"));
        }
    }
    violations.none();
}

/// `docs/SUMMARY.md` is the table of contents of the site and `docs/README.md` that of the directory.
#[test]
fn both_tables_of_contents_list_every_page() {
    let mut violations = Violations::default();
    for contents in ["docs/SUMMARY.md", "docs/README.md"] {
        let text = std::fs::read_to_string(root().join(contents)).unwrap();
        for path in files() {
            let page = path
                .strip_prefix("docs/")
                .filter(|page| page.ends_with(".md"));
            let Some(page) = page.filter(|page| !matches!(*page, "SUMMARY.md" | "README.md"))
            else {
                continue;
            };
            if !text.contains(&format!("]({page})")) {
                violations.add(contents, 1, format_args!("`{page}` is not listed"));
            }
        }
    }
    violations.none();
}
