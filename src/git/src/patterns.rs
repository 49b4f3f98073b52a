//! Patterns of paths, as git reads them on its command line, except that `**/` also matches no directory, as in ignore
//! files.

use std::path::Path;

use git2::{Pathspec, PathspecFlags};

use workerctl_landing::error::{GitError, git};

/// Patterns of paths: `docs`, `docs/*.md`, `**/*.rs`. A directory stands for everything below it.
pub struct PathPatterns(Pathspec);

impl PathPatterns {
    /// Reads patterns.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub fn new(patterns: &[String]) -> Result<PathPatterns, GitError> {
        let plain = |pattern: &String| {
            let pattern = pattern.trim_start_matches("./").trim_end_matches('/');
            if pattern.is_empty() || pattern == "." {
                "*".to_owned()
            } else {
                pattern.to_owned()
            }
        };
        let plain: Vec<String> = patterns.iter().map(plain).collect();
        let deep = plain.iter().filter(|pattern| pattern.contains("**/"));
        let shallow: Vec<String> = deep.map(|pattern| pattern.replace("**/", "")).collect();
        let spec = Pathspec::new(plain.iter().chain(&shallow)).map_err(git("read the patterns"))?;
        Ok(PathPatterns(spec))
    }

    /// Whether one of them stands for the path, which is relative.
    pub fn match_path(&self, path: &Path) -> bool {
        self.0.matches_path(path, PathspecFlags::DEFAULT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        let patterns = PathPatterns::new(&[pattern.to_owned()]).unwrap();
        patterns.match_path(Path::new(path))
    }

    #[test]
    fn directories_stand_for_what_is_below_and_stars_for_names() {
        for (pattern, path, expected) in [
            ("docs", "docs/a/b.md", true),
            ("docs/", "docs/a.md", true),
            ("./docs/", "docs/a.md", true),
            ("docs", "docs2/a.md", false),
            ("docs/*.md", "docs/a.md", true),
            ("docs/*.md", "docs/a.txt", false),
            ("**/*.rs", "src/deep/a.rs", true),
            ("**/*.rs", "a.rs", true),
            ("**/*.rs", "a.txt", false),
            ("src/**/*.rs", "src/deep/a.rs", true),
            ("src/**/*.rs", "src/a.rs", true),
            ("src/**/*.rs", "a.rs", false),
            ("src/**/*.rs", "lib/deep/a.rs", false),
            (".", "any/thing", true),
            ("a[0-9].txt", "a7.txt", true),
            ("a.txt", "a.txt", true),
            ("a.txt", "b/a.txt", false),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
    }
}
