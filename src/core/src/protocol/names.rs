//! Names of runs that are no ids.

use crate::model::{Diagnostic, Kind, RunId};

/// Names the newest run.
pub const LATEST: &str = "latest";

/// Refuses a decision about the latest run, and names the run that this is now.
///
/// Decisions are about the run that somebody looked at, and another one may be the latest by then.
pub fn refuse_latest(newest: RunId) -> Diagnostic {
    let message = format!("`{LATEST}` may be another run than the one you looked at");
    let short = newest.short();
    Diagnostic::new(Kind::Usage, "run_not_named", message).hint(format!(
        "name the run by its id; the latest run is `{short}`: `workerctl show {short}`"
    ))
}
