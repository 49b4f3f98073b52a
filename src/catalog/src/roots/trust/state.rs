//! Whether a skill is trusted, and why not.

/// Whether a skill may be handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Its root is trusted.
    Root,
    /// Somebody trusted what it holds.
    Content,
    /// Nobody did.
    Missing,
    /// Somebody did, and it has changed since.
    Changed,
}

impl Trust {
    /// Whether it may be handed out.
    pub const fn holds(self) -> bool {
        matches!(self, Trust::Root | Trust::Content)
    }

    /// Why it may not be handed out; `None`: it may.
    pub const fn reason(self) -> Option<&'static str> {
        match self {
            Trust::Root | Trust::Content => None,
            Trust::Missing => Some("nobody has trusted it; `workerctl skill trust` does"),
            Trust::Changed => {
                Some("it has changed since it was trusted; `workerctl skill trust` trusts it anew")
            }
        }
    }

    /// Its name in views.
    pub const fn name(self) -> &'static str {
        match self {
            Trust::Root => "root",
            Trust::Content => "content",
            Trust::Missing => "untrusted",
            Trust::Changed => "changed",
        }
    }
}
