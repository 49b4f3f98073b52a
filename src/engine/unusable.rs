//! Places that an engine needs and cannot use: what that means for whoever asked, and what helps.

use std::io;

use crate::model::{Diagnostic, Kind};

/// A place that cannot be used: no space is left there, it may not be written, or else `remedy` helps.
pub fn unusable(code: &str, message: String, error: &io::Error, remedy: &str) -> Diagnostic {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Diagnostic::new(Kind::Blocked, "disk_full", message)
                .hint("free some space and start again")
        }
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => Diagnostic::new(
            Kind::Blocked,
            code,
            message,
        )
        .hint("make it writable for this user, or name another state directory with `--state-dir`"),
        _ => Diagnostic::new(Kind::Internal, code, message).hint(remedy),
    }
}
