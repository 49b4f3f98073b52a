//! Patterns of paths.

use globset::{GlobBuilder, GlobMatcher};

/// Compiles a pattern of relative paths, in which only `**` passes a `/`; with `any_case` it ignores case. What is wrong is said in words.
pub(super) fn path_pattern(pattern: &str, any_case: bool) -> Result<GlobMatcher, String> {
    if pattern.starts_with('/') || pattern.split('/').any(|name| name == "..") {
        return Err(
            "a pattern is relative and has no `..`: name the directory in `path`".to_owned(),
        );
    }
    GlobBuilder::new(pattern.strip_prefix("./").unwrap_or(pattern))
        .literal_separator(true)
        .case_insensitive(any_case)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| error.kind().to_string())
}
