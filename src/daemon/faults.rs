//! Faults of our own or of the machine, as clients and people are told of them.

use crate::model::{Diagnostic, Kind};

/// What failed, and why.
pub(super) fn internal(code: &str, what: &str, error: &dyn std::error::Error) -> Diagnostic {
    Diagnostic::new(Kind::Internal, code, format!("{what}: {error}"))
}
