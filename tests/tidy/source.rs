//! The tree as the rules see it: its files, and Rust files as tokens without comments, text and tests.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// One token: an identifier, `::`, or one character of punctuation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// One Rust file.
#[derive(Debug)]
pub(crate) struct Rust {
    /// Path relative to the root of the repository, with `/`.
    pub(crate) path: String,
    pub(crate) lines: usize,
    /// All tokens, tests included.
    pub(crate) all: Vec<Token>,
    /// Tokens outside tests; empty for a file that is a test.
    pub(crate) shipped: Vec<Token>,
    /// Comments, each line of one with its number.
    pub(crate) comments: Vec<Token>,
}

impl Rust {
    /// The room that the file belongs to; `None`: `lib.rs`, `main.rs`, or outside `src`.
    pub(crate) fn room(&self) -> Option<&str> {
        let (room, _) = self.in_crate().strip_prefix("src/")?.split_once('/')?;
        Some(room)
    }

    /// The path from the folder of its crate on, where that has several rooms.
    pub(crate) fn in_crate(&self) -> &str {
        self.path.strip_prefix("src/core/").unwrap_or(&self.path)
    }

    /// Whether it is of the package of the program itself.
    pub(crate) fn is_of_the_program(&self) -> bool {
        !self.is_of_a_package() && self.in_crate() == self.path
    }

    /// Whether its room is a package of its own, where `crate` is the room.
    pub(crate) fn is_of_a_package(&self) -> bool {
        self.room().is_some_and(|room| PACKAGES.contains(&room))
    }
}

/// Rooms that are packages of their own.
pub(crate) const PACKAGES: [&str; 12] = [
    "agent", "catalog", "clock", "engine", "git", "landing", "mcp", "process", "sandbox", "store",
    "trees", "web",
];

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file of the repository, relative to its root: what git tracks or would add, or without git
/// everything but what is built.
pub(crate) fn files() -> Vec<String> {
    let listed = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root())
        .output();
    let mut found: Vec<String> = match listed {
        Ok(output) if output.status.success() && !output.stdout.is_empty() => output
            .stdout
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty())
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .filter(|name| root().join(name).is_file())
            .collect(),
        _ => {
            let mut walked = Vec::new();
            walk(root(), &mut walked);
            walked
        }
    };
    found.sort();
    found.dedup();
    assert!(found.len() > 100, "only {} files were found", found.len());
    found
}

fn walk(directory: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let relative = path.strip_prefix(root()).unwrap().to_str().unwrap();
        if path.is_dir() && !["target", ".git", ".workerctl"].contains(&relative) {
            walk(&path, found);
        } else if path.is_file() {
            found.push(relative.to_owned());
        }
    }
}

/// Every Rust file of the repository, read once for all rules.
pub(crate) fn rust_files() -> &'static [Rust] {
    static READ: OnceLock<Vec<Rust>> = OnceLock::new();
    READ.get_or_init(read_rust_files)
}

fn read_rust_files() -> Vec<Rust> {
    let read = |path: String| {
        let text = std::fs::read_to_string(root().join(&path)).unwrap();
        let (all, comments) = tokens(&text);
        Rust {
            lines: text.lines().count(),
            shipped: without_tests(&all),
            path,
            all,
            comments,
        }
    };
    let mut rust: Vec<Rust> = files()
        .into_iter()
        .filter(|path| path.ends_with(".rs"))
        .map(read)
        .collect();
    let tests = test_modules(&rust);
    for file in &mut rust {
        let path = Path::new(&file.path);
        let declared = tests
            .iter()
            .any(|one| path == one.with_extension("rs") || path.starts_with(one));
        let of_package = PACKAGES
            .iter()
            .chain(&["core"])
            .any(|room| file.path.starts_with(&format!("src/{room}/tests/")));
        if declared || of_package || !file.path.starts_with("src/") {
            file.shipped.clear();
        }
    }
    rust
}

/// Modules that are declared under `#[cfg(test)]`, as the path that they have without `.rs`.
fn test_modules(rust: &[Rust]) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for file in rust.iter().filter(|file| file.path.starts_with("src/")) {
        let path = Path::new(&file.path);
        let inside = match path.file_stem().and_then(|stem| stem.to_str()) {
            Some("mod" | "lib" | "main") | None => path.parent().unwrap().to_path_buf(),
            Some(_) => path.with_extension(""),
        };
        let texts: Vec<&str> = file.all.iter().map(|token| token.text.as_str()).collect();
        for (at, _) in texts
            .windows(TEST_ONLY.len())
            .enumerate()
            .filter(|(_, window)| *window == TEST_ONLY)
        {
            let item = &texts[at + TEST_ONLY.len()..];
            let Some(module) = item.iter().take(6).position(|text| *text == "mod") else {
                continue;
            };
            if item.get(module + 2) == Some(&";") {
                found.insert(inside.join(item[module + 1]));
            }
        }
    }
    found
}

