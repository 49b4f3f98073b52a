//! The shape of paths: what can be refused without looking at a file system.

/// Longest path in bytes, as Linux takes it with its closing NUL.
const PATH_BYTES_MAX: usize = 4_095;

/// Longest name in a path in bytes, as Linux file systems take it.
const NAME_BYTES_MAX: usize = 255;

/// Why a text is not a path inside the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum PathError {
    /// Nothing stands there.
    #[error("a path must not be empty")]
    Empty,
    /// It begins with `/`.
    #[error("an absolute path is not accepted")]
    Absolute,
    /// A component is `..`.
    #[error("`..` is not accepted in a path")]
    Parent,
    /// A component is `.git` or would be on a file system that folds names.
    #[error("git's own directory is not accepted")]
    Git,
    /// A newline or another character that steers a terminal.
    #[error("control characters are not accepted in a path")]
    Control,
    /// A name is too long.
    #[error("a name in a path has at most 255 bytes")]
    LongName,
    /// The path is too long.
    #[error("a path has at most 4,095 bytes")]
    LongPath,
}

impl PathError {
    /// What to do about it.
    pub(super) const fn hint(self) -> Option<&'static str> {
        match self {
            PathError::Empty => Some("write `.` for the workspace itself"),
            PathError::Absolute => Some(
                "write it relative to the workspace; a skill that looks elsewhere on the host \
                 declares a `string` input with a `pattern`",
            ),
            PathError::Parent => Some("name the file from the workspace downwards"),
            PathError::Git | PathError::Control | PathError::LongName | PathError::LongPath => None,
        }
    }
}

/// Checks a path and writes it in one way: names joined by single slashes, no `.` between them, no
/// slash at the end; `.` where nothing is left. `~`, `%2e` and `\` mean nothing special here.
///
/// Whether a component is a link that leads out is seen only with the file system, later.
pub(super) fn parse(text: &str) -> Result<String, PathError> {
    if text.is_empty() {
        return Err(PathError::Empty);
    }
    if text.len() > PATH_BYTES_MAX {
        return Err(PathError::LongPath);
    }
    if text.chars().any(breaks_a_line_or_terminal) {
        return Err(PathError::Control);
    }
    if text.starts_with('/') {
        return Err(PathError::Absolute);
    }
    let mut names = Vec::new();
    for name in text.split('/') {
        match name {
            "" | "." => {}
            ".." => return Err(PathError::Parent),
            _ if name.len() > NAME_BYTES_MAX => return Err(PathError::LongName),
            _ if is_git_directory(name) => return Err(PathError::Git),
            _ => names.push(name),
        }
    }
    Ok(if names.is_empty() {
        ".".to_owned()
    } else {
        names.join("/")
    })
}

const fn breaks_a_line_or_terminal(ch: char) -> bool {
    ch.is_ascii_control() || matches!(ch, '\u{80}'..='\u{9f}' | '\u{2028}' | '\u{2029}')
}

/// Returns true if a file system could take the name for `.git`.
///
/// Some ignore case, some drop invisible characters (HFS+), some drop final dots and blanks, cut at
/// a colon, or know the short name `git~1` (NTFS). Git refuses the same names in its own trees.
pub fn is_git_directory(name: &str) -> bool {
    let visible: String = name
        .chars()
        .filter(|ch| {
            !matches!(ch, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
                | '\u{206a}'..='\u{206f}' | '\u{feff}')
        })
        .collect();
    let stem = visible.split(':').next().unwrap_or_default();
    let stem = stem.trim_end_matches([' ', '.']);
    stem.eq_ignore_ascii_case(".git") || stem.eq_ignore_ascii_case("git~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_judged_by_their_shape() {
        let long_name = "a".repeat(256);
        let longest_name = "a".repeat(255);
        let long_path = "a/".repeat(2_100);
        let table: [(&str, Result<&str, PathError>); 45] = [
            ("docs/a.md", Ok("docs/a.md")),
            ("./docs//a.md", Ok("docs/a.md")),
            ("workspace/reports/", Ok("workspace/reports")),
            (".", Ok(".")),
            ("./", Ok(".")),
            ("~/x", Ok("~/x")),
            ("~", Ok("~")),
            ("-rf", Ok("-rf")),
            ("a b", Ok("a b")),
            ("..\\..\\x", Ok("..\\..\\x")),
            ("%2e%2e%2f", Ok("%2e%2e%2f")),
            ("..;/", Ok("..;")),
            ("...", Ok("...")),
            ("link/secret", Ok("link/secret")),
            ("filelink", Ok("filelink")),
            ("root-evil/x", Ok("root-evil/x")),
            (".gitignore", Ok(".gitignore")),
            (".github/workflows/a.yml", Ok(".github/workflows/a.yml")),
            ("a.git/x", Ok("a.git/x")),
            ("é/ü", Ok("é/ü")),
            ("", Err(PathError::Empty)),
            ("../../etc/passwd", Err(PathError::Parent)),
            ("..", Err(PathError::Parent)),
            ("a/../../b", Err(PathError::Parent)),
            ("a/..", Err(PathError::Parent)),
            ("./../x", Err(PathError::Parent)),
            ("/etc/passwd", Err(PathError::Absolute)),
            ("//etc/passwd", Err(PathError::Absolute)),
            ("/proc/self/environ", Err(PathError::Absolute)),
            ("/dev/stdin", Err(PathError::Absolute)),
            ("/", Err(PathError::Absolute)),
            (".git/hooks/pre-commit", Err(PathError::Git)),
            (".git/config", Err(PathError::Git)),
            (".git", Err(PathError::Git)),
            (".GIT/config", Err(PathError::Git)),
            ("sub/.git/config", Err(PathError::Git)),
            (".git . /x", Err(PathError::Git)),
            (".git::$INDEX_ALLOCATION/x", Err(PathError::Git)),
            ("GIT~1/config", Err(PathError::Git)),
            (".g\u{200c}it/config", Err(PathError::Git)),
            ("a\nb", Err(PathError::Control)),
            ("a\u{1b}[2Jb", Err(PathError::Control)),
            ("a\u{2028}b", Err(PathError::Control)),
            (&long_name, Err(PathError::LongName)),
            (&long_path, Err(PathError::LongPath)),
        ];
        for (text, expected) in table {
            assert_eq!(parse(text), expected.map(str::to_owned), "{text:?}");
        }
        assert_eq!(parse(&longest_name), Ok(longest_name.clone()));
    }

    #[test]
    fn writing_in_one_way_is_stable() {
        for text in ["./a//b/", "a", ".", "x/./y", "~/z"] {
            let once = parse(text).unwrap();
            assert_eq!(parse(&once), Ok(once.clone()), "{text}");
        }
    }
}
