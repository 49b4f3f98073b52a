//! `limits`: what the processes of one command may use.

use super::isolation::bytes;
use super::keys::{LIMITS, report_unknown};
use super::report::Report;
use super::tree::Data;
use super::view::View;
use crate::bounds::PROCESSES_MAX;
use crate::model::ResourceLimits;

/// Bytes that one command may write: 1 KiB to 1 PiB.
const WRITTEN: std::ops::RangeInclusive<u64> = 1 << 10..=1 << 50;

/// What one level of a definition says.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AskedLimits {
    processes: Option<u64>,
    written: Option<u64>,
}

impl AskedLimits {
    /// What holds where an outer level says something too: of each key the inner one counts.
    pub(crate) fn within(self, outer: ResourceLimits) -> ResourceLimits {
        ResourceLimits {
            processes: self.processes.unwrap_or(outer.processes),
            written_bytes: self.written.unwrap_or(outer.written_bytes),
        }
    }
}

/// Reads `limits`. A key that is not known is an error: otherwise nothing would be limited.
pub(crate) fn read(view: View<'_>, report: &mut Report) -> AskedLimits {
    if !matches!(view.data(), Data::Map(_)) {
        view.wrong_type(
            "limits",
            "a map such as `{processes: 200, written: 1GiB}`",
            report,
        );
        return AskedLimits::default();
    }
    report_unknown(view, &LIMITS, report);
    let value = |key| view.written(key);
    AskedLimits {
        processes: value("processes").and_then(|found| processes(found, report)),
        written: value("written").and_then(|found| written(found, report)),
    }
}

/// Reads a number of processes.
pub(crate) fn processes(view: View<'_>, report: &mut Report) -> Option<u64> {
    view.whole("processes", 1..=PROCESSES_MAX, report)
}

/// Reads how much may be written.
pub(crate) fn written(view: View<'_>, report: &mut Report) -> Option<u64> {
    let found = bytes(view, "written", report)?;
    if WRITTEN.contains(&found) {
        return Some(found);
    }
    report.error(
        "out-of-range",
        view.place(),
        "`written` must be a size from 1KiB to 1024TiB".to_owned(),
        "write a size such as `512MiB` or `32GiB`",
    );
    None
}
