//! What no Rust file does, wherever it stands.

use std::collections::BTreeMap;

use crate::paths::{Named, paths};
use crate::source::{self, Token, files, rust_files};
use crate::{Violations, places};

/// Lines that a Rust file may have.
const LINES_MAX: usize = 500;

#[test]
fn nothing_shipped_panics_on_purpose() {
    let mut violations = Violations::default();
    for file in rust_files() {
        for line in places(&file.shipped, &[".", "unwrap", "("]) {
            violations.add(&file.path, line, "`unwrap` outside tests");
        }
        // A parser's own `self.expect(…)` returns what it found.
        for window in file.shipped.windows(4) {
            let texts: Vec<&str> = window.iter().map(|token| token.text.as_str()).collect();
            if texts[1..] == [".", "expect", "("] && texts[0] != "self" {
                violations.add(&file.path, window[1].line, "`expect` outside tests");
            }
        }
        // Clippy sees the calls alone.
        for path in paths(&file.shipped) {
            if let [.., kind, name] = path.segments.as_slice()
                && ["Option", "Result"].contains(&kind.as_str())
                && ["unwrap", "expect", "unwrap_err", "expect_err"].contains(&name.as_str())
            {
                let what = format_args!("`{}` outside tests", path.text());
                violations.add(&file.path, path.line, what);
            }
        }
        for name in ["panic", "todo", "unimplemented", "unreachable"] {
            for line in places(&file.shipped, &[name, "!"]) {
                violations.add(&file.path, line, format_args!("`{name}!` outside tests"));
            }
        }
    }
    violations.none();
}

#[test]
fn lints_are_expected_with_a_reason_and_unsafe_only_beside_processes() {
    let mut violations = Violations::default();
    for file in rust_files() {
        for attribute in [
            &["#", "[", "allow", "("][..],
            &["#", "!", "[", "allow", "("],
        ] {
            for line in places(&file.all, attribute) {
                violations.add(&file.path, line, "`allow`: write `expect` with a reason");
            }
        }
        for (line, _) in arguments(&file.all, "cfg_attr", &["allow"]) {
            violations.add(&file.path, line, "`allow`, though under a condition");
        }
        for line in places(&file.shipped, &["unsafe_code"]) {
            if file.room() != Some("process") {
                violations.add(&file.path, line, "unsafe code outside `process`");
            }
        }
        for line in places(&file.all, &["#", "[", "ignore", "]"]) {
            violations.add(&file.path, line, "`#[ignore]` without a reason");
        }
    }
    violations.none();
}

#[test]
fn what_people_write_is_read_without_untagged_or_flattened_forms() {
    let mut violations = Violations::default();
    for file in rust_files() {
        if !file
            .room()
            .is_some_and(|room| ["catalog", "inputs"].contains(&room))
        {
            continue;
        }
        for (line, name) in arguments(&file.shipped, "serde", &["flatten", "untagged"]) {
            violations.add(
                &file.path,
                line,
                format_args!("`serde({name})` hides what was wrong"),
            );
        }
    }
    violations.none();
}

#[test]
fn what_is_built_stands_in_the_sources() {
    let mut violations = Violations::default();
    for file in rust_files() {
        for name in ["include", "option_env"] {
            for line in places(&file.shipped, &[name, "!"]) {
                let what = format_args!("`{name}!` brings in what no reader sees");
                violations.add(&file.path, line, what);
            }
        }
    }
    violations.none();
}

/// Where `names` stand among the arguments of `attribute`, at whatever place, with their lines.
fn arguments<'a>(tokens: &'a [Token], attribute: &str, names: &[&str]) -> Vec<(usize, &'a str)> {
    let mut found = Vec::new();
    for (at, _) in tokens
        .windows(2)
        .enumerate()
        .filter(|(_, pair)| pair[0].text == attribute && pair[1].text == "(")
    {
        let mut depth = 0;
        for token in &tokens[at + 1..] {
            match token.text.as_str() {
                "(" => depth += 1,
                ")" => depth -= 1,
                name if names.contains(&name) => found.push((token.line, name)),
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
    }
    found
}

#[test]
fn files_are_short() {
    let mut violations = Violations::default();
    for file in rust_files() {
        if file.lines > LINES_MAX {
            let what = format!(
                "{} lines, {LINES_MAX} at most; split it by concept",
                file.lines
            );
            violations.add(&file.path, file.lines, what);
        }
    }
    violations.none();
}

#[test]
fn names_say_what_a_thing_is() {
    const BANNED: [&str; 10] = [
        "util",
        "utils",
        "helper",
        "helpers",
        "common",
        "misc",
        "manager",
        "managers",
        "stuff",
        "shared_state",
    ];
    let mut violations = Violations::default();
    for path in files() {
        for part in path.split('/') {
            let stem = part.split('.').next().unwrap_or(part).to_lowercase();
            if BANNED.contains(&stem.as_str()) {
                violations.add(&path, 1, format_args!("`{part}` names nothing"));
            }
        }
    }
    for file in rust_files() {
        for pair in file.all.windows(2) {
            let declares =
                ["struct", "enum", "trait", "type", "mod"].contains(&pair[0].text.as_str());
            let name = pair[1].text.to_lowercase();
            if declares && BANNED.iter().any(|banned| name.ends_with(banned)) {
                violations.add(
                    &file.path,
                    pair[1].line,
                    format_args!("`{}` names nothing", pair[1].text),
                );
            }
        }
    }
    violations.none();
}

#[test]
fn every_file_that_is_code_is_named_by_its_module() {
    // A file that no module names is never compiled, and nobody notices.
    let rust = rust_files();
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for file in rust {
        for pair in file.all.windows(2).filter(|pair| pair[0].text == "mod") {
            *names.entry(pair[1].text.as_str()).or_default() += 1;
        }
    }
    let mut violations = Violations::default();
    for file in rust.iter().filter(|file| file.path.starts_with("src/")) {
        let parts: Vec<&str> = file.path.trim_end_matches(".rs").split('/').collect();
        let name = match parts.last() {
            Some(&"mod") => parts[parts.len() - 2],
            Some(name) => name,
            None => continue,
        };
        if !["lib", "main", "build"].contains(&name) && !names.contains_key(name) {
            violations.add(&file.path, 1, "no module names this file");
        }
    }
    violations.none();
}

#[test]
fn the_reader_of_rust_sees_code_and_nothing_else() {
    let text = r##"
        use crate::{model::Kind, store::{self, Batch as B}};
        // use crate::cli;
        fn f<'a>(x: &'a str) -> char { let _ = "use crate::mcp; \" //"; let _ = r#"crate::git"#; '"' }
        #[cfg(test)]
        mod tests { use crate::daemon; }
        fn g() { super::super::h(crate::clock::now()) }
    "##;
    let (all, comments) = source::tokens(text);
    assert_eq!(comments.len(), 1);
    let named: Vec<String> = paths(&source::without_tests(&all))
        .iter()
        .map(Named::text)
        .collect();
    assert_eq!(
        named,
        [
            "crate::model::Kind",
            "crate::store::self",
            "crate::store::Batch",
            "super::super::h",
            "crate::clock::now"
        ]
    );
}
