//! `approval`: before what a person is asked, and how long they have to answer.

use super::keys::APPROVAL;
use super::report::Report;
use super::view::View;
use crate::model::config::ApprovalSettings;
use crate::model::duration::show_millis;
use crate::model::spec::{Approving, Gate};

/// Longest that somebody may be asked: a year.
const EXPIRES_MS_MAX: u64 = 365 * 24 * 3_600_000;

/// What one level says; `None` where it does not.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DeclaredApproval {
    before: Option<Gate>,
    expires_ms: Option<u64>,
}

impl DeclaredApproval {
    /// Whether it says that a person is asked before the landing.
    pub(crate) fn is_before_landing(self) -> bool {
        self.before == Some(Gate::Landing)
    }

    /// What this level says, and where it says nothing what the outer one does.
    pub(crate) fn or(self, outer: DeclaredApproval) -> DeclaredApproval {
        DeclaredApproval {
            before: self.before.or(outer.before),
            expires_ms: self.expires_ms.or(outer.expires_ms),
        }
    }

    /// How a run is to ask whose result lands, or does not. Only a result that lands can be looked at before: others
    /// ask before their command.
    pub(crate) fn resolve(self, lands: bool, configured: &ApprovalSettings) -> Approving {
        let before = self.before.or(configured.before);
        Approving {
            before: before.filter(|_| lands).unwrap_or(if lands {
                Gate::Landing
            } else {
                Gate::Execution
            }),
            expires_ms: self.expires_ms.unwrap_or(configured.expires_ms),
        }
    }
}

/// Reads `approval` of a skill or a worker.
pub(crate) fn read(view: View<'_>, report: &mut Report) -> DeclaredApproval {
    if !APPROVAL.is_map(view, "approval", "a map with `before` or `expires`", report) {
        return DeclaredApproval::default();
    }
    let value = |key| view.written(key);
    DeclaredApproval {
        before: value("before").and_then(|view| before(view, report)),
        expires_ms: value("expires").and_then(|view| expires(view, report)),
    }
}

/// Reads before what a person is asked.
pub(crate) fn before(view: View<'_>, report: &mut Report) -> Option<Gate> {
    match view.filled_text("before", report)?.as_str() {
        "execution" => Some(Gate::Execution),
        "landing" => Some(Gate::Landing),
        other => {
            report.error(
                "unknown-value",
                view.place(),
                format!("`before: {}` is not known", other.escape_debug()),
                "write `landing` or `execution`",
            );
            None
        }
    }
}

/// Reads how long they have to answer, in milliseconds.
pub(crate) fn expires(view: View<'_>, report: &mut Report) -> Option<u64> {
    let millis = view.millis("expires", report)?;
    if (1..=EXPIRES_MS_MAX).contains(&millis) {
        return Some(millis);
    }
    let message = format!(
        "`expires` must be more than zero and at most {}",
        show_millis(EXPIRES_MS_MAX)
    );
    report.error(
        "out-of-range",
        view.place(),
        message,
        "write a span such as `7d`",
    );
    None
}
