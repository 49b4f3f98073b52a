//! Whether schedules succeed when they should, and whether their records are sound.

use std::sync::Arc;

use super::{Finding, State};
use crate::cli::commands::check::counted;
use crate::cli::commands::status::{failed_push, told_of_failures, told_of_notice};
use crate::cli::globals::Site;
use crate::cli::maintenance::{self, LockHolder};
use crate::cli::render::times;
use crate::cli::session::{Accept, Session};
use crate::model::{Diagnostic, FailedPush, Kind};
use crate::protocol::{Control, ScheduleView, SchedulesQuery, SlotsQuery};

/// Rows of the ledger that are looked at, the newest ones.
const ROWS_LOOKED_AT: u32 = 10_000;

/// What an engine tells of its schedules; where none runs, what the store tells. Nothing where neither can be
/// asked: why stands in other findings.
pub(super) fn schedules(
    site: &Site,
    control: Result<Arc<dyn Control>, Diagnostic>,
) -> Vec<Finding> {
    let control = match control {
        Ok(control) => control,
        Err(refused) if refused.kind == Kind::Unreachable && nobody_is_there(site) => {
            return Vec::new();
        }
        Err(refused) => return vec![Finding::refused("schedules", State::Bad, refused)],
    };
    looked_at(control.as_ref())
        .unwrap_or_else(|refused| vec![Finding::refused("schedules", State::Bad, refused)])
}

/// The engine that runs, or one in this process where a store is there that nobody uses.
pub(super) fn connected(
    session: &Session<'_>,
    site: &Site,
) -> Result<Arc<dyn Control>, Diagnostic> {
    match session.engines.connect(site, Accept::RunningOnly) {
        Err(refused) if refused.kind == Kind::Unreachable && has_store(site) => session
            .engines
            .connect(site, Accept::RunningElseHosted)
            .map_err(|_| refused),
        connected => connected,
    }
}

fn nobody_is_there(site: &Site) -> bool {
    matches!(maintenance::holder(&site.workspace), Ok(LockHolder::Free))
}

/// Whether there is a store that nobody uses: looking at it changes nothing that is not there.
fn has_store(site: &Site) -> bool {
    let is_there = |info: maintenance::StoreInfo| info.database_bytes.is_some() && !info.in_use;
    maintenance::info(&site.state_dir).is_ok_and(is_there) && nobody_is_there(site)
}

fn looked_at(control: &dyn Control) -> Result<Vec<Finding>, Diagnostic> {
    let views = control.all_schedules(&SchedulesQuery::default())?;
    let mut findings: Vec<Finding> = views
        .iter()
        .flat_map(|view| [overdue(view), failing(view), kept(view), restored(view)])
        .flatten()
        .collect();
    findings.extend(views.iter().find_map(held));
    findings.extend(problems_of_delivery(control)?);
    findings.extend(unreadable(control)?);
    if findings.is_empty() && !views.is_empty() {
        let text = format!(
            "{}, none overdue or failing",
            counted(views.len(), "schedule")
        );
        findings.push(Finding::new("schedules", State::Good, text));
    }
    Ok(findings)
}

fn overdue(view: &ScheduleView) -> Option<Finding> {
    let expected_by = view.expected_by.filter(|_| view.overdue)?;
    let zone = times::zone(&view.timezone);
    let did = match view.succeeded_at {
        Some(at) => format!("last did at {}", at.rfc3339_in(zone)),
        None => "never did".to_owned(),
    };
    let by = expected_by.rfc3339_in(zone);
    let text = format!("{} was expected to succeed by {by}, but {did}", view.id);
    let hint = format!(
        "`workerctl schedule slots '{}'` shows why it did not run; pausing it with a reason clears this alarm",
        view.id
    );
    Some(Finding::new("overdue", State::Bad, text).hint(&hint))
}

/// At once, not only when it is overdue.
fn failing(view: &ScheduleView) -> Option<Finding> {
    let failing = view.failing()?;
    let text = told_of_failures(&failing);
    let hint = if failing.paused {
        format!(
            "after you fix the cause, resume it with `workerctl schedule resume '{}'`",
            view.id
        )
    } else {
        format!(
            "once it is repaired, `workerctl schedule trigger '{}'` shows whether it succeeds",
            view.id
        )
    };
    Some(Finding::new("failing", State::Bad, text).hint(&hint))
}

/// Notices that were not delivered, and branches that were not pushed.
fn problems_of_delivery(control: &dyn Control) -> Result<Vec<Finding>, Diagnostic> {
    let status = control.status()?;
    let zone = times::zone(&status.timezone);
    let finding = |notice| {
        let hint = "`workerctl notify test` tests the channels again; pending notifications are sent once a channel works";
        Finding::new("notices", State::Bad, told_of_notice(notice, zone)).hint(hint)
    };
    let not_pushed = |push: &FailedPush| {
        Finding::new("push", State::Bad, failed_push(push, &status)).hint(&push.hint())
    };
    let notices = status.undelivered.iter().map(finding);
    let pushes = status.failed_pushes.iter().map(not_pushed);
    Ok(notices.chain(pushes).collect())
}

fn held(view: &ScheduleView) -> Option<Finding> {
    let why = view.inactive_reason.as_ref()?;
    let hint = "`workerctl check` shows what is wrong with it";
    Some(Finding::new("schedules", State::Bad, why.clone()).hint(hint))
}

fn kept(view: &ScheduleView) -> Option<Finding> {
    let error = view.fallback_reason.as_ref()?;
    let text = format!(
        "{} uses its last valid definition because of an error: {error}",
        view.id
    );
    let hint = "repair the file; `workerctl check` shows what is wrong with it";
    Some(Finding::new("schedules", State::Care, text).hint(hint))
}

fn restored(view: &ScheduleView) -> Option<Finding> {
    let restored = view.restored.as_ref()?;
    let zone = times::zone(&view.timezone);
    let text = format!(
        "the stored state of {} was damaged and was reset at {}: {}",
        view.id,
        restored.at.rfc3339_in(zone),
        restored.reason
    );
    let hint = format!(
        "choose how it continues: `workerctl schedule resume '{0}'` or `pause '{0}'`",
        view.id
    );
    Some(Finding::new("schedules", State::Care, text).hint(&hint))
}

fn unreadable(control: &dyn Control) -> Result<Option<Finding>, Diagnostic> {
    let query = SlotsQuery {
        limit: ROWS_LOOKED_AT,
        ..SlotsQuery::default()
    };
    let rows = control.slots(&query)?;
    let damaged: Vec<_> = rows.iter().filter(|row| row.unreadable).collect();
    let Some(first) = damaged.first() else {
        return Ok(None);
    };
    let text = format!(
        "{} of the ledger cannot be read, the newest of {} at {}",
        counted(damaged.len(), "row"),
        first.schedule,
        first.from.rfc3339()
    );
    let hint = "the slots were decided, and what became of them is lost; `workerctl store verify` lists the damage";
    Ok(Some(Finding::new("ledger", State::Bad, text).hint(hint)))
}
