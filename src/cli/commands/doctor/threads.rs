//! Whether the newest threads are what was written.

use super::{Finding, State};
use crate::cli::commands::threads::verify::{NEWEST, newest};
use crate::cli::globals::Site;
use crate::protocol::Control;

/// Threads that are named.
const NAMED_MAX: usize = 5;

/// What the files of threads tell, and the journals where an engine can be asked. Nothing where there are none.
pub(super) fn threads(site: &Site, control: Option<&dyn Control>) -> Option<Finding> {
    let report = match newest(site, control, Some(NEWEST)) {
        Ok(report) if report.is_empty() => return None,
        Ok(report) => report,
        Err(refused) => return Some(Finding::refused("threads", State::Care, refused)),
    };
    if report.damaged == 0 {
        return Some(Finding::new("threads", State::Good, report.headline()));
    }
    let mut text = report.headline();
    for damage in report.damages().take(NAMED_MAX) {
        text.push('\n');
        text.push_str(&damage);
    }
    let hint = "restore the files from a backup; `workerctl show RUN` tells what the store holds of the run, \
                `workerctl thread verify --all` verifies every thread";
    Some(Finding::new("threads", State::Care, text).hint(hint))
}
