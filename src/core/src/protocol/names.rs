//! Names that stand for a run without being its id.

use crate::model::{Diagnostic, Kind, RunId};

/// The name of the newest run.
pub const LATEST: &str = "latest";

/// Refuses a decision about the latest run, and names the run that this is now.
///
/// A decision is about the run that the user looked at, and another run may be the latest by then.
pub fn refuse_latest(newest: RunId) -> Diagnostic {
    let message = format!("`{LATEST}` may be another run than the one you looked at");
    let short = newest.short();
    Diagnostic::new(Kind::Usage, "run_not_named", message).hint(format!(
        "name the run by its id; the latest run is `{short}`: `workerctl show {short}`"
    ))
}