const TEST_ONLY: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];

/// Leaves out every item under `#[cfg(test)]`: to its `;`, or to the end of its braces.
pub(crate) fn without_tests(all: &[Token]) -> Vec<Token> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < all.len() {
        let here = all[at..]
            .iter()
            .take(TEST_ONLY.len())
            .map(|token| token.text.as_str());
        if !here.eq(TEST_ONLY) {
            kept.push(all[at].clone());
            at += 1;
            continue;
        }
        at += TEST_ONLY.len();
        let mut depth = 0_usize;
        while let Some(token) = all.get(at) {
            at += 1;
            match token.text.as_str() {
                "{" | "(" | "[" => depth += 1,
                ")" | "]" => depth -= 1,
                "}" => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                ";" | "," if depth == 0 => break,
                _ => {}
            }
        }
    }
    kept
}

/// Splits Rust text into tokens and the lines of its comments. Text and character literals are left out,
/// but what a raw or plain string held is none of a rule's business.
pub(crate) fn tokens(text: &str) -> (Vec<Token>, Vec<Token>) {
    let chars: Vec<char> = text.chars().collect();
    let mut reader = Reader {
        chars: &chars,
        at: 0,
        line: 1,
    };
    let (mut code, mut comments) = (Vec::new(), Vec::new());
    while let Some(next) = reader.peek(0) {
        let line = reader.line;
        if next == '/' && reader.peek(1) == Some('/') {
            let text = reader.take_while(|c| c != '\n');
            comments.push(Token { line, text });
        } else if next == '/' && reader.peek(1) == Some('*') {
            reader.block_comment(&mut comments);
        } else if reader.string() || reader.character() {
        } else if next.is_alphanumeric() || next == '_' {
            let text = reader.take_while(|c| c.is_alphanumeric() || c == '_');
            code.push(Token { line, text });
        } else if next == ':' && reader.peek(1) == Some(':') {
            reader.skip(2);
            code.push(Token {
                line,
                text: "::".to_owned(),
            });
        } else {
            reader.skip(1);
            if !next.is_whitespace() {
                code.push(Token {
                    line,
                    text: next.to_string(),
                });
            }
        }
    }
    (code, comments)
}

struct Reader<'a> {
    chars: &'a [char],
    at: usize,
    line: usize,
}

impl Reader<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn skip(&mut self, count: usize) {
        for _ in 0..count {
            if self.peek(0) == Some('\n') {
                self.line += 1;
            }
            self.at += 1;
        }
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(next) = self.peek(0).filter(|c| wanted(*c)) {
            taken.push(next);
            self.skip(1);
        }
        taken
    }

    fn block_comment(&mut self, comments: &mut Vec<Token>) {
        let mut depth = 0_usize;
        let mut text = String::new();
        while let Some(next) = self.peek(0) {
            match (next, self.peek(1)) {
                ('/', Some('*')) => depth += 1,
                ('*', Some('/')) => depth -= 1,
                ('\n', _) => comments.push(Token {
                    line: self.line,
                    text: std::mem::take(&mut text),
                }),
                _ => text.push(next),
            }
            let pair = matches!((next, self.peek(1)), ('/', Some('*')) | ('*', Some('/')));
            self.skip(if pair { 2 } else { 1 });
            if depth == 0 {
                break;
            }
        }
        comments.push(Token {
            line: self.line,
            text,
        });
    }

    /// Passes over a string literal of any form, if one begins here.
    fn string(&mut self) -> bool {
        let mut ahead = 0;
        while matches!(self.peek(ahead), Some('b' | 'c' | 'r')) && ahead < 2 {
            ahead += 1;
        }
        let raw = ahead > 0 && self.peek(ahead - 1) == Some('r');
        let mut hashes = 0;
        while raw && self.peek(ahead + hashes) == Some('#') {
            hashes += 1;
        }
        if self.peek(ahead + hashes) != Some('"') {
            return false;
        }
        self.skip(ahead + hashes + 1);
        while let Some(next) = self.peek(0) {
            if next == '"' && (1..=hashes).all(|n| self.peek(n) == Some('#')) {
                self.skip(1 + hashes);
                break;
            }
            self.skip(if next == '\\' && !raw { 2 } else { 1 });
        }
        true
    }

    /// Passes over a character literal, and over the quote of a lifetime.
    fn character(&mut self) -> bool {
        if self.peek(0) != Some('\'') {
            return false;
        }
        if self.peek(1) == Some('\\') {
            self.skip(3);
            while self.peek(0).is_some_and(|c| c != '\'') {
                self.skip(1);
            }
            self.skip(1);
        } else if self.peek(2) == Some('\'') {
            self.skip(3);
        } else {
            self.skip(1);
        }
        true
    }
}
