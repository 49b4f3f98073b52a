//! Whether a skill is trusted, and why not.

use std::borrow::Cow;

use crate::model::config::CONFIG_FILE;

/// Whether a skill may be handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Its root is trusted.
    Root,
    /// Somebody trusted what it holds.
    Content,
    /// Nobody did.
    Missing,
    /// Nobody did, and workerctl.yaml, which says whether its root is trusted, has an error in this line; 0: as a whole.
    Unknown {
        /// From 1.
        line: u32,
    },
    /// Somebody did, and it has changed since.
    Changed,
}

impl Trust {
    /// Whether it may be handed out.
    pub const fn holds(self) -> bool {
        matches!(self, Trust::Root | Trust::Content)
    }

    /// Why it may not be handed out; `None`: it may.
    pub fn reason(self) -> Option<Cow<'static, str>> {
        match self {
            Trust::Root | Trust::Content => None,
            Trust::Missing => Some("it is not trusted; a user can run `workerctl skill trust`".into()),
            Trust::Unknown { line } => {
                let place = match line {
                    0 => "cannot be read".to_owned(),
                    line => format!("has an error in line {line}"),
                };
                let why = format!(
                    "`{CONFIG_FILE}` {place}: until it is repaired, skills of this project are trusted only by `workerctl skill trust`"
                );
                Some(why.into())
            }
            Trust::Changed => Some(
                "it has changed since it was trusted; a person can trust it again: `workerctl skill trust`"
                    .into(),
            ),
        }
    }

    /// Its name in views.
    pub const fn name(self) -> &'static str {
        match self {
            Trust::Root => "root",
            Trust::Content => "content",
            Trust::Missing | Trust::Unknown { .. } => "untrusted",
            Trust::Changed => "changed",
        }
    }
}
