//! Replies: bounded text with notices, and what is said when a call fails.

use rustix::io::Errno;

/// Why a path is refused. Paths are as the model gave them.
#[derive(Debug, thiserror::Error)]
pub(super) enum RefusedPath {
    /// It leads out of the root.
    #[error("`{0}` is outside the working area: give a path under {1}")]
    Outside(String, String),
    /// It is `.git` or inside it.
    #[error("`{0}` belongs to git's own data (`.git`), which file tools do not touch")]
    Git(String),
    /// It is kept from models.
    #[error("`{0}` is off limits: file tools may not touch it")]
    Hidden(String),
    /// Nothing is there.
    #[error("`{0}` does not exist: list_directory or glob show what does")]
    Missing(String),
    /// Another kind of file is there than the tool takes.
    #[error("`{0}` is {1}")]
    Unfit(String, &'static str),
    /// The system refuses.
    #[error("`{path}` cannot be used: {source}")]
    System {
        path: String,
        source: std::io::Error,
    },
}

impl RefusedPath {
    /// What an error of the system says about a path.
    pub(super) fn of(path: &str, source: impl Into<std::io::Error>) -> Self {
        let (path, source) = (path.to_owned(), source.into());
        match Errno::from_io_error(&source) {
            Some(Errno::NOENT) => Self::Missing(path),
            Some(Errno::LOOP) => Self::Unfit(path, "a symbolic link, or leads through too many"),
            Some(Errno::NOTDIR) => Self::Unfit(
                path,
                "not a directory, or has a file where a directory is needed",
            ),
            Some(Errno::ISDIR) => Self::Unfit(path, IS_DIRECTORY),
            Some(Errno::NXIO) => Self::Unfit(path, NOT_REGULAR),
            _ => Self::System { path, source },
        }
    }
}

/// What is said of a directory where a file is wanted.
pub(super) const IS_DIRECTORY: &str = "a directory, not a file: use list_directory";

/// What is said of pipes, sockets and devices.
pub(super) const NOT_REGULAR: &str = "not a regular file but a pipe, socket or device";

/// What notices at the end of a reply may add to it.
pub(super) const NOTICES_BYTES_MAX: usize = 1024;

/// Why a call fails, in words for the model.
#[derive(Debug, thiserror::Error)]
pub(super) enum ToolError {
    /// The arguments do not fit the tool, or the file does not fit the arguments.
    #[error("{0}")]
    Arguments(String),
    /// The path is refused.
    #[error(transparent)]
    Path(#[from] RefusedPath),
    /// The file exceeds its bound.
    #[error("`{path}` has more than {bytes_max} bytes: {remedy}")]
    TooLarge {
        path: String,
        bytes_max: u64,
        remedy: &'static str,
    },
}

/// The beginning of `text`, at most `bytes_max` bytes, cut between characters.
pub(super) fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

/// Adds notices to a text, each in brackets on a line of its own.
pub(super) fn with_notices(mut text: String, notices: &[String]) -> String {
    for notice in notices {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.extend(["[", notice, "]\n"]);
    }
    text
}

/// Lines of a reply, up to a bound of lines and one of bytes.
#[derive(Debug)]
pub(super) struct ReplyLines {
    text: String,
    bytes_max: usize,
    lines_left: usize,
}

impl ReplyLines {
    pub(super) fn new(bytes_max: usize, lines_max: usize) -> Self {
        Self {
            text: String::new(),
            bytes_max,
            lines_left: lines_max,
        }
    }

    /// Adds a line and its end; false when it no longer fits.
    pub(super) fn push(&mut self, line: &str) -> bool {
        let fits = self.lines_left > 0 && self.text.len() + line.len() < self.bytes_max;
        if fits {
            self.lines_left -= 1;
            self.text.push_str(line);
            self.text.push('\n');
        }
        fits
    }

    /// The lines, or `nothing` if there are none, and notices in brackets.
    pub(super) fn finish(mut self, nothing: &str, notices: &[String]) -> String {
        if self.text.is_empty() {
            self.text = format!("[{nothing}]\n");
        }
        with_notices(self.text, notices)
    }
}
